package percolator

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/internal/keypack"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// lockSet contains the locks of a pessimistic transaction. The first key it locks is its primary (I5) and stays locked
// until the end, so that the status of the other locks can always be determined. Not safe for concurrent use, except by
// the lease.
type lockSet struct {
	held  []heldLock // in the order in which they were taken; held[0] is the primary
	index keyIndex   // positions in held, once there are many
	// packed are the locks taken after packFrom others; see packedHeld.
	packed       keypack.Map
	packFrom     int
	packedShared int // how many of them are shared
	next         int // find starts here
	primary      []byte
	lease        lease
	begun        time.Time // when the transaction began, by the local clock
	// stray are keys whose request was not answered; they may be locked, or be yet.
	stray   [][]byte
	strayMu sync.Mutex
	// newest is the largest at of the locks. Until the snapshot has advanced to it, the values read may differ from
	// those locked.
	newest tso.Timestamp
	// loose: a key was inserted without having been locked; then only the write buffer can detect a second insertion.
	loose bool

	// account reserves the memory of the locks, here and in a store of this process: sizeBytes. heldBytes is the part of the locks
	// in held, and of shared ones, which a commit lists.
	account   memory.Account
	heldBytes int64

	acquiring lockRequests
	heldSpace [4]heldLock
}

// init prepares an empty set for a transaction that locks from now on.
func (l *lockSet) init(db *DB) {
	l.begun, l.held, l.packFrom = time.Now(), l.heldSpace[:0], db.opts.PackLocks
	l.account = memory.NewAccount(db.opts.LockMemory, freeLockBytes)
}

// lockOverheadBytes is the cost of a lock in addition to two copies of its key: the store's entry in its table, and the
// transaction's entry in its index. freeLockBytes is the size of a transaction's locks up to which nothing is reserved
// from the pool.
const (
	lockOverheadBytes = 400
	freeLockBytes     = 64 << 10
)

func lockBytes(key []byte) int64 { return lockOverheadBytes + 2*int64(len(key)) }

// conflict returns the error of a transaction whose snapshot cannot advance to the newest of its locks.
func (l *lockSet) conflict(startTS, readTS tso.Timestamp) error {
	e := &mvcc.WriteConflictError{StartTS: startTS, ConflictingCommitTS: l.newest}
	for i := range l.held {
		if h := &l.held[i]; h.later(readTS) {
			e.Key = h.key
		}
	}
	return e
}

// sizeBytes is what the locks count for. The store packs them as the transaction does.
func (l *lockSet) sizeBytes() int64 { return l.heldBytes + 2*l.packed.SizeBytes() }

// len is the number of locks.
func (l *lockSet) len() int { return len(l.held) + l.packed.Len() }

// The number A of a packed lock is heldLock.at, B its position among all locks, in the order in which they were taken, above
// these bits.
const (
	packedKnownMask = 0x3
	packedShared    = 0x4
	packedBits      = 3
)

func packHeld(h *heldLock, position int) keypack.Value {
	v := keypack.Value{A: uint64(h.at), B: uint64(position)<<packedBits | uint64(h.known)}
	if h.shared {
		v.B |= packedShared
	}
	return v
}

// packedHeld returns a packed lock.
func packedHeld(key []byte, v keypack.Value) heldLock {
	return heldLock{key: key, at: tso.Timestamp(v.A), shared: v.B&packedShared != 0, known: existence(v.B & packedKnownMask)}
}

// heldLock is one key. Nothing newer than at had been committed on it when it was locked.
type heldLock struct {
	key    []byte
	at     tso.Timestamp
	shared bool
	known  existence
	aside  bool // LockOptions.Aside
	// settled: the key is among the mutations of the commit that leave a lock.
	settled bool
}

// later reports whether the key has changed since the snapshot at readTS, which does not allow that.
func (h *heldLock) later(readTS tso.Timestamp) bool { return h.at > readTS && !h.aside }

// settle makes a mutation of the key, which is m's, rely on the lock.
func (h *heldLock) settle(m *mvcc.Mutation) {
	if m.Op == mvcc.OpCheckNotExists {
		m.Op, m.MustBeNew = mvcc.OpLock, h.known != absent // the lock ends with the transaction, like any other
	}
	if h.checked(m) {
		m.MustBeNew = false
	}
	m.LockedAt, h.settled = h.at, true
}

// unwritten returns the lock's mutation if the key is not written. A shared lock is only checked, and is released after
// the commit.
func (h *heldLock) unwritten() mvcc.Mutation {
	if h.shared {
		return mvcc.Mutation{Op: mvcc.OpCheckShared, Key: h.key, LockedAt: h.at}
	}
	h.settled = true
	return mvcc.Mutation{Op: mvcc.OpLock, Key: h.key, LockedAt: h.at}
}

// existence records whether a locked key has a value, this transaction's writes aside. It was determined when the key
// was locked, and remains valid while it is locked.
type existence uint8

const (
	unknown existence = iota
	absent
	present
)

// manyLocks is from where on an index pays.
const manyLocks = 16

// get returns the lock on key.
func (l *lockSet) get(key []byte) (h heldLock, found bool) {
	if i := l.find(key); i >= 0 {
		return l.held[i], true
	}
	v, found := l.packed.Get(key)
	return packedHeld(key, v), found
}

// find returns the position of key in held, or -1: it may be packed.
func (l *lockSet) find(key []byte) int {
	if len(l.held) > manyLocks {
		// Keys that were locked together are often looked up in order.
		if i := l.next; i < len(l.held) && bytes.Equal(l.held[i].key, key) {
			l.next++
			return i
		}
		i := l.index.find(l.held, key)
		if i >= 0 {
			l.next = i + 1
		}
		return i
	}
	for i := range l.held {
		if bytes.Equal(l.held[i].key, key) {
			return i
		}
	}
	return -1
}

// add records that key is locked, or locked more strongly than before.
func (l *lockSet) add(key []byte, g grant, opts *LockOptions) {
	h := heldLock{key: key, at: g.at, shared: opts.Shared, aside: opts.Aside}
	if !h.aside {
		l.newest = max(l.newest, g.at)
	}
	switch {
	case !opts.Existence:
	case g.exists:
		h.known = present
	default:
		h.known = absent
	}
	if i := l.find(key); i >= 0 {
		h.key = l.held[i].key
		l.held[i] = h
		return
	}
	if len(l.held) >= l.packFrom && !h.aside {
		l.addPacked(&h)
		return
	}
	l.held = append(l.held, h)
	l.heldBytes += lockBytes(key)
	if len(l.held) > manyLocks {
		l.index.sync(l.held)
	}
}

func (l *lockSet) addPacked(h *heldLock) {
	position := l.len()
	if old, found := l.packed.Get(h.key); found {
		position = int(old.B >> packedBits)
		l.uncountPacked(h.key, old)
	}
	if h.shared {
		l.packedShared++
		l.heldBytes += lockBytes(h.key)
	}
	l.packed.Set(h.key, packHeld(h, position))
}

// uncountPacked takes a packed lock that goes off the counts.
func (l *lockSet) uncountPacked(key []byte, v keypack.Value) {
	if v.B&packedShared != 0 {
		l.packedShared--
		l.heldBytes -= lockBytes(key)
	}
}

// holds says that key is locked at least as strongly as asked.
func (l *lockSet) holds(key []byte, shared bool) bool {
	h, found := l.get(key)
	return found && (shared || !h.shared)
}

// truncate forgets the locks from position n on, the primary excepted, and calls release with their keys, in groups each of
// which ascends. Whether a key exists was kept true by its lock; from now on that is a read like others.
func (l *lockSet) truncate(n int, reads *readSet, release func(keys [][]byte)) {
	n = max(n, 1)
	for from := []byte(nil); l.packed.Len() > 0; {
		keys := l.packed.KeysFrom(from, uint64(n)<<packedBits, maxRequestKeys)
		if len(keys) == 0 {
			break
		}
		from = keys[len(keys)-1]
		for _, key := range keys {
			v, _ := l.packed.Delete(key)
			l.uncountPacked(key, v)
			if h := packedHeld(key, v); reads != nil && h.known != unknown {
				reads.addPoint(key)
			}
		}
		release(keys)
	}
	if n < len(l.held) {
		release(l.truncateHeld(n, reads))
	}
	l.account.Shrink(max(0, l.account.Used()-l.sizeBytes()))
}

// findNewest sets newest when locks have gone.
func (l *lockSet) findNewest() {
	l.newest = 0
	for i := range l.held {
		if !l.held[i].aside {
			l.newest = max(l.newest, l.held[i].at)
		}
	}
	c := l.packed.NewCursor()
	for ok := c.SeekGE(nil); ok; ok = c.Next() {
		l.newest = max(l.newest, tso.Timestamp(c.Value().A))
	}
}

func (l *lockSet) truncateHeld(n int, reads *readSet) [][]byte {
	keys := make([][]byte, 0, len(l.held)-n)
	for i := n; i < len(l.held); i++ {
		h := &l.held[i]
		keys = append(keys, h.key)
		l.heldBytes -= lockBytes(h.key)
		if reads != nil && h.known != unknown {
			reads.addPoint(h.key)
		}
	}
	l.index.cut(l.held, n)
	clear(l.held[n:])
	l.held = l.held[:n]
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// eachPacked calls f with the keys of the packed locks that it has to release after the commit, or, if all is true, of all of
// them, in groups, until it returns false.
func (l *lockSet) eachPacked(all bool, f func(keys [][]byte) bool) {
	if l.packed.Len() == 0 || !all && l.packedShared == 0 {
		return
	}
	var keys [][]byte
	c := l.packed.NewCursor()
	for ok := c.SeekGE(nil); ok; ok = c.Next() {
		if !all && c.Value().B&packedShared == 0 {
			continue
		}
		if keys = append(keys, bytes.Clone(c.Key())); len(keys) == maxRequestKeys {
			if !f(keys) {
				return
			}
			keys = keys[:0]
		}
	}
	if len(keys) > 0 {
		f(keys)
	}
}

// inOrder returns a cursor over all locks by key.
func (l *lockSet) inOrder() *heldCursor {
	c := &heldCursor{held: make([]*heldLock, len(l.held))}
	for i := range l.held {
		c.held[i] = &l.held[i]
	}
	slices.SortFunc(c.held, func(a, b *heldLock) int { return bytes.Compare(a.key, b.key) })
	if l.packed.Len() > 0 {
		c.packed = l.packed.NewCursor()
		c.packed.SeekGE(nil)
	}
	return c
}

// heldCursor walks over a transaction's locks by key. A nil one is at its end.
type heldCursor struct {
	held   []*heldLock // not passed yet
	packed *keypack.Cursor
	first  heldLock // of packed
}

// head returns the present lock, nil at the end. Its key is valid until the next move.
func (c *heldCursor) head() *heldLock {
	if c == nil {
		return nil
	}
	if c.packed == nil || !c.packed.Valid() {
		if len(c.held) == 0 {
			return nil
		}
		return c.held[0]
	}
	if len(c.held) > 0 && bytes.Compare(c.held[0].key, c.packed.Key()) < 0 {
		return c.held[0]
	}
	c.first = packedHeld(c.packed.Key(), c.packed.Value())
	return &c.first
}

// pass moves to the next lock.
func (c *heldCursor) pass() {
	if h := c.head(); h == &c.first {
		c.packed.Next()
	} else {
		c.held = c.held[1:]
	}
}

// keysBut returns the keys that are or may be locked and are not among the mutations, in order.
func (l *lockSet) keysBut(mutations []mvcc.Mutation) [][]byte {
	var keys [][]byte
	keep := func(key []byte) {
		at, written := slices.BinarySearchFunc(mutations, key, compareMutation)
		if !written || !mutations[at].Op.LeavesLock() {
			keys = append(keys, key)
		}
	}
	for i := range l.held {
		if h := &l.held[i]; !h.settled || mutations == nil {
			keep(h.key)
		}
	}
	for _, key := range l.stray {
		keep(key)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// openMillis is how long the transaction has been open: the maximum according to the local clock and to the newest
// timestamp it has, in case the local clock has not advanced.
func (t *Txn) openMillis() uint64 {
	local := time.Since(t.locks.begun).Milliseconds()
	return uint64(max(0, local, t.snap.readTS.Physical()-t.startTS.Physical()))
}

// BeginStatement is called when a statement begins. Read committed takes a new snapshot for it; the other levels record
// which reads belong to the statement.
func (t *Txn) BeginStatement(ctx context.Context) error {
	switch {
	case t.done:
		return ErrTxnDone
	case t.opts.Isolation == ReadCommitted:
		ts, err := t.db.now(ctx)
		if err != nil {
			return err
		}
		t.moveTo(ts)
	case t.reads != nil:
		t.reads.beginStatement()
	}
	return nil
}

// KeepReads makes all reads so far count as those of earlier statements: they must hold when the snapshot
// moves, although a statement has begun. Call it after reading on behalf of another statement.
func (t *Txn) KeepReads() {
	if t.reads != nil {
		t.reads.beginStatement()
	}
}

// moveTo moves the snapshot, which the caller has found to be allowed.
func (t *Txn) moveTo(ts tso.Timestamp) {
	t.buf.noteMove(t.snap.readTS)
	if t.opts.Isolation == ReadCommitted {
		// Iterators of earlier statements go on reading at theirs.
		t.snap = &snapshot{db: t.db, readTS: ts, requests: t.snap.requests}
		return
	}
	t.snap.move(ts)
}

// RestartStatement undoes the writes since sp, which was taken where the statement began. Unlike
// RollbackTo it keeps the locks.
func (t *Txn) RestartStatement(sp Savepoint) {
	if !t.done {
		t.truncate(sp)
	}
}

// AcquireLocks prevents other transactions from changing keys until the transaction ends, or rolls back to an earlier
// savepoint. It retains the keys slice. skipped[i] reports that keys[i] was skipped, as SkipLocked requests; nil means
// that none was. In an optimistic transaction it is LockKeys.
//
// In a pessimistic transaction it waits for the holders of a key, in order of arrival, and returns when all are granted
// or none. Keys of private spans are granted without a lock. Errors: ErrRestartStatement, if the keys are locked but
// have changed since the snapshot; *mvcc.WriteConflictError if the snapshot then could not be advanced because something
// that the transaction has read changed too, or because it was rolled back by others; *mvcc.DeadlockError;
// *LockNotAvailableError; *memory.ExceededError, if Options.LockMemory is exhausted; errors of routing, and of the
// context. After an error other than ErrRestartStatement and *LockNotAvailableError the transaction should be rolled
// back.
func (t *Txn) AcquireLocks(ctx context.Context, opts LockOptions, keys ...[]byte) (skipped []bool, err error) {
	switch {
	case t.done:
		return nil, ErrTxnDone
	case t.opts.ReadOnly:
		return nil, ErrReadOnly
	case !t.opts.Pessimistic:
		return nil, t.LockKeys(ctx, keys...)
	case t.locks.lease.doomed.Load():
		return nil, rolledBack(t.locks.primary, t.startTS)
	}
	if wanted := t.unlocked(keys, opts.Shared); len(wanted) > 0 {
		a := &t.locks.acquiring
		a.t, a.opts, a.deadline = t, opts, time.Time{}
		got := a.gotOne[:]
		if a.gotOne[0] = (grant{}); len(wanted) > 1 {
			got = make([]grant, len(wanted))
		}
		draw := int64(0)
		for _, key := range wanted {
			draw += lockBytes(key)
		}
		if err := t.locks.account.Grow(draw); err != nil {
			return nil, err
		}
		had := t.locks.sizeBytes()
		err := a.run(ctx, wanted, got)
		for i := range got {
			if err == nil && got[i].at != 0 {
				t.locks.add(wanted[i], got[i], &a.opts)
			}
		}
		t.locks.account.Shrink(draw - (t.locks.sizeBytes() - had)) // for keys that were skipped, refused or locked before
		if err != nil {
			return nil, err
		}
		if opts.SkipLocked {
			skipped = t.skippedOf(keys, opts.Shared)
		}
	}
	if t.locks.newest > t.snap.readTS {
		return skipped, t.moveSnapshot(ctx)
	}
	return skipped, nil
}

// excludes reports whether no other transaction can change key: it is locked, or private.
func (t *Txn) excludes(key []byte, shared bool) bool {
	return t.private.find(key) != nil || t.locks.holds(key, shared)
}

// unlocked returns those of keys that are yet to be locked, ascending and each once.
func (t *Txn) unlocked(keys [][]byte, shared bool) [][]byte {
	if len(keys) == 1 {
		if t.excludes(keys[0], shared) {
			return nil
		}
		return keys
	}
	wanted := make([][]byte, 0, len(keys))
	for _, key := range keys {
		if !t.excludes(key, shared) {
			wanted = append(wanted, key)
		}
	}
	if strictlyAscending(wanted) {
		return wanted
	}
	slices.SortFunc(wanted, bytes.Compare)
	return slices.CompactFunc(wanted, bytes.Equal)
}

func (t *Txn) skippedOf(keys [][]byte, shared bool) []bool {
	var skipped []bool
	for i, key := range keys {
		if !t.excludes(key, shared) {
			if skipped == nil {
				skipped = make([]bool, len(keys))
			}
			skipped[i] = true
		}
	}
	return skipped
}
