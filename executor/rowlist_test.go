package executor

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a list gives any of its rows at any time, whether or not they fit into memory, keeps within its share, and leaves no file behind.
// Method: random reads between additions, against a slice.
func TestRowList(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	columns := []planner.Column{{Type: types.TInt8}, {Type: types.TText}}
	for _, limit := range []int64{256 << 10, 64 << 20} {
		dir := t.TempDir()
		l := NewRowList(columns, &Runtime{Env: &builtin.Env{}, MemoryLimitBytes: limit, TempDir: dir})
		var want []string
		most := int64(0)
		for range 40 {
			for range 1 + rng.IntN(400) {
				row := types.Row{types.Int(int64(len(want))), types.Text(strings.Repeat("x", rng.IntN(300)))}
				if err := l.Add(row); err != nil {
					t.Fatal(err)
				}
				want = append(want, show(row))
				most = max(most, l.Bytes())
			}
			for range rng.IntN(100) {
				pos := rng.IntN(len(want))
				row, err := l.At(int64(pos))
				if err != nil || show(row) != want[pos] {
					t.Fatalf("at %d: %.20s, %v; want %.20s", pos, show(row), err, want[pos])
				}
			}
		}
		if spilled := l.store.file != nil; spilled != (limit == 256<<10) || most > limit {
			t.Errorf("limit %d: file %v, %d bytes in memory", limit, spilled, most)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}
