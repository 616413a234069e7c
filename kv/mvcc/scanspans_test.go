package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// spansWorld is a state of a few keys with many versions, deletions, long values, and locks of transactions that never
// end, some of which readers know.
func spansWorld(t *testing.T, r *rand.Rand) (*world, ReadOptions, func(int) []byte) {
	return spansWorldOf(t, r, 60, 120, 12)
}

// spansWorldOf is spansWorld with so many writes of so many keys, of which three in odds leave a lock.
func spansWorldOf(t *testing.T, r *rand.Rand, keys, writes, odds int) (*world, ReadOptions, func(int) []byte) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	key := func(i int) []byte { return fmt.Appendf(nil, "k%03d", i) }
	var o ReadOptions
	for n := range writes {
		i := r.IntN(keys)
		m := Mutation{Op: OpPut, Key: key(i), Value: bytes.Repeat([]byte{byte('a' + n%26)}, 1+r.IntN(20))}
		if r.IntN(4) == 0 {
			m = Mutation{Op: OpDelete, Key: key(i)}
		}
		startTS := w.now()
		_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{m}, Primary: m.Key, StartTS: startTS, TTLMillis: 1000})
		if err != nil { // the key is locked
			var locked *KeyLockedError
			if !errors.As(err, &locked) {
				t.Fatal(err)
			}
			continue
		}
		switch r.IntN(odds) {
		case 0: // in the way
		case 1:
			o.Bypass = append(o.Bypass, startTS)
		case 2:
			o.Resolved = append(o.Resolved, CommittedTxn{StartTS: startTS, CommitTS: w.now()})
		default:
			if _, err := w.Commit(ctx, admitAll{}, [][]byte{m.Key}, startTS, w.now(), true); err != nil {
				t.Fatal(err)
			}
		}
		if n == writes*2/3 {
			o.ReadTS = w.now() // later writes are not seen
		}
	}
	if err := w.BeginRead(ctx, o.ReadTS); err != nil {
		t.Fatal(err)
	}
	return w, o, key
}

// pages follows a scan to its end and returns its rows.
func (w *world) pages(args ScanRequest, next func(*ScanRequest, []byte) bool) (shown []string, n int) {
	for {
		page, err := w.Scan(context.Background(), &args)
		if err != nil {
			w.t.Fatal(err)
		}
		n++
		rows, locked := len(page.Rows), len(page.Locked)
		if rows+locked > args.Limit {
			w.t.Fatalf("%d rows and %d locked keys where %d were asked for", rows, locked, args.Limit)
		}
		for _, row := range page.Rows {
			shown = append(shown, fmt.Sprintf("%s=%s", row.Key, row.Value))
		}
		for i := range page.Locked {
			shown = append(shown, fmt.Sprintf("%s locked by %d", page.Locked[i].Key, page.Locked[i].Lock.StartTS))
		}
		if page.ResumeKey == nil || !next(&args, page.ResumeKey) {
			return shown, n
		}
	}
}

// spanOf is the list of one span; an empty end is no bound.
func spanOf(start, end string) []Span { return []Span{{Start: []byte(start), End: []byte(end)}} }

// resumeSpans removes what a page that ended at key has read, and reports whether something is left.
func resumeSpans(args *ScanRequest, key []byte) bool {
	var left []Span
	for _, s := range args.Spans {
		if args.Reverse && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0) {
			s.End = key
		}
		if !args.Reverse && bytes.Compare(key, s.Start) > 0 {
			s.Start = key
		}
		if s.Valid() && len(s.End)+len(s.Start) > 0 {
			left = append(left, s)
		}
	}
	args.Spans = left
	return len(left) > 0
}

// Goal: a scan of several spans returns what scans of each of them return, for any contents, in either direction, and
// wherever its pages end. Method: random spans of a world with versions, deletions and locks, pages of all sizes,
// against single scans without paging.
func TestScanSpansAgainstSingleScans(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		w, o, key := spansWorld(t, r)
		for range 60 {
			var bounds []int
			for i := range 61 {
				if r.IntN(5) == 0 {
					bounds = append(bounds, i)
				}
			}
			var spans []Span
			for i := 0; i+1 < len(bounds); i++ {
				if r.IntN(4) > 0 { // neighbours touch, or leave a gap
					spans = append(spans, Span{Start: key(bounds[i]), End: key(bounds[i+1])})
				}
			}
			if len(spans) == 0 {
				continue
			}
			if r.IntN(5) == 0 {
				spans[0].Start = nil
			}
			if r.IntN(5) == 0 {
				spans[len(spans)-1].End = nil
			}
			args := ScanRequest{Reverse: r.IntN(2) == 0, KeysOnly: r.IntN(4) == 0, Limit: 1000, MaxBytes: 1 << 20, ReadOptions: o}
			var want []string
			for _, s := range spans {
				args.Spans = []Span{s}
				shown, _ := w.pages(args, func(*ScanRequest, []byte) bool { t.Fatal("a page ended early"); return false })
				want = append(want, shown...)
			}
			args.Spans = spans
			args.Limit = []int{1, 2, 3, 7, 1000}[r.IntN(5)]
			args.MaxBytes = []int{1, 30, 1 << 20}[r.IntN(3)]
			got, n := w.pages(args, resumeSpans)
			slices.Sort(got) // locks are listed apart from rows, and pages in reverse descend
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %d spans in %d pages, reverse %v, limit %d, bytes %d:\n got %q\nwant %q",
					seed, len(spans), n, args.Reverse, args.Limit, args.MaxBytes, got, want)
			}
		}
		w.close()
	}
}

// Goal: rows of several spans come in key order, or in reverse. Method: check the order.
func TestScanSpansOrder(t *testing.T) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	for i := range 20 {
		key, startTS := fmt.Appendf(nil, "%02d", i), w.now()
		if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key, Value: key}}, Primary: key,
			StartTS: startTS, TTLMillis: 1000, TryOnePC: true}); err != nil {
			t.Fatal(err)
		}
	}
	spans := []Span{{Start: []byte("02"), End: []byte("04")}, {Start: []byte("04"), End: []byte("05")}, {Start: []byte("10"), End: []byte("12")}, {Start: []byte("3"), End: []byte("4")}}
	readTS := w.now()
	if err := w.BeginRead(ctx, readTS); err != nil {
		t.Fatal(err)
	}
	for _, reverse := range []bool{false, true} {
		page, err := w.Scan(ctx, &ScanRequest{Spans: spans, Reverse: reverse, Limit: 100, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: readTS}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range page.Rows {
			got = append(got, string(row.Key))
		}
		want := []string{"02", "03", "04", "10", "11"}
		if reverse {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("reverse %v: %q, want %q", reverse, got, want)
		}
	}
	for _, bad := range [][]Span{{spans[1], spans[0]}, {spans[0], spans[0]}, {spans[0], {Start: []byte("5"), End: []byte("5")}}, {{Start: []byte("1")}, spans[2]}} {
		_, err := w.Scan(ctx, &ScanRequest{Spans: bad, Limit: 1, MaxBytes: 1, ReadOptions: ReadOptions{ReadTS: readTS}})
		var invalid *InvalidRequestError
		if !errors.As(err, &invalid) {
			t.Errorf("spans %q: %v", bad, err)
		}
	}
}

// Goal: a scan of several spans misses no commit that was acknowledged before it began, in any span, while locks are
// acquired and released (I1). Method: writers increment numbers in all spans in one-phase commits, both numbers of a
// pair in one transaction; every snapshot must show equal pairs.
func TestScanSpansDuringCommits(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := context.Background()
	pairs := []Span{}
	for i := range 4 {
		pairs = append(pairs, Span{Start: fmt.Appendf(nil, "%d", 2*i), End: fmt.Appendf(nil, "%d", 2*i+1)})
	}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; !stop.Load(); n++ {
			value := fmt.Appendf(nil, "%d", n)
			var ms []Mutation
			for _, s := range pairs {
				ms = append(ms, Mutation{Op: OpPut, Key: append(slices.Clone(s.Start), 'x'), Value: value})
			}
			startTS := w.now()
			if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: ms[0].Key, StartTS: startTS, TTLMillis: 1000,
				TryOnePC: n%2 == 0}); err != nil {
				t.Error(err)
				return
			}
			if n%2 == 1 {
				keys := [][]byte{}
				for _, m := range ms {
					keys = append(keys, m.Key)
				}
				commitTS := w.now()
				if _, err := w.Commit(ctx, admitAll{}, keys[:1], startTS, commitTS, true); err != nil {
					t.Error(err)
				}
				if _, err := w.Commit(ctx, admitAll{}, keys[1:], startTS, commitTS, false); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	full := 0
	for n := 0; n < 3000 || full == 0; n++ {
		readTS := w.now()
		if err := w.BeginRead(ctx, readTS); err != nil {
			t.Fatal(err)
		}
		page, err := w.Scan(ctx, &ScanRequest{Spans: pairs, Limit: 100, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: readTS}})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Locked) > 0 || page.ResumeKey != nil || len(page.Rows) == 0 {
			continue // not all of it is there to compare
		}
		full++
		for _, row := range page.Rows {
			if len(page.Rows) != len(pairs) || string(row.Value) != string(page.Rows[0].Value) {
				t.Fatalf("at %d: %q", readTS, page.Rows)
			}
		}
	}
	stop.Store(true)
	<-done
}

// Goal: a page reports how many deleted keys it has passed. Method: keys put, deleted, put again, and deleted after the
// snapshot; both directions, pages of several sizes.
func TestScanCountsDeletedKeys(t *testing.T) {
	w := newWorld(t, true, nil)
	for i := range 10 {
		key := fmt.Sprintf("k%d", i)
		w.putOnePhase(key, "v")
		if i%2 == 0 {
			w.putOnePhase(key, "")
		}
		if i == 4 {
			w.putOnePhase(key, "again")
		}
	}
	w.withoutScanCache() // A block has no deleted keys.
	readTS := w.now()
	w.putOnePhase("k1", "")
	for _, reverse := range []bool{false, true} {
		for _, limit := range []int{1, 3, 100} {
			args := ScanRequest{Spans: []Span{{}}, Reverse: reverse, Limit: limit, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: readTS}}
			rows, deleted := 0, uint64(0)
			for {
				page, err := w.Scan(context.Background(), &args)
				if err != nil {
					t.Fatal(err)
				}
				rows, deleted = rows+len(page.Rows), deleted+page.Deleted
				if page.ResumeKey == nil || !resumeSpans(&args, page.ResumeKey) {
					break
				}
			}
			if rows != 6 || deleted != 4 {
				t.Errorf("reverse %v, pages of %d: %d rows and %d deleted keys", reverse, limit, rows, deleted)
			}
		}
	}
}

// Goal: a page of several spans that ends before a lock whose state is changing contains the rows before it, and
// nothing of the gap before its span. Method: random spans; such a lock on any of their keys.
func TestScanSpansStopAtALockInFlight(t *testing.T) {
	w := newWorld(t, true, nil)
	key := func(i int) []byte { return fmt.Appendf(nil, "k%03d", i) }
	const keys = 40
	for i := range keys {
		w.putOnePhase(string(key(i)), "v")
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range 400 {
		var spans []Span
		var want [][]byte // the keys in them
		for i := r.IntN(4); i < keys; i += r.IntN(5) {
			n := 1 + r.IntN(4)
			span := Span{Start: key(i), End: key(i + n)}
			if r.IntN(3) == 0 {
				n, span.End = 1, append(key(i), 0)
			}
			spans = append(spans, span)
			for j := i; j < min(i+n, keys); j++ {
				want = append(want, key(j))
			}
			i += n
		}
		reverse := r.IntN(2) == 0
		if reverse {
			slices.Reverse(want)
		}
		if len(want) < 2 {
			continue
		}
		at := 1 + r.IntN(len(want)-1) // the page before the first key would be empty, and waits
		startTS := w.now()
		lock := []entry{{key: want[at], lock: Lock{Op: OpPut, StartTS: startTS, Primary: want[at]}}}
		readTS := w.now()
		w.locks.insert(lock, startTS, startTS, &w.maxTS)
		lock[0].lock.MinCommitTS = readTS - 1
		page, err := w.Scan(context.Background(), &ScanRequest{Spans: spans, Reverse: reverse, Limit: 100, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: readTS}})
		w.locks.withdraw(lock)
		if err != nil {
			t.Fatal(err)
		}
		shown := make([][]byte, len(page.Rows))
		for i := range page.Rows {
			shown[i] = page.Rows[i].Key
		}
		if resume := bytes.TrimSuffix(page.ResumeKey, []byte{0}); !slices.EqualFunc(shown, want[:at], bytes.Equal) || !bytes.Equal(resume, want[at]) {
			t.Fatalf("spans %q, reverse %v, lock on %q: shown %q, to be resumed at %q", spans, reverse, want[at], shown, page.ResumeKey)
		}
	}
}

// Goal: a page that ends before the keys of a large commit reports no locks beyond that end, where the next page begins
// and would read them again. Method: a lock in the last span, a large commit in the one before it, in both directions.
func TestScanSpansNarrowedByALargeCommit(t *testing.T) {
	w := newWorld(t, true, nil)
	w.putRow(t, "a1", "old")
	w.putRow(t, "z1", "old")
	large := w.beginLarge(evenRows(10, "new"), w.now())
	<-large.at
	for _, key := range []string{"a2", "z2"} {
		_, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: []byte(key), Value: []byte("new")}},
			Primary: []byte(key), StartTS: w.now(), TTLMillis: 3000})
		if err != nil {
			t.Fatal(err)
		}
	}
	large.goOn <- struct{}{}
	<-large.at // the commit_ts is known
	readTS := w.now()
	if err := w.BeginRead(context.Background(), readTS); err != nil {
		t.Fatal(err)
	}
	spans := slices.Concat(spanOf("a", "b"), spanOf("row", "rox"), spanOf("z", ""))
	for _, c := range []struct {
		reverse             bool
		row, locked, resume string
	}{{false, "a1", "a2", "row00"}, {true, "z1", "z2", "row18\x00"}} {
		page, err := w.Scan(context.Background(), &ScanRequest{Spans: spans, Reverse: c.reverse, Limit: 100, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: readTS}})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) != 1 || string(page.Rows[0].Key) != c.row || string(page.ResumeKey) != c.resume {
			t.Errorf("reverse %v: rows %q, then %q", c.reverse, page.Rows, page.ResumeKey)
		}
		if len(page.Locked) != 1 || string(page.Locked[0].Key) != c.locked {
			t.Errorf("reverse %v: locks %v", c.reverse, page.Locked)
		}
	}
	large.goOn <- struct{}{}
	if err := <-large.result; err != nil {
		t.Fatal(err)
	}
}

// Goal: a visitor gets the rows that a page has, and the page that it does not get them from has the same locks and the same end. Method:
// random spans of worlds of many keys, pages of all sizes, with and without a visitor.
func TestVisitedRowsAreThoseOfPages(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		const keys = 300
		w, o, key := spansWorldOf(t, r, keys, []int{300, 1200}[r.IntN(2)], []int{20, 400, 1 << 30}[r.IntN(3)])
		cached := seed%2 == 0
		if !cached {
			w.withoutScanCache()
		}
		for range 30 {
			from, to := r.IntN(keys/2), keys/2+r.IntN(keys/2)
			args := ScanRequest{KeysOnly: r.IntN(4) == 0, Reverse: r.IntN(4) == 0, Limit: []int{30, 34, 50, 100, 1000}[r.IntN(5)], MaxBytes: 1 << 20, ReadOptions: o}
			args.Spans = []Span{{Start: key(from), End: key(to)}}
			if r.IntN(3) == 0 {
				middle := (from + to) / 2
				args.Spans = []Span{{Start: key(from), End: key(middle)}, {Start: key(middle + 1), End: key(to + 1)}}
			}
			for more := true; more; {
				want, err := w.Scan(context.Background(), &args)
				if err != nil {
					t.Fatal(err)
				}
				for _, counted := range []bool{false, true} {
					visited, n := args, 0
					visited.Visit = &Visit{}
					if !counted {
						visited.Visit.Pair = func(key, value []byte) error {
							if n < len(want.Rows) && (!bytes.Equal(key, want.Rows[n].Key) || !bytes.Equal(value, want.Rows[n].Value)) {
								t.Fatalf("seed %d: row %d is %s=%s, want %s=%s", seed, n, key, value, want.Rows[n].Key, want.Rows[n].Value)
							}
							n++
							return nil
						}
					}
					page, err := w.Scan(context.Background(), &visited)
					if err != nil {
						t.Fatal(err)
					}
					if counted {
						n = page.Count
					}
					if n != len(want.Rows) || page.Count != n || len(page.Rows) > 0 || len(page.Locked) != len(want.Locked) || !cached && page.Deleted != want.Deleted ||
						!bytes.Equal(page.ResumeKey, want.ResumeKey) {
						t.Fatalf("seed %d: %d rows visited, page %+v, want %d rows, page %+v", seed, n, page, len(want.Rows), want)
					}
				}
				more = want.ResumeKey != nil && resumeSpans(&args, want.ResumeKey)
			}
		}
	}
}

// The error of a visitor ends the scan where it occurred, whatever the scan does with the keys around.
func TestVisitorFails(t *testing.T) {
	for seed := range uint64(4) {
		w, o, key := spansWorldOf(t, rand.New(rand.NewPCG(seed, 1)), 200, []int{300, 2000}[seed%2], 1<<30)
		args := ScanRequest{Spans: []Span{{Start: key(0), End: key(200)}}, Limit: 1000, MaxBytes: 1 << 20, ReadOptions: o}
		page, err := w.Scan(context.Background(), &args)
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("of the visitor")
		for at := 1; at <= len(page.Rows); at++ {
			n := 0
			args.Visit = &Visit{Pair: func(_, _ []byte) error {
				if n++; n == at {
					return failed
				}
				return nil
			}}
			if _, err := w.Scan(context.Background(), &args); !errors.Is(err, failed) || n != at {
				t.Errorf("seed %d, row %d: %v after %d rows", seed, at, err, n)
			}
		}
	}
}
