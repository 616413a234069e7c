package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// fixture is a store, or a table of kv/bigtable, in memory with an observer of the rows "r/…".
type fixture struct {
	t  testing.TB
	db *percolator.DB
	o  *Observer
	// shard is the store, or the table's.
	shard  *restartingShard
	router kv.Router
}

// restartingShard appears to have restarted before each SyncLog, if restarting. It resolves no locks if holding.
type restartingShard struct {
	kv.Shard
	restarting, holding atomic.Bool
	runs                atomic.Uint64
}

func (s *restartingShard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	if s.holding.Load() {
		return errHolding
	}
	return s.Shard.ResolveLock(ctx, req)
}

var errHolding = errors.New("locks are not resolved")

func (s *restartingShard) SyncLog(ctx context.Context) (run uint64, err error) {
	if run, err = s.Shard.SyncLog(ctx); s.restarting.Load() {
		run += s.runs.Add(1)
	}
	return run, err
}

// wrappedRouter finds one shard.
type wrappedRouter struct {
	kv.Router
	shard *restartingShard
}

func (r *wrappedRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.Locate(ctx, key)
	return desc, r.shard, err
}

func (r *wrappedRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.LocateEnd(ctx, end)
	return desc, r.shard, err
}

const observerID = 7

// opener opens a fixture.
type opener func(t testing.TB, opts percolator.Options) *fixture

// eachEngine runs a test over a store and over a table.
func eachEngine(t *testing.T, run func(t *testing.T, open opener)) {
	t.Run("store", func(t *testing.T) { run(t, newFixture) })
	t.Run("table", func(t *testing.T) { run(t, newTable) })
}

func newFixture(t testing.TB, opts percolator.Options) *fixture {
	t.Helper()
	oracle := newOracle(t)
	store, err := kv.Open(context.Background(), kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true, ShardID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return fixtureOver(t, oracle, store, store.Router(), opts)
}

func newTable(t testing.TB, opts percolator.Options) *fixture {
	t.Helper()
	oracle := newOracle(t)
	shard, err := bigtable.NewShard(t.Context(), bigtable.NewClient(widerow.NewMemory(), time.Minute), bigtable.ShardOptions{Oracle: oracle})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shard.Close)
	return fixtureOver(t, oracle, shard, bigtable.NewRouter(shard), opts)
}

func newOracle(t testing.TB) tso.Oracle {
	t.Helper()
	oracle, err := tso.NewLocal(t.Context(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { oracle.Close() })
	return oracle
}

func fixtureOver(t testing.TB, oracle tso.Oracle, shard kv.Shard, routes kv.Router, opts percolator.Options) *fixture {
	router := &wrappedRouter{Router: routes, shard: &restartingShard{Shard: shard}}
	db := percolator.New(router, oracle, opts)
	t.Cleanup(func() { db.Close() })
	return &fixture{t: t, db: db, shard: router.shard, router: router, o: &Observer{ID: observerID, Cells: db.Observers(), Rows: []byte("r/"), Acks: []byte("a/")}}
}

func rowKey(i int) []byte { return fmt.Appendf(nil, "r/%03d", i) }

var notified = &mvcc.NotifySet{Observers: []uint64{observerID}}

// write commits one write of a row, its value n, or deletes it (n < 0).
func (f *fixture) write(i, n int) tso.Timestamp {
	f.t.Helper()
	txn := f.begin(percolator.TxnOptions{})
	var err error
	if n < 0 {
		err = txn.Delete(rowKey(i))
	} else {
		err = txn.Put(rowKey(i), strconv.AppendInt(nil, int64(n), 10))
	}
	if err != nil {
		f.t.Fatal(err)
	}
	txn.Notify(notified)
	return f.commit(txn)
}

// deleteLocked commits the deletion of a row by its primary alone: the row stays locked, and has no cell.
func (f *fixture) deleteLocked(i int) tso.Timestamp {
	f.t.Helper()
	now := func() tso.Timestamp {
		ts, err := f.db.Timestamp(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		return ts
	}
	desc, _, err := f.router.Locate(f.t.Context(), rowKey(i))
	if err != nil {
		f.t.Fatal(err)
	}
	primary, refs, start := []byte("p"), []kv.RangeRef{desc.Ref()}, now()
	if _, err := f.shard.Prewrite(f.t.Context(), &kv.PrewriteRequest{Ranges: refs, Primary: primary, StartTS: start, TTLMillis: 3000, Notify: []kv.NotifySet{*notified},
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: primary}, {Op: mvcc.OpDelete, Key: rowKey(i), Notify: 1}}}); err != nil {
		f.t.Fatal(err)
	}
	ts := now()
	if err := f.shard.Commit(f.t.Context(), &kv.CommitRequest{Ranges: refs, Keys: [][]byte{primary}, StartTS: start, CommitTS: ts, Primary: true}); err != nil {
		f.t.Fatal(err)
	}
	return ts
}

func (f *fixture) begin(opts percolator.TxnOptions) *percolator.Txn {
	f.t.Helper()
	txn, err := f.db.BeginTxn(f.t.Context(), opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return txn
}

func (f *fixture) commit(txn *percolator.Txn) tso.Timestamp {
	f.t.Helper()
	ts, err := txn.Commit(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return ts
}

// pending returns all cells.
func (f *fixture) pending() []kv.NotifyCell {
	f.t.Helper()
	cells, next, err := f.o.Pending(f.t.Context(), 1000, nil)
	if err != nil || next != nil {
		f.t.Fatal(next, err)
	}
	return cells
}

// claim claims cells; the transaction has nothing to restart.
func (f *fixture) claim(txn *percolator.Txn, cells []kv.NotifyCell) *Claim {
	f.t.Helper()
	c, err := claim(f.t.Context(), f.o, txn, cells)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// deliver handles the changes of cells, which must be want in number, and clears the cells.
func (f *fixture) deliver(cells []kv.NotifyCell, want int) {
	f.t.Helper()
	txn := f.begin(percolator.TxnOptions{})
	c := f.claim(txn, cells)
	if len(c.Changes) != want {
		f.t.Fatalf("%+v are delivered, want %d", c.Changes, want)
	}
	if err := project(f.t.Context(), txn, c); err != nil {
		f.t.Fatal(err)
	}
	f.commit(txn)
	if err := c.Clear(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// collect removes the acknowledgements that are not needed any more, which must be want in number.
func (f *fixture) collect(want int) {
	f.t.Helper()
	if n, next, err := f.o.Collect(f.t.Context(), f.db, 10, nil); err != nil || next != nil || n != want {
		f.t.Fatalf("collected %d, next %q, %v; want %d", n, next, err, want)
	}
}

// claim is Observer.Claim as the first thing that a statement does.
func claim(ctx context.Context, o *Observer, txn *percolator.Txn, cells []kv.NotifyCell) (*Claim, error) {
	for {
		c, err := o.Claim(ctx, txn, cells)
		if !errors.Is(err, percolator.ErrRestartStatement) {
			return c, err
		}
	}
}

// modes are those of a delivering transaction.
var modes = map[string]percolator.TxnOptions{
	"optimistic":                  {},
	"pessimistic":                 {Pessimistic: true},
	"pessimistic, read committed": {Pessimistic: true, Isolation: percolator.ReadCommitted},
}

// deliveries counts what has been delivered by transactions that committed.
type deliveries struct {
	mu     sync.Mutex
	counts map[string]int // by row and commit_ts
	runs   int
}

func (d *deliveries) add(changes []Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs++
	for i := range changes {
		d.counts[fmt.Sprintf("%s@%d", changes[i].Key, changes[i].CommitTS)]++
	}
}

// atMostOnce reports the changes that several transactions have delivered.
func (d *deliveries) atMostOnce(t testing.TB) {
	t.Helper()
	for change, n := range d.counts {
		if n > 1 {
			t.Errorf("%s was delivered by %d transactions that committed", change, n)
		}
	}
}

// The derived data: each row's last contribution is in "c/…", their sum in "sum".
var sumKey = []byte("sum")

func contribution(row []byte) []byte {
	return append([]byte("c/"), bytes.TrimPrefix(row, []byte("r/"))...)
}

func number(value []byte) int {
	n, _ := strconv.Atoi(string(value))
	return n
}

// project brings the derived data up to date with the claimed rows, and acknowledges them.
func project(ctx context.Context, txn *percolator.Txn, c *Claim) error {
	if _, err := txn.AcquireLocks(ctx, percolator.LockOptions{}, sumKey); err != nil {
		return err
	}
	value, err := txn.Get(ctx, sumKey)
	if err != nil {
		return err
	}
	sum := number(value)
	for i := range c.Changes {
		change := &c.Changes[i]
		row := change.Row
		last, err := txn.Get(ctx, contribution(change.Key))
		if err != nil {
			return err
		}
		sum += number(row) - number(last)
		if row == nil {
			err = txn.Delete(contribution(change.Key))
		} else {
			err = txn.Put(contribution(change.Key), row)
		}
		if err != nil {
			return err
		}
	}
	if err := txn.Put(sumKey, strconv.AppendInt(nil, int64(sum), 10)); err != nil {
		return err
	}
	return c.Acknowledge(txn)
}

// retryable reports whether a delivery may be tried again.
func retryable(err error) bool {
	switch errkind.Of(err) {
	case errkind.WriteConflict, errkind.Deadlock, errkind.Locked, errkind.RestartStatement:
		return true
	}
	return false
}

// checkSum compares the derived data with a recomputation.
func (f *fixture) checkSum() {
	f.t.Helper()
	txn := f.begin(percolator.TxnOptions{ReadOnly: true})
	defer txn.Close()
	sum, stored := 0, 0
	it := txn.Scan(f.t.Context(), below(f.o.Rows), percolator.ScanOptions{})
	for it.Next(f.t.Context()) {
		sum += number(it.Value())
	}
	it.Close()
	value, err := txn.Get(f.t.Context(), sumKey)
	if err != nil {
		f.t.Fatal(err)
	}
	if stored = number(value); stored != sum {
		f.t.Errorf("the sum is %d, of rows with %d", stored, sum)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 12_000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
	t.Fatal(what)
}
