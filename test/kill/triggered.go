package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/test/history"
)

// triggered changes rows whose triggers keep an audit trail, totals, and a journal of statements, and documents and places whose constraints are
// checked when their transactions commit. In every snapshot the audit trail, the totals and the journal must say what the rows say, every document
// must be balanced, no two rows have one place, and no two bookings overlap.
type triggered struct {
	table string

	anomalies
}

const (
	triggeredRows   = 20
	triggeredGroups = 3
	placedRows      = 6
)

func (x *triggered) setup(ctx context.Context, q querier) error {
	for _, st := range []string{
		`create table @ (id int primary key, grp int not null, amount int not null, version int not null default 1)`,
		`create table @_audit (id int not null, delta int not null, present int not null)`,
		`create table @_totals (grp int primary key, n int not null, total int not null)`,
		`create table @_journal (op text not null, n int not null, delta int not null)`,
		fmt.Sprintf(`insert into @_totals select g, 0, 0 from generate_series(0, %d) g`, triggeredGroups-1),
		`create function @_count() returns trigger language plpgsql as $$ begin
			new.version := case tg_op when 'INSERT' then 1 else old.version + 1 end;
			return new; end $$`,
		`create function @_note() returns trigger language plpgsql as $$ begin
			if tg_op <> 'INSERT' then
				insert into @_audit values (old.id, -old.amount, -1);
				update @_totals set n = n - 1, total = total - old.amount where grp = old.grp;
			end if;
			if tg_op <> 'DELETE' then
				insert into @_audit values (new.id, new.amount, 1);
				update @_totals set n = n + 1, total = total + new.amount where grp = new.grp;
			end if;
			return null; end $$`,
		`create function @_sum() returns trigger language plpgsql as $$ begin
			if tg_op = 'INSERT' then
				insert into @_journal select tg_op, count(*), coalesce(sum(amount), 0) from added;
			elsif tg_op = 'DELETE' then
				insert into @_journal select tg_op, -count(*), -coalesce(sum(amount), 0) from gone;
			else
				insert into @_journal select tg_op, 0, (select coalesce(sum(amount), 0) from added) - (select coalesce(sum(amount), 0) from gone);
			end if;
			return null; end $$`,
		`create trigger a_count before insert or update on @ for each row execute function @_count()`,
		`create trigger b_note after insert or update or delete on @ for each row execute function @_note()`,
		`create trigger c_sum after insert on @ referencing new table as added for each statement execute function @_sum()`,
		`create trigger d_sum after update on @ referencing old table as gone new table as added for each statement execute function @_sum()`,
		`create trigger e_sum after delete on @ referencing old table as gone for each statement execute function @_sum()`,
		`create table @_lines (id bigserial primary key, doc int not null, amount int not null)`,
		`create index on @_lines (doc)`,
		`create function @_balance() returns trigger language plpgsql as $$ begin
			if (select coalesce(sum(amount), 0) from @_lines where doc = coalesce(new.doc, old.doc)) <> 0 then
				raise check_violation using message = 'document is not balanced';
			end if;
			return null; end $$`,
		`create constraint trigger balanced after insert or update or delete on @_lines deferrable initially deferred for each row execute function @_balance()`,
		`create table @_placed (id int primary key, place int not null unique deferrable initially deferred)`,
		fmt.Sprintf(`insert into @_placed select g, g from generate_series(1, %d) g`, placedRows),
		`create extension if not exists btree_gist`,
		`create table @_booked (id bigserial primary key, room int not null, during int4range not null, exclude using gist (room with =, during with &&))`,
	} {
		if _, err := q.Exec(ctx, name(x.table, st)); err != nil {
			return fmt.Errorf("%w, of %s", err, st)
		}
	}
	return nil
}

func (x *triggered) clients() int { return 4 }

// expected are the errors of constraints, beside those of every workload: unbalanced documents, rooms that are taken.
func (x *triggered) expected(state string) bool {
	return slices.Contains([]string{"23514", "23P01"}, state)
}

func (x *triggered) client(ctx context.Context, c *client) {
	c.expects = x.expected
	level := []string{readCommitted, repeatableRead, serializable}[c.rand.IntN(3)]
	switch c.rand.IntN(8) {
	case 0:
		var found []string
		outcome, _ := c.transaction(ctx, repeatableRead, func(ctx context.Context, q querier) error { return x.look(ctx, q, &found) })
		if outcome == history.Committed {
			x.note("trigger", found...)
		}
	case 1:
		_, _ = c.single(ctx, func(ctx context.Context, q querier) error { return x.change(ctx, c, q) })
	case 2, 3:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.balance(ctx, c, q) })
	case 4:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error { return x.swap(ctx, c, q) })
	default:
		_, _ = c.transaction(ctx, level, func(ctx context.Context, q querier) error {
			for range 1 + c.rand.IntN(3) {
				if err := x.change(ctx, c, q); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// change changes rows with triggers, in one statement.
func (x *triggered) change(ctx context.Context, c *client, q querier) error {
	id, other, grp, amount := c.rand.IntN(triggeredRows), c.rand.IntN(triggeredRows), c.rand.IntN(triggeredGroups), c.rand.IntN(100)
	exec := func(st string, args ...any) error {
		_, err := q.Exec(ctx, name(x.table, st), args...)
		return err
	}
	switch c.rand.IntN(6) {
	case 0:
		return exec(`delete from @ where id in ($1, $2)`, id, other)
	case 1:
		return exec(`update @ set grp = (grp + 1) % `+fmt.Sprint(triggeredGroups)+`, amount = amount + $1 where id between $2 and $2 + 3`, amount, id)
	case 2:
		return exec(`merge into @ t using (values ($1::int, $2::int, $3::int)) v (id, grp, amount) on t.id = v.id
			when matched and t.amount > 100 then delete when matched then update set amount = t.amount + v.amount
			when not matched then insert values (v.id, v.grp, v.amount)`, id, grp, amount)
	case 3:
		return exec(`update @ set amount = $1 where id = $2`, amount, id)
	}
	return exec(`insert into @ values ($1, $2, $3), ($1 + 100, $2, $3) on conflict (id) do update set amount = @.amount + excluded.amount, grp = excluded.grp`, id, grp, amount)
}

// balance writes lines of documents, mostly so that they are balanced when the transaction commits.
func (x *triggered) balance(ctx context.Context, c *client, q querier) error {
	doc, amount := c.rand.IntN(5), 1+c.rand.IntN(50)
	add := func(amount int) error {
		_, err := q.Exec(ctx, name(x.table, `insert into @_lines (doc, amount) values ($1, $2)`), doc, amount)
		return err
	}
	if err := add(amount); err != nil {
		return err
	}
	if c.rand.IntN(4) == 0 {
		if _, err := q.Exec(ctx, name(x.table, `delete from @_lines where doc = $1`), doc); err != nil {
			return err
		}
		return nil
	}
	if c.rand.IntN(8) == 0 { // What happens to one document alone is refused by the commit.
		return nil
	}
	return add(-amount)
}

// swap exchanges the places of two rows, one after the other, and books a room.
func (x *triggered) swap(ctx context.Context, c *client, q querier) error {
	a, b := 1+c.rand.IntN(placedRows), 1+c.rand.IntN(placedRows)
	var was, is int
	if err := q.QueryRow(ctx, name(x.table, `select place from @_placed where id = $1 for update`), a).Scan(&was); err != nil {
		return err
	}
	if err := q.QueryRow(ctx, name(x.table, `select place from @_placed where id = $1 for update`), b).Scan(&is); err != nil {
		return err
	}
	for _, row := range [][2]int{{a, is}, {b, was}} {
		if _, err := q.Exec(ctx, name(x.table, `update @_placed set place = $2 where id = $1`), row[0], row[1]); err != nil {
			return err
		}
	}
	from := c.rand.IntN(40)
	if c.rand.IntN(3) == 0 {
		_, err := q.Exec(ctx, name(x.table, `delete from @_booked where during && int4range($1, $1 + 8)`), from)
		return err
	}
	_, err := q.Exec(ctx, name(x.table, `insert into @_booked (room, during) values ($1, int4range($2, $2 + 3))`), c.rand.IntN(2), from)
	return err
}

// look finds what must not be.
func (x *triggered) look(ctx context.Context, q querier, found *[]string) error {
	*found = nil
	for what, query := range map[string]string{
		"rows differ from the audit trail":  `select count(*) from (select id, amount, 1 as present from @) r full join (select id, sum(delta) as amount, sum(present) as present from @_audit group by id having sum(present) <> 0 or sum(delta) <> 0) a using (id, amount, present) where r.id is null or a.id is null`,
		"totals differ from the rows":       `select count(*) from @_totals t join (select grp, count(c.id) as n, coalesce(sum(amount), 0) as total from @_totals left join @ c using (grp) group by grp) r using (grp) where t.n <> r.n or t.total <> r.total`,
		"the journal differs from the rows": `select count(*) from (select sum(n) as n, sum(delta) as total from @_journal) j, (select count(*) as n, coalesce(sum(amount), 0) as total from @) r where (coalesce(j.n, 0), coalesce(j.total, 0)) <> (r.n, r.total)`,
		"rows have no version":              `select count(*) from @ where version < 1`,
		"documents are not balanced":        `select count(*) from (select doc from @_lines group by doc having sum(amount) <> 0) d`,
		"places are taken twice":            fmt.Sprintf(`select %d - count(distinct place) from @_placed where place between 1 and %d`, placedRows, placedRows),
		"bookings overlap":                  `select count(*) from @_booked a join @_booked b on a.id < b.id and a.room = b.room and a.during && b.during`,
	} {
		var n int
		if err := q.QueryRow(ctx, name(x.table, query)).Scan(&n); err != nil {
			return fmt.Errorf("%w, of %s", err, query)
		}
		if n != 0 {
			*found = append(*found, fmt.Sprintf("%s: %s (%d)", x.table, what, n))
		}
	}
	return nil
}

func (x *triggered) check(ctx context.Context, c *client) ([]history.Anomaly, error) {
	var found []string
	err := c.final(ctx, func(ctx context.Context, q querier) error { return x.look(ctx, q, &found) })
	x.note("trigger", found...)
	return x.wrong, err
}
