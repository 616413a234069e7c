package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/tsparser"
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
	if c := textsearch.ConfigurationNamed(strings.TrimPrefix(name, "pg_catalog.")); c != nil {
		return c, nil
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "text search configuration \"%s\" does not exist", name)
}

// configured declares a function once with a configuration before its argument, and once without.
func configured(name, arg, ret string, f func(env *Env, c *textsearch.Configuration, d types.Datum) (types.Datum, error)) []decl {
	return []decl{
		{sig: name + "(" + arg + ") " + ret, flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			c, err := env.defaultConfiguration()
			if err != nil {
				return types.Null, err
			}
			return f(env, c, a[0])
		}},
		{sig: name + "(regconfig," + arg + ") " + ret, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			c := textsearch.ConfigurationByOID(uint32(a[0].Int()))
			if c == nil {
				return types.Null, pgerror.New(pgerror.UndefinedObject, "cache lookup failed for text search configuration %d", uint32(a[0].Int()))
			}
			return f(env, c, a[1])
		}},
	}
}

// poller polls for cancellation once for each step.
func (e *Env) poller() func() error { return func() error { return e.Step(1) } }

// documentVector is to_tsvector. A lexeme takes several times the bytes of its text.
func documentVector(env *Env, c *textsearch.Configuration, text string) (tsearch.Vector, error) {
	if err := env.Reserve(6 * len(text)); err != nil {
		return nil, err
	}
	return c.Vector(text, env.poller())
}

func toVector(env *Env, c *textsearch.Configuration, d types.Datum) (types.Datum, error) {
	return vectorDatum(documentVector(env, c, d.Text()))
}

// queryOf declares a function that makes a query of a text; words of one operand are joined by op.
func queryOf(name string, op tsearch.Op, parse func(string, tsearch.Morph) (*tsearch.Query, error)) []decl {
	return configured(name, "text", "tsquery", func(env *Env, c *textsearch.Configuration, d types.Datum) (types.Datum, error) {
		if err := env.Reserve(6 * len(d.Bytes())); err != nil {
			return types.Null, err
		}
		q, err := parse(d.Text(), c.Morph(op, env.poller()))
		if err != nil {
			return types.Null, err
		}
		return queryDatum(q)
	})
}

func documentFuncs() []decl {
	out := configured("to_tsvector", "text", "tsvector", toVector)
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
		decl{sig: "ts_lexize(regdictionary,text) text[]", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			d := textsearch.DictionaryByOID(uint32(a.Int()))
			if d == nil {
				return types.Null, pgerror.New(pgerror.UndefinedObject, "cache lookup failed for text search dictionary %d", uint32(a.Int()))
			}
			out := &types.Array{Elem: types.TText}
			if w, ok := d.Lexize(b.Text()); ok {
				out.Elems = []types.Datum{types.Text(w)}
			}
			return types.NewArray(out), nil
		})},
		decl{sig: "ts_match_tt(text,text) bool", flags: stable, fn: matchTexts},
		decl{sig: "ts_match_tq(text,tsquery) bool", flags: stable, fn: matchText},
	)
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

// documentSetFuncs declares the functions that show what the parser does.
func documentSetFuncs() []setDecl {
	parse := func(env *Env, a []types.Datum) (SetRows, error) {
		if err := checkParser(a[0].Text()); err != nil {
			return nil, err
		}
		return &tokenRows{p: tsparser.New(a[1].Text(), env.poller())}, nil
	}
	kinds := func(_ *Env, a []types.Datum) (SetRows, error) {
		if err := checkParser(a[0].Text()); err != nil {
			return nil, err
		}
		var rows []types.Datum
		for i, k := range tsparser.Kinds {
			rows = append(rows, types.NewNamedRecord([]types.Type{types.TInt4, types.TText, types.TText}, []string{"tokid", "alias", "description"},
				types.Row{types.Int(int64(i + 1)), types.Text(k.Name), types.Text(k.Description)}))
		}
		return &sliceRows{rows}, nil
	}
	return []setDecl{
		{sig: "ts_parse(text,text) record", estimate: 1000, open: opens(parse), columns: []SetColumn{{"tokid", types.TInt4}, {"token", types.TText}}},
		{sig: "ts_token_type(text) record", estimate: 16, open: opens(kinds),
			columns: []SetColumn{{"tokid", types.TInt4}, {"alias", types.TText}, {"description", types.TText}}},
	}
}

// checkParser returns the error for a parser other than the only one.
func checkParser(name string) error {
	if name == "default" || name == "pg_catalog.default" || name == `"default"` || name == `pg_catalog."default"` {
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "text search parser \"%s\" does not exist", name)
}

// tokenRows returns the tokens of a text.
type tokenRows struct{ p *tsparser.Parser }

func (t *tokenRows) Next(*Env) (types.Datum, bool, error) {
	kind, token, ok, err := t.p.Next()
	if err != nil || !ok {
		return types.Null, false, err
	}
	return types.NewNamedRecord([]types.Type{types.TInt4, types.TText}, []string{"tokid", "token"},
		types.Row{types.Int(int64(kind)), types.Text(token)}), true, nil
}

// textSearchCasts are the casts between numbers and the names of configurations and dictionaries.
func textSearchCasts() []typeCast {
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
	for _, t := range []string{"regconfig", "regdictionary"} {
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
