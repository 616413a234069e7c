package wire_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Goal: COPY moves rows in and out in its three formats, and refuses malformed data with nothing stored.
func TestCopy(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists copy_t", "create table copy_t (id int primary key, v text, n numeric default 7)")
	rows := [][]any{{1, "plain", 1.5}, {2, "tab\tquote\"\nline\\", nil}, {3, nil, 0}, {4, "", -2}}
	if n, err := conn.CopyFrom(ctx, pgx.Identifier{"copy_t"}, []string{"id", "v", "n"}, pgx.CopyFromRows(rows)); err != nil || n != 4 {
		t.Fatalf("CopyFrom: %d, %v", n, err)
	}
	outputs := map[string]string{
		"copy (select * from copy_t order by id) to stdout":                                        "1\tplain\t1.5\n2\ttab\\tquote\"\\nline\\\\\t\\N\n3\t\\N\t0\n4\t\t-2\n",
		"copy (select * from copy_t order by id) to stdout with (format csv, header)":              "id,v,n\n1,plain,1.5\n2,\"tab\tquote\"\"\nline\\\",\n3,,0\n4,\"\",-2\n",
		"copy (select id, v from copy_t order by id) to stdout (delimiter '|', null 'nil')":        "1|plain\n2|tab\\tquote\"\\nline\\\\\n3|nil\n4|\n",
		"copy (select v, id from copy_t order by id) to stdout (format csv, force_quote (v))":      "\"plain\",1\n\"tab\tquote\"\"\nline\\\",2\n,3\n\"\",4\n",
		"copy (select v, id from copy_t order by id) to stdout (format csv, quote '''', null '_')": "plain,1\n'tab\tquote\"\nline\\',2\n_,3\n,4\n",
	}
	for text, want := range outputs {
		var b bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &b, text)
		if err != nil || b.String() != want || tag.RowsAffected() != 4 {
			t.Errorf("%s:\ngot  %q, %v, %v\nwant %q", text, b.String(), tag, err, want)
		}
	}
	for _, format := range []string{"text", "csv", "binary"} {
		var b bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &b, "copy copy_t to stdout with (format "+format+")"); err != nil {
			t.Fatal(err)
		}
		execAll(t, conn, "drop table if exists copy_back", "create table copy_back (id int primary key, v text, n numeric)")
		if tag, err := conn.PgConn().CopyFrom(ctx, &b, "copy copy_back from stdin with (format "+format+")"); err != nil || tag.String() != "COPY 4" {
			t.Fatalf("%s: %v, %v", format, tag, err)
		}
		var differing int
		err := conn.QueryRow(ctx, "select count(*) from ((select * from copy_t except select * from copy_back) union all (select * from copy_back except select * from copy_t)) d").Scan(&differing)
		if err != nil || differing != 0 {
			t.Errorf("%s: %d rows differ, %v", format, differing, err)
		}
	}
	execAll(t, conn, "delete from copy_t")
	bad := []struct{ options, data, want string }{
		{"", "1\ta\t1\n2\n", "22P04"},
		{"", "1\ta\t1\t9\n", "22P04"},
		{"", "x\ta\t1\n", "22P02"},
		{"", "1\ta\t1\n1\tb\t2\n", "23505"},
		{"", "\\N\ta\t1\n", "23502"},
		{"", "1\t\xff\t1\n", "22021"},
		{"", "1\ta\\0b\t1\n", "22021"},
		{"(format csv)", "1,\"a,1\n", "22P04"},
		{"(format csv)", "1,a\n", "22P04"},
		{"(format csv, header match)", "id,n,v\n", "22P04"},
		{"(format binary)", "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02", "22P04"},
		{"(format binary)", "garbage", "22P04"},
		{"(format binary)", "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x7f\xff\xff\xff", "54000"},
		{"(format xml)", "", "22023"},
	}
	for _, c := range bad {
		_, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(c.data), "copy copy_t from stdin "+c.options)
		if code(err) != c.want {
			t.Errorf("%s %q: %v, want %s", c.options, c.data, err, c.want)
		}
	}
	var n int
	if err := conn.QueryRow(ctx, "select count(*) from copy_t").Scan(&n); err != nil || n != 0 {
		t.Errorf("failed COPYs left %d rows, %v", n, err)
	}
	var b bytes.Buffer
	if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader("5\tdefaulted\n"), "copy copy_t (id, v) from stdin"); err != nil {
		t.Error(err)
	}
	if _, err := conn.PgConn().CopyTo(ctx, &b, "copy copy_t to stdout"); err != nil || b.String() != "5\tdefaulted\t7\n" {
		t.Errorf("defaults: %q, %v", b.String(), err)
	}
}

// Goal: the messages of COPY, in both protocols: CopyFail, an error while the client still sends, rows that span
// messages, and messages that are invalid during COPY.
func TestCopyMessages(t *testing.T) {
	r := open(t)
	r.query("drop table if exists copymsg_t")
	r.query("create table copymsg_t (id int primary key, v text)")
	data := func(s string) *pgproto3.CopyData { return &pgproto3.CopyData{Data: []byte(s)} }
	in := func(messages ...pgproto3.FrontendMessage) string {
		r.send(&pgproto3.Query{String: "copy copymsg_t from stdin"})
		if got := r.next(); got != "copyin 0 [0 0]" {
			t.Fatal(got)
		}
		r.send(messages...)
		return r.ready()
	}
	done := &pgproto3.CopyDone{}
	expect(t, "split", in(data("1\tab"), data("c\n2"), &pgproto3.Flush{}, data("\tde"), done), "complete COPY 2\nready I\n")
	expect(t, "fail", in(data("3\tx\n"), &pgproto3.CopyFail{Message: "changed my mind"}), "error 57014 COPY from stdin failed: changed my mind\nready I\n")
	expect(t, "error", in(data("x\ty\n"), data("4\tz\n"), done), "error 22P02 invalid input syntax for type integer: \"x\"\nready I\n")
	expect(t, "end marker", in(data("5\tx\n\\.\n"), done), "complete COPY 1\nready I\n")
	expect(t, "fail behind the end marker", in(data("7\tx\n\\.\n"), data("8\ty\n"), &pgproto3.CopyFail{Message: "no"}), "error 57014 COPY from stdin failed: no\nready I\n")
	expect(t, "query behind the end marker", func() string {
		in(data("7\tx\n\\.\n"), data("8\ty\n"), done)
		return r.query("delete from copymsg_t where id = 7")
	}(), "complete DELETE 1\nready I\n")
	expect(t, "out", r.query("copy copymsg_t to stdout"), `
		copyout 0 [0 0]
		data "1\tabc\n"
		data "2\tde\n"
		data "5\tx\n"
		copydone
		complete COPY 3
		ready I
		`)
	expect(t, "in a text", r.query("copy (select 1) to stdout; select 2 as b"), "copyout 0 [0]\ndata \"1\\n\"\ncopydone\ncomplete COPY 1\ncolumns b:23/0\nrow 2\ncomplete SELECT 1\nready I\n")
	expect(t, "file", r.query("copy copymsg_t to '/tmp/x'"), "error 0A000 COPY with a file or program of the server is not supported\nready I\n")
	r.send(parse("", "copy copymsg_t from stdin"), bind("", ""), execute("", 0), syncing, data("6\ty\n"), done, syncing)
	expect(t, "extended", r.ready(), "parsecomplete\nbindcomplete\ncopyin 0 [0 0]\ncomplete COPY 1\nready I\n")
	r.send(parse("", "copy copymsg_t from stdin"), bind("", ""), execute("", 0), data("6\ty\n"), done, syncing)
	expect(t, "extended duplicate", r.ready(), "parsecomplete\nbindcomplete\ncopyin 0 [0 0]\nerror 23505 duplicate key value violates unique constraint \"copymsg_t_pkey\"\nready I\n")
	expect(t, "stray messages", func() string { r.send(data("7\tz\n"), done); return r.query("select 1 as a") }(), "columns a:23/0\nrow 1\ncomplete SELECT 1\nready I\n")
	expect(t, "canceled", func() string {
		r.query("set statement_timeout = 500")
		r.send(&pgproto3.Query{String: "copy copymsg_t from stdin"})
		r.next()
		r.send(data("8\tx\n"))
		time.Sleep(700 * time.Millisecond) // Longer than the statement's timeout.
		r.send(data("9\tx\n"))
		got := r.ready()
		r.send(data("10\tx\n"), done)
		r.query("reset statement_timeout")
		return got
	}(), "error 57014 canceling statement due to statement timeout\nready I\n")
	for _, m := range []pgproto3.FrontendMessage{&pgproto3.Query{String: "select 1"}, closeP(""), parse("", "select 1"), bind("", ""), execute("", 0), describeP("")} {
		for _, sent := range []string{"", "8\tx\n", "8\tx\n\\.\n"} {
			r := open(t)
			r.send(&pgproto3.Query{String: "copy copymsg_t from stdin"})
			r.next()
			r.send(data(sent), m)
			if got := r.end(); !strings.Contains(got, "08P01") {
				t.Errorf("%T during COPY, after %q: %s", m, sent, got)
			}
		}
	}
	expect(t, "what was sent before them", r.query("select count(*) from copymsg_t where id = 8"), "columns count:20/0\nrow 0\ncomplete SELECT 1\nready I\n")
	isAlive(t)
}
