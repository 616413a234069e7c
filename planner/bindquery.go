package planner

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// query is a bound query: a tree and which of its columns are the result, in order.
type query struct {
	root rel
	cols []outCol
	// items has the expressions of computed result columns whose type is still unknown, so that the enclosing query can
	// give them one.
	items *projectRel
	// values is the same for VALUES.
	values *valuesRel
	// casts computes the result columns that retype has cast.
	casts *projectRel
	// sel is the query's SELECT, nil if it is not one; combined marks a set operation.
	sel      *selectBinder
	combined bool
}

// outCol is a result column.
type outCol struct {
	id   int
	name string
	pos  int
	// explicit is the collation of a column to which COLLATE has given it, at collateAt; set operations take it from there.
	explicit  *collation.Collation
	collateAt int
}

func (q *query) ids() []int {
	ids := make([]int, len(q.cols))
	for i := range q.cols {
		ids[i] = q.cols[i].id
	}
	return ids
}

// bindQuery binds a query below outer (nil at the top). Columns of unknown type stay so unless
// resolve is set, which makes them text.
func (b *binder) bindQuery(q *ast.Query, outer *scope, resolve bool) (*query, error) {
	if err := b.enter(int(q.Pos)); err != nil {
		return nil, err
	}
	defer b.leave()
	if q.With != nil {
		inner := newScope(b, outer)
		if err := b.bindWith(inner, q.With); err != nil {
			return nil, err
		}
		outer = inner
	}
	out, err := b.bindBody(q.Body, q, outer)
	if err != nil {
		return nil, err
	}
	if b.notes != nil {
		b.notes.queries[q.Body] = out
	}
	if resolve {
		b.resolveUnknowns(out)
	}
	return out, nil
}

// bindBody binds a query's body together with the ORDER BY, LIMIT and locking of q, which is nil
// for a side of a set operation.
func (b *binder) bindBody(body ast.QueryBody, q *ast.Query, outer *scope) (*query, error) {
	switch body := body.(type) {
	case *ast.Select:
		return b.bindSelect(body, q, outer)
	case *ast.Values:
		out, err := b.bindValues(body, outer)
		if err != nil {
			return nil, err
		}
		return out, b.finishQuery(out, q, outer)
	case *ast.SetOp:
		out, err := b.bindSetOp(body, outer)
		if err != nil {
			return nil, err
		}
		return out, b.finishQuery(out, q, outer)
	case *ast.Nested:
		out, err := b.bindQuery(body.Query, outer, false)
		if err != nil {
			return nil, err
		}
		return out, b.finishQuery(out, q, outer)
	}
	return nil, pgerror.New(pgerror.InternalError, "unknown query body %T", body)
}

// finishQuery adds ORDER BY and LIMIT to a query that is no SELECT: only its columns' names and
// places may be named.
func (b *binder) finishQuery(out *query, q *ast.Query, outer *scope) error {
	if q == nil {
		return nil
	}
	if len(q.Locking) > 0 {
		return lockingError(q.Body, q.Locking[0])
	}
	if len(q.OrderBy) > 0 {
		keys, err := b.setOpOrder(out, q.OrderBy, outer)
		if err != nil {
			return err
		}
		b.resolveUnknowns(out)
		out.root = &sortRel{input: out.root, keys: keys}
	}
	return b.addLimit(out, q, newScope(b, outer))
}

func lockingError(body ast.QueryBody, l ast.Locking) error {
	what := "VALUES"
	if _, ok := body.(*ast.SetOp); ok {
		what = "UNION/INTERSECT/EXCEPT"
	}
	if what == "VALUES" {
		return pgerror.New(pgerror.FeatureNotSupported, "FOR %s cannot be applied to VALUES", l.Strength)
	}
	return pgerror.New(pgerror.FeatureNotSupported, "FOR %s is not allowed with %s", l.Strength, what)
}

// setOpOrder binds the ORDER BY of a set operation or VALUES.
func (b *binder) setOpOrder(out *query, items []ast.OrderItem, outer *scope) ([]SortKey, error) {
	var keys []SortKey
	for _, it := range items {
		i, err := b.outputColumn(out.cols, it.Expr, "ORDER BY")
		if err != nil {
			return nil, err
		}
		if i < 0 {
			// Only to report a name that does not exist as PostgreSQL does.
			sc := newScope(b, outer)
			item := nsItem{open: true}
			for _, c := range out.cols {
				item.cols = append(item.cols, nsCol{name: c.name, id: c.id})
			}
			sc.items = append(sc.items, item)
			sc.in("ORDER BY", false, false)
			if _, err := sc.expr(it.Expr); err != nil {
				return nil, err
			}
			return nil, pgerror.New(pgerror.FeatureNotSupported, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause").
				WithDetail("Only result column names can be used, not expressions or functions.").
				WithHint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.").At(startOf(it.Expr))
		}
		key := b.column(out.cols[i].id, 0)
		if err := requireOrder(key.Type(), startOf(it.Expr)); err != nil {
			return nil, err
		}
		keys = append(keys, SortKey{Expr: key, Desc: it.Desc, NullsFirst: it.NullsFirst})
	}
	return keys, nil
}

// outputColumn returns the result column that an ORDER BY or GROUP BY item names by place or by
// alias, -1 when it does neither.
func (b *binder) outputColumn(cols []outCol, e ast.Expr, clause string) (int, error) {
	if lit := placeConstant(e); lit != nil {
		return placeOf(lit, len(cols), clause)
	}
	switch e := e.(type) {
	case *ast.ColumnRef:
		if len(e.Parts) != 1 {
			return -1, nil
		}
		found := -1
		for i := range cols {
			if cols[i].name != e.Parts[0] {
				continue
			}
			if found >= 0 && cols[found].id != cols[i].id {
				return 0, pgerror.New(pgerror.AmbiguousColumn, "%s \"%s\" is ambiguous", clause, e.Parts[0]).At(int(e.Pos))
			}
			if found < 0 {
				found = i
			}
		}
		return found, nil
	}
	return -1, nil
}

// placeConstant returns the constant that an item of ORDER BY, GROUP BY or DISTINCT ON is, nil for any other expression.
// A minus before a number is a part of the constant.
func placeConstant(e ast.Expr) *ast.Literal {
	switch e := e.(type) {
	case *ast.Literal:
		return e
	case *ast.Null:
		return &ast.Literal{Pos: e.Pos, Kind: ast.LiteralString, Slot: -1}
	case *ast.Bool:
		return &ast.Literal{Pos: e.Pos, Kind: ast.LiteralString, Slot: -1}
	case *ast.Unary:
		lit := placeConstant(e.X)
		if e.Op != "-" || lit == nil || lit.Kind == ast.LiteralString || lit.Kind == ast.LiteralBit {
			return nil
		}
		value, negative := strings.CutPrefix(lit.Value, "-")
		if !negative {
			value = "-" + value
		}
		return &ast.Literal{Pos: e.Pos, Kind: lit.Kind, Value: value, Slot: lit.Slot}
	}
	return nil
}

// placeOf reads ORDER BY 2.
func placeOf(e *ast.Literal, n int, clause string) (int, error) {
	if e.Kind != ast.LiteralInt4 {
		return 0, pgerror.New(pgerror.SyntaxError, "non-integer constant in %s", clause).At(int(e.Pos))
	}
	place := 0
	for _, c := range e.Value {
		if c == '-' {
			break
		}
		if place = place*10 + int(c-'0'); place > 1<<30 {
			break
		}
	}
	if place < 1 || place > n {
		return 0, pgerror.New(pgerror.InvalidColumnReference, "%s position %s is not in select list", clause, e.Value).At(int(e.Pos))
	}
	return place - 1, nil
}

// addLimit adds LIMIT and OFFSET, whose expressions may not depend on the query's own rows.
func (b *binder) addLimit(out *query, q *ast.Query, sc *scope) error {
	if q == nil || (q.Limit == nil && q.Offset == nil) {
		return nil
	}
	if err := checkTies(q); err != nil {
		return err
	}
	offset, err := b.limitExpr(q.Offset, "OFFSET", sc)
	if err != nil {
		return err
	}
	limit, err := b.limitExpr(q.Limit, "LIMIT", sc)
	if err != nil {
		return err
	}
	if isNullConst(limit) {
		limit = nil
	}
	if isNullConst(offset) {
		offset = nil
	}
	if limit != nil || offset != nil {
		l := &limitRel{input: out.root, limit: limit, offset: offset}
		if q.Ties && limit != nil {
			l.ties = orderOfQuery(out.root)
		}
		out.root = l
	}
	return nil
}

func isNullConst(e expr.Scalar) bool {
	c, ok := e.(*expr.Const)
	return ok && c.Value.IsNull()
}

func (b *binder) limitExpr(e ast.Expr, clause string, sc *scope) (expr.Scalar, error) {
	if e == nil {
		return nil, nil
	}
	sc.in(clause, false, false)
	b.limits = append(b.limits, limitScope{depth: sc.depth})
	x, err := sc.expr(e)
	last := len(b.limits) - 1
	named := b.limits[last].named
	b.limits = b.limits[:last]
	if err != nil {
		return nil, err
	}
	if named {
		return nil, pgerror.New(pgerror.InvalidColumnReference, "argument of %s must not contain variables", clause).At(startOf(e))
	}
	from := x.Type()
	if x, err = b.coerce(x, types.TInt8, castAssignment, startOf(e)); err != nil {
		if pe, ok := err.(*pgerror.Error); ok && (pe.Code == pgerror.DatatypeMismatch || pe.Code == pgerror.CannotCoerce) {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type bigint, not type %s", clause, from).At(startOf(e))
		}
		return nil, err
	}
	return x, nil
}

// resolveUnknowns gives type text to result columns whose type is not determined.
func (b *binder) resolveUnknowns(q *query) {
	for i := range q.cols {
		if b.cols[q.cols[i].id].Type.OID == types.OIDUnknown {
			// An unknown literal, parameter or NULL always becomes text.
			_ = b.retype(q, i, types.TText, castImplicit)
		}
	}
}

// retype gives result column i another type: in place where a literal has none yet, otherwise by a
// cast on top.
func (b *binder) retype(q *query, i int, t types.Type, how castContext) error {
	id := q.cols[i].id
	have := b.cols[id].Type
	if have == t {
		return nil
	}
	if have.OID == types.OIDUnknown && q.items != nil {
		for j := range q.items.items {
			it := &q.items.items[j]
			if it.id != id {
				continue
			}
			e, err := b.coerce(it.e, t, how, q.cols[i].pos)
			if err != nil {
				return err
			}
			it.e = e
			b.cols[id].Type = e.Type()
			return nil
		}
	}
	if have.OID == types.OIDUnknown && q.values != nil {
		return b.retypeValues(q, i, t, how)
	}
	e, err := b.coerce(b.column(id, q.cols[i].pos), t, how, q.cols[i].pos)
	if err != nil {
		return err
	}
	if c, ok := e.(*expr.Column); ok && c.ID == id {
		return nil // binary compatible
	}
	to := b.newColumn(q.cols[i].name, e.Type())
	q.cols[i].id = to
	item := projection{id: to, e: e}
	if q.root != rel(q.casts) || q.casts == nil {
		q.casts = &projectRel{input: q.root}
		q.root = q.casts
	}
	q.casts.items = append(q.casts.items, item)
	return nil
}

// retypeValues gives the literals of a VALUES column their type.
func (b *binder) retypeValues(q *query, i int, t types.Type, how castContext) error {
	for _, row := range q.values.rows {
		e, err := b.coerce(row[i], t, how, posOf(row[i], q.cols[i].pos))
		if err != nil {
			return err
		}
		row[i] = e
	}
	b.cols[q.cols[i].id].Type = t
	return nil
}

// bindValues binds VALUES: every column takes the common type of its values.
func (b *binder) bindValues(v *ast.Values, outer *scope) (*query, error) {
	sc := newScope(b, outer)
	sc.in("VALUES", false, false)
	first, err := sc.spread(v.Rows[0])
	if err != nil {
		return nil, err
	}
	width := len(first)
	if width > maxTargets {
		return nil, errTooManyTargets()
	}
	rows, written := make([][]expr.Scalar, len(v.Rows)), make([][]ast.Expr, len(v.Rows))
	for i, row := range v.Rows {
		if row, err = sc.spread(row); err != nil {
			return nil, err
		}
		written[i] = row
		if len(row) != width {
			return nil, pgerror.New(pgerror.SyntaxError, "VALUES lists must all be the same length").At(startOf(row[0]))
		}
		rows[i] = make([]expr.Scalar, width)
		for j, e := range row {
			if d, ok := e.(*ast.Default); ok {
				return nil, pgerror.New(pgerror.SyntaxError, "DEFAULT is not allowed in this context").At(int(d.Pos))
			}
			x, err := sc.expr(e)
			if err != nil {
				return nil, err
			}
			rows[i][j] = x
		}
	}
	out := &query{}
	rel := &valuesRel{rows: rows}
	for j := 0; j < width; j++ {
		column := make([]expr.Scalar, len(rows))
		pos := make([]int, len(rows))
		for i := range rows {
			column[i], pos[i] = rows[i][j], startOf(written[i][j])
		}
		t, err := b.unify(column, pos, "VALUES")
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i][j] = column[i]
		}
		name := "column" + itoa(j+1)
		id := b.newColumn(name, t)
		rel.cols = append(rel.cols, id)
		out.cols = append(out.cols, outCol{id: id, name: name, pos: pos[0]})
	}
	out.root, out.values = rel, rel
	return out, nil
}

// maxBranches bounds a chain of set operations: the tree is as deep as the chain is long.
const maxBranches = 20_000

// bindSetOp binds UNION and its kind. A chain of them, which is written without parentheses, does not count as
// nesting.
func (b *binder) bindSetOp(s *ast.SetOp, outer *scope) (*query, error) {
	if err := b.enter(int(s.Pos)); err != nil {
		return nil, err
	}
	defer b.leave()
	chain := []*ast.SetOp{s}
	for first, ok := s.L.(*ast.SetOp); ok; first, ok = first.L.(*ast.SetOp) {
		if chain = append(chain, first); len(chain) > maxBranches {
			return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
				WithHint(fmt.Sprintf("A statement may combine %d queries; insert them into a table one by one.", maxBranches)).At(int(s.Pos))
		}
	}
	q, err := b.bindBody(chain[len(chain)-1].L, nil, outer)
	for i := len(chain) - 1; i >= 0 && err == nil; i-- {
		var r *query
		if r, err = b.bindBody(chain[i].R, nil, outer); err == nil {
			q, err = b.setOp(chain[i], q, r)
		}
	}
	return q, err
}

// sameWidth checks that both sides of a set operation have the same number of columns.
func sameWidth(l, r *query, op string) error {
	if len(l.cols) == len(r.cols) {
		return nil
	}
	pos := 0 // of the right side's first column, if it has one
	if len(r.cols) > 0 {
		pos = r.cols[0].pos
	}
	return pgerror.New(pgerror.SyntaxError, "each %s query must have the same number of columns", op).At(pos)
}

func (b *binder) setOp(s *ast.SetOp, l, r *query) (*query, error) {
	if err := sameWidth(l, r, s.Op); err != nil {
		return nil, err
	}
	rel := &setOpRel{op: s.Op, all: s.All}
	out := &query{root: rel, combined: true}
	for i := range l.cols {
		t, err := b.unifySides(l, r, i, s.Op)
		if err != nil {
			return nil, err
		}
		if !s.All {
			if err := requireEquality(t, l.cols[i].pos); err != nil {
				return nil, err
			}
		}
		id := b.newColumn(l.cols[i].name, t)
		b.cols[id].notNull = b.cols[l.cols[i].id].notNull && b.cols[r.cols[i].id].notNull
		rel.cols = append(rel.cols, id)
		out.cols = append(out.cols, outCol{id: id, name: l.cols[i].name, pos: l.cols[i].pos})
	}
	rel.left, rel.right = l.root, r.root
	rel.leftCols, rel.rightCols = l.ids(), r.ids()
	return out, nil
}

// unifySides gives column i of both sides one type and returns it. It has a modifier only where both sides
// had the same.
func (b *binder) unifySides(l, r *query, i int, op string) (types.Type, error) {
	lt, rt := b.cols[l.cols[i].id].Type, b.cols[r.cols[i].id].Type
	if lt == rt && lt.OID != types.OIDUnknown {
		return lt, nil
	}
	t, err := b.commonType([]types.Type{lt, rt}, []int{l.cols[i].pos, r.cols[i].pos}, op)
	if err != nil {
		return t, err
	}
	if err := b.retype(l, i, t, castImplicit); err != nil {
		return t, err
	}
	if err := b.retype(r, i, t, castImplicit); err != nil {
		return t, err
	}
	t, err = commonCollation(t, []expr.Scalar{b.derivedColumn(l, i), b.derivedColumn(r, i)}, []int{l.cols[i].pos, r.cols[i].pos})
	return t, at(err, r.cols[i].collateAt)
}

// derivedColumn is column i of a query, with the derivation of its collation.
func (b *binder) derivedColumn(q *query, i int) *expr.Column {
	c := b.column(q.cols[i].id, q.cols[i].pos)
	if q.cols[i].explicit != nil {
		c.Typ.Coll = q.cols[i].explicit
	}
	return c
}
