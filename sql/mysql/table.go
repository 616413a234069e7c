package mysql

import (
	"fmt"
	"strconv"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/types"

	"github.com/percodb/percodb/sql/ast"
)

// A schema change is written as PostgreSQL's text, which package sql parses: its trees keep how columns and
// constraints were written, and its checks hold for both dialects.

func quoteTable(t ast.TableName) string {
	if t.Schema == "" {
		return ast.QuoteIdent(t.Name)
	}
	return ast.QuoteIdent(t.Schema) + "." + ast.QuoteIdent(t.Name)
}

func quoteAll(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, ast.QuoteIdent(name))
	}
	return strings.Join(quoted, ", ")
}

// createTable converts CREATE TABLE; keys that are not unique become its Indexes.
func (c *converter) createTable(n *tidb.CreateTableStmt) []ast.Statement {
	name := c.table(n.Table)
	if n.ReferTable != nil {
		c.refuse(n, "CREATE TABLE … LIKE", "Write out the columns.")
	}
	if n.Partition != nil {
		c.refuse(n, "PARTITION BY", "Leave it out: ranges of keys split by size.")
	}
	start := c.tableOptions(n.Options)
	var elements, indexes []string
	for _, col := range n.Cols {
		elements = append(elements, c.column(name, col, start))
	}
	for _, k := range n.Constraints {
		element, index := c.constraint(name, k)
		if element != "" {
			elements = append(elements, element)
		}
		if index != "" {
			indexes = append(indexes, index)
		}
	}
	head := "CREATE "
	if n.TemporaryKeyword != tidb.TemporaryNone {
		head += "TEMPORARY "
	}
	head += "TABLE "
	if n.IfNotExists {
		head += "IF NOT EXISTS "
	}
	head += quoteTable(name)
	if n.Select != nil {
		if len(elements) > 0 {
			c.refuse(n, "CREATE TABLE with columns AS SELECT", "Create the table, then INSERT … SELECT.")
		}
		q := c.query(n.Select)
		if c.err != nil {
			return nil
		}
		return []ast.Statement{&ast.CreateTable{Name: name, IfNotExists: n.IfNotExists, AsQuery: q}}
	}
	if c.err != nil {
		return nil
	}
	tree, ok := c.parsed(head + " (" + strings.Join(elements, ", ") + ")").(*ast.CreateTable)
	for _, text := range indexes {
		if index, isIndex := c.parsed(text).(*ast.CreateIndex); ok && isIndex {
			tree.Indexes = append(tree.Indexes, index)
		}
	}
	if c.err != nil {
		return nil
	}
	return []ast.Statement{tree}
}

// tableOptions reports the options of a table that have no effect, and gives AUTO_INCREMENT's start.
func (c *converter) tableOptions(list []*tidb.TableOption) uint64 {
	start := uint64(0)
	for _, o := range list {
		switch o.Tp {
		case tidb.TableOptionAutoIncrement:
			start = o.UintValue
		case tidb.TableOptionCharset, tidb.TableOptionCollate:
			c.notice("CHARACTER SET and COLLATE have no effect: text is UTF-8 and is compared by its bytes")
		case tidb.TableOptionUnion, tidb.TableOptionTTL, tidb.TableOptionEncryption:
			c.refuse(nil, "this table option", "Leave it out.")
		case tidb.TableOptionEngine:
			c.notice("ENGINE has no effect")
		case tidb.TableOptionComment:
			c.notice("COMMENT of a table or column is left out: use COMMENT ON in PostgreSQL's dialect")
		default:
			c.notice("the options of a table that say how it is stored have no effect")
		}
	}
	return start
}

// columnType is a MySQL type in percodb: its name there, and the condition that keeps values in MySQL's range.
func (c *converter) columnType(col string, n *tidb.ColumnDef, identity bool) (typ, check string) {
	t := n.Tp
	unsigned := mysql.HasUnsignedFlag(t.GetFlag())
	between := func(low, high string) string { return col + " BETWEEN " + low + " AND " + high }
	flen, scale := t.GetFlen(), t.GetDecimal()
	switch t.GetType() {
	case mysql.TypeTiny:
		if unsigned {
			return "smallint", between("0", "255")
		}
		return "smallint", between("-128", "127")
	case mysql.TypeShort:
		if unsigned {
			return "integer", between("0", "65535")
		}
		return "smallint", ""
	case mysql.TypeInt24:
		if unsigned {
			return "integer", between("0", "16777215")
		}
		return "integer", between("-8388608", "8388607")
	case mysql.TypeLong:
		if unsigned {
			return "bigint", between("0", "4294967295")
		}
		return "integer", ""
	case mysql.TypeLonglong:
		switch {
		case unsigned && identity:
			c.notice("BIGINT UNSIGNED AUTO_INCREMENT ends at 9223372036854775807")
			return "bigint", col + " >= 0"
		case unsigned:
			return "numeric(20,0)", between("0", "18446744073709551615")
		}
		return "bigint", ""
	case mysql.TypeNewDecimal:
		if unsigned {
			check = col + " >= 0"
		}
		if flen < 0 {
			flen, scale = 10, 0
		}
		return fmt.Sprintf("numeric(%d,%d)", flen, max(scale, 0)), check
	case mysql.TypeFloat, mysql.TypeDouble:
		if unsigned {
			check = col + " >= 0"
		}
		if t.GetDecimal() >= 0 {
			c.refuse(n, "FLOAT and DOUBLE with a number of digits", "Use DECIMAL.")
		}
		if t.GetType() == mysql.TypeFloat {
			return "real", check
		}
		return "double precision", check
	}
	return c.otherType(col, n, t)
}

// otherType is columnType for what is no number.
func (c *converter) otherType(col string, n *tidb.ColumnDef, t *types.FieldType) (typ, check string) {
	flen, fraction := t.GetFlen(), max(t.GetDecimal(), 0)
	binaryString := t.GetCharset() == "binary"
	switch t.GetType() {
	case mysql.TypeDate:
		return "date", ""
	case mysql.TypeDatetime:
		return fmt.Sprintf("timestamp(%d)", fraction), ""
	case mysql.TypeTimestamp:
		return fmt.Sprintf("timestamp(%d) with time zone", fraction), ""
	case mysql.TypeDuration:
		c.notice("TIME is a time of the day: values beyond 24 hours are refused")
		return fmt.Sprintf("time(%d)", fraction), ""
	case mysql.TypeYear:
		return "smallint", col + " = 0 OR " + col + " BETWEEN 1901 AND 2155"
	case mysql.TypeVarchar, mysql.TypeString, mysql.TypeVarString:
		if binaryString {
			if flen > 0 {
				check = fmt.Sprintf("octet_length(%s) <= %d", col, flen)
			}
			return "bytea", check
		}
		if t.GetType() == mysql.TypeString {
			c.notice("CHAR(n) keeps its trailing spaces, as VARCHAR(n) does")
		}
		return fmt.Sprintf("varchar(%d)", max(flen, 1)), ""
	case mysql.TypeTinyBlob, mysql.TypeBlob, mysql.TypeMediumBlob, mysql.TypeLongBlob:
		if binaryString {
			return "bytea", ""
		}
		return "text", ""
	case mysql.TypeEnum:
		c.notice("ENUM is text with a CHECK: it sorts by its text")
		return "text", col + " IN (" + quotedStrings(t.GetElems()) + ")"
	case mysql.TypeSet:
		c.notice("SET is text with a CHECK: elements stay in the order written")
		return "text", setCheck(col, t.GetElems())
	}
	c.refuse(n, "the type of column \""+n.Name.Name.O+"\"", "docs/mysql.md lists the types that are supported.")
	return "text", ""
}

func quotedStrings(list []string) string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, ast.QuoteString(s))
	}
	return strings.Join(quoted, ", ")
}

// setCheck holds for the empty string and for elements with commas between them.
func setCheck(col string, elems []string) string {
	var alternatives []string
	for _, s := range elems {
		var b strings.Builder
		for _, r := range s {
			if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		alternatives = append(alternatives, b.String())
	}
	one := "(" + strings.Join(alternatives, "|") + ")"
	return col + " ~ " + ast.QuoteString("^("+one+"(,"+one+")*)?$")
}

// column converts a column's definition.
func (c *converter) column(table ast.TableName, n *tidb.ColumnDef, start uint64) string {
	name := c.name(n.Name.Name.O)
	col := ast.QuoteIdent(name)
	identity := false
	for _, o := range n.Options {
		identity = identity || o.Tp == tidb.ColumnOptionAutoIncrement
	}
	typ, check := c.columnType(col, n, identity)
	text := col + " " + typ
	if identity {
		text += " GENERATED BY DEFAULT AS IDENTITY"
		if start > 0 {
			text += " (START " + strconv.FormatUint(start, 10) + ")"
		}
	}
	for _, o := range n.Options {
		text += c.columnOption(table, name, n, o)
	}
	if check != "" {
		text += " CHECK (" + check + ")"
	}
	return text
}

func (c *converter) columnOption(table ast.TableName, name string, n *tidb.ColumnDef, o *tidb.ColumnOption) string {
	switch o.Tp {
	case tidb.ColumnOptionAutoIncrement, tidb.ColumnOptionNoOption:
		return ""
	case tidb.ColumnOptionNotNull:
		return " NOT NULL"
	case tidb.ColumnOptionNull:
		return " NULL"
	case tidb.ColumnOptionPrimaryKey:
		return " PRIMARY KEY"
	case tidb.ColumnOptionUniqKey:
		return " CONSTRAINT " + ast.QuoteIdent(c.indexName(table, name, nil)) + " UNIQUE"
	case tidb.ColumnOptionDefaultValue:
		x := c.value(o.Expr)
		return " DEFAULT (" + x.String() + ")"
	case tidb.ColumnOptionCheck:
		if !o.Enforced {
			c.refuse(n, "CHECK … NOT ENFORCED", "Leave it out.")
		}
		return constraintName(o.ConstraintName) + " CHECK (" + c.condition(o.Expr).String() + ")"
	case tidb.ColumnOptionComment:
		c.notice("COMMENT of a table or column is left out: use COMMENT ON in PostgreSQL's dialect")
		return ""
	case tidb.ColumnOptionCollate:
		c.notice("CHARACTER SET and COLLATE have no effect: text is UTF-8 and is compared by its bytes")
		return ""
	case tidb.ColumnOptionReference:
		c.notice("REFERENCES of a single column has no effect, as in MySQL")
		return ""
	case tidb.ColumnOptionOnUpdate:
		c.refuse(n, "ON UPDATE CURRENT_TIMESTAMP", "Set the column in UPDATE.")
	case tidb.ColumnOptionGenerated:
		c.refuse(n, "a generated column", "Compute it in a view.")
	default:
		c.refuse(n, "this option of a column", "Leave it out.")
	}
	return ""
}

func constraintName(name string) string {
	if name == "" {
		return ""
	}
	return " CONSTRAINT " + ast.QuoteIdent(strings.ToLower(name))
}

// indexName is the name of a key: MySQL's are a table's, percodb's are the schema's.
func (c *converter) indexName(table ast.TableName, name string, columns []string) string {
	if name == "" {
		name = strings.Join(columns, "_")
	}
	return cut(table.Name + "_" + strings.ToLower(name))
}

// keyColumns converts the columns of a key: as they stand in an index, and their names.
func (c *converter) keyColumns(list []*tidb.IndexPartSpecification, constraint bool) (text string, names []string) {
	var parts []string
	for _, k := range list {
		if k.Expr != nil {
			if constraint {
				c.refuse(k, "a unique key over an expression", "Use CREATE UNIQUE INDEX.")
			}
			c.refuse(k, "an index over an expression", "Index a column.")
			continue
		}
		if k.Length > 0 {
			c.refuse(k, "an index over a prefix of a column", "Index the whole column.")
		}
		name := c.name(k.Column.Name.O)
		names = append(names, name)
		part := ast.QuoteIdent(name)
		if k.Desc && !constraint {
			part += " DESC"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", "), names
}

// constraint converts a constraint or key of a table: to an element of CREATE TABLE, or to CREATE INDEX.
func (c *converter) constraint(table ast.TableName, n *tidb.Constraint) (element, index string) {
	switch n.Tp {
	case tidb.ConstraintPrimaryKey:
		columns, _ := c.keyColumns(n.Keys, true)
		return "PRIMARY KEY (" + columns + ")", ""
	case tidb.ConstraintUniq, tidb.ConstraintUniqKey, tidb.ConstraintUniqIndex:
		columns, names := c.keyColumns(n.Keys, true)
		return "CONSTRAINT " + ast.QuoteIdent(c.indexName(table, n.Name, names)) + " UNIQUE (" + columns + ")", ""
	case tidb.ConstraintKey, tidb.ConstraintIndex:
		columns, names := c.keyColumns(n.Keys, false)
		return "", "CREATE INDEX " + ast.QuoteIdent(c.indexName(table, n.Name, names)) + " ON " + quoteTable(table) + " (" + columns + ")"
	case tidb.ConstraintCheck:
		if !n.Enforced {
			c.refuse(n, "CHECK … NOT ENFORCED", "Leave it out.")
		}
		return strings.TrimPrefix(constraintName(n.Name)+" CHECK ("+c.condition(n.Expr).String()+")", " "), ""
	case tidb.ConstraintForeignKey:
		return c.foreignKey(n), ""
	}
	c.refuse(n, "this kind of key", "Use KEY or UNIQUE KEY.")
	return "", ""
}

func (c *converter) foreignKey(n *tidb.Constraint) string {
	columns, _ := c.keyColumns(n.Keys, true)
	target, _ := c.keyColumns(n.Refer.IndexPartSpecifications, true)
	text := strings.TrimPrefix(constraintName(n.Name)+" ", " ") + "FOREIGN KEY (" + columns + ") REFERENCES " +
		quoteTable(c.table(n.Refer.Table)) + " (" + target + ")"
	if o := n.Refer.OnDelete; o != nil && o.ReferOpt != tidb.ReferOptionNoOption {
		text += " ON DELETE " + o.ReferOpt.String()
	}
	if o := n.Refer.OnUpdate; o != nil && o.ReferOpt != tidb.ReferOptionNoOption {
		text += " ON UPDATE " + o.ReferOpt.String()
	}
	return text
}
