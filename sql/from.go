package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// fromList reads the items of FROM.
func (p *parser) fromList() []ast.TableExpr {
	list := []ast.TableExpr{p.tableExpr()}
	for p.accept(',') {
		list = append(list, p.tableExpr())
	}
	return list
}

// tableExpr reads a table with the joins that hang on it.
func (p *parser) tableExpr() ast.TableExpr {
	t, _ := p.joinedTable()
	return t
}

// joinedTable is tableExpr that reports whether the table is a join without an alias.
func (p *parser) joinedTable() (t ast.TableExpr, joined bool) {
	p.enter()
	defer p.leave()
	t, joined = p.tablePrimary()
	for p.err == nil {
		pos := p.here()
		if p.acceptWords(kw.Cross, kw.Join) {
			right, _ := p.tablePrimary()
			t, joined = &ast.Join{Pos: pos, Kind: ast.CrossJoin, L: t, R: right}, true
			continue
		}
		natural := p.acceptWord(kw.Natural)
		kind, ok := p.joinKind()
		switch {
		case natural && !ok:
			p.unexpected()
			return t, joined
		case !ok:
			return t, joined
		}
		join := &ast.Join{Pos: pos, Kind: kind, Natural: natural, L: t}
		if natural {
			join.R, _ = p.tablePrimary()
		} else {
			join.R = p.tableExpr()
			p.joinCondition(join)
		}
		t, joined = join, true
	}
	return t, joined
}

// joinKind reads [INNER|LEFT|RIGHT|FULL [OUTER]] JOIN and reports whether it was there.
func (p *parser) joinKind() (kind ast.JoinKind, ok bool) {
	switch {
	case p.acceptWord(kw.Join):
		return ast.InnerJoin, true
	case p.acceptWord(kw.Inner):
		p.expectWord(kw.Join)
		return ast.InnerJoin, true
	case p.acceptWord(kw.Left):
		kind = ast.LeftJoin
	case p.acceptWord(kw.Right):
		kind = ast.RightJoin
	case p.acceptWord(kw.Full):
		kind = ast.FullJoin
	default:
		return 0, false
	}
	p.acceptWord(kw.Outer)
	p.expectWord(kw.Join)
	return kind, true
}

// joinCondition reads ON condition or USING (columns).
func (p *parser) joinCondition(join *ast.Join) {
	if p.acceptWord(kw.Using) {
		join.Using = p.columnList()
		if p.acceptWord(kw.As) {
			join.UsingAlias = p.colID()
		}
		return
	}
	p.expectWord(kw.On)
	join.On = p.expr()
}

// tablePrimary reads a table, a query, a function or a parenthesised join, and reports whether it is
// a join without an alias.
func (p *parser) tablePrimary() (t ast.TableExpr, joined bool) {
	pos := p.here()
	lateral := p.acceptWord(kw.Lateral)
	switch t := p.cur(); {
	case t.kind == '(' && p.startsQuery(0):
		return p.derivedTable(pos, lateral), false
	case t.kind == '(' && !lateral:
		return p.parenthesisedJoin()
	case t.kw == kw.Rows && p.peek(1).kw == kw.From && p.peek(2).kind == '(':
		return p.rowsFrom(pos, lateral), false
	case t.kw == kw.Xmltable && p.peek(1).kind == '(':
		return p.xmlTable(pos, lateral), false
	case p.callAhead():
		return p.tableFunc(pos, lateral), false
	case lateral:
		p.unexpected()
	}
	return p.table(pos), false
}

// callAhead reports whether a function call stands at the current token.
func (p *parser) callAhead() bool {
	switch p.cur().kw {
	case kw.CurrentDate, kw.CurrentTime, kw.CurrentTimestamp, kw.Localtime, kw.Localtimestamp, kw.CurrentUser,
		kw.CurrentRole, kw.CurrentSchema, kw.SessionUser, kw.User, kw.CurrentCatalog:
		return true
	}
	if p.isWord(kw.Collation) && p.peek(1).kw == kw.For && p.peek(2).kind == '(' {
		return true
	}
	i := 0
	for isColLabel(p.peek(i)) && p.peek(i+1).kind == '.' {
		i += 2
	}
	return isColLabel(p.peek(i)) && p.peek(i+1).kind == '(' && p.peek(i).kw != kw.Only
}

// table reads [ONLY] name [*] [alias].
func (p *parser) table(pos ast.Pos) *ast.TableRef {
	ref := &ast.TableRef{Pos: pos}
	if ref.Only = p.acceptWord(kw.Only); ref.Only && p.accept('(') {
		ref.Name = p.tableName()
		p.expect(')')
	} else {
		ref.Name = p.tableName()
	}
	if !ref.Only {
		p.acceptOp('*')
	}
	ref.Alias, ref.Columns = p.alias()
	if p.isWord(kw.Tablesample) {
		ref.Sample = p.sample()
	}
	return ref
}

// sample reads TABLESAMPLE method (arguments) [REPEATABLE (seed)].
func (p *parser) sample() *ast.Sample {
	p.advance()
	s := &ast.Sample{Pos: p.here()}
	s.Method = p.functionName()
	p.expect('(')
	s.Args = p.exprList()
	p.expect(')')
	if p.acceptWord(kw.Repeatable) {
		p.expect('(')
		s.Seed = p.expr()
		p.expect(')')
	}
	return s
}

// functionName reads a possibly qualified name of a function.
func (p *parser) functionName() []string {
	if p.peek(1).kind != '.' && !isTypeFuncName(p.cur()) {
		p.unexpected()
		return nil
	}
	if p.peek(1).kind != '.' {
		return p.single(p.colLabel())
	}
	return p.path()
}

// alias reads [AS] name [(columns)].
func (p *parser) alias() (name string, columns []string) {
	if p.asOfAhead() || !p.acceptWord(kw.As) && !isColID(p.cur()) {
		return "", nil
	}
	name = p.colID()
	if p.is('(') {
		columns = p.columnList()
	}
	return name, columns
}

// derivedTable reads (query) [AS] alias.
func (p *parser) derivedTable(pos ast.Pos, lateral bool) *ast.DerivedTable {
	table := &ast.DerivedTable{Pos: pos, Lateral: lateral, Query: p.subquery()}
	table.Alias, table.Columns = p.alias()
	if table.Alias == "" && p.err == nil {
		p.fail(pgerror.New(pgerror.SyntaxError, "subquery in FROM must have an alias").
			WithHint("For example, FROM (SELECT ...) [AS] foo.").At(int(pos)))
	}
	return table
}

// parenthesisedJoin reads (a JOIN b …) [AS alias] and reports whether there was no alias.
func (p *parser) parenthesisedJoin() (t ast.TableExpr, joined bool) {
	p.advance()
	t, joined = p.joinedTable()
	if !joined {
		p.unexpected()
	}
	p.expect(')')
	name, columns := p.alias()
	join, ok := t.(*ast.Join)
	if name == "" || !ok {
		return t, true
	}
	join.Alias, join.Columns = name, columns
	return join, false
}

// tableFunc reads f(args) [WITH ORDINALITY] [alias].
func (p *parser) tableFunc(pos ast.Pos, lateral bool) *ast.TableFunc {
	f := &ast.TableFunc{Pos: pos, Lateral: lateral}
	p.functionItem(f)
	if p.acceptWord(kw.With) {
		p.expectWord(kw.Ordinality)
		f.Ordinality = true
	}
	p.funcAlias(f)
	return f
}

// functionItem reads the call of an item of FROM.
func (p *parser) functionItem(f *ast.TableFunc) {
	pos, word := p.here(), p.cur().kw
	p.bareCall = true
	x := p.primary()
	p.bareCall = false
	if _, ok := x.(*ast.Cast); ok && word != kw.Cast && word != kw.Treat { // a literal with a type
		p.pos--
		p.unexpected()
		return
	}
	switch x := x.(type) {
	case *ast.Call:
		f.Call = x
	case *ast.Cast, *ast.XML:
		f.Expr = x
		p.notYet(pos, "This expression in FROM", "Write it in a subquery: FROM (SELECT …) AS name.")
	default:
		p.unexpected()
	}
}

// funcAlias reads a function's alias, whose columns may have types.
func (p *parser) funcAlias(f *ast.TableFunc) {
	if p.asOfAhead() {
		return
	}
	if p.acceptWord(kw.As) {
		if p.is('(') {
			f.ColumnDefs = p.columnTypes()
			return
		}
	} else if !isColID(p.cur()) {
		return
	}
	f.Alias = p.colID()
	if !p.is('(') {
		return
	}
	if next := p.peek(2).kind; next == ',' || next == ')' {
		f.Columns = p.columnList()
		return
	}
	f.ColumnDefs = p.columnTypes()
}

// columnTypes reads (name type, …).
func (p *parser) columnTypes() []ast.ColumnTypeDef {
	p.expect('(')
	var defs []ast.ColumnTypeDef
	for first := true; first || p.accept(','); first = false {
		def := ast.ColumnTypeDef{Name: p.colID()}
		def.Type = p.typeName()
		if p.acceptWord(kw.Collate) {
			def.Collation = p.path()
		}
		defs = append(defs, def)
	}
	p.expect(')')
	return defs
}

// withClause reads WITH.
func (p *parser) withClause() *ast.With {
	p.enter()
	defer p.leave()
	with := &ast.With{Pos: p.here()}
	p.expectWord(kw.With)
	if next := p.peek(1); next.kind != '(' && next.kw != kw.As { // else it is the query's name
		with.Recursive = p.acceptWord(kw.Recursive)
	}
	for first := true; first || p.accept(','); first = false {
		with.CTEs = append(with.CTEs, p.cte())
	}
	return with
}

// cte reads name [(columns)] AS [[NOT] MATERIALIZED] (statement) [SEARCH …] [CYCLE …].
func (p *parser) cte() ast.CTE {
	cte := ast.CTE{Pos: p.here()}
	cte.Name = p.colID()
	if p.is('(') {
		cte.Columns = p.columnList()
	}
	p.expectWord(kw.As)
	yes, no := true, false
	switch {
	case p.acceptWord(kw.Materialized):
		cte.Materialized = &yes
	case p.acceptWords(kw.Not, kw.Materialized):
		cte.Materialized = &no
	}
	p.expect('(')
	if !isDML(p.cur().kw) {
		p.requireQuery()
	}
	cte.Statement = p.embedded()
	p.expect(')')
	p.searchAndCycle(&cte)
	return cte
}

// searchAndCycle reads SEARCH and CYCLE of a recursive query.
func (p *parser) searchAndCycle(cte *ast.CTE) {
	if pos := p.here(); p.acceptWord(kw.Search) {
		s := &ast.Search{Pos: pos}
		if s.Breadth = p.acceptWord(kw.Breadth); !s.Breadth {
			p.expectWord(kw.Depth)
		}
		p.expectWords(kw.First, kw.By)
		s.Columns = p.names()
		p.expectWord(kw.Set)
		s.Set = p.colID()
		cte.Search = s
	}
	if pos := p.here(); p.acceptWord(kw.Cycle) {
		c := &ast.Cycle{Pos: pos, Columns: p.names()}
		p.expectWord(kw.Set)
		c.Mark = p.colID()
		if p.acceptWord(kw.To) {
			c.To = p.anyConstant()
			p.expectWord(kw.Default)
			c.Default = p.anyConstant()
		}
		p.expectWord(kw.Using)
		c.Using = p.colID()
		cte.Cycle = c
	}
}

// anyConstant reads what the grammar calls a constant: a literal, perhaps with a type before it, TRUE, FALSE or NULL.
func (p *parser) anyConstant() ast.Expr {
	t := p.cur()
	switch x := p.primary().(type) {
	case *ast.Literal, *ast.Bool, *ast.Null:
		return x
	case *ast.Cast:
		if t.kw != kw.Cast && !x.Treat {
			return x
		}
	}
	if p.err == nil {
		p.failAt(p.posOf(t), pgerror.SyntaxError, `syntax error at or near "%s"`, p.text[t.start:t.end])
	}
	return nil
}

// rowsFrom reads ROWS FROM (function [AS (columns)], …) [WITH ORDINALITY] [alias].
func (p *parser) rowsFrom(pos ast.Pos, lateral bool) *ast.RowsFrom {
	p.pos += 3
	r := &ast.RowsFrom{Pos: pos, Lateral: lateral}
	for first := true; first || p.accept(','); first = false {
		f := ast.TableFunc{Pos: p.here()}
		if !p.callAhead() {
			p.unexpected()
			return r
		}
		p.functionItem(&f)
		if p.acceptWord(kw.As) {
			f.ColumnDefs = p.columnTypes()
		}
		r.Functions = append(r.Functions, f)
	}
	p.expect(')')
	if p.acceptWord(kw.With) {
		p.expectWord(kw.Ordinality)
		r.Ordinality = true
	}
	r.Alias, r.Columns = p.alias()
	return r
}
