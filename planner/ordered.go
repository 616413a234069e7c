package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// requireEquality returns 42883 for a type whose values cannot be grouped or made distinct.
func requireEquality(t types.Type, pos int) error {
	if t.HasEquality() {
		return requireCollation(t, "string hashing")
	}
	return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", builtin.TypeName(t)).At(pos)
}

// comparable reports whether an operator can compare the values of a type, which may be arrays of what it cannot.
func comparable(op expr.CmpOp, t types.Type) bool {
	if op == expr.EQ || op == expr.NE {
		return t.HasEquality()
	}
	return t.Ordered()
}
