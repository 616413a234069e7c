package observer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/memory"
)

// Goal: a body that its own statement_timeout interrupts, or that needs more memory than there is, fails like others: its row is set
// aside, holds up no other, and is handled again after RETRY. Method: one row at a time, and in batches.
func TestInterruptedBodies(t *testing.T) {
	s := newServer(t)
	s.stop()
	s.opts.Memory = memory.NewPool("memory", 256<<20)
	s.start()
	s.exec("create table a (id int primary key, v text); create table b (id int primary key); create table bad (id int primary key)")
	for body, code := range map[string]string{
		"select set_config('statement_timeout', '1s', false); select pg_sleep(3600) from bad, %[2]s c where c.id = bad.id": "57014",
		"select array_agg(repeat('x', 1000000) || g) from bad, %[2]s c, generate_series(1, 10000) g where c.id = bad.id":   "53200",
	} {
		for batch, changed := range map[int]string{1: "(select key.id)", 10: "changed"} {
			s.exec(fmt.Sprintf("create observer o on a with (max_attempts = 2, batch = %[1]d) as $$ "+body+
				"; insert into b select id from %[2]s c $$", batch, changed))
			s.exec("insert into bad values (3)")
			s.exec("insert into a select generate_series(1, 5)")
			s.eventually(code+" 2", "select coalesce((select sqlstate || ' ' || attempts from percodb.observer_errors), '')")
			s.exec("wait for observer o")
			s.want("1,2,4,5", "select string_agg(id::text, ',' order by id) from b")
			s.exec("delete from bad")
			s.exec("alter observer o retry")
			s.exec("wait for observer o")
			s.want("5", "select count(*) from b")
			s.want("0", "select count(*) from percodb.observer_errors")
			s.exec("drop observer o; delete from a; delete from b")
		}
	}
}

// Goal: a body that does not end is stopped when its observer is disabled or dropped, gets another body, or loses its table; its changes
// stay pending. Method: at the end the server stops, which waits for all that runs.
func TestEndlessBodies(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key); create table b (id int primary key); create sequence runs")
	s.exec("insert into a select generate_series(1, 3)")
	const endless = "select nextval('runs'); select count(*) from generate_series(1, 1000000000000)"
	const begun = "select coalesce(last_value > 1, false) from pg_sequences where sequencename = 'runs'"
	running := func() {
		t.Helper()
		s.exec("alter sequence runs restart")
		s.exec("create or replace observer o on a from beginning with (concurrency = 2) as $$" + endless + "$$")
		s.eventually("true", begun)
	}
	running()
	s.exec("create or replace observer o on a with (concurrency = 2) as 'insert into b values (key.id)'")
	s.exec("wait for observer o")
	s.want("3", "select count(*) from b")
	s.exec("drop observer o")
	running()
	s.exec("alter observer o disable")
	s.want("3", "select pending from percodb.observers")
	s.exec("drop observer o")
	running()
	s.exec("drop observer o")
	running()
	s.exec("drop table a")
	s.exec("create table c (id int primary key); create observer o on c as 'insert into b values (key.id)'")
	s.exec("insert into c values (4)")
	s.exec("wait for observer o") // So the schema without a is known.

	s.pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	s.node.Close(ctx)
	s.node = nil
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the server took %s to stop", took)
	}
}

// Goal: a body that runs when its observer is disabled is stopped although the observer is enabled again before any process has noticed,
// and so is one whose observer gets another body and then its own again. Its changes are handled anew. Method: a body that ends under the
// next snapshot only.
func TestEndlessBodyOfObserverEnabledAgain(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key); create table b (id int primary key); create table length (n bigint); create sequence runs")
	s.exec("insert into length values (0); insert into a select generate_series(1, 3)")
	const body = "select nextval('runs'); select count(*) from length, generate_series(1, n); insert into b values (key.id)"
	const replace = "create or replace observer o on a with (concurrency = 2) as $$%s$$"
	s.exec(fmt.Sprintf(replace, body))
	for _, again := range [][]string{
		{"alter observer o disable", "alter observer o enable"},
		{"begin; alter observer o disable; alter observer o enable; commit"},
		{fmt.Sprintf(replace, "insert into b values (key.id)"), fmt.Sprintf(replace, body)},
	} {
		s.exec("update length set n = 1000000000000; delete from b; alter sequence runs restart")
		s.exec("notify observer o")
		s.eventually("true", "select coalesce(last_value > 1, false) from pg_sequences where sequencename = 'runs'")
		s.exec("update length set n = 0")
		for _, text := range again {
			s.exec(text)
		}
		s.exec("wait for observer o")
		s.want("3", "select count(*) from b")
	}
}
