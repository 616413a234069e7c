package mvcc

import (
	"bytes"
	"context"
	"math"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// RefreshRequest requests a check that Spans, which lie within Ranges, are the same at ToTS as at FromTS, changes by
// StartTS aside. [key, key+"\x00") is a single key, and cheaper. ToTS has been issued.
type RefreshRequest struct {
	Ranges                []RangeRef
	Spans                 []Span
	StartTS, FromTS, ToTS tso.Timestamp
	// Bypass are transactions known not to commit at or below ToTS, whatever their locks contain: a push raises the
	// primary's minimum only.
	Bypass []tso.Timestamp
}

// Refresh verifies that no other transaction has changed a key of the spans in (FromTS, ToTS], and, after BeginRead with
// ToTS, that none will. Errors: *RefreshConflictError, *KeyLockedError, *TooOldError.
func (s *State) Refresh(ctx context.Context, args *RefreshRequest) error {
	if args.ToTS == tso.MaxTimestamp || args.FromTS > args.ToTS {
		return &InvalidRequestError{Detail: "refresh to a timestamp that is none, or below the snapshot"}
	}
	for {
		conflict, err := s.validate(args)
		if err != nil || conflict == nil {
			return err
		}
		if conflict.wait == nil {
			return conflict.KeyLockedError
		}
		if err := s.wait(ctx, conflict.wait); err != nil {
			return err
		}
	}
}

// readConflict is a lock that may yet commit at or below the timestamp of a validation. With wait its
// state is about to change.
type readConflict struct {
	*KeyLockedError
	wait <-chan struct{}
}

// validate is one attempt at Refresh. The caller has fenced ToTS.
func (s *State) validate(args *RefreshRequest) (*readConflict, error) {
	// The lock table first, the marks and the iterators then: I1.
	for i := range args.Spans {
		if conflict := s.lockInSpan(args, &args.Spans[i]); conflict != nil {
			return conflict, nil
		}
	}
	var point *storage.Iterator
	defer func() {
		if point != nil {
			point.Close()
		}
	}()
	for i := range args.Spans {
		span := &args.Spans[i]
		if !span.isPoint() {
			if err := s.changedInSpan(args, span); err != nil {
				return nil, err
			}
			continue
		}
		// Most keys have not been written since then, as their marks show.
		if s.marks.of(span.Start).Load() <= uint64(args.FromTS) {
			continue
		}
		if point == nil {
			it, err := s.eng.NewPointIter(storage.PointCheck)
			if err != nil {
				return nil, err
			}
			point = it
		}
		if err := changedAt(args, point, span.Start); err != nil {
			return nil, err
		}
	}
	return nil, s.checkSafePoint(args.FromTS)
}

// lockInSpan returns a lock in the span that may commit at or below ToTS, or nil.
func (s *State) lockInSpan(args *RefreshRequest, span *Span) (conflict *readConflict) {
	t := s.locks
	if t.blocking.Load() == 0 {
		return nil
	}
	for _, c := range t.largeCommits() {
		if c.startTS == args.StartTS || !t.blocksRead(c, args.ToTS) {
			continue
		}
		if from, key := c.firstIn(span.Start, span.End); from != nil {
			return &readConflict{KeyLockedError: c.lockedError(key), wait: c.done}
		}
	}
	visit := func(e *entry) bool {
		switch decideRefreshLock(args, &e.lock, e.state) {
		case readPass:
			return true
		case readWait:
			conflict = &readConflict{wait: e.waitChanLocked()}
			fallthrough
		default:
			if conflict == nil {
				conflict = &readConflict{}
			}
			conflict.KeyLockedError = &KeyLockedError{Key: bytes.Clone(e.key), Lock: e.lock.detached()}
			return false
		}
	}
	t.mu.Lock() // a channel may have to be made
	defer t.mu.Unlock()
	if span.isPoint() {
		if e := t.getBlockingLocked(span.Start); e != nil {
			visit(e)
		}
	} else {
		t.ascendBlockingLocked(span.Start, span.End, visit)
	}
	return conflict
}

// changedAt returns *RefreshConflictError if the key has changed.
func changedAt(args *RefreshRequest, it *storage.Iterator, key []byte) error {
	it.Buf = appendPrefix(it.Buf[:0], tagWrite, key)
	for ok := it.SeekPrefixGE(it.Buf); ok; ok = it.Next() {
		w, err := currentWrite(it)
		if err != nil {
			return err
		}
		if w.commitTS <= args.FromTS {
			return nil
		}
		if decideRefresh(args, &w) {
			return &RefreshConflictError{Key: bytes.Clone(key), StartTS: w.startTS, CommitTS: w.commitTS}
		}
	}
	return it.Error()
}

// changedInSpan is changedAt for every key of a span, including those that did not exist. A long span is read by an
// iterator that skips what was not written since, which costs more to open.
func (s *State) changedInSpan(args *RefreshRequest, span *Span) error {
	const short = 256
	lower, upper := appendPrefix(nil, tagWrite, span.Start), appendUpper(nil, tagWrite, span.End)
	it, err := s.eng.NewRangeIter(lower, upper)
	if err != nil {
		return err
	}
	rest, err := changedAmong(args, it, short)
	it.Close()
	if err != nil || rest == nil {
		return err
	}
	if it, err = s.eng.NewVersionIter(rest, upper, uint64(args.FromTS)+1, uint64(args.ToTS)+1); err != nil {
		return err
	}
	defer it.Close()
	_, err = changedAmong(args, it, math.MaxInt)
	return err
}

// changedAmong checks up to limit records and returns where to continue, nil at the end.
func changedAmong(args *RefreshRequest, it *storage.Iterator, limit int) (rest []byte, err error) {
	n := 0
	for ok := it.First(); ok; n++ {
		if n == limit {
			return bytes.Clone(it.Key()), nil
		}
		_, version, isVersion := storage.SplitVersion(it.Key())
		if !isVersion {
			return nil, corrupt(it.Key(), "unversioned key among the write records")
		}
		if tso.Timestamp(version) <= args.FromTS {
			ok = it.NextPrefix()
			continue
		}
		w, err := currentWrite(it)
		if err != nil {
			return nil, err
		}
		if decideRefresh(args, &w) {
			prefix, _, _ := storage.SplitVersion(it.Key())
			return nil, &RefreshConflictError{Key: bytes.Clone(userKey(prefix)), StartTS: w.startTS, CommitTS: w.commitTS}
		}
		ok = it.Next()
	}
	return nil, it.Error()
}
