package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// lockingTxn is a guarded transaction that locks rows.
type lockingTxn struct {
	*Guard
	txn *percolator.Txn
}

func beginLocking(t testing.TB, c *Catalog) *lockingTxn {
	t.Helper()
	txn, err := c.db.BeginTxn(context.Background(), percolator.TxnOptions{Pessimistic: true})
	if err != nil {
		t.Fatal(err)
	}
	l := &lockingTxn{Guard: c.NewGuard(), txn: txn}
	l.Reset(txn)
	t.Cleanup(l.rollback)
	return l
}

func (l *lockingTxn) rollback() {
	if l.Guard.txn != nil {
		_ = l.txn.Rollback(context.Background())
		l.Done(context.Background(), 0, nil)
	}
}

// lock locks a key and writes it.
func (l *lockingTxn) lock(ctx context.Context, key string) error {
	if _, err := l.txn.AcquireLocks(ctx, percolator.LockOptions{}, []byte(key)); err != nil {
		return err
	}
	return l.txn.Put([]byte(key), []byte("v"))
}

// closeTable closes a table for the transaction's schema change.
func (l *lockingTxn) closeTable(ctx context.Context, t *TableDescriptor) error {
	ch, err := l.Change(ctx)
	if err != nil {
		return err
	}
	return ch.Close(ctx, t)
}

// Goal: a change that could not close a table has not closed it, and tries again: after ROLLBACK TO SAVEPOINT its transaction goes on.
// Method: a commit in flight, or another process's change, makes the first attempts time out.
func TestFailedCloseIsTriedAgain(t *testing.T) {
	for _, opts := range []Options{{}, {Shared: true, Lease: time.Minute, PollInterval: 5 * time.Millisecond}} {
		t.Run(fmt.Sprintf("shared %v", opts.Shared), func(t *testing.T) {
			db, _ := openDB(t, func(o tso.Oracle) tso.Oracle { return o })
			c := newCatalog(t, db, opts)
			desc := mustCreate(t, c, "t")
			var end func()
			if opts.Shared {
				other := beginLocking(t, newCatalog(t, db, opts))
				if err := other.closeTable(t.Context(), desc); err != nil {
					t.Fatal(err)
				}
				end = other.rollback
			} else {
				done := inFlight(t, c, desc)
				end = func() { done(nil) }
			}
			a := beginLocking(t, c)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				defer cancel()
				if err := a.closeTable(ctx, desc); err == nil || a.change.Closed(desc.ID) {
					t.Errorf("closed although others may commit: %v", err)
				}
			}
			end()
			if err := a.closeTable(t.Context(), desc); err != nil || !a.change.Closed(desc.ID) {
				t.Errorf("not closed: %v", err)
			}
			a.rollback()
			inFlight(t, c, desc)(nil)
		})
	}
}

// Goal: of two transactions that wait for each other, for row locks or schema changes, one is refused, in one process and in
// several, and the other continues. Method: each holds what the other waits for.
func TestDeadlocksOfSchemaChanges(t *testing.T) {
	shared := Options{Shared: true, Lease: time.Minute, PollInterval: 5 * time.Millisecond}
	for _, tc := range []struct {
		name string
		opts Options
		// two: the transactions are of two processes. both: both change the schema.
		two, both bool
	}{
		{name: "one process"},
		{name: "one of several processes", opts: shared},
		{name: "two processes", opts: shared, two: true},
		{name: "two schema changes", opts: shared, two: true, both: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			db, graph := openDB(t, func(o tso.Oracle) tso.Oracle { return o })
			tc.opts.WaitGraph = graph
			here := newCatalog(t, db, tc.opts)
			there := here
			if tc.two {
				there = newCatalog(t, db, tc.opts)
			}
			t1, t2 := mustCreate(t, here, "t1"), mustCreate(t, here, "t2")
			a, b := beginLocking(t, here), beginLocking(t, there)
			has, wants, waits := func() error { return b.lock(ctx, "\x02k") }, func() error { return a.lock(ctx, "\x02k") }, func() error { return b.Wait(ctx) }
			if tc.both {
				has, wants, waits = func() error { return b.closeTable(ctx, t2) }, func() error { return a.closeTable(ctx, t2) }, func() error { return b.closeTable(ctx, t1) }
			}
			b.Writes(t1, 1)
			if err := has(); err != nil {
				t.Fatal(err)
			}
			if err := a.closeTable(ctx, t1); err != nil {
				t.Fatal(err)
			}
			ofA, ofB := make(chan error, 1), make(chan error, 1)
			go func() { ofA <- wants() }()
			go func() { ofB <- waits() }()
			var refused, other error
			select {
			case refused = <-ofA:
				a.rollback()
				other = <-ofB
			case refused = <-ofB:
				b.rollback()
				other = <-ofA
			}
			if errkind.Of(refused) != errkind.Deadlock || other != nil {
				t.Errorf("one is refused: %v, the other: %v", refused, other)
			}
		})
	}
}
