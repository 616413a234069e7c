package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Garbage collection, in the order in which a controller requests it from every store:
//
//	SetSafePoint(sp)   the fence: nothing at or below sp is read, begun or prewritten any more
//	ScanLock(sp), …    everything begun at or below sp is decided and finished
//	SyncLog            what was finished survives a power cut
//	Collect(sp)        versions and records that only snapshots at or below sp could need are removed
//
// A key's versions, with sp = 8: the newest at or below sp is kept, older ones are removed.
//
//	put@9  put@7  del@4  put@2
//	       kept   ×      ×
//
// A pass visits only keys that have a version in (done, sp], done being the safe point of the last complete pass: all
// others are as that pass left them. Blocks and files without such versions are skipped by their version interval. The
// progress of a pass is written with the removals, so that a crash, which may undo the last of both, repeats a little
// and skips nothing.

// gcState is the state of garbage collection in a State.
type gcState struct {
	fence mutex // locked while the safe point is written
	// fenced is the safe point that SetSafePoint has made good; guarded by fence.
	fenced tso.Timestamp
	mu     mutex // held by Collect
	// collected: the transactions whose records may have been removed.
	collected atomic.Pointer[collectedRecords]
	pass      gcPass // guarded by mu
}

// mutex is held over writes to the disk, and those who wait for it watch their context.
type mutex chan struct{}

func newMutex() mutex { return make(mutex, 1) }

func (m mutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m mutex) unlock() { <-m }

// gcPass is the progress of collection. It is stored.
type gcPass struct {
	done   tso.Timestamp // all keys have been visited at this safe point
	target tso.Timestamp // safe point of the pass under way, 0 if there is none
	tag    byte          // keyspace the pass is in: tagWrite, then tagStatus
	resume []byte        // first key of it not visited yet
	// from is the lower end of the versions that the current pass visits, at or below done: versions above it may have
	// been added after the last pass, by locks that were older. kept are the transactions at or below target, or done,
	// whose records are all kept.
	from tso.Timestamp
	kept []TSSpan
}

// CollectGarbageRequest requests collection at SafePoint. Protected are the transactions that may have a lock at or below
// it somewhere: their records are kept. The last pass may have missed versions above From. Budget is how long a shard
// works, pauses included, before it answers, 1 s by default; Collect does not look at it.
type CollectGarbageRequest struct {
	SafePoint, From tso.Timestamp
	Protected       []TSSpan
	Budget          time.Duration
}

// GCStats counts the work of a part of a collection.
type GCStats struct {
	Keys     int // visited
	Versions int // removed
	Statuses int // rollback and lock-commit records removed
	Kept     int // records that stay for stores that are away
	Bytes    int // of the removals' batches
}

// SafePoint returns the fence: timestamps at or below it are refused. 0 means none.
func (s *State) SafePoint() tso.Timestamp { return tso.Timestamp(s.safePoint.Load()) }

// SetSafePoint raises the fence to ts and returns the one in force, which may be higher. Once it has
// returned, the fence is durable, and every write that it would have refused is in the lock table,
// or applied.
func (s *State) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	if err := s.gc.fence.lock(ctx); err != nil {
		return s.SafePoint(), err
	}
	defer s.gc.fence.unlock()
	if ts <= s.gc.fenced {
		return s.SafePoint(), nil
	}
	if err := s.checkIssued(ctx, ts); err != nil {
		return s.SafePoint(), err
	}
	raise(&s.safePoint, ts)
	ts = s.SafePoint() // a request before, which was given up, may have raised it further
	// A writer that checked the old fence holds latches until its locks are in the table.
	for i := range s.latches.stripes {
		s.latches.stripes[i].Lock()
		//lint:ignore SA2001 the lock is taken to wait for its holder; nothing is guarded
		s.latches.stripes[i].Unlock()
	}
	// So does a large commit, whose lock is in the table without latches.
	if err := s.awaitLarge(ctx, ts); err != nil {
		return s.SafePoint(), err
	}
	if err := s.storeSafePoint(ts); err != nil {
		return ts, err
	}
	s.gc.fenced = ts
	return ts, nil
}

// storeSafePoint makes the safe point durable, and with it all that was applied before.
func (s *State) storeSafePoint(ts tso.Timestamp) error {
	b := s.eng.NewBatch(0)
	defer b.Close()
	b.Put(s.opts.SafePointKey, binary.BigEndian.AppendUint64(nil, uint64(ts)))
	if err := s.eng.Apply(b, storage.Sync); err != nil {
		return err
	}
	return b.SyncWait()
}

// SyncLog returns once everything applied before the call is durable.
func (s *State) SyncLog(ctx context.Context) error {
	if err := s.gc.fence.lock(ctx); err != nil {
		return err
	}
	defer s.gc.fence.unlock()
	return s.storeSafePoint(s.SafePoint())
}

// recordsGone returns *TooOldError if the records of a transaction may have been collected, so that their absence does
// not determine its outcome.
func (s *State) recordsGone(startTS tso.Timestamp) error {
	if s.gc.collected.Load().gone(startTS) {
		return &TooOldError{TS: startTS, SafePoint: s.SafePoint()}
	}
	return nil
}

// collectedValue answers a read that found a write record, or lock, but not its data record. Either collection has
// overtaken it, or the store is corrupt. A read of the newest version has no timestamp for the fence to reject: the
// result of its iterator is then still valid.
func (s *State) collectedValue(it *storage.Iterator, key, stored []byte, readTS tso.Timestamp) ([]byte, error) {
	if readTS == tso.MaxTimestamp && it != nil {
		look, err := it.CloneUnbounded()
		if err != nil {
			return nil, err
		}
		defer look.Close()
		if found, err := exists(look, stored); found || err != nil {
			if err != nil {
				return nil, err
			}
			value, err := look.Value()
			return append([]byte{}, value...), err
		}
	} else if err := s.checkSafePoint(readTS); err != nil {
		return nil, err
	}
	return nil, corrupt(key, "write record without its data record")
}

// loadGC reads how far collection had come.
func (s *State) loadGC() error {
	s.gc.collected.Store(&collectedRecords{})
	if len(s.opts.CollectedKey) == 0 {
		return nil
	}
	value, found, err := s.eng.Get(nil, s.opts.CollectedKey)
	if err != nil || !found {
		return err
	}
	if s.gc.pass, err = decodePass(value); err != nil {
		return &CorruptionError{Key: s.opts.CollectedKey, Detail: "progress of garbage collection", Err: err}
	}
	s.gc.pass.from = s.gc.pass.done
	value, found, err = s.eng.Get(nil, s.opts.KeptKey)
	if err == nil && found {
		err = decodeKept(value, &s.gc.pass)
	}
	if err != nil {
		return &CorruptionError{Key: s.opts.KeptKey, Detail: "records kept by garbage collection", Err: err}
	}
	s.gc.collected.Store(&collectedRecords{through: max(s.gc.pass.done, s.gc.pass.target), kept: s.gc.pass.kept})
	return nil
}

// appendPass encodes: done(8) target(8) tag(1) resume…
func appendPass(dst []byte, p *gcPass) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.done))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.target))
	return append(append(dst, p.tag), p.resume...)
}

func decodePass(b []byte) (p gcPass, err error) {
	if len(b) < 17 {
		return p, errMalformedRecord
	}
	p.done, p.target = tso.Timestamp(binary.BigEndian.Uint64(b)), tso.Timestamp(binary.BigEndian.Uint64(b[8:]))
	p.tag, p.resume = b[16], bytes.Clone(b[17:])
	return p, nil
}

// Collect does a part of a pass at args.SafePoint, or continues the current one, which may be at a lower one. done
// reports that all keys have been visited at the safe point or above. The caller guarantees that all transactions begun
// at or below it, except those protected, are finished everywhere, durably; a pass in progress needs no other protection
// than it has begun with, since no transaction acquires a lock below its safe point. pause, if given, is called after
// each removal of a few hundred records, without latches held; its error ends the part.
func (s *State) Collect(ctx context.Context, args *CollectGarbageRequest, pause func() error) (st GCStats, done bool, err error) {
	safePoint := args.SafePoint
	if err := s.gc.mu.lock(ctx); err != nil {
		return st, false, err
	}
	defer s.gc.mu.unlock()
	if safePoint > s.SafePoint() {
		return st, false, &InvalidRequestError{Detail: fmt.Sprintf("collection at %d above the safe point %d", safePoint, s.SafePoint())}
	}
	if len(s.opts.CollectedKey) == 0 || len(s.opts.KeptKey) == 0 {
		return st, false, &InvalidRequestError{Detail: "store has nowhere to keep the progress of garbage collection"}
	}
	if s.gc.pass.target == 0 {
		if safePoint <= s.gc.pass.done {
			return st, true, nil
		}
		if err := s.beginPass(args); err != nil {
			return st, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		return st, false, err
	}
	c := collector{s: s, pass: s.gc.pass, stats: &st, pause: pause}
	defer c.close()
	if err := c.page(); err != nil {
		return st, false, err
	}
	return st, s.gc.pass.target == 0 && s.gc.pass.done >= safePoint, nil
}

// beginPass records, durably and before anything is removed, that records up to the safe point may be missing, except
// for those that are kept.
func (s *State) beginPass(args *CollectGarbageRequest) error {
	done, target := s.gc.pass.done, args.SafePoint
	pass := gcPass{
		done: done, target: target, tag: tagWrite, from: min(done, args.From),
		kept: keptFrom(s.gc.pass.kept, done, target, mergeSpans(args.Protected)),
	}
	s.gc.collected.Store(&collectedRecords{through: target, kept: pass.kept})
	b := s.eng.NewBatch(0)
	defer b.Close()
	b.Put(s.opts.CollectedKey, appendPass(nil, &pass))
	b.Put(s.opts.KeptKey, appendKept(nil, &pass))
	if err := s.eng.Apply(b, storage.Sync); err != nil {
		return err
	}
	if err := b.SyncWait(); err != nil {
		return err
	}
	s.gc.pass = pass
	return nil
}
