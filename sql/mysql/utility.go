package mysql

import (
	"regexp"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// checkOption finds WITH CHECK OPTION, which TiDB's tree does not tell from its absence.
var checkOption = regexp.MustCompile(`(?i)\bcheck\s+option\s*;?\s*$`)

// other converts what is no query and changes no rows.
func (c *converter) other(node tidb.StmtNode) []ast.Statement {
	one := func(tree ast.Statement) []ast.Statement { return []ast.Statement{tree} }
	switch n := node.(type) {
	case *tidb.CreateTableStmt:
		return c.createTable(n)
	case *tidb.AlterTableStmt:
		return c.alterTable(n)
	case *tidb.CreateIndexStmt:
		return c.createIndex(n)
	case *tidb.DropIndexStmt:
		return one(c.parsed("DROP INDEX " + ifExists(n.IfExists) + ast.QuoteIdent(c.indexName(c.table(n.Table), n.IndexName, nil))))
	case *tidb.DropTableStmt:
		return c.dropTable(n)
	case *tidb.CreateViewStmt:
		if checkOption.MatchString(n.OriginalText()) {
			c.refuse(n, "WITH CHECK OPTION", "Leave it out: views cannot be written to.")
		}
		return c.createView(n)
	case *tidb.RenameTableStmt:
		return c.renameTables(n)
	case *tidb.TruncateTableStmt:
		return one(&ast.Truncate{Tables: []ast.Relation{{TableName: c.table(n.Table)}}, RestartIdentity: true})
	case *tidb.CreateDatabaseStmt:
		if len(n.Options) > 0 {
			c.notice("the options of a database have no effect")
		}
		return one(&ast.CreateSchema{Name: c.name(n.Name.O), IfNotExists: n.IfNotExists})
	case *tidb.DropDatabaseStmt:
		return one(&ast.Drop{Kind: "SCHEMA", Names: []ast.TableName{{Name: c.name(n.Name.O)}}, IfExists: n.IfExists, Cascade: true})
	case *tidb.UseStmt:
		return one(&ast.Set{Name: "search_path", Values: []string{c.name(n.DBName)}})
	case *tidb.ExplainStmt:
		return one(c.explain(n))
	case *tidb.ShowStmt:
		return one(c.show(n))
	case *tidb.SetStmt:
		return c.set(n)
	}
	return one(c.transaction(node))
}

// transaction converts the statements that begin and end transactions.
func (c *converter) transaction(node tidb.StmtNode) ast.Statement {
	chained := func(t tidb.CompletionType) bool {
		if t == tidb.CompletionTypeRelease {
			c.refuse(node, "RELEASE of a transaction's end", "Close the connection.")
		}
		return t == tidb.CompletionTypeChain
	}
	switch n := node.(type) {
	case *tidb.BeginStmt:
		if n.AsOf != nil {
			c.refuse(n, "AS OF TIMESTAMP", "Use AS OF SYSTEM TIME in PostgreSQL's dialect.")
		}
		begin := &ast.Begin{}
		if n.ReadOnly {
			yes := true
			begin.Modes.ReadOnly = &yes
		}
		return begin
	case *tidb.CommitStmt:
		return &ast.Commit{Chain: chained(n.CompletionType)}
	case *tidb.RollbackStmt:
		if n.SavepointName != "" {
			return &ast.RollbackTo{Name: c.name(n.SavepointName)}
		}
		return &ast.Rollback{Chain: chained(n.CompletionType)}
	case *tidb.SavepointStmt:
		return &ast.Savepoint{Name: c.name(n.Name)}
	case *tidb.ReleaseSavepointStmt:
		return &ast.ReleaseSavepoint{Name: c.name(n.Name)}
	}
	c.refuse(nil, "this MySQL statement", "docs/mysql.md lists the statements that are supported.")
	return nil
}

// explain converts EXPLAIN of a query, and DESCRIBE of a table.
func (c *converter) explain(n *tidb.ExplainStmt) ast.Statement {
	if show, ok := n.Stmt.(*tidb.ShowStmt); ok {
		return c.show(show)
	}
	inner := c.rows(n.Stmt)
	if inner == nil {
		c.refuse(n, "EXPLAIN of this statement", "Explain a query or a change of rows.")
		return nil
	}
	if ins, ok := inner.(*ast.Insert); ok && ins.OnConflict != nil && ins.OnConflict.AnyKey {
		c.refuse(n, "EXPLAIN of REPLACE and ON DUPLICATE KEY UPDATE", "Explain the INSERT without it.")
	}
	if c.err != nil {
		return nil
	}
	if f := strings.ToLower(n.Format); f != "" && f != "row" && f != "traditional" {
		c.refuse(n, "EXPLAIN with FORMAT", "Leave it out.")
	}
	st := &ast.Explain{Analyze: n.Analyze, Summary: n.Analyze, Statement: inner, Text: inner.String()}
	if n.Analyze {
		st.Options = []ast.StorageOption{{Name: "analyze"}}
	}
	return st
}

// ignored are the variables that the clients and dumps of MySQL set, and which have no meaning in percodb whatever
// their value is.
var ignored = map[string]bool{
	"character_set_client": true, "character_set_results": true, "character_set_connection": true,
	"collation_connection": true, "sql_notes": true, "net_write_timeout": true, "net_read_timeout": true,
	"wait_timeout": true, "interactive_timeout": true, "sql_log_bin": true,
}

// isolationLevels are MySQL's names in PostgreSQL's words.
var isolationLevels = map[string]string{
	"read-uncommitted": "read uncommitted", "read-committed": "read committed",
	"repeatable-read": "repeatable read", "serializable": "serializable",
}

// set converts SET: a statement for each variable.
func (c *converter) set(n *tidb.SetStmt) []ast.Statement {
	var out []ast.Statement
	for _, v := range n.Variables {
		if !v.IsSystem && v.Name != tidb.SetNames && v.Name != tidb.SetCharset {
			c.refuse(n, "the user variable @"+v.Name, "Keep the value in the client.")
		}
		if v.IsGlobal || v.IsInstance {
			c.refuse(n, "SET GLOBAL", "Use ALTER SYSTEM in PostgreSQL's dialect.")
		}
		out = append(out, c.variable(n, v))
	}
	return out
}

// variable converts one assignment of SET.
func (c *converter) variable(n *tidb.SetStmt, v *tidb.VariableAssignment) ast.Statement {
	name := strings.ToLower(v.Name)
	value, plain := settingValue(v.Value)
	_, reset := v.Value.(*tidb.DefaultExpr)
	switch {
	case v.Name == tidb.SetNames || v.Name == tidb.SetCharset:
		if charset := strings.ToLower(value); !reset && charset != "utf8mb4" && charset != "utf8mb3" && charset != "utf8" {
			c.refuse(n, "the character set "+value, "Use utf8mb4.")
		}
		return &ast.Set{Name: "client_encoding", Values: []string{"UTF8"}}
	case ignored[name]:
		c.notice("the variable " + name + " has no effect")
		return &ast.Set{Name: "client_encoding", Values: []string{"UTF8"}}
	case reset:
		return &ast.Set{Name: name, Default: true}
	case !plain:
		c.refuse(n, "SET to an expression", "Write the value.")
	case name == "tx_isolation_one_shot":
		c.refuse(n, "SET TRANSACTION for the next transaction", "Use SET SESSION TRANSACTION.")
	case name == "tx_isolation" || name == "transaction_isolation":
		level, ok := isolationLevels[strings.ToLower(value)]
		if !ok {
			c.refuse(n, "the isolation level "+value, "Use READ-COMMITTED, REPEATABLE-READ or SERIALIZABLE.")
		}
		return &ast.SetTransaction{Session: true, Modes: ast.TransactionModes{Isolation: level}}
	case name == "tx_read_only" || name == "transaction_read_only":
		yes := value == "1" || strings.EqualFold(value, "on")
		return &ast.SetTransaction{Session: true, Modes: ast.TransactionModes{ReadOnly: &yes}}
	case name == "autocommit":
		if value != "1" && !strings.EqualFold(value, "on") {
			c.refuse(n, "SET autocommit = 0", "Begin transactions with START TRANSACTION.")
		}
		c.notice("autocommit is always on")
		return &ast.Set{Name: "client_encoding", Values: []string{"UTF8"}}
	case name == "time_zone":
		return &ast.Set{Name: "timezone", Values: []string{timeZone(value)}}
	}
	return &ast.Set{Name: name, Values: []string{value}}
}

// timeZone gives a time zone in PostgreSQL's words: an offset of POSIX counts to the west, MySQL's to the east.
func timeZone(value string) string {
	if len(value) < 2 || value[0] != '+' && value[0] != '-' {
		if strings.EqualFold(value, "system") {
			return "UTC"
		}
		return value
	}
	sign := "-"
	if value[0] == '-' {
		sign = "+"
	}
	return "<" + value + ">" + sign + value[1:]
}

// settingValue is the text of a constant or word that SET assigns.
func settingValue(n tidb.ExprNode) (string, bool) {
	switch n := n.(type) {
	case *constant:
		if n.value == nil {
			return "", false
		}
		if b, ok := n.value.(bool); ok {
			if b {
				return "on", true
			}
			return "off", true
		}
		return n.GetString(), true
	case *tidb.ColumnNameExpr:
		if n.Name.Table.O == "" {
			return n.Name.Name.O, true
		}
	case *tidb.UnaryOperationExpr:
		if k, ok := n.V.(*constant); ok && n.Op.String() == "minus" {
			return "-" + k.GetString(), true
		}
	}
	return "", false
}
