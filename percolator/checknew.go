package percolator

import (
	"context"

	"github.com/percodb/percodb/kv/mvcc"
)

// CheckNew looks now for what Commit would find of the keys given to Insert: one that has a value at
// the snapshot is a *mvcc.KeyExistsError. The session calls it when a statement that was alone in its
// transaction is joined by another, since its error belongs before the other's result. Commit checks
// all the same.
func (t *Txn) CheckNew(ctx context.Context) error {
	if t.done {
		return ErrTxnDone
	}
	if t.buf == nil {
		return nil
	}
	writes, err := t.buf.mutations(nil)
	if err != nil {
		return err
	}
	var keys [][]byte
	for i := range writes {
		if writes[i].MustBeNew {
			keys = append(keys, writes[i].Key)
		}
	}
	values, err := t.snap.fetch(ctx, keys)
	if err != nil {
		return err
	}
	for i, value := range values {
		if value != nil {
			return &mvcc.KeyExistsError{Key: keys[i]}
		}
	}
	return nil
}
