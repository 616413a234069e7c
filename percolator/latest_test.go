package percolator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// Goal: DB.Get returns every acknowledged commit, whatever the state of its locks, and no uncommitted write. Method:
// keys on two stores, read in turn: absent, committed asynchronously with its locks still there, deleted, locked by a
// crashed client.
func TestGetReadsTheLatestValue(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil, "m")
	writer := c.db(Options{}, nil)
	reader := c.db(Options{}, nil)
	want := func(key, value string) {
		t.Helper()
		got, err := reader.Get(ctx, []byte(key))
		if err != nil || string(got) != value || (got == nil) != (value == "") {
			t.Errorf("%s: %q, %v; want %q", key, got, err, value)
		}
	}
	want("a", "")
	for i := range 50 {
		value := fmt.Sprint(i)
		txn, err := writer.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "z"} {
			if err := txn.Put([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := txn.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		want("z", value)
		want("a", value)
	}
	txn, err := writer.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Delete([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	want("a", "")
	lockByDeadClient(t, writer, time.Hour, "z")
	want("z", "49")
	lockByDeadClient(t, writer, 0, "a")
	want("a", "")
}

// Goal: a session's reads of the latest values never go back: a session that has seen a commit does not miss an earlier
// one that arrives later. Method: a transaction in two phases has its commit_ts when a later one commits; a reader sees
// the later one, then reads the key of the earlier one, which must not commit below a read that missed it. On one store
// and on two, with the later one seen by the reader itself or by a transaction of its session.
func TestLatestReadsNeverGoBack(t *testing.T) {
	ctx := context.Background()
	for _, bounds := range [][]string{nil, {"m"}} {
		for _, saw := range []bool{false, true} {
			c := newCluster(t, nil, bounds...)
			db := c.db(Options{}, nil)
			base := mustBegin(t, db)
			mustPut(t, base, "a=old", "z=old")
			mustCommit(t, base)
			db.waitIdle()

			earlier := mustBegin(t, db)
			desc, shard, err := db.router.Locate(ctx, []byte("z"))
			if err != nil {
				t.Fatal(err)
			}
			refs := []kv.RangeRef{desc.Ref()}
			if _, err := shard.Prewrite(ctx, &kv.PrewriteRequest{
				Ranges: refs, Primary: []byte("z"), StartTS: earlier.StartTS(), TTLMillis: 60_000, TxnSize: 1,
				Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte("z"), Value: []byte("new")}}}); err != nil {
				t.Fatal(err)
			}
			earlierTS, err := db.now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			later := mustBegin(t, db)
			mustPut(t, later, "a=new")
			laterTS := mustCommit(t, later)

			session := db.Latest()
			if saw {
				session.Saw(laterTS)
			} else if v, err := session.Get(ctx, []byte("a")); string(v) != "new" || err != nil {
				t.Fatalf("%q, %v", v, err)
			}
			v, err := session.Get(ctx, []byte("z"))
			if err != nil {
				t.Fatal(err)
			}
			err = shard.Commit(ctx, &kv.CommitRequest{Ranges: refs, Keys: [][]byte{[]byte("z")}, StartTS: earlier.StartTS(), CommitTS: earlierTS, Primary: true})
			var expired *mvcc.CommitTSExpiredError
			if string(v) != "old" || !errors.As(err, &expired) {
				t.Errorf("bounds %v, saw %v: read %q, the transaction below what was seen: %v", bounds, saw, v, err)
			}
			if err := earlier.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Goal: a scan resolves the locks of many crashed clients in batches, and leaves none. Method: as many transactions as
// there are rows, expired, on two stores; a row in between.
func TestScanResolvesLocksOfCrashedClients(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil, "m")
	db := c.db(Options{}, nil)
	txn, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Put([]byte("k0100x"), []byte("row")); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		lockByDeadClient(t, db, 0, fmt.Sprintf("k%04d", i))
		lockByDeadClient(t, db, 0, fmt.Sprintf("z%04d", i))
	}
	c.step.advance(time.Second)
	if txn, err = db.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	it := txn.Scan(ctx, kv.Span{}, ScanOptions{})
	defer it.Close()
	if !it.Next(ctx) || string(it.Value()) != "row" || it.Next(ctx) || it.Err() != nil {
		t.Fatalf("%q %q, %v", it.Key(), it.Value(), it.Err())
	}
	for i := range c.stores {
		if n := c.store(i).Info().Locks; n != 0 {
			t.Errorf("%d locks are left", n)
		}
	}
}

// lockByDeadClient leaves a lock of a transaction of one key, once no other has one there.
func lockByDeadClient(t *testing.T, db *DB, ttl time.Duration, key string) {
	t.Helper()
	ctx := context.Background()
	startTS, err := db.oracle.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	desc, shard, err := db.router.Locate(ctx, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := shard.Prewrite(ctx, &kv.PrewriteRequest{
			Ranges: []kv.RangeRef{desc.Ref()}, Primary: []byte(key), StartTS: startTS, TTLMillis: uint64(ttl.Milliseconds()), TxnSize: 1,
			Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key), Value: []byte("lost")}}})
		var locked *mvcc.KeyLockedError // of a commit that is being completed in the background
		if err == nil {
			return
		}
		if !errors.As(err, &locked) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
