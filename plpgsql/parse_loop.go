package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// loopVariable is what stands behind FOR.
type loopVariable struct {
	name    string
	offset  int
	targets *target // nil: it is no variable
	several bool
}

func (p *parser) loopVariable() loopVariable {
	t := p.cur()
	v, parts, used, tokens := p.variable()
	if tokens == 0 {
		p.syntaxError()
	}
	out := loopVariable{name: parts[0], offset: t.Start}
	if used == 0 {
		if len(parts) > 1 {
			p.unknownVariable(parts)
		}
		p.advance()
		if p.is(",") { // A list needs variables.
			p.pos--
			p.unknownVariable(parts)
		}
		return out
	}
	if p.f.vars[v].constant && isMark(p.peek(tokens), "in") { // It may be another variable of that name.
		p.pos += tokens
		return out
	}
	out.targets = p.targets()
	out.several = len(out.targets.list) > 1 || out.targets.list == nil
	return out
}

// needRows refuses a loop over rows whose variable cannot take them.
func (p *parser) needRows(v *loopVariable) {
	if v.targets == nil {
		p.failAt(v.offset, pgerror.SyntaxError, "loop variable of loop over rows must be a record variable or list of scalar variables")
	}
}

func (p *parser) forLoop(label string) stmt {
	at := p.here()
	p.names.loop = true
	p.advance()
	v := p.loopVariable()
	p.expect("in")
	if p.accept("execute") {
		p.needRows(&v)
		s := &forQueryStmt{place: at, label: label, into: v.targets, dynamic: true}
		var end string
		if s.query, end = p.expr("LOOP or USING", "loop", "using"); end == "using" {
			s.using = p.using("loop")
		}
		p.pos--
		s.body = p.loopBody(label)
		return s
	}
	if c, parts, used, tokens := p.variable(); used == len(parts) && used > 0 && p.f.vars[c].typ.OID == types.OIDRefcursor {
		if next := p.peek(tokens); isMark(next, "loop") || isSymbol(next, "(") {
			p.pos += tokens
			return p.forCursor(at, label, &v, c)
		}
	}
	reverseAt := p.cur().Start
	reverse := p.accept("reverse")
	text, start, mark := p.readUntil("LOOP", "SQL statement", "..", "loop")
	if mark == ".." {
		return p.forInteger(at, label, &v, reverse, text, start)
	}
	p.pos--
	if reverse {
		p.failAt(reverseAt, pgerror.SyntaxError, "cannot specify REVERSE in query FOR loop")
	}
	s := &forQueryStmt{place: at, label: label, into: v.targets}
	s.query = p.sqlText(text, start)
	p.needRows(&v)
	s.body = p.loopBody(label)
	return s
}

// forInteger reads the rest of FOR i IN from .. to.
func (p *parser) forInteger(at place, label string, v *loopVariable, reverse bool, text string, start int) stmt {
	s := &forIntStmt{place: at, label: label, reverse: reverse, from: p.newExpr(text, start)}
	var end string
	if s.to, end = p.expr("LOOP", "loop", "by"); end == "by" {
		s.by, _ = p.expr("LOOP", "loop")
	}
	p.pos--
	if v.several {
		p.failAt(v.offset, pgerror.SyntaxError, "integer FOR loop must have only one target variable")
	}
	s.variable = p.declare(&variable{name: v.name, line: at.line, typ: types.TInt4})
	s.body = p.loopBody(label)
	return s
}

// forCursor reads the rest of FOR r IN cursor.
func (p *parser) forCursor(at place, label string, v *loopVariable, cursor int) stmt {
	s := &forCursorStmt{place: at, label: label, cursor: cursor}
	if v.targets != nil && len(v.targets.list) > 1 {
		p.failAt(v.offset, pgerror.SyntaxError, "cursor FOR loop must have only one target variable")
	}
	if p.f.vars[cursor].cursor == nil {
		p.failAt(p.toks[p.pos-1].Start, pgerror.SyntaxError, "cursor FOR loop must use a bound cursor variable")
	}
	s.args = p.cursorArguments(cursor, "loop")
	p.pos--
	s.variable = p.declare(&variable{name: v.name, line: at.line, typ: types.TRecord, record: true})
	s.body = p.loopBody(label)
	return s
}

func (p *parser) forEach(label string) stmt {
	s := &forEachStmt{place: p.here(), label: label}
	p.names.loop = true
	p.advance()
	v := p.loopVariable()
	if v.targets == nil {
		p.failAt(v.offset, pgerror.SyntaxError, "loop variable of FOREACH must be a known variable or list of variables")
	}
	s.into = v.targets
	if p.accept("slice") {
		if p.cur().Kind != sql.TokenNumber {
			p.syntaxError()
		}
		for _, c := range p.advance().Value {
			s.slice = min(s.slice*10+int(c-'0'), 1<<20)
		}
	}
	p.expect("in", "array")
	s.array, _ = p.expr("LOOP", "loop")
	p.pos--
	s.body = p.loopBody(label)
	return s
}

// cursorVariable reads the name of a cursor variable.
func (p *parser) cursorVariable() int {
	t := p.cur()
	v, parts, used, tokens := p.variable()
	switch {
	case tokens == 0:
		p.syntaxError()
	case used == 0:
		p.unknownVariable(parts)
	case used < len(parts):
		p.failAt(t.Start, pgerror.DatatypeMismatch, "cursor variable must be a simple variable")
	case p.f.vars[v].typ.OID != types.OIDRefcursor:
		p.failAt(t.Start, pgerror.DatatypeMismatch, "variable \"%s\" must be of type cursor or refcursor", p.f.vars[v].name)
	}
	p.pos += tokens
	return v
}

// cursorArguments reads the arguments of a bound cursor, and the mark behind them.
func (p *parser) cursorArguments(v int, end string) []*expression {
	decl, text := p.f.vars[v].cursor, p.f.vars[v].name
	if len(decl.params) == 0 {
		if p.is("(") {
			p.failAt(p.cur().Start, pgerror.SyntaxError, "cursor \"%s\" has no arguments", text)
		}
		p.expect(end)
		return nil
	}
	if !p.is("(") {
		p.failAt(p.cur().Start, pgerror.SyntaxError, "cursor \"%s\" has arguments", text)
	}
	p.advance()
	args := make([]*expression, len(decl.params))
	for n := range decl.params {
		at := n
		if t := p.cur(); isName(t) && isMark(p.peek(1), ":=") {
			if at = indexOf(decl.names, t.Value); at < 0 {
				p.failAt(t.Start, pgerror.SyntaxError, "cursor \"%s\" has no argument named \"%s\"", text, t.Value)
			}
			p.pos += 2
		}
		if args[at] != nil {
			p.failAt(p.cur().Start, pgerror.SyntaxError, "value for parameter \"%s\" of cursor \"%s\" specified more than once", decl.names[at], text)
		}
		var mark string
		args[at], mark = p.expr(",\" or \")", ",", ")")
		last := n == len(decl.params)-1
		switch {
		case mark == ")" && !last:
			p.failAt(p.toks[p.pos-1].Start, pgerror.SyntaxError, "not enough arguments for cursor \"%s\"", text)
		case mark == "," && last:
			p.failAt(p.toks[p.pos-1].Start, pgerror.SyntaxError, "too many arguments for cursor \"%s\"", text)
		}
	}
	p.expect(end)
	return args
}

func indexOf(list []string, s string) int {
	for i := range list {
		if list[i] == s {
			return i
		}
	}
	return -1
}

func (p *parser) open() stmt {
	s := &openStmt{place: p.here()}
	p.advance()
	s.cursor = p.cursorVariable()
	if p.f.vars[s.cursor].cursor != nil {
		s.bound = true
		s.args = p.cursorArguments(s.cursor, ";")
		return s
	}
	switch {
	case p.accept("no"):
		p.expect("scroll")
		s.scroll = scrollNo
	case p.accept("scroll"):
		s.scroll = scrollYes
	}
	if !p.accept("for") {
		p.unexpected("syntax error, expected \"FOR\"")
	}
	if p.accept("execute") {
		s.dynamic = true
		var end string
		if s.query, end = p.expr("USING or ;", "using", ";"); end == "using" {
			s.using = p.using(";")
		}
		return s
	}
	text, start, _ := p.readUntil(";", "SQL statement", ";")
	s.query = p.sqlText(text, start)
	s.query.cursor = true
	return s
}

func (p *parser) fetch() stmt {
	s := &fetchStmt{place: p.here(), move: p.is("move"), direction: "NEXT", n: 1}
	start := p.cur().Start
	p.advance()
	p.direction(s)
	s.cursor = p.cursorVariable()
	if s.move {
		p.expect(";")
		return s
	}
	p.expect("into")
	s.into = p.targets()
	p.expect(";")
	if s.many {
		p.failAt(start, pgerror.FeatureNotSupported, "FETCH statement cannot return multiple rows")
	}
	return s
}

// direction reads the direction of FETCH and MOVE, with FROM or IN behind it.
func (p *parser) direction(s *fetchStmt) {
	t := p.cur()
	switch {
	case p.accept("next"), p.is("from"), p.is("in"):
	case p.accept("prior"):
		s.direction = "PRIOR"
	case p.accept("first"):
		s.direction, s.n = "ABSOLUTE", 1
	case p.accept("last"):
		s.direction, s.n = "ABSOLUTE", -1
	case p.is("absolute"), p.is("relative"):
		s.direction = strings.ToUpper(p.advance().Value)
		s.count, _ = p.expr("FROM or IN", "from", "in")
		return
	case p.accept("all"):
		s.all, s.many, s.direction = true, true, "FORWARD"
	case p.is("forward"), p.is("backward"):
		s.direction = strings.ToUpper(p.advance().Value)
		switch {
		case p.is("from"), p.is("in"):
		case p.accept("all"):
			s.all, s.many = true, true
		default:
			s.many = true
			s.count, _ = p.expr("FROM or IN", "from", "in")
			return
		}
	default:
		if _, parts, used, tokens := p.variable(); used > 0 && used == len(parts) {
			if next := p.peek(tokens); !isMark(next, "from") && !isMark(next, "in") {
				return // The name of a cursor.
			}
		}
		if isName(t) && !isMark(p.peek(1), "from") && !isMark(p.peek(1), "in") {
			return // cursorVariable says what is wrong.
		}
		s.direction, s.many = "FORWARD", true
		s.count, _ = p.expr("FROM or IN", "from", "in")
		return
	}
	if !p.accept("from") && !p.accept("in") {
		p.unexpected("expected FROM or IN")
	}
}
