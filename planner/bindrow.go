package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rowOperator compares two rows field by field: = and <> are a conjunction and a disjunction, the orderings are lexicographic.
func (b *binder) rowOperator(name string, l, r []expr.Scalar, pos int) (expr.Scalar, error) {
	pairs := make([]expr.Scalar, len(l))
	ordered, plain, user := true, true, false
	for i := range pairs {
		x, err := b.operator(name, l[i], r[i], pos)
		if err != nil {
			return nil, err
		}
		user = user || b.userOperator != 0
		if x.Type().OID != types.OIDBool {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "row comparison operator must yield type boolean, not type %s", x.Type()).At(pos)
		}
		pairs[i] = x
		c, ok := x.(*expr.Compare)
		plain = plain && ok
		ordered = ordered && (ok && c.Class.Ordered() || !ok && b.textIfUnknown(l[i]).Type().Ordered() && b.textIfUnknown(r[i]).Type().Ordered())
	}
	if len(pairs) == 1 {
		return pairs[0], nil
	}
	op := expr.ParseCmpOp(name)
	switch {
	case op == 0 || !ordered || user:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "could not determine interpretation of row comparison operator %s", name).At(pos).
			WithHint("Row comparison operators must be associated with btree operator families.")
	case op == expr.EQ:
		return &expr.And{Args: pairs}, nil
	case op == expr.NE:
		return &expr.Or{Args: pairs}, nil
	case b.notes != nil:
		rc := &expr.RowCompare{Op: op}
		for _, p := range pairs {
			args := p.(*expr.Call).Args
			rc.L, rc.R = append(rc.L, args[0]), append(rc.R, args[1])
		}
		return rc, nil
	case !plain:
		return b.lexicographic(op, l, r, pairs, pos)
	}
	rc := &expr.RowCompare{Op: op}
	for _, p := range pairs {
		c := p.(*expr.Compare)
		rc.L, rc.R, rc.Classes = append(rc.L, c.L), append(rc.R, c.R), append(rc.Classes, c.Class)
	}
	return rc, nil
}

// lexicographic orders rows by operators that are functions: a < x OR a = x AND (b < y OR …).
func (b *binder) lexicographic(op expr.CmpOp, l, r, pairs []expr.Scalar, pos int) (expr.Scalar, error) {
	strict := map[expr.CmpOp]string{expr.LT: "<", expr.LE: "<", expr.GT: ">", expr.GE: ">"}[op]
	last := len(pairs) - 1
	out := pairs[last]
	for i := last - 1; i >= 0; i-- {
		decides, err := b.operator(strict, expr.Clone(l[i]), expr.Clone(r[i]), pos)
		if err != nil {
			return nil, err
		}
		equal, err := b.operator("=", expr.Clone(l[i]), expr.Clone(r[i]), pos)
		if err != nil {
			return nil, err
		}
		out = &expr.Or{Args: []expr.Scalar{decides, &expr.And{Args: []expr.Scalar{equal, out}}}}
	}
	return out, nil
}

// rowSubqueryAny binds (a, b) IN (SELECT …).
func (sc *scope) rowSubqueryAny(row *ast.Row, query *ast.Query, not bool, pos int) (expr.Scalar, error) {
	x, sub, q, err := sc.rowAndSubquery(row, query, pos)
	if err != nil {
		return nil, err
	}
	in, err := sc.b.inClasses(x, sub, q, pos)
	if err != nil {
		return nil, err
	}
	if in != nil {
		in.Not = not
		return in, nil
	}
	any, err := sc.b.quantifyRow(x, "=", false, sub, q, pos)
	if err != nil || !not {
		return any, err
	}
	return &expr.Not{X: any}, nil
}

// rowAndSubquery binds the subquery, then the row that is compared with its rows.
func (sc *scope) rowAndSubquery(row *ast.Row, query *ast.Query, pos int) ([]expr.Scalar, *expr.Subquery, *query, error) {
	sub, q, err := sc.subquery(query, false)
	if err != nil {
		return nil, nil, nil, err
	}
	x := make([]expr.Scalar, len(row.Elems))
	for i := range row.Elems {
		if x[i], err = sc.expr(row.Elems[i]); err != nil {
			return nil, nil, nil, err
		}
	}
	return x, sub, q, checkWidth(len(x), len(q.cols), pos)
}

func (sc *scope) quantifiedRow(e *ast.Quantified, row *ast.Row) (expr.Scalar, error) {
	pos := int(e.Pos)
	if op := expr.ParseCmpOp(e.Op); op == expr.EQ && !e.All || op == expr.NE && e.All {
		return sc.rowSubqueryAny(row, e.Query, e.All, pos)
	}
	x, sub, q, err := sc.rowAndSubquery(row, e.Query, pos)
	if err != nil {
		return nil, err
	}
	return sc.b.quantifyRow(x, e.Op, e.All, sub, q, pos)
}

// quantifyRow makes (x…) op ANY|ALL (subquery).
func (b *binder) quantifyRow(x []expr.Scalar, op string, all bool, sub *expr.Subquery, q *query, pos int) (expr.Scalar, error) {
	for i := range x {
		var err error
		if x[i], err = b.meetUnknowns(x[i], q, i, pos); err != nil {
			return nil, err
		}
	}
	b.refresh(sub, q)
	record := expr.NewRecord(x, nil)
	l, r := make([]expr.Scalar, len(x)), make([]expr.Scalar, len(x))
	for i := range x {
		l[i] = &expr.Field{X: &expr.CaseValue{Typ: record.Type()}, Index: i, Name: "f" + itoa(i+1), Typ: x[i].Type()}
		r[i] = &expr.Column{ID: -1, Ordinal: i, Typ: sub.Types[i], Name: q.cols[i].name}
	}
	cond, err := b.rowOperator(op, l, r, pos)
	if err != nil {
		return nil, err
	}
	return &expr.QuantifiedSubquery{X: record, Sub: sub, Cond: cond, All: all, Op: op}, nil
}

// meetUnknowns gives an unknown value the type of column i of the query it is compared with, and vice versa.
func (b *binder) meetUnknowns(x expr.Scalar, q *query, i, pos int) (expr.Scalar, error) {
	if x.Type().OID == types.OIDUnknown {
		y, err := b.coerce(x, b.cols[q.cols[i].id].Type.Base(), castImplicit, pos)
		if err != nil {
			return nil, err
		}
		x = b.textIfUnknown(y)
	}
	if b.cols[q.cols[i].id].Type.OID == types.OIDUnknown {
		return x, b.retype(q, i, x.Type().Base(), castImplicit)
	}
	return x, nil
}
