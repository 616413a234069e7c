package wire_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: partitions may come and go beside statements that write and read their rows: no row is lost, or stored where it does not belong.
// Method: clients insert, and move rows, while partitions are created, attached, detached and dropped; then the rows are counted.
func TestPartitionsChangeBesideWriters(t *testing.T) {
	ctx := testContext(t)
	admin := connect(t, "")
	run := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run("drop table if exists pw")
	run("create table pw (id int, k int, primary key (id, k)) partition by range (k)")
	run("create table pw_0 partition of pw for values from (0) to (10)")
	run("create table pw_1 partition of pw for values from (10) to (20)")
	run("create table pw_2 partition of pw for values from (20) to (40)")
	var stored, read atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); wg.Wait() })
	defer finish()
	for w := range 2 {
		c := connect(t, "")
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				tag, err := c.Exec(ctx, fmt.Sprintf("insert into pw values (%d, %d), (%d, %d)", 1000*i+w, i%40, 1000*i+w+500, (i+7)%40))
				if err == nil {
					stored.Add(tag.RowsAffected())
				} else if !retryable(err) {
					t.Errorf("insert: %v", err)
					return
				}
				if _, err := c.Exec(ctx, fmt.Sprintf("update pw set k = (k + 11) %% 40 where id = %d", 1000*(i/2)+w)); err != nil && !retryable(err) {
					t.Errorf("update: %v", err)
					return
				}
			}
		}()
	}
	reader := connect(t, "")
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			var n int64
			if err := reader.QueryRow(ctx, "select count(*) from pw where k < 30").Scan(&n); err != nil && !retryable(err) {
				t.Errorf("select: %v", err)
				return
			}
			read.Add(1)
		}
	}()
	for range 10 {
		run("alter table pw detach partition pw_1")
		run("alter table pw attach partition pw_1 for values from (10) to (20)")
		run("create table pw_9 partition of pw for values from (90) to (100)")
		run("drop table pw_9")
	}
	finish()
	var n, misplaced int64
	if err := admin.QueryRow(ctx, "select count(*), count(*) filter (where tableoid <> ('pw_' || least(k / 10, 2))::regclass) from pw").Scan(&n, &misplaced); err != nil {
		t.Fatal(err)
	}
	if n != stored.Load() || misplaced != 0 {
		t.Errorf("%d rows, of which %d are misplaced; %d were stored", n, misplaced, stored.Load())
	}
	if stored.Load() == 0 || read.Load() == 0 {
		t.Errorf("%d rows were stored, %d times counted", stored.Load(), read.Load())
	}
	run("drop table pw")
}

// retryable reports whether a statement failed because of what others did at the same time, or because there was no partition for a row.
func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23514")
}
