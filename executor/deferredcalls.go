package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// deferredCall is a deferred execution of a trigger after a row.
type deferredCall struct {
	TriggerCall
	round uint64 // of the executions in which it was executed; 0: it was not
}

// deferredCallBytes is the memory of a deferred execution apart from its rows.
const deferredCallBytes = 192

// addCall defers the execution of a trigger after a row.
func (d *Deferred) addCall(g *triggers, t *planner.Trigger, event catalog.TriggerEvents, old, new types.Row) error {
	if err := d.mayDefer(); err != nil {
		return err
	}
	c := deferredCall{TriggerCall: TriggerCall{Table: g.table, Trigger: t, Row: g.plan.Row, Event: event, Old: g.datum(old), New: g.datum(new), Deferred: true}}
	if err := d.book(deferredCallBytes + int64(c.Old.Size()+c.New.Size())); err != nil {
		return err
	}
	d.calls = append(d.calls, c)
	return nil
}

// runCalls executes the deferred triggers that are not deferred at present, in the order of their events, and those that these defer; with all,
// all of them.
func (d *Deferred) runCalls(ctx context.Context, rt *Runtime, all, keep bool) error {
	if len(d.calls) == 0 {
		return nil
	}
	d.rounds++
	waiting := false
	for i := 0; i < len(d.calls); i++ { // It grows meanwhile.
		c := &d.calls[i]
		if c.round > 0 {
			continue
		}
		if !all && d.defers(c.Trigger.OID, c.Trigger.Deferred) {
			waiting = true
			continue
		}
		c.round = d.rounds
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := runCall(ctx, rt, c.TriggerCall); err != nil {
			return err
		}
	}
	if !keep && !waiting {
		clear(d.calls)
		d.calls = d.calls[:0]
	}
	return nil
}

// runCall executes a deferred trigger, unless it has been dropped.
func runCall(ctx context.Context, rt *Runtime, c TriggerCall) error {
	t, err := rt.Resolver.RelationByID(ctx, c.Table.ID)
	if err != nil || t == nil || t.TriggerNamed(c.Trigger.Name) == nil {
		return err
	}
	_, err = rt.Triggers.RunTrigger(ctx, &c)
	return err
}
