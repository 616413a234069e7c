package wire_test

import (
	"fmt"
	"strings"
	"testing"
)

// Goal: a serializable transaction that has read thousands of single rows commits, as a block and as one statement, and
// is refused if one of them has changed.
func TestSerializableOfManyReads(t *testing.T) {
	s := newScript(t)
	var ids []string
	for i := range 6000 {
		ids = append(ids, fmt.Sprint(5*i+1))
	}
	in := strings.Join(ids, ",")
	s.run(`
		a: drop table if exists many_t, many_log
		a: create table many_t (id int primary key, n int)
		a: create table many_log (n int primary key, s int)
		a: insert into many_t select i, 1 from generate_series(1, 30000) i
		a: analyze many_t
		a: set default_transaction_isolation = serializable
		b: set default_transaction_isolation = serializable
		a: insert into many_log select 1, sum(n) from many_t where id in (` + in + `) → INSERT 0 1
		a: begin → BEGIN
		a: select sum(n) from many_t where id in (` + in + `) → rows (6000)
		a: insert into many_log values (2, 6000) → INSERT 0 1
		a: commit → COMMIT
		a: begin → BEGIN
		a: select sum(n) from many_t where id in (` + in + `) → rows (6000)
		b: begin → BEGIN
		b: select n from many_log where n = 3 → rows
		b: update many_t set n = 2 where id = 15001 → UPDATE 1
		b: commit → COMMIT
		percodb a: insert into many_log values (3, 6000) → INSERT 0 1
		percodb a: commit → error 40001 could not serialize access due to read/write dependencies among transactions
	`)
}
