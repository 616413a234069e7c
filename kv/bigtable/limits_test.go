package bigtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// limitedTable refuses changes that are too large for the service.
type limitedTable struct{ *widerow.Memory }

func (l limitedTable) Mutate(ctx context.Context, rows []string, changes []*widerow.Mutation) ([]error, error) {
	for i, change := range changes {
		if n := change.Len(); n > serviceMutations {
			return nil, invalid("a change of %q by %d mutations", rows[i], n)
		}
	}
	return l.Memory.Mutate(ctx, rows, changes)
}

// Goal: garbage collection, and the clearing of notifications, of a row that has changed more often than the service makes mutations in a request;
// the order in which versions are removed shows no deleted value again. Method: a row of very many versions and notifications, of which a deletion is
// the newest, beside others, in a table in memory that refuses what the service does.
func TestRowsOfManyVersions(t *testing.T) {
	e := &emulated{oracle: &tsotest.ClockOracle{}, client: NewClient(limitedTable{widerow.NewMemory()}, time.Minute)}
	e.open(t)
	ctx := t.Context()
	const versions = serviceMutations/2 + 10
	e.mustPut(t, "a=1", "z=1")
	put := func(of func(change *widerow.Mutation, ts tso.Timestamp)) (last tso.Timestamp) {
		for n := 0; n < versions; {
			change := widerow.NewMutation()
			for range min(versions-n, 40_000) {
				last = mustNow(t, e.oracle)
				of(change, last)
				n++
			}
			if err := e.client.bulk(ctx, []string{rowKey([]byte("m"))}, []*widerow.Mutation{change}); err != nil {
				t.Fatal(err)
			}
		}
		return last
	}
	put(func(change *widerow.Mutation, ts tso.Timestamp) {
		change.Set(familyData, inverted(ts), []byte("v"))
		change.Set(familyWrite, inverted(ts+1), encodeWrite(mvcc.OpPut, ts))
	})
	const observer = 5
	notified := put(func(change *widerow.Mutation, ts tso.Timestamp) {
		change.Set(familyNotify, notifyColumn(observer, ts), []byte{0})
		change.Set(familyNotify, notifyColumn(observer, ts+1), []byte{0})
	})
	deletion := widerow.NewMutation()
	ts := mustNow(t, e.oracle)
	deletion.Set(familyData, inverted(ts), nil)
	deletion.Set(familyWrite, inverted(ts+1), encodeWrite(mvcc.OpDelete, ts))
	if err := e.client.bulk(ctx, []string{rowKey([]byte("m"))}, []*widerow.Mutation{deletion}); err != nil {
		t.Fatal(err)
	}

	ref := theRange()
	refs := []kv.RangeRef{ref.Ref()}
	if n, err := e.shard.NotifyClear(ctx, &kv.NotifyClearRequest{Ranges: refs, Observer: observer, Cells: []kv.NotifyUpTo{{Key: []byte("m"), UpTo: notified + 1}}}); n != 1 || err != nil {
		t.Errorf("%d cells cleared, %v", n, err)
	}
	if res, err := e.shard.NotifyScan(ctx, &kv.NotifyScanRequest{Range: refs[0], Observer: observer, Limit: 10}); err != nil || len(res.Cells) > 0 {
		t.Errorf("%+v, %v: not cleared", res, err)
	}

	safePoint := mustNow(t, e.oracle)
	if _, err := e.shard.SetSafePoint(ctx, safePoint); err != nil {
		t.Fatal(err)
	}
	removed := 0
	for done := false; !done; {
		res, err := e.shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: safePoint, Budget: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		removed, done = removed+res.Versions, res.Done
		if v, err := e.shard.Get(ctx, refs[0], []byte("m"), kv.ReadOptions{ReadTS: mustNow(t, e.oracle)}); v != nil || err != nil {
			t.Fatalf("a deleted row is %q after %d versions were removed, %v", v, removed, err)
		}
	}
	if removed != versions+1 {
		t.Errorf("%d versions removed, want %d", removed, versions+1)
	}
	row, err := e.client.readRow(ctx, rowKey([]byte("m")), widerow.InterleaveFilters(wholeFamily(familyWrite), wholeFamily(familyData), wholeFamily(familyNotify)))
	if err != nil || row != nil {
		t.Errorf("left of the row: %d versions, %d data, %d notifications, %v", len(row[familyWrite]), len(row[familyData]), len(row[familyNotify]), err)
	}
}

// Goal: a lock is not written if no predicate of its value is within the service's limits: nobody could remove it. Method: the longest primary, and
// more and more observers.
func TestLockThatNoPredicateNames(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	ref := theRange()
	refs := []kv.RangeRef{ref.Ref()}
	primary := bytes.Repeat([]byte("p"), maxKeyBytes)
	for _, observers := range []int{1, 500, mvcc.MaxNotifyObservers} {
		t.Run(fmt.Sprint(observers), func(t *testing.T) {
			set := kv.NotifySet{Observers: make([]uint64, observers)}
			for i := range set.Observers {
				set.Observers[i] = uint64(i + 1)
			}
			start := mustNow(t, e.oracle)
			_, err := e.shard.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: primary, StartTS: start, TTLMillis: 60_000, Notify: []kv.NotifySet{set},
				Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: primary, Value: []byte("v"), Notify: 1}}})
			if err == nil {
				err = e.shard.Commit(ctx, &kv.CommitRequest{Ranges: refs, Keys: [][]byte{primary}, StartTS: start, CommitTS: mustNow(t, e.oracle), Primary: true})
				if err != nil {
					t.Errorf("a lock was written whose transaction cannot commit: %v", err)
				}
			} else if limit := (*kv.SizeLimitError)(nil); observers < 600 || !errors.As(err, &limit) {
				t.Error(err)
			}
			if locks, err := e.shard.ScanLock(ctx, &kv.ScanLockRequest{Range: refs[0], MaxTS: mustNow(t, e.oracle)}); err != nil || len(locks) > 0 {
				t.Errorf("%d locks, %v", len(locks), err)
			}
		})
	}
}

// Goal: a version whose data is lost is reported as such, also if it is older than the safe point, which makes only snapshots below it too old.
// Method: remove the data of a version, and raise the safe point above it.
func TestLostDataBelowTheSafePoint(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	e.mustPut(t, "a=1")
	r, err := e.shard.readKey(ctx, []byte("a"), wholeFamily(familyData))
	if err != nil {
		t.Fatal(err)
	}
	change := widerow.NewMutation()
	change.DeleteCellsInColumn(familyData, inverted(r.data[0].startTS))
	if err := e.client.bulk(ctx, []string{rowKey([]byte("a"))}, []*widerow.Mutation{change}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.shard.SetSafePoint(ctx, mustNow(t, e.oracle)); err != nil {
		t.Fatal(err)
	}
	ref := theRange()
	v, err := e.shard.Get(ctx, ref.Ref(), []byte("a"), kv.ReadOptions{ReadTS: mustNow(t, e.oracle)})
	if corrupt := (*mvcc.CorruptionError)(nil); !errors.As(err, &corrupt) {
		t.Errorf("%q, %v", v, err)
	}
}
