package expr

import (
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// Deparse writes a stored expression as PostgreSQL does: with all parentheses, and if pretty with those that are needed. What is written has the
// meaning of s, in which name names the column with an ordinal. False: s contains a node that is not written.
func Deparse(s Scalar, name func(ordinal int) string, pretty bool) (string, bool) {
	return DeparseColumns(s, func(c *Column) (string, bool) { return keyword.QuoteIdent(name(c.Ordinal)), true }, pretty)
}

// DeparseColumns is Deparse for an expression whose columns column writes; false: it cannot.
func DeparseColumns(s Scalar, column func(*Column) (string, bool), pretty bool) (string, bool) {
	d := deparser{column: column, pretty: pretty, ok: true}
	d.node(s, 0)
	return d.String(), d.ok
}

// IsCallForm reports whether s is written as a function call, which CREATE INDEX takes without parentheses.
func IsCallForm(s Scalar) bool {
	switch s := s.(type) {
	case *Call:
		return !isOperator(s.Fn.Name)
	case *Coalesce, *NullIf, *MinMax:
		return true
	case *Cast:
		return s.Implicit && IsCallForm(s.X)
	}
	return false
}

// deparser writes one expression.
type deparser struct {
	strings.Builder
	column func(*Column) (string, bool)
	pretty bool
	ok     bool
}

// group writes an expression that others may contain, with parentheses unless it is pretty and binds at least as strongly as min.
func (d *deparser) group(prec, min int, f func()) {
	parens := !d.pretty || prec < min
	if parens {
		d.WriteByte('(')
	}
	f()
	if parens {
		d.WriteByte(')')
	}
}

func (d *deparser) node(s Scalar, min int) {
	switch s := s.(type) {
	case *Column:
		text, ok := d.column(s)
		d.WriteString(text)
		d.ok = d.ok && ok
	case *Const:
		d.constant(s)
	case *Call:
		d.call(s, min)
	case *Cast:
		if s.Collate == 0 {
			d.cast(s.X, s.Typ)
			break
		}
		d.group(precUnary, min, func() {
			d.node(s.X, precUnary+1)
			d.WriteString(" COLLATE " + s.Typ.Coll.Written())
		})
	case *Parse:
		if c, ok := s.X.(*Const); ok && !c.Value.IsNull() {
			d.WriteString("'" + strings.ReplaceAll(c.Value.Text(), "'", "''") + "'::" + s.Typ.String())
			return
		}
		d.cast(s.X, s.Typ)
	case *And:
		d.group(precAnd, min, func() { d.list(s.Args, " AND ", precNot) })
	case *Or:
		d.group(precOr, min, func() { d.list(s.Args, " OR ", precAnd) })
	case *Not:
		d.group(precNot, min, func() {
			d.WriteString("NOT ")
			d.node(s.X, precNot)
		})
	case *Compare:
		d.infix(asText(s.L, s.Class), s.Op.String(), asText(s.R, s.Class), min)
	case *IntArith:
		d.infix(s.L, arithOps[s.Op], s.R, min)
	case *FloatArith:
		d.infix(s.L, arithOps[s.Op], s.R, min)
	case *Like:
		op := "~~"
		if s.Not {
			op = "!~~"
		}
		d.infix(asText(s.X, types.TText), op, asText(s.Pattern, types.TText), min)
	default:
		d.test(s, min)
	}
}

func (d *deparser) test(s Scalar, min int) {
	switch s := s.(type) {
	case *IsNull:
		d.is(s.X, not(s.Not)+"NULL", min)
	case *IsBool:
		word := "FALSE"
		if s.Want {
			word = "TRUE"
		}
		d.is(s.X, not(s.Not)+word, min)
	case *IsDistinct:
		d.infix(s.L, "IS "+not(s.Not)+"DISTINCT FROM", s.R, min)
	case *Between:
		if s.Not {
			d.group(precOr, min, func() {
				d.infix(asText(s.X, s.Class), "<", s.Low, precCompare)
				d.WriteString(" OR ")
				d.infix(asText(s.X, s.Class), ">", s.High, precCompare)
			})
			return
		}
		d.group(precAnd, min, func() {
			d.infix(asText(s.X, s.Class), ">=", s.Low, precCompare)
			d.WriteString(" AND ")
			d.infix(asText(s.X, s.Class), "<=", s.High, precCompare)
		})
	case *InList:
		op, quantifier := "=", "ANY"
		if s.Not {
			op, quantifier = "<>", "ALL"
		}
		d.group(precOr, min, func() { // In pretty form too, within any other expression.
			d.node(asText(s.X, s.Class), precUnary+1)
			d.WriteString(" " + op + " " + quantifier + " (ARRAY[")
			d.list(s.List, ", ", 0)
			d.WriteString("])")
		})
	default:
		d.construct(s)
	}
}

func (d *deparser) construct(s Scalar) {
	switch s := s.(type) {
	case *Coalesce:
		d.function("COALESCE", s.Args)
	case *MinMax:
		name := "LEAST"
		if s.Greatest {
			name = "GREATEST"
		}
		d.function(name, s.Args)
	case *NullIf:
		d.function("NULLIF", []Scalar{s.X, nullIfOperand(s.Equal)})
	case *Array:
		d.WriteString("ARRAY[")
		d.list(s.Elems, ", ", 0)
		d.WriteByte(']')
	default:
		d.ok = false
	}
}

// asText is the cast that an operator on texts applies to an operand of type varchar, which evaluation leaves out.
func asText(x Scalar, class types.Type) Scalar {
	if _, constant := x.(*Const); constant || class.OID != types.OIDText || x.Type().OID != types.OIDVarchar {
		return x
	}
	return &Cast{X: x, Typ: types.TText, Implicit: true}
}

func (d *deparser) is(x Scalar, what string, min int) {
	d.group(precCompare, min, func() {
		d.node(x, precUnary+1)
		d.WriteString(" IS " + what)
	})
}

func (d *deparser) call(c *Call, min int) {
	name := c.Fn.Name
	switch {
	case !isOperator(name):
		d.function(name, c.Args)
	case len(c.Args) == 1:
		d.group(precUnary, min, func() {
			d.WriteString(name + " ")
			d.node(c.Args[0], precUnary+1)
		})
	default:
		d.infix(c.Args[0], name, c.Args[1], min)
	}
}

func (d *deparser) infix(l Scalar, op string, r Scalar, min int) {
	prec := arithPrec(op)
	if strings.HasPrefix(op, "IS ") {
		prec = precCompare
	}
	left, right := precUnary+1, precUnary+1
	if prec == precAdd || prec == precMul {
		left, right = prec, prec+1
	}
	d.group(prec, min, func() {
		d.node(l, left)
		d.WriteString(" " + op + " ")
		d.node(r, right)
	})
}

func (d *deparser) function(name string, args []Scalar) {
	d.WriteString(name + "(")
	d.list(args, ", ", 0)
	d.WriteByte(')')
}

func (d *deparser) list(args []Scalar, sep string, min int) {
	for i, a := range args {
		if i > 0 {
			d.WriteString(sep)
		}
		d.node(a, min)
	}
}

func (d *deparser) cast(x Scalar, t types.Type) {
	if c, ok := x.(*Const); ok {
		number := !d.pretty && (c.Typ.OID == types.OIDInt4 || c.Typ.OID == types.OIDNumeric) && c.Typ.OID != t.OID
		if number {
			d.WriteByte('(')
		}
		d.constant(&Const{Value: c.Value, Typ: c.Typ})
		if number {
			d.WriteByte(')')
		}
		d.WriteString("::" + t.String())
		return
	}
	if d.pretty {
		d.node(x, precUnary+1)
	} else {
		_, column := x.(*Column)
		if column || IsCallForm(x) {
			d.WriteByte('(')
		}
		d.node(x, precUnary+1)
		if column || IsCallForm(x) {
			d.WriteByte(')')
		}
	}
	d.WriteString("::" + t.String())
}

// constant writes a constant with its type, unless its form tells it.
func (d *deparser) constant(c *Const) {
	t := c.Typ
	if c.Value.IsNull() {
		d.WriteString("NULL")
		if t.Valid() && t.OID != types.OIDUnknown {
			d.WriteString("::" + t.String())
		}
		return
	}
	text := ""
	if t.OID == types.OIDUnknown {
		text, t = c.Value.Text(), types.TText
	} else {
		text = (&types.Format{}).Text(c.Value, t)
	}
	switch t.OID {
	case types.OIDInt4, types.OIDNumeric:
		if !strings.HasPrefix(text, "-") && strings.Trim(text, "0123456789.") == "" && (t.OID == types.OIDInt4 || strings.Contains(text, ".")) {
			d.WriteString(text)
			return
		}
	case types.OIDBool:
		if text = "false"; c.Value.Bool() {
			text = "true"
		}
		d.WriteString(text)
		return
	}
	d.WriteString("'" + strings.ReplaceAll(text, "'", "''") + "'::" + t.String())
}
