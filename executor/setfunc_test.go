package executor

import (
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

func series(t *testing.T, from, to expr.Scalar) *planner.SetFunc {
	t.Helper()
	f, err := builtin.ResolveSetFunc("generate_series", []types.Type{types.TInt8, types.TInt8})
	if err != nil {
		t.Fatal(err)
	}
	return &planner.SetFunc{Base: ints(1), Func: f, Args: []expr.Scalar{from, to}}
}

// generate_series in FROM, with ordinality, and with a NULL bound, which yields nothing.
func TestSetFunc(t *testing.T) {
	wantRows(t, mustRun(t, series(t, lit(3), lit(5))), "3", "4", "5")
	numbered := series(t, lit(3), lit(4))
	numbered.Base, numbered.Ordinality = ints(2), true
	wantRows(t, mustRun(t, numbered), "3 1", "4 2")
	wantRows(t, mustRun(t, series(t, &expr.Const{Typ: types.TInt8}, lit(4))))
}

// In a SELECT list the functions go in lockstep, shorter ones filled with NULL; a row for which none
// yields anything disappears.
func TestProjectSet(t *testing.T) {
	n := &planner.ProjectSet{
		Base: ints(3), Input: rowsOf(1, []any{1}, []any{0}, []any{3}),
		Exprs: []expr.Scalar{intCol(0), nil, nil},
		Sets:  []*planner.SetFunc{nil, series(t, lit(1), intCol(0)), series(t, lit(2), intCol(0))},
	}
	wantRows(t, mustRun(t, n), "1 1 -", "3 1 2", "3 2 3", "3 3 -")
}
