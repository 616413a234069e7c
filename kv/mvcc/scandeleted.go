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
	since  uint64   // deletedSpans.seq before the probe
	locked [][]byte // keys whose locks the probe has met and that may become versions, in scan order
	more   bool     // there are locked keys behind those
	large  bool     // the probe has met a large commit, whose keys are not known
	walked int      // keys of the run, those jumped over aside; 0 if there is no run
	start  []byte   // forward: where the run begins
	end    []byte   // in reverse: the bound above the run
	jumped bool     // the run is next to a verified span, or has one in it
}

// reset begins a probe.
func (r *deletedRun) reset(s *State) {
	r.since, r.locked, r.more = s.deleted.seq.Load(), r.locked[:0], false
	r.large = s.locks.largeN.Load() > 0
}

// meet is called with an entry of the lock table in the page's span.
func (r *deletedRun) meet(e *entry) {
	if !e.lock.blocksReads() {
		return
	}
	if r.more = r.more || len(r.locked) == maxProbedKeys; r.more {
		return
	}
	r.locked = append(r.locked, bytes.Clone(e.key))
}

// first moves to the first version of the page. A deleted span at its beginning costs no separate seek.
func (sc *scanner) first() (ok bool) {
	r := &sc.run
	r.start = sc.start
	if len(sc.spans) == 1 {
		if sc.it.Buf, r.jumped = sc.s.deleted.endOf(sc.start, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite)); r.jumped {
			r.start = append(r.start[:0:0], sc.it.Buf[1:]...)
			sc.it.Buf = storage.AppendSentinel(sc.it.Buf)
			return sc.it.SeekGE(sc.it.Buf)
		}
	}
	return sc.it.First()
}

// last is first for a scan in reverse.
func (sc *scanner) last() (ok bool) {
	r := &sc.run
	r.end = sc.end
	if len(sc.spans) == 1 && len(sc.end) > 0 {
		if sc.it.Buf, r.jumped = sc.s.deleted.startBelow(sc.end, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite)); r.jumped {
			r.end = append(r.end[:0:0], sc.it.Buf[1:]...)
			sc.it.Buf = storage.AppendSentinel(sc.it.Buf)
			return sc.it.SeekLT(sc.it.Buf)
		}
	}
	return sc.it.Last()
}

// passDeleted moves forward from key, which is deleted as of the snapshot and has no newer version, to the next key that
// may not be. first reports that the scan has found no key before: there is none between its beginning, or the end of
// the span it began with, and key.
func (sc *scanner) passDeleted(key []byte, first bool) (ok bool) {
	r := &sc.run
	if r.walked == 0 && !first {
		r.start, r.jumped = append(r.start[:0:0], key...), false
	}
	if r.walked++; r.walked%16 == 1 {
		buf := append(sc.it.Buf[:0], tagWrite)
		if buf, found := sc.s.deleted.endOf(key, sc.args.ReadTS, buf); found {
			r.jumped = true
			sc.it.Buf = storage.AppendSentinel(buf)
			return sc.it.SeekGE(sc.it.Buf)
		}
	}
	return sc.it.NextPrefix()
}

// passDeletedBelow is passDeleted for a reverse scan: the iterator has moved to the previous key already, as ok reports.
// key is in the iterator's buffer.
func (sc *scanner) passDeletedBelow(key []byte, first, ok bool) bool {
	r := &sc.run
	if r.walked == 0 && !(first && len(r.end) > 0) {
		r.end, r.jumped = append(append(r.end[:0:0], key...), 0), false
	}
	if r.walked++; ok && r.walked%16 == 1 {
		above := append(slices.Clip(key), 0)
		if buf, found := sc.s.deleted.startBelow(above, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite)); found {
			r.jumped = true
			sc.it.Buf = storage.AppendSentinel(buf)
			return sc.it.SeekLT(sc.it.Buf)
		}
	}
	return ok
}

// endRun reports the run, if it is long enough: forward, all of it lies below bound; in reverse, at or above it.
func (sc *scanner) endRun(bound []byte) {
	r := &sc.run
	least := minDeletedSpanKeys
	if r.jumped {
		least = minDeletedMore
	}
	walked := r.walked
	if r.walked = 0; walked < least || len(bound) == 0 || r.large {
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

// newerThanSnapshot ends the run before the key of the iterator's current version.
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
