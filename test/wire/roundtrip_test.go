package wire_test

import (
	"bytes"
	"testing"
)

// Goal: a value of every type that is sent in text or binary form, and that is sent back in either form, is the same value: what the server
// sends of a type it reads. Method: the two forms of a literal are sent back as parameters, in all four combinations of formats.
func TestRoundTrips(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists trip_holder, trip_row", "drop domain if exists trip_domain", "drop type if exists trip_pair, trip_mood, trip_range",
		"create type trip_mood as enum ('sad', 'happy')", "create domain trip_domain as int check (value > 0)",
		"create type trip_pair as (m trip_mood, d trip_domain, t text[])", "create type trip_range as range (subtype = trip_mood)",
		"create table trip_row (a int, p trip_pair)", "create table trip_holder (r trip_row, rs trip_row[])")
	values := map[string][]string{
		"bool": {"t", "f"}, "int2": {"-32768", "7"}, "int4": {"-2147483648"}, "int8": {"9223372036854775807"}, "oid": {"4294967295"},
		"float4": {"1.5", "NaN", "-Infinity", "1e-30"}, "float8": {"0.1", "Infinity", "-0"}, "numeric": {"0", "-1234567890.0123456789", "NaN", "Infinity", "1e100", "0.000"},
		"text": {"", "a\tb\\ü"}, "varchar(3)": {"abc"}, "bpchar": {"a  "}, "char(4)": {"ab"}, `"char"`: {"x", ""}, "name": {"n"}, "bytea": {`\x00ff`, ""},
		"uuid": {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, "date": {"2024-02-29", "infinity", "0044-03-15 BC"}, "time": {"23:59:59.999999", "24:00:00"},
		"timetz": {"01:02:03.4+05:30"}, "timestamp": {"2024-02-29 01:02:03.456789", "-infinity"}, "timestamptz": {"2024-02-29 01:02:03+00"},
		"interval": {"1 year -2 mons 3 days -04:05:06.789"}, "json": {`{"a" : [1, null]}`}, "jsonb": {`{"a": [1, null, "x"]}`, "3"}, "jsonpath": {`$."a"[*]?(@ > 1)`},
		"int4range": {"[1,5)", "empty", "(,)"}, "numrange": {"(1.5,2]"}, "tstzrange": {`["2024-01-01 00:00:00+00",)`}, "int4multirange": {"{[1,3),[5,8)}", "{}"},
		"bit(3)": {"101"}, "varbit": {"", "1011011101"}, "inet": {"10.1.2.3/8", "::1"}, "cidr": {"10.0.0.0/8"}, "macaddr": {"08:00:2b:01:02:03"},
		"macaddr8": {"08:00:2b:01:02:03:04:05"}, "money": {"-12.34"}, "point": {"(1,-2.5)"}, "line": {"{1,2,3}"}, "lseg": {"[(1,2),(3,4)]"}, "box": {"(3,4),(1,2)"},
		"path": {"[(1,2),(3,4)]", "((1,2),(3,4))"}, "polygon": {"((1,2),(3,4),(5,0))"}, "circle": {"<(1,2),3>"},
		"int4[]": {"{}", "{1,NULL,3}", "[0:1][2:3]={{1,2},{3,4}}"}, "text[]": {`{"a b",NULL,"NULL","\"",""}`},
		"jsonb[]": {`{"{\"a\": 1}",NULL}`}, "numrange[]": {`{"[1,2)",empty}`}, "trip_mood": {"happy"}, "trip_mood[]": {"{sad,NULL,happy}"},
		"trip_domain": {"5"}, "trip_domain[]": {"{5,6}"}, "trip_range": {"[sad,happy]"}, "trip_pair": {`(sad,3,"{a,""b c""}")`, "(,,)"},
		"trip_pair[]": {`{"(happy,1,{})",NULL}`}, "trip_row": {`(1,"(sad,2,{x})")`}, "trip_row[]": {`{"(1,\"(sad,2,{x})\")","(,)"}`},
		"trip_holder": {`("(1,""(sad,2,{x})"")","{""(,)""}")`}, "regclass": {"trip_row"}, "regtype": {"trip_row"},
	}
	for typ, literals := range values {
		d, err := conn.PgConn().Prepare(ctx, "", "select $1::"+typ, nil)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		for _, literal := range literals {
			read := func(value []byte, in, out int16) []byte {
				r := conn.PgConn().ExecParams(ctx, "select $1::"+typ, [][]byte{value}, d.ParamOIDs, []int16{in}, []int16{out}).Read()
				if r.Err != nil || len(r.Rows) != 1 {
					t.Errorf("%s %q as parameter in format %d: %v", typ, value, in, r.Err)
					return nil
				}
				return r.Rows[0][0]
			}
			forms := [2][]byte{read([]byte(literal), 0, 0), read([]byte(literal), 0, 1)}
			for in := range forms {
				for out := range forms {
					if got := read(forms[in], int16(in), int16(out)); !bytes.Equal(got, forms[out]) {
						t.Errorf("%s %q, sent in format %d, comes in format %d as %q, want %q", typ, literal, in, out, got, forms[out])
					}
				}
			}
		}
	}
}
