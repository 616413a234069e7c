package builtin

import (
	"testing"

	"github.com/percodb/percodb/sql/types"
)

func TestTablesBuild(t *testing.T) {
	// Goal: every declared signature is readable. Method: build the tables, which panic otherwise, and
	// resolve one of each.
	if _, err := ResolveFunc("lower", []types.Type{types.TUnknown}); err != nil {
		t.Error(err)
	}
	if _, err := ResolveOperator("+", types.TInt4, types.TInt8); err != nil {
		t.Error(err)
	}
	if _, err := ResolveAggregate("count", nil); err != nil {
		t.Error(err)
	}
	if _, err := ResolveSetFunc("generate_series", []types.Type{types.TInt4, types.TInt4}); err != nil {
		t.Error(err)
	}
}
