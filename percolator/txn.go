package percolator

import (
	"context"
	"time"

	"github.com/percodb/percodb/internal/keypack"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Txn is one transaction: a snapshot, overlaid with its own writes. It implements Reader and Writer. Not safe for
// concurrent use. End it with Commit or Rollback, even if it wrote nothing: until then garbage collection keeps what it
// might read.
type Txn struct {
	db      *DB
	startTS tso.Timestamp
	opts    TxnOptions
	done    bool
	permit  CommitPermit // nil: none is needed
	buf     *writeBuffer // nil until the first write
	snap    *snapshot
	active  activeRef
	locks   *lockSet // of a pessimistic transaction
	reads   *readSet // set if the snapshot may have to advance, or to be valid until the commit
	private privateSpans
	shares  []shareAtCommit // in the order of ExistsAtCommit
	// unrecorded: the snapshot cannot advance, since there are reads from before BeginLocking.
	unrecorded bool

	firstSnap snapshot
}

func newTxn(db *DB, ts tso.Timestamp, opts TxnOptions) *Txn {
	t := &Txn{db: db, startTS: ts, opts: opts, firstSnap: snapshot{db: db, readTS: ts}}
	t.snap = &t.firstSnap
	if opts.ReadOnly {
		return t
	}
	switch {
	case opts.Pessimistic && opts.Isolation != ReadCommitted:
		both := &struct {
			lockSet
			readSet
		}{}
		t.locks, t.reads = &both.lockSet, &both.readSet
	case opts.Pessimistic:
		t.locks = &lockSet{}
	case opts.Isolation == Serializable:
		t.reads = &readSet{}
	}
	if t.locks != nil {
		t.locks.init(db)
	}
	if t.reads != nil {
		t.reads.init(db.opts.MaxReadSpans)
	}
	return t
}

// BeginLocking makes an optimistic transaction a pessimistic one, whose locks exclude others from now on. What it has read so far is not
// known: where a lock would have its snapshot advance, AcquireLocks fails with *mvcc.WriteConflictError.
func (t *Txn) BeginLocking() {
	if t.opts.Pessimistic || t.opts.ReadOnly || t.done {
		return
	}
	t.opts.Pessimistic, t.unrecorded = true, true
	t.locks = &lockSet{loose: t.buf.len() > 0}
	t.locks.init(t.db)
}

var (
	_ Reader = (*Txn)(nil)
	_ Writer = (*Txn)(nil)
)

// StartTS implements Reader.
func (t *Txn) StartTS() tso.Timestamp { return t.startTS }

// ReadTS is the snapshot's timestamp, at least StartTS. It moves only forward, and only in BeginStatement
// and AcquireLocks.
func (t *Txn) ReadTS() tso.Timestamp { return t.snap.readTS }

// Pessimistic reports whether AcquireLocks acquires its locks immediately.
func (t *Txn) Pessimistic() bool { return t.opts.Pessimistic }

// Isolation is the level the transaction was begun with.
func (t *Txn) Isolation() Isolation { return t.opts.Isolation }

// Wrote reports whether there is anything to commit.
func (t *Txn) Wrote() bool { return t.buf.len() > 0 }

// SizeBytes is the size of the write buffer, as Options.MaxTxnBytes counts it.
func (t *Txn) SizeBytes() int64 { return t.buf.size() }

// Put implements Writer.
func (t *Txn) Put(key, value []byte) error {
	return t.write(key, value, changePut)
}

// Insert implements Writer.
func (t *Txn) Insert(key, value []byte) error {
	if t.locks != nil && !t.locks.loose && !t.excludes(key, true) {
		t.locks.loose = true
	}
	return t.write(key, value, changeInsert)
}

// Delete implements Writer. Deleting a key that does not exist is not an error.
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
	case t.opts.ReadOnly:
		return ErrReadOnly
	}
	size := t.buf.size() + int64(len(key)+len(value)+entryOverhead)
	if limit := t.db.opts.MaxTxnBytes; size > limit {
		return &TxnTooLargeError{SizeBytes: size, LimitBytes: limit}
	}
	if value == nil && c.op == mvcc.OpPut {
		value = []byte{} // nil means absent to a reader
	}
	if t.buf == nil {
		t.buf = &writeBuffer{account: memory.NewAccount(t.db.opts.Memory, freeBufferBytes)}
	}
	grown := t.buf.account.Grow(size - t.buf.size())
	if t.buf.memBytes >= t.db.opts.SpillBytes || grown != nil && (t.buf.n > 0 || t.buf.spilling != nil) {
		if err := t.spill(grown != nil); err != nil {
			return err
		}
		grown = t.buf.account.Grow(int64(len(key) + len(value) + entryOverhead))
	}
	if grown != nil {
		return grown
	}
	if len(t.private.list) > 0 {
		t.private.wrote(key)
	}
	t.buf.add(key, value, c)
	t.buf.shrinkAccount() // The write may have replaced one in place.
	return nil
}

// spill moves the entries in memory to a file. scarce: the server's memory is used up.
func (t *Txn) spill(scarce bool) error {
	dir := t.db.opts.TempDir
	var err error
	if scarce {
		err = t.buf.spill(dir)
	} else {
		err = t.buf.spillBeside(dir)
	}
	if err != nil {
		return err
	}
	if err := t.buf.compact(context.Background(), dir, 2*maxRuns); err != nil {
		return err
	}
	if scarce {
		t.buf.spare = nil // The memory is needed elsewhere.
	}
	t.buf.shrinkAccount()
	return nil
}

// MergeRuns merges the writes in files if they are scattered over many runs; ctx may interrupt it. A caller that writes
// much calls it regularly; writes merge too, without regard to a context, but only if it has not been called for long.
func (t *Txn) MergeRuns(ctx context.Context) error {
	return t.buf.compact(ctx, t.db.opts.TempDir, maxRuns)
}

// SetLockTimeout changes TxnOptions.LockTimeout for the waits to come.
func (t *Txn) SetLockTimeout(limit time.Duration) { t.opts.LockTimeout = limit }

// Savepoint marks the present state of the transaction.
func (t *Txn) Savepoint() Savepoint {
	sp := Savepoint{writes: t.buf.freeze()}
	if t.locks != nil {
		sp.locks = t.locks.len()
	}
	return sp
}

// RollbackTo undoes the writes since sp and releases the locks taken since, but for the first of the
// transaction; sp stays valid, savepoints after it do not. Iterators made after sp fail with
// ErrIteratorInvalid.
func (t *Txn) RollbackTo(sp Savepoint) {
	if t.done {
		return
	}
	t.truncate(sp)
	if t.locks != nil {
		ok := true
		t.locks.truncate(sp.locks, t.reads, func(keys [][]byte) {
			ok = ok && t.release(context.Background(), keys, goesOn)
		})
		if t.locks.newest > t.snap.readTS {
			t.locks.findNewest()
		}
	}
}

// truncate takes back the writes since sp.
func (t *Txn) truncate(sp Savepoint) {
	t.truncatePrivate(sp.writes)
	if t.buf == nil {
		return
	}
	t.buf.truncate(sp.writes)
	t.buf.shrinkAccount()
	t.buf.freeze()
}

// Aside calls f, whose reads of the transaction need not be valid when its snapshot advances or it commits: the caller
// reads them again. Iterators must be closed in f.
func (t *Txn) Aside(f func(r Reader) error) error {
	reads := t.reads
	t.reads = nil
	defer func() { t.reads = reads }()
	return f(t)
}

// AsideAt is Aside for reads as of ts, which must be no older than the snapshot, with the transaction's own writes.
func (t *Txn) AsideAt(ts tso.Timestamp, f func(r Reader) error) error {
	snap := t.snap
	t.snap = &snapshot{db: t.db, readTS: ts, requests: snap.requests}
	defer func() { t.snap = snap }()
	return t.Aside(f)
}

// AsideNow is AsideAt of a new timestamp: f reads all that has been committed before the call.
func (t *Txn) AsideNow(ctx context.Context, f func(r Reader) error) error {
	ts, err := t.db.now(ctx)
	if err != nil {
		return err
	}
	return t.AsideAt(ts, f)
}

// SetCommitPermit makes the commit depend on a permit. A transaction that wrote nothing needs none.
func (t *Txn) SetCommitPermit(p CommitPermit) { t.permit = p }

// Rollback drops the transaction's writes and releases its locks. It does nothing if the transaction has ended.
func (t *Txn) Rollback(ctx context.Context) error {
	if !t.done {
		t.releaseAll(ctx, nil)
		t.end()
	}
	return nil
}

// end forgets the writes, so that a transaction kept for its timestamp does not keep them.
func (t *Txn) end() {
	t.done = true
	if t.buf != nil {
		t.buf.close()
		t.buf.account.Close()
	}
	if t.locks != nil {
		t.locks.account.Close()
		t.locks.packed = keypack.Map{}
	}
	t.buf, t.reads, t.private, t.shares = nil, nil, privateSpans{}, nil
	t.db.active.leave(&t.active)
}
