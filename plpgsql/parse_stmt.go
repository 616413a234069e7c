package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// statements reads statements up to a word that ends them.
func (p *parser) statements() []stmt {
	var list []stmt
	for {
		switch t := p.cur(); {
		case t.Kind == sql.TokenEnd, isMark(t, "end"), isMark(t, "exception"), isMark(t, "else"), isMark(t, "elsif"), isMark(t, "elseif"), isMark(t, "when"):
			return list
		}
		list = append(list, p.statement())
	}
}

// statement reads one statement.
func (p *parser) statement() stmt {
	p.enter()
	defer p.leave()
	t := p.cur()
	if isSymbol(t, "<<") || isMark(t, "declare") || isMark(t, "begin") || isMark(t, "loop") || isMark(t, "while") || isMark(t, "for") || isMark(t, "foreach") {
		return p.labelled()
	}
	if isName(t) || t.Kind == sql.TokenParam {
		if s := p.assignment(); s != nil {
			return s
		}
	}
	if t.Kind != sql.TokenName && t.Kind != sql.TokenQuoted {
		p.syntaxError()
	}
	if t.Kind == sql.TokenName {
		if s := p.keyword(t.Value); s != nil {
			return s
		}
		if reserved[t.Value] {
			p.syntaxError()
		}
	}
	return p.sqlStatement()
}

// keyword reads a statement that begins with a word of the language; nil: it does not.
func (p *parser) keyword(word string) stmt {
	switch word {
	case "if":
		return p.ifStatement()
	case "case":
		return p.caseStatement()
	case "exit", "continue":
		return p.exit()
	case "return":
		return p.returnStatement()
	case "raise":
		return p.raise()
	case "assert":
		s := &assertStmt{place: p.here()}
		p.advance()
		var end string
		if s.cond, end = p.expr(", or ;", ",", ";"); end == "," {
			s.message, _ = p.expr(";", ";")
		}
		return s
	case "execute":
		return p.execute()
	case "perform":
		return p.perform()
	case "call", "do":
		s := &callStmt{place: p.here(), do: word == "do"}
		text, start, _ := p.readUntil(";", "SQL statement", ";")
		s.query = p.sqlText(text, start)
		return s
	case "get":
		return p.diagnostics()
	case "open":
		return p.open()
	case "fetch", "move":
		return p.fetch()
	case "close":
		s := &closeStmt{place: p.here()}
		p.advance()
		s.cursor = p.cursorVariable()
		p.expect(";")
		return s
	case "null":
		s := &nullStmt{place: p.here()}
		p.advance()
		p.expect(";")
		return s
	case "commit", "rollback":
		s := &endTxnStmt{place: p.here(), commit: word == "commit"}
		p.advance()
		if p.accept("and") {
			s.chain = !p.accept("no")
			p.expect("chain")
		}
		p.expect(";")
		return s
	}
	return nil
}

// labelled reads a block or a loop, with its label.
func (p *parser) labelled() stmt {
	label := p.label()
	switch p.cur().Value {
	case "loop":
		s := &loopStmt{place: p.here(), label: label}
		s.body = p.loopBody(label)
		return s
	case "while":
		s := &whileStmt{place: p.here(), label: label}
		p.names.loop = true
		p.advance()
		s.cond, _ = p.expr("LOOP", "loop")
		p.pos--
		s.body = p.loopBody(label)
		return s
	case "for":
		return p.forLoop(label)
	case "foreach":
		return p.forEach(label)
	}
	if !p.is("declare") && !p.is("begin") {
		p.syntaxError()
	}
	s := p.block()
	p.expect(";")
	return s
}

// loopBody reads LOOP … END LOOP label;.
func (p *parser) loopBody(label string) []stmt {
	level := p.names
	for !level.isLabel() {
		level = level.outer
	}
	level.loop = true
	p.expect("loop")
	body := p.statements()
	p.expect("end", "loop")
	p.endLabel(label)
	p.expect(";")
	return body
}

// target reads a variable or a field of one.
func (p *parser) target() *target {
	v, parts, used, tokens := p.variable()
	if tokens == 0 {
		p.syntaxError()
	}
	t := &target{variable: v, offset: p.cur().Start}
	switch {
	case used == 0, used < len(parts)-1, used < len(parts) && !p.f.vars[v].record:
		p.unknownVariable(parts)
	case used < len(parts):
		t.field = parts[used]
	}
	if p.f.vars[v].constant {
		p.failAt(t.offset, "22005", "variable \"%s\" is declared CONSTANT", p.f.vars[v].name)
	}
	p.pos += tokens
	return t
}

// whole reports whether a target is a row variable as a whole.
func (p *parser) whole(t *target) bool { return t.field == "" && p.isRecord(t.variable) }

// targets reads what INTO names: a row variable, or scalars.
func (p *parser) targets() *target {
	first := p.target()
	if p.whole(first) {
		if p.is(",") {
			p.failAt(p.cur().Start, pgerror.SyntaxError, "record variable cannot be part of multiple-item INTO list")
		}
		return first
	}
	list := &target{list: []*target{first}, offset: first.offset}
	for p.accept(",") {
		at := p.cur()
		t := p.target()
		if p.whole(t) {
			p.failAt(at.Start, pgerror.SyntaxError, "\"%s\" is not a scalar variable", p.text[at.Start:at.End])
		}
		list.list = append(list.list, t)
	}
	return list
}

func (p *parser) ifStatement() stmt {
	s := &ifStmt{place: p.here()}
	for first := true; first || p.is("elsif") || p.is("elseif"); first = false {
		a := arm{line: p.here().line}
		p.advance()
		a.cond, _ = p.expr("THEN", "then")
		a.body = p.statements()
		s.arms = append(s.arms, a)
	}
	if p.accept("else") {
		s.els = p.statements()
	}
	p.expect("end", "if", ";")
	return s
}

func (p *parser) caseStatement() stmt {
	s := &caseStmt{place: p.here(), value: -1}
	p.advance()
	lead := ""
	if !p.is("when") {
		s.operand, _ = p.expr("WHEN", "when")
		p.pos--
		name := "__Case__Variable_" + itoa(len(p.f.vars)) + "__"
		s.value = p.declare(&variable{name: name, typ: types.TInt4})
		lead = "\"" + name + "\" IN ("
	}
	if !p.is("when") {
		p.syntaxError()
	}
	for p.is("when") {
		a := arm{line: p.here().line}
		p.advance()
		text, start, _ := p.readUntil("THEN", "expression", "then")
		a.cond = p.caseCondition(lead, text, start)
		a.body = p.statements()
		s.arms = append(s.arms, a)
	}
	if p.accept("else") {
		s.hasElse = true
		s.els = p.statements()
	}
	p.expect("end", "case", ";")
	return s
}

// caseCondition makes the condition of WHEN values.
func (p *parser) caseCondition(lead, text string, start int) *expression {
	if lead == "" {
		return p.newExpr(text, start)
	}
	p.newExpr(text, start) // for errors at their place
	e := &expression{text: lead + text + ")", kind: valueExpr}
	p.parseQuery(e, "SELECT ", e.text, start)
	return e
}

func (p *parser) exit() stmt {
	s := &exitStmt{place: p.here(), exit: p.is("exit")}
	at := p.cur().Start
	p.advance()
	if t := p.cur(); isName(t) && !isMark(t, ";") {
		s.label = t.Value
		level := p.names.label(s.label)
		if level == nil {
			p.failAt(t.Start, pgerror.SyntaxError, "there is no label \"%s\" attached to any block or loop enclosing this statement", s.label)
		}
		if !s.exit && !level.loop {
			p.failAt(t.Start, pgerror.SyntaxError, "block label \"%s\" cannot be used in CONTINUE", s.label)
		}
		p.advance()
	} else if !p.names.inLoop() {
		message := "CONTINUE cannot be used outside a loop"
		if s.exit {
			message = "EXIT cannot be used outside a loop, unless it has a label"
		}
		p.failAt(at, pgerror.SyntaxError, "%s", message)
	}
	if p.accept("when") {
		s.cond, _ = p.expr(";", ";")
		return s
	}
	p.expect(";")
	return s
}

func (p *parser) returnStatement() stmt {
	at := p.here()
	start := p.cur().Start
	sig := p.f.Signature
	p.advance()
	switch {
	case p.is("next"):
		return p.returnNext(at, start)
	case p.is("query"):
		return p.returnQuery(at, start)
	}
	s := &returnStmt{place: at, variable: -1}
	refuse := ""
	switch {
	case sig.Set:
		if !p.is(";") {
			e := pgerror.New(pgerror.DatatypeMismatch, "RETURN cannot have a parameter in function returning set").
				WithHint("Use RETURN NEXT or RETURN QUERY.")
			e.InternalPosition, e.InternalQuery = sql.PositionIn(p.text, p.cur().Start), p.text
			p.bail(e)
		}
	case sig.Proc && sig.Returns.OID == types.OIDVoid:
		refuse = "RETURN cannot have a parameter in a procedure"
	case sig.Returns.OID == types.OIDVoid:
		refuse = "RETURN cannot have a parameter in function returning void"
	case len(p.f.outs) > 0:
		refuse = "RETURN cannot have a parameter in function with OUT parameters"
	default:
		s.value, _ = p.expr(";", ";")
		return s
	}
	if !p.is(";") {
		p.failAt(p.cur().Start, pgerror.DatatypeMismatch, "%s", refuse)
	}
	p.advance()
	return s
}

func (p *parser) returnNext(at place, start int) stmt {
	p.advance()
	s := &returnNextStmt{place: at, variable: -1}
	if !p.f.Signature.Set {
		p.failAt(start, pgerror.DatatypeMismatch, "cannot use RETURN NEXT in a non-SETOF function")
	}
	if len(p.f.outs) > 0 {
		if !p.is(";") {
			p.failAt(p.cur().Start, pgerror.DatatypeMismatch, "RETURN NEXT cannot have a parameter in function with OUT parameters")
		}
		p.advance()
		return s
	}
	s.value, _ = p.expr(";", ";")
	return s
}

func (p *parser) returnQuery(at place, start int) stmt {
	p.advance()
	s := &returnQueryStmt{place: at}
	if !p.f.Signature.Set {
		p.failAt(start, pgerror.DatatypeMismatch, "cannot use RETURN QUERY in a non-SETOF function")
	}
	if p.accept("execute") {
		s.dynamic = true
		var end string
		if s.query, end = p.expr("; or USING", ";", "using"); end == "using" {
			s.using = p.using(";")
		}
		return s
	}
	text, from, _ := p.readUntil(";", "SQL statement", ";")
	s.query = p.sqlText(text, from)
	return s
}

// using reads expressions up to a mark, which is passed.
func (p *parser) using(end string) []*expression {
	var list []*expression
	for {
		e, mark := p.expr(", or "+strings.ToUpper(end), ",", end)
		list = append(list, e)
		if mark == end {
			return list
		}
	}
}

func (p *parser) perform() stmt {
	s := &performStmt{place: p.here()}
	p.advance()
	text, start, _ := p.readUntil(";", "expression", ";")
	s.query = &expression{text: "SELECT " + text, kind: statementExpr}
	p.parseQuery(s.query, "SELECT ", text, start)
	s.query.shift = 0 // Errors show the SELECT.
	return s
}

// execute reads EXECUTE text [INTO …] [USING …].
func (p *parser) execute() stmt {
	s := &executeStmt{place: p.here()}
	p.advance()
	var end string
	s.query, end = p.expr("INTO or USING or ;", "into", "using", ";")
	for end != ";" {
		if end == "into" {
			if s.into != nil {
				p.pos--
				p.syntaxError()
			}
			s.strict = p.accept("strict")
			s.into = p.targets()
			if end = p.cur().Value; end != "using" && end != ";" {
				p.syntaxError()
			}
			p.advance()
			continue
		}
		if s.using != nil {
			p.pos--
			p.syntaxError()
		}
		for end = ","; end == ","; {
			var e *expression
			e, end = p.expr(", or ; or INTO", ",", ";", "into")
			s.using = append(s.using, e)
		}
	}
	return s
}

// sqlStatement reads a statement of SQL, and its INTO.
func (p *parser) sqlStatement() stmt {
	s := &sqlStmt{place: p.here()}
	first := p.cur()
	start, text := first.Start, ""
	previous := first
	for p.advance(); ; p.advance() {
		t := p.cur()
		if t.Kind == sql.TokenEnd {
			p.unexpected("unexpected end of function definition")
		}
		if isSymbol(t, ";") {
			break
		}
		if isMark(t, "into") && !isMark(previous, "insert") && !isMark(previous, "merge") && !isMark(first, "import") {
			if s.into != nil {
				p.unexpected("INTO specified more than once")
			}
			p.advance()
			s.strict = p.accept("strict")
			s.into = p.targets()
			end := p.toks[p.pos-1].End
			text = p.text[start:t.Start] + strings.Repeat(" ", end-t.Start) // Positions stay.
			start = end
			p.pos--
			t = &sql.Token{}
		}
		previous = t
	}
	text = strings.TrimRight(text+p.text[start:p.cur().Start], " \t\n\r\f\v")
	p.advance()
	s.query = p.sqlText(text, first.Start)
	return s
}
