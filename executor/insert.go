package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// insert stores the rows of its input.
type insert struct {
	modify
	row      types.Row   // the row to be stored
	conflict *onConflict // nil: a conflict is an error
	policies []planner.PolicyCheck
}

func newInsert(ex *execution, input Operator, n *planner.Insert) (Operator, error) {
	if n.Parts != nil {
		return newInsertParts(ex, input, n), nil
	}
	var changed []int
	if n.OnConflict != nil {
		changed = n.OnConflict.Changed
	}
	w := newTableWriter(ex, n.Table, n.Checks, changed, n.Observed, n.Indexed)
	w.sink.direct = n.Direct
	w.keys, w.generated, w.bound = ex.queueFor(n.References), n.Generated, n.Bound
	o := &insert{
		row:      make(types.Row, len(n.Table.Columns)),
		policies: n.Policies,
	}
	if n.Gather { // The input may read the table.
		input = gather(ex, input, n.Input)
	} else {
		input = gatherFor(ex, input, n.Input, n.Triggers)
	}
	o.init(ex, input, w, n.Returning)
	o.marks = n.OnConflict != nil && n.OnConflict.Marks
	o.views = n.Views
	if o.triggers = newTriggers(ex, n.Table, n.Triggers, catalog.TriggerInsert); o.triggers != nil && n.OnConflict != nil && n.OnConflict.DoUpdate {
		o.triggers.events = append(o.triggers.events, catalog.TriggerUpdate)
	}
	if o.triggers != nil {
		o.triggers.bound = n.Bound
	}
	if n.OnConflict != nil && !n.Direct && !ex.together {
		w.sink.pending = map[string][]byte{}
	}
	if n.OnConflict != nil {
		var err error
		if o.conflict, err = newOnConflict(&o.modify, n.Table, n.OnConflict); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *insert) Close() error {
	if o.conflict != nil {
		o.conflict.release()
	}
	return o.modify.Close()
}

func (o *insert) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *insert) run(ctx context.Context) error {
	for {
		row, err := o.input.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			return o.finish(ctx)
		}
		if err := o.take(ctx, row); err != nil {
			return err
		}
	}
}

// take checks a row and stores it, or puts it with those whose conflicts are looked for together.
func (o *insert) take(ctx context.Context, row types.Row) error {
	if err := o.ex.tick(ctx); err != nil {
		return err
	}
	copy(o.row, row)
	if err := o.writer.fillRowID(ctx, o.row); err != nil {
		return err
	}
	if ok, err := o.triggers.before(ctx, catalog.TriggerInsert, nil, o.row); !ok || err != nil {
		return err
	}
	if err := o.writer.generate(o.row); err != nil {
		return err
	}
	if err := o.pass(o.policies, o.row, false); err != nil {
		return err
	}
	if err := o.writer.check(ctx, o.row); err != nil {
		return err
	}
	if o.conflict != nil {
		return o.conflict.add(ctx, o.row)
	}
	if err := o.writer.insert(ctx, o.row); err != nil {
		return err
	}
	if err := o.triggers.written(catalog.TriggerInsert, nil, o.row); err != nil {
		return err
	}
	return o.changed(ctx, o.row)
}

func (o *insert) finish(ctx context.Context) error {
	if o.conflict != nil {
		return o.conflict.settle(ctx)
	}
	return nil
}
