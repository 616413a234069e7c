package wire_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// typeCase is a value in PostgreSQL's text and binary forms.
type typeCase struct {
	name   string
	oid    uint32
	array  uint32
	text   string
	binary string // hex
}

// typeCases pass on PostgreSQL 15.
func typeCases() []typeCase {
	return []typeCase{
		{"boolean", 16, 1000, "t", "01"},
		{"smallint", 21, 1005, "-32768", "8000"},
		{"integer", 23, 1007, "2147483647", "7fffffff"},
		{"bigint", 20, 1016, "-9223372036854775808", "8000000000000000"},
		{"real", 700, 1021, "1.5", "3fc00000"},
		{"double precision", 701, 1022, "-0.1", "bfb999999999999a"},
		{"double precision", 701, 1022, "Infinity", "7ff0000000000000"},
		{"numeric", 1700, 1231, "-12345.6789", "000300014000000400010929" + "1a85"},
		{"numeric", 1700, 1231, "0.00", "0000000000000002"},
		{"numeric", 1700, 1231, "NaN", "00000000c0000000"},
		{"numeric(10,2)", 1700, 1231, "1.50", "000200000000000200011388"},
		{"text", 25, 1009, "grüße, \"welt\"", "6772c3bcc39f652c202277656c7422"},
		{"text", 25, 1009, "", ""},
		{"varchar(5)", 1043, 1015, "abc", "616263"},
		{"char(5)", 1042, 1014, "ab   ", "6162202020"},
		{"bytea", 17, 1001, `\x00ff10`, "00ff10"},
		{"date", 1082, 1182, "2024-02-29", "00002279"},
		{"date", 1082, 1182, "infinity", "7fffffff"},
		{"time", 1083, 1183, "23:59:59.999999", "000000141dd75fff"},
		{"timestamp", 1114, 1115, "1999-12-31 23:59:59.5", "fffffffffff85ee0"},
		{"timestamptz", 1184, 1185, "2000-01-01 00:00:01+00", "00000000000f4240"},
		{"timestamptz", 1184, 1185, "-infinity", "8000000000000000"},
		{"interval", 1186, 1187, "1 year 2 mons -3 days +04:05:06.7", "000000036c966ee0fffffffd0000000e"},
		{"bit(5)", 1560, 1561, "10110", "00000005b0"},
		{"inet", 869, 1041, "10.1.2.3/8", "020800040a010203"},
		{"inet", 869, 1041, "::1", "0380001000000000000000000000000000000001"},
		{"cidr", 650, 651, "10.0.0.0/8", "020801040a000000"},
		{"macaddr", 829, 1040, "08:00:2b:01:02:03", "08002b010203"},
		{"macaddr8", 774, 775, "08:00:2b:01:02:03:04:05", "08002b0102030405"},
		{"money", 790, 791, "-$1,234.50", "fffffffffffe1dc6"},
		{"pg_lsn", 3220, 3221, "16/B374D848", "00000016b374d848"},
		{"xid8", 5069, 271, "18446744073709551615", "ffffffffffffffff"},
		{"tid", 27, 1010, "(7,3)", "000000070003"},
		{"timetz", 1266, 1270, "23:59:59.5+05:30", "000000141dcfbee0ffffb2a8"},
		{"varbit", 1562, 1563, "", "00000000"},
		{"uuid", 2950, 2951, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"},
	}
}

// Goal: every type is read and written in text and in binary, and stored. Method: each case bound and returned in both
// formats.
func TestTypesRoundTrip(t *testing.T) {
	r := open(t)
	r.query("set timezone to 'UTC'")
	for i, c := range typeCases() {
		value, err := hex.DecodeString(c.binary)
		if err != nil {
			t.Fatal(err)
		}
		table := fmt.Sprintf("types_%d", i)
		r.query("drop table if exists " + table)
		expect(t, c.name, r.query(fmt.Sprintf("create table %s (k int primary key, v %s)", table, c.name)), "complete CREATE TABLE\nready I\n")
		for format, in := range [][]byte{[]byte(c.text), value} {
			r.send(parse("", fmt.Sprintf("insert into %s values (%d, $1)", table, format)), describeS(""),
				&pgproto3.Bind{Parameters: [][]byte{in}, ParameterFormatCodes: []int16{int16(format)}}, execute("", 0), syncing)
			expect(t, fmt.Sprintf("%s %s in format %d", c.name, c.text, format), r.ready(),
				fmt.Sprintf("parsecomplete\nparams [%d]\nnodata\nbindcomplete\ncomplete INSERT 0 1\nready I\n", c.oid))
		}
		for format, want := range []string{c.text, string(value)} {
			r.send(parse("", "select v from "+table+" order by k"), &pgproto3.Bind{ResultFormatCodes: []int16{int16(format)}}, describeP(""), execute("", 0), syncing)
			expect(t, fmt.Sprintf("%s %s out in format %d", c.name, c.text, format), r.ready(),
				fmt.Sprintf("parsecomplete\nbindcomplete\ncolumns v:%d/%d\nrow %s\nrow %s\ncomplete SELECT 2\nready I\n", c.oid, format, want, want))
		}
		null := &pgproto3.Bind{Parameters: [][]byte{nil}}
		r.send(parse("", "select k from "+table+" where v = $1"), null, execute("", 0), syncing)
		expect(t, c.name+" null", r.ready(), "parsecomplete\nbindcomplete\ncomplete SELECT 0\nready I\n")
		checkArray(t, r, c, table, value)
	}
}

// checkArray finds the rows by = ANY of an array with one match and a NULL, in both formats.
func checkArray(t *testing.T, r *raw, c typeCase, table string, value []byte) {
	t.Helper()
	element := c.oid
	if element == 1043 { // = of varchar is that of text.
		c.array, element = 1009, 25
	}
	array := []byte{0, 0, 0, 1, 0, 0, 0, 1, byte(element >> 24), byte(element >> 16), byte(element >> 8), byte(element), 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}
	n := len(value)
	array = append(append(array, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), value...)
	text := "{NULL,\"" + escapeArray(c.text) + "\"}"
	for format, in := range [][]byte{[]byte(text), array} {
		r.send(parse("", "select count(*) from "+table+" where v = any($1)"), describeS(""),
			&pgproto3.Bind{Parameters: [][]byte{in}, ParameterFormatCodes: []int16{int16(format)}}, execute("", 0), syncing)
		expect(t, fmt.Sprintf("%s = any, format %d", c.name, format), r.ready(),
			fmt.Sprintf("parsecomplete\nparams [%d]\ncolumns count:20/0\nbindcomplete\nrow 2\ncomplete SELECT 1\nready I\n", c.array))
	}
}

func escapeArray(s string) string {
	var out []byte
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(out)
}

// Goal: pgx's built-in types, and the types that it loads, agree with the server's.
func TestPgxTypes(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	at := time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
	cases := []struct {
		text string
		in   any
		want any
	}{
		{"select $1::int4[]", []int32{1, 2, 3}, []int32{1, 2, 3}},
		{"select $1::text[]", []string{"a", "b c", `"`}, []string{"a", "b c", `"`}},
		{"select $1::timestamptz[]", []time.Time{at}, []time.Time{at}},
		{"select $1::bytea", []byte{0, 1, 255}, []byte{0, 1, 255}},
		{"select $1::uuid", "01020300-0000-0000-0000-000000000000", [16]byte{1, 2, 3}},
		{"select $1::float8", 1e300, 1e300},
		{"select $1::bool", true, true},
		{"select $1::date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
		{"select $1::text", "grüße", "grüße"},
		{"select $1::int8", int64(-1), int64(-1)},
	}
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	for _, mode := range modes {
		for _, c := range cases {
			got := reflect.New(reflect.TypeOf(c.want))
			if err := conn.QueryRow(ctx, c.text, mode, c.in).Scan(got.Interface()); err != nil {
				t.Errorf("%v: %s: %v", mode, c.text, err)
				continue
			}
			value := got.Elem().Interface()
			if ts, ok := value.([]time.Time); ok {
				value = []time.Time{ts[0].UTC()}
			}
			if !reflect.DeepEqual(value, c.want) {
				t.Errorf("%v: %s: got %v, want %v", mode, c.text, value, c.want)
			}
		}
	}
	for _, name := range []string{"_text", "_int4", "_numeric"} {
		if _, err := conn.LoadType(ctx, name); err != nil {
			t.Errorf("LoadType %s: %v", name, err)
		}
	}
}

// Goal: arbitrary bytes bound as a parameter of any type give a value or an error. Method: short, long and hostile byte
// strings for every type and array, in both formats.
func TestBinaryGarbage(t *testing.T) {
	r := open(t)
	garbage := [][]byte{{}, {0}, {0xff}, {0xff, 0xff, 0xff, 0xff}, make([]byte, 12), []byte("\x00\x00\x00\x01\x7f\xff\xff\xff"),
		{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1}, {0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 23},
		{0x7f, 0xff, 0, 0, 0, 0, 0, 0}, make([]byte, 1000), []byte("\xff\xfe"), []byte("a\x00b"), []byte("{{{{"), []byte(`{"`)}
	seen := map[uint32]bool{}
	for _, c := range typeCases() {
		for _, oid := range []uint32{c.oid, c.array} {
			if seen[oid] {
				continue
			}
			seen[oid] = true
			for _, g := range garbage {
				for format := range int16(2) {
					r.send(parse("", "select $1", oid), &pgproto3.Bind{Parameters: [][]byte{g}, ParameterFormatCodes: []int16{format}, ResultFormatCodes: []int16{1 - format}}, execute("", 0), syncing)
					r.ready()
				}
			}
		}
	}
	for name, value := range map[string][]byte{"invalid UTF-8": []byte("\xff"), "zero byte": []byte("a\x00b")} {
		for format := range int16(2) {
			r.send(parse("", "select $1::text"), &pgproto3.Bind{Parameters: [][]byte{value}, ParameterFormatCodes: []int16{format}}, execute("", 0), syncing)
			if got := r.ready(); got[:len("parsecomplete\nerror 22021")] != "parsecomplete\nerror 22021" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// code returns the SQLSTATE of an error of the server, "" for none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
