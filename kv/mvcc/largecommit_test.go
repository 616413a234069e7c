package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// memSet is a write set in memory. pass is called at the beginning of each Read with its number.
type memSet struct {
	ms     []Mutation
	pass   func(n int)
	n      int
	passed int // batches that were not read
}

func (s *memSet) Len() int         { return len(s.ms) }
func (s *memSet) SizeBytes() int64 { return int64(len(s.ms)) * 64 }

func (s *memSet) Read(ctx context.Context, pass func(*Batch) (bool, error), f func([]Mutation) error) error {
	s.n++
	if s.pass != nil {
		s.pass(s.n)
	}
	for i := 0; i < len(s.ms); i += 3 {
		if err := ctx.Err(); err != nil {
			return err
		}
		ms := s.ms[i:min(i+3, len(s.ms))]
		if pass != nil {
			if passed, err := pass(batchOf(ms)); err != nil {
				return err
			} else if passed {
				s.passed++
				continue
			}
		}
		if err := f(ms); err != nil {
			return err
		}
	}
	return nil
}

// batchOf describes mutations.
func batchOf(ms []Mutation) *Batch {
	b := &Batch{First: ms[0].Key, Last: ms[len(ms)-1].Key, Plain: true}
	for i := range ms {
		m := &ms[i]
		b.Plain = b.Plain && (m.Op == OpPut || m.Op == OpDelete) && m.LockedAt == 0 && m.Notify == 0
		b.MustBeNew = b.MustBeNew || m.MustBeNew
	}
	return b
}

func (s *memSet) Parts(n int) (parts []WriteSetPart) {
	if n == 1 {
		return []WriteSetPart{s}
	}
	for i := range n {
		parts = append(parts, &memSet{ms: s.ms[i*len(s.ms)/n : (i+1)*len(s.ms)/n]})
	}
	return parts
}

func (s *memSet) Has(key []byte) (bool, error) {
	for i := range s.ms {
		if bytes.Equal(s.ms[i].Key, key) {
			return true, nil
		}
	}
	return false, nil
}

func (s *memSet) Spans() (spans []Span) {
	for i := 0; i < len(s.ms); i += 3 {
		last := s.ms[min(i+3, len(s.ms))-1].Key
		spans = append(spans, Span{Start: s.ms[i].Key, End: append(bytes.Clone(last), 0)})
	}
	return spans
}

// evenRows are puts of row00, row02, …
func evenRows(n int, value string) []Mutation {
	var ms []Mutation
	for i := range n {
		ms = append(ms, Mutation{Op: OpPut, Key: fmt.Appendf(nil, "row%02d", 2*i), Value: []byte(value)})
	}
	return ms
}

// largeRun is a large commit that stops at the steps that the test selects.
type largeRun struct {
	at     chan int      // steps reached
	goOn   chan struct{} // lets it continue
	result chan error
	res    LargeResult
	start  tso.Timestamp
}

func (w *world) beginLarge(ms []Mutation, start tso.Timestamp) *largeRun {
	r := &largeRun{at: make(chan int), goOn: make(chan struct{}), result: make(chan error, 1), start: start}
	set := &memSet{ms: ms, pass: func(n int) { r.at <- n; <-r.goOn }}
	go func() {
		var err error
		r.res, err = w.CommitLarge(context.Background(), admitEach, &CommitLargeRequest{Set: set, StartTS: start, Primary: ms[0].Key, TTLMillis: 3000})
		r.result <- err
	}()
	return r
}

// Reads that are to wait are given up soon, others never.
const (
	brief   = 100 * time.Millisecond
	patient = time.Minute
)

func (w *world) getAt(key string, ts tso.Timestamp) (string, error) {
	return w.getWithin(patient, key, ts)
}

func (w *world) getWithin(limit time.Duration, key string, ts tso.Timestamp) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var v []byte
	var err error
	if ts == tso.MaxTimestamp {
		var latest LatestValue
		latest, err = w.GetLatest(ctx, []byte(key), 0)
		v = latest.Value
	} else if err = w.BeginRead(ctx, ts); err == nil {
		v, err = w.Get(ctx, []byte(key), &ReadOptions{ReadTS: ts})
	}
	if v == nil {
		return "-", err
	}
	return string(v), err
}

func (w *world) scanRows(ts tso.Timestamp, reverse bool, spans ...Span) (string, error) {
	return w.scanWithin(patient, ts, reverse, spans...)
}

func (w *world) scanWithin(limit time.Duration, ts tso.Timestamp, reverse bool, spans ...Span) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := w.BeginRead(ctx, ts); err != nil {
		return "", err
	}
	if len(spans) == 0 {
		spans = spanOf("row", "rox")
	}
	args := ScanRequest{Spans: spans, Reverse: reverse, Limit: 1000, MaxBytes: 1 << 20, ReadOptions: ReadOptions{ReadTS: ts}}
	page, err := w.Scan(ctx, &args)
	if err != nil {
		return "", err
	}
	s := ""
	for _, r := range page.Rows {
		s += fmt.Sprintf("%s=%s ", r.Key, r.Value)
	}
	if page.ResumeKey != nil {
		s += fmt.Sprintf("then %q", page.ResumeKey)
	}
	return s, nil
}

func (w *world) putRow(t *testing.T, key, value string) {
	t.Helper()
	res, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{
		Mutations: []Mutation{{Op: OpPut, Key: []byte(key), Value: []byte(value)}}, Primary: []byte(key), StartTS: w.now(), TTLMillis: 3000, TryOnePC: true})
	if err != nil || res.OnePCCommitTS == 0 {
		t.Fatalf("put %s: %v", key, err)
	}
}

// Goal: while a large commit checks its keys, readers see the previous versions, at any timestamp; once its commit_ts
// is known, readers below it still do and readers above wait; then all see all of it. Keys between its keys are never
// locked.
func TestReadersOfLargeCommit(t *testing.T) {
	w := newWorld(t, true, nil)
	for _, key := range []string{"row00", "row01", "row09", "row10", "row18", "row30"} {
		w.putRow(t, key, "old")
	}
	const before = "row00=old row01=old row09=old row10=old row18=old row30=old "
	r := w.beginLarge(evenRows(10, "new"), w.now())
	<-r.at
	seen := w.now()
	for _, reverse := range []bool{false, true} {
		if s, err := w.scanRows(w.now(), reverse); err != nil || (s != before) != reverse {
			t.Fatalf("while keys are checked: %s %v", s, err)
		}
	}
	for _, ts := range []tso.Timestamp{w.now(), tso.MaxTimestamp} {
		if v, err := w.getAt("row10", ts); err != nil || v != "old" {
			t.Fatalf("while keys are checked: %s %v", v, err)
		}
	}
	w.putRow(t, "row05", "between")
	r.goOn <- struct{}{}
	<-r.at // the commit_ts is known
	if s, err := w.scanRows(seen, false); err != nil || s != before {
		t.Fatalf("below the commit_ts: %s %v", s, err)
	}
	above := w.now()
	for _, ts := range []tso.Timestamp{above, tso.MaxTimestamp} {
		limit := patient
		if ts == above {
			limit = brief
		}
		v, err := w.getWithin(limit, "row10", ts)
		var locked *KeyLockedError // of the latest value: the reader takes a timestamp
		if ts == above && !errors.Is(err, context.DeadlineExceeded) || ts != above && !errors.As(err, &locked) {
			t.Fatalf("above the commit_ts: %s %v", v, err)
		}
		if v, err := w.getAt("row09", ts); err != nil || v != "old" {
			t.Fatalf("a key between: %s %v", v, err)
		}
	}
	for _, reverse := range []bool{false, true} {
		if s, err := w.scanWithin(brief, above, reverse, Span{Start: []byte("row00"), End: []byte("row04\x00")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a scan above the commit_ts: %s %v", s, err)
		}
	}
	// Keys outside of its spans are a separate page.
	if s, err := w.scanRows(above, true); err != nil || s != `row30=old then "row18\x00"` {
		t.Fatalf("a scan from behind: %s %v", s, err)
	}
	if s, err := w.scanRows(above, false, Span{Start: []byte("row05"), End: []byte("row06")}, Span{Start: []byte("row10"), End: []byte("row20")}); err != nil || s != `row05=between then "row10"` {
		t.Fatalf("a scan of several spans: %s %v", s, err)
	}
	var changed *KeyLockedError
	conflict := w.lockInSpan(&RefreshRequest{StartTS: 1, FromTS: seen, ToTS: above}, &Span{Start: []byte("row03"), End: []byte("row07")})
	if conflict == nil || !errors.As(conflict.KeyLockedError, &changed) || conflict.wait == nil {
		t.Fatal("a refresh passes the large commit")
	}
	if free, err := w.SpanEmpty([]byte("row20"), []byte("row21")); err != nil || !free {
		t.Fatalf("a span behind: %v %v", free, err)
	}
	if free, err := w.SpanEmpty([]byte("row15"), []byte("row17")); err != nil || free {
		t.Fatalf("a span with a key to come: %v %v", free, err)
	}
	r.goOn <- struct{}{}
	if err := <-r.result; err != nil {
		t.Fatal(err)
	}
	after := "row00=new row01=old row02=new row04=new row05=between row06=new row08=new row09=old row10=new row12=new row14=new row16=new row18=new row30=old "
	if s, err := w.scanRows(w.now(), false); err != nil || s != after {
		t.Fatalf("after the commit: %s %v", s, err)
	}
	if s, err := w.scanRows(seen, false); err != nil || s != before {
		t.Fatalf("history: %s %v", s, err)
	}
	w.crash()
	if s, err := w.scanRows(w.now(), false); err != nil || s != after {
		t.Fatalf("after a crash: %s %v", s, err)
	}
}

// Goal: a crash at any moment before the end leaves nothing of a large commit, files included.
func TestLargeCommitVanishesInCrash(t *testing.T) {
	for pass := 1; pass <= 2; pass++ {
		w := newWorld(t, true, nil)
		w.putRow(t, "row00", "old")
		r := w.beginLarge(evenRows(10, "new"), w.now())
		for <-r.at < pass {
			r.goOn <- struct{}{}
		}
		crashed := &world{t: t, fs: storage.CrashClone(w.fs, 0, nil), oracle: w.oracle, embedded: true}
		crashed.open()
		if s, err := crashed.scanRows(crashed.now(), false); err != nil || s != "row00=old " {
			t.Fatalf("pass %d: after a crash: %s %v", pass, s, err)
		}
		crashed.close()
		for done := false; !done; {
			select {
			case r.goOn <- struct{}{}:
			case <-r.at:
			case err := <-r.result:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			}
		}
	}
}

// Goal: writers of a large commit's keys wait for it and then meet its versions; a request that waits for a lock of the
// transaction itself is granted as of the commit.
func TestWritersOfLargeCommit(t *testing.T) {
	for _, packLocks := range []int{0, packAll} {
		t.Run(fmt.Sprintf("packLocks=%d", packLocks), func(t *testing.T) { testWritersOfLargeCommit(t, packLocks) })
	}
}

func testWritersOfLargeCommit(t *testing.T, packLocks int) {
	ctx := context.Background()
	w := newPackingWorld(t, true, nil, packLocks)
	w.putRow(t, "row02", "old")
	start := w.now()
	acquire := func(startTS tso.Timestamp, wait time.Duration, skip bool, keys ...string) (AcquireLocksResponse, error) {
		var ks [][]byte
		for _, k := range keys {
			ks = append(ks, []byte(k))
		}
		return w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: ks, Primary: ks[0], StartTS: startTS, TTLMillis: 60_000, Wait: wait, SkipLocked: skip})
	}
	mine, err := acquire(start, 0, false, "row02", "row05")
	if err != nil {
		t.Fatal(err)
	}
	ms := evenRows(4, "new")
	ms[1].LockedAt = mine.LockedAt[0]
	type answer struct {
		res AcquireLocksResponse
		err error
	}
	ask := func(keys ...string) chan answer {
		c := make(chan answer, 1)
		ts := w.now()
		go func() {
			res, err := acquire(ts, 10*time.Second, false, keys...)
			c <- answer{res, err}
		}()
		return c
	}
	queued := ask("row02") // behind the transaction's own lock
	for w.WaitStats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	r := w.beginLarge(ms, start)
	<-r.at
	waiting := ask("row04") // for the large commit
	r.goOn <- struct{}{}
	<-r.at
	var locked *KeyLockedError
	if _, err := acquire(w.now(), 0, false, "row04"); !errors.As(err, &locked) || locked.Lock.StartTS != start {
		t.Fatalf("a request that does not wait: %v", err)
	}
	st, err := w.CheckTxnStatus(ctx, admitAll{}, &CheckTxnStatusRequest{Primary: locked.Lock.Primary, StartTS: start, NowTS: w.now(), RollbackIfMissing: true})
	if err != nil || st.Lock == nil {
		t.Fatalf("the status of a large commit: %+v %v", st, err)
	}
	if res, err := acquire(w.now(), 0, true, "row04", "row07"); err != nil || res.LockedAt[0] != 0 || res.LockedAt[1] == 0 {
		t.Fatalf("SKIP LOCKED: %+v %v", res, err)
	}
	prewritten := make(chan error, 1)
	other := w.now()
	go func() {
		_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: []byte("row06"), Value: []byte("x")}},
			Primary: []byte("row06"), StartTS: other, TTLMillis: 3000, TryOnePC: true})
		prewritten <- err
	}()
	fence := make(chan error, 1)
	go func() { _, err := w.SetSafePoint(ctx, start); fence <- err }()
	time.Sleep(20 * time.Millisecond) // Requests that do not wait answer within this time.
	for _, c := range []chan error{prewritten, fence} {
		select {
		case err := <-c:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	r.goOn <- struct{}{}
	if err := <-r.result; err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]chan answer{"behind the lock": queued, "behind the commit": waiting} {
		if a := <-c; a.err != nil || a.res.LockedAt[0] != r.res.CommitTS {
			t.Fatalf("who waited %s: %+v, %v; committed at %s", what, a.res, a.err, show(r.res.CommitTS))
		}
	}
	var conflict *WriteConflictError
	if err := <-prewritten; err != nil && !errors.As(err, &conflict) || err == nil && other < r.res.CommitTS {
		t.Fatalf("a write that began before the commit: %v", err)
	}
	if err := <-fence; err != nil {
		t.Fatal(err)
	}
	if n := w.locks.n.Load(); n != 4 { // row02, row04, row05, row07
		t.Fatalf("%d locks", n)
	}
}

// Goal: a large commit that fails leaves everything unchanged, including its pessimistic locks.
func TestLargeCommitFails(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, true, nil)
	start := w.now()
	mine, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: [][]byte{[]byte("row00")}, Primary: []byte("row00"), StartTS: start, TTLMillis: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	w.putRow(t, "row16", "newer")
	ms := evenRows(10, "new")
	ms[0].LockedAt = mine.LockedAt[0]
	r := w.beginLarge(ms, start)
	<-r.at
	r.goOn <- struct{}{}
	var conflict *WriteConflictError
	if err := <-r.result; !errors.As(err, &conflict) || string(conflict.Key) != "row16" {
		t.Fatalf("commit over a newer version: %v", err)
	}
	if s, err := w.scanRows(w.now(), false); err != nil || s != "row16=newer " {
		t.Fatalf("%s %v", s, err)
	}
	locks, err := w.ScanLock(ctx, nil, nil, w.now(), 0, 10)
	if err != nil || len(locks) != 1 || locks[0].Lock.Op != OpPessimistic {
		t.Fatalf("%+v %v", locks, err)
	}
	if w.locks.blocking.Load() != 0 || w.locks.largeN.Load() != 0 {
		t.Fatal("something is left in the lock table")
	}
}

// Goal: keys locked shared are checked at the end: if a lock was lost and the key changed, the commit fails; an
// existing lock stays.
func TestLargeCommitChecksSharedLocks(t *testing.T) {
	ctx := context.Background()
	for _, lost := range []bool{false, true} {
		w := newWorld(t, true, nil)
		w.putRow(t, "parent", "old")
		start := w.now()
		keys := [][]byte{[]byte("parent")}
		mine, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: keys, Primary: keys[0], StartTS: start, TTLMillis: 60_000, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		shared := []Mutation{{Op: OpCheckShared, Key: keys[0], LockedAt: mine.LockedAt[0]}}
		set := &memSet{ms: evenRows(5, "new"), pass: func(n int) {
			if lost && n == 2 { // the keys have been checked, the versions are being written
				if err := w.ReleaseLocks(admitAll{}, keys, start, tso.MaxTimestamp); err != nil {
					t.Error(err)
				}
				w.putRow(t, "parent", "newer")
			}
		}}
		_, err = w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: set, Shared: shared, StartTS: start, Primary: keys[0], TTLMillis: 3000})
		var conflict *WriteConflictError
		rows, scanErr := w.scanRows(w.now(), false)
		switch {
		case scanErr != nil:
			t.Fatal(scanErr)
		case lost && (!errors.As(err, &conflict) || rows != ""):
			t.Fatalf("a lost lock: %v, %s", err, rows)
		case !lost && (err != nil || rows == "" || w.locks.n.Load() != 1):
			t.Fatalf("%v, %s, %d locks", err, rows, w.locks.n.Load())
		}
	}
}

// Goal: results on which a large commit relies survive a crash that follows it. Method: the secondary of another
// transaction is committed without a sync, a large commit changes the same key as its last, so that its table does not
// overlap the memtable, and the power is cut.
func TestLargeCommitKeepsWhatItFound(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, true, nil)
	before := w.now()
	ms := []Mutation{{Op: OpPut, Key: []byte("primary"), Value: []byte("old")}, {Op: OpPut, Key: []byte("row18"), Value: []byte("old")}}
	if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: ms[0].Key, StartTS: before, TTLMillis: 3000}); err != nil {
		t.Fatal(err)
	}
	commitTS := w.now()
	for i := range ms {
		if _, err := w.Commit(ctx, admitAll{}, [][]byte{ms[i].Key}, before, commitTS, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	set := &memSet{ms: evenRows(10, "new")}
	_, err := w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: set, StartTS: w.now(), Primary: set.ms[0].Key, TTLMillis: 3000})
	if err != nil {
		t.Fatal(err)
	}
	w.crash()
	if locks, err := w.ScanLock(ctx, nil, nil, w.now(), 0, 10); err != nil || len(locks) != 0 {
		t.Errorf("locks below what was committed over them: %+v %v", locks, err)
	}
	o := &ReadOptions{ReadTS: w.now(), Resolved: []CommittedTxn{{StartTS: before, CommitTS: commitTS}}}
	if err := w.BeginRead(ctx, o.ReadTS); err != nil {
		t.Fatal(err)
	}
	if v, err := w.Get(ctx, []byte("row18"), o); err != nil || string(v) != "new" {
		t.Errorf("after the crash: %s %v", v, err)
	}
}

// Goal: a fence is complete only when the large commits that began below it have ended, also if an earlier request for
// it was cancelled.
func TestFenceAwaitsLargeCommits(t *testing.T) {
	w := newWorld(t, true, nil)
	r := w.beginLarge(evenRows(10, "new"), w.now())
	<-r.at
	r.goOn <- struct{}{}
	<-r.at // its keys have been checked
	safePoint := w.now()
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if _, err := w.SetSafePoint(ctx, safePoint); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the fence is up, and a commit below it under way: %v", err)
		}
		cancel()
	}
	r.goOn <- struct{}{}
	if err := <-r.result; err != nil {
		t.Fatal(err)
	}
	if ts, err := w.SetSafePoint(context.Background(), safePoint-8); err != nil || ts != safePoint {
		t.Fatalf("%d %v", ts, err)
	}
	w.crash()
	if w.SafePoint() != safePoint {
		t.Fatal("the fence was not durable")
	}
}

// Goal: two large commits, each of which changes what the other has locked shared and lost, do not wait for each other.
// Method: the locks of both are lost, and both reach the end at the same time.
func TestLargeCommitsDoNotWaitForEachOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	w := newWorld(t, true, nil)
	var written sync.WaitGroup // both have written their versions
	written.Add(2)
	failed := make(chan error, 2)
	var commits []func()
	for _, keys := range [][2]string{{"a", "z"}, {"z", "a"}} {
		start := w.now()
		shared := [][]byte{[]byte(keys[0])}
		mine, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: shared, Primary: shared[0], StartTS: start, TTLMillis: 60_000, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.ReleaseLocks(admitAll{}, shared, start, tso.MaxTimestamp-1); err != nil {
			t.Fatal(err)
		}
		set := &memSet{ms: []Mutation{{Op: OpPut, Key: []byte(keys[1]), Value: []byte("v")}}, pass: func(n int) {
			if n == 2 {
				written.Done()
				written.Wait()
			}
		}}
		commits = append(commits, func() {
			_, err := w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: set, Shared: []Mutation{{Op: OpCheckShared, Key: shared[0], LockedAt: mine.LockedAt[0]}},
				StartTS: start, Primary: []byte(keys[1]), TTLMillis: 3000})
			failed <- err
		})
	}
	for _, commit := range commits { // both have had their locks
		go commit()
	}
	n := 0
	for range 2 {
		err := <-failed
		var lost *LockLostError
		var conflict *WriteConflictError
		switch {
		case errors.As(err, &lost), errors.As(err, &conflict):
			n++
		case err != nil:
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Error("each has committed over what the other had read")
	}
}

// bigSet reports that it takes a second to write.
type bigSet struct {
	memSet
	sizeBytes int64
}

func (s *bigSet) SizeBytes() int64 { return s.sizeBytes }

func (s *bigSet) Parts(int) []WriteSetPart { return []WriteSetPart{&s.memSet} }

// Goal: while a large commit writes, readers of its keys do not wait, unless it takes longer than estimated: its
// commit_ts lies ahead of the oracle. Its versions appear, and it is acknowledged, only when the oracle has passed the
// commit_ts; readers above wait until then. Bounds and cancellations apply meanwhile.
func TestReadersPassLargeCommitThatWrites(t *testing.T) {
	const size = 1 << 30
	for _, c := range []string{"commits", "late", "bounded", "cancelled"} {
		t.Run(c, func(t *testing.T) {
			w := newWorld(t, true, nil)
			w.putRow(t, "row00", "old")
			w.largeRate.Store(size)
			at, goOn := make(chan int), make(chan struct{})
			set := &bigSet{memSet: memSet{ms: evenRows(10, "new"), pass: func(n int) { at <- n; <-goOn }}, sizeBytes: size}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			start := w.now()
			args := &CommitLargeRequest{Set: set, StartTS: start, Primary: set.ms[0].Key, TTLMillis: 3000}
			if c == "bounded" {
				args.MaxCommitTS = start + tso.FromPhysical(500)
			}
			result := make(chan error, 1)
			var res LargeResult
			go func() {
				var err error
				res, err = w.CommitLarge(ctx, admitEach, args)
				result <- err
			}()
			<-at
			goOn <- struct{}{}
			<-at // it writes
			below := w.now()
			if c == "bounded" {
				if v, err := w.getWithin(brief, "row00", below); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the commit_ts must lie within the bound, at the present: %s %v", v, err)
				}
				goOn <- struct{}{}
				if err := <-result; err != nil || res.CommitTS > args.MaxCommitTS {
					t.Fatalf("%v, at %s", err, show(res.CommitTS))
				}
				return
			}
			if v, err := w.getAt("row00", below); err != nil || v != "old" {
				t.Fatalf("a reader of the present: %s %v", v, err)
			}
			var locked *KeyLockedError
			if v, err := w.getAt("row00", tso.MaxTimestamp); !errors.As(err, &locked) {
				t.Fatalf("a reader of the latest value, who has to take a timestamp: %s %v", v, err)
			}
			late := c == "late"
			if late {
				w.oracle.advance(1100)
				if v, err := w.getWithin(brief, "row00", w.now()); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("a reader of the present, the commit being late: %s %v", v, err)
				}
			}
			goOn <- struct{}{}
			if !late {
				select {
				case err := <-result:
					t.Fatalf("it ended before the oracle had passed its commit_ts: %v", err)
				case <-time.After(20 * time.Millisecond):
				}
				if v, err := w.getAt("row00", w.now()); err != nil || v != "old" {
					t.Fatalf("a reader of the present, the versions being written: %s %v", v, err)
				}
			}
			if c == "cancelled" {
				cancel()
				if err := <-result; !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if s, err := w.scanRows(w.now(), false); err != nil || s != "row00=old " {
					t.Fatalf("after a cancel: %s %v", s, err)
				}
				return
			}
			if !late {
				w.oracle.advance(1100)
			}
			if err := <-result; err != nil || res.CommitTS <= below || res.CommitTS >= w.now() || res.CommitTS%tso.Tick == 0 {
				t.Fatalf("%v, at %s", err, show(res.CommitTS))
			}
			if w.largeRate.Load() == size {
				t.Fatal("how long it took is not noted")
			}
			for range 2 {
				if v, err := w.getAt("row18", w.now()); err != nil || v != "new" {
					t.Fatalf("after the commit: %s %v", v, err)
				}
				if v, err := w.getAt("row00", below); err != nil || v != "old" {
					t.Fatalf("history: %s %v", v, err)
				}
				w.crash()
			}
		})
	}
}
