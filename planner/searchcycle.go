package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// recursionExtension adds the columns of SEARCH and CYCLE to both terms of a recursive query. Every row carries them: the recursive term
// reads those of the row that it continues, and a projection above it makes those of the new row. BREADTH FIRST carries the depth besides
// its column, whose type hides it.
type recursionExtension struct {
	b     *binder
	def   *ast.CTE
	names []string // those of the query's own columns
	mark  types.Type
	depth bool
}

// depthColumn is the name of the depth; no statement can mean it.
const depthColumn = "*DEPTH*"

// extension checks SEARCH and CYCLE of an item whose non-recursive term is bound.
func (b *binder) extension(def *ast.CTE, u *ast.SetOp, init *query) (*recursionExtension, error) {
	x := &recursionExtension{b: b, def: def}
	if def.Search == nil && def.Cycle == nil {
		return x, nil
	}
	for _, c := range init.cols {
		x.names = append(x.names, c.name)
	}
	if selectOf(u.L) == nil {
		if _, values := u.L.(*ast.Values); !values {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT")
		}
	}
	if selectOf(u.R) == nil {
		return nil, pgerror.New(pgerror.SyntaxError, "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT")
	}
	if err := x.checkSearch(); err != nil {
		return nil, err
	}
	return x, x.checkCycle()
}

// selectOf returns the SELECT that a side of a set operation is, parenthesised or not; nil: it is none.
func selectOf(body ast.QueryBody) *ast.Select {
	switch n := body.(type) {
	case *ast.Select:
		return n
	case *ast.Nested:
		return selectOf(n.Query.Body)
	}
	return nil
}

// checkColumns checks the columns that SEARCH or CYCLE compares.
func (x *recursionExtension) checkColumns(clause string, columns []string, pos int) error {
	for i, name := range columns {
		if !slices.Contains(x.names, name) {
			return pgerror.New(pgerror.SyntaxError, "%s column \"%s\" not in WITH query column list", clause, name).At(pos)
		}
		if slices.Contains(columns[:i], name) {
			return pgerror.New(pgerror.DuplicateColumn, "%s column \"%s\" specified more than once", clause, name).At(pos)
		}
	}
	return nil
}

func (x *recursionExtension) checkNew(what, name string, pos int) error {
	if slices.Contains(x.names, name) {
		return pgerror.New(pgerror.SyntaxError, "%s column name \"%s\" already used in WITH query column list", what, name).At(pos)
	}
	return nil
}

func (x *recursionExtension) checkSearch() error {
	s := x.def.Search
	if s == nil {
		return nil
	}
	x.depth = s.Breadth
	if err := x.checkColumns("search", s.Columns, int(s.Pos)); err != nil {
		return err
	}
	return x.checkNew("search sequence", s.Set, int(s.Pos))
}

func (x *recursionExtension) checkCycle() error {
	c := x.def.Cycle
	if c == nil {
		return nil
	}
	if err := x.checkColumns("cycle", c.Columns, int(c.Pos)); err != nil {
		return err
	}
	if err := x.checkNew("cycle mark", c.Mark, int(c.Pos)); err != nil {
		return err
	}
	sc := newScope(x.b, nil)
	to, err := sc.expr(x.to())
	if err != nil {
		return err
	}
	def, err := sc.expr(x.otherwise())
	if err != nil {
		return err
	}
	values, at := []expr.Scalar{to, def}, []int{posOf(to, 0), posOf(def, 0)}
	if c.To != nil {
		at = []int{startOf(c.To), startOf(c.Default)}
	}
	if x.mark, err = x.b.unify(values, at, "CYCLE"); err != nil {
		return err
	}
	if err := requireEquality(x.mark, 0); err != nil {
		return err
	}
	if err := x.checkNew("cycle path", c.Using, int(c.Pos)); err != nil {
		return err
	}
	same := func(a, b string, pos ast.Pos) error {
		return pgerror.New(pgerror.SyntaxError, "%s column name and %s column name are the same", a, b).At(int(pos))
	}
	s := x.def.Search
	switch {
	case c.Mark == c.Using:
		return same("cycle mark", "cycle path", c.Pos)
	case s != nil && s.Set == c.Mark:
		return same("search sequence", "cycle mark", s.Pos)
	case s != nil && s.Set == c.Using:
		return same("search sequence", "cycle path", s.Pos)
	}
	return nil
}

// to is the mark of a row that closes a cycle.
func (x *recursionExtension) to() ast.Expr {
	if x.def.Cycle.To == nil {
		return &ast.Bool{Value: true}
	}
	return x.def.Cycle.To
}

// otherwise is the mark of other rows.
func (x *recursionExtension) otherwise() ast.Expr {
	if x.def.Cycle.To == nil {
		return &ast.Bool{}
	}
	return x.def.Cycle.Default
}

// added returns the names of the columns that the rows carry besides the query's own.
func (x *recursionExtension) added() []string {
	var names []string
	if x.def.Search != nil {
		names = append(names, x.def.Search.Set)
	}
	if x.def.Cycle != nil {
		names = append(names, x.def.Cycle.Mark, x.def.Cycle.Using)
	}
	if x.depth {
		names = append(names, depthColumn)
	}
	return names
}

func (x *recursionExtension) count() int { return len(x.added()) }

// trim takes the depth from the finished query's columns.
func (x *recursionExtension) trim(q *query) {
	if x.depth {
		q.cols = q.cols[:len(q.cols)-1]
	}
}

// first adds the columns of the rows with which the recursion begins.
func (x *recursionExtension) first(init *query) (*query, error) {
	var list []ast.Expr
	if s := x.def.Search; s != nil && s.Breadth {
		list = append(list, x.row(s.Columns, &ast.Cast{X: zero(), Type: bigint}))
	} else if s != nil {
		list = append(list, &ast.Array{Elems: []ast.Expr{x.row(s.Columns)}})
	}
	if c := x.def.Cycle; c != nil {
		list = append(list, x.otherwise(), &ast.Array{Elems: []ast.Expr{x.row(c.Columns)}})
	}
	if x.depth {
		list = append(list, &ast.Cast{X: zero(), Type: bigint})
	}
	return x.project(init, init.cols, nil, list)
}

// next makes the columns of the rows of one round from those of the rows that they continue, which step's last columns are.
func (x *recursionExtension) next(step *query) (*query, error) {
	var list []ast.Expr
	own := step.cols[:len(x.names)]
	deeper := &ast.Binary{Op: "+", L: extensionRef(depthColumn), R: &ast.Literal{Kind: ast.LiteralInt4, Slot: -1, Value: "1"}}
	longer := func(path string, columns []string) ast.Expr {
		return &ast.Binary{Op: "||", L: extensionRef(path), R: &ast.Array{Elems: []ast.Expr{x.row(columns)}}}
	}
	if s := x.def.Search; s != nil && s.Breadth {
		list = append(list, x.row(s.Columns, deeper))
	} else if s != nil {
		list = append(list, longer(s.Set, s.Columns))
	}
	if c := x.def.Cycle; c != nil {
		met := &ast.Quantified{X: x.row(c.Columns), Op: "=", Array: extensionRef(c.Using)}
		list = append(list, &ast.Case{Whens: []ast.When{{Cond: met, Then: x.to()}}, Else: x.otherwise()}, longer(c.Using, c.Columns))
	}
	if x.depth {
		list = append(list, deeper)
	}
	return x.project(step, own, step.cols[len(own):], list)
}

// extensionAlias qualifies the columns of a term in the expressions made here.
const extensionAlias = "*TERM*"

func extensionRef(name string) ast.Expr { return &ast.ColumnRef{Parts: []string{extensionAlias, name}} }

func zero() ast.Expr { return &ast.Literal{Kind: ast.LiteralInt4, Slot: -1, Value: "0"} }

var bigint = ast.TypeName{Name: []string{"int8"}}

// row makes ROW(before, columns of the term).
func (x *recursionExtension) row(columns []string, before ...ast.Expr) ast.Expr {
	r := &ast.Row{Explicit: true, Elems: before}
	for _, name := range columns {
		r.Elems = append(r.Elems, extensionRef(name))
	}
	return r
}

// project puts the expressions behind the own columns of a term. They may name these, and the carried ones.
func (x *recursionExtension) project(term *query, own, carried []outCol, list []ast.Expr) (*query, error) {
	if len(list) == 0 {
		return term, nil
	}
	sc := newScope(x.b, nil)
	item := nsItem{alias: extensionAlias, rel: true}
	for i, c := range own {
		item.cols = append(item.cols, nsCol{name: x.names[i], id: c.id})
	}
	added := x.added()
	for i, c := range carried {
		item.cols = append(item.cols, nsCol{name: added[i], id: c.id})
	}
	sc.items = []nsItem{item}
	p := &projectRel{input: term.root}
	out := &query{root: p, cols: slices.Clone(own)}
	for i, e := range list {
		v, err := sc.expr(e)
		if err != nil {
			return nil, err
		}
		if x.def.Cycle != nil && added[i] == x.def.Cycle.Mark {
			if v, err = x.b.coerce(v, x.mark, castImplicit, 0); err != nil {
				return nil, err
			}
		}
		id := x.b.newColumn(added[i], v.Type())
		p.items = append(p.items, projection{id: id, e: v})
		out.cols = append(out.cols, outCol{id: id, name: added[i]})
	}
	return out, nil
}

// carry returns the recursive term with the added columns of the row that it continues at the end of its select list. It stops at rows with
// the mark.
func (x *recursionExtension) carry(right ast.QueryBody) (ast.QueryBody, error) {
	if x.count() == 0 {
		return right, nil
	}
	if n, ok := right.(*ast.Nested); ok {
		inner := *n.Query
		if inner.With != nil && slices.ContainsFunc(inner.With.CTEs, func(c ast.CTE) bool { return c.Name == x.def.Name }) {
			return nil, x.errReference()
		}
		body, err := x.carry(inner.Body)
		inner.Body = body
		return &ast.Nested{Query: &inner}, err
	}
	term := right.(*ast.Select)
	s := *term
	if x.b.notes != nil {
		x.b.notes.copies[&s] = term
	}
	alias := ""
	for _, t := range s.From {
		if alias == "" {
			alias = x.aliasIn(t)
		}
	}
	if alias == "" {
		return nil, x.errReference()
	}
	s.Columns = slices.Clone(s.Columns)
	for _, name := range x.added() {
		s.Columns = append(s.Columns, ast.SelectItem{Expr: &ast.ColumnRef{Parts: []string{alias, name}}, Name: name})
	}
	if x.def.Cycle != nil {
		var open ast.Expr = &ast.Binary{Op: "<>", L: &ast.ColumnRef{Parts: []string{alias, x.def.Cycle.Mark}}, R: x.to()}
		if s.Where != nil {
			open = &ast.Binary{Op: "AND", L: s.Where, R: open}
		}
		s.Where = open
	}
	return &s, nil
}

// errReference is the error for a recursive reference in a subquery or in another item of WITH.
func (x *recursionExtension) errReference() error {
	return pgerror.New(pgerror.FeatureNotSupported,
		"with a SEARCH or CYCLE clause, the recursive reference to WITH query \"%s\" must be at the top level of its right-hand SELECT",
		x.def.Name)
}

// aliasIn returns the name that the reference to the query has within an item of FROM; empty: it is not there.
func (x *recursionExtension) aliasIn(t ast.TableExpr) string {
	switch n := t.(type) {
	case *ast.TableRef:
		if n.Name.Schema != "" || n.Name.Name != x.def.Name {
			return ""
		}
		if n.Alias != "" {
			return n.Alias
		}
		return n.Name.Name
	case *ast.Join:
		if alias := x.aliasIn(n.L); alias != "" {
			return alias
		}
		return x.aliasIn(n.R)
	}
	return ""
}
