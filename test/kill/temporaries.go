package main

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/test/history"
)

// temporaries makes, fills and drops temporary relations in sessions that die. A session must find in them what it has written, and nothing of
// another session's; what is left of them when all processes have ended is a finding of percodb check, which knows no relation of their keys.
type temporaries struct {
	table string

	anomalies
}

func (x *temporaries) setup(ctx context.Context, q querier) error {
	_, err := q.Exec(ctx, name(x.table, "create table @ (id int primary key, n int not null)"))
	if err == nil {
		_, err = q.Exec(ctx, name(x.table, "insert into @ select g, 0 from generate_series(1, 20) g"))
	}
	return err
}

func (x *temporaries) clients() int { return 2 }

func (x *temporaries) client(ctx context.Context, c *client) {
	if c.rand.IntN(3) == 0 {
		c.close() // The session ends, with what it has.
	}
	rows, undone := 1+c.rand.IntN(200), c.rand.IntN(3) == 0
	_, err := c.single(ctx, func(ctx context.Context, q querier) error { return x.make(ctx, c, q, rows) })
	if err != nil || c.conn == nil {
		return
	}
	outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error {
		for _, st := range []string{
			`insert into @_brief select g from generate_series(1, 5) g`,
			`insert into @_temp (v, n) select 'more', g from generate_series(1, 3) g`,
			`update @ set n = n + 1 where id in (select n from @_temp where n < 20)`,
		} {
			if _, err := q.Exec(ctx, name(x.table, st)); err != nil {
				return err
			}
		}
		if undone {
			return errGivenUp
		}
		return nil
	})
	if c.conn == nil {
		return
	}
	if outcome == history.Committed {
		rows += 3
	}
	_, _ = c.single(ctx, func(ctx context.Context, q querier) error { return x.look(ctx, q, rows) })
}

// make drops what the session has, and makes relations of each kind.
func (x *temporaries) make(ctx context.Context, c *client, q querier, rows int) error {
	for _, st := range []string{
		`drop table if exists @_temp, @_brief`,
		`create temp table @_temp (id serial primary key, v text, n int unique deferrable, check (n > -100))`,
		`create index on pg_temp.@_temp (lower(v))`,
		`create temp table @_brief (a int) on commit delete rows`,
		fmt.Sprintf(`insert into @_temp (v, n) select 'row ' || g, 1000 + g from generate_series(1, %d) g`, rows),
	} {
		if _, err := q.Exec(ctx, name(x.table, st)); err != nil {
			return err
		}
	}
	if c.rand.IntN(3) > 0 {
		return nil
	}
	if _, err := q.Exec(ctx, name(x.table, `truncate @_temp`)); err != nil {
		return err
	}
	_, err := q.Exec(ctx, name(x.table, fmt.Sprintf(`insert into @_temp (v, n) select 'row ' || g, 1000 + g from generate_series(1, %d) g`, rows)))
	return err
}

// look compares what the session has with what it wrote.
func (x *temporaries) look(ctx context.Context, q querier, rows int) error {
	var kept, brief int
	err := q.QueryRow(ctx, name(x.table, `select (select count(*) from @_temp where lower(v) like '%o%'), (select count(*) from @_brief)`)).Scan(&kept, &brief)
	if err != nil {
		return err
	}
	if kept != rows || brief != 0 {
		x.note("temporary table", x.table+": "+fmt.Sprintf("a session has %d rows of %d, and %d of a table that is emptied by commits", kept, rows, brief))
	}
	return nil
}

func (x *temporaries) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var absent bool
	c.close() // Another session must not find what this one's has.
	err := c.final(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, name(x.table, "select to_regclass('@_temp') is null")).Scan(&absent)
	})
	if err == nil && !absent {
		x.note("temporary table", x.table+": "+"a new session finds a temporary table")
	}
	return x.wrong, err
}
