package builtin

import (
	"maps"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types"
)

// documentSetFuncs declares the functions that show what the parser and a configuration do, and ts_stat.
func documentSetFuncs() []setDecl {
	tokens := []SetColumn{{"tokid", types.TInt4}, {"token", types.TText}}
	kinds := []SetColumn{{"tokid", types.TInt4}, {"alias", types.TText}, {"description", types.TText}}
	debug := []SetColumn{{"alias", types.TText}, {"description", types.TText}, {"token", types.TText},
		{"dictionaries", typeRegdictionary.ArrayOf()}, {"dictionary", typeRegdictionary}, {"lexemes", types.TText.ArrayOf()}}
	stats := []SetColumn{{"word", types.TText}, {"ndoc", types.TInt4}, {"nentry", types.TInt4}}
	return []setDecl{
		{sig: "ts_parse(text,text) record", flags: stable, estimate: 1000, open: opens(parseTokens(checkParser)), columns: tokens},
		{sig: "ts_parse(oid,text) record", estimate: 1000, open: opens(parseTokens(checkParserOID)), columns: tokens},
		{sig: "ts_token_type(text) record", flags: stable, estimate: 16, open: opens(tokenKinds(checkParser, kinds)), columns: kinds},
		{sig: "ts_token_type(oid) record", estimate: 16, open: opens(tokenKinds(checkParserOID, kinds)), columns: kinds},
		{sig: "ts_debug(text) record", flags: stable, estimate: 1000, columns: debug, open: opens(func(env *Env, a []types.Datum) (SetRows, error) {
			c, err := env.defaultConfiguration()
			return debugRows{tsparser.New(a[0].Text(), env.poller()), c, debug}, err
		})},
		{sig: "ts_debug(regconfig,text) record", flags: stable, estimate: 1000, columns: debug, open: opens(func(env *Env, a []types.Datum) (SetRows, error) {
			c, err := env.configuration(a[0])
			return debugRows{tsparser.New(a[1].Text(), env.poller()), c, debug}, err
		})},
		{sig: "ts_stat(text) record", flags: volatile, estimate: 10000, open: opens(openStats(stats)), columns: stats},
		{sig: "ts_stat(text,text) record", flags: volatile, estimate: 10000, open: opens(openStats(stats)), columns: stats},
	}
}

var typeRegdictionary = types.Type{OID: types.OIDRegdictionary, Mod: -1}

// checkParser returns the error for a parser other than the only one.
func checkParser(d types.Datum) error {
	switch name := d.Text(); name {
	case "default", "pg_catalog.default", `"default"`, `pg_catalog."default"`:
		return nil
	default:
		return pgerror.New(pgerror.UndefinedObject, "text search parser \"%s\" does not exist", name)
	}
}

func checkParserOID(d types.Datum) error {
	if oidArg(d) == textsearch.ParserOID {
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "cache lookup failed for text search parser %d", uint32(d.Int()))
}

// recordOf makes a row of a set-returning function.
func recordOf(columns []SetColumn, row types.Row) types.Datum {
	list, names := make([]types.Type, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		list[i], names[i] = c.Type, c.Name
	}
	return types.NewNamedRecord(list, names, row)
}

func parseTokens(check func(types.Datum) error) func(*Env, []types.Datum) (SetRows, error) {
	return func(env *Env, a []types.Datum) (SetRows, error) {
		return &tokenRows{tsparser.New(a[1].Text(), env.poller())}, check(a[0])
	}
}

func tokenKinds(check func(types.Datum) error, columns []SetColumn) func(*Env, []types.Datum) (SetRows, error) {
	return func(_ *Env, a []types.Datum) (SetRows, error) {
		var rows []types.Datum
		for i, k := range tsparser.Kinds {
			rows = append(rows, recordOf(columns, types.Row{types.Int(int64(i + 1)), types.Text(k.Name), types.Text(k.Description)}))
		}
		return &sliceRows{rows}, check(a[0])
	}
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

// debugRows returns what a configuration does with the tokens of a text.
type debugRows struct {
	p       *tsparser.Parser
	c       *textsearch.Configuration
	columns []SetColumn
}

func (r debugRows) Next(*Env) (types.Datum, bool, error) {
	kind, token, ok, err := r.p.Next()
	if err != nil || !ok {
		return types.Null, false, err
	}
	consulted := r.c.Dictionaries[kind]
	list := &types.Array{Elem: typeRegdictionary}
	for _, d := range consulted {
		list.Elems = append(list.Elems, types.Int(int64(d.OID)))
	}
	dictionary, lexemes := types.Null, types.Null
	for i := len(consulted) - 1; i >= 0; i-- { // The first that knows the token, or else the first.
		words, known := consulted[i].Lexize(token)
		if known || i == 0 && lexemes.IsNull() {
			dictionary, lexemes = list.Elems[i], lexemeArray(words, known)
		}
	}
	k := tsparser.Kinds[kind-1]
	return recordOf(r.columns, types.Row{types.Text(k.Name), types.Text(k.Description), types.Text(token), types.NewArray(list), dictionary, lexemes}), true, nil
}

func openStats(columns []SetColumn) func(*Env, []types.Datum) (SetRows, error) {
	return func(env *Env, a []types.Datum) (SetRows, error) {
		mask := 0
		if len(a) > 1 {
			mask = weightMask(a[1].Text())
		}
		stats, err := wordStats(env, a[0].Text(), mask)
		if err != nil {
			return nil, err
		}
		words := slices.SortedFunc(maps.Keys(stats), func(a, b string) int { return strings.Compare(b, a) }) // as PostgreSQL returns them
		return &statRows{columns, stats, words}, nil
	}
}

// statRows returns the words of ts_stat in order.
type statRows struct {
	columns []SetColumn
	stats   map[string]*wordStat
	words   []string
}

func (r *statRows) Next(*Env) (types.Datum, bool, error) {
	if len(r.words) == 0 {
		return types.Null, false, nil
	}
	word := r.words[0]
	r.words = r.words[1:]
	s := r.stats[word]
	return recordOf(r.columns, types.Row{types.Text(word), types.Int(s.documents), types.Int(s.entries)}), true, nil
}
