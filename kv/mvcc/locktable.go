package mvcc

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/percodb/percodb/tso"
)

// entryState says how far the disk is behind the table.
type entryState uint8

const (
	// stateInflight: the batch that creates the lock (or, for one-phase commit, the versions) has
	// not been synced.
	stateInflight entryState = iota
	// stateDurable: the lock is on disk, and nobody is about to remove it.
	stateDurable
	// stateFinishing: the batch that removes the lock has not been synced.
	stateFinishing
)

// entry is a lock in memory. key, onePC, longValue and the lock's Op, StartTS, Primary and Value do
// not change. The rest is guarded by lockTable.mu; whoever changes it holds the key's latch too,
// but for the steps from inflight to durable, and from finishing to gone, which follow a sync.
type entry struct {
	key       []byte
	lock      Lock
	longValue bool // the value is a data record, lock.Value is nil
	onePC     bool // never on disk; MinCommitTS is the commit_ts, or a bound below it until known
	state     entryState
	done      chan struct{} // made by the first waiter, closed when state changes or the entry goes
}

// lockTable holds every lock of a store in key order. Safe for concurrent use.
type lockTable struct {
	n      atomic.Int64 // entries; readers pass by when it is 0
	mu     sync.RWMutex
	tree   *btree.BTreeG[*entry]
	pivots sync.Pool
}

func newLockTable() *lockTable {
	t := &lockTable{tree: btree.NewG(32, func(a, b *entry) bool { return bytes.Compare(a.key, b.key) < 0 })}
	t.pivots.New = func() any { return new(entry) }
	return t
}

// getLocked returns the entry of key or nil. The caller holds mu, for reading at least.
func (t *lockTable) getLocked(key []byte) *entry {
	if t.n.Load() == 0 {
		return nil
	}
	pivot := t.pivots.Get().(*entry)
	pivot.key = key
	e, _ := t.tree.Get(pivot)
	pivot.key = nil
	t.pivots.Put(pivot)
	return e
}

// get returns the entry of key and its state, or nil. Of a durable one, the holder of the key's
// latch may read all fields: only latch holders change them from there on.
func (t *lockTable) get(key []byte) (e *entry, state entryState) {
	if t.n.Load() == 0 {
		return nil, stateDurable
	}
	t.mu.RLock()
	if e = t.getLocked(key); e != nil {
		state = e.state
	}
	t.mu.RUnlock()
	return e, state
}

// ascendLocked calls f for the entries of [start, end) in order until f returns false. An empty
// end means no bound. The caller holds mu, for reading at least.
func (t *lockTable) ascendLocked(start, end []byte, f func(*entry) bool) {
	pivot := t.pivots.Get().(*entry)
	pivot.key = start
	t.tree.AscendGreaterOrEqual(pivot, func(e *entry) bool {
		return (len(end) == 0 || bytes.Compare(e.key, end) < 0) && f(e)
	})
	pivot.key = nil
	t.pivots.Put(pivot)
}

// descendLocked is ascendLocked from the end.
func (t *lockTable) descendLocked(start, end []byte, f func(*entry) bool) {
	visit := func(e *entry) bool {
		if len(end) > 0 && bytes.Compare(e.key, end) >= 0 {
			return true
		}
		return bytes.Compare(e.key, start) >= 0 && f(e)
	}
	if len(end) == 0 {
		t.tree.Descend(visit)
		return
	}
	pivot := t.pivots.Get().(*entry)
	pivot.key = end
	t.tree.DescendLessOrEqual(pivot, visit)
	pivot.key = nil
	t.pivots.Put(pivot)
}

// chunk bounds how many entries are put in or taken out in one critical section, so that a bulk
// load does not keep readers out for long.
const chunk = 4096

// insert adds entries and then, in the critical section of the last, reads maxTS and gives every
// entry a MinCommitTS above it, above startTS, and at or above floor (I1 of the package). It
// returns that MinCommitTS. Until then readers above startTS take the transaction for undecided.
func (t *lockTable) insert(entries []entry, startTS, floor tso.Timestamp, maxTS *atomic.Uint64) tso.Timestamp {
	for rest := entries; len(rest) > chunk; rest = rest[chunk:] {
		t.insertChunk(rest[:chunk], startTS)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.insertLocked(entries[(max(len(entries), 1)-1)/chunk*chunk:])
	minCommitTS := max(tso.Timestamp(maxTS.Load()), startTS, floor) + 1
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
	t.n.Add(int64(len(entries)))
	for i := range entries {
		t.tree.ReplaceOrInsert(&entries[i])
	}
}

// setCommitTS tells the entries of a one-phase commit its commit_ts.
func (t *lockTable) setCommitTS(entries []entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		entries[i].lock.MinCommitTS = commitTS
	}
}

// settle says that the locks in a slice are on disk.
func (t *lockTable) settle(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		entries[i].state = stateDurable
		entries[i].wakeLocked()
	}
}

// abandon leaves entries in the table for good: the engine has failed. Their keys become the
// table's, and those who wait learn of the failure from the engine.
func (t *lockTable) abandon(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		e.key, e.lock.Primary = bytes.Clone(e.key), bytes.Clone(e.lock.Primary)
		e.wakeLocked()
	}
}

// finishing announces that the locks of entries are about to be removed from disk, by a commit at
// commitTS or, if that is 0, by a rollback. Readers below commitTS need not wait.
func (t *lockTable) finishing(entries []*entry, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		e.state = stateFinishing
		e.lock.MinCommitTS = max(e.lock.MinCommitTS, commitTS)
	}
}

// wake rouses those who wait for entries, which stay: the engine has failed.
func (t *lockTable) wake(entries []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		e.wakeLocked()
	}
}

// push raises the MinCommitTS of an entry.
func (t *lockTable) push(e *entry, minCommitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.lock.MinCommitTS = max(e.lock.MinCommitTS, minCommitTS)
}

// prolong raises the TTL of an entry and returns the one in force.
func (t *lockTable) prolong(e *entry, ttlMillis uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.lock.TTLMillis = max(e.lock.TTLMillis, ttlMillis)
	return e.lock.TTLMillis
}

// remove takes entries out and wakes their waiters.
func (t *lockTable) remove(entries []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		t.removeLocked(e)
	}
}

// removeSlab is remove for entries that lie in one slice.
func (t *lockTable) removeSlab(entries []entry) {
	for len(entries) > 0 {
		n := min(chunk, len(entries))
		t.removeChunk(entries[:n])
		entries = entries[n:]
	}
}

func (t *lockTable) removeChunk(entries []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		t.removeLocked(&entries[i])
	}
}

func (t *lockTable) removeLocked(e *entry) {
	if _, ok := t.tree.Delete(e); ok {
		t.n.Add(-1)
	}
	e.wakeLocked()
}

func (e *entry) wakeLocked() {
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

// waitChan returns a channel that is closed when the entry of key changes its state or goes, or
// nil if it has none now or its state is durable.
func (t *lockTable) waitChan(key []byte) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.getLocked(key)
	if e == nil || e.state == stateDurable {
		return nil
	}
	return e.waitChanLocked()
}

func (e *entry) waitChanLocked() <-chan struct{} {
	if e.done == nil {
		e.done = make(chan struct{})
	}
	return e.done
}

// detached returns a copy of the lock, value aside, that shares no memory with it.
func (l *Lock) detached() Lock {
	d := *l
	d.Primary = bytes.Clone(l.Primary)
	d.Value = nil
	return d
}
