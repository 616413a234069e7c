package ast

import "strings"

// maintenance writes the statements about notifications, storage and databases, and reports whether s is one.
func (p *printer) maintenance(s Statement) bool {
	switch s := s.(type) {
	case *Listen:
		p.str("LISTEN ")
		p.ident(s.Channel)
	case *Unlisten:
		p.str("UNLISTEN ")
		if s.Channel == "" {
			p.str("*")
		} else {
			p.ident(s.Channel)
		}
	case *Notify:
		p.str("NOTIFY ")
		p.ident(s.Channel)
		if s.Payload != nil {
			p.str(", ")
			p.quoted(*s.Payload)
		}
	case *Checkpoint:
		p.str("CHECKPOINT")
	case *Load:
		p.str("LOAD ")
		p.quoted(s.File)
	case *Cluster:
		p.str("CLUSTER")
		p.utilityOptions(s.Options)
		if s.Table != nil {
			p.str(" ")
			p.tableName(*s.Table)
		}
		if s.Index != "" {
			p.str(" USING ")
			p.ident(s.Index)
		}
	case *Reindex:
		p.str("REINDEX")
		p.utilityOptions(s.Options)
		p.str(" " + s.Kind + " ")
		p.when(s.Concurrently, "CONCURRENTLY ")
		p.tableName(s.Name)
	case *CreateMaterializedView:
		p.materializedView(s)
	case *RefreshMaterializedView:
		p.str("REFRESH MATERIALIZED VIEW ")
		p.when(s.Concurrently, "CONCURRENTLY ")
		p.tableName(s.Name)
		p.when(s.WithNoData, " WITH NO DATA")
	case *PreparedTransaction:
		p.str(s.Action + " ")
		p.quoted(s.Name)
	default:
		return p.databases(s)
	}
	return true
}

// utilityOptions writes the list of options of EXPLAIN, VACUUM and their kin.
func (p *printer) utilityOptions(options []StorageOption) {
	if options != nil {
		p.str(" ")
		p.options(options, " ")
	}
}

func (p *printer) materializedView(s *CreateMaterializedView) {
	p.str("CREATE ")
	p.when(s.Unlogged, "UNLOGGED ")
	p.str("MATERIALIZED VIEW ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.tableName(s.Name)
	p.columns(s.Columns)
	p.tableOptions(&CreateTable{Method: s.Method, Options: s.Options, Tablespace: s.Tablespace})
	p.str(" AS ")
	p.query(s.Query)
	p.when(s.WithNoData, " WITH NO DATA")
}

// databases writes the statements about databases and tablespaces, and reports whether s is one.
func (p *printer) databases(s Statement) bool {
	switch s := s.(type) {
	case *Database:
		p.createOrAlter(s.Alter, "DATABASE ")
		p.ident(s.Name)
		for i := range s.Options {
			p.databaseOption(&s.Options[i])
		}
	case *AlterDatabaseSet:
		p.str("ALTER DATABASE ")
		p.ident(s.Name)
		p.str(" ")
		if s.Set == nil {
			p.str("SET TABLESPACE ")
			p.ident(s.Tablespace)
			break
		}
		p.set(s.Set)
	case *CreateTablespace:
		p.str("CREATE TABLESPACE ")
		p.ident(s.Name)
		if s.Owner != nil {
			p.str(" OWNER ")
			p.role(s.Owner)
		}
		p.str(" LOCATION ")
		p.quoted(s.Location)
		if s.Options != nil {
			p.str(" WITH ")
			p.options(s.Options, "=")
		}
	case *AlterTablespace:
		p.str("ALTER TABLESPACE ")
		p.ident(s.Name)
		p.when(s.Reset, " RESET ")
		p.when(!s.Reset, " SET ")
		p.options(s.Options, "=")
	default:
		return false
	}
	return true
}

func (p *printer) databaseOption(o *DatabaseOption) {
	p.str(" ")
	switch o.Name {
	case "CONNECTION LIMIT", "encoding", "location", "owner", "tablespace", "template":
		p.str(strings.ToUpper(o.Name))
	default:
		p.ident(o.Name)
	}
	p.str(" = ")
	switch {
	case o.Default:
		p.str("DEFAULT")
	case o.Text != nil:
		p.quoted(o.Text.Value)
	default:
		p.str(o.Number)
	}
}
