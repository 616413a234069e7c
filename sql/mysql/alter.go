package mysql

import (
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// alterTable converts ALTER TABLE: a statement for each of its changes.
func (c *converter) alterTable(n *tidb.AlterTableStmt) []ast.Statement {
	table := c.table(n.Table)
	head := "ALTER TABLE " + quoteTable(table) + " "
	var out []ast.Statement
	add := func(text string) { out = append(out, c.parsed(text)) }
	for _, s := range n.Specs {
		switch s.Tp {
		case tidb.AlterTableAddColumns:
			if s.Position != nil && s.Position.Tp != tidb.ColumnPositionNone {
				c.refuse(n, "ADD COLUMN … FIRST or AFTER", "The column is added at the end: leave it out.")
			}
			for _, col := range s.NewColumns {
				add(head + "ADD COLUMN " + c.column(table, col, 0))
			}
			for _, k := range s.NewConstraints {
				c.addConstraint(table, k, add)
			}
		case tidb.AlterTableAddConstraint:
			c.addConstraint(table, s.Constraint, add)
		case tidb.AlterTableDropColumn:
			add(head + "DROP COLUMN " + ifExists(s.IfExists) + ast.QuoteIdent(c.name(s.OldColumnName.Name.O)))
		case tidb.AlterTableDropIndex:
			add("DROP INDEX " + ast.QuoteIdent(c.indexName(table, s.Name, nil)))
		case tidb.AlterTableRenameTable:
			add(head + "RENAME TO " + ast.QuoteIdent(c.name(s.NewTable.Name.O)))
		case tidb.AlterTableRenameColumn:
			add(head + "RENAME COLUMN " + ast.QuoteIdent(c.name(s.OldColumnName.Name.O)) + " TO " + ast.QuoteIdent(c.name(s.NewColumnName.Name.O)))
		case tidb.AlterTableAlterColumn:
			add(head + c.columnDefault(s.NewColumns[0]))
		case tidb.AlterTableOption:
			c.tableOptions(s.Options)
		case tidb.AlterTableLock, tidb.AlterTableAlgorithm:
			c.notice("LOCK and ALGORITHM have no effect: schema changes do not hold up readers")
		default:
			c.refuse(n, "this change of ALTER TABLE", "Use PostgreSQL's ALTER TABLE in PostgreSQL's dialect.")
		}
	}
	if len(out) == 0 && c.err == nil {
		c.refuse(n, "ALTER TABLE that changes storage options alone", "Leave it out.")
	}
	return out
}

func ifExists(yes bool) string {
	if yes {
		return "IF EXISTS "
	}
	return ""
}

func (c *converter) addConstraint(table ast.TableName, n *tidb.Constraint, add func(string)) {
	element, index := c.constraint(table, n)
	if element != "" {
		add("ALTER TABLE " + quoteTable(table) + " ADD " + element)
	}
	if index != "" {
		add(index)
	}
}

// columnDefault is ALTER COLUMN SET DEFAULT, or DROP DEFAULT where there is no option.
func (c *converter) columnDefault(n *tidb.ColumnDef) string {
	text := "ALTER COLUMN " + ast.QuoteIdent(c.name(n.Name.Name.O))
	if len(n.Options) == 0 {
		return text + " DROP DEFAULT"
	}
	return text + " SET DEFAULT (" + c.value(n.Options[0].Expr).String() + ")"
}

func (c *converter) createIndex(n *tidb.CreateIndexStmt) []ast.Statement {
	table := c.table(n.Table)
	text := "CREATE "
	switch n.KeyType {
	case tidb.IndexKeyTypeNone:
	case tidb.IndexKeyTypeUnique:
		text += "UNIQUE "
	default:
		c.refuse(n, "this kind of index", "Use CREATE INDEX or CREATE UNIQUE INDEX.")
	}
	text += "INDEX "
	if n.IfNotExists {
		text += "IF NOT EXISTS "
	}
	columns, _ := c.keyColumns(n.IndexPartSpecifications, false)
	return []ast.Statement{c.parsed(text + ast.QuoteIdent(c.indexName(table, n.IndexName, nil)) + " ON " + quoteTable(table) + " (" + columns + ")")}
}

// dropTable converts DROP TABLE and DROP VIEW.
func (c *converter) dropTable(n *tidb.DropTableStmt) []ast.Statement {
	drop := &ast.Drop{Kind: "TABLE", IfExists: n.IfExists}
	if n.IsView {
		drop.Kind = "VIEW"
	}
	for _, t := range n.Tables {
		drop.Names = append(drop.Names, c.table(t))
	}
	return []ast.Statement{drop}
}

func (c *converter) createView(n *tidb.CreateViewStmt) []ast.Statement {
	if n.CheckOption != tidb.CheckOptionCascaded {
		c.refuse(n, "WITH CHECK OPTION", "Leave it out: views cannot be written to.")
	}
	q := c.query(n.Select)
	if c.err != nil {
		return nil
	}
	return []ast.Statement{&ast.CreateView{
		Name: c.table(n.ViewName), OrReplace: n.OrReplace, Columns: c.names(n.Cols), Query: q, Text: q.String(),
	}}
}

func (c *converter) renameTables(n *tidb.RenameTableStmt) []ast.Statement {
	var out []ast.Statement
	for _, r := range n.TableToTables {
		from, to := c.table(r.OldTable), c.table(r.NewTable)
		if !strings.EqualFold(from.Schema, to.Schema) && to.Schema != "" {
			c.refuse(n, "moving a table to another database", "Create it there, then INSERT … SELECT.")
		}
		out = append(out, c.parsed("ALTER TABLE "+quoteTable(from)+" RENAME TO "+ast.QuoteIdent(to.Name)))
	}
	return out
}
