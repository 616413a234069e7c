package expr

import (
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Leakproof reports whether evaluating s reveals nothing about the columns that it reads but by its result: every function, operator and
// cast whose arguments depend on a column is leakproof. What depends on no column may be anything. constant reports whether a subquery
// depends on no column.
func Leakproof(s Scalar, constant func(*Subquery) bool) bool {
	l := leaks{constant: constant}
	l.reads(s)
	return !l.found
}

// NeverFails reports whether s is Leakproof and nothing in it can fail, so that not even whether it is evaluated shows.
func NeverFails(s Scalar) bool {
	l := leaks{all: true}
	l.reads(s)
	return !l.found
}

// leaks searches an expression for operations that may reveal the values of columns.
type leaks struct {
	constant func(*Subquery) bool
	all      bool // also operations that depend on no column
	found    bool
}

// reads reports whether s depends on a column, and notes whether it may reveal it.
func (l *leaks) reads(s Scalar) bool {
	switch s := s.(type) {
	case *Const, *Input:
		return false
	case *Column, *Outer, *CaseValue:
		return true
	case *ScalarSubquery, *Exists, *ArraySubquery:
		if l.all || !l.constant(SubqueryOf(s)) {
			l.found = true
		}
		return false
	}
	reads := false
	operands(s, func(x *Scalar) { reads = l.reads(*x) || reads })
	if (reads || l.all) && !leakproofNode(s) {
		l.found = true
	}
	return reads
}

// leakproofNode reports whether the operation of s itself, operands aside, reveals nothing about them but by its result.
func leakproofNode(s Scalar) bool {
	switch s := s.(type) {
	case *And, *Or, *Not, *IsNull, *IsBool, *Case, *Coalesce, *NullIf, *Array, *Record, *Field, *Subscript, *Slice:
		return true // The conditions of Case and NullIf are operands.
	case *Call:
		return s.Fn.Leakproof()
	case *Cast:
		return s.Fn == nil || s.Fn.Leakproof()
	case *Compare:
		return builtin.LeakproofComparison(s.Class)
	case *IsDistinct:
		return s.Equal == nil && builtin.LeakproofComparison(s.Class)
	case *RowCompare:
		return leakproofComparisons(s.Classes)
	case *Between:
		return builtin.LeakproofComparison(s.Class)
	case *InList:
		return builtin.LeakproofComparison(s.Class)
	case *TupleList:
		return leakproofComparisons(s.Classes)
	case *MinMax:
		return builtin.LeakproofComparison(s.Typ)
	case *Quantified:
		c, plain := s.Plain()
		return plain && builtin.LeakproofComparison(c.Class)
	}
	return false // Parse, IntArith, FloatArith, Like, subqueries that are given a value
}

func leakproofComparisons(classes []types.Type) bool {
	for _, t := range classes {
		if !builtin.LeakproofComparison(t) {
			return false
		}
	}
	return true
}
