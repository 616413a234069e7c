package sql

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// reservedPrimary reads an operand that a reserved word begins.
func (p *parser) reservedPrimary(t *token) ast.Expr {
	pos := p.posOf(t)
	switch t.kw {
	case kw.Null:
		p.advance()
		return &ast.Null{Pos: pos}
	case kw.True, kw.False:
		p.advance()
		return &ast.Bool{Pos: pos, Value: t.kw == kw.True}
	case kw.Case:
		return p.caseExpr(pos)
	case kw.Array:
		return p.arrayExpr(pos)
	case kw.Cast:
		return p.cast(pos)
	case kw.CurrentDate, kw.CurrentUser, kw.CurrentRole, kw.SessionUser, kw.User, kw.CurrentCatalog:
		p.advance()
		return &ast.Call{Pos: pos, Name: []string{t.kw.String()}, Syntax: ast.ValueSyntax}
	case kw.CurrentTime, kw.CurrentTimestamp, kw.Localtime, kw.Localtimestamp:
		p.advance()
		call := &ast.Call{Pos: pos, Name: []string{t.kw.String()}, Syntax: ast.ValueSyntax}
		if p.accept('(') {
			if n := p.cur(); n.kind != tokLiteral || n.lit != ast.LiteralInt4 {
				p.unexpected()
				return nil
			}
			call.Args = []ast.Expr{p.constant(p.cur())}
			p.expect(')')
		}
		return call
	case kw.Default:
		p.advance()
		p.later(pgerror.New(pgerror.SyntaxError, "DEFAULT is not allowed in this context").At(int(pos)))
		return &ast.Default{Pos: pos}
	case kw.Unique:
		p.unsupported(pos, "The UNIQUE predicate", "Compare count(*) with count(DISTINCT …).")
	default:
		p.unexpected()
	}
	return nil
}

// keywordPrimary reads an operand that a word with a meaning in some places begins.
func (p *parser) keywordPrimary(t *token) ast.Expr {
	if constTypeWord(t.kw) && p.typedLiteralAhead() {
		return p.typedLiteral()
	}
	pos := p.posOf(t)
	switch {
	case t.kw == kw.CurrentSchema && p.peek(1).kind != '(' && !isString(p.peek(1)):
		p.advance()
		return &ast.Call{Pos: pos, Name: []string{"current_schema"}, Syntax: ast.ValueSyntax}
	case t.kw == kw.Collation && p.peek(1).kw == kw.For:
		p.advance()
		p.advance()
		call := p.simpleCall(pos, "pg_collation_for", 1)
		call.Syntax = ast.CollationFor
		return call
	}
	if p.peek(1).kind == '(' && t.kw.Category() == kw.ColumnName {
		if x, special := p.specialForm(t.kw, pos); special {
			return x
		}
	}
	return p.nameOrCall()
}

// specialForm reads the calls that have a syntax of their own, as calls of the functions PostgreSQL
// makes of them.
func (p *parser) specialForm(word kw.Word, pos ast.Pos) (x ast.Expr, special bool) {
	switch word {
	case kw.Exists:
		p.advance()
		e := &ast.Exists{Pos: pos}
		if !p.startsQuery(0) {
			p.advance()
			p.unexpected()
		}
		e.Query = p.subquery()
		return e, true
	case kw.Row:
		return p.rowExpr(pos), true
	case kw.Coalesce, kw.Greatest, kw.Least:
		p.advance()
		return p.simpleCall(pos, word.String(), 0), true
	case kw.Nullif:
		p.advance()
		return p.simpleCall(pos, "nullif", 2), true
	case kw.Extract:
		return p.extract(pos), true
	case kw.Position:
		return p.positionOf(pos), true
	case kw.Substring:
		return p.substring(pos), true
	case kw.Overlay:
		return p.overlay(pos), true
	case kw.Trim:
		return p.trim(pos), true
	case kw.Normalize:
		return p.normalize(pos), true
	case kw.Grouping:
		p.advance()
		call := p.simpleCall(pos, "grouping", 0)
		call.Syntax = ast.GroupingSyntax
		return call, true
	case kw.Treat:
		return p.treat(pos), true
	case kw.Xmlconcat, kw.Xmlelement, kw.Xmlexists, kw.Xmlforest, kw.Xmlparse, kw.Xmlpi, kw.Xmlroot, kw.Xmlserialize:
		return p.xml(pos, word), true
	}
	return nil, false
}

// simpleCall reads (expr, …) as the arguments of a function; count 0 means one or more.
func (p *parser) simpleCall(pos ast.Pos, name string, count int) *ast.Call {
	p.expect('(')
	call := &ast.Call{Pos: pos, Name: []string{name}, Args: []ast.Expr{p.expr()}}
	for (len(call.Args) < count || count == 0 && p.is(',')) && p.err == nil {
		p.expect(',')
		call.Args = append(call.Args, p.expr())
	}
	p.expect(')')
	return call
}

// treat reads TREAT(x AS type), which PostgreSQL takes for a call of the function that the type is named after.
func (p *parser) treat(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	c := &ast.Cast{Pos: pos, X: p.expr(), Treat: true}
	p.expectWord(kw.As)
	c.Type = p.typeName()
	p.expect(')')
	p.notYet(pos, "TREAT", "Use CAST.")
	return c
}

// cast reads CAST(x AS type).
func (p *parser) cast(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	c := &ast.Cast{Pos: pos, X: p.expr()}
	p.expectWord(kw.As)
	c.Type = p.typeName()
	p.expect(')')
	return c
}

// caseExpr reads CASE … END.
func (p *parser) caseExpr(pos ast.Pos) ast.Expr {
	p.advance()
	c := &ast.Case{Pos: pos}
	if !p.isWord(kw.When) {
		c.Operand = p.expr()
	}
	for first := true; first || p.isWord(kw.When); first = false {
		at := p.here()
		p.expectWord(kw.When)
		cond := p.expr()
		p.expectWord(kw.Then)
		c.Whens = append(c.Whens, ast.When{Pos: at, Cond: cond, Then: p.expr()})
	}
	if p.acceptWord(kw.Else) {
		c.Else = p.expr()
	}
	p.expectWord(kw.End)
	return c
}

// arrayExpr reads ARRAY[…] or ARRAY(query).
func (p *parser) arrayExpr(pos ast.Pos) ast.Expr {
	p.advance()
	if p.startsQuery(0) {
		sub := &ast.ArraySubquery{Pos: pos}
		sub.Query = p.subquery()
		return sub
	}
	if !p.is('[') {
		p.accept('(')
		p.unexpected()
		return nil
	}
	return p.arrayElements(pos)
}

// arrayElements reads [a, b, …]; the elements may be such lists themselves.
func (p *parser) arrayElements(pos ast.Pos) ast.Expr {
	p.enter()
	defer p.leave()
	p.expect('[')
	array := &ast.Array{Pos: pos}
	nested := p.is('[')
	for first := true; !p.is(']') && (first || p.accept(',')); first = false {
		if nested {
			array.Elems = append(array.Elems, p.arrayElements(p.here()))
		} else {
			array.Elems = append(array.Elems, p.expr())
		}
	}
	p.expect(']')
	return array
}

// rowExpr reads ROW(…).
func (p *parser) rowExpr(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	row := &ast.Row{Pos: pos, Explicit: true}
	if !p.is(')') {
		row.Elems = p.exprList()
	}
	p.expect(')')
	return row
}

// extract reads EXTRACT(field FROM x).
func (p *parser) extract(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	field := &ast.Literal{Pos: p.here(), Kind: ast.LiteralString, Slot: pinned}
	switch t := p.cur(); {
	case isString(t):
		field.Value, field.Slot = p.stringLit(), int(t.slot)
	case t.kind == tokQuoted || t.kind == tokIdent && (t.kw == kw.None || dateField(t.kw)):
		field.Value = p.colLabel()
	default:
		p.unexpected()
	}
	p.expectWord(kw.From)
	call := &ast.Call{Pos: pos, Name: []string{"extract"}, Syntax: ast.ExtractSyntax, Args: []ast.Expr{field, p.expr()}}
	p.expect(')')
	return call
}

func dateField(word kw.Word) bool {
	switch word {
	case kw.Year, kw.Month, kw.Day, kw.Hour, kw.Minute, kw.Second:
		return true
	}
	return false
}

// positionOf reads POSITION(part IN whole), which PostgreSQL turns into position(whole, part).
func (p *parser) positionOf(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	part := p.operators(precIs, true)
	p.expectWord(kw.In)
	whole := p.operators(precIs, true)
	p.expect(')')
	return &ast.Call{Pos: pos, Name: []string{"position"}, Syntax: ast.PositionSyntax, Args: []ast.Expr{whole, part}}
}

// substring reads SUBSTRING(x FROM start FOR count) in its variants, or with plain arguments.
func (p *parser) substring(pos ast.Pos) ast.Expr {
	start := p.pos
	p.advance()
	p.advance()
	if p.is(')') || !p.wordsAhead(kw.From, kw.For, kw.Similar) {
		p.pos = start + 1
		return p.plainCall(&ast.Call{Pos: pos, Name: []string{"substring"}})
	}
	outer := p.similarDepth
	p.similarDepth = p.depth + 1
	text := p.expr()
	p.similarDepth = outer
	call := &ast.Call{Pos: pos, Name: []string{"substring"}, Syntax: ast.SubstringFrom, Args: []ast.Expr{text}}
	switch {
	case p.acceptWord(kw.From):
		call.Args = append(call.Args, p.expr())
		if p.acceptWord(kw.For) {
			call.Args = append(call.Args, p.expr())
		}
	case p.acceptWord(kw.For):
		count := p.expr()
		var from ast.Expr = &ast.Literal{Pos: pos, Kind: ast.LiteralInt4, Slot: pinned, Value: "1"}
		if p.acceptWord(kw.From) {
			from = p.expr()
		}
		call.Args = append(call.Args, from, count)
		if lit, ok := from.(*ast.Literal); ok && lit.Pos == pos {
			call.Syntax = ast.SubstringFor
		}
	default:
		p.expectWord(kw.Similar)
		call.Syntax = ast.SubstringSimilar
		call.Args = append(call.Args, p.expr())
		p.expectWord(kw.Escape)
		call.Args = append(call.Args, p.expr())
	}
	p.expect(')')
	return call
}

// wordsAhead reports whether one of the words stands at this level before the parenthesis closes.
func (p *parser) wordsAhead(words ...kw.Word) bool {
	for i := p.pos; i < len(p.toks); i++ {
		t := &p.toks[i]
		switch t.kind {
		case '(', '[':
			if t.aux < 0 {
				return false
			}
			i = int(t.aux)
		case ')', ',':
			return false
		case tokIdent:
			if t.kw == kw.Similar && p.toks[i+1].kw == kw.To { // an operator
				continue
			}
			if t.kw != kw.None && slices.Contains(words, t.kw) {
				return true
			}
		}
	}
	return false
}

// overlay reads OVERLAY(x PLACING y FROM start [FOR count]) or plain arguments.
func (p *parser) overlay(pos ast.Pos) ast.Expr {
	start := p.pos
	p.advance()
	p.advance()
	if p.is(')') || !p.wordsAhead(kw.Placing) {
		p.pos = start + 1
		return p.plainCall(&ast.Call{Pos: pos, Name: []string{"overlay"}})
	}
	call := &ast.Call{Pos: pos, Name: []string{"overlay"}, Syntax: ast.OverlaySyntax, Args: []ast.Expr{p.expr()}}
	p.expectWord(kw.Placing)
	call.Args = append(call.Args, p.expr())
	p.expectWord(kw.From)
	call.Args = append(call.Args, p.expr())
	if p.acceptWord(kw.For) {
		call.Args = append(call.Args, p.expr())
	}
	p.expect(')')
	return call
}

// trim reads TRIM([BOTH|LEADING|TRAILING] [chars FROM] x).
func (p *parser) trim(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	name := "btrim"
	switch {
	case p.acceptWord(kw.Both):
	case p.acceptWord(kw.Leading):
		name = "ltrim"
	case p.acceptWord(kw.Trailing):
		name = "rtrim"
	}
	call := &ast.Call{Pos: pos, Name: []string{name}, Syntax: ast.TrimSyntax}
	if p.acceptWord(kw.From) {
		call.Args = p.exprList()
	} else if first := p.expr(); p.acceptWord(kw.From) {
		call.Args = append(p.exprList(), first)
	} else {
		call.Args = []ast.Expr{first}
		for p.accept(',') {
			call.Args = append(call.Args, p.expr())
		}
	}
	p.expect(')')
	return call
}

// normalize reads NORMALIZE(x [, form]).
func (p *parser) normalize(pos ast.Pos) ast.Expr {
	p.advance()
	p.expect('(')
	call := &ast.Call{Pos: pos, Name: []string{"normalize"}, Syntax: ast.NormalizeSyntax, Args: []ast.Expr{p.expr()}}
	if p.accept(',') {
		switch p.cur().kw {
		case kw.Nfc, kw.Nfd, kw.Nfkc, kw.Nfkd:
			form := &ast.Literal{Pos: p.here(), Kind: ast.LiteralString, Slot: pinned, Value: p.cur().kw.String()}
			p.advance()
			call.Args = append(call.Args, form)
		default:
			p.unexpected()
		}
	}
	p.expect(')')
	return call
}

// call reads the arguments and clauses of a function call, from its parenthesis on.
func (p *parser) call(c *ast.Call) ast.Expr {
	bare := p.bareCall
	p.bareCall = false
	p.expect('(')
	switch {
	case p.is(')'):
	case p.acceptOp('*'):
		c.Star = true
	default:
		if c.Distinct = p.acceptWord(kw.Distinct); !c.Distinct {
			p.acceptWord(kw.All)
		}
		p.arguments(c, true)
		if p.isWord(kw.Order) {
			c.OrderBy = p.orderBy()
		}
	}
	p.expect(')')
	if !bare {
		p.callClauses(c)
	}
	return c
}

// plainCall reads the arguments of a call that is nothing but them: no aggregate's clauses, no VARIADIC.
func (p *parser) plainCall(c *ast.Call) ast.Expr {
	p.bareCall = false
	p.expect('(')
	if !p.is(')') {
		p.arguments(c, false)
	}
	p.expect(')')
	return c
}

// arguments reads a call's arguments: positional, then named, the last one VARIADIC where that is allowed.
func (p *parser) arguments(c *ast.Call, variadic bool) {
	for first := true; first || p.accept(','); first = false {
		if c.Variadic {
			p.unexpected()
			return
		}
		if variadic && p.acceptWord(kw.Variadic) {
			if c.Distinct {
				p.unexpected()
				return
			}
			c.Variadic = true
		}
		name := ""
		if t := p.cur(); isTypeFuncName(t) && (p.peek(1).kind == tokColonEq || p.peek(1).kind == tokArrow) {
			name = p.colLabel()
			p.advance()
			if c.ArgNames == nil {
				c.ArgNames = make([]string, len(c.Args), len(c.Args)+1)
			}
		} else if c.ArgNames != nil {
			p.later(pgerror.New(pgerror.SyntaxError, "positional argument cannot follow named argument").At(int(p.posOf(t))))
		}
		c.Args = append(c.Args, p.expr())
		if c.ArgNames != nil {
			c.ArgNames = append(c.ArgNames, name)
		}
	}
}

// callClauses reads WITHIN GROUP, FILTER and OVER.
func (p *parser) callClauses(c *ast.Call) {
	if p.isWord(kw.Within) && p.peek(1).kw == kw.Group {
		pos := p.here()
		p.advance()
		p.advance()
		p.expect('(')
		c.Within = p.orderBy()
		p.expect(')')
		switch {
		case c.OrderBy != nil:
			p.failAt(pos, pgerror.SyntaxError, "cannot use multiple ORDER BY clauses with WITHIN GROUP")
		case c.Distinct:
			p.failAt(pos, pgerror.SyntaxError, "cannot use DISTINCT with WITHIN GROUP")
		case c.Variadic:
			p.failAt(pos, pgerror.SyntaxError, "cannot use VARIADIC with WITHIN GROUP")
		}
	}
	if p.isWord(kw.Filter) && p.peek(1).kind == '(' {
		p.advance()
		p.advance()
		p.expectWord(kw.Where)
		c.Filter = p.expr()
		p.expect(')')
	}
	if p.acceptWord(kw.Over) {
		if p.is('(') {
			c.Over = p.windowSpec()
			c.Over.Parens = true
		} else {
			c.Over = &ast.Window{Pos: p.posOf(p.cur()), Name: p.colID()}
		}
	}
}

// windowSpec reads ([name] [PARTITION BY …] [ORDER BY …] [frame]).
func (p *parser) windowSpec() *ast.Window {
	w := &ast.Window{Pos: p.posOf(p.cur())}
	p.expect('(')
	if t := p.cur(); isColID(t) && !windowWord(t.kw) {
		w.Name = p.colID()
	}
	if p.acceptWord(kw.Partition) {
		p.expectWord(kw.By)
		w.PartitionBy = p.exprList()
	}
	if p.isWord(kw.Order) {
		w.OrderBy = p.orderBy()
	}
	if windowWord(p.cur().kw) && !p.isWord(kw.Partition) {
		w.Frame = p.frame()
	}
	p.expect(')')
	return w
}

// windowWord reports whether a word in a window is a clause rather than a window's name.
func windowWord(word kw.Word) bool {
	return word == kw.Partition || word == kw.Rows || word == kw.Range || word == kw.Groups
}

// frame reads a frame clause.
func (p *parser) frame() *ast.Frame {
	f := &ast.Frame{Mode: ast.FrameMode(upper(p.cur().kw)), End: ast.FrameBound{Kind: ast.CurrentRow}}
	p.advance()
	pos := p.here()
	if f.Between = p.acceptWord(kw.Between); f.Between {
		pos = p.here()
		f.Start = p.frameBound()
		p.expectWord(kw.And)
		endPos := p.here()
		f.End = p.frameBound()
		p.checkFrame(f, pos, endPos)
	} else {
		f.Start = p.frameBound()
		p.checkFrame(f, pos, pos)
	}
	if !p.acceptWord(kw.Exclude) {
		return f
	}
	switch {
	case p.acceptWords(kw.Current, kw.Row):
		f.Exclude = ast.ExcludeCurrentRow
	case p.acceptWord(kw.Group):
		f.Exclude = ast.ExcludeGroup
	case p.acceptWord(kw.Ties):
		f.Exclude = ast.ExcludeTies
	default:
		p.expectWords(kw.No, kw.Others)
	}
	return f
}

// checkFrame refuses bounds between which there can be no row.
func (p *parser) checkFrame(f *ast.Frame, pos, endPos ast.Pos) {
	start, end := f.Start.Kind, f.End.Kind
	switch {
	case p.err != nil:
	case start == ast.UnboundedFollowing:
		p.failAt(pos, pgerror.WindowingError, "frame start cannot be UNBOUNDED FOLLOWING")
	case !f.Between && start == ast.OffsetFollowing:
		p.failAt(pos, pgerror.WindowingError, "frame starting from following row cannot end with current row")
	case end == ast.UnboundedPreceding:
		p.failAt(endPos, pgerror.WindowingError, "frame end cannot be UNBOUNDED PRECEDING")
	case start == ast.CurrentRow && end == ast.OffsetPreceding:
		p.failAt(endPos, pgerror.WindowingError, "frame starting from current row cannot have preceding rows")
	case start == ast.OffsetFollowing && end < ast.OffsetFollowing:
		p.failAt(endPos, pgerror.WindowingError, "frame starting from following row cannot have preceding rows")
	}
}

func (p *parser) frameBound() ast.FrameBound {
	b := ast.FrameBound{Kind: ast.OffsetPreceding}
	switch {
	case p.acceptWords(kw.Current, kw.Row):
		b.Kind = ast.CurrentRow
		return b
	case p.isWord(kw.Unbounded) && (p.peek(1).kw == kw.Preceding || p.peek(1).kw == kw.Following):
		p.advance()
		b.Kind = ast.UnboundedPreceding
	default:
		if b.Offset = p.expr(); p.err != nil {
			return b
		}
	}
	if p.acceptWord(kw.Preceding) {
		return b
	}
	p.expectWord(kw.Following)
	b.Kind = map[ast.BoundKind]ast.BoundKind{ast.OffsetPreceding: ast.OffsetFollowing, ast.UnboundedPreceding: ast.UnboundedFollowing}[b.Kind]
	return b
}
