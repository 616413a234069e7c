package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// bindNotes record how the parts of a statement's text were bound, for printing the statement as PostgreSQL does. A binder that keeps them
// binds verbatim: what it makes has the form of the text, with the casts that PostgreSQL's parser adds, and nothing is merged, inlined or
// replaced for the sake of execution.
type bindNotes struct {
	bound map[ast.Expr]expr.Scalar
	forms map[expr.Scalar]form
	// args are the arguments of calls that a node of the plan computes: aggregates, window functions, functions that return sets.
	args map[*ast.Call][]expr.Scalar
	// queries are the bound bodies of queries.
	queries map[ast.QueryBody]*query
	// columns are the names of the columns of FROM items.
	columns map[ast.TableExpr][]string
	// using are the columns that joins merge, those of NATURAL among them.
	using map[*ast.Join][]string
	// copies are SELECTs that were bound in place of others.
	copies map[*ast.Select]*ast.Select
}

// form is the text of a bound expression.
type form struct {
	e ast.Expr
	// Of the name of a column or a row: the SELECT that it belongs to (nil: the table of an expression outside of queries), the FROM item
	// there ("": the column is one of a join), and the column's name in it ("": the whole row).
	stmt          *ast.Select
	alias, column string
}

func newBindNotes() *bindNotes {
	return &bindNotes{
		bound: map[ast.Expr]expr.Scalar{}, forms: map[expr.Scalar]form{}, args: map[*ast.Call][]expr.Scalar{},
		queries: map[ast.QueryBody]*query{}, columns: map[ast.TableExpr][]string{}, using: map[*ast.Join][]string{},
		copies: map[*ast.Select]*ast.Select{},
	}
}

// original returns the SELECT of the text that s is bound in place of.
func (n *bindNotes) original(s *ast.Select) *ast.Select {
	if n != nil && n.copies[s] != nil {
		return n.copies[s]
	}
	return s
}

// expr notes what an expression was bound to.
func (n *bindNotes) expr(sc *scope, e ast.Expr, x expr.Scalar) {
	if n == nil {
		return
	}
	n.bound[e] = x
	if _, noted := n.forms[x]; noted {
		return // A cast to the type that the value has.
	}
	f := form{e: e}
	switch e := e.(type) {
	case *ast.ColumnRef:
		f = sc.originOf(e, x)
	case *ast.Star: // It stands for a row.
		if len(e.Table) > 0 {
			f = sc.rowOf(form{e: e, column: e.Table[len(e.Table)-1]})
		}
	}
	n.forms[x] = f
}

// part notes the text of what becomes a part of the expression that the text is bound to.
func (n *bindNotes) part(e ast.Expr, x expr.Scalar) {
	if n != nil {
		n.forms[x] = form{e: e}
	}
}

// call notes the arguments of a call.
func (n *bindNotes) call(e *ast.Call, args []expr.Scalar) {
	if n != nil {
		n.args[e] = args
	}
}

// coerced notes what expressions were cast to.
func (n *bindNotes) coerced(es []ast.Expr, xs []expr.Scalar) {
	if n == nil {
		return
	}
	for i := range es {
		n.bound[es[i]] = xs[i]
	}
}

// item notes the columns of a FROM item.
func (n *bindNotes) item(t ast.TableExpr, item *nsItem) {
	if n == nil {
		return
	}
	names := make([]string, len(item.cols))
	for i := range names {
		names[i] = item.cols[i].name
	}
	n.columns[t] = names
}

// originOf finds the FROM item that a name means, which was bound to x.
func (sc *scope) originOf(ref *ast.ColumnRef, x expr.Scalar) form {
	f := form{e: ref, column: ref.Parts[len(ref.Parts)-1]}
	for at := sc; at != nil; at = at.outer {
		it := at.itemOf(ref.Parts)
		if it == nil {
			continue
		}
		if at.sel != nil {
			f.stmt = at.sel.stmt
		}
		f.alias = it.alias
		if c, ok := x.(*expr.Column); ok && (it.alias == "" || it.merged) {
			at.sideOf(c, &f)
		}
		return f
	}
	return sc.rowOf(f)
}

// rowOf finds the FROM item of which the name in f.column is the whole row.
func (sc *scope) rowOf(f form) form {
	for at := sc; at != nil; at = at.outer {
		i := slices.IndexFunc(at.items, func(it nsItem) bool { return it.rel && it.alias == f.column })
		if i < 0 {
			continue
		}
		if at.sel != nil {
			f.stmt = at.sel.stmt
		}
		f.alias, f.column = f.column, ""
		return f
	}
	return f
}

// itemOf returns the item of this level that the name of a column means, nil if it is at another.
func (sc *scope) itemOf(parts []string) *nsItem {
	column := parts[len(parts)-1]
	for i := range sc.items {
		it := &sc.items[i]
		if len(parts) > 1 && it.rel && it.alias == parts[len(parts)-2] {
			return it
		}
		if len(parts) == 1 && it.open && slices.ContainsFunc(it.cols, func(c nsCol) bool { return c.name == column }) {
			return it
		}
	}
	return nil
}

// sideOf finds the side of a join that a column of the join belongs to, if it is not merged of both.
func (sc *scope) sideOf(c *expr.Column, f *form) {
	for i := range sc.items {
		it := &sc.items[i]
		if it.alias == "" || it.merged {
			continue
		}
		for j := range it.cols {
			if it.cols[j].e == nil && it.cols[j].id == c.ID {
				f.alias, f.column = it.alias, it.cols[j].name
				return
			}
		}
	}
}

// verbatimInList binds X IN (a, b, …) as PostgreSQL's parser does: the values that name no column become an array, the others comparisons.
func (b *binder) verbatimInList(x expr.Scalar, list []expr.Scalar, e *ast.InList) (expr.Scalar, error) {
	pos, op := int(e.Pos), "="
	if e.Not {
		op = "<>"
	}
	var args, plain, others []expr.Scalar
	var at []int
	ts := []types.Type{x.Type()}
	for i, v := range list {
		if hasColumn(v) {
			others = append(others, v)
			continue
		}
		plain, at, ts = append(plain, v), append(at, startOf(e.List[i])), append(ts, v.Type())
	}
	common, err := b.commonType(ts, nil, "IN")
	if len(plain) > 1 && err == nil && common.OID != types.OIDRecord {
		if common.OID == types.OIDUnknown {
			common = types.TText
		}
		for i := range plain {
			if plain[i], err = b.coerce(plain[i], common.Base(), castImplicit, at[i]); err != nil {
				return nil, err
			}
		}
		any, err := b.quantifyArray(x, &expr.Array{Elems: plain, Typ: common.Base().ArrayOf()}, op, e.Not, pos)
		if err != nil {
			return nil, err
		}
		args = append(args, any)
	} else {
		others = list
	}
	for _, v := range others {
		compared, err := b.operator(op, x, v, pos)
		if err != nil {
			return nil, err
		}
		args = append(args, compared)
	}
	switch {
	case len(args) == 1:
		return args[0], nil
	case e.Not:
		return &expr.And{Args: args}, nil
	}
	return &expr.Or{Args: args}, nil
}

// hasColumn reports whether an expression names a column of its own query.
func hasColumn(x expr.Scalar) bool {
	found := false
	expr.Walk(x, func(s expr.Scalar) bool {
		_, column := s.(*expr.Column)
		found = found || column
		return !found
	})
	return found
}
