package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// subquery binds a query inside an expression.
func (sc *scope) subquery(q *ast.Query, resolve bool) (*expr.Subquery, *query, error) {
	if sc.noSubqueries != nil {
		return nil, nil, sc.noSubqueries
	}
	out, err := sc.b.bindQuery(q, sc, resolve)
	if err != nil {
		return nil, nil, err
	}
	sub := sc.b.newSubquery(out)
	sub.Source = q
	return sub, out, nil
}

// newSubquery wraps a bound query; refresh after changing it.
func (b *binder) newSubquery(q *query) *expr.Subquery {
	sub := &expr.Subquery{ID: b.subs}
	b.subs++
	b.refresh(sub, q)
	return sub
}

// refresh copies the changes of q since it was wrapped.
func (b *binder) refresh(sub *expr.Subquery, q *query) {
	sr := &subRel{root: q.root, cols: q.ids(), free: freeColumns(q.root)}
	sub.Plan, sub.Correlated = sr, !sr.free.empty()
	sub.Types = make([]types.Type, len(q.cols))
	for i := range q.cols {
		sub.Types[i] = b.cols[q.cols[i].id].Type
	}
}

func (sc *scope) scalarSubquery(e *ast.Subquery) (expr.Scalar, error) {
	sub, q, err := sc.subquery(e.Query, true)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "subquery must return only one column").At(int(e.Pos))
	}
	return &expr.ScalarSubquery{Sub: sub}, nil
}

func (sc *scope) exists(e *ast.Exists) (expr.Scalar, error) {
	sub, _, err := sc.subquery(e.Query, true)
	if err != nil {
		return nil, err
	}
	sub.Plan.(*subRel).exists = true
	return &expr.Exists{Sub: sub}, nil
}

func (sc *scope) arraySubquery(e *ast.ArraySubquery) (expr.Scalar, error) {
	sub, q, err := sc.subquery(e.Query, true)
	if err != nil {
		return nil, err
	}
	if len(q.cols) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "subquery must return only one column").At(int(e.Pos))
	}
	t := sub.Types[0]
	if !t.IsArray() {
		t = t.ArrayOf()
	}
	if !t.Valid() {
		return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", sub.Types[0]).At(int(e.Pos))
	}
	return &expr.ArraySubquery{Sub: sub, Typ: t}, nil
}

func (sc *scope) inSubquery(e *ast.InSubquery) (expr.Scalar, error) {
	if row, ok := e.X.(*ast.Row); ok && len(row.Elems) != 1 {
		return sc.rowSubqueryAny(row, e.Query, e.Not, int(e.Pos))
	}
	return sc.inOne(e)
}

// unwrapRow takes the only field of a row of one.
func unwrapRow(e ast.Expr) ast.Expr {
	if row, ok := e.(*ast.Row); ok && len(row.Elems) == 1 {
		return row.Elems[0]
	}
	return e
}

// inOne binds IN over one column: the subquery first, as PostgreSQL does, so that of two errors the same one is reported.
func (sc *scope) inOne(e *ast.InSubquery) (expr.Scalar, error) {
	sub, q, err := sc.subquery(e.Query, false)
	if err != nil {
		return nil, err
	}
	x, err := sc.expr(unwrapRow(e.X))
	if err != nil {
		return nil, err
	}
	if err := checkWidth(1, len(q.cols), int(e.Pos)); err != nil {
		return nil, err
	}
	if in, err := sc.b.inClasses([]expr.Scalar{x}, sub, q, int(e.Pos)); in != nil || err != nil {
		if in != nil {
			in.Not = e.Not
		}
		return in, err
	}
	quant, err := sc.b.quantify(x, "=", false, sub, q, int(e.Pos))
	if err != nil || !e.Not {
		return quant, err
	}
	return &expr.Not{X: quant}, nil
}

func checkWidth(left, right, pos int) error {
	switch {
	case right > left:
		return pgerror.New(pgerror.SyntaxError, "subquery has too many columns").At(pos)
	case right < left:
		return pgerror.New(pgerror.SyntaxError, "subquery has too few columns").At(pos)
	}
	return nil
}

// inClasses makes an InSubquery if a class compares every pair; otherwise it returns nil. Columns whose type differs
// from that of the comparison are cast inside the subquery.
func (b *binder) inClasses(x []expr.Scalar, sub *expr.Subquery, q *query, pos int) (*expr.InSubquery, error) {
	in := &expr.InSubquery{X: x, Sub: sub}
	for i := range x {
		eq, err := b.operator("=", x[i], b.column(q.cols[i].id, 0), pos)
		if err != nil {
			return nil, err
		}
		c, ok := eq.(*expr.Compare)
		if !ok {
			return nil, nil
		}
		in.X[i] = c.L
		in.Classes = append(in.Classes, c.Class)
		if err := b.retype(q, i, c.R.Type(), castImplicit); err != nil {
			return nil, err
		}
	}
	b.refresh(sub, q)
	return in, nil
}

// rowSubquery binds (a, b) op (SELECT …): each field is compared with a scalar subquery of its column. They all read one
// snapshot, and therefore one row.
func (sc *scope) rowSubquery(op expr.CmpOp, row *ast.Row, query *ast.Query, pos int) (expr.Scalar, error) {
	columns, err := sc.scalarColumns(query, len(row.Elems), pos)
	if err != nil {
		return nil, err
	}
	x := make([]expr.Scalar, len(columns))
	for i := range columns {
		if x[i], err = sc.expr(row.Elems[i]); err != nil {
			return nil, err
		}
	}
	return sc.b.rowOperator(op.String(), x, columns, pos)
}

// scalarColumns binds a query of n columns as n scalar subqueries.
func (sc *scope) scalarColumns(query *ast.Query, n, pos int) ([]expr.Scalar, error) {
	out := make([]expr.Scalar, n)
	for i := range out {
		if sc.noSubqueries != nil {
			return nil, sc.noSubqueries
		}
		q, err := sc.b.bindQuery(query, sc, true)
		if err != nil {
			return nil, err
		}
		if err := checkWidth(n, len(q.cols), pos); err != nil {
			return nil, err
		}
		q.cols = q.cols[i : i+1]
		out[i] = &expr.ScalarSubquery{Sub: sc.b.newSubquery(q)}
	}
	return out, nil
}

func (sc *scope) quantified(e *ast.Quantified) (expr.Scalar, error) {
	if e.Query == nil {
		return sc.quantifiedArray(e)
	}
	if row, ok := e.X.(*ast.Row); ok && len(row.Elems) != 1 {
		return sc.quantifiedRow(e, row)
	}
	op := expr.ParseCmpOp(e.Op)
	if sc.b.notes == nil && len(sc.b.r.Operations().Named(e.Op)) == 0 && (op == expr.EQ && !e.All || op == expr.NE && e.All) {
		return sc.inOne(&ast.InSubquery{Pos: e.Pos, X: e.X, Query: e.Query, Not: op == expr.NE})
	}
	sub, q, err := sc.subquery(e.Query, false)
	if err != nil {
		return nil, err
	}
	x, err := sc.expr(unwrapRow(e.X))
	if err != nil {
		return nil, err
	}
	if err := checkWidth(1, len(q.cols), int(e.Pos)); err != nil {
		return nil, err
	}
	sc.b.writing = true
	y, err := sc.b.quantify(x, quantifiedOp(e), e.All, sub, q, int(e.Pos))
	sc.b.writing, e.Operator = false, sc.b.userOperator
	return y, err
}

// quantify makes X op ANY|ALL (subquery).
func (b *binder) quantify(x expr.Scalar, op string, all bool, sub *expr.Subquery, q *query, pos int) (expr.Scalar, error) {
	// Before either side is replaced by its placeholder.
	x, err := b.meetUnknowns(x, q, 0, pos)
	if err != nil {
		return nil, err
	}
	b.refresh(sub, q)
	column := &expr.Column{ID: -1, Ordinal: 0, Typ: sub.Types[0], Name: q.cols[0].name}
	cond, err := b.operator(op, &expr.CaseValue{Typ: x.Type()}, column, pos)
	if err != nil {
		return nil, err
	}
	if cond.Type().OID != types.OIDBool {
		return nil, pgerror.New(pgerror.WrongObjectType, "op ANY/ALL (array) requires operator to yield boolean").At(pos)
	}
	return &expr.QuantifiedSubquery{X: x, Sub: sub, Cond: cond, All: all, Op: b.quantified(op)}, nil
}

// quantifiedArray binds X op ANY|ALL (array).
func (sc *scope) quantifiedArray(e *ast.Quantified) (expr.Scalar, error) {
	b, pos := sc.b, int(e.Pos)
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	arr, err := sc.expr(e.Array)
	if err != nil {
		return nil, err
	}
	if arr.Type().OID == types.OIDUnknown {
		// A parameter or literal is an array of the type of the left side.
		elem := x.Type().Base()
		if elem.OID == types.OIDUnknown {
			elem = types.TText
		}
		if elem.OID == types.OIDVarchar {
			elem = types.TText
		}
		name, err := b.operatorName(quantifiedOp(e), pos)
		if err != nil {
			return nil, err
		}
		if _, err := name.Resolve(x.Type(), elem); err != nil { // Or of the type that the operator has there.
			if o, err := name.Resolve(x.Type(), types.TUnknown); err == nil {
				elem = o.Args[1]
			}
		}
		if arr, err = b.coerce(arr, elem.ArrayOf(), castImplicit, startOf(e.Array)); err != nil {
			return nil, err
		}
	}
	if arr = undomain(arr); !arr.Type().IsArray() {
		return nil, pgerror.New(pgerror.WrongObjectType, "op ANY/ALL (array) requires array on right side").At(pos)
	}
	elem := arr.Type().Elem()
	if x.Type().OID == types.OIDUnknown {
		if x, err = b.coerce(x, elem.Base(), castImplicit, startOf(e.X)); err != nil {
			return nil, err
		}
	}
	b.writing = true
	y, err := b.quantifyArray(x, arr, quantifiedOp(e), e.All, pos)
	b.writing, e.Operator = false, b.userOperator
	return y, err
}

// quantifiedOp returns the operator before ANY or ALL as operatorName takes it.
func quantifiedOp(e *ast.Quantified) string {
	if e.Qualified {
		return systemOperator(e.Op)
	}
	return e.Op
}

// quantifyArray makes X op ANY|ALL (array).
func (b *binder) quantifyArray(x, arr expr.Scalar, op string, all bool, pos int) (expr.Scalar, error) {
	column := &expr.Column{ID: -1, Ordinal: 0, Typ: arr.Type().Elem(), Name: "element"}
	cond, err := b.operator(op, &expr.CaseValue{Typ: x.Type()}, column, pos)
	if err != nil {
		return nil, err
	}
	if cond.Type().OID != types.OIDBool {
		return nil, pgerror.New(pgerror.WrongObjectType, "op ANY/ALL (array) requires operator to yield boolean").At(pos)
	}
	return &expr.Quantified{X: x, Array: arr, Cond: cond, All: all, Op: b.quantified(op)}, nil
}
