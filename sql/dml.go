package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// dml reads INSERT, UPDATE, DELETE or MERGE behind its WITH, which may be nil.
func (p *parser) dml(with *ast.With) ast.Statement {
	switch p.cur().kw {
	case kw.Insert:
		return p.insert(with)
	case kw.Update:
		return p.update(with)
	case kw.Merge:
		return p.merge(with)
	default:
		return p.delete(with)
	}
}

// insert reads INSERT INTO.
func (p *parser) insert(with *ast.With) *ast.Insert {
	ins := &ast.Insert{Pos: p.here(), With: with}
	p.expectWords(kw.Insert, kw.Into)
	ins.Table = p.tableName()
	if p.acceptWord(kw.As) {
		ins.Alias = p.colID()
	}
	if p.is('(') && !p.startsQuery(0) {
		ins.Columns = p.insertColumns()
	}
	ins.Overriding = p.overriding()
	p.insertSource(ins)
	if p.isWord(kw.On) {
		ins.OnConflict = p.onConflict()
	}
	ins.Returning = p.returning()
	return ins
}

// insertColumns reads the target columns of INSERT, with their parentheses.
func (p *parser) insertColumns() []ast.InsertColumn {
	p.expect('(')
	var columns []ast.InsertColumn
	for first := true; first || p.accept(','); first = false {
		col := ast.InsertColumn{Pos: p.here(), Name: p.colID()}
		col.Part = p.steps()
		columns = append(columns, col)
	}
	p.expect(')')
	return columns
}

// overriding reads OVERRIDING USER|SYSTEM VALUE, if it is there.
func (p *parser) overriding() string {
	if !p.acceptWord(kw.Overriding) {
		return ""
	}
	which := "USER"
	if !p.acceptWord(kw.User) {
		p.expectWord(kw.System)
		which = "SYSTEM"
	}
	p.expectWord(kw.Value)
	return which
}

// steps reads the way into a part of a column that is assigned to; nil if the column is whole.
func (p *parser) steps() []ast.Step {
	var steps []ast.Step
	for p.err == nil {
		switch {
		case p.is('['):
			sub, ok := p.subscript(nil, p.here()).(*ast.Subscript)
			if !ok {
				return nil
			}
			steps = append(steps, ast.Step{Subscript: sub})
		case p.accept('.'):
			if p.isOp('*') {
				p.unexpected()
				return nil
			}
			steps = append(steps, ast.Step{Field: p.colLabel()})
		default:
			return steps
		}
	}
	return nil
}

func (p *parser) insertSource(ins *ast.Insert) {
	switch {
	case p.isWord(kw.Default) && len(ins.Columns) == 0 && ins.Overriding == "":
		p.advance()
		p.expectWord(kw.Values)
	case p.isWord(kw.Values) && p.plainValues():
		ins.Query = &ast.Query{Pos: p.here()}
		ins.Query.Body = p.valuesList(true)
	case p.is('(') && p.startsQuery(0) || queryWord(p.toks, p.pos):
		ins.Query = p.query()
	default:
		p.unexpected()
	}
}

// plainValues reports whether VALUES is all of the query: no set operation or ORDER BY follows.
func (p *parser) plainValues() bool {
	for i := p.pos + 1; ; {
		if i >= len(p.toks) || p.toks[i].kind != '(' || p.toks[i].aux < 0 {
			return true // a syntax error, wherever it is found
		}
		i = int(p.toks[i].aux) + 1
		if p.toks[i].kind != ',' {
			return !continuesQuery(&p.toks[i])
		}
		i++
	}
}

// onConflict reads ON CONFLICT.
func (p *parser) onConflict() *ast.OnConflict {
	c := &ast.OnConflict{Pos: p.here()}
	p.expectWords(kw.On, kw.Conflict)
	switch {
	case p.is('('):
		p.advance()
		for first := true; first || p.accept(','); first = false {
			p.conflictColumn(c)
		}
		p.expect(')')
		if p.acceptWord(kw.Where) {
			c.TargetWhere = p.expr()
		}
	case p.acceptWords(kw.On, kw.Constraint):
		c.Constraint = p.colID()
	}
	p.expectWord(kw.Do)
	if p.acceptWord(kw.Nothing) {
		return c
	}
	pos := p.here()
	p.expectWords(kw.Update, kw.Set)
	c.DoUpdate = true
	c.Set = p.assignments()
	if p.acceptWord(kw.Where) {
		c.Where = p.expr()
	}
	if len(c.Columns) == 0 && c.Constraint == "" && p.err == nil {
		p.later(pgerror.New(pgerror.SyntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).").At(int(pos)))
	}
	return c
}

// conflictColumn reads a column or expression of an ON CONFLICT target.
func (p *parser) conflictColumn(c *ast.OnConflict) {
	col := p.indexColumn()
	c.Infer = append(c.Infer, col)
	x := col.Expr
	if x == nil {
		x = &ast.ColumnRef{Pos: col.Pos, Parts: []string{col.Name}}
	}
	if col.Collation != nil {
		x = &ast.Collate{Pos: col.Pos, X: x, Name: col.Collation}
	}
	c.Columns = append(c.Columns, x)
	switch {
	case col.Asc || col.Desc:
		p.later(pgerror.New(pgerror.InvalidColumnReference, "ASC/DESC is not allowed in ON CONFLICT clause").At(int(col.Pos)))
	case col.Nulls:
		p.later(pgerror.New(pgerror.InvalidColumnReference, "NULLS FIRST/LAST is not allowed in ON CONFLICT clause").At(int(col.Pos)))
	case col.OpClass != nil:
		p.notYet(col.Pos, "An operator class in ON CONFLICT", "Leave it out.")
	}
}

// indexExpr reads what an index is on: a column's name, a call, or an expression in parentheses.
func (p *parser) indexExpr() (x ast.Expr, isName bool) {
	if p.accept('(') {
		x = p.expr()
		p.expect(')')
		return x, false
	}
	if p.callAhead() {
		return p.primary(), false
	}
	pos := p.here()
	return &ast.ColumnRef{Pos: pos, Parts: p.single(p.colID())}, true
}

// assignments reads the list of SET.
func (p *parser) assignments() []ast.Assignment {
	list := []ast.Assignment{p.assignment()}
	for p.accept(',') {
		list = append(list, p.assignment())
	}
	return list
}

// assignment reads column = value or (column, …) = row or query.
func (p *parser) assignment() ast.Assignment {
	a := ast.Assignment{Pos: p.here()}
	if !p.is('(') {
		a.Columns = []string{p.colID()}
		if part := p.steps(); part != nil {
			a.Parts = [][]ast.Step{part}
		}
		p.expectAssign()
		a.Value = p.element(true)
		return a
	}
	p.advance()
	a.List = true
	parts, some := [][]ast.Step(nil), false
	for first := true; first || p.accept(','); first = false {
		a.Columns = append(a.Columns, p.colID())
		part := p.steps()
		parts, some = append(parts, part), some || part != nil
	}
	if some {
		a.Parts = parts
	}
	p.expect(')')
	p.expectAssign()
	switch row := p.rowWithDefaults(); {
	case row != nil:
		a.Value = row
	default:
		a.Value = p.expr()
	}
	return a
}

func (p *parser) expectAssign() {
	if !p.acceptOp('=') {
		p.unexpected()
	}
}

// rowWithDefaults reads a row that is the whole value of a multi-column assignment, where DEFAULT may
// be an element; nil if the value is something else.
func (p *parser) rowWithDefaults() *ast.Row {
	open, explicit := p.pos, p.isWord(kw.Row)
	if explicit {
		open++
	}
	if t := &p.toks[open]; t.kind != '(' || t.aux < 0 || p.startsQuery(open-p.pos) {
		return nil
	}
	if !explicit && !p.commaInside(open) {
		return nil // one value in parentheses is no row
	}
	switch next := &p.toks[p.toks[open].aux+1]; next.kind {
	case ',', tokEOF, ')':
	case tokIdent:
		if next.kw != kw.From && next.kw != kw.Where && next.kw != kw.Returning {
			return nil
		}
	default:
		return nil
	}
	row := &ast.Row{Pos: p.here(), Explicit: explicit}
	p.pos = open + 1
	for first := true; first || p.accept(','); first = false {
		row.Elems = append(row.Elems, p.element(true))
	}
	p.expect(')')
	return row
}

// commaInside reports whether the parenthesis at i holds a comma of its own.
func (p *parser) commaInside(i int) bool {
	for j := i + 1; j < int(p.toks[i].aux); j++ {
		switch t := &p.toks[j]; t.kind {
		case ',':
			return true
		case '(', '[':
			j = int(t.aux)
		}
	}
	return false
}

// target reads the table of UPDATE, DELETE and MERGE with its alias, which SET is not unless AS says so.
func (p *parser) target() (only bool, name ast.TableName, alias string) {
	if only = p.acceptWord(kw.Only); only && p.accept('(') {
		name = p.tableName()
		p.expect(')')
	} else {
		name = p.tableName()
	}
	if !only {
		p.acceptOp('*')
	}
	if p.acceptWord(kw.As) || isColID(p.cur()) && !p.isWord(kw.Set) {
		alias = p.colID()
	}
	return only, name, alias
}

// update reads UPDATE.
func (p *parser) update(with *ast.With) *ast.Update {
	up := &ast.Update{Pos: p.here(), With: with}
	p.expectWord(kw.Update)
	up.Only, up.Table, up.Alias = p.target()
	p.expectWord(kw.Set)
	up.Set = p.assignments()
	if p.acceptWord(kw.From) {
		up.From = p.fromList()
	}
	up.Where = p.dmlWhere()
	up.Returning = p.returning()
	return up
}

// delete reads DELETE.
func (p *parser) delete(with *ast.With) *ast.Delete {
	del := &ast.Delete{Pos: p.here(), With: with}
	p.expectWords(kw.Delete, kw.From)
	del.Only, del.Table, del.Alias = p.target()
	if p.acceptWord(kw.Using) {
		del.Using = p.fromList()
	}
	del.Where = p.dmlWhere()
	del.Returning = p.returning()
	return del
}

// dmlWhere reads WHERE of UPDATE and DELETE.
func (p *parser) dmlWhere() ast.Expr {
	if !p.acceptWord(kw.Where) {
		return nil
	}
	if pos := p.here(); p.acceptWords(kw.Current, kw.Of) {
		return &ast.CurrentOf{Pos: pos, Cursor: p.colID()}
	}
	return p.expr()
}

// merge reads MERGE.
func (p *parser) merge(with *ast.With) *ast.Merge {
	m := &ast.Merge{Pos: p.here(), With: with}
	p.expectWords(kw.Merge, kw.Into)
	m.Only, m.Table, m.Alias = p.target()
	p.expectWord(kw.Using)
	m.Source = p.tableExpr()
	p.expectWord(kw.On)
	m.On = p.expr()
	for first := true; first || p.isWord(kw.When); first = false {
		m.Whens = append(m.Whens, p.mergeWhen())
	}
	return m
}

// mergeWhen reads WHEN [NOT] MATCHED [AND condition] THEN action.
func (p *parser) mergeWhen() ast.MergeWhen {
	w := ast.MergeWhen{Pos: p.here()}
	p.expectWord(kw.When)
	w.Matched = !p.acceptWord(kw.Not)
	p.expectWord(kw.Matched)
	if p.acceptWord(kw.And) {
		w.Cond = p.expr()
	}
	p.expectWord(kw.Then)
	switch {
	case p.acceptWord(kw.Do):
		p.expectWord(kw.Nothing)
		w.Action = "DO NOTHING"
	case w.Matched && p.acceptWord(kw.Delete):
		w.Action = "DELETE"
	case w.Matched && p.acceptWord(kw.Update):
		w.Action = "UPDATE"
		p.expectWord(kw.Set)
		w.Set = p.assignments()
	case !w.Matched && p.acceptWord(kw.Insert):
		w.Action = "INSERT"
		p.mergeInsert(&w)
	default:
		p.unexpected()
	}
	return w
}

func (p *parser) mergeInsert(w *ast.MergeWhen) {
	if p.acceptWords(kw.Default, kw.Values) {
		return
	}
	if p.is('(') {
		w.Columns = p.insertColumns()
	}
	w.Overriding = p.overriding()
	p.expectWord(kw.Values)
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		w.Values = append(w.Values, p.element(true))
	}
	p.expect(')')
}

// returning reads RETURNING.
func (p *parser) returning() []ast.SelectItem {
	if !p.acceptWord(kw.Returning) {
		return nil
	}
	items := []ast.SelectItem{p.selectItem()}
	for p.accept(',') {
		items = append(items, p.selectItem())
	}
	return items
}
