package ast

// triggers writes the statements about triggers, rules and policies, and reports whether s is one.
func (p *printer) triggers(s Statement) bool {
	switch s := s.(type) {
	case *CreateTrigger:
		p.createTrigger(s)
	case *CreateEventTrigger:
		p.createEventTrigger(s)
	case *CreateRule:
		p.createRule(s)
	case *CreatePolicy:
		p.str("CREATE POLICY ")
		p.ident(s.Name)
		p.str(" ON ")
		p.tableName(s.Table)
		p.when(s.As != "", " AS "+s.As)
		p.when(s.For != "", " FOR "+s.For)
		p.policy(s.Roles, s.Using, s.Check)
	case *AlterPolicy:
		p.str("ALTER POLICY ")
		p.ident(s.Name)
		p.str(" ON ")
		p.tableName(s.Table)
		p.policy(s.Roles, s.Using, s.Check)
	default:
		return false
	}
	return true
}

func (p *printer) createTrigger(s *CreateTrigger) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.when(s.Constraint, "CONSTRAINT ")
	p.str("TRIGGER ")
	p.ident(s.Name)
	p.str(" " + s.Timing + " ")
	for i, e := range s.Events {
		p.when(i > 0, " OR ")
		p.str(e.Kind)
		if e.Columns != nil {
			p.str(" OF ")
			p.idents(e.Columns, ", ")
		}
	}
	p.str(" ON ")
	p.tableName(s.Table)
	if s.From != nil {
		p.str(" FROM ")
		p.tableName(*s.From)
	}
	for _, attribute := range s.Attributes {
		p.str(" " + attribute)
	}
	for i, t := range s.Transition {
		p.when(i == 0, " REFERENCING")
		p.when(t.New, " NEW")
		p.when(!t.New, " OLD")
		p.when(t.Row, " ROW ")
		p.when(!t.Row, " TABLE ")
		p.ident(t.Name)
	}
	p.when(s.ForEach != "", " FOR EACH "+s.ForEach)
	if s.When != nil {
		p.str(" WHEN (")
		p.expr(s.When)
		p.str(")")
	}
	p.str(" EXECUTE FUNCTION ")
	p.idents(s.Function, ".")
	p.str("(")
	for i, arg := range s.Args {
		p.when(i > 0, ", ")
		p.quoted(arg)
	}
	p.str(")")
}

func (p *printer) createEventTrigger(s *CreateEventTrigger) {
	p.str("CREATE EVENT TRIGGER ")
	p.ident(s.Name)
	p.str(" ON ")
	p.ident(s.Event)
	for i, f := range s.Filters {
		p.when(i == 0, " WHEN ")
		p.when(i > 0, " AND ")
		p.ident(f.Variable)
		p.str(" IN (")
		for j, v := range f.Values {
			p.when(j > 0, ", ")
			p.quoted(v)
		}
		p.str(")")
	}
	p.str(" EXECUTE FUNCTION ")
	p.idents(s.Function, ".")
	p.str("()")
}

func (p *printer) createRule(s *CreateRule) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.str("RULE ")
	p.ident(s.Name)
	p.str(" AS ON " + s.Event + " TO ")
	p.tableName(s.Table)
	p.where(s.Where)
	p.str(" DO ")
	p.when(s.Mode != "", s.Mode+" ")
	if len(s.Actions) == 0 {
		p.str("NOTHING")
		return
	}
	for i, action := range s.Actions {
		p.when(i == 0, "(")
		p.when(i > 0, "; ")
		p.statement(action)
	}
	p.str(")")
}

// policy writes the parts that CREATE POLICY and ALTER POLICY share.
func (p *printer) policy(roles []Role, using, check Expr) {
	if roles != nil {
		p.str(" TO ")
		p.roles(roles)
	}
	if using != nil {
		p.str(" USING (")
		p.expr(using)
		p.str(")")
	}
	if check != nil {
		p.str(" WITH CHECK (")
		p.expr(check)
		p.str(")")
	}
}
