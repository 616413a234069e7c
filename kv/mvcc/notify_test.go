package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// testObserver is the observer of most tests.
const testObserver = 7

var testSets = []NotifySet{{Observers: []uint64{testObserver}}}

// notified makes a mutation of which testObserver is notified.
func notified(op Op, key, value string) Mutation {
	return Mutation{Op: op, Key: []byte(key), Value: []byte(value), Notify: 1}
}

// commitNotified commits a put of a key in one phase.
func (w *world) commitNotified(key, value string) tso.Timestamp {
	w.t.Helper()
	res, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{notified(OpPut, key, value)}, Notify: testSets,
		Primary: []byte(key), StartTS: w.now(), TTLMillis: 3000, TryOnePC: true})
	if err != nil || res.OnePCCommitTS == 0 {
		w.t.Fatal(res, err)
	}
	return res.OnePCCommitTS
}

// cells lists an observer's cells.
func (w *world) cells(observer uint64) []NotifyCell {
	w.t.Helper()
	page, err := w.NotifyScan(context.Background(), nil, nil, observer, math.MaxInt, math.MaxInt)
	if err != nil || page.ResumeKey != nil {
		w.t.Fatal(page.ResumeKey, err)
	}
	return page.Cells
}

func (w *world) cellOf(key string) tso.Timestamp {
	w.t.Helper()
	for _, c := range w.cells(testObserver) {
		if string(c.Key) == key {
			return c.Latest
		}
	}
	return 0
}

// clear clears the cell of a key.
func (w *world) clear(key string, upTo tso.Timestamp) int {
	w.t.Helper()
	n, err := w.NotifyClear(admitAll{}, testObserver, []NotifyUpTo{{Key: []byte(key), UpTo: upTo}})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Goal: a large commit's cells survive clears and NotifyPuts at any moment. Method: stop it before it checks its keys and
// before it writes; the cells are in the store when it ends.
func TestLargeCommitNotifies(t *testing.T) {
	w := newWorld(t, true, nil)
	old := w.commitNotified("row02", "old")
	ms := evenRows(5, "new")
	for i := range ms[:4] {
		ms[i].Notify = uint16(1 + i%2)
	}
	sets := []NotifySet{testSets[0], {Hop: 9, Observers: []uint64{testObserver, math.MaxUint64}}}
	run := &largeRun{at: make(chan int), goOn: make(chan struct{}), result: make(chan error, 1)}
	set := &memSet{ms: ms, pass: func(n int) { run.at <- n; <-run.goOn }}
	args := &CommitLargeRequest{Set: set, Notify: sets, StartTS: w.now(), Primary: ms[0].Key, TTLMillis: 3000}
	go func() {
		var err error
		run.res, err = w.CommitLarge(context.Background(), admitEach, args)
		run.result <- err
	}()
	put := make(chan error, 1)
	for step := 1; step <= 2; step++ {
		if got := <-run.at; got != step {
			t.Fatalf("step %d", got)
		}
		if n := w.clear("row02", w.now()); n != 0 {
			t.Errorf("step %d: a cell of a large commit is cleared", step)
		}
		if step == 1 {
			go func() {
				put <- w.NotifyPut(context.Background(), admitAll{}, testObserver, [][]byte{[]byte("row02"), []byte("row04")}, old, 1)
			}()
		}
		if got := w.cellOf("row02"); got != old {
			t.Errorf("step %d: the cell is at %d, want %d", step, got, old)
		}
		run.goOn <- struct{}{}
	}
	if err := errors.Join(<-run.result, <-put); err != nil {
		t.Fatal(err)
	}
	ts := run.res.CommitTS
	want := []NotifyCell{
		{[]byte("row00"), ts, 0}, {[]byte("row02"), ts, 9}, {[]byte("row04"), ts, 0}, {[]byte("row06"), ts, 9},
	}
	equal := func(a, b NotifyCell) bool { return bytes.Equal(a.Key, b.Key) && a.Latest == b.Latest && a.Hop == b.Hop }
	if got := w.cells(testObserver); !slices.EqualFunc(got, want, equal) {
		t.Errorf("cells %v, want %v", got, want)
	}
	if got := w.cells(math.MaxUint64); !slices.EqualFunc(got, []NotifyCell{want[1], want[3]}, equal) {
		t.Errorf("cells of the last observer: %v", got)
	}
	if w.clear("row02", ts-1) != 0 || w.clear("row02", ts) != 1 {
		t.Error("after it the cell is cleared at its commit_ts")
	}
	if findings, err := w.Check(context.Background()); err != nil || len(findings) > 0 {
		t.Error(findings, err)
	}
}

// Goal: no clear loses a change, whatever commits at the same time: one- and two-phase commits, and the ingestion of
// large ones, which takes no latches. Method: writers of three keys, and observers that clear up to what they have found;
// at the end the newest change of each key is in its cell, or was cleared by an observer that had found it.
func TestClearsLoseNoChange(t *testing.T) {
	w := newWorld(t, true, nil)
	keys := []string{"row00", "row02", "row04"}
	var mu sync.Mutex
	last, seen := map[string]tso.Timestamp{}, map[string]tso.Timestamp{}
	raiseIn := func(m map[string]tso.Timestamp, key string, ts tso.Timestamp) {
		mu.Lock()
		defer mu.Unlock()
		m[key] = max(m[key], ts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var writers, observers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			for range 60 {
				w.writeNotified(ctx, rng, keys, func(key string, ts tso.Timestamp) { raiseIn(last, key, ts) })
			}
		})
		observers.Go(func() {
			for ctx.Err() == nil {
				page, err := w.NotifyScan(context.Background(), nil, nil, testObserver, 10, 1<<20)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range page.Cells {
					raiseIn(seen, string(c.Key), c.Latest)
					if _, err := w.NotifyClear(admitAll{}, testObserver, []NotifyUpTo{{c.Key, c.Latest}}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	cancel()
	observers.Wait()
	for _, c := range w.cells(testObserver) {
		raiseIn(seen, string(c.Key), c.Latest)
	}
	for _, key := range keys {
		if seen[key] != last[key] {
			t.Errorf("%s: the last change is at %d, an observer has found %d", key, last[key], seen[key])
		}
	}
}

// writeNotified commits puts of keys in one of the ways there are, unless others are in the way.
func (w *world) writeNotified(ctx context.Context, rng *rand.Rand, keys []string, committed func(key string, ts tso.Timestamp)) {
	var ms []Mutation
	for _, key := range keys {
		ms = append(ms, notified(OpPut, key, "v"))
	}
	if rng.IntN(2) == 0 {
		ms = ms[:1]
	}
	start, ts := w.now(), tso.Timestamp(0)
	var err error
	switch way := rng.IntN(3); way {
	case 0:
		var res LargeResult
		res, err = w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: &memSet{ms: ms}, Notify: testSets, StartTS: start, Primary: ms[0].Key, TTLMillis: 3000})
		ts = res.CommitTS
	default:
		var res PrewriteResult
		res, err = w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Notify: testSets, Primary: ms[0].Key, StartTS: start, TTLMillis: 3000, TryOnePC: way == 1})
		if ts = res.OnePCCommitTS; err == nil && ts == 0 {
			ts = w.now()
			for i := range ms {
				_, commitErr := w.Commit(ctx, admitAll{}, [][]byte{ms[i].Key}, start, ts, i == 0)
				err = errors.Join(err, commitErr)
			}
		}
	}
	var conflict *WriteConflictError
	var locked *KeyLockedError
	if errors.As(err, &conflict) || errors.As(err, &locked) {
		return
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	for i := range ms {
		committed(string(ms[i].Key), ts)
	}
}

// Goal: what is kept for a watcher that does not keep up is bounded, and it is told to scan; others lose nothing; a
// commit never waits. Method: a watcher that stands still during more commits than fit.
func TestHintsAreBounded(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx, cancel := context.WithCancel(context.Background())
	goOn, got := make(chan struct{}), make(chan []NotifyHint, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- w.WatchNotify(ctx, func(hints []NotifyHint) error {
			got <- hints
			<-goOn
			return nil
		})
	}()
	if first := <-got; len(first) != 1 || first[0].Observer != 0 {
		t.Fatalf("first hints: %v", first)
	}
	large := strings.Repeat("k", maxHintBytes/4)
	for i := range 5 {
		w.commitNotified(fmt.Sprint(large, i), "v")
	}
	ts := w.commitNotified("last", "v")
	goOn <- struct{}{}
	hints := <-got
	bytes := 0
	for _, h := range hints {
		bytes += len(h.Key)
	}
	if len(hints) > 5 || bytes > maxHintBytes || hints[0].Observer != 0 {
		t.Errorf("%d hints of %d bytes", len(hints), bytes)
	}
	if h := hints[len(hints)-1]; h.Observer != testObserver || string(h.Key) != "last" || h.CommitTS != ts {
		t.Errorf("the last hint is not that of the last commit: %d at %d", h.Observer, h.CommitTS)
	}
	for range maxHints + 10 {
		w.hints.hint([]byte("k"), &testSets[0], ts, time.Now())
	}
	goOn <- struct{}{}
	if hints := <-got; len(hints) > maxHints+1 || hints[0].Observer != 0 {
		t.Errorf("%d hints", len(hints))
	}
	cancel()
	close(goOn)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := w.hints.watching.Load(); n != 0 || len(w.hints.watchers) != 0 {
		t.Errorf("%d watchers are left", n)
	}
}

// Goal: every way to commit makes hints, which come when the version can be read. Method: a commit of each kind; a read at
// the hint.
func TestEveryCommitMakesHints(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan NotifyHint, 100)
	go w.WatchNotify(ctx, func(hints []NotifyHint) error {
		for _, h := range hints {
			got <- h
		}
		return nil
	})
	expect := func(what, key string, ts tso.Timestamp) {
		t.Helper()
		select {
		case h := <-got:
			if h.Observer != testObserver && key != "" || string(h.Key) != key || h.CommitTS != ts {
				t.Errorf("%s: hint %+v", what, h)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: no hint", what)
		}
		if w.NumLocks() != 0 {
			t.Errorf("%s: the hint comes before the lock is gone", what)
		}
	}
	expect("first", "", 0)
	expect("one phase", "a", w.commitNotified("a", "1"))
	start := w.now()
	if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{notified(OpDelete, "a", "")}, Notify: testSets, Primary: []byte("a"), StartTS: start, TTLMillis: 3000}); err != nil {
		t.Fatal(err)
	}
	ts := w.now()
	if _, err := w.Commit(ctx, admitAll{}, [][]byte{[]byte("a")}, start, ts, true); err != nil {
		t.Fatal(err)
	}
	expect("two phases", "a", ts)
	res, err := w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: &memSet{ms: []Mutation{notified(OpPut, "b", "1")}}, Notify: testSets, StartTS: w.now(), Primary: []byte("b"), TTLMillis: 3000})
	if err != nil || res.CommitTS == 0 {
		t.Fatal(res, err)
	}
	expect("large", "", 0)
	ts = w.now()
	if err := w.NotifyPut(ctx, admitAll{}, testObserver, [][]byte{[]byte("c")}, ts, 0); err != nil {
		t.Fatal(err)
	}
	expect("put", "c", ts)
}

// Goal: a span is given away only without cells, and dropped with those of all observers. Method: cells of several
// observers at the bounds of spans.
func TestSpansWithCells(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := context.Background()
	ts := w.now()
	observers := []uint64{1, testObserver, math.MaxUint64}
	for _, observer := range observers {
		if err := w.NotifyPut(ctx, admitAll{}, observer, [][]byte{[]byte("b"), []byte("c"), []byte("c\x00")}, ts, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		start, end string
		empty      bool
	}{{"", "b", true}, {"a", "b\x00", false}, {"b\x00", "c", true}, {"c", "c\x00", false}, {"c\x00", "", false}, {"c\x00\x00", "", true}, {"", "", false}} {
		empty, err := w.SpanEmpty([]byte(tc.start), []byte(tc.end))
		if err != nil || empty != tc.empty {
			t.Errorf("[%q, %q) is empty: %v, %v", tc.start, tc.end, empty, err)
		}
		in, err := w.notifiedIn([]byte(tc.start), []byte(tc.end))
		if want := len(observers); err != nil || len(in) != map[bool]int{false: want}[tc.empty] {
			t.Errorf("[%q, %q) has cells of %v, %v", tc.start, tc.end, in, err)
		}
	}
	sp := w.now()
	w.fence(sp)
	if dropped, err := w.DropSpan([]byte("c"), nil, sp, nil); !dropped || err != nil {
		t.Fatal(dropped, err)
	}
	for _, observer := range observers {
		if cells := w.cells(observer); len(cells) != 1 || string(cells[0].Key) != "b" {
			t.Errorf("cells of observer %d: %v", observer, cells)
		}
	}
}

// Goal: packed locks keep their notify sets, each set stored once. Method: many locks of a transaction with a few sets,
// committed out of order.
func TestPackedLocksNotify(t *testing.T) {
	w := newPackingWorld(t, true, nil, packAll)
	ctx := context.Background()
	var ms []Mutation
	var keys [][]byte
	for i := range 100 {
		m := notified(OpPut, fmt.Sprintf("k%02d", i), "a value")
		m.Notify = uint16(i % 3)
		ms, keys = append(ms, m), append(keys, m.Key)
	}
	sets := func() []NotifySet {
		return []NotifySet{{Observers: []uint64{testObserver}}, {Hop: 1, Observers: []uint64{testObserver}}}
	}
	start := w.now()
	for some := range slices.Chunk(ms, 10) { // each request has sets of its own
		if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: some, Notify: sets(), Primary: ms[0].Key, StartTS: start, TTLMillis: 3000, TxnSize: 100}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if len(w.locks.packs) != 1 || len(w.locks.packs[0].notify) != 2 {
			t.Errorf("%d packs", len(w.locks.packs))
		}
		w.crash()
	}
	ts := w.now()
	if _, err := w.Commit(ctx, admitAll{}, keys[:1], start, ts, true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ResolveLock(ctx, admitAll{}, keys[1:], start, ts); err != nil {
		t.Fatal(err)
	}
	cells := w.cells(testObserver)
	if len(cells) != 66 {
		t.Errorf("%d cells", len(cells))
	}
	for _, c := range cells {
		var i int
		if _, err := fmt.Sscanf(string(c.Key), "k%d", &i); err != nil || int(c.Hop) != i%3-1 {
			t.Errorf("cell of %s has hop %d", c.Key, c.Hop)
		}
	}
}

// Goal: check finds cells that are malformed, from the future, or of keys of other stores. Method: put them there.
func TestCheckFindsDamagedCells(t *testing.T) {
	w := newWorld(t, true, nil)
	w.commitNotified("a", "1")
	now := w.now()
	put := func(stored, value []byte) {
		b := w.eng.NewBatch(0)
		defer b.Close()
		b.Put(stored, value)
		if err := w.eng.Apply(b, storage.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	good := appendNotifyCell(nil, notifyCell{latest: now})
	put(appendNotifyKey(nil, 1, []byte("b")), good[:8])
	put(appendNotifyKey(nil, 0, []byte("c")), good)
	put(appendNotifyKey(nil, 1, []byte("d")), appendNotifyCell(nil, notifyCell{latest: now + tso.FromPhysical(1000)}))
	put(appendNotifyKey(nil, 1, []byte("elsewhere")), good)
	put(append(append([]byte{tagNotify}, "short"...), 0), good)
	put(appendVersioned(nil, tagNotify, []byte("versioned cell"), now), good)
	findings, err := w.CheckWith(context.Background(), CheckOptions{Owns: func(key []byte) bool { return string(key) != "elsewhere" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cannot be read", "observer 0", "lies in the future", "belongs to no range", "without an observer", "wrong shape"} {
		i := slices.IndexFunc(findings, func(f Finding) bool { return strings.Contains(f.Detail, want) })
		if i < 0 {
			t.Fatalf("no %q among %v", want, findings)
		}
		findings = slices.Delete(findings, i, i+1)
	}
	if len(findings) > 0 {
		t.Error(findings)
	}
}

// Goal: the decisions about cells, case by case.
func TestDecideCells(t *testing.T) {
	for _, tc := range []struct {
		latest, upTo tso.Timestamp
		large, clear bool
	}{{0, 5, false, false}, {4, 5, false, true}, {5, 5, false, true}, {6, 5, false, false}, {5, 5, true, false}} {
		if got := decideClear(notifyCell{latest: tc.latest}, tc.upTo, tc.large); got != tc.clear {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	for _, tc := range []struct{ old, ts, want tso.Timestamp }{{0, 5, 5}, {4, 5, 5}, {5, 5, 5}, {6, 5, 6}} {
		got := decideNotify(notifyCell{latest: tc.old, hop: 1}, tc.ts, 2)
		if want := (notifyCell{tc.want, map[bool]uint8{true: 1, false: 2}[tc.old >= tc.ts]}); got != want {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// Goal: rare hints are passed on at once, those of busy writers together, and no later than a pause after the ones before.
func TestHintPace(t *testing.T) {
	var p hintPace
	now := time.Unix(1000, 0)
	for i := range 100 {
		if wait := p.next(now); wait != 0 {
			t.Fatalf("the %dth rare hint waits for %v", i, wait)
		}
		now = now.Add(hintPause)
	}
	passed := 0
	for end := now.Add(100 * hintPause); now.Before(end); passed++ { // There is a new hint whenever the last was passed on.
		wait := p.next(now)
		if wait > hintPause {
			t.Fatalf("a hint waits for %v", wait)
		}
		now = now.Add(wait)
	}
	if passed < 100 || passed > 100+hintBurst+1 {
		t.Errorf("hints were passed on %d times in 100 pauses", passed)
	}
}
