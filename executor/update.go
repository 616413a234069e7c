package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// update rewrites rows. Unlike PostgreSQL, which checks uniqueness row by row, it checks at the
// statement's end: UPDATE t SET id = id + 1 succeeds whatever the order of the rows.
type update struct {
	modify
	node   *planner.Update
	locker rowLocker
	set    []expr.Scalar
	newRow types.Row
	full   types.Row // the new row followed by the rest of the input row, for RETURNING
	// policies are the conditions of new rows.
	policies []planner.PolicyCheck
}

func newUpdate(ex *execution, input Operator, n *planner.Update) Operator {
	if n.Parts != nil {
		return newUpdateParts(ex, input, n)
	}
	input = gatherFor(ex, input, n.Input, n.Triggers)
	w := newTableWriter(ex, n.Table, n.Checks, n.Changed, n.Observed, n.Indexed)
	w.keys, w.generated, w.bound = ex.queueFor(n.References), n.Generated, n.Bound
	w.sink.direct = n.Direct && (n.Input.Properties().AtMostOne || !w.takesKeys())
	o := &update{
		node:   n,
		locker: newRowLocker(ex, input, n.Table, n.Input.Properties(), n.LockedBelow),
		set:    n.Set, policies: n.Policies,
		full: make(types.Row, len(n.Input.Columns())),
	}
	o.init(ex, input, w, n.Returning)
	o.views = n.Views
	o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerUpdate)
	o.newRow = o.full[:len(n.Table.Columns):len(n.Table.Columns)]
	if !n.Input.Properties().EachRowOnce {
		o.seen = newRowSet(w)
	}
	o.feedFrom(n.Fed)
	return o
}

func (o *update) Close() error {
	o.locker.release()
	return o.modify.Close()
}

func (o *update) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *update) run(ctx context.Context) error {
	if done, err := o.readFed(ctx, o.divided(), o.node.Workers(o.ex.rt.Parallel)); done || err != nil {
		return err
	}
	o.locker.reset()
	for {
		row, err := o.locker.next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.take(ctx, row); err != nil {
			return err
		}
	}
}

// take updates a row, which row begins with.
func (o *update) take(ctx context.Context, row types.Row) error {
	width := len(o.newRow)
	old := row[:width]
	if again, err := o.repeated(old); again || err != nil {
		return err
	}
	if err := o.ex.evalAll(o.set, row, o.newRow); err != nil {
		return err
	}
	if ok, err := o.triggers.before(ctx, catalog.TriggerUpdate, old, o.newRow); !ok || err != nil {
		return err
	}
	if err := o.writer.unmodified(ctx, old, "updated"); err != nil {
		return err
	}
	if err := o.writer.generate(o.newRow); err != nil {
		return err
	}
	if err := o.pass(o.policies, o.newRow, false); err != nil {
		return err
	}
	if err := o.writer.check(ctx, o.newRow); err != nil {
		return err
	}
	if err := o.writer.update(ctx, old, o.newRow); err != nil {
		return err
	}
	if err := o.triggers.written(catalog.TriggerUpdate, old, o.newRow); err != nil {
		return err
	}
	copy(o.full[width:], row[width:])
	return o.changed(ctx, o.full)
}

// divided describes how workers update.
func (o *update) divided() divided {
	if o.feed == nil {
		return divided{}
	}
	o.feed.sink = func(row types.Row) error { return o.take(o.ex.ev.Ctx, row) }
	return divided{feed: o.feed, part: o.part, absorb: func(_ context.Context, from part) error { return o.absorb(&from.(*update).modify) }}
}

// part updates a part of the rows in a worker's execution.
func (o *update) part(ex *execution) (part, error) {
	input, err := ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w := newUpdate(ex, input, o.node).(*update)
	w.writer.sink.direct = false
	return w, nil
}

// rowSet contains the primary keys of the rows that a statement has processed. A nil set is empty.
type rowSet struct {
	w    *tableWriter
	keys keySet
	buf  []byte
	key  types.Row
}

func newRowSet(w *tableWriter) *rowSet {
	s := &rowSet{w: w, key: make(types.Row, 1)}
	s.keys.cols = wholeRow([]types.Type{types.TBytea})
	s.keys.keys.mem = &w.ex.mem
	return s
}

// add puts a row into the set and reports whether it was there.
func (s *rowSet) add(row types.Row) (again bool, err error) {
	if s == nil {
		return false, nil
	}
	if s.buf, _, err = rowenc.AppendKey(s.buf[:0], s.w.table, &s.w.table.Primary, row); err != nil {
		return false, err
	}
	s.key[0] = types.Bytes(s.buf)
	_, added, err := s.keys.add(s.key)
	return !added, err
}

func (s *rowSet) release() {
	if s != nil {
		s.keys.release()
	}
}
