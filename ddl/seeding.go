package ddl

import (
	"bytes"
	"context"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// FROM BEGINNING. The observer is created in state seeding; from then on every change notifies it. Afterwards the rows of the table are
// notified in chunks, and the observer's state becomes enabled. A row that has changed meanwhile has notified the observer itself,
// before or after; that makes no difference, since the notifications of rows have the start_ts of the transaction that created the
// observer: whatever handles a change for the observer has a later snapshot, so a row that it has handled is not handled again. For the
// same reason a chunk may be repeated. The progress is stored with each chunk (catalog.Seeding), for whoever continues after a crash.

const (
	// seedRows is the number of rows of a chunk.
	seedRows = 1000
	// seedLease is the time after which another process may continue: a chunk takes much less.
	seedLease = 5 * time.Second
	// undoTimeout bounds the removal of an observer whose creation was canceled.
	undoTimeout = 10 * time.Second
)

// newSeeding is the progress before the first chunk of an observer that the statement's transaction creates.
func (r *run) newSeeding() *catalog.Seeding {
	return &catalog.Seeding{TS: r.txn.StartTS(), Until: leaseFrom(r.txn.StartTS())}
}

func leaseFrom(now tso.Timestamp) tso.Timestamp {
	return tso.FromPhysical(now.Physical() + seedLease.Milliseconds())
}

// createObserverAlone is CREATE OBSERVER outside of a block. FROM BEGINNING, it returns when all rows are notified; if that fails, the
// observer is dropped again unless it has replaced another one, which continues in the background.
func createObserverAlone(ctx context.Context, d *Deps, n *ast.CreateObserver) (string, error) {
	var observer uint64
	var replaced bool
	var until tso.Timestamp
	tag, err := runAlone(ctx, d, func(r *run) (tag string, err error) {
		if err = r.authorize(ctx, n); err != nil {
			return "", err
		}
		observer, replaced, err = r.createObserver(ctx, n)
		until = leaseFrom(r.txn.StartTS())
		return "CREATE OBSERVER", err
	})
	if err != nil || n.From != "BEGINNING" {
		return tag, err
	}
	if err = seed(ctx, d, observer, until); err == nil || replaced {
		return tag, err
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	_, undoErr := runAlone(undo, d, func(r *run) (string, error) {
		t, o, err := r.observerByID(undo, observer)
		if err != nil || o == nil || o.State != catalog.ObserverSeeding {
			return "", err
		}
		return "", r.removeObservers(undo, t, []uint64{observer})
	})
	if undoErr != nil {
		d.Logger.Warn("an observer whose creation failed is still there", "observer", n.Name, "err", undoErr)
	}
	return "", err
}

// ResumeSeeding continues to notify the rows of an observer's table if the process that had begun does not. It returns nil when
// another one is at it, too.
func ResumeSeeding(ctx context.Context, d Deps, observer uint64) error {
	d = d.ensureDefaults()
	return seed(ctx, &d, observer, 0)
}

// seed notifies the rows chunk by chunk. until is the end of the caller's lease, 0 if it has none.
func seed(ctx context.Context, d *Deps, observer uint64, until tso.Timestamp) error {
	for {
		more, next, err := seedChunk(ctx, d, observer, until)
		if errkind.Of(err) == errkind.WriteConflict {
			continue
		}
		if err != nil {
			return percolator.CauseOf(err)
		}
		if !more {
			break
		}
		until = next
	}
	return nil
}

// seedChunk notifies the next rows and reports whether there may be more, with the end of the caller's lease.
func seedChunk(ctx context.Context, d *Deps, observer uint64, until tso.Timestamp) (more bool, lease tso.Timestamp, err error) {
	txn, err := d.DB.Begin(ctx)
	if err != nil {
		return false, 0, err
	}
	defer txn.Close()
	s, err := catalog.SeedingOf(ctx, txn, observer)
	if err != nil || s == nil || s.Until != until && s.Until > txn.StartTS() {
		return false, 0, err
	}
	schema, err := d.Catalog.At(ctx, txn)
	if err != nil {
		return false, 0, err
	}
	t, o, err := catalog.ObserverByID(ctx, schema, observer)
	if err != nil || o == nil {
		return false, 0, err
	}
	keys, err := rowKeys(ctx, txn, t, s.Next)
	if err != nil {
		return false, 0, err
	}
	if len(keys) > 0 {
		if err := d.DB.Observers().Put(ctx, observer, keys, s.TS, 0); err != nil {
			return false, 0, err
		}
	}
	if len(keys) < seedRows {
		return false, 0, finishSeeding(ctx, d, observer)
	}
	before := s.Rows / d.ProgressRows
	s.Next, s.Rows, s.Until = append(keys[len(keys)-1], 0), s.Rows+int64(len(keys)), leaseFrom(txn.StartTS())
	if err := catalog.PutSeeding(txn, observer, s); err != nil {
		return false, 0, err
	}
	if _, err := txn.Commit(ctx); err != nil {
		return false, 0, err
	}
	if s.Rows/d.ProgressRows != before {
		d.Report.Progress("notifying observer", s.Rows)
	}
	return true, s.Until, nil
}

// rowKeys returns the keys of the next rows of t, from next on (nil: the first).
func rowKeys(ctx context.Context, txn *percolator.Txn, t *catalog.TableDescriptor, next []byte) ([][]byte, error) {
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	if next != nil {
		start = next
	}
	it := txn.Scan(ctx, kv.Span{Start: start, End: end}, percolator.ScanOptions{KeysOnly: true, PageHint: seedRows})
	defer it.Close()
	var keys [][]byte
	for len(keys) < seedRows && it.Next(ctx) {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	return keys, it.Err()
}

// finishSeeding ends the state seeding.
func finishSeeding(ctx context.Context, d *Deps, observer uint64) error {
	_, err := runAlone(ctx, d, func(r *run) (string, error) {
		t, o, err := r.observerByID(ctx, observer)
		if err != nil || o == nil {
			return "", err
		}
		if err := catalog.DeleteSeeding(r.txn, observer); err != nil || o.State != catalog.ObserverSeeding {
			return "", err
		}
		next := t.Clone()
		next.ObserverByID(observer).State = catalog.ObserverEnabled
		return "", r.update(ctx, t, next, false)
	})
	return err
}

func (r *run) observerByID(ctx context.Context, id uint64) (*catalog.TableDescriptor, *catalog.ObserverDescriptor, error) {
	return catalog.ObserverByID(ctx, r.r, id)
}

// retryObserver is ALTER OBSERVER … RETRY: rows that were set aside are notified again. The notification comes before the record's
// removal: if the statement fails in between, a row is handled although it is still listed.
func (r *run) retryObserver(ctx context.Context, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor, n *ast.AlterObserver) error {
	if !r.alone {
		return pgerror.New(pgerror.ActiveSQLTransaction, "ALTER OBSERVER ... RETRY cannot run inside a transaction block")
	}
	chosen, err := r.keyFilter(ctx, t, n.Where)
	if err != nil {
		return err
	}
	var keys [][]byte
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		if err := r.DB.Observers().Put(ctx, o.ID, keys, r.txn.StartTS(), 0); err != nil {
			return err
		}
		for _, key := range keys {
			if err := catalog.DeleteObserverError(r.txn, o.ID, key); err != nil {
				return err
			}
		}
		keys = nil
		return nil
	}
	err = catalog.ObserverErrors(ctx, r.txn, o.ID, func(e *catalog.ObserverError) error {
		if ok, err := chosen(e.Key); err != nil || !ok {
			return err
		}
		if keys = append(keys, e.Key); len(keys) < seedRows {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// keyFilter makes a function that evaluates a condition over KEY for a row's key; nil: every row is chosen.
func (r *run) keyFilter(ctx context.Context, t *catalog.TableDescriptor, where ast.Expr) (func(key []byte) (bool, error), error) {
	if where == nil {
		return func([]byte) (bool, error) { return true, nil }, nil
	}
	if r.access.RowSecurity(t) == catalog.RowSecurityApplies {
		return nil, pgerror.Unsupported("RETRY WHERE for a table whose row-level security applies to the role", "Retry all rows.")
	}
	rows := planner.ObserverRows(t)[1:]
	cond, err := planner.BindRows(ctx, where, rows, r.r, r.Env, types.TBool, "WHERE")
	if err != nil {
		return nil, err
	}
	ev := r.evaluator(ctx)
	return func(key []byte) (bool, error) {
		row, err := rowenc.KeyColumns(t, &t.Primary, key)
		if err != nil {
			return false, err
		}
		d, err := ev.eval(cond, row)
		return err == nil && !d.IsNull() && d.Bool(), err
	}, nil
}
