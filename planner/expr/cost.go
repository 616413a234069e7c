package expr

import "github.com/percodb/percodb/sql/builtin"

// subqueryCost is the cost of a subquery, in calls of operators: it is evaluated after everything else.
const subqueryCost = 1000

// Cost is the cost of evaluating s, in calls of operators, as PostgreSQL counts it: constants, columns, AND, OR, CASE and tests for NULL cost
// nothing, and operands that may be skipped cost as much as others.
func Cost(s Scalar) (cost float64) {
	if SubqueryOf(s) != nil {
		cost += subqueryCost
	}
	switch s := s.(type) {
	case *Call:
		cost += callCost(s.Fn)
	case *Cast:
		if s.Fn != nil {
			cost++
		}
	case *Between: // Two comparisons, each with X.
		cost += 2 + Cost(s.X)
	case *InList:
		cost += float64(len(s.List)) / 2
	case *TupleList:
		cost += float64(len(s.List))
	case *Compare, *RowCompare, *IsDistinct, *IntArith, *FloatArith, *Like, *NullIf, *MinMax, *Parse, *Quantified:
		cost++
	}
	operands(s, func(x *Scalar) { cost += Cost(*x) })
	return cost
}

func callCost(o *builtin.Overload) float64 {
	if o.Call != nil {
		return o.Call.Routine.Cost
	}
	return 1
}
