package wire_test

import (
	"fmt"
	"strings"
	"testing"
)

// Goal: statistics, which contain values of rows, are shown for columns that the role may read, and not for tables whose policies hide
// rows from it; EXPLAIN needs the privileges of its statement (CVE-2017-7484, CVE-2025-8713).
func TestCVE_2019_10130(t *testing.T) {
	h := startHoles(t, "create table secret (id int primary key, v text)", "insert into secret select i, 'hush' from generate_series(1, 100) i",
		"create table doc (id int primary key, v text)", "insert into doc select i, 'hush' from generate_series(1, 100) i", "analyze",
		"alter table doc enable row level security", "create policy few on doc using (id < 5)", "grant select (id) on secret to alice", "grant select on doc to alice",
		"create table known (id int)", "insert into known values (1), (2)", "create table far (id int primary key, v text)", "insert into far select i, 'hush' from generate_series(1, 100) i",
		"alter table far enable row level security", "create policy few on far using (exists (select 1 from known k where k.id = far.id))", "grant select on known, far to alice")
	h.try("alice", attempt{"select attname from pg_stats where tablename = 'secret' and attname <> 'id'", ""}, attempt{"select attname from pg_stats where tablename = 'doc'", ""},
		attempt{"explain select v from secret", "42501"}, attempt{"explain select id from secret where v = 'hush'", "42501"},
		attempt{"select 1 / (id - 7) from doc", "0 0 0 0"}, attempt{"select id from doc where 1 / (id - 7) > 5", ""},
		// Here the condition would be evaluated first, since it takes less time than the policy.
		attempt{"select id from far where 1 / (id - 7) > 5", ""}, attempt{"select id from far where v::int > 5", "22P02"}, attempt{"select id from far where case when id > 2 then v::int > 5 end", ""})
}

// Goal: records whose columns are of different types, or of different number, are never compared as if they were alike: a column's
// value would be read as one of another type.
func TestCVE_2019_10209(t *testing.T) {
	h := startHoles(t)
	for _, pair := range [][2]string{{"1", "'a'::text"}, {"'a'::text", "1"}, {"'{}'::jsonb", "1.5::float8"}, {"1.5", "'a'::text"}, {"interval '1 day'", "1.5"},
		{"array[1]", "array['a'::text]"}, {"row('a'::text)", "row(1)"}, {"1", "1::int8"}, {"1", "1, 2"}, {"'a'::text", "'{}'::jsonb"}} {
		a, b := "row("+pair[0]+")", "row("+pair[1]+")"
		for _, q := range []string{"select %s::record = %s::record", "select %s::record < %s::record", "select array[%s] = array[%s]", "select greatest(%s::record, %s::record)",
			"select case %s::record when %s then 1 end", "select %s = any (array[%s])"} {
			h.try("alice", attempt{fmt.Sprintf(q, a, b), "42804"})
		}
		// What sorts and hashes may answer, but must not read a value as another type.
		for _, q := range []string{"order by r", "group by r", "order by r desc limit 1"} {
			if got := outcome(h.roles["alice"], fmt.Sprintf("select r from (values (%s), (%s)) v (r) ", a, b)+q); strings.HasPrefix(got, "XX000") || strings.Contains(got, "conn") {
				t.Fatalf("%s and %s %s: %s", a, b, q, got)
			}
		}
		for _, q := range []string{"select count(distinct r), array_agg(distinct r)::text <> '' from (values (%s), (%s)) v (r)", "select lag(r) over (order by r) is null from (values (%s), (%s)) v (r)",
			"select * from (values (%s)) a (r) where r in (select %s)", "select * from (values (%s)) a (r) join (values (%s)) b (r) using (r)",
			"select array[%s] @> array[%s], true", "select array_position(array[%s], %s)"} {
			if got := outcome(h.roles["alice"], fmt.Sprintf(q, a, b)); strings.HasPrefix(got, "XX000") || strings.Contains(got, "conn") {
				t.Fatalf(q+": %s", a, b, got)
			}
		}
	}
}

// Goal: functions that take a record's type from their arguments fail for a row of another shape.
func TestCVE_2017_15098(t *testing.T) {
	h := startHoles(t, "create type pair as (a int, b text)")
	h.try("alice", attempt{`select * from json_populate_recordset(row(1, 2), '[{"a": 1}]') q (a text, b text)`, "42804"},
		attempt{`select * from json_populate_recordset(row(1, 2), '[{"f1": 1}]') q (a int)`, "42804"}, attempt{`select * from json_populate_record(row(0), '{"f1": 1}') q (a text, b text)`, "42804"},
		attempt{`select * from json_populate_recordset(null::pair, '[{"a": 1}, 5]')`, "22023"}, attempt{`select * from jsonb_populate_record(null::pair, '{"a": 1, "b": [2]}')`, "1|[2]"})
}

// Goal: ON CONFLICT needs SELECT on the columns that it compares, and policies decide about the row that it meets.
func TestCVE_2017_15099(t *testing.T) {
	h := startHoles(t, "create table secret (id int primary key, v text)", "insert into secret values (1, 'hush')", "grant insert, update on secret to alice",
		"create table doc (id int primary key, owner name)", "insert into doc values (1, 'bob')", "alter table doc enable row level security",
		"create policy own on doc using (owner = current_user)", "grant all on doc to alice")
	h.try("alice", attempt{"insert into secret values (1, 'x') on conflict (id) do nothing", "42501"},
		attempt{"insert into secret values (1, 'x') on conflict on constraint secret_pkey do update set v = 'y'", "42501"},
		attempt{"insert into secret values (1, 'x') on conflict (id) do update set v = 'y' where secret.v = 'hush'", "42501"},
		attempt{"insert into secret values (2, 'x') returning v", "42501"}, attempt{"insert into secret values (1, 'x') on conflict do nothing", ""},
		attempt{"insert into doc values (1, 'alice') on conflict (id) do update set owner = 'alice'", "42501"},
		attempt{"insert into doc values (1, 'alice') on conflict (id) do update set owner = 'alice' returning doc", "42501"})
	h.try("postgres", attempt{"select * from secret, doc", "1|hush|1|bob"})
}

// Goal: no role creates objects in the schema that all search, without a grant; system objects are found before those of users; a
// temporary table does not stand in for a view's.
func TestCVE_2018_1058(t *testing.T) {
	h := startHoles(t, "create table item (id int)", "insert into item values (1)", "create view items as select * from item", "grant select on items to alice",
		"create schema own authorization alice")
	h.try("alice", attempt{"create table public.pg_trap (id int)", "42501"}, attempt{"create view public.trap as select 1", "42501"}, attempt{"create table pg_catalog.trap (id int)", "42501"},
		attempt{"create domain public.trap as int", "42501"}, attempt{"create temp table item (id int)", ""}, attempt{"select * from items", "1"},
		attempt{"create table own.pg_roles (rolname text)", ""}, attempt{"set search_path = own", ""}, attempt{"select count(*) > 0 from pg_roles", "t"},
		attempt{"set search_path = own, pg_catalog", ""}, attempt{"select count(*) from pg_roles", "0"})
}

// Goal: SELECT on one column shows no other one, by whole rows of the table, of joins, or as composites.
func TestCVE_2021_20229(t *testing.T) {
	h := startHoles(t, "create table secret (id int primary key, v text)", "insert into secret values (1, 'hush')", "create table pub (id int primary key)", "insert into pub values (1)",
		"grant select (id) on secret to alice", "grant select on pub to alice")
	for _, q := range []string{"select secret from secret", "select s.* from secret s", "select j from (secret join pub using (id)) j", "select j.* from (secret join pub using (id)) j",
		"select row_to_json(s) from secret s", "select to_jsonb(secret) from secret", "select (secret).v from secret", "select s::text from secret s", "select count(secret) from secret",
		"select secret is null from secret", "select 1 from secret order by secret", "select 1 from secret a join secret b on a = b", "select array_agg(s) from secret s",
		"copy secret to stdout", "copy (select s from secret s) to stdout", "select * from pub, lateral (select s from secret s) x", "table secret",
		"with w as (select s from secret s) select 1 from w", "values ((select v from secret))", "create temp table stolen as select v from secret", "select count(*) from secret group by v",
		"select * from secret s natural join pub", "explain select s from secret s", "select id from secret for update",
		"merge into pub using secret s on pub.id = s.id when matched then do nothing when not matched then insert values (s.v::int)"} {
		h.try("alice", attempt{q, "42501"})
	}
	h.try("alice", attempt{"select id from secret", "1"}, attempt{"select count(*) from secret join pub using (id)", "1"})
}

// Goal: after columns were dropped, RETURNING and ON CONFLICT read the columns that are left.
func TestCVE_2021_32028(t *testing.T) {
	h := startHoles(t, "create table t (a text, id int primary key, b text, n int)", "insert into t values ('gone', 1, 'b', 5)", "alter table t drop column a", "alter table t add column c text default 'c'",
		"grant all on t to alice")
	h.try("alice", attempt{"insert into t (id, b, n) values (1, 'x', 6) on conflict (id) do update set b = excluded.b, n = t.n + excluded.n returning *, t", "1|x|11|c|(1,x,11,c)"},
		attempt{"update t set c = b from (values (1)) v (i) where t.id = v.i returning t.*, v.*", "1|x|11|x|1"})
}

// Goal: arguments of unknown type are never passed to aggregates as values of another type.
func TestCVE_2023_5868(t *testing.T) {
	h := startHoles(t)
	h.try("alice", attempt{"select jsonb_object_agg('a', 'b'), string_agg('x', ','), count(distinct 'x'), max('x')", `{"a": "b"}|x|1|x`},
		attempt{"select json_agg('x')", "42804"},
		attempt{"select json_object_agg('a', 'b')::jsonb", `{"a": "b"}`}, attempt{"select array_agg(distinct x) from (select 'a' x union all select 'b') q", "{a,b}"})
}

// Goal: pg_signal_backend is no right to end a superuser's session; without it a role ends its own only.
func TestCVE_2023_5870(t *testing.T) {
	h := startHoles(t, "grant pg_signal_backend to alice")
	for _, f := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		h.try("alice", attempt{fmt.Sprintf("select %s(%d)", f, h.admin.PgConn().PID()), "42501"})
		h.try("bob", attempt{fmt.Sprintf("select %s(%d)", f, h.roles["alice"].PgConn().PID()), "42501"})
	}
	h.try("alice", attempt{fmt.Sprintf("select pg_terminate_backend(%d)", h.roles["bob"].PgConn().PID()), "t"})
	h.try("postgres", attempt{"select 1", "1"})
}

// Goal: MERGE obeys the policies for UPDATE, DELETE, INSERT and SELECT, and the privileges of its actions.
func TestCVE_2023_39418(t *testing.T) {
	h := startHoles(t, "create table doc (id int primary key, owner name, v int)", "insert into doc values (1, 'alice', 1), (2, 'bob', 2)", "alter table doc enable row level security",
		"create policy own on doc using (owner = current_user)", "create policy small on doc as restrictive for update using (true) with check (v < 100)", "grant all on doc to alice",
		"create table half (id int primary key, v int)", "insert into half values (1, 1)", "grant select, insert on half to alice")
	h.try("alice", attempt{"merge into doc using (values (2)) s (i) on id = i when matched then update set v = 9", ""},
		attempt{"merge into doc using (values (2)) s (i) on id = i when matched then delete when not matched then do nothing", ""},
		attempt{"merge into doc using (values (1)) s (i) on id = i when matched then update set v = 500", "42501"},
		attempt{"merge into doc using (values (1)) s (i) on id = i when matched then update set owner = 'bob'", "42501"},
		attempt{"merge into doc using (values (7)) s (i) on id = i when not matched then insert values (7, 'bob', 1)", "42501"},
		attempt{"merge into doc using (select 1 / (v - 2) i from doc) s on id = i when matched then do nothing", ""},
		attempt{"merge into half using (values (1)) s (i) on id = i when matched then delete", "42501"},
		attempt{"merge into half using (values (1)) s (i) on id = i when matched then update set v = 2", "42501"})
	h.try("postgres", attempt{"select * from doc order by id", "1|alice|1 2|bob|2"})
}

// Goal: what resets the role resets it to the one that it was.
func TestCVE_2024_10978(t *testing.T) {
	h := startHoles(t, "create role staff", "grant staff to alice", "alter role bob set role = 'postgres'")
	h.try("alice", attempt{"begin; set local role staff; rollback; select current_user", "alice"}, attempt{"set role staff; begin; set local role none; commit; select current_user", "staff"},
		attempt{"begin; reset role; rollback; select current_user", "staff"}, attempt{"begin; savepoint s; reset role; rollback to s; select current_user; commit", "staff"},
		attempt{"reset role; select current_user, session_user", "alice|alice"}, attempt{"set role postgres", "42501"}, attempt{"set session authorization postgres", "42501"},
		attempt{"select set_config('role', 'postgres', false)", "42501"}, attempt{"reset session authorization; select session_user", "alice"}, attempt{"discard all", ""}, attempt{"select current_user", "alice"})
	h.try("postgres", attempt{"set session authorization alice; set role staff; reset session authorization; select current_user, session_user", "postgres|postgres"})
	conn, err := h.connect(h.tls("bob", ""))
	h.must(err)
	if got := outcome(conn, "select current_user"); got != "bob" {
		t.Errorf("bob acts as %s", got)
	}
	if _, err := h.connect(h.tls("alice", "") + " options='-c role=postgres'"); err == nil {
		t.Error("an option of the connection set the role")
	}
}

// Goal: a cached plan does not read values as of the type that their column had.
func TestCVE_2007_0556(t *testing.T) {
	h := startHoles(t, "create table t (id int primary key, v int)", "insert into t values (1, 2147483647)", "grant select on t to alice")
	h.try("alice", attempt{"prepare q as select v from t where id = 1", ""}, attempt{"execute q", "2147483647"})
	h.try("postgres", attempt{"alter table t alter column v type text using 'changed'", ""})
	h.try("alice", attempt{"execute q", "0A000"}, attempt{"select v from t where id = 1", "changed"})
}
