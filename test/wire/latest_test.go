package wire_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Goal: autocommit statements that read one row, and so take no snapshot, never read under another schema than the
// row's, while those that share a transaction read one snapshot. Method: a transaction repeatedly replaces a table,
// with another row layout and a larger value; readers in three protocols must find its row each time, never older than
// the last commit. Then a pipeline reads two rows whose sum a writer keeps constant.
func TestPointReadsAndSchemaChanges(t *testing.T) {
	admin := connect(t, "")
	execAll(t, admin, "drop table if exists moving_t", "create table moving_t (id int primary key, v int)", "insert into moving_t values (1, 0)")
	var stop atomic.Bool
	var committed atomic.Int64
	var wg sync.WaitGroup
	var reads atomic.Int64
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		conn := connect(t, "")
		ctx := testContext(t)
		wg.Go(func() {
			for !stop.Load() {
				var v int64
				least := committed.Load()
				if err := conn.QueryRow(ctx, "select v from moving_t where id = $1", mode, 1).Scan(&v); err != nil || v < least {
					t.Errorf("%v: %d after %d, %v", mode, v, least, err)
					return
				}
				reads.Add(1)
			}
		})
	}
	for i := 0; i < 40 || reads.Load() < 1000 && !t.Failed(); i++ {
		layout := "id int primary key, v int"
		if i%2 == 0 {
			layout = fmt.Sprintf("filler%d text default 'x', v int, id int primary key", i)
		}
		execAll(t, admin, "begin", "drop table moving_t", "create table moving_t ("+layout+")", fmt.Sprintf("insert into moving_t (id, v) values (1, %d)", i+1), "commit")
		committed.Store(int64(i + 1))
	}
	stop.Store(true)
	wg.Wait()
}

// Goal: two point reads of one pipeline share a snapshot; a single one sees the last commit. Method: a writer moves
// money between two rows; the sum never changes within a pipeline.
func TestPointReadsOfOnePipeline(t *testing.T) {
	execAll(t, connect(t, ""), "drop table if exists pair_t", "create table pair_t (id int primary key, v int)", "insert into pair_t values (1, 0), (2, 0)")
	r := open(t)
	r.send(parse("get", "select v from pair_t where id = $1"), syncing)
	r.ready()
	writer := connect(t, "")
	ctx := testContext(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; !stop.Load() && !t.Failed(); i++ {
			if _, err := writer.Exec(ctx, "update pair_t set v = case id when 1 then $1::int else -$1 end", i); err != nil {
				t.Error(err)
			}
		}
	})
	defer wg.Wait()
	defer stop.Store(true)
	for range 300 {
		r.send(bind("", "get", "1"), execute("", 0), bind("", "get", "2"), execute("", 0), syncing)
		var a, b int
		answer := r.ready()
		if _, err := fmt.Sscanf(answer, "bindcomplete\nrow %d\ncomplete SELECT 1\nbindcomplete\nrow %d\ncomplete SELECT 1\nready I\n", &a, &b); err != nil {
			t.Fatalf("%q: %v", answer, err)
		}
		if a+b != 0 {
			t.Errorf("one pipeline read %d and %d", a, b)
		}
	}
	stop.Store(true)
	wg.Wait()
	last := connect(t, "")
	for i := range 100 {
		execAll(t, last, fmt.Sprintf("update pair_t set v = %d where id = 1", i))
		r.send(bind("", "get", "1"), execute("", 0), syncing)
		expect(t, "after the commit", r.ready(), fmt.Sprintf("bindcomplete\nrow %d\ncomplete SELECT 1\nready I\n", i))
	}
}
