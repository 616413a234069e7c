package ast

// objects writes the statements that objects of many kinds have, and reports whether s is one.
func (p *printer) objects(s Statement) bool {
	switch s := s.(type) {
	case *DropObjects:
		p.dropObjects(s)
	case *AlterObject:
		p.str("ALTER ")
		p.objectIf(&s.Object, s.IfExists)
		p.objectChange(&s.Change)
	case *Comment:
		p.str("COMMENT ON ")
		p.object(&s.Object)
		p.str(" IS ")
		p.textOrNull(s.Text)
	case *SecurityLabel:
		p.str("SECURITY LABEL ")
		if s.Provider != "" {
			p.str("FOR ")
			p.ident(s.Provider)
			p.str(" ")
		}
		p.str("ON ")
		p.object(&s.Object)
		p.str(" IS ")
		p.textOrNull(s.Label)
	case *Define:
		p.define(s)
	default:
		return false
	}
	return true
}

func (p *printer) textOrNull(s *string) {
	if s == nil {
		p.str("NULL")
		return
	}
	p.quoted(*s)
}

// object writes an object with its kind.
func (p *printer) object(o *Object) { p.objectIf(o, false) }

func (p *printer) objectIf(o *Object, ifExists bool) {
	p.str(o.Kind + " ")
	p.when(ifExists, "IF EXISTS ")
	p.objectName(o)
}

// objectName writes what follows the kind of an object.
func (p *printer) objectName(o *Object) {
	switch o.Kind {
	case "CAST":
		p.str("(")
		p.typeName(o.Types[0])
		p.str(" AS ")
		p.typeName(o.Types[1])
		p.str(")")
	case "TRANSFORM":
		p.str("FOR ")
		p.typeName(o.Types[0])
		p.str(" LANGUAGE ")
		p.ident(o.Using)
	case "OPERATOR":
		p.operatorPath(o.Name)
		p.operands(o.Types)
	case "OPERATOR CLASS", "OPERATOR FAMILY":
		p.idents(o.Name, ".")
		p.str(" USING ")
		p.ident(o.Using)
	case "LARGE OBJECT":
		p.str(o.Number)
	case "USER MAPPING":
		p.str("FOR ")
		p.role(o.Role)
		p.str(" SERVER ")
		p.ident(o.Using)
	default:
		switch {
		case o.Role != nil:
			p.role(o.Role)
		case len(o.Types) == 1:
			p.typeName(o.Types[0])
		}
		p.idents(o.Name, ".")
		if o.Signature != nil {
			p.signature(o.Signature)
		}
		p.objectOn(o)
	}
}

func (p *printer) objectOn(o *Object) {
	switch {
	case o.OnDomain != nil:
		p.str(" ON DOMAIN ")
		p.typeName(o.OnDomain)
	case o.On != nil:
		p.str(" ON ")
		p.idents(o.On, ".")
	}
}

// operatorPath writes a possibly qualified operator without the word OPERATOR.
func (p *printer) operatorPath(name []string) {
	last := len(name) - 1
	for _, part := range name[:last] {
		p.ident(part)
		p.str(".")
	}
	p.str(name[last])
}

// operands writes (left, right), NONE for nil.
func (p *printer) operands(types []*TypeName) {
	p.str(" (")
	for i, t := range types {
		p.when(i > 0, ", ")
		if t == nil {
			p.str("NONE")
		} else {
			p.typeName(t)
		}
	}
	p.str(")")
}

func (p *printer) dropObjects(s *DropObjects) {
	p.str("DROP ")
	first := &s.Objects[0]
	p.objectIf(first, s.IfExists)
	for i := range s.Objects[1:] {
		p.str(", ")
		p.objectName(&s.Objects[i+1])
	}
	if s.Options != nil {
		p.str(" WITH ")
		p.definitions(s.Options)
	}
	p.when(s.Cascade, " CASCADE")
}

func (p *printer) objectChange(c *ObjectChange) {
	switch {
	case c.Rename != "":
		p.str(" RENAME TO ")
		p.ident(c.Rename)
	case c.Owner != nil:
		p.str(" OWNER TO ")
		p.role(c.Owner)
	case c.Schema != "":
		p.str(" SET SCHEMA ")
		p.ident(c.Schema)
	case c.Extension != "":
		p.when(c.NoDepends, " NO")
		p.str(" DEPENDS ON EXTENSION ")
		p.ident(c.Extension)
	case c.Definitions != nil:
		p.str(" SET ")
		p.definitions(c.Definitions)
	case c.Version:
		p.str(" REFRESH VERSION")
	default:
		p.str(" " + c.Enabled)
	}
}

func (p *printer) role(r *Role) {
	if r.Keyword {
		p.str(r.Name)
		return
	}
	p.ident(r.Name)
}

func (p *printer) roles(list []Role) {
	for i := range list {
		p.when(i > 0, ", ")
		p.role(&list[i])
	}
}

// definitions writes (name = value, …).
func (p *printer) definitions(items []DefItem) {
	p.str("(")
	for i := range items {
		p.when(i > 0, ", ")
		p.ident(items[i].Name)
		if items[i].Value != nil {
			p.str(" = ")
			p.defValue(items[i].Value)
		}
	}
	p.str(")")
}

func (p *printer) defValue(v *DefValue) {
	switch {
	case v.Type != nil:
		p.typeName(v.Type)
	case v.Text != nil:
		p.quoted(v.Text.Value)
	case v.Operator != "":
		p.operator(v.Operator, v.Qualified)
	case v.Number != "":
		p.str(v.Number)
	default:
		p.str(v.Word)
	}
}

func (p *printer) define(s *Define) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.str(s.Kind + " ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	if s.Kind == "OPERATOR" {
		p.operatorPath(s.Name)
	} else {
		p.idents(s.Name, ".")
	}
	if s.Signature != nil {
		p.signature(s.Signature)
	}
	if s.From != nil {
		p.str(" FROM ")
		p.idents(s.From, ".")
	}
	if s.Items != nil {
		p.str(" ")
		p.definitions(s.Items)
	}
}
