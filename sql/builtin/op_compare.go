package builtin

import (
	"bytes"
	"cmp"

	"github.com/percodb/percodb/sql/types"
)

// comparison evaluates an operator from the result of Compare.
type comparison struct {
	op   string
	test func(c int) bool
}

var comparisons = []comparison{
	{"=", func(c int) bool { return c == 0 }},
	{"<>", func(c int) bool { return c != 0 }},
	{"<", func(c int) bool { return c < 0 }},
	{"<=", func(c int) bool { return c <= 0 }},
	{">", func(c int) bool { return c > 0 }},
	{">=", func(c int) bool { return c >= 0 }},
}

// compareOps declares = <> < <= > >= for every type and for the pairs of types that compare without
// a cast.
func compareOps() []decl {
	var out []decl
	pair := func(l, r string, volatility flags, compare func(env *Env, a, b types.Datum) int) {
		for _, c := range comparisons {
			test := c.test
			out = append(out, decl{c.op + "(" + l + "," + r + ") bool",
				func(env *Env, a []types.Datum) (types.Datum, error) {
					return types.Bool(test(compare(env, a[0], a[1]))), nil
				},
				volatility, nil})
		}
	}
	ints := []string{"int2", "int4", "int8"}
	for _, l := range ints {
		for _, r := range ints {
			pair(l, r, 0, compareInts)
		}
	}
	for _, t := range []string{"oid", "bool", "date", "time", "timestamp", "timestamptz"} {
		pair(t, t, 0, compareInts)
	}
	for _, l := range []string{"float4", "float8"} {
		for _, r := range []string{"float4", "float8"} {
			pair(l, r, 0, func(_ *Env, a, b types.Datum) int { return types.CompareFloat(a.Float(), b.Float()) })
		}
	}
	for _, t := range []string{"text", "name", "bytea", "uuid", "char"} {
		pair(t, t, 0, compareBytes)
	}
	pair("name", "text", 0, compareBytes)
	pair("text", "name", 0, compareBytes)
	for _, name := range []string{"bpchar", "numeric", "interval", "jsonb"} {
		t := mustType(name)
		pair(name, name, 0, func(_ *Env, a, b types.Datum) int { return types.Compare(a, b, t) })
	}
	for _, info := range types.Infos() {
		t := types.Type{OID: info.OID, Mod: -1}
		if m := t.Methods(); m != nil && !m.Unordered && m.Borrows == 0 && t.Ranges() == nil {
			pair(info.Name, info.Name, 0, func(_ *Env, a, b types.Datum) int { return types.Compare(a, b, t) })
		}
	}
	pair("oidvector", "oidvector", 0, func(_ *Env, a, b types.Datum) int { return types.Compare(a, b, types.TOidvector) })
	pair("date", "timestamp", 0, func(_ *Env, a, b types.Datum) int { return compareDateTimestamp(a, b) })
	pair("timestamp", "date", 0, func(_ *Env, a, b types.Datum) int { return -compareDateTimestamp(b, a) })
	pair("date", "timestamptz", stable, compareDateTimestamptz)
	pair("timestamptz", "date", stable, func(env *Env, a, b types.Datum) int { return -compareDateTimestamptz(env, b, a) })
	pair("timestamp", "timestamptz", stable, compareTimestampTimestamptz)
	pair("timestamptz", "timestamp", stable, func(env *Env, a, b types.Datum) int { return -compareTimestampTimestamptz(env, b, a) })
	pair("anyarray", "anyarray", 0, func(_ *Env, a, b types.Datum) int { return types.Compare(a, b, types.Type{}) })
	pair("anyenum", "anyenum", 0, compareBytes)
	pair("record", "record", 0, func(_ *Env, a, b types.Datum) int { return types.Compare(a, b, types.TRecord) })
	return append(append(out, patternCompareOps()...), imageOps()...)
}

// patternCompareOps declares ~<~ and similar operators, which compare bytes in any collation.
func patternCompareOps() []decl {
	var out []decl
	for _, c := range comparisons[2:] {
		test := c.test
		name := "~" + c.op + "~"
		for _, t := range []string{"text", "bpchar"} {
			typ := mustType(t)
			out = append(out, decl{sig: name + "(" + t + "," + t + ") bool",
				fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
					return types.Bool(test(types.Compare(a[0], a[1], typ))), nil
				}})
		}
	}
	return out
}

func compareInts(_ *Env, a, b types.Datum) int { return cmp.Compare(a.Int(), b.Int()) }

func compareBytes(_ *Env, a, b types.Datum) int { return bytes.Compare(a.Bytes(), b.Bytes()) }

// compareDateTimestamp compares midnight of a date; a date beyond all timestamps is later.
func compareDateTimestamp(date, ts types.Datum) int {
	midnight, err := types.TimestampFromDate(date.Int())
	if err != nil {
		if ts.Int() == types.TimestampInfinity {
			return -1
		}
		return 1
	}
	return cmp.Compare(midnight, ts.Int())
}

func compareDateTimestamptz(env *Env, date, ts types.Datum) int {
	midnight, err := types.TimestampFromDate(date.Int())
	if err != nil {
		return compareDateTimestamp(date, ts)
	}
	return compareTimestampTimestamptz(env, types.Int(midnight), ts)
}

func compareTimestampTimestamptz(env *Env, local, ts types.Datum) int {
	n := local.Int()
	if types.TimestampFinite(n) {
		n = types.UTCTimestamp(n, env.Format.Loc())
	}
	return cmp.Compare(n, ts.Int())
}
