package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// changeScope puts the target of an UPDATE or DELETE and its other sources in sight.
func (b *binder) changeScope(out *change, alias string, sources []ast.TableExpr, outer *scope, p acl.Privileges) (*scope, error) {
	if alias == "" {
		alias = out.table.Name
	}
	out.scan = b.newScan(out.table, alias, b.need(out.table, p))
	sc := newScope(b, outer)
	sc.items = append(sc.items, scanItem(out.scan, alias, true))
	sc.barred = barredItems{to: len(sc.items)}
	source, err := b.fromList(sc, out.scan, sources)
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
	t, err := b.writable(s.Table, "updating")
	if err != nil {
		return nil, err
	}
	out := &change{table: t}
	sc, err := b.changeScope(out, s.Alias, s.From, outer, acl.Update)
	if err != nil {
		return nil, err
	}
	sc.sel = &selectState{}
	if out.set, out.changed, err = b.assignments(sc, t, out.scan, s.Set); err != nil {
		return nil, err
	}
	out.scan.need.updateColumns(out.changed)
	return out, b.finishChange(sc, out, s.Where, s.Returning)
}

func (b *binder) bindDelete(s *ast.Delete, outer *scope) (*change, error) {
	if s.With != nil {
		outer = newScope(b, outer)
		if err := b.bindWith(outer, s.With); err != nil {
			return nil, err
		}
	}
	t, err := b.writable(s.Table, "deleting from")
	if err != nil {
		return nil, err
	}
	out := &change{table: t}
	sc, err := b.changeScope(out, s.Alias, s.Using, outer, acl.Delete)
	if err != nil {
		return nil, err
	}
	return out, b.finishChange(sc, out, s.Where, s.Returning)
}

// finishChange binds WHERE and RETURNING, and lists the columns that the source must deliver: the target's row, then
// those of the other sources that the expressions use.
func (b *binder) finishChange(sc *scope, out *change, where ast.Expr, returning []ast.SelectItem) error {
	conds, err := b.condition(sc, where, "WHERE")
	if err != nil {
		return err
	}
	if len(conds) > 0 {
		out.source = &filterRel{input: out.source, conds: conds}
	}
	if len(returning) > 0 {
		if out.returning, err = b.returningList(sc, returning); err != nil {
			return err
		}
	}
	out.cols = append(out.cols, out.scan.cols...)
	var need, own colSet
	own.addList(out.cols)
	for _, e := range out.set {
		addUsed(e, &need)
	}
	for i := range out.returning {
		addUsed(out.returning[i].e, &need)
	}
	makes := outputSet(out.source)
	need.minus(own).each(func(id int) {
		if makes.has(id) {
			out.cols = append(out.cols, id)
		}
	})
	return nil
}

// assignments binds SET into a full new row and the list of columns it may change.
func (b *binder) assignments(sc *scope, t *catalog.TableDescriptor, scan *scanRel, list []ast.Assignment) ([]expr.Scalar, []int, error) {
	set := make([]expr.Scalar, len(t.Columns))
	var changed []int
	for i := range list {
		a := &list[i]
		ords, err := assignmentTargets(t, a, set)
		if err != nil {
			return nil, nil, err
		}
		values, err := b.assignmentValues(sc, t, a, ords)
		if err != nil {
			return nil, nil, err
		}
		for j, ord := range ords {
			set[ord] = values[j]
			changed = append(changed, ord)
		}
	}
	for ord := range set {
		if set[ord] == nil {
			set[ord] = b.column(scan.cols[ord], 0)
		}
	}
	return set, changed, nil
}

func assignmentTargets(t *catalog.TableDescriptor, a *ast.Assignment, set []expr.Scalar) ([]int, error) {
	ords := make([]int, len(a.Columns))
	for i, name := range a.Columns {
		ord := t.ColumnNamed(name)
		if ord < 0 {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name).At(int(a.Pos))
		}
		dup := set[ord] != nil
		for _, have := range ords[:i] {
			dup = dup || have == ord
		}
		if dup {
			return nil, pgerror.New(pgerror.SyntaxError, "multiple assignments to same column \"%s\"", name)
		}
		ords[i] = ord
	}
	return ords, nil
}

// assignmentValues binds the right side of one assignment: a value, a row of values, or a subquery.
func (b *binder) assignmentValues(sc *scope, t *catalog.TableDescriptor, a *ast.Assignment, ords []int) ([]expr.Scalar, error) {
	sc.in("UPDATE", false, false)
	if len(ords) == 1 {
		if row, ok := a.Value.(*ast.Row); !ok || len(row.Elems) != 1 {
			x, err := b.assignmentValue(sc, t, ords[0], a.Value)
			return []expr.Scalar{x}, err
		}
	}
	switch v := a.Value.(type) {
	case *ast.Row:
		if len(v.Elems) != len(ords) {
			return nil, pgerror.New(pgerror.SyntaxError, "number of columns does not match number of values").At(int(v.Pos))
		}
		out := make([]expr.Scalar, len(ords))
		for i, ord := range ords {
			x, err := b.assignmentValue(sc, t, ord, v.Elems[i])
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	case *ast.Subquery:
		out, err := sc.assignedSubquery(v, len(ords))
		if err != nil {
			return nil, err
		}
		for i, ord := range ords {
			if out[i], err = b.assign(out[i], &t.Columns[ord], int(v.Pos)); err != nil {
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

func (b *binder) assignmentValue(sc *scope, t *catalog.TableDescriptor, ord int, e ast.Expr) (expr.Scalar, error) {
	c := &t.Columns[ord]
	if _, ok := e.(*ast.Default); ok {
		return b.defaultOf(t, ord)
	}
	if c.Identity == "ALWAYS" {
		return nil, pgerror.New(generatedAlways, "column \"%s\" can only be updated to DEFAULT", c.Name).
			WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", c.Name)
	}
	x, err := sc.expr(e)
	if err != nil {
		return nil, err
	}
	return b.assign(x, c, startOf(e))
}
