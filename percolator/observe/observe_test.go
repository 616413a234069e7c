package observe

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Goal: T-OBS-1: at most one transaction commits for a change, and derived data equals a recomputation. Method: writers
// update, insert and delete rows, while workers deliver, in all modes; workers crash at random: before the commit, when
// they abandon their transaction, and after it, when they do not clear.
func TestProto_T_OBS_1(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for name, mode := range modes {
			t.Run(name, func(t *testing.T) {
				f := open(t, percolator.Options{LockTTL: 100 * time.Millisecond})
				const rows, writers, workers, writes = 12, 3, 4, 2000
				var writing, delivering sync.WaitGroup
				for n := range writers {
					writing.Go(func() {
						r := rand.New(rand.NewPCG(uint64(n), 1))
						for range writes {
							f.tryWrite(r.IntN(rows), r.IntN(50)-5)
						}
					})
				}
				var stop atomic.Bool
				d := &deliveries{counts: map[string]int{}}
				for n := range workers {
					w := &worker{f: f, r: rand.New(rand.NewPCG(uint64(n), 2)), mode: mode, d: d}
					delivering.Go(func() {
						for !stop.Load() {
							w.run(t)
						}
					})
				}
				writing.Wait()
				eventually(t, "changes stay pending", func() bool { return len(f.pending()) == 0 })
				stop.Store(true)
				delivering.Wait()
				f.checkSum()
				d.atMostOnce(t)
				if d.runs < 20 {
					t.Errorf("only %d deliveries", d.runs)
				}
			})
		}
	})
}

// tryWrite is write by one of several writers, of which one commits.
func (f *fixture) tryWrite(i, n int) {
	txn, err := f.db.BeginTxn(f.t.Context(), percolator.TxnOptions{})
	if err == nil {
		if n < 0 {
			err = txn.Delete(rowKey(i))
		} else {
			err = txn.Put(rowKey(i), []byte{byte('0' + n/10), byte('0' + n%10)})
		}
	}
	if err == nil {
		txn.Notify(notified)
		_, err = txn.Commit(f.t.Context())
	}
	if err != nil && !retryable(err) {
		f.t.Error(err)
	}
}

// worker delivers changes, with accidents.
type worker struct {
	f    *fixture
	r    *rand.Rand
	mode percolator.TxnOptions
	d    *deliveries
}

// run delivers a few changes from a random place on.
func (w *worker) run(t *testing.T) {
	ctx := t.Context()
	cells, _, err := w.f.o.Pending(ctx, 1+w.r.IntN(5), rowKey(w.r.IntN(12)))
	if err == nil && len(cells) == 0 {
		cells, _, err = w.f.o.Pending(ctx, 5, nil)
	}
	if err != nil {
		t.Error(err)
		return
	}
	if len(cells) == 0 {
		time.Sleep(time.Millisecond) // until somebody writes
		return
	}
	if err := w.deliver(ctx, cells); err != nil && !retryable(err) {
		t.Error(err)
	}
}

func (w *worker) deliver(ctx context.Context, cells []kv.NotifyCell) error {
	txn, err := w.f.db.BeginTxn(ctx, w.mode)
	if err != nil {
		return err
	}
	if err := txn.BeginStatement(ctx); err != nil {
		return err
	}
	defer txn.Close()
	c, err := w.act(ctx, txn, cells)
	if err != nil || w.r.IntN(8) == 0 {
		return err
	}
	if _, err := txn.Commit(ctx); err != nil {
		return err
	}
	w.d.add(c.Changes)
	if w.r.IntN(4) == 0 {
		return nil
	}
	return c.Clear(ctx)
}

// act claims and projects changes, until the transaction's snapshot is as new as all that it has locked.
func (w *worker) act(ctx context.Context, txn *percolator.Txn, cells []kv.NotifyCell) (*Claim, error) {
	sp := txn.Savepoint()
	for {
		c, err := w.f.o.Claim(ctx, txn, cells)
		if err == nil && len(c.Changes) > 0 {
			err = project(ctx, txn, c)
		}
		if !errors.Is(err, percolator.ErrRestartStatement) {
			return c, err
		}
		txn.RestartStatement(sp)
	}
}

// Goal: T-OBS-2: of two transactions that deliver one change one commits: optimistic ones conflict when they commit, of
// pessimistic ones the second does not get the change, and does not get it again after the first has committed.
func TestProto_T_OBS_2(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		t.Run("optimistic", func(t *testing.T) {
			f := open(t, percolator.Options{})
			f.write(1, 5)
			cells := f.pending()
			one, two := f.begin(modes["optimistic"]), f.begin(modes["optimistic"])
			first, second := f.claim(one, cells), f.claim(two, cells)
			if len(first.Changes) != 1 || len(second.Changes) != 1 {
				t.Fatal(first, second)
			}
			for _, err := range []error{first.Acknowledge(one), second.Acknowledge(two)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			f.commit(one)
			if _, err := two.Commit(t.Context()); errkind.Of(err) != errkind.WriteConflict {
				t.Fatalf("the second commit: %v", err)
			}
			f.expectSeen(cells, modes["optimistic"])
		})
		for _, name := range []string{"pessimistic", "pessimistic, read committed"} {
			t.Run(name, func(t *testing.T) {
				f := open(t, percolator.Options{})
				f.write(1, 5)
				cells := f.pending()
				one, two := f.begin(modes[name]), f.begin(modes[name])
				first := f.claim(one, cells)
				if c := f.claim(two, cells); len(first.Changes) != 1 || len(c.Changes) != 0 || c.Locked != 1 {
					t.Fatal(first, c)
				}
				if err := first.Acknowledge(one); err != nil {
					t.Fatal(err)
				}
				f.commit(one)
				if c := f.claim(two, cells); len(c.Changes) != 0 || c.Locked != 0 { // its snapshot is older than the first's commit
					t.Fatalf("delivered twice: %+v", c)
				}
				two.Close()
				f.expectSeen(cells, modes[name])
			})
		}
	})
}

// expectSeen checks that nobody gets the changes any more, and that who finds them clears their cells.
func (f *fixture) expectSeen(cells []kv.NotifyCell, mode percolator.TxnOptions) {
	f.t.Helper()
	txn := f.begin(mode)
	c := f.claim(txn, cells)
	if len(c.Changes) != 0 {
		f.t.Errorf("delivered again: %+v", c.Changes)
	}
	txn.Close()
	if len(f.pending()) == 0 {
		f.t.Error("cleared before")
	}
	if err := c.Clear(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if left := f.pending(); len(left) != 0 {
		f.t.Errorf("still pending: %+v", left)
	}
}

// Goal: T-OBS-3: a change after the snapshot of a delivery is not lost when that clears its cell.
func TestProto_T_OBS_3(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for name, mode := range modes {
			t.Run(name, func(t *testing.T) {
				f := open(t, percolator.Options{})
				f.write(1, 5)
				txn := f.begin(mode)
				c := f.claim(txn, f.pending())
				later := f.write(1, 6)
				if err := project(t.Context(), txn, c); err != nil {
					t.Fatal(err)
				}
				f.commit(txn)
				if err := c.Clear(t.Context()); err != nil {
					t.Fatal(err)
				}
				left := f.pending()
				if len(left) != 1 || left[0].Latest != later {
					t.Fatalf("pending: %+v, want the change at %d", left, later)
				}
				w := &worker{f: f, r: rand.New(rand.NewPCG(1, 1)), mode: mode, d: &deliveries{counts: map[string]int{}}}
				for len(f.pending()) > 0 {
					w.run(t)
				}
				f.checkSum()
			})
		}
	})
}

// Goal: T-OBS-4: many changes of a row are delivered once at least and as often as there are at most, and the last state
// is seen.
func TestProto_T_OBS_4(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		f := open(t, percolator.Options{})
		const writes = 1000
		w := &worker{f: f, r: rand.New(rand.NewPCG(1, 1)), mode: modes["pessimistic"], d: &deliveries{counts: map[string]int{}}}
		var done atomic.Bool
		var delivering sync.WaitGroup
		delivering.Go(func() {
			for !done.Load() || len(f.pending()) > 0 {
				w.run(t)
			}
		})
		for n := range writes {
			f.write(3, n)
		}
		done.Store(true)
		delivering.Wait()
		f.checkSum()
		w.d.atMostOnce(t)
		if n := len(w.d.counts); n < 1 || n > writes {
			t.Errorf("%d deliveries of %d changes", n, writes)
		}
		t.Logf("%d deliveries of %d changes", len(w.d.counts), writes)
	})
}

// Goal: T-OBS-7: without a single hint everything is delivered. Method: workers that only scan, and changes made before
// they begin.
func TestProto_T_OBS_7(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		f := open(t, percolator.Options{})
		for i := range 500 {
			f.write(i, i)
		}
		var delivering sync.WaitGroup
		for n := range 3 {
			w := &worker{f: f, r: rand.New(rand.NewPCG(uint64(n), 1)), mode: modes["pessimistic"], d: &deliveries{counts: map[string]int{}}}
			delivering.Go(func() {
				for len(f.pending()) > 0 {
					w.run(t)
				}
			})
		}
		delivering.Wait()
		f.checkSum()
	})
}

// Goal: the acknowledgement of a deleted row is collected, but only when its cell is gone for good; a worker that has read the
// cell before does not deliver the deletion again; a row inserted again is delivered.
func TestCollect(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, percolator.Options{})
	w := &worker{f: f, r: rand.New(rand.NewPCG(4, 4)), mode: modes["pessimistic"], d: &deliveries{counts: map[string]int{}}}
	drain := func() {
		for len(f.pending()) > 0 {
			w.run(t)
		}
	}
	f.write(1, 5)
	f.write(2, 5)
	drain()
	f.write(1, -1)
	old := f.pending()

	deleting := f.begin(modes["pessimistic"])
	c := f.claim(deleting, old)
	if err := project(ctx, deleting, c); err != nil {
		t.Fatal(err)
	}
	f.commit(deleting)
	f.collect(0) // the cell is there
	if err := c.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	f.shard.restarting.Store(true) // the removal of the cell may have been lost
	f.collect(0)
	f.shard.restarting.Store(false)
	f.collect(1)
	f.collect(0)

	late := f.begin(modes["pessimistic"])
	if c := f.claim(late, old); len(c.Changes) != 0 {
		t.Fatalf("delivered again: %+v", c.Changes)
	}
	late.Close()

	f.write(1, 7)
	before := w.d.runs
	drain()
	if f.checkSum(); w.d.runs == before {
		t.Error("the new row was not delivered")
	}
}

// Goal: where a commit that is executed twice brings a cleared cell back, the acknowledgement is there and nothing is delivered again, until no request
// of the transaction can be under way. Method: a table, in which the cell of a deletion is written again after it was delivered; then a safe point
// above it.
func TestCollectBesideLateCells(t *testing.T) {
	ctx := t.Context()
	f := newTable(t, percolator.Options{})
	f.write(1, 5)
	f.deliver(f.pending(), 1)
	deleted := f.write(1, -1)
	f.deliver(f.pending(), 1)
	f.collect(0)
	if err := f.o.Cells.Put(ctx, observerID, [][]byte{rowKey(1)}, deleted, 0); err != nil {
		t.Fatal(err)
	}
	f.deliver(f.pending(), 0)
	now, err := f.db.Timestamp(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.shard.SetSafePoint(ctx, now); err != nil {
		t.Fatal(err)
	}
	f.collect(1)
}

// Goal: the acknowledgement of a deletion that was seen through the lock of its committed transaction is not collected before the
// deletion has its cell: otherwise that would be delivered again. Method: a shard that resolves no locks until the deletion is delivered.
func TestCollectWaitsForCellsOfLocks(t *testing.T) {
	f := newFixture(t, percolator.Options{})
	f.write(1, 5)
	f.deliver(f.pending(), 1)
	f.shard.holding.Store(true)
	deleted := f.deleteLocked(1)
	if cells := f.pending(); len(cells) != 0 {
		t.Fatalf("the cell is there: %+v", cells)
	}
	f.deliver([]kv.NotifyCell{{Key: rowKey(1), Latest: deleted}}, 1)
	f.shard.holding.Store(false)
	f.collect(0)
	f.deliver(f.pending(), 0)
	f.collect(1)
}

// Goal: the newest change in the snapshot and the hop are reported; a change after the snapshot is left for later, also
// if it makes the cell appear again that the worker has read before, and that was cleared since.
func TestClaimReports(t *testing.T) {
	f := newFixture(t, percolator.Options{})
	ctx := t.Context()
	f.write(1, 5)
	early := f.pending()
	second := f.write(1, 6)
	txn := f.begin(modes["pessimistic"])
	c := f.claim(txn, early)
	if len(c.Changes) != 1 || c.Changes[0].CommitTS != second {
		t.Fatalf("%+v, want the change at %d", c.Changes, second)
	}
	txn.Close()

	old := f.begin(modes["optimistic"])
	third := f.write(2, 1)
	if c := f.claim(old, f.pending()); len(c.Changes) != 1 || c.Later != 1 {
		t.Errorf("%+v, want the change at %d left for later", c, third)
	}
	old.Close()

	cells := f.pending()
	old = f.begin(modes["optimistic"])
	f.write(1, 8)
	if c := f.claim(old, cells); len(c.Changes) != 1 || c.Later != 1 {
		t.Errorf("%+v, want row 1 left for later", c)
	}
	old.Close()

	set := &mvcc.NotifySet{Hop: 11, Observers: []uint64{observerID}}
	chained := f.begin(percolator.TxnOptions{})
	if err := chained.Put(rowKey(3), []byte("1")); err != nil {
		t.Fatal(err)
	}
	chained.Notify(set)
	f.commit(chained)
	txn = f.begin(modes["pessimistic"])
	defer txn.Close()
	if c := f.claim(txn, f.pending()); c.Hop() != 12 {
		t.Errorf("hop %d", c.Hop())
	}
	if _, err := f.o.Claim(ctx, txn, []kv.NotifyCell{{Key: []byte("x/1")}}); err == nil {
		t.Error("a cell of another table was claimed")
	}
}

// Goal: a claim of a few cells, as hints report them, finds those that are pending among many.
func TestClaimOfHints(t *testing.T) {
	f := newFixture(t, percolator.Options{})
	latest := map[string]tso.Timestamp{}
	for i := range 60 {
		latest[string(rowKey(i))] = f.write(i, i)
	}
	hint := func(is ...int) (cells []kv.NotifyCell) {
		for _, i := range is {
			cells = append(cells, kv.NotifyCell{Key: rowKey(i), Latest: latest[string(rowKey(i))]})
		}
		return cells
	}
	if _, err := f.o.Cells.Clear(t.Context(), observerID, []kv.NotifyUpTo{{Key: rowKey(30), UpTo: latest[string(rowKey(30))]}, {Key: rowKey(59), UpTo: latest[string(rowKey(59))]}}); err != nil {
		t.Fatal(err)
	}
	txn := f.begin(modes["pessimistic"])
	defer txn.Close()
	var got []string
	for _, change := range f.claim(txn, hint(0, 1, 25, 30, 31, 58, 59)).Changes {
		got = append(got, string(change.Key))
	}
	if want := []string{"r/000", "r/001", "r/025", "r/031", "r/058"}; !slices.Equal(got, want) {
		t.Errorf("claimed %q, want %q", got, want)
	}
}

// Goal: a value that is no acknowledgement is an error, not a delivery.
func TestMalformedAcknowledgement(t *testing.T) {
	f := newFixture(t, percolator.Options{})
	f.write(1, 5)
	txn := f.begin(percolator.TxnOptions{})
	if err := txn.Put(f.o.ackKey(rowKey(1)), []byte("?")); err != nil {
		t.Fatal(err)
	}
	f.commit(txn)
	txn = f.begin(modes["pessimistic"])
	defer txn.Close()
	if _, err := f.o.Claim(t.Context(), txn, f.pending()); err == nil || errors.Is(err, percolator.ErrRestartStatement) {
		t.Errorf("claimed: %v", err)
	}
	if _, _, err := f.o.Collect(t.Context(), f.db, 10, nil); err == nil {
		t.Error("collected")
	}
}
