package ast

import "strings"

// Levels of binary operators, as in PostgreSQL's grammar.
func operatorLevel(op string) int {
	switch op {
	case "OR":
		return 1
	case "AND":
		return 2
	case "<", ">", "=", "<=", ">=", "<>":
		return 5
	case "+", "-":
		return 9
	case "*", "/", "%":
		return 10
	case "^":
		return 11
	}
	return otherLevel
}

const (
	compareLevel = 5 // its operators do not associate
	otherLevel   = 8 // operators without a rule of their own in the grammar
)

func exprString(x Expr) string {
	var p printer
	p.expr(x)
	return p.String()
}

// expr writes an expression.
func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Literal:
		p.literal(x)
	case *Bool:
		if x.Value {
			p.str("TRUE")
		} else {
			p.str("FALSE")
		}
	case *Null:
		p.str("NULL")
	case *Param:
		p.str("$")
		p.int(int64(x.Number))
	case *Default:
		p.str("DEFAULT")
	case *ColumnRef:
		p.idents(x.Parts, ".")
	case *Star:
		for _, part := range x.Table {
			p.ident(part)
			p.str(".")
		}
		p.str("*")
	case *Call:
		p.call(x)
	case *Case:
		p.caseExpr(x)
	case *Cast:
		if x.Treat {
			p.str("TREAT(")
			p.expr(x.X)
			p.str(" AS ")
			p.typeName(&x.Type)
			p.str(")")
			return
		}
		p.operand(x.X)
		p.str("::")
		p.typeName(&x.Type)
	case *Array:
		p.str("ARRAY")
		p.arrayElements(x)
	case *Row:
		p.when(x.Explicit, "ROW")
		p.parens(x.Elems)
	case *Subscript:
		p.subscript(x)
	case *Field:
		p.base(x.X, false, x.Parens)
		p.str(".")
		if x.Name == "*" {
			p.str("*")
		} else {
			p.ident(x.Name)
		}
	case *Exists:
		p.str("EXISTS ")
		p.subquery(x.Query)
	case *Subquery:
		p.subquery(x.Query)
	case *ArraySubquery:
		p.str("ARRAY")
		p.subquery(x.Query)
	case *GroupingSet:
		p.str(x.Kind)
		p.when(x.Kind != "", " ")
		p.parens(x.Items)
	case *CurrentOf:
		p.str("CURRENT OF ")
		p.ident(x.Cursor)
	case *XML:
		p.xml(x)
	default:
		p.operation(x)
	}
}

// operation writes an expression with an operator at its top.
func (p *printer) operation(x Expr) {
	switch x := x.(type) {
	case *Unary:
		p.unary(x)
	case *Binary:
		p.binary(x)
	case *Like:
		p.operand(x.X)
		p.when(x.Not, " NOT")
		p.str(" " + x.Op + " ")
		p.operand(x.Pattern)
		if x.Escape != nil {
			p.str(" ESCAPE ")
			p.operand(x.Escape)
		}
	case *IsTest:
		p.operand(x.X)
		p.str(" IS ")
		p.when(x.Not, "NOT ")
		p.str(x.What)
	case *IsDistinct:
		p.operand(x.L)
		p.str(" IS ")
		p.when(x.Not, "NOT ")
		p.str("DISTINCT FROM ")
		p.operand(x.R)
	case *Between:
		p.operand(x.X)
		p.when(x.Not, " NOT")
		p.str(" BETWEEN ")
		p.when(x.Symmetric, "SYMMETRIC ")
		p.operand(x.Low)
		p.str(" AND ")
		p.operand(x.High)
	case *InList:
		p.operand(x.X)
		p.when(x.Not, " NOT")
		p.str(" IN ")
		p.parens(x.List)
	case *InSubquery:
		p.operand(x.X)
		p.when(x.Not, " NOT")
		p.str(" IN ")
		p.subquery(x.Query)
	case *Quantified:
		p.quantified(x)
	case *AtTimeZone:
		p.operand(x.X)
		p.str(" AT TIME ZONE ")
		p.operand(x.Zone)
	case *Collate:
		p.operand(x.X)
		p.str(" COLLATE ")
		p.idents(x.Name, ".")
	}
}

// atomic reports whether an expression needs no parentheses as an operand.
func atomic(x Expr) bool {
	switch x := x.(type) {
	case *Literal:
		return !strings.HasPrefix(x.Value, "-") || x.Kind == LiteralString
	case *Bool, *Null, *Param, *Default, *ColumnRef, *Star, *Call, *Case, *Cast, *Array, *Row, *Subscript, *Field,
		*Exists, *Subquery, *ArraySubquery, *GroupingSet, *XML:
		return true
	}
	return false
}

func (p *printer) operand(x Expr) {
	if atomic(x) {
		p.expr(x)
		return
	}
	p.str("(")
	p.expr(x)
	p.str(")")
}

// base writes what a subscript or field selection is applied to.
func (p *printer) base(x Expr, subscript, parens bool) {
	switch x.(type) {
	case *Param, *Subquery:
		p.expr(x)
		return
	case *Subscript, *Field:
		if !parens {
			p.expr(x)
			return
		}
	case *ColumnRef:
		if subscript {
			p.expr(x)
			return
		}
	}
	p.str("(")
	p.expr(x)
	p.str(")")
}

func (p *printer) subscript(x *Subscript) {
	p.base(x.X, true, x.Parens)
	p.bounds(x)
}

// bounds writes [i] or [low:high].
func (p *printer) bounds(x *Subscript) {
	p.str("[")
	if !x.Slice {
		p.expr(x.Index)
		p.str("]")
		return
	}
	if x.Low != nil {
		p.expr(x.Low)
	}
	p.str(" : ")
	if x.High != nil {
		p.expr(x.High)
	}
	p.str("]")
}

func (p *printer) collation(name []string) {
	if len(name) > 0 {
		p.str(" COLLATE ")
		p.idents(name, ".")
	}
}

func (p *printer) literal(x *Literal) {
	if p.slots && x.Slot >= 0 {
		p.str("?")
		p.int(int64(x.Slot))
		return
	}
	switch x.Kind {
	case LiteralString:
		p.quoted(x.Value)
		if x.Typed != nil {
			p.str("::")
			p.typeName(x.Typed)
		}
	case LiteralBit:
		p.str("B")
		p.quoted(x.Value)
	default:
		p.str(x.Value)
	}
}

func (p *printer) unary(x *Unary) {
	switch {
	case x.Qualified:
		p.operator(x.Op, true)
		p.str(" ")
	case x.Op == "-" || x.Op == "+":
		p.str(x.Op)
	case x.Op != "NOT" && operatorLevel(x.Op) != otherLevel: // the grammar knows it as infix only
		p.str("OPERATOR(pg_catalog." + x.Op + ") ")
	default:
		p.str(x.Op + " ")
	}
	// The parser joins a minus with the digits of the smallest integers.
	if lit, ok := x.X.(*Literal); ok && x.Op == "-" && !x.Qualified && (lit.Value == "2147483648" || lit.Value == "9223372036854775808") {
		p.str("(")
		p.literal(lit)
		p.str(")")
		return
	}
	p.operand(x.X)
}

// binary writes an infix operator; the left sides of a chain go without parentheses, however long it is.
func (p *printer) binary(x *Binary) {
	level := operatorLevel(x.Op)
	if x.Qualified {
		level = otherLevel
	}
	if left, ok := x.L.(*Binary); ok && !left.Qualified && operatorLevel(left.Op) >= level && level != compareLevel {
		p.binary(left)
	} else {
		p.operand(x.L)
	}
	p.str(" ")
	p.operator(x.Op, x.Qualified)
	p.str(" ")
	p.operand(x.R)
}

func (p *printer) operator(op string, qualified bool) {
	if qualified {
		p.str("OPERATOR(pg_catalog." + op + ")")
		return
	}
	p.str(op)
}

func (p *printer) quantified(x *Quantified) {
	p.operand(x.X)
	p.str(" ")
	p.operator(x.Op, x.Qualified)
	if x.All {
		p.str(" ALL ")
	} else {
		p.str(" ANY ")
	}
	if x.Query != nil {
		p.subquery(x.Query)
		return
	}
	p.str("(")
	p.expr(x.Array)
	p.str(")")
}

func (p *printer) subquery(q *Query) {
	p.str("(")
	p.query(q)
	p.str(")")
}

// list writes expressions with commas.
func (p *printer) list(list []Expr) {
	for i, x := range list {
		if i > 0 {
			p.str(", ")
		}
		p.expr(x)
	}
}

func (p *printer) parens(list []Expr) {
	p.str("(")
	p.list(list)
	p.str(")")
}

// arrayElements writes […]; inner arrays go without ARRAY, as nothing else may stand beside them.
func (p *printer) arrayElements(x *Array) {
	p.str("[")
	for i, elem := range x.Elems {
		if i > 0 {
			p.str(", ")
		}
		if inner, ok := elem.(*Array); ok && allArrays(x.Elems) {
			p.arrayElements(inner)
		} else {
			p.expr(elem)
		}
	}
	p.str("]")
}

func allArrays(elems []Expr) bool {
	for _, x := range elems {
		if _, ok := x.(*Array); !ok {
			return false
		}
	}
	return true
}

func (p *printer) caseExpr(x *Case) {
	p.str("CASE")
	if x.Operand != nil {
		p.str(" ")
		p.expr(x.Operand)
	}
	for _, w := range x.Whens {
		p.str(" WHEN ")
		p.expr(w.Cond)
		p.str(" THEN ")
		p.expr(w.Then)
	}
	if x.Else != nil {
		p.str(" ELSE ")
		p.expr(x.Else)
	}
	p.str(" END")
}

func (p *printer) call(x *Call) {
	if p.specialCall(x) {
		return
	}
	p.idents(x.Name, ".")
	p.arguments(x)
	if len(x.Within) > 0 {
		p.str(" WITHIN GROUP (")
		p.orderBy(x.Within)
		p.str(")")
	}
	if x.Filter != nil {
		p.str(" FILTER (WHERE ")
		p.expr(x.Filter)
		p.str(")")
	}
	if x.Over != nil {
		p.str(" OVER ")
		p.window(x.Over, true)
	}
}

// arguments writes a call's arguments with their parentheses.
func (p *printer) arguments(x *Call) {
	p.str("(")
	p.when(x.Star, "*")
	p.when(x.Distinct, "DISTINCT ")
	for i, arg := range x.Args {
		if i > 0 {
			p.str(", ")
		}
		p.when(x.Variadic && i == len(x.Args)-1, "VARIADIC ")
		if x.ArgNames != nil && x.ArgNames[i] != "" {
			p.ident(x.ArgNames[i])
			p.str(" => ")
		}
		p.expr(arg)
	}
	if len(x.OrderBy) > 0 {
		p.str(" ")
		p.orderBy(x.OrderBy)
	}
	p.str(")")
}

// specialCall writes the calls that have a syntax of their own and reports whether x is one.
func (p *printer) specialCall(x *Call) bool {
	switch x.Syntax {
	case ValueSyntax:
		p.str(strings.ToUpper(x.Name[0]))
		if len(x.Args) > 0 {
			p.parens(x.Args)
		}
		return true
	case ExtractSyntax:
		p.between("EXTRACT(", x.Args, " FROM ")
		return true
	case PositionSyntax:
		p.str("POSITION(")
		p.operand(x.Args[1])
		p.str(" IN ")
		p.operand(x.Args[0])
		p.str(")")
		return true
	case OverlaySyntax:
		p.between("OVERLAY(", x.Args, " PLACING ", " FROM ", " FOR ")
		return true
	case SubstringFrom:
		p.between("SUBSTRING(", x.Args, " FROM ", " FOR ")
		return true
	case SubstringFor:
		p.between("SUBSTRING(", []Expr{x.Args[0], x.Args[2]}, " FOR ")
		return true
	case SubstringSimilar:
		p.between("SUBSTRING(", x.Args, " SIMILAR ", " ESCAPE ")
		return true
	case TrimSyntax:
		p.trim(x)
		return true
	case OverlapsSyntax:
		p.parens(x.Args[:2])
		p.str(" OVERLAPS ")
		p.parens(x.Args[2:])
		return true
	case CollationFor:
		p.str("COLLATION FOR ")
		p.parens(x.Args)
		return true
	case NormalizeSyntax:
		p.str("NORMALIZE(")
		p.expr(x.Args[0])
		if len(x.Args) > 1 {
			p.str(", " + x.Args[1].(*Literal).Value)
		}
		p.str(")")
		return true
	case GroupingSyntax:
		p.str("GROUPING")
		p.parens(x.Args)
		return true
	}
	return p.keywordFunction(x)
}

// keywordFunction writes the functions that are words of the grammar.
func (p *printer) keywordFunction(x *Call) bool {
	if len(x.Name) != 1 {
		return false
	}
	switch name := x.Name[0]; name {
	case "coalesce", "greatest", "least", "nullif":
		p.str(strings.ToUpper(name))
		p.parens(x.Args)
		return true
	case "substring", "overlay":
		p.str(name)
		p.arguments(x)
		return true
	}
	return false
}

// between writes arguments with words between them.
func (p *printer) between(open string, args []Expr, words ...string) {
	p.str(open)
	for i, arg := range args {
		if i > 0 {
			p.str(words[i-1])
		}
		p.expr(arg)
	}
	p.str(")")
}

// trim writes TRIM: what is trimmed is the last of its own list.
func (p *printer) trim(x *Call) {
	p.str("TRIM(")
	p.str(map[string]string{"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[x.Name[0]])
	p.str(" FROM ")
	p.list(x.Args)
	p.str(")")
}

// window writes an OVER clause or a window's definition.
func (p *printer) window(w *Window, over bool) {
	if over && !w.Parens && w.Name != "" && w.PartitionBy == nil && w.OrderBy == nil && w.Frame == nil {
		p.ident(w.Name)
		return
	}
	p.str("(")
	gap := ""
	next := func() {
		p.str(gap)
		gap = " "
	}
	if w.Name != "" {
		next()
		p.ident(w.Name)
	}
	if len(w.PartitionBy) > 0 {
		next()
		p.str("PARTITION BY ")
		p.list(w.PartitionBy)
	}
	if len(w.OrderBy) > 0 {
		next()
		p.orderBy(w.OrderBy)
	}
	if w.Frame != nil {
		next()
		p.frame(w.Frame)
	}
	p.str(")")
}

func (p *printer) frame(f *Frame) {
	p.str(string(f.Mode))
	if f.Between {
		p.str(" BETWEEN")
	}
	p.frameBound(&f.Start)
	if f.Between {
		p.str(" AND")
		p.frameBound(&f.End)
	}
	if f.Exclude != ExcludeNone {
		p.str(" EXCLUDE ")
		p.str(string(f.Exclude))
	}
}

func (p *printer) frameBound(b *FrameBound) {
	p.str(" ")
	switch b.Kind {
	case CurrentRow:
		p.str("CURRENT ROW")
		return
	case UnboundedPreceding, UnboundedFollowing:
		p.str("UNBOUNDED")
	default:
		p.expr(b.Offset)
	}
	if b.Kind < CurrentRow {
		p.str(" PRECEDING")
	} else {
		p.str(" FOLLOWING")
	}
}

func (p *printer) orderBy(items []OrderItem) {
	p.str("ORDER BY ")
	for i, item := range items {
		if i > 0 {
			p.str(", ")
		}
		p.expr(item.Expr)
		switch {
		case item.Using != "":
			p.str(" USING ")
			p.operator(item.Using, item.Qualified)
		case item.Desc:
			p.str(" DESC")
		case item.Asc:
			p.str(" ASC")
		}
		if item.Nulls {
			p.str(" NULLS ")
			p.str(map[bool]string{true: "FIRST", false: "LAST"}[item.NullsFirst])
		}
	}
}
