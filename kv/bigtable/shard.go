package bigtable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/tso"
)

// The limits that Bigtable states and its emulator does not check.
const (
	maxKeyBytes  = 4<<10 - 1 // a row's name has a byte more
	maxCellBytes = 10 << 20
	maxRowBytes  = 256 << 20 // with all versions of a key's value
)

// requestsAtOnce bounds the conditional requests that one request of a transaction has under way: each concerns one row.
const requestsAtOnce = 128

// Shard serves all keys of the table. Any number of processes have one. Safe for concurrent use.
type Shard struct {
	c          *Client
	opts       ShardOptions
	run        uint64 // identifies the Shard: see SyncLog
	memo       memo
	wakeup     wakeups
	hints      hints
	awaited    awaited
	hintSender atomic.Pointer[func(notify.LockHint)] // nil: no hints are sent to other processes
	issued     issued
	gc         collection
	closed     atomic.Bool
	ended      chan struct{} // is closed by Close
	fence      fenceCache
	limit      limiter
	reads      gatherer[pointRead]
	writes     gatherer[bulkWrite]
	ahead      readahead
	sizes      dataSizes

	rowBytes int // maxRowBytes, less in tests
}

var _ kv.Shard = (*Shard)(nil)

// ShardOptions configure a Shard; Oracle is required.
type ShardOptions struct {
	Oracle tso.Oracle
	// WaitGraph, if given, receives waits for pessimistic locks that last, so that deadlocks are detected.
	WaitGraph waitgraph.Graph
	// Clock is the wall clock, time.Now by default: by it a lock's owner notes when it has last sent a request for the lock.
	Clock func() time.Time
	// PrefixLen returns how long the prefix is that a key has in common with all keys of its index, and with no other; 1 for other keys. nil: rows are not
	// read ahead.
	PrefixLen func(key []byte) int
	// RowsPerSecond bounds the rows that reads, locks and prewrites read and write, a conditional request counted twice; 0: no bound.
	RowsPerSecond int
}

// NewShard returns a shard over a table. The client stays the caller's.
func NewShard(ctx context.Context, c *Client, opts ShardOptions) (*Shard, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	s := &Shard{c: c, opts: opts, run: rand.Uint64(), ended: make(chan struct{}), rowBytes: maxRowBytes}
	s.ahead.prefixLen, s.awaited.gauge = opts.PrefixLen, c.metrics.locksAwaited
	s.issued.oracle, s.limit.perSecond = opts.Oracle, float64(opts.RowsPerSecond)
	s.reads = gatherer[pointRead]{atOnce: readsAtOnce, most: mostGathered, send: s.readPoints}
	s.writes = gatherer[bulkWrite]{atOnce: bulksAtOnce, most: mostBulkWrites, send: c.writeBulks}
	if _, err := s.issued.refresh(ctx); err != nil {
		return nil, err
	}
	if err := s.refreshFence(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Close makes every later request fail. Requests under way end by themselves.
func (s *Shard) Close() {
	if s.closed.CompareAndSwap(false, true) {
		close(s.ended)
	}
}

// Capabilities implements kv.Shard. Bigtable changes one row at a time, so nothing commits in one phase; it computes no
// timestamps, and remembers neither reads nor the order of waiters.
// Secondaries are committed without a condition, again if need be, and their cells with them.
func (s *Shard) Capabilities() kv.Capabilities {
	return kv.Capabilities{LockWait: true, LateCells: true}
}

// theRange is the only range: Bigtable divides and places rows by itself.
func theRange() kv.RangeDescriptor {
	return kv.RangeDescriptor{ID: 1, Epoch: 1, Shard: kv.BigtableShardID}
}

// admit is called at the beginning of every request.
func (s *Shard) admit(refs ...kv.RangeRef) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	d := theRange()
	for _, ref := range refs {
		if ref != d.Ref() {
			return &kv.StaleRangeError{Refs: refs, Current: []kv.RangeDescriptor{d}}
		}
	}
	return nil
}

// heardMillis is the time of a request for a lock, as it is noted in the lock.
func (s *Shard) heardMillis() uint64 { return uint64(s.opts.Clock().UnixMilli()) }

// Status implements kv.Shard.
func (s *Shard) Status(ctx context.Context) (kv.ShardStatus, error) {
	if err := s.admit(); err != nil {
		return kv.ShardStatus{}, err
	}
	sizes, err := s.rangeSizes(ctx)
	if err != nil {
		return kv.ShardStatus{}, err
	}
	return kv.ShardStatus{Shard: kv.BigtableShardID, Incarnation: 1, Newest: s.issued.newest(), RangeSizes: sizes}, nil
}

// GetLatest implements kv.Shard.
func (s *Shard) GetLatest(context.Context, kv.RangeRef, []byte, tso.Timestamp) (kv.LatestValue, error) {
	return kv.LatestValue{}, kv.ErrUnsupported
}

// CommitLarge implements kv.Shard.
func (s *Shard) CommitLarge(context.Context, *kv.CommitLargeRequest) (kv.CommitLargeResponse, error) {
	return kv.CommitLargeResponse{}, kv.ErrUnsupported
}

// WaitForRelease implements kv.Shard.
func (s *Shard) WaitForRelease(context.Context, []byte, tso.Timestamp) error {
	return kv.ErrUnsupported
}

// maxLockBytes bounds a lock's value: the predicate that names it contains it twice, and may have 20 KB.
const maxLockBytes = 10<<10 - 64

// checkSizes refuses what Bigtable cannot store, and locks that no predicate could name.
func checkSizes(req *kv.PrewriteRequest) error {
	if len(req.Primary) > maxKeyBytes {
		return &kv.SizeLimitError{Index: true, Size: len(req.Primary), Limit: maxKeyBytes}
	}
	ms := req.Mutations
	for i := range ms {
		if set := req.NotifySetOf(&ms[i]); set != nil {
			if n := lockBytes + len(req.Primary) + 8*len(set.Observers); n > maxLockBytes {
				return &kv.SizeLimitError{Size: n, Limit: maxLockBytes}
			}
		}
		if n := len(ms[i].Key); n > maxKeyBytes {
			return &kv.SizeLimitError{Index: true, Size: n, Limit: maxKeyBytes}
		}
		if n := len(ms[i].Value); n > maxCellBytes {
			return &kv.SizeLimitError{Size: n, Limit: maxCellBytes}
		}
	}
	return nil
}

// slackMillis is how far above the oracle's time, as this process computes it, a timestamp is accepted without a request
// to the oracle: what the oracle borrows from the future, and the difference of two clocks between two requests.
const slackMillis = 250

// issued knows timestamps that the oracle has issued.
type issued struct {
	oracle  tso.Oracle
	known   atomic.Uint64
	asked   atomic.Uint64 // the last answer of the oracle, at askedAt or a little before
	askedAt atomic.Int64  // by the monotonic clock: the wall clock may step
}

var processBegun = time.Now()

func (i *issued) newest() tso.Timestamp { return tso.Timestamp(i.known.Load()) }

// check returns *mvcc.TSInFutureError for a timestamp that the oracle cannot have issued.
func (i *issued) check(ctx context.Context, ts tso.Timestamp) error {
	if uint64(ts) <= i.known.Load() {
		return nil
	}
	if ts.Physical() <= i.clockMillis()+slackMillis {
		return nil
	}
	now, err := i.refresh(ctx)
	if err == nil && ts > now {
		err = &mvcc.TSInFutureError{TS: ts}
	}
	return err
}

// clockMillis estimates the oracle's time.
func (i *issued) clockMillis() int64 {
	since := time.Since(processBegun) - time.Duration(i.askedAt.Load())
	return tso.Timestamp(i.asked.Load()).Physical() + since.Milliseconds()
}

func (i *issued) refresh(ctx context.Context) (tso.Timestamp, error) {
	asked := int64(time.Since(processBegun))
	now, err := i.oracle.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the oracle: %w", err)
	}
	i.asked.Store(uint64(now))
	i.askedAt.Store(asked)
	for {
		known := i.known.Load()
		if uint64(now) <= known || i.known.CompareAndSwap(known, uint64(now)) {
			return now, nil
		}
	}
}

// memo keeps the cells of locks that this process has written, so that their owner replaces them without reading them
// first. It may forget any.
type memo struct {
	mu    sync.Mutex
	locks map[memoKey]*heldLock
}

type memoKey struct {
	startTS tso.Timestamp
	key     string
}

// memoLocks bounds the memo. Locks of transactions that never end here stay in it until it is full.
const memoLocks = 1 << 16

func (m *memo) put(key []byte, l *heldLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks == nil || len(m.locks) >= memoLocks {
		m.locks = make(map[memoKey]*heldLock)
	}
	m.locks[memoKey{l.lock.StartTS, string(key)}] = l
}

func (m *memo) get(startTS tso.Timestamp, key []byte) *heldLock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locks[memoKey{startTS, string(key)}]
}

func (m *memo) forget(startTS tso.Timestamp, key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.locks, memoKey{startTS, string(key)})
}
