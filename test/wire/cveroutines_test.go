package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// spy is a schema of alice with a function that is called by what others execute. It notes as whom, and what a list of statements that must not work
// there answers. Anyone may call it, and write what it notes.
var spy = []string{
	"create schema spy authorization alice", "grant usage on schema spy to public", "create table secret (v text)", "insert into secret values ('hush')",
	"set role alice",
	"create table spy.note (who name, what text)", "grant insert, select on spy.note to public",
	"create table spy.late (id int)", "grant insert on spy.late to public",
	"create function spy.later() returns trigger language plpgsql as $$ begin insert into spy.note values (current_user, 'deferred'); return null; end $$",
	"create constraint trigger late after insert on spy.late deferrable initially deferred for each row execute function spy.later()",
	"create function spy.attack(x int) returns int language plpgsql as $$ begin return x; end $$", // replaced below, after it has filled indexes
	"create function spy.f(x int) returns int language plpgsql immutable as $$ begin return spy.attack(x); end $$",
	"create table spy.t (id int primary key, v int)", "insert into spy.t values (1, 1)",
	"create index by_f on spy.t (spy.f(v))", "create index partly on spy.t (v) where spy.f(v) > 0",
	"create materialized view spy.mv as select id, spy.f(v) from spy.t", "create unique index on spy.mv (id)",
	"reset role",
}

// attacking makes spy.attack try statements.
const attacking = `create or replace function spy.attack(x int) returns int language plpgsql as $f$
	declare s text;
	begin
		insert into spy.note values (current_user, 'called');
		foreach s in array array[%s] loop
			begin execute s; insert into spy.note values (current_user, s);
			exception when insufficient_privilege or feature_not_supported then null; -- The latter outside of a block.
			end;
		end loop;
		return x;
	end $f$`

// Goal: expressions of indexes, and queries of materialized views, are executed as their owner, whoever analyzes, builds or refreshes, and leave nothing
// behind: no other role or parameter, no temporary table, prepared statement, held cursor or listener, no trigger that is executed at the commit
// (CVE-2007-6600, CVE-2009-3230, CVE-2009-4136, CVE-2022-1552, CVE-2024-0985).
func TestCVE_2020_25695(t *testing.T) {
	h := startHoles(t, spy...)
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, `'select * from secret', 'set role postgres', 'reset role', 'set session authorization postgres', 'reset session authorization',
		'set local role none', 'create temp table pg_trap (id int)', 'create temp view trap as select 1', 'insert into spy.late values (1)', 'insert into spy.late values (1)',
		'prepare trap as select 1', 'declare trap cursor with hold for select 1', 'listen trap', 'unlisten *', 'close all', 'deallocate all', 'discard all', 'alter role alice superuser',
		'set session_replication_role = replica'`))
	for _, statement := range []string{"analyze spy.t", "vacuum analyze spy.t", "reindex table spy.t", "reindex index spy.partly", "reindex table concurrently spy.t",
		"create index made on spy.t (spy.f(v + 1))", "create index concurrently made on spy.t (v) where spy.f(v) > 1", "alter table spy.t add exclude (spy.f(v) with =)",
		"refresh materialized view spy.mv", "refresh materialized view concurrently spy.mv"} {
		for _, block := range []bool{false, true} {
			if block {
				if outcome(h.admin, "begin; "+statement) == "25001" { // It must be alone.
					execAll(t, h.admin, "rollback")
					continue
				}
				execAll(t, h.admin, "commit")
			} else {
				execAll(t, h.admin, statement)
			}
			h.try("postgres", attempt{"select distinct who, what from spy.note", "alice|called"}, attempt{"select current_user, session_user", "postgres|postgres"},
				attempt{"select count(*) from pg_prepared_statements", "0"}, attempt{"select count(*) from pg_class where relname ~ 'trap'", "0"})
			execAll(t, h.admin, "truncate spy.note", "drop index if exists spy.made", "alter table spy.t drop constraint if exists t_f_excl")
		}
	}
}

// Goal: what such functions set is reset when the operation ends, and what they write is written by the owner.
func TestCVE_2009_4136(t *testing.T) {
	h := startHoles(t, spy...)
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, `'set search_path = spy', 'set local search_path = spy', 'set application_name = trap'`))
	h.try("postgres", attempt{"begin; analyze spy.t; refresh materialized view spy.mv; reindex index spy.partly", ""}, attempt{"show search_path", `"$user", public`}, attempt{"show application_name", ""},
		attempt{"select distinct who from spy.note", "alice"}, attempt{"commit; show search_path", `"$user", public`})
}

// Goal: within a function with the privileges of its owner no role is chosen and none is reset: whoever continues after it would be another role.
func TestCVE_2009_3230(t *testing.T) {
	h := startHoles(t, spy...)
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, `'set role bob', 'reset role', 'set role none', 'set local role none', 'reset session authorization', 'set session authorization default',
		'set session_replication_role = replica'`), "alter function spy.attack(int) security definer")
	execAll(t, h.admin, "grant alice to bob")
	h.try("bob", attempt{"begin; set role alice; select spy.attack(1)", "1"}, attempt{"select current_user, session_user", "alice|bob"}, attempt{"select distinct who, what from spy.note", "alice|called"},
		attempt{"rollback; begin; select spy.attack(1); rollback; select current_user", "1 bob"})
	h.try("postgres", attempt{"begin; set local role bob; select spy.attack(1)", "1"}, attempt{"select current_user", "bob"}, attempt{"rollback; select current_user", "postgres"})
}

// Goal: the actions of foreign keys change the children as their owner, and so do the triggers before the rows and the constraints there.
func TestActionsOfKeysAsOwner(t *testing.T) {
	h := startHoles(t, append(spy, "create table parent (id int primary key)", "insert into parent select generate_series(1, 4)", "grant references on parent to alice", "grant all on parent to bob",
		"set role alice", "create function spy.before() returns trigger language plpgsql as $$ begin perform spy.attack(1); return coalesce(new, old); end $$",
		"create table spy.gone (p int references parent on delete cascade on update cascade, check (spy.f(p) > 0))", "create table spy.unset (p int references parent on delete set null)",
		"insert into spy.gone values (1), (2)", "insert into spy.unset values (3)", "create trigger b before update or delete on spy.gone for each row execute function spy.before()",
		"create trigger b before update or delete on spy.unset for each row execute function spy.before()", "reset role")...)
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, `'set role bob', 'reset role', 'select * from parent'`))
	h.try("bob", attempt{"delete from parent where id = 1", ""}, attempt{"update parent set id = 20 where id = 2", ""}, attempt{"delete from parent where id = 3", ""},
		attempt{"select who, what, count(*) from spy.note group by 1, 2", "alice|called|4"})
}

// Goal: EXECUTE is needed wherever a function is called, also where no plan calls it: constraints of domains, what a schema change computes, triggers
// (CVE-2012-0866). The function has the privileges of its owner, so that whoever calls it in a roundabout way would have them, too.
func TestCVE_2012_0866(t *testing.T) {
	h := startHoles(t, "create function power(int) returns bool language plpgsql immutable security definer as $$ begin raise exception 'as %', current_user; end $$",
		"revoke execute on function power(int) from public", "create function fire() returns trigger language plpgsql security definer as $$ begin raise exception 'as %', current_user; end $$",
		"revoke execute on function fire() from public", "create type pair as (a int)", "create function convert(pair) returns int language plpgsql security definer as $$ begin raise exception 'as %', current_user; end $$",
		"revoke execute on function convert(pair) from public", "create cast (pair as int) with function convert(pair) as implicit",
		"create operator @# (rightarg = int, function = power)", "create schema own authorization alice", "alter role alice set search_path = own, public")
	alice, err := h.connect(h.tls("alice", ""))
	h.must(err)
	h.roles["alice"] = alice
	execAll(t, alice, "create table t (id int, v int)", "insert into t values (1, 1)", "create domain odd as int check (power(value))", "create domain plain as int", "create type holder as (o odd)",
		"create table held (p plain)", "insert into held values (1)", "create table split (v int) partition by list ((power(v)))", "create table rest partition of split default",
		"create function body(int) returns bool language sql as 'select power($1)'", "create function nested(int) returns bool language plpgsql as $$ begin return power($1); end $$")
	for _, q := range []string{"select power(1)", "select @# 1", "select row(1)::pair::int", "select 1::odd", "select '{1}'::odd[]", "select '(1)'::holder", `select jsonb_populate_record(null::holder, '{"o": 1}')`,
		"do $$ declare x odd; begin x := 1; end $$", "create index on t (power(v))", "create index on t (v) where power(v)", "create index concurrently on t (power(v))", "alter table t add check (power(v))",
		"alter table t add column d bool default power(1)", "alter table t add column g bool generated always as (power(v)) stored", "alter table t alter v type bool using power(v)",
		"alter table t add exclude (power(v) with =)", "alter domain plain add check (power(value))", "alter table t alter v type odd", "alter table t alter v type odd using 1", "insert into split values (1)",
		"create table more partition of split for values in (power(1))", "create materialized view mv as select power(v) from t", "create table made as select power(v) from t",
		"create trigger f before insert on t for each row execute function fire()", "select body(1)", "select nested(1)",
		"create function f(bool default power(1)) returns bool language plpgsql as $$ begin return $1; end $$; select f()", "update t set v = row(1)::pair"} {
		h.try("alice", attempt{q, "42501"})
	}
	h.try("postgres", attempt{"create index on own.t (power(v))", "42501"}) // It is computed as the owner of the table.
	execAll(t, h.admin, "revoke execute on function pg_sleep(float8), abs(int) from public")
	execAll(t, alice, "create domain sleepy as float8 check (pg_sleep(value) is not null)", "create table u (v int, w int)", "insert into u values (1, 1)")
	for _, q := range []string{"select 0::sleepy", "alter table u add column n int default abs(1 - 2 + (random() * 0)::int)", "alter table u add check (abs(v) > 0)", "create index on u (abs(v))", "create index on u (v) where abs(v) > 0",
		"create index concurrently on u (abs(v))", "alter table u alter v type int using abs(v)", "alter table u add column g int generated always as (abs(v)) stored", "alter table u add exclude (abs(v) with =)",
		"alter domain plain add check (abs(value) > 0)"} {
		h.try("alice", attempt{q, "42501"})
	}
}

// Goal: a role that may update some columns is not shown the others of a row that fits no partition.
func TestCVE_2021_3393(t *testing.T) {
	h := startHoles(t, "create table ranged (a text, b int) partition by range (b, a)", "create table low partition of ranged for values from (0, '') to (9, '')", "insert into ranged values ('hush', 1)",
		"create table computed (a text, b int) partition by range ((b || a))", "create table c1 partition of computed for values from ('0') to ('2')", "insert into computed values ('hush', 1)",
		"grant select (b), update (b) on ranged, computed to alice", "grant select, update (b) on ranged to bob")
	h.detailed("alice", "update ranged set b = 10", "")
	h.detailed("alice", "update computed set b = 5", "")
	h.detailed("bob", "update ranged set b = 10", "Partition key of the failing row contains (b, a) = (10, hush).")
	execAll(t, h.admin, "alter table ranged enable row level security", "create policy all_rows on ranged using (true)")
	h.detailed("bob", "update ranged set b = 10", "")
}

// detailed executes a statement that fails with 23514, and compares the detail of its error.
func (h *holes) detailed(role, sql, want string) {
	h.t.Helper()
	_, err := h.roles[role].Exec(testContext(h.t), sql)
	e, ok := err.(*pgconn.PgError)
	if !ok || e.Code != "23514" || e.Detail != want {
		h.t.Errorf("%s: %s: %#v, want the detail %q", role, sql, err, want)
	}
}

// Goal: the analyzer of the server executes no functions of users: it analyzes what it can without them, and a table with them keeps no other one waiting.
func TestAnalyzerAndFunctionsOfUsers(t *testing.T) {
	h := startHoles(t, append(spy, "create table other (id int primary key)")...)
	execAll(t, h.admin, "set role alice", "create table spy.big (id int primary key, v int)", "create index on spy.big (spy.f(v))", "insert into spy.big select i, i from generate_series(1, 2000) i", "reset role",
		"insert into other select generate_series(1, 2000)")
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, "'select 1'"))
	ctx := testContext(t)
	for {
		var analyzed int
		h.must(h.admin.QueryRow(ctx, "select count(*) from pg_class where relname in ('big', 'other') and reltuples = 2000").Scan(&analyzed))
		if analyzed == 2 {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("the tables are not analyzed")
		case <-time.After(50 * time.Millisecond):
		}
	}
	h.try("postgres", attempt{"select * from spy.note", ""})
	if h.log.contains("not analyzed") {
		t.Error("a table was not analyzed at first")
	}
}

// Goal: they are executed so as well when the table is rewritten, and when who does that has become the owner by SET ROLE. Method: ALTER TABLE that rewrites,
// and REINDEX, with functions that try to take the role back.
func TestCVE_2020_25695_Rewrite(t *testing.T) {
	h := startHoles(t, spy...)
	execAll(t, h.roles["alice"], fmt.Sprintf(attacking, `'reset role', 'set role postgres', 'select set_config(''role'', ''none'', false)', 'alter role alice superuser'`))
	for _, statement := range []string{"alter table spy.t add w int default random()", "alter table spy.t alter w type bigint", "alter table spy.t drop constraint t_pkey", "reindex table spy.t"} {
		h.try("postgres", attempt{"set role alice", ""}, attempt{statement, ""}, attempt{"select current_user, rolsuper from pg_roles where rolname = 'alice'", "alice|f"},
			attempt{"select distinct who, what from spy.note", "alice|called"}, attempt{"truncate spy.note; reset role", ""})
	}
}
