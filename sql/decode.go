package sql

import (
	"fmt"
	"strconv"

	tast "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// decoder joins TiDB's tree, which has the shape of the queries, with the items its carriers stand for.
// It is strict: a node or a carrier it does not expect is an error. Such an error means that the
// normaliser let through what it should have refused, and is kept as the cause of a syntax error.
type decoder struct {
	items []item
	err   error
}

// decode gives the tree of the text in buf.
func (p *parser) decode() (ast.Statement, error) {
	st, err := p.tidb.parse(string(p.buf))
	if err != nil {
		return nil, undecodable(err)
	}
	d := decoder{items: p.items}
	node := d.statement(st)
	if d.err != nil {
		return nil, undecodable(d.err)
	}
	return node, nil
}

// fillExpr completes the queries of an expression that is the only item of a SELECT.
func (p *parser) fillExpr() error {
	st, err := p.tidb.parse(string(p.buf))
	if err != nil {
		return undecodable(err)
	}
	d := decoder{items: p.items}
	sel, ok := st.(*tast.SelectStmt)
	if !ok {
		return undecodable(fmt.Errorf("unexpected %T", st))
	}
	d.carrier(sel.Fields.Fields[0].Expr)
	if d.err != nil {
		return undecodable(d.err)
	}
	return nil
}

func undecodable(cause error) error {
	err := pgerror.New(pgerror.SyntaxError, "syntax error in the structure of the statement")
	err.Cause = cause
	return err
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// statement decodes a SELECT of TiDB's that is a query or carries another statement.
func (d *decoder) statement(node tast.Node) ast.Statement {
	sel, ok := node.(*tast.SelectStmt)
	if !ok || !d.carriesStatement(sel) {
		return d.query(node)
	}
	st, ok := d.head(sel).(ast.Statement)
	if !ok {
		d.fail("no statement at the head of a SELECT")
		return nil
	}
	d.addWith(st, sel.With)
	nameOutputs(st)
	return st
}

// carriesStatement reports whether a SELECT stands for a statement that is no query, without decoding
// it: every carrier is decoded once.
func (d *decoder) carriesStatement(sel *tast.SelectStmt) bool {
	if sel.Fields == nil || len(sel.Fields.Fields) != 1 {
		return false
	}
	var it *item
	switch x := sel.Fields.Fields[0].Expr.(type) {
	case *tast.ColumnNameExpr:
		it = d.item(x.Name.Name.O)
	case *tast.FuncCallExpr:
		it = d.item(x.FnName.O)
	}
	if it == nil {
		return false
	}
	_, ok := it.node.(ast.Statement)
	return ok
}

// addWith gives a data-modifying statement its WITH.
func (d *decoder) addWith(st ast.Statement, with *tast.WithClause) {
	if with == nil {
		return
	}
	switch st := st.(type) {
	case *ast.Insert:
		st.With = d.with(with)
	case *ast.Update:
		st.With = d.with(with)
	case *ast.Delete:
		st.With = d.with(with)
	default:
		d.fail("WITH before %T", st)
	}
}

// head decodes a SELECT's only field, which says what the SELECT is.
func (d *decoder) head(sel *tast.SelectStmt) any {
	if sel.Fields == nil || len(sel.Fields.Fields) != 1 {
		d.fail("a SELECT without its carrier")
		return nil
	}
	return d.carrier(sel.Fields.Fields[0].Expr)
}

// carrier decodes a carrier: it completes the item's queries and returns its node.
func (d *decoder) carrier(x tast.ExprNode) any {
	switch x := x.(type) {
	case *tast.ColumnNameExpr:
		it := d.item(x.Name.Name.O)
		if it == nil || len(it.holes) != 0 {
			d.fail("carrier %q without its queries", x.Name.Name.O)
			return nil
		}
		return it.node
	case *tast.FuncCallExpr:
		it := d.item(x.FnName.O)
		if it == nil || len(it.holes) != len(x.Args) {
			d.fail("carrier %q with %d queries", x.FnName.O, len(x.Args))
			return nil
		}
		for i, arg := range x.Args {
			sub, ok := arg.(*tast.SubqueryExpr)
			if !ok {
				d.fail("unexpected %T in a carrier", arg)
				return nil
			}
			d.fill(it.holes[i], sub.Query)
		}
		return it.node
	}
	d.fail("unexpected %T as a carrier", x)
	return nil
}

// item finds what a carrier's name stands for.
func (d *decoder) item(name string) *item {
	if len(name) < 2 || name[0] != 'q' {
		return nil
	}
	id, err := strconv.Atoi(name[1:])
	if err != nil || id >= len(d.items) {
		return nil
	}
	return &d.items[id]
}

func (d *decoder) fill(h hole, node tast.Node) {
	switch {
	case h.query != nil:
		*h.query = d.query(node)
	case h.stmt != nil:
		*h.stmt = d.statement(node)
	case h.from != nil:
		sel, ok := node.(*tast.SelectStmt)
		if !ok {
			d.fail("unexpected %T for a FROM list", node)
			return
		}
		*h.from = d.from(sel.From)
	}
}

// expr decodes a carrier that must be an expression.
func (d *decoder) expr(x tast.ExprNode) ast.Expr {
	node := d.carrier(x)
	e, ok := node.(ast.Expr)
	if !ok {
		d.fail("%T where an expression belongs", node)
	}
	return e
}

// query decodes SELECT, a set operation, or one of them in parentheses.
func (d *decoder) query(node tast.Node) *ast.Query {
	switch node := node.(type) {
	case *tast.SelectStmt:
		q := &ast.Query{With: d.with(node.With)}
		q.Body = d.selectBody(node)
		q.Pos = bodyPos(q.Body)
		d.tail(q, node.OrderBy)
		return q
	case *tast.SetOprStmt:
		q := &ast.Query{With: d.with(node.With)}
		q.Body = d.setOperation(node.SelectList.Selects)
		q.Pos = bodyPos(q.Body)
		d.tail(q, node.OrderBy)
		return q
	case *tast.SubqueryExpr:
		return d.query(node.Query)
	}
	d.fail("unexpected %T as a query", node)
	return nil
}

// bodyPos is where a query's first SELECT or VALUES stands.
func bodyPos(body ast.QueryBody) ast.Pos {
	for {
		switch b := body.(type) {
		case *ast.Select:
			return b.Pos
		case *ast.Values:
			return b.Pos
		case *ast.SetOp:
			body = b.L
		case *ast.Nested:
			if b.Query == nil {
				return 0
			}
			body = b.Query.Body
		default:
			return 0
		}
	}
}

// tail decodes ORDER BY, which carries LIMIT and the like as well.
func (d *decoder) tail(q *ast.Query, order *tast.OrderByClause) {
	if order == nil {
		return
	}
	for _, by := range order.Items {
		tail, ok := d.carrier(by.Expr).(*queryTail)
		if !ok {
			d.fail("no clause in ORDER BY")
			return
		}
		q.OrderBy = append(q.OrderBy, tail.orderBy...)
		if tail.limit != nil {
			q.Limit = tail.limit
		}
		if tail.offset != nil {
			q.Offset = tail.offset
		}
		q.Locking = append(q.Locking, tail.locking...)
	}
}

// setOperand is one side of a set operation, with the operator before it.
type setOperand struct {
	body ast.QueryBody
	op   string
	all  bool
}

// setOperation decodes a chain of set operations, which TiDB leaves flat: INTERSECT binds tighter than
// UNION and EXCEPT, which go from left to right.
func (d *decoder) setOperation(nodes []tast.Node) ast.QueryBody {
	operands := make([]setOperand, 0, len(nodes))
	for i, node := range nodes {
		o := d.setOperand(node)
		if i == 0 || o.op != "INTERSECT" {
			operands = append(operands, o)
			continue
		}
		last := &operands[len(operands)-1]
		last.body = &ast.SetOp{Pos: bodyPos(o.body), Op: o.op, All: o.all, L: last.body, R: o.body}
	}
	if len(operands) == 0 {
		d.fail("an empty set operation")
		return nil
	}
	result := operands[0].body
	for _, o := range operands[1:] {
		result = &ast.SetOp{Pos: bodyPos(o.body), Op: o.op, All: o.all, L: result, R: o.body}
	}
	return result
}

func (d *decoder) setOperand(node tast.Node) setOperand {
	switch node := node.(type) {
	case *tast.SelectStmt:
		o := d.setOperator(node.AfterSetOperator)
		o.body = d.selectBody(node)
		return o
	case *tast.SetOprSelectList:
		o := d.setOperator(node.AfterSetOperator)
		o.body = d.nestedOperand(node)
		return o
	}
	d.fail("unexpected %T in a set operation", node)
	return setOperand{}
}

func (d *decoder) setOperator(op *tast.SetOprType) setOperand {
	if op == nil {
		return setOperand{}
	}
	switch *op {
	case tast.Union:
		return setOperand{op: "UNION"}
	case tast.UnionAll:
		return setOperand{op: "UNION", all: true}
	case tast.Except:
		return setOperand{op: "EXCEPT"}
	case tast.ExceptAll:
		return setOperand{op: "EXCEPT", all: true}
	case tast.Intersect:
		return setOperand{op: "INTERSECT"}
	case tast.IntersectAll:
		return setOperand{op: "INTERSECT", all: true}
	}
	d.fail("unknown set operator %d", *op)
	return setOperand{}
}

// nestedOperand decodes a parenthesised side of a set operation. One without clauses of its own needs
// no Nested: the tree's shape says where its parentheses were.
func (d *decoder) nestedOperand(list *tast.SetOprSelectList) ast.QueryBody {
	q := &ast.Query{}
	if len(list.Selects) == 1 {
		sel, ok := list.Selects[0].(*tast.SelectStmt)
		if !ok {
			d.fail("unexpected %T in parentheses", list.Selects[0])
			return nil
		}
		q.With = d.with(sel.With)
		q.Body = d.selectBody(sel)
		d.tail(q, sel.OrderBy)
	} else {
		q.With = d.with(list.With)
		q.Body = d.setOperation(list.Selects)
		d.tail(q, list.OrderBy)
	}
	if q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && q.Locking == nil {
		return q.Body
	}
	q.Pos = bodyPos(q.Body)
	return &ast.Nested{Query: q}
}

// selectBody decodes a SELECT, or the VALUES or TABLE that one carries.
func (d *decoder) selectBody(sel *tast.SelectStmt) ast.QueryBody {
	switch head := d.head(sel).(type) {
	case *selectHead:
		return d.selectCore(sel, head)
	case ast.QueryBody:
		return head
	default:
		d.fail("%T at the head of a SELECT", head)
		return nil
	}
}

func (d *decoder) selectCore(sel *tast.SelectStmt, head *selectHead) *ast.Select {
	s := &ast.Select{Pos: head.pos, Distinct: head.distinct, DistinctOn: head.distinctOn}
	s.Columns, s.AsOf = head.columns, head.asOf
	for i := range s.Columns {
		nameOutput(&s.Columns[i])
	}
	s.From = d.from(sel.From)
	if sel.Where != nil {
		s.Where = d.expr(sel.Where)
	}
	if sel.GroupBy != nil {
		group, ok := d.carrier(sel.GroupBy.Items[0].Expr).(*groupList)
		if !ok {
			d.fail("no list in GROUP BY")
			return s
		}
		s.GroupBy = group.items
	}
	if sel.Having != nil {
		tail, ok := d.carrier(sel.Having.Expr).(*havingTail)
		if !ok {
			d.fail("no condition in HAVING")
			return s
		}
		s.Having, s.Windows = tail.having, tail.windows
	}
	return s
}

// with decodes a WITH clause.
func (d *decoder) with(clause *tast.WithClause) *ast.With {
	if clause == nil {
		return nil
	}
	var with *ast.With
	for _, entry := range clause.CTEs {
		it := d.item(entry.Name.O)
		if it == nil {
			d.fail("unknown WITH entry %q", entry.Name.O)
			return nil
		}
		head, ok := it.node.(*cteHead)
		if !ok {
			d.fail("%T as a WITH entry", it.node)
			return nil
		}
		with = head.with
		cte := head.cte
		cte.Statement = d.statement(entry.Query.Query)
		with.CTEs = append(with.CTEs, cte)
	}
	return with
}

// from decodes a FROM list; the mark of a SELECT without FROM decodes to nothing.
func (d *decoder) from(clause *tast.TableRefsClause) []ast.TableExpr {
	if clause == nil || clause.TableRefs == nil {
		return nil
	}
	// A comma-separated list is a left-deep chain of joins without a condition.
	var refs []tast.ResultSetNode
	var node tast.ResultSetNode = clause.TableRefs
	for {
		join, ok := node.(*tast.Join)
		if !ok || join.On != nil || join.ExplicitParens {
			refs = append(refs, node)
			break
		}
		if join.Right != nil {
			refs = append(refs, join.Right)
		}
		node = join.Left
	}
	var list []ast.TableExpr
	for i := len(refs) - 1; i >= 0; i-- {
		if t := d.table(refs[i]); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// table decodes an item of FROM; nil for the mark of none.
func (d *decoder) table(node tast.ResultSetNode) ast.TableExpr {
	switch node := node.(type) {
	case *tast.TableSource:
		return d.tableSource(node)
	case *tast.Join:
		if node.Right == nil && node.On == nil {
			return d.table(node.Left)
		}
		return d.join(node)
	}
	d.fail("unexpected %T in FROM", node)
	return nil
}

func (d *decoder) tableSource(src *tast.TableSource) ast.TableExpr {
	if name, ok := src.Source.(*tast.TableName); ok {
		it := d.item(name.Name.O)
		if it == nil {
			d.fail("unknown table %q", name.Name.O)
			return nil
		}
		t, _ := it.node.(ast.TableExpr)
		return t
	}
	it := d.item(src.AsName.O)
	if it == nil {
		d.fail("unknown alias %q", src.AsName.O)
		return nil
	}
	switch t := it.node.(type) {
	case *ast.DerivedTable:
		t.Query = d.query(src.Source)
		return t
	case *ast.TableFunc:
		sel, ok := src.Source.(*tast.SelectStmt)
		if !ok {
			d.fail("unexpected %T for a function in FROM", src.Source)
			return nil
		}
		d.head(sel)
		return t
	}
	d.fail("%T as a table with an alias", it.node)
	return nil
}

// namedJoin gives the columns of a join names: it is a subquery of all that the join has.
func namedJoin(join *ast.Join, qual *joinQual) ast.TableExpr {
	all := &ast.Select{
		Pos:     qual.pos,
		Columns: []ast.SelectItem{{Expr: &ast.Star{Pos: qual.pos}}},
		From:    []ast.TableExpr{join},
	}
	return &ast.DerivedTable{
		Pos: qual.pos, Query: &ast.Query{Pos: qual.pos, Body: all}, Alias: qual.alias, Columns: qual.columns,
	}
}

func (d *decoder) join(node *tast.Join) ast.TableExpr {
	if node.On == nil {
		d.fail("a join without its carrier")
		return nil
	}
	left := d.table(node.Left)
	qual, ok := d.carrier(node.On.Expr).(*joinQual)
	if !ok {
		d.fail("no condition in ON")
		return nil
	}
	if qual.isAlias {
		join, ok := left.(*ast.Join)
		if !ok {
			d.fail("an alias of %T", left)
			return nil
		}
		if qual.columns != nil {
			return namedJoin(join, qual)
		}
		join.Alias = qual.alias
		return join
	}
	return &ast.Join{
		Pos: qual.pos, Kind: qual.kind, Natural: qual.natural, Using: qual.using, On: qual.on,
		L: left, R: d.table(node.Right),
	}
}
