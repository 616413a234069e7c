package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
)

// grown accounts for bytes written by a request, and schedules a size check of the range if it has become large. All of
// them count for the range of the first key: the check corrects the estimate.
func (s *Store) grown(keys keyList, bytes int) {
	if bytes == 0 {
		return
	}
	r := s.ranges.Load().find(keys.at(0))
	if r == nil || r.sizeBytes.Add(int64(bytes)) < s.opts.RangeMaxBytes {
		return
	}
	select {
	case s.splits <- r:
	default: // the queue is full; the next write schedules it again
	}
}

// splitLoop splits ranges that have grown too large, one at a time, while traffic runs.
func (s *Store) splitLoop() {
	for {
		select {
		case <-s.stopped.Done():
			return
		case r := <-s.splits:
			if err := s.maybeSplit(s.stopped, r); err != nil && s.stopped.Err() == nil {
				s.opts.Logger.Warn("range was not split", "range_id", r.desc.ID, "err", err)
			}
		}
	}
}

// maybeSplit splits a range if it really is too large.
func (s *Store) maybeSplit(ctx context.Context, r *localRange) error {
	if s.ranges.Load().find(r.desc.Span.Start) != r || r.sizeBytes.Load() < s.opts.RangeMaxBytes {
		return nil // it was split since it was queued
	}
	onDisk, err := s.diskUsage(&r.desc.Span)
	if err != nil {
		return err
	}
	// Recently written data may not be on disk yet, but is no more than some memtables.
	const inMemory = 128 << 20
	size := int64(onDisk) + min(r.sizeBytes.Load(), inMemory)
	if size < s.opts.RangeMaxBytes {
		r.sizeBytes.Store(size)
		return nil
	}
	key, err := s.mvcc.MiddleKey(ctx, r.desc.Span.Start, r.desc.Span.End)
	if err != nil {
		return err
	}
	if key == nil {
		r.sizeBytes.Store(0) // a single key cannot be split
		return nil
	}
	return s.split(ctx, r, key)
}

func (s *Store) diskUsage(span *Span) (uint64, error) {
	lower, upper := mvcc.WriteBounds(span.Start, span.End)
	return s.engine.EstimateDiskUsage(lower, upper)
}

// ForceSplit makes key the first one of a range. It does nothing if it is the first already.
func (s *Store) ForceSplit(ctx context.Context, key []byte) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	r := s.ranges.Load().find(key)
	if r == nil {
		return s.ranges.Load().stale(nil, key)
	}
	if string(r.desc.Span.Start) == string(key) {
		return nil
	}
	return s.split(ctx, r, append([]byte(nil), key...))
}

// split divides r at key. The left half keeps the id with a higher epoch. Data, locks and max_ts
// are the store's and stay where they are, so that requests under way need not be kept out (I3).
func (s *Store) split(ctx context.Context, r *localRange, key []byte) error {
	id, err := s.allocateRangeID(ctx)
	if err != nil {
		return err
	}
	left := &localRange{desc: r.desc}
	left.desc.Epoch++
	left.desc.Span.End = key
	right := &localRange{desc: RangeDescriptor{ID: id, Epoch: 1, Span: Span{Start: key, End: r.desc.Span.End}, Shard: s.shardID}}
	half := r.sizeBytes.Load() / 2
	left.sizeBytes.Store(half)
	right.sizeBytes.Store(half)
	err = s.changeRanges([]*localRange{r}, []*localRange{left, right})
	if errors.Is(err, errRangesChanged) {
		return nil // it has been split already
	}
	if err != nil {
		return fmt.Errorf("split range %d: %w", r.desc.ID, err)
	}
	s.metrics.rangeSplits.Inc()
	s.opts.Logger.Info("range was split", "range_id", r.desc.ID, "new_range_id", id, "bytes", 2*half)
	return nil
}

// errRangesChanged: a range to be replaced is no longer there.
var errRangesChanged = errors.New("kv: ranges have changed meanwhile")

// changeRanges replaces ranges: first durably, then in memory. Then it reports them to the directory.
func (s *Store) changeRanges(remove, add []*localRange) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	return s.changeRangesLocked(remove, add)
}

func (s *Store) changeRangesLocked(remove, add []*localRange, records ...metaRecord) error {
	table := s.ranges.Load()
	for _, r := range remove {
		if table.find(r.desc.Span.Start) != r {
			return errRangesChanged
		}
	}
	b := s.engine.NewBatch(0)
	defer b.Close()
	for _, r := range remove {
		b.Delete(metaIDKey(metaRange, r.desc.ID))
	}
	for _, r := range add {
		b.Put(metaIDKey(metaRange, r.desc.ID), appendDescriptor(nil, &r.desc))
	}
	for _, r := range records {
		b.Put(r.key, r.value)
	}
	if err := s.engine.applySync(b); err != nil {
		return err
	}
	s.ranges.Store(table.with(remove, add))
	for _, r := range remove {
		s.mvcc.RetryWaiters(r.desc.Span.Start, r.desc.Span.End)
	}
	s.requestReport()
	return nil
}

// metaRecord is written with a change of ranges, or not at all.
type metaRecord struct{ key, value []byte }

// allocateRangeID returns an id that no range has or had.
func (s *Store) allocateRangeID(ctx context.Context) (uint64, error) {
	if s.opts.Directory != nil {
		return s.opts.Directory.AllocateRangeID(ctx)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	id := s.changes.nextID
	b := s.engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaNextRange), binary.BigEndian.AppendUint64(nil, id+1))
	// The descriptor that uses the id is synced later, and with it this record, which precedes it.
	if err := s.engine.Apply(b, storage.NoSync); err != nil {
		return 0, err
	}
	s.changes.nextID = id + 1
	return id, nil
}

// loadRanges reads the ranges the store owns. A new store without a directory owns all keys; one with a directory adopts
// the ranges that it is given.
func (s *Store) loadRanges(ctx context.Context) error {
	table := &rangeTable{}
	err := s.engine.scanMeta(metaRange, func(_, value []byte) error {
		desc, _, err := decodeDescriptor(value)
		if err != nil {
			return err
		}
		desc.Shard = s.shardID
		r := &localRange{desc: desc}
		table.sorted = append(table.sorted, r)
		size, err := s.diskUsage(&desc.Span)
		r.sizeBytes.Store(int64(size))
		return err
	})
	if err != nil {
		return err
	}
	s.ranges.Store(table.with(nil, nil)) // in key order
	if s.changes.nextID, err = s.engine.getMetaU64(metaNextRange); err != nil {
		return err
	}
	s.changes.nextID = max(s.changes.nextID, 2)
	if s.opts.Directory != nil {
		return whileOpening(ctx, func() error { return s.register(ctx) })
	}
	if len(table.sorted) == 0 && !s.opts.Detached {
		first := &localRange{desc: RangeDescriptor{ID: 1, Epoch: 1, Shard: s.shardID}}
		return s.changeRanges(nil, []*localRange{first})
	}
	return nil
}
