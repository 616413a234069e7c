package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// merge does what MERGE's clauses say for each row of its input. Like PostgreSQL it refuses to change a row twice, but not to insert two rows of
// one key, which is a unique violation.
type merge struct {
	modify
	locker rowLocker
	node   *planner.Merge
	newRow types.Row
	parts  *parts // of a partitioned table
}

func newMerge(ex *execution, input Operator, n *planner.Merge) *merge {
	input = gatherFor(ex, input, n.Input, n.Triggers)
	w := newTableWriter(ex, n.Table, n.Checks, n.Changed, n.Observed, n.Indexed)
	w.keys, w.generated, w.bound = ex.queueFor(n.References), n.Generated, n.Bound
	o := &merge{
		node: n, newRow: make(types.Row, len(n.Table.Columns)),
		locker: newRowLocker(ex, input, n.Table, n.Input.Properties(), false),
	}
	o.locker.wants = func(row types.Row) (bool, error) {
		a, err := o.action(row)
		return a != nil && a.Matched && a.Action != doNothing, err
	}
	o.init(ex, input, w, nil)
	o.triggers = newTriggers(ex, n.Table, n.Triggers, mergeEvents(n)...)
	if n.Parts == nil {
		o.seen = newRowSet(w)
		return o
	}
	o.parts = newParts(&o.modify, n.Table, n.Parts)
	o.locker.parts = n.Parts
	return o
}

// doNothing is the action of a clause that leaves its row alone.
const doNothing = "DO NOTHING"

func (o *merge) Close() error {
	o.locker.release()
	o.parts.release()
	return o.modify.Close()
}

func (o *merge) Next(ctx context.Context) (types.Row, error) { return o.next(ctx, o.run) }

func (o *merge) run(ctx context.Context) error {
	o.locker.reset()
	for {
		row, err := o.locker.next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		a, err := o.action(row)
		if err != nil {
			return err
		}
		if a == nil || a.Action == doNothing {
			continue
		}
		act := o.act
		if o.parts != nil {
			act = o.actOnPart
		}
		done, err := act(ctx, a, row)
		if err != nil {
			return err
		}
		if done {
			o.affected++
		}
	}
}

// action returns the first clause that applies to a row, nil if there is none.
func (o *merge) action(row types.Row) (*planner.MergeAction, error) {
	matched := !row[o.node.Key].IsNull()
	for i := range o.node.Actions {
		a := &o.node.Actions[i]
		if a.Matched != matched {
			continue
		}
		if ok, err := o.ex.holds(a.Cond, row); ok || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// mergeEvents are the events of a MERGE's clauses.
func mergeEvents(n *planner.Merge) (events []catalog.TriggerEvents) {
	for _, e := range []struct {
		action string
		event  catalog.TriggerEvents
	}{{"INSERT", catalog.TriggerInsert}, {"UPDATE", catalog.TriggerUpdate}, {"DELETE", catalog.TriggerDelete}} {
		if slices.ContainsFunc(n.Actions, func(a planner.MergeAction) bool { return a.Action == e.action }) {
			events = append(events, e.event)
		}
	}
	return events
}

// act inserts, updates or deletes, unless a trigger prevents that.
func (o *merge) act(ctx context.Context, a *planner.MergeAction, row types.Row) (done bool, err error) {
	old := row[:len(o.newRow)]
	if a.Matched {
		again, err := o.repeated(old)
		if err != nil {
			return false, err
		}
		if again {
			return false, mergedTwice()
		}
		if err := o.passTarget(a.Policies, old); err != nil {
			return false, err
		}
	}
	if a.Action == "DELETE" {
		if ok, err := o.triggers.before(ctx, catalog.TriggerDelete, old, nil); !ok || err != nil {
			return false, err
		}
		if err := o.writer.unmodified(ctx, old, "deleted"); err != nil {
			return false, err
		}
		if err := o.writer.delete(ctx, old); err != nil {
			return false, err
		}
		return true, o.triggers.written(catalog.TriggerDelete, old, nil)
	}
	if err := o.ex.evalAll(a.Row, row, o.newRow); err != nil {
		return false, err
	}
	event := catalog.TriggerUpdate
	if !a.Matched {
		event, old = catalog.TriggerInsert, nil
		if err := o.writer.fillRowID(ctx, o.newRow); err != nil {
			return false, err
		}
	}
	if ok, err := o.triggers.before(ctx, event, old, o.newRow); !ok || err != nil {
		return false, err
	}
	if err := o.writer.generate(o.newRow); err != nil {
		return false, err
	}
	if err := o.pass(a.Policies, o.newRow, false); err != nil {
		return false, err
	}
	if err := o.writer.check(ctx, o.newRow); err != nil {
		return false, err
	}
	if a.Matched {
		if err := o.writer.unmodified(ctx, old, "updated"); err != nil {
			return false, err
		}
		err = o.writer.update(ctx, old, o.newRow)
	} else {
		err = o.writer.insert(ctx, o.newRow)
	}
	if err != nil {
		return false, err
	}
	return true, o.triggers.written(event, old, o.newRow)
}

func mergedTwice() error {
	return pgerror.New(pgerror.CardinalityViolation, "MERGE command cannot affect row a second time").
		WithHint("Ensure that not more than one source row matches any one target row.")
}

// actOnPart is act for a partitioned table.
func (o *merge) actOnPart(ctx context.Context, a *planner.MergeAction, row types.Row) (done bool, err error) {
	var l *leaf
	if a.Matched {
		if l, err = o.parts.of(row[len(row)-1], row); err != nil {
			return false, err
		}
		if again, err := l.repeated(l.old); again || err != nil {
			if err == nil {
				err = mergedTwice()
			}
			return false, err
		}
		if err := o.passTarget(a.Policies, row[:len(o.newRow)]); err != nil {
			return false, err
		}
	}
	if a.Action == "DELETE" {
		return l.remove(ctx)
	}
	if err := o.ex.evalAll(a.Row, row, o.newRow); err != nil {
		return false, err
	}
	if err := o.pass(a.Policies, o.newRow, false); err != nil {
		return false, err
	}
	written := false
	o.parts.report = func(context.Context, types.Row, *catalog.TableDescriptor) error {
		written = true
		return nil
	}
	if a.Matched {
		err = o.parts.update(ctx, l, o.newRow)
	} else {
		err = o.parts.insert(ctx, o.newRow)
	}
	return written, err
}

// passTarget returns 42501 unless the policies let a row of the target be changed.
func (o *merge) passTarget(policies []planner.PolicyCheck, old types.Row) error {
	for i := range policies {
		p := &policies[i]
		if !p.Existing {
			continue
		}
		ok, err := o.ex.holds(p.Cond, old)
		if err != nil {
			return err
		}
		if !ok {
			name := ""
			if p.Policy != "" {
				name = " \"" + p.Policy + "\""
			}
			return pgerror.New(pgerror.InsufficientPrivilege, "target row violates row-level security policy%s (USING expression) for table \"%s\"", name, o.writer.table.Name)
		}
	}
	return nil
}
