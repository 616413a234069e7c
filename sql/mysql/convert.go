package mysql

import (
	"slices"
	"strings"
	"unicode/utf8"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// converter converts one statement. The first refusal is kept in err; what is made after it is not used.
type converter struct {
	text    string      // the whole text
	start   int         // byte offset of the statement
	params  []int       // offsets of the question marks, rising
	numbers map[int]int // by offset, of those that were $n
	notices []string
	err     error
	// chars characters precede byte at: the cursor of pos, as nodes come nearly in the text's order.
	at, chars int
	// inserted is the table that ON DUPLICATE KEY UPDATE changes, "" elsewhere.
	inserted string
}

// statement converts a statement to one of percodb's or, for tables with keys, to several.
func (c *converter) statement(node tidb.StmtNode) ([]ast.Statement, error) {
	c.numberParameters(node)
	var out []ast.Statement
	if tree := c.rows(node); tree != nil {
		out = []ast.Statement{tree}
	} else if c.err == nil {
		out = c.other(node)
	}
	if c.err != nil {
		return nil, c.err
	}
	return out, nil
}

// rows converts a query or a statement that changes rows; nil for others.
func (c *converter) rows(node tidb.Node) ast.Statement {
	switch n := node.(type) {
	case *tidb.SelectStmt, *tidb.SetOprStmt:
		return c.query(n)
	case *tidb.InsertStmt:
		return c.insert(n)
	case *tidb.UpdateStmt:
		return c.update(n)
	case *tidb.DeleteStmt:
		return c.delete(n)
	}
	return nil
}

// parsed parses PostgreSQL's text for a statement that has no expression of the client's at a position.
func (c *converter) parsed(text string) ast.Statement {
	if c.err != nil {
		return nil
	}
	tree, err := sql.ParseStatement(text)
	if err != nil {
		if e, ok := err.(*pgerror.Error); ok {
			e.Position = 0
		}
		c.err = err
		return nil
	}
	if q, ok := tree.(*ast.Query); ok { // the text's literals are not the client's
		ast.InspectQuery(q, ast.Visitor{Expr: func(x ast.Expr) {
			if lit, ok := x.(*ast.Literal); ok {
				lit.Slot = -1
			}
		}})
	}
	return tree
}

// numbering collects the offsets of question marks.
type numbering struct{ offsets []int }

func (v *numbering) Enter(n tidb.Node) (tidb.Node, bool) {
	if p, ok := n.(*parameter); ok {
		v.offsets = append(v.offsets, p.offset)
	}
	return n, false
}

func (*numbering) Leave(n tidb.Node) (tidb.Node, bool) { return n, true }

// maxParams is how many parameters the wire protocol can carry.
const maxParams = 65535

func (c *converter) numberParameters(node tidb.Node) {
	v := &numbering{}
	node.Accept(v)
	slices.Sort(v.offsets)
	c.params = slices.Compact(v.offsets)
	if len(c.params) > maxParams && c.err == nil {
		c.err = pgerror.New(pgerror.ProgramLimitExceeded, "a statement has at most %d parameters", maxParams)
	}
	numbered := 0
	for _, offset := range c.params {
		if c.numbers[offset] > 0 {
			numbered++
		}
	}
	if numbered > 0 && numbered < len(c.params) && c.err == nil {
		c.err = pgerror.Unsupported("a statement with parameters of both forms", "Write all of them as question marks, or all as $1, $2, ….")
	}
}

// number is the number of the parameter at an offset.
func (c *converter) number(offset int) int {
	if n := c.numbers[offset]; n > 0 {
		return n
	}
	i, _ := slices.BinarySearch(c.params, offset)
	return i + 1
}

// highest is the highest number of a parameter.
func (c *converter) highest() int {
	highest := 0
	for _, offset := range c.params {
		highest = max(highest, c.number(offset))
	}
	return highest
}

// refuse records that what has no equal meaning, with what to use instead.
func (c *converter) refuse(at tidb.Node, what, hint string) {
	if c.err != nil {
		return
	}
	e := pgerror.Unsupported(what, hint)
	if at != nil {
		e = e.At(int(c.pos(at)))
	}
	c.err = e
}

func (c *converter) notice(text string) {
	if !slices.Contains(c.notices, text) {
		c.notices = append(c.notices, text)
	}
}

// pos is the character position of a node, 0 where TiDB's parser keeps none.
func (c *converter) pos(n tidb.Node) ast.Pos {
	offset := n.OriginTextPosition()
	if offset == 0 || offset < c.start || offset > len(c.text) {
		return 0
	}
	if offset >= c.at {
		c.chars += utf8.RuneCountInString(c.text[c.at:offset])
	} else {
		c.chars -= utf8.RuneCountInString(c.text[offset:c.at])
	}
	c.at = offset
	return ast.Pos(c.chars + 1)
}

// maxName is the longest name in bytes, as in PostgreSQL.
const maxName = 63

// name folds a name to lower case: MySQL compares the names of columns and aliases without regard to case.
func (c *converter) name(name string) string {
	if name == "" || len(name) > maxName {
		if c.err == nil {
			c.err = pgerror.New(pgerror.NameTooLong, "the name \"%s\" does not have 1 to %d bytes", name, maxName)
		}
	}
	return strings.ToLower(name)
}

func (c *converter) names(list []tidb.CIStr) []string {
	var out []string
	for _, n := range list {
		out = append(out, c.name(n.O))
	}
	return out
}

// cut shortens a column's computed name to what a name may have.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "")
}

// table converts a table's name. MySQL's databases are percodb's schemas.
func (c *converter) table(n *tidb.TableName) ast.TableName {
	t := ast.TableName{Pos: c.pos(n), Name: c.name(n.Name.O)}
	if n.Schema.O != "" {
		t.Schema = c.name(n.Schema.O)
	}
	if len(n.PartitionNames) > 0 {
		c.refuse(n, "PARTITION of a table", "Name the rows in WHERE.")
	}
	if n.TableSample != nil || n.AsOf != nil {
		c.refuse(n, "TABLESAMPLE or AS OF of a table", "Use PostgreSQL's form in PostgreSQL's dialect.")
	}
	if len(n.IndexHints) > 0 {
		c.notice("index hints have no effect: the planner chooses the indexes")
	}
	return t
}

func (c *converter) columnName(n *tidb.ColumnName) *ast.ColumnRef {
	ref := &ast.ColumnRef{Pos: c.pos(n)}
	for _, part := range []tidb.CIStr{n.Schema, n.Table} {
		if part.O != "" {
			ref.Parts = append(ref.Parts, c.name(part.O))
		}
	}
	ref.Parts = append(ref.Parts, c.name(n.Name.O))
	return ref
}
