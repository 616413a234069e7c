package percolator

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/kv"
)

// drain returns the rows of an iterator.
func drain(t testing.TB, it Iterator) []string {
	t.Helper()
	defer it.Close()
	var out []string
	for it.Next(t.Context()) {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

// randomSpans are disjoint spans of keys k000 to k199, some of which touch.
func randomSpans(r *rand.Rand) []kv.Span {
	var spans []kv.Span
	at := r.IntN(20)
	for at < 200 {
		end := at + 1 + r.IntN(1+r.IntN(60))
		spans = append(spans, kv.Span{Start: fmt.Appendf(nil, "k%03d", at), End: fmt.Appendf(nil, "k%03d", end)})
		at = end
		if r.IntN(2) == 0 {
			at += r.IntN(20)
		}
	}
	if r.IntN(4) == 0 {
		spans[0].Start = nil
	}
	if r.IntN(4) == 0 {
		spans[len(spans)-1].End = nil
	}
	return spans
}

// Goal: a scan of several spans returns the rows of separate scans of them, over shards and ranges, with pages of all
// sizes, locks left by committed transactions, few and many own writes, and lost requests.
// Method: compare both in random transactions with random spans.
func TestScanSpansAgainstScans(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 11))
		var bounds []string
		if seed%3 > 0 {
			bounds = [][]string{{"k060", "k061", "k120"}, {"k100"}}[seed%2]
		}
		c := newCluster(t, nil, bounds...)
		if seed%4 == 1 {
			if err := c.stores[0].Router().CreateRange(ctx, kv.Span{Start: []byte("k020"), End: []byte("k040")}); err != nil {
				t.Fatal(err)
			}
		}
		// Secondaries of this DB stay locked.
		var lose atomic.Bool
		leaving := c.db(Options{DisableAsyncCommit: true}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				if commit, ok := req.(*kv.CommitRequest); ok && !commit.Primary {
					return errDead
				}
				return nil
			}}
		})
		var n atomic.Int64
		db := c.db(Options{MaxPageRows: []int{1, 3, 1000}[r.IntN(3)]}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				if _, ok := req.(*kv.ScanRequest); ok && lose.Load() && n.Add(1)%100 == 0 {
					return errLost
				}
				return nil
			}}
		})
		for i, from := range []*DB{db, db, leaving} {
			txn := mustBegin(t, from)
			for range 60 {
				key := fmt.Appendf(nil, "k%03d", r.IntN(200))
				if r.IntN(5) == 0 && i > 0 {
					if err := txn.Delete(key); err != nil {
						t.Fatal(err)
					}
				} else if err := txn.Put(key, fmt.Appendf(nil, "%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			mustCommit(t, txn)
		}
		lose.Store(seed%2 == 0)
		txn := mustBegin(t, db)
		for round := range 12 {
			if round == 6 || round == 9 {
				sp := txn.Savepoint()
				for range []int{0, 0, 0, 0, 0, 0, 5, 0, 0, 40}[round] {
					key := fmt.Appendf(nil, "k%03d", r.IntN(200))
					if r.IntN(3) == 0 {
						if err := txn.Delete(key); err != nil {
							t.Fatal(err)
						}
					} else if err := txn.Put(key, []byte("own")); err != nil {
						t.Fatal(err)
					}
				}
				if r.IntN(3) == 0 {
					txn.RollbackTo(sp)
				}
			}
			spans := randomSpans(r)
			opts := ScanOptions{Reverse: r.IntN(2) == 0, PageHint: r.IntN(3) * 2}
			before := slices.Clone(spans)
			got := drain(t, txn.ScanSpans(ctx, spans, opts))
			walked(t, txn, spans, got)
			if beside := txn.Beside(); beside != nil {
				walked(t, beside, spans, got)
			}
			var want []string
			for left := spans; len(left) > 0; {
				var span kv.Span
				span, left = takeSpan(left, opts.Reverse)
				want = append(want, drain(t, txn.Scan(ctx, span, opts))...)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d, %q, %+v:\n got %s\nwant %s", seed, round, spans, opts, strings.Join(got, " "), strings.Join(want, " "))
			}
			for i := range spans {
				if string(spans[i].Start) != string(before[i].Start) || string(spans[i].End) != string(before[i].End) {
					t.Fatalf("span %d was changed", i)
				}
			}
		}
		txn.Close()
	}
}

// Goal: a scan sends a request for each shard and page, not for each span. Method: count requests.
func TestScanSpansAsksOnce(t *testing.T) {
	c := newCluster(t, nil, "k100")
	var requests atomic.Int64
	db := c.db(Options{}, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
			if _, ok := req.(*kv.ScanRequest); ok {
				requests.Add(1)
			}
			return nil
		}}
	})
	seed := mustBegin(t, db)
	var spans []kv.Span
	for i := range 200 {
		key := fmt.Appendf(nil, "k%03d", i)
		if i%2 == 0 {
			spans = append(spans, kv.Span{Start: key, End: append(slices.Clone(key), 'z')})
		}
		if i%4 == 0 {
			mustPut(t, seed, string(key)+"=v")
		}
	}
	mustCommit(t, seed)
	db.waitIdle() // its locks are gone: a scan asks again behind one
	for _, reverse := range []bool{false, true} {
		requests.Store(0)
		if rows := drain(t, mustBegin(t, db).ScanSpans(t.Context(), spans, ScanOptions{Reverse: reverse})); len(rows) != 50 {
			t.Errorf("%d rows", len(rows))
		}
		if n := requests.Load(); n != 2 {
			t.Errorf("reverse %v: %d requests to two shards", reverse, n)
		}
	}
	if rows := drain(t, mustBegin(t, db).ScanSpans(t.Context(), nil, ScanOptions{})); len(rows) != 0 {
		t.Errorf("no spans hold %q", rows)
	}
}

// Goal: I7 holds for all spans of an iterator. Method: writes and a rollback to a savepoint while it is in the
// first of its spans.
func TestScanSpansSeesTheBufferAsItWas(t *testing.T) {
	c := newCluster(t, nil)
	db := c.db(Options{}, nil)
	for _, many := range []int{0, 40} {
		txn := mustBegin(t, db)
		mustPut(t, txn, "b=1", "d=2")
		for i := range many {
			mustPut(t, txn, fmt.Sprintf("x%02d=0", i))
		}
		spans := []kv.Span{{Start: []byte("a"), End: []byte("c")}, {Start: []byte("d"), End: []byte("f")}}
		it := txn.ScanSpans(t.Context(), spans, ScanOptions{})
		mustPut(t, txn, "d=3", "e=4", "bb=5")
		if got := strings.Join(drain(t, it), " "); got != "b=1 d=2" {
			t.Errorf("%d more: %s", many, got)
		}
		sp := txn.Savepoint()
		mustPut(t, txn, "bbb=6")
		late := txn.ScanSpans(t.Context(), spans, ScanOptions{})
		txn.RollbackTo(sp)
		if late.Next(t.Context()) || late.Err() != ErrIteratorInvalid {
			t.Errorf("iterator over what was rolled back: %v", late.Err())
		}
		txn.Close()
	}
}

// walked walks over spans, counting and not, whole and dividing what is left between two pages, and expects the rows that an iterator has returned.
func walked(t *testing.T, r Reader, spans []kv.Span, rows []string) {
	t.Helper()
	want := slices.Clone(rows)
	slices.Sort(want)
	for _, divide := range []bool{false, true} {
		var got []string
		pair := func(key, value []byte) error {
			got = append(got, fmt.Sprintf("%s=%s", key, value))
			return nil
		}
		for _, w := range []Walk{{KeysOnly: true}, {Pair: pair}} {
			n := int64(0)
			for todo := [][]kv.Span{slices.Clone(spans)}; len(todo) > 0; {
				next := todo[0]
				todo = todo[1:]
				if divide {
					w.Rest = func(rest kv.Span) kv.Span {
						if key := MiddleOf(rest); key != nil {
							todo = append(todo, []kv.Span{{Start: key, End: rest.End}})
							rest.End = key
						}
						return rest
					}
				}
				some, err := r.Walk(t.Context(), next, w)
				if err != nil {
					t.Fatal(err)
				}
				n += some
			}
			if int(n) != len(want) {
				t.Fatalf("%d pairs, want %d", n, len(want))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	}
	if got := walkedByPages(t, r, spans); !slices.Equal(got, want) {
		t.Fatalf("by pages %s\nwant %s", got, want)
	}
}

// walkedByPages stops after each page and goes on behind the largest key that was passed.
func walkedByPages(t *testing.T, r Reader, spans []kv.Span) []string {
	t.Helper()
	var got []string
	for _, span := range spans {
		for stopped := span.Valid(); stopped; {
			stopped = false
			var last []byte
			w := Walk{PageRows: 3, Stop: func() bool { stopped = last != nil; return stopped }}
			w.Pair = func(key, value []byte) error {
				got = append(got, fmt.Sprintf("%s=%s", key, value))
				if bytes.Compare(key, last) > 0 {
					last = bytes.Clone(key)
				}
				return nil
			}
			if _, err := r.Walk(t.Context(), []kv.Span{span}, w); err != nil {
				t.Fatal(err)
			}
			span.Start = append(last, 0)
		}
	}
	slices.Sort(got)
	return got
}
