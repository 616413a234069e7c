package planner

import (
	"testing"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Goal: an expression with one unsafe part is unsafe, wherever the part is. Method: a volatile call before, after and below others.
func TestSafeLooksAtAllParts(t *testing.T) {
	call := func(v builtin.Volatility, args ...expr.Scalar) expr.Scalar {
		return &expr.Call{Fn: &builtin.Overload{Volatility: v, Ret: types.TBool}, Args: args}
	}
	pure, volatile, outer := call(builtin.Immutable), call(builtin.Volatile), &expr.Outer{Typ: types.TBool}
	for _, c := range []struct {
		name        string
		e           expr.Scalar
		safe, among bool
	}{
		{"pure", &expr.And{Args: []expr.Scalar{pure, pure}}, true, true},
		{"first", &expr.And{Args: []expr.Scalar{volatile, pure}}, false, false},
		{"last", &expr.And{Args: []expr.Scalar{pure, volatile}}, false, false},
		{"below", call(builtin.Immutable, volatile, pure), false, false},
		{"outer", &expr.And{Args: []expr.Scalar{outer, pure}}, false, true},
		{"subquery", &expr.And{Args: []expr.Scalar{&expr.Exists{Sub: &expr.Subquery{}}, pure}}, false, false},
	} {
		if got := safe(c.e, false); got != c.safe {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := safe(c.e, true); got != c.among {
			t.Errorf("%s, with rows of enclosing queries: %v", c.name, got)
		}
	}
}
