package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// insteadOf executes the INSTEAD OF triggers of a view. Nothing is written but what they write.
type insteadOf struct {
	modify
	node     *planner.InsteadOf
	gathered rowBuffer // the input, which does not see what the triggers write
	full     types.Row // the row that the triggers leave, followed by the rest of the input row
}

func newInsteadOf(ex *execution, input Operator, n *planner.InsteadOf) *insteadOf {
	o := &insteadOf{node: n, gathered: rowBuffer{mem: &ex.mem}, full: make(types.Row, len(n.Input.Columns()))}
	o.init(ex, input, newTableWriter(ex, n.View, nil, nil, nil, nil), n.Returning)
	o.views = n.Views
	o.triggers = newTriggers(ex, n.View, n.Triggers, n.Event)
	return o
}

func (o *insteadOf) Close() error {
	o.gathered.release()
	return o.modify.Close()
}

func (o *insteadOf) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *insteadOf) run(ctx context.Context) error {
	if err := o.ex.drain(ctx, o.input, &o.gathered); err != nil {
		return err
	}
	for _, row := range o.gathered.rows {
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.take(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// take executes the triggers for a row. One that returns NULL has done nothing.
func (o *insteadOf) take(ctx context.Context, row types.Row) error {
	copy(o.full, row)
	width := len(o.node.View.Columns)
	var old, new types.Row
	if o.node.Event != catalog.TriggerInsert {
		old = row[:width]
	}
	switch o.node.Event {
	case catalog.TriggerInsert:
		new = o.full[:width]
	case catalog.TriggerUpdate:
		new = o.full[:width]
		if err := o.ex.evalAll(o.node.Set, row, new); err != nil {
			return err
		}
	}
	if ok, err := o.triggers.before(ctx, o.node.Event, old, new); !ok || err != nil {
		return err
	}
	return o.changed(ctx, o.full)
}
