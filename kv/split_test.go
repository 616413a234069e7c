package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Goal (T-SPL-1): while ranges split under a running workload no write is lost or applied twice and no
// scan skips or repeats a row; all of it is there after a restart, in ranges that cover all keys.
// Method: writers insert rows of their own through the router into a store whose ranges may hold
// a few kilobytes, retrying what is stale; a scanner counts meanwhile.
func TestProto_T_SPL_1(t *testing.T) {
	fs := storage.NewMemFS()
	ts := openTestStore(t, fs, func(o *Options) { o.RangeMaxBytes = 4 << 10 })
	const writers, rowsEach = 4, 150
	var wg sync.WaitGroup
	var written atomic.Int64
	for w := range writers {
		wg.Go(func() {
			// Splits run beside the writers: go on until there have been some.
			for i := 0; i < rowsEach || len(ts.ownedRanges()) < 3 && i < 100*rowsEach; i++ {
				insertRow(ts, fmt.Sprintf("k%06d", i*writers+w), fmt.Sprintf("%060d", i))
				written.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	var scanning sync.WaitGroup
	scanning.Go(func() {
		for reverse := false; ; reverse = !reverse {
			select {
			case <-stop:
				return
			default:
			}
			before := written.Load()
			rows := ts.scanAll(reverse, 7)
			if reverse {
				slices.Reverse(rows)
			}
			if int64(len(rows)) < before || !slices.IsSorted(rows) || len(slices.Compact(rows)) != len(rows) {
				t.Errorf("scan of %d rows while %d were written; in order: %v", len(rows), before, slices.IsSorted(rows))
			}
		}
	})
	wg.Wait()
	close(stop)
	scanning.Wait()
	if n := len(ts.ownedRanges()); n < 3 {
		t.Errorf("%d ranges: the test proves nothing", n)
	}
	ts.close()
	ts = openTestStore(t, fs, nil)
	if rows := ts.scanAll(false, 1000); int64(len(rows)) != written.Load() {
		t.Errorf("%d rows after restart, want %d", len(rows), written.Load())
	}
	if findings, err := ts.Check(context.Background()); len(findings) > 0 || err != nil {
		t.Error(findings, err)
	}
}

// insertRow commits one new row, trying again as long as the route is stale.
func insertRow(ts *testStore, key, value string) {
	ctx := context.Background()
	m := put(key, value)
	m.MustBeNew = true
	for {
		d, shard, err := ts.Router().Locate(ctx, m.Key)
		if err != nil {
			ts.t.Error(err)
			return
		}
		start, err := ts.oracle.Now(ctx)
		if err != nil {
			ts.t.Error(err)
			return
		}
		_, err = shard.Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{d.Ref()}, Mutations: mutations(m), Primary: m.Key, StartTS: start, TryOnePC: true})
		var stale *StaleRangeError
		if !errors.As(err, &stale) {
			if err != nil {
				ts.t.Error(err)
			}
			return
		}
	}
}

// Goal (T-SPL-1, T-DUP-3): requests routed before a split are refused whole and told what holds now;
// a transaction prewritten before a split commits after it; a repeated one-phase request does not
// commit twice. Method: split between the steps.
func TestSplitBetweenPrewriteAndCommit(t *testing.T) {
	ctx := context.Background()
	ts := openTestStore(t, storage.NewMemFS(), nil)
	old := ts.refs()
	start := ts.now()
	req := &PrewriteRequest{Ranges: old, Mutations: mutations(put("a", "1"), put("z", "2")), Primary: []byte("a"), StartTS: start, TTLMillis: 3000}
	if _, err := ts.Prewrite(ctx, req); err != nil {
		t.Fatal(err)
	}
	onePC := &PrewriteRequest{Ranges: old, Mutations: mutations(put("b", "1"), put("y", "2")), Primary: []byte("b"), StartTS: ts.now(), TryOnePC: true}
	first, err := ts.Prewrite(ctx, onePC)
	if err != nil {
		t.Fatal(err)
	}
	if err := ts.ForceSplit(ctx, []byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := ts.ForceSplit(ctx, []byte("m")); err != nil {
		t.Errorf("splitting again: %v", err)
	}
	commit := &CommitRequest{Ranges: old, Keys: [][]byte{[]byte("a"), []byte("z")}, StartTS: start, CommitTS: ts.now(), Primary: true}
	var stale *StaleRangeError
	if err := ts.Commit(ctx, commit); !errors.As(err, &stale) || len(stale.Current) != 2 || string(stale.Current[1].Span.Start) != "m" {
		t.Fatalf("commit by an old route: %v", err)
	}
	commit.Ranges = []RangeRef{stale.Current[0].Ref(), stale.Current[1].Ref()}
	if err := ts.Commit(ctx, commit); err != nil {
		t.Error(err)
	}
	onePC.Ranges = ts.refs()
	var committed *mvcc.AlreadyCommittedError
	if _, err := ts.Prewrite(ctx, onePC); !errors.As(err, &committed) || committed.CommitTS != first.OnePCCommitTS {
		t.Errorf("repeated one-phase commit: %v", err)
	}
	if rows := ts.scanAll(true, 1); !slices.Equal(rows, []string{"z=2", "y=2", "b=1", "a=1"}) {
		t.Errorf("rows %q", rows)
	}
	if _, err := ts.Get(ctx, old[0], []byte("a"), ReadOptions{ReadTS: ts.now()}); !errors.As(err, &stale) {
		t.Errorf("read by an old route: %v", err)
	}
	if _, err := ts.Scan(ctx, &ScanRequest{Ranges: ts.refs()[:1], Spans: []Span{{}}, Limit: 1, ReadOptions: ReadOptions{ReadTS: ts.now()}}); !errors.As(err, &stale) {
		t.Errorf("scan beyond its range: %v", err)
	}
}

// Goal: a large range is split near its middle, by file boundaries and by a walk, and a range of one
// key is left alone. Method: load, flush some of it, ask for the middle.
func TestMiddleKey(t *testing.T) {
	ctx := context.Background()
	ts := openTestStore(t, storage.NewMemFS(), nil)
	value := make([]byte, 1000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range value {
		value[i] = byte(rng.IntN(256))
	}
	if key, err := ts.mvcc.MiddleKey(ctx, nil, nil); key != nil || err != nil {
		t.Errorf("middle of nothing: %q, %v", key, err)
	}
	for i := range 3 {
		ts.onePC(put("k00000", string(value[i:])))
	}
	if key, err := ts.mvcc.MiddleKey(ctx, nil, nil); key != nil || err != nil {
		t.Errorf("middle of one key: %q, %v", key, err)
	}
	load := func(from, to int) {
		var ms []mvcc.Mutation
		for i := from; i < to; i++ {
			ms = append(ms, put(fmt.Sprintf("k%05d", i), string(value)))
		}
		ts.onePC(ms...)
	}
	load(1, 200)
	if key, err := ts.mvcc.MiddleKey(ctx, nil, nil); err != nil || string(key) < "k00080" || string(key) > "k00120" {
		t.Errorf("middle of 200 keys in memory: %q, %v", key, err)
	}
	for i := range 8 {
		load(1000+i*1000, 2000+i*1000)
		if err := ts.engine.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if key, err := ts.mvcc.MiddleKey(ctx, nil, nil); err != nil || string(key) < "k02500" || string(key) > "k06500" {
		t.Errorf("middle of 8200 keys on disk: %q, %v", key, err)
	}
}

// Goal: snapshots are consistent under concurrent one-phase transactions that conflict, and no money
// appears or vanishes, over a power cut too. Method: transfers between few accounts; readers sum all
// of them at one timestamp; cut the power in the middle and sum again.
func TestTransfersKeepTheirSum(t *testing.T) {
	ctx := context.Background()
	fs := storage.NewCrashableMemFS()
	ts := openTestStore(t, fs, func(o *Options) { o.RangeMaxBytes = 2 << 10 })
	const accounts, initial = 8, 100
	var ms []mvcc.Mutation
	for i := range accounts {
		ms = append(ms, put(fmt.Sprintf("a%d", i), fmt.Sprint(initial)))
	}
	ts.onePC(ms...)
	acked := make([]atomic.Int64, accounts) // last acknowledged commit_ts that wrote the account
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for range 150 {
				transfer(ts, rng, accounts, acked)
			}
		})
	}
	wg.Go(func() {
		for range 60 {
			if sum := ts.sumAccounts(accounts, ts.now()); sum != accounts*initial {
				t.Errorf("sum %d", sum)
			}
		}
	})
	wg.Wait()
	crashed := storage.CrashClone(fs, 50, rand.New(rand.NewPCG(7, 7)))
	ts.close()
	after := openTestStore(t, crashed, nil)
	if sum := after.sumAccounts(accounts, after.now()); sum != accounts*initial {
		t.Errorf("sum %d after the power cut", sum)
	}
	for i := range accounts {
		// What was acknowledged must be among what survived: nothing newer than it was lost.
		key := []byte(fmt.Sprintf("a%d", i))
		_, err := after.Prewrite(ctx, &PrewriteRequest{Ranges: after.refs(), Mutations: mutations(mvcc.Mutation{Op: mvcc.OpPut, Key: key, Value: []byte("0")}),
			Primary: key, StartTS: tso.Timestamp(acked[i].Load()) - tso.Tick/2})
		var conflict *mvcc.WriteConflictError
		if acked[i].Load() > 0 && (!errors.As(err, &conflict) || int64(conflict.ConflictingCommitTS) < acked[i].Load()) {
			t.Errorf("account %d: commit at %d was acknowledged, newest is %v", i, acked[i].Load(), err)
		}
	}
}

func (ts *testStore) sumAccounts(accounts int, readTS tso.Timestamp) (sum int) {
	for i := range accounts {
		key := []byte(fmt.Sprintf("a%d", i))
		for {
			d, shard, err := ts.Router().Locate(context.Background(), key)
			if err != nil {
				ts.t.Error(err)
				return 0
			}
			v, err := shard.Get(context.Background(), d.Ref(), key, ReadOptions{ReadTS: readTS})
			var stale *StaleRangeError
			if errors.As(err, &stale) {
				continue
			}
			n := 0
			if _, scanErr := fmt.Sscan(string(v), &n); err != nil || scanErr != nil {
				ts.t.Error(err, scanErr)
			}
			sum += n
			break
		}
	}
	return sum
}

// transfer moves one unit between two accounts, or gives up on a conflict.
func transfer(ts *testStore, rng *rand.Rand, accounts int, acked []atomic.Int64) {
	ctx := context.Background()
	start, err := ts.oracle.Now(ctx)
	if err != nil {
		ts.t.Error(err)
		return
	}
	i, j := rng.IntN(accounts), rng.IntN(accounts-1)
	if j >= i {
		j++
	}
	if i > j {
		i, j = j, i
	}
	var balance [2]int
	for n, account := range []int{i, j} {
		key := []byte(fmt.Sprintf("a%d", account))
		d, shard, err := ts.Router().Locate(ctx, key)
		if err != nil {
			ts.t.Error(err)
			return
		}
		v, err := shard.Get(ctx, d.Ref(), key, ReadOptions{ReadTS: start})
		if err != nil {
			return // split meanwhile
		}
		if _, err := fmt.Sscan(string(v), &balance[n]); err != nil {
			ts.t.Error(err)
		}
	}
	req := &PrewriteRequest{Ranges: ts.refs(), Primary: []byte(fmt.Sprintf("a%d", i)), StartTS: start, TryOnePC: true,
		Mutations: mutations(put(fmt.Sprintf("a%d", i), fmt.Sprint(balance[0]-1)), put(fmt.Sprintf("a%d", j), fmt.Sprint(balance[1]+1)))}
	res, err := ts.Prewrite(ctx, req)
	var conflict *mvcc.WriteConflictError
	var stale *StaleRangeError
	if errors.As(err, &conflict) || errors.As(err, &stale) {
		return
	}
	if err != nil {
		ts.t.Error(err)
		return
	}
	for _, account := range []int{i, j} {
		for {
			old := acked[account].Load()
			if old >= int64(res.OnePCCommitTS) || acked[account].CompareAndSwap(old, int64(res.OnePCCommitTS)) {
				break
			}
		}
	}
}
