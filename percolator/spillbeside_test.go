package percolator

import (
	"context"
	"errors"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator/sortrun"
)

var rowSpan = kv.Span{Start: []byte("row"), End: []byte("rox")}

// loseRun makes the background write of a run of txn fail, and returns the first row after the run.
func loseRun(t *testing.T, txn *Txn, from int) (next int) {
	t.Helper()
	write := func() {
		must(t, txn.Put(rowKey(next), []byte("1")))
		next++
	}
	for next = from; txn.buf == nil || txn.buf.spilling == nil; {
		write()
	}
	must(t, txn.buf.settle())
	closed, err := sortrun.Create(t.TempDir())
	must(t, err)
	must(t, closed.Close())
	whole := txn.buf.spilled.files[0]
	t.Cleanup(func() { _ = whole.Close() })
	txn.buf.spilled.files[0] = closed
	for txn.buf.spilling == nil {
		write()
	}
	write()
	return next
}

// Goal: a transaction that has lost a run does not commit, and its readers fail instead of missing the run's entries.
func TestLostRunFailsReadersAndCommit(t *testing.T) {
	ctx := context.Background()
	db := newCluster(t, nil).db(spilling, nil)
	for name, use := range map[string]func(txn *Txn) error{
		"commit": func(txn *Txn) error { _, err := txn.Commit(ctx); return err },
		"get":    func(txn *Txn) error { _, err := txn.Get(ctx, rowKey(0)); return err },
		"scan": func(txn *Txn) error {
			it := txn.Scan(ctx, rowSpan, ScanOptions{})
			defer it.Close()
			for it.Next(ctx) {
			}
			return it.Err()
		},
		"write": func(txn *Txn) error {
			for i := range 10_000 {
				if err := txn.Put(rowKey(i), []byte("2")); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			txn := mustBegin(t, db)
			defer txn.Close()
			loseRun(t, txn, 0)
			for range 2 {
				if err, failed := use(txn), (*sortrun.Error)(nil); !errors.As(err, &failed) && !errors.Is(err, ErrTxnDone) {
					t.Fatalf("got %v, want the error of the file", err)
				}
			}
		})
	}
	if rows, _ := contents(t, mustBegin(t, db)); rows != 0 {
		t.Fatalf("%d rows are committed", rows)
	}
}

// Goal: a rollback of the statement that has lost a run makes the transaction usable again; its earlier writes and
// iterators are unaffected.
func TestRollbackGetsOverLostRun(t *testing.T) {
	ctx := context.Background()
	db := newCluster(t, nil).db(spilling, nil)
	txn := mustBegin(t, db)
	for i := range 10 {
		must(t, txn.Put(rowKey(i), []byte("1")))
	}
	size := txn.SizeBytes()
	it := txn.Scan(ctx, rowSpan, ScanOptions{})
	defer it.Close()
	save := txn.Savepoint()
	loseRun(t, txn, 100)
	rows := 0
	for it.Next(ctx) {
		rows++
	}
	if rows != 10 || it.Err() != nil {
		t.Fatalf("an iterator of before: %d rows, %v", rows, it.Err())
	}
	txn.RollbackTo(save)
	if txn.SizeBytes() != size {
		t.Errorf("%d bytes are left, want %d", txn.SizeBytes(), size)
	}
	if rows, _ := contents(t, txn); rows != 10 {
		t.Fatalf("after the rollback: %d rows", rows)
	}
	must(t, txn.Rollback(ctx))
}

// Goal: a statement that has lost a run fails, not a later one: a savepoint behind it would not help that.
func TestLostRunFailsItsStatement(t *testing.T) {
	ctx := context.Background()
	db := newCluster(t, nil).db(spilling, nil)
	txn := mustBegin(t, db)
	must(t, txn.Put(rowKey(0), []byte("1")))
	save := txn.Savepoint()
	loseRun(t, txn, 100)
	if err, failed := txn.VerifyNew(ctx), (*sortrun.Error)(nil); !errors.As(err, &failed) {
		t.Fatalf("got %v, want the error of the file", err)
	}
	txn.RollbackTo(save)
	must(t, txn.VerifyNew(ctx))
	mustCommit(t, txn)
	if rows, _ := contents(t, mustBegin(t, db)); rows != 1 {
		t.Fatalf("%d rows are committed", rows)
	}
}

// Goal: a panic while a run is written is one of the transaction's goroutine.
func TestPanicOfARun(t *testing.T) {
	b := &writeBuffer{}
	b.add(rowKey(0), nil, changePut)
	b.n++ // an entry that does not exist
	must(t, b.spillBeside(t.TempDir()))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		b.close()
	}()
	_ = b.settle()
}
