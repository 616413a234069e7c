package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// hstoreOperators are the operators of hstore with the functions behind them.
var hstoreOperators = []struct {
	sig, fn string // with %s for the name of the operator, or of the functions
	f       Func
}{
	{"->(hstore,text) text", "fetchval", ofPairs(hstoreFetch)},
	{"->(hstore,text[]) text[]", "slice_array", hstoreSliceArray},
	{"?(hstore,text) bool", "exist isexists", ofPairs(hstoreExists)},
	{"?|(hstore,text[]) bool", "exists_any", ofKeys(hstoreAny)},
	{"?&(hstore,text[]) bool", "exists_all", ofKeys(hstoreAll)},
	{"@>(hstore,hstore) bool", "hs_contains", ofTwo(hstoreContains)},
	{"<@(hstore,hstore) bool", "hs_contained", ofTwo(func(a, b []types.HstorePair) types.Datum { return hstoreContains(b, a) })},
	{"||(hstore,hstore) hstore", "hs_concat", ofTwo(hstoreConcat)},
	{"-(hstore,text) hstore", "delete", ofPairs(hstoreDeleteKey)},
	{"-(hstore,text[]) hstore", "delete", ofKeys(hstoreDeleteKeys)},
	{"-(hstore,hstore) hstore", "delete", ofTwo(hstoreDeletePairs)},
	{"%%(hstore) text[]", "hstore_to_array", ofPairs(func(pairs []types.HstorePair, _ types.Datum) types.Datum { return textArray(hstoreElements(pairs)) })},
	{"%#(hstore) text[]", "hstore_to_matrix", ofPairs(hstoreMatrix)},
	{"=(hstore,hstore) bool", "hstore_eq", hstoreCompare(func(c int) bool { return c == 0 })},
	{"<>(hstore,hstore) bool", "hstore_ne", hstoreCompare(func(c int) bool { return c != 0 })},
	{"#<#(hstore,hstore) bool", "hstore_lt", hstoreCompare(func(c int) bool { return c < 0 })},
	{"#<=#(hstore,hstore) bool", "hstore_le", hstoreCompare(func(c int) bool { return c <= 0 })},
	{"#>#(hstore,hstore) bool", "hstore_gt", hstoreCompare(func(c int) bool { return c > 0 })},
	{"#>=#(hstore,hstore) bool", "hstore_ge", hstoreCompare(func(c int) bool { return c >= 0 })},
}

func hstoreCompare(f func(int) bool) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bool(f(strings.Compare(string(a.Bytes()), string(b.Bytes())))), nil
	})
}

func hstoreOps() []decl {
	out := []decl{{sig: "#=(anyelement,hstore) anyelement", flags: nonStrict, bind: populateFromHstore}}
	for _, o := range hstoreOperators {
		out = append(out, decl{sig: o.sig, fn: o.f})
	}
	return out
}

func hstoreFuncs() []decl {
	out := []decl{
		{sig: "hstore(text,text) hstore", flags: nonStrict, fn: hstoreOfPair}, {sig: "tconvert(text,text) hstore", flags: nonStrict, fn: hstoreOfPair},
		{sig: "hstore(text[]) hstore", fn: hstoreOfArray}, {sig: "hstore(text[],text[]) hstore", flags: nonStrict, fn: hstoreOfArrays},
		{sig: "hstore(record) hstore", fn: hstoreOfRecord},
		{sig: "populate_record(anyelement,hstore) anyelement", flags: nonStrict, bind: populateFromHstore},
		{sig: "defined(hstore,text) bool", fn: ofPairs(hstoreDefined)}, {sig: "isdefined(hstore,text) bool", fn: ofPairs(hstoreDefined)},
		{sig: "akeys(hstore) text[]", fn: ofPairs(func(pairs []types.HstorePair, _ types.Datum) types.Datum { return textArray(keysOf(pairs)) })},
		{sig: "avals(hstore) text[]", fn: ofPairs(func(pairs []types.HstorePair, _ types.Datum) types.Datum { return textArray(valuesOf(pairs)) })},
		{sig: "slice(hstore,text[]) hstore", fn: ofKeys(hstoreSlice)},
		{sig: "hstore_to_json(hstore) json", fn: hstoreJSON(types.TJSON, false)}, {sig: "hstore_to_json_loose(hstore) json", fn: hstoreJSON(types.TJSON, true)},
		{sig: "hstore_to_jsonb(hstore) jsonb", fn: hstoreJSON(types.TJSONB, false)},
		{sig: "hstore_to_jsonb_loose(hstore) jsonb", fn: hstoreJSON(types.TJSONB, true)},
		{sig: "hstore_cmp(hstore,hstore) int4", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Int(int64(strings.Compare(string(a.Bytes()), string(b.Bytes())))), nil
		})},
	}
	for _, o := range hstoreOperators {
		_, args, _ := strings.Cut(o.sig, "(")
		for name := range strings.FieldsSeq(o.fn) {
			out = append(out, decl{sig: name + "(" + args, fn: o.f})
		}
	}
	return out
}

func hstoreSets() []setDecl {
	list := func(f func([]types.HstorePair) []types.Datum) func(*Overload) openFunc {
		return opens(func(env *Env, a []types.Datum) (SetRows, error) {
			pairs, err := hstorePairs(env, a[0])
			return &sliceRows{f(pairs)}, err
		})
	}
	each := func(pairs []types.HstorePair) []types.Datum {
		out := make([]types.Datum, len(pairs))
		for i := range pairs {
			out[i] = types.NewRecord([]types.Type{types.TText, types.TText}, types.Row{types.Text(pairs[i].Key), pairs[i].Datum()})
		}
		return out
	}
	return []setDecl{
		{sig: "skeys(hstore) text", open: list(keysOf), estimate: 10}, {sig: "svals(hstore) text", open: list(valuesOf), estimate: 10},
		{sig: "each(hstore) record", open: list(each), estimate: 10, columns: []SetColumn{{"key", types.TText}, {"value", types.TText}}},
	}
}

func hstoreCasts() []typeCast {
	return []typeCast{
		{from: "text[]", to: "hstore", context: Explicit, fn: hstoreOfArray, unnamed: true},
		{from: "hstore", to: "json", context: Explicit, fn: hstoreJSON(types.TJSON, false), unnamed: true},
		{from: "hstore", to: "jsonb", context: Explicit, fn: hstoreJSON(types.TJSONB, false), unnamed: true},
	}
}

// HstoreFetch returns the operator -> of hstore and text, wherever the extension is.
func HstoreFetch() (*Overload, error) {
	return ExtensionNamed("hstore").source.ResolveOperator("->", types.Type{OID: types.OIDHstore, Mod: -1}, types.TText)
}

// HstoreAssignment returns the function of an assignment to a key: its arguments are the value as it was, the new text, and the key.
func HstoreAssignment() *Overload {
	t := types.Type{OID: types.OIDHstore, Mod: -1}
	return &Overload{Name: "hstore_assignment", Args: []types.Type{t, types.TText, types.TText}, Ret: t, Fn: func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[2].IsNull() {
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "hstore subscript in assignment must not be null")
		}
		var pairs []types.HstorePair
		if !a[0].IsNull() {
			var err error
			if pairs, err = hstorePairs(env, a[0]); err != nil {
				return types.Null, err
			}
		}
		return types.Hstore(append([]types.HstorePair{newPair(a[2], a[1])}, pairs...)), nil
	}}
}
