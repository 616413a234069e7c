package main

import (
	"context"
	"strconv"
	"sync"

	"github.com/percodb/percodb/test/history"
)

// indexed changes rows with a secondary index, and compares both in one snapshot.
type indexed struct {
	table string

	mu    sync.Mutex
	views []history.IndexView
}

const (
	indexedRows  = 40
	indexedKinds = 6
)

func (x *indexed) setup(ctx context.Context, q querier) error {
	if _, err := q.Exec(ctx, "create table "+x.table+" (id int primary key, kind int not null, n bigint)"); err != nil {
		return err
	}
	_, err := q.Exec(ctx, "create index on "+x.table+" (kind)")
	return err
}

func (x *indexed) clients() int { return 3 }

func (x *indexed) client(ctx context.Context, c *client) {
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	if c.rand.IntN(4) > 0 {
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.change(ctx, c, q) })
		return
	}
	var v history.IndexView
	outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) (err error) {
		v, err = x.view(ctx, c, q)
		return err
	})
	if outcome == history.Committed {
		x.mu.Lock()
		x.views = append(x.views, v)
		x.mu.Unlock()
	}
}

func (x *indexed) change(ctx context.Context, c *client, q querier) (err error) {
	for range 1 + c.rand.IntN(3) {
		id, kind := c.rand.IntN(indexedRows), c.rand.IntN(indexedKinds)
		switch c.rand.IntN(4) {
		case 0:
			_, err = q.Exec(ctx, "delete from "+x.table+" where id = $1", id)
		case 1:
			_, err = q.Exec(ctx, "update "+x.table+" set kind = $1, n = 0 where kind = $2", kind, (kind+1)%indexedKinds)
		default:
			_, err = q.Exec(ctx, "insert into "+x.table+" values ($1, $2, 1) on conflict (id) do update set kind = excluded.kind", id, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// view reads the rows by primary key, and the index kind by kind.
func (x *indexed) view(ctx context.Context, c *client, q querier) (history.IndexView, error) {
	v := history.IndexView{Session: c.id, Note: "at " + strconv.FormatInt(c.w.now(), 10), Rows: map[string]string{}, Entries: map[string][]string{}}
	each := func(f func(id, kind string), statement string, args ...any) error {
		rows, err := q.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, kind string
			if err := rows.Scan(&id, &kind); err != nil {
				return err
			}
			f(id, kind)
		}
		return rows.Err()
	}
	if err := each(func(id, kind string) { v.Rows[id] = kind }, "select id::text, kind::text from "+x.table+" order by id"); err != nil {
		return v, err
	}
	for kind := range indexedKinds {
		err := each(func(id, kind string) { v.Entries[kind] = append(v.Entries[kind], id) },
			"select id::text, kind::text from "+x.table+" where kind = $1", kind)
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func (x *indexed) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		v, err := x.view(ctx, c, q)
		x.views = append(x.views, v)
		return err
	})
	return history.CheckIndex(x.views), err
}
