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

// queryClauses says which clauses a query has had, so that (query) LIMIT 1 can add others to it and none a
// second time.
type queryClauses struct{ order, limit, offset bool }

// query reads a query.
func (p *parser) query() *ast.Query {
	q, _ := p.queryAndClauses()
	return q
}

func (p *parser) queryAndClauses() (*ast.Query, queryClauses) {
	var with *ast.With
	if p.isWord(kw.With) {
		with = p.withClause()
	}
	return p.queryBody(with)
}

// queryBody reads a query behind its WITH, which may be nil.
func (p *parser) queryBody(with *ast.With) (*ast.Query, queryClauses) {
	p.enter()
	defer p.leave()
	p.queries++
	q, has := p.setOperation()
	if with != nil {
		if q.With != nil {
			p.failAt(with.Pos, pgerror.SyntaxError, "multiple WITH clauses not allowed")
		}
		q.With = with
	}
	p.queryTail(q, &has)
	return q, has
}

// setOperation reads operands joined by UNION, INTERSECT and EXCEPT. A parenthesised query alone
// stands for itself, with the clauses it has.
func (p *parser) setOperation() (*ast.Query, queryClauses) {
	if p.is('(') {
		if close := p.cur().aux; close < 0 || !setOperator(&p.toks[close+1]) {
			return p.nestedQuery()
		}
	}
	body := p.intersection()
	for setOperator(p.cur()) {
		body = p.setOperator(body, p.intersection)
	}
	return &ast.Query{Pos: bodyPos(body), Body: body}, queryClauses{}
}

// intersection reads operands joined by INTERSECT, which binds tighter than UNION and EXCEPT.
func (p *parser) intersection() ast.QueryBody {
	body := p.setOperand()
	for p.isWord(kw.Intersect) {
		body = p.setOperator(body, p.setOperand)
	}
	return body
}

// setOperator reads a set operator and, by operand, its right side.
func (p *parser) setOperator(left ast.QueryBody, operand func() ast.QueryBody) ast.QueryBody {
	op := &ast.SetOp{L: left}
	switch p.cur().kw {
	case kw.Union:
		op.Op = "UNION"
	case kw.Intersect:
		op.Op = "INTERSECT"
	default:
		op.Op = "EXCEPT"
	}
	p.advance()
	if op.All = p.acceptWord(kw.All); !op.All {
		p.acceptWord(kw.Distinct)
	}
	op.R = operand()
	op.Pos = bodyPos(op.R)
	return op
}

func setOperator(t *token) bool {
	return t.kw == kw.Union || t.kw == kw.Intersect || t.kw == kw.Except
}

// setOperand reads one side of a set operation. Parentheses around a side without clauses of its own need no
// node: the tree's shape says where they were.
func (p *parser) setOperand() ast.QueryBody {
	if !p.is('(') {
		return p.simpleQuery()
	}
	q, _ := p.nestedQuery()
	if q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && q.Locking == nil {
		return q.Body
	}
	return &ast.Nested{Query: q}
}

// nestedQuery reads (query).
func (p *parser) nestedQuery() (*ast.Query, queryClauses) {
	p.advance()
	p.requireQuery()
	q, has := p.queryAndClauses()
	p.expect(')')
	return q, has
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
			body = b.Query.Body
		default:
			return 0
		}
	}
}

// simpleQuery reads SELECT, VALUES or TABLE without what may surround it.
func (p *parser) simpleQuery() ast.QueryBody {
	switch {
	case p.isWord(kw.Select):
		return p.selectCore()
	case p.isWord(kw.Values) && p.peek(1).kind == '(':
		return p.valuesList(false)
	case p.isWord(kw.Table):
		return p.tableQuery()
	}
	p.unexpected()
	return &ast.Values{}
}

// subquery reads (query).
func (p *parser) subquery() *ast.Query {
	p.expect('(')
	q := p.query()
	p.expect(')')
	return q
}

// startsQuery reports whether the parenthesis at the current token plus n encloses a query rather
// than an expression.
func (p *parser) startsQuery(n int) bool {
	at := p.pos + n
	in := at
	for in < len(p.toks) && p.toks[in].kind == '(' && in-at <= maxDepth {
		in++
	}
	if in == at || in >= len(p.toks) || !queryWord(p.toks, in) {
		return false
	}
	// The innermost parenthesis encloses a query. Each outer one does if the query goes on behind the
	// inner one or ends there.
	for in--; in > at; in-- {
		close := p.toks[in].aux
		if close < 0 {
			return true // unbalanced: an error either way
		}
		if next := &p.toks[close+1]; next.kind != ')' && next.kind != tokEOF && !continuesQuery(next) {
			return false
		}
	}
	return true
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
	return min((int(open.aux)-p.pos)/2+1, pollTokens) // in a long list most may be those of nested ones
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
func (p *parser) selectCore() *ast.Select {
	s := &ast.Select{Pos: p.here()}
	p.expectWord(kw.Select)
	switch {
	case p.acceptWord(kw.All):
	case p.acceptWord(kw.Distinct):
		s.Distinct = true
		if p.acceptWord(kw.On) {
			p.expect('(')
			s.DistinctOn = p.exprList()
			p.expect(')')
		}
	}
	p.selectList(s)
	if p.isWord(kw.Into) {
		s.Into = p.into()
	}
	if p.acceptWord(kw.From) {
		s.From = p.fromList()
		if p.asOfAhead() {
			s.AsOf = p.asOfTime()
		}
	}
	if p.acceptWord(kw.Where) {
		s.Where = p.expr()
	}
	if p.isWord(kw.Group) {
		p.groupBy(s)
	}
	if p.acceptWord(kw.Having) {
		s.Having = p.expr()
	}
	if p.acceptWord(kw.Window) {
		s.Windows = p.windows()
	}
	return s
}

// into reads INTO of SELECT.
func (p *parser) into() *ast.Into {
	into := &ast.Into{Pos: p.here()}
	p.advance()
	into.Persistence = p.persistence()
	p.acceptWord(kw.Table)
	into.Name = p.tableName()
	return into
}

// persistence reads [LOCAL|GLOBAL] TEMP[ORARY] or UNLOGGED, if it is there.
func (p *parser) persistence() ast.Persistence {
	if next := p.peek(1).kw; (p.isWord(kw.Local) || p.isWord(kw.Global)) && (next == kw.Temp || next == kw.Temporary) {
		p.advance()
	}
	switch {
	case p.acceptWord(kw.Temp), p.acceptWord(kw.Temporary):
		return ast.Temporary
	case p.acceptWord(kw.Unlogged):
		return ast.Unlogged
	}
	return ast.Permanent
}

// selectList reads the select items; there may be none.
func (p *parser) selectList(s *ast.Select) {
	if t := p.cur(); !s.Distinct && (t.kind == tokEOF || t.kind == ')' || endsSelectList(t.kw)) {
		return
	}
	for first := true; first || p.accept(','); first = false {
		s.Columns = append(s.Columns, p.selectItem())
	}
}

// endsSelectList reports whether a word may follow the select items: a clause of the query, or of the
// statement around it.
func endsSelectList(word kw.Word) bool {
	switch word {
	case kw.From, kw.Into, kw.Where, kw.Group, kw.Having, kw.Window, kw.Union, kw.Intersect, kw.Except, kw.On,
		kw.Returning, kw.With, kw.Create, kw.Grant: // the last two in CREATE SCHEMA
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
	} else if p.err == nil {
		nameOutput(&col)
	}
	return col
}

// groupBy reads GROUP BY.
func (p *parser) groupBy(s *ast.Select) {
	p.expectWords(kw.Group, kw.By)
	if p.acceptWord(kw.Distinct) {
		s.GroupSets = true
	} else {
		p.acceptWord(kw.All)
	}
	s.GroupBy = p.groupItems()
}

// groupItems reads the items of GROUP BY or of GROUPING SETS.
func (p *parser) groupItems() []ast.Expr {
	p.enter()
	defer p.leave()
	var items []ast.Expr
	for first := true; first || p.accept(','); first = false {
		items = append(items, p.groupItem())
	}
	return items
}

func (p *parser) groupItem() ast.Expr {
	t, next := p.cur(), p.peek(1)
	set := &ast.GroupingSet{Pos: p.posOf(t)}
	switch {
	case t.kind == '(' && next.kind == ')':
		p.advance()
	case (t.kw == kw.Rollup || t.kw == kw.Cube) && next.kind == '(':
		set.Kind = upper(t.kw)
		p.advance()
		p.advance()
		set.Items = p.exprList()
	case t.kw == kw.Grouping && next.kw == kw.Sets:
		set.Kind = "GROUPING SETS"
		p.advance()
		p.advance()
		p.expect('(')
		set.Items = p.groupItems()
	default:
		return p.expr()
	}
	p.expect(')')
	return set
}

// windows reads what follows WINDOW.
func (p *parser) windows() []ast.NamedWindow {
	var windows []ast.NamedWindow
	for first := true; first || p.accept(','); first = false {
		name := p.colID()
		p.expectWord(kw.As)
		windows = append(windows, ast.NamedWindow{Name: name, Window: *p.windowSpec()})
	}
	return windows
}

// queryTail reads ORDER BY, LIMIT, OFFSET, FETCH and FOR, adding to what a parenthesised query had.
func (p *parser) queryTail(q *ast.Query, has *queryClauses) {
	if p.isWord(kw.Order) {
		if has.order {
			p.failAt(p.here(), pgerror.SyntaxError, "multiple ORDER BY clauses not allowed")
		}
		has.order = true
		q.OrderBy = p.orderBy()
	}
	for p.tailClause(q, has) {
	}
}

// orderItem reads expr [ASC|DESC|USING op] [NULLS FIRST|LAST].
func (p *parser) orderItem() ast.OrderItem {
	order := ast.OrderItem{Expr: p.expr()}
	switch {
	case p.acceptWord(kw.Asc):
		order.Asc = true
	case p.acceptWord(kw.Desc):
		order.Desc = true
	case p.acceptWord(kw.Using):
		t := p.cur()
		order.Using, order.Qualified = p.operatorName()
		switch order.Using {
		case "<":
		case ">":
			order.Desc = true
		case "~<~", "~>~": // The order of the pattern classes is that of the bytes.
			order.Desc = order.Using == "~>~"
			if c, ok := order.Expr.(*ast.Collate); ok {
				order.Expr = c.X
			}
			order.Expr = &ast.Collate{Pos: p.posOf(t), X: order.Expr, Name: []string{"C"}}
		default:
			p.notYet(p.posOf(t), "ORDER BY USING with this operator", "Use ASC or DESC.")
		}
	}
	order.NullsFirst = order.Desc
	if order.Nulls = p.acceptWord(kw.Nulls); order.Nulls {
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
func (p *parser) tailClause(q *ast.Query, has *queryClauses) bool {
	pos := p.here()
	switch {
	case p.isWord(kw.Limit) || p.isWord(kw.Fetch):
		fetch := p.isWord(kw.Fetch)
		p.advance()
		valuePos := p.here()
		if fetch {
			p.fetchCount(q)
		} else if q.All = p.acceptWord(kw.All); !q.All {
			q.Limit = p.limitCount()
		}
		if has.limit {
			p.failAt(valuePos, pgerror.SyntaxError, "multiple LIMIT clauses not allowed")
		}
		has.limit = true
	case p.acceptWord(kw.Offset):
		if has.offset {
			p.failAt(p.here(), pgerror.SyntaxError, "multiple OFFSET clauses not allowed")
		}
		from := p.pos
		q.Offset = p.expr()
		if isRow(p.cur()) {
			if !p.simpleCount(q.Offset, from) {
				p.unexpected()
			}
			p.advance()
		}
		has.offset = true
	case p.acceptWord(kw.For):
		if p.acceptWords(kw.Read, kw.Only) {
			return true
		}
		q.Locking = append(q.Locking, p.locking(pos))
	default:
		return false
	}
	return true
}

// limitCount reads what follows LIMIT.
func (p *parser) limitCount() ast.Expr {
	count := p.expr()
	if p.is(',') {
		p.fail(pgerror.New(pgerror.SyntaxError, "LIMIT #,# syntax is not supported").
			WithHint("Use separate LIMIT and OFFSET clauses.").At(int(p.here())))
	}
	return count
}

// fetchCount reads what follows FETCH: FIRST|NEXT [count] ROW|ROWS ONLY|WITH TIES.
func (p *parser) fetchCount(q *ast.Query) {
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
	q.Limit = count
	if q.Ties = p.acceptWords(kw.With, kw.Ties); q.Ties {
		return
	}
	p.expectWord(kw.Only)
}

// simpleCount reports whether an expression, of the tokens since from, may stand before ROWS: no operators but a number's sign.
func (p *parser) simpleCount(x ast.Expr, from int) bool {
	switch x := x.(type) {
	case *ast.Unary:
		return (x.Op == "-" || x.Op == "+") && isNumber(&p.toks[from+1]) && p.pos == from+2
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
		return &ast.Unary{Pos: pos, Op: "+", X: p.number()}
	case p.acceptOp('-'):
		return &ast.Unary{Pos: pos, Op: "-", X: p.number()}
	}
	return p.primary()
}

func isNumber(t *token) bool { return t.kind == tokLiteral && t.lit <= ast.LiteralNumeric }

// number reads a number without a sign.
func (p *parser) number() ast.Expr {
	if !isNumber(p.cur()) {
		p.unexpected()
		return nil
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
		lock.Of = p.tableNames()
	}
	switch {
	case p.acceptWord(kw.Nowait):
		lock.Wait = "NOWAIT"
	case p.acceptWords(kw.Skip, kw.Locked):
		lock.Wait = "SKIP LOCKED"
	}
	return lock
}
