package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// changeScope puts the target of an UPDATE or DELETE and its other sources in sight.
func (b *binder) changeScope(t *changeTarget, out *change, alias string, sources []ast.TableExpr, outer *scope, p acl.Privileges) (*scope, error) {
	t.need.Privileges |= p
	target, err := b.targetSource(t, out, alias)
	if err != nil {
		return nil, err
	}
	sc := newScope(b, outer)
	sc.items = append(sc.items, t.row())
	sc.barred = barredItems{to: len(sc.items)}
	source, err := b.fromList(sc, target, sources)
	sc.barred = barredItems{}
	out.source, out.hasFrom = source, len(sources) > 0
	return sc, err
}

func (b *binder) bindUpdate(s *ast.Update, outer *scope) (*change, error) {
	if s.With != nil {
		outer = newScope(b, outer)
		if err := b.bindWith(outer, s.With); err != nil {
			return nil, err
		}
	}
	t, err := b.changeTarget(s.Table, catalog.TriggerUpdate)
	if err != nil {
		return nil, err
	}
	out := &change{tag: "UPDATE", table: t.table}
	sc, err := b.changeScope(t, out, s.Alias, s.From, outer, acl.Update)
	if err != nil {
		return nil, err
	}
	// As PostgreSQL binds the clauses: of several errors the same one is reported.
	if err := b.changeClauses(sc, t, out, s.Where, s.Returning); err != nil {
		return nil, err
	}
	sc.sel = &selectState{}
	if out.set, out.changed, err = b.assignments(sc, t, out.scan, s.Set); err != nil {
		return nil, err
	}
	if err := b.finishTarget(t, out, b.restrictUpdate); err != nil {
		return nil, err
	}
	out.listColumns()
	return out, nil
}

func (b *binder) bindDelete(s *ast.Delete, outer *scope) (*change, error) {
	if s.With != nil {
		outer = newScope(b, outer)
		if err := b.bindWith(outer, s.With); err != nil {
			return nil, err
		}
	}
	t, err := b.changeTarget(s.Table, catalog.TriggerDelete)
	if err != nil {
		return nil, err
	}
	out := &change{tag: "DELETE", table: t.table}
	sc, err := b.changeScope(t, out, s.Alias, s.Using, outer, acl.Delete)
	if err != nil {
		return nil, err
	}
	if err := b.changeClauses(sc, t, out, s.Where, s.Returning); err != nil {
		return nil, err
	}
	out.listColumns()
	return out, b.finishTarget(t, out, func(out *change) error { return b.restrictTarget(out.scan, catalog.PolicyDelete) })
}

// finishTarget has views and policies decide about the rows of a bound change; restrict is for the policies of a table.
func (b *binder) finishTarget(t *changeTarget, out *change, restrict func(*change) error) error {
	t.settle()
	if out.tag != "DELETE" {
		var err error
		if out.views, err = b.checkOptions(t); err != nil {
			return err
		}
	}
	role := b.as
	b.as = b.tableRole(t)
	defer func() { b.as = role }()
	return restrict(out)
}

// changeClauses binds WHERE and RETURNING.
func (b *binder) changeClauses(sc *scope, t *changeTarget, out *change, where ast.Expr, returning []ast.SelectItem) error {
	var conds []expr.Scalar
	var err error
	if current, ok := where.(*ast.CurrentOf); ok {
		if t.named.Kind == catalog.KindView {
			return pgerror.New(pgerror.FeatureNotSupported, "WHERE CURRENT OF on a view is not implemented")
		}
		conds, err = b.currentRow(current, out.scan)
	} else {
		conds, err = b.condition(sc, where, "WHERE")
	}
	if err != nil {
		return err
	}
	if len(conds) > 0 {
		out.source = &filterRel{input: out.source, conds: conds}
	}
	if len(returning) > 0 {
		for i := range sc.items {
			if sc.items[i].scan == out.scan {
				sc.items[i].returned = out.event()
			}
		}
		if out.returning, err = b.returningList(sc, returning); err != nil {
			return err
		}
	}
	return nil
}

// listColumns lists the columns that the source must deliver: the target's row, then those of the other sources that the expressions use.
func (out *change) listColumns() {
	out.cols = append(out.cols, out.scan.cols...)
	var need, own colSet
	own.addList(out.cols)
	for _, e := range out.set {
		addUsed(e, &need)
	}
	for i := range out.returning {
		addUsed(out.returning[i].e, &need)
	}
	for i := range out.actions {
		for _, e := range append(out.actions[i].conds, out.actions[i].row...) {
			addUsed(e, &need)
		}
	}
	makes := outputSet(out.source)
	need.minus(own).each(func(id int) {
		if makes.has(id) && (id != out.scan.origin || out.scan.origin == 0) {
			out.cols = append(out.cols, id)
		}
	})
	if out.scan.origin > 0 {
		out.cols = append(out.cols, out.scan.origin)
	}
}

// assignments binds SET into a full new row of what is written, over scan, and the list of columns it may change.
func (b *binder) assignments(sc *scope, target *changeTarget, scan *scanRel, list []ast.Assignment) ([]expr.Scalar, []int, error) {
	t := target.named
	row := target.row()
	set := make([]expr.Scalar, len(t.Columns))
	inParts := map[int]bool{} // columns of which parts have been assigned
	var changed []int
	for i := range list {
		a := &list[i]
		ords, err := assignmentTargets(t, a, set, inParts)
		if err != nil {
			return nil, nil, err
		}
		targets := make([]assignTarget, len(ords))
		for j, ord := range ords {
			targets[j] = assignTarget{col: &t.Columns[ord], part: parts(a, j), pos: int(a.Pos)}
			if err := targets[j].check(); err != nil {
				return nil, nil, err
			}
		}
		values, err := b.assignmentValues(sc, t, a, targets)
		if err != nil {
			return nil, nil, err
		}
		for j, ord := range ords {
			if targets[j].part != nil {
				old := set[ord]
				if old == nil {
					col := row.cols[columnAt(row.cols, ord)]
					col.need = nil
					old = col.value(b, 0)
				}
				if values[j], err = b.assignPart(sc, &targets[j], old, values[j]); err != nil {
					return nil, nil, err
				}
				inParts[ord] = true
			}
			set[ord] = values[j]
			changed = append(changed, ord)
		}
	}
	target.need.updateColumns(changed)
	if len(target.layers) > 0 {
		return b.placeSet(target, scan, set)
	}
	for ord := range set {
		if set[ord] == nil {
			set[ord] = b.column(scan.cols[ord], 0)
		}
	}
	return set, changed, nil
}

// columnAt returns the place of the column with an ordinal.
func columnAt(cols []nsCol, ordinal int) int {
	return slices.IndexFunc(cols, func(c nsCol) bool { return c.ordinal == ordinal })
}

func assignmentTargets(t *catalog.TableDescriptor, a *ast.Assignment, set []expr.Scalar, inParts map[int]bool) ([]int, error) {
	ords := make([]int, len(a.Columns))
	for i, name := range a.Columns {
		ord := t.ColumnNamed(name)
		if ord < 0 {
			return nil, unassignable(t, name, int(a.Pos))
		}
		whole := parts(a, i) == nil
		dup := set[ord] != nil && (whole || !inParts[ord])
		for j, have := range ords[:i] {
			dup = dup || have == ord && (whole || parts(a, j) == nil)
		}
		if dup {
			return nil, pgerror.New(pgerror.SyntaxError, "multiple assignments to same column \"%s\"", name)
		}
		ords[i] = ord
	}
	return ords, nil
}

// assignmentValues binds the right side of one assignment: a value, a row of values, or a subquery.
func (b *binder) assignmentValues(sc *scope, t *catalog.TableDescriptor, a *ast.Assignment, targets []assignTarget) ([]expr.Scalar, error) {
	sc.in("UPDATE", false, false)
	if len(targets) == 1 {
		if row, ok := a.Value.(*ast.Row); !ok || len(row.Elems) != 1 {
			x, err := b.assignmentValue(sc, t, &targets[0], a.Value)
			return []expr.Scalar{x}, err
		}
	}
	switch v := a.Value.(type) {
	case *ast.Row:
		fields, err := sc.spread(v.Elems)
		if err != nil {
			return nil, err
		}
		if len(fields) != len(targets) {
			return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(int(v.Pos))
		}
		out := make([]expr.Scalar, len(targets))
		for i := range targets {
			x, err := b.assignmentValue(sc, t, &targets[i], fields[i])
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	case *ast.Subquery:
		out, err := sc.assignedSubquery(v, len(targets))
		if err != nil {
			return nil, err
		}
		for i := range targets {
			if out[i], err = b.assign(out[i], &targets[i], int(v.Pos)); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, pgerror.New(pgerror.FeatureNotSupported,
		"source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression").At(startOf(a.Value))
}

func (sc *scope) assignedSubquery(v *ast.Subquery, n int) ([]expr.Scalar, error) {
	out, err := sc.scalarColumns(v.Query, n, int(v.Pos))
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.SyntaxError && pe.Position == int(v.Pos) {
		return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(int(v.Pos))
	}
	return out, err
}

func (b *binder) assignmentValue(sc *scope, t *catalog.TableDescriptor, target *assignTarget, e ast.Expr) (expr.Scalar, error) {
	c := target.col
	if _, ok := e.(*ast.Default); ok {
		if target.part != nil {
			return nil, target.errDefault()
		}
		return b.defaultOf(t, t.Ordinal(c.ID))
	}
	if err := requireUpdatable(c); err != nil {
		return nil, err
	}
	x, err := sc.valueFor(e, target.valueType(), castAssignment, startOf(e))
	if err != nil {
		return nil, err
	}
	return b.assign(x, target, startOf(e))
}

// requireUpdatable refuses a value for a column that is always generated.
func requireUpdatable(c *catalog.ColumnDescriptor) error {
	e := pgerror.New(generatedAlways, "column \"%s\" can only be updated to DEFAULT", c.Name)
	switch {
	case c.Generated != "":
		return e.WithDetail("Column \"%s\" is a generated column.", c.Name)
	case c.Identity == "ALWAYS":
		return e.WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", c.Name)
	}
	return nil
}
