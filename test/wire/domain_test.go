package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Goal: columns of a domain have the type below it on the wire, parameters have the domain, and its constraints are checked in both
// formats, for parameters and in COPY. PostgreSQL behaves the same.
func TestDomains(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists domain_t", "drop domain if exists domain_d, domain_n",
		"create domain domain_d as int check (value > 0)", "create domain domain_n as varchar(4) not null",
		"create table domain_t (d domain_d, n domain_n, a domain_d[])")
	var oid uint32
	if err := conn.QueryRow(ctx, "select 'domain_d'::regtype::oid").Scan(&oid); err != nil {
		t.Fatal(err)
	}
	d, err := conn.Prepare(ctx, "", "insert into domain_t (d, n) values ($1, $2) returning d, n")
	if err != nil {
		t.Fatal(err)
	}
	if d.ParamOIDs[0] != oid || d.Fields[0].DataTypeOID != pgtype.Int4OID || d.Fields[1].DataTypeOID != pgtype.VarcharOID || d.Fields[1].TypeModifier != 8 {
		t.Errorf("described as %v, %+v", d.ParamOIDs, d.Fields)
	}
	four, minus := []byte{0, 0, 0, 4}, []byte{0xff, 0xff, 0xff, 0xfc}
	cases := []struct {
		values  [][]byte
		formats []int16
		code    string
	}{
		{[][]byte{four, []byte("ab")}, []int16{1, 1}, ""},
		{[][]byte{[]byte("5"), []byte("cd")}, []int16{0, 0}, ""},
		{[][]byte{minus, []byte("ab")}, []int16{1, 1}, "23514"},
		{[][]byte{[]byte("-5"), []byte("ab")}, []int16{0, 0}, "23514"},
		{[][]byte{four, nil}, []int16{1, 1}, "23502"},
		{[][]byte{nil, []byte("ef")}, []int16{1, 0}, ""},
		{[][]byte{four, []byte("abcde")}, []int16{1, 1}, "22001"},
	}
	for i, c := range cases {
		r := conn.PgConn().ExecParams(ctx, "insert into domain_t (d, n) values ($1, $2) returning d, n", c.values, nil, c.formats, []int16{1}).Read()
		if got := code(r.Err); got != c.code {
			t.Errorf("case %d: %q, want %q", i, got, c.code)
		}
		if c.code == "" && !bytes.Equal(r.Rows[0][1], c.values[1]) {
			t.Errorf("case %d: returned %q", i, r.Rows[0])
		}
	}
	e := wantCode(t, conn, "23514", "insert into domain_t values (0, 'a')")
	if e.DataTypeName != "domain_d" || e.ConstraintName != "domain_d_check" || e.SchemaName != "public" {
		t.Errorf("error fields %+v", e)
	}
	for _, data := range []string{"0\ta\t\\N\n", "1\t\\N\t\\N\n", "1\ta\t{1,-1}\n"} {
		_, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(data), "copy domain_t from stdin")
		if got := code(err); got != "23514" && got != "23502" {
			t.Errorf("COPY of %q: %v", data, err)
		}
	}
	if n, err := conn.CopyFrom(ctx, pgx.Identifier{"domain_t"}, []string{"d", "n"}, pgx.CopyFromRows([][]any{{7, "x"}, {8, "y"}})); err != nil || n != 2 {
		t.Errorf("binary COPY: %d, %v", n, err)
	}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"domain_t"}, []string{"d", "n"}, pgx.CopyFromRows([][]any{{-7, "x"}})); code(err) != "23514" {
		t.Errorf("binary COPY of a violation: %v", err)
	}
	execAll(t, conn, "drop table domain_t", "drop domain domain_d, domain_n")
}
