package observer_test

import (
	"fmt"
	"testing"

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
		"select set_config('statement_timeout', '20ms', false); select pg_sleep(3600) from bad, %[2]s c where c.id = bad.id": "57014",
		"select array_agg(repeat('x', 1000000) || g) from bad, %[2]s c, generate_series(1, 10000) g where c.id = bad.id":     "53200",
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
