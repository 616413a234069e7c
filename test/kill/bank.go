package main

import (
	"context"
	"sync"

	"github.com/percodb/percodb/test/history"
)

// bank moves money between accounts; every snapshot must show the same total.
type bank struct {
	table string

	mu        sync.Mutex
	snapshots []history.Snapshot
}

const (
	accounts = 12
	deposit  = 100
)

func (b *bank) setup(ctx context.Context, q querier) error {
	if _, err := q.Exec(ctx, "create table "+b.table+" (id int primary key, balance bigint not null)"); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "insert into "+b.table+" select i, 100 from generate_series(1, 12) i")
	return err
}

func (b *bank) clients() int { return 4 }

func (b *bank) client(ctx context.Context, c *client) {
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	if c.rand.IntN(4) > 0 {
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return b.transfer(ctx, c, q) })
		return
	}
	if level == readCommitted {
		level = repeatableRead
	}
	var s history.Snapshot
	outcome, _ := c.transaction(ctx, level, func(ctx context.Context, q querier) (err error) {
		s, err = b.snapshot(ctx, c, q)
		return err
	})
	if outcome == history.Committed {
		b.mu.Lock()
		b.snapshots = append(b.snapshots, s)
		b.mu.Unlock()
	}
}

// transfer moves money between two or three accounts in random order, so that deadlocks occur.
func (b *bank) transfer(ctx context.Context, c *client, q querier) error {
	order := c.rand.Perm(accounts)
	amount := 1 + c.rand.IntN(10)
	for i, change := range [][]int{{-amount, amount}, {-2 * amount, amount, amount}}[c.rand.IntN(2)] {
		if _, err := q.Exec(ctx, "update "+b.table+" set balance = balance + $1 where id = $2", change, 1+order[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bank) snapshot(ctx context.Context, c *client, q querier) (history.Snapshot, error) {
	s := history.Snapshot{Session: c.id, Values: map[string]int64{}}
	rows, err := q.Query(ctx, "select id::text, balance from "+b.table)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var balance int64
		if err := rows.Scan(&id, &balance); err != nil {
			return s, err
		}
		s.Values[id] = balance
	}
	return s, rows.Err()
}

func (b *bank) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		s, err := b.snapshot(ctx, c, q)
		b.snapshots = append(b.snapshots, s)
		return err
	})
	return history.CheckBank(b.snapshots, accounts, accounts*deposit), err
}
