package percolator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
)

// smallPages are options under which every page is of the largest size.
var smallPages = Options{MaxPageRows: 8}

// fillRows commits the rows from 0 to n.
func fillRows(t *testing.T, db *DB, n int) {
	t.Helper()
	txn := mustBegin(t, db)
	for i := range n {
		must(t, txn.Put(rowKey(i), []byte("1")))
	}
	mustCommit(t, txn)
}

// Goal: a scan that reads ahead returns what another one does. Method: two stores, requests that fail, writes of the
// transaction itself, and statements whose contexts end while a request of theirs is under way.
func TestScanAheadAgainstScan(t *testing.T) {
	c := newCluster(t, nil, "row000200")
	fillRows(t, c.db(Options{}, nil), 500)
	requests := make(chan struct{}, 1) // guards n
	n := 0
	db := c.db(smallPages, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
			if _, ok := req.(*kv.ScanRequest); !ok {
				return nil
			}
			requests <- struct{}{}
			defer func() { <-requests }()
			if n++; n%7 == 0 {
				return errLost
			}
			return nil
		}}
	})
	for _, writes := range []bool{false, true} {
		for _, reverse := range []bool{false, true} {
			txn := mustBegin(t, db)
			if writes {
				must(t, txn.Delete(rowKey(100)))
				must(t, txn.Put(rowKey(600), []byte("2")))
			}
			want := scanAll(t, txn, rowSpan, ScanOptions{Reverse: reverse})
			got := ""
			it := txn.Scan(t.Context(), rowSpan, ScanOptions{Reverse: reverse, ReadAhead: true})
			for more := true; more; {
				ctx, cancel := context.WithCancel(t.Context())
				for i := 0; i < 20 && more; i++ {
					if more = it.Next(ctx); more {
						got += fmt.Sprintf(" %s=%s", it.Key(), it.Value())
					}
				}
				cancel()
			}
			if it.Err() != nil {
				t.Fatal(it.Err())
			}
			it.Close()
			if got[1:] != want {
				t.Fatalf("writes %v, reverse %v: read ahead%s\nwant %s", writes, reverse, got, want)
			}
			txn.Close()
		}
	}
}

// Goal: a page is requested while the rows of the one before are being returned, and Close ends the request.
func TestScanAheadOverlapsAndCloses(t *testing.T) {
	c := newCluster(t, nil)
	fillRows(t, c.db(Options{}, nil), 100)
	second, n := make(chan struct{}), 0
	db := c.db(smallPages, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(ctx context.Context, req any) error {
			if _, ok := req.(*kv.ScanRequest); !ok {
				return nil
			}
			if n++; n < 2 { // The second is made after the first has returned.
				return nil
			}
			close(second)
			<-ctx.Done()
			return ctx.Err()
		}}
	})
	txn := mustBegin(t, db)
	defer txn.Close()
	it := txn.Scan(t.Context(), rowSpan, ScanOptions{ReadAhead: true})
	if !it.Next(t.Context()) {
		t.Fatal(it.Err())
	}
	<-second
	it.Close()
	if n != 2 {
		t.Fatalf("%d requests", n)
	}
}

// Goal: a page that was read ahead at a snapshot that has moved on is read again. Method: the rows read so far stay, so
// that the snapshot may move; a row appears among those read ahead.
func TestScanAheadFollowsTheSnapshot(t *testing.T) {
	ctx := t.Context()
	c := newCluster(t, nil)
	db := c.db(smallPages, nil)
	fillRows(t, db, 100)
	txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true})
	must(t, err)
	defer txn.Close()
	it := txn.Scan(ctx, rowSpan, ScanOptions{ReadAhead: true})
	defer it.Close()
	rows := 0
	for ; rows < 4 && it.Next(ctx); rows++ {
	}
	<-it.(*scan).ahead.next.ready
	other := mustBegin(t, db)
	mustPut(t, other, "row000009+=1", "z=1")
	mustCommit(t, other)
	before := txn.ReadTS()
	txn.KeepReads()
	_, err = txn.AcquireLocks(ctx, LockOptions{}, []byte("z"))
	if !errors.Is(err, ErrRestartStatement) || txn.ReadTS() == before {
		t.Fatalf("the snapshot has not moved: %v", err)
	}
	for it.Next(ctx) {
		rows++
	}
	if rows != 101 || it.Err() != nil {
		t.Fatalf("%d rows, %v", rows, it.Err())
	}
}

// scanHook calls f after the n-th scan request of a DB, from 1.
func scanHook(f func(n int)) func(kv.Shard) kv.Shard {
	n := 0 // requests follow each other
	return func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, after: func(_ context.Context, req, _ any, _ error) error {
			if _, ok := req.(*kv.ScanRequest); ok {
				n++
				f(n)
			}
			return nil
		}}
	}
}

// Goal: what a scan has returned before it failed counts as read. Method: the second page is empty, and the third, which
// replaces the first one's bytes, has another key where the last row was; the statement ends before it is taken.
func TestScanAheadThatFailsHasRead(t *testing.T) {
	c := newCluster(t, nil, "row000100")
	plain := c.db(Options{}, nil)
	fillRows(t, plain, 8)
	other := mustBegin(t, plain)
	rows := 7 * (len(rowKey(0)) + 1) // before the last row of the first page
	must(t, other.Put(rowKey(200), []byte(strings.Repeat(".", rows-len(rowKey(200)))+string(rowKey(2)))))
	mustCommit(t, other)

	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	db := c.db(smallPages, scanHook(func(n int) {
		if n == 3 {
			cancel()
			<-hold
		}
	}))
	txn, err := db.BeginTxn(t.Context(), TxnOptions{Isolation: Serializable})
	must(t, err)
	defer txn.Close()
	it := txn.Scan(ctx, rowSpan, ScanOptions{ReadAhead: true})
	n := 0
	for it.Next(ctx) {
		n++
	}
	if n != 8 || !errors.Is(it.Err(), context.Canceled) {
		t.Fatalf("%d rows, %v", n, it.Err())
	}
	close(hold)
	it.Close()

	other = mustBegin(t, plain)
	must(t, other.Put(rowKey(5), []byte("2")))
	mustCommit(t, other)
	must(t, txn.Put(rowKey(300), []byte("1")))
	if _, err := txn.Commit(t.Context()); errkind.Of(err) != errkind.WriteConflict {
		t.Fatalf("a row that was read has changed: %v", err)
	}
}

// Goal: a panic in a request ahead is one of the goroutine that uses the iterator.
func TestPanicOfAScanAhead(t *testing.T) {
	c := newCluster(t, nil)
	fillRows(t, c.db(Options{}, nil), 100)
	txn := mustBegin(t, c.db(smallPages, scanHook(func(n int) {
		if n == 2 {
			panic("a bug")
		}
	})))
	defer txn.Close()
	it := txn.Scan(t.Context(), rowSpan, ScanOptions{ReadAhead: true})
	defer it.Close()
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "a bug") || !strings.Contains(p, "scanHook") {
			t.Errorf("got %s, want the panic and where it was", p)
		}
	}()
	for it.Next(t.Context()) {
	}
	t.Error("no panic")
}
