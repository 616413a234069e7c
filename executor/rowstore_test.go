package executor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a store gives its rows back once each, in order, however adding and taking alternate and whether or
// not they fit into memory, keeps within its share, and leaves no file behind. Method: random turns against a
// slice.
func TestRowStore(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	columns := []planner.Column{{Type: types.TInt8}, {Type: types.TText}}
	for _, limit := range []int64{64 << 10, 64 << 20} {
		rt := &Runtime{Env: &builtin.Env{}, MemoryLimitBytes: limit, TempDir: t.TempDir()}
		s := NewRowStore(columns, rt)
		var want []string
		n, most := 0, int64(0)
		for range 60 {
			for range rng.IntN(400) {
				row := types.Row{types.Int(int64(n)), types.Text(strings.Repeat("x", rng.IntN(300)))}
				if n++; n%7 == 0 {
					row[1] = types.Null
				}
				if err := s.Add(row); err != nil {
					t.Fatal(err)
				}
				want = append(want, show(row))
				most = max(most, s.ex.mem.used)
			}
			for range rng.IntN(500) {
				row, err := s.Next()
				if err != nil {
					t.Fatal(err)
				}
				if row == nil {
					if len(want) != 0 {
						t.Fatalf("%d rows are missing", len(want))
					}
					break
				}
				if got := show(row); got != want[0] {
					t.Fatalf("got %.20s, want %.20s", got, want[0])
				}
				want = want[1:]
			}
		}
		if spilled := s.file != nil; spilled != (limit == 64<<10) || most > limit {
			t.Errorf("limit %d: file %v, %d bytes in memory", limit, spilled, most)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(rt.TempDir); err != nil || len(left) > 0 {
			t.Fatal(left, err)
		}
	}
}

// Goal: the rows of a query that is held, drained or detached go to a file where memory ends, and come out
// of it as they were; a detached one shows them when its transaction is over. Method: more rows than the
// limit allows, of plans that are read along one iterator and that are not.
func TestHeldRowsGoToAFile(t *testing.T) {
	db, table := openDB(t), accounts()
	var rows [][]expr.Scalar
	for i := range 3000 {
		rows = append(rows, accountRow(i, fmt.Sprintf("owner %d %s", i, strings.Repeat("x", 100)), 10))
	}
	if _, err := autocommit(t, db, table, insertRows(table, rows...)); err != nil {
		t.Fatal(err)
	}
	scan, fetch := wholeScan(table, &table.Primary), wholeScan(table, &table.Indexes[1])
	for _, n := range []planner.Node{scan, fetch} {
		want, err := autocommit(t, db, table, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, keep := range []string{"hold", "drain", "detach"} {
			txn, ctx := begin(t, db), t.Context()
			rt := testRuntime(txn, table)
			rt.MemoryLimitBytes, rt.TempDir = 64<<10, t.TempDir()
			r, err := Build(planOf(n), rt)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Open(ctx); err != nil {
				t.Fatal(err)
			}
			switch keep {
			case "hold":
				err = r.Hold(ctx)
			case "drain":
				err = r.Drain(ctx)
			case "detach":
				if err = r.Detach(ctx); err == nil {
					err = txn.Rollback(ctx)
				}
			}
			if err != nil {
				t.Fatal(keep, err)
			}
			if (r.held.file != nil) != (keep != "hold" || n == planner.Node(fetch)) {
				t.Errorf("%s: a file: %v", keep, r.held.file != nil)
			}
			var got []string
			for {
				row, err := r.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if row == nil {
					break
				}
				got = append(got, show(row))
			}
			wantRows(t, got, want...)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if r.ex.mem.used != 0 {
				t.Errorf("%s: %d bytes are still booked", keep, r.ex.mem.used)
			}
		}
	}
}
