package kv

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Notifier is the part of a Shard for observers: their notify cells, which commits write (mvcc.NotifySet) and observers
// clear. All requests but WatchNotify are idempotent and are routed like the other ones: with the refs of the ranges
// that have the keys. Cells belong to no snapshot, and requests neither wait for locks nor resolve any.
type Notifier interface {
	// NotifyScan returns a page of an observer's cells, in key order. It returns what is committed here: a transaction
	// that has committed elsewhere, and whose lock on a key is not resolved yet, writes the key's cell when the lock is
	// resolved. Callers that must not miss it look for locks with ScanLock first (Lock.Notify) and resolve them. A
	// returned cell may be lost again by a crash of the shard: its version, which is in the same batch, is then a lock
	// again.
	NotifyScan(ctx context.Context, req *NotifyScanRequest) (*NotifyScanResponse, error)
	// NotifyClear removes cells that are not newer than given, and returns how many. A cell that a running large commit
	// may be about to write is left alone. The removal may be lost by a crash: the cell is then there again.
	NotifyClear(ctx context.Context, req *NotifyClearRequest) (cleared int, err error)
	// NotifyPut raises the cells of Keys to TS, durably: a notification without a write. It changes no cell that is at or
	// above TS. TS must have been issued.
	NotifyPut(ctx context.Context, req *NotifyPutRequest) error
	// NotifyDrop removes an observer's cells of a span, durably. Commits of transactions that have locked their keys may
	// write cells afterwards: repeat the request when these are finished.
	NotifyDrop(ctx context.Context, req *NotifyDropRequest) error
	// WatchNotify calls f with hints of the commits on the shard until ctx ends, f fails, or the shard is closed or
	// unreachable, and returns that error, never nil. The first hint is NotifyHint{}: look for what was committed before.
	// Hints may be lost, repeated and late; NotifyHint{} stands for any number of lost ones. f is called sequentially,
	// and may keep the hints.
	WatchNotify(ctx context.Context, f func(hints []NotifyHint) error) error
}

// NotifySet names the observers to notify of a mutation.
type NotifySet = mvcc.NotifySet

// NotifyCell is what an observer has not cleared yet of one key.
type NotifyCell = mvcc.NotifyCell

// NotifyUpTo is a cell to clear unless it is newer than UpTo.
type NotifyUpTo = mvcc.NotifyUpTo

// NotifyHint reports a commit that wrote a cell; Observer 0 asks for a scan.
type NotifyHint = mvcc.NotifyHint

// NotifyScanRequest asks for up to Limit cells of an observer in a span within one range. A shard may return fewer.
type NotifyScanRequest struct {
	Range    RangeRef
	Span     Span
	Observer uint64
	Limit    int
}

// NotifyScanResponse is a page. ResumeKey is the start of the next one, nil when the span is exhausted. A page may have
// one although no cells follow.
type NotifyScanResponse struct {
	Cells     []NotifyCell
	ResumeKey []byte
}

// NotifyClearRequest clears cells of an observer: Cells ascending by key.
type NotifyClearRequest struct {
	Ranges   []RangeRef
	Observer uint64
	Cells    []NotifyUpTo
}

// NotifyPutRequest raises cells of an observer: Keys ascending.
type NotifyPutRequest struct {
	Ranges   []RangeRef
	Observer uint64
	Keys     [][]byte
	TS       tso.Timestamp
	Hop      uint8
}

// NotifyDropRequest removes an observer's cells of a span within one range.
type NotifyDropRequest struct {
	Range    RangeRef
	Span     Span
	Observer uint64
}

var _ Notifier = (*Store)(nil)

// NotifyScan implements Notifier.
func (s *Store) NotifyScan(ctx context.Context, req *NotifyScanRequest) (*NotifyScanResponse, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	if err := checkSpans(s.ranges.Load(), []RangeRef{req.Range}, []Span{req.Span}); err != nil {
		return nil, err
	}
	limits := &s.opts.PageLimits
	page, err := s.mvcc.NotifyScan(ctx, req.Span.Start, req.Span.End, req.Observer, min(req.Limit, limits.Rows), limits.Bytes)
	if err != nil {
		return nil, mapError(err)
	}
	if page.Passed >= compactPassed {
		select {
		case s.compactCells <- struct{}{}:
		default: // it is requested already
		}
	}
	return &NotifyScanResponse{Cells: page.Cells, ResumeKey: page.ResumeKey}, nil
}

// Cleared cells slow down scans until compactions have removed them, as does any queue in an LSM tree. They are small, and
// many fit into a memtable before it is flushed.
const (
	// compactPassed is the number of entries passed over in one scan, a millisecond or two, for which the cells are
	// compacted.
	compactPassed = 20_000
	// compactRest is the least time between two compactions; compactShare the least multiple of how long one took.
	compactRest  = 5 * time.Second
	compactShare = 10
)

// cellLoop compacts the cells when scans request it.
func (s *Store) cellLoop() {
	lower, upper := mvcc.NotifyBounds()
	for {
		select {
		case <-s.stopped.Done():
			return
		case <-s.compactCells:
		}
		began := time.Now()
		err := s.engine.Flush()
		if err == nil {
			err = s.engine.Compact(s.stopped, lower, upper)
		}
		if err != nil && s.stopped.Err() == nil {
			s.opts.Logger.Warn("notify cells were not compacted", "err", err)
		}
		rest := time.NewTimer(max(compactRest, compactShare*time.Since(began)))
		select {
		case <-s.stopped.Done():
		case <-rest.C:
		}
		rest.Stop()
	}
}

// upToKeys are the keys of a NotifyClear.
type upToKeys []NotifyUpTo

func (k upToKeys) len() int        { return len(k) }
func (k upToKeys) at(i int) []byte { return k[i].Key }

// NotifyClear implements Notifier.
func (s *Store) NotifyClear(_ context.Context, req *NotifyClearRequest) (cleared int, err error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	cleared, err = s.mvcc.NotifyClear(&admission[upToKeys]{s, req.Ranges, req.Cells}, req.Observer, req.Cells)
	return cleared, mapError(err)
}

// NotifyPut implements Notifier.
func (s *Store) NotifyPut(ctx context.Context, req *NotifyPutRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	size := 0
	for _, key := range req.Keys {
		size += len(key)
	}
	if s.engine.AdmitWrite(size) != nil {
		return &DiskFullError{Shard: s.shardID}
	}
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	return mapError(s.mvcc.NotifyPut(ctx, &adm, req.Observer, req.Keys, req.TS, req.Hop))
}

// NotifyDrop implements Notifier.
func (s *Store) NotifyDrop(_ context.Context, req *NotifyDropRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	if err := checkSpans(s.ranges.Load(), []RangeRef{req.Range}, []Span{req.Span}); err != nil {
		return err
	}
	return mapError(s.mvcc.NotifyDrop(req.Span.Start, req.Span.End, req.Observer))
}

// WatchNotify implements Notifier. It does not count as a request under way: it lasts as long as its caller likes.
func (s *Store) WatchNotify(ctx context.Context, f func([]NotifyHint) error) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	s.gate.leave()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.watched, cancel)()
	err := s.mvcc.WatchNotify(watching, f)
	if s.watched.Err() != nil && ctx.Err() == nil {
		return ErrClosed
	}
	return mapError(err)
}

// EndWatches ends every WatchNotify, those to come among them, with ErrClosed. It is called before the connections of
// others are drained.
func (s *Store) EndWatches() { s.endWatches() }
