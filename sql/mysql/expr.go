package mysql

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/percodb/percodb/sql/ast"
)

// MySQL has no booleans: a comparison is 1, 0 or NULL, and a condition holds where a number is not 0. Each expression
// is therefore converted for a place that wants a value, or for one that wants a condition.

// value converts an expression where a value is wanted: a condition becomes 1, 0 or NULL.
func (c *converter) value(n tidb.ExprNode) ast.Expr {
	x, isCondition := c.expr(n)
	if !isCondition {
		return x
	}
	if b, ok := x.(*ast.Bool); ok {
		if b.Value {
			return c.integer(n, 1)
		}
		return c.integer(n, 0)
	}
	return cast(x, "int4")
}

// condition converts an expression where a condition is wanted: a value holds if it is not 0.
func (c *converter) condition(n tidb.ExprNode) ast.Expr {
	x, isCondition := c.expr(n)
	if isCondition {
		return x
	}
	if _, ok := x.(*ast.Null); ok {
		return x
	}
	return &ast.Binary{Pos: c.pos(n), Op: "<>", L: x, R: c.integer(n, 0)}
}

func (c *converter) values(list []tidb.ExprNode) []ast.Expr {
	var out []ast.Expr
	for _, n := range list {
		out = append(out, c.value(n))
	}
	return out
}

// expr converts an expression and reports whether the result is a condition.
func (c *converter) expr(n tidb.ExprNode) (x ast.Expr, isCondition bool) {
	pos := c.pos(n)
	switch n := n.(type) {
	case *tidb.ParenthesesExpr:
		return c.expr(n.Expr)
	case *constant:
		return c.constant(n)
	case *parameter:
		return &ast.Param{Pos: pos, Number: c.number(n.offset)}, false
	case *tidb.ColumnNameExpr:
		return c.columnRef(n), false
	case *tidb.UnaryOperationExpr:
		return c.unary(n)
	case *tidb.BinaryOperationExpr:
		return c.binary(n)
	case *tidb.RowExpr:
		return &ast.Row{Pos: pos, Elems: c.values(n.Values)}, false
	case *tidb.SubqueryExpr:
		return &ast.Subquery{Pos: pos, Query: c.query(n.Query)}, false
	case *tidb.CaseExpr:
		return c.caseExpr(n), false
	case *tidb.FuncCallExpr:
		return c.call(n)
	case *tidb.FuncCastExpr:
		return c.castExpr(n), false
	case *tidb.AggregateFuncExpr:
		return c.aggregate(n), false
	case *tidb.WindowFuncExpr:
		return c.windowCall(n), false
	case *tidb.ValuesExpr:
		if c.inserted == "" {
			c.refuse(n, "VALUES() outside of ON DUPLICATE KEY UPDATE", "Name the column.")
		}
		return &ast.ColumnRef{Pos: pos, Parts: []string{"excluded", c.name(n.Column.Name.Name.O)}}, false
	case *tidb.DefaultExpr:
		if n.Name != nil {
			c.refuse(n, "DEFAULT(column)", "Write DEFAULT as the whole value, or the default itself.")
		}
		return &ast.Default{Pos: pos}, false
	}
	return c.predicate(n), true
}

// predicate converts the expressions that are conditions by their form.
func (c *converter) predicate(n tidb.ExprNode) ast.Expr {
	pos := c.pos(n)
	switch n := n.(type) {
	case *tidb.IsNullExpr:
		return &ast.IsTest{Pos: pos, X: c.value(n.Expr), What: "NULL", Not: n.Not}
	case *tidb.IsTruthExpr:
		what := "FALSE"
		if n.True != 0 {
			what = "TRUE"
		}
		return &ast.IsTest{Pos: pos, X: c.condition(n.Expr), What: what, Not: n.Not}
	case *tidb.BetweenExpr:
		return &ast.Between{Pos: pos, X: c.value(n.Expr), Low: c.value(n.Left), High: c.value(n.Right), Not: n.Not}
	case *tidb.PatternInExpr:
		if n.Sel == nil {
			return &ast.InList{Pos: pos, X: c.value(n.Expr), List: c.values(n.List), Not: n.Not}
		}
		if sub, ok := n.Sel.(*tidb.SubqueryExpr); ok {
			return &ast.InSubquery{Pos: pos, X: c.value(n.Expr), Query: c.query(sub), Not: n.Not}
		}
	case *tidb.PatternLikeOrIlikeExpr:
		like := &ast.Like{Pos: pos, Op: "LIKE", X: c.value(n.Expr), Pattern: c.value(n.Pattern), Not: n.Not}
		if !n.IsLike {
			like.Op = "ILIKE"
		}
		if n.Escape != '\\' {
			like.Escape = &ast.Literal{Kind: ast.LiteralString, Slot: -1, Value: string(rune(n.Escape))}
		}
		return like
	case *tidb.ExistsSubqueryExpr:
		if sub, ok := n.Sel.(*tidb.SubqueryExpr); ok {
			var x ast.Expr = &ast.Exists{Pos: pos, Query: c.query(sub)}
			if n.Not {
				x = &ast.Unary{Pos: pos, Op: "NOT", X: x}
			}
			return x
		}
	case *tidb.CompareSubqueryExpr:
		op, known := comparisons[n.Op]
		if sub, ok := n.R.(*tidb.SubqueryExpr); ok && known {
			return &ast.Quantified{Pos: pos, X: c.value(n.L), Op: op, All: n.All, Query: c.query(sub)}
		}
	case *tidb.PatternRegexpExpr:
		c.refuse(n, "REGEXP", "Use LIKE, or ~ in PostgreSQL's dialect: the regular expressions differ.")
	case *tidb.VariableExpr:
		c.refuse(n, "the variable "+n.Name, "Variables exist in SET alone.")
	case *tidb.MatchAgainst:
		c.refuse(n, "MATCH … AGAINST", "There are no full-text indexes: use LIKE.")
	case *tidb.SetCollationExpr:
		c.refuse(n, "COLLATE", "Text is compared by its bytes; use LOWER() to ignore case.")
	}
	c.refuse(n, "this expression", "See docs/mysql.md.")
	return &ast.Null{}
}

// columnRef converts a column's name. In ON DUPLICATE KEY UPDATE it is a column of the table.
func (c *converter) columnRef(n *tidb.ColumnNameExpr) *ast.ColumnRef {
	ref := c.columnName(n.Name)
	if c.inserted != "" && len(ref.Parts) == 1 {
		ref.Parts = []string{c.inserted, ref.Parts[0]}
	}
	return ref
}

func cast(x ast.Expr, typ string, mods ...int) *ast.Cast {
	t := ast.TypeName{Name: []string{typ}, Mods: mods}
	switch typ {
	case "numeric", "varchar", "timestamp", "time", "interval":
		t.Keyword = true
	}
	return &ast.Cast{X: x, Type: t}
}

func (c *converter) integer(at tidb.Node, v uint64) *ast.Literal {
	lit := &ast.Literal{Pos: c.pos(at), Kind: ast.LiteralNumeric, Slot: -1, Value: strconv.FormatUint(v, 10)}
	switch {
	case v <= math.MaxInt32:
		lit.Kind = ast.LiteralInt4
	case v <= math.MaxInt64:
		lit.Kind = ast.LiteralInt8
	}
	return lit
}

func (c *converter) constant(n *constant) (x ast.Expr, isCondition bool) {
	pos := c.pos(n)
	switch v := n.value.(type) {
	case nil:
		return &ast.Null{Pos: pos}, false
	case bool:
		return &ast.Bool{Pos: pos, Value: v}, true
	case int:
		return c.integer(n, uint64(max(v, 0))), false
	case int64:
		return c.integer(n, uint64(max(v, 0))), false // the sign is an operator
	case uint64:
		return c.integer(n, v), false
	case float64:
		return cast(&ast.Literal{Pos: pos, Kind: ast.LiteralString, Slot: -1, Value: strconv.FormatFloat(v, 'g', -1, 64)}, "float8"), false
	case decimal:
		return &ast.Literal{Pos: pos, Kind: ast.LiteralNumeric, Slot: -1, Value: strings.TrimPrefix(string(v), "+")}, false
	case binary:
		return cast(&ast.Literal{Pos: pos, Kind: ast.LiteralString, Slot: -1, Value: `\x` + hex.EncodeToString(v)}, "bytea"), false
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			c.refuse(n, "the character \\0 in a string", "Use a hexadecimal literal for binary data.")
		}
		if cleaned := strings.ToValidUTF8(v, ""); cleaned != v {
			c.refuse(n, "a string that is not UTF-8", "Use a hexadecimal literal for binary data.")
		}
		return &ast.Literal{Pos: pos, Kind: ast.LiteralString, Slot: -1, Value: v}, false
	}
	c.refuse(n, "this constant", "See docs/mysql.md.")
	return &ast.Null{}, false
}

func (c *converter) unary(n *tidb.UnaryOperationExpr) (x ast.Expr, isCondition bool) {
	pos := c.pos(n)
	switch n.Op {
	case opcode.Not, opcode.Not2:
		return &ast.Unary{Pos: pos, Op: "NOT", X: c.condition(n.V)}, true
	case opcode.Minus:
		return &ast.Unary{Pos: pos, Op: "-", X: c.value(n.V)}, false
	case opcode.Plus: // without effect, on text too
		return c.value(n.V), false
	}
	c.refuse(n, "the operator ~", "MySQL's results are unsigned 64-bit integers, which percodb does not have.")
	return &ast.Null{}, false
}

var comparisons = map[opcode.Op]string{
	opcode.EQ: "=", opcode.NE: "<>", opcode.LT: "<", opcode.LE: "<=", opcode.GT: ">", opcode.GE: ">=",
}

var arithmetic = map[opcode.Op]string{
	opcode.Plus: "+", opcode.Minus: "-", opcode.Mul: "*", opcode.And: "&", opcode.Or: "|", opcode.Xor: "#",
}

func (c *converter) binary(n *tidb.BinaryOperationExpr) (x ast.Expr, isCondition bool) {
	pos := c.pos(n)
	if op, ok := comparisons[n.Op]; ok {
		return &ast.Binary{Pos: pos, Op: op, L: c.value(n.L), R: c.value(n.R)}, true
	}
	if op, ok := arithmetic[n.Op]; ok {
		return &ast.Binary{Pos: pos, Op: op, L: c.value(n.L), R: c.value(n.R)}, false
	}
	switch n.Op {
	case opcode.LogicAnd:
		return &ast.Binary{Pos: pos, Op: "AND", L: c.condition(n.L), R: c.condition(n.R)}, true
	case opcode.LogicOr:
		return &ast.Binary{Pos: pos, Op: "OR", L: c.condition(n.L), R: c.condition(n.R)}, true
	case opcode.LogicXor:
		return &ast.Binary{Pos: pos, Op: "<>", L: c.condition(n.L), R: c.condition(n.R)}, true
	case opcode.NullEQ:
		return &ast.IsDistinct{Pos: pos, L: c.value(n.L), R: c.value(n.R), Not: true}, true
	case opcode.Div: // exact numbers divide exactly; a float stays one
		one := &ast.Literal{Kind: ast.LiteralNumeric, Slot: -1, Value: "1.0"}
		dividend := &ast.Binary{Pos: pos, Op: "*", L: c.value(n.L), R: one}
		return &ast.Binary{Pos: pos, Op: "/", L: dividend, R: c.nonzero(n.R)}, false
	case opcode.IntDiv:
		return cast(function("div", cast(c.value(n.L), "numeric"), cast(c.nonzero(n.R), "numeric")), "int8"), false
	case opcode.Mod:
		return &ast.Binary{Pos: pos, Op: "%", L: c.value(n.L), R: c.nonzero(n.R)}, false
	}
	c.refuse(n, "the operator "+n.Op.String(), "MySQL's results are unsigned 64-bit integers, which percodb does not have.")
	return &ast.Null{}, false
}

// nonzero converts a divisor: division by zero is NULL in MySQL.
func (c *converter) nonzero(n tidb.ExprNode) ast.Expr {
	x := c.value(n)
	if k, ok := x.(*ast.Literal); ok && k.Kind != ast.LiteralString && strings.Trim(k.Value, "0.") != "" {
		return x
	}
	return function("nullif", x, c.integer(n, 0))
}

func (c *converter) caseExpr(n *tidb.CaseExpr) *ast.Case {
	x := &ast.Case{Pos: c.pos(n)}
	if n.Value != nil {
		x.Operand = c.value(n.Value)
	}
	for _, w := range n.WhenClauses {
		cond := c.value
		if n.Value == nil {
			cond = c.condition
		}
		x.Whens = append(x.Whens, ast.When{Cond: cond(w.Expr), Then: c.value(w.Result)})
	}
	if n.ElseClause != nil {
		x.Else = c.value(n.ElseClause)
	}
	return x
}
