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
		locker: newRowLocker(ex, input, n.Table, n.Input.Properties(), n.LockedBelow), width: len(n.Table.Columns),
	}
	o.init(ex, input, w, n.Returning)
	o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerDelete)
	if !n.Input.Properties().EachRowOnce {
		o.seen = newRowSet(w)
	}
	return o
}

func (o *deleteRows) Close() error {
	o.locker.release()
	return o.modify.Close()
}

func (o *deleteRows) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *deleteRows) run(ctx context.Context) error {
	o.locker.reset()
	for {
		row, err := o.locker.next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		old := row[:o.width]
		again, err := o.repeated(old)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if ok, err := o.triggers.before(ctx, catalog.TriggerDelete, old, nil); !ok || err != nil {
			if err != nil {
				return err
			}
			continue
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
		if err := o.changed(ctx, row); err != nil {
			return err
		}
	}
}
