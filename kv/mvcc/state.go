package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// Options configure a State; the zero value of every field but Engine and Oracle is a default.
type Options struct {
	Engine *storage.Engine
	Oracle tso.Oracle
	// Embedded means that a timestamp costs next to nothing: the oracle is in this process.
	Embedded bool
	// ShortValueBytes is the length up to which a value rides in lock and write record, 1 KiB by
	// default; OnePCShortValueBytes the same for one-phase commit, 64 KiB by default.
	ShortValueBytes, OnePCShortValueBytes int
	// Group returns the length of the prefix of a key that identifies what it belongs to, such as an index; nil: 0. A
	// large commit begins a table file with each group, so that the files overlap existing ones as little as possible.
	Group func(key []byte) int
	// LargePartBytes is the minimal part of a large commit that one goroutine checks and writes, 8 MiB by default.
	LargePartBytes int64
	// RecentBytes bounds the cache of recently read values: 64 MiB by default.
	RecentBytes int64
	// ScanCacheBytes bounds the cache of rows that scans read again: 64 MiB by default; below 0, there is none. ScanBlockRows is how many
	// rows at most have a block of it, 4,096 by default.
	ScanCacheBytes int64
	ScanBlockRows  int
	// SafePointKey is the key of the GC safe point, CollectedKey that of the progress of collection, KeptKey that of the
	// transactions whose records a pass keeps.
	SafePointKey, CollectedKey, KeptKey []byte
	// WaitGraph, if given, receives waits for pessimistic locks that last, so that deadlocks between stores are
	// detected. Those within the store are detected without it, and immediately.
	WaitGraph waitgraph.Graph
	// Clock is a monotonic clock, of which differences count; the process's by default.
	Clock func() time.Duration
	// PackLocks is how many locks a transaction has before more of them are packed (lockpack.go): 32,768 by default; below 0, all are that may be.
	PackLocks int
	// LockBound is the first lock bound, 0 for none; see SetLockBound.
	LockBound tso.Timestamp
}

func (o *Options) ensureDefaults() {
	if o.RecentBytes == 0 {
		o.RecentBytes = 64 << 20
	}
	if o.ScanCacheBytes == 0 {
		o.ScanCacheBytes = 64 << 20
	}
	if o.ScanBlockRows == 0 {
		o.ScanBlockRows = 4096
	}
	if o.ShortValueBytes == 0 {
		o.ShortValueBytes = 1 << 10
	}
	if o.OnePCShortValueBytes == 0 {
		o.OnePCShortValueBytes = 64 << 10
	}
	if o.Clock == nil {
		opened := time.Now()
		o.Clock = func() time.Duration { return time.Since(opened) }
	}
	if o.LargePartBytes == 0 {
		o.LargePartBytes = 8 << 20
	}
}

// State is the transactional state of one store: its records on disk, its locks in memory, and the
// timestamps that order reads and writes. Safe for concurrent use.
type State struct {
	eng     *storage.Engine
	opts    Options
	locks   *lockTable
	latches latches
	marks   commitMarks
	// recent is replaced when versions are removed that may still be read.
	recent  atomic.Pointer[recentReads]
	deleted deletedSpans
	scans   *scanCache

	// maxTS is at or above every timestamp a read was served at.
	maxTS atomic.Uint64
	// knownTS is a timestamp known to have been issued. askedTS is the last one that the oracle returned, at askedAt or
	// a little before, by this process's clock.
	knownTS atomic.Uint64
	askedTS atomic.Uint64
	askedAt atomic.Int64
	// maxRollbackTS and maxLockCommitTS bound the records in S, so that most prewrites need not read it.
	maxRollbackTS   atomic.Uint64
	maxLockCommitTS atomic.Uint64
	// lostTS is at or above the start_ts of every transaction that may have lost a lock here without noticing: see
	// decideRecord.
	lostTS    atomic.Uint64
	safePoint atomic.Uint64
	lockBound atomic.Uint64
	// maxNotifyPutTS is at or above the timestamps of all NotifyPuts: commits above it write cells without reading them.
	maxNotifyPutTS atomic.Uint64
	hints          notifyHints
	gc             gcState

	// largeRate is the rate at which large write sets are written, in bytes a second.
	largeRate atomic.Int64

	writers sync.Pool
}

// Open reads the locks into memory. For the guarantees to requests from before a restart see recoverLock.
func Open(ctx context.Context, opts Options) (*State, error) {
	opts.ensureDefaults()
	s := &State{eng: opts.Engine, opts: opts, locks: newLockTable(&opts), scans: newScanCache(&opts)}
	s.gc.fence, s.gc.mu = newMutex(), newMutex()
	s.latches.seed = maphash.MakeSeed()
	s.largeRate.Store(1 << 30) // until one has been written
	s.writers.New = func() any { return &writer{s: s} }
	now, err := opts.Oracle.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a timestamp to recover by: %w", err)
	}
	for _, ts := range []*atomic.Uint64{&s.maxTS, &s.knownTS, &s.askedTS, &s.maxRollbackTS, &s.maxLockCommitTS, &s.lostTS, &s.maxNotifyPutTS} {
		ts.Store(uint64(now))
	}
	if s.SetLockBound(opts.LockBound); opts.LockBound == 0 {
		s.SetLockBound(tso.MaxTimestamp)
	}
	s.marks = newCommitMarks(now)
	s.recent.Store(newRecentReads(opts.RecentBytes))
	s.askedAt.Store(time.Now().UnixNano())
	if err := s.loadSafePoint(); err != nil {
		return nil, err
	}
	if err := s.loadGC(); err != nil {
		return nil, err
	}
	return s, s.loadLocks(now)
}

func (s *State) loadSafePoint() error {
	value, found, err := s.eng.Get(nil, s.opts.SafePointKey)
	if err != nil || !found {
		return err
	}
	if len(value) != 8 {
		return corrupt(s.opts.SafePointKey, "safe point is not a timestamp")
	}
	s.gc.fenced = tso.Timestamp(binary.BigEndian.Uint64(value))
	s.safePoint.Store(uint64(s.gc.fenced))
	return nil
}

func (s *State) loadLocks(now tso.Timestamp) error {
	it, err := s.eng.NewRangeIter(storage.AppendSentinel([]byte{tagLock}), storage.AppendSentinel([]byte{tagLock + 1}))
	if err != nil {
		return err
	}
	defer it.Close()
	var f finger
	for ok := it.First(); ok; ok = it.Next() {
		key := bytes.Clone(userKey(it.Key()))
		value, err := it.Value()
		if err != nil {
			return err
		}
		lock, longValue, err := decodeLock(bytes.Clone(value))
		if err != nil {
			return &CorruptionError{Key: key, Detail: "lock record", Err: err}
		}
		e := &entry{key: key, lock: recoverLock(key, lock, now), longValue: longValue, state: stateDurable}
		e.lock.HeardMillis = s.locks.millis()
		s.locks.putLocked(&f, e)
		if s.locks.packable(e, e.lock.TxnSize) {
			s.locks.tree.remove(&f, key)
			s.locks.packLocked(e)
		}
	}
	return it.Error()
}

// MaxTS returns a timestamp at or above all that were read at.
func (s *State) MaxTS() tso.Timestamp { return tso.Timestamp(s.maxTS.Load()) }

// NewestTS returns a timestamp that has been issued, the newest that the shard has seen or a little below.
func (s *State) NewestTS() tso.Timestamp {
	return tso.Timestamp(max(s.maxTS.Load(), s.knownTS.Load()))
}

// FenceReads makes every later write commit above ts, at which another shard has served reads.
// *TSInFutureError if it cannot have.
func (s *State) FenceReads(ctx context.Context, ts tso.Timestamp) error {
	if err := s.checkIssued(ctx, ts); err != nil {
		return err
	}
	raise(&s.maxTS, ts)
	return nil
}

// noteLost records that a pessimistic lock of startTS is lost, or may be, without the transaction having ended.
func (s *State) noteLost(startTS tso.Timestamp) { raise(&s.lostTS, startTS) }

// NumLocks returns the number of locks held.
func (s *State) NumLocks() int { return int(s.locks.n.Load()) }

func raise(a *atomic.Uint64, ts tso.Timestamp) {
	for {
		old := a.Load()
		if uint64(ts) <= old || a.CompareAndSwap(old, uint64(ts)) {
			return
		}
	}
}

// apply is where every write leaves for the store: the batch is atomic, deterministic, and
// visible on return. With storage.Sync the caller then waits for batch.SyncWait. A replicated
// shard would propose the batch here.
func (s *State) apply(b *storage.Batch, d storage.Durability) error { return s.eng.Apply(b, d) }

// BeginRead is the barrier at the beginning of every read: it fences the timestamp against later writes. A replicated
// shard would also verify here that it may serve. Check the request's ranges after it: a shard that takes over a range
// does so before it requests MaxTS.
func (s *State) BeginRead(ctx context.Context, readTS tso.Timestamp) error {
	if uint64(readTS) <= s.maxTS.Load() || readTS == tso.MaxTimestamp {
		return nil
	}
	if err := s.checkIssued(ctx, readTS); err != nil {
		return err
	}
	raise(&s.maxTS, readTS)
	return nil
}

// slackMillis is how far above the oracle's time, as this process computes it, a timestamp is accepted without a request
// to the oracle: what the oracle borrows from the future, and the difference of two clocks between two requests.
const slackMillis = 250

// checkIssued rejects timestamps that the oracle cannot have issued: writers would have to commit above them. If the
// oracle is remote it sends a request only for timestamps above the oracle's time, and writers check what they compute
// from max_ts instead (onePCTimestamp).
func (s *State) checkIssued(ctx context.Context, ts tso.Timestamp) error {
	if uint64(ts) <= s.knownTS.Load() {
		return nil
	}
	if !s.opts.Embedded {
		asked := tso.Timestamp(s.askedTS.Load())
		since := time.Duration(time.Now().UnixNano() - s.askedAt.Load()).Milliseconds()
		if ts.Physical() <= asked.Physical()+since+slackMillis {
			return nil
		}
	}
	now, err := s.refreshKnown(ctx)
	if err != nil {
		return err
	}
	if ts > now {
		return &TSInFutureError{TS: ts}
	}
	return nil
}

// checkClaimed is checkIssued for the timestamps of a write, which clients in this process have from the
// oracle itself: another process may claim any.
func (s *State) checkClaimed(ctx context.Context, ts tso.Timestamp) error {
	if s.opts.Embedded {
		return nil
	}
	return s.checkIssued(ctx, ts)
}

// refreshKnown requests a timestamp from the oracle.
func (s *State) refreshKnown(ctx context.Context) (tso.Timestamp, error) {
	asked := time.Now().UnixNano()
	now, err := s.opts.Oracle.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the oracle: %w", err)
	}
	raise(&s.knownTS, now)
	if !s.opts.Embedded {
		s.askedTS.Store(uint64(now))
		s.askedAt.Store(asked)
	}
	return now, nil
}

// checkSafePoint rejects timestamps that garbage collection may have passed.
func (s *State) checkSafePoint(ts tso.Timestamp) error {
	if sp := tso.Timestamp(s.safePoint.Load()); ts <= sp && sp != 0 {
		return &TooOldError{TS: ts, SafePoint: sp}
	}
	return nil
}

// SetLockBound bounds the start_ts of the transactions that get new locks. While the store is unreachable, garbage
// collection relies on it: every lock here is of a transaction that began at or below the bound.
func (s *State) SetLockBound(ts tso.Timestamp) { s.lockBound.Store(uint64(ts)) }

// LockBound returns the lock bound in force.
func (s *State) LockBound() tso.Timestamp { return tso.Timestamp(s.lockBound.Load()) }

// checkLockBound rejects new locks of transactions above the lock bound. It is called under the latches of the keys.
func (s *State) checkLockBound(startTS tso.Timestamp) error {
	if bound := s.LockBound(); startTS > bound {
		return &LockBoundError{StartTS: startTS, Bound: bound}
	}
	return nil
}

// wait blocks until ch is closed, and fails if waiting is futile: a caller that got its channel before the engine failed
// might wait for a request that has given up already.
func (s *State) wait(ctx context.Context, ch <-chan struct{}) error {
	if err := s.eng.Err(); err != nil || ch == nil {
		return err
	}
	select {
	case <-ch:
		return s.eng.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitForRelease blocks until the lock of startTS on key, if there is one, has changed or been removed. It is for
// callers in this process, which need not poll.
func (s *State) WaitForRelease(ctx context.Context, key []byte, startTS tso.Timestamp) error {
	s.locks.mu.Lock()
	e := s.locks.getLocked(key)
	if e == nil || e.lock.StartTS != startTS {
		s.locks.mu.Unlock()
		return nil
	}
	var ch <-chan struct{}
	if e.pack != nil && e.pack.large != nil {
		ch = e.pack.large.done
	} else {
		ch = s.locks.ownLocked(e).waitChanLocked()
	}
	s.locks.mu.Unlock()
	return s.wait(ctx, ch)
}
