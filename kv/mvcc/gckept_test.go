package mvcc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: the kept records are those that are protected and were never collected without protection. Method: a table.
func TestKeptFrom(t *testing.T) {
	type spans = []TSSpan
	for _, tc := range []struct {
		name         string
		kept         spans
		done, target tso.Timestamp
		protected    spans
		want         spans
	}{
		{"nothing protected", spans{{1, 5}}, 10, 20, nil, nil},
		{"above what was collected", nil, 10, 20, spans{{12, 15}}, spans{{12, 15}}},
		{"beyond the target", nil, 10, 20, spans{{12, 100}}, spans{{12, 20}}},
		{"collected before", nil, 10, 20, spans{{5, 15}}, spans{{10, 15}}},
		{"kept before", spans{{4, 8}}, 10, 20, spans{{5, 15}}, spans{{5, 8}, {10, 15}}},
		{"kept up to the last target", spans{{4, 10}}, 10, 20, spans{{5, 15}}, spans{{5, 15}}},
		{"not protected any more", spans{{4, 10}}, 10, 20, spans{{12, 15}}, spans{{12, 15}}},
		{"two", spans{{2, 4}, {6, 8}}, 10, 20, spans{{1, 3}, {7, 30}}, spans{{2, 3}, {7, 8}, {10, 20}}},
		{"empty and overlapping", nil, 0, 20, spans{{9, 9}, {3, 6}, {5, 8}, {30, 20}}, spans{{3, 8}}},
	} {
		if got := keptFrom(tc.kept, tc.done, tc.target, mergeSpans(tc.protected)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		pass := gcPass{from: 7, kept: tc.want}
		var read gcPass
		if err := decodeKept(appendKept(nil, &pass), &read); err != nil || read.from != 7 || !slices.Equal(read.kept, tc.want) {
			t.Errorf("%s: read back as %+v, %v", tc.name, read, err)
		}
	}
	if !keepForAbsent(5, spans{{1, 2}, {4, 5}}) || keepForAbsent(4, spans{{1, 2}, {4, 5}}) || keepForAbsent(1, nil) {
		t.Error("the ends of a span are wrong")
	}
}

// keptTxn is a transaction with a primary and another key; commit 0: rolled back.
type keptTxn struct {
	start, commit tso.Timestamp
	keys          [2][]byte
}

// runKeptTxn runs one that puts, deletes or locks two of a few keys, and commits or is rolled back.
func (w *world) runKeptTxn(rng *rand.Rand, prefix string) keptTxn {
	w.t.Helper()
	ctx := context.Background()
	k := keptTxn{start: w.now()}
	at := rng.IntN(7)
	k.keys = [2][]byte{fmt.Appendf(nil, "%s%d", prefix, at), fmt.Appendf(nil, "%s%d", prefix, at+1)}
	var ms []Mutation
	for _, key := range k.keys {
		m := Mutation{Key: key, Op: []Op{OpPut, OpPut, OpDelete, OpLock}[rng.IntN(4)]}
		if m.Op == OpPut {
			m.Value = fmt.Appendf(nil, "%d", k.start)
			if rng.IntN(2) == 0 {
				m.Value = m.Value[:3] // short enough for the lock
			}
		}
		ms = append(ms, m)
	}
	if rng.IntN(4) == 0 {
		if err := w.Rollback(ctx, admitAll{}, k.keys[:], k.start); err != nil {
			w.t.Fatal(err)
		}
		return k
	}
	if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: k.keys[0], StartTS: k.start, TTLMillis: 3000}); err != nil {
		w.t.Fatal(err)
	}
	k.commit = w.now()
	for i := range k.keys {
		if _, err := w.Commit(ctx, admitAll{}, k.keys[i:i+1], k.start, k.commit, i == 0); err != nil {
			w.t.Fatal(err)
		}
	}
	return k
}

// dump reads all keys of a prefix at ts.
func (w *world) dump(prefix string, ts tso.Timestamp) string {
	w.t.Helper()
	page, err := w.Scan(context.Background(), &ScanRequest{Spans: spanOf(prefix, prefix+"~"), Limit: 1000, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: ts}})
	if err != nil {
		w.t.Fatal(err)
	}
	out := ""
	for _, r := range page.Rows {
		out += fmt.Sprintf("%s=%s ", r.Key, r.Value)
	}
	return out
}

// checkOutcome checks the status of a transaction on both of its keys.
func (w *world) checkOutcome(k *keptTxn, intact bool) {
	w.t.Helper()
	for _, key := range k.keys {
		st, err := w.CheckTxnStatus(context.Background(), admitAll{}, &CheckTxnStatusRequest{Primary: key, StartTS: k.start, NowTS: w.now()})
		var notFound *TxnNotFoundError
		switch {
		case errors.As(err, &notFound) || isTooOld(err) && intact:
			w.t.Errorf("transaction %d (committed at %d) on %s: %v", k.start, k.commit, key, err)
		case isTooOld(err):
		case err != nil:
			w.t.Fatal(err)
		case st.CommitTS != k.commit || st.RolledBack != (k.commit == 0):
			w.t.Errorf("transaction %d, committed at %d, answers %+v on %s", k.start, k.commit, st, key)
		}
	}
}

func (w *world) checkClean() {
	w.t.Helper()
	findings, err := w.Check(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range findings {
		w.t.Errorf("check: %v", f)
	}
}

// Goal: collection with protected transactions keeps their outcomes across passes, restarts and power cuts, removes no
// value that a snapshot above the safe point sees, and removes everything else, including these once they are no longer
// protected. A transaction without a record is rolled back within the kept span, and unknown below it. Method: random
// transactions and passes; all outcomes are checked after each.
func TestCollectKeepsForAbsent(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			w := newWorld(t, seed%2 == 0, nil)
			var txns []keptTxn
			dropped := map[string]bool{}
			intact := func(*keptTxn) bool { return true }
			protectedAll := TSSpan{}
			last := tso.Timestamp(0) // safe point
			for round := range 6 {
				for range 20 + rng.IntN(40) {
					txns = append(txns, w.runKeptTxn(rng, []string{"a", "b"}[rng.IntN(2)]))
				}
				if round == 3 && seed%4 < 3 { // the dropped table is no longer read
					dropped["b"] = true
				}
				at := txns[rng.IntN(len(txns))]
				if round < 2 {
					// The first passes protect a span that only shrinks: one unavailable store, then another.
					protectedAll = TSSpan{After: txns[5].start, Through: txns[15].start}
				} else if round == 5 {
					protectedAll = TSSpan{}
				}
				protected := []TSSpan{{}, protectedAll}
				if round < 5 {
					protected[0] = TSSpan{After: at.start, Through: at.start + 100*tso.Tick}
				}
				before := intact
				done := last // a power cut may have undone the end of the last pass, which is then repeated first
				sp := w.now()
				last = sp
				intact = func(k *keptTxn) bool {
					return k.start > sp || keepForAbsent(k.start, protected) && (k.start > done || before(k))
				}
				now := w.now()
				want := w.dump("a", now)
				w.fence(sp)
				if dropped["b"] && round == 3 {
					if ok, err := w.DropSpan([]byte("b"), []byte("b~"), sp, protected); !ok || err != nil {
						t.Fatal(ok, err)
					}
				}
				args := CollectGarbageRequest{SafePoint: sp, From: sp, Protected: protected}
				for pieces := 0; ; pieces++ {
					if pieces == 1 && rng.IntN(2) == 0 {
						w.crash()
					}
					_, done, err := w.Collect(context.Background(), &args, nil)
					if err != nil {
						t.Fatal(err)
					}
					if done {
						break
					}
				}
				if got := w.dump("a", now); got != want {
					t.Fatalf("round %d: reads\n%s\nbefore\n%s", round, got, want)
				}
				if s := w.records(tagStatus); round == 5 && len(s) != 0 {
					t.Errorf("status records are left: %v", s)
				}
				for i := range txns {
					w.checkOutcome(&txns[i], intact(&txns[i]))
				}
				w.checkClean()
				if rng.IntN(2) == 0 {
					w.crash()
					for i := range txns {
						w.checkOutcome(&txns[i], intact(&txns[i]))
					}
				}
				// A transaction that was never here: rolled back within the kept span, otherwise unknown.
				ghost := keptTxn{start: at.start + 1}
				_, err := w.CheckTxnStatus(context.Background(), admitAll{}, &CheckTxnStatusRequest{Primary: []byte("ghost"), StartTS: ghost.start, NowTS: w.now()})
				var notFound *TxnNotFoundError
				if kept := intact(&ghost); kept != errors.As(err, &notFound) || kept == isTooOld(err) {
					t.Errorf("round %d: a transaction that is not here, kept %v: %v", round, kept, err)
				}
			}
		})
	}
}

// collectWith collects to the end of a pass.
func (w *world) collectWith(args *CollectGarbageRequest) {
	w.t.Helper()
	for range 10 {
		if _, done, err := w.Collect(context.Background(), args, nil); err != nil {
			w.t.Fatal(err)
		} else if done {
			return
		}
	}
	w.t.Fatal("the pass does not end")
}

// Goal: a key with more kept records than a page does not stop a pass. Method: one hot key.
func TestCollectPassesHotKey(t *testing.T) {
	w := newWorld(t, true, nil)
	first := w.now()
	for i := range gcPageKeys + 500 {
		w.put("k", fmt.Sprint(i))
	}
	w.put("l", "1")
	sp := w.now()
	w.fence(sp)
	for _, protected := range [][]TSSpan{{{After: first, Through: sp}}, nil} {
		w.collectWith(&CollectGarbageRequest{SafePoint: sp, From: sp, Protected: protected})
		if n := len(w.records(tagStatus)); (n == 0) != (protected == nil) {
			t.Errorf("protected %v: %d records", protected, n)
		}
		sp = w.now()
		w.fence(sp)
	}
}

// Goal: a version that was written below the last safe point, by a lock that was left there, is collected if the pass
// is given its position. Method: a lock that outlives a pass.
func TestCollectFrom(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := context.Background()
	key := []byte("k")
	w.put("k", "1")
	start := w.now()
	if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpDelete, Key: key}}, Primary: key, StartTS: start, TTLMillis: 3000}); err != nil {
		t.Fatal(err)
	}
	commit := w.now()
	first := w.now()
	w.fence(first)
	w.collectWith(&CollectGarbageRequest{SafePoint: first, From: first, Protected: []TSSpan{{After: start - 1, Through: start}}})
	w.checkClean()
	if _, err := w.Commit(ctx, admitAll{}, [][]byte{key}, start, commit, true); err != nil {
		t.Fatal(err)
	}
	second := w.now()
	w.fence(second)
	w.collectWith(&CollectGarbageRequest{SafePoint: second, From: start - 1})
	if left := w.records(tagWrite); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
