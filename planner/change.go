package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// change makes the node of a bound change.
func (p *physical) change(c *change) Node {
	if c.source = p.rewrite(c.source); p.err != nil {
		return &Values{}
	}
	if c.table.Kind == catalog.KindView {
		return p.insteadOf(c)
	}
	switch c.tag {
	case "INSERT":
		return p.insert(c)
	case "UPDATE":
		return p.update(c)
	case "MERGE":
		return p.merge(c)
	}
	return p.delete(c)
}

// insert makes the node of an INSERT.
func (p *physical) insert(c *change) Node {
	in := p.exact(c.source, c.cols, 0)
	if p.err != nil {
		return in.node
	}
	if c.table.IsPartitioned() {
		return p.insertParts(c, in)
	}
	n := &Insert{Table: c.table, Input: in.node, Bound: p.partitionCheck(c.scan), Checks: p.checks(c.table, c.scan), Policies: p.policies(c.policies, c.scan), Guards: c.guarded,
		Views:   p.viewChecks(c.views, c.scan),
		Indexed: p.indexExprs(c.table, c.scan)}
	var changed []int
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	if c.conflict != nil {
		n.OnConflict = p.onConflict(c)
		n.OnConflict.Changed = withGenerated(c.table, n.OnConflict.Changed)
		changed = n.OnConflict.Changed
	}
	events := catalog.TriggerInsert
	if changed != nil {
		events |= catalog.TriggerUpdate
	}
	if n.Triggers = p.triggers(c.table, events, changed); n.Triggers != nil && n.OnConflict != nil {
		n.OnConflict.Changed = n.Triggers.changedBy(c.table, changed)
		changed = n.OnConflict.Changed
	}
	n.Generated = p.generated(c.table, c.scan)
	n.Observed = observed(c.table, changed)
	n.References = p.references(c.table, changed, true, false)
	over := c.scan.cols
	if c.scan.replaced > 0 {
		over = append(slices.Clone(over), c.scan.replaced)
		n.OnConflict.Marks = true
	}
	n.Out, n.Returning = p.returning(c.returning, over)
	return n
}

func (p *physical) onConflict(c *change) *OnConflict {
	cf := c.conflict
	oc := &OnConflict{Arbiters: cf.arbiters, DoUpdate: cf.doUpdate, Changed: cf.changed}
	if cf.infer != nil {
		oc.Arbiters = p.inferArbiters(c.scan, cf)
	}
	p.lateArbiters(c.table, oc)
	if cf.doUpdate {
		both := append(append([]int(nil), c.scan.cols...), cf.excluded...)
		p.rewriteAllIn(cf.set)
		oc.Set = p.compileAll(cf.set, both)
		if cf.where != nil {
			p.rewriteIn(cf.where)
			oc.Where = p.compile(cf.where, both)
		}
		oc.Policies = append(p.policies(cf.existing, c.scan), p.policies(cf.policies, c.scan)...)
	}
	return oc
}

// lateArbiters separates the arbiters that are checked late from the unique indexes.
func (p *physical) lateArbiters(t *catalog.TableDescriptor, oc *OnConflict) {
	if !t.HasLateKeys() || p.err != nil {
		return
	}
	for _, k := range p.allReferences(t).Late {
		if oc.Arbiters == nil || slices.Contains(oc.Arbiters, k.Index) {
			oc.Late = append(oc.Late, k)
		}
	}
	if oc.Arbiters != nil {
		oc.Arbiters = slices.DeleteFunc(slices.Clone(oc.Arbiters), (*catalog.IndexDescriptor).CheckedLate)
	}
}

func (p *physical) rewriteAllIn(es []expr.Scalar) {
	for _, e := range es {
		p.rewriteIn(e)
	}
}

// update makes the node of an UPDATE.
func (p *physical) update(c *change) Node {
	in := p.exact(c.source, c.cols, 0)
	if p.err != nil {
		return in.node
	}
	p.rewriteAllIn(c.set)
	c.changed = withGenerated(c.table, c.changed)
	if c.table.IsPartitioned() {
		return p.updateParts(c, in)
	}
	n := &Update{Table: c.table, Input: in.node, Bound: p.partitionCheck(c.scan), Changed: c.changed, Checks: p.checks(c.table, c.scan), Policies: p.policies(c.policies, c.scan),
		Views: p.viewChecks(c.views, c.scan), Indexed: p.indexExprs(c.table, c.scan)}
	n.Generated = p.generated(c.table, c.scan)
	if n.Triggers = p.triggers(c.table, catalog.TriggerUpdate, c.changed); n.Triggers != nil {
		n.Changed = n.Triggers.changedBy(c.table, c.changed)
	}
	n.Observed = observed(c.table, n.Changed)
	n.References = p.references(c.table, n.Changed, false, false)
	n.Set = p.compileAll(c.set, c.cols)
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	n.Out, n.Returning = p.returning(c.returning, c.cols)
	return n
}

// delete makes the node of a DELETE.
func (p *physical) delete(c *change) Node {
	in := p.exact(c.source, c.cols, 0)
	if p.err != nil {
		return in.node
	}
	if c.table.IsPartitioned() {
		return p.deleteParts(c, in)
	}
	n := &Delete{Table: c.table, Input: in.node, Observed: observed(c.table, nil), Indexed: p.indexExprs(c.table, c.scan)}
	n.References = p.references(c.table, nil, false, true)
	n.Triggers = p.triggers(c.table, catalog.TriggerDelete, nil)
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	n.Out, n.Returning = p.returning(c.returning, c.cols)
	return n
}

// insteadOf makes the node of a change of a view with INSTEAD OF triggers.
func (p *physical) insteadOf(c *change) Node {
	in := p.exact(c.source, c.cols, 0)
	if p.err != nil {
		return in.node
	}
	n := &InsteadOf{View: c.table, Input: in.node, Event: c.event(), Views: p.viewChecks(c.views, c.scan)}
	n.Triggers = p.triggers(c.table, n.Event, every(c.table))
	over := c.cols
	switch n.Event {
	case catalog.TriggerInsert:
		over = c.scan.cols
	case catalog.TriggerUpdate:
		p.rewriteAllIn(c.set)
		n.Set = p.compileAll(c.set, c.cols)
	}
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	n.Out, n.Returning = p.returning(c.returning, over)
	return n
}

// event is that of the triggers of a change that is no MERGE.
func (c *change) event() catalog.TriggerEvents {
	switch c.tag {
	case "INSERT":
		return catalog.TriggerInsert
	case "UPDATE":
		return catalog.TriggerUpdate
	}
	return catalog.TriggerDelete
}

// returning compiles RETURNING over a row of the given columns.
func (p *physical) returning(targets []target, cols []int) ([]Column, []expr.Scalar) {
	if targets == nil {
		return nil, nil
	}
	out := make([]Column, len(targets))
	exprs := make([]expr.Scalar, len(targets))
	for i := range targets {
		t := &targets[i]
		p.rewriteIn(t.e)
		exprs[i] = p.compile(t.e, cols)
		out[i] = Column{Name: t.name, Type: t.e.Type()}
		if c, ok := t.e.(*expr.Column); ok {
			out[i] = p.b.cols[c.ID].Column
			out[i].Name = t.name
		}
	}
	return out, exprs
}

// checks binds a table's CHECK constraints over its full row.
func (p *physical) checks(t *catalog.TableDescriptor, scan *scanRel) []Check {
	var out []Check
	for i := range t.Checks {
		c := &t.Checks[i]
		x, err := p.b.catalogExpr(c.Expr, scan, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
			sc.in("CHECK constraints", false, false)
			x, err := sc.expr(e)
			if err != nil {
				return nil, err
			}
			if x.Type().OID == types.OIDBool {
				return x, nil
			}
			return p.b.coerce(x, types.TBool, castAssignment, 0)
		})
		if err != nil {
			p.fail(err)
			return nil
		}
		out = append(out, Check{Name: c.Name, Cond: p.compile(x, scan.cols)})
	}
	return out
}

// BindChecks binds the CHECK constraints of a table over its full row, in their order.
func BindChecks(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) ([]Check, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	out := p.checks(t, p.b.newScan(t, t.Name, nil))
	return out, p.err
}
