package expr

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/percodb/percodb/sql/types"
)

// Printer writes expressions for EXPLAIN.
type Printer struct {
	strings.Builder
	// Inputs are the texts shown for slotted literals, by slot; nil or too short shows their place.
	Inputs []string
	// Format is the format of constants.
	Format *types.Format
}

// Binding strengths, weakest first.
const (
	precOr = iota + 1
	precAnd
	precNot
	precCompare
	precOther
	precAdd
	precMul
	precUnary
)

// Print writes s.
func (p *Printer) Print(s Scalar) { p.print(s, 0) }

// print writes s, in parentheses when it binds weaker than min.
func (p *Printer) print(s Scalar, min int) {
	prec := precOf(s)
	if prec != 0 && prec < min {
		p.WriteByte('(')
		p.node(s)
		p.WriteByte(')')
		return
	}
	p.node(s)
}

// precOf returns the binding strength of s as written, 0 for what needs no parentheses.
func precOf(s Scalar) int {
	switch s := s.(type) {
	case *Or:
		return precOr
	case *And:
		return precAnd
	case *Not:
		return precNot
	case *Compare, *IsDistinct, *RowCompare, *Between, *InList, *TupleList, *Like, *Quantified, *IsNull, *IsBool,
		*InSubquery, *QuantifiedSubquery:
		return precCompare
	case *IntArith:
		return arithPrec(arithOps[s.Op])
	case *FloatArith:
		return arithPrec(arithOps[s.Op])
	case *Call:
		if isOperator(s.Fn.Name) {
			if len(s.Args) == 1 {
				return precUnary
			}
			return arithPrec(s.Fn.Name)
		}
	}
	return 0
}

func arithPrec(op string) int {
	switch op {
	case "+", "-":
		return precAdd
	case "*", "/", "%":
		return precMul
	case "=", "<", ">", "<=", ">=", "<>":
		return precCompare
	}
	return precOther
}

func isOperator(name string) bool {
	return name != "" && !unicode.IsLetter(rune(name[0])) && name[0] != '_'
}

func (p *Printer) node(s Scalar) {
	switch s := s.(type) {
	case *Column:
		p.WriteString(s.Name)
	case *Outer:
		p.WriteString(s.Name)
	case *Const:
		p.constant(s)
	case *Input:
		p.input(s)
	case *CaseValue:
		p.WriteString("value")
	case *Call:
		p.call(s)
	case *Cast:
		p.print(s.X, precUnary)
		if !s.Implicit {
			p.WriteString("::" + s.Typ.String())
		}
	case *Parse:
		p.print(s.X, precUnary)
		p.WriteString("::" + s.Typ.String())
	case *And:
		p.list(s.Args, " AND ", precAnd+1)
	case *Or:
		p.list(s.Args, " OR ", precOr+1)
	case *Not:
		p.WriteString("NOT ")
		p.print(s.X, precNot)
	case *Compare:
		p.infix(s.L, s.Op.String(), s.R, precCompare+1)
	case *IntArith:
		p.infix(s.L, arithOps[s.Op], s.R, precOf(s))
	case *FloatArith:
		p.infix(s.L, arithOps[s.Op], s.R, precOf(s))
	default:
		p.predicate(s)
	}
}

func (p *Printer) predicate(s Scalar) {
	switch s := s.(type) {
	case *IsNull:
		p.print(s.X, precCompare+1)
		p.WriteString(" IS " + not(s.Not) + "NULL")
	case *IsBool:
		p.print(s.X, precCompare+1)
		p.WriteString(" IS " + not(s.Not) + strings.ToUpper(strconv.FormatBool(s.Want)))
	case *IsDistinct:
		p.infix(s.L, "IS "+not(s.Not)+"DISTINCT FROM", s.R, precCompare+1)
	case *RowCompare:
		p.tuple(s.L)
		p.WriteString(" " + s.Op.String() + " ")
		p.tuple(s.R)
	case *Between:
		p.print(s.X, precCompare+1)
		p.WriteString(" " + not(s.Not) + "BETWEEN ")
		p.print(s.Low, precCompare+1)
		p.WriteString(" AND ")
		p.print(s.High, precCompare+1)
	case *InList:
		p.print(s.X, precCompare+1)
		p.WriteString(" " + not(s.Not) + "IN ")
		p.tuple(s.List)
	case *TupleList:
		p.tuple(s.X)
		p.WriteString(" IN (")
		for i := 0; i < len(s.List); i += len(s.X) {
			if i > 0 {
				p.WriteString(", ")
			}
			p.tuple(s.List[i : i+len(s.X)])
		}
		p.WriteByte(')')
	case *Like:
		p.infix(s.X, not(s.Not)+"LIKE", s.Pattern, precCompare+1)
	case *Quantified:
		p.print(s.X, precCompare+1)
		p.WriteString(" " + s.Op + " " + quantifier(s.All) + " (")
		p.print(s.Array, 0)
		p.WriteByte(')')
	default:
		p.construct(s)
	}
}

func (p *Printer) construct(s Scalar) {
	switch s := s.(type) {
	case *Case:
		p.caseExpr(s)
	case *Coalesce:
		p.function("COALESCE", s.Args...)
	case *NullIf:
		p.WriteString("NULLIF(")
		p.print(s.X, 0)
		p.WriteString(", ")
		p.print(nullIfOperand(s.Equal), 0)
		p.WriteByte(')')
	case *MinMax:
		name := "LEAST"
		if s.Greatest {
			name = "GREATEST"
		}
		p.function(name, s.Args...)
	case *Array:
		p.WriteString("ARRAY[")
		p.list(s.Elems, ", ", 0)
		p.WriteByte(']')
	case *Record:
		p.WriteString("ROW")
		p.tuple(s.Elems)
	case *Field:
		p.WriteByte('(')
		p.print(s.X, 0)
		p.WriteString(")." + s.Name)
	case *Subscript:
		p.print(s.X, precUnary+1)
		for _, x := range s.Index {
			p.WriteByte('[')
			p.print(x, 0)
			p.WriteByte(']')
		}
	case *Slice:
		p.slice(s)
	default:
		p.subquery(s)
	}
}

// nullIfOperand returns the second operand of NullIf, for printing.
func nullIfOperand(equal Scalar) Scalar {
	switch e := equal.(type) {
	case *Compare:
		return e.R
	case *Call:
		return e.Args[len(e.Args)-1]
	}
	return equal
}

func (p *Printer) subquery(s Scalar) {
	sub := SubqueryOf(s)
	if sub == nil {
		p.WriteString(s.String())
		return
	}
	name := "subquery " + strconv.Itoa(sub.ID+1)
	switch s := s.(type) {
	case *ScalarSubquery:
		p.WriteString("(" + name + ")")
	case *Exists:
		p.WriteString("EXISTS (" + name + ")")
	case *ArraySubquery:
		p.WriteString("ARRAY(" + name + ")")
	case *InSubquery:
		if len(s.X) == 1 {
			p.print(s.X[0], precCompare+1)
		} else {
			p.tuple(s.X)
		}
		p.WriteString(" " + not(s.Not) + "IN (" + name + ")")
	case *QuantifiedSubquery:
		p.print(s.X, precCompare+1)
		p.WriteString(" " + s.Op + " " + quantifier(s.All) + " (" + name + ")")
	}
}

func (p *Printer) constant(c *Const) {
	if c.Value.IsNull() {
		p.WriteString("NULL")
		return
	}
	switch c.Value.Kind() {
	case types.KindInt, types.KindBool, types.KindFloat, types.KindDecimal:
		if c.Typ.Category() != types.CategoryDateTime {
			p.WriteString(p.format().Text(c.Value, c.Typ))
			return
		}
	}
	text := ""
	if c.Typ.OID == types.OIDUnknown {
		text = c.Value.Text()
	} else {
		text = p.format().Text(c.Value, c.Typ)
	}
	p.quote(text)
}

func (p *Printer) format() *types.Format {
	if p.Format == nil {
		p.Format = &types.Format{}
	}
	return p.Format
}

func (p *Printer) quote(text string) {
	p.WriteString("'" + strings.ReplaceAll(text, "'", "''") + "'")
}

func (p *Printer) input(i *Input) {
	switch {
	case i.Param > 0:
		p.WriteString("$" + strconv.Itoa(i.Param))
	case i.Cursor > 0:
		p.WriteString("CURRENT OF")
	case i.Slot < len(p.Inputs):
		if i.Typ.Category() == types.CategoryNumeric {
			p.WriteString(p.Inputs[i.Slot])
		} else {
			p.quote(p.Inputs[i.Slot])
		}
	default:
		p.WriteString("?" + strconv.Itoa(i.Slot+1))
	}
}

func (p *Printer) call(c *Call) {
	name := c.Fn.Name
	switch {
	case !isOperator(name):
		p.function(name, c.Args...)
	case len(c.Args) == 1:
		p.WriteString(name)
		p.print(c.Args[0], precUnary)
	default:
		p.infix(c.Args[0], name, c.Args[1], precOf(c))
	}
}

func (p *Printer) function(name string, args ...Scalar) {
	p.WriteString(name)
	p.tuple(args)
}

func (p *Printer) tuple(args []Scalar) {
	p.WriteByte('(')
	p.list(args, ", ", 0)
	p.WriteByte(')')
}

func (p *Printer) list(args []Scalar, sep string, min int) {
	for i, a := range args {
		if i > 0 {
			p.WriteString(sep)
		}
		p.print(a, min)
	}
}

// infix writes a left-associative operator whose operands bind at least as strongly as prec.
func (p *Printer) infix(l Scalar, op string, r Scalar, prec int) {
	p.print(l, prec)
	p.WriteString(" " + op + " ")
	p.print(r, prec+1)
}

func (p *Printer) caseExpr(c *Case) {
	p.WriteString("CASE")
	if c.Operand != nil {
		p.WriteByte(' ')
		p.print(c.Operand, 0)
	}
	for _, w := range c.Whens {
		p.WriteString(" WHEN ")
		if c.Operand != nil {
			p.print(nullIfOperand(w.Cond), 0)
		} else {
			p.print(w.Cond, 0)
		}
		p.WriteString(" THEN ")
		p.print(w.Then, 0)
	}
	if c.Else != nil {
		p.WriteString(" ELSE ")
		p.print(c.Else, 0)
	}
	p.WriteString(" END")
}

func (p *Printer) slice(s *Slice) {
	p.print(s.X, precUnary+1)
	for i := range s.Low {
		p.WriteByte('[')
		if s.Low[i] != nil {
			p.print(s.Low[i], 0)
		}
		p.WriteByte(':')
		if s.High[i] != nil {
			p.print(s.High[i], 0)
		}
		p.WriteByte(']')
	}
}

func not(yes bool) string {
	if yes {
		return "NOT "
	}
	return ""
}

func quantifier(all bool) string {
	if all {
		return "ALL"
	}
	return "ANY"
}

// text prints s with the places of literals.
func text(s Scalar) string {
	var p Printer
	p.Print(s)
	return p.String()
}
