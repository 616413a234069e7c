package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// declarations reads what follows DECLARE.
func (p *parser) declarations(b *block) {
	for {
		switch t := p.cur(); {
		case isSymbol(t, "<<"):
			p.failAt(t.Start, pgerror.SyntaxError, "block label must be placed before DECLARE, not after")
		case isMark(t, "declare"):
			p.advance()
		case isName(t):
			p.declaration(b)
		default:
			return
		}
	}
}

func (p *parser) declaration(b *block) {
	at, line := p.pos, p.here().line
	text := p.advance().Value
	if p.names.local(text) >= 0 {
		p.pos = at
		p.unexpected("duplicate declaration")
	}
	p.shadows(text, p.toks[at].Start)
	switch {
	case p.is("alias") && isMark(p.peek(1), "for"):
		p.pos += 2
		p.see(text, p.aliased())
		p.expect(";")
		return
	case p.is("cursor"), (p.is("scroll")) && isMark(p.peek(1), "cursor"), p.is("no") && isMark(p.peek(1), "scroll"):
		b.vars = append(b.vars, p.cursor(text, line))
		return
	}
	v := &variable{name: text, line: line}
	v.constant = p.accept("constant")
	v.typ = p.dataType()
	v.record = isRow(v.typ)
	p.collation(v)
	notNull := p.cur().Start
	if p.accept("not") {
		p.expect("null")
		v.notNull = true
	}
	if !p.accept(";") {
		if !p.accept(":=") && !p.accept("=") && !p.accept("default") {
			p.syntaxError()
		}
		v.def, _ = p.expr(";", ";")
	} else if v.notNull {
		p.failAt(notNull, pgerror.NullValueNotAllowed, "variable \"%s\" must have a default value, since it's declared NOT NULL", text)
	}
	b.vars = append(b.vars, p.declare(v))
}

// shadows reports a declaration of a name that a variable has already.
func (p *parser) shadows(name string, offset int) {
	if p.validation == nil || !p.options.checks(ShadowedVariables) {
		return
	}
	if _, used := p.names.lookup([]string{name}, p.isRecord); used == 0 {
		return
	}
	e := pgerror.New(pgerror.DuplicateAlias, "variable \"%s\" shadows a previously defined variable", name)
	e.InternalPosition, e.InternalQuery = sql.PositionIn(p.text, offset), p.text
	if err := p.options.extra(ShadowedVariables, e, p.validation.warn); err != nil {
		p.bail(err)
	}
}

// aliased reads the name of a variable that gets another one.
func (p *parser) aliased() int {
	t := p.cur()
	parts := p.dotted()
	v, used := p.names.lookup(parts, p.isRecord)
	if used != len(parts) {
		p.failAt(t.Start, pgerror.UndefinedObject, "variable \"%s\" does not exist", strings.Join(parts, "."))
	}
	return v
}

// dotted reads a name with its qualifiers, or $n.
func (p *parser) dotted() []string {
	if t := p.cur(); t.Kind == sql.TokenParam {
		p.advance()
		return []string{t.Value}
	}
	parts := []string{p.anyName()}
	for p.is(".") && (p.peek(1).Kind == sql.TokenName || p.peek(1).Kind == sql.TokenQuoted) {
		p.advance()
		parts = append(parts, p.advance().Value)
	}
	return parts
}

// cursor reads [NO] SCROLL CURSOR (…) FOR query;.
func (p *parser) cursor(text string, line int) int {
	c := &cursorDecl{}
	switch {
	case p.accept("no"):
		p.expect("scroll")
		c.scroll = scrollNo
	case p.accept("scroll"):
		c.scroll = scrollYes
	}
	p.expect("cursor")
	p.push(text, false)
	if p.accept("(") {
		for first := true; first || p.accept(","); first = false {
			v := &variable{line: p.here().line, name: p.anyName()}
			if p.names.local(v.name) >= 0 {
				p.pos--
				p.unexpected("duplicate declaration")
			}
			p.shadows(v.name, p.toks[p.pos-1].Start)
			v.typ = p.dataType()
			v.record = isRow(v.typ)
			c.params = append(c.params, p.declare(v))
			c.names = append(c.names, v.name)
		}
		p.expect(")")
	}
	if !p.accept("is") && !p.accept("for") {
		p.syntaxError()
	}
	body, start, _ := p.readUntil(";", "SQL statement", ";")
	c.query = p.sqlText(body, start)
	c.query.cursor = true
	p.pop()
	return p.declare(&variable{name: text, line: line, typ: types.TRefcursor, cursor: c})
}

// collation reads COLLATE name.
func (p *parser) collation(v *variable) {
	if !p.is("collate") {
		return
	}
	at := p.cur().Start
	p.advance()
	coll, err := planner.ResolveCollation(p.dotted(), p.r, 1)
	if err != nil {
		p.bail(p.placed(err, at, 0))
	}
	if !v.typ.Collatable() {
		p.failAt(at, pgerror.DatatypeMismatch, "collations are not supported by type %s", v.typ.Base())
	}
	v.typ = v.typ.Collated(coll)
}

// dataType reads a type.
func (p *parser) dataType() types.Type {
	start := p.cur().Start
	if isName(p.cur()) {
		if t, ok := p.percentType(); ok {
			return t
		}
	}
	level := 0
	for {
		t := p.cur()
		if t.Kind == sql.TokenEnd {
			if level > 0 {
				p.unexpected("mismatched parentheses")
			}
			p.unexpected("incomplete data type declaration")
		}
		if isMark(t, ";") || isMark(t, "collate") || isMark(t, "not") || isMark(t, "=") || isMark(t, ":=") || isMark(t, "default") ||
			level == 0 && (isSymbol(t, ",") || isSymbol(t, ")")) {
			break
		}
		if isSymbol(t, "(") {
			level++
		}
		if isSymbol(t, ")") {
			level--
		}
		p.advance()
	}
	text := strings.TrimSpace(p.text[start:p.cur().Start])
	if text == "" {
		p.unexpected("missing data type declaration")
	}
	return p.typeNamed(text, start)
}

// typeNamed resolves the text of a type.
func (p *parser) typeNamed(text string, start int) types.Type {
	const lead = "NULL::"
	x, err := sql.ParseExpr(lead + text)
	if err != nil {
		p.bail(p.placed(err, start, len(lead)))
	}
	c, ok := x.(*ast.Cast)
	if !ok {
		p.failAt(start, pgerror.SyntaxError, "invalid type name \"%s\"", text)
	}
	t, err := p.resolve(&c.Type)
	if err != nil {
		p.bail(p.placed(err, start, len(lead)))
	}
	switch t.OID {
	case types.OIDTrigger, types.OIDEventTrigger, types.OIDVoid, types.OIDAny, types.OIDAnyElement, types.OIDAnyArray, types.OIDUnknown:
		p.failAt(start, pgerror.FeatureNotSupported, "variable \"%s\" has pseudo-type %s", p.peek(0).Value, t)
	}
	return t
}

func (p *parser) resolve(t *ast.TypeName) (types.Type, error) {
	return planner.ResolveType(t, p.r)
}

// percentType reads name%TYPE and name%ROWTYPE, with brackets behind it; false: what follows is another type.
func (p *parser) percentType() (types.Type, bool) {
	at := p.pos
	parts := p.dotted()
	if !p.is("%") || !isMark(p.peek(1), "type") && !isMark(p.peek(1), "rowtype") {
		p.pos = at
		return types.Type{}, false
	}
	p.advance()
	row := p.advance().Value == "rowtype"
	var t types.Type
	if row {
		t = p.rowType(parts)
	} else {
		t = p.typeOf(parts, p.toks[at].Start)
	}
	for p.is("[") && isSymbol(p.peek(1), "]") {
		p.pos += 2
		if !t.IsArray() {
			t = t.ArrayOf()
		}
	}
	return t, true
}

// typeOf returns the type of a variable, of a field of one, or of a column.
func (p *parser) typeOf(parts []string, start int) types.Type {
	if v, used := p.names.lookup(parts, p.isRecord); used > 0 {
		t := p.f.vars[v].typ
		if used == len(parts) {
			return t
		}
		if d := t.Underlying().Def; used == len(parts)-1 && d != nil {
			if i := d.FieldNamed(parts[used]); i >= 0 {
				return d.Fields[i].Type
			}
		}
	}
	if len(parts) == 1 {
		p.failAt(start, pgerror.SyntaxError, "syntax error at or near \"%%\"")
	}
	column := parts[len(parts)-1]
	rel := p.relation(parts[:len(parts)-1])
	i := rel.ColumnNamed(column)
	if i < 0 {
		p.fail(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", column, rel.Name)
	}
	return rel.Columns[i].Type
}

// relation finds a relation by its path.
func (p *parser) relation(path []string) *catalog.TableDescriptor {
	schema := ""
	if len(path) > 1 {
		schema = path[len(path)-2]
	}
	if p.r == nil {
		p.fail(pgerror.UndefinedTable, "relation \"%s\" does not exist", strings.Join(path, "."))
	}
	rel, err := p.r.Relation(p.ctx, schema, path[len(path)-1])
	if err != nil {
		p.context(err)
	}
	if rel == nil {
		p.fail(pgerror.UndefinedTable, "relation \"%s\" does not exist", strings.Join(path, "."))
	}
	return rel
}

// rowType returns the type of the rows of a relation, or a composite type.
func (p *parser) rowType(path []string) types.Type {
	schema := ""
	if len(path) > 1 {
		schema = path[len(path)-2]
	}
	if p.r == nil {
		p.relation(path)
	}
	if t := catalog.FindType(p.r, schema, path[len(path)-1]); t.Valid() && t.IsComposite() {
		return t
	}
	rel := p.relation(path)
	return p.r.Types().RowType(rel).Type()
}
