package wire_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The tests of this file are those of cve_test.go whose holes were in what SQL statements may do.

// attempt is a statement and its outcome: the rows as text, or an error's SQLSTATE.
type attempt struct{ sql, want string }

// holes is a server with a superuser's connection and those of ordinary roles.
type holes struct {
	*secured
	roles map[string]*pgx.Conn
}

// startHoles starts a server, executes statements as a superuser, and connects as alice and bob.
func startHoles(t *testing.T, setup ...string) *holes {
	t.Helper()
	h := &holes{startSecured(t, "host all all all trust\n"), map[string]*pgx.Conn{}}
	h.roles["postgres"] = h.admin
	execAll(t, h.admin, "create role alice login", "create role bob login")
	execAll(t, h.admin, setup...)
	for _, role := range []string{"alice", "bob"} {
		conn, err := h.connect(h.tls(role, ""))
		h.must(err)
		h.roles[role] = conn
	}
	return h
}

// try executes statements as a role, by the simple protocol.
func (h *holes) try(role string, attempts ...attempt) {
	h.t.Helper()
	for _, a := range attempts {
		if got := outcome(h.roles[role], a.sql); got != a.want {
			h.t.Errorf("%s: %.200s: %q, want %q", role, a.sql, got, a.want)
		}
	}
}

// outcome is the SQLSTATE of a statement's error, with the detail if that shows a key, or else its rows.
func outcome(conn *pgx.Conn, sql string) string {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		e, ok := err.(*pgconn.PgError)
		if !ok {
			return err.Error()
		}
		if strings.HasPrefix(e.Detail, "Key") || strings.HasPrefix(e.Detail, "Failing row") {
			return e.Code + " " + e.Detail
		}
		return e.Code
	}
	var rows []string
	for _, r := range results {
		for _, row := range r.Rows {
			var fields []string
			for _, f := range row {
				fields = append(fields, string(f))
			}
			rows = append(rows, strings.Join(fields, "|"))
		}
	}
	return strings.Join(rows, " ")
}

// Goal: text that is no UTF-8 is refused before the lexer looks at quotes in it, in every way into the server, so that no character
// swallows a quotation mark; client encodings in which a backslash or a quote may be part of a character do not exist. A
// text that ends within a character is not read beyond its end (CVE-2025-4207).
func TestCVE_2006_2313(t *testing.T) {
	h := startHoles(t, "create table entry (t text)", "grant all on entry to alice")
	conn := h.roles["alice"]
	for _, text := range []string{"\xc0", "\xe2", "\xf0\x9f\x98", "\xbf\x27", "\x81", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
		if got := outcome(conn, "select '"+text+"'"); got != "22021" {
			t.Errorf("a literal %q: %s", text, got)
		}
		err := conn.PgConn().ExecParams(testContext(t), "insert into entry values ($1)", [][]byte{[]byte(text)}, []uint32{25}, nil, nil).Read().Err
		if !strings.HasPrefix(failure(err), "22021") {
			t.Errorf("a parameter %q: %v", text, err)
		}
		_, err = conn.PgConn().CopyFrom(testContext(t), strings.NewReader(text+"\n"), "copy entry from stdin")
		if !strings.HasPrefix(failure(err), "22021") {
			t.Errorf("COPY of %q: %v", text, err)
		}
	}
	h.try("alice", attempt{"select count(*) from entry", "0"}, attempt{"set client_encoding = 'SJIS'", "22023"},
		attempt{"set client_encoding = 'GB18030'", "22023"}, attempt{"set client_encoding = 'BIG5'", "22023"},
		attempt{"select convert_from('\\xe2', 'UTF8')", "22021"}, attempt{"select E'\\xe2'", "22021"}, attempt{"select U&'\\d800'", "42601"})
}

// Goal: a role cannot reset what a superuser has set for it and what only superusers may set.
func TestCVE_2010_1975(t *testing.T) {
	h := startHoles(t, "alter role alice set log_min_messages = 'error'", "alter role alice set work_mem = '1MB'")
	const kept = "select array_to_string(setconfig, ',') from pg_db_role_setting"
	h.try("alice", attempt{"alter role alice reset log_min_messages", "42501"}, attempt{"alter role alice set log_min_messages = 'debug1'", "42501"},
		attempt{"alter role alice reset all", ""}, attempt{kept, "log_min_messages=error"}, attempt{"set log_min_messages = 'debug1'", "42501"},
		attempt{"select set_config('log_min_messages', 'debug1', false)", "42501"})
	h.try("postgres", attempt{"alter role alice reset all", ""}, attempt{kept, ""})
}

// Goal: a member without ADMIN OPTION does not administer a role by acting as it.
func TestCVE_2014_0060(t *testing.T) {
	h := startHoles(t, "create role staff", "grant staff to alice")
	h.try("alice", attempt{"set role staff", ""}, attempt{"grant staff to bob", "42501"}, attempt{"revoke staff from alice", "42501"},
		attempt{"grant staff to bob with admin option", "42501"}, attempt{"reset role", ""}, attempt{"grant staff to bob", "42501"})
}

// Goal: lengths, dates and numbers at the ends of their ranges are errors or values (also CVE-2014-0064, CVE-2010-0442,
// CVE-2021-32027, CVE-2023-5869: sizes that overflow).
func TestCVE_2014_0063(t *testing.T) {
	h := startHoles(t, "create table a (i int[], j jsonb)", "insert into a values ('{1}', '[1]')", "grant all on a to alice")
	h.try("alice",
		attempt{"select repeat('1', 100000)::date", "22007"}, attempt{"select ('2000-01-01 ' || repeat('x', 10000))::timestamp", "22007"},
		attempt{"select repeat('1 day ', 10000)::interval", "22007"}, attempt{"select '2147483647 years'::interval", "22008"},
		attempt{"select '178956970 years'::interval * 2147483647", "22008"}, attempt{"select date '4714-11-24 BC' - 1", "22008"},
		attempt{"update a set i[2147483647] = 1", "54000"}, attempt{"update a set i[-2147483648] = 1", "54000"},
		attempt{"update a set i[-2147483648:2147483647] = '{1}'", "54000"}, attempt{"update a set j[2147483647] = '1'", "54000"},
		attempt{"select array_fill(1, array[65536, 65536])", "54000"}, attempt{"select array_fill(1, array[2147483647, 2147483647])", "54000"},
		attempt{"select '[2147483647:2147483647]={1}'::int[]", "54000"}, attempt{"select 2 || '[-2147483648:-2147483648]={1}'::int[]", "22003"},
		attempt{"select (array[1, 2, 3])[-2147483648:2147483647]", "{1,2,3}"}, attempt{"select substring(b'101' from 2 for 2147483647)", "01"},
		attempt{"select set_bit(b'101', 2147483647, 1)", "2202E"}, attempt{"select lpad('x', 2147483647)", "54000"},
		attempt{"select repeat('ab', 2147483647)", "54000"}, attempt{"select substr('abc'::bytea, 2147483647, 2147483647)", "\\x"},
		attempt{"select -2147483648 / -1", "22003"}, attempt{"select (-9223372036854775808) % -1", "0"}, attempt{"select abs((-2147483648)::int4)", "22003"},
		attempt{"select to_char(1, repeat('9', 100000))", "54000"},
		attempt{"select '{{{{{{{1}}}}}}}'::int[]", "54000"}, attempt{"select array[[[[[[[1]]]]]]]", "54000"})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, arrays := range []string{ // binary forms whose counts promise more than there is
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\x7f\xff\xff\xff\x00\x00\x00\x01",
		"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x17\x00\x01\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x01",
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\xff\xff\xff\xff\x00\x00\x00\x01",
		"\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x17",
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\x07\xff\xff\xff\x00\x00\x00\x01",
		"\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x17" + strings.Repeat("\x00\x00\x00\x01\x00\x00\x00\x01", 7) + "\x00\x00\x00\x04\x00\x00\x00\x01",
	} {
		err := h.roles["alice"].PgConn().ExecParams(testContext(t), "select $1::int[]", [][]byte{[]byte(arrays)}, []uint32{1007}, []int16{1}, nil).Read().Err
		if code := failure(err); !strings.HasPrefix(code, "22P03") && !strings.HasPrefix(code, "54000") && !strings.HasPrefix(code, "08P01") {
			t.Errorf("array %x: %v", arrays, err)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
		t.Errorf("%d MB were allocated for arrays of a few bytes", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// Goal: errors about constraints show no values that the role may not read.
func TestCVE_2014_8161(t *testing.T) {
	h := startHoles(t, "create table secret (id int primary key, v text unique check (v <> 'bad'), n int not null)", "insert into secret values (1, 'hush', 1)",
		"grant insert, update on secret to alice")
	h.try("alice", attempt{"insert into secret values (1, 'x', 1)", "23505"}, attempt{"insert into secret values (2, 'hush', 1)", "23505"},
		attempt{"insert into secret values (2, 'bad', 1)", "23514"}, attempt{"update secret set v = 'bad'", "23514"}, attempt{"update secret set n = null", "23502"})
	h.try("postgres", attempt{"insert into secret values (1, 'x', 1)", "23505 Key (id)=(1) already exists."})
}

// Goal: texts that nest deeply are errors.
func TestCVE_2015_5289(t *testing.T) {
	h := startHoles(t)
	nested := func(open, middle, end string) string {
		return fmt.Sprintf("(repeat('%s', 200000) || '%s' || repeat('%s', 200000))", open, middle, end)
	}
	h.try("alice", attempt{"select " + nested("[", "1", "]") + "::json", "54001"}, attempt{"select " + nested("[", "1", "]") + "::jsonb", "54001"},
		attempt{"select " + nested(`{"a":`, "1", "}") + "::jsonb", "54001"}, attempt{"select ('$ ? (' || " + nested("(", "@ == 1", ")") + " || ')')::jsonpath", "54001"},
		attempt{"select " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000), "54001"}, attempt{"select 1", "1"})
}

// Goal: policies are those of the role that executes a prepared statement, not of the one that prepared or planned it, also below
// subqueries, WITH and views (CVE-2023-2455, CVE-2024-10976).
func TestCVE_2016_2193(t *testing.T) {
	h := startHoles(t, "create table doc (id int primary key, owner name)", "insert into doc values (1, 'alice'), (2, 'bob'), (3, 'bob')",
		"alter table doc enable row level security", "create policy own on doc using (owner = current_user)", "grant all on doc to alice, bob",
		"create view readers with (security_invoker) as select * from doc", "grant select on readers to alice, bob", "create role member login in role alice, bob",
		"create table own (id int primary key)", "insert into own values (1), (2), (3)", "alter table own enable row level security", "create policy a on own to alice using (id = 1)",
		"create policy b on own to bob using (id > 1)", "grant all on own to alice, bob")
	conn, err := h.connect(h.tls("member", ""))
	h.must(err)
	h.roles["member"] = conn
	queries := []string{"select count(*) from doc", "with d as (select * from doc) select count(*) from d", "select (select count(*) from doc)",
		"select count(*) from (select * from doc offset 0) d", "select count(*) from readers", "select count(*) from generate_series(1, 3) i where exists (select 1 from doc where id = i)",
		"select count(*) from generate_series(1, 3) i join lateral (select * from doc where id = i) d on true",
		"select count(*) from own", "with o as (select * from own) select count(*) from o", "select (select count(*) from own)"} // of own the policies themselves depend on the role
	for i, q := range queries {
		h.try("member", attempt{fmt.Sprintf("prepare q%d as %s", i, q), ""})
	}
	for range 2 {
		for _, c := range []attempt{{"set role alice", "1"}, {"set role bob", "2"}, {"reset role", "0"}} {
			h.try("member", attempt{c.sql, ""})
			for i, q := range queries {
				want := c.want
				if c.sql == "reset role" && strings.Contains(q, "own") {
					want = "3" // A member of both is let through by the policies of both.
				}
				h.try("member", attempt{fmt.Sprintf("execute q%d", i), want}, attempt{q, want})
			}
		}
	}
	h.try("member", attempt{"begin; set local role bob; execute q0; rollback; execute q0", "2 0"})
}

// Goal: a value that a CASE compares is not taken for that of another one in it, nor for a domain's.
func TestCVE_2016_5423(t *testing.T) {
	h := startHoles(t, "create domain one as int check (case value when 1 then case value::text when '1' then true else false end else false end)",
		"create table t (a int, b int, c text)", "insert into t values (1, 2, 'other')", "grant all on t to alice")
	h.try("alice", attempt{"select case case 1 when 1 then 'a' end when 'a' then case 2 when 2 then 'x' end end", "x"},
		attempt{"select case 1 when (case 'x' when 'x' then 1 end) then case 'q' when 'q' then 'in' end end", "in"},
		attempt{"select case 7 when 7 then 1::one end, case 1 when 1::one then 2 end", "1|2"}, attempt{"select case 1 when 1 then 2::one end", "23514"},
		// What is not constant is evaluated row by row: one CASE while another one compares.
		attempt{"select case a + 0 when (case c || '' when 'other' then 7 end) then 'no' when 1 then 'yes' end from t", "yes"},
		attempt{"select case (a + 0, b + 0) when ((case c || '' when 'other' then 1 end), 2) then 'in' else 'out' end from t", "in"},
		attempt{"select case a + 0 when nullif(b + 0, (case c || '' when 'other' then 2 end)) then 'no' when b - 1 then 'yes' end from t", "yes"},
		attempt{"select case case a + 0 when 1 then c end when 'other' then case b + 0 when 2 then 'both' end end from t", "both"},
		attempt{"select case a + 0 when (a + 0)::one then case b - 1 when 1 then 'yes' end end from t", "yes"})
}
