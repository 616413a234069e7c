package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// TriggerRunner executes the functions of triggers.
type TriggerRunner interface {
	// RunTrigger executes a trigger of a table, whose rows have type row. old and new are NULL where the event has none, or where the trigger
	// is of the statement. It returns what the function does: of a trigger before a row, the row to go on with, or NULL.
	RunTrigger(ctx context.Context, t *catalog.TableDescriptor, g *planner.Trigger, row types.Type, event catalog.TriggerEvents, old, new types.Datum) (types.Datum, error)
}

// triggers executes the triggers of a table that a statement writes: those before the statement and before each row as it goes on, the
// others when all is written. A nil one has none.
type triggers struct {
	ex     *execution
	table  *catalog.TableDescriptor
	plan   *planner.Triggers
	events []catalog.TriggerEvents // of the statement, in the order in which triggers before it are executed
	fields []int                   // ordinals of the columns that the row type has
	pair   types.Row               // the old full row, then the new one
	queue  rowBuffer               // such pairs for the triggers after rows
	queued []catalog.TriggerEvents
	after  bool // there are triggers after rows
}

// newTriggers prepares the triggers of a table; nil if there are none.
func newTriggers(ex *execution, t *catalog.TableDescriptor, plan *planner.Triggers, events ...catalog.TriggerEvents) *triggers {
	if plan == nil {
		return nil
	}
	g := &triggers{ex: ex, table: t, plan: plan, events: events, pair: make(types.Row, 2*len(t.Columns)), queue: rowBuffer{mem: &ex.mem}}
	for i := range t.Columns {
		if !t.Columns[i].Hidden {
			g.fields = append(g.fields, i)
		}
	}
	for i := range plan.List {
		g.after = g.after || !plan.List[i].Before && plan.List[i].Row
	}
	return g
}

// release forgets a run.
func (g *triggers) release() {
	if g != nil {
		g.queue.release()
		g.queued = nil
	}
}

// selects reports whether a trigger is for an event.
func selects(t *planner.Trigger, event catalog.TriggerEvents, before, row bool) bool {
	return t.Events&event != 0 && t.Before == before && t.Row == row && (event != catalog.TriggerUpdate || t.Updates)
}

// datum makes the value of a full row; nil is NULL.
func (g *triggers) datum(row types.Row) types.Datum {
	if row == nil {
		return types.Null
	}
	fields := make(types.Row, len(g.fields))
	for i, ord := range g.fields {
		fields[i] = row[ord].Clone()
	}
	return g.plan.Row.Def.Row(fields)
}

// fill puts the rows of an event side by side for conditions.
func (g *triggers) fill(old, new types.Row) types.Row {
	width := len(g.table.Columns)
	clear(g.pair)
	copy(g.pair[:width], old)
	copy(g.pair[width:], new)
	return g.pair
}

func (g *triggers) run(ctx context.Context, t *planner.Trigger, event catalog.TriggerEvents, old, new types.Datum) (types.Datum, error) {
	if g.ex.rt.Triggers == nil {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "triggers are not available here")
	}
	return g.ex.rt.Triggers.RunTrigger(ctx, g.table, t, g.plan.Row, event, old, new)
}

// begin executes the triggers before the statement.
func (g *triggers) begin(ctx context.Context) error {
	if g == nil {
		return nil
	}
	for _, event := range g.events {
		if err := g.statement(ctx, event, true); err != nil {
			return err
		}
	}
	return nil
}

func (g *triggers) statement(ctx context.Context, event catalog.TriggerEvents, before bool) error {
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if !selects(t, event, before, false) {
			continue
		}
		if ok, err := g.ex.holds(t.When, g.fill(nil, nil)); !ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := g.run(ctx, t, event, types.Null, types.Null); err != nil {
			return err
		}
	}
	return nil
}

// before executes the triggers before a row, which change new. It reports whether the row is to be written.
func (g *triggers) before(ctx context.Context, event catalog.TriggerEvents, old, new types.Row) (bool, error) {
	if g == nil {
		return true, nil
	}
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if !selects(t, event, true, true) {
			continue
		}
		if ok, err := g.ex.holds(t.When, g.fill(old, new)); !ok || err != nil {
			if err != nil {
				return false, err
			}
			continue
		}
		d, err := g.run(ctx, t, event, g.datum(old), g.datum(new))
		if err != nil || d.IsNull() {
			return false, err
		}
		if new == nil {
			continue
		}
		fields := d.Record().Fields
		for j, ord := range g.fields {
			new[ord] = fields[j]
		}
	}
	return true, nil
}

// written notes a row for the triggers after it.
func (g *triggers) written(event catalog.TriggerEvents, old, new types.Row) error {
	if g == nil || !g.after {
		return nil
	}
	g.queued = append(g.queued, event)
	return g.queue.add(g.fill(old, new))
}

// finish executes the triggers after the rows, and then those after the statement.
func (g *triggers) finish(ctx context.Context) error {
	if g == nil {
		return nil
	}
	width := len(g.table.Columns)
	for n, event := range g.queued {
		var old, new types.Row
		if event != catalog.TriggerInsert {
			old = g.queue.rows[n][:width]
		}
		if event != catalog.TriggerDelete {
			new = g.queue.rows[n][width:]
		}
		if err := g.afterRow(ctx, event, old, new); err != nil {
			return err
		}
	}
	g.release()
	for i := len(g.events) - 1; i >= 0; i-- {
		if err := g.statement(ctx, g.events[i], false); err != nil {
			return err
		}
	}
	return nil
}

func (g *triggers) afterRow(ctx context.Context, event catalog.TriggerEvents, old, new types.Row) error {
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if !selects(t, event, false, true) {
			continue
		}
		if ok, err := g.ex.holds(t.When, g.fill(old, new)); !ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := g.run(ctx, t, event, g.datum(old), g.datum(new)); err != nil {
			return err
		}
	}
	return nil
}
