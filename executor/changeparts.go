package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// changeParts is INSERT, UPDATE or DELETE of a partitioned table.
type changeParts struct {
	modify
	parts    *parts
	locker   rowLocker
	policies []planner.PolicyCheck
	event    catalog.TriggerEvents
	set      []expr.Scalar
	newRow   types.Row
	full     types.Row // for RETURNING
	rest     types.Row // what the row being processed has behind the table's columns
	gather   bool
	gathered rowBuffer
}

// newInsertParts makes an INSERT.
func newInsertParts(ex *execution, input Operator, n *planner.Insert) *changeParts {
	o := newChangeParts(ex, input, n.Table, n.Parts, n.Returning)
	o.policies, o.views, o.event = n.Policies, n.Views, catalog.TriggerInsert
	o.gather, o.gathered = n.Gather, rowBuffer{mem: &ex.mem}
	o.parts.tune = func(w *tableWriter, l *planner.Leaf) {
		w.sink.direct = n.Direct
		if l.OnConflict != nil && !n.Direct && !ex.together {
			w.sink.pending = map[string][]byte{}
		}
	}
	events := []catalog.TriggerEvents{catalog.TriggerInsert}
	if n.OnConflict != nil && n.OnConflict.DoUpdate {
		events = append(events, catalog.TriggerUpdate)
	}
	o.triggers = newTriggers(ex, n.Table, n.Triggers, events...)
	return o
}

// newUpdateParts makes an UPDATE.
func newUpdateParts(ex *execution, input Operator, n *planner.Update) *changeParts {
	o := newChangeParts(ex, input, n.Table, n.Parts, n.Returning)
	o.policies, o.views, o.event, o.set = n.Policies, n.Views, catalog.TriggerUpdate, n.Set
	o.newRow = make(types.Row, len(n.Table.Columns))
	o.locker = newRowLocker(ex, input, n.Table, n.Input.Properties(), false)
	o.locker.parts = n.Parts
	direct := n.Direct && !n.Parts.Moves
	once := n.Input.Properties().EachRowOnce
	o.parts.tune = func(w *tableWriter, _ *planner.Leaf) { w.sink.direct = direct && !w.takesKeys() }
	o.parts.once = once
	o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerUpdate)
	return o
}

// newDeleteParts makes a DELETE.
func newDeleteParts(ex *execution, input Operator, n *planner.Delete) *changeParts {
	o := newChangeParts(ex, input, n.Table, n.Parts, n.Returning)
	o.event = catalog.TriggerDelete
	o.locker = newRowLocker(ex, input, n.Table, n.Input.Properties(), false)
	o.locker.parts = n.Parts
	o.parts.tune = func(w *tableWriter, _ *planner.Leaf) { w.sink.direct = n.Direct }
	o.parts.once = n.Input.Properties().EachRowOnce
	o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerDelete)
	return o
}

func newChangeParts(ex *execution, input Operator, t *catalog.TableDescriptor, plan *planner.Parts, returning []expr.Scalar) *changeParts {
	o := &changeParts{full: make(types.Row, 0, len(t.Columns)+1)}
	o.init(ex, input, newTableWriter(ex, t, nil, nil, nil, nil), returning)
	o.parts = newParts(&o.modify, t, plan)
	o.parts.report = o.written
	return o
}

// written counts a row that was written, and computes RETURNING over it and what the input has behind the row.
func (o *changeParts) written(ctx context.Context, row types.Row, t *catalog.TableDescriptor) error {
	width := len(row) - 1
	o.full = append(o.full[:0], row[:width]...)
	if len(o.rest) > 0 {
		o.full = append(o.full, o.rest[:len(o.rest)-1]...)
	}
	o.full = append(o.full, types.Int(int64(t.OID())))
	return o.changed(ctx, o.full)
}

func (o *changeParts) Close() error {
	o.gathered.release()
	o.locker.release()
	o.parts.release()
	return o.modify.Close()
}

func (o *changeParts) Next(ctx context.Context) (types.Row, error) {
	if o.event == catalog.TriggerInsert {
		return o.next(ctx, o.insertAll)
	}
	return o.next(ctx, o.changeAll)
}

func (o *changeParts) insertAll(ctx context.Context) error {
	next := o.input.Next
	if o.gather {
		if err := o.ex.drain(ctx, o.input, &o.gathered); err != nil {
			return err
		}
		at := 0
		next = func(context.Context) (types.Row, error) {
			if at == len(o.gathered.rows) {
				return nil, nil
			}
			at++
			return o.gathered.rows[at-1], nil
		}
	}
	for {
		row, err := next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			return o.parts.settle(ctx)
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.pass(o.policies, row, false); err != nil {
			return err
		}
		if err := o.parts.insert(ctx, row); err != nil {
			return err
		}
	}
}

// changeAll updates or deletes the rows of the input.
func (o *changeParts) changeAll(ctx context.Context) error {
	width := len(o.parts.table.Columns)
	o.locker.reset()
	for {
		row, err := o.locker.next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		o.rest = row[width:]
		l, err := o.parts.of(row[len(row)-1], row)
		if err != nil {
			return err
		}
		if again, err := l.repeated(l.old); again || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if o.event == catalog.TriggerDelete {
			if ok, err := l.remove(ctx); err != nil {
				return err
			} else if ok {
				l.affected++
				if err := o.changed(ctx, row); err != nil {
					return err
				}
			}
			continue
		}
		if err := o.ex.evalAll(o.set, row, o.newRow); err != nil {
			return err
		}
		if err := o.pass(o.policies, o.newRow, false); err != nil {
			return err
		}
		if err := o.parts.update(ctx, l, o.newRow); err != nil {
			return err
		}
	}
}

// partKey appends the primary key of a row of a partitioned table, in the leaf that has the OID at the end of the row.
func partKey(dst []byte, plan *planner.Parts, row types.Row) ([]byte, error) {
	l := &plan.Leaves[plan.ByOID[row[len(row)-1].Int()]]
	own := make(types.Row, len(l.FromRoot))
	for i, ord := range l.FromRoot {
		if ord >= 0 {
			own[i] = row[ord]
		}
	}
	key, _, err := rowenc.AppendKey(dst, l.Table, &l.Table.Primary, own)
	return key, err
}
