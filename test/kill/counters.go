package main

import (
	"context"
	"sync"

	"github.com/percodb/percodb/test/history"
)

// counters increments two hot rows, and reads them.
type counters struct {
	table string

	mu         sync.Mutex
	increments [hotRows][]history.Increment
	reads      [hotRows][]history.CounterRead
}

const hotRows = 2

func (k *counters) setup(ctx context.Context, q querier) error {
	if _, err := q.Exec(ctx, "create table "+k.table+" (id int primary key, n bigint not null)"); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "insert into "+k.table+" values (0, 0), (1, 0)")
	return err
}

func (k *counters) clients() int { return 4 }

func (k *counters) client(ctx context.Context, c *client) {
	row := c.rand.IntN(hotRows)
	if c.rand.IntN(5) == 0 {
		k.read(ctx, c, row)
		return
	}
	i := history.Increment{Session: c.id, Begin: c.w.now(), Delta: int64(1 + c.rand.IntN(3))}
	update := func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "update "+k.table+" set n = n + $1 where id = $2", i.Delta, row)
		return err
	}
	switch c.rand.IntN(4) {
	case 0:
		i.Outcome, _ = c.single(ctx, update)
	case 1:
		i.Outcome, _ = c.transaction(ctx, readCommitted, update)
	case 2:
		i.Outcome, _ = c.transaction(ctx, repeatableRead, update)
	default:
		i.Outcome, _ = c.transaction(ctx, serializable, func(ctx context.Context, q querier) error {
			var n int64
			if err := q.QueryRow(ctx, "select n from "+k.table+" where id = $1 for update", row).Scan(&n); err != nil {
				return err
			}
			_, err := q.Exec(ctx, "update "+k.table+" set n = $1 where id = $2", n+i.Delta, row)
			return err
		})
	}
	i.End = c.w.now()
	k.mu.Lock()
	k.increments[row] = append(k.increments[row], i)
	k.mu.Unlock()
}

func (k *counters) read(ctx context.Context, c *client, row int) {
	r := history.CounterRead{Session: c.id, Begin: c.w.now()}
	_, err := c.single(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, "select n from "+k.table+" where id = $1", row).Scan(&r.Value)
	})
	if err != nil {
		return
	}
	r.End = c.w.now()
	k.mu.Lock()
	k.reads[row] = append(k.reads[row], r)
	k.mu.Unlock()
}

func (k *counters) check(ctx context.Context, c *client) (found []history.Anomaly, err error) {
	for row := range hotRows {
		r := history.CounterRead{Session: c.id, Begin: c.w.now()}
		err := c.final(ctx, func(ctx context.Context, q querier) error {
			return q.QueryRow(ctx, "select n from "+k.table+" where id = $1", row).Scan(&r.Value)
		})
		if err != nil {
			return nil, err
		}
		r.End = c.w.now()
		found = append(found, history.CheckCounter(k.increments[row], append(k.reads[row], r))...)
	}
	return found, nil
}
