package percolator

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/kv/mvcc"
)

// CheckNew performs the check of keys given to Insert that Commit would perform: a key that has a value at the snapshot
// is a *mvcc.KeyExistsError. The session calls it when a statement that was alone in its transaction is followed by
// another, since its error must precede the other's result. Commit checks again.
func (t *Txn) CheckNew(ctx context.Context) error {
	if t.done {
		return ErrTxnDone
	}
	if t.buf == nil {
		return nil
	}
	if t.buf.spilled != nil {
		return t.checkNewSpilled(ctx)
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
	return t.checkAbsent(ctx, keys)
}

// checkNewSpilled is CheckNew for a buffer with a file.
func (t *Txn) checkNewSpilled(ctx context.Context) error {
	if err := t.buf.spill(t.db.opts.TempDir); err != nil {
		return err
	}
	var keys [][]byte
	err := t.buf.spilled.fold(t.buf.sets, func(f *folded) error {
		if m := f.mutation(f.key, nil, 0); !m.MustBeNew {
			return nil
		}
		if keys = append(keys, bytes.Clone(f.key)); len(keys) < maxBatchKeys {
			return nil
		}
		err := t.checkAbsent(ctx, keys)
		keys = keys[:0]
		return err
	}, nil)
	if err != nil {
		return err
	}
	return t.checkAbsent(ctx, keys)
}

// checkAbsent returns *mvcc.KeyExistsError if a key has a value at the snapshot.
func (t *Txn) checkAbsent(ctx context.Context, keys [][]byte) error {
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
