package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// scanAll returns the rows of a scan at ts, and the number of deleted keys that it stepped over.
func (w *world) scanAll(args ScanRequest, ts tso.Timestamp) (rows []string, deleted uint64) {
	w.t.Helper()
	ctx := context.Background()
	if err := w.BeginRead(ctx, ts); err != nil {
		w.t.Fatal(err)
	}
	args.ReadTS = ts
	for {
		page, err := w.Scan(ctx, &args)
		if err != nil || len(page.Locked) > 0 {
			w.t.Fatal(page, err)
		}
		deleted += page.Deleted
		for _, row := range page.Rows {
			rows = append(rows, fmt.Sprintf("%s=%s", row.Key, row.Value))
		}
		if page.ResumeKey == nil || !resumeSpans(&args, page.ResumeKey) {
			return rows, deleted
		}
	}
}

// Goal: scans return the same rows whether they jump over deleted spans or not, at any timestamp, in both directions,
// and wherever pages end. Method: random writes, most of which delete, and random scans, against a list of all
// versions.
func TestDeletedSpansAgainstVersions(t *testing.T) {
	type version struct {
		ts    tso.Timestamp
		value string
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 17))
		w := newWorld(t, true, nil)
		const keys = 400
		key := func(i int) string { return fmt.Sprintf("k%03d", i) }
		var versions [keys][]version
		put := func(i int, value string) {
			versions[i] = append(versions[i], version{w.putOnePhase(key(i), value), value})
		}
		var past []tso.Timestamp
		for round := range 60 {
			switch r.IntN(3) {
			case 0:
				for range 1 + r.IntN(8) {
					put(r.IntN(keys), fmt.Sprint(round))
				}
			case 1:
				for i, end := r.IntN(keys), r.IntN(keys); i < end; i++ {
					put(i, "")
				}
			}
			past = append(past, w.now())
			for range 6 {
				ts := w.now()
				if r.IntN(3) == 0 {
					ts = past[r.IntN(len(past))]
				}
				from, to := r.IntN(keys), keys
				if r.IntN(2) == 0 {
					from, to = 0, 1+r.IntN(keys)
				}
				args := ScanRequest{Spans: spanOf(key(from), key(to)), Reverse: r.IntN(2) == 0,
					Limit: []int{1, 5, 1000}[r.IntN(3)], MaxBytes: 1 << 20}
				skipFrom, skipTo := to, to // keys between two spans are not read
				if r.IntN(3) == 0 && to-from > 80 {
					skipFrom, skipTo = from+40, from+40+r.IntN(40)
					args.Limit = 1000 // paging of several spans has its own test
					args.Spans = append(spanOf(key(from), key(skipFrom)), spanOf(key(skipTo), key(to))...)
				}
				var want []string
				for i := from; i < to; i++ {
					if i >= skipFrom && i < skipTo {
						continue
					}
					value := ""
					for _, v := range versions[i] {
						if v.ts <= ts {
							value = v.value
						}
					}
					if value != "" {
						want = append(want, key(i)+"="+value)
					}
				}
				if args.Reverse {
					slices.Reverse(want)
				}
				if got, _ := w.scanAll(args, ts); !slices.Equal(got, want) {
					t.Fatalf("seed %d, round %d: [%s, %s) at %s, reverse %v:\n got %v\nwant %v\nspans %s",
						seed, round, key(from), key(to), show(ts), args.Reverse, got, want, showDeleted(w.State))
				}
				checkDeletedSpans(t, &w.deleted)
			}
		}
	}
}

func showDeleted(s *State) (out string) {
	for _, d := range s.deleted.spans {
		out += fmt.Sprintf("[%s, %s)@%s ", d.start, d.end, show(d.asOf))
	}
	return out
}

// checkDeletedSpans fails unless spans are disjoint and ascending.
func checkDeletedSpans(t *testing.T, d *deletedSpans) {
	t.Helper()
	var end []byte
	for _, s := range d.spans {
		if bytes.Compare(s.start, s.end) >= 0 || bytes.Compare(s.start, end) < 0 {
			t.Fatalf("span [%s, %s) after one that ends at %s", s.start, s.end, end)
		}
		end = s.end
	}
	if int(d.n.Load()) != len(d.spans) || len(d.spans) > maxDeletedSpans {
		t.Fatalf("%d spans, counted as %d", len(d.spans), d.n.Load())
	}
}

// Goal: from the third one on, a scan over the consumed part of a queue costs about as much as a scan of the rest, in
// both directions; a read of the past steps over the deleted keys. Method: the number of deleted keys stepped over.
func TestDeletedSpansAreJumpedOver(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := newWorld(t, true, nil)
		const keys = 2000
		args := ScanRequest{Spans: spanOf("k", "l"), Reverse: reverse, Limit: 1, MaxBytes: 1 << 20}
		for i := range keys {
			w.putOnePhase(fmt.Sprintf("k%04d", i), "v")
		}
		before := w.now()
		head := func(n int) int { // the n-th key that the queue's consumers take
			if reverse {
				return keys - 1 - n
			}
			return n
		}
		walked := func() uint64 {
			ts := w.now()
			if err := w.BeginRead(context.Background(), ts); err != nil {
				t.Fatal(err)
			}
			a := args
			a.ReadTS = ts
			page, err := w.Scan(context.Background(), &a)
			if err != nil {
				t.Fatal(err)
			}
			return page.Deleted
		}
		var total uint64
		for n := range 1500 {
			if got := walked(); n > 100 && got > 3*minDeletedSpanKeys {
				t.Fatalf("reverse %v: the scan after %d deletions walks over %d deleted keys", reverse, n, got)
			} else {
				total += got
			}
			w.putOnePhase(fmt.Sprintf("k%04d", head(n)), "")
		}
		t.Logf("reverse %v: %d deleted keys walked over by 1,500 scans; %d spans", reverse, total, w.deleted.n.Load())
		if w.deleted.n.Load() > 4 {
			t.Errorf("the consumed part lies in %d spans", w.deleted.n.Load())
		}
		if rows, _ := w.scanAll(ScanRequest{Spans: args.Spans, Limit: 100, MaxBytes: 1 << 20}, before); len(rows) != keys {
			t.Errorf("%d rows of the past", len(rows))
		}
	}
}

// Goal: a scan of a few rows jumps over the short runs of deleted keys between them, also if single keys are deleted
// between such runs later; a scan of many rows reports no more short runs than is worthwhile. Method: the number of
// deleted keys stepped over, and of spans.
func TestShortDeletedRunsAreJumpedOver(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := newWorld(t, true, nil)
		const keys, every = 1200, 12
		for i := range keys {
			w.putOnePhase(fmt.Sprintf("k%04d", i), "v")
		}
		for i := range keys {
			if i%every != 0 {
				w.putOnePhase(fmt.Sprintf("k%04d", i), "")
			}
		}
		walked := func(limit int) uint64 {
			args := ScanRequest{Spans: []Span{{Start: []byte("k"), End: []byte("l")}}, Reverse: reverse, Limit: limit, MaxBytes: 1 << 20}
			args.ReadTS = w.now()
			if err := w.BeginRead(context.Background(), args.ReadTS); err != nil {
				t.Fatal(err)
			}
			page, err := w.Scan(context.Background(), &args)
			if err != nil || len(page.Rows) > limit || limit < keys && len(page.Rows) != limit {
				t.Fatalf("%d rows: %v", len(page.Rows), err)
			}
			return page.Deleted
		}
		walked(keys)
		if n := w.deleted.n.Load(); n == 0 || n > maxShortRuns {
			t.Errorf("reverse %v: a scan of all rows has reported %d short runs", reverse, n)
		}
		if got := walked(10); got < 9*(every-1) {
			t.Fatalf("reverse %v: the first scans walk over %d deleted keys", reverse, got)
		}
		if got := walked(10); got > 10 {
			t.Errorf("reverse %v: a scan of ten rows walks over %d deleted keys", reverse, got)
		}
		// Keys consumed between the runs join them.
		for i := every; i < 5*every; i += every {
			at := i
			if reverse {
				at = keys - every - i
			}
			w.putOnePhase(fmt.Sprintf("k%04d", at), "")
		}
		for range 4 {
			walked(6)
		}
		if got := walked(6); got > 8 {
			t.Errorf("reverse %v: after rows between the runs were deleted, a scan of six walks over %d deleted keys", reverse, got)
		}
	}
}

// Goal: a scan of a few rows jumps over keys that are collected but not compacted, at its beginning in both directions
// and between rows forward. Method: the number of stored entries that Pebble steps over, after collection, in a store
// without deleted spans; the rows do not change.
func TestCollectedKeysAreJumpedOver(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := newWorld(t, true, nil)
		const keys = 1000
		rows := map[int]bool{300: true, 330: true, 331: true, 700: true}
		for i := range keys {
			w.putOnePhase(fmt.Sprintf("k%04d", i), "v")
		}
		for i := range keys {
			if !rows[i] {
				w.putOnePhase(fmt.Sprintf("k%04d", i), "")
			}
		}
		sp := w.now()
		w.fence(sp)
		w.collectAll(sp, nil)
		steps := func() int {
			args := ScanRequest{Spans: []Span{{Start: []byte("k"), End: []byte("l")}}, Reverse: reverse, Limit: 10, MaxBytes: 1 << 20}
			args.ReadTS = w.now()
			if err := w.BeginRead(context.Background(), args.ReadTS); err != nil {
				t.Fatal(err)
			}
			sc := scanner{s: w.State, args: &args, page: &Page{}, spans: args.Spans, start: []byte("k"), end: []byte("l"), recent: w.recent.Load()}
			if err := errors.Join(sc.probe(context.Background()), sc.open()); err != nil {
				t.Fatal(err)
			}
			defer sc.it.Close()
			before, walk := sc.it.Steps(), sc.forward
			if reverse {
				walk = sc.reverse
			}
			defer sc.noteHidden()
			if err := walk(); err != nil || len(sc.page.Rows) != len(rows) || sc.page.Deleted != 0 {
				t.Fatalf("%d rows, %d deleted: %v", len(sc.page.Rows), sc.page.Deleted, err)
			}
			return sc.it.Steps() - before
		}
		first := steps()
		if first < 2*keys {
			t.Fatalf("reverse %v: the first scan walks over %d entries: there is nothing to jump over", reverse, first)
		}
		steps() // the following scans count the steps beyond rows
		steps()
		most := 4 * len(rows)
		if reverse {
			most += 4 * 700 // entries between and below rows are stepped over
		}
		if got := steps(); got > most {
			t.Errorf("reverse %v: the fourth scan walks over %d entries, the first over %d", reverse, got, first)
		}
		w.putOnePhase("k0100", "v")
		rows[100] = true
		steps()
	}
}

// Goal: a scan of a few rows with deleted keys between them reads the rows from the cache without moving its iterator. It
// returns updated values and locks, no deleted rows, and for an older timestamp the old values. Method: scans whose iterator
// is over an empty range; scans after an update, a deletion and a prewrite.
func TestRowsBehindDeletedSpansAreCached(t *testing.T) {
	for _, collected := range []bool{false, true} {
		w := newWorld(t, true, nil)
		ctx := context.Background()
		const keys = 400
		live := []int{40, 90, 91, 93, 150, 155, 300} // runs of 40, 49, 0, 1, 56, 4, 144 and 99 deleted keys
		key := func(i int) string { return fmt.Sprintf("k%04d", i) }
		for i := range keys {
			w.putOnePhase(key(i), fmt.Sprint("v", i))
		}
		for i := range keys {
			if !slices.Contains(live, i) {
				w.putOnePhase(key(i), "")
			}
		}
		if collected {
			sp := w.now()
			w.fence(sp)
			w.collectAll(sp, nil)
		}
		args := ScanRequest{Spans: spanOf("k", "l"), Limit: 7, MaxBytes: 1 << 20}
		// scan returns the rows at ts, and in parentheses the locked keys; without the store's keys if blind.
		scan := func(ts tso.Timestamp, blind bool) (rows []string) {
			t.Helper()
			a := args
			a.ReadTS = ts
			if err := w.BeginRead(ctx, ts); err != nil {
				t.Fatal(err)
			}
			sc := scanner{s: w.State, args: &a, page: &Page{}, spans: a.Spans, start: []byte("k"), end: []byte("l"), recent: w.recent.Load()}
			if err := errors.Join(sc.probe(ctx), sc.open()); err != nil {
				t.Fatal(err)
			}
			if blind {
				sc.it.Close()
				var err error
				if sc.it, err = w.eng.NewRangeIter([]byte{0xfe}, []byte{0xff}); err != nil {
					t.Fatal(err)
				}
			}
			defer sc.it.Close()
			if err := sc.forward(); err != nil {
				t.Fatal(err)
			}
			sc.noteHidden()
			for _, row := range sc.page.Rows {
				rows = append(rows, fmt.Sprintf("%s=%s", row.Key, row.Value))
			}
			for _, locked := range sc.page.Locked {
				rows = append(rows, fmt.Sprintf("(%s)", locked.Key))
			}
			return rows
		}
		check := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("collected %v, %s:\n got %q\nwant %q", collected, what, got, want)
			}
		}
		all := []string{"k0040=v40", "k0090=v90", "k0091=v91", "k0093=v93", "k0150=v150", "k0155=v155", "k0300=v300"}
		for range 8 {
			check("with an iterator", scan(w.now(), false), all...)
		}
		args.Limit = 2 // the third row lies directly behind the second
		check("without keys", scan(w.now(), true), all[:2]...)
		before := w.now()
		w.putOnePhase("k0090", "new")
		args.Limit = 7
		now := append([]string{all[0], "k0090=new"}, all[2:]...)
		check("after an update", scan(w.now(), false), now...)
		check("before the update", scan(before, false), all...)
		w.putOnePhase("k0150", "")
		now = append(now[:4:4], now[5:]...)
		args.Limit = 6
		check("after a deletion", scan(w.now(), false), now...)
		if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpDelete, Key: []byte("k0040")}},
			Primary: []byte("k0040"), StartTS: w.now(), TTLMillis: 1000}); err != nil {
			t.Fatal(err)
		}
		check("with a lock", scan(w.now(), false), append(now[1:6:6], "(k0040)")...)
	}
}

// Goal: a scan that has reached its row limit does not step over the deleted keys beyond the last row. Method: the
// number of deleted keys stepped over by the first scan that reaches them; the rest follows in a second page.
func TestScanEndsAtItsLimit(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := newWorld(t, true, nil)
		for i := range 102 {
			w.putOnePhase(fmt.Sprintf("k%04d", i), "v")
		}
		for i := 1; i < 101; i++ {
			w.putOnePhase(fmt.Sprintf("k%04d", i), "")
		}
		first, second := "k0000", "k0101"
		if reverse {
			first, second = second, first
		}
		args := ScanRequest{Spans: spanOf("k", "l"), Reverse: reverse, Limit: 1, MaxBytes: 1 << 20}
		args.ReadTS = w.now()
		if err := w.BeginRead(context.Background(), args.ReadTS); err != nil {
			t.Fatal(err)
		}
		page, err := w.Scan(context.Background(), &args)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) != 1 || string(page.Rows[0].Key) != first || page.Deleted != 0 || page.ResumeKey == nil {
			t.Errorf("reverse %v: %d rows, %d deleted keys walked over, resume at %q", reverse, len(page.Rows), page.Deleted, page.ResumeKey)
		}
		resumeSpans(&args, page.ResumeKey)
		args.Limit = 2
		if page, err = w.Scan(context.Background(), &args); err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) != 1 || string(page.Rows[0].Key) != second || page.Deleted != 100 || page.ResumeKey != nil {
			t.Errorf("reverse %v: then %d rows, %d deleted keys walked over, resume at %q", reverse, len(page.Rows), page.Deleted, page.ResumeKey)
		}
		// A page that is full at the end of its span is the last.
		args.Spans, args.Limit = spanOf(second, second+"\x00"), 1
		if page, err = w.Scan(context.Background(), &args); err != nil || len(page.Rows) != 1 || page.ResumeKey != nil {
			t.Errorf("reverse %v: %d rows of one key, resume at %q: %v", reverse, len(page.Rows), page.ResumeKey, err)
		}
	}
}

// Goal: no scan verifies a span that a concurrent writer could have entered unnoticed. Method: all interleavings of one
// writer with two scans and a reader, by the order of the second scan's steps.
func TestDeletedSpansOrder(t *testing.T) {
	type spanState struct {
		orderState
		candidate, verified bool // the list's entry for the key
		since, clean        bool // of the second scan
		jumped              bool
	}
	const scanTS = 100
	steps := map[string]func(*spanState){
		"add":     func(s *spanState) { s.candidate = true },
		"since":   func(s *spanState) { s.since, s.clean = s.candidate, true },
		"probe":   func(s *spanState) { s.maxTS = max(s.maxTS, scanTS); s.clean = s.clean && !s.locked },
		"iterate": func(s *spanState) { s.clean = s.clean && !s.applied },
		"verify":  func(s *spanState) { s.verified = s.candidate && s.since && s.clean },
	}
	lookAt := func(s *spanState) { s.candidate, s.verified = false, false }
	both := func(step func(*orderState)) func(*spanState) { return func(s *spanState) { step(&s.orderState) } }
	reader := []func(*spanState){both(raiseMax), both(probe), func(s *spanState) { s.jumped = s.verified }, both(iterate)}
	writer := []func(*spanState){both(insert), lookAt, both(applyIt), both(unlock)}
	var run func(s spanState, reader, writer []func(*spanState)) (runs, missed, jumps int)
	run = func(s spanState, reader, writer []func(*spanState)) (runs, missed, jumps int) {
		if len(reader)+len(writer) == 0 {
			runs = 1
			if s.jumped {
				jumps = 1
			}
			if s.commitTS <= orderReadTS && !s.sawLock && (s.jumped || !s.sawWrite) {
				missed = 1
			}
			return runs, missed, jumps
		}
		for i, rest := range [][]func(*spanState){reader, writer} {
			if len(rest) == 0 {
				continue
			}
			next := s
			rest[0](&next)
			r, w := reader, writer
			if i == 0 {
				r = rest[1:]
			} else {
				w = rest[1:]
			}
			n, m, j := run(next, r, w)
			runs, missed, jumps = runs+n, missed+m, jumps+j
		}
		return runs, missed, jumps
	}
	for _, c := range []struct {
		order []string
		right bool
	}{
		{[]string{"add", "since", "probe", "iterate", "verify"}, true},
		{[]string{"since", "add", "probe", "iterate", "verify"}, true}, // never verified
		{[]string{"add", "since", "iterate", "probe", "verify"}, false},
		{[]string{"probe", "add", "since", "iterate", "verify"}, false},
	} {
		var scans []func(*spanState)
		for _, name := range c.order {
			scans = append(scans, steps[name])
		}
		runs, missed, jumps := run(spanState{}, append(scans, reader...), writer)
		if runs != 715 || (missed == 0) != c.right || c.order[0] == "add" && c.right && jumps == 0 {
			t.Errorf("%v: %d of %d interleavings miss a write, %d jump", c.order, missed, runs, jumps)
		}
	}
}

// Goal: no scan misses a write that was acknowledged before its timestamp was issued, or returns a deleted row, while
// spans are added and removed. Method: writers put and delete a few keys among many deleted ones; a scan between two
// operations must return the state after the first.
func TestDeletedSpansUnderWrites(t *testing.T) {
	w := newWorld(t, true, nil)
	const keys, hot, rounds = 600, 4, 300
	key := func(i int) string { return fmt.Sprintf("k%03d", i) }
	for i := range keys {
		w.putOnePhase(key(i), "v")
		w.putOnePhase(key(i), "")
	}
	var begun, acked [hot]atomic.Int64
	var writers, readers sync.WaitGroup
	for h := range hot {
		writers.Go(func() {
			for n := int64(1); n <= rounds; n++ {
				begun[h].Store(n)
				m := Mutation{Op: OpPut, Key: []byte(key(h*150 + 70)), Value: fmt.Append(nil, "w", n)}
				if n%2 == 0 {
					m.Op, m.Value = OpDelete, nil
				}
				if _, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{m}, Primary: m.Key,
					StartTS: w.now(), TTLMillis: 1000, TryOnePC: true}); err != nil {
					t.Error(err)
					return
				}
				acked[h].Store(n)
			}
		})
	}
	done := make(chan struct{})
	var judged atomic.Int64
	for i := range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var before [hot]int64
				for h := range hot {
					before[h] = acked[h].Load()
				}
				rows, _ := w.scanAll(ScanRequest{Spans: spanOf("k", "l"), Reverse: i == 1, Limit: 3, MaxBytes: 1 << 20}, w.now())
				for h := range hot {
					if begun[h].Load() != before[h] {
						continue
					}
					judged.Add(1)
					hot := key(h*150+70) + "="
					var shown, want []string
					for _, row := range rows {
						if strings.HasPrefix(row, hot) {
							shown = append(shown, row)
						}
					}
					if before[h]%2 == 1 {
						want = []string{fmt.Sprint(hot, "w", before[h])}
					}
					if !slices.Equal(shown, want) {
						t.Errorf("key %d after operation %d: shown %q", h, before[h], shown)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	checkDeletedSpans(t, &w.deleted)
	t.Logf("%d states judged, %d spans at the end", judged.Load(), w.deleted.n.Load())
}

// Goal: a scan whose probe begins with a candidate's number sees the locks of all writers that skipped the list because
// it was empty. Method: a reader of the first candidate's number must find the list not empty.
func TestDeletedSpansAreListedBeforeTheirNumber(t *testing.T) {
	var d deletedSpans
	var seen, empty atomic.Uint64
	var done atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for last := uint64(0); !done.Load(); {
			seq := d.seq.Load()
			if seq == last {
				runtime.Gosched()
				continue
			}
			if d.n.Load() == 0 {
				empty.Add(1)
			}
			last = seq
			seen.Store(seq)
		}
	})
	rounds, begun := uint64(0), time.Now()
	for ; rounds < 20_000 && (rounds < 10 || time.Since(begun) < 2*time.Second); rounds++ { // With one core each round takes a time slice.
		i := rounds
		d.add([]byte("a"), []byte("b"), 10, 0, minDeletedSpanKeys)
		for seen.Load() <= i {
			runtime.Gosched()
		}
		d.removeSpan(nil, nil)
	}
	done.Store(true)
	reader.Wait()
	if n := empty.Load(); n > 0 {
		t.Errorf("%d of %d candidates were numbered before they were listed", n, rounds)
	}
}

// Goal: the list is bounded, and removed spans are gone. Method: more spans than its limit; spans removed entirely.
func TestDeletedSpansBounds(t *testing.T) {
	var d deletedSpans
	for i := range 2 * maxDeletedSpans {
		start := fmt.Appendf(nil, "k%05d", 2*i)
		d.add(start, fmt.Appendf(nil, "k%05d", 2*i+1), 10, 0, i)
	}
	checkDeletedSpans(t, &d)
	if first := d.spans[0]; len(d.spans) != maxDeletedSpans || first.keys != maxDeletedSpans {
		t.Errorf("%d spans, the first of %d keys", len(d.spans), first.keys)
	}
	d.add(make([]byte, maxDeletedSpanKey+1), []byte("z"), 10, 0, 1000)
	checkDeletedSpans(t, &d)
	all := d.n.Load()
	d.removeSpan(d.spans[10].start, d.spans[20].start)
	if d.n.Load() != all-10 {
		t.Errorf("%d spans of %d after ten were removed", d.n.Load(), all)
	}
	if d.removeSpan(nil, nil); d.n.Load() != 0 {
		t.Errorf("%d spans after all were removed", d.n.Load())
	}
}

// Goal: a deleted span begins where a scan began if the scan found nothing before it, and not earlier: of several
// spans, keys between them were not examined. A scan that begins in such a span steps over no deleted key, also after a
// few more keys next to the span were deleted.
func TestDeletedSpansBeginWhereScansDo(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := newWorld(t, true, nil)
		w.putOnePhase("k4", "live")
		for _, part := range []string{"k2", "k6"} {
			for i := range 50 {
				w.putOnePhase(fmt.Sprintf("%s%02d", part, i), "")
			}
		}
		scan := func(start, end string, spans ...Span) (rows []string, deleted uint64) {
			ts := w.now()
			if len(spans) == 0 {
				spans = spanOf(start, end)
			}
			args := ScanRequest{Spans: spans, Reverse: reverse, Limit: 1000, MaxBytes: 1 << 20}
			args.ReadTS = ts
			if err := w.BeginRead(context.Background(), ts); err != nil {
				t.Fatal(err)
			}
			page, err := w.Scan(context.Background(), &args)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				rows = append(rows, string(r.Key))
			}
			return rows, page.Deleted
		}
		first, last := Span{Start: []byte("k0"), End: []byte("k1")}, Span{Start: []byte("k6"), End: []byte("k7")}
		if reverse {
			first, last = Span{Start: []byte("k2"), End: []byte("k3")}, Span{Start: []byte("k8"), End: []byte("k9")}
		}
		for range 4 {
			if rows, _ := scan("", "", first, last); len(rows) != 0 {
				t.Fatalf("reverse %v: %v in the spans", reverse, rows)
			}
			if rows, _ := scan("k3", "k5"); len(rows) != 1 {
				t.Fatalf("reverse %v: %v between the spans; %s", reverse, rows, showDeleted(w.State))
			}
		}
		for range 2 {
			scan("k0", "k9")
		}
		if rows, deleted := scan("k0", "k9"); len(rows) != 1 || deleted > 1 {
			t.Fatalf("reverse %v: %v, %d deleted keys walked over; %s", reverse, rows, deleted, showDeleted(w.State))
		}
		for i := range minDeletedMore + 1 {
			w.putOnePhase(fmt.Sprintf("k3%d", i), "")
			w.putOnePhase(fmt.Sprintf("k5%d", i), "")
		}
		for range 2 {
			scan("k0", "k9")
		}
		if rows, deleted := scan("k0", "k9"); len(rows) != 1 || deleted > 1 {
			t.Fatalf("reverse %v: %v, %d deleted keys walked over after more; %s", reverse, rows, deleted, showDeleted(w.State))
		}
		w.putOnePhase("k05", "new")
		w.putOnePhase("k85", "new")
		if rows, _ := scan("k0", "k9"); len(rows) != 3 {
			t.Fatalf("reverse %v: %v after an insert at the beginning; %s", reverse, rows, showDeleted(w.State))
		}
	}
}
