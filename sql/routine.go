package sql

import (
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// createFunction reads CREATE FUNCTION or PROCEDURE.
func (p *parser) createFunction(pos ast.Pos, orReplace bool) ast.Statement {
	f := &ast.CreateFunction{Pos: pos, OrReplace: orReplace, Procedure: p.isWord(kw.Procedure)}
	p.advance()
	f.Name = p.functionName()
	f.Params = p.parameterList(true)
	if !f.Procedure && p.acceptWord(kw.Returns) {
		if p.isWord(kw.Table) {
			p.advance()
			f.Table = p.tableParameters()
		} else {
			typ := p.funcType()
			f.Returns = &typ
		}
	}
	for p.functionOption(&f.Options, true) {
	}
	switch {
	case p.acceptWord(kw.Return):
		f.Return = p.expr()
	case p.acceptWords(kw.Begin, kw.Atomic):
		f.Atomic = true
		p.atomicBody(f)
	}
	return f
}

// atomicBody reads the statements of BEGIN ATOMIC and its END.
func (p *parser) atomicBody(f *ast.CreateFunction) {
	for p.err == nil && !p.acceptWord(kw.End) {
		switch pos := p.here(); {
		case p.accept(';'):
			continue
		case p.acceptWord(kw.Return):
			f.Body = append(f.Body, &ast.ReturnStatement{Pos: pos, Value: p.expr()})
		default:
			f.Body = append(f.Body, p.statement())
		}
		p.expect(';')
	}
}

// parameterList reads (parameter, …), which may be empty.
func (p *parser) parameterList(defaults bool) []ast.Parameter {
	p.expect('(')
	if p.accept(')') {
		return nil
	}
	list := p.parameters(defaults)
	p.expect(')')
	return list
}

func (p *parser) parameters(defaults bool) []ast.Parameter {
	list := []ast.Parameter{p.parameter(defaults)}
	for p.accept(',') {
		list = append(list, p.parameter(defaults))
	}
	return list
}

// parameter reads [mode] [name] type, or name mode type, with a default where there may be one.
func (p *parser) parameter(defaults bool) ast.Parameter {
	a := ast.Parameter{Pos: p.here()}
	a.Mode = p.parameterMode()
	if p.parameterNamed() {
		a.Name = p.colLabel()
		if a.Mode == "" {
			a.Mode = p.parameterMode()
		}
	}
	a.Type = p.funcType()
	if defaults && (p.acceptWord(kw.Default) || p.acceptOp('=')) {
		a.Default = p.expr()
	}
	return a
}

func (p *parser) parameterMode() string {
	switch {
	case p.acceptWords(kw.In, kw.Out), p.acceptWord(kw.Inout):
		return "INOUT"
	case p.acceptWord(kw.In):
		return "IN"
	case p.acceptWord(kw.Out):
		return "OUT"
	case p.acceptWord(kw.Variadic):
		return "VARIADIC"
	}
	return ""
}

// parameterNamed reports whether the current word is a parameter's name: a mode or a type follows.
func (p *parser) parameterNamed() bool {
	if !isTypeFuncName(p.cur()) {
		return false
	}
	switch next := p.peek(1); next.kw {
	case kw.In, kw.Out, kw.Inout, kw.Variadic, kw.Setof:
		return true
	default:
		return isTypeFuncName(next) || constTypeWord(next.kw)
	}
}

// tableParameters reads (name type, …) of RETURNS TABLE.
func (p *parser) tableParameters() []ast.Parameter {
	p.expect('(')
	var list []ast.Parameter
	for first := true; first || p.accept(','); first = false {
		a := ast.Parameter{Pos: p.here()}
		if !isTypeFuncName(p.cur()) {
			p.unexpected()
		}
		a.Name = p.colLabel()
		a.Type = p.funcType()
		list = append(list, a)
	}
	p.expect(')')
	return list
}

// funcType reads a type, or the type of a column: name.column%TYPE.
func (p *parser) funcType() ast.TypeName {
	typ := p.typeName()
	if len(typ.Name) > 1 && typ.Mods == nil && typ.ModExprs == nil && typ.Array == 0 && p.isOp('%') && p.peek(1).kw == kw.Type {
		p.advance()
		p.advance()
		typ.Percent = true
	}
	return typ
}

// aggregateSignature reads the parameters of an aggregate: (*), (parameters), with ORDER BY parameters.
func (p *parser) aggregateSignature() *ast.Signature {
	p.expect('(')
	s := &ast.Signature{}
	switch {
	case p.acceptOp('*'):
		s.Star = true
		p.expect(')')
		return s
	case !p.isWord(kw.Order):
		s.Params = p.parameters(false)
	}
	if p.acceptWords(kw.Order, kw.By) {
		s.Ordered = true
		s.OrderBy = p.parameters(false)
	}
	p.expect(')')
	return s
}

// functionOption reads an option of a function and reports whether there was one; some are for CREATE only.
func (p *parser) functionOption(list *[]ast.FunctionOption, create bool) bool {
	o := ast.FunctionOption{Pos: p.here()}
	switch {
	case create && p.acceptWord(kw.As):
		body := p.cur()
		o.Kind, o.Values = "AS", []string{p.stringLit()}
		o.ValueAt = p.bodyAt(body, o.Values[0])
		if p.accept(',') {
			o.Values = append(o.Values, p.stringLit())
		}
	case create && p.acceptWord(kw.Language):
		o.Kind, o.Values = "LANGUAGE", []string{p.roleName()}
	case create && p.acceptWord(kw.Transform):
		o.Kind = "TRANSFORM"
		for first := true; first || p.accept(','); first = false {
			p.expectWords(kw.For, kw.Type)
			o.Types = append(o.Types, p.typeName())
		}
	case create && p.acceptWord(kw.Window):
		o.Kind = "WINDOW"
	default:
		p.commonOption(&o)
	}
	if o.Kind == "" || p.err != nil {
		return false
	}
	*list = append(*list, o)
	return true
}

// bodyAt returns the position of the first character of a string constant's value, 0 if its characters are not those between the quotes.
func (p *parser) bodyAt(t *token, value string) ast.Pos {
	if p.err != nil || value == "" {
		return 0
	}
	written := p.text[t.start:t.end]
	i := strings.Index(written, value)
	if i < 0 || len(written)-len(value) != 2*i {
		return 0
	}
	return p.posOf(t) + ast.Pos(utf8.RuneCountInString(written[:i]))
}

// commonOption reads an option that CREATE and ALTER FUNCTION have.
func (p *parser) commonOption(o *ast.FunctionOption) {
	switch {
	case p.acceptWords(kw.Called, kw.On, kw.Null, kw.Input):
		o.Kind = "CALLED ON NULL INPUT"
	case p.acceptWords(kw.Returns, kw.Null, kw.On, kw.Null, kw.Input), p.acceptWord(kw.Strict):
		o.Kind = "STRICT"
	case p.acceptWord(kw.Immutable):
		o.Kind = "IMMUTABLE"
	case p.acceptWord(kw.Stable):
		o.Kind = "STABLE"
	case p.acceptWord(kw.Volatile):
		o.Kind = "VOLATILE"
	case p.acceptWords(kw.External, kw.Security, kw.Definer), p.acceptWords(kw.Security, kw.Definer):
		o.Kind = "SECURITY DEFINER"
	case p.acceptWords(kw.External, kw.Security, kw.Invoker), p.acceptWords(kw.Security, kw.Invoker):
		o.Kind = "SECURITY INVOKER"
	case p.acceptWord(kw.Leakproof):
		o.Kind = "LEAKPROOF"
	case p.acceptWords(kw.Not, kw.Leakproof):
		o.Kind = "NOT LEAKPROOF"
	case p.isWord(kw.Cost), p.isWord(kw.Rows):
		o.Kind = upper(p.cur().kw)
		p.advance()
		o.Values = []string{p.signedNumber()}
	case p.acceptWord(kw.Support):
		o.Kind, o.Values = "SUPPORT", p.path()
	case p.acceptWord(kw.Parallel):
		o.Kind, o.Values = "PARALLEL", []string{p.colID()}
	case p.isWord(kw.Set), p.isWord(kw.Reset):
		o.Kind, o.Set = "SET", p.settingClause()
	}
}

// settingClause reads SET name TO value or RESET name inside of another statement.
func (p *parser) settingClause() *ast.Set {
	pos := p.here()
	if p.acceptWord(kw.Reset) {
		st, _ := p.resetSetting(pos).(*ast.Set)
		return st
	}
	p.expectWord(kw.Set)
	st := &ast.Set{Pos: pos}
	p.setVariable(st)
	return st
}

// alterRoutine reads ALTER FUNCTION, PROCEDURE, ROUTINE or AGGREGATE.
func (p *parser) alterRoutine(pos ast.Pos) ast.Statement {
	kind, form := p.objectKind()
	o := p.object(kind, form)
	if kind == "AGGREGATE" {
		return p.alterObject(pos, o, "ros")
	}
	if c := p.objectChange("rose"); c != nil {
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	}
	st := &ast.AlterFunction{Pos: pos, Function: o}
	for p.functionOption(&st.Options, false) {
	}
	if len(st.Options) == 0 {
		p.unexpected()
	}
	p.acceptWord(kw.Restrict)
	return st
}

// alterObject reads one of the allowed changes of an object.
func (p *parser) alterObject(pos ast.Pos, o ast.Object, allowed string) ast.Statement {
	c := p.objectChange(allowed)
	if c == nil {
		p.unexpected()
		return nil
	}
	return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
}

// do reads DO.
func (p *parser) do(pos ast.Pos) ast.Statement {
	st := &ast.Do{Pos: pos}
	for p.err == nil && (len(st.Options) == 0 || !p.is(tokEOF)) && !p.is(';') {
		o := ast.FunctionOption{Pos: p.here()}
		if p.acceptWord(kw.Language) {
			o.Kind, o.Values = "LANGUAGE", []string{p.roleName()}
		} else {
			o.Kind, o.Values = "AS", []string{p.stringLit()}
		}
		st.Options = append(st.Options, o)
	}
	return st
}

// callProcedure reads CALL.
func (p *parser) callProcedure(pos ast.Pos) ast.Statement {
	call := &ast.Call{Pos: p.here(), Name: p.functionName()}
	p.bareCall = true
	p.call(call)
	return &ast.CallProcedure{Pos: pos, Call: call}
}
