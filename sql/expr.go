package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// The binding powers of PostgreSQL's operators (gram.y's precedence table), weakest first. A type cast
// binds tightest; subscripts and field selection belong to primaries.
const (
	precOr = iota + 1
	precAnd
	precNot
	precIs      // IS, ISNULL, NOTNULL; not associative
	precCompare // < > = <= >= <>; not associative
	precMatch   // BETWEEN, IN, LIKE, ILIKE, SIMILAR; not associative
	precEscape
	precOp // every other operator
	precAdd
	precMul
	precPower
	precAt
	precCollate
	precUnary
	precCast
)

// expr reads a whole expression.
func (p *parser) expr() ast.Expr {
	if p.depth == 0 {
		p.ops = 0
	}
	return p.operators(precOr, false)
}

// exprList reads a comma-separated list of expressions.
func (p *parser) exprList() []ast.Expr {
	list := []ast.Expr{p.expr()}
	for p.accept(',') {
		list = append(list, p.expr())
	}
	return list
}

// operators reads an expression whose operators bind at least as tightly as floor. With simple it reads
// only what the bound of a BETWEEN may hold (gram.y's b_expr): no AND, IN, LIKE, IS NULL and the like.
func (p *parser) operators(floor int, simple bool) ast.Expr {
	p.enter()
	defer p.leave()
	if simple && p.isWord(kw.Default) {
		p.unexpected()
	}
	left := p.prefix(simple)
	closedBy := 0 // the non-associative level of the operator just read, if its right side is open
	for p.err == nil {
		prec := p.infixPrec(simple)
		if prec < floor || prec == 0 {
			break
		}
		if prec == closedBy {
			p.unexpected()
			break
		}
		if p.labelHere() || p.depth == p.similarDepth && p.isWord(kw.Similar) && p.peek(1).kw != kw.To {
			break
		}
		if p.ops++; p.ops > maxOperators {
			p.tooDeep()
			break
		}
		var open bool
		left, open = p.infix(left, prec, simple)
		closedBy = 0
		if open && (prec == precIs || prec == precCompare || prec == precMatch) {
			closedBy = prec
		}
	}
	return left
}

// infixPrec is the binding power of the current token after an operand, 0 if it is no operator.
func (p *parser) infixPrec(simple bool) int {
	switch t := p.cur(); t.kind {
	case tokCast:
		return precCast
	case tokOp:
		return operatorPrec(t, p.text)
	case tokIdent:
		return p.wordPrec(t.kw, simple)
	}
	return 0
}

// labelHere reports whether a word operator at the current token is the label of a select item instead:
// the item ends behind it, as in SELECT a or FROM t, and no operator waits for its right side.
func (p *parser) labelHere() bool {
	if t := p.cur(); p.depth != p.itemDepth || t.kind != tokIdent || !t.kw.BareLabel() {
		return false
	}
	next := p.peek(1)
	return next.kind == ',' || next.kind == ')' || next.kind == tokEOF || endsSelectList(next.kw)
}

func operatorPrec(t *token, text string) int {
	switch t.sub {
	case '<', '>', '=':
		return precCompare
	case '+', '-':
		return precAdd
	case '*', '/', '%':
		return precMul
	case '^':
		return precPower
	case 0:
		switch text[t.start:t.end] {
		case "<=", ">=", "<>", "!=":
			return precCompare
		}
	}
	return precOp
}

// wordPrec is the binding power of a word operator.
func (p *parser) wordPrec(word kw.Word, simple bool) int {
	switch word {
	case kw.Operator:
		if p.peek(1).kind == '(' {
			return precOp
		}
		return 0
	case kw.Is:
		if simple && p.peek(1).kw != kw.Distinct && (p.peek(1).kw != kw.Not || p.peek(2).kw != kw.Distinct) {
			return 0
		}
		return precIs
	}
	if simple {
		return 0
	}
	switch word {
	case kw.Or:
		return precOr
	case kw.And:
		return precAnd
	case kw.Isnull, kw.Notnull:
		return precIs
	case kw.Between, kw.In, kw.Like, kw.Ilike, kw.Similar:
		return precMatch
	case kw.Not:
		switch p.peek(1).kw {
		case kw.Between, kw.In, kw.Like, kw.Ilike, kw.Similar:
			return precMatch
		}
	case kw.At:
		// Behind the right side of an operator AT binds stronger than the label that it could begin.
		if p.peek(1).kw == kw.Time || p.depth != p.itemDepth {
			return precAt
		}
	case kw.Collate:
		return precCollate
	case kw.Overlaps:
		return precOp
	}
	return 0
}

// infix reads an operator and what follows it. open reports whether its right side is an expression, so
// that an operator of the same non-associative level may not follow.
func (p *parser) infix(left ast.Expr, prec int, simple bool) (result ast.Expr, open bool) {
	t := p.cur()
	pos := p.posOf(t)
	if t.kind == tokCast {
		p.advance()
		return &ast.Cast{Pos: pos, X: left, Type: p.typeName()}, false
	}
	if t.kind == tokOp || t.kw == kw.Operator {
		op, qualified := p.operatorName()
		if !simple && quantifier(p.cur().kw) {
			return p.quantified(left, op, qualified, pos), false
		}
		return &ast.Binary{Pos: pos, Op: op, Qualified: qualified, L: left, R: p.operators(prec+1, simple)}, true
	}
	p.advance()
	switch t.kw {
	case kw.Or:
		return &ast.Binary{Pos: pos, Op: "OR", L: left, R: p.operators(prec+1, false)}, true
	case kw.And:
		return &ast.Binary{Pos: pos, Op: "AND", L: left, R: p.operators(prec+1, false)}, true
	case kw.Is:
		return p.isTest(left, pos, simple)
	case kw.Isnull:
		return &ast.IsTest{Pos: pos, X: left, What: "NULL"}, false
	case kw.Notnull:
		return &ast.IsTest{Pos: pos, X: left, What: "NULL", Not: true}, false
	case kw.At:
		p.expectWords(kw.Time, kw.Zone)
		return &ast.AtTimeZone{Pos: pos, X: left, Zone: p.operators(prec+1, false)}, true
	case kw.Collate:
		return &ast.Collate{Pos: pos, X: left, Name: p.path()}, false
	case kw.Overlaps:
		return p.overlaps(left, pos), false
	}
	return p.match(left, pos, t.kw)
}

// operatorName reads an operator symbol or OPERATOR(schema.symbol), which is qualified if the schema is pg_catalog.
func (p *parser) operatorName() (op string, qualified bool) {
	if p.acceptWord(kw.Operator) {
		p.expect('(')
		schema := ""
		for p.is(tokIdent) || p.is(tokQuoted) {
			schema += ast.QuoteIdent(p.colID()) + "."
			p.expect('.')
		}
		op := p.symbol()
		p.expect(')')
		if schema == "" || schema == "pg_catalog." {
			return op, schema != ""
		}
		return "OPERATOR(" + schema + op + ")", false
	}
	return p.symbol(), false
}

func (p *parser) symbol() string {
	t := p.cur()
	if t.kind != tokOp {
		p.unexpected()
		return ""
	}
	p.advance()
	if op := p.text[t.start:t.end]; op != "!=" {
		return op
	}
	return "<>"
}

func quantifier(word kw.Word) bool { return word == kw.Any || word == kw.All || word == kw.Some }

// quantified reads ANY|ALL|SOME (query or array) behind an operator.
func (p *parser) quantified(left ast.Expr, op string, qualified bool, pos ast.Pos) ast.Expr {
	q := &ast.Quantified{Pos: pos, X: left, Op: op, Qualified: qualified, All: p.isWord(kw.All)}
	p.advance()
	if p.startsQuery(0) {
		q.Query = p.subquery()
		return q
	}
	p.expect('(')
	q.Array = p.expr()
	p.expect(')')
	return q
}

// isTest reads what follows IS.
func (p *parser) isTest(left ast.Expr, pos ast.Pos, simple bool) (ast.Expr, bool) {
	not := p.acceptWord(kw.Not)
	switch p.cur().kw {
	case kw.Distinct:
		p.advance()
		p.expectWord(kw.From)
		return &ast.IsDistinct{Pos: pos, L: left, Not: not, R: p.operators(precIs+1, simple)}, true
	case kw.Null, kw.True, kw.False, kw.Unknown:
		what := [...]string{"NULL", "TRUE", "FALSE", "UNKNOWN"}
		i := 0
		for j, w := range [...]kw.Word{kw.Null, kw.True, kw.False, kw.Unknown} {
			if p.isWord(w) {
				i = j
			}
		}
		p.advance()
		return &ast.IsTest{Pos: pos, X: left, What: what[i], Not: not}, false
	case kw.Document:
		p.advance()
		p.notYet(pos, "IS DOCUMENT", "percodb has no XML type.")
		return &ast.IsTest{Pos: pos, X: left, What: "DOCUMENT", Not: not}, false
	case kw.Normalized, kw.Nfc, kw.Nfd, kw.Nfkc, kw.Nfkd:
		what := ""
		if !p.isWord(kw.Normalized) {
			what = upper(p.cur().kw) + " "
			p.advance()
		}
		p.expectWord(kw.Normalized)
		return &ast.IsTest{Pos: pos, X: left, What: what + "NORMALIZED", Not: not}, false
	default:
		p.unexpected()
	}
	return left, false
}

// match reads [NOT] BETWEEN, IN, LIKE, ILIKE and SIMILAR TO behind their first word.
func (p *parser) match(left ast.Expr, pos ast.Pos, word kw.Word) (ast.Expr, bool) {
	not := word == kw.Not
	if not {
		word = p.cur().kw
		p.advance()
	}
	switch word {
	case kw.Between:
		return p.between(left, pos, not), true
	case kw.In:
		return p.in(left, pos, not), false
	}
	like := &ast.Like{Pos: pos, Not: not, X: left}
	operator := ""
	switch word {
	case kw.Like:
		like.Op, operator = "LIKE", "~~"
	case kw.Ilike:
		like.Op, operator = "ILIKE", "~~*"
	default:
		like.Op = "SIMILAR TO"
		p.expectWord(kw.To)
	}
	if quantifier(p.cur().kw) && operator != "" {
		if not {
			operator = "!" + operator
		}
		return p.quantified(left, operator, false, pos), false
	}
	like.Pattern = p.operators(precMatch+1, false)
	if p.acceptWord(kw.Escape) {
		like.Escape = p.operators(precMatch+1, false)
	}
	return like, true
}

func (p *parser) between(left ast.Expr, pos ast.Pos, not bool) ast.Expr {
	b := &ast.Between{Pos: pos, X: left, Not: not}
	if b.Symmetric = p.acceptWord(kw.Symmetric); !b.Symmetric {
		p.acceptWord(kw.Asymmetric)
	}
	b.Low = p.operators(precIs, true)
	p.expectWord(kw.And)
	b.High = p.operators(precMatch+1, false)
	return b
}

func (p *parser) in(left ast.Expr, pos ast.Pos, not bool) ast.Expr {
	if p.is('(') && p.startsQuery(0) {
		in := &ast.InSubquery{Pos: pos, X: left, Not: not}
		in.Query = p.subquery()
		return in
	}
	p.expect('(')
	list := make([]ast.Expr, 0, p.commas())
	for {
		list = append(list, p.expr())
		if !p.accept(',') {
			break
		}
	}
	p.expect(')')
	return &ast.InList{Pos: pos, X: left, List: list, Not: not}
}

// overlaps reads the right row of OVERLAPS; PostgreSQL makes it a call.
func (p *parser) overlaps(left ast.Expr, pos ast.Pos) ast.Expr {
	right := p.primary()
	l, okL := left.(*ast.Row)
	r, okR := right.(*ast.Row)
	if !okL || !okR || len(l.Elems) != 2 || len(r.Elems) != 2 {
		p.failAt(pos, pgerror.SyntaxError, "wrong number of parameters on a side of OVERLAPS expression")
		return left
	}
	return &ast.Call{Pos: pos, Name: []string{"overlaps"}, Syntax: ast.OverlapsSyntax, Args: append(append([]ast.Expr(nil), l.Elems...), r.Elems...)}
}

// prefix reads prefix operators and their operand, or a primary.
func (p *parser) prefix(simple bool) ast.Expr {
	t := p.cur()
	switch {
	case t.kind == tokOp || t.kw == kw.Operator && p.peek(1).kind == '(':
		pos, prec := p.posOf(t), precOp+1
		if t.kind == tokOp && (t.sub == '-' || t.sub == '+') {
			prec = precUnary
		} else if prec := operatorPrec(t, p.text); t.kind == tokOp && prec != precOp {
			p.unexpected()
			return nil
		}
		op, qualified := p.operatorName()
		return &ast.Unary{Pos: pos, Op: op, Qualified: qualified, X: p.operators(prec, simple)}
	case t.kw == kw.Not && !simple:
		pos := p.posOf(t)
		p.advance()
		return &ast.Unary{Pos: pos, Op: "NOT", X: p.operators(precNot, false)}
	}
	return p.primary()
}

// primary reads an operand: a constant, name, call, parenthesised expression or special form.
func (p *parser) primary() ast.Expr {
	t := p.cur()
	switch t.kind {
	case tokLiteral:
		return p.constant(t)
	case tokParam:
		return p.indirection(p.param(t))
	case '(':
		return p.parenthesised()
	case tokQuoted:
		return p.nameOrCall()
	case tokIdent:
		switch t.kw.Category() {
		case kw.NotKeyword:
			return p.nameOrCall()
		case kw.Reserved:
			return p.reservedPrimary(t)
		}
		return p.keywordPrimary(t)
	}
	p.unexpected()
	return nil
}

// constant reads a literal.
func (p *parser) constant(t *token) ast.Expr {
	lit := &ast.Literal{Pos: p.posOf(t), Kind: t.lit, Slot: int(t.slot), Value: p.literalValue(t)}
	p.advance()
	if t.sub&styleMask == styleNational {
		return &ast.Cast{Pos: lit.Pos, X: lit, Type: ast.TypeName{Pos: lit.Pos, Name: []string{"bpchar"}}}
	}
	return lit
}

func (p *parser) param(t *token) ast.Expr {
	raw := p.text[t.start:t.end]
	n := paramNumber(raw)
	if n == 0 {
		p.failAt(p.posOf(t), pgerror.UndefinedParameter, "there is no parameter %s", raw)
	}
	p.advance()
	return &ast.Param{Pos: p.posOf(t), Number: n}
}

// parenthesised reads (query), (expression) or a row.
func (p *parser) parenthesised() ast.Expr {
	pos := p.here()
	if p.startsQuery(0) {
		sub := &ast.Subquery{Pos: pos}
		sub.Query = p.subquery()
		return p.indirection(sub)
	}
	p.advance()
	x := p.expr()
	if p.is(',') {
		row := &ast.Row{Pos: pos, Elems: []ast.Expr{x}}
		for p.accept(',') {
			row.Elems = append(row.Elems, p.expr())
		}
		p.expect(')')
		return row // PostgreSQL has no indirection on an implicit row
	}
	p.expect(')')
	whole := p.indirection(x)
	markParens(whole, x)
	return whole
}

// markParens notes in the first step into x, which led to whole, that x stood in parentheses.
func markParens(whole, x ast.Expr) {
	for whole != x {
		switch step := whole.(type) {
		case *ast.Subscript:
			if step.X == x {
				step.Parens = true
			}
			whole = step.X
		case *ast.Field:
			if step.X == x {
				step.Parens = true
			}
			whole = step.X
		default:
			return
		}
	}
}

// indirection reads subscripts and field selections behind an operand that may have them.
func (p *parser) indirection(x ast.Expr) ast.Expr {
	for p.err == nil {
		pos := p.here()
		switch {
		case p.is('['):
			x = p.subscript(x, pos)
		case p.accept('.'):
			if p.acceptOp('*') {
				return &ast.Field{Pos: pos, X: x, Name: "*"}
			}
			x = &ast.Field{Pos: pos, X: x, Name: p.colLabel()}
		default:
			return x
		}
	}
	return x
}

// subscript reads [i] or [low:high], where either bound of a slice may be missing.
func (p *parser) subscript(x ast.Expr, pos ast.Pos) ast.Expr {
	p.advance()
	sub := &ast.Subscript{Pos: pos, X: x}
	if !p.is(':') {
		sub.Index = p.expr()
	}
	if p.accept(':') {
		sub.Slice, sub.Low, sub.Index = true, sub.Index, nil
		if !p.is(']') {
			sub.High = p.expr()
		}
	}
	p.expect(']')
	return sub
}

// nameOrCall reads a column reference, a call, or a literal with a type before it.
func (p *parser) nameOrCall() ast.Expr {
	first := p.cur()
	pos := p.posOf(first)
	switch next := p.peek(1); next.kind {
	case '(':
		if !isTypeFuncName(first) {
			break
		}
		if next.aux >= 0 && isString(&p.toks[next.aux+1]) {
			return p.typedLiteral()
		}
		p.advance()
		return p.call(&ast.Call{Pos: pos, Name: p.single(p.name(first))})
	case '.':
		return p.qualifiedName(pos)
	case tokLiteral:
		if isString(next) && isTypeFuncName(first) {
			return p.typedLiteral()
		}
	}
	p.advance()
	if !isColID(first) { // a function's name at best
		p.unexpected()
		return nil
	}
	return p.indirection(&ast.ColumnRef{Pos: pos, Parts: p.single(p.name(first))})
}

// qualifiedName reads a name with dots: a column, all columns of a table, or a function's.
func (p *parser) qualifiedName(pos ast.Pos) ast.Expr {
	from := p.beginName()
	p.parts = append(p.parts, p.colID())
	for p.is('.') {
		p.advance()
		if p.acceptOp('*') {
			return &ast.Star{Pos: pos, Table: p.parts[from:len(p.parts):len(p.parts)]}
		}
		p.parts = append(p.parts, p.colLabel())
	}
	parts := p.parts[from:len(p.parts):len(p.parts)]
	if p.is('(') {
		return p.call(&ast.Call{Pos: pos, Name: parts})
	}
	if t := p.cur(); isString(t) {
		typ := ast.TypeName{Pos: pos, Name: parts}
		return &ast.Cast{Pos: pos, X: p.constant(t), Type: typ}
	}
	if len(parts) > 4 {
		p.later(pgerror.New(pgerror.SyntaxError, "improper qualified name (too many dotted names): %s", dotted(parts)).At(int(pos)))
	}
	return p.indirection(&ast.ColumnRef{Pos: pos, Parts: parts})
}

func dotted(parts []string) string {
	s := ""
	for i, part := range parts {
		if i > 0 {
			s += "."
		}
		s += part
	}
	return s
}

// typedLiteral reads type 'text'.
func (p *parser) typedLiteral() ast.Expr {
	pos := p.here()
	typ := p.constType()
	t := p.cur()
	if !isString(t) || p.err != nil {
		p.unexpected()
		return nil
	}
	if typ.Keyword && len(typ.Mods) == 1 && p.toks[p.pos-1].kind != ')' && !strings.HasPrefix(typ.Name[0], "time") {
		typ.Mods, typ.Keyword = nil, false // char 'abc' and bit '101' are not char(1) and bit(1).
	}
	lit := p.constant(t)
	if len(typ.Name) == 1 && typ.Name[0] == "interval" && typ.Mods == nil {
		typ.Mods = p.intervalMods()
	}
	return &ast.Cast{Pos: pos, X: lit, Type: typ}
}
