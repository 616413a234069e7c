package ast

// foreign writes the statements about extensions, foreign data and replication, and reports whether s is one.
func (p *printer) foreign(s Statement) bool {
	switch s := s.(type) {
	case *CreateExtension:
		p.createExtension(s)
	case *AlterExtension:
		p.str("ALTER EXTENSION ")
		p.ident(s.Name)
		p.str(" " + s.Action)
		switch {
		case s.Object != nil:
			p.str(" ")
			p.object(s.Object)
		case s.Version != nil:
			p.str(" TO ")
			p.quoted(*s.Version)
		}
	case *DataWrapper:
		p.createOrAlter(s.Alter, "FOREIGN DATA WRAPPER ")
		p.ident(s.Name)
		for _, h := range s.Handlers {
			p.str(" " + h.Kind)
			if h.Name != nil {
				p.str(" ")
				p.idents(h.Name, ".")
			}
		}
		p.foreignOptions(s.Options)
	case *Server:
		p.server(s)
	case *UserMapping:
		p.createOrAlter(s.Alter, "USER MAPPING ")
		p.when(s.IfNotExists, "IF NOT EXISTS ")
		p.str("FOR ")
		p.role(&s.Role)
		p.str(" SERVER ")
		p.ident(s.Server)
		p.foreignOptions(s.Options)
	case *CreateForeignTable:
		p.tableLike("CREATE FOREIGN TABLE ", s.Table)
		p.str(" SERVER ")
		p.ident(s.Server)
		p.foreignOptions(s.Options)
	case *ImportForeignSchema:
		p.importSchema(s)
	default:
		return p.replication(s)
	}
	return true
}

func (p *printer) createOrAlter(alter bool, what string) {
	p.when(alter, "ALTER ")
	p.when(!alter, "CREATE ")
	p.str(what)
}

func (p *printer) createExtension(s *CreateExtension) {
	p.str("CREATE EXTENSION ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.ident(s.Name)
	for _, o := range s.Options {
		p.str(" " + o.Kind)
		switch o.Kind {
		case "SCHEMA":
			p.str(" ")
			p.ident(o.Value)
		case "VERSION":
			p.str(" ")
			p.quoted(o.Value)
		}
	}
}

func (p *printer) foreignOptions(options []ForeignOption) {
	for i, o := range options {
		p.when(i == 0, " OPTIONS (")
		p.when(i > 0, ", ")
		p.when(o.Action != "", o.Action+" ")
		p.ident(o.Name)
		if o.Action != "DROP" {
			p.str(" ")
			p.quoted(o.Value)
		}
	}
	p.when(len(options) > 0, ")")
}

func (p *printer) server(s *Server) {
	p.createOrAlter(s.Alter, "SERVER ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.ident(s.Name)
	if s.Type != nil {
		p.str(" TYPE ")
		p.quoted(*s.Type)
	}
	if s.Version != nil || s.NoVersion {
		p.str(" VERSION ")
		p.textOrNull(s.Version)
	}
	if !s.Alter {
		p.str(" FOREIGN DATA WRAPPER ")
		p.ident(s.Wrapper)
	}
	p.foreignOptions(s.Options)
}

func (p *printer) importSchema(s *ImportForeignSchema) {
	p.str("IMPORT FOREIGN SCHEMA ")
	p.ident(s.Schema)
	if s.Filter != "" {
		p.str(" " + s.Filter + " (")
		p.tableNames(s.Tables)
		p.str(")")
	}
	p.str(" FROM SERVER ")
	p.ident(s.Server)
	p.str(" INTO ")
	p.ident(s.Into)
	p.foreignOptions(s.Options)
}

// replication writes the statements about publications and subscriptions, and reports whether s is one.
func (p *printer) replication(s Statement) bool {
	switch s := s.(type) {
	case *Publication:
		p.publication(s)
	case *CreateSubscription:
		p.str("CREATE SUBSCRIPTION ")
		p.ident(s.Name)
		p.str(" CONNECTION ")
		p.quoted(s.Connection)
		p.str(" PUBLICATION ")
		p.idents(s.Publications, ", ")
		p.withDefinitions(s.Options)
	case *AlterSubscription:
		p.str("ALTER SUBSCRIPTION ")
		p.ident(s.Name)
		p.str(" " + s.Action + " ")
		switch s.Action {
		case "SET", "SKIP":
			p.definitions(s.Options)
		case "CONNECTION":
			p.quoted(s.Connection)
		default:
			p.idents(s.Publications, ", ")
			p.withDefinitions(s.Options)
		}
	default:
		return false
	}
	return true
}

func (p *printer) withDefinitions(items []DefItem) {
	if items != nil {
		p.str(" WITH ")
		p.definitions(items)
	}
}

func (p *printer) relation(r *Relation) {
	p.when(r.Only, "ONLY ")
	p.tableName(r.TableName)
}

func (p *printer) relations(list []Relation) {
	for i := range list {
		p.when(i > 0, ", ")
		p.relation(&list[i])
	}
}

func (p *printer) publication(s *Publication) {
	p.createOrAlter(s.Action != "", "PUBLICATION ")
	p.ident(s.Name)
	switch {
	case s.AllTables:
		p.str(" FOR ALL TABLES")
	case s.Action == "" && len(s.Objects) > 0:
		p.str(" FOR ")
	case s.Action != "":
		p.str(" " + s.Action + " ")
	}
	for i := range s.Objects {
		p.when(i > 0, ", ")
		p.publicationObject(&s.Objects[i])
	}
	if s.Action != "" && s.Options != nil {
		p.definitions(s.Options)
		return
	}
	p.withDefinitions(s.Options)
}

func (p *printer) publicationObject(o *PublicationObject) {
	if o.Table == nil {
		p.str("TABLES IN SCHEMA ")
		if o.Current {
			p.str("CURRENT_SCHEMA")
		} else {
			p.ident(o.Schema)
		}
		return
	}
	p.str("TABLE ")
	p.relation(o.Table)
	p.columns(o.Columns)
	if o.Where != nil {
		p.str(" WHERE (")
		p.expr(o.Where)
		p.str(")")
	}
}
