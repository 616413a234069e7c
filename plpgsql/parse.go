package plpgsql

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxNesting bounds how deep statements nest.
const maxNesting = 1000

// parser reads one function. Its methods stop with a bailout, which Parse catches.
type parser struct {
	ctx   context.Context
	r     catalog.Resolver
	text  string
	toks  []sql.Token
	lines []int // offsets of line ends before toks; see line
	pos   int
	names *name
	depth int
	f     *Function
	meter *sql.Meter
	// options have the extra checks of the function that is created, with validation.
	options    *Options
	validation *Validation
}

type bailout struct{ err error }

// Parse reads the source of a function. Types and relations that declarations name are those of r. The warnings of a function that is created are
// added to v, which is nil otherwise; their positions are those of errors.
//
// Errors: those of a text that PostgreSQL refuses, with the position in the source as their InternalPosition, and the source as their
// InternalQuery; or with a line of context.
func Parse(ctx context.Context, sig *Signature, source string, r catalog.Resolver, m *sql.Meter, o *Options, v *Validation) (f *Function, err error) {
	p := &parser{ctx: ctx, r: r, text: source, meter: m, options: o, validation: v}
	p.f = &Function{Signature: sig, Source: source, result: -1, inline: sig.Name == inlineName, resolve: o.Conflict, strictParams: o.StrictParams}
	defer func() {
		if v := recover(); v != nil {
			b, ok := v.(bailout)
			if !ok {
				panic(v)
			}
			f, err = nil, b.err
		}
	}()
	if p.toks, err = sql.Tokens(source, m); err != nil {
		if e, ok := err.(*pgerror.Error); ok && e.Position > 0 {
			c := *e
			c.InternalPosition, c.InternalQuery, c.Position = e.Position, source, 0
			return nil, &c
		}
		return nil, err
	}
	p.function()
	return p.f, nil
}

func (p *parser) bail(err error) { panic(bailout{err}) }

// failAt stops with an error at a place of the source.
func (p *parser) failAt(offset int, code pgerror.Code, format string, args ...any) {
	e := pgerror.New(code, format, args...)
	e.InternalPosition, e.InternalQuery = sql.PositionIn(p.text, offset), p.text
	p.bail(e)
}

// fail stops with an error that has no place but a line.
func (p *parser) fail(code pgerror.Code, format string, args ...any) {
	p.context(pgerror.New(code, format, args...))
}

// context stops with an error that gets the line that is being read.
func (p *parser) context(err error) {
	p.bail(p.withLine(err))
}

func (p *parser) withLine(err error) error {
	e, ok := err.(*pgerror.Error)
	if !ok {
		return err
	}
	c := *e
	return c.InContext("compilation of PL/pgSQL function \"%s\" near line %d", p.f.Signature.Name, p.lineOf(p.toks[max(p.pos-1, 0)].Start))
}

// InCompilation adds to an error of Parse what it says of a function that is parsed to be executed: the line, in place of a position.
func InCompilation(err error, sig *Signature) error {
	e, ok := err.(*pgerror.Error)
	if !ok || e.InternalPosition == 0 {
		return err
	}
	c := *e
	runes := []rune(c.InternalQuery)
	line := 1 + strings.Count(string(runes[:min(c.InternalPosition-1, len(runes))]), "\n")
	return c.InContext("compilation of PL/pgSQL function \"%s\" near line %d", sig.Name, line)
}

// unexpected stops with a message about the current token.
func (p *parser) unexpected(message string) {
	t := p.cur()
	if t.Kind == sql.TokenEnd {
		p.failAt(t.Start, pgerror.SyntaxError, "%s at end of input", message)
	}
	p.failAt(t.Start, pgerror.SyntaxError, "%s at or near \"%s\"", message, p.text[t.Start:t.End])
}

func (p *parser) syntaxError() { p.unexpected("syntax error") }

func (p *parser) cur() *sql.Token { return &p.toks[p.pos] }

func (p *parser) peek(n int) *sql.Token { return &p.toks[min(p.pos+n, len(p.toks)-1)] }

func (p *parser) advance() *sql.Token {
	t := &p.toks[p.pos]
	if t.Kind != sql.TokenEnd {
		p.pos++
	}
	return t
}

func isSymbol(t *sql.Token, s string) bool { return t.Kind == sql.TokenSymbol && t.Value == s }

// isMark reports whether a token is a keyword or a symbol.
func isMark(t *sql.Token, s string) bool {
	return t.Value == s && (t.Kind == sql.TokenName || t.Kind == sql.TokenSymbol)
}

func (p *parser) is(s string) bool { return isMark(p.cur(), s) }

func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if !isMark(p.peek(i), w) {
			return false
		}
	}
	p.pos += len(words)
	return true
}

func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.is(w) {
			p.syntaxError()
		}
		p.advance()
	}
}

// reserved are the words that are no names of variables without quotes.
var reserved = map[string]bool{
	"all": true, "begin": true, "by": true, "case": true, "declare": true, "else": true, "end": true, "execute": true, "for": true,
	"foreach": true, "from": true, "if": true, "in": true, "into": true, "loop": true, "not": true, "null": true, "or": true,
	"strict": true, "then": true, "to": true, "using": true, "when": true, "while": true,
}

func isName(t *sql.Token) bool {
	return t.Kind == sql.TokenQuoted || t.Kind == sql.TokenName && !reserved[t.Value]
}

// anyName reads a name.
func (p *parser) anyName() string {
	if !isName(p.cur()) {
		p.syntaxError()
	}
	return p.advance().Value
}

// lineOf returns the number of the line of an offset.
func (p *parser) lineOf(offset int) int {
	if p.lines == nil {
		p.lines = []int{}
		for i := range len(p.text) {
			if p.text[i] == '\n' {
				p.lines = append(p.lines, i)
			}
		}
	}
	n, _ := slices.BinarySearch(p.lines, offset)
	return n + 1
}

func (p *parser) here() place { return place{p.lineOf(p.cur().Start)} }

// enter counts a level of nesting.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.bail(pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").WithHint("The function nests statements deeper than the server allows."))
	}
	if err := p.meter.Poll(); err != nil {
		p.bail(err)
	}
}

func (p *parser) leave() { p.depth-- }

// push begins a block or loop.
func (p *parser) push(label string, loop bool) {
	p.names = &name{outer: p.names, text: label, variable: -1, loop: loop}
}

// pop ends the innermost one.
func (p *parser) pop() {
	for !p.names.isLabel() {
		p.names = p.names.outer
	}
	p.names = p.names.outer
}

// declare makes a variable, and puts it in sight under its name.
func (p *parser) declare(v *variable) int {
	p.f.vars = append(p.f.vars, v)
	i := len(p.f.vars) - 1
	if v.name != "" {
		p.see(v.name, i)
	}
	return i
}

// see puts a variable in sight under a name.
func (p *parser) see(text string, i int) {
	p.names = &name{outer: p.names, text: text, variable: i}
}

func (p *parser) isRecord(v int) bool { return p.f.vars[v].record }

// function reads the whole text.
func (p *parser) function() {
	f := p.f
	p.push(f.Signature.Name, false)
	p.declareParams()
	f.found = p.declare(&variable{name: "found", typ: types.TBool})
	if f.Signature.Trigger {
		p.declareTrigger()
	}
	for p.accept("#") {
		p.option()
	}
	p.label()
	f.body = p.block()
	p.accept(";")
	if p.cur().Kind != sql.TokenEnd {
		p.syntaxError()
	}
}

// declareParams makes the variables of parameters: by name, and by number.
func (p *parser) declareParams() {
	sig := p.f.Signature
	outs := 0
	for i := range sig.Params {
		par := &sig.Params[i]
		v := &variable{name: par.Name, typ: par.Type, record: isRow(par.Type)}
		if par.Mode == Variadic && !par.Type.IsArray() && par.Type.OID != types.OIDAny {
			v.typ = par.Type.ArrayOf()
		}
		if par.Name != "" {
			if p.names.local(par.Name) >= 0 {
				p.bail(pgerror.New("42P13", "parameter name \"%s\" used more than once", par.Name))
			}
		}
		n := p.declare(v)
		p.see("$"+itoa(i+1), n)
		p.f.params = append(p.f.params, n)
		if par.Mode.writes() {
			outs++
			p.f.outs = append(p.f.outs, n)
			p.f.result = n
		}
	}
	if outs != 1 {
		p.f.result = -1
	}
}

// isRow reports whether values of a type are rows.
func isRow(t types.Type) bool { return t.OID == types.OIDRecord || t.Underlying().IsComposite() }

// declareTrigger makes the variables of a trigger function.
func (p *parser) declareTrigger() {
	p.f.new = p.declare(&variable{name: "new", typ: types.TRecord, record: true})
	p.f.old = p.declare(&variable{name: "old", typ: types.TRecord, record: true})
	for _, v := range [...]struct {
		name string
		typ  types.Type
	}{
		{"tg_name", types.TName}, {"tg_when", types.TText}, {"tg_level", types.TText}, {"tg_op", types.TText}, {"tg_relid", types.TOid},
		{"tg_relname", types.TName}, {"tg_table_name", types.TName}, {"tg_table_schema", types.TName}, {"tg_nargs", types.TInt4},
		{"tg_argv", types.TText.ArrayOf()},
	} {
		p.declare(&variable{name: v.name, typ: v.typ})
	}
}

// option reads what follows #.
func (p *parser) option() {
	switch {
	case p.accept("option"):
		p.expect("dump")
	case p.accept("print_strict_params"):
		switch {
		case p.accept("on"):
			p.f.strictParams = true
		case p.accept("off"):
			p.f.strictParams = false
		default:
			p.optionError("print_strict_params")
		}
	case p.accept("variable_conflict"):
		c, ok := ParseConflict(p.cur().Value)
		if !ok || p.cur().Kind != sql.TokenName {
			p.syntaxError()
		}
		p.advance()
		p.f.resolve = c
	default:
		p.syntaxError()
	}
}

func (p *parser) optionError(name string) {
	if isName(p.cur()) {
		p.fail(pgerror.SyntaxError, "unrecognized %s option %s", name, p.cur().Value)
	}
	p.syntaxError()
}

// label reads <<label>>, and begins its level: of a block or a loop, as what follows will say.
func (p *parser) label() string {
	label := ""
	if p.accept("<<") {
		label = p.anyName()
		p.expect(">>")
	}
	p.push(label, false)
	return label
}

// endLabel reads the label behind END, and ends the level.
func (p *parser) endLabel(label string) {
	if t := p.cur(); isName(t) {
		switch {
		case label == "":
			p.failAt(t.Start, pgerror.SyntaxError, "end label \"%s\" specified for unlabeled block", t.Value)
		case label != t.Value:
			p.failAt(t.Start, pgerror.SyntaxError, "end label \"%s\" differs from block's label \"%s\"", t.Value, label)
		}
		p.advance()
	}
	p.pop()
}

// blockLabel is the label of the level that label has begun.
func (p *parser) blockLabel() string { return p.names.text }

// block reads [DECLARE …] BEGIN … END; its label has been read.
func (p *parser) block() *block {
	p.enter()
	defer p.leave()
	b := &block{place: p.here(), label: p.blockLabel(), state: -1, message: -1}
	level := p.names
	for p.accept("declare") {
		p.declarations(b)
	}
	b.place = p.here()
	p.expect("begin")
	b.body = p.statements()
	if p.accept("exception") {
		p.handlers(b)
	}
	p.expect("end")
	for p.names != level {
		p.names = p.names.outer
	}
	p.endLabel(b.label)
	return b
}

// handlers reads WHEN … THEN … .
func (p *parser) handlers(b *block) {
	text := types.TText
	b.state = p.declare(&variable{name: "sqlstate", typ: text, constant: true})
	b.message = p.declare(&variable{name: "sqlerrm", typ: text, constant: true})
	if !p.is("when") {
		p.syntaxError()
	}
	for p.is("when") {
		h := &handler{line: p.here().line}
		p.advance()
		for first := true; first || p.accept("or"); first = false {
			h.conditions = append(h.conditions, p.condition()...)
		}
		p.expect("then")
		h.body = p.statements()
		b.handlers = append(b.handlers, h)
	}
}

func (p *parser) condition() []condition {
	word := p.anyName()
	if word == "sqlstate" {
		return []condition{condition(p.state())}
	}
	if word == "others" {
		return []condition{""}
	}
	codes := conditionNames[word]
	if codes == nil {
		p.fail(pgerror.UndefinedObject, "unrecognized exception condition \"%s\"", word)
	}
	var list []condition
	for _, c := range codes {
		list = append(list, condition(c))
	}
	return list
}

// state reads the text of a SQLSTATE.
func (p *parser) state() string {
	if p.cur().Kind != sql.TokenString {
		p.syntaxError()
	}
	s := p.cur().Value
	if !isState(s) {
		p.unexpected("invalid SQLSTATE code")
	}
	p.advance()
	return s
}

// readUntil reads tokens up to one of the marks at the outermost level of parentheses, and returns the text and the mark, which is passed.
func (p *parser) readUntil(expected, what string, marks ...string) (text string, start int, mark string) {
	start = p.cur().Start
	level := 0
	for {
		t := p.cur()
		if level == 0 {
			for _, m := range marks {
				if isMark(t, m) {
					if t.Start == start {
						p.unexpected("missing " + what)
					}
					p.advance()
					return strings.TrimRight(p.text[start:t.Start], " \t\n\r\f\v"), start, m
				}
			}
		}
		switch {
		case isSymbol(t, "("), isSymbol(t, "["):
			level++
		case isSymbol(t, ")"), isSymbol(t, "]"):
			if level--; level < 0 {
				p.unexpected("mismatched parentheses")
			}
		case t.Kind == sql.TokenEnd, isSymbol(t, ";"):
			if level > 0 {
				p.unexpected("mismatched parentheses")
			}
			kind := "SQL statement"
			if what == "expression" {
				kind = "SQL expression"
			}
			p.failAt(t.Start, pgerror.SyntaxError, "missing \"%s\" at end of %s", expected, kind)
		}
		p.advance()
	}
}

// expr reads an expression up to one of the marks; see readUntil.
func (p *parser) expr(expected string, marks ...string) (*expression, string) {
	text, start, mark := p.readUntil(expected, "expression", marks...)
	return p.newExpr(text, start), mark
}

func (p *parser) newExpr(text string, start int) *expression {
	e := &expression{text: text, kind: valueExpr}
	p.parseQuery(e, "SELECT ", text, start)
	return e
}

// sqlText makes the expression of a statement.
func (p *parser) sqlText(text string, start int) *expression {
	e := &expression{text: text, kind: statementExpr}
	p.parseQuery(e, "", text, start)
	return e
}

// parseQuery parses the SQL of e: lead, which is not the program's, and text, which begins at an offset of the source.
func (p *parser) parseQuery(e *expression, lead, text string, offset int) {
	e.shift, e.names, e.id = -len(lead), p.names, p.f.exprs
	p.f.exprs++
	if err := p.meter.Poll(); err != nil {
		p.bail(err)
	}
	tree, err := sql.ParseStatement(lead + text)
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.FeatureNotSupported { // Executing it fails.
		e.refused, err = pe, nil
	}
	if err != nil {
		p.bail(p.placed(err, offset, len(lead)))
	}
	e.query = tree
}

// placed moves the position of an error within a part of the source to that in the whole.
func (p *parser) placed(err error, offset, lead int) error {
	pe, ok := err.(*pgerror.Error)
	if !ok || pe.Position == 0 {
		return err
	}
	c := *pe
	c.InternalPosition = sql.PositionIn(p.text, offset) + max(pe.Position-1-lead, 0)
	c.InternalQuery, c.Position = p.text, 0
	return &c
}

// itoa prints a small number.
func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
