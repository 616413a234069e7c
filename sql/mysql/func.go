package mysql

import (
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/percodb/percodb/sql/ast"
)

// function makes a call by name.
func function(name string, args ...ast.Expr) *ast.Call {
	return &ast.Call{Name: []string{name}, Args: args}
}

// renamed are the functions that percodb has with MySQL's meaning, by MySQL's name, with the number of arguments they
// may have: the fewest and the most.
var renamed = map[string]struct {
	name        string
	least, most int
}{
	"abs": {"abs", 1, 1}, "ceil": {"ceil", 1, 1}, "ceiling": {"ceil", 1, 1}, "floor": {"floor", 1, 1},
	"round": {"round", 1, 2}, "sign": {"sign", 1, 1}, "sqrt": {"sqrt", 1, 1}, "exp": {"exp", 1, 1}, "ln": {"ln", 1, 1},
	"pow": {"power", 2, 2}, "power": {"power", 2, 2}, "pi": {"pi", 0, 0}, "radians": {"radians", 1, 1},
	"degrees": {"degrees", 1, 1}, "truncate": {"trunc", 2, 2},
	"lower": {"lower", 1, 1}, "lcase": {"lower", 1, 1}, "upper": {"upper", 1, 1}, "ucase": {"upper", 1, 1},
	"length": {"octet_length", 1, 1}, "octet_length": {"octet_length", 1, 1}, "bit_length": {"bit_length", 1, 1},
	"char_length": {"length", 1, 1}, "character_length": {"length", 1, 1},
	"concat_ws": {"concat_ws", 2, 100}, "replace": {"replace", 3, 3}, "reverse": {"reverse", 1, 1},
	"ltrim": {"ltrim", 1, 1}, "rtrim": {"rtrim", 1, 1}, "md5": {"md5", 1, 1}, "repeat": {"repeat", 2, 2},
	"coalesce": {"coalesce", 1, 100}, "ifnull": {"coalesce", 2, 2}, "nullif": {"nullif", 2, 2},
	"rand": {"random", 0, 0}, "version": {"version", 0, 0}, "database": {"current_schema", 0, 0},
	"schema": {"current_schema", 0, 0}, "connection_id": {"pg_backend_pid", 0, 0},
}

// instead says what to write for functions that are often used and have no equal.
var instead = map[string]string{
	"last_insert_id": "Use RETURNING or lastval() in PostgreSQL's dialect: it counts in another way.",
	"found_rows":     "Count the rows with a second query.",
	"row_count":      "The command tag says how many rows changed.",
	"date_format":    "Use to_char in PostgreSQL's dialect.",
	"str_to_date":    "Use to_timestamp in PostgreSQL's dialect.",
	"unix_timestamp": "Use extract(epoch from …) in PostgreSQL's dialect.",
	"from_unixtime":  "Use to_timestamp in PostgreSQL's dialect.",
	"get_lock":       "Lock a row with SELECT … FOR UPDATE.",
}

// call converts a call of a function.
func (c *converter) call(n *tidb.FuncCallExpr) (x ast.Expr, isCondition bool) {
	if n.Schema.O != "" {
		c.refuse(n, "the stored function "+n.FnName.O, "Functions cannot be defined.")
	}
	name := n.FnName.L
	if f, ok := renamed[name]; ok {
		c.arity(n, f.least, f.most)
		call := function(f.name, c.values(n.Args)...)
		call.Pos = c.pos(n)
		return call, false
	}
	if x := c.timeCall(name, n); x != nil {
		return x, false
	}
	switch name {
	case "isnull":
		c.arity(n, 1, 1)
		return &ast.IsTest{Pos: c.pos(n), X: c.argument(n, 0), What: "NULL"}, true
	case "if":
		if c.arity(n, 3, 3) {
			return &ast.Case{Pos: c.pos(n), Whens: []ast.When{{Cond: c.condition(n.Args[0]), Then: c.value(n.Args[1])}}, Else: c.value(n.Args[2])}, false
		}
	case "concat":
		c.arity(n, 1, 1000)
		return c.concat(n.Args), false
	case "mod":
		if c.arity(n, 2, 2) {
			return &ast.Binary{Pos: c.pos(n), Op: "%", L: c.value(n.Args[0]), R: c.nonzero(n.Args[1])}, false
		}
	case "greatest", "least":
		c.arity(n, 2, 100)
		return c.extreme(name, n.Args), false
	case "locate", "instr":
		if c.arity(n, 2, 2) {
			part, whole := c.value(n.Args[0]), c.value(n.Args[1])
			if name == "instr" {
				part, whole = whole, part
			}
			return function("strpos", whole, part), false
		}
	case "trim":
		return c.trim(n), false
	case "substring", "substr", "mid":
		if c.arity(n, 2, 3) && c.counts(n, 1, 1) {
			return function("substr", c.values(n.Args)...), false
		}
	case "left", "right":
		if c.arity(n, 2, 2) && c.counts(n, 1, 0) {
			return function(name, c.values(n.Args)...), false
		}
	case "uuid":
		return cast(function("gen_random_uuid"), "text"), false
	}
	hint := instead[name]
	if hint == "" {
		hint = "docs/mysql.md lists the functions that are supported."
	}
	c.refuse(n, "the function "+strings.ToUpper(name), hint)
	return &ast.Null{}, false
}

// arity refuses a call with too few or too many arguments.
func (c *converter) arity(n *tidb.FuncCallExpr, least, most int) bool {
	if len(n.Args) >= least && len(n.Args) <= most {
		return true
	}
	c.refuse(n, "this number of arguments of "+strings.ToUpper(n.FnName.L), "docs/mysql.md lists the functions that are supported.")
	return false
}

func (c *converter) argument(n *tidb.FuncCallExpr, i int) ast.Expr {
	if i >= len(n.Args) {
		return &ast.Null{}
	}
	return c.value(n.Args[i])
}

// counts refuses a call whose argument i is not a constant of at least least: below, MySQL counts from the end.
func (c *converter) counts(n *tidb.FuncCallExpr, i int, least int64) bool {
	if k, ok := n.Args[i].(*constant); ok {
		if v, ok := k.value.(int64); ok && v >= least {
			return true
		}
	}
	c.refuse(n.Args[i], "a position or length in "+strings.ToUpper(n.FnName.L)+" that is not a positive constant",
		"The functions differ for numbers below 1: use a constant.")
	return false
}

// concat is NULL if an argument is: a chain of || does that, and needs text on one side.
func (c *converter) concat(args []tidb.ExprNode) ast.Expr {
	var x ast.Expr
	for _, arg := range args {
		text := cast(c.value(arg), "text")
		if x == nil {
			x = text
			continue
		}
		x = &ast.Binary{Pos: c.pos(arg), Op: "||", L: x, R: text}
	}
	return x
}

// extreme is GREATEST or LEAST, which are NULL in MySQL if an argument is.
func (c *converter) extreme(name string, args []tidb.ExprNode) ast.Expr {
	var unknown ast.Expr
	for _, arg := range args {
		var test ast.Expr = &ast.IsTest{X: c.value(arg), What: "NULL"}
		volatile := false
		ast.InspectExpr(test, ast.Visitor{Expr: func(x ast.Expr) {
			call, ok := x.(*ast.Call)
			volatile = volatile || ok && (call.Name[0] == "random" || call.Name[0] == "gen_random_uuid")
		}})
		if volatile {
			c.refuse(arg, "a random argument of "+strings.ToUpper(name), "Compute it in a subquery.")
		}
		if unknown != nil {
			test = &ast.Binary{Op: "OR", L: unknown, R: test}
		}
		unknown = test
	}
	return &ast.Case{Whens: []ast.When{{Cond: unknown, Then: &ast.Null{}}}, Else: function(name, c.values(args)...)}
}

// trim converts TRIM([BOTH|LEADING|TRAILING] [string FROM] text). MySQL removes a string, PostgreSQL a set of characters.
func (c *converter) trim(n *tidb.FuncCallExpr) ast.Expr {
	name := "btrim"
	args := n.Args
	if len(args) == 3 {
		if d, ok := args[2].(*tidb.TrimDirectionExpr); ok {
			switch d.Direction {
			case tidb.TrimLeading:
				name = "ltrim"
			case tidb.TrimTrailing:
				name = "rtrim"
			}
		}
		args = args[:2]
	}
	if len(args) == 2 {
		k, ok := args[1].(*constant)
		if s, isString := k.stringValue(ok); !isString || len([]rune(s)) != 1 {
			c.refuse(args[1], "TRIM of more than one character", "Use a single character, or REPLACE.")
		}
	}
	return function(name, c.values(args)...)
}

// stringValue is the string that n is, if it is one.
func (n *constant) stringValue(ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	s, isString := n.value.(string)
	return s, isString
}

// fields are the functions that take a field of a date or time.
var fields = map[string]string{
	"year": "year", "quarter": "quarter", "month": "month", "day": "day", "dayofmonth": "day", "dayofyear": "doy",
	"hour": "hour", "minute": "minute", "second": "second",
}

// timeCall converts the functions of dates and times; nil for others.
func (c *converter) timeCall(name string, n *tidb.FuncCallExpr) ast.Expr {
	now := func(typ string) ast.Expr {
		unit := &ast.Literal{Kind: ast.LiteralString, Slot: -1, Value: "second"}
		return cast(function("date_trunc", unit, function("statement_timestamp")), typ)
	}
	if field, ok := fields[name]; ok {
		if !c.arity(n, 1, 1) {
			return nil
		}
		unit := &ast.Literal{Kind: ast.LiteralString, Slot: -1, Value: field}
		part := &ast.Call{Name: []string{"extract"}, Syntax: ast.ExtractSyntax, Args: []ast.Expr{unit, c.moment(n.Args[0])}}
		var x ast.Expr = part
		if field == "second" {
			x = function("trunc", part)
		}
		return cast(x, "int4")
	}
	switch name {
	case "now", "current_timestamp", "localtime", "localtimestamp":
		if len(n.Args) > 0 {
			c.refuse(n, "a precision of "+strings.ToUpper(name), "Leave it out: whole seconds.")
		}
		return now("timestamp")
	case "curdate", "current_date":
		return now("date")
	case "curtime", "current_time":
		if len(n.Args) > 0 {
			c.refuse(n, "a precision of "+strings.ToUpper(name), "Leave it out: whole seconds.")
		}
		return cast(now("timestamp"), "time")
	case "date":
		return cast(c.argument(n, 0), "date")
	case "datediff":
		if c.arity(n, 2, 2) {
			return &ast.Binary{Op: "-", L: cast(c.value(n.Args[0]), "date"), R: cast(c.value(n.Args[1]), "date")}
		}
	case "date_add", "date_sub", "adddate", "subdate":
		if c.arity(n, 3, 3) {
			return c.dateArithmetic(name, n)
		}
	}
	return nil
}

// moment converts an argument that is a date or time; a string constant is read as one.
func (c *converter) moment(n tidb.ExprNode) ast.Expr {
	x := c.value(n)
	if k, ok := x.(*ast.Literal); ok && k.Kind == ast.LiteralString {
		return cast(x, "timestamp")
	}
	return x
}

var units = map[string]string{
	"MICROSECOND": "1 microsecond", "SECOND": "1 second", "MINUTE": "1 minute", "HOUR": "1 hour", "DAY": "1 day",
	"WEEK": "7 days", "MONTH": "1 month", "QUARTER": "3 months", "YEAR": "1 year",
}

// dateArithmetic converts date ± INTERVAL n unit.
func (c *converter) dateArithmetic(name string, n *tidb.FuncCallExpr) ast.Expr {
	u, ok := n.Args[2].(*tidb.TimeUnitExpr)
	if !ok {
		return nil
	}
	interval := units[strings.ToUpper(u.Unit.String())]
	if interval == "" {
		c.refuse(n, "INTERVAL in "+u.Unit.String(), "Use a single unit, such as DAY or SECOND.")
	}
	count := c.value(n.Args[1])
	if k, ok := count.(*ast.Literal); ok && k.Kind == ast.LiteralString {
		count = cast(count, "int8")
	}
	one := cast(&ast.Literal{Kind: ast.LiteralString, Slot: -1, Value: interval}, "interval")
	op := "+"
	if strings.Contains(name, "sub") {
		op = "-"
	}
	return &ast.Binary{Pos: c.pos(n), Op: op, L: c.moment(n.Args[0]), R: &ast.Binary{Op: "*", L: count, R: one}}
}

// castExpr converts CAST and CONVERT.
func (c *converter) castExpr(n *tidb.FuncCastExpr) ast.Expr {
	x := c.value(n.Expr)
	if n.FunctionType == tidb.CastBinaryOperator {
		c.notice("BINARY before an expression has no effect: text is compared by its bytes")
		return x
	}
	flen, scale := n.Tp.GetFlen(), n.Tp.GetDecimal()
	switch n.Tp.GetType() {
	case mysql.TypeLonglong:
		if mysql.HasUnsignedFlag(n.Tp.GetFlag()) {
			return cast(x, "numeric", 20, 0)
		}
		return cast(x, "int8")
	case mysql.TypeNewDecimal:
		return cast(x, "numeric", max(flen, 1), max(scale, 0))
	case mysql.TypeDouble:
		return cast(x, "float8")
	case mysql.TypeFloat:
		return cast(x, "float4")
	case mysql.TypeDate:
		return cast(x, "date")
	case mysql.TypeDatetime:
		return cast(x, "timestamp", max(scale, 0))
	case mysql.TypeDuration:
		return cast(x, "time", max(scale, 0))
	case mysql.TypeVarString, mysql.TypeString, mysql.TypeVarchar:
		if n.Tp.GetCharset() != "binary" {
			if flen >= 1 {
				return cast(x, "varchar", flen)
			}
			return cast(x, "text")
		}
	}
	c.refuse(n, "CAST to this type", "Use SIGNED, UNSIGNED, DECIMAL, DOUBLE, FLOAT, CHAR, DATE, DATETIME or TIME.")
	return x
}

var aggregates = map[string]string{
	"count": "count", "sum": "sum", "avg": "avg", "max": "max", "min": "min", "var_pop": "var_pop", "var_samp": "var_samp",
	"variance": "var_pop", "std": "stddev_pop", "stddev": "stddev_pop", "stddev_pop": "stddev_pop", "stddev_samp": "stddev_samp",
}

// aggregate converts a call of an aggregate function.
func (c *converter) aggregate(n *tidb.AggregateFuncExpr) ast.Expr {
	name := strings.ToLower(n.F)
	if name == tidb.AggFuncGroupConcat {
		return c.groupConcat(n)
	}
	known := aggregates[name]
	if known == "" {
		c.refuse(n, "the function "+strings.ToUpper(n.F), "docs/mysql.md lists the functions that are supported.")
	}
	if len(n.Args) > 1 {
		c.refuse(n, "an aggregate of several expressions", "Count the rows of a subquery with DISTINCT.")
	}
	call := &ast.Call{Pos: c.pos(n), Name: []string{known}, Distinct: n.Distinct}
	if len(n.Args) == 1 {
		if k, ok := n.Args[0].(*constant); ok && known == "count" && k.value != nil && !n.Distinct {
			call.Star = true // TiDB's parser makes COUNT(1) of COUNT(*)
			return call
		}
		call.Args = c.values(n.Args)
	}
	return call
}

// groupConcat converts GROUP_CONCAT([DISTINCT] a, b ORDER BY … SEPARATOR s): its last argument is the separator.
func (c *converter) groupConcat(n *tidb.AggregateFuncExpr) ast.Expr {
	last := len(n.Args) - 1
	if last < 1 {
		c.refuse(n, "GROUP_CONCAT without an argument", "Give it one.")
		return &ast.Null{}
	}
	return &ast.Call{
		Pos: c.pos(n), Name: []string{"string_agg"}, Distinct: n.Distinct,
		Args: []ast.Expr{c.concat(n.Args[:last]), c.value(n.Args[last])}, OrderBy: c.orderBy(n.Order),
	}
}

var windowFunctions = map[string]bool{
	"row_number": true, "rank": true, "dense_rank": true, "cume_dist": true, "percent_rank": true, "ntile": true,
	"lag": true, "lead": true, "first_value": true, "last_value": true, "nth_value": true,
}

// windowCall converts a window function.
func (c *converter) windowCall(n *tidb.WindowFuncExpr) ast.Expr {
	name := strings.ToLower(n.Name)
	if to := aggregates[name]; to != "" {
		name = to
	} else if !windowFunctions[name] {
		c.refuse(n, "the window function "+strings.ToUpper(n.Name), "docs/mysql.md lists the functions that are supported.")
	}
	if n.IgnoreNull || n.FromLast {
		c.refuse(n, "IGNORE NULLS or FROM LAST", "Leave it out.")
	}
	call := &ast.Call{Pos: c.pos(n), Name: []string{name}, Distinct: n.Distinct, Args: c.values(n.Args)}
	if k, ok := singleLiteral(call); ok && name == "count" && k.Value == "1" {
		call.Star, call.Args = true, nil
	}
	call.Over = c.window(&n.Spec)
	return call
}

func (c *converter) window(n *tidb.WindowSpec) *ast.Window {
	w := &ast.Window{Parens: !n.OnlyAlias}
	if n.OnlyAlias {
		w.Name = c.name(n.Name.O)
		return w
	}
	if n.Ref.O != "" {
		w.Name = c.name(n.Ref.O)
	}
	if n.PartitionBy != nil {
		for _, item := range n.PartitionBy.Items {
			w.PartitionBy = append(w.PartitionBy, c.value(item.Expr))
		}
	}
	w.OrderBy = c.orderBy(n.OrderBy)
	if n.Frame != nil {
		w.Frame = &ast.Frame{Mode: ast.FrameRange, Between: true, Start: c.bound(n.Frame.Extent.Start), End: c.bound(n.Frame.Extent.End)}
		if n.Frame.Type == tidb.Rows {
			w.Frame.Mode = ast.FrameRows
		}
	}
	return w
}

// bound converts a bound of a window's frame.
func (c *converter) bound(b tidb.FrameBound) ast.FrameBound {
	switch {
	case b.Type == tidb.CurrentRow:
		return ast.FrameBound{Kind: ast.CurrentRow}
	case b.UnBounded && b.Type == tidb.Preceding:
		return ast.FrameBound{Kind: ast.UnboundedPreceding}
	case b.UnBounded:
		return ast.FrameBound{Kind: ast.UnboundedFollowing}
	}
	if b.Unit != tidb.TimeUnitInvalid {
		c.refuse(b.Expr, "INTERVAL in a window's frame", "Use ROWS, or a number.")
	}
	out := ast.FrameBound{Kind: ast.OffsetPreceding, Offset: c.value(b.Expr)}
	if b.Type != tidb.Preceding {
		out.Kind = ast.OffsetFollowing
	}
	return out
}

// singleLiteral is the only argument of a call, if it is a constant.
func singleLiteral(call *ast.Call) (*ast.Literal, bool) {
	if len(call.Args) != 1 {
		return nil, false
	}
	k, ok := call.Args[0].(*ast.Literal)
	return k, ok
}
