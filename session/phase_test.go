package session

import (
	"fmt"
	"strings"
	"testing"
)

// Goal: each event in each phase leads to the phase that PostgreSQL's client sees. Method: the whole table in words.
func TestTransitions(t *testing.T) {
	const want = `
		idle: share→implicit begin→block fail→idle rollback to→impossible end→idle
		implicit: share→implicit begin→block fail→idle rollback to→impossible end→idle
		block: share→block begin→block fail→failed rollback to→block end→idle
		failed: share→failed begin→impossible fail→failed rollback to→block end→idle`
	var got []string
	for p := range phases {
		line := p.String() + ":"
		for e := range events {
			next := "impossible"
			func() {
				defer func() {
					if bug := recover(); bug != nil && transitions[p][e] != impossible {
						t.Errorf("%v in %v: %v", e, p, bug)
					}
				}()
				after := p
				after.on(e)
				next = after.String()
			}()
			line += fmt.Sprintf(" %v→%s", e, next)
		}
		got = append(got, line)
	}
	for i, line := range strings.Split(strings.TrimSpace(want), "\n") {
		if strings.TrimSpace(line) != got[i] {
			t.Errorf("got  %s\nwant %s", got[i], strings.TrimSpace(line))
		}
	}
}

// Goal: each phase answers statements as PostgreSQL does, and no statement makes an impossible transition.
func TestPhases(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)")
	c.transcript(`
		commit → notice 25P01; COMMIT; I
		rollback → notice 25P01; ROLLBACK; I
		rollback to a → error 25P01; I
		savepoint a → error 25P01; I
		commit and chain → error 25P01; I
		begin → BEGIN; T
		begin → notice 25001; BEGIN; T
		insert into t values (1) → INSERT 0 1; T
		savepoint a → SAVEPOINT; T
		insert into t values (1) → error 23505; E
		begin → error 25P02; E
		select 1 → error 25P02; E
		savepoint b → error 25P02; E
		nonsense → error 42601; E
		rollback to a → ROLLBACK; T
		release a → RELEASE; T
		rollback to a → error 3B001; E
		commit → ROLLBACK; I
		begin → BEGIN; T
		commit and chain → COMMIT; T
		rollback and chain → ROLLBACK; T
		rollback → ROLLBACK; I
		insert into t values (2); insert into t values (2) → INSERT 0 1; error 23505; I
		select count(*) from t → columns count; row 0; SELECT 1; I
		insert into t values (3); begin; insert into t values (4) → INSERT 0 1; BEGIN; INSERT 0 1; T
		rollback → ROLLBACK; I
		begin; insert into t values (5); commit; insert into t values (6) → BEGIN; INSERT 0 1; COMMIT; INSERT 0 1; I
		insert into t values (7); rollback; insert into t values (8) → INSERT 0 1; notice 25P01; ROLLBACK; INSERT 0 1; I
		begin; select 1/0; rollback → BEGIN; columns ?column?; error 22012; E
		rollback → ROLLBACK; I
		set transaction isolation level serializable → notice 25P01; SET; I
		insert into t values (9); set transaction isolation level serializable → INSERT 0 1; error 25001; I
		select id from t order by id → columns id; row 5; row 6; row 8; SELECT 3; I
	`)
}
