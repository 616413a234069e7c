package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// The functions of full-text search that read json documents, and ts_headline.

// jsonParts are the parts of a json document that are indexed.
type jsonParts uint8

const (
	jsonKeys jsonParts = 1 << iota
	jsonStrings
	jsonNumbers
	jsonBooleans
	allJSON = jsonKeys | jsonStrings | jsonNumbers | jsonBooleans
)

var jsonPartsNamed = map[string]jsonParts{"all": allJSON, "key": jsonKeys, "string": jsonStrings, "numeric": jsonNumbers, "boolean": jsonBooleans}

const jsonPartsHint = "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\"."

// parseJSONParts reads the filter of json_to_tsvector: a name, or an array of names.
func parseJSONParts(v jsonb.Value) (parts jsonParts, err error) {
	add := func(v jsonb.Value) error {
		if v.Kind() != jsonb.String {
			return pgerror.New(pgerror.InvalidParameterValue, "flag array element is not a string").WithHint(jsonPartsHint)
		}
		p, ok := jsonPartsNamed[strings.ToLower(string(v.Text()))]
		if !ok {
			return pgerror.New(pgerror.InvalidParameterValue, "wrong flag in flag array: \"%s\"", v.Text()).WithHint(jsonPartsHint)
		}
		parts |= p
		return nil
	}
	switch v.Kind() {
	case jsonb.Object:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "wrong flag type, only arrays and scalars are allowed")
	case jsonb.Array:
		for _, member := range v.Members {
			if err := add(member); err != nil {
				return 0, err
			}
		}
		return parts, nil
	}
	return parts, add(v)
}

// jsonDocumentFuncs declares to_tsvector of json and jsonb, and the functions that choose the parts to index.
func jsonDocumentFuncs() []decl {
	var out []decl
	for _, t := range []string{"json", "jsonb"} {
		vector := jsonVector
		if t == "jsonb" {
			vector = jsonbVector
		}
		out = append(out, configured("to_tsvector", t, "tsvector", func(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error) {
			return vector(env, c, a[0], jsonStrings)
		})...)
		out = append(out, configured(t+"_to_tsvector", t+",jsonb", "tsvector", func(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error) {
			parts, err := parseJSONParts(a[1].JSONB())
			if err != nil {
				return types.Null, err
			}
			return vector(env, c, a[0], parts)
		})...)
	}
	return out
}

func jsonbVector(env *Env, c *textsearch.Configuration, d types.Datum, parts jsonParts) (types.Datum, error) {
	if err := env.Reserve(documentBytes * len(d.Bytes())); err != nil {
		return types.Null, err
	}
	doc := c.NewDocument(env.poller())
	if err := addJSONB(env, doc, d.JSONB(), parts); err != nil {
		return types.Null, err
	}
	return vectorDatum(doc.Vector())
}

func addJSONB(env *Env, doc *textsearch.Document, v jsonb.Value, parts jsonParts) error {
	if err := env.Step(stepCost); err != nil {
		return err
	}
	switch kind := v.Kind(); {
	case v.IsContainer():
		for key, member := range v.Members {
			if kind == jsonb.Object && parts&jsonKeys != 0 {
				if err := doc.Add(string(key)); err != nil {
					return err
				}
			}
			if err := addJSONB(env, doc, member, parts); err != nil {
				return err
			}
		}
		return nil
	case kind == jsonb.String && parts&jsonStrings != 0, kind == jsonb.Number && parts&jsonNumbers != 0:
		return doc.Add(string(v.Text()))
	case kind == jsonb.True && parts&jsonBooleans != 0:
		return doc.Add("true")
	case kind == jsonb.False && parts&jsonBooleans != 0:
		return doc.Add("false")
	}
	return nil
}

func jsonVector(env *Env, c *textsearch.Configuration, d types.Datum, parts jsonParts) (types.Datum, error) {
	if err := env.Reserve(documentBytes * len(d.Bytes())); err != nil {
		return types.Null, err
	}
	doc := c.NewDocument(env.poller())
	r := newJSONReader(env, d.Text())
	for {
		e, err := r.Next()
		if err != nil {
			return types.Null, err
		}
		part := jsonParts(0)
		switch e {
		case jsonb.End:
			return vectorDatum(doc.Vector())
		case jsonb.Key:
			part = jsonKeys
		case jsonb.StringEvent:
			part = jsonStrings
		case jsonb.NumberEvent:
			part = jsonNumbers
		case jsonb.TrueEvent, jsonb.FalseEvent:
			part = jsonBooleans
		}
		if parts&part == 0 {
			continue
		}
		text := ""
		switch e {
		case jsonb.TrueEvent:
			text = "true"
		case jsonb.FalseEvent:
			text = "false"
		default:
			text = r.Text()
		}
		if err := doc.Add(text); err != nil {
			return types.Null, err
		}
	}
}

// headlineFuncs declares ts_headline.
func headlineFuncs() []decl {
	var out []decl
	for _, t := range []struct {
		name string
		make func(env *Env, h *textsearch.Highlighter, d types.Datum) (types.Datum, error)
	}{{"text", headlineText}, {"json", headlineJSON}, {"jsonb", headlineJSONB}} {
		f := func(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error) {
			options := ""
			if len(a) > 2 {
				options = a[2].Text()
			}
			o, err := textsearch.ParseHeadlineOptions(options)
			if err != nil {
				return types.Null, err
			}
			return t.make(env, c.NewHighlighter(a[1].TSQuery(), o, env.poller(), env.Reserve), a[0])
		}
		out = append(out, configured("ts_headline", t.name+",tsquery", t.name, f)...)
		out = append(out, configured("ts_headline", t.name+",tsquery,text", t.name, f)...)
	}
	return out
}

func headlineText(_ *Env, h *textsearch.Highlighter, d types.Datum) (types.Datum, error) {
	b, err := h.Headline(nil, d.Text())
	return types.Bytes(b), err
}

// headlineJSON replaces the strings of a json document by their headlines. Blanks between its parts are dropped.
func headlineJSON(env *Env, h *textsearch.Highlighter, d types.Datum) (types.Datum, error) {
	if err := env.Reserve(2 * len(d.Bytes())); err != nil {
		return types.Null, err
	}
	r := newJSONReader(env, d.Text())
	var dst, headline []byte
	comma := false // before the next key, element or value
	for {
		e, err := r.Next()
		if err != nil {
			return types.Null, err
		}
		if e == jsonb.End {
			return types.Bytes(dst), nil
		}
		if comma && e != jsonb.EndObject && e != jsonb.EndArray {
			dst = append(dst, ',')
		}
		comma = true
		switch e {
		case jsonb.BeginObject:
			dst, comma = append(dst, '{'), false
		case jsonb.BeginArray:
			dst, comma = append(dst, '['), false
		case jsonb.EndObject:
			dst = append(dst, '}')
		case jsonb.EndArray:
			dst = append(dst, ']')
		case jsonb.Key:
			dst, comma = append(jsonb.AppendString(dst, r.Text()), ':'), false
		case jsonb.StringEvent:
			if headline, err = h.Headline(headline[:0], r.Text()); err != nil {
				return types.Null, err
			}
			dst = jsonb.AppendString(dst, headline)
		case jsonb.NumberEvent:
			dst = append(dst, r.Text()...)
		case jsonb.TrueEvent:
			dst = append(dst, "true"...)
		case jsonb.FalseEvent:
			dst = append(dst, "false"...)
		case jsonb.NullEvent:
			dst = append(dst, "null"...)
		}
	}
}

// headlineJSONB replaces the strings of a jsonb by their headlines.
func headlineJSONB(env *Env, h *textsearch.Highlighter, d types.Datum) (types.Datum, error) {
	if err := env.Reserve(2 * len(d.Bytes())); err != nil {
		return types.Null, err
	}
	var b jsonb.Builder
	if err := buildHeadlines(env, &b, h, d.JSONB()); err != nil {
		return types.Null, err
	}
	return types.JSONB(b.Finish()), nil
}

func buildHeadlines(env *Env, b *jsonb.Builder, h *textsearch.Highlighter, v jsonb.Value) error {
	if err := env.Step(stepCost); err != nil {
		return err
	}
	switch v.Kind() {
	case jsonb.String:
		text, err := h.Headline(nil, string(v.Text()))
		if err != nil {
			return err
		}
		return b.String(string(text))
	case jsonb.Object:
		b.BeginObject()
	case jsonb.Array:
		b.BeginArray()
	default:
		b.Value(v)
		return nil
	}
	for key, member := range v.Members {
		if v.Kind() == jsonb.Object {
			if err := b.Key(string(key)); err != nil {
				return err
			}
		}
		if err := buildHeadlines(env, b, h, member); err != nil {
			return err
		}
	}
	return b.End()
}

// rewriteByQuery is ts_rewrite with a query that returns what to replace and by what.
func rewriteByQuery(env *Env, a []types.Datum) (types.Datum, error) {
	q := a[0].TSQuery()
	if q.Root == nil {
		return a[0], nil
	}
	if env.Queries == nil {
		return types.Null, errNoService("ts_rewrite")
	}
	q = q.Sorted()
	columns := func(list []types.Type) error {
		if len(list) != 2 || list[0].OID != types.OIDTSQuery || list[1].OID != types.OIDTSQuery {
			return pgerror.New(pgerror.InvalidParameterValue, "ts_rewrite query must return two tsquery columns")
		}
		return nil
	}
	err := env.Queries.Query(env.Context(), a[1].Text(), columns, func(row types.Row) error {
		if row[0].IsNull() || row[1].IsNull() {
			return nil
		}
		q = q.Rewrite(row[0].TSQuery(), row[1].TSQuery()) // It copies the words.
		return q.Check()
	})
	if err != nil {
		return types.Null, err
	}
	return queryDatum(q)
}

// wordStat is a row of ts_stat.
type wordStat struct{ documents, entries int64 }

// wordStats is what ts_stat computes: in how many documents of a query's column a word occurs, and how often. mask selects weights;
// 0: all, and words without positions.
func wordStats(env *Env, query string, mask int) (map[string]*wordStat, error) {
	if env.Queries == nil {
		return nil, errNoService("ts_stat")
	}
	stats := map[string]*wordStat{}
	columns := func(list []types.Type) error {
		if len(list) != 1 || list[0].OID != types.OIDTSVector {
			return pgerror.New(pgerror.InvalidParameterValue, "ts_stat query must return one tsvector column")
		}
		return nil
	}
	err := env.Queries.Query(env.Context(), query, columns, func(row types.Row) error {
		if row[0].IsNull() {
			return nil
		}
		for _, l := range row[0].TSVector() {
			n := int64(0)
			switch {
			case mask == 0:
				n = int64(max(len(l.Pos), 1))
			default:
				for _, p := range l.Pos {
					n += int64(mask >> p.Weight() & 1)
				}
			}
			if n == 0 {
				continue
			}
			s := stats[l.Word]
			if s == nil {
				const bytes = 96 // of an entry, with what refers to it
				if err := env.count(int64(len(l.Word)) + bytes); err != nil {
					return err
				}
				s = &wordStat{}
				stats[strings.Clone(l.Word)] = s
			}
			s.documents++
			s.entries += n
		}
		return nil
	})
	return stats, err
}

// weightMask returns the weights that a text names by their letters.
func weightMask(s string) (mask int) {
	for _, c := range []byte(s) {
		if w, ok := weightOf(c); ok && c < 0x80 {
			mask |= 1 << w
		}
	}
	return mask
}
