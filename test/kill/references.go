package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/percodb/percodb/test/history"
)

// references inserts children while parents are deleted, or change their key, and looks for children without a parent: the foreign keys
// must hold in every snapshot.
type references struct {
	table string

	mu      sync.Mutex
	orphans []history.Anomaly
}

// referencedRows is the number of parents; there are few, so that sessions meet.
const referencedRows = 12

func (x *references) setup(ctx context.Context, q querier) error {
	for _, st := range []string{
		"create table " + x.table + " (id int primary key, n int not null default 0)",
		"create table " + x.table + "_c (id bigserial primary key, p int references " + x.table + ", q int references " + x.table +
			" on delete cascade on update cascade, d int references " + x.table + " deferrable initially deferred)",
		"create index on " + x.table + "_c (q)",
	} {
		if _, err := q.Exec(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

func (x *references) clients() int { return 4 }

func (x *references) client(ctx context.Context, c *client) {
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	if c.rand.IntN(5) > 0 {
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.change(ctx, c, q) })
		return
	}
	var count int
	outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error { return x.count(ctx, q, &count) })
	if outcome == history.Committed {
		x.note(count)
	}
}

// change changes parents and children. A violation ends the transaction, as the application's error would.
func (x *references) change(ctx context.Context, c *client, q querier) (err error) {
	for range 1 + c.rand.IntN(3) {
		id, other := c.rand.IntN(referencedRows), c.rand.IntN(referencedRows)
		switch c.rand.IntN(8) {
		case 0:
			_, err = q.Exec(ctx, "delete from "+x.table+" where id = $1", id)
		case 1:
			_, err = q.Exec(ctx, "update "+x.table+" set id = $1 where id = $2 and not exists (select 1 from "+x.table+" where id = $1)", other, id)
		case 2:
			_, err = q.Exec(ctx, "delete from "+x.table+"_c where p = $1 or d = $1", id)
		case 3:
			_, err = q.Exec(ctx, "update "+x.table+" set n = n + 1 where id = $1", id)
		case 4:
			_, err = q.Exec(ctx, "insert into "+x.table+"_c (p, q) values ($1, $2)", id, other)
		case 5:
			_, err = q.Exec(ctx, "insert into "+x.table+"_c (d) values ($1)", id)
		default:
			_, err = q.Exec(ctx, "insert into "+x.table+" values ($1) on conflict do nothing", id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts the children without a parent.
func (x *references) count(ctx context.Context, q querier, n *int) error {
	one := "select count(*) from " + x.table + "_c c where %[1]s is not null and not exists (select 1 from " + x.table + " p where p.id = c.%[1]s)"
	total := 0
	for _, column := range []string{"p", "q", "d"} {
		var k int
		if err := q.QueryRow(ctx, fmt.Sprintf(one, column)).Scan(&k); err != nil {
			return err
		}
		total += k
	}
	*n = total
	return nil
}

func (x *references) note(orphans int) {
	if orphans == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.orphans = append(x.orphans, history.Anomaly{Class: "orphan", Story: fmt.Sprintf("  %s_c has %d rows without a parent\n", x.table, orphans)})
}

func (x *references) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var count int
	err := c.final(ctx, func(ctx context.Context, q querier) error { return x.count(ctx, q, &count) })
	x.note(count)
	return x.orphans, err
}
