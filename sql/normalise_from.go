package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// fromList reads the items of FROM. Every explicit join is written as LEFT JOIN … ON carrier, so that
// TiDB's grammar nests joins and the carrier says what each one is.
func (p *parser) fromList() {
	for first := true; first || p.accept(','); first = false {
		if !first {
			p.emit(",")
		}
		p.tableExpr()
	}
}

// tableExpr reads a table with the joins that hang on it and reports whether it is a join.
func (p *parser) tableExpr() (joined bool) {
	p.enter()
	defer p.leave()
	joined = p.tablePrimary()
	for p.err == nil {
		pos := p.here()
		qual := &joinQual{pos: pos}
		switch {
		case p.acceptWords(kw.Cross, kw.Join):
			qual.kind = ast.CrossJoin
			p.emit(" LEFT JOIN ")
			p.tablePrimary()
			p.joinOn(qual)
		case p.acceptWord(kw.Natural):
			qual.natural = true
			if !p.joinKind(qual) {
				p.unexpected()
				return joined
			}
			p.emit(" LEFT JOIN ")
			p.tablePrimary()
			p.joinOn(qual)
		case p.joinKind(qual):
			p.emit(" LEFT JOIN ")
			p.tableExpr()
			p.qualifiedJoin(qual)
		default:
			return joined
		}
		joined = true
	}
	return joined
}

// joinKind reads [INNER|LEFT|RIGHT|FULL [OUTER]] JOIN and reports whether it was there.
func (p *parser) joinKind(qual *joinQual) bool {
	switch {
	case p.acceptWord(kw.Join):
		return true
	case p.acceptWord(kw.Inner):
	case p.acceptWord(kw.Left):
		qual.kind = ast.LeftJoin
		p.acceptWord(kw.Outer)
	case p.acceptWord(kw.Right):
		qual.kind = ast.RightJoin
		p.acceptWord(kw.Outer)
	case p.acceptWord(kw.Full):
		qual.kind = ast.FullJoin
		p.acceptWord(kw.Outer)
	default:
		return false
	}
	p.expectWord(kw.Join)
	return true
}

// joinOn writes a join's ON, which stands for qual.
func (p *parser) joinOn(qual *joinQual) {
	p.emit(" ON ")
	id, outer := p.begin()
	p.end(id, outer, qual)
}

// qualifiedJoin reads ON condition or USING (columns).
func (p *parser) qualifiedJoin(qual *joinQual) {
	if p.acceptWord(kw.Using) {
		qual.using = p.columnList()
		if p.acceptWord(kw.As) {
			p.unsupported(p.here(), "An alias of JOIN … USING", "Name the columns by their own tables.")
		}
		p.joinOn(qual)
		return
	}
	p.expectWord(kw.On)
	p.emit(" ON ")
	id, outer := p.begin()
	qual.on = p.expr()
	p.end(id, outer, qual)
}

// tablePrimary reads a table, a query, a function or a parenthesised join, and reports whether it is
// a join without an alias.
func (p *parser) tablePrimary() (joined bool) {
	pos := p.here()
	lateral := p.acceptWord(kw.Lateral)
	switch t := p.cur(); {
	case t.kind == '(' && p.startsQuery(0):
		p.derivedTable(pos, lateral)
	case t.kind == '(' && !lateral:
		return p.parenthesisedJoin()
	case t.kw == kw.Rows && p.peek(1).kw == kw.From && p.peek(2).kind == '(':
		p.unsupported(pos, "ROWS FROM", "Join the functions with ordinality instead.")
	case p.callAhead():
		p.tableFunc(pos, lateral)
	case lateral:
		p.unexpected()
	default:
		p.table(pos)
	}
	return false
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
func (p *parser) table(pos ast.Pos) {
	id, outer := p.begin()
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
	p.end(id, outer, ref)
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
func (p *parser) derivedTable(pos ast.Pos, lateral bool) {
	p.emit("(")
	p.expect('(')
	p.query()
	p.expect(')')
	p.emit(") ")
	id, outer := p.begin()
	table := &ast.DerivedTable{Pos: pos, Lateral: lateral}
	table.Alias, table.Columns = p.alias()
	if table.Alias == "" && p.err == nil {
		p.fail(pgerror.New(pgerror.SyntaxError, "subquery in FROM must have an alias").
			WithHint("For example, FROM (SELECT ...) [AS] foo.").At(int(pos)))
	}
	p.refuseSample()
	p.end(id, outer, table)
}

// parenthesisedJoin reads (a JOIN b …) [AS alias]. An alias is written as one more join, whose carrier
// is that alias. It reports whether there was none.
func (p *parser) parenthesisedJoin() (joined bool) {
	p.advance()
	p.emit("((")
	if !p.tableExpr() {
		p.unexpected()
	}
	p.emit(")")
	p.expect(')')
	pos := p.here()
	name, columns := p.alias()
	if name != "" {
		p.emit(" LEFT JOIN ")
		mark, outer := p.begin()
		p.end(mark, outer, nil)
		p.joinOn(&joinQual{pos: pos, alias: name, columns: columns, isAlias: true})
	}
	p.emit(")")
	return name == ""
}

// tableFunc reads f(args) [WITH ORDINALITY] [alias].
func (p *parser) tableFunc(pos ast.Pos, lateral bool) {
	f := &ast.TableFunc{Pos: pos, Lateral: lateral}
	start := len(p.buf)
	p.emit("(SELECT ")
	id, outer := p.begin()
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
	if len(p.items[id].holes) == 0 {
		// Without a subquery in its arguments the function needs no SELECT to hold them.
		p.buf = p.buf[:start]
		p.emitCarrier(id)
		p.end(id, outer, f)
		return
	}
	p.end(id, outer, f)
	p.emitFromMark(id)
	p.emit(") ")
	p.emitCarrier(id)
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

// withClause reads WITH and writes it for TiDB's grammar.
func (p *parser) withClause() {
	p.enter()
	defer p.leave()
	p.emit("WITH ")
	with := &ast.With{Pos: p.here()}
	p.expectWord(kw.With)
	if next := p.peek(1); next.kind != '(' && next.kw != kw.As { // else it is the query's name
		with.Recursive = p.acceptWord(kw.Recursive)
	}
	for first := true; first || p.accept(','); first = false {
		if !first {
			p.emit(",")
		}
		p.cte(with)
	}
	p.emit(" ")
}

// cteHead is the item of a WITH entry: all of it but its statement.
type cteHead struct {
	with *ast.With // the clause the entry belongs to
	cte  ast.CTE
}

func (p *parser) cte(with *ast.With) {
	id, outer := p.begin()
	head := &cteHead{with: with, cte: ast.CTE{Pos: p.here()}}
	head.cte.Name = p.colID()
	if p.is('(') {
		head.cte.Columns = p.columnList()
	}
	p.expectWord(kw.As)
	yes, no := true, false
	switch {
	case p.acceptWord(kw.Materialized):
		head.cte.Materialized = &yes
	case p.acceptWords(kw.Not, kw.Materialized):
		head.cte.Materialized = &no
	}
	p.end(id, outer, head)
	p.emit(" AS (")
	p.expect('(')
	if !isDML(p.cur().kw) {
		p.requireQuery()
	}
	p.embedded()
	p.expect(')')
	p.emit(")")
	if w := p.cur().kw; w == kw.Search || w == kw.Cycle {
		p.unsupported(p.here(), "SEARCH and CYCLE", "Carry the path in an array column.")
	}
}
