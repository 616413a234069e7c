package mvcc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// put commits one change at a fresh timestamp, in one phase, and returns that. An empty value deletes.
func (w *world) put(key, value string) tso.Timestamp {
	w.t.Helper()
	m := Mutation{Op: OpPut, Key: []byte(key), Value: []byte(value)}
	if value == "" {
		m = Mutation{Op: OpDelete, Key: []byte(key)}
	}
	res, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{
		Mutations: []Mutation{m}, Primary: m.Key, StartTS: w.now(), TTLMillis: 3000, TryOnePC: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return res.OnePCCommitTS
}

// fence sets the safe point.
func (w *world) fence(ts tso.Timestamp) {
	w.t.Helper()
	if got, err := w.SetSafePoint(context.Background(), ts); err != nil || got != ts {
		w.t.Fatalf("safe point %d, %v; want %d", got, err, ts)
	}
}

// collectAll runs collection to its end and returns its result.
func (w *world) collectAll(safePoint tso.Timestamp, pause func() error) (total GCStats) {
	w.t.Helper()
	for {
		st, done, err := w.Collect(context.Background(), &CollectGarbageRequest{SafePoint: safePoint, From: safePoint}, pause)
		if err != nil {
			w.t.Fatal(err)
		}
		total.Keys, total.Versions, total.Statuses = total.Keys+st.Keys, total.Versions+st.Versions, total.Statuses+st.Statuses
		if done {
			return total
		}
	}
}

// records lists the stored records of a keyspace as key@ts, in order.
func (w *world) records(tag byte) (list []string) {
	w.t.Helper()
	it, err := w.eng.NewRangeIter(appendPrefix(nil, tag, nil), appendUpper(nil, tag, nil))
	if err != nil {
		w.t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		prefix, version, _ := storage.SplitVersion(it.Key())
		list = append(list, fmt.Sprintf("%s@%d", userKey(prefix), version/uint64(tso.Tick)))
	}
	return list
}

func isTooOld(err error) bool {
	var old *TooOldError
	return errors.As(err, &old)
}

// Goal: a reader that passes the safe point check, but below whose timestamp the fence moves before it has opened its
// iterator, receives an error, never incomplete data; one with an open iterator may continue. Method: readers of all
// kinds at every version of changing keys run while fences and collection advance at random; every answer without an
// error must be what was written.
func TestProto_T_GC_1(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := context.Background()
	const keys, rounds = 8, 60
	var at [rounds]tso.Timestamp // after round i every key has value i, the long ones as data records
	value := func(i int) string { return strings.Repeat("v", i%2*20) + fmt.Sprint(i) }
	for i := range rounds {
		for k := range keys {
			w.put(fmt.Sprint("k", k), value(i))
		}
		at[i] = w.now()
	}
	read := func(i, kind int) (string, error) {
		o := ReadOptions{ReadTS: at[i]}
		if err := w.BeginRead(ctx, at[i]); err != nil {
			return "", err
		}
		switch kind {
		case 0:
			v, err := w.Get(ctx, []byte("k3"), &o)
			return string(v), err
		case 1:
			vs, _, err := w.BatchGet(ctx, [][]byte{[]byte("k3"), []byte("k5")}, &o)
			if err != nil {
				return "", err
			}
			return string(vs[1]), nil
		default:
			page, err := w.Scan(ctx, &ScanRequest{Spans: []Span{{}}, Limit: 100, MaxBytes: 1 << 20, Reverse: kind == 3, ReadOptions: o})
			if err != nil {
				return "", err
			}
			if len(page.Rows) != keys {
				return fmt.Sprintf("%d rows", len(page.Rows)), nil
			}
			return string(page.Rows[2].Value), nil
		}
	}
	stop, ended := make(chan struct{}), make(chan [2]int, 4)
	var reads atomic.Int64
	for kind := range 4 {
		go func() {
			rng, served, refused := rand.New(rand.NewPCG(1, uint64(kind))), 0, 0
			for running := true; running; {
				select {
				case <-stop: // a goroutine that came late makes up for it
					running = served == 0 || refused == 0
				default:
				}
				i := rng.IntN(rounds)
				v, err := read(i, kind)
				reads.Add(1)
				switch {
				case isTooOld(err):
					refused++
				case err != nil:
					t.Errorf("read at %d: %v", i, err)
				case v != value(i):
					t.Errorf("read of kind %d after round %d: %q", kind, i, v)
				default:
					served++
				}
			}
			ended <- [2]int{served, refused}
		}()
	}
	last := 0
	for i := 3; i < rounds-1; i += 4 {
		before := reads.Load()
		await(t, "reads go on", func() bool { return reads.Load() > before+100 })
		last = i
		w.fence(at[i])
		w.collectAll(at[i], nil)
	}
	close(stop)
	for range 4 {
		if n := <-ended; n[0] == 0 || n[1] == 0 {
			t.Errorf("%d reads served, %d refused: the test proves nothing", n[0], n[1])
		}
	}
	if got := len(w.records(tagWrite)); got != keys*(rounds-last) {
		t.Errorf("%d versions are left, want %d", got, keys*(rounds-last))
	}
}

// Goal: a deleted key stays deleted after any crash: no older version reappears because the deletion was removed and
// they were not. Method: keys with long histories that end in a deletion; power cuts after every batch of a collection,
// each followed by reads and by the rest of the collection.
func TestProto_T_GC_2(t *testing.T) {
	for cut := 1; ; cut++ {
		w := newWorld(t, true, nil)
		for i := range 3 * gcBatchRecords / 2 { // the history of a key fills more than one batch
			w.put("a", fmt.Sprint("some long value ", i))
			if i%100 == 0 {
				w.put("b", fmt.Sprint(i))
			}
		}
		w.put("a", "")
		w.put("b", "last")
		sp := w.now()
		w.fence(sp)
		batches, crashed := 0, false
		var lost *storage.MemFS
		for !crashed {
			_, done, err := w.Collect(context.Background(), &CollectGarbageRequest{SafePoint: sp, From: sp}, func() error {
				if batches++; batches == cut {
					// Half of what is not synced reaches the disk.
					lost = storage.CrashClone(w.fs, 50, rand.New(rand.NewPCG(7, uint64(cut))))
					return errors.New("power cut")
				}
				return nil
			})
			if crashed = lost != nil; !crashed && err != nil {
				t.Fatal(err)
			}
			if done {
				break
			}
		}
		if !crashed {
			if batches < 4 {
				t.Errorf("the collection had only %d batches", batches)
			}
			return
		}
		w.close()
		w.fs = lost
		w.oracle.advance(1000)
		w.open()
		check := func(when string) {
			if v, err := w.get("a", w.now()); v != "" || err != nil {
				t.Errorf("cut after batch %d, %s: a deleted key reads %q, %v", cut, when, v, err)
			}
			if v, err := w.get("b", w.now()); v != "last" || err != nil {
				t.Errorf("cut after batch %d, %s: b reads %q, %v", cut, when, v, err)
			}
			if _, err := w.get("a", sp); !isTooOld(err) {
				t.Errorf("cut after batch %d, %s: the fence is gone: %v", cut, when, err)
			}
		}
		check("after the restart")
		w.collectAll(sp, nil)
		check("after the collection")
		if got := w.records(tagWrite); len(got) != 1 {
			t.Errorf("cut after batch %d: versions %v are left", cut, got)
		}
		if got := w.records(tagData); len(got) != 0 {
			t.Errorf("cut after batch %d: values %v are left", cut, got)
		}
	}
}

// Goal: once a rollback record has been collected, the fence refuses what the record refused. Method: roll back,
// collect, deliver the delayed prewrite; check the status of a transaction whose records are gone.
func TestProto_T_RB_4(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := context.Background()
	startTS := w.now()
	x := [][]byte{[]byte("x")}
	if err := w.Rollback(ctx, admitAll{}, x, startTS); err != nil {
		t.Fatal(err)
	}
	prewrite := &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: x[0], Value: []byte("late")}}, Primary: x[0], StartTS: startTS, TTLMillis: 3000}
	var rolledBack *RolledBackError
	if _, err := w.Prewrite(ctx, admitAll{}, prewrite); !errors.As(err, &rolledBack) {
		t.Fatalf("late prewrite before the collection: %v", err)
	}
	sp := w.now()
	w.fence(sp)
	if st := w.collectAll(sp, nil); st.Statuses != 1 {
		t.Errorf("%d status records were removed", st.Statuses)
	}
	if left := w.records(tagStatus); len(left) != 0 {
		t.Errorf("status records %v are left", left)
	}
	for range 2 {
		if _, err := w.Prewrite(ctx, admitAll{}, prewrite); !isTooOld(err) {
			t.Errorf("late prewrite after the collection: %v", err)
		}
		// Its outcome is no longer known, so no status check may report one.
		status := &CheckTxnStatusRequest{Primary: x[0], StartTS: startTS, NowTS: w.now(), RollbackIfMissing: true}
		if st, err := w.CheckTxnStatus(ctx, admitAll{}, status); !isTooOld(err) {
			t.Errorf("status after the collection: %+v, %v", st, err)
		}
		if _, err := w.Commit(ctx, admitAll{}, x, startTS, w.now(), true); !isTooOld(err) {
			t.Errorf("commit after the collection: %v", err)
		}
		if err := w.Rollback(ctx, admitAll{}, x, startTS); !isTooOld(err) {
			t.Errorf("rollback after the collection: %v", err)
		}
		if err := w.SyncLog(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.crash() // the fence is durable
	}
	if w.NumLocks() != 0 {
		t.Error("a lock was left")
	}
}

// Goal: after ScanLock(sp) no unlisted transaction commits at or below sp. Method: scan with a maximum above all reads;
// a one-phase commit whose timestamp the shard computes must lie above it.
func TestProto_T_ASY_7(t *testing.T) {
	for _, embedded := range []bool{true, false} {
		w := newWorld(t, embedded, nil)
		ctx := context.Background()
		startTS := w.now()
		w.oracle.advance(1000)
		sp := w.now()
		if locks, err := w.ScanLock(ctx, nil, nil, sp, 0, 10); err != nil || len(locks) != 0 {
			t.Fatalf("locks %v, %v", locks, err)
		}
		for _, onePC := range []bool{true, false} {
			key := []byte(fmt.Sprint("k", onePC))
			res, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key, Value: []byte("v")}},
				Primary: key, StartTS: startTS, TTLMillis: 3000, TryOnePC: onePC})
			if err != nil {
				t.Fatal(err)
			}
			if res.MinCommitTS <= sp {
				t.Errorf("embedded %v, one phase %v: may commit at %s, the scan was at %s", embedded, onePC, show(res.MinCommitTS), show(sp))
			}
		}
	}
}

// Goal: a pass removes exactly what no snapshot above the safe point can see, keeps the newest put at or below it,
// visits only what has changed since the last pass, and continues after a restart. Method: random histories over short
// and long values against a model, several passes with restarts between pages.
func TestCollectMatchesModel(t *testing.T) {
	w := newWorld(t, true, nil)
	rng := rand.New(rand.NewPCG(3, 4))
	type version struct {
		ts    tso.Timestamp
		value string
	}
	model := map[string][]version{}
	for pass := range 6 {
		for range 400 {
			key, value := fmt.Sprintf("k%02d", rng.IntN(60)), ""
			if rng.IntN(4) > 0 {
				value = strings.Repeat("x", rng.IntN(30)) + fmt.Sprint(pass)
			}
			model[key] = append(model[key], version{w.put(key, value), value})
			if rng.IntN(50) == 0 {
				w.oracle.advance(1)
			}
		}
		sp := w.now()
		for range 40 { // above the safe point
			key := fmt.Sprintf("k%02d", rng.IntN(60))
			model[key] = append(model[key], version{w.put(key, "new"), "new"})
		}
		w.fence(sp)
		st := w.collectAll(sp, nil)
		if again := w.collectAll(sp, nil); again.Keys != 0 {
			t.Errorf("pass %d: a second one visited %d keys", pass, again.Keys)
		}
		var want []string
		for key, vs := range model {
			from := len(vs) - 1
			for from >= 0 && vs[from].ts > sp {
				from--
			}
			if from < 0 || vs[from].value == "" {
				from++
			}
			for _, v := range vs[from:] {
				want = append(want, fmt.Sprintf("%s@%d", key, v.ts/tso.Tick))
			}
			model[key] = vs[from:]
		}
		got := w.records(tagWrite)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("pass %d, %d keys visited: %d versions, want %d", pass, st.Keys, len(got), len(want))
		}
		if findings, err := w.Check(context.Background()); err != nil || len(findings) > 0 {
			t.Fatalf("pass %d: %v, %v", pass, findings, err)
		}
		if pass%2 == 0 {
			if err := w.eng.Flush(); err != nil {
				t.Fatal(err)
			}
		} else {
			w.SyncLog(context.Background())
			w.crash()
		}
	}
	quiet := w.now()
	w.fence(quiet)
	if st := w.collectAll(quiet, nil); st.Keys > 60 {
		t.Errorf("%d keys visited, 60 exist", st.Keys)
	}
	w.oracle.advance(1)
	quiet = w.now()
	w.fence(quiet)
	if st := w.collectAll(quiet, nil); st.Keys != 0 {
		t.Errorf("%d keys visited though nothing has changed", st.Keys)
	}
}
