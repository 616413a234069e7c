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
	// RunTrigger returns what the function does: of a trigger before a row, the row to go on with, or NULL.
	RunTrigger(ctx context.Context, c *TriggerCall) (types.Datum, error)
	// RowsChanged counts the rows that statements of the session have changed: it grows while a function changes rows.
	RowsChanged() uint64
}

// TriggerCall is an event for which the function of a trigger is executed.
type TriggerCall struct {
	Table   *catalog.TableDescriptor
	Trigger *planner.Trigger
	Row     types.Type // of the table
	Event   catalog.TriggerEvents
	// Old and New are NULL where the event has none, or where the trigger is of the statement.
	Old, New types.Datum
	// Deferred: no statement is being executed that has caused the event.
	Deferred bool
	// Settle writes what the statement has changed so far. It is called before a statement or a subtransaction of the function begins: these see
	// the rows that have been processed. nil: all is written.
	Settle func(ctx context.Context) error
	// OldRows and NewRows are those of the statement, as far as the trigger names them.
	OldRows, NewRows *RowList
}

// triggers executes the triggers of a table that a statement writes: those before the statement and before each row as it goes on, the
// others when all is written. A nil one has none.
type triggers struct {
	ex     *execution
	table  *catalog.TableDescriptor
	plan   *planner.Triggers
	events []catalog.TriggerEvents // of the statement, in the order in which triggers before it are executed
	begun  catalog.TriggerEvents   // those whose triggers before the statement have been executed
	fields []int                   // ordinals of the columns that the row type has
	entry  types.Row               // of the queue: the event, the first of some triggers, which of them, then pair
	pair   types.Row               // the old full row, then the new one
	queue  RowStore                // for the triggers after rows
	after  bool                    // there are triggers after rows
	names  bool                    // a trigger names the rows of the statement
	writes bool                    // there are triggers before rows
	sink   *writeSink              // of the statement's changes of the table
	settle func(ctx context.Context) error
	// bound is the condition of rows of the table, a partition: triggers of a partitioned table before INSERT must not break it. nil: not checked.
	bound *planner.PartitionCheck
	// above takes what happens to rows of a partition, for the triggers of the partitioned table; nil: these name no rows.
	above func(event catalog.TriggerEvents, old, new types.Row) error
}

// The columns of the queue before those of the rows.
const (
	queuedEvent = iota
	queuedFirst
	queuedWhich
	queuedColumns
)

// queuedTriggers is how many triggers an entry of the queue can tell.
const queuedTriggers = 60

// newTriggers prepares the triggers of a table; nil if there are none.
func newTriggers(ex *execution, t *catalog.TableDescriptor, plan *planner.Triggers, events ...catalog.TriggerEvents) *triggers {
	if plan == nil {
		return nil
	}
	g := &triggers{ex: ex, table: t, plan: plan, events: events, entry: make(types.Row, queuedColumns+2*len(t.Columns))}
	g.pair = g.entry[queuedColumns:]
	columns := make([]planner.Column, queuedColumns, len(g.entry))
	for i := range columns {
		columns[i].Type = types.TInt8
	}
	for range 2 {
		for i := range t.Columns {
			columns = append(columns, planner.Column{Name: t.Columns[i].Name, Type: t.Columns[i].Type})
		}
	}
	g.queue.init(ex, columns)
	for i := range t.Columns {
		if !t.Columns[i].Hidden {
			g.fields = append(g.fields, i)
		}
	}
	for i := range plan.List {
		t := &plan.List[i]
		g.after = g.after || !t.Before && t.Row
		g.writes = g.writes || t.Before && t.Row
		g.names = g.names || t.OldTable != "" || t.NewTable != ""
	}
	if !ex.together { // Then no change sees those of others.
		g.settle = g.settleRows
	}
	return g
}

// settleRows is TriggerCall.Settle.
func (g *triggers) settleRows(ctx context.Context) error {
	if g.sink == nil {
		return nil
	}
	return g.sink.flush(ctx)
}

// release forgets a run.
func (g *triggers) release() error {
	if g == nil {
		return nil
	}
	g.begun = 0
	return g.queue.Reset()
}

// selects reports whether a trigger is executed for an event.
func (g *triggers) selects(t *planner.Trigger, event catalog.TriggerEvents, before, row bool) bool {
	return t.Events&event != 0 && t.Before == before && t.Row == row && (event != catalog.TriggerUpdate || t.Updates) && t.Fires(g.ex.rt.Replica)
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
	runner := g.ex.rt.Triggers
	if runner == nil {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "triggers are not available here")
	}
	c := &TriggerCall{Table: g.table, Trigger: t, Row: g.plan.Row, Event: event, Old: old, New: new}
	if t.Before && t.Row {
		c.Settle = g.settle
	}
	if t.OldTable != "" {
		c.OldRows = g.ex.fired.rows[firedRows{g.table.ID, event, false}]
	}
	if t.NewTable != "" {
		c.NewRows = g.ex.fired.rows[firedRows{g.table.ID, event, true}]
	}
	return runner.RunTrigger(ctx, c)
}

// begin executes the triggers before the statement.
func (g *triggers) begin(ctx context.Context) error {
	if g == nil {
		return nil
	}
	for _, event := range g.events {
		if err := g.beginEvent(ctx, event); err != nil {
			return err
		}
	}
	return nil
}

// beginEvent executes the triggers before the statement for one event, unless they have been.
func (g *triggers) beginEvent(ctx context.Context, event catalog.TriggerEvents) error {
	if g.begun&event != 0 {
		return nil
	}
	g.begun |= event
	if g.names {
		g.collectRows(event)
	}
	if !g.ex.fired.begin(g.table.ID, event) {
		return nil
	}
	return g.statement(ctx, event, true)
}

func (g *triggers) statement(ctx context.Context, event catalog.TriggerEvents, before bool) error {
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if !g.selects(t, event, before, false) {
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
	if g == nil || !g.writes {
		return true, nil
	}
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if !g.selects(t, event, true, true) {
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
		if event == catalog.TriggerInsert && t.Inherited != 0 {
			if err := g.requireStay(t, new); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// requireStay fails if a trigger of a partitioned table has changed a row so that it does not belong to the partition any more.
func (g *triggers) requireStay(t *planner.Trigger, row types.Row) error {
	if ok, err := g.bound.Holds(&g.ex.ev, row); ok || err != nil {
		return err
	}
	return pgerror.New(pgerror.FeatureNotSupported, "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported").
		WithDetail("Before executing trigger \"%s\", row was to be in partition \"%s.%s\".", t.Name, g.table.Schema, g.table.Name)
}
