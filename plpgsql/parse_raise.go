package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
)

// raiseLevels are the words for levels.
var raiseLevels = map[string]string{
	"exception": "ERROR", "warning": "WARNING", "notice": "NOTICE", "info": "INFO", "log": "LOG", "debug": "DEBUG",
}

// raise reads RAISE in all its forms.
func (p *parser) raise() stmt {
	s := &raiseStmt{place: p.here(), level: "ERROR"}
	p.advance()
	if p.accept(";") {
		s.again = true
		return s
	}
	if level := raiseLevels[p.cur().Value]; level != "" && p.cur().Kind == sql.TokenName {
		s.level = level
		p.advance()
	}
	switch t := p.cur(); {
	case t.Kind == sql.TokenEnd:
		p.unexpected("unexpected end of function definition")
	case t.Kind == sql.TokenString:
		s.hasText, s.message = true, t.Value
		p.advance()
		end := p.cur().Value
		if end != "," && end != ";" && end != "using" {
			p.syntaxError()
		}
		for p.advance(); end == ","; {
			var e *expression
			e, end = p.expr(", or ; or USING", ",", ";", "using")
			s.params = append(s.params, e)
		}
		p.pos--
	case p.accept("sqlstate"):
		s.cond = p.state()
	case p.is("using"):
	default:
		if !isName(t) {
			p.syntaxError()
		}
		s.cond = t.Value
		p.advance()
		if _, err := stateOf(s.cond, false); err != nil {
			p.context(err)
		}
	}
	if p.accept("using") {
		p.raiseOptions(s)
	} else {
		p.expect(";")
	}
	p.checkRaise(s)
	return s
}

// raiseOptionKinds are the options of RAISE.
var raiseOptionKinds = map[string]string{
	"errcode": "ERRCODE", "message": "MESSAGE", "detail": "DETAIL", "hint": "HINT", "column": "COLUMN", "constraint": "CONSTRAINT",
	"datatype": "DATATYPE", "table": "TABLE", "schema": "SCHEMA",
}

func (p *parser) raiseOptions(s *raiseStmt) {
	for end := ","; end == ","; {
		kind := raiseOptionKinds[p.cur().Value]
		if kind == "" || p.cur().Kind != sql.TokenName {
			p.unexpected("unrecognized RAISE statement option")
		}
		p.advance()
		if !p.accept("=") && !p.accept(":=") {
			p.unexpected("syntax error, expected \"=\"")
		}
		o := raiseOption{kind: kind}
		o.value, end = p.expr(", or ;", ",", ";")
		s.options = append(s.options, o)
	}
}

// checkRaise compares the placeholders with the parameters.
func (p *parser) checkRaise(s *raiseStmt) {
	if !s.hasText {
		return
	}
	n := 0
	for i := 0; i < len(s.message); i++ {
		if s.message[i] != '%' {
			continue
		}
		if i+1 < len(s.message) && s.message[i+1] == '%' {
			i++
			continue
		}
		n++
	}
	switch {
	case n < len(s.params):
		p.fail(pgerror.SyntaxError, "too many parameters specified for RAISE")
	case n > len(s.params):
		p.fail(pgerror.SyntaxError, "too few parameters specified for RAISE")
	}
}

// diagnosticKinds are the items of GET DIAGNOSTICS, and whether they are of the error that is handled.
var diagnosticKinds = map[string]bool{
	"row_count": false, "pg_context": false, "returned_sqlstate": true, "column_name": true, "constraint_name": true,
	"pg_datatype_name": true, "message_text": true, "table_name": true, "schema_name": true, "pg_exception_detail": true,
	"pg_exception_hint": true, "pg_exception_context": true,
}

// diagnostics reads GET [CURRENT | STACKED] DIAGNOSTICS.
func (p *parser) diagnostics() stmt {
	s := &diagStmt{place: p.here()}
	start := p.cur().Start
	p.advance()
	if p.accept("stacked") {
		s.stacked = true
	} else {
		p.accept("current")
	}
	p.expect("diagnostics")
	for first := true; first || p.accept(","); first = false {
		t := p.cur()
		item := diagItem{into: p.target()}
		if p.whole(item.into) {
			p.failAt(t.Start, pgerror.SyntaxError, "\"%s\" is not a scalar variable", t.Value)
		}
		if !p.accept("=") && !p.accept(":=") {
			p.syntaxError()
		}
		item.kind = p.cur().Value
		stacked, known := diagnosticKinds[item.kind]
		if !known || p.cur().Kind != sql.TokenName {
			p.unexpected("unrecognized GET DIAGNOSTICS item")
		}
		p.advance()
		switch {
		case stacked && !s.stacked:
			p.failAt(start, pgerror.SyntaxError, "diagnostics item %s is not allowed in GET CURRENT DIAGNOSTICS", strings.ToUpper(item.kind))
		case s.stacked && !stacked:
			p.failAt(start, pgerror.SyntaxError, "diagnostics item %s is not allowed in GET STACKED DIAGNOSTICS", strings.ToUpper(item.kind))
		}
		s.items = append(s.items, item)
	}
	p.expect(";")
	return s
}
