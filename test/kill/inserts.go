package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/percodb/percodb/test/history"
)

// inserts inserts rows whose key in a secondary unique index must be new; several clients try some of the keys.
type inserts struct {
	table string

	mu       sync.Mutex
	attempts []history.Insert
	value    int64
}

func (i *inserts) setup(ctx context.Context, q querier) error {
	_, err := q.Exec(ctx, "create table "+i.table+" (value bigint primary key, k text not null unique)")
	return err
}

func (i *inserts) clients() int { return 2 }

func (i *inserts) client(ctx context.Context, c *client) {
	i.mu.Lock()
	i.value++
	a := history.Insert{Session: c.id, Value: i.value, Key: fmt.Sprintf("k%d", i.value/3)}
	i.mu.Unlock()
	insert := func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "insert into "+i.table+" values ($1, $2)", a.Value, a.Key)
		return err
	}
	a.Begin = c.w.now()
	var err error
	if c.rand.IntN(2) == 0 {
		a.Outcome, err = c.single(ctx, insert)
	} else {
		a.Outcome, err = c.transaction(ctx, repeatableRead, insert)
	}
	a.End = c.w.now()
	a.Exists = state(err) == "23505"
	i.mu.Lock()
	i.attempts = append(i.attempts, a)
	i.mu.Unlock()
}

func (i *inserts) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var found map[string]int64
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		found = map[string]int64{}
		rows, err := q.Query(ctx, "select value, k from "+i.table)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var value int64
			var k string
			if err := rows.Scan(&value, &k); err != nil {
				return err
			}
			if other, ok := found[k]; ok {
				k += " again, beside " + strconv.FormatInt(other, 10)
			}
			found[k] = value
		}
		return rows.Err()
	})
	return history.CheckInserts(i.attempts, found), err
}
