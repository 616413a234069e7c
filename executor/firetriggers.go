package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// firedTriggers is what the triggers of all tables that a statement writes share.
type firedTriggers struct {
	begun map[firedEvent]bool
	rows  map[firedRows]*RowList // that triggers name
}

type firedEvent struct {
	table uint64
	event catalog.TriggerEvents
}

type firedRows struct {
	table uint64
	event catalog.TriggerEvents
	new   bool
}

// begin notes an event of a table, and reports whether it is the first: the actions of foreign keys are a part of the statement, whose
// triggers are executed once.
func (f *firedTriggers) begin(table uint64, event catalog.TriggerEvents) bool {
	e := firedEvent{table, event}
	if f.begun[e] {
		return false
	}
	if f.begun == nil {
		f.begun = map[firedEvent]bool{}
	}
	f.begun[e] = true
	return true
}

// release forgets a run.
func (f *firedTriggers) release() (err error) {
	for _, rows := range f.rows {
		err = firstError(err, rows.Close())
	}
	*f = firedTriggers{}
	return err
}

// collectRows prepares the lists of rows that the triggers for an event name.
func (g *triggers) collectRows(event catalog.TriggerEvents) {
	for i := range g.plan.List {
		t := &g.plan.List[i]
		if t.Events&event == 0 || !t.Fires(g.ex.rt.Replica) {
			continue
		}
		if t.OldTable != "" {
			g.collect(firedRows{g.table.ID, event, false})
		}
		if t.NewTable != "" {
			g.collect(firedRows{g.table.ID, event, true})
		}
	}
}

func (g *triggers) collect(key firedRows) {
	f := &g.ex.fired
	if f.rows[key] != nil {
		return
	}
	if f.rows == nil {
		f.rows = map[firedRows]*RowList{}
	}
	columns := make([]planner.Column, len(g.fields))
	for i, ord := range g.fields {
		columns[i] = planner.Column{Name: g.table.Columns[ord].Name, Type: g.table.Columns[ord].Type}
	}
	f.rows[key] = NewRowList(columns, &Runtime{Env: g.ex.rt.Env, TempDir: g.ex.rt.TempDir, MemoryLimitBytes: g.ex.rt.MemoryLimitBytes})
}

// note adds a row to the list that triggers name.
func (g *triggers) note(event catalog.TriggerEvents, row types.Row, new bool) error {
	list := g.ex.fired.rows[firedRows{g.table.ID, event, new}]
	if row == nil || list == nil {
		return nil
	}
	fields := make(types.Row, len(g.fields))
	for i, ord := range g.fields {
		fields[i] = row[ord]
	}
	return list.Add(fields)
}

// written notes a row for the triggers after it.
func (g *triggers) written(event catalog.TriggerEvents, old, new types.Row) error {
	if g == nil {
		return nil
	}
	if g.above != nil {
		if err := g.above(event, old, new); err != nil {
			return err
		}
	}
	if g.names {
		if err := g.note(event, old, false); err != nil {
			return err
		}
		if err := g.note(event, new, true); err != nil {
			return err
		}
	}
	if !g.after {
		return nil
	}
	g.fill(old, new)
	for first := 0; first < len(g.plan.List); first += queuedTriggers {
		which, err := g.selectAfter(event, first)
		if which == 0 || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		g.entry[queuedEvent], g.entry[queuedFirst], g.entry[queuedWhich] = types.Int(int64(event)), types.Int(int64(first)), types.Int(which)
		if err := g.queue.Add(g.entry); err != nil {
			return err
		}
	}
	return nil
}

// selectAfter returns which of the triggers from first are to be executed after the row that pair has, one bit each. Those that are deferred are
// put off instead.
func (g *triggers) selectAfter(event catalog.TriggerEvents, first int) (which int64, err error) {
	for i := first; i < min(first+queuedTriggers, len(g.plan.List)); i++ {
		t := &g.plan.List[i]
		if !g.selects(t, event, false, true) {
			continue
		}
		ok, err := g.ex.holds(t.When, g.pair)
		if err != nil {
			return 0, err
		}
		switch {
		case !ok:
		case t.Deferrable && g.ex.rt.Deferred.defers(t.OID, t.Deferred):
			old, new := g.halves(event, g.pair)
			if err := g.ex.rt.Deferred.addCall(g, t, event, old, new); err != nil {
				return 0, err
			}
		default:
			which |= 1 << (i - first)
		}
	}
	return which, nil
}

// halves returns the old row and the new one of a pair, nil where the event has none.
func (g *triggers) halves(event catalog.TriggerEvents, pair types.Row) (old, new types.Row) {
	width := len(g.table.Columns)
	if event != catalog.TriggerInsert {
		old = pair[:width]
	}
	if event != catalog.TriggerDelete {
		new = pair[width:]
	}
	return old, new
}

// fireAfter executes the triggers after the rows, and those after the statement, of all tables that the statement has written: own has those of
// the changes of its plan, others are of the actions of foreign keys.
func (ex *execution) fireAfter(ctx context.Context, own ...*triggers) error {
	list := append(own, ex.keys.triggers()...)
	for i, g := range list {
		if g == nil {
			continue
		}
		if err := g.afterRows(ctx); err != nil {
			return err
		}
		for n := len(g.events) - 1; n >= 0; n-- {
			if event := g.events[n]; g.begun&event != 0 && !again(list[i+1:], g.table.ID, event) {
				if err := g.statement(ctx, event, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// again reports whether triggers further on in the list are for an event of the same table, which are executed then.
func again(list []*triggers, table uint64, event catalog.TriggerEvents) bool {
	for _, g := range list {
		if g != nil && g.table.ID == table && g.begun&event != 0 {
			return true
		}
	}
	return false
}

// afterRows executes the triggers after the rows.
func (g *triggers) afterRows(ctx context.Context) error {
	for {
		entry, err := g.queue.Next()
		if entry == nil || err != nil {
			return err
		}
		if err := g.ex.tick(ctx); err != nil {
			return err
		}
		event := catalog.TriggerEvents(entry[queuedEvent].Int())
		first, which := int(entry[queuedFirst].Int()), entry[queuedWhich].Int()
		old, new := g.halves(event, entry[queuedColumns:])
		before, after := g.datum(old), g.datum(new)
		for i := first; which != 0; i, which = i+1, which>>1 {
			if which&1 == 0 {
				continue
			}
			if _, err := g.run(ctx, &g.plan.List[i], event, before, after); err != nil {
				return err
			}
		}
	}
}

// FireStatementTriggers executes the triggers of a table for a statement that has no rows: TRUNCATE.
func FireStatementTriggers(ctx context.Context, rt *Runtime, t *catalog.TableDescriptor, plan *planner.Triggers, event catalog.TriggerEvents, before bool) error {
	if plan == nil {
		return nil
	}
	ex := &execution{}
	ex.bind(rt)
	defer ex.unbind()
	ex.ev.Ctx = ctx
	return newTriggers(ex, t, plan, event).statement(ctx, event, before)
}
