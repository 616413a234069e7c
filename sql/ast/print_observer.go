package ast

// observers writes the statements about observers, and reports whether s is one.
func (p *printer) observers(s Statement) bool {
	switch s := s.(type) {
	case *CreateObserver:
		p.createObserver(s)
	case *AlterObserver:
		p.str("ALTER OBSERVER ")
		p.tableName(s.Name)
		p.observerChange(s)
	case *DropObserver:
		p.str("DROP OBSERVER ")
		p.when(s.IfExists, "IF EXISTS ")
		for i, name := range s.Names {
			p.when(i > 0, ", ")
			p.tableName(name)
		}
		p.when(s.Cascade, " CASCADE")
	case *NotifyObserver:
		p.str("NOTIFY OBSERVER ")
		p.tableName(s.Name)
		p.where(s.Where)
	case *WaitObserver:
		p.str("WAIT FOR OBSERVER ")
		p.tableName(s.Name)
	default:
		return false
	}
	return true
}

func (p *printer) createObserver(s *CreateObserver) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.str("OBSERVER ")
	p.ident(s.Name)
	p.str(" ON ")
	p.tableName(s.Table)
	for i := range s.Columns {
		if i == 0 {
			p.str(" (")
		} else {
			p.str(", ")
		}
		p.ident(s.Columns[i].Name)
	}
	p.when(len(s.Columns) > 0, ")")
	if s.When != nil {
		p.str(" WHEN (")
		p.expr(s.When)
		p.str(")")
	}
	p.when(s.From != "", " FROM "+s.From)
	if s.Options != nil {
		p.str(" WITH ")
		p.observerOptions(s.Options)
	}
	if s.Body != nil {
		p.str(" AS ")
		p.quoted(s.Body.SQL)
	}
}

func (p *printer) observerChange(s *AlterObserver) {
	switch s.Change {
	case EnableObserver:
		p.str(" ENABLE")
	case DisableObserver:
		p.str(" DISABLE")
	case SetObserver:
		p.str(" SET ")
		p.observerOptions(s.Options)
	case RenameObserver:
		p.str(" RENAME TO ")
		p.ident(s.NewName)
	case OwnObserver:
		p.str(" OWNER TO ")
		p.role(s.Owner)
	case RetryObserver:
		p.str(" RETRY")
		p.where(s.Where)
	}
}

func (p *printer) observerOptions(options []ObserverOption) {
	p.str("(")
	for i, o := range options {
		p.when(i > 0, ", ")
		p.ident(o.Name)
		if o.Value != "" {
			p.str(" = ")
			p.quoted(o.Value)
		}
	}
	p.str(")")
}
