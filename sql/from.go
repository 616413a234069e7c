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
		join := &ast.Join{Pos: p.here(), L: t}
		switch {
		case p.acceptWords(kw.Cross, kw.Join):
			join.Kind = ast.CrossJoin
			join.R, _ = p.tablePrimary()
		case p.acceptWord(kw.Natural):
			join.Natural = true
			if !p.joinKind(join) {
				p.unexpected()
				return t, joined
			}
			join.R, _ = p.tablePrimary()
		case p.joinKind(join):
			join.R = p.tableExpr()
			p.joinCondition(join)
		default:
			return t, joined
		}
		t, joined = join, true
	}
	return t, joined
}

// joinKind reads [INNER|LEFT|RIGHT|FULL [OUTER]] JOIN and reports whether it was there.
func (p *parser) joinKind(join *ast.Join) bool {
	switch {
	case p.acceptWord(kw.Join):
		return true
	case p.acceptWord(kw.Inner):
	case p.acceptWord(kw.Left):
		join.Kind = ast.LeftJoin
		p.acceptWord(kw.Outer)
	case p.acceptWord(kw.Right):
		join.Kind = ast.RightJoin
		p.acceptWord(kw.Outer)
	case p.acceptWord(kw.Full):
		join.Kind = ast.FullJoin
		p.acceptWord(kw.Outer)
	default:
		return false
	}
	p.expectWord(kw.Join)
	return true
}

// joinCondition reads ON condition or USING (columns).
func (p *parser) joinCondition(join *ast.Join) {
	if p.acceptWord(kw.Using) {
		join.Using = p.columnList()
		if p.acceptWord(kw.As) {
			p.unsupported(p.here(), "An alias of JOIN … USING", "Name the columns by their own tables.")
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
		p.unsupported(pos, "ROWS FROM", "Join the functions with ordinality instead.")
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
	p.refuseSample()
	return ref
}

func (p *parser) refuseSample() {
	if p.isWord(kw.Tablesample) {
		p.unsupported(p.here(), "TABLESAMPLE", "Filter with random() < fraction.")
	}
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
	p.refuseSample()
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
	pos := p.here()
	name, columns := p.alias()
	join, ok := t.(*ast.Join)
	if name == "" || !ok {
		return t, true
	}
	if columns != nil {
		return namedJoin(pos, join, name, columns), false
	}
	join.Alias = name
	return join, false
}

// namedJoin gives the columns of a join names: it is a subquery of all that the join has.
func namedJoin(pos ast.Pos, join *ast.Join, name string, columns []string) ast.TableExpr {
	all := &ast.Select{
		Pos:     pos,
		Columns: []ast.SelectItem{{Expr: &ast.Star{Pos: pos}}},
		From:    []ast.TableExpr{join},
	}
	return &ast.DerivedTable{Pos: pos, Query: &ast.Query{Pos: pos, Body: all}, Alias: name, Columns: columns}
}

// tableFunc reads f(args) [WITH ORDINALITY] [alias].
func (p *parser) tableFunc(pos ast.Pos, lateral bool) *ast.TableFunc {
	f := &ast.TableFunc{Pos: pos, Lateral: lateral}
	p.bareCall = true
	x := p.primary()
	p.bareCall = false
	call, ok := x.(*ast.Call)
	if !ok && p.err == nil {
		p.unsupported(pos, "This expression in FROM", "Write it in a subquery: FROM (SELECT …) AS name.")
	}
	f.Call = call
	if p.acceptWord(kw.With) {
		p.expectWord(kw.Ordinality)
		f.Ordinality = true
	}
	p.funcAlias(f)
	return f
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
			p.path()
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

// cte reads name [(columns)] AS [[NOT] MATERIALIZED] (statement).
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
	if w := p.cur().kw; w == kw.Search || w == kw.Cycle {
		p.unsupported(p.here(), "SEARCH and CYCLE", "Carry the path in an array column.")
	}
	return cte
}
