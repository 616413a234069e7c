package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// queryWord reports whether the token at i begins a query.
func queryWord(toks []token, i int) bool {
	switch toks[i].kw {
	case kw.Select, kw.With, kw.Table:
		return true
	case kw.Values:
		return i+1 < len(toks) && toks[i+1].kind == '('
	}
	return false
}

// continuesQuery reports whether a query's parenthesis may be followed by t within a larger query.
func continuesQuery(t *token) bool {
	switch t.kw {
	case kw.Union, kw.Intersect, kw.Except:
		return true
	}
	return startsTail(t.kw)
}

func startsTail(word kw.Word) bool {
	switch word {
	case kw.Order, kw.Limit, kw.Offset, kw.Fetch, kw.For:
		return true
	}
	return false
}

// queryShape says which clauses a query has had, so that (query) LIMIT 1 can add to it; tail means that
// an ORDER BY has been written for TiDB's grammar.
type queryShape struct {
	with, order, limit, offset, tail bool
}

// query reads a query and writes it for TiDB's grammar.
func (p *parser) query() queryShape {
	pos := p.here()
	with := p.isWord(kw.With)
	if with {
		p.withClause()
	}
	return p.queryBody(with, pos)
}

// queryBody reads a query behind its WITH.
func (p *parser) queryBody(with bool, withPos ast.Pos) queryShape {
	p.enter()
	defer p.leave()
	p.tree = true
	shape := p.setOperation()
	if shape.with && with {
		p.failAt(withPos, pgerror.SyntaxError, "multiple WITH clauses not allowed")
	}
	shape.with = shape.with || with
	p.queryTail(&shape)
	return shape
}

// setOperation reads operands joined by UNION, INTERSECT and EXCEPT. A parenthesised query alone
// stands for itself: its shape is returned.
func (p *parser) setOperation() queryShape {
	if p.is('(') {
		close := p.cur().aux
		if close < 0 || !setOperator(&p.toks[close+1]) {
			p.advance()
			if !p.is('(') && !queryWord(p.toks, p.pos) {
				p.unexpected()
			}
			shape := p.query()
			p.expect(')')
			return shape
		}
	}
	p.setOperand()
	for setOperator(p.cur()) {
		switch p.cur().kw {
		case kw.Union:
			p.emit(" UNION ")
		case kw.Intersect:
			p.emit(" INTERSECT ")
		default:
			p.emit(" EXCEPT ")
		}
		p.advance()
		if p.acceptWord(kw.All) {
			p.emit("ALL ")
		} else {
			p.acceptWord(kw.Distinct)
		}
		p.setOperand()
	}
	return queryShape{}
}

func setOperator(t *token) bool {
	return t.kw == kw.Union || t.kw == kw.Intersect || t.kw == kw.Except
}

func (p *parser) setOperand() {
	if !p.is('(') {
		p.simpleQuery()
		return
	}
	p.advance()
	if !p.is('(') && !queryWord(p.toks, p.pos) {
		p.unexpected()
	}
	p.emit("(")
	p.query()
	p.emit(")")
	p.expect(')')
}

// simpleQuery reads SELECT, VALUES or TABLE without what may surround it.
func (p *parser) simpleQuery() {
	switch {
	case p.isWord(kw.Select):
		p.selectCore()
	case p.isWord(kw.Values) && p.peek(1).kind == '(':
		p.emit("SELECT ")
		id, outer := p.begin()
		values := p.valuesList(false)
		p.end(id, outer, values)
		p.emitFromMark(id)
	case p.isWord(kw.Table):
		p.emit("SELECT ")
		id, outer := p.begin()
		p.end(id, outer, p.tableQuery())
		p.emitFromMark(id)
	default:
		p.unexpected()
	}
}

// emitFromMark gives a SELECT without FROM one that stands for none.
func (p *parser) emitFromMark(id int) {
	p.emit(" FROM ")
	p.emitCarrier(id)
}

// tableQuery reads TABLE name, which is SELECT * FROM name.
func (p *parser) tableQuery() *ast.Select {
	pos := p.here()
	p.expectWord(kw.Table)
	ref := &ast.TableRef{Pos: p.here()}
	ref.Only = p.acceptWord(kw.Only)
	ref.Name = p.tableName()
	p.acceptOp('*')
	return &ast.Select{
		Pos:     pos,
		Columns: []ast.SelectItem{{Expr: &ast.Star{Pos: pos}}},
		From:    []ast.TableExpr{ref},
	}
}

// valuesList reads VALUES (…), (…); DEFAULT is an element in INSERT only.
func (p *parser) valuesList(allowDefault bool) *ast.Values {
	values := &ast.Values{Pos: p.here()}
	p.expectWord(kw.Values)
	for {
		p.expect('(')
		row := make([]ast.Expr, 0, p.commas())
		for {
			row = append(row, p.element(allowDefault))
			if !p.accept(',') {
				break
			}
		}
		p.expect(')')
		values.Rows = append(values.Rows, row)
		if !p.accept(',') {
			return values
		}
	}
}

// commas guesses the length of the list at the current token from the row before it, so that the
// rows of a long VALUES are allocated once.
func (p *parser) commas() int {
	if p.pos == 0 {
		return 1
	}
	open := &p.toks[p.pos-1]
	if open.kind != '(' || open.aux < 0 {
		return 1
	}
	return (int(open.aux)-p.pos)/2 + 1
}

// element reads an expression, or DEFAULT where that is allowed.
func (p *parser) element(allowDefault bool) ast.Expr {
	if allowDefault && p.isWord(kw.Default) {
		if k := p.peek(1).kind; k == ',' || k == ')' || k == tokEOF || k == tokIdent {
			pos := p.here()
			p.advance()
			return &ast.Default{Pos: pos}
		}
	}
	return p.expr()
}

// selectCore reads SELECT … WINDOW.
func (p *parser) selectCore() {
	p.emit("SELECT ")
	head := p.selectHead()
	if p.isWord(kw.Into) {
		p.unsupported(p.here(), "SELECT INTO", "Use CREATE TABLE … AS.")
	}
	if p.acceptWord(kw.From) {
		p.emit(" FROM ")
		p.fromList()
		if p.asOfAhead() {
			p.items[head].node.(*selectHead).asOf = p.asOfTime()
		}
	} else {
		p.emitFromMark(head)
	}
	if p.acceptWord(kw.Where) {
		p.emit(" WHERE ")
		p.exprItem()
	}
	if p.isWord(kw.Group) {
		p.groupBy()
	}
	if p.isWord(kw.Having) || p.isWord(kw.Window) {
		p.havingAndWindows()
	}
}

// selectHead reads SELECT [ALL | DISTINCT [ON (…)]] and the select items into one carrier, whose id it
// returns.
func (p *parser) selectHead() int {
	id, outer := p.begin()
	head := &selectHead{pos: p.here()}
	p.expectWord(kw.Select)
	switch {
	case p.acceptWord(kw.All):
	case p.acceptWord(kw.Distinct):
		head.distinct = true
		if p.acceptWord(kw.On) {
			p.expect('(')
			head.distinctOn = p.exprList()
			p.expect(')')
		}
	}
	p.selectList(head)
	p.end(id, outer, head)
	return id
}

// exprItem reads an expression into a carrier.
func (p *parser) exprItem() {
	id, outer := p.begin()
	p.end(id, outer, p.expr())
}

// selectList reads the select items; there may be none.
func (p *parser) selectList(head *selectHead) {
	if t := p.cur(); !head.distinct && (t.kind == tokEOF || t.kind == ')' || endsSelectList(t.kw)) {
		return
	}
	for first := true; first || p.accept(','); first = false {
		head.columns = append(head.columns, p.selectItem())
	}
}

// endsSelectList reports whether a word may follow the select items: a clause of the query, or of the
// statement around it.
func endsSelectList(word kw.Word) bool {
	switch word {
	case kw.From, kw.Into, kw.Where, kw.Group, kw.Having, kw.Window, kw.Union, kw.Intersect, kw.Except, kw.On,
		kw.Returning, kw.With:
		return true
	}
	return startsTail(word)
}

// selectItem reads an output column: * or an expression with an optional label.
func (p *parser) selectItem() ast.SelectItem {
	if p.isOp('*') {
		pos := p.here()
		p.advance()
		return ast.SelectItem{Expr: &ast.Star{Pos: pos}}
	}
	outer := p.itemDepth
	p.itemDepth = p.depth + 1
	col := ast.SelectItem{Expr: p.expr()}
	p.itemDepth = outer
	if t := p.cur(); p.acceptWord(kw.As) || t.kind == tokQuoted || t.kind == tokIdent && t.kw.BareLabel() {
		col.Name, col.Aliased = p.colLabel(), true
	}
	return col
}

// groupBy reads GROUP BY.
func (p *parser) groupBy() {
	p.expectWords(kw.Group, kw.By)
	p.emit(" GROUP BY ")
	if p.acceptWord(kw.Distinct) {
		p.unsupported(p.here(), "GROUP BY DISTINCT", "Without grouping sets DISTINCT has no effect: leave it out.")
	}
	p.acceptWord(kw.All)
	id, outer := p.begin()
	group := &groupList{}
	for first := true; first || p.accept(','); first = false {
		p.refuseGroupingSet()
		group.items = append(group.items, p.expr())
	}
	p.end(id, outer, group)
}

func (p *parser) refuseGroupingSet() {
	t, next := p.cur(), p.peek(1)
	switch {
	case t.kind == '(' && next.kind == ')',
		(t.kw == kw.Rollup || t.kw == kw.Cube) && next.kind == '(',
		t.kw == kw.Grouping && next.kw == kw.Sets:
		p.unsupported(p.posOf(t), "GROUP BY with GROUPING SETS, ROLLUP or CUBE", "Write one SELECT for each grouping and join them with UNION ALL.")
	}
}

// havingAndWindows reads HAVING and WINDOW into one carrier.
func (p *parser) havingAndWindows() {
	p.emit(" HAVING ")
	id, outer := p.begin()
	tail := &havingTail{}
	if p.acceptWord(kw.Having) {
		tail.having = p.expr()
	}
	if p.acceptWord(kw.Window) {
		for first := true; first || p.accept(','); first = false {
			name := p.colID()
			p.expectWord(kw.As)
			tail.windows = append(tail.windows, ast.NamedWindow{Name: name, Window: *p.windowSpec()})
		}
	}
	p.end(id, outer, tail)
}

// queryTail reads ORDER BY, LIMIT, OFFSET, FETCH and FOR, adding to what a parenthesised query had.
func (p *parser) queryTail(shape *queryShape) {
	if !startsTail(p.cur().kw) {
		return
	}
	if shape.tail {
		p.emit(",")
	} else {
		p.emit(" ORDER BY ")
	}
	shape.tail = true
	id, outer := p.begin()
	tail := &queryTail{}
	if p.isWord(kw.Order) {
		if shape.order {
			p.failAt(p.here(), pgerror.SyntaxError, "multiple ORDER BY clauses not allowed")
		}
		shape.order = true
		tail.orderBy = p.orderBy()
	}
	for p.tailClause(tail, shape) {
	}
	p.end(id, outer, tail)
}

// orderItem reads expr [ASC|DESC|USING op] [NULLS FIRST|LAST].
func (p *parser) orderItem() ast.OrderItem {
	order := ast.OrderItem{Expr: p.expr()}
	switch {
	case p.acceptWord(kw.Asc):
	case p.acceptWord(kw.Desc):
		order.Desc = true
	case p.acceptWord(kw.Using):
		t := p.cur()
		switch p.operatorName() {
		case "<":
		case ">":
			order.Desc = true
		default:
			p.unsupported(p.posOf(t), "ORDER BY USING with this operator", "Use ASC or DESC.")
		}
	}
	order.NullsFirst = order.Desc
	if p.acceptWord(kw.Nulls) {
		if order.NullsFirst = p.acceptWord(kw.First); !order.NullsFirst {
			p.expectWord(kw.Last)
		}
	}
	return order
}

// orderBy reads ORDER BY and its items.
func (p *parser) orderBy() []ast.OrderItem {
	p.expectWords(kw.Order, kw.By)
	items := []ast.OrderItem{p.orderItem()}
	for p.accept(',') {
		items = append(items, p.orderItem())
	}
	return items
}

// tailClause reads one clause of the tail and reports whether there was one.
func (p *parser) tailClause(tail *queryTail, shape *queryShape) bool {
	pos := p.here()
	switch {
	case p.isWord(kw.Limit) || p.isWord(kw.Fetch):
		fetch := p.isWord(kw.Fetch)
		p.advance()
		valuePos := p.here()
		if fetch {
			tail.limit = p.fetchCount()
		} else {
			tail.limit = p.limitCount()
		}
		if shape.limit {
			p.failAt(valuePos, pgerror.SyntaxError, "multiple LIMIT clauses not allowed")
		}
		shape.limit = true
	case p.acceptWord(kw.Offset):
		if shape.offset {
			p.failAt(p.here(), pgerror.SyntaxError, "multiple OFFSET clauses not allowed")
		}
		tail.offset = p.expr()
		if isRow(p.cur()) {
			if !simpleCount(tail.offset) {
				p.unexpected()
			}
			p.advance()
		}
		shape.offset = true
	case p.acceptWord(kw.For):
		if p.acceptWords(kw.Read, kw.Only) {
			return true
		}
		tail.locking = append(tail.locking, p.locking(pos))
	default:
		return false
	}
	return true
}

// limitCount reads what follows LIMIT; ALL is no limit.
func (p *parser) limitCount() ast.Expr {
	if p.acceptWord(kw.All) {
		return nil
	}
	count := p.expr()
	if p.is(',') {
		p.fail(pgerror.New(pgerror.SyntaxError, "LIMIT #,# syntax is not supported").
			WithHint("Use separate LIMIT and OFFSET clauses.").At(int(p.here())))
	}
	return count
}

// fetchCount reads what follows FETCH: FIRST|NEXT [count] ROW|ROWS ONLY.
func (p *parser) fetchCount() ast.Expr {
	if !p.acceptWord(kw.First) {
		p.expectWord(kw.Next)
	}
	var count ast.Expr = &ast.Literal{Pos: p.here(), Kind: ast.LiteralInt4, Slot: pinned, Value: "1"}
	if !isRow(p.cur()) || isRow(p.peek(1)) { // ROW may be a column
		count = p.fetchValue()
	}
	if !p.acceptWord(kw.Row) {
		p.expectWord(kw.Rows)
	}
	if p.isWord(kw.With) {
		p.unsupported(p.here(), "FETCH … WITH TIES", "Use a subquery that finds the last value.")
	}
	p.expectWord(kw.Only)
	return count
}

// simpleCount reports whether an expression may stand before ROWS: no operators but a sign.
func simpleCount(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Unary:
		lit, ok := x.X.(*ast.Literal)
		return ok && (x.Op == "-" || x.Op == "+") && lit.Kind <= ast.LiteralNumeric
	case *ast.Binary, *ast.Like, *ast.IsTest, *ast.IsDistinct, *ast.Between, *ast.InList, *ast.InSubquery,
		*ast.Quantified, *ast.AtTimeZone, *ast.Collate:
		return false
	}
	return true
}

func isRow(t *token) bool { return t.kw == kw.Row || t.kw == kw.Rows }

func (p *parser) fetchValue() ast.Expr {
	pos := p.here()
	switch {
	case p.acceptOp('+'):
		return &ast.Unary{Pos: pos, Op: "+", X: p.primary()}
	case p.acceptOp('-'):
		return &ast.Unary{Pos: pos, Op: "-", X: p.primary()}
	}
	return p.primary()
}

// locking reads a locking clause behind its FOR.
func (p *parser) locking(pos ast.Pos) ast.Locking {
	lock := ast.Locking{Pos: pos}
	switch {
	case p.acceptWord(kw.Update):
		lock.Strength = "UPDATE"
	case p.acceptWords(kw.No, kw.Key, kw.Update):
		lock.Strength = "NO KEY UPDATE"
	case p.acceptWord(kw.Share):
		lock.Strength = "SHARE"
	case p.acceptWords(kw.Key, kw.Share):
		lock.Strength = "KEY SHARE"
	default:
		p.unexpected()
	}
	if p.acceptWord(kw.Of) {
		lock.Of = append(lock.Of, p.tableName().Name)
		for p.accept(',') {
			lock.Of = append(lock.Of, p.tableName().Name)
		}
	}
	switch {
	case p.acceptWord(kw.Nowait):
		lock.Wait = "NOWAIT"
	case p.acceptWords(kw.Skip, kw.Locked):
		lock.Wait = "SKIP LOCKED"
	}
	return lock
}
