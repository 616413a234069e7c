package mvcc

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/kv/storage"
)

// maxProbedKeys bounds how many locked keys a scan keeps in mind for the sake of deleted spans.
const maxProbedKeys = 16

// deletedRun is the row of deleted keys that a scan is walking over: it jumps over the part of them that is known to be a
// deleted span, and reports the run when it ends.
type deletedRun struct {
	off    bool     // the scan does not take part: it reads several spans
	since  uint64   // deletedSpans.seq before the probe
	locked [][]byte // keys whose locks the probe has met and that may become versions, in scan order
	more   bool     // there are locked keys behind those
	large  bool     // the probe has met a large commit, whose keys are not known
	walked int      // keys of the run, those jumped over aside; 0 if there is no run
	start  []byte   // forward: the first key of the run
	end    []byte   // in reverse: the bound above the first key of the run

	spanStart, spanEnd []byte // buffers
}

// reset begins a probe.
func (r *deletedRun) reset(s *State) {
	r.since, r.locked, r.more = s.deleted.seq.Load(), r.locked[:0], false
	r.large = s.locks.largeN.Load() > 0
}

// meet is told of an entry of the lock table in the page's span.
func (r *deletedRun) meet(e *entry) {
	if !e.lock.blocksReads() {
		return
	}
	if r.more = r.more || len(r.locked) == maxProbedKeys; r.more {
		return
	}
	r.locked = append(r.locked, bytes.Clone(e.key))
}

// passDeleted moves forward from key, which is deleted as of the snapshot and has no newer version, to the next
// key that may not be.
func (sc *scanner) passDeleted(key []byte) (ok bool) {
	r := &sc.run
	if r.walked == 0 {
		r.start = append(r.start[:0], key...)
	}
	if r.walked++; r.walked%16 == 1 && sc.s.deleted.n.Load() > 0 {
		if _, end, found := sc.s.deleted.find(key, sc.args.ReadTS, nil, r.spanEnd[:0]); found {
			r.spanEnd = end
			sc.it.Buf = appendPrefix(sc.it.Buf[:0], tagWrite, end)
			return sc.it.SeekGE(sc.it.Buf)
		}
	}
	return sc.it.NextPrefix()
}

// passDeletedBelow is passDeleted for a scan in reverse: the iterator has left key for the one below it already, which ok
// tells.
func (sc *scanner) passDeletedBelow(key []byte, ok bool) bool {
	r := &sc.run
	if r.walked == 0 {
		r.end = append(append(r.end[:0], key...), 0)
	}
	if r.walked++; ok && r.walked%16 == 1 && sc.s.deleted.n.Load() > 0 {
		if start, _, found := sc.s.deleted.find(key, sc.args.ReadTS, r.spanStart[:0], r.spanEnd[:0]); found {
			r.spanStart = start
			sc.it.Buf = appendPrefix(sc.it.Buf[:0], tagWrite, start)
			return sc.it.SeekLT(sc.it.Buf)
		}
	}
	return ok
}

// endRun reports the run, if there is one that is long enough: forward, all of it lies below bound; in reverse, at or
// above it.
func (sc *scanner) endRun(bound []byte) {
	r := &sc.run
	walked := r.walked
	if r.walked = 0; walked < minDeletedSpanKeys || len(bound) == 0 || r.large {
		return
	}
	start, end := r.start, bound
	if sc.args.Reverse {
		start, end = bound, r.end
	}
	if start, end = r.unlocked(start, end, sc.args.Reverse); start != nil {
		sc.s.deleted.add(start, end, sc.args.ReadTS, r.since, walked)
	}
}

// unlocked returns the part of [start, end) that the scan has walked over before it came to a locked key; nil if
// that is not known.
func (r *deletedRun) unlocked(start, end []byte, reverse bool) (from, to []byte) {
	if r.more {
		last := r.locked[len(r.locked)-1]
		if !reverse && bytes.Compare(last, start) < 0 || reverse && bytes.Compare(last, end) >= 0 {
			return nil, nil
		}
	}
	for _, key := range r.locked {
		switch {
		case bytes.Compare(key, start) < 0 || bytes.Compare(key, end) >= 0:
		case reverse:
			start = append(slices.Clip(key), 0)
		default:
			end = key
		}
	}
	return start, end
}

// endRunAtSpan ends the run at the bound of the span that the walk was in.
func (sc *scanner) endRunAtSpan(at int) {
	switch last := at >= len(sc.spans)-1; {
	case sc.run.walked == 0 || sc.it.Error() != nil:
	case last && sc.args.Reverse:
		sc.endRun(sc.start)
	case last:
		sc.endRun(sc.end)
	case sc.args.Reverse:
		sc.endRun(sc.spans[len(sc.spans)-1-at].Start)
	default:
		sc.endRun(sc.spans[at].End)
	}
}

// endRunAbove is endRun in reverse, before a key that is not part of the run.
func (sc *scanner) endRunAbove(key []byte) {
	if sc.run.walked > 0 {
		sc.endRun(append(slices.Clip(key), 0))
	}
}

// newerThanSnapshot ends the run before the key of the version that the iterator stands on.
func (sc *scanner) newerThanSnapshot() {
	if sc.run.walked == 0 {
		return
	}
	prefix, _, _ := storage.SplitVersion(sc.it.Key())
	if sc.args.Reverse {
		sc.endRunAbove(userKey(prefix))
	} else {
		sc.endRun(userKey(prefix))
	}
}
