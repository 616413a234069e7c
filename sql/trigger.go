package sql

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// createTrigger reads CREATE [OR REPLACE] [CONSTRAINT] TRIGGER.
func (p *parser) createTrigger(pos ast.Pos, orReplace bool) ast.Statement {
	t := &ast.CreateTrigger{Pos: pos, OrReplace: orReplace, Constraint: p.acceptWord(kw.Constraint)}
	p.expectWord(kw.Trigger)
	if t.Constraint && orReplace {
		p.later(pgerror.New(pgerror.FeatureNotSupported, "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported").At(int(pos)))
	}
	t.Name = p.colID()
	switch {
	case p.acceptWord(kw.After):
		t.Timing = "AFTER"
	case !t.Constraint && p.acceptWord(kw.Before):
		t.Timing = "BEFORE"
	case !t.Constraint && p.acceptWords(kw.Instead, kw.Of):
		t.Timing = "INSTEAD OF"
	default:
		p.unexpected()
	}
	for first := true; first || p.acceptWord(kw.Or); first = false {
		e := p.triggerEvent()
		if slices.ContainsFunc(t.Events, func(o ast.TriggerEvent) bool { return o.Kind == e.Kind }) {
			p.unexpectedAs("duplicate trigger events specified")
		}
		t.Events = append(t.Events, e)
	}
	p.expectWord(kw.On)
	t.Table = p.tableName()
	if t.Constraint {
		p.constraintTrigger(t)
	} else {
		p.triggerScope(t)
	}
	if p.acceptWord(kw.When) {
		p.expect('(')
		t.When = p.expr()
		p.expect(')')
	}
	t.Function = p.triggerFunction()
	t.Args = p.triggerArguments()
	return t
}

func (p *parser) triggerEvent() ast.TriggerEvent {
	e := ast.TriggerEvent{Kind: upper(p.cur().kw)}
	switch p.cur().kw {
	case kw.Insert, kw.Delete, kw.Truncate:
		p.advance()
	case kw.Update:
		p.advance()
		if p.acceptWord(kw.Of) {
			e.Columns = p.names()
		}
	default:
		p.unexpected()
	}
	return e
}

// constraintTrigger reads what follows the table of a constraint trigger.
func (p *parser) constraintTrigger(t *ast.CreateTrigger) {
	if p.acceptWord(kw.From) {
		from := p.tableName()
		t.From = &from
	}
	var k ast.TableConstraint
	for p.constraintAttribute(&k) {
	}
	t.Attributes = k.Attributes
	p.expectWords(kw.For, kw.Each, kw.Row)
	t.ForEach = "ROW"
}

// triggerScope reads REFERENCING and FOR EACH.
func (p *parser) triggerScope(t *ast.CreateTrigger) {
	if p.acceptWord(kw.Referencing) {
		for first := true; first || p.isWord(kw.New) || p.isWord(kw.Old); first = false {
			x := ast.TransitionTable{New: p.acceptWord(kw.New)}
			if !x.New {
				p.expectWord(kw.Old)
			}
			if x.Row = p.acceptWord(kw.Row); !x.Row {
				p.expectWord(kw.Table)
			}
			p.acceptWord(kw.As)
			x.Name = p.colID()
			t.Transition = append(t.Transition, x)
		}
	}
	if !p.acceptWord(kw.For) {
		return
	}
	p.acceptWord(kw.Each)
	if t.ForEach = "ROW"; !p.acceptWord(kw.Row) {
		p.expectWord(kw.Statement)
		t.ForEach = "STATEMENT"
	}
}

// triggerFunction reads EXECUTE FUNCTION name.
func (p *parser) triggerFunction() []string {
	p.expectWord(kw.Execute)
	if !p.acceptWord(kw.Procedure) {
		p.expectWord(kw.Function)
	}
	return p.functionName()
}

// triggerArguments reads the arguments of a trigger's function, which are strings however they are written.
func (p *parser) triggerArguments() []string {
	p.expect('(')
	var args []string
	comma := p.accept(',') // the list may begin with one, and then has an argument
	for (comma || !p.is(')')) && p.err == nil {
		switch t := p.cur(); {
		case isString(t):
			args = append(args, p.stringLit())
		case t.kind == tokLiteral && t.sub == styleNumber:
			p.advance()
			args = append(args, p.literalValue(t))
		default:
			args = append(args, p.colLabel())
		}
		if comma = p.accept(','); !comma {
			break
		}
	}
	p.expect(')')
	return args
}

// createEventTrigger reads CREATE EVENT TRIGGER.
func (p *parser) createEventTrigger(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Event, kw.Trigger)
	t := &ast.CreateEventTrigger{Pos: pos, Name: p.colID()}
	p.expectWord(kw.On)
	t.Event = p.colLabel()
	if p.acceptWord(kw.When) {
		for first := true; first || p.acceptWord(kw.And); first = false {
			f := ast.EventFilter{Variable: p.colID()}
			p.expectWord(kw.In)
			f.Values = p.stringList()
			t.Filters = append(t.Filters, f)
		}
	}
	t.Function = p.triggerFunction()
	p.expect('(')
	p.expect(')')
	return t
}

// stringList reads ('a', …).
func (p *parser) stringList() []string {
	p.expect('(')
	list := p.stringsUntilEnd()
	p.expect(')')
	return list
}

// stringsUntilEnd reads 'a', ….
func (p *parser) stringsUntilEnd() []string {
	list := []string{p.stringLit()}
	for p.accept(',') {
		list = append(list, p.stringLit())
	}
	return list
}

// alterEventTrigger reads ALTER EVENT TRIGGER.
func (p *parser) alterEventTrigger(pos ast.Pos) ast.Statement {
	kind, form := p.objectKind()
	st := &ast.AlterObject{Pos: pos, Object: p.object(kind, form)}
	st.Change.Pos = p.here()
	switch {
	case p.acceptWords(kw.Enable, kw.Replica):
		st.Change.Enabled = "ENABLE REPLICA"
	case p.acceptWords(kw.Enable, kw.Always):
		st.Change.Enabled = "ENABLE ALWAYS"
	case p.acceptWord(kw.Enable):
		st.Change.Enabled = "ENABLE"
	case p.acceptWord(kw.Disable):
		st.Change.Enabled = "DISABLE"
	default:
		return p.alterObject(pos, st.Object, "ro")
	}
	return st
}

// createRule reads CREATE [OR REPLACE] RULE.
func (p *parser) createRule(pos ast.Pos, orReplace bool) ast.Statement {
	p.expectWord(kw.Rule)
	r := &ast.CreateRule{Pos: pos, OrReplace: orReplace, Name: p.colID()}
	p.expectWords(kw.As, kw.On)
	switch word := p.cur().kw; word {
	case kw.Select, kw.Update, kw.Delete, kw.Insert:
		r.Event = upper(word)
		p.advance()
	default:
		p.unexpected()
	}
	p.expectWord(kw.To)
	r.Table = p.tableName()
	if p.acceptWord(kw.Where) {
		r.Where = p.expr()
	}
	p.expectWord(kw.Do)
	switch {
	case p.acceptWord(kw.Instead):
		r.Mode = "INSTEAD"
	case p.acceptWord(kw.Also):
		r.Mode = "ALSO"
	}
	switch t := p.cur(); {
	case p.acceptWord(kw.Nothing):
	case t.kind == '(' && t.aux >= 0 && p.toks[t.aux+1].kind == tokEOF:
		p.advance()
		for p.err == nil && !p.is(')') {
			if !p.is(';') {
				r.Actions = append(r.Actions, p.ruleAction())
			}
			if !p.accept(';') {
				break
			}
		}
		p.expect(')')
	default:
		r.Actions = []ast.Statement{p.ruleAction()}
	}
	return r
}

// ruleAction reads an action of a rule.
func (p *parser) ruleAction() ast.Statement {
	if pos := p.here(); p.acceptWord(kw.Notify) {
		return p.notify(pos)
	}
	if !isDML(p.cur().kw) {
		p.requireQuery()
	}
	return p.inner()
}

// createPolicy reads CREATE POLICY.
func (p *parser) createPolicy(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Policy)
	c := &ast.CreatePolicy{Pos: pos, Name: p.colID()}
	p.expectWord(kw.On)
	c.Table = p.tableName()
	if p.acceptWord(kw.As) {
		asPos := p.here()
		if t := p.cur(); t.kw != kw.None {
			p.unexpected()
		}
		if c.As = p.colID(); c.As != "permissive" && c.As != "restrictive" {
			p.failAt(asPos, pgerror.SyntaxError, `unrecognized row security option "%s"`, c.As)
		}
	}
	if p.acceptWord(kw.For) {
		switch word := p.cur().kw; word {
		case kw.All, kw.Select, kw.Insert, kw.Update, kw.Delete:
			c.For = upper(word)
			p.advance()
		default:
			p.unexpected()
		}
	}
	c.Roles, c.Using, c.Check = p.policy()
	return c
}

// policy reads the roles and conditions of a policy.
func (p *parser) policy() (roles []ast.Role, using, check ast.Expr) {
	if p.acceptWord(kw.To) {
		roles = p.roles()
	}
	if p.acceptWord(kw.Using) {
		p.expect('(')
		using = p.expr()
		p.expect(')')
	}
	if p.acceptWords(kw.With, kw.Check) {
		p.expect('(')
		check = p.expr()
		p.expect(')')
	}
	return roles, using, check
}

// alterPolicy reads ALTER POLICY.
func (p *parser) alterPolicy(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Policy)
	ifExists := p.ifExists()
	o := p.object("POLICY", onTable)
	if c := p.objectChange("r"); c != nil {
		return &ast.AlterObject{Pos: pos, Object: o, IfExists: ifExists, Change: *c}
	}
	if ifExists || p.err != nil {
		p.unexpected()
		return nil
	}
	a := &ast.AlterPolicy{Pos: pos, Name: o.Name[0], Table: pathTable(o.Pos, o.On)}
	a.Roles, a.Using, a.Check = p.policy()
	return a
}

// pathTable makes a path of one or two names a table's name.
func pathTable(pos ast.Pos, path []string) ast.TableName {
	name := ast.TableName{Pos: pos, Name: path[len(path)-1]}
	if len(path) > 1 {
		name.Schema = path[len(path)-2]
	}
	return name
}
