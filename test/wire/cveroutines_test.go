package wire_test

import (
	"fmt"
	"testing"
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
