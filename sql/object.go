package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// lacking notes that percodb does not have the objects of the kind that the current word names, unless it does: roles,
// privileges and types.
func (p *parser) lacking(pos ast.Pos, verb string) {
	word := p.cur().kw
	next := p.peek(1).kw
	if word == kw.Type || word == kw.Domain || word == kw.Role || word == kw.Group || word == kw.User && next != kw.Mapping ||
		word == kw.Default && next == kw.Privileges || word == kw.Owned && next == kw.By || word == kw.Policy || word == kw.Extension || word == kw.Database || word == kw.Collation ||
		word == kw.Function || word == kw.Operator || word == kw.Cast || word == kw.Procedure || word == kw.Routine || word == kw.Aggregate ||
		word == kw.Text && next == kw.Search || word == kw.Trigger || word == kw.Constraint && next == kw.Trigger || word == kw.Materialized && next == kw.View {
		return
	}
	what := verb + " " + upper(word)
	if word == kw.Event && next == kw.Trigger || word == kw.Foreign && next == kw.Table {
		what += " " + upper(next)
	}
	p.notYet(pos, what, objectHint(word))
}

func objectHint(word kw.Word) string {
	switch word {
	case kw.Trigger:
		return "Run the logic in the application."
	case kw.Rule:
		return "Make a view, or call a function."
	case kw.Event:
		return "Check changes of the schema in what makes them."
	case kw.Type, kw.Domain:
		return "Use a built-in type with a CHECK constraint."
	}
	return ""
}

// nameForm is how an object of some kind is named.
type nameForm uint8

const (
	pathName     nameForm = iota + 1 // any_name
	plainWord                        // one name
	onTable                          // name ON table
	typeNamed                        // a type
	routineName                      // a routine with or without its parameters
	operatorSig                      // an operator with its operands
	opClassName                      // name USING method
	castName                         // (type AS type)
	transform                        // FOR type LANGUAGE name
	largeObject                      // a number
	columnName                       // a path
	userMapping                      // FOR role SERVER name
	roleNamed                        // a role
	numberOfKind                     // no form
)

// kindWords are the kinds of objects by their words, longer ones first where one begins another.
var kindWords = []struct {
	words []kw.Word
	form  nameForm
}{
	{[]kw.Word{kw.Access, kw.Method}, plainWord},
	{[]kw.Word{kw.Aggregate}, routineName},
	{[]kw.Word{kw.Cast}, castName},
	{[]kw.Word{kw.Collation}, pathName},
	{[]kw.Word{kw.Column}, columnName},
	{[]kw.Word{kw.Constraint}, onTable},
	{[]kw.Word{kw.Conversion}, pathName},
	{[]kw.Word{kw.Database}, plainWord},
	{[]kw.Word{kw.Domain}, typeNamed},
	{[]kw.Word{kw.Event, kw.Trigger}, plainWord},
	{[]kw.Word{kw.Extension}, plainWord},
	{[]kw.Word{kw.Foreign, kw.Data, kw.Wrapper}, plainWord},
	{[]kw.Word{kw.Foreign, kw.Table}, pathName},
	{[]kw.Word{kw.Function}, routineName},
	{[]kw.Word{kw.Group}, roleNamed},
	{[]kw.Word{kw.Index}, pathName},
	{[]kw.Word{kw.Language}, plainWord},
	{[]kw.Word{kw.Procedural, kw.Language}, plainWord},
	{[]kw.Word{kw.Large, kw.Object}, largeObject},
	{[]kw.Word{kw.Materialized, kw.View}, pathName},
	{[]kw.Word{kw.Operator, kw.Class}, opClassName},
	{[]kw.Word{kw.Operator, kw.Family}, opClassName},
	{[]kw.Word{kw.Operator}, operatorSig},
	{[]kw.Word{kw.Policy}, onTable},
	{[]kw.Word{kw.Procedure}, routineName},
	{[]kw.Word{kw.Publication}, plainWord},
	{[]kw.Word{kw.Role}, roleNamed},
	{[]kw.Word{kw.Routine}, routineName},
	{[]kw.Word{kw.Rule}, onTable},
	{[]kw.Word{kw.Schema}, plainWord},
	{[]kw.Word{kw.Sequence}, pathName},
	{[]kw.Word{kw.Server}, plainWord},
	{[]kw.Word{kw.Statistics}, pathName},
	{[]kw.Word{kw.Subscription}, plainWord},
	{[]kw.Word{kw.Table}, pathName},
	{[]kw.Word{kw.Tablespace}, plainWord},
	{[]kw.Word{kw.Text, kw.Search, kw.Configuration}, pathName},
	{[]kw.Word{kw.Text, kw.Search, kw.Dictionary}, pathName},
	{[]kw.Word{kw.Text, kw.Search, kw.Parser}, pathName},
	{[]kw.Word{kw.Text, kw.Search, kw.Template}, pathName},
	{[]kw.Word{kw.Transform}, transform},
	{[]kw.Word{kw.Trigger}, onTable},
	{[]kw.Word{kw.Type}, typeNamed},
	{[]kw.Word{kw.User, kw.Mapping}, userMapping},
	{[]kw.Word{kw.User}, roleNamed},
	{[]kw.Word{kw.View}, pathName},
}

// objectKind reads the words of a kind of object.
func (p *parser) objectKind() (kind string, form nameForm) {
	for i := range kindWords {
		k := &kindWords[i]
		if k.words[0] != p.cur().kw || !p.acceptWords(k.words...) {
			continue
		}
		words := make([]string, len(k.words))
		for j, w := range k.words {
			words[j] = upper(w)
		}
		kind = strings.Join(words, " ")
		if kind == "PROCEDURAL LANGUAGE" {
			kind = "LANGUAGE"
		}
		return kind, k.form
	}
	p.unexpected()
	return "", 0
}

// object reads the name of an object of a kind.
func (p *parser) object(kind string, form nameForm) ast.Object {
	o := ast.Object{Pos: p.here(), Kind: kind}
	switch form {
	case pathName, columnName:
		o.Name = p.path()
	case plainWord:
		o.Name = []string{p.colID()}
	case roleNamed:
		role := p.role()
		o.Role = &role
	case onTable:
		o.Name = []string{p.colID()}
		p.expectWord(kw.On)
		if kind == "CONSTRAINT" && p.acceptWord(kw.Domain) {
			typ := p.typeName()
			o.OnDomain = &typ
			break
		}
		o.On = p.path()
	case typeNamed:
		o.Types = []*ast.TypeName{p.typePointer()}
	case routineName:
		p.routineObject(&o)
	case operatorSig:
		o.Name = p.operatorPath()
		o.Types = p.operandTypes()
	case opClassName:
		o.Name = p.path()
		p.expectWord(kw.Using)
		o.Using = p.colID()
	case largeObject:
		o.Number = p.signedNumber()
	default:
		p.specialObject(&o, form)
	}
	return o
}

// specialObject reads the names of casts, transforms and user mappings.
func (p *parser) specialObject(o *ast.Object, form nameForm) {
	switch form {
	case castName:
		p.expect('(')
		from := p.typePointer()
		p.expectWord(kw.As)
		o.Types = []*ast.TypeName{from, p.typePointer()}
		p.expect(')')
	case transform:
		p.expectWord(kw.For)
		o.Types = []*ast.TypeName{p.typePointer()}
		p.expectWord(kw.Language)
		o.Using = p.colID()
	case userMapping:
		p.expectWord(kw.For)
		role := p.mappedRole()
		o.Role = &role
		p.expectWord(kw.Server)
		o.Using = p.colID()
	}
}

func (p *parser) typePointer() *ast.TypeName {
	typ := p.typeName()
	return &typ
}

// routineObject reads a routine's name with its parameters, if they are written.
func (p *parser) routineObject(o *ast.Object) {
	o.Name = p.functionName()
	switch {
	case o.Kind == "AGGREGATE":
		o.Signature = p.aggregateSignature()
	case p.is('('):
		o.Signature = &ast.Signature{Params: p.parameterList(false)}
	}
}

// operatorPath reads a possibly qualified operator; the symbol is last.
func (p *parser) operatorPath() []string {
	var name []string
	for p.err == nil && isColID(p.cur()) {
		name = append(name, p.colID())
		p.expect('.')
	}
	return append(name, p.symbol())
}

// operandTypes reads (left, right), each a type or NONE.
func (p *parser) operandTypes() []*ast.TypeName {
	p.expect('(')
	var types []*ast.TypeName
	for first := true; first || p.accept(','); first = false {
		if p.acceptWord(kw.NoneWord) {
			types = append(types, nil)
			continue
		}
		types = append(types, p.typePointer())
	}
	switch {
	case p.err != nil:
	case p.is(')') && len(types) == 1:
		p.fail(pgerror.New(pgerror.SyntaxError, "missing argument").At(int(p.here())).
			WithHint("Use NONE to denote the missing argument of a unary operator."))
	case len(types) != 2 || types[0] == nil && types[1] == nil:
		p.unexpected()
	}
	p.expect(')')
	return types
}

// role reads the name of a role.
func (p *parser) role() ast.Role {
	r := ast.Role{Pos: p.here()}
	switch p.cur().kw {
	case kw.CurrentRole, kw.CurrentUser, kw.SessionUser:
		r.Name, r.Keyword = upper(p.cur().kw), true
		p.advance()
		return r
	}
	if r.Name = p.nonReserved(); r.Name == "none" {
		p.failAt(r.Pos, pgerror.ReservedName, `role name "none" is reserved`)
	}
	return r
}

// mappedRole reads the role of a user mapping, which may be USER.
func (p *parser) mappedRole() ast.Role {
	if pos := p.here(); p.acceptWord(kw.User) {
		return ast.Role{Pos: pos, Name: "USER", Keyword: true}
	}
	return p.role()
}

func (p *parser) roles() []ast.Role {
	list := []ast.Role{p.role()}
	for p.accept(',') {
		list = append(list, p.role())
	}
	return list
}

// definitions reads (name [= value], …).
func (p *parser) definitions() []ast.DefItem {
	p.expect('(')
	var items []ast.DefItem
	for first := true; first || p.accept(','); first = false {
		item := ast.DefItem{Pos: p.here(), Name: p.colLabel()}
		if p.acceptOp('=') {
			item.Value = p.defValue()
		}
		items = append(items, item)
	}
	p.expect(')')
	return items
}

// defValue reads the value of a definition.
func (p *parser) defValue() *ast.DefValue {
	t := p.cur()
	switch {
	case isString(t):
		return &ast.DefValue{Text: &ast.Text{Value: p.stringLit()}}
	case t.kind == tokLiteral, (p.isOp('-') || p.isOp('+')) && p.peek(1).kind == tokLiteral:
		return &ast.DefValue{Number: p.signedNumber()}
	case t.kind == tokOp, t.kw == kw.Operator && p.peek(1).kind == '(':
		op, qualified := p.operatorName()
		return &ast.DefValue{Operator: op, Qualified: qualified}
	case t.kind == tokIdent && (t.kw == kw.NoneWord || t.kw.Category() == kw.Reserved):
		p.advance()
		return &ast.DefValue{Word: upper(t.kw)}
	}
	refused := p.refused
	typ := p.funcType() // It may be a function with its argument types, which read like modifiers.
	p.refused = refused
	return &ast.DefValue{Type: &typ}
}

// dropObjects reads DROP of the objects that percodb does not have.
func (p *parser) dropObjects(pos ast.Pos) ast.Statement {
	if p.acceptWords(kw.Owned, kw.By) {
		st := &ast.OwnedBy{Pos: pos, Roles: p.roles()}
		st.Cascade = p.cascade()
		return st
	}
	kind, form := p.objectKind()
	if form == columnName || form == largeObject || kind == "CONSTRAINT" {
		p.unexpected()
	}
	st := &ast.DropObjects{Pos: pos, IfExists: p.ifExists()}
	st.Objects = []ast.Object{p.object(kind, form)}
	for dropsMany(kind, form) && p.accept(',') {
		st.Objects = append(st.Objects, p.object(kind, form))
	}
	switch {
	case kind == "DATABASE":
		if p.acceptWord(kw.With) || p.is('(') {
			st.Options = p.dropDatabaseOptions()
		}
	case form != roleNamed && form != userMapping && kind != "TABLESPACE":
		st.Cascade = p.cascade()
	}
	return st
}

func (p *parser) dropDatabaseOptions() []ast.DefItem {
	p.expect('(')
	var items []ast.DefItem
	for first := true; first || p.accept(','); first = false {
		items = append(items, ast.DefItem{Pos: p.here(), Name: "force"})
		p.expectWord(kw.Force)
	}
	p.expect(')')
	return items
}

// dropsMany reports whether DROP of a kind of objects takes a list.
func dropsMany(kind string, form nameForm) bool {
	switch form {
	case onTable, opClassName, castName, transform, userMapping:
		return false
	}
	return kind != "SUBSCRIPTION" && kind != "TABLESPACE" && kind != "DATABASE"
}

// comment reads COMMENT ON.
func (p *parser) comment(pos ast.Pos) ast.Statement {
	p.expectWord(kw.On)
	if p.acceptObserver() {
		return p.commentObserver(pos)
	}
	switch p.cur().kw {
	case kw.Table, kw.Column, kw.Index, kw.View, kw.Sequence, kw.Schema, kw.Database, kw.Constraint:
	default:
		p.lacking(pos, "COMMENT ON")
	}
	c := &ast.Comment{Pos: pos, Object: p.commented()}
	p.expectWord(kw.Is)
	c.Text = p.textOrNull()
	return c
}

// commented reads the object of COMMENT and SECURITY LABEL.
func (p *parser) commented() ast.Object {
	kind, form := p.objectKind()
	if form == userMapping || kind == "USER" || kind == "GROUP" {
		p.unexpected()
	}
	o := p.object(kind, form)
	if form == roleNamed && p.err == nil && o.Role.Keyword {
		p.pos--
		p.unexpected()
	}
	return o
}

func (p *parser) textOrNull() *string {
	if p.acceptWord(kw.Null) {
		return nil
	}
	text := p.stringLit()
	return &text
}

// securityLabel reads SECURITY LABEL.
func (p *parser) securityLabel(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Label)
	st := &ast.SecurityLabel{Pos: pos}
	if p.acceptWord(kw.For) {
		st.Provider = p.roleName()
	}
	p.expectWord(kw.On)
	st.Object = p.commented()
	p.expectWord(kw.Is)
	st.Label = p.textOrNull()
	return st
}

// objectChange reads the changes that objects of many kinds have, of those allowed; nil if there is none of them.
func (p *parser) objectChange(allowed string) *ast.ObjectChange {
	c := &ast.ObjectChange{Pos: p.here()}
	can := func(what byte) bool { return strings.IndexByte(allowed, what) >= 0 }
	switch {
	case can('r') && p.acceptWords(kw.Rename, kw.To):
		c.Rename = p.colID()
	case can('o') && p.acceptWords(kw.Owner, kw.To):
		role := p.role()
		c.Owner = &role
	case can('s') && p.isWord(kw.Set) && p.peek(1).kw == kw.Schema && isColID(p.peek(2)):
		p.acceptWords(kw.Set, kw.Schema)
		c.Schema = p.colID()
	case can('e') && (p.isWord(kw.Depends) || p.isWord(kw.No) && p.peek(1).kw == kw.Depends):
		c.NoDepends = p.acceptWord(kw.No)
		p.expectWords(kw.Depends, kw.On, kw.Extension)
		c.Extension = p.colID()
	case can('d') && p.isWord(kw.Set) && p.peek(1).kind == '(':
		p.advance()
		c.Definitions = p.definitions()
	case can('v') && p.acceptWords(kw.Refresh, kw.Version):
		c.Version = true
	default:
		return nil
	}
	return c
}
