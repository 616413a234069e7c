package mvcc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// checkWorld is a healthy store: transactions of one and of two keys, a long value, a deletion, a
// rollback, a committed lock, locks of both kinds of commit.
func checkWorld(t *testing.T) (w *world, old tso.Timestamp) {
	t.Helper()
	ctx := context.Background()
	w = newWorld(t, true, nil)
	put := func(key, value string) Mutation { return Mutation{Op: OpPut, Key: []byte(key), Value: []byte(value)} }
	prewrite := func(args *PrewriteRequest) {
		args.TTLMillis, args.TxnSize, args.Primary = 3000, uint32(len(args.Mutations)), args.Mutations[0].Key
		if _, err := w.Prewrite(ctx, admitAll{}, args); err != nil {
			t.Fatal(err)
		}
	}
	old = w.now()
	prewrite(&PrewriteRequest{StartTS: w.now(), TryOnePC: true, Mutations: []Mutation{put("a", "1"), put("b", "1"), put("c", strings.Repeat("c", 100))}})
	prewrite(&PrewriteRequest{StartTS: w.now(), TryOnePC: true, Mutations: []Mutation{put("a", "2"), {Op: OpDelete, Key: []byte("b")}}})
	two := w.now()
	prewrite(&PrewriteRequest{StartTS: two, Mutations: []Mutation{put("d", "long enough for D"), {Op: OpLock, Key: []byte("e")}}})
	if _, err := w.Commit(ctx, admitAll{}, [][]byte{[]byte("d"), []byte("e")}, two, w.now(), false); err != nil {
		t.Fatal(err)
	}
	if err := w.Rollback(ctx, admitAll{}, [][]byte{[]byte("f")}, w.now()); err != nil {
		t.Fatal(err)
	}
	prewrite(&PrewriteRequest{StartTS: w.now(), Mutations: []Mutation{put("k", "long enough for D"), put("l", "v")}})
	prewrite(&PrewriteRequest{StartTS: w.now(), Async: true, Secondaries: [][]byte{[]byte("n")}, FloorTS: w.now(), Mutations: []Mutation{put("m", "1")}})
	return w, old
}

// Goal: Check reports nothing for a healthy store, live, after a crash and after garbage collection, and finds what is
// wrong in a damaged one. Method: write records directly into the store.
func TestCheckFindsDamage(t *testing.T) {
	// first returns the first stored record of a keyspace at or behind a key.
	first := func(w *world, tag byte, key string) (stored, value []byte) {
		it, err := w.eng.NewRangeIter(appendPrefix(nil, tag, []byte(key)), storage.AppendSentinel([]byte{tag + 1}))
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		if !it.First() {
			t.Fatalf("no record %x at %s", tag, key)
		}
		v, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(it.Key()), bytes.Clone(v)
	}
	startOf := func(w *world, key string) tso.Timestamp {
		stored, value := first(w, tagWrite, key)
		_, version, _ := storage.SplitVersion(stored)
		rec, err := decodeWrite(tso.Timestamp(version), value)
		if err != nil {
			t.Fatal(err)
		}
		return rec.startTS
	}
	lockOn := func(w *world, b *storage.Batch, key string, change func(*Lock)) {
		_, value := first(w, tagLock, "l")
		l, long, err := decodeLock(value)
		if err != nil {
			t.Fatal(err)
		}
		change(&l)
		b.Put(appendLockKey(nil, []byte(key)), appendLock(nil, &l, long))
	}
	type damage struct {
		name   string
		do     func(w *world, b *storage.Batch)
		reopen bool
		want   []string // of findings, in any order
	}
	none := func(*world, *storage.Batch) {}
	for _, tc := range []damage{
		{"healthy", none, false, nil},
		{"healthy after a crash", none, true, nil},
		{"a version goes", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagWrite, "c")
			b.Delete(stored)
		}, false, []string{"belongs to no lock and no write record"}},
		{"a long value goes", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagData, "c")
			b.Delete(stored)
		}, false, []string{"has lost its value"}},
		{"a version is garbage", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagWrite, "a")
			b.Put(stored, []byte{0xff, 0xff})
		}, false, []string{"write record at"}},
		{"a rollback is garbage", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagStatus, "f")
			b.Put(stored, []byte{1})
		}, false, []string{"status record at"}},
		{"two outcomes on one key", func(w *world, b *storage.Batch) {
			ts := startOf(w, "d")
			b.Put(appendVersioned(nil, tagStatus, []byte("d"), ts), appendStatus(nil, statusRollback, ts))
		}, false, []string{"is rolled back here", "is committed at", "is committed at"}},
		{"two outcomes on two keys", func(w *world, b *storage.Batch) {
			ts := startOf(w, "a")
			b.Put(appendVersioned(nil, tagStatus, []byte("z"), ts), appendStatus(nil, statusRollback, ts))
		}, false, []string{"is rolled back here", "rolled back on another key", "rolled back on another key"}},
		{"two commit_ts", func(w *world, b *storage.Batch) {
			ts, later := startOf(w, "a"), w.now()
			b.Put(appendVersioned(nil, tagWrite, []byte("z"), later), appendWrite(nil, OpPut, false, ts, later, []byte("v")))
		}, false, []string{"its commit_ts are", "its commit_ts are", "its commit_ts are"}},
		{"a commit in the future", func(w *world, b *storage.Batch) {
			ts, later := w.now(), tso.FromPhysical(1<<40)
			b.Put(appendVersioned(nil, tagWrite, []byte("z"), later), appendWrite(nil, OpPut, false, ts, later, []byte("v")))
		}, false, []string{"lies in the future"}},
		{"a start_ts that was computed", func(w *world, b *storage.Batch) {
			ts := w.now()
			b.Put(appendVersioned(nil, tagStatus, []byte("z"), ts+1), appendStatus(nil, statusRollback, ts+1))
		}, false, []string{"has a subtick"}},
		{"a lock goes from disk", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagLock, "l")
			b.Delete(stored)
		}, false, []string{"is not on disk"}},
		{"a lock comes to disk", func(w *world, b *storage.Batch) {
			lockOn(w, b, "y", func(*Lock) {})
		}, false, []string{"lock on disk is not in memory"}},
		{"a primary's lock goes with a crash", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagLock, "k")
			b.Delete(stored)
		}, true, []string{"belongs to no lock and no write record"}},
		{"a lock of a finished transaction", func(w *world, b *storage.Batch) {
			lockOn(w, b, "a", func(l *Lock) { l.StartTS = startOf(w, "a") })
		}, true, []string{"which is committed here"}},
		{"a lock of a transaction that is rolled back", func(w *world, b *storage.Batch) {
			stored, _ := first(w, tagStatus, "f")
			_, version, _ := storage.SplitVersion(stored)
			lockOn(w, b, "f", func(l *Lock) { l.StartTS = tso.Timestamp(version) })
		}, true, []string{"which is rolled back here"}},
		{"two primaries", func(w *world, b *storage.Batch) {
			lockOn(w, b, "y", func(l *Lock) { l.Primary = []byte("l") })
		}, true, []string{`has the primary 6c, whose lock has the primary 6b`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, old := checkWorld(t)
			b := w.eng.NewBatch(0)
			tc.do(w, b)
			if err := w.eng.Apply(b, storage.Sync); err != nil {
				t.Fatal(err)
			}
			if err := b.SyncWait(); err != nil {
				t.Fatal(err)
			}
			b.Close()
			if tc.reopen {
				w.crash()
			}
			w.fence(old)
			w.collectAll(old, nil)
			findings, err := w.Check(context.Background())
			if err != nil || len(findings) != len(tc.want) {
				t.Fatalf("%v, %v; want %d findings", findings, err, len(tc.want))
			}
			for _, want := range tc.want {
				i := slices.IndexFunc(findings, func(f Finding) bool { return strings.Contains(f.String(), want) })
				if i < 0 {
					t.Fatalf("no %q among %v", want, findings)
				}
				findings = slices.Delete(findings, i, i+1)
			}
		})
	}
}

// Goal: a lock below the safe point is found. Method: collect at a safe point above it, which a controller that
// resolves locks first never does.
func TestCheckFindsLocksBelowTheSafePoint(t *testing.T) {
	w, _ := checkWorld(t)
	sp := w.now()
	w.fence(sp)
	w.collectAll(sp, nil)
	var said []string
	findings, err := w.CheckWith(context.Background(), CheckOptions{Progress: func(what string, records int64) {
		said = append(said, fmt.Sprintf("%s %d", what, records))
	}})
	if err != nil || len(findings) != 3 {
		t.Fatalf("%v, %v", findings, err)
	}
	for _, f := range findings {
		if !strings.Contains(f.Detail, "behind garbage collection") {
			t.Error(f)
		}
	}
	if got := strings.Join(said, ", "); !strings.HasPrefix(got, "versions 1, versions 3, long values 1,") || !strings.HasSuffix(got, "locks 1, locks 3") {
		t.Errorf("progress: %s", got)
	}
}
