package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// deleteRows removes rows and their index entries.
type deleteRows struct {
	modify
	node   *planner.Delete
	locker rowLocker
	width  int
}

func newDelete(ex *execution, input Operator, n *planner.Delete) Operator {
	if n.Parts != nil {
		return newDeleteParts(ex, input, n)
	}
	input = gatherFor(ex, input, n.Input, n.Triggers)
	w := newTableWriter(ex, n.Table, nil, nil, n.Observed, n.Indexed)
	w.sink.direct = n.Direct
	w.keys = ex.queueFor(n.References)
	o := &deleteRows{
		node: n, locker: newRowLocker(ex, input, n.Table, n.Input.Properties(), n.LockedBelow), width: len(n.Table.Columns),
	}
	o.init(ex, input, w, n.Returning)
	o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerDelete)
	if !n.Input.Properties().EachRowOnce {
		o.seen = newRowSet(w)
	}
	o.feedFrom(n.Fed)
	return o
}

func (o *deleteRows) Close() error {
	o.locker.release()
	return o.modify.Close()
}

func (o *deleteRows) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *deleteRows) run(ctx context.Context) error {
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

// take deletes a row, which row begins with.
func (o *deleteRows) take(ctx context.Context, row types.Row) error {
	old := row[:o.width]
	if again, err := o.repeated(old); again || err != nil {
		return err
	}
	if ok, err := o.triggers.before(ctx, catalog.TriggerDelete, old, nil); !ok || err != nil {
		return err
	}
	if err := o.writer.unmodified(ctx, old, "deleted"); err != nil {
		return err
	}
	if err := o.writer.delete(ctx, old); err != nil {
		return err
	}
	if err := o.triggers.written(catalog.TriggerDelete, old, nil); err != nil {
		return err
	}
	return o.changed(ctx, row)
}

// divided describes how workers delete.
func (o *deleteRows) divided() divided {
	if o.feed == nil {
		return divided{}
	}
	o.feed.sink = func(row types.Row) error { return o.take(o.ex.ev.Ctx, row) }
	return divided{feed: o.feed, part: o.part, absorb: func(_ context.Context, from part) error { return o.absorb(&from.(*deleteRows).modify) }}
}

// part deletes a part of the rows in a worker's execution.
func (o *deleteRows) part(ex *execution) (part, error) {
	input, err := ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w := newDelete(ex, input, o.node).(*deleteRows)
	w.writer.sink.direct = false
	return w, nil
}
