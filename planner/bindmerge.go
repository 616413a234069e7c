package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// mergeAction is a bound WHEN clause of MERGE.
type mergeAction struct {
	matched  bool
	conds    []expr.Scalar
	action   string        // as in ast.MergeWhen
	row      []expr.Scalar // UPDATE and INSERT: the full new row
	changed  []int         // UPDATE
	policies []policyCheck
}

// bindMerge binds MERGE. Its source is the join of the data source with the target.
func (b *binder) bindMerge(s *ast.Merge, outer *scope) (*change, error) {
	if s.With != nil {
		if s.With.Recursive {
			return nil, pgerror.New(pgerror.SyntaxError, "WITH RECURSIVE is not supported for MERGE statement")
		}
		outer = newScope(b, outer)
		if err := b.bindWith(outer, s.With); err != nil {
			return nil, err
		}
	}
	if err := checkReachable(s.Whens); err != nil {
		return nil, err
	}
	t, err := b.mergeTarget(s.Table)
	if err != nil {
		return nil, err
	}
	out := &change{tag: "MERGE", table: t.table}
	sc, sources, err := b.mergeScope(s, t, out, outer)
	if err != nil {
		return nil, err
	}
	for i := range s.Whens {
		if err := b.mergeWhen(sc, sources, t, out, &s.Whens[i]); err != nil {
			return nil, err
		}
	}
	out.scan.need.Privileges |= mergePrivileges(s.Whens)
	out.listColumns()
	return out, b.restrictMerge(out)
}

// mergeTarget finds the table of a MERGE.
func (b *binder) mergeTarget(name ast.TableName) (*changeTarget, error) {
	t, err := b.relation(name)
	if err != nil {
		return nil, err
	}
	if t.Kind == catalog.KindView || t.Kind == catalog.KindSequence || t.Materialized {
		kind := "views"
		switch {
		case t.Kind == catalog.KindSequence:
			kind = "sequences"
		case t.Materialized:
			kind = "materialized views"
		}
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot execute MERGE on relation \"%s\"", t.Name).
			WithDetail("This operation is not supported for %s.", kind)
	}
	if err := requireWritable(t, name); err != nil {
		return nil, err
	}
	return &changeTarget{named: t, table: t, need: b.need(t, 0)}, nil
}

// checkReachable refuses a clause behind one of its kind without a condition.
func checkReachable(whens []ast.MergeWhen) error {
	final := map[bool]bool{}
	for i := range whens {
		w := &whens[i]
		if final[w.Matched] {
			return pgerror.New(pgerror.SyntaxError, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		final[w.Matched] = w.Cond == nil
	}
	return nil
}

// mergePrivileges are those that the actions need on the target, beside those on columns.
func mergePrivileges(whens []ast.MergeWhen) acl.Privileges {
	var p acl.Privileges
	for i := range whens {
		switch whens[i].Action {
		case "INSERT":
			p |= acl.Insert
		case "UPDATE":
			p |= acl.Update
		case "DELETE":
			p |= acl.Delete
		}
	}
	if p == 0 {
		p = acl.Select
	}
	return p
}

// mergeScope joins the data source with the target, and puts both in sight: the first items of the scope are the source's.
func (b *binder) mergeScope(s *ast.Merge, t *changeTarget, out *change, outer *scope) (sc *scope, sources int, err error) {
	alias := s.Alias
	if alias == "" {
		alias = out.table.Name
	}
	sc = newScope(b, outer)
	source, err := b.tableExpr(sc, s.Source)
	if err != nil {
		return nil, 0, err
	}
	for i := range sc.items {
		if it := &sc.items[i]; it.rel && it.alias == alias {
			return nil, 0, pgerror.New(pgerror.DuplicateAlias, "name \"%s\" specified more than once", alias).
				WithDetail("The name is used both as MERGE target table and data source.")
		}
	}
	sources = len(sc.items)
	target, err := b.targetSource(t, out, s.Alias)
	if err != nil {
		return nil, 0, err
	}
	sc.items = append(sc.items, t.row())
	conds, err := b.condition(sc, s.On, "JOIN conditions")
	if err != nil {
		return nil, 0, err
	}
	j := &joinRel{kind: InnerJoin, left: source, right: target, on: conds}
	if slices.ContainsFunc(s.Whens, func(w ast.MergeWhen) bool { return w.Action == "INSERT" }) {
		j.kind = LeftJoin
	}
	out.source = j
	return sc, sources, nil
}

// mergeWhen binds a WHEN clause. One for rows that match nothing sees the data source only.
func (b *binder) mergeWhen(sc *scope, sources int, t *changeTarget, out *change, w *ast.MergeWhen) error {
	seen := *sc
	seen.sel = &selectState{}
	if !w.Matched {
		seen.barred = barredItems{from: sources, to: len(sc.items), unmatched: true}
		seen.items = slices.Clone(sc.items)
		for i := sources; i < len(seen.items); i++ {
			seen.items[i].open = false
		}
	}
	a := mergeAction{matched: w.Matched, action: w.Action}
	conds, err := b.condition(&seen, w.Cond, "MERGE WHEN conditions")
	if err != nil {
		return err
	}
	a.conds = conds
	switch w.Action {
	case "UPDATE":
		if a.row, a.changed, err = b.assignments(&seen, t, out.scan, w.Set); err == nil {
			out.changed = append(out.changed, a.changed...)
		}
	case "INSERT":
		a.row, err = b.mergeInsert(&seen, t, out, w)
	}
	out.actions = append(out.actions, a)
	return err
}

// mergeInsert binds the row that an INSERT of MERGE stores.
func (b *binder) mergeInsert(sc *scope, t *changeTarget, out *change, w *ast.MergeWhen) ([]expr.Scalar, error) {
	ib := &insertBinder{b: b, target: t, t: t.named, sc: sc, need: t.need, out: out,
		s: &ast.Insert{Pos: w.Pos, Columns: w.Columns, Overriding: w.Overriding}}
	if err := ib.bindTargets(); err != nil {
		return nil, err
	}
	sc.in("VALUES", false, false)
	values, err := sc.spread(w.Values)
	if err != nil {
		return nil, err
	}
	if values == nil {
		ib.targets = nil
	} else if err := ib.checkWidth(len(values), values); err != nil {
		return nil, err
	}
	ib.need.insertColumns(ib.targets[:min(len(values), len(ib.targets))])
	full := make([]expr.Scalar, len(out.table.Columns))
	for i, e := range values {
		x, err := ib.value(i, e)
		if err == nil {
			err = ib.put(full, i, x)
		}
		if err != nil {
			return nil, err
		}
	}
	for ord := range full {
		if full[ord] != nil {
			continue
		}
		x, err := b.defaultOf(out.table, ord)
		if err != nil {
			return nil, err
		}
		full[ord] = x
	}
	return full, nil
}

// restrictMerge has the policies for SELECT decide which rows of the target there are, and those for each action check the rows that it
// changes and writes. A row that may not be updated or deleted is an error.
func (b *binder) restrictMerge(out *change) error {
	if out.scan.barrier == nil {
		return nil
	}
	if err := b.restrict(out.scan, catalog.PolicySelect); err != nil {
		return err
	}
	g, need := out.scan.barrier.guard, out.scan.need
	for i := range out.actions {
		a := &out.actions[i]
		var err error
		switch a.action {
		case "UPDATE":
			if a.policies, err = b.existingChecks(g, catalog.PolicyUpdate); err == nil {
				var written []policyCheck
				written, err = b.writeChecks(g, catalog.PolicyUpdate, need)
				a.policies = append(a.policies, written...)
			}
		case "DELETE":
			a.policies, err = b.existingChecks(g, catalog.PolicyDelete)
		case "INSERT":
			a.policies, err = b.policyChecks(nil, g, catalog.PolicyInsert, false) // PostgreSQL 15 does not check those for SELECT.
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// existingChecks returns the checks of rows that a command is to change.
func (b *binder) existingChecks(g *guard, c catalog.PolicyCommand) ([]policyCheck, error) {
	checks, err := b.policyChecks(nil, g, c, true)
	for i := range checks {
		checks[i].existing = true
	}
	return checks, err
}

// merge makes the node of a MERGE.
func (p *physical) merge(c *change) Node {
	in := p.exact(c.source, c.cols, 0)
	if p.err != nil {
		return in.node
	}
	n := &Merge{Table: c.table, Input: in.node}
	n.Key = c.table.Ordinal(c.table.Primary.Columns[0].ColumnID)
	events := catalog.TriggerEvents(0)
	for i := range c.actions {
		events |= map[string]catalog.TriggerEvents{"INSERT": catalog.TriggerInsert, "UPDATE": catalog.TriggerUpdate, "DELETE": catalog.TriggerDelete}[c.actions[i].action]
	}
	if c.table.IsPartitioned() {
		n.Changed = c.changed
		n.Triggers = p.statementTriggers(c, events, c.changed)
		n.Parts = p.parts(c, events, c.changed)
	} else {
		p.mergeRules(c, n, events)
	}
	for i := range c.actions {
		a := &c.actions[i]
		p.rewriteAllIn(a.conds)
		p.rewriteAllIn(a.row)
		n.Actions = append(n.Actions, MergeAction{
			Matched: a.matched, Action: a.action, Cond: p.conjunction(a.conds, c.cols), Changed: a.changed,
			Row: p.compileAll(a.row, c.cols), Policies: p.policies(a.policies, c.scan),
		})
	}
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	return n
}

// mergeRules binds what a table requires of the rows that a MERGE writes.
func (p *physical) mergeRules(c *change, n *Merge, events catalog.TriggerEvents) {
	c.changed = withGenerated(c.table, c.changed)
	n.Bound, n.Changed, n.Checks, n.Indexed = p.partitionCheck(c.scan), c.changed, p.checks(c.table, c.scan), p.indexExprs(c.table, c.scan)
	if n.Triggers = p.triggers(c.table, events, c.changed); n.Triggers != nil {
		n.Changed = n.Triggers.changedBy(c.table, c.changed)
		c.changed = n.Changed
	}
	n.Generated = p.generated(c.table, c.scan)
	n.Observed = observed(c.table, c.changed)
	n.References = p.references(c.table, c.changed, events&catalog.TriggerInsert != 0, events&catalog.TriggerDelete != 0)
}
