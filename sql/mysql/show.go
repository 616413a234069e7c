package mysql

import (
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// show converts SHOW to a query of information_schema.
func (c *converter) show(n *tidb.ShowStmt) ast.Statement {
	if n.Where != nil {
		c.refuse(n, "SHOW … WHERE", "Use LIKE, or query information_schema.")
	}
	schema := "current_schema()"
	if n.DBName != "" {
		schema = ast.QuoteString(c.name(n.DBName))
	}
	switch n.Tp {
	case tidb.ShowDatabases:
		return c.parsed(`SELECT schema_name AS "Database" FROM information_schema.schemata` + c.pattern(n, " WHERE ", "schema_name") + ` ORDER BY 1`)
	case tidb.ShowTables:
		kind := ""
		if n.Full {
			kind = `, table_type AS "Table_type"`
		}
		return c.parsed(`SELECT table_name AS "Tables"` + kind + ` FROM information_schema.tables WHERE table_schema = ` + schema +
			c.pattern(n, " AND ", "table_name") + ` ORDER BY 1`)
	case tidb.ShowColumns:
		t := c.table(n.Table)
		if t.Schema != "" {
			schema = ast.QuoteString(t.Schema)
		}
		column := ""
		if n.Column != nil {
			column = " AND column_name = " + ast.QuoteString(c.name(n.Column.Name.O))
		}
		return c.parsed(`SELECT column_name AS "Field", data_type AS "Type", is_nullable AS "Null", column_default AS "Default"` +
			` FROM information_schema.columns WHERE table_schema = ` + schema + ` AND table_name = ` + ast.QuoteString(t.Name) +
			column + c.pattern(n, " AND ", "column_name") + ` ORDER BY ordinal_position`)
	}
	c.refuse(n, "this form of SHOW", "Use SHOW TABLES, SHOW COLUMNS or SHOW DATABASES, or query pg_catalog.")
	return nil
}

// pattern is the condition of SHOW … LIKE.
func (c *converter) pattern(n *tidb.ShowStmt, before, column string) string {
	if n.Pattern == nil {
		return ""
	}
	k, ok := n.Pattern.Pattern.(*constant)
	s, isString := k.stringValue(ok)
	if !isString {
		c.refuse(n, "SHOW … LIKE with an expression", "Write the pattern.")
	}
	return before + column + " LIKE " + ast.QuoteString(strings.ToLower(s))
}
