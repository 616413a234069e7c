package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// createRole reads CREATE ROLE, USER or GROUP.
func (p *parser) createRole(pos ast.Pos) ast.Statement {
	st := &ast.CreateRole{Pos: pos, Kind: upper(p.cur().kw)}
	p.advance()
	st.Name = p.role()
	p.acceptWord(kw.With)
	for p.roleOption(&st.Options, true) {
	}
	return st
}

// roleWords are the options of roles that are no keywords.
var roleWords = map[string]bool{
	"superuser": true, "nosuperuser": true, "createrole": true, "nocreaterole": true, "replication": true, "noreplication": true,
	"createdb": true, "nocreatedb": true, "login": true, "nologin": true, "bypassrls": true, "nobypassrls": true, "noinherit": true,
}

// roleOption reads an option of a role and reports whether there was one; some are for CREATE only.
func (p *parser) roleOption(list *[]ast.RoleOption, create bool) bool {
	o := ast.RoleOption{Pos: p.here()}
	text := func() *string {
		s := p.stringLit()
		return &s
	}
	switch t := p.cur(); {
	case p.acceptWords(kw.Encrypted, kw.Password):
		o.Name, o.Value = "PASSWORD", text()
	case p.acceptWord(kw.Password):
		o.Name, o.Value = "PASSWORD", p.textOrNull()
	case p.acceptWords(kw.Unencrypted, kw.Password):
		p.failAt(o.Pos, pgerror.FeatureNotSupported, "UNENCRYPTED PASSWORD is no longer supported")
	case p.acceptWord(kw.Inherit):
		o.Name = "INHERIT"
	case p.acceptWords(kw.Connection, kw.Limit):
		o.Name, o.Number = "CONNECTION LIMIT", p.signedNumber()
	case p.acceptWords(kw.Valid, kw.Until):
		o.Name, o.Value = "VALID UNTIL", text()
	case p.acceptWord(kw.User):
		o.Name, o.Roles = "USER", p.roles()
	case !create && t.kw != kw.None:
		return false
	case p.acceptWord(kw.Sysid):
		o.Name, o.Number = "SYSID", p.signedNumber()
	case p.acceptWord(kw.Admin):
		o.Name, o.Roles = "ADMIN", p.roles()
	case p.acceptWord(kw.Role):
		o.Name, o.Roles = "ROLE", p.roles()
	case p.acceptWords(kw.In, kw.Role), p.acceptWords(kw.In, kw.Group):
		o.Name, o.Roles = "IN ROLE", p.roles()
	case t.kind == tokIdent && t.kw == kw.None:
		name := p.colID()
		if !roleWords[name] {
			p.failAt(o.Pos, pgerror.SyntaxError, `unrecognized role option "%s"`, name)
		}
		o.Name = strings.ToUpper(name)
	default:
		return false
	}
	*list = append(*list, o)
	return p.err == nil
}

// alterRole reads ALTER ROLE, USER or GROUP.
func (p *parser) alterRole(pos ast.Pos) ast.Statement {
	kind := upper(p.cur().kw)
	p.advance()
	if kind != "GROUP" && p.acceptWord(kw.All) {
		return p.alterRoleSet(&ast.AlterRoleSet{Pos: pos, Kind: kind})
	}
	name := p.role()
	if c := p.objectChange("r"); c != nil {
		return &ast.AlterObject{Pos: pos, Object: ast.Object{Pos: name.Pos, Kind: kind, Role: &name}, Change: *c}
	}
	if kind != "GROUP" && (p.isWord(kw.In) || p.isWord(kw.Set) || p.isWord(kw.Reset)) {
		return p.alterRoleSet(&ast.AlterRoleSet{Pos: pos, Kind: kind, Name: &name})
	}
	st := &ast.AlterRole{Pos: pos, Kind: kind, Name: name}
	if kind == "GROUP" {
		if st.Action = upper(p.cur().kw); !p.acceptWord(kw.Add) {
			p.expectWord(kw.Drop)
		}
		p.expectWord(kw.User)
		st.Members = p.roles()
		return st
	}
	p.acceptWord(kw.With)
	for p.roleOption(&st.Options, false) {
	}
	return st
}

func (p *parser) alterRoleSet(st *ast.AlterRoleSet) ast.Statement {
	if p.acceptWord(kw.In) {
		p.expectWord(kw.Database)
		st.Database = p.colID()
	}
	st.Set = p.settingClause()
	return st
}

// grant reads GRANT or REVOKE behind its first word.
func (p *parser) grant(pos ast.Pos, revoke bool) ast.Statement {
	optionOnly := revoke && p.acceptWords(kw.Grant, kw.Option, kw.For)
	only := ""
	if revoke && !optionOnly {
		for _, word := range []kw.Word{kw.Admin, kw.Inherit, kw.Set} {
			if p.acceptWords(word, kw.Option, kw.For) {
				only = upper(word)
			}
		}
	}
	privileges := p.privileges()
	if !p.isWord(kw.On) && privileges != nil && !optionOnly {
		return p.grantRole(&ast.GrantRole{Pos: pos, Revoke: revoke, Only: only, Roles: privileges})
	}
	if only != "" {
		p.unexpected()
	}
	g := &ast.Grant{Pos: pos, Revoke: revoke, OptionOnly: optionOnly, Privileges: privileges}
	p.expectWord(kw.On)
	p.grantTarget(g)
	p.grantEnd(g)
	return g
}

func (p *parser) toOrFrom(revoke bool) {
	if revoke {
		p.expectWord(kw.From)
	} else {
		p.expectWord(kw.To)
	}
}

// grantEnd reads what follows the objects of GRANT and REVOKE.
func (p *parser) grantEnd(g *ast.Grant) {
	p.toOrFrom(g.Revoke)
	for first := true; first || p.accept(','); first = false {
		p.acceptWord(kw.Group)
		g.Grantees = append(g.Grantees, p.role())
	}
	g.WithOption = !g.Revoke && p.acceptWords(kw.With, kw.Grant, kw.Option)
	g.GrantedBy = p.grantedBy()
	g.Cascade = g.Revoke && p.cascade()
}

func (p *parser) grantedBy() *ast.Role {
	if !p.acceptWords(kw.Granted, kw.By) {
		return nil
	}
	role := p.role()
	return &role
}

func (p *parser) grantRole(g *ast.GrantRole) ast.Statement {
	p.toOrFrom(g.Revoke)
	g.Grantees = p.roles()
	if !g.Revoke && p.acceptWord(kw.With) {
		for first := true; first || p.accept(','); first = false {
			g.Options = append(g.Options, p.membershipOption())
		}
	}
	g.GrantedBy = p.grantedBy()
	g.Cascade = g.Revoke && p.cascade()
	return g
}

// membershipOption reads ADMIN, INHERIT or SET with OPTION, TRUE or FALSE.
func (p *parser) membershipOption() ast.MembershipOption {
	o := ast.MembershipOption{Pos: p.here(), Name: strings.ToUpper(p.colLabel())}
	if o.Name != "ADMIN" && o.Name != "INHERIT" && o.Name != "SET" {
		p.later(pgerror.New(pgerror.SyntaxError, "unrecognized role option %q", strings.ToLower(o.Name)).At(int(o.Pos)))
	}
	switch {
	case p.acceptWord(kw.Option):
		o.Value, o.Option = true, true
	case p.acceptWord(kw.True):
		o.Value = true
	default:
		p.expectWord(kw.False)
	}
	return o
}

// privileges reads a list of privileges or roles; nil for ALL.
func (p *parser) privileges() []ast.Privilege {
	if pos := p.here(); p.acceptWord(kw.All) {
		p.acceptWord(kw.Privileges)
		if p.is('(') {
			return []ast.Privilege{{Pos: pos, Columns: p.columnList()}}
		}
		return nil
	}
	var list []ast.Privilege
	for first := true; first || p.accept(','); first = false {
		v := ast.Privilege{Pos: p.here()}
		switch {
		case p.isWord(kw.Select), p.isWord(kw.References), p.isWord(kw.Create):
			v.Name = p.colLabel()
		case p.acceptWords(kw.Alter, kw.System):
			v.Name = "alter system"
		default:
			v.Name = p.colID()
		}
		if p.is('(') {
			v.Columns = p.columnList()
		}
		list = append(list, v)
	}
	return list
}

// grantKinds are the kinds of objects that GRANT names, but for tables.
var grantKinds = []struct {
	words []kw.Word
	form  nameForm
}{
	{[]kw.Word{kw.Table}, pathName},
	{[]kw.Word{kw.Sequence}, pathName},
	{[]kw.Word{kw.Foreign, kw.Data, kw.Wrapper}, plainWord},
	{[]kw.Word{kw.Foreign, kw.Server}, plainWord},
	{[]kw.Word{kw.Function}, routineName},
	{[]kw.Word{kw.Procedure}, routineName},
	{[]kw.Word{kw.Routine}, routineName},
	{[]kw.Word{kw.Database}, plainWord},
	{[]kw.Word{kw.Domain}, pathName},
	{[]kw.Word{kw.Language}, plainWord},
	{[]kw.Word{kw.Large, kw.Object}, largeObject},
	{[]kw.Word{kw.Parameter}, pathName},
	{[]kw.Word{kw.Schema}, plainWord},
	{[]kw.Word{kw.Tablespace}, plainWord},
	{[]kw.Word{kw.Type}, pathName},
	{[]kw.Word{kw.All, kw.Tables, kw.In, kw.Schema}, plainWord},
	{[]kw.Word{kw.All, kw.Sequences, kw.In, kw.Schema}, plainWord},
	{[]kw.Word{kw.All, kw.Functions, kw.In, kw.Schema}, plainWord},
	{[]kw.Word{kw.All, kw.Procedures, kw.In, kw.Schema}, plainWord},
	{[]kw.Word{kw.All, kw.Routines, kw.In, kw.Schema}, plainWord},
}

// grantTarget reads the objects of GRANT.
func (p *parser) grantTarget(g *ast.Grant) {
	form := pathName
	g.Kind, g.Bare = "TABLE", true
	for _, k := range grantKinds {
		// A table may have the name of a kind.
		if k.words[0] != p.cur().kw || !isColLabel(p.peek(len(k.words))) && p.peek(len(k.words)).kind != tokLiteral ||
			len(k.words) == 1 && (p.peek(1).kw == kw.To || p.peek(1).kw == kw.From) || !p.acceptWords(k.words...) {
			continue
		}
		words := make([]string, len(k.words))
		for i, w := range k.words {
			words[i] = upper(w)
		}
		g.Kind, g.Bare, form = strings.Join(words, " "), false, k.form
		break
	}
	for first := true; first || p.accept(','); first = false {
		g.Objects = append(g.Objects, p.object(g.Kind, form))
	}
}

// defaultPrivileges reads ALTER DEFAULT PRIVILEGES.
func (p *parser) defaultPrivileges(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Default, kw.Privileges)
	st := &ast.AlterDefaultPrivileges{Pos: pos}
	for {
		o := ast.DefaultPrivilegesOption{Pos: p.here()}
		if p.acceptWords(kw.In, kw.Schema) {
			o.Schemas = p.names()
		} else if p.acceptWords(kw.For, kw.Role) || p.acceptWords(kw.For, kw.User) {
			o.Roles = p.roles()
		} else {
			break
		}
		st.Options = append(st.Options, o)
	}
	g := &ast.Grant{Pos: p.here(), Revoke: p.acceptWord(kw.Revoke)}
	if !g.Revoke {
		p.expectWord(kw.Grant)
	}
	g.OptionOnly = g.Revoke && p.acceptWords(kw.Grant, kw.Option, kw.For)
	g.Privileges = p.privileges()
	p.expectWord(kw.On)
	switch word := p.cur().kw; word {
	case kw.Tables, kw.Functions, kw.Routines, kw.Sequences, kw.Types, kw.Schemas:
		g.Kind = upper(word)
		p.advance()
	default:
		p.unexpected()
	}
	p.grantEnd(g)
	if g.GrantedBy != nil {
		p.unexpected()
	}
	st.Grant = g
	return st
}

// reassign reads REASSIGN OWNED.
func (p *parser) reassign(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Owned, kw.By)
	st := &ast.OwnedBy{Pos: pos, Roles: p.roles()}
	p.expectWord(kw.To)
	to := p.role()
	st.To = &to
	return st
}
