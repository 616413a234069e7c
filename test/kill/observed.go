package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/test/history"
)

// observed changes rows of a table from which observers derive others: a copy, row by row; a second one from the copy;
// sums, in batches, with the last contribution of each row; and one that clients keep in their own transactions.
//
// Each delivery inserts marks: the row with the change's commit_ts, or, where the statements see no commit_ts, with the
// row's version, which no two writes of a row share. Marks have no key, so two deliveries of one change do not conflict
// by them. At the end no mark may occur twice, and the derived tables must equal a recomputation.
type observed struct {
	table      string
	deliveries *atomic.Int64 // of a run: changes delivered, without repetitions
	version    atomic.Int64
}

const (
	observedRows  = 60
	observedShops = 5
)

// The observers that have statements, and the one that clients consume, named after the table they fill.
var (
	observersWithBody = []string{"copied", "deep", "sums"}
	consumedObserver  = "seen"
)

// name makes the statements' names of tables and observers those of this round.
func (o *observed) name(statement string) string { return name(o.table+"_", statement) }

func (o *observed) setup(ctx context.Context, q querier) error {
	for _, statement := range []string{
		`create table @rows (id int primary key, shop int not null, amount int not null, version bigint not null)`,
		`create table @copied (id int primary key, shop int not null, amount int not null, version bigint not null)`,
		`create table @deep (id int primary key, doubled int not null)`,
		`create table @last (id int primary key, shop int not null, amount int not null)`,
		`create table @sums (shop int primary key, n bigint not null, amount bigint not null)`,
		`create table @seen (id int primary key, shop int not null, amount int not null)`,
		`create table @marks (observer text not null, id int not null, change bigint not null)`,
		fmt.Sprintf(`insert into @sums select i, 0, 0 from generate_series(0, %d) i`, observedShops-1),
		`create observer @copied on @rows as $$
			delete from @copied where id = key.id and new.id is null;
			insert into @copied select new.id, new.shop, new.amount, new.version where new.id is not null
				on conflict (id) do update set shop = excluded.shop, amount = excluded.amount, version = excluded.version;
			insert into @marks select 'copied', new.id, new.version where new.id is not null $$`,
		`create observer @deep on @copied (amount) with (batch = 10) as $$
			delete from @deep where id in (select id from changed where _deleted);
			insert into @deep select id, 2 * amount from changed where not _deleted
				on conflict (id) do update set doubled = excluded.doubled;
			insert into @marks select 'deep', id, _commit_ts from changed $$`,
		`create observer @sums on @rows (shop, amount) with (batch = 50) as $$
			update @sums set n = @sums.n + d.n, amount = @sums.amount + d.amount from (
				select shop, sum(n) as n, sum(amount) as amount from (
					select shop, 1 as n, amount from changed where not _deleted
					union all select l.shop, -1, -l.amount from @last l join changed c on c.id = l.id) x group by shop) d
				where @sums.shop = d.shop;
			delete from @last where id in (select id from changed);
			insert into @last select id, shop, amount from changed where not _deleted;
			insert into @marks select 'sums', id, _commit_ts from changed $$`,
		`create observer @seen on @rows`,
	} {
		if _, err := q.Exec(ctx, o.name(statement)); err != nil {
			return fmt.Errorf("%w, of %s", err, statement)
		}
	}
	return nil
}

func (o *observed) clients() int { return 5 }

func (o *observed) client(ctx context.Context, c *client) {
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	switch c.rand.IntN(8) {
	case 0, 1:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return o.consume(ctx, c, q) })
	case 2:
		_, _ = c.single(ctx, func(ctx context.Context, q querier) error { return o.change(ctx, c, q) })
	default:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return o.write(ctx, c, q) })
	}
}

// errGivenUp rolls a transaction back.
var errGivenUp = errors.New("given up")

// write makes one to four changes, of which some are undone.
func (o *observed) write(ctx context.Context, c *client, q querier) error {
	for range 1 + c.rand.IntN(4) {
		undone := c.rand.IntN(8) == 0
		if undone {
			if _, err := q.Exec(ctx, "savepoint s"); err != nil {
				return err
			}
		}
		if err := o.change(ctx, c, q); err != nil {
			return err
		}
		if undone {
			if _, err := q.Exec(ctx, "rollback to s"); err != nil {
				return err
			}
		}
	}
	if c.rand.IntN(16) == 0 {
		return errGivenUp
	}
	return nil
}

// change inserts, updates or deletes rows.
func (o *observed) change(ctx context.Context, c *client, q querier) (err error) {
	id, shop, amount, version := c.rand.IntN(observedRows), c.rand.IntN(observedShops), c.rand.IntN(100), o.version.Add(1)
	switch c.rand.IntN(5) {
	case 0:
		_, err = q.Exec(ctx, o.name("delete from @rows where id = $1"), id)
	case 1:
		_, err = q.Exec(ctx, o.name("update @rows set shop = $1, version = $2 where id >= $3 and id < $4"), shop, version, id, id+1+c.rand.IntN(4))
	case 2:
		_, err = q.Exec(ctx, o.name("update @rows set amount = $1, version = $2 where id = $3"), amount, version, id)
	default:
		_, err = q.Exec(ctx, o.name(`insert into @rows values ($1, $2, $3, $4)
			on conflict (id) do update set shop = excluded.shop, amount = excluded.amount, version = excluded.version`), id, shop, amount, version)
	}
	return err
}

// consume handles changes as an application does.
func (o *observed) consume(ctx context.Context, c *client, q querier) error {
	type row struct {
		ts               int64
		deleted          bool
		id, shop, amount int
	}
	var changed []row
	rows, err := q.Query(ctx, o.name(fmt.Sprintf(`select _commit_ts, _deleted, id, coalesce(shop, 0), coalesce(amount, 0)
		from percodb.changes('@seen', max => %d, wait => '100ms')`, 1+c.rand.IntN(10))))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.ts, &r.deleted, &r.id, &r.shop, &r.amount); err != nil {
			return err
		}
		changed = append(changed, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, r := range changed {
		if r.deleted {
			_, err = q.Exec(ctx, o.name("delete from @seen where id = $1"), r.id)
		} else {
			_, err = q.Exec(ctx, o.name(`insert into @seen values ($1, $2, $3)
				on conflict (id) do update set shop = excluded.shop, amount = excluded.amount`), r.id, r.shop, r.amount)
		}
		if err != nil {
			return err
		}
		if _, err := q.Exec(ctx, o.name("insert into @marks values ('seen', $1, $2)"), r.id, r.ts); err != nil {
			return err
		}
	}
	if c.rand.IntN(8) == 0 {
		return errGivenUp
	}
	return nil
}

// settle waits until everything is handled, while one client consumes.
func (o *observed) settle(ctx context.Context, c *client) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	var consumer sync.WaitGroup
	defer consumer.Wait()
	defer cancel()
	consumes := &client{id: c.id - 1, w: c.w, rand: rand.New(rand.NewPCG(c.rand.Uint64(), 3))}
	consumer.Go(func() {
		defer consumes.close()
		for ctx.Err() == nil {
			_, _ = consumes.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error { return o.consume(ctx, consumes, q) })
		}
	})
	for _, name := range append(observersWithBody, consumedObserver) {
		for {
			outcome, err := c.single(ctx, func(ctx context.Context, q querier) error {
				_, err := q.Exec(ctx, o.name("wait for observer @"+name))
				return err
			})
			if outcome == history.Committed {
				break
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return fmt.Errorf("observer %s has changes to handle %v after the last fault: %w\n%s", name, recoverWithin, err,
					rowsOf(context.WithoutCancel(ctx), c.w.addrs[0], "select * from percodb.observers"))
			}
		}
	}
	return nil
}

// derivations are the derived tables: what should be there, and what is there, both as rows of a key and a text.
var derivations = []struct{ table, want, have string }{
	{"copied", "select id::text, shop || ' ' || amount || ' ' || version from @rows", "select id::text, shop || ' ' || amount || ' ' || version from @copied"},
	{"deep", "select id::text, (2 * amount)::text from @rows", "select id::text, doubled::text from @deep"},
	{"last", "select id::text, shop || ' ' || amount from @rows", "select id::text, shop || ' ' || amount from @last"},
	{
		"sums", "select s.shop::text, count(r.id) || ' ' || coalesce(sum(r.amount), 0) from @sums s left join @rows r on r.shop = s.shop group by s.shop",
		"select shop::text, n || ' ' || amount from @sums",
	},
	{"seen", "select id::text, shop || ' ' || amount from @rows", "select id::text, shop || ' ' || amount from @seen"},
}

// The classes of anomalies of observers.
const (
	staleDerivation history.Class = "a derived table differs from a recomputation"
	deliveredTwice  history.Class = "two deliveries of one change committed"
	setAside        history.Class = "a change was set aside"
)

func (o *observed) check(ctx context.Context, c *client) (found []history.Anomaly, err error) {
	if err := o.settle(ctx, c); err != nil {
		return nil, err
	}
	deliveries := int64(0)
	err = c.final(ctx, func(ctx context.Context, q querier) error {
		found = nil
		report := func(class history.Class, format string, args ...any) {
			found = append(found, history.Anomaly{Class: class, Story: fmt.Sprintf(format, args...)})
		}
		for _, d := range derivations {
			want, err := o.read(ctx, q, d.want)
			if err != nil {
				return err
			}
			have, err := o.read(ctx, q, d.have)
			if err != nil {
				return err
			}
			if story := difference(want, have); story != "" {
				report(staleDerivation, "%s%s:\n%s", o.name("@"), d.table, story)
			}
		}
		doubles, err := o.read(ctx, q, `select observer || ' ' || id || ' at ' || change, count(*)::text from @marks
			group by observer, id, change having count(*) > 1`)
		if err != nil {
			return err
		}
		for mark, n := range doubles {
			report(deliveredTwice, "%s%s: %s times", o.name("@"), mark, n)
		}
		aside, err := o.read(ctx, q, `select observer || ' ' || key, error from percodb.observer_errors
			where observer like '@%'`)
		if err != nil {
			return err
		}
		for row, message := range aside {
			report(setAside, "%s: %s", row, message)
		}
		return q.QueryRow(ctx, o.name("select count(*) from @marks")).Scan(&deliveries)
	})
	if err != nil {
		return nil, err
	}
	o.deliveries.Add(deliveries)
	if len(found) > 0 {
		return found, nil
	}
	return nil, o.drop(ctx, c)
}

// drop drops the observers, which would be looked after in the following rounds.
func (o *observed) drop(ctx context.Context, c *client) error {
	for _, name := range append(observersWithBody, consumedObserver) {
		err := c.final(ctx, func(ctx context.Context, q querier) error {
			_, err := q.Exec(ctx, o.name("drop observer if exists @"+name))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the rows of a query with two columns.
func (o *observed) read(ctx context.Context, q querier, query string) (map[string]string, error) {
	rows, err := q.Query(ctx, o.name(query))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		all[key] = value
	}
	return all, rows.Err()
}

// difference describes the rows that differ, "" if none does.
func difference(want, have map[string]string) string {
	story := ""
	for key, value := range want {
		if got, ok := have[key]; !ok {
			story += fmt.Sprintf("%s (%s) is missing\n", key, value)
		} else if got != value {
			story += fmt.Sprintf("%s is %s, should be %s\n", key, got, value)
		}
	}
	for key, value := range have {
		if _, ok := want[key]; !ok {
			story += fmt.Sprintf("%s (%s) should not be there\n", key, value)
		}
	}
	return story
}
