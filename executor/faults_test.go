package executor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var errBoom = errors.New("boom")

// failingTxn fails its call number at, counted from 1, whatever it is.
type failingTxn struct {
	*memTxn
	at, calls int
}

func (t *failingTxn) fails() error {
	if t.calls++; t.calls == t.at {
		return errBoom
	}
	return nil
}

func (t *failingTxn) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := t.fails(); err != nil {
		return nil, err
	}
	return t.memTxn.Get(ctx, key)
}

func (t *failingTxn) BatchGet(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if err := t.fails(); err != nil {
		return nil, err
	}
	return t.memTxn.BatchGet(ctx, keys)
}

func (t *failingTxn) Put(key, value []byte) error {
	return errors.Join(t.fails(), t.memTxn.Put(key, value))
}

func (t *failingTxn) Insert(key, value []byte) error {
	return errors.Join(t.fails(), t.memTxn.Insert(key, value))
}
func (t *failingTxn) Delete(key []byte) error { return errors.Join(t.fails(), t.memTxn.Delete(key)) }

func (t *failingTxn) AcquireLocks(ctx context.Context, opts percolator.LockOptions, keys ...[]byte) ([]bool, error) {
	if err := t.fails(); err != nil {
		return nil, err
	}
	return t.memTxn.AcquireLocks(ctx, opts, keys...)
}

func (t *failingTxn) LockNew(ctx context.Context, keys ...[]byte) (int, error) {
	if err := t.fails(); err != nil {
		return -1, err
	}
	return t.memTxn.LockNew(ctx, keys...)
}

func (t *failingTxn) Scan(ctx context.Context, span kv.Span, opts percolator.ScanOptions) percolator.Iterator {
	return &failingIterator{Iterator: t.memTxn.Scan(ctx, span, opts), t: t}
}

func (t *failingTxn) ScanSpans(ctx context.Context, spans []kv.Span, opts percolator.ScanOptions) percolator.Iterator {
	return &failingIterator{Iterator: t.memTxn.ScanSpans(ctx, spans, opts), t: t}
}

func (t *failingTxn) Walk(ctx context.Context, spans []kv.Span, w percolator.Walk) (int64, error) {
	if err := t.fails(); err != nil {
		return 0, err
	}
	return t.memTxn.Walk(ctx, spans, w)
}

type failingIterator struct {
	percolator.Iterator
	t   *failingTxn
	err error
}

func (it *failingIterator) Next(ctx context.Context) bool {
	if it.err = it.t.fails(); it.err != nil {
		return false
	}
	return it.Iterator.Next(ctx)
}
func (it *failingIterator) Err() error { return it.err }

// Whatever call of the transaction or of an expression fails, in the middle of whatever plan: the
// error comes out, Close gives all memory back, and the same runner then does its work.
func TestFailuresPassThrough(t *testing.T) {
	table := accounts()
	scan, byAmount := wholeScan(table, &table.Primary), wholeScan(table, &table.Indexes[1])
	three := func() planner.Node { return rowsOf(1, []any{1}, []any{2}, []any{3}) }
	var budget int // evaluations left before an expression fails
	fragile := func(e expr.Scalar) expr.Scalar {
		return &fn{e.Type(), func(ev *expr.Context, in types.Row) (types.Datum, error) {
			if budget--; budget == 0 {
				return types.Null, errBoom
			}
			return e.Eval(ev, in)
		}}
	}
	keys := func() []expr.Scalar { return []expr.Scalar{fragile(intCol(0))} }
	sub := &expr.Subquery{Plan: scan, Types: []types.Type{types.TInt8}}
	exists := &fn{types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		found, _, _, err := ev.Subqueries.Contains(ev, sub, in[:1])
		return types.Bool(found), err
	}}
	set := []expr.Scalar{intCol(0), col(1, types.TText), fragile(intFn(func(in types.Row) int64 { return in[2].Int() + 1 }))}
	move := []expr.Scalar{fragile(intFn(func(in types.Row) int64 { return in[0].Int() + 1 })), col(1, types.TText), intCol(2)}
	plans := map[string]planner.Node{
		"scan":   &planner.Filter{Base: scan.Base, Input: scan, Cond: fragile(lit(true))},
		"fetch":  byAmount,
		"points": wholeScan(table, &table.Primary, planner.KeySpan{Eq: []planner.KeyPart{{Value: fragile(lit(1))}}}),
		"hash": &planner.HashJoin{Base: join(scan, byAmount), Kind: planner.FullJoin, Left: scan, Right: byAmount,
			LeftKeys: keys(), RightKeys: keys(), On: fragile(lit(true))},
		"merge": &planner.MergeJoin{Base: join(scan, scan), Kind: planner.FullJoin, Left: scan, Right: scan,
			LeftKeys: keys(), RightKeys: keys(), Desc: []bool{false}},
		"nested": &planner.NestedLoopJoin{Base: join(scan, scan), Left: scan, Right: scan, On: fragile(lit(true))},
		"apply":  &planner.Apply{Base: join(scan, scan), Left: scan, Right: scan, On: fragile(lit(true))},
		"lookup": &planner.LookupJoin{Base: join(scan, scan), Left: scan, Keys: []expr.Scalar{fragile(col(1, types.TText))},
			Access: planner.Access{Table: table, Index: &table.Indexes[0], Ordinals: all(table), Fetch: true}},
		"lookup scan": &planner.LookupJoin{Base: join(scan, scan), Left: scan, Keys: []expr.Scalar{fragile(intCol(2))},
			Access: planner.Access{Table: table, Index: &table.Indexes[1], Ordinals: all(table), Fetch: true}},
		"sort":  &planner.Sort{Base: scan.Base, Input: scan, Keys: []planner.SortKey{{Expr: fragile(intCol(2))}}},
		"top":   &planner.TopN{Base: scan.Base, Input: scan, Keys: []planner.SortKey{{Expr: fragile(intCol(2))}}, Limit: fragile(lit(2))},
		"limit": &planner.Limit{Base: scan.Base, Input: scan, Limit: lit(2), Offset: fragile(lit(1))},
		"group": &planner.Aggregate{Base: ints(2), Input: scan, GroupBy: keys(),
			Aggs: []planner.AggregateCall{call(t, "sum", fragile(intCol(2)))}},
		"ordered group": &planner.Aggregate{Base: ints(2), Input: scan, GroupBy: keys(), Ordered: true,
			Aggs: []planner.AggregateCall{call(t, "sum", fragile(intCol(2)))}},
		"distinct":  &planner.Distinct{Base: scan.Base, Input: scan, On: keys()},
		"union":     &planner.SetOp{Base: scan.Base, Op: "UNION", Left: scan, Right: byAmount},
		"except":    &planner.SetOp{Base: scan.Base, Op: "EXCEPT", All: true, Left: scan, Right: byAmount},
		"cte":       &planner.CTEScan{Base: scan.Base},
		"recursive": &planner.RecursiveUnion{Base: ints(1), Init: three(), Step: &planner.Filter{Base: ints(1), Input: &planner.WorkScan{Base: ints(1)}, Cond: fragile(lit(false))}},
		"subquery":  &planner.Filter{Base: ints(1), Input: three(), Cond: exists},
		"set":       &planner.ProjectSet{Base: ints(1), Input: three(), Exprs: []expr.Scalar{nil}, Sets: []*planner.SetFunc{series(t, lit(1), fragile(lit(2)))}},
		"lock": &planner.LockRows{Base: scan.Base, Input: scan,
			Targets: []planner.LockTarget{{Table: table, KeyOrdinals: []int{0}}}},
		"insert": &planner.Insert{Base: ints(1), Table: table, Returning: keys(), Input: &planner.Project{Base: scan.Base, Input: scan,
			Exprs: []expr.Scalar{fragile(intFn(func(in types.Row) int64 { return in[0].Int() + 100 })), &expr.Const{Typ: types.TText}, intCol(2)}}},
		"upsert": upsert(&planner.Insert{Table: table, Input: scan}, []*catalog.IndexDescriptor{&table.Primary},
			intCol(0), col(1, types.TText), fragile(intCol(5))),
		"update":      &planner.Update{Table: table, Input: scan, Set: set, Changed: []int{2}},
		"update move": &planner.Update{Table: table, Input: byAmount, Set: move, Changed: []int{0}},
		"delete":      &planner.Delete{Base: ints(1), Table: table, Input: byAmount, Returning: keys()},
	}
	for name, n := range plans {
		t.Run(name, func(t *testing.T) {
			plan := &planner.Plan{Root: n, CTEs: []planner.Node{scan}}
			plan.SetProperties()
			r, err := NewRunner(plan)
			if err != nil {
				t.Fatal(err)
			}
			run := func(failCall, failEval int) error {
				txn := newMemTxn()
				mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20), accountRow(3, nil, 20)), 3)
				rt := testRuntime(&failingTxn{memTxn: txn, at: failCall}, table)
				rt.EagerUnique, rt.Lock = true, true
				budget = failEval
				r.Bind(rt)
				err := drainRunner(r)
				if closeErr := r.Close(); closeErr != nil {
					t.Error(closeErr)
				}
				if r.ex.mem.used != 0 {
					t.Errorf("%d bytes still booked", r.ex.mem.used)
				}
				return err
			}
			for fail := 1; ; fail++ {
				callErr, evalErr := run(fail, 0), run(0, fail)
				for _, err := range []error{callErr, evalErr} {
					if err != nil && !errors.Is(err, errBoom) {
						t.Fatalf("failure %d: %v", fail, err)
					}
				}
				if callErr == nil && evalErr == nil {
					if fail == 1 && name != "recursive" {
						t.Error("nothing was made to fail")
					}
					break
				}
			}
		})
	}
}

func drainRunner(r *Runner) error {
	ctx := context.Background()
	if err := r.Open(ctx); err != nil {
		return err
	}
	for {
		if row, err := r.Next(ctx); row == nil || err != nil {
			return err
		}
	}
}

// checked itself: it panics on calls out of order and on rows of a wrong width, and it spoils rows.
func TestChecked(t *testing.T) {
	panics := func(f func()) (message string) {
		defer func() { message, _ = recover().(string) }()
		f()
		return ""
	}
	ctx := context.Background()
	fresh := func(width int) *checked {
		ex := &execution{}
		ex.bind(&Runtime{Env: &builtin.Env{}})
		return &checked{op: &values{ex: ex, rows: [][]expr.Scalar{lits(1), lits(2)}, out: make(types.Row, 1)}, name: "test", width: width}
	}
	for want, f := range map[string]func(){
		"Next before Open": func() { _, _ = fresh(1).Next(ctx) },
		"opened twice":     func() { c := fresh(1); _ = c.Open(ctx); _ = c.Open(ctx) },
		"row of 1 columns": func() { c := fresh(2); _ = c.Open(ctx); _, _ = c.Next(ctx) },
		"Next after the end": func() {
			c := fresh(1)
			_ = c.Open(ctx)
			for range 4 {
				_, _ = c.Next(ctx)
			}
		},
	} {
		if got := panics(f); !strings.Contains(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
	c := fresh(1)
	_ = c.Open(ctx)
	first, _ := c.Next(ctx)
	if _, err := c.Next(ctx); err != nil || first[0].Kind() != types.KindBytes {
		t.Errorf("the first row still reads %s after the second, %v", show(first), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Long values are cut in the details of constraint errors, between characters, as PostgreSQL does.
func TestFailingRowIsClipped(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	n := insertRows(table, accountRow(nil, strings.Repeat("é", 40), 1))
	_, _, err := exec(t, table, txn, n)
	e := wantCode(t, err, pgerror.NotNullViolation)
	if want := "Failing row contains (null, " + strings.Repeat("é", 32) + "..., 1)."; e.Detail != want {
		t.Errorf("detail %q, want %q", e.Detail, want)
	}
}

// A violated key whose table is unknown by now still gives the right SQLSTATE.
func TestUnexplainedViolation(t *testing.T) {
	for _, k := range [][]byte{nil, {1}, {2, 99, 1}, {2, 7, 99}, {2, 7, 1}} {
		e := UniqueViolation(context.Background(), oneTable{accounts()}, oneTable{accounts()}, 0, k)
		if e.Code != pgerror.UniqueViolation || e.Detail == "" {
			t.Errorf("key %x: %+v", k, e)
		}
	}
}
