package fuzzsql

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// typ is a type of columns and expressions.
type typ struct {
	oid types.OID
	sql string // in casts
	// column are the ways to declare a column of the type, with modifiers; sql if empty.
	column []string
	// stored are values for columns: of equal values only one, so that what GROUP BY or min shows does
	// not depend on the order of rows.
	stored []string
	// literals are values for expressions, besides stored.
	literals []string
	// bare are literals that need no quotes and no cast.
	bare []string
	// coarse types have equal values that look different.
	coarse bool
	// inexact types have sums that depend on the order.
	inexact bool
	// unsorted types have no order of their values, so that what sorts or groups them fails.
	unsorted bool
	// geometric values are texts with floats in them.
	geometric bool
	// from are types that the type takes implicitly.
	from []types.OID

	elem *typ // of an array type
}

// scalars are the types of most columns; arrays of each are made of them. A new type is an entry here or in rareScalars.
var scalars = []*typ{
	{oid: types.OIDBool, sql: "bool", stored: []string{"t", "f"}, bare: []string{"true", "false"}},
	{oid: types.OIDInt2, sql: "int2", stored: []string{"0", "1", "2", "3", "-1", "7", "100", "-32768"}, literals: []string{"32767"}},
	{oid: types.OIDInt4, sql: "int4", column: []string{"int4", "int4", "int4", "whole"}, stored: []string{"0", "1", "2", "3", "4", "5", "-1", "-2", "7", "10", "12", "100"},
		literals: []string{"31", "32", "64", "1000", "2147483647", "-2147483648", "46341", "65536"}, bare: []string{"0", "1", "2", "3", "10", "2147483647"}, from: []types.OID{types.OIDInt2}},
	{oid: types.OIDInt8, sql: "int8", stored: []string{"0", "1", "2", "-1", "3", "5", "10", "4294967296", "-5"},
		literals: []string{"63", "9223372036854775807", "-9223372036854775808", "3037000500", "1000000007"}, bare: []string{"4294967296", "9223372036854775807"},
		from: []types.OID{types.OIDInt2, types.OIDInt4}},
	{oid: types.OIDFloat4, sql: "float4", coarse: true, inexact: true, stored: []string{"0", "1", "-1", "0.5", "2.5", "-2.5", "7", "100", "NaN", "Infinity"},
		literals: []string{"-0", "1e-20", "1e20", "3.4e38", "1e-38", "-Infinity", "0.1", "123456.78"}, from: []types.OID{types.OIDInt4, types.OIDInt8, types.OIDNumeric}},
	{oid: types.OIDFloat8, sql: "float8", column: []string{"double precision"}, coarse: true, inexact: true,
		stored:   []string{"0", "1", "-1", "0.5", "1.5", "-2.5", "3", "10", "0.1", "NaN", "-Infinity", "1e15"},
		literals: []string{"-0", "1e-200", "1e200", "1.7e308", "Infinity", "30", "45", "60", "90", "180", "123456789.123456", "2147483647.5", "0.0001"},
		from:     []types.OID{types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDNumeric, types.OIDFloat4}},
	{oid: types.OIDNumeric, sql: "numeric", coarse: true, column: []string{"numeric", "numeric(10,2)", "numeric(5)", "numeric(20,6)"},
		stored:   []string{"0", "1", "-1", "2", "2.5", "-2.50", "3", "10", "100", "0.1", "999", "-7.25"},
		literals: []string{"0.00", "1.0", "1.50", "12345.678", "99999999999999999999.9999", "1e-20", "1e30", "NaN", "Infinity", "-Infinity", "0.333333333333333333333", "9223372036854775807.5"},
		bare:     []string{"1.5", "0.0", "2.50", "1e3", "12345678901234567890"}, from: []types.OID{types.OIDInt2, types.OIDInt4, types.OIDInt8}},
	{oid: types.OIDText, sql: "text", column: []string{"text", "text", "text", "short", "text COLLATE \"C\"", "text COLLATE \"POSIX\""}, stored: []string{"", "a", "abc", "ABC", "b", "Hello World", "äöü", "a,b,c", "aaa", "x1y22z333", "foo bar baz"},
		literals: []string{"  pad  ", "%", "a%", "_b_", "%b%", "a\\%", "O'Reilly", "back\\slash", "(a)(b)", "[a-c]+", "b+", "^a", "c$", "\\d+", "a|b", ".", "year", "month", "hex", "base64", "g", "i", "UTC", "1", "-1.5", "2024-02-29", "日本語", "ß", "\t\n"},
		bare:     []string{"'abc'", "''", "'a%'", "E'a\\nb'", "$$b$$"}, from: []types.OID{types.OIDVarchar, types.OIDBPChar}},
	{oid: types.OIDVarchar, sql: "varchar", column: []string{"varchar", "varchar(20)"}, stored: []string{"", "abc", "xyz", "a", "b", "Hello"}, literals: []string{"xyz  ", "ä"}},
	{oid: types.OIDBPChar, sql: "bpchar", coarse: true, column: []string{"char(8)"}, stored: []string{"abc", "", "x", "ab", "b"}, literals: []string{"abc   ", "  x "}},
	{oid: types.OIDBytea, sql: "bytea", stored: []string{"", "\\x00", "\\x616263", "\\xdeadbeef", "\\x61"}, literals: []string{"\\xff00ff", "abc%", "\\xc3a4"}},
	{oid: types.OIDDate, sql: "date", stored: []string{"2000-01-01", "1999-12-31", "2024-02-29", "2023-03-31", "1970-01-01", "2024-12-30"},
		literals: []string{"0001-01-01", "0044-03-15 BC", "infinity", "-infinity", "5874897-12-31", "2021-01-03"}},
	{oid: types.OIDTime, sql: "time", column: []string{"time", "time(3)"}, stored: []string{"00:00", "04:05:06.789", "23:59:59.999", "12:00"}, literals: []string{"24:00:00", "23:59:59.999999"}},
	{oid: types.OIDTimestamp, sql: "timestamp", column: []string{"timestamp", "timestamp(3)"}, stored: []string{"2000-01-01 00:00:00", "2024-02-29 12:34:56.789", "2023-03-31 04:05:06", "1970-01-01 00:00:00", "1999-12-31 23:59:59"},
		literals: []string{"0044-03-15 10:00:00 BC", "infinity", "-infinity", "294276-12-31 23:59:59", "1999-12-31 23:59:59.999999"}, from: []types.OID{types.OIDDate}},
	{oid: types.OIDTimestamptz, sql: "timestamptz", stored: []string{"2000-01-01 00:00:00", "2024-02-29 12:34:56.789", "2023-03-31 04:05:06+02", "1970-01-01 00:00:00"},
		literals: []string{"infinity", "-infinity", "2024-12-30 01:02:03.000001-05"}, from: []types.OID{types.OIDDate, types.OIDTimestamp}},
	{oid: types.OIDInterval, sql: "interval", coarse: true, stored: []string{"0", "1 day", "-1 day", "1 year 2 mons 3 days 04:05:06.789", "15 minutes", "2 mons"},
		literals: []string{"30 days", "1 month", "24:00:00", "-00:00:00.5", "1 mon -1 day", "100 years", "2 weeks 1 hour"}},
	{oid: types.OIDJSONB, sql: "jsonb", stored: []string{"1", "null", "true", `"a"`, "[]", "{}", "[1, 2, 3]", `{"a": 1, "b": [1, {"c": "x"}]}`, `{"a": null}`, `[{"a": 1}, {"a": 2}]`},
		literals: []string{"1.50", `{"b": 2, "a": 1}`, `[[1], ["a", null]]`, "-0.5", `{"a": {"b": {"c": 1}}}`}},
	{oid: types.OIDInt4Range, sql: "int4range", stored: []string{"empty", "[1,5)", "[2,3)", "(,5)", "[0,)", "(,)", "[100,200)"}, literals: []string{"[1,1]", "(1,3]", "[-5,7]"}},
	{oid: types.OIDNumRange, sql: "numrange", coarse: true, stored: []string{"empty", "[1.5,5)", "[1,2]", "(,5]", "(0,)"}, literals: []string{"[1.0,1.0]", "(1,3.50]"}},
	{oid: types.OIDDateRange, sql: "daterange", stored: []string{"empty", "[2000-01-01,2024-02-29)", "(,2000-01-01)", "[2023-03-31,)"}, literals: []string{"[2024-02-29,2024-02-29]"}},
	{oid: types.OIDTSVector, sql: "tsvector", stored: []string{"", "'a':1 'b':2", "'a':1A,3B", "'cat':3 'fat':2,4 'rat':1C", "'foo bar':1", "'b'"}, literals: []string{"a a b", "'it''s':5D", "'x':16383"}},
	{oid: types.OIDTSQuery, sql: "tsquery", coarse: true, stored: []string{"", "'a'", "'a' & 'b'", "!'a' | 'b'", "'fat' <-> 'cat'", "'a':*", "'a':AB"}, literals: []string{"'a' <2> ('b' | 'c')", "!!'a'", "a & !(b | c)"}},
	{oid: types.OIDUUID, sql: "uuid", stored: []string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000001"}},
}

var byOID = indexTypes()

func indexTypes() map[types.OID]*typ {
	m := map[types.OID]*typ{}
	for _, t := range slices.Concat(scalars, rareScalars, userTypes) {
		m[t.oid] = t
		array := arrayOID(t)
		m[array] = &typ{oid: array, sql: t.sql + "[]", elem: t, coarse: t.coarse, unsorted: t.unsorted, geometric: t.geometric}
	}
	return m
}

// column is how a column of the type may be declared.
func (t *typ) declared(g *gen) string {
	if t.elem != nil {
		return t.elem.sql + "[]"
	}
	if len(t.column) == 0 {
		return t.sql
	}
	return pick(g, t.column)
}

// stored returns a value for a column.
func (g *gen) stored(t *typ) string {
	if t.elem == nil {
		return pick(g, t.stored)
	}
	n := g.IntN(4)
	elems := make([]string, n)
	for i := range elems {
		if g.chance(10) {
			elems[i] = "NULL"
		} else {
			elems[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(pick(g, t.elem.stored)) + `"`
		}
	}
	if t.elem.oid == types.OIDBox {
		return "{" + strings.Join(elems, ";") + "}"
	}
	return "{" + strings.Join(elems, ",") + "}"
}

// slice is a part of an array.
func (g *gen) slice() string {
	return pick(g, []string{"[1:2]", "[:1]", "[2:]", "[:]", "[0:1]", "[2:1]"})
}

// literal makes a constant.
func (g *gen) literal(t *typ) *tree {
	if g.chance(5) {
		return leaf("NULL::" + t.sql)
	}
	if len(t.bare) > 0 && g.chance(35) {
		return leaf(pick(g, t.bare))
	}
	value := ""
	if len(t.literals) > 0 && g.chance(30) {
		value = pick(g, t.literals)
	} else {
		value = g.stored(t)
	}
	return t.constant(value)
}

// constant is a value with its type.
func (t *typ) constant(value string) *tree {
	return &tree{text: quote(value) + "::" + t.sql, literal: &literal{value, t}}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
