package mvcc

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// maxProbedKeys bounds how many locked keys a scan keeps in mind for the sake of deleted spans.
const maxProbedKeys = 16

// closeRows is behind how many rows of a page a scan looks for deleted spans, and for collected keys.
const closeRows = 32

// stepsPerKey is about how many stored entries Pebble walks over for a deleted key that has been collected: two versions and
// their tombstones.
const stepsPerKey = 4

// deletedRun is the row of deleted keys that a scan is walking over: it jumps over the part of them that is known to be a
// deleted span, and reports the run when it ends. Keys that have been collected belong to it: until compactions take their
// tombstones, Pebble walks over them.
type deletedRun struct {
	since  uint64   // deletedSpans.seq before the probe
	locked [][]byte // keys whose locks the probe has met and that may become versions, in scan order
	more   bool     // there are locked keys behind those
	large  bool     // the probe has met a large commit, whose keys are not known
	open   bool     // there is a run: the scan has met no key but deleted ones since its beginning
	walked int      // keys of the run, those jumped over aside
	start  []byte   // forward: where the run begins
	behind []byte   // forward: if not nil, the run begins directly behind this key instead
	end    []byte   // in reverse: the bound above the run
	jumped bool     // the run is next to a verified span, or has one in it
	sought bool     // forward: the run begins behind a cached row, and only a seek led there
	// unseen counts the keys walked over since the run began, or has last jumped; reported the runs of the page that were
	// reported.
	unseen, reported int
	// steps is the iterator's count at the beginning of the run, forward, -1 if it is not known. hidden is how many collected
	// keys a run in reverse has begun with.
	steps, hidden int
	track         bool // forward: count the steps behind each row
	from          int  // the iterator's count at the beginning of the page
}

// begin opens a run where the iterator has come to in so many steps.
func (r *deletedRun) begin(steps int) {
	r.open, r.jumped, r.sought, r.unseen, r.behind, r.steps = true, false, false, 0, nil, steps
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
	if len(sc.spans) > 1 { // the first key may be in any
		return sc.it.First()
	}
	r.from = sc.it.Steps()
	r.begin(r.from)
	if r.track = sc.s.deleted.tracked.Load() > 0; r.track {
		sc.s.deleted.tracked.Add(-1)
	}
	if r.start = sc.start; sc.jumpForward(sc.start) {
		return sc.seekBehindSpan()
	}
	return sc.it.First()
}

// jumpForward reports whether key lies in a verified span. If so, the run that has just begun begins at the end of that, where
// a seek to sc.it.Buf goes.
func (sc *scanner) jumpForward(key []byte) bool {
	r := &sc.run
	buf, found := sc.s.deleted.endOf(key, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite))
	if sc.it.Buf = buf; found {
		r.start, r.behind, r.jumped = append(r.start[:0:0], buf[1:]...), nil, true
		sc.it.Buf = storage.AppendSentinel(buf)
	}
	return found
}

// seekBehindSpan moves to sc.it.Buf, the end of a verified span. Spans usually end at a row; if its value is cached, the
// scan continues at sc.known, without the seek.
func (sc *scanner) seekBehindSpan() (ok bool) {
	sc.fillJumped()
	if sc.known = sc.cachedRow(sc.it.Buf[1 : len(sc.it.Buf)-1]); sc.known != nil {
		return true
	}
	return sc.it.SeekGE(sc.it.Buf)
}

// cachedRow returns the cached value of key, which is the first one that is not known to be deleted, or nil. The page's
// locks have been checked: a key without a lock may be read from the cache.
func (sc *scanner) cachedRow(key []byte) *recentRead {
	switch {
	case len(sc.spans) > 1, len(sc.end) > 0 && bytes.Compare(key, sc.end) >= 0:
		return nil
	case len(sc.conflicts) > 0 && bytes.Compare(sc.conflicts[0].key, key) <= 0:
		return nil
	}
	hash := sc.s.marks.hash(key)
	return sc.recent.find(hash, sc.s.marks.at(hash), key, sc.args.ReadTS)
}

// rememberRow caches the value of a row that lies directly behind a verified span.
func (sc *scanner) rememberRow(key, value []byte, version uint64) {
	if r := &sc.run; !r.open || !r.jumped || r.unseen > 0 || len(sc.spans) > 1 {
		return
	}
	hash := sc.s.marks.hash(key)
	sc.recent.remember(hash, sc.s.marks.at(hash), key, sc.args.ReadTS, tso.Timestamp(version), value)
}

// emitKnown adds sc.known to the page, and moves to the next key that may not be deleted. done reports that the page ends
// here.
func (sc *scanner) emitKnown() (done, ok bool) {
	row := sc.known
	sc.known = nil
	if sc.endRun(row.key); sc.full(row.key) {
		return true, false
	}
	sc.passBound(row.key)
	sc.emit(row.key, row.value)
	if sc.endAtLimit() {
		return true, false
	}
	if moved, more := sc.behindRow(row.key); moved {
		return false, more
	}
	sc.run.sought = true
	sc.it.Buf = append(append(append(sc.it.Buf[:0], tagWrite), row.key...), 0)
	sc.it.Buf = storage.AppendSentinel(sc.it.Buf)
	return false, sc.it.SeekGE(sc.it.Buf)
}

// last is first for a scan in reverse.
func (sc *scanner) last() (ok bool) {
	r := &sc.run
	if len(sc.spans) > 1 || len(sc.end) == 0 {
		return sc.it.Last()
	}
	r.begin(sc.it.Steps())
	r.end = sc.end
	if sc.it.Buf, r.jumped = sc.s.deleted.startBelow(sc.end, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite)); r.jumped {
		r.end = append(r.end[:0:0], sc.it.Buf[1:]...)
		sc.it.Buf = storage.AppendSentinel(sc.it.Buf)
		ok = sc.it.SeekLT(sc.it.Buf)
	} else {
		ok = sc.it.Last()
	}
	r.hidden = (sc.it.Steps() - r.steps) / stepsPerKey
	return ok
}

// behindRow opens a run directly behind a row, one of the first of the page. moved reports that a verified span begins there,
// and that the iterator has been moved behind it; ok, that it is on a key then.
func (sc *scanner) behindRow(key []byte) (moved, ok bool) {
	if sc.rows > closeRows || len(sc.spans) > 1 {
		return false, false
	}
	steps := -1
	if sc.run.track {
		steps = sc.it.Steps()
	}
	sc.run.begin(steps)
	if sc.run.behind = key; !sc.s.deleted.mayBeginBehind(key) {
		return false, false
	}
	var room [128]byte
	if sc.jumpForward(append(append(room[:0], key...), 0)) {
		return true, sc.seekBehindSpan()
	}
	return false, false
}

// look counts a key of the run, and reports whether the scan should look whether the key lies in a verified span: at each
// of the first keys, since spans are often separated by the few keys that were deleted last, and then now and again.
func (r *deletedRun) look() bool {
	r.walked++
	r.unseen++
	return r.unseen <= 4 || r.unseen%16 == 1
}

// jump notes that the run goes on behind a verified span.
func (r *deletedRun) jump() { r.jumped, r.unseen = true, 0 }

// noteHidden has the next scans count the steps behind each row if this one has made far more than its keys explain.
func (sc *scanner) noteHidden() {
	if sc.args.Reverse || len(sc.spans) > 1 || sc.rows > closeRows {
		return
	}
	known := 3 * (sc.rows + int(sc.page.Deleted))
	if sc.it.Steps()-sc.run.from-known > hiddenSteps {
		sc.s.deleted.tracked.Store(trackedScans)
	}
}

// passDeleted moves forward from key, which is deleted as of the snapshot and has no newer version, to the next
// key that may not be.
func (sc *scanner) passDeleted(key []byte) (ok bool) {
	r := &sc.run
	if !r.open {
		r.begin(-1)
		r.start = append(r.start[:0:0], key...)
	}
	if r.look() {
		buf := append(sc.it.Buf[:0], tagWrite)
		if buf, found := sc.s.deleted.endOf(key, sc.args.ReadTS, buf); found {
			r.jump()
			sc.it.Buf = storage.AppendSentinel(buf)
			return sc.seekBehindSpan()
		}
	}
	return sc.it.NextPrefix()
}

// passDeletedBelow is passDeleted for a scan in reverse: the iterator has left key for the one below it already, which ok
// tells. key is in the iterator's buffer.
func (sc *scanner) passDeletedBelow(key []byte, ok bool) bool {
	r := &sc.run
	if !r.open {
		r.begin(-1)
		r.end = append(append(r.end[:0:0], key...), 0)
	}
	if r.look() && ok {
		above := append(slices.Clip(key), 0)
		if buf, found := sc.s.deleted.startBelow(above, sc.args.ReadTS, append(sc.it.Buf[:0], tagWrite)); found {
			r.jump()
			sc.it.Buf = storage.AppendSentinel(buf)
			return sc.it.SeekLT(sc.it.Buf)
		}
	}
	return ok
}

// endRun ends the run, if there is one, and reports it if it is long enough: forward, all of it lies below bound; in reverse, at
// or above it.
func (sc *scanner) endRun(bound []byte) {
	r := &sc.run
	if !r.open {
		return
	}
	least := minDeletedSpanKeys
	switch {
	case r.sought:
		least = 1 // the span saves the seek as well
	case r.jumped:
		least = minDeletedMore
	case r.reported < maxShortRuns:
		least = minDeletedShort
	}
	keys := r.walked + r.hidden
	if !sc.args.Reverse && r.steps >= 0 {
		keys = max(keys, (sc.it.Steps()-r.steps)/stepsPerKey)
	}
	r.open, r.walked, r.hidden = false, 0, 0
	if keys < least || len(bound) == 0 || r.large {
		return
	}
	start, end := r.start, bound
	if sc.args.Reverse {
		start, end = bound, r.end
	} else if r.behind != nil {
		start = append(slices.Clip(r.behind), 0)
	}
	if start, end = r.unlocked(start, end, sc.args.Reverse); start != nil {
		r.reported++
		sc.s.deleted.add(start, end, sc.args.ReadTS, r.since, keys)
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
	case !sc.run.open || sc.it.Error() != nil:
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
	if r := &sc.run; r.walked+r.hidden == 0 {
		r.open = false
	} else if r.open {
		sc.endRun(append(slices.Clip(key), 0))
	}
}

// newerThanSnapshot ends the run before the key of the iterator's current version.
func (sc *scanner) newerThanSnapshot() {
	if !sc.run.open && sc.blocks.fill == nil {
		return
	}
	prefix, _, _ := storage.SplitVersion(sc.it.Key())
	sc.stopFill(userKey(prefix))
	if !sc.run.open {
		return
	}
	if sc.args.Reverse {
		sc.endRunAbove(userKey(prefix))
	} else {
		sc.endRun(userKey(prefix))
	}
}
