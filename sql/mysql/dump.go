package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// Kind says how a dump writes a column's values.
type Kind int

// Kinds of columns.
const (
	Number    Kind = iota // digits, perhaps quoted
	Bit                   // b'101', 0x05, or its bytes as a string
	Text                  // a string in the column's character set
	Bytes                 // a string of bytes, or 0x…
	Date                  // may be a zero date
	DateTime              // may be a zero date
	Timestamp             // a DateTime in the dump's time zone
	Time                  // may lie beyond a day
	Plain                 // a string without a character set: UUID
	Skipped               // the column is left out
)

// DumpColumn is a column of a dump's table.
type DumpColumn struct {
	Name    string
	Kind    Kind
	Charset string // of Text, in lower case
	NotNull bool
	Primary bool   // a column of the primary key
	MySQL   string // the type as written in the dump
	Type    string // percodb's type, "" if the column is left out
}

// LeftOut is what a dump asks for and percodb does not get.
type LeftOut struct {
	What      string // with the table's and column's name
	Why       string
	Statement string // to run later; "" if there is none
}

// DumpTable is CREATE TABLE of a dump, mapped to percodb's statements.
type DumpTable struct {
	Schema, Name string
	Columns      []DumpColumn // as the rows of the dump have them
	Create       string       // CREATE TABLE with the primary key
	Keys         []DumpKey    // unique keys, indexes and conditions, in the dump's order
	Comments     []string     // COMMENT ON
	Identity     string       // the name of the AUTO_INCREMENT column, or ""
	Next         uint64       // the value of the table's option AUTO_INCREMENT, 0 without it
	LeftOut      []LeftOut
	Notices      []string
}

// DumpKey is a statement to run after the rows are loaded.
type DumpKey struct{ Name, Statement string }

// DumpOptions say how tables are mapped.
type DumpOptions struct {
	Schema    string // where tables go that name none
	OneSchema bool   // Schema holds for all tables, whatever the dump says
	Charset   string // of the database, "" is utf8mb4
	Numeric   bool   // BIGINT UNSIGNED becomes numeric(20,0) rather than bigint
	Intervals bool   // TIME becomes interval rather than time
	ZeroNull  bool   // zero dates become NULL: a column whose default is one loses NOT NULL
}

// mapping is the conversion of one table.
type mapping struct {
	DumpTable
	o       DumpOptions
	def     definition
	table   ast.TableName
	lines   []string // elements of CREATE TABLE
	primary []string
}

// ConvertDumpTable maps CREATE TABLE as mysqldump, mydumper and Dumpling write it. Where ParseSQL's conversion refuses, it
// leaves out what can be left out and says so. Comments that hold code for MySQL have been replaced by the code.
func ConvertDumpTable(text string, o DumpOptions) (*DumpTable, error) {
	if err := boundSize(text, nil); err != nil {
		return nil, err
	}
	d, ok := split(text)
	if !ok {
		return nil, pgerror.New(pgerror.SyntaxError, "this CREATE TABLE has no list of columns").
			WithHint("Dump the table again, or leave it out with --exclude.")
	}
	m := &mapping{o: o, def: d}
	c := &converter{}
	m.Name, m.Schema = c.name(d.name), o.Schema
	if d.schema != "" && !o.OneSchema {
		m.Schema = c.name(d.schema)
	}
	if c.err != nil {
		return nil, c.err
	}
	m.table, m.Next = ast.TableName{Schema: m.Schema, Name: m.Name}, d.autoIncrement()
	for _, element := range d.elements {
		if err := m.element(element); err != nil {
			return nil, err
		}
	}
	if len(m.lines) == 0 {
		return nil, pgerror.Unsupported("a table without columns that percodb has", "Leave it out with --exclude.")
	}
	m.finish()
	return &m.DumpTable, nil
}

func (m *mapping) finish() {
	m.Create = "CREATE TABLE " + quoteTable(m.table) + " (\n  " + strings.Join(m.lines, ",\n  ") + "\n)"
	for i := range m.Columns {
		if slices.Contains(m.primary, m.Columns[i].Name) {
			m.Columns[i].Primary, m.Columns[i].NotNull = true, true
		}
	}
	if text := m.def.comment(); text != "" {
		m.Comments = append(m.Comments, "COMMENT ON TABLE "+quoteTable(m.table)+" IS "+ast.QuoteString(text))
	}
	if m.def.partitioned {
		m.leave("PARTITION BY of "+m.label(), "ranges of keys split by size", "")
	}
}

func (m *mapping) label() string { return m.Schema + "." + m.Name }

func (m *mapping) leave(what, why, statement string) {
	m.LeftOut = append(m.LeftOut, LeftOut{What: what, Why: why, Statement: statement})
}

func (m *mapping) notice(list ...string) {
	for _, n := range list {
		if !slices.Contains(m.Notices, n) {
			m.Notices = append(m.Notices, n)
		}
	}
}

// element maps a column, key or constraint.
func (m *mapping) element(text string) error {
	list := tokens(text)
	first := list[0]
	switch {
	case first.is("FULLTEXT"), first.is("SPATIAL"), first.is("VECTOR"):
		m.leave("the key "+firstName(list[1:])+" of "+m.label(), "percodb has no such indexes", "-- MySQL: "+text)
		return nil
	case first.is("PERIOD") && len(list) > 1 && list[1].is("FOR"):
		m.leave(text+" of "+m.label(), "percodb has no system-versioned tables; AS OF SYSTEM TIME reads history", "")
		return nil
	case first.is("PRIMARY"), first.is("UNIQUE"), first.is("KEY"), first.is("INDEX"), first.is("CONSTRAINT"), first.is("CHECK"), first.is("FOREIGN"):
		m.key(text)
		return nil
	}
	return m.column(text)
}

// firstName is the first quoted name of a key's definition.
func firstName(list []token) string {
	for _, t := range list {
		if t.text[0] == '`' || t.text[0] == '"' {
			return unquoteName(t.text)
		}
	}
	return ""
}

// createOf parses one element as the table's only one.
func createOf(element string) (*tidb.CreateTableStmt, error) {
	nodes, err := parseTiDB("CREATE TABLE t (" + ansiNames(element) + ")")
	if err != nil {
		return nil, err
	}
	n, ok := nodes[0].(*tidb.CreateTableStmt)
	if !ok || len(nodes) != 1 {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error in the definition")
	}
	return n, nil
}

// ansiNames writes a name in double quotes at the beginning, as dumps with ANSI_QUOTES have it, in backticks.
func ansiNames(element string) string {
	if element == "" || element[0] != '"' {
		return element
	}
	end := tokens(element)[0].end
	return "`" + strings.ReplaceAll(unquoteName(element[:end]), "`", "``") + "`" + element[end:]
}

// converter is one for an element: what it refuses concerns that element alone.
func (m *mapping) converter() *converter { return &converter{} }

func (m *mapping) column(text string) error {
	e, ok := readColumn(text)
	if !ok {
		return pgerror.New(pgerror.SyntaxError, "a column's definition was expected, not %s", firstLine(text))
	}
	n, err := createOf(e.text)
	if err != nil || len(n.Cols) != 1 {
		if n, err = createOf(e.shortened); err != nil || len(n.Cols) != 1 {
			return pgerror.Unsupported("the column "+firstLine(text), "Leave the table out with --exclude, or change the column's type before the dump.")
		}
		m.leave("options of the column "+unquoteName(tokens(text)[0].text)+" of "+m.label(), "they are not known here", "-- MySQL: "+text)
	}
	def := n.Cols[0]
	c := m.converter()
	name := c.name(def.Name.Name.O)
	if c.err != nil {
		return c.err
	}
	for _, o := range def.Options {
		if o.Tp == tidb.ColumnOptionGenerated {
			m.Columns = append(m.Columns, DumpColumn{Name: name, Kind: Skipped, MySQL: e.mysqlType})
			m.leave("the generated column "+m.label()+"."+name, "compute it in the query, or in a view", "-- MySQL: "+text)
			return nil
		}
	}
	return m.mapColumn(name, e, def)
}

// mapColumn adds a column that is not left out.
func (m *mapping) mapColumn(name string, e element, def *tidb.ColumnDef) error {
	col := DumpColumn{Name: name, MySQL: e.mysqlType, Charset: m.charset(e)}
	identity := false
	for _, o := range def.Options {
		identity = identity || o.Tp == tidb.ColumnOptionAutoIncrement
	}
	c := m.converter()
	var check string
	quoted := ast.QuoteIdent(name)
	if col.Type, check, col.Kind = m.special(quoted, e, def); col.Type == "" {
		col.Type, check = c.columnType(quoted, def, identity || !m.o.Numeric)
		col.Kind = kindOf(def, col.Type)
		if c.err != nil {
			return c.err
		}
	}
	if e.charset == "binary" || e.charset == "" && m.def.charset() == "binary" {
		col.Kind, col.Type, check = binaryKind(col.Kind, col.Type, check)
	}
	if def.Tp.GetType() == mysql.TypeJSON || col.Charset == "binary" { // JSON is UTF-8, and so are the elements of ENUM
		col.Charset = "utf8mb4"
	}
	for _, n := range c.notices {
		if strings.HasPrefix(n, "BIGINT UNSIGNED") {
			n = "BIGINT UNSIGNED is bigint with a CHECK: values beyond 9223372036854775807 are refused"
		}
		m.notice(n)
	}
	m.notice(e.dropped...)
	text := quoted + " " + col.Type
	if identity {
		switch col.Type {
		case "smallint", "integer", "bigint":
			m.Identity = name
			text += " GENERATED BY DEFAULT AS IDENTITY"
			if m.Next > 1 {
				text += " (START " + strconv.FormatUint(m.Next, 10) + ")"
			}
		default:
			m.leave("AUTO_INCREMENT of "+m.label()+"."+name, "the column's type is "+col.Type, "")
		}
	}
	zeroDefault := false
	for _, o := range def.Options {
		text += m.columnOption(&col, e, def, o, &zeroDefault)
	}
	if zeroDefault && m.o.ZeroNull && col.NotNull {
		col.NotNull = false
		m.notice("a date column whose default is a zero date loses NOT NULL, and the default")
	}
	if col.NotNull {
		text += " NOT NULL"
	}
	if check != "" {
		text += " CHECK (" + check + ")"
	}
	m.Columns = append(m.Columns, col)
	m.lines = append(m.lines, text)
	return nil
}

// charset is a column's character set.
func (m *mapping) charset(e element) string {
	for _, set := range []string{e.charset, m.def.charset(), strings.ToLower(m.o.Charset)} {
		if set != "" {
			return set
		}
	}
	return "utf8mb4"
}

// binaryKind is a text type under the character set binary.
func binaryKind(kind Kind, typ, check string) (Kind, string, string) {
	if kind != Text || check != "" {
		return kind, typ, check
	}
	return Bytes, "bytea", ""
}

// special maps the types that the dialect refuses, or that TiDB's grammar does not have.
func (m *mapping) special(col string, e element, def *tidb.ColumnDef) (typ, check string, kind Kind) {
	switch e.replaced {
	case "":
	case "uuid":
		return "uuid", "", Plain
	case "inet4", "inet6":
		m.notice(strings.ToUpper(e.replaced) + " is text")
		return "text", "", Plain
	default:
		m.notice(strings.ToUpper(e.replaced) + " is bytea: MySQL's own binary form, for spatial types 4 bytes of SRID before WKB")
		return "bytea", "", Bytes
	}
	bits := func(n int) string { return fmt.Sprintf("%s BETWEEN 0 AND %d", col, uint64(1)<<n-1) }
	switch n := def.Tp.GetFlen(); def.Tp.GetType() {
	case mysql.TypeBit:
		m.notice("BIT(n) is an integer with a CHECK of the range")
		switch {
		case n < 16:
			return "smallint", bits(max(n, 1)), Bit
		case n < 32:
			return "integer", bits(n), Bit
		case n < 64:
			return "bigint", bits(n), Bit
		}
		return "numeric(20,0)", col + " BETWEEN 0 AND 18446744073709551615", Bit
	case mysql.TypeJSON:
		m.notice("JSON is text")
		return "text", "", Text
	case mysql.TypeFloat, mysql.TypeDouble:
		if def.Tp.GetDecimal() >= 0 {
			m.notice("FLOAT(m,d) and DOUBLE(m,d) are not rounded to d places")
			def.Tp.SetDecimal(-1)
		}
	case mysql.TypeDuration:
		if m.o.Intervals {
			return "interval", "", Time
		}
	}
	return "", "", Number
}

// kindOf is how the values of a mapped type are written.
func kindOf(def *tidb.ColumnDef, typ string) Kind {
	switch def.Tp.GetType() {
	case mysql.TypeDate, mysql.TypeNewDate:
		return Date
	case mysql.TypeDatetime:
		return DateTime
	case mysql.TypeTimestamp:
		return Timestamp
	case mysql.TypeDuration:
		return Time
	}
	switch {
	case typ == "bytea":
		return Bytes
	case typ == "text", strings.HasPrefix(typ, "varchar"):
		return Text
	}
	return Number
}

func (m *mapping) columnOption(col *DumpColumn, e element, def *tidb.ColumnDef, o *tidb.ColumnOption, zeroDefault *bool) string {
	name := m.label() + "." + col.Name
	switch o.Tp {
	case tidb.ColumnOptionNotNull:
		col.NotNull = true
	case tidb.ColumnOptionPrimaryKey:
		m.primary = append(m.primary, col.Name)
		return " PRIMARY KEY"
	case tidb.ColumnOptionUniqKey:
		m.unique(m.converter().indexName(m.table, col.Name, nil), ast.QuoteIdent(col.Name))
	case tidb.ColumnOptionDefaultValue:
		return m.defaultValue(col, e, o, zeroDefault)
	case tidb.ColumnOptionCheck:
		m.check(m.converter().indexName(m.table, col.Name+"_check", nil), o.Expr, "the CHECK of "+name, e.mysqlType)
	case tidb.ColumnOptionComment:
		if text := commentOption(o); text != "" {
			m.Comments = append(m.Comments, "COMMENT ON COLUMN "+quoteTable(m.table)+"."+ast.QuoteIdent(col.Name)+" IS "+ast.QuoteString(text))
		}
	case tidb.ColumnOptionOnUpdate:
		m.leave("ON UPDATE CURRENT_TIMESTAMP of "+name, "set the column in UPDATE", "")
	case tidb.ColumnOptionAutoRandom:
		m.leave("AUTO_RANDOM of "+name, "write the value in INSERT, or use a column of type uuid", "")
	}
	return ""
}

func commentOption(o *tidb.ColumnOption) string {
	if v, ok := o.Expr.(*constant); ok {
		return v.GetString()
	}
	return ""
}

// commentOf is the comment of the first column of CREATE TABLE.
func commentOf(node tidb.StmtNode) string {
	if n, ok := node.(*tidb.CreateTableStmt); ok && len(n.Cols) == 1 {
		for _, o := range n.Cols[0].Options {
			if o.Tp == tidb.ColumnOptionComment {
				return commentOption(o)
			}
		}
	}
	return ""
}

// defaultValue maps DEFAULT.
func (m *mapping) defaultValue(col *DumpColumn, e element, o *tidb.ColumnOption, zeroDefault *bool) string {
	if v, ok := o.Expr.(*constant); ok {
		switch {
		case v.value == nil:
			return ""
		case ZeroDate(v.GetString()) && (col.Kind == Date || col.Kind == DateTime || col.Kind == Timestamp):
			*zeroDefault = true
			m.leave("DEFAULT '"+v.GetString()+"' of "+m.label()+"."+col.Name, "percodb has no zero dates", "")
			return ""
		case col.Kind == Bit:
			if b, ok := v.value.(binary); ok {
				n := uint64(0)
				for _, one := range b {
					n = n<<8 | uint64(one)
				}
				return " DEFAULT " + strconv.FormatUint(n, 10)
			}
		case col.Kind == Timestamp:
			return " DEFAULT " + ast.QuoteString(v.GetString()+"+00")
		case col.Kind == Plain || col.Kind == Text || col.Kind == Number:
			if s, ok := v.value.(string); ok {
				return " DEFAULT " + ast.QuoteString(s)
			}
		}
	}
	c := m.converter()
	x := c.value(o.Expr)
	if c.err != nil {
		m.leave("DEFAULT of "+m.label()+"."+col.Name, reason(c.err), "-- MySQL: "+e.text)
		return ""
	}
	text := x.String()
	switch {
	case col.Type == "uuid":
		text = strings.TrimSuffix(text, "::text")
	case col.Kind == Timestamp:
		text = strings.TrimSuffix(text, "::timestamp")
	}
	return " DEFAULT (" + text + ")"
}

// reason is an error's message without its code.
func reason(err error) string {
	if e, ok := err.(*pgerror.Error); ok {
		return e.Message
	}
	return err.Error()
}

// ZeroDate reports whether a date is one that only MySQL has: with a month or day 0.
func ZeroDate(text string) bool {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' {
		return false
	}
	return text[5:7] == "00" || text[8:10] == "00"
}
