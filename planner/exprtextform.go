package planner

import (
	"strings"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// test writes a test of a value, or what construct does.
func (w *ruleText) test(s expr.Scalar) {
	switch s := s.(type) {
	case *expr.IsNull:
		what := "NULL"
		if e, ok := w.notes.forms[s].e.(*ast.IsTest); ok {
			what = e.What
		}
		w.is(s, s.X, what, s.Not)
	case *expr.IsBool:
		what := "FALSE"
		if s.Want {
			what = "TRUE"
		}
		w.is(s, s.X, what, s.Not)
	case *expr.IsDistinct:
		distinct := func() {
			w.group(func() {
				w.operand(s.L, true, s)
				w.str(" IS DISTINCT FROM ")
				w.operand(s.R, true, s)
			})
		}
		if !s.Not {
			distinct()
			return
		}
		w.group(func() {
			w.str("NOT ")
			distinct()
		})
	case *expr.Quantified:
		w.quantified(s)
	case *expr.RowCompare:
		w.str("(ROW(")
		w.list(s.L, true)
		w.str(") " + s.Op.String() + " ROW(")
		w.list(s.R, true)
		w.str("))")
	default:
		w.construct(s)
	}
}

func (w *ruleText) is(s, x expr.Scalar, what string, not bool) {
	w.group(func() {
		w.operand(x, what == "NULL", s)
		w.str(" IS ")
		if not {
			w.str("NOT ")
		}
		w.str(what)
	})
}

// quantified writes X op ANY|ALL (array).
func (w *ruleText) quantified(s *expr.Quantified) {
	quantifier := "ANY"
	if s.All {
		quantifier = "ALL"
	}
	cond, ok := s.Cond.(*expr.Call)
	if !ok {
		w.failed = true
		return
	}
	array := s.Array
	if c, cast := cond.Args[1].(*expr.Cast); cast {
		array = &expr.Cast{X: array, Typ: c.Typ.Base().ArrayOf(), Implicit: true}
	}
	w.group(func() {
		w.withSubject(s.X, func() { w.operand(cond.Args[0], true, s) })
		w.str(" " + s.Op + " " + quantifier + " (")
		w.operand(array, true, s)
		w.str(")")
	})
}

// withSubject has f write what CaseValue stands for.
func (w *ruleText) withSubject(x expr.Scalar, f func()) {
	saved := w.subject
	w.subject = x
	f()
	w.subject = saved
}

// construct writes the constructs of the grammar that look like functions, or what they are made of.
func (w *ruleText) construct(s expr.Scalar) {
	switch s := s.(type) {
	case *expr.Coalesce:
		w.function("COALESCE", s.Args...)
	case *expr.MinMax:
		name := "LEAST"
		if s.Greatest {
			name = "GREATEST"
		}
		w.function(name, s.Args...)
	case *expr.NullIf:
		if equal, ok := s.Equal.(*expr.Call); ok {
			w.withSubject(s.X, func() { w.function("NULLIF", equal.Args...) })
			return
		}
		w.failed = true
	case *expr.Case:
		w.caseExpr(s)
	case *expr.Array:
		w.str("ARRAY[")
		w.list(s.Elems, true)
		w.str("]")
		if len(s.Elems) == 0 {
			w.str("::" + w.typeName(s.Typ))
		}
	case *expr.Record:
		w.str("ROW(")
		for i, x := range s.Elems {
			if i > 0 {
				w.str(", ")
			}
			w.alone(x, true)
		}
		w.str(")")
		if s.Typ.OID != types.OIDRecord {
			w.str("::" + w.typeName(s.Typ))
		}
	case *expr.Field:
		_, nested := s.X.(*expr.Field)
		_, element := w.notes.forms[s.X].e.(*ast.Subscript)
		if nested || element {
			w.expr(s.X, true)
		} else {
			w.str("(")
			w.expr(s.X, true)
			w.str(")")
		}
		w.str(".")
		w.ident(s.Name)
	default:
		w.subquery(s)
	}
}

func (w *ruleText) function(name string, args ...expr.Scalar) {
	w.str(name + "(")
	w.list(args, true)
	w.str(")")
}

func (w *ruleText) caseExpr(s *expr.Case) {
	const step = 4
	w.keyword("CASE", 0, step, 0)
	if s.Operand != nil {
		w.str(" ")
		w.expr(s.Operand, true)
	}
	for _, arm := range s.Whens {
		w.keyword("WHEN ", 0, 0, 0)
		cond := arm.Cond
		if equal, ok := cond.(*expr.Call); ok && s.Operand != nil && len(equal.Args) == 2 {
			cond = equal.Args[1]
		}
		w.expr(cond, false)
		w.str(" THEN ")
		w.expr(arm.Then, true)
	}
	w.keyword("ELSE ", 0, 0, 0)
	if s.Else == nil {
		w.expr(expr.NewNull(s.Typ), true)
	} else {
		w.expr(s.Else, true)
	}
	w.keyword("END", -step, 0, 0)
}

// subscripts writes X[i] or X[low:high], or several of them.
func (w *ruleText) subscripts(e *ast.Subscript) {
	if inner, ok := e.X.(*ast.Subscript); ok && !e.Parens {
		w.subscripts(inner)
	} else {
		x := w.boundTo(e.X)
		_, column := x.(*expr.Column)
		_, field := x.(*expr.Field)
		if column || field {
			w.expr(x, true)
		} else {
			w.str("(")
			w.expr(x, true)
			w.str(")")
		}
	}
	bound := func(e ast.Expr) {
		if e != nil {
			w.expr(w.boundTo(e), false)
		}
	}
	w.str("[")
	if e.Slice {
		bound(e.Low)
		w.str(":")
		bound(e.High)
	} else {
		bound(e.Index)
	}
	w.str("]")
}

// subquery writes a subquery and what it is compared with.
func (w *ruleText) subquery(s expr.Scalar) {
	switch s := s.(type) {
	case *expr.ScalarSubquery:
		w.str("(")
		w.nested(s.Sub)
		w.str(")")
	case *expr.Exists:
		w.str("(EXISTS (")
		w.nested(s.Sub)
		w.str("))")
	case *expr.ArraySubquery:
		w.str("ARRAY(")
		w.nested(s.Sub)
		w.str(")")
	case *expr.QuantifiedSubquery:
		w.str("(")
		w.compared(s)
		w.nested(s.Sub)
		w.str("))")
	default:
		w.failed = true
	}
}

// compared writes the left side of a quantified subquery.
func (w *ruleText) compared(s *expr.QuantifiedSubquery) {
	if rec, ok := s.X.(*expr.Record); ok && len(rec.Elems) > 1 {
		w.str("(")
		w.list(rec.Elems, true)
		w.str(")")
	} else if cond, ok := s.Cond.(*expr.Call); ok {
		w.withSubject(s.X, func() { w.expr(cond.Args[0], true) })
	} else {
		w.failed = true
	}
	switch {
	case s.All:
		w.str(" " + s.Op + " ALL (")
	case s.Op == "=":
		w.str(" IN (")
	default:
		w.str(" " + s.Op + " ANY (")
	}
}

func (w *ruleText) nested(sub *expr.Subquery) {
	q, ok := sub.Source.(*ast.Query)
	if !ok {
		w.failed = true
		return
	}
	w.query(q, nil, false)
}

// isSimple reports whether a part of parent is written without parentheses in pretty form.
func (w *ruleText) isSimple(s, parent expr.Scalar) bool {
	switch s := s.(type) {
	case *expr.Parse, *expr.Const, *expr.Column, *expr.CaseValue, *expr.Case, *expr.Coalesce, *expr.MinMax, *expr.NullIf, *expr.Array, *expr.Record,
		*expr.Subscript, *expr.Slice:
		return true
	case *expr.Field:
		_, nested := parent.(*expr.Field)
		return !nested
	case *expr.Cast:
		return s.Collate == 0 && (byFunction(s) || w.isSimple(s.X, s))
	case *expr.Call:
		if !isOperatorName(s.Fn.Name) {
			return true
		}
		if p, ok := parent.(*expr.Call); ok && isOperatorName(p.Fn.Name) {
			return simpleOperand(s, p)
		}
		return w.containsOperators(parent)
	case *expr.And:
		switch parent.(type) {
		case *expr.And, *expr.Or:
			return true
		}
		return w.containsConditions(parent)
	case *expr.Or:
		if _, or := parent.(*expr.Or); or {
			return true
		}
		return w.containsConditions(parent)
	case *expr.Not:
		switch parent.(type) {
		case *expr.And, *expr.Or:
			return true
		}
		return w.containsConditions(parent)
	case *expr.IsNull, *expr.IsBool, *expr.IsDistinct, *expr.ScalarSubquery, *expr.Exists, *expr.ArraySubquery, *expr.QuantifiedSubquery:
		return w.containsOperators(parent)
	}
	return false
}

// simpleOperand reports whether an arithmetic operator needs no parentheses within another.
func simpleOperand(s, parent *expr.Call) bool {
	if len(s.Args) != 2 || len(parent.Args) != 2 {
		return false
	}
	const low, high = "+-", "*/%"
	is := func(c *expr.Call, ops string) bool { return len(c.Fn.Name) == 1 && strings.Contains(ops, c.Fn.Name) }
	switch {
	case is(s, high) && is(parent, low):
		return true
	case is(s, low) && is(parent, low), is(s, high) && is(parent, high):
		return parent.Args[0] == expr.Scalar(s)
	}
	return false
}

// containsOperators reports whether operators within parent need no parentheses.
func (w *ruleText) containsOperators(parent expr.Scalar) bool {
	switch parent.(type) {
	case *expr.And, *expr.Or, *expr.Not:
		return true
	}
	return w.containsConditions(parent)
}

// containsConditions is containsOperators for AND, OR and NOT.
func (w *ruleText) containsConditions(parent expr.Scalar) bool {
	switch p := parent.(type) {
	case *expr.Call:
		switch e := w.notes.forms[p].e.(type) {
		case *ast.AtTimeZone:
			return false
		case *ast.Call:
			return e.Syntax == ast.PlainCall
		}
		return !isOperatorName(p.Fn.Name)
	case *expr.Subscript, *expr.Slice, *expr.Array, *expr.Record, *expr.Coalesce, *expr.MinMax, *expr.NullIf, *expr.Case:
		return true
	}
	return false
}
