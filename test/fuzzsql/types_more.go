package fuzzsql

import "github.com/percodb/percodb/sql/types"

// rareScalars are the types of which tables and expressions have fewer: each has its own operators and functions.
var rareScalars = []*typ{
	{oid: types.OIDJSON, sql: "json", unsorted: true, stored: []string{"1", "null", `"a"`, "[]", "{}", "[1, 2, 3]", `{"a": 1, "b": [1, {"c": "x"}]}`, `{"a": null}`},
		literals: []string{`{"a":1,  "a":2}`, `[{"a": 1}, {"a": 2, "b": "x"}]`, " [1.50,\t2e3] ", `"\u00e4\n"`}},
	{oid: types.OIDJSONPath, sql: "jsonpath", unsorted: true, stored: []string{"$", "$.a", "$.*", "$[*]", "$[0]", "$.b[1].c", "lax $.a.b", "strict $.a"},
		literals: []string{"$.a ? (@ > 1)", "$[*] ? (@.a == 1)", "$.** ? (@ == \"x\")", "$.a.type()", "$.size()", "$[last]", "$[0 to 1]", "$.a + 1", "-$.a", "exists($.a)", "$.a > 0",
			"$.keyvalue()", "$[*].double()", "$ ? (@ starts with \"a\")", "$[*] ? (@ like_regex \"^[ax]\" flag \"i\")", "$.a.abs()", "$.a.ceiling()", "$.a == null", "$x", "$.b[*] ? (exists(@.c))",
			"strict $[5]", "$.a / 0", "$[*].a.floor()", "!($.a == 1)", "($.a == 1) is unknown", "\"2024-02-29\".datetime()"}},
	{oid: types.OIDInt8Range, sql: "int8range", stored: []string{"empty", "[1,5)", "(,3)", "[4294967296,)", "(,)"}, literals: []string{"[1,1]", "(1,2)", "[9223372036854775806,9223372036854775807]"}},
	{oid: types.OIDTsRange, sql: "tsrange", stored: []string{"empty", `["2000-01-01 00:00:00","2024-02-29 12:34:56"]`, `(,"1999-12-31 23:59:59")`, `["1970-01-01 00:00:00",)`}, literals: []string{"[-infinity,infinity]", `[2000-01-01,2000-01-01]`}},
	{oid: types.OIDTstzRange, sql: "tstzrange", stored: []string{"empty", `["2000-01-01 00:00:00+00","2024-02-29 12:34:56+00")`, `(,"1970-01-01 00:00:00+00"]`}, literals: []string{`[2023-03-31 04:05:06+02,infinity)`}},
	{oid: types.OIDInt4Multirange, sql: "int4multirange", stored: []string{"{}", "{[1,5)}", "{[1,3),[5,9)}", "{(,2),[100,)}"}, literals: []string{"{[1,3),[3,5)}", "{empty}", "{(,)}"}},
	{oid: types.OIDNumMultirange, sql: "nummultirange", coarse: true, stored: []string{"{}", "{[1.5,5)}", "{(,0],(10,20)}"}, literals: []string{"{[1.0,2.0],[2.00,3]}"}},
	{oid: types.OIDDateMultirange, sql: "datemultirange", stored: []string{"{}", "{[2000-01-01,2024-02-29)}", "{(,1970-01-01),[2023-03-31,)}"}, literals: []string{"{[2024-02-29,2024-02-29],[2024-03-01,infinity)}"}},
	{oid: types.OIDBit, sql: "bit(4)", column: []string{"bit(4)"}, stored: []string{"0000", "1010", "1111", "0001"}, literals: []string{"0110"}, bare: []string{"B'1011'", "X'A'"}},
	{oid: types.OIDVarbit, sql: "varbit", column: []string{"varbit", "varbit(9)"}, stored: []string{"", "1", "101", "00001111", "1010"}, literals: []string{"1111000011110000", "0"}, from: []types.OID{types.OIDBit}},
	{oid: types.OIDInet, sql: "inet", stored: []string{"10.1.2.3", "10.1.2.0/24", "192.168.0.1/16", "::1", "fe80::1/64", "0.0.0.0/0"}, literals: []string{"255.255.255.255", "::ffff:1.2.3.4", "10.1.2.3/8"}, from: []types.OID{types.OIDCidr}},
	{oid: types.OIDCidr, sql: "cidr", stored: []string{"10.0.0.0/8", "10.1.2.0/24", "::/0", "fe80::/10", "127.0.0.1/32"}, literals: []string{"10.1", "2001:db8::/32"}},
	{oid: types.OIDMacaddr, sql: "macaddr", stored: []string{"08:00:2b:01:02:03", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"}, literals: []string{"08002b:010204", "0800.2b01.0203"}},
	{oid: types.OIDMacaddr8, sql: "macaddr8", stored: []string{"08:00:2b:01:02:03:04:05", "00:00:00:ff:fe:00:00:00"}, literals: []string{"08-00-2b-01-02-03"}, from: []types.OID{types.OIDMacaddr}},
	{oid: types.OIDMoney, sql: "money", stored: []string{"0", "1", "-1.50", "12.34", "100", "99999.99"}, literals: []string{"$1,234.56", "(3.00)", "92233720368547758.07", "-92233720368547758.08"}},
	{oid: types.OIDTimetz, sql: "timetz", column: []string{"timetz", "timetz(2)"}, stored: []string{"00:00+00", "04:05:06.789+02", "23:59:59-05", "12:00+00"}, literals: []string{"24:00:00+00", "12:34:56.123456+05:30", "00:00-15:59"}},
	{oid: types.OIDPoint, sql: "point", unsorted: true, geometric: true, stored: []string{"(0,0)", "(1,2)", "(-1.5,3)", "(5,5)"}, literals: []string{"(1e300,1e-300)", "(NaN,0)", "(Infinity,1)", "3 , 4"}},
	{oid: types.OIDLseg, sql: "lseg", unsorted: true, geometric: true, stored: []string{"[(0,0),(1,1)]", "[(1,2),(1,2)]", "[(0,5),(5,0)]", "[(-1,0),(1,0)]"}, literals: []string{"(0,0),(0,7)"}},
	{oid: types.OIDLine, sql: "line", unsorted: true, geometric: true, stored: []string{"{1,-1,0}", "{0,1,2}", "{1,0,-3}", "{2,3,4}"}, literals: []string{"[(0,0),(3,4)]", "{0.5,-1,1e10}"}},
	{oid: types.OIDBox, sql: "box", unsorted: true, geometric: true, stored: []string{"(1,1),(0,0)", "(5,5),(-1,2)", "(2,2),(2,2)"}, literals: []string{"((3,4),(1,7))", "(1e3,1),(0,-1e3)"}},
	{oid: types.OIDPath, sql: "path", unsorted: true, geometric: true, stored: []string{"[(0,0),(1,1),(2,0)]", "((0,0),(4,0),(4,3))", "[(1,2)]"}, literals: []string{"(0,0),(1,0),(1,1)", "[(0,0),(NaN,1)]"}},
	{oid: types.OIDPolygon, sql: "polygon", unsorted: true, geometric: true, stored: []string{"((0,0),(4,0),(4,3))", "((1,1))", "((0,0),(0,2),(2,2),(2,0))"}, literals: []string{"((0,0),(1,1),(1,0),(0,1))"}},
	{oid: types.OIDCircle, sql: "circle", unsorted: true, geometric: true, stored: []string{"<(0,0),1>", "<(1,2),0>", "<(-3,4),5>"}, literals: []string{"<(0,0),1e10>", "0,0,2"}},
	{oid: types.OIDLSN, sql: "pg_lsn", stored: []string{"0/0", "0/16AE7F8", "FFFFFFFF/FFFFFFFF"}, literals: []string{"1/2"}},
	{oid: types.OIDName, sql: "name", stored: []string{"", "abc", "Hello World", "public"}, literals: []string{"x\"y", "pg_class"}},
	{oid: types.OIDOid, sql: "oid", stored: []string{"0", "1", "25", "4294967295"}, literals: []string{"2147483648", "-1"}, from: []types.OID{types.OIDInt2, types.OIDInt4, types.OIDInt8}},
	{oid: types.OIDChar, sql: `"char"`, stored: []string{"a", "b", "", "1"}, literals: []string{"abc"}},
	{oid: types.OIDXid8, sql: "xid8", stored: []string{"0", "1", "18446744073709551615"}},
}

// rangeType says what a range type is over, and the type of its multiranges; nil: none is here.
type rangeType struct{ over, multi types.OID }

var rangeTypes = map[types.OID]rangeType{
	types.OIDInt4Range: {types.OIDInt4, types.OIDInt4Multirange},
	types.OIDNumRange:  {types.OIDNumeric, types.OIDNumMultirange},
	types.OIDDateRange: {types.OIDDate, types.OIDDateMultirange},
}
