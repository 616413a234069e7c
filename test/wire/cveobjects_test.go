package wire_test

import "testing"

// Goal: a dump reads what it has found in the catalogs: within its snapshot a table stays the table that it was, whatever its owner puts in its place.
func TestCVE_2024_7348(t *testing.T) {
	h := startHoles(t, append(spy, "set role alice", "create table spy.plain (id int)", "insert into spy.plain values (7)", "create sequence spy.s", "reset role")...)
	h.try("postgres", attempt{"begin isolation level repeatable read, read only; select relkind from pg_class where relname = 'plain'", "r"})
	execAll(t, h.roles["alice"], "drop table spy.plain", "create view spy.plain as select spy.attack(1) as id", "drop sequence spy.s", "create view spy.s as select spy.attack(1) as last_value, true as is_called")
	h.try("postgres", attempt{"select relkind from pg_class where relname = 'plain'", "r"}, attempt{"copy spy.plain (id) to stdout", ""}, attempt{"select * from only spy.plain", "7"},
		attempt{"select last_value from spy.s", "1"}, attempt{"commit", ""}, attempt{"select * from spy.note", ""})
}

// Goal: a function that belongs to an extension stays the extension's, whoever may create objects in its schema, and its objects are changed by the owner
// of the extension only (CVE-2020-14350, CVE-2023-39417, CVE-2020-1720).
func TestCVE_2022_2625(t *testing.T) {
	h := startHoles(t, "create schema shared", "grant all on schema shared to public", "create schema own authorization alice",
		"create role installer login", "set role alice", "create function shared.digest(text, text) returns bytea language sql as $$ select 'trap'::bytea $$",
		"create type shared.citext as enum ('trap')", "reset role", "create extension pgcrypto schema shared")
	h.try("postgres", attempt{"create extension citext schema shared", "42710"}, attempt{"select encode(shared.digest('a'::text, 'md5'::text), 'hex')", "0cc175b9c0f1b6a831c399e269772661"},
		attempt{"drop type shared.citext; create extension citext schema shared", ""})
	h.try("alice", attempt{"create or replace function shared.digest(text, text) returns bytea language sql as $$ select 'trap'::bytea $$", ""},
		attempt{"select encode(shared.digest('a'::text, 'md5'::text), 'hex')", "0cc175b9c0f1b6a831c399e269772661"},
		attempt{"create type shared.citext as (a int)", "42710"}, attempt{"create domain shared.citext as text", "42710"}, attempt{"create table shared.citext (a int)", "42710"},
		attempt{"create cast (int as shared.citext) with inout", "42501"}, attempt{"create cast (int as text) without function", "42501"},
		attempt{"alter extension pgcrypto set schema own", "42501"}, attempt{"drop extension pgcrypto", "42501"}, attempt{"create extension plperl", "0A000"}, attempt{"create extension adminpack", "0A000"},
		attempt{"create function own.c() returns int language c as 'x', 'y'", "42501"}, attempt{"create function own.i() returns int language internal as 'pg_backend_pid'", "42501"},
		attempt{"load 'x'", "58P01"}, attempt{"create function own.l(int) returns bool language sql leakproof as 'select true'", "42501"})
	execAll(t, h.admin, "create function shared.of_bob() returns int language sql as 'select 1'", "alter function shared.of_bob() owner to bob")
	h.try("alice", attempt{"alter function shared.of_bob() depends on extension pgcrypto", "42501"})
}

// Goal: pgcrypto's functions take any input: passwords with bytes above 127 are not cut off, short and broken salts are errors, and a message that is
// decrypted by a wrong key says no more than that (CVE-2012-2143, CVE-2014-0066, CVE-2015-0243, CVE-2015-5288; random numbers: CVE-2013-1900).
func TestCVE_2015_3167(t *testing.T) {
	h := startHoles(t, "create extension pgcrypto")
	h.try("alice", attempt{`select crypt(U&'ab\0100x', 'ab') = crypt('ab', 'ab'), crypt(U&'ab\0100x', 'ab') = crypt(U&'ab\0100y', 'ab'), crypt(U&'\0100', 'ab') = crypt('', 'ab')`, "f|f|f"},
		attempt{"select count(distinct gen_random_bytes(16)), count(distinct gen_random_uuid()), count(distinct gen_salt('bf', 4)) from generate_series(1, 100)", "100|100|100"})
	for _, salt := range []string{"", "a", "$", "$1", "$2a$", "$2a$04$", "$2a$04$abc", "$2a$99$aaaaaaaaaaaaaaaaaaaaaa", "_", "_J9..", "_J9..ra", ":::", "*0"} {
		got := outcome(h.roles["alice"], "select crypt('x', '"+salt+"')")
		if len(got) > 5 && len(got) < 13 || got == "" || got == "XX000" {
			t.Errorf("crypt with the salt %q: %q", salt, got)
		}
	}
	for _, options := range []string{"", "cipher-algo=aes256", "s2k-mode=0", "compress-algo=1", "sess-key=1"} {
		for _, key := range []string{"k2", "", "k11"} {
			if got := outcome(h.roles["alice"], "select pgp_sym_decrypt(pgp_sym_encrypt('hush', 'k1', '"+options+"'), '"+key+"')"); got != "39000" {
				t.Errorf("decrypted by %q with %q: %q", key, options, got)
			}
		}
	}
}

// leaks are functions, an operator, a cast, a domain and an aggregate of alice that tell which values they are called with.
var leaks = []string{"create table told (v text)", "grant all on told to alice", "create schema own authorization alice", "set role alice", "set search_path = own, public",
	"create function tell(x text) returns bool language plpgsql cost 0.0000001 as $$ begin insert into told values (x); return true; end $$",
	"create function tells(x text, y text) returns bool language plpgsql cost 0.0000001 as $$ begin insert into told values (x), (y); return x = y; end $$",
	"create function inlined(x text) returns bool language sql as 'select tell(x)'", "create operator === (leftarg = text, rightarg = text, function = tells, restrict = eqsel, join = eqjoinsel)",
	"create domain checked as text check (tell(value))", "create type mood as enum ('x')", "create function moody(text) returns mood language plpgsql as $$ begin insert into told values ($1); return 'x'; end $$",
	"create cast (text as mood) with function moody(text)", "create function fold(text, text) returns text language plpgsql as $$ begin insert into told values ($2); return $2; end $$",
	"create aggregate folded(text) (sfunc = fold, stype = text)", "reset role", "reset search_path", "alter role alice set search_path = own, public"}

// Goal: functions of users, also behind operators, casts, domains and aggregates, see no row that a policy hides, and no value of a table that the role may
// not read: neither when the statement is executed nor when it is planned with statistics.
func TestCVE_2017_7484(t *testing.T) {
	h := startHoles(t, append(leaks, "create table doc (id int primary key, owner name, v text)", "insert into doc values (1, 'alice', 'mine'), (2, 'bob', 'hush'), (3, 'bob', 'hush')",
		"create table other (id int, v text)", "insert into other values (1, 'o'), (2, 'o')", "create table secret (id int, v text)", "insert into secret select i, 'hush' from generate_series(1, 50) i", "analyze",
		"alter table doc enable row level security", "create policy own on doc using (owner = current_user)", "create view barrier with (security_barrier) as select * from secret where id > 99",
		"grant all on doc, other, barrier to alice", "grant select (id) on secret to alice")...)
	conn, err := h.connect(h.tls("alice", ""))
	h.must(err)
	h.roles["alice"] = conn
	for _, q := range []string{"select id from doc where tell(v)", "select id from doc where inlined(v)", "select id from doc where v === 'x'", "select id from doc where v::checked is not null",
		"select id from doc where v::mood = 'x'", "select id from doc where array[v]::checked[] is not null", "select id from doc where exists (select where tell(doc.v))", "select id from doc where (select tell(doc.v))",
		"select id from doc where case when tell(v) then true end", "select doc.id from doc join other o on tells(doc.v, o.v)", "select o.id from other o left join doc on doc.v === o.v",
		"select o.id from other o where exists (select from doc where doc.v === o.v)", "select o.id from other o, lateral (select from doc where doc.v === o.v) x", "select folded(v) from doc",
		"select folded(v) filter (where tell(v)) over () from doc", "select count(*) from doc group by tell(v) having tell(max(v))", "select * from (select v, rank() over (order by v) from doc) q where tell(v)",
		"select * from (select distinct v from doc) q where tell(v)", "select * from (select v from doc union all select v from other) q where tell(v)", "with w as (select v from doc) select from w where tell(v)",
		"update doc set owner = owner where tell(v)", "delete from doc where tell(v) and false", "merge into doc using other o on tells(doc.v, o.v) when matched then do nothing",
		"insert into doc values (2, 'alice', 'x') on conflict (id) do update set v = 'x' where tell(doc.v)", "update other o set v = 'o' from doc where tell(doc.v)", "delete from other o using doc where doc.v === o.v and false",
		"select id from doc where id in (1, 2) and tell(v) for update", "copy (select id from doc where tell(v)) to stdout", "select id from barrier where tell(v)", "select id from barrier where v === 'hush'",
		"explain select id from secret where v === 'hush'", "select id from secret where v === 'hush'", "explain select id from doc where v === 'hush'", "select id from secret where tell(v)"} {
		if got := outcome(conn, q); got == "XX000" {
			t.Errorf("%s: %s", q, got)
		}
		h.try("postgres", attempt{"select count(*) from told where v = 'hush'", "0"})
		if t.Failed() {
			t.Fatal("by ", q)
		}
	}
	h.try("postgres", attempt{"select count(*) > 10 from told where v = 'mine'", "t"})
}

// Goal: a function, a prepared statement or a cursor reads by the policies of the role that executes it, however often the role changes: within functions with
// the privileges of their owner, by SET ROLE, by the end of a savepoint (CVE-2023-2455, CVE-2024-10976 with functions of users).
func TestCVE_2023_2455(t *testing.T) {
	h := startHoles(t, "create table doc (owner name)", "insert into doc values ('alice'), ('bob'), ('postgres')", "alter table doc enable row level security", "create policy own on doc using (owner = current_user)",
		"grant select on doc to alice, bob", "create function in_sql() returns text language sql stable as $$ select string_agg(owner, ',' order by owner) from doc $$",
		"create function in_pl() returns text language plpgsql stable as $$ begin return (select string_agg(owner, ',' order by owner) from doc); end $$", "create function rows() returns setof doc language sql stable as 'select * from doc'",
		"create function as_alice() returns text language plpgsql security definer as $$ begin return concat_ws(':', current_user, in_sql(), in_pl(), (select string_agg(owner, ',') from rows())); end $$", "alter function as_alice() owner to alice",
		"create function opens() returns refcursor language plpgsql security definer as $$ declare c refcursor := 'c'; begin open c for select in_pl(); return c; end $$", "alter function opens() owner to alice")
	all := "select concat_ws(':', in_sql(), in_pl(), (select string_agg(owner, ',') from rows()))"
	h.try("bob", attempt{all, "bob:bob:bob"}, attempt{"select as_alice()", "alice:alice:alice:alice"}, attempt{all, "bob:bob:bob"}, attempt{"begin; select opens(); fetch c; commit", "c bob"})
	h.try("postgres", attempt{"prepare q as " + all, ""}, attempt{"set role alice; execute q", "alice:alice:alice"}, attempt{"set role bob; execute q", "bob:bob:bob"},
		attempt{"begin; set local role alice; execute q", "alice:alice:alice"}, attempt{"savepoint s; set local role bob; execute q", "bob:bob:bob"}, attempt{"rollback to s; execute q", "alice:alice:alice"},
		attempt{"commit; execute q", "bob:bob:bob"}, attempt{"reset role; select as_alice()", "alice:alice:alice:alice"})
}

// Goal: INSERT … ON CONFLICT DO UPDATE through a view needs the privileges on the view's columns, and those of the view's owner on the table's.
func TestCVE_2018_10925(t *testing.T) {
	h := startHoles(t, "create table base (id int primary key, pub text, sec text)", "insert into base values (1, 'p', 'hush')", "create view v as select id, sec as pub, pub as sec from base",
		"grant select (id, sec), insert (id, sec), update (sec) on v to alice", "create view invoking with (security_invoker) as select * from base", "grant all on invoking to alice", "grant select (id) on base to alice")
	into := "insert into v (id, sec) values (1, 'x') on conflict (id) do update set "
	h.try("alice", attempt{into + "sec = 'new' returning id, sec", "1|new"}, attempt{into + "sec = v.pub", "42501"}, attempt{into + "sec = excluded.pub", "42501"}, attempt{into + "pub = 'x'", "42501"},
		attempt{into + "sec = 'q' where v.pub = 'hush'", "42501"}, attempt{into + "sec = 'q' returning pub", "42501"}, attempt{into + "sec = 'q' returning v", "42501"},
		attempt{"insert into v (id, sec, pub) values (1, 'x', 'y') on conflict do nothing", "42501"}, attempt{"update v set sec = pub", "42501"}, attempt{"delete from v", "42501"},
		attempt{"select id from invoking", "42501"}, attempt{"select pub from invoking", "42501"}, attempt{"insert into invoking (id) values (1) on conflict (id) do nothing", "42501"}, attempt{"update invoking set pub = 'x'", "42501"})
	h.try("postgres", attempt{"select * from base", "1|new|hush"})
}

// Goal: partitions whose columns lie in another order, with dropped ones between them, are read and written by their names, also by UPDATE … RETURNING of
// rows that move (CVE-2018-1052, CVE-2019-10129).
func TestCVE_2021_32029(t *testing.T) {
	h := startHoles(t, "create table t (a int, b text, c numeric) partition by range (a)", "create table low partition of t for values from (0) to (10)", "create table high (c numeric, x int, b text, y jsonb, a int not null)",
		"alter table high drop column x, drop column y", "alter table t attach partition high for values from (10) to (20)", "create unique index on t (a)", "grant all on t to alice")
	h.try("alice", attempt{"insert into t values (1, 'one', 1.5), (11, 'eleven', 11.5) returning *, t", "1|one|1.5|(1,one,1.5) 11|eleven|11.5|(11,eleven,11.5)"},
		attempt{"update t set a = a + 10 where a = 1 returning t.*, tableoid::regclass", "23505"}, attempt{"update t set a = 12, b = b || c where a = 1 returning *", "12|one1.5|1.5"},
		attempt{"update t set a = a - 10 from (values ('v')) v (w) where a > 10 returning t.*, v.w, t", "1|eleven|11.5|v|(1,eleven,11.5) 2|one1.5|1.5|v|(2,one1.5,1.5)"},
		attempt{"insert into t values (2, 'two', 2) on conflict (a) do update set b = excluded.b || t.b, c = t.c + excluded.c returning *", "2|twoone1.5|3.5"}, attempt{"delete from t where a = 2 returning *, t", "2|twoone1.5|3.5|(2,twoone1.5,3.5)"})
}

// Goal: CREATE SCHEMA with objects creates them as the schema's owner, in this schema, whatever the search path; a function with the privileges of its owner
// finds what its search path names, not temporary relations, and functions and types are never found in the temporary schema (CVE-2019-10208).
func TestCVE_2023_2454(t *testing.T) {
	h := startHoles(t, "create table secret (v text)", "grant create on database percodb to alice", "create schema adm", "create table adm.t (v text)", "insert into adm.t values ('right')",
		"create function adm.f() returns text language sql as $$ select 'right' $$", "grant usage on schema adm to public",
		"create function adm.read() returns text language plpgsql security definer set search_path = adm, pg_temp as $$ begin return (select v from t) || ' ' || f(); end $$",
		"create function adm.make() returns void language plpgsql security definer set search_path = adm, pg_temp as $$ begin create schema made create view v as select * from t create table own (i int); end $$")
	h.try("alice", attempt{"create temp table t (v text); insert into t values ('trap')", ""}, attempt{"create function pg_temp.f() returns text language sql as $$ select 'trap' $$", "0A000"},
		attempt{"create domain pg_temp.f as int", "0A000"}, attempt{"create type pg_temp.f as (a int)", "0A000"}, attempt{"create type pg_temp.f as enum ('a')", "0A000"},
		attempt{"set search_path = pg_temp, adm; select adm.read()", "right right"}, attempt{"reset search_path; begin; select adm.make(); commit", ""},
		attempt{"create schema c authorization bob create table q (i int)", "42501"}, attempt{"create schema authorization postgres", "42501"}, attempt{"create schema c create table adm.q (i int)", "42P15"},
		attempt{"create schema c create view v as select * from secret", ""}, attempt{"select * from c.v", "42501"})
	h.try("postgres", attempt{"select relname, relowner::regrole from pg_class where relnamespace in ('made'::regnamespace, 'c'::regnamespace) order by 1, relowner::regrole::text", "own|postgres v|alice v|postgres"}, attempt{"select * from made.v", "right"},
		attempt{"create schema d authorization alice create table q (i int) create view v as select * from public.secret; select relname, relowner::regrole from pg_class where relnamespace = 'd'::regnamespace order by 1", "q|alice v|alice"})
}
