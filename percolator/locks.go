package percolator

import "context"

// BeginStatement tells the transaction that a statement begins. Read committed takes a new snapshot
// for it.
func (t *Txn) BeginStatement(ctx context.Context) error {
	if t.done {
		return ErrTxnDone
	}
	if t.opts.Isolation != ReadCommitted {
		return nil
	}
	ts, err := t.db.now(ctx)
	if err != nil {
		return err
	}
	t.snap.move(ts)
	return nil
}

// RestartStatement undoes the writes since sp, which was taken where the statement began. Unlike
// RollbackTo it keeps the locks.
func (t *Txn) RestartStatement(sp Savepoint) {
	if !t.done {
		t.buf.truncate(sp.writes)
		t.buf.freeze()
	}
}

// AcquireLocks makes the transaction the only one to write keys until it ends. It keeps the keys.
func (t *Txn) AcquireLocks(ctx context.Context, _ LockOptions, keys ...[]byte) (skipped []bool, err error) {
	return nil, t.LockKeys(ctx, keys...)
}
