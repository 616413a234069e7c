package main

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/test/history"
)

// advised increments counters by a read and a write that nothing but an advisory lock keeps together: of the session, of the transaction, or of a
// session that waits or tries. Others hold the lock shared, and read twice. Two holders would lose an increment, or read two values.
type advised struct {
	table string

	anomalies  // mu guards increments, too
	increments [advisedRows][]history.Increment
}

const advisedRows = 2

func (x *advised) setup(ctx context.Context, q querier) error {
	if _, err := q.Exec(ctx, "create table "+x.table+" (id int primary key, n bigint not null)"); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "insert into "+x.table+" values (0, 0), (1, 0)")
	return err
}

func (x *advised) clients() int { return 5 }

// key is the advisory lock of a row: one of two numbers, the first of which is the round's.
func (x *advised) key(row int) string { return fmt.Sprintf("hashtext('%s'), %d", x.table, row) }

func (x *advised) client(ctx context.Context, c *client) {
	row := c.rand.IntN(advisedRows)
	switch c.rand.IntN(4) {
	case 0:
		x.read(ctx, c, row)
		return
	case 1:
		x.increment(ctx, c, row, x.inTransaction)
	default:
		x.increment(ctx, c, row, x.inSession)
	}
}

func (x *advised) increment(ctx context.Context, c *client, row int, how func(context.Context, *client, int) (history.Outcome, bool)) {
	i := history.Increment{Session: c.id, Begin: c.w.now(), Delta: 1}
	var sent bool
	i.Outcome, sent = how(ctx, c, row)
	i.End = c.w.now()
	if !sent {
		return
	}
	x.mu.Lock()
	x.increments[row] = append(x.increments[row], i)
	x.mu.Unlock()
}

// inSession holds the lock over two statements that are transactions of their own. sent: the write was.
func (x *advised) inSession(ctx context.Context, c *client, row int) (outcome history.Outcome, sent bool) {
	if !x.lock(ctx, c, row, c.rand.IntN(3) == 0) {
		return history.Aborted, false
	}
	var n int64
	if _, err := c.single(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, "select n from "+x.table+" where id = $1", row).Scan(&n)
	}); err != nil {
		x.unlock(ctx, c, row, "")
		return history.Aborted, false
	}
	time.Sleep(time.Duration(c.rand.IntN(4)) * time.Millisecond)
	if c.conn == nil {
		return history.Aborted, false
	}
	outcome, _ = c.single(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "update "+x.table+" set n = $1 where id = $2", n+1, row)
		return err
	})
	x.unlock(ctx, c, row, "")
	return outcome, true
}

// inTransaction holds the lock until the transaction ends.
func (x *advised) inTransaction(ctx context.Context, c *client, row int) (outcome history.Outcome, sent bool) {
	outcome, _ = c.transaction(ctx, readCommitted, func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, "select pg_advisory_xact_lock("+x.key(row)+")"); err != nil {
			return err
		}
		var n int64
		if err := q.QueryRow(ctx, "select n from "+x.table+" where id = $1", row).Scan(&n); err != nil {
			return err
		}
		_, err := q.Exec(ctx, "update "+x.table+" set n = $1 where id = $2", n+1, row)
		sent = err == nil
		return err
	})
	return outcome, sent
}

// lock takes the session's lock, and reports false if it has not.
func (x *advised) lock(ctx context.Context, c *client, row int, try bool) bool {
	locked := true
	_, err := c.single(ctx, func(ctx context.Context, q querier) error {
		if !try {
			_, err := q.Exec(ctx, "select pg_advisory_lock("+x.key(row)+")")
			return err
		}
		return q.QueryRow(ctx, "select pg_try_advisory_lock("+x.key(row)+")").Scan(&locked)
	})
	return err == nil && locked
}

// unlock ends the session's lock, which it must have unless the session has ended.
func (x *advised) unlock(ctx context.Context, c *client, row int, kind string) {
	if c.conn == nil {
		return
	}
	var had bool
	_, err := c.single(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, "select pg_advisory_unlock"+kind+"("+x.key(row)+")").Scan(&had)
	})
	if err == nil && !had {
		x.note("advisory lock", x.table+": "+"a session does not have the lock that it was given")
	}
}

// read holds the lock shared over two reads.
func (x *advised) read(ctx context.Context, c *client, row int) {
	if _, err := c.single(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "select pg_advisory_lock_shared("+x.key(row)+")")
		return err
	}); err != nil {
		return
	}
	var n [2]int64
	for i := range n {
		if c.conn == nil {
			return
		}
		if _, err := c.single(ctx, func(ctx context.Context, q querier) error {
			return q.QueryRow(ctx, "select n from "+x.table+" where id = $1", row).Scan(&n[i])
		}); err != nil {
			x.unlock(ctx, c, row, "_shared")
			return
		}
		time.Sleep(time.Duration(c.rand.IntN(3)) * time.Millisecond)
	}
	if n[0] != n[1] {
		x.note("advisory lock", x.table+": "+fmt.Sprintf("a row changed from %d to %d under a shared lock", n[0], n[1]))
	}
	x.unlock(ctx, c, row, "_shared")
}

func (x *advised) check(ctx context.Context, c *client) (found []history.Anomaly, err error) {
	for row := range advisedRows {
		r := history.CounterRead{Session: c.id, Begin: c.w.now()}
		err := c.final(ctx, func(ctx context.Context, q querier) error {
			return q.QueryRow(ctx, "select n from "+x.table+" where id = $1", row).Scan(&r.Value)
		})
		if err != nil {
			return nil, err
		}
		r.End = c.w.now()
		found = append(found, history.CheckCounter(x.increments[row], []history.CounterRead{r})...)
	}
	return append(found, x.wrong...), nil
}
