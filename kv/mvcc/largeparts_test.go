package mvcc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// commitLargeSet commits ms as a large write set, in the maximum number of parts.
func (w *world) commitLargeSet(ms []Mutation, start tso.Timestamp) (LargeResult, error) {
	w.opts.LargePartBytes = 1
	return w.CommitLarge(context.Background(), admitEach, &CommitLargeRequest{Set: &memSet{ms: ms}, StartTS: start, Primary: ms[0].Key, TTLMillis: 3000})
}

// Goal: a large commit in several parts is one commit. Its commit_ts lies above the timestamps of the locks of all
// parts, all its records of every kind exist, and a failure in any part leaves nothing.
func TestLargeCommitInParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	w := newWorld(t, true, nil)
	w.opts.Group = func(key []byte) int { return len(key) - 2 } // rows of the same hundred
	const n = 1000
	if parts := w.largeParts(&memSet{ms: make([]Mutation, n)}); parts != 1 {
		t.Fatalf("%d parts of a small set", parts)
	}
	var ms []Mutation
	want := ""
	for i := range n {
		m := Mutation{Op: OpPut, Key: fmt.Appendf(nil, "row%04d", i), Value: []byte("v")}
		switch i % 10 {
		case 3:
			m = Mutation{Op: OpDelete, Key: m.Key}
		case 4:
			m = Mutation{Op: OpLock, Key: m.Key}
		case 5:
			m.Value = []byte("a value that lies in a record of its own")
		}
		if m.Op == OpPut {
			want += fmt.Sprintf("%s=%s ", m.Key, m.Value)
		}
		ms = append(ms, m)
	}
	for _, at := range []int{1, n / 2, n - 1} {
		key := string(ms[at].Key)
		start := w.now()
		w.putRow(t, key, "later")
		var conflict *WriteConflictError
		if _, err := w.commitLargeSet(ms, start); !errors.As(err, &conflict) || string(conflict.Key) != key {
			t.Fatalf("a conflict on %s: %v", key, err)
		}
	}
	const before = "row0001=later row0500=later row0999=later "
	if s, err := w.scanRows(w.now(), false); err != nil || s != before {
		t.Fatalf("after failures: %s %v", s, err)
	}
	start := w.now()
	locked, err := w.AcquireLocks(context.Background(), admitAll{}, &AcquireLocksRequest{Keys: [][]byte{ms[n-1].Key}, Primary: ms[n-1].Key, StartTS: start, TTLMillis: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	ms[n-1].LockedAt = locked.LockedAt[0]
	other := w.now()
	if parts := w.largeParts(&memSet{ms: ms}); parts != 4 {
		t.Fatalf("%d parts", parts)
	}
	res, err := w.commitLargeSet(ms, start)
	if err != nil || res.CommitTS <= ms[n-1].LockedAt || res.WrittenBytes == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	for range 2 {
		if s, err := w.scanRows(w.now(), false); err != nil || s != want {
			t.Fatalf("after the commit: %s %v", s, err)
		}
		w.crash()
	}
	var conflict *WriteConflictError
	if _, err := w.commitLargeSet(ms[4:5], other); !errors.As(err, &conflict) || conflict.ConflictingCommitTS != res.CommitTS {
		t.Fatalf("a key that was locked only: %v", err)
	}
}

// Goal: a batch passes without a check of each key only if the store has nothing that concerns it between its first key
// and its last, both included.
func TestUntouchedSpans(t *testing.T) {
	ctx := context.Background()
	rows := func(op Op, mustBeNew bool) (ms []Mutation) {
		for i := 10; i <= 12; i++ { // one batch of the set
			ms = append(ms, Mutation{Op: op, MustBeNew: mustBeNew, Key: fmt.Appendf(nil, "row%d", i), Value: []byte("v")})
		}
		return ms
	}
	for name, c := range map[string]struct {
		prepare func(w *world, start tso.Timestamp)
		want    any // an error's type
	}{
		"nothing":      {func(w *world, _ tso.Timestamp) { w.putRow(t, "row09", "v"); w.putRow(t, "row13", "v") }, nil},
		"first exists": {func(w *world, _ tso.Timestamp) { w.putRow(t, "row10", "v") }, new(*WriteConflictError)},
		"last exists":  {func(w *world, _ tso.Timestamp) { w.putRow(t, "row12", "v") }, new(*WriteConflictError)},
		"rolled back": {func(w *world, start tso.Timestamp) {
			if err := w.Rollback(ctx, admitAll{}, [][]byte{[]byte("row11")}, start); err != nil {
				t.Fatal(err)
			}
		}, new(*RolledBackError)},
		"locked": {func(w *world, _ tso.Timestamp) {
			_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: []byte("row11"), Value: []byte("x")}},
				Primary: []byte("row11"), StartTS: w.now(), TTLMillis: 60_000})
			if err != nil {
				t.Fatal(err)
			}
		}, new(*KeyLockedError)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true, nil)
			start := w.now()
			c.prepare(w, start)
			_, err := w.commitLargeSet(rows(OpPut, true), start)
			if c.want == nil && err != nil || c.want != nil && !errors.As(err, c.want) {
				t.Fatalf("%v, want %T", err, c.want)
			}
		})
	}
	w := newWorld(t, true, nil)
	w.putRow(t, "row11", "v")
	var exists *KeyExistsError
	if _, err := w.commitLargeSet(rows(OpPut, true), w.now()); !errors.As(err, &exists) || string(exists.Key) != "row11" {
		t.Fatalf("a key that exists: %v", err)
	}
	if res, err := w.commitLargeSet([]Mutation{{Op: OpCheckNotExists, Key: []byte("row20")}, {Op: OpPut, Key: []byte("row21")}}, w.now()); err != nil || res.CommitTS == 0 {
		t.Fatalf("a check beside a put: %+v %v", res, err)
	}
}

// Goal: existing rows that have not changed since the snapshot pass without a check of each, on disk and in memory; one
// that has changed, or that was locked before it changed, is a conflict, at any position in the batch and of the
// version.
func TestUnchangedSpans(t *testing.T) {
	for _, flush := range []bool{false, true} {
		for at := range 3 {
			for _, op := range []Op{OpPut, OpDelete} {
				t.Run(fmt.Sprint("flush ", flush, ", changed ", at, ", ", op), func(t *testing.T) {
					w := newWorld(t, true, nil)
					var ms []Mutation
					for i := 10; i <= 12; i++ { // one batch of the set
						w.putRow(t, fmt.Sprintf("row%d", i), "old")
						ms = append(ms, Mutation{Op: op, Key: fmt.Appendf(nil, "row%d", i), Value: []byte("v")})
					}
					store := func() {
						if flush {
							if err := w.eng.Flush(); err != nil {
								t.Fatal(err)
							}
						}
					}
					store()
					unchanged := func(start, lockedAt tso.Timestamp) bool {
						t.Helper()
						batch := slices.Clone(ms)
						batch[1].LockedAt = lockedAt
						k := &largeChecker{s: w.State, args: &CommitLargeRequest{Set: &memSet{ms: ms}, StartTS: start}}
						pre := k.prewrite(batch)
						since := pre.snapshot()
						if lockedAt != 0 {
							since = lockedAt
						}
						ok, err := k.unchanged(ms[0].Key, ms[2].Key, since)
						if err != nil {
							t.Fatal(err)
						}
						return ok
					}
					before := w.now()
					if !unchanged(before, 0) {
						t.Error("old versions count as changes")
					}
					w.putRow(t, fmt.Sprintf("row%d", 10+at), "new")
					store()
					if after := w.now(); unchanged(before, 0) || !unchanged(after, 0) || unchanged(after, before) {
						t.Error("a change is judged by the wrong snapshot")
					}
					var conflict *WriteConflictError
					if _, err := w.commitLargeSet(ms, before); !errors.As(err, &conflict) || string(conflict.Key) != fmt.Sprintf("row%d", 10+at) {
						t.Errorf("as of before the change: %v", err)
					}
					if res, err := w.commitLargeSet(ms, w.now()); err != nil || res.CommitTS == 0 {
						t.Errorf("as of now: %+v %v", res, err)
					}
				})
			}
		}
	}
}

// Goal: a batch that is plain, and in whose span nothing has changed, is committed without a look at its mutations; any
// other is read, and a check that admits no more fails the commit.
func TestPlainBatchesAreNotRead(t *testing.T) {
	ctx := context.Background()
	const batches = 4
	refused := errors.New("not served here")
	for name, c := range map[string]struct {
		prepare func(w *world, set *memSet, start tso.Timestamp)
		passed  int
		want    any // an error's type
	}{
		"nothing":     {func(*world, *memSet, tso.Timestamp) {}, batches, nil},
		"another key": {func(w *world, _ *memSet, _ tso.Timestamp) { w.putRow(t, "row04x", "new") }, 1, nil},
		"only locked": {func(_ *world, set *memSet, _ tso.Timestamp) { set.ms[4].Op = OpLock }, batches - 1, nil},
		"new":         {func(_ *world, set *memSet, _ tso.Timestamp) { set.ms[11].MustBeNew = true }, batches - 1, new(*KeyExistsError)},
		"changed":     {func(w *world, _ *memSet, _ tso.Timestamp) { w.putRow(t, "row11", "new") }, batches - 1, new(*WriteConflictError)},
		"rolled back": {func(w *world, _ *memSet, start tso.Timestamp) {
			if err := w.Rollback(ctx, admitAll{}, [][]byte{[]byte("row05")}, start); err != nil {
				t.Fatal(err)
			}
		}, 0, new(*RolledBackError)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true, nil)
			set := &memSet{}
			for i := range 3 * batches {
				key := fmt.Sprintf("row%02d", i)
				w.putRow(t, key, "old")
				set.ms = append(set.ms, Mutation{Op: OpPut, Key: []byte(key), Value: []byte("v")})
			}
			start := w.now()
			c.prepare(w, set, start)
			_, err := w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: set, StartTS: start, Primary: set.ms[0].Key, TTLMillis: 3000})
			if c.want == nil && err != nil || c.want != nil && !errors.As(err, c.want) {
				t.Fatalf("%v, want %T", err, c.want)
			}
			if set.passed != c.passed {
				t.Fatalf("%d batches of %d were passed", set.passed, c.passed)
			}
		})
	}
	w := newWorld(t, true, nil)
	set := &memSet{ms: evenRows(3, "v")}
	_, err := w.CommitLarge(ctx, func(ms []Mutation, between bool) Admission {
		if between && string(ms[0].Key) == "row00" && string(ms[len(ms)-1].Key) == "row04" {
			return refuse{refused}
		}
		return admitAll{}
	}, &CommitLargeRequest{Set: set, StartTS: w.now(), Primary: set.ms[0].Key, TTLMillis: 3000})
	if !errors.Is(err, refused) {
		t.Fatalf("a span that is not admitted: %v", err)
	}
}

// refuse admits nothing.
type refuse struct{ err error }

func (r refuse) Admit() error { return r.err }

// Goal: a writer that has latched a key before the large commit's lock was in the table is not overlooked, although
// batches are passed without latches. Method: latch a key, begin the commit, apply a version, release the latch.
func TestLargeCommitWaitsForLatches(t *testing.T) {
	w := newWorld(t, true, nil)
	set := &memSet{ms: evenRows(3, "v")}
	key := set.ms[1].Key
	w.putRow(t, string(key), "old")
	start := w.now()
	var held latchSet
	w.latches.lockOne(&held, key)
	result := make(chan error, 1)
	go func() {
		_, err := w.CommitLarge(context.Background(), admitEach, &CommitLargeRequest{Set: set, StartTS: start, Primary: set.ms[0].Key, TTLMillis: 3000})
		result <- err
	}()
	select {
	case err := <-result:
		t.Fatalf("it did not wait for the latch: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	b := w.eng.NewBatch(0)
	defer b.Close()
	commitTS := w.now()
	b.Put(appendVersioned(nil, tagWrite, key, commitTS), appendWrite(nil, OpPut, false, commitTS-1, commitTS, []byte("new")))
	raise(w.marks.of(key), commitTS)
	if err := w.apply(b, storage.NoSync); err != nil {
		t.Fatal(err)
	}
	w.latches.unlock(&held)
	var conflict *WriteConflictError
	if err := <-result; !errors.As(err, &conflict) || conflict.ConflictingCommitTS != commitTS {
		t.Fatalf("a version that was being written: %v", err)
	}
}
