package wire_test

import (
	"testing"
	"time"
)

// Goal: a statement that waits for a row and then runs again leaves what its triggers do once, those that are deferred too, and the locks of
// triggers are held until the transaction ends. Method: pairs of blocks, the first committing or rolling back.
func TestTriggersOfStatementsThatRunAgain(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists tg_t, tg_log, tg_count
		a: drop function if exists tg_note, tg_add
		a: create table tg_t (id int primary key, n int)
		a: create table tg_log (line text)
		a: create table tg_count (id int primary key, n int)
		a: insert into tg_t values (1, 0), (2, 0) → INSERT 0 2
		a: insert into tg_count values (1, 0) → INSERT 0 1
		a: create function tg_note() returns trigger language plpgsql as 'begin insert into tg_log values (tg_name || '' '' || old.n || ''>'' || new.n); return new; end'
		a: create function tg_add() returns trigger language plpgsql as 'begin update tg_count set n = n + 1 where id = 1; return null; end'
		a: create trigger before_t before update on tg_t for each row execute function tg_note()
		a: create trigger after_t after update on tg_t for each row execute function tg_note()
		a: create constraint trigger late_t after update on tg_t deferrable initially deferred for each row execute function tg_note()
		a: begin isolation level read committed → BEGIN
		b: begin isolation level read committed → BEGIN
		a: update tg_t set n = n + 1 where id = 1 → UPDATE 1
		b: update tg_t set n = n + 10 where id in (1, 2) → waits
		a: commit → COMMIT
		b → UPDATE 2
		b: commit → COMMIT
		a: select line from tg_log order by line → rows (after_t 0>1) (after_t 0>10) (after_t 1>11) (before_t 0>1) (before_t 0>10) (before_t 1>11) (late_t 0>1) (late_t 0>10) (late_t 1>11)
		a: delete from tg_log
		a: begin isolation level read committed → BEGIN
		a: update tg_t set n = 0 where id = 1 → UPDATE 1
		b: update tg_t set n = 5 where id = 1 → waits
		a: rollback → ROLLBACK
		b → UPDATE 1
		a: select line from tg_log order by line → rows (after_t 11>5) (before_t 11>5) (late_t 11>5)
		a: drop trigger before_t on tg_t
		a: drop trigger after_t on tg_t
		a: drop trigger late_t on tg_t
		a: create trigger count_t after update on tg_t for each row execute function tg_add()
		a: begin isolation level read committed → BEGIN
		b: begin isolation level read committed → BEGIN
		a: update tg_t set n = 1 where id = 1 → UPDATE 1
		b: update tg_t set n = 1 where id = 2 → waits
		a: commit → COMMIT
		b → UPDATE 1
		b: commit → COMMIT
		a: select n from tg_count → rows (2)
		a: drop table tg_t, tg_log, tg_count
		a: drop function tg_note, tg_add
	`)
}

// Goal: deadlocks through the locks of triggers are found. Method: two blocks whose triggers lock each other's row.
func TestDeadlockOfTriggers(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists td_a, td_b
		a: drop function if exists td_f
		a: create table td_a (id int primary key, n int)
		a: create table td_b (id int primary key, n int)
		a: insert into td_a values (1, 0), (2, 0) → INSERT 0 2
		a: insert into td_b values (1, 0), (2, 0) → INSERT 0 2
		a: create function td_f() returns trigger language plpgsql as 'begin update td_b set n = n + 1 where id = new.n; return null; end'
		a: create trigger t after update on td_a for each row execute function td_f()
		a: begin isolation level read committed → BEGIN
		b: begin isolation level read committed → BEGIN
		a: update td_a set n = 1 where id = 1 → UPDATE 1
		b: update td_a set n = 2 where id = 2 → UPDATE 1
		a: update td_b set n = 9 where id = 2 → waits
	`)
	got := s.execute(s.sessions["b"].conn, "update td_b set n = 9 where id = 1")
	other := s.answer(s.sessions["a"], false)
	failed := 0
	for _, end := range []string{got, other} {
		if len(end) > 11 && end[:11] == "error 40P01" {
			failed++
		} else if end != "UPDATE 1" {
			t.Errorf("got %s", end)
		}
	}
	if failed != 1 {
		t.Errorf("%d of the two fail: %s; %s", failed, got, other)
	}
	s.run(`
		a: rollback → ROLLBACK
		b: rollback → ROLLBACK
		a: drop table td_a, td_b
		a: drop function td_f
	`)
}

// Goal: triggers that do not end are cancelled by timeouts, and those that execute themselves end with 54001; neither leaves anything behind.
// Method: a loop without and with statements, before rows, after them and at the commit; a trigger that inserts into its own table.
func TestTriggersThatDoNotEnd(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	exec := func(sql string) error {
		_, err := conn.Exec(ctx, sql)
		return err
	}
	must := func(sql string) {
		t.Helper()
		if err := exec(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	must("drop table if exists te")
	must("drop function if exists te_loop, te_query, te_self")
	must("create table te (a int)")
	must("create function te_loop() returns trigger language plpgsql as 'begin loop null; end loop; end'")
	must("create function te_query() returns trigger language plpgsql as 'declare n int; begin loop select count(*) into n from te; end loop; end'")
	must("create function te_self() returns trigger language plpgsql as 'begin insert into te values (new.a + 1); return new; end'")
	for _, when := range []string{"trigger t before", "trigger t after", "constraint trigger t after"} {
		for _, function := range []string{"te_loop", "te_query"} {
			deferred := ""
			if when == "constraint trigger t after" {
				deferred = " deferrable initially deferred"
			}
			must("create " + when + " insert on te" + deferred + " for each row execute function " + function + "()")
			must("set statement_timeout = '50ms'")
			began := time.Now()
			if err := exec("insert into te values (1)"); code(err) != "57014" {
				t.Errorf("%s %s: %v", when, function, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s %s: %v", when, function, took)
			}
			must("set statement_timeout = 0")
			must("drop trigger t on te")
		}
	}
	must("create trigger t before insert on te for each row execute function te_self()")
	if err := exec("insert into te values (1)"); code(err) != "54001" {
		t.Errorf("recursion: %v", err)
	}
	var n int
	if err := conn.QueryRow(ctx, "select count(*) from te").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
	must("drop table te")
	must("drop function te_loop, te_query, te_self")
}
