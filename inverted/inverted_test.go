package inverted

import (
	"bytes"
	"slices"
	"testing"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// satisfied reports whether terms satisfy a query.
func satisfied(q *Query, terms [][]byte) bool {
	switch {
	case q.All:
		return true
	case q.And != nil:
		return !slices.ContainsFunc(q.And, func(x *Query) bool { return !satisfied(x, terms) })
	case q.Or != nil:
		return slices.ContainsFunc(q.Or, func(x *Query) bool { return satisfied(x, terms) })
	case q.Term == nil:
		return false
	case q.Prefix:
		return slices.ContainsFunc(terms, func(t []byte) bool { return bytes.HasPrefix(t, q.Term) })
	}
	return slices.ContainsFunc(terms, func(t []byte) bool { return bytes.Equal(t, q.Term) })
}

// Goal: a value for which a condition is true satisfies the query of the condition, and a query that leaves the whole index to be read says so.
// Method: values and conditions by class, with the answer: yes, no, or all.
func TestSearch(t *testing.T) {
	jsonbType, ints, words, query := types.TJSONB, types.TInt4.ArrayOf(), types.Type{OID: types.OIDTSVector, Mod: -1}, types.Type{OID: types.OIDTSQuery, Mod: -1}
	path := types.Type{OID: types.OIDJSONPath, Mod: -1}
	texts, hstore := types.TText.ArrayOf(), types.Type{OID: types.OIDHstore, Mod: -1}
	for _, tc := range []struct {
		class   Class
		typ     types.Type
		value   string
		op      string
		argType types.Type
		arg     string
		want    string
	}{
		{JSONB, jsonbType, `{"a": {"b": [1, "x"]}, "c": null}`, "@>", jsonbType, `{"a": {"b": ["x"]}}`, "yes"},
		{JSONB, jsonbType, `{"a": 1.0}`, "@>", jsonbType, `{"a": 1}`, "yes"},
		{JSONB, jsonbType, `{"a": "1"}`, "@>", jsonbType, `{"a": 1}`, "no"},
		{JSONB, jsonbType, `["x"]`, "@>", jsonbType, `"x"`, "yes"},
		{JSONB, jsonbType, `{"a": "x"}`, "@>", jsonbType, `["x"]`, "no"},
		{JSONB, jsonbType, `{"a": 1}`, "@>", jsonbType, `{}`, "all"},
		{JSONB, jsonbType, `{"a": 1}`, "?", types.TText, `a`, "yes"},
		{JSONB, jsonbType, `{"a": 1}`, "?", types.TText, `b`, "no"},
		{JSONB, jsonbType, `{"a": 1}`, "?|", texts, `{b,a}`, "yes"},
		{JSONB, jsonbType, `{"a": 1}`, "?&", texts, `{b,a}`, "no"},
		{JSONB, jsonbType, `{"a": 1}`, "?|", texts, `{}`, "no"},
		{JSONB, jsonbType, `{"a": 1}`, "?&", texts, `{}`, "all"},
		{JSONBPath, jsonbType, `{"a": {"b": [1, {"c": 2}]}}`, "@>", jsonbType, `{"a": {"b": [{"c": 2}]}}`, "yes"},
		{JSONBPath, jsonbType, `{"b": {"a": 1}}`, "@>", jsonbType, `{"a": {"b": 1}}`, "no"},
		{JSONBPath, jsonbType, `{"a": 1}`, "@>", jsonbType, `{"a": {}}`, "all"},
		{JSONB, jsonbType, `{"a": {"b": [1, {"c": 2}]}}`, "@?", path, `$.a.b[*].c ? (@ == 2)`, "yes"},
		{JSONB, jsonbType, `{"a": {"b": [1, {"c": 2}]}}`, "@?", path, `$.a.b[*].c ? (@ == 3)`, "no"},
		{JSONB, jsonbType, `{"a": [{"b": "x", "c": 1.50}]}`, "@?", path, `$.a ? (@.b == "x" && 1.5 == @.c)`, "yes"},
		{JSONB, jsonbType, `{"a": [{"b": "x"}]}`, "@?", path, `$.a ? (@.b == "x" && @.c == 1)`, "no"},
		{JSONB, jsonbType, `{"a": [{"b": "x"}]}`, "@@", path, `$.a.b == "x"`, "yes"},
		{JSONB, jsonbType, `{"a": [{"b": "x"}]}`, "@@", path, `$.a.b == "y" || $.a.b == "z"`, "no"},
		{JSONB, jsonbType, `{"a": ["x"]}`, "@@", path, `$.a[*] == "x"`, "yes"},
		{JSONB, jsonbType, `["x"]`, "@@", path, `$ == "x"`, "yes"},
		{JSONB, jsonbType, `"x"`, "@@", path, `$ == "x"`, "yes"},
		{JSONB, jsonbType, `{"a": null, "b": true}`, "@@", path, `$.a == null && $.b == true`, "yes"},
		{JSONB, jsonbType, `{"a": [1, 2]}`, "@@", path, `$.a.size() == 2`, "yes"},
		{JSONB, jsonbType, `{"a": 5}`, "@?", path, `$.a ? (@ > 3)`, "yes"},
		{JSONB, jsonbType, `{"a": 5}`, "@?", path, `$.b ? (@ > 3)`, "no"},
		{JSONB, jsonbType, `{"a": {"b": 5}}`, "@?", path, `$.** ? (@.b == 5)`, "yes"},
		{JSONB, jsonbType, `{"a": {"b": 5}}`, "@?", path, `$.*.b ? (@ == 5)`, "yes"},
		{JSONB, jsonbType, `{}`, "@@", path, `!($.a == 1)`, "all"},
		{JSONB, jsonbType, `{}`, "@?", path, `$.a == 1`, "all"},
		{JSONB, jsonbType, `{"a": -1}`, "@@", path, `$.a == -1`, "yes"},
		{JSONB, jsonbType, `{"a": 1}`, "@@", path, `exists($.a ? (@ == 1))`, "yes"},
		{JSONB, jsonbType, `{"a": {"x": 1, "y": 1}}`, "@?", path, `$.a ? (@.x == $.a.y)`, "yes"},
		{JSONB, jsonbType, `{"a": {"k": 7}, "b": 7}`, "@?", path, `$.a ? ($.b == 7).k`, "yes"},
		{JSONBPath, jsonbType, `{"a": {"b": [1, {"c": 2}]}}`, "@?", path, `$.a.b[*].c ? (@ == 2)`, "yes"},
		{JSONBPath, jsonbType, `{"a": {"b": [1, {"c": 2}]}}`, "@?", path, `$.a.b[*].c ? (@ == 3)`, "no"},
		{JSONBPath, jsonbType, `{"a": [{"b": "x", "c": 1.50}]}`, "@?", path, `$.a ? (@.b == "x" && 1.5 == @.c)`, "yes"},
		{JSONBPath, jsonbType, `{"a": [{"b": "x"}]}`, "@?", path, `$.a ? (@.b == "x" && @.c == 1)`, "no"},
		{JSONBPath, jsonbType, `{"a": [{"b": "x"}]}`, "@@", path, `$.a.b == "x"`, "yes"},
		{JSONBPath, jsonbType, `{"a": [{"b": "x"}]}`, "@@", path, `$.a.b == "y" || $.a.b == "z"`, "no"},
		{JSONBPath, jsonbType, `{"a": ["x"]}`, "@@", path, `$.a[*] == "x"`, "yes"},
		{JSONBPath, jsonbType, `["x"]`, "@@", path, `$ == "x"`, "yes"},
		{JSONBPath, jsonbType, `"x"`, "@@", path, `$ == "x"`, "yes"},
		{JSONBPath, jsonbType, `{"a": null, "b": true}`, "@@", path, `$.a == null && $.b == true`, "yes"},
		{JSONBPath, jsonbType, `{"a": [1, 2]}`, "@@", path, `$.a.size() == 2`, "all"},
		{JSONBPath, jsonbType, `{"a": 5}`, "@?", path, `$.a ? (@ > 3)`, "all"},
		{JSONBPath, jsonbType, `{"a": 5}`, "@?", path, `$.b ? (@ > 3)`, "all"},
		{JSONBPath, jsonbType, `{"a": {"b": 5}}`, "@?", path, `$.** ? (@.b == 5)`, "all"},
		{JSONBPath, jsonbType, `{"a": {"b": 5}}`, "@?", path, `$.*.b ? (@ == 5)`, "all"},
		{JSONBPath, jsonbType, `{}`, "@@", path, `!($.a == 1)`, "all"},
		{JSONBPath, jsonbType, `{}`, "@?", path, `$.a == 1`, "all"},
		{JSONBPath, jsonbType, `{"a": -1}`, "@@", path, `$.a == -1`, "yes"},
		{JSONBPath, jsonbType, `{"a": 1}`, "@@", path, `exists($.a ? (@ == 1))`, "yes"},
		{JSONBPath, jsonbType, `{"a": {"x": 1, "y": 1}}`, "@?", path, `$.a ? (@.x == $.a.y)`, "all"},
		{JSONBPath, jsonbType, `{"a": {"k": 7}, "b": 7}`, "@?", path, `$.a ? ($.b == 7).k`, "yes"},
		{Array, ints, `{1,2,2}`, "@>", ints, `{2}`, "yes"},
		{Array, ints, `{1,2}`, "@>", ints, `{}`, "all"},
		{Array, ints, `{1,2}`, "&&", ints, `{3,2}`, "yes"},
		{Array, ints, `{1,2}`, "&&", ints, `{}`, "no"},
		{Array, ints, `{}`, "<@", ints, `{1}`, "yes"},
		{Array, ints, `{}`, "=", ints, `{}`, "yes"},
		{Array, ints, `{NULL}`, "=", ints, `{NULL}`, "yes"},
		{Array, ints, `{1}`, "=", ints, `{}`, "no"},
		{TSVector, words, `cat dog`, "@@", query, `cat & !fish`, "yes"},
		{TSVector, words, `cat dog`, "@@", query, `!fish`, "all"},
		{TSVector, words, `cat dog`, "@@", query, `fish | do:*`, "yes"},
		{TSVector, words, `cat dog`, "@@", query, `fish | !do`, "all"},
		{TSVector, words, `cat dog`, "@@", query, ``, "no"},
		{Trigram, types.TText, `The Quick fox`, "~~", types.TText, `%Quick%`, "yes"},
		{Trigram, types.TText, `The Quick fox`, "~~", types.TText, `The%fox`, "yes"},
		{Trigram, types.TText, `The Quick fox`, "~~", types.TText, `%fox%fix%`, "no"},
		{Trigram, types.TText, `unquicker`, "~~*", types.TText, `%QUICK_r`, "yes"},
		{Trigram, types.TText, `a\b%cde`, "~~", types.TText, `a\\b\%cde`, "yes"},
		{Trigram, types.TText, `abc`, "~~", types.TText, `%b%`, "all"},
		{Trigram, types.TText, `quick 17`, "~", types.TText, `quick.*17$`, "yes"},
		{Trigram, types.TText, `quick 17`, "~", types.TText, `quick|17`, "all"},
		{Trigram, types.TText, `quick`, "%", types.TText, `quack`, "yes"},
		{Trigram, types.TText, `quick`, "%", types.TText, ``, "no"},
		{HStore, hstore, `a=>1, b=>NULL`, "@>", hstore, `b=>NULL`, "yes"},
		{HStore, hstore, `a=>1, b=>NULL`, "@>", hstore, `b=>"NULL"`, "no"},
		{HStore, hstore, `a=>1`, "@>", hstore, `b=>1`, "no"},
		{HStore, hstore, `a=>1`, "@>", hstore, ``, "all"},
		{HStore, hstore, `a=>b`, "?", types.TText, `a`, "yes"},
		{HStore, hstore, `a=>b`, "?", types.TText, `b`, "no"},
		{HStore, hstore, `a=>1`, "?|", texts, `{b,NULL,a}`, "yes"},
		{HStore, hstore, `a=>1`, "?|", texts, `{NULL}`, "no"},
		{HStore, hstore, `a=>1`, "?&", texts, `{a,b}`, "no"},
		{HStore, hstore, `a=>1`, "?&", texts, `{}`, "all"},
	} {
		env := &builtin.Env{}
		read := func(typ types.Type, s string) types.Datum {
			d, err := types.ParseText(typ, s, &types.Format{})
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			return d
		}
		terms, err := tc.class.Terms(env, read(tc.typ, tc.value), tc.typ)
		if err != nil {
			t.Fatal(err)
		}
		if !tc.class.Serves(tc.op, tc.argType) {
			t.Errorf("%s does not serve %s", tc.class, tc.op)
		}
		q, err := tc.class.Search(env, tc.op, read(tc.argType, tc.arg), tc.argType)
		if err != nil {
			t.Fatal(err)
		}
		got := "no"
		switch {
		case q.All:
			got = "all"
		case satisfied(q, terms):
			got = "yes"
		}
		if got != tc.want {
			t.Errorf("%s: %s %s %s: %s, want %s", tc.class, tc.value, tc.op, tc.arg, got, tc.want)
		}
	}
}
