package observer

import (
	"context"
	"errors"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/session"
)

// asidePage is the number of records of rows set aside that a look reads.
const asidePage = 1000

// asideLookup is a look at the records of rows that are set aside.
type asideLookup struct {
	any  bool   // there are some
	next []byte // where the next look goes on, nil: at the first
}

// lookAside looks at a page of records from the key from on. It removes those of rows that have been handled since: processes that did not
// know of the record leave it.
func (r *runner) lookAside(ctx context.Context, t target, from []byte) (look asideLookup, err error) {
	txn, err := r.m.opts.Deps.DB.BeginTxn(ctx, percolator.TxnOptions{})
	if err != nil {
		return look, err
	}
	defer txn.Close()
	var list []*catalog.ObserverError
	err = catalog.ObserverErrorsFrom(ctx, txn, r.id, from, func(e *catalog.ObserverError) error {
		if len(list) == asidePage {
			look.next = e.Key
			return errStop
		}
		list = append(list, e)
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return look, err
	}
	keys := make([][]byte, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	handled, err := session.Delivery(r.m.opts.Deps.DB, t.table, t.observer).Acknowledged(ctx, txn, keys)
	if err != nil {
		return look, err
	}
	removed := 0
	for i, e := range list {
		if handled[i] <= e.At { // It is the acknowledgement of setting the row aside.
			continue
		}
		removed++
		if err := catalog.DeleteObserverError(txn, r.id, e.Key); err != nil {
			return look, err
		}
	}
	look.any = len(list) > removed || from != nil || look.next != nil
	if removed > 0 {
		_, err = txn.Commit(ctx)
	}
	if errkind.Of(err) == errkind.WriteConflict { // The next look finds them.
		look.any, err = true, nil
	}
	return look, err
}

// errStop ends an iteration.
var errStop = errors.New("stop")
