package mvcc

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/internal/invariants"
	"github.com/percodb/percodb/internal/keypack"
	"github.com/percodb/percodb/tso"
)

// lockPack stores many locks of one transaction in few bytes each. Their common fields are stored once in the pack; for
// each lock it stores the key, the timestamp, the kind and which of the pack's notify sets it has. A packed lock is
// durable, has one holder, and no waiters. Its value is in its record on disk.
//
//	lookups    return a view: an entry that is not in the tree, made of what the pack has
//	changes    of what a pack cannot hold (a queue, a second holder, a batch under way) first unpack the lock: own
//
// A lock is packed when it is granted or becomes durable, and not later. For a holder of the key's latch a view is as
// valid as an entry: only latch holders remove the lock, and unpacking does not change the contents of a view.
//
// The primary is never packed, since heartbeats and readers change it; nor are locks of async commits.
type lockPack struct {
	startTS                             tso.Timestamp
	primary                             []byte
	shared                              bool
	ttlMillis, leaseMillis, heardMillis uint64 // of the newest
	process                             uint64
	txnSize                             uint32
	locks                               keypack.Map  // see value
	blocking                            int          // how many of them block reads
	notify                              []*NotifySet // the sets of the locks, each once
	first, last                         []byte       // bounds of the keys
	// large is the transaction's running large commit, if it has checked the keys and relies on the locks: none of them
	// may be removed until it ends.
	large *largeCommit
}

// The number B of a packed lock is its kind, with these flags, and from packedNotifyShift on 1 + the index of its notify
// set in the pack, if it has one. A is ForUpdateTS of a pessimistic lock, else MinCommitTS.
const (
	packedLongValue   = 1 << 4
	packedValueOnDisk = 1 << 5
	packedOpMask      = 0x0f
	packedNotifyShift = 8
)

func (p *lockPack) value(e *entry) keypack.Value {
	v := keypack.Value{A: uint64(e.lock.MinCommitTS), B: uint64(e.lock.Op)}
	switch {
	case e.lock.Op == OpPessimistic:
		v.A = uint64(e.lock.ForUpdateTS)
	case e.longValue:
		v.B |= packedLongValue
	case e.lock.Op == OpPut:
		v.B |= packedValueOnDisk
	}
	v.B |= p.notifyIndex(e.lock.Notify) << packedNotifyShift
	return v
}

// notifyIndex returns 1 + the index of a notify set, 0 for none. A transaction has few different ones.
func (p *lockPack) notifyIndex(n *NotifySet) uint64 {
	if n == nil {
		return 0
	}
	for i := len(p.notify) - 1; i >= 0; i-- {
		if p.notify[i].equal(n) {
			return uint64(i + 1)
		}
	}
	p.notify = append(p.notify, n)
	return uint64(len(p.notify))
}

// view returns the packed lock on key as an entry. A lock that a large commit relies on looks like one that it has put in
// its place.
func (p *lockPack) view(key []byte, v keypack.Value) entry {
	e := entry{key: key, pack: p, state: stateDurable,
		longValue: v.B&packedLongValue != 0, valueOnDisk: v.B&packedValueOnDisk != 0}
	e.lock = Lock{Op: Op(v.B & packedOpMask), StartTS: p.startTS, Primary: p.primary, Shared: p.shared,
		TTLMillis: p.ttlMillis, LeaseMillis: p.leaseMillis, HeardMillis: p.heardMillis, Process: p.process}
	if e.lock.Op == OpPessimistic {
		e.lock.ForUpdateTS = tso.Timestamp(v.A)
	} else {
		e.lock.MinCommitTS, e.lock.TxnSize = tso.Timestamp(v.A), p.txnSize
	}
	if i := v.B >> packedNotifyShift; i != 0 {
		e.lock.Notify = p.notify[i-1]
	}
	if p.large != nil {
		e.lock.Op, e.onePC, e.state = OpLock, true, stateInflight
	}
	return e
}

// packLocksFrom is how many locks a transaction has before more of them are packed: the first few tens of thousands
// stay where they are found a little faster.
const packLocksFrom = 32 << 10

func (o *Options) packLocksFrom() int {
	switch {
	case o.PackLocks != 0:
		return o.PackLocks
	case invariants.Enabled:
		return 0 // so that tests meet packed locks everywhere
	default:
		return packLocksFrom
	}
}

// packable reports whether a durable lock may be packed; size is how many the transaction has.
func (t *lockTable) packable(e *entry, size uint32) bool {
	return int64(size) >= int64(t.packFrom) && !e.lock.Async && e.queue == nil && len(e.sharers) == 0 &&
		!bytes.Equal(e.key, e.lock.Primary)
}

// packLocked puts a lock that is not in the tree into its pack. The counts are the caller's business.
func (t *lockTable) packLocked(e *entry) {
	p := t.packForLocked(&e.lock, nil)
	p.ttlMillis = max(p.ttlMillis, e.lock.TTLMillis)
	p.heardMillis = max(p.heardMillis, e.lock.HeardMillis)
	p.leaseMillis, p.txnSize = e.lock.LeaseMillis, max(p.txnSize, e.lock.TxnSize)
	if e.lock.blocksReads() {
		p.blocking++
	}
	p.set(e.key, p.value(e))
}

func (p *lockPack) set(key []byte, v keypack.Value) {
	if p.first == nil || bytes.Compare(key, p.first) < 0 {
		p.first = append(p.first[:0], key...)
	}
	if bytes.Compare(key, p.last) > 0 {
		p.last = append(p.last[:0], key...)
	}
	p.locks.Set(key, v)
}

// packForLocked returns the pack for a lock on which large relies, nil being none; it is made if there is none.
func (t *lockTable) packForLocked(l *Lock, large *largeCommit) *lockPack {
	for _, p := range t.packs {
		if p.startTS == l.StartTS && p.shared == l.Shared && p.large == large && bytes.Equal(p.primary, l.Primary) {
			return p
		}
	}
	p := &lockPack{startTS: l.StartTS, primary: bytes.Clone(l.Primary), shared: l.Shared, large: large, process: l.Process}
	t.packs = append(t.packs, p)
	return p
}

// packedLocked returns a view of the packed lock on key, or nil; the view's key is the caller's.
func (t *lockTable) packedLocked(key []byte) *entry {
	for _, p := range t.packs {
		if v, found := p.get(key); found {
			e := p.view(key, v)
			return &e
		}
	}
	return nil
}

func (p *lockPack) get(key []byte) (v keypack.Value, found bool) {
	if bytes.Compare(key, p.first) < 0 || bytes.Compare(key, p.last) > 0 {
		return v, false
	}
	return p.locks.Get(key)
}

// ownLocked returns the entry that e is a view of, in the tree; e itself if it is no view, nil if the lock has gone. The
// caller holds mu for writing.
func (t *lockTable) ownLocked(e *entry) *entry {
	if e == nil || e.pack == nil {
		return e
	}
	var f finger
	if own := t.tree.get(&f, e.key); own != nil {
		return own
	}
	own := t.unpackLocked(e.pack, e.key)
	if own != nil {
		t.tree.put(&f, own)
	}
	return own
}

// unpackLocked takes a lock out of its pack and returns it, or nil. The counts stay.
func (t *lockTable) unpackLocked(p *lockPack, key []byte) *entry {
	v, found := p.locks.Delete(key)
	if !found {
		return nil
	}
	own := p.view(bytes.Clone(key), v)
	if own.pack = nil; own.lock.blocksReads() {
		p.blocking--
	}
	t.dropIfEmptyLocked(p)
	return &own
}

func (t *lockTable) dropIfEmptyLocked(p *lockPack) {
	if p.locks.Len() == 0 {
		t.packs = slices.DeleteFunc(t.packs, func(o *lockPack) bool { return o == p })
	}
}

// dropPackedLocked removes the lock that e is a view of.
func (t *lockTable) dropPackedLocked(e *entry) {
	if gone := t.unpackLocked(e.pack, e.key); gone != nil {
		t.forgetLocked(gone)
	}
}

// takePackedLocked is unpackLocked for callers that replace the lock on key.
func (t *lockTable) takePackedLocked(key []byte) *entry {
	for _, p := range t.packs {
		if _, found := p.get(key); found { // which costs less than an attempt to delete it
			return t.unpackLocked(p, key)
		}
	}
	return nil
}

// holdPackedLocked makes a large commit rely on a packed pessimistic lock of its transaction, of which e is a view.
func (t *lockTable) holdPackedLocked(c *largeCommit, e *entry) {
	v, _ := e.pack.locks.Delete(e.key)
	t.dropIfEmptyLocked(e.pack)
	held := t.packForLocked(&e.lock, c)
	held.ttlMillis, held.heardMillis, held.leaseMillis = e.lock.TTLMillis, e.lock.HeardMillis, e.lock.LeaseMillis
	held.set(e.key, v)
}

// leavePacksLocked ends the reliance of a large commit on packed locks: they go if the transaction has committed.
func (t *lockTable) leavePacksLocked(c *largeCommit, committed bool) {
	t.packs = slices.DeleteFunc(t.packs, func(p *lockPack) bool {
		if p.large != c {
			return false
		}
		if p.large = nil; !committed {
			return false
		}
		t.n.Add(-int64(p.locks.Len()))
		return true
	})
}

// ascendPackedLocked is ascendLocked where there are packs: it merges them with the tree.
func (t *lockTable) ascendPackedLocked(packs []*lockPack, start, end []byte, f func(*entry) bool) {
	w := newPackWalk(packs, start, end, true)
	t.tree.ascend(start, func(e *entry) bool {
		return (len(end) == 0 || bytes.Compare(e.key, end) < 0) && w.upTo(e.key, f) && w.call(e, f)
	})
	w.rest(f)
}

// descendPackedLocked is ascendPackedLocked from the end.
func (t *lockTable) descendPackedLocked(packs []*lockPack, start, end []byte, f func(*entry) bool) {
	w := newPackWalk(packs, start, end, false)
	t.tree.descend(end, func(e *entry) bool {
		return bytes.Compare(e.key, start) >= 0 && w.upTo(e.key, f) && w.call(e, f)
	})
	w.rest(f)
}

// blockingPacksLocked returns the packs that have locks which block reads.
func (t *lockTable) blockingPacksLocked() (packs []*lockPack) {
	for _, p := range t.packs {
		if p.blocking > 0 {
			packs = append(packs, p)
		}
	}
	return packs
}

// begunPacksLocked returns the packs of transactions that began at or below ts, of one process unless it is 0.
func (t *lockTable) begunPacksLocked(ts tso.Timestamp, process uint64) (packs []*lockPack) {
	for _, p := range t.packs {
		if p.startTS <= ts && (process == 0 || p.process == process) {
			packs = append(packs, p)
		}
	}
	return packs
}

// packWalk walks over the locks of packs in [start, end).
type packWalk struct {
	start, end []byte
	forward    bool
	parts      []packCursor // those that are not at their end
	stopped    bool
	view       entry
}

type packCursor struct {
	*keypack.Cursor
	pack *lockPack
}

func newPackWalk(packs []*lockPack, start, end []byte, forward bool) *packWalk {
	w := &packWalk{start: start, end: end, forward: forward}
	for _, p := range packs {
		c := packCursor{p.locks.NewCursor(), p}
		if forward {
			c.SeekGE(start)
		} else {
			c.SeekLT(end)
		}
		if w.within(c) {
			w.parts = append(w.parts, c)
		}
	}
	return w
}

func (w *packWalk) within(c packCursor) bool {
	if !c.Valid() {
		return false
	}
	if w.forward {
		return len(w.end) == 0 || bytes.Compare(c.Key(), w.end) < 0
	}
	return bytes.Compare(c.Key(), w.start) >= 0
}

// first returns the part that comes first in the walk's order, -1 at the end.
func (w *packWalk) first() int {
	best := -1
	for i := range w.parts {
		if best < 0 || (bytes.Compare(w.parts[i].Key(), w.parts[best].Key()) < 0) == w.forward {
			best = i
		}
	}
	return best
}

// upTo calls f for the locks that come before key, until it returns false.
func (w *packWalk) upTo(key []byte, f func(*entry) bool) bool {
	for i := w.first(); i >= 0; i = w.first() {
		c := &w.parts[i]
		if key != nil && (bytes.Compare(c.Key(), key) < 0) != w.forward {
			break
		}
		w.view = c.pack.view(c.Key(), c.Value())
		if !w.call(&w.view, f) {
			return false
		}
		if w.forward {
			c.Next()
		} else {
			c.Prev()
		}
		if !w.within(*c) {
			w.parts = slices.Delete(w.parts, i, i+1)
		}
	}
	return true
}

func (w *packWalk) call(e *entry, f func(*entry) bool) bool {
	w.stopped = w.stopped || !f(e)
	return !w.stopped
}

// rest calls f for the locks that are left, unless it has returned false.
func (w *packWalk) rest(f func(*entry) bool) {
	if !w.stopped {
		w.upTo(nil, f)
	}
}
