package mvcc

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// An unavailable store keeps its locks, and records here may determine their outcome. The controller therefore names the
// transactions that may still have a lock somewhere, as spans of start_ts, and collection keeps the records that
// determine their outcome:
//
//	rollback and lock records       unchanged
//	versions that cannot be read    as records of a commit without a version: the same commit_ts, no value
//
// The records are kept until the next pass, which visits every status record again and removes those that are no longer
// protected.

// TSSpan holds the timestamps above After, up to Through.
type TSSpan struct{ After, Through tso.Timestamp }

func (p TSSpan) contains(ts tso.Timestamp) bool { return p.After < ts && ts <= p.Through }

// mergeSpans returns the union of spans as disjoint spans in ascending order.
func mergeSpans(spans []TSSpan) (merged []TSSpan) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b TSSpan) int { return cmp.Compare(a.After, b.After) })
	for _, p := range spans {
		switch n := len(merged); {
		case p.After >= p.Through:
		case n > 0 && p.After <= merged[n-1].Through:
			merged[n-1].Through = max(merged[n-1].Through, p.Through)
		default:
			merged = append(merged, p)
		}
	}
	return merged
}

// keepForAbsent reports whether the records that determine the outcome of a transaction have to be kept, since an
// unreachable store may have its locks. protected are disjoint.
func keepForAbsent(startTS tso.Timestamp, protected []TSSpan) bool {
	return slices.ContainsFunc(protected, func(p TSSpan) bool { return p.contains(startTS) })
}

// keptFrom returns the transactions at or below target whose records a pass keeps, all of them: those protected
// whose records no pass up to done has removed.
func keptFrom(kept []TSSpan, done, target tso.Timestamp, protected []TSSpan) (next []TSSpan) {
	intact := append(slices.Clone(kept), TSSpan{After: done, Through: target})
	for _, p := range protected {
		for _, q := range intact {
			next = append(next, TSSpan{After: max(p.After, q.After), Through: min(p.Through, q.Through, target)})
		}
	}
	return mergeSpans(next)
}

// collectedRecords: the records of all transactions that began at or below through, except those in kept, may have been
// removed.
type collectedRecords struct {
	through tso.Timestamp
	kept    []TSSpan
}

func (c *collectedRecords) gone(startTS tso.Timestamp) bool {
	return startTS <= c.through && c.through != 0 && !keepForAbsent(startTS, c.kept)
}

// appendKept encodes: from(8), then after(8) through(8) of each span.
func appendKept(dst []byte, p *gcPass) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.from))
	for _, k := range p.kept {
		dst = binary.BigEndian.AppendUint64(dst, uint64(k.After))
		dst = binary.BigEndian.AppendUint64(dst, uint64(k.Through))
	}
	return dst
}

func decodeKept(b []byte, p *gcPass) error {
	if len(b) < 8 || len(b)%16 != 8 {
		return errMalformedRecord
	}
	p.from = tso.Timestamp(binary.BigEndian.Uint64(b))
	for b = b[8:]; len(b) > 0; b = b[16:] {
		p.kept = append(p.kept, TSSpan{After: tso.Timestamp(binary.BigEndian.Uint64(b)), Through: tso.Timestamp(binary.BigEndian.Uint64(b[8:]))})
	}
	return nil
}

// putStub writes the record that replaces a version. Status checks look for it after the version, so that they find one
// of the two.
func (s *State) putStub(b *storage.Batch, stored, key []byte, w *writeRecord) []byte {
	raise(&s.maxLockCommitTS, w.commitTS)
	raise(s.marks.of(key), w.commitTS)
	stored = appendVersioned(stored, tagStatus, key, w.commitTS)
	b.Put(stored, appendStatus(nil, statusLockCommit, w.startTS))
	return stored
}

// stubSpan writes stubs of the versions of [start, end), which is to be removed, whose transactions are protected.
func (s *State) stubSpan(start, end []byte, protected []TSSpan) error {
	if len(protected) == 0 {
		return nil
	}
	lower, upper := WriteBounds(start, end)
	it, err := s.eng.NewVersionIter(lower, upper, uint64(protected[0].After)+1, ^uint64(0))
	if err != nil {
		return err
	}
	defer it.Close()
	var b *storage.Batch
	defer func() {
		if b != nil {
			b.Close()
		}
	}()
	var stored []byte
	n := 0
	apply := func() error {
		if b == nil {
			return nil
		}
		err := s.eng.Apply(b, storage.NoSync)
		b.Close()
		b = nil
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		w, err := currentWrite(it)
		if err != nil {
			return err
		}
		if !keepForAbsent(w.startTS, protected) {
			continue
		}
		if b == nil {
			b = s.eng.NewBatch(0)
		}
		prefix, _, _ := storage.SplitVersion(it.Key())
		stored = s.putStub(b, stored[:0], userKey(prefix), &w)
		if n++; n%gcBatchRecords == 0 {
			if err := apply(); err != nil {
				return err
			}
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	return apply()
}
