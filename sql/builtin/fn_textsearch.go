package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// defaultConfiguration is that of the setting default_text_search_config.
func (e *Env) defaultConfiguration() (*textsearch.Configuration, error) {
	if e.Session == nil {
		return nil, errNoService("default_text_search_config")
	}
	name, err := e.Session.Setting("default_text_search_config")
	if err != nil {
		return nil, err
	}
	if bare, ok := strings.CutPrefix(name, "pg_catalog."); ok {
		if c := textsearch.ConfigurationNamed(bare); c != nil {
			return c, nil
		}
	}
	if e.Format.Names != nil {
		oid, err := e.Format.Names.TextSearchOID(types.OIDRegconfig, name)
		if err != nil {
			return nil, err
		}
		return e.configuration(types.Int(int64(oid)))
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "text search configuration \"%s\" does not exist", name)
}

// configured declares a function once with a configuration before its arguments, and once without.
func configured(name, args, ret string, f func(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error)) []decl {
	return []decl{
		{sig: name + "(" + args + ") " + ret, flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			c, err := env.defaultConfiguration()
			if err != nil {
				return types.Null, err
			}
			return f(env, c, a)
		}},
		{sig: name + "(regconfig," + args + ") " + ret, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			c, err := env.configuration(a[0])
			if err != nil {
				return types.Null, err
			}
			return f(env, c, a[1:])
		}},
	}
}

// configuration returns the configuration of a regconfig.
func (e *Env) configuration(d types.Datum) (*textsearch.Configuration, error) {
	oid := uint32(d.Int())
	c := textsearch.ConfigurationByOID(oid)
	if c == nil && e.TextSearch != nil {
		c = e.TextSearch().Configuration(oid)
	}
	if c != nil {
		return c, nil
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "cache lookup failed for text search configuration %d", uint32(d.Int()))
}

// dictionary returns the dictionary of a regdictionary.
func (e *Env) dictionary(d types.Datum) (*textsearch.Dictionary, error) {
	oid := uint32(d.Int())
	found := textsearch.DictionaryByOID(oid)
	if found == nil && e.TextSearch != nil {
		found = e.TextSearch().Dictionary(oid)
	}
	if found != nil {
		return found, nil
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "cache lookup failed for text search dictionary %d", oid)
}

// lexemeArray is what ts_lexize returns: NULL for a word that the dictionary does not know.
func lexemeArray(words []string, known bool) types.Datum {
	if !known {
		return types.Null
	}
	out := &types.Array{Elem: types.TText}
	for _, w := range words {
		out.Elems = append(out.Elems, types.Text(w))
	}
	return types.NewArray(out)
}

// poller polls for cancellation once for each step.
func (e *Env) poller() func() error { return func() error { return e.Step(1) } }

// documentBytes is the memory that is reserved for each byte of a document: a lexeme takes several times the bytes of its text.
const documentBytes = 6

// documentVector is to_tsvector.
func documentVector(env *Env, c *textsearch.Configuration, text string) (tsearch.Vector, error) {
	if err := env.Reserve(documentBytes * len(text)); err != nil {
		return nil, err
	}
	return c.Vector(text, env.poller())
}

// DocumentOf returns the tsvector of texts that follow each other.
func (e *Env) DocumentOf(configuration types.OID, texts []string) (types.Datum, error) {
	c, err := e.configuration(types.Int(int64(configuration)))
	if err != nil {
		return types.Null, err
	}
	doc := c.NewDocument(e.poller())
	for _, text := range texts {
		if err := e.Reserve(documentBytes * len(text)); err != nil {
			return types.Null, err
		}
		if err := doc.Continue(text); err != nil {
			return types.Null, err
		}
	}
	return vectorDatum(doc.Vector())
}

func toVector(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error) {
	return vectorDatum(documentVector(env, c, a[0].Text()))
}

// queryOf declares a function that makes a query of a text; words of one operand are joined by op.
func queryOf(name string, op tsearch.Op, parse func(string, tsearch.Morph) (*tsearch.Query, error)) []decl {
	return configured(name, "text", "tsquery", func(env *Env, c *textsearch.Configuration, a []types.Datum) (types.Datum, error) {
		if err := env.Reserve(documentBytes * len(a[0].Bytes())); err != nil {
			return types.Null, err
		}
		operands, morph := 0, c.Morph(op, env.poller())
		q, err := parse(a[0].Text(), func(text string, weights uint8, prefix bool) (*tsearch.Node, error) {
			operands++
			return morph(text, weights, prefix)
		})
		if err != nil {
			return types.Null, err
		}
		if q.Root == nil {
			env.warnEmptyQuery(a[0].Text(), operands)
		}
		return queryDatum(q)
	})
}

// warnEmptyQuery tells the client that a text has become a query that finds nothing: of the same text once in a statement, which may make the
// query for each row.
func (e *Env) warnEmptyQuery(text string, operands int) {
	if e.Format.Warn == nil || e.emptyQuery.at == e.StmtTime && e.emptyQuery.text == text {
		return
	}
	e.emptyQuery.at, e.emptyQuery.text = e.StmtTime, text
	switch {
	case text == "" || operands == 0:
		e.Format.Warn(tsearch.NoLexemes(text))
	default:
		e.Format.Warn(pgerror.New(pgerror.SuccessfulCompletion, "text-search query contains only stop words or doesn't contain lexemes, ignored"))
	}
}

func documentFuncs() []decl {
	out := configured("to_tsvector", "text", "tsvector", toVector)
	out = append(out, textSearchVisible()...)
	out = append(out, jsonDocumentFuncs()...)
	out = append(out, headlineFuncs()...)
	out = append(out, queryOf("to_tsquery", tsearch.Phrase, tsearch.ParseQueryWith)...)
	out = append(out, queryOf("plainto_tsquery", tsearch.And, tsearch.Plain)...)
	out = append(out, queryOf("phraseto_tsquery", tsearch.Phrase, tsearch.Plain)...)
	out = append(out, queryOf("websearch_to_tsquery", tsearch.Phrase, tsearch.ParseWeb)...)
	return append(out,
		decl{sig: "get_current_ts_config() regconfig", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			c, err := env.defaultConfiguration()
			if err != nil {
				return types.Null, err
			}
			return types.Int(int64(c.OID)), nil
		}},
		decl{sig: "ts_lexize(regdictionary,text) text[]", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			d, err := env.dictionary(a[0])
			if err != nil {
				return types.Null, err
			}
			return lexemeArray(d.Lexize(a[1].Text())), nil
		}},
		decl{sig: "ts_match_tt(text,text) bool", flags: stable, fn: matchTexts},
		decl{sig: "ts_match_tq(text,tsquery) bool", flags: stable, fn: matchText},
	)
}

// textSearchVisible declares the functions that report whether an object of full-text search is found by its name alone. The only parser and
// the templates are in pg_catalog.
func textSearchVisible() []decl {
	visible := func(t types.OID) Func {
		return catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			is, ok := c.TextSearchVisible(t, oidArg(a[0]))
			if !ok {
				return types.Null, nil
			}
			return types.Bool(is), nil
		})
	}
	exists := func(has func(oid uint32) bool) Func {
		return fn1(func(a types.Datum) (types.Datum, error) {
			if !has(uint32(a.Int())) {
				return types.Null, nil
			}
			return types.Bool(true), nil
		})
	}
	return []decl{
		{sig: "pg_ts_config_is_visible(oid) bool", flags: stable, fn: visible(types.OIDRegconfig)},
		{sig: "pg_ts_dict_is_visible(oid) bool", flags: stable, fn: visible(types.OIDRegdictionary)},
		{sig: "pg_ts_parser_is_visible(oid) bool", flags: stable, fn: exists(func(oid uint32) bool { return oid == textsearch.ParserOID })},
		{sig: "pg_ts_template_is_visible(oid) bool", flags: stable, fn: exists(func(oid uint32) bool { return textsearch.TemplateByOID(oid) != nil })},
	}
}

func documentOps() []decl {
	return []decl{
		{sig: "@@(text,text) bool", flags: stable, fn: matchTexts},
		{sig: "@@(text,tsquery) bool", flags: stable, fn: matchText},
	}
}

func matchTexts(env *Env, a []types.Datum) (types.Datum, error) {
	c, err := env.defaultConfiguration()
	if err != nil {
		return types.Null, err
	}
	q, err := tsearch.Plain(a[1].Text(), c.Morph(tsearch.And, env.poller()))
	if err != nil {
		return types.Null, err
	}
	return matchDocument(env, c, a[0], q)
}

func matchText(env *Env, a []types.Datum) (types.Datum, error) {
	c, err := env.defaultConfiguration()
	if err != nil {
		return types.Null, err
	}
	return matchDocument(env, c, a[0], a[1].TSQuery())
}

func matchDocument(env *Env, c *textsearch.Configuration, text types.Datum, q *tsearch.Query) (types.Datum, error) {
	v, err := documentVector(env, c, text.Text())
	return types.Bool(v.Matches(q)), err
}

// objectNameCasts are the casts between numbers and the names of configurations, dictionaries and collations.
func objectNameCasts() []typeCast {
	toOID := fn1(func(a types.Datum) (types.Datum, error) {
		n := a.Int()
		if n < -1<<31 || n > 1<<32-1 {
			return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "OID out of range")
		}
		return types.Int(int64(uint32(n))), nil
	})
	toInt4 := fn1(func(a types.Datum) (types.Datum, error) { return types.Int(int64(int32(a.Int()))), nil })
	same := fn1(func(a types.Datum) (types.Datum, error) { return a, nil })
	var out []typeCast
	for _, t := range []string{"regconfig", "regdictionary", "regcollation"} {
		out = append(out,
			typeCast{from: "oid", to: t, context: Implicit}, typeCast{from: t, to: "oid", context: Implicit},
			typeCast{from: "int4", to: t, context: Implicit, fn: toOID, binary: true},
			typeCast{from: t, to: "int4", context: Assignment, fn: toInt4, binary: true},
			typeCast{from: "int2", to: t, context: Implicit, fn: toOID, unnamed: true},
			typeCast{from: "int8", to: t, context: Implicit, fn: toOID, unnamed: true},
			typeCast{from: t, to: "int8", context: Assignment, fn: same, unnamed: true},
		)
	}
	return out
}
