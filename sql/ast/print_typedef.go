package ast

// typeStatements writes the statements about types and domains, and reports whether s is one.
func (p *printer) typeStatements(s Statement) bool {
	switch s := s.(type) {
	case *CreateType:
		p.createType(s)
	case *CreateDomain:
		p.str("CREATE DOMAIN ")
		p.idents(s.Name, ".")
		p.str(" AS ")
		p.typeName(&s.Column.Type)
		for i := range s.Column.Written {
			p.columnAttribute(&s.Column, &s.Column.Written[i])
		}
	case *AlterEnum:
		p.alterEnum(s)
	case *AlterType:
		p.str("ALTER TYPE ")
		p.idents(s.Name, ".")
		for i := range s.Changes {
			p.when(i > 0, ",")
			p.attributeChange(&s.Changes[i])
		}
	case *RenameAttribute:
		p.str("ALTER TYPE ")
		p.idents(s.Name, ".")
		p.str(" RENAME ATTRIBUTE ")
		p.ident(s.From)
		p.str(" TO ")
		p.ident(s.To)
		p.when(s.Cascade, " CASCADE")
	case *AlterDomain:
		p.alterDomain(s)
	default:
		return false
	}
	return true
}

func (p *printer) strings(list []string) {
	p.str("(")
	for i, s := range list {
		p.when(i > 0, ", ")
		p.quoted(s)
	}
	p.str(")")
}

func (p *printer) createType(s *CreateType) {
	p.str("CREATE TYPE ")
	p.idents(s.Name, ".")
	switch s.Kind {
	case "COMPOSITE":
		p.str(" AS (")
		for i := range s.Attributes {
			p.when(i > 0, ", ")
			p.attribute(&s.Attributes[i])
		}
		p.str(")")
	case "ENUM":
		p.str(" AS ENUM ")
		p.strings(s.Labels)
	case "RANGE":
		p.str(" AS RANGE ")
		p.definitions(s.Items)
	}
}

func (p *printer) attribute(a *ColumnTypeDef) {
	p.ident(a.Name)
	p.str(" ")
	p.typeName(&a.Type)
	if a.Collation != nil {
		p.str(" COLLATE ")
		p.idents(a.Collation, ".")
	}
}

func (p *printer) alterEnum(s *AlterEnum) {
	p.str("ALTER TYPE ")
	p.idents(s.Name, ".")
	if s.Old != nil {
		p.str(" RENAME VALUE ")
		p.quoted(*s.Old)
		p.str(" TO ")
		p.quoted(s.Value)
		return
	}
	p.str(" ADD VALUE ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.quoted(s.Value)
	if s.Place != "" {
		p.str(" " + s.Place + " ")
		p.quoted(s.Neighbour)
	}
}

func (p *printer) attributeChange(c *AttributeChange) {
	p.str(" " + c.Action + " ATTRIBUTE ")
	switch c.Action {
	case "DROP":
		p.when(c.IfExists, "IF EXISTS ")
		p.ident(c.Attribute.Name)
	case "ALTER":
		p.ident(c.Attribute.Name)
		p.str(" TYPE ")
		p.typeName(&c.Attribute.Type)
		if c.Attribute.Collation != nil {
			p.str(" COLLATE ")
			p.idents(c.Attribute.Collation, ".")
		}
	default:
		p.attribute(&c.Attribute)
	}
	p.when(c.Cascade, " CASCADE")
}

func (p *printer) alterDomain(s *AlterDomain) {
	p.str("ALTER DOMAIN ")
	p.idents(s.Name, ".")
	p.str(" " + s.Action)
	switch s.Action {
	case "SET DEFAULT":
		p.str(" ")
		p.expr(s.Default)
	case "ADD":
		p.str(" ")
		p.constraint(s.Constraint, false)
	case "DROP CONSTRAINT":
		p.when(s.IfExists, " IF EXISTS")
		p.str(" ")
		p.ident(s.Old)
		p.when(s.Cascade, " CASCADE")
	case "VALIDATE CONSTRAINT":
		p.str(" ")
		p.ident(s.Old)
	case "RENAME CONSTRAINT":
		p.str(" ")
		p.ident(s.Old)
		p.str(" TO ")
		p.ident(s.New)
	}
}
