package ast

import "strings"

// roleStatements writes the statements about roles and privileges, and reports whether s is one.
func (p *printer) roleStatements(s Statement) bool {
	switch s := s.(type) {
	case *CreateRole:
		p.str("CREATE " + s.Kind + " ")
		p.role(&s.Name)
		p.roleOptions(s.Options)
	case *AlterRole:
		p.str("ALTER " + s.Kind + " ")
		p.role(&s.Name)
		p.roleOptions(s.Options)
		if s.Action != "" {
			p.str(" " + s.Action + " USER ")
			p.roles(s.Members)
		}
	case *AlterRoleSet:
		p.str("ALTER " + s.Kind + " ")
		if s.Name == nil {
			p.str("ALL")
		} else {
			p.role(s.Name)
		}
		if s.Database != "" {
			p.str(" IN DATABASE ")
			p.ident(s.Database)
		}
		p.str(" ")
		p.set(s.Set)
	case *Grant:
		p.grant(s)
	case *GrantRole:
		p.grantRole(s)
	case *AlterDefaultPrivileges:
		p.defaultPrivileges(s)
	case *OwnedBy:
		if s.To == nil {
			p.str("DROP OWNED BY ")
		} else {
			p.str("REASSIGN OWNED BY ")
		}
		p.roles(s.Roles)
		if s.To != nil {
			p.str(" TO ")
			p.role(s.To)
		}
		p.when(s.Cascade, " CASCADE")
	default:
		return false
	}
	return true
}

func (p *printer) roleOptions(list []RoleOption) {
	for i := range list {
		o := &list[i]
		p.str(" " + o.Name)
		switch {
		case o.Name == "PASSWORD" || o.Name == "VALID UNTIL":
			p.str(" ")
			p.textOrNull(o.Value)
		case o.Number != "":
			p.str(" " + o.Number)
		case o.Roles != nil:
			p.str(" ")
			p.roles(o.Roles)
		}
	}
}

// grantVerb writes GRANT, or REVOKE of no more than an option.
func (p *printer) grantVerb(revoke bool, only string) {
	if !revoke {
		p.str("GRANT ")
		return
	}
	p.str("REVOKE ")
	p.when(only != "", only+" OPTION FOR ")
}

func grantOnly(optionOnly bool) string {
	if optionOnly {
		return "GRANT"
	}
	return ""
}

func (p *printer) privileges(list []Privilege) {
	for i := range list {
		p.when(i > 0, ", ")
		p.ident(list[i].Name)
		p.columns(list[i].Columns)
	}
}

// grant writes GRANT and REVOKE of privileges.
func (p *printer) grant(s *Grant) {
	p.grantVerb(s.Revoke, grantOnly(s.OptionOnly))
	p.grantedPrivileges(s.Privileges)
	p.str(" ON ")
	p.when(!s.Bare, s.Kind+" ")
	for i := range s.Objects {
		p.when(i > 0, ", ")
		p.objectName(&s.Objects[i])
	}
	p.grantEnd(s.Revoke, s.Grantees, withOption(s.WithOption), s.GrantedBy, s.Cascade)
}

func (p *printer) grantedPrivileges(list []Privilege) {
	if list == nil {
		p.str("ALL")
	}
	for i := range list {
		p.when(i > 0, ", ")
		switch name := list[i].Name; name {
		case "select", "references", "create", "alter system":
			p.str(strings.ToUpper(name))
		case "":
			p.str("ALL")
		default:
			p.ident(name)
		}
		p.columns(list[i].Columns)
	}
}

// grantEnd writes what GRANT and REVOKE have behind the objects.
func (p *printer) grantEnd(revoke bool, grantees []Role, options string, by *Role, cascade bool) {
	if revoke {
		p.str(" FROM ")
	} else {
		p.str(" TO ")
	}
	p.roles(grantees)
	p.str(options)
	if by != nil {
		p.str(" GRANTED BY ")
		p.role(by)
	}
	p.when(cascade, " CASCADE")
}

func withOption(with bool) string {
	if with {
		return " WITH GRANT OPTION"
	}
	return ""
}

func membershipOptions(list []MembershipOption) string {
	var b strings.Builder
	for i, o := range list {
		word := ", "
		if i == 0 {
			word = " WITH "
		}
		value := "FALSE"
		switch {
		case o.Option:
			value = "OPTION"
		case o.Value:
			value = "TRUE"
		}
		b.WriteString(word + o.Name + " " + value)
	}
	return b.String()
}

func (p *printer) grantRole(s *GrantRole) {
	p.grantVerb(s.Revoke, s.Only)
	p.privileges(s.Roles)
	p.grantEnd(s.Revoke, s.Grantees, membershipOptions(s.Options), s.GrantedBy, s.Cascade)
}

func (p *printer) defaultPrivileges(s *AlterDefaultPrivileges) {
	p.str("ALTER DEFAULT PRIVILEGES ")
	for _, o := range s.Options {
		if o.Schemas != nil {
			p.str("IN SCHEMA ")
			p.idents(o.Schemas, ", ")
		} else {
			p.str("FOR ROLE ")
			p.roles(o.Roles)
		}
		p.str(" ")
	}
	g := s.Grant
	p.grantVerb(g.Revoke, grantOnly(g.OptionOnly))
	p.grantedPrivileges(g.Privileges)
	p.str(" ON " + g.Kind)
	p.grantEnd(g.Revoke, g.Grantees, withOption(g.WithOption), g.GrantedBy, g.Cascade)
}
