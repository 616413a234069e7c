package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/test/history"
)

// partitioned changes rows of a partitioned table, which move between its partitions, while rows of another table reference them, a trigger
// notes each change, and partitions are detached and attached. In every snapshot each row must be in the partition of its bound, each reference
// must find its row, and what the trigger has noted must be what has happened.
type partitioned struct {
	table string

	anomalies
}

const (
	partitionedRows  = 12
	partitionedParts = 3
	partitionedWidth = partitionedRows / partitionedParts
)

func (x *partitioned) setup(ctx context.Context, q querier) error {
	t := x.table
	statements := []string{
		"create table " + t + " (id int primary key, n int not null default 0) partition by range (id)",
		"create table " + t + "_log (id bigserial primary key, delta int not null)",
		"create table " + t + "_c (id bigserial primary key, p int references " + t + " on update cascade on delete cascade, r int references " + t +
			", d int references " + t + " deferrable initially deferred)",
		"create index on " + t + "_c (p)",
		"create function " + t + "_note() returns trigger language plpgsql as $$ begin insert into " + t + "_log (delta) values" +
			" (case tg_op when 'INSERT' then 1 when 'DELETE' then -1 else 0 end); return null; end $$",
		"create trigger noted after insert or update or delete on " + t + " for each row execute function " + t + "_note()",
	}
	for i := range partitionedParts {
		statements = append(statements, "create table "+x.part(i)+" partition of "+t+" "+x.bound(i))
	}
	for _, st := range statements {
		if _, err := q.Exec(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

func (x *partitioned) part(i int) string { return fmt.Sprintf("%s_%d", x.table, i) }

func (x *partitioned) bound(i int) string {
	return fmt.Sprintf("for values from (%d) to (%d)", i*partitionedWidth, (i+1)*partitionedWidth)
}

func (x *partitioned) clients() int { return 4 }

// expected are the errors of partitions that are not attached, or cannot be detached, beside those of every workload.
func (x *partitioned) expected(state string) bool {
	return slices.Contains([]string{"23514", "42P01", "42809"}, state)
}

func (x *partitioned) client(ctx context.Context, c *client) {
	c.expects = x.expected
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	switch c.rand.IntN(12) {
	case 0:
		_, _ = c.single(ctx, func(ctx context.Context, q querier) error { return x.divide(ctx, c, q) })
	case 1:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.divide(ctx, c, q) })
	case 4:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.release(ctx, c, q) })
	case 2, 3:
		var found []string
		outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error { return x.look(ctx, q, &found) })
		if outcome == history.Committed {
			x.note("partition", found...)
		}
	default:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.change(ctx, c, q) })
	}
}

// divide detaches a partition, or attaches it if it is not one.
func (x *partitioned) divide(ctx context.Context, c *client, q querier) error {
	i := c.rand.IntN(partitionedParts)
	var attached bool
	if err := q.QueryRow(ctx, "select relispartition from pg_class where relname = $1", x.part(i)).Scan(&attached); err != nil {
		return err
	}
	st := "alter table " + x.table + " attach partition " + x.part(i) + " " + x.bound(i)
	if attached {
		st = "alter table " + x.table + " detach partition " + x.part(i)
	}
	_, err := q.Exec(ctx, st)
	return err
}

// release deletes what references the rows of a partition, which can be detached then.
func (x *partitioned) release(ctx context.Context, c *client, q querier) error {
	low := c.rand.IntN(partitionedParts) * partitionedWidth
	_, err := q.Exec(ctx, "delete from "+x.table+"_c where p between $1 and $2 or r between $1 and $2 or d between $1 and $2", low, low+partitionedWidth-1)
	return err
}

func (x *partitioned) change(ctx context.Context, c *client, q querier) (err error) {
	for range 1 + c.rand.IntN(3) {
		id, other := c.rand.IntN(partitionedRows), c.rand.IntN(partitionedRows)
		switch c.rand.IntN(8) {
		case 0:
			_, err = q.Exec(ctx, "delete from "+x.table+" where id = $1", id)
		case 1, 2:
			_, err = q.Exec(ctx, "update "+x.table+" set id = $1 where id = $2 and not exists (select 1 from "+x.table+" where id = $1)", other, id)
		case 3:
			_, err = q.Exec(ctx, "delete from "+x.table+"_c where r = $1 or d = $1", id)
		case 4:
			_, err = q.Exec(ctx, "insert into "+x.table+"_c (p, r) values ($1, $2)", id, other)
		case 5:
			_, err = q.Exec(ctx, "insert into "+x.table+"_c (p, d) values ($1, $2)", id, other)
		default:
			_, err = q.Exec(ctx, "insert into "+x.table+" values ($1) on conflict (id) do update set n = excluded.n + 1", id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look finds what must not be.
func (x *partitioned) look(ctx context.Context, q querier, found *[]string) error {
	*found = nil
	count := func(format string, args ...any) (n int, err error) {
		err = q.QueryRow(ctx, fmt.Sprintf(format, args...)).Scan(&n)
		return n, err
	}
	for _, column := range []string{"p", "r", "d"} {
		n, err := count("select count(*) from %[1]s_c c where %[2]s is not null and not exists (select 1 from %[1]s t where t.id = c.%[2]s)", x.table, column)
		if err != nil {
			return err
		}
		if n > 0 {
			*found = append(*found, fmt.Sprintf("%d rows of %s_c reference no row by %s", n, x.table, column))
		}
	}
	stored := 0
	for i := range partitionedParts {
		n, err := count("select count(*) from %s", x.part(i))
		if err != nil {
			return err
		}
		within, err := count("select count(*) from %s where id >= %d and id < %d", x.part(i), i*partitionedWidth, (i+1)*partitionedWidth)
		if err != nil {
			return err
		}
		if stored += n; within < n {
			*found = append(*found, fmt.Sprintf("%d of %d rows of %s do not belong to it", n-within, n, x.part(i)))
		}
	}
	noted, err := count("select coalesce(sum(delta), 0) from %s_log", x.table)
	if err == nil && noted != stored {
		*found = append(*found, fmt.Sprintf("the trigger has noted %d rows, there are %d", noted, stored))
	}
	return err
}

func (x *partitioned) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var found []string
	err := c.final(ctx, func(ctx context.Context, q querier) error { return x.look(ctx, q, &found) })
	x.note("partition", found...)
	return x.wrong, err
}
