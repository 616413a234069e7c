package percolator

import (
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Txn is one transaction: a snapshot, overlaid with its own writes. It implements Reader and Writer.
// One goroutine's. End it with Commit or Rollback; a transaction that wrote nothing may be dropped.
type Txn struct {
	db       *DB
	startTS  tso.Timestamp
	readOnly bool
	done     bool
	guard    CommitGuard
	buf      writeBuffer

	// What is known of transactions whose locks were met: those to be ignored by reads at startTS,
	// and those to be read through. Valid for this snapshot only.
	bypass   []tso.Timestamp
	resolved []kv.CommittedTxn
}

var (
	_ Reader = (*Txn)(nil)
	_ Writer = (*Txn)(nil)
)

// StartTS implements Reader.
func (t *Txn) StartTS() tso.Timestamp { return t.startTS }

// Wrote says whether there is anything to commit.
func (t *Txn) Wrote() bool { return t.buf.n > 0 }

// SizeBytes is the size of the write buffer, as Options.MaxTxnBytes counts it.
func (t *Txn) SizeBytes() int64 { return t.buf.sizeBytes }

// Put implements Writer.
func (t *Txn) Put(key, value []byte) error {
	return t.write(key, value, changePut)
}

// Insert implements Writer.
func (t *Txn) Insert(key, value []byte) error {
	return t.write(key, value, changeInsert)
}

// Delete implements Writer. Deleting what does not exist is not an error.
func (t *Txn) Delete(key []byte) error { return t.write(key, nil, changeDelete) }

// LockKeys implements Writer. The conflict shows at commit.
func (t *Txn) LockKeys(_ context.Context, keys ...[]byte) error {
	for _, key := range keys {
		if err := t.write(key, nil, changeLock); err != nil {
			return err
		}
	}
	return nil
}

func (t *Txn) write(key, value []byte, c change) error {
	switch {
	case t.done:
		return ErrTxnDone
	case t.readOnly:
		return ErrReadOnly
	}
	size := t.buf.sizeBytes + int64(len(key)+len(value)+entryOverhead)
	if limit := t.db.opts.MaxTxnBytes; size > limit {
		return &TxnTooLargeError{SizeBytes: size, LimitBytes: limit}
	}
	if value == nil && c.op == mvcc.OpPut {
		value = []byte{} // nil means absent to a reader
	}
	t.buf.add(key, value, c)
	return nil
}

// Savepoint marks the present state of the write buffer.
func (t *Txn) Savepoint() Savepoint { return Savepoint(t.buf.freeze()) }

// RollbackTo undoes the writes since sp, which stays valid; savepoints after it do not. Iterators
// made after sp fail with ErrIteratorInvalid.
func (t *Txn) RollbackTo(sp Savepoint) {
	if !t.done {
		t.buf.truncate(int(sp))
		t.buf.freeze()
	}
}

// SetCommitGuard has g asked before the transaction's commit point. A transaction that wrote nothing
// does not ask.
func (t *Txn) SetCommitGuard(g CommitGuard) { t.guard = g }

// Rollback drops the transaction's writes; nothing of it has left this process. It may be called
// after the transaction has ended, and does nothing then.
func (t *Txn) Rollback(context.Context) error {
	t.end()
	return nil
}

// end forgets the writes, so that a transaction kept for its timestamp does not keep them.
func (t *Txn) end() {
	t.done = true
	t.buf = writeBuffer{}
}

// readOptions are the options of a read at the snapshot.
func (t *Txn) readOptions() kv.ReadOptions {
	return kv.ReadOptions{ReadTS: t.startTS, Bypass: t.bypass, Resolved: t.resolved}
}

// maxKnownTxns bounds bypass and resolved, which shards search for every lock they meet. What is
// forgotten is asked again.
const maxKnownTxns = 256

func (t *Txn) rememberBypass(startTS tso.Timestamp) {
	if len(t.bypass) >= maxKnownTxns {
		t.bypass = append(t.bypass[:0:0], t.bypass[maxKnownTxns/2:]...)
	}
	t.bypass = append(t.bypass, startTS)
}

func (t *Txn) rememberCommitted(startTS, commitTS tso.Timestamp) {
	if len(t.resolved) >= maxKnownTxns {
		t.resolved = append(t.resolved[:0:0], t.resolved[maxKnownTxns/2:]...)
	}
	t.resolved = append(t.resolved, kv.CommittedTxn{StartTS: startTS, CommitTS: commitTS})
}
