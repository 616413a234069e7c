package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// wholeRow makes the row of a table in sight: of its row type, if it is that of a table or view, or of a function that returns rows of a
// composite type; else a record with the names of the columns. The row of a function that returns no records is its value.
func (it *nsItem) wholeRow(b *binder, pos int) expr.Scalar {
	if it.scalar {
		return it.cols[0].value(b, pos)
	}
	elems := make([]expr.Scalar, len(it.cols))
	names := make([]string, len(it.cols))
	for i := range it.cols {
		elems[i], names[i] = it.cols[i].value(b, pos), it.cols[i].name
	}
	rec := expr.NewRecord(elems, names)
	if t := it.rowType(b); t.Valid() && sameFields(rec, t) {
		rec.Typ = t
		b.useType(t)
	}
	if it.absent != nil {
		rec.Present = it.absent.marker(b, it)
	}
	return rec
}

func (it *nsItem) rowType(b *binder) types.Type {
	if it.relation == nil {
		return it.of
	}
	if d := b.r.Types().RowType(it.relation); d != nil {
		return d.Type()
	}
	return types.Type{}
}

// sameFields reports whether the fields of a record have the types of a composite type's.
func sameFields(rec *expr.Record, t types.Type) bool {
	fields := t.Def.Fields
	if len(rec.Elems) != len(fields) {
		return false
	}
	for i, x := range rec.Elems {
		if x.Type().OID != fields[i].Type.OID {
			return false
		}
	}
	return true
}

// starRow binds t.* where it is one value: the whole row.
func (sc *scope) starRow(e *ast.Star) (expr.Scalar, error) {
	schema, pos := "", int(e.Pos)
	if len(e.Table) > 1 {
		schema = e.Table[len(e.Table)-2]
	}
	it, at, err := sc.table(schema, e.Table[len(e.Table)-1], pos)
	if err != nil {
		if vars := sc.b.opts.Variables; vars != nil {
			if v, failed := vars.Variable(e.Table, true, false); v != nil || failed != nil {
				if failed != nil {
					return nil, failed
				}
				return sc.b.variable(v, pos), nil
			}
		}
		if arg := sc.argument(e.Table, pos); arg != nil {
			return arg, nil
		}
		return nil, err
	}
	if !it.given {
		sc.b.touch(at.depth)
	}
	return it.wholeRow(sc.b, pos), nil
}

// spread replaces t.* and (x).* among the values of a row of VALUES by their columns. row itself stays as it is.
func (sc *scope) spread(row []ast.Expr) ([]ast.Expr, error) {
	var out []ast.Expr
	for i, e := range row {
		star, isStar := e.(*ast.Star)
		field, isField := e.(*ast.Field)
		if isStar = isStar && len(star.Table) > 0; !isStar && !(isField && field.Name == "*") {
			if out != nil {
				out = append(out, e)
			}
			continue
		}
		if out == nil {
			out = append(make([]ast.Expr, 0, len(row)), row[:i]...)
		}
		if isStar {
			targets, err := sc.b.expandStar(sc, nil, star)
			if err != nil {
				return nil, err
			}
			for _, t := range targets {
				out = append(out, &ast.ColumnRef{Pos: star.Pos, Parts: append(slices.Clone(star.Table), t.name)})
			}
			continue
		}
		targets, err := sc.b.expandFields(sc, nil, field)
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			out = append(out, &ast.Field{Pos: field.Pos, X: field.X, Name: t.name})
		}
	}
	if out == nil {
		return row, nil
	}
	return out, nil
}

// absence is a side of an outer join that may have no row for a row of the other side. Its whole row is then NULL, as opposed to a row of
// NULLs.
type absence struct {
	side *rel // within the join
	id   int  // a column that is not NULL if there is a row; 0: none yet
}

// marker returns a column that is NULL where the side has no row.
func (a *absence) marker(b *binder, it *nsItem) expr.Scalar {
	if it.scan != nil && len(it.scan.table.Primary.Columns) > 0 {
		return b.column(it.scan.cols[it.scan.table.Ordinal(it.scan.table.Primary.Columns[0].ColumnID)], 0)
	}
	if a.id == 0 {
		a.id = b.newColumn("present", types.TBool)
		*a.side = &projectRel{input: *a.side, items: []projection{{id: a.id, e: expr.NewBool(true)}}}
	}
	return b.column(a.id, 0)
}

// mayBeAbsent notes that the items in sight from one place to another are on a side of an outer join that may have no row.
func (sc *scope) mayBeAbsent(from, to int, side *rel) {
	a := &absence{side: side}
	for i := from; i < to; i++ {
		sc.items[i].absent = a
	}
}
