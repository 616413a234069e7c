package mvcc

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// entryState is the state of the disk relative to the table.
type entryState uint8

const (
	// stateInflight: the batch that creates the lock (or, for one-phase commit, the versions) has
	// not been synced.
	stateInflight entryState = iota
	// stateDurable: the lock is on disk, and is not being removed.
	stateDurable
	// stateFinishing: the batch that removes the lock has not been synced.
	stateFinishing
)

// entry is a lock in memory. key, onePC, longValue and the lock's Op, StartTS, Primary and Value do not change. The rest
// is guarded by lockTable.mu; a writer of these fields holds the key's latch too, except for the transitions from
// inflight to durable, and from inflight or finishing to removed or to the next waiter, which follow a sync. The memory
// of a onePC entry is then reused. A pessimistic lock is durable from the start, since it is never on disk.
type entry struct {
	key       []byte
	lock      Lock
	longValue bool // the value is a data record, lock.Value is nil
	onePC     bool // never on disk; MinCommitTS is the commit_ts, or a bound below it until known
	state     entryState
	done      chan struct{} // made by the first waiter, closed when state changes or the entry goes

	sharers []Lock // further holders of a shared lock
	queue   *queue // waiters for the key in AcquireLocks, nil if there are none
	under   *entry // while inflight: the transaction's pessimistic lock, which this one has replaced

	pack        *lockPack // of a view of a packed lock: the lock is there, and this entry not in the table
	valueOnDisk bool      // the value is in the lock's record, lock.Value is nil
}

// blocksReads reports whether a read may have to handle the lock.
func (l *Lock) blocksReads() bool { return l.Op == OpPut || l.Op == OpDelete }

// holderOf returns the lock by which a transaction holds the key, or nil.
func (e *entry) holderOf(startTS tso.Timestamp) *Lock {
	if e.lock.StartTS == startTS {
		return &e.lock
	}
	for i := range e.sharers {
		if e.sharers[i].StartTS == startTS {
			return &e.sharers[i]
		}
	}
	return nil
}

// otherThan returns a lock on the key by another transaction, or nil.
func (e *entry) otherThan(startTS tso.Timestamp) *Lock {
	if e.lock.StartTS != startTS {
		return &e.lock
	}
	if len(e.sharers) > 0 {
		return &e.sharers[0]
	}
	return nil
}

// lockTable holds every lock of a store in key order. Safe for concurrent use.
type lockTable struct {
	n        atomic.Int64 // entries; writers skip the table if it is 0
	blocking atomic.Int64 // entries that block reads; readers skip the table if it is 0
	mu       sync.RWMutex
	tree     *lockTree
	largeN   atomic.Int64 // large commits in progress; writers skip them if it is 0
	large    []*largeCommit
	packs    []*lockPack
	packFrom int // see packable

	graph   *waitgraph.Local // the waits in all queues; changed under mu
	stopped error            // the error of all waits, once set
	stats   lockStats
	clock   func() time.Duration // monotonic
}

func newLockTable(opts *Options) *lockTable {
	return &lockTable{
		tree:     newLockTree(),
		packFrom: opts.packLocksFrom(),
		graph:    waitgraph.NewLocal(),
		clock:    opts.Clock,
	}
}

// millis is the shard's monotonic clock.
func (t *lockTable) millis() uint64 { return uint64(t.clock().Milliseconds()) }

// silent returns for how long the owner of a lock has sent no request for it. The caller holds the key's
// latch.
func (t *lockTable) silent(l *Lock) uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.millis() - l.HeardMillis
}

// getLocked returns the entry of key, which may be a view of a packed lock, or nil. The caller holds mu, for
// reading at least.
func (t *lockTable) getLocked(key []byte) *entry {
	if t.n.Load() == 0 {
		return nil
	}
	var f finger
	e := t.tree.get(&f, key)
	if e == nil && len(t.packs) > 0 {
		e = t.packedLocked(key)
	}
	return e
}

// getBlockingLocked is getLocked without the packs whose locks block no reads.
func (t *lockTable) getBlockingLocked(key []byte) *entry {
	var f finger
	e := t.tree.get(&f, key)
	for i := 0; e == nil && i < len(t.packs); i++ {
		if p := t.packs[i]; p.blocking > 0 {
			if v, found := p.get(key); found {
				view := p.view(key, v)
				e = &view
			}
		}
	}
	return e
}

// get returns the entry of key and its state, or nil. The holder of the key's latch may read all fields of a durable
// entry, because only latch holders change them.
func (t *lockTable) get(key []byte) (e *entry, state entryState) {
	t.mu.RLock()
	if e = t.getLocked(key); e != nil {
		state = e.state
	}
	t.mu.RUnlock()
	return e, state
}

// startTS returns the start_ts of the lock on key, or 0, for callers without latches.
func (t *lockTable) startTS(key []byte) tso.Timestamp {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.getLocked(key); e != nil {
		return e.lock.StartTS
	}
	return 0
}

// near is where one request has last looked, whose keys ascend and are latched.
type near struct {
	finger finger
	// free: there are no locks from the last key on, up to end; up to the last if that is empty. No other request can
	// add one to the request's keys.
	free bool
	end  []byte
}

// forget is called when latches are taken.
func (n *near) forget() { n.finger, n.free, n.end = finger{}, false, n.end[:0] }

// passes reports whether key is known to be free.
func (n *near) passes(key []byte) bool {
	return n.free && (len(n.end) == 0 || bytes.Compare(key, n.end) < 0)
}

// getNear is get for one of a request's keys. The caller holds its latch.
func (t *lockTable) getNear(n *near, key []byte) (e *entry, state entryState) {
	if t.n.Load() == 0 || n.passes(key) {
		return nil, stateDurable
	}
	t.mu.RLock()
	if e = t.getNearLocked(n, key); e != nil {
		state = e.state
	}
	t.mu.RUnlock()
	return e, state
}

func (t *lockTable) getNearLocked(n *near, key []byte) *entry {
	e := t.tree.get(&n.finger, key)
	if e == nil && len(t.packs) > 0 {
		n.free = false
		return t.packedLocked(key)
	}
	if n.free = e == nil; n.free {
		n.end = n.end[:0]
		if next := t.tree.following(&n.finger); next != nil {
			n.end = append(n.end, next.key...)
		}
	}
	return e
}

// ascendLocked calls f for the entries of [start, end) in order until f returns false. An empty
// end means no bound. The caller holds mu, for reading at least. An entry that is a view is valid until f returns.
func (t *lockTable) ascendLocked(start, end []byte, f func(*entry) bool) {
	if len(t.packs) > 0 {
		t.ascendPackedLocked(t.packs, start, end, f)
		return
	}
	t.ascendTreeLocked(start, end, f)
}

// ascendTreeLocked is ascendLocked without the packed locks.
func (t *lockTable) ascendTreeLocked(start, end []byte, f func(*entry) bool) {
	t.tree.ascend(start, func(e *entry) bool {
		return (len(end) == 0 || bytes.Compare(e.key, end) < 0) && f(e)
	})
}

// ascendBlockingLocked is ascendLocked without the packs whose locks block no reads.
func (t *lockTable) ascendBlockingLocked(start, end []byte, f func(*entry) bool) {
	if packs := t.blockingPacksLocked(); len(packs) > 0 {
		t.ascendPackedLocked(packs, start, end, f)
		return
	}
	t.ascendTreeLocked(start, end, f)
}

// descendBlockingLocked is ascendBlockingLocked from the end.
func (t *lockTable) descendBlockingLocked(start, end []byte, f func(*entry) bool) {
	if packs := t.blockingPacksLocked(); len(packs) > 0 {
		t.descendPackedLocked(packs, start, end, f)
		return
	}
	t.tree.descend(end, func(e *entry) bool { return bytes.Compare(e.key, start) >= 0 && f(e) })
}

// occupied reports whether the table has a lock in [start, end), or another transaction's large commit may hold a
// key there.
func (t *lockTable) occupied(start, end []byte, startTS tso.Timestamp) (found bool) {
	for _, c := range t.otherLargeCommits(startTS) {
		if from, _ := c.firstIn(start, end); from != nil {
			return true
		}
	}
	if t.n.Load() == 0 {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.ascendLocked(start, end, func(*entry) bool { found = true; return false })
	return found
}

// chunk bounds how many entries are put in or taken out in one critical section, so that a bulk
// load does not keep readers out for long.
const chunk = 4096

// insert adds entries and then, in the critical section of the last, reads maxTS and gives every entry a MinCommitTS
// above it, above startTS, above floor, and above the timestamps as of which the keys were locked (I1 of the package).
// It returns that MinCommitTS. Until then readers above startTS treat the transaction as undecided. The transaction's
// pessimistic locks are replaced, and their queues are moved to the new entries.
func (t *lockTable) insert(entries []entry, startTS, floor tso.Timestamp, maxTS *atomic.Uint64) tso.Timestamp {
	for rest := entries; len(rest) > chunk; rest = rest[chunk:] {
		t.insertChunk(rest[:chunk], startTS)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.insertLocked(entries[(max(len(entries), 1)-1)/chunk*chunk:])
	minCommitTS := max(tso.Timestamp(maxTS.Load()), startTS, floor) + 1
	for i := range entries {
		minCommitTS = max(minCommitTS, entries[i].lock.ForUpdateTS+1)
	}
	for i := range entries {
		entries[i].lock.MinCommitTS = minCommitTS
	}
	return minCommitTS
}

func (t *lockTable) insertChunk(entries []entry, startTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		entries[i].lock.MinCommitTS = startTS + 1
	}
	t.insertLocked(entries)
}

func (t *lockTable) insertLocked(entries []entry) {
	var f finger
	for i := range entries {
		t.putLocked(&f, &entries[i])
	}
}

// putLocked adds an entry, in the place of the transaction's own one if it has one on the key.
func (t *lockTable) putLocked(f *finger, e *entry) {
	if e.lock.blocksReads() {
		t.blocking.Add(1)
	}
	t.n.Add(1)
	old := t.tree.put(f, e)
	if old == nil && len(t.packs) > 0 {
		old = t.takePackedLocked(e.key)
	}
	if old == nil {
		return
	}
	t.forgetLocked(old)
	e.queue, old.queue = old.queue, nil
	e.lock.TTLMillis = max(e.lock.TTLMillis, old.lock.TTLMillis)
	if e.under = old.under; old.lock.Op == OpPessimistic {
		e.under = old
	}
	old.under = nil
	old.wakeLocked()
}

// forgetLocked takes an entry that is no longer in the tree off the counts.
func (t *lockTable) forgetLocked(e *entry) {
	t.n.Add(-1)
	if e.lock.blocksReads() {
		t.blocking.Add(-1)
	}
}

// withdraw takes entries out again that were inserted, and whose batch was not applied: the
// pessimistic locks they had replaced are back.
func (t *lockTable) withdraw(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f finger
	for i := range entries {
		e := &entries[i]
		under := e.under
		if under == nil {
			t.removeLocked(&f, e, 0)
			continue
		}
		under.lock.TTLMillis = max(under.lock.TTLMillis, e.lock.TTLMillis)
		under.lock.HeardMillis = max(under.lock.HeardMillis, e.lock.HeardMillis)
		t.putLocked(&f, under)
		under.under = nil
	}
}

// setCommitTS sets the commit_ts of the entries of a one-phase commit.
func (t *lockTable) setCommitTS(entries []entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		entries[i].lock.MinCommitTS = commitTS
	}
}

// setAsync makes the entries of a prewrite, whose batch is yet to be written, locks of an async commit.
func (t *lockTable) setAsync(entries []entry, minCommitTS tso.Timestamp, args *PrewriteRequest) {
	var secondaries [][]byte
	if len(args.Secondaries) > 0 {
		secondaries = cloneKeys(args.Secondaries)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		l := &entries[i].lock
		l.Async, l.MinCommitTS = true, minCommitTS
		if bytes.Equal(entries[i].key, args.Primary) {
			l.Secondaries = secondaries
		}
	}
}

// settle marks the locks in a slice as durable.
func (t *lockTable) settle(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f finger
	for i := range entries {
		e := &entries[i]
		e.state = stateDurable
		e.under = nil
		e.wakeLocked()
		if t.packable(e, e.lock.TxnSize) {
			t.tree.remove(&f, e.key)
			t.packLocked(e)
		}
	}
}

// abandon leaves entries in the table permanently: the engine has failed. The table takes ownership of their keys, and
// waiters receive the engine's error.
func (t *lockTable) abandon(entries []entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked(err)
	for i := range entries {
		e := &entries[i]
		e.key, e.lock.Primary = bytes.Clone(e.key), bytes.Clone(e.lock.Primary)
		e.under = nil
		e.wakeLocked()
	}
}

// finishing announces that the locks of entries are about to be removed from disk, by a commit at
// commitTS or, if that is 0, by a rollback. Readers below commitTS need not wait.
func (t *lockTable) finishing(entries []*entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range entries {
		e = t.ownLocked(e)
		entries[i] = e
		e.state = stateFinishing
		e.lock.MinCommitTS = max(e.lock.MinCommitTS, commitTS)
	}
}

// wake wakes the waiters for entries, which stay: the engine has failed.
func (t *lockTable) wake(entries []*entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked(err)
	for _, e := range entries {
		e.wakeLocked()
	}
}

// push raises the MinCommitTS of a lock in the table.
func (t *lockTable) push(l *Lock, minCommitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.MinCommitTS = max(l.MinCommitTS, minCommitTS)
}

// prolong raises the TTL of a lock in the table, whose owner is alive, and returns the one in force.
func (t *lockTable) prolong(l *Lock, ttlMillis, leaseMillis uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.TTLMillis = max(l.TTLMillis, ttlMillis)
	l.LeaseMillis, l.HeardMillis = leaseMillis, t.millis()
	return l.TTLMillis
}

// remove takes entries out, committed at commitTS or, if that is 0, not, wakes their waiters, and
// hands the keys over to the next in their queues.
func (t *lockTable) remove(entries []*entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f finger
	for _, e := range entries {
		t.removeLocked(&f, e, commitTS)
	}
}

// removeSlab is remove for entries that lie in one slice.
func (t *lockTable) removeSlab(entries []entry, commitTS tso.Timestamp) {
	for len(entries) > 0 {
		n := min(chunk, len(entries))
		t.removeChunk(entries[:n], commitTS)
		entries = entries[n:]
	}
}

func (t *lockTable) removeChunk(entries []entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f finger
	for i := range entries {
		t.removeLocked(&f, &entries[i], commitTS)
	}
}

func (t *lockTable) removeLocked(f *finger, e *entry, commitTS tso.Timestamp) {
	if e.pack != nil {
		own := t.tree.get(f, e.key)
		if own == nil {
			t.dropPackedLocked(e)
			return
		}
		e = own
	}
	if e.queue != nil {
		t.handOverLocked(e, commitTS)
	} else if t.tree.remove(f, e.key) != nil {
		t.forgetLocked(e)
	}
	e.wakeLocked()
}

func (e *entry) wakeLocked() {
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

// waitChan returns a channel that is closed when the entry of key changes its state or is removed, or nil if there is no
// entry or its state is durable: then the caller's view of it is outdated already.
func (t *lockTable) waitChan(key []byte) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.getLocked(key)
	switch {
	case e == nil || e.state == stateDurable:
		return nil
	case e.pack != nil:
		return e.pack.large.done
	}
	return e.waitChanLocked()
}

func (e *entry) waitChanLocked() <-chan struct{} {
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}

func cloneKeys(keys [][]byte) [][]byte {
	if len(keys) == 0 {
		return nil
	}
	out := make([][]byte, len(keys))
	for i, key := range keys {
		out[i] = bytes.Clone(key)
	}
	return out
}

// detached returns a copy of the lock, value aside, that shares no memory with it.
func (l *Lock) detached() Lock {
	d := *l
	d.Primary = bytes.Clone(l.Primary)
	d.Value = nil
	d.Secondaries = cloneKeys(l.Secondaries)
	return d
}
