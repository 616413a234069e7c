package mvcc

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// scanRun drives a state and a model with the same writes, and compares their scans.
type scanRun struct {
	*world
	m       *model
	r       *rand.Rand
	open    []*modelTxn
	past    []tso.Timestamp // timestamps to read at, above the safe point
	ranges  [][2]string
	writing bool
	wrong   string // the first scan that was
}

// newScanRun returns a run with blocks of a few rows. deaf makes it a mutant of which the cache does not learn of writes that are not large.
func newScanRun(t *testing.T, seed uint64, deaf bool) *scanRun {
	r := &scanRun{world: newWorld(t, true, nil), r: rand.New(rand.NewPCG(seed, 17)),
		m: &model{versions: map[string][]modelVersion{}, locks: map[string]*modelTxn{}}}
	r.ranges = [][2]string{{"a", "b"}, {"b", "c"}, {"a05", "a20"}, {"b03", "c"}, {"a", "c"}, {"a10", "b10"}}
	if deaf { // A span of both groups is found for the keys of all groups.
		r.ranges = r.ranges[:4]
	}
	r.scans = newScanCache(&Options{ScanCacheBytes: []int64{1 << 20, 3000}[seed%2], ScanBlockRows: 1 + int(seed%4), Clock: r.oracle.clock,
		Group: func(key []byte) int {
			if deaf && r.writing {
				return len(key)
			}
			return min(1, len(key))
		}})
	return r
}

// key returns one of the keys of two groups.
func (r *scanRun) key() string { return fmt.Sprintf("%c%02d", "ab"[r.r.IntN(2)], r.r.IntN(25)) }

func (r *scanRun) mutations() (map[string]string, []Mutation) {
	writes := map[string]string{}
	for range 1 + r.r.IntN(3) {
		value := ""
		if r.r.IntN(3) > 0 {
			value = fmt.Sprint(r.r.IntN(1000), strings.Repeat("x", r.r.IntN(20))) // some are long
		}
		writes[r.key()] = value
	}
	var ms []Mutation
	for key, value := range writes {
		m := Mutation{Op: OpPut, Key: []byte(key), Value: []byte(value)}
		if value == "" {
			m = Mutation{Op: OpDelete, Key: []byte(key)}
		}
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b Mutation) int { return bytes.Compare(a.Key, b.Key) })
	return writes, ms
}

// write commits in one phase, as a large write set, or leaves locks.
func (r *scanRun) write() {
	ctx := context.Background()
	writes, ms := r.mutations()
	startTS := r.now()
	if r.m.blocked(writes, startTS) {
		return
	}
	var commitTS tso.Timestamp
	var err error
	switch r.r.IntN(4) {
	case 0:
		var res LargeResult
		res, err = r.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: &memSet{ms: ms}, StartTS: startTS, Primary: ms[0].Key, TTLMillis: 3000})
		commitTS = res.CommitTS
	case 1:
		_, err = r.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: ms[0].Key, StartTS: startTS, TTLMillis: 3000})
		txn := &modelTxn{startTS: startTS, writes: writes}
		for i := range ms {
			txn.keys = append(txn.keys, ms[i].Key)
			r.m.locks[string(ms[i].Key)] = txn
		}
		r.open = append(r.open, txn)
	default:
		var res PrewriteResult
		res, err = r.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: ms[0].Key, StartTS: startTS, TTLMillis: 3000, TryOnePC: true})
		commitTS = res.OnePCCommitTS
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if commitTS != 0 {
		r.m.commit(writes, commitTS)
	}
}

// finish ends a transaction that has locks.
func (r *scanRun) finish() {
	if len(r.open) == 0 {
		return
	}
	txn := r.open[0]
	r.open = r.open[1:]
	for key := range txn.writes {
		delete(r.m.locks, key)
	}
	ctx := context.Background()
	if r.r.IntN(3) == 0 {
		if err := r.Rollback(ctx, admitAll{}, txn.keys, txn.startTS); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	commitTS := r.now()
	for i := range txn.keys {
		if _, err := r.Commit(ctx, admitAll{}, txn.keys[i:i+1], txn.startTS, commitTS, i == 0); err != nil {
			r.t.Fatal(err)
		}
	}
	r.m.commit(txn.writes, commitTS)
}

// collect removes history, and now and then a whole group.
func (r *scanRun) collect() {
	for len(r.open) > 0 {
		r.finish()
	}
	safePoint := r.now()
	r.fence(safePoint)
	r.past = nil
	if r.r.IntN(2) == 0 {
		r.collectAll(safePoint, nil)
		return
	}
	start := "ab"[r.r.IntN(2)]
	dropped, err := r.DropSpan([]byte{start}, []byte{start + 1}, safePoint, nil)
	if err != nil || !dropped {
		r.t.Fatal(dropped, err)
	}
	for key := range r.m.versions {
		if key[0] == start {
			delete(r.m.versions, key)
		}
	}
}

// scan reads a range at a timestamp in pages, some with Visit, and compares.
func (r *scanRun) scan() {
	ts := r.now()
	if len(r.past) > 0 && r.r.IntN(4) == 0 {
		ts = r.past[r.r.IntN(len(r.past))]
	}
	bounds := r.ranges[r.r.IntN(len(r.ranges))]
	args := ScanRequest{Spans: spanOf(bounds[0], bounds[1]), Limit: []int{1, 3, 7, 100}[r.r.IntN(4)], MaxBytes: 1 << 20, KeysOnly: r.r.IntN(4) == 0,
		ReadOptions: ReadOptions{ReadTS: ts}}
	for _, txn := range r.open {
		args.Bypass = append(args.Bypass, txn.startTS) // They will commit above.
	}
	if err := r.BeginRead(context.Background(), ts); err != nil {
		r.t.Fatal(err)
	}
	var rows []string
	keep := func(key, value []byte) error {
		rows = append(rows, fmt.Sprintf("%s=%s", key, value))
		return nil
	}
	visited := r.r.IntN(2) == 0
	for more := true; more; {
		if args.Visit = nil; visited {
			args.Visit = &Visit{Pair: keep}
		}
		page, err := r.Scan(context.Background(), &args)
		if err != nil || len(page.Locked) > 0 {
			r.t.Fatal(page, err)
		}
		for _, row := range page.Rows {
			_ = keep(row.Key, row.Value)
		}
		more = page.ResumeKey != nil && resumeSpans(&args, page.ResumeKey)
	}
	want := r.m.scan(bounds[0], bounds[1], ts, false)
	if args.KeysOnly {
		for i := range want {
			want[i] = want[i][:strings.IndexByte(want[i], '=')+1]
		}
	}
	if r.wrong == "" && !slices.Equal(rows, want) {
		r.wrong = fmt.Sprintf("%s at %s:\n%q\nwant\n%q\n%s", bounds, show(ts), rows, want, showScanSpans(r.scans))
	}
}

func (r *scanRun) run(steps int) {
	for range steps {
		r.writing = true
		switch n := r.r.IntN(100); {
		case n < 20:
			r.write()
		case n < 35:
			r.finish()
		case n < 38:
			r.collect()
		case n < 40:
			r.oracle.advance(scanIdle.Milliseconds())
		}
		r.writing = false
		r.scan()
		if ts := r.now(); r.r.IntN(4) == 0 {
			r.past = append(r.past, ts)
		}
		checkScanSpans(r.t, r.scans)
	}
}

func showScanSpans(c *scanCache) (out string) {
	for _, e := range *c.spans.Load() {
		out += fmt.Sprintf("[%q, %q) mark %s", e.start, e.end, show(tso.Timestamp(e.mark.Load())))
		if b := e.block.Load(); b != nil {
			out += fmt.Sprintf(" %d rows from %s to %s", b.len(), show(b.version), show(b.asOf))
		}
		out += "\n"
	}
	return out
}

// checkScanSpans verifies the order of the spans and the accounted size.
func checkScanSpans(t testing.TB, c *scanCache) {
	t.Helper()
	c.mu.RLock()
	defer c.mu.RUnlock()
	spans := *c.spans.Load()
	var size int64
	for i, e := range spans {
		if bytes.Compare(e.start, e.end) >= 0 || i > 0 && bytes.Compare(spans[i-1].end, e.start) > 0 {
			t.Fatalf("spans are not disjoint and ascending:\n%s", showScanSpans(c))
		}
		b := e.block.Load()
		if b == nil {
			continue
		}
		size += b.size()
		for row := range b.len() {
			if !e.contains(b.key(row)) || row > 0 && bytes.Compare(b.key(row-1), b.key(row)) >= 0 {
				t.Fatalf("row %d of a block is not in its span, or not behind the one before:\n%s", row, showScanSpans(c))
			}
		}
	}
	if counted := c.bytes.Load(); counted != size || size > c.limit {
		t.Fatalf("%d bytes are cached, %d counted, of %d", size, counted, c.limit)
	}
}

// Goal: scans return the same with and without blocks, at every timestamp. Method: random writes in one and two phases and as large write
// sets, collection, and drops, against a model; scans of a few ranges in pages of all sizes after each step.
func TestScanCacheAgainstModel(t *testing.T) {
	served, seeds := uint64(0), uint64(24)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		r := newScanRun(t, seed, false)
		if r.run(1200); r.wrong != "" {
			t.Errorf("seed %d: %s", seed, r.wrong)
		}
		served += r.ScanCacheStats().Rows
		r.close()
	}
	if served < 2000*seeds {
		t.Errorf("%d rows came from blocks", served)
	}
}

// Goal: TestScanCacheAgainstModel finds a store that does not raise the marks of spans. Method: such a store.
func TestScanCacheModelFindsForgottenMarks(t *testing.T) {
	for seed := range uint64(4) {
		if r := newScanRun(t, seed, true); r.wrong == "" {
			if r.run(1200); r.wrong == "" {
				t.Errorf("seed %d: not found", seed)
			}
		}
	}
}

// Goal: no scan makes a block that a concurrent writer could have entered unnoticed, and no reader uses one after a write that it must
// see. Method: all interleavings of one writer with two scans and a reader, by the order of the second scan's steps and the reader's.
func TestScanCacheOrder(t *testing.T) {
	type spanState struct {
		orderState
		candidate, block bool          // the span of the key
		mark             tso.Timestamp // of the span
		since, clean     bool          // of the second scan
		used             bool
	}
	const scanTS = 100
	both := func(step func(*orderState)) func(*spanState) { return func(s *spanState) { step(&s.orderState) } }
	steps := map[string]func(*spanState){
		"note":    func(s *spanState) { s.candidate = true },
		"since":   func(s *spanState) { s.since = s.candidate },
		"probe":   func(s *spanState) { s.maxTS = max(s.maxTS, scanTS); s.clean = s.clean && !s.locked },
		"iterate": func(s *spanState) { s.clean = s.clean && !s.applied },
		"publish": func(s *spanState) { s.block = s.candidate && s.since && s.clean && s.mark <= scanTS },
		"raise":   both(raiseMax),
		"look":    both(probe),
		"use":     func(s *spanState) { s.used = s.block && s.mark <= scanTS },
		"read":    both(iterate),
	}
	wrote := func(s *spanState) {
		if s.candidate {
			s.mark = max(s.mark, s.commitTS)
		}
	}
	writer := []func(*spanState){both(insert), wrote, both(applyIt), both(unlock)}
	var run func(s spanState, reader, writer []func(*spanState)) (runs, missed, used int)
	run = func(s spanState, reader, writer []func(*spanState)) (runs, missed, used int) {
		if len(reader)+len(writer) == 0 {
			if runs = 1; s.used {
				used = 1
			}
			if s.commitTS <= orderReadTS && !s.sawLock && (s.used || !s.sawWrite) {
				missed = 1
			}
			return runs, missed, used
		}
		for i, rest := range [][]func(*spanState){reader, writer} {
			if len(rest) == 0 {
				continue
			}
			next, r, w := s, reader, writer
			if rest[0](&next); i == 0 {
				r = rest[1:]
			} else {
				w = rest[1:]
			}
			n, m, u := run(next, r, w)
			runs, missed, used = runs+n, missed+m, used+u
		}
		return runs, missed, used
	}
	for _, c := range []struct {
		order string
		right bool
	}{
		{"note since probe iterate publish raise look use read", true},
		{"since note probe iterate publish raise look use read", true}, // never published
		{"note since iterate probe publish raise look use read", false},
		{"note probe since iterate publish raise look use read", true}, // The candidate was there before the probe.
		{"probe note since iterate publish raise look use read", false},
		{"note since probe iterate publish raise use look read", false},
		{"note since probe iterate publish use raise look read", false},
	} {
		var scans []func(*spanState)
		for _, name := range strings.Fields(c.order) {
			scans = append(scans, steps[name])
		}
		runs, missed, used := run(spanState{clean: true}, scans, writer)
		if runs != 715 || (missed == 0) != c.right || strings.HasPrefix(c.order, "note since probe") && used == 0 {
			t.Errorf("%s: %d of %d interleavings miss a write, %d use a block", c.order, missed, runs, used)
		}
	}
}

// Goal: no scan misses a write that was acknowledged before its timestamp was issued, while blocks are made and lost. Method: writers
// increment counters among many rows; a scan finds each at least as it was at the timestamp, and the same when it is repeated.
func TestScanCacheUnderWrites(t *testing.T) {
	w := newWorld(t, true, nil)
	w.scans = newScanCache(&Options{ScanCacheBytes: 1 << 20, ScanBlockRows: 8, Clock: w.oracle.clock})
	const rows, hot, rounds = 200, 4, 300
	key := func(i int) string { return fmt.Sprintf("k%03d", i) }
	for i := range rows {
		w.putOnePhase(key(i), "0000")
	}
	var acked [hot]atomic.Int64
	var writers, readers sync.WaitGroup
	for h := range hot {
		writers.Go(func() {
			for n := int64(1); n <= rounds; n++ {
				m := Mutation{Op: OpPut, Key: []byte(key(h * 50)), Value: fmt.Appendf(nil, "%04d", n)}
				if _, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{m}, Primary: m.Key,
					StartTS: w.now(), TTLMillis: 1000, TryOnePC: true}); err != nil {
					t.Error(err)
					return
				}
				acked[h].Store(n)
				if n%16 == 0 {
					time.Sleep(time.Millisecond) // Blocks are made.
				}
			}
		})
	}
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var least [hot]int64
				for h := range hot {
					least[h] = acked[h].Load()
				}
				ts := w.now()
				found, _ := w.scanAll(ScanRequest{Spans: spanOf("k", "l"), Limit: 70, MaxBytes: 1 << 20}, ts)
				again, _ := w.scanAll(ScanRequest{Spans: spanOf("k", "l"), Limit: 90, MaxBytes: 1 << 20}, ts)
				if len(found) != rows || !slices.Equal(found, again) {
					t.Errorf("a snapshot has changed: %d and %d rows of %d", len(found), len(again), rows)
					return
				}
				for h := range hot {
					if want := fmt.Sprintf("%s=%04d", key(h*50), least[h]); found[h*50] < want {
						t.Errorf("%s where there was %s before the snapshot", found[h*50], want)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	checkScanSpans(t, w.scans)
	if st := w.ScanCacheStats(); st.Rows == 0 {
		t.Error("no row came from a block")
	}
}

// Goal: the cache keeps within its bounds, and keeps what it has while that is used. Method: more rows than fit, scanned again and again.
func TestScanCacheStaysWithinItsBound(t *testing.T) {
	w := newWorld(t, true, nil)
	const limit = 20_000
	w.scans = newScanCache(&Options{ScanCacheBytes: limit, ScanBlockRows: 16, Clock: w.oracle.clock})
	for i := range 2000 {
		w.putOnePhase(fmt.Sprintf("%c%04d", "ab"[i%2], i), "0123456789")
	}
	scan := func(start, end string) (served uint64) {
		before := w.ScanCacheStats().Rows
		rows, _ := w.scanAll(ScanRequest{Spans: spanOf(start, end), Limit: 100, MaxBytes: 1 << 20}, w.now())
		if len(rows) != 1000 {
			t.Fatalf("%d rows", len(rows))
		}
		checkScanSpans(t, w.scans)
		return w.ScanCacheStats().Rows - before
	}
	scan("a", "b")
	scan("a", "b")
	first := scan("a", "b")
	for range 3 {
		if n := scan("a", "b"); n != first || n < 300 || n > 900 {
			t.Errorf("%d rows of 1000 came from blocks, %d before", n, first)
		}
		if n := scan("b", "c"); n != 0 {
			t.Errorf("%d rows have displaced others", n)
		}
	}
	w.oracle.advance(scanIdle.Milliseconds() + 2*scanFull.Milliseconds())
	scan("b", "c")
	scan("b", "c")
	if n := scan("b", "c"); n < 300 {
		t.Errorf("%d rows came from blocks when others had not been used for long", n)
	}
}

// Goal: a block is made of what is scanned twice without a change in between, and again at once while it has been of use. Method: the
// number of rows from blocks after each scan.
func TestScanCacheFillsOnTheSecondScan(t *testing.T) {
	w := newWorld(t, true, nil)
	w.scans = newScanCache(&Options{ScanCacheBytes: 1 << 20, ScanBlockRows: 4, Clock: w.oracle.clock})
	for i := range 10 {
		w.putOnePhase(fmt.Sprint("k", i), "v")
	}
	step := 0
	scan := func(want uint64) {
		t.Helper()
		step++
		before := w.ScanCacheStats().Rows
		w.scanAll(ScanRequest{Spans: spanOf("k", "l"), Limit: 100, MaxBytes: 1 << 20}, w.now())
		if n := w.ScanCacheStats().Rows - before; n != want {
			t.Errorf("scan %d: %d rows from blocks, want %d\n%s", step, n, want, showScanSpans(w.scans))
		}
	}
	scan(0)
	scan(0)
	scan(10)
	w.putOnePhase("k1", "new") // The first block has four rows.
	scan(6)
	scan(10)
	scan(10)
	for range scanWorth + 1 { // The last one has no block.
		w.putOnePhase("k1", "newer")
		w.putOnePhase("k1", "newest")
		scan(6)
	}
	scan(6)
	scan(10)
	if _, err := w.CommitLarge(context.Background(), admitEach, &CommitLargeRequest{StartTS: w.now(), Primary: []byte("k8"), TTLMillis: 1000,
		Set: &memSet{ms: []Mutation{{Op: OpPut, Key: []byte("k8"), Value: []byte("new")}}}}); err != nil {
		t.Fatal(err)
	}
	scan(8)
	scan(10)
}

// Goal: no writer of a group is told that there is no span with its keys. Method: spans and rows of which the answer is known.
func TestScanGroups(t *testing.T) {
	c := newScanCache(&Options{Clock: func() time.Duration { return 0 }, Group: func(key []byte) int { return min(2, len(key)) }})
	for _, test := range []struct {
		start, end, row string
		want            int
	}{
		{"ab", "ac", "ab1", 2},
		{"ab", "ab5", "ab1", 2},
		{"ab1", "ab5", "ab1", 2},
		{"a", "ac", "ab1", -1},
		{"ab", "ad", "ab1", -1},
		{"ab", "b", "ab1", -1},
		{"a\xff", "b", "a\xff1", 2},
		{"a\xff", "c", "a\xff1", -1},
		{"", "b", "a\xff1", -1},
	} {
		if n := c.groupLen([]byte(test.start), []byte(test.end), []byte(test.row)); n != test.want {
			t.Errorf("[%q, %q): %d, want %d", test.start, test.end, n, test.want)
		}
	}
	if c.mayHave([]byte("ab")) {
		t.Error("an empty cache may have a span")
	}
	c.limit = 1 << 20
	c.note([]byte("ab"), []byte("ac"), []byte("ab1"), 10)
	if !c.mayHave([]byte("ab7")) || c.mayHave([]byte("ac7")) {
		t.Error("one group has a span")
	}
	c.grouped = 1 << 20
	c.note([]byte("ax"), []byte("bz"), []byte("ax"), 10)
	for _, key := range []string{"ab7", "ac7", "b"} {
		if !c.mayHave([]byte(key)) {
			t.Errorf("%s: a span may lie in any group", key)
		}
	}
}
