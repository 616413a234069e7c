package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/percodb/percodb/internal/invariants"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// spillLimit is a memory limit under which some seventy rows of two integers fit into a block.
const spillLimit = 16 << 10

// spillSides are inputs by what is odd about them.
func spillSides() map[string][2]side {
	rng := rand.New(rand.NewPCG(5, 5))
	rows := func(n int, key func(i int) any) side {
		s := side{}
		for i := range n {
			s = append(s, []any{key(i), i})
		}
		return s
	}
	random := func(of int) func(int) any {
		return func(int) any {
			if rng.IntN(10) == 0 {
				return nil
			}
			return rng.IntN(of)
		}
	}
	one := func(int) any { return 7 }
	null := func(int) any { return nil }
	heavy := func(i int) any {
		if i%8 != 0 {
			return 7
		}
		return i
	}
	return map[string][2]side{
		"random":     {rows(400, random(300)), rows(700, random(300))},
		"two levels": {rows(500, random(8000)), rows(5000, random(8000))},
		"one key":    {append(rows(12, one), rows(50, random(20))...), rows(400, one)},
		"heavy key":  {append(rows(12, one), rows(200, random(200))...), rows(900, heavy)},
		"no left":    {nil, rows(400, random(300))},
		"all nulls":  {rows(200, null), rows(400, null)},
		"no right":   {rows(400, random(300)), nil},
	}
}

// spillJoins are the joins of the sides under every form that a key may have, with a residual
// condition and without one.
func spillJoins(kind planner.JoinKind, s [2]side) map[string]*planner.HashJoin {
	left, right := rowsOf(2, s[0]...), rowsOf(2, s[1]...)
	left.Base, right.Base = ints(2), ints(2)
	base := join(left, right)
	if kind == planner.SemiJoin || kind == planner.AntiJoin {
		base = left.Base
	}
	text := &fn{types.TText, func(_ *expr.Context, in types.Row) (types.Datum, error) {
		if in[0].IsNull() {
			return types.Null, nil
		}
		return types.Text(fmt.Sprint("key ", in[0].Int())), nil
	}}
	out := map[string]*planner.HashJoin{}
	for name, keys := range map[string][]expr.Scalar{
		"exact": {intCol(0)}, "computed": {times(0, 3)}, "wide": {intCol(0), intCol(0)}, "text": {text, intCol(0)},
	} {
		out[name] = &planner.HashJoin{Base: base, Kind: kind, Left: left, Right: right, LeftKeys: keys, RightKeys: keys}
	}
	some := *out["exact"]
	some.On = cond(func(in types.Row) bool { return (in[1].Int()+in[3].Int())%97 == 0 })
	out["residual"] = &some
	return out
}

var spillKinds = map[string]planner.JoinKind{
	"inner": planner.InnerJoin, "left": planner.LeftJoin, "full": planner.FullJoin, "semi": planner.SemiJoin, "anti": planner.AntiJoin,
}

// spillTest runs a hash join under a limit and watches what it does.
type spillTest struct {
	join   *hashJoin
	rows   []string
	depth  int  // the greatest of a part that yielded rows
	blocks bool // a part was joined in blocks
}

func newSpillTest(t testing.TB, n *planner.HashJoin, rt *Runtime) *spillTest {
	ex := &execution{}
	ex.bind(rt)
	left, err := ex.build(n.Left)
	if err != nil {
		t.Fatal(err)
	}
	right, err := ex.build(n.Right)
	if err != nil {
		t.Fatal(err)
	}
	return &spillTest{join: newHashJoin(ex, left, right, n)}
}

func (s *spillTest) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.join.Close()) }()
	if err := s.join.Open(ctx); err != nil {
		return err
	}
	for {
		row, err := s.join.Next(ctx)
		if row == nil || err != nil {
			return err
		}
		s.rows = append(s.rows, show(row))
		if spilled := s.join.spilled; spilled != nil {
			s.depth = max(s.depth, spilled.part.depth)
			s.blocks = s.blocks || spilled.earlier != nil
		}
	}
}

// A hash join whose right side does not fit into memory yields the rows that it yields with room: all
// kinds, keys that are columns, computed, of several columns; parts that are divided again, a key that
// cannot be divided, sides that are empty or all NULL. Nothing is left in the directory, open, or in
// the account.
func TestHashJoinSpills(t *testing.T) {
	for shape, sides := range spillSides() {
		for kindName, kind := range spillKinds {
			for keyName, n := range spillJoins(kind, sides) {
				t.Run(shape+" "+kindName+" "+keyName, func(t *testing.T) {
					want := newSpillTest(t, n, testRuntime(newMemTxn()))
					if err := want.run(t.Context()); err != nil {
						t.Fatal(err)
					}
					if want.join.tempBytes != 0 {
						t.Fatal("a join with room has written a file")
					}
					rt := testRuntime(newMemTxn())
					rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()
					got := newSpillTest(t, n, rt)
					if err := got.run(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got, want := inAnyOrder(got.rows), inAnyOrder(want.rows); !slices.Equal(got, want) {
						t.Errorf("%d rows differ from the %d in memory", len(got), len(want))
					}
					checkSpill(t, shape, kind, got)
					wantNothingLeft(t, got.join.ex, rt)
				})
			}
		}
	}
}

// checkSpill makes sure that the join went the way that its shape is there for.
func checkSpill(t *testing.T, shape string, kind planner.JoinKind, s *spillTest) {
	t.Helper()
	oneRow := shape == "one key" && s.join.single
	wantSpill := shape != "no right" && (shape != "all nulls" || kind == planner.FullJoin) && !oneRow
	if (s.join.tempBytes > 0) != wantSpill && shape != "no left" {
		t.Errorf("%d bytes in files", s.join.tempBytes)
	}
	if shape == "two levels" && s.depth < 2 {
		t.Errorf("no part was divided again")
	}
	yields := kind != planner.AntiJoin && !s.join.single // from parts of the key itself, of which there is more than one row
	if key := shape == "one key" || shape == "heavy key"; key && yields && !s.blocks {
		t.Errorf("no part was joined in blocks")
	}
}

// wantNothingLeft looks for files in the directory, open ones without a name, and booked memory.
func wantNothingLeft(t *testing.T, ex *execution, rt *Runtime) {
	t.Helper()
	if left, err := os.ReadDir(rt.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	links, _ := filepath.Glob("/proc/self/fd/*") // elsewhere than on Linux: nothing
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, rt.TempDir) {
			t.Errorf("still open: %s", to)
		}
	}
	if ex.mem.used != 0 {
		t.Errorf("%d bytes still booked", ex.mem.used)
	}
}

// countdown is a context that ends when its turn comes: at the n-th look at it.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n <= 0 {
		return context.Canceled
	}
	return nil
}

// A cancel ends a spilled join in whatever phase it is, and leaves nothing behind.
func TestSpilledJoinIsCancelled(t *testing.T) {
	sides := spillSides()
	for _, shape := range []string{"two levels", "heavy key"} {
		n := spillJoins(planner.FullJoin, sides[shape])["text"]
		for at := 1; ; at += 5 {
			rt := testRuntime(newMemTxn())
			rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()
			s := newSpillTest(t, n, rt)
			err := s.run(&countdown{t.Context(), at})
			wantNothingLeft(t, s.join.ex, rt)
			if err == nil {
				if at < 30 {
					t.Errorf("%s: only %d looks at the context", shape, at)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, look %d: %v", shape, at, err)
			}
		}
	}
}

// Whatever evaluation fails, the error comes out of the spilled join and nothing stays behind; the same
// operator then does its work.
func TestSpilledJoinFails(t *testing.T) {
	var budget int
	fragile := func(e expr.Scalar) expr.Scalar {
		return &fn{e.Type(), func(ev *expr.Context, in types.Row) (types.Datum, error) {
			if budget--; budget == 0 {
				return types.Null, errBoom
			}
			return e.Eval(ev, in)
		}}
	}
	n := spillJoins(planner.FullJoin, spillSides()["heavy key"])["computed"]
	n.LeftKeys, n.RightKeys = []expr.Scalar{fragile(times(0, 3))}, []expr.Scalar{fragile(times(0, 3))}
	n.On = fragile(lit(true))
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()
	s := newSpillTest(t, n, rt)
	for at := 1; ; at += 499 {
		budget = at
		err := s.run(t.Context())
		wantNothingLeft(t, s.join.ex, rt)
		if err == nil {
			if s.join.tempBytes == 0 || at < 4000 {
				t.Errorf("%d bytes in files, %d evaluations", s.join.tempBytes, at)
			}
			return
		}
		if !errors.Is(err, errBoom) {
			t.Fatalf("evaluation %d: %v", at, err)
		}
	}
}

// A temporary file that cannot be made, written or read ends the statement with an error that says so;
// what cannot be written to a file still ends at the memory limit.
func TestSpilledJoinWithoutFile(t *testing.T) {
	n := spillJoins(planner.LeftJoin, spillSides()["two levels"])["exact"]
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()+"/missing"
	wantCode(t, newSpillTest(t, n, rt).run(t.Context()), pgerror.IOError)

	rt.TempDir = t.TempDir()
	s := newSpillTest(t, n, rt)
	if err := s.join.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.join.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.join.spilled.file.file.Close() // any use of it fails from now on
	var err error
	for row := (types.Row{}); row != nil && err == nil; {
		row, err = s.join.Next(t.Context())
	}
	wantCode(t, err, pgerror.IOError)
	if err := s.join.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close: %v", err)
	}
	wantNothingLeft(t, s.join.ex, rt)

	records := spillJoins(planner.LeftJoin, spillSides()["two levels"])["exact"]
	records.Right = &planner.Values{Base: columns(types.TInt8, types.TRecord), Rows: n.Right.(*planner.Values).Rows}
	e := wantCode(t, newSpillTest(t, records, rt).run(t.Context()), pgerror.OutOfMemory)
	if e.Hint == "" {
		t.Error("no hint")
	}
}

// A full disk is told apart from other failures.
func TestTempFileOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	l := tempList{file: &tempFile{file: full}}
	for range 10000 {
		if err = l.add(nil, types.Row{types.Text("some text"), types.Null}); err != nil {
			break
		}
	}
	e := wantCode(t, err, pgerror.DiskFull)
	if !errors.Is(e.Cause, syscall.ENOSPC) || e.Hint == "" {
		t.Errorf("%v, cause %v, hint %q", e, e.Cause, e.Hint)
	}
}

// A LIMIT above a spilled join leaves no file, the runner may be used again, and EXPLAIN ANALYZE tells
// that there was a file.
func TestSpilledJoinUnderLimit(t *testing.T) {
	joined := spillJoins(planner.LeftJoin, spillSides()["random"])["exact"]
	r, a, err := NewAnalyzedRunner(planOf(&planner.Limit{Base: joined.Base, Input: joined, Limit: lit(3)}))
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for range 3 {
		rt := testRuntime(newMemTxn())
		rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()
		if n := runOnce(t, r, rt); n != 3 {
			t.Errorf("%d rows", n)
		}
		wantNothingLeft(t, &r.ex, rt)
		stats, _ := a.Node(joined)
		if stats.TempBytes <= last || stats.TempBytes%tempPageBytes != 0 {
			t.Errorf("%d bytes in files, %d before", stats.TempBytes, last)
		}
		last = stats.TempBytes
	}
}

// Several joins share the account: each leaves room for those below it, however many there are.
func TestSpilledJoinsShareMemory(t *testing.T) {
	sides := spillSides()["random"]
	rows := side{}
	for i := range 400 {
		rows = append(rows, []any{i, i})
	}
	var n planner.Node = rowsOf(2, sides[0]...)
	for range 8 {
		right := rowsOf(2, rows...)
		n = &planner.HashJoin{Base: join(n, right), Kind: planner.LeftJoin, Left: n, Right: right,
			LeftKeys: []expr.Scalar{intCol(0)}, RightKeys: []expr.Scalar{intCol(0)}}
	}
	want := mustRun(t, n)
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = spillLimit, t.TempDir()
	got, _, err := runPlan(planOf(n), rt)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(inAnyOrder(got), inAnyOrder(want)) {
		t.Errorf("%d rows differ from the %d in memory", len(got), len(want))
	}
}

// Pages of a list that was dropped are used again, rows may be longer than a page and shorter than a
// byte, and a list may be read twice.
func TestTempListReusesPages(t *testing.T) {
	ex := &execution{}
	ex.bind(&Runtime{Env: &builtin.Env{}, TempDir: t.TempDir()})
	f, err := ex.newTempFile()
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	long := types.Text(strings.Repeat("x", 3*tempPageBytes))
	rows := []types.Row{{types.Int(1), long}, {}, {types.Null}, {types.Text("")}, {long, long}, {}}
	var size int64
	for round := range 3 {
		lists := []tempList{{file: f}, {file: f}}
		for i, row := range rows {
			if err := lists[i%2].add(row[:len(row)/2], row[len(row)/2:]); err != nil {
				t.Fatal(err)
			}
		}
		var in tempReader
		for i := range lists {
			if err := lists[i].finish(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				in.open(&lists[i], 100)
				for k := i; k <= len(rows); k += 2 {
					row, err := in.next()
					if err != nil || (row == nil) != (k >= len(rows)) || row != nil && show(row) != show(rows[k]) {
						t.Fatalf("round %d, row %d: %.40s, %v", round, k, show(row), err)
					}
				}
			}
			lists[i].drop()
		}
		if round > 0 && f.bytes() != size {
			t.Errorf("the file grew from %d to %d bytes", size, f.bytes())
		}
		size = f.bytes()
	}
}

// BenchmarkHashJoinSpilled is BenchmarkHashJoin, the sides turned around, without room.
func BenchmarkHashJoinSpilled(b *testing.B) {
	if invariants.Enabled {
		b.Skip("checked operators allocate")
	}
	left, right := &planner.Values{Base: ints(2)}, &planner.Values{Base: ints(2)}
	for i := range 10000 {
		left.Rows = append(left.Rows, lits(i, i))
		right.Rows = append(right.Rows, lits(i, i))
	}
	n := &planner.HashJoin{Base: ints(4), Left: left, Right: right, LeftKeys: []expr.Scalar{intCol(1)}, RightKeys: []expr.Scalar{intCol(0)}}
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes = 512 << 10
	r, err := NewRunner(planOf(n))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if runOnce(b, r, rt) != 10000 {
			b.Fatal("rows are missing")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*20000), "ns/row")
}
