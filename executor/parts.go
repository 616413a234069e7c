package executor

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// parts writes the rows of a partitioned table to its leaves. What writes a leaf is made when it is first needed.
type parts struct {
	m      *modify // of the statement
	table  *catalog.TableDescriptor
	plan   *planner.Parts
	leaves []*leaf
	// tune prepares the writer of a leaf.
	tune func(*tableWriter, *planner.Leaf)
	// report takes a row that was written, in the order of the partitioned table's columns, with the leaf's OID behind them.
	report func(ctx context.Context, row types.Row, t *catalog.TableDescriptor) error
	row    types.Row
	once   bool // the input has each row once
	moving bool // a row is between two leaves
}

// leaf writes one leaf.
type leaf struct {
	modify
	plan     *planner.Leaf
	row, old types.Row
	conflict *onConflict
}

func newParts(m *modify, t *catalog.TableDescriptor, plan *planner.Parts) *parts {
	return &parts{m: m, table: t, plan: plan, leaves: make([]*leaf, len(plan.Leaves)), row: make(types.Row, len(t.Columns)+1)}
}

// leaf returns what writes a leaf.
func (p *parts) leaf(i int) (*leaf, error) {
	if p.leaves[i] != nil {
		return p.leaves[i], nil
	}
	plan := &p.plan.Leaves[i]
	ex := p.m.ex
	w := newTableWriter(ex, plan.Table, plan.Checks, plan.Updated(), plan.Observed, plan.Indexed)
	w.keys, w.generated, w.bound = ex.queueFor(plan.References), plan.Generated, plan.Bound
	if p.tune != nil {
		p.tune(w, plan)
	}
	l := &leaf{plan: plan, row: make(types.Row, len(plan.Table.Columns)), old: make(types.Row, len(plan.Table.Columns))}
	l.begin(ex, nil, w, nil)
	p.prepareTriggers(l)
	l.report = func(ctx context.Context, row types.Row) error { return p.written(ctx, l, row) }
	if plan.OnConflict != nil {
		var err error
		if l.conflict, err = newOnConflict(&l.modify, plan.Table, plan.OnConflict); err != nil {
			return nil, err
		}
	}
	if p.m.ex.together {
		w.sink.pending = ex.pending
	} else if !p.once {
		l.seen = newRowSet(w)
	}
	p.leaves[i] = l
	p.m.leaves = append(p.m.leaves, &l.modify)
	return l, nil
}

// prepareTriggers makes what executes the triggers of a leaf, and collects its rows for those of the partitioned table that name them.
func (p *parts) prepareTriggers(l *leaf) {
	plan, above := l.plan.Triggers, p.m.triggers
	if plan == nil && above != nil && above.names {
		plan = &planner.Triggers{}
	}
	l.triggers = newTriggers(p.m.ex, l.plan.Table, plan)
	if l.triggers == nil {
		return
	}
	l.triggers.sink, l.triggers.bound = &l.writer.sink, l.plan.Bound
	if above != nil && above.names {
		l.triggers.above = func(event catalog.TriggerEvents, old, new types.Row) error { return p.collect(l, event, old, new) }
	}
}

// collect notes what happens to a row of a leaf for the triggers of the partitioned table. A row that moves is updated.
func (p *parts) collect(l *leaf, event catalog.TriggerEvents, old, new types.Row) error {
	if p.moving {
		event = catalog.TriggerUpdate
	}
	whole := make(types.Row, len(p.table.Columns))
	for i, row := range []types.Row{old, new} {
		if row == nil {
			continue
		}
		l.toRoot(whole, row)
		if err := p.m.triggers.note(event, whole, i == 1); err != nil {
			return err
		}
	}
	return nil
}

// toRoot copies a row of the leaf to one of the partitioned table.
func (l *leaf) toRoot(dst, row types.Row) {
	for i, ord := range l.plan.ToRoot {
		dst[i] = types.Null
		if ord >= 0 {
			dst[i] = row[ord]
		}
	}
}

// release forgets a run.
func (p *parts) release() {
	if p == nil {
		return
	}
	for _, l := range p.leaves {
		if l == nil {
			continue
		}
		if l.conflict != nil {
			l.conflict.release()
		}
		l.writer.sink.discard()
		l.seen.release()
		l.triggers.release()
	}
}

// written reports a row of a leaf.
func (p *parts) written(ctx context.Context, l *leaf, row types.Row) error {
	if p.report == nil {
		return nil
	}
	l.toRoot(p.row[:len(p.row)-1], row)
	p.row[len(p.row)-1] = types.Int(int64(l.plan.Table.OID()))
	return p.report(ctx, p.row, l.plan.Table)
}

// fill copies a row of the partitioned table to one of the leaf.
func (l *leaf) fill(dst, row types.Row) {
	for i, ord := range l.plan.FromRoot {
		dst[i] = types.Null
		if ord >= 0 {
			dst[i] = row[ord]
		}
	}
}

// insert stores a full row of the partitioned table.
func (p *parts) insert(ctx context.Context, row types.Row) error {
	ex := p.m.ex
	if ok, err := p.plan.Bound.Holds(&ex.ev, row); err != nil || !ok {
		if err != nil {
			return err
		}
		return p.m.writer.boundViolation(ctx, row)
	}
	n, at, key, err := p.plan.Routes.Find(&ex.ev, row)
	if err != nil {
		return err
	}
	if n < 0 {
		return p.homeless(ctx, at, key)
	}
	l, err := p.leaf(n)
	if err != nil {
		return err
	}
	l.fill(l.row, row)
	return l.take(ctx)
}

// take stores the row, which belongs to the leaf.
func (l *leaf) take(ctx context.Context) error {
	if err := l.writer.fillRowID(ctx, l.row); err != nil {
		return err
	}
	if ok, err := l.triggers.before(ctx, catalog.TriggerInsert, nil, l.row); !ok || err != nil {
		return err
	}
	if err := l.writer.generate(l.row); err != nil {
		return err
	}
	if err := l.writer.check(ctx, l.row); err != nil {
		return err
	}
	if l.conflict != nil {
		return l.conflict.add(ctx, l.row)
	}
	if err := l.writer.insert(ctx, l.row); err != nil {
		return err
	}
	if err := l.triggers.written(catalog.TriggerInsert, nil, l.row); err != nil {
		return err
	}
	return l.changed(ctx, l.row)
}

// settle finishes the conflicts that are still looked for.
func (p *parts) settle(ctx context.Context) error {
	for _, l := range p.leaves {
		if l != nil && l.conflict != nil {
			if err := l.conflict.settle(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// of returns the leaf with an OID, and the leaf's row for one of the partitioned table.
func (p *parts) of(oid types.Datum, row types.Row) (*leaf, error) {
	n, ok := p.plan.ByOID[oid.Int()]
	if !ok {
		return nil, pgerror.New(pgerror.InternalError, "no partition of %q has the OID %d", p.table.Name, oid.Int())
	}
	l, err := p.leaf(n)
	if err == nil {
		l.fill(l.old, row)
	}
	return l, err
}

// remove deletes a row of the leaf. It reports false if a trigger keeps it.
func (l *leaf) remove(ctx context.Context) (bool, error) {
	if ok, err := l.triggers.before(ctx, catalog.TriggerDelete, l.old, nil); !ok || err != nil {
		return false, err
	}
	if err := l.writer.delete(ctx, l.old); err != nil {
		return false, err
	}
	return true, l.triggers.written(catalog.TriggerDelete, l.old, nil)
}

// update replaces the old row of the leaf by a row of the partitioned table, in another leaf if it belongs there.
func (p *parts) update(ctx context.Context, l *leaf, row types.Row) error {
	l.fill(l.row, row)
	if ok, err := l.triggers.before(ctx, catalog.TriggerUpdate, l.old, l.row); !ok || err != nil {
		return err
	}
	if err := l.writer.generate(l.row); err != nil {
		return err
	}
	if stays, err := l.plan.Bound.Holds(&p.m.ex.ev, l.row); err != nil || !stays {
		if err != nil {
			return err
		}
		return p.move(ctx, l)
	}
	if err := l.writer.check(ctx, l.row); err != nil {
		return err
	}
	if err := l.writer.update(ctx, l.old, l.row); err != nil {
		return err
	}
	if err := l.triggers.written(catalog.TriggerUpdate, l.old, l.row); err != nil {
		return err
	}
	return l.changed(ctx, l.row)
}

// move deletes the old row of a leaf and inserts its new row where that belongs.
func (p *parts) move(ctx context.Context, l *leaf) error {
	moved := make(types.Row, len(p.table.Columns))
	for i, ord := range l.plan.ToRoot {
		if ord >= 0 && !p.table.Columns[i].Hidden {
			moved[i] = l.row[ord]
		}
	}
	if ok, err := l.triggers.before(ctx, catalog.TriggerDelete, l.old, nil); !ok || err != nil {
		return err
	}
	p.moving = true
	defer func() { p.moving = false }()
	if err := l.writer.moveOut(ctx, l.old, l.row, p.table); err != nil {
		return err
	}
	if err := l.triggers.written(catalog.TriggerDelete, l.old, nil); err != nil {
		return err
	}
	return p.insert(ctx, moved)
}

// homeless is the error of a row that no partition takes. It shows the partition key if the role may read it, as PostgreSQL does: of a row that an UPDATE
// moves, the role need not know all columns.
func (p *parts) homeless(ctx context.Context, at *planner.Routes, key []types.Datum) error {
	e := pgerror.New(pgerror.CheckViolation, "no partition of relation \"%s\" found for row", at.Table.Name)
	e.Schema, e.Table = at.Table.Schema, at.Table.Name
	if !p.seesKey(ctx, at.Table) {
		return e
	}
	var names, values []string
	for i := range at.Table.Partitioning.Keys {
		c := at.Table.ColumnByID(at.Table.Partitioning.Keys[i].ColumnID)
		name := c.Name
		if c.Expr != nil {
			name = c.Expr.Pretty
			if !c.Expr.Call {
				name = "(" + name + ")"
			}
		}
		text := "null"
		if !key[i].IsNull() {
			text = string(clip(types.AppendText(nil, key[i], c.Type, &p.m.ex.rt.Env.Format)))
		}
		names, values = append(names, name), append(values, text)
	}
	return e.WithDetail("Partition key of the failing row contains (%s) = (%s).", strings.Join(names, ", "), strings.Join(values, ", "))
}

// seesKey reports whether the role may read the values of a partition key, by the privileges in force.
func (p *parts) seesKey(ctx context.Context, t *catalog.TableDescriptor) bool {
	rt := p.m.ex.rt
	if rt.Role == 0 || rt.Resolver == nil {
		return true
	}
	a, t := accessNow(ctx, rt.inForce(ctx), rt.Role, t)
	switch {
	case a == nil || a.RowSecurity(t) == catalog.RowSecurityApplies:
		return false
	case a.Relation(t, acl.Select, false) != 0:
		return true
	}
	return !slices.ContainsFunc(t.Partitioning.Keys, func(k catalog.IndexColumn) bool {
		ord := t.Ordinal(k.ColumnID)
		return ord < 0 || ord >= len(t.Columns) || a.Column(t, ord, acl.Select) == 0 // A key that is an expression may hold anything.
	})
}
