package mvcc

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/percodb/percodb/tso"
)

// largeCommit is the one lock of a large write set during its one-phase commit: it represents a lock on each of the keys
// and contains only their spans. It is never on disk.
//
//	checking   other writers of its keys wait; readers ignore it, since the commit_ts will lie above them
//	writing    the commit_ts is known; readers at or above it wait
type largeCommit struct {
	set       WriteSet
	spans     []Span
	startTS   tso.Timestamp
	admission LargeAdmission
	done      chan struct{} // closed when it has ended

	// Guarded by lockTable.mu:

	commitTS tso.Timestamp // 0: checking; then the commit_ts, or a bound below it until known
	// entries are in the table in the place of the transaction's pessimistic locks, whose queues they hold.
	entries [][]entry
}

// largeTTLMillis is the TTL reported for a large commit's lock: it does not expire, because the lock is removed when the
// commit ends, and status checks wait.
const largeTTLMillis = 1 << 40

// find returns the position of the first span that ends above key.
func (c *largeCommit) find(key []byte) int {
	return sort.Search(len(c.spans), func(i int) bool { return bytes.Compare(c.spans[i].End, key) > 0 })
}

// holds reports whether key is among the keys; true if the set cannot be read.
func (c *largeCommit) holds(key []byte) bool {
	i := c.find(key)
	if i == len(c.spans) || bytes.Compare(key, c.spans[i].Start) < 0 {
		return false
	}
	found, err := c.set.Has(key)
	return found || err != nil
}

// firstIn returns where the keys in [start, end) begin at the earliest, and a key of the set near there;
// start is nil if there are none. An empty end is no bound.
func (c *largeCommit) firstIn(start, end []byte) (from, key []byte) {
	i := c.find(start)
	if i == len(c.spans) || len(end) > 0 && bytes.Compare(c.spans[i].Start, end) >= 0 {
		return nil, nil
	}
	key = c.spans[i].Start
	if bytes.Compare(key, start) >= 0 {
		return key, key
	}
	return start, key
}

// lastIn returns where the keys in [start, end) end at the latest, nil if there are none, the empty key if
// at no bound.
func (c *largeCommit) lastIn(start, end []byte) []byte {
	i := len(c.spans)
	if len(end) > 0 {
		i = sort.Search(i, func(i int) bool { return bytes.Compare(c.spans[i].Start, end) >= 0 })
	}
	if i == 0 || bytes.Compare(c.spans[i-1].End, start) <= 0 {
		return nil
	}
	if last := c.spans[i-1].End; len(end) == 0 || bytes.Compare(last, end) < 0 {
		return last
	}
	return end
}

// overlaps reports whether two large commits may have a key in common.
func (c *largeCommit) overlaps(other *largeCommit) bool {
	for i := range c.spans {
		if from, _ := other.firstIn(c.spans[i].Start, c.spans[i].End); from != nil {
			return true
		}
	}
	return false
}

// enterLarge puts a large commit into the table, after those that may have a key in common with it.
func (s *State) enterLarge(ctx context.Context, c *largeCommit) error {
	for {
		before := s.locks.insertLarge(c)
		if before == nil {
			return nil
		}
		if err := s.wait(ctx, before.done); err != nil {
			return err
		}
	}
}

// insertLarge returns the large commit that is in the way, or nil.
func (t *lockTable) insertLarge(c *largeCommit) (before *largeCommit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.large {
		if other.startTS == c.startTS || other.overlaps(c) {
			return other
		}
	}
	t.large = append(t.large, c)
	t.largeN.Add(1)
	return nil
}

// beginWriting gives a large commit its smallest commit_ts, above everything that has been read (I1): from here on
// readers at or above it wait.
func (t *lockTable) beginWriting(c *largeCommit, maxTS func() tso.Timestamp, floor tso.Timestamp) tso.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocking.Add(1)
	c.commitTS = largeBound(maxTS(), c.startTS, floor)
	c.setEntriesLocked()
	return c.commitTS
}

// setLargeTS sets the commit_ts of a large commit.
func (t *lockTable) setLargeTS(c *largeCommit, commitTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.commitTS = commitTS
	c.setEntriesLocked()
}

func (c *largeCommit) setEntriesLocked() {
	for _, slab := range c.entries {
		for i := range slab {
			slab[i].lock.MinCommitTS = c.commitTS
		}
	}
}

// replaceHeld replaces the transaction's pessimistic locks on the keys of new entries by copies of these, which block no reader;
// packed ones go to a pack that c relies on. The caller holds the latches of the keys. Who waits for a lock may unpack it
// without them, so where it is is looked up here.
func (t *lockTable) replaceHeld(c *largeCommit, entries []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make([]entry, 0, len(entries))
	for _, e := range entries {
		if old := t.getLocked(e.key); old != nil && old.pack != nil {
			t.holdPackedLocked(c, old)
			continue
		}
		own := *e
		own.key = bytes.Clone(e.key) // the batch's memory is used again
		own.lock.MinCommitTS = tso.MaxTimestamp
		held = append(held, own)
	}
	if held = slices.Clip(held); len(held) > 0 {
		c.entries = append(c.entries, held)
		t.insertLocked(held)
	}
}

// leaveLarge removes a large commit from the table: committed at commitTS, or not if it is 0.
func (t *lockTable) leaveLarge(c *largeCommit, commitTS tso.Timestamp) {
	for _, slab := range c.entries {
		if commitTS != 0 {
			t.removeSlab(slab, commitTS)
		} else {
			t.withdraw(slab)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.commitTS != 0 {
		t.blocking.Add(-1)
	}
	t.leavePacksLocked(c, commitTS != 0)
	t.large = slices.DeleteFunc(t.large, func(other *largeCommit) bool { return other == c })
	t.largeN.Add(-1)
	close(c.done)
}

// largeCommits returns the large commits under way.
func (t *lockTable) largeCommits() []*largeCommit {
	if t.largeN.Load() == 0 {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.large)
}

// largeWriter returns another transaction's large commit that holds key, nil if there is none: for writers,
// under the key's latch.
func (t *lockTable) largeWriter(key []byte, startTS tso.Timestamp) *largeCommit {
	for _, c := range t.otherLargeCommits(startTS) {
		if c.holds(key) {
			return c
		}
	}
	return nil
}

// otherLargeCommits returns the large commits of other transactions.
func (t *lockTable) otherLargeCommits(startTS tso.Timestamp) []*largeCommit {
	if t.largeN.Load() == 0 {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.large) == 1 && t.large[0].startTS == startTS {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.large), func(c *largeCommit) bool { return c.startTS == startTS })
}

// lockedError returns an error that describes the commit as a live lock on key.
func (c *largeCommit) lockedError(key []byte) *KeyLockedError {
	return &KeyLockedError{Key: bytes.Clone(key), Lock: Lock{
		Op: OpPut, StartTS: c.startTS, Primary: bytes.Clone(key), TTLMillis: largeTTLMillis, TxnSize: 1,
	}}
}

// largeStatus returns the status of a transaction whose large commit holds key, which lockedError has reported as its
// primary; nil if there is none.
func (t *lockTable) largeStatus(key []byte, startTS tso.Timestamp) *TxnStatus {
	for _, c := range t.largeCommits() {
		if c.startTS == startTS && c.holds(key) {
			return &TxnStatus{Lock: &c.lockedError(key).Lock}
		}
	}
	return nil
}

// blocksRead reports whether a large commit makes a reader at readTS wait.
func (t *lockTable) blocksRead(c *largeCommit, readTS tso.Timestamp) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return decideLargeRead(c.commitTS, readTS)
}

// largeReaders returns the channel of a large commit to wait for, nil if there is none: for a reader of one key.
func (t *lockTable) largeReaders(key []byte, readTS tso.Timestamp) <-chan struct{} {
	for _, c := range t.largeCommits() {
		if t.blocksRead(c, readTS) && c.holds(key) {
			return c.done
		}
	}
	return nil
}

// largeWriting returns the large commit that holds key and whose commit_ts is known, nil if there is none.
func (t *lockTable) largeWriting(key []byte) *largeCommit {
	if t.blocking.Load() == 0 {
		return nil
	}
	for _, c := range t.largeCommits() {
		if t.blocksRead(c, tso.MaxTimestamp) && c.holds(key) {
			return c
		}
	}
	return nil
}

// largeInSpan reports whether a large commit may hold a key of a span.
func (t *lockTable) largeInSpan(start, end []byte) bool {
	for _, c := range t.largeCommits() {
		if from, _ := c.firstIn(start, end); from != nil {
			return true
		}
	}
	return false
}

// awaitLarge returns once the large commits begun at or below ts are over.
func (s *State) awaitLarge(ctx context.Context, ts tso.Timestamp) error {
	for _, c := range s.locks.largeCommits() {
		if c.startTS > ts {
			continue
		}
		if err := s.wait(ctx, c.done); err != nil {
			return err
		}
	}
	return nil
}

// probeLarge narrows the page to the part before the keys of a large commit that the scan must not pass, or
// returns the channel to wait for if that part is empty.
func (sc *scanner) probeLarge() (wait <-chan struct{}) {
	t := sc.s.locks
	for _, c := range t.largeCommits() {
		if !t.blocksRead(c, sc.args.ReadTS) {
			continue
		}
		if wait = sc.narrowSpans(c); wait != nil {
			return wait
		}
	}
	return nil
}

// narrowSpans ends the page before the first key of c in any of the spans.
func (sc *scanner) narrowSpans(c *largeCommit) (wait <-chan struct{}) {
	for i := range sc.spans {
		span := &sc.spans[i]
		if sc.args.Reverse {
			span = &sc.spans[len(sc.spans)-1-i]
		}
		resume := sc.resume
		if wait := sc.narrow(c, span.Start, span.End); wait != nil || !bytes.Equal(resume, sc.resume) {
			return wait
		}
	}
	return nil
}

// narrow ends the page before the keys of c in [start, end), which lies within the page's bounds or beyond.
func (sc *scanner) narrow(c *largeCommit, start, end []byte) (wait <-chan struct{}) {
	if sc.args.Reverse {
		last := c.lastIn(start, end)
		switch {
		case last == nil || len(last) > 0 && bytes.Compare(last, sc.start) <= 0:
		case len(sc.end) == 0 && len(last) == 0 || len(sc.end) > 0 && bytes.Compare(last, sc.end) >= 0:
			return c.done
		default:
			sc.start = last
			sc.resume = last
		}
		return nil
	}
	from, _ := c.firstIn(start, end)
	switch {
	case from == nil || len(sc.end) > 0 && bytes.Compare(from, sc.end) >= 0:
	case bytes.Compare(from, sc.start) <= 0:
		return c.done
	default:
		sc.end, sc.resume = from, from
	}
	return nil
}
