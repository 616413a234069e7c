package mvcc

import (
	"bytes"
	"context"
	"sort"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// ScanRequest asks for a page of the spans, of which there is at least one: ascending, disjoint, none of them empty.
// The page goes from one to the next, in reverse from the last to the first, and ends at Limit rows or MaxBytes of keys
// and values, whichever comes first.
type ScanRequest struct {
	Ranges   []RangeRef
	Spans    []Span
	Reverse  bool
	Limit    int // rows, > 0
	MaxBytes int // 0 means the shard's default
	KeysOnly bool
	ReadOptions
	// Reuse, if given, is an earlier page whose memory the answer may use; what it held is gone then. It spares a long
	// scan most allocations where the shard is in this process.
	Reuse *Page
	// Visit, if given, takes the rows instead of the page. It is not sent to shards in other processes, which return rows.
	Visit *Visit
}

// Visit takes the rows of a page as the iterator comes to them, without a copy of any.
type Visit struct {
	// Pair is called with every row; key and value are valid until it returns, and it must not call the shard. Its error ends the
	// scan. Nil: the rows are counted only.
	Pair func(key, value []byte) error
	// The scan sets Passed when it calls Pair, and Failed to the error that Pair returned.
	Passed bool
	Failed error
}

// Row is one key and its value.
type Row struct{ Key, Value []byte }

// Page is the answer to a scan. Locked lists the locked keys of the page in its order; the rows on
// both sides of them are in the page. ResumeKey is where to go on, nil when the span is exhausted:
// the first key to be read when scanning forward, the bound above it when scanning in reverse. A page of as many rows as were
// asked for may have one although nothing follows.
type Page struct {
	Rows      []Row
	Count     int // rows of the page that Visit has taken, and that are not in Rows
	Locked    []KeyLockedError
	ResumeKey []byte
	// Deleted is the number of keys passed over whose version as of the snapshot is a deletion: each costs about as much as a row
	// until it is collected. Blocks of the cache of scans have none.
	Deleted uint64

	arena []byte // the chunk that rows are copied into; rows keep earlier chunks alive
}

// reset returns an empty page, with p's memory if there is a p.
func (p *Page) reset() *Page {
	if p == nil {
		return &Page{}
	}
	*p = Page{Rows: p.Rows[:0], arena: p.arena[:0]}
	return p
}

// maxProbed bounds the number of locks that one page checks, and so how long it locks the table.
const maxProbed = 4096

// conflict is a lock that a page has to handle.
type conflict struct {
	key []byte
	probed
}

// Scan returns one page. BeginRead has been called.
func (s *State) Scan(ctx context.Context, args *ScanRequest) (*Page, error) {
	n := len(args.Spans)
	if n == 0 || args.Limit <= 0 || args.MaxBytes <= 0 || args.ReadTS == tso.MaxTimestamp {
		return nil, &InvalidRequestError{Detail: "scan without span, limit, size or timestamp"}
	}
	if !ascendingSpans(args.Spans) {
		return nil, &InvalidRequestError{Detail: "the spans of a scan are empty, overlap or do not ascend"}
	}
	sc := scanner{s: s, args: args, page: args.Reuse.reset(), spans: args.Spans, start: args.Spans[0].Start, end: args.Spans[n-1].End,
		recent: s.recent.Load()}
	if err := sc.probe(ctx); err != nil {
		return nil, err
	}
	sc.dropSpansBehind()
	sc.blocks.on = !args.Reverse && len(args.Spans) == 1 && s.scans.limit > 0
	sc.blocks.from = sc.start
	pos, done := sc.readBlocks(sc.start)
	if !done {
		sc.start = pos
		if err := sc.walk(); err != nil {
			return nil, err
		}
	} else if err := s.checkSafePoint(args.ReadTS); err != nil {
		return nil, err
	}
	return sc.page, sc.failed()
}

// walk reads with an iterator.
func (sc *scanner) walk() error {
	if err := sc.open(); err != nil {
		return err
	}
	defer sc.it.Close()
	if err := sc.s.checkSafePoint(sc.args.ReadTS); err != nil {
		return err
	}
	if sc.args.Reverse {
		if err := sc.reverse(); err != nil {
			return err
		}
	} else {
		sc.look(sc.start)
		if err := sc.forward(); err != nil {
			return err
		}
		if sc.failed() == nil {
			sc.endBlocks()
		}
	}
	sc.noteHidden()
	return nil
}

// scanner builds one page.
type scanner struct {
	s       *State
	args    *ScanRequest
	page    *Page
	it      *storage.Iterator
	bytes   int
	rows    int    // of the page
	lastKey []byte // of the last one

	// start and end bound the page; the lock probe may have narrowed them, and then resume is where
	// the following page begins.
	start, end []byte
	resume     []byte
	// spans are the parts of it to be read. The walk is in the one at at, or has passed it.
	spans     []Span
	at        int
	conflicts []conflict // in scan order, not met yet
	run       deletedRun
	blocks    scanBlocks
	newer     bool // in reverse: the key may have a version above the snapshot

	recent *recentReads // as it was before the iterator was opened
	// known, if not nil, is the row that the scan has come to instead of the iterator's position.
	known *recentRead
}

// probe lists the locks that the page has to handle, in scan order. A lock whose state is about to change ends the page
// before it, or is waited for if the page would be empty.
func (sc *scanner) probe(ctx context.Context) error {
	for {
		if wait := sc.probeLarge(); wait != nil {
			if err := sc.s.wait(ctx, wait); err != nil {
				return err
			}
			continue
		}
		changing := sc.probeOnce()
		if changing == nil {
			current, err := sc.loadLockValues()
			if err == nil && !current {
				err = ctx.Err()
			}
			if current || err != nil {
				return err
			}
			continue
		}
		if err := sc.s.wait(ctx, sc.s.locks.waitChan(changing)); err != nil {
			return err
		}
	}
}

// loadLockValues reads the values of locks that are not in memory. current is false if one has ended: probe again.
func (sc *scanner) loadLockValues() (current bool, _ error) {
	for i := range sc.conflicts {
		c := &sc.conflicts[i]
		if current, err := sc.s.loadLockValue(c.key, &c.probed); !current || err != nil {
			sc.conflicts = sc.conflicts[:0]
			return false, err
		}
	}
	return true, nil
}

// probeOnce returns the key of a lock to wait for before it is called again, nil if there is none.
func (sc *scanner) probeOnce() (changing []byte) {
	t := sc.s.locks
	sc.blocks.since = sc.s.scans.seq.Load() // Before the look for large commits.
	sc.run.reset(sc.s)
	sc.blocks.met = sc.run.large
	if t.blocking.Load() == 0 {
		return nil
	}
	seen, stopped := 0, false
	visit := func(e *entry) bool {
		if seen++; seen > maxProbed || len(sc.conflicts) > sc.args.Limit {
			sc.stopAt(e.key)
			stopped = true
			return false
		}
		sc.run.meet(e)
		sc.blocks.met = true
		switch verdict := e.decideRead(&sc.args.ReadOptions); verdict {
		case readPass:
			return true
		case readWait:
			if sc.atBeginning(e.key) {
				changing = bytes.Clone(e.key)
			} else {
				sc.stopAt(e.key)
			}
			stopped = true
			return false
		default:
			c := conflict{key: bytes.Clone(e.key)}
			c.verdict, c.lock, c.longValue, c.onDisk = verdict, e.lock.detached(), e.longValue, e.valueOnDisk
			if verdict == readThrough {
				c.lock.Value = bytes.Clone(e.lock.Value)
			}
			sc.conflicts = append(sc.conflicts, c)
			return true
		}
	}
	t.mu.RLock()
	for i := 0; i < len(sc.spans) && !stopped; i++ {
		// A large commit may have narrowed the page: what lies beyond belongs to the next one.
		if sc.args.Reverse {
			span := &sc.spans[len(sc.spans)-1-i]
			t.descendBlockingLocked(later(span.Start, sc.start), span.End, visit)
		} else {
			t.ascendBlockingLocked(sc.spans[i].Start, earlierEnd(sc.spans[i].End, sc.end), visit)
		}
	}
	t.mu.RUnlock()
	if changing != nil {
		sc.conflicts = sc.conflicts[:0]
	}
	return changing
}

func later(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func earlierEnd(a, b []byte) []byte {
	if CompareEnds(a, b) > 0 {
		return b
	}
	return a
}

// atBeginning reports whether a page that ended before key would certainly be empty.
func (sc *scanner) atBeginning(key []byte) bool {
	if sc.args.Reverse {
		return len(sc.end) > 0 && bytes.Equal(append(bytes.Clone(key), 0), sc.end)
	}
	return bytes.Equal(key, sc.start)
}

// stopAt ends the page before key, which belongs to the next one.
func (sc *scanner) stopAt(key []byte) {
	key = bytes.Clone(key)
	if sc.args.Reverse {
		// The next page ends above key.
		sc.start = append(key, 0)
		sc.resume = sc.start
		return
	}
	sc.end, sc.resume = key, key
}

// dropSpansBehind leaves out those of the spans that lie behind the page's end, and the gap before it: the walk looks at the
// bounds of the last span no more.
func (sc *scanner) dropSpansBehind() {
	if n := len(sc.spans); sc.resume != nil {
		if sc.args.Reverse {
			sc.spans = sc.spans[sort.Search(n, func(i int) bool { return CompareEnds(sc.spans[i].End, sc.start) > 0 }):]
			if first := sc.spans[0].Start; bytes.Compare(first, sc.start) > 0 {
				sc.start = first
			}
		} else {
			sc.spans = sc.spans[:sort.Search(n, func(i int) bool { return bytes.Compare(sc.spans[i].Start, sc.end) >= 0 })]
			if last := sc.spans[len(sc.spans)-1].End; CompareEnds(last, sc.end) < 0 {
				sc.end = last
			}
		}
	}
}

// open gets an iterator, after the probe: a lock that was gone by then has left what it wrote.
func (sc *scanner) open() (err error) {
	lower := appendPrefix(make([]byte, 0, len(sc.start)+len(sc.end)+8), tagWrite, sc.start)
	bounds := appendUpper(lower, tagWrite, sc.end)
	sc.it, err = sc.s.eng.NewRangeIter(bounds[:len(lower)], bounds[len(lower):])
	return err
}

// full reports whether the page is full, in which case it ends before key.
func (sc *scanner) full(key []byte) bool {
	n := sc.rows + len(sc.page.Locked)
	if n < sc.args.Limit && (sc.bytes < sc.args.MaxBytes || n == 0) {
		return false
	}
	sc.page.ResumeKey = bytes.Clone(key)
	if sc.args.Reverse {
		sc.page.ResumeKey = append(sc.page.ResumeKey, 0)
	}
	return true
}

// endAtLimit ends a page that has as many rows as it may have directly behind its last one, and reports whether it did.
// The caller seldom needs more than it has asked for, and what follows may be a long run of deleted keys. Callers that give
// several spans ask for as many rows as they expect in all of them, and need to know where that was all.
func (sc *scanner) endAtLimit() bool {
	if sc.rows+len(sc.page.Locked) < sc.args.Limit || len(sc.spans) > 1 {
		return false
	}
	last := sc.lastKey
	resume := append(append(make([]byte, 0, len(last)+1), last...), 0)
	exhausted := len(sc.end) > 0 && bytes.Compare(resume, sc.end) >= 0
	if sc.args.Reverse {
		resume = resume[:len(last)]
		exhausted = bytes.Compare(resume, sc.start) <= 0
	}
	if sc.page.ResumeKey = resume; exhausted {
		sc.page.ResumeKey = sc.resume
	}
	return true
}

// emit copies a row into the page.
func (sc *scanner) emit(key, value []byte) {
	if sc.args.KeysOnly {
		value = nil
	}
	if sc.rows++; sc.args.Visit != nil {
		sc.visit(key, value)
		return
	}
	n := len(key) + len(value)
	arena := sc.page.arena
	if cap(arena)-len(arena) < n {
		// Chunks grow with the page, so that a point-like scan does not pay for a large one.
		arena = make([]byte, 0, max(n, min(sc.args.MaxBytes, 1<<20, 256+2*sc.bytes)))
	}
	at := len(arena)
	arena = append(append(arena, key...), value...)
	mid, end := at+len(key), at+n
	sc.page.arena = arena
	sc.bytes += n
	if len(sc.page.Rows) == cap(sc.page.Rows) {
		grown := make([]Row, len(sc.page.Rows), max(8, min(4*cap(sc.page.Rows), sc.args.Limit)))
		copy(grown, sc.page.Rows)
		sc.page.Rows = grown
	}
	sc.lastKey = arena[at:mid:mid]
	sc.page.Rows = append(sc.page.Rows, Row{Key: sc.lastKey, Value: arena[mid:end:end]})
}

// visit is emit for a page whose rows are taken by Visit.
func (sc *scanner) visit(key, value []byte) {
	sc.page.Count++
	if v := sc.args.Visit; v.Pair != nil && v.Failed == nil {
		v.Passed = true
		v.Failed = v.Pair(key, value)
	}
	if sc.rows <= closeRows+1 {
		sc.lastKey = bytes.Clone(key) // A run may begin behind it, and refers to it.
		return
	}
	if sc.rows == closeRows+2 {
		sc.lastKey = nil
	}
	sc.lastKey = append(sc.lastKey[:0], key...)
}

// failed returns the error of Visit.
func (sc *scanner) failed() error {
	if sc.args.Visit == nil {
		return nil
	}
	return sc.args.Visit.Failed
}

// conflictsBefore handles the locks that come before key in scan order (nil: all), and the one on key itself; met
// reports that there was one. stop reports that the page is full.
func (sc *scanner) conflictsBefore(key []byte) (met, stop bool, err error) {
	for len(sc.conflicts) > 0 && !met {
		c := &sc.conflicts[0]
		if key != nil {
			cmp := bytes.Compare(c.key, key)
			if sc.args.Reverse {
				cmp = -cmp
			}
			if cmp > 0 {
				return false, false, nil
			}
			met = cmp == 0
		}
		if sc.full(c.key) {
			return met, true, nil
		}
		if c.verdict == readLocked {
			sc.page.Locked = append(sc.page.Locked, KeyLockedError{Key: c.key, Lock: c.lock})
			sc.bytes += len(c.key)
		} else {
			value, err := sc.s.lockValue(c.key, &c.probed, sc.args.ReadTS)
			if err != nil {
				return met, false, err
			}
			if value != nil {
				sc.emit(c.key, value)
			}
		}
		sc.conflicts = sc.conflicts[1:]
	}
	return met, false, nil
}

// finish deals with the locks behind the last version.
func (sc *scanner) finish() error {
	if err := sc.it.Error(); err != nil {
		return err
	}
	_, stop, err := sc.conflictsBefore(nil)
	if err != nil || stop {
		return err
	}
	sc.page.ResumeKey = sc.resume
	return nil
}

// emitCurrent adds the iterator's current version to the page. A deletion adds nothing; full reports that there was no
// space, and that the page ends before key.
func (sc *scanner) emitCurrent(key []byte, version uint64) (full bool, err error) {
	value, err := sc.it.Value()
	if err != nil {
		return false, err
	}
	op, long, value, err := writeValue(value)
	if err != nil || op != OpPut && op != OpDelete {
		return false, &CorruptionError{Key: bytes.Clone(key), Detail: "write record", Err: err}
	}
	if op == OpDelete {
		sc.fillPassed(tso.Timestamp(version))
		return false, nil
	}
	if sc.full(key) {
		return true, nil
	}
	if long {
		sc.stopFill(key)
	}
	if long && !sc.args.KeysOnly {
		w, err := writeAt(sc.it, key, version)
		if err != nil {
			return false, err
		}
		if value, err = sc.s.dataValue(sc.it, key, w.startTS, sc.args.ReadTS); err != nil {
			return false, err
		}
	}
	if sc.emit(key, value); !long {
		sc.rememberRow(key, value, version)
		sc.fillRow(key, value, version)
	}
	return false, nil
}

// expectOlder is how many keys behind one that has older versions are taken to have some as well.
const expectOlder = 16

// forward walks from key to key, newest version first. Most keys have one version, so that the next
// version is tried before a jump over all that are left of a key, unless a key shortly before had several.
func (sc *scanner) forward() error {
	it := sc.it
	older := 0      // keys from here on that are expected to have older versions
	var last []byte // key of the last row
	for ok := sc.first(); ok; {
		if sc.failed() != nil {
			return nil
		}
		if sc.known != nil {
			last = nil
			var done bool
			if done, ok = sc.emitKnown(); done {
				return nil
			}
			continue
		}
		if older == 0 && sc.plain() {
			rows := sc.rows
			if ok = sc.visitPlain(); sc.failed() != nil {
				return nil
			}
			if sc.rows > rows {
				last = sc.lastKey
				if sc.endAtLimit() {
					return nil
				}
			}
			if !ok {
				break
			}
		}
		if sc.at < len(sc.spans)-1 {
			at := sc.at
			if ok = sc.enterAbove(); !ok || sc.at != at {
				sc.endRunAtSpan(at)
			}
			if !ok {
				break
			}
		}
		prefix, version, isVersion := storage.SplitVersion(it.Key())
		if !isVersion {
			return corrupt(it.Key(), "unversioned key among the write records")
		}
		key := userKey(prefix)
		if last != nil && bytes.Equal(key, last) {
			last, ok, older = nil, it.NextPrefix(), expectOlder
			continue
		}
		if bound := sc.blocks.bound; bound != nil && bytes.Compare(key, bound) >= 0 {
			moved, more, done := sc.atBound(key)
			if done {
				return nil
			}
			if moved {
				last, ok = nil, more
				continue
			}
		}
		if len(sc.conflicts) > 0 {
			met, stop, err := sc.conflictsBefore(key)
			if stop || err != nil {
				return err
			}
			if met {
				ok = it.NextPrefix()
				continue
			}
		}
		newer := tso.Timestamp(version) > sc.args.ReadTS
		if newer {
			sc.newerThanSnapshot()
			visible, more, err := sc.seekVisible(prefix)
			if err != nil {
				return err
			}
			if ok = more; !visible {
				continue // the iterator is at the next key
			}
			prefix, version, _ = storage.SplitVersion(it.Key())
			key = userKey(prefix)
		}
		rows := sc.rows
		full, err := sc.emitCurrent(key, version)
		if full {
			sc.endRun(key)
		}
		if full || err != nil {
			return err
		}
		if sc.rows == rows {
			if sc.page.Deleted++; newer {
				ok = it.NextPrefix()
			} else {
				ok = sc.passDeleted(key)
			}
			continue
		}
		last = sc.lastKey
		sc.endRun(last)
		if sc.endAtLimit() {
			return nil
		}
		if moved, more := sc.behindRow(last); moved {
			last, ok = nil, more
		} else if older > 0 {
			last, ok, older = nil, it.NextPrefix(), older-1
		} else {
			ok = it.Next()
		}
	}
	sc.endRunAtSpan(sc.at)
	return sc.finish()
}

// seekVisible moves from a version above ReadTS to the newest visible one of the same key; if there
// is none, the iterator ends on the next key, or, ok false, at the end.
func (sc *scanner) seekVisible(prefix []byte) (visible, ok bool, err error) {
	it := sc.it
	it.Buf = append(it.Buf[:0], prefix...) // Key does not outlive the move
	prefix = it.Buf
	const near = 3 // versions to walk before a seek pays
	for i := 0; i < near; i++ {
		if !it.Next() {
			return false, false, it.Error()
		}
		p, version, _ := storage.SplitVersion(it.Key())
		if !bytes.Equal(p, prefix) {
			return false, true, nil
		}
		if tso.Timestamp(version) <= sc.args.ReadTS {
			return true, true, nil
		}
	}
	n := len(prefix)
	it.Buf = storage.AppendVersion(it.Buf, uint64(sc.args.ReadTS))
	if !it.SeekGE(it.Buf) {
		return false, false, it.Error()
	}
	p, _, _ := storage.SplitVersion(it.Key())
	return bytes.Equal(p, it.Buf[:n]), true, nil
}

// reverse walks from key to key downwards, and within a key from the oldest version to the newest
// visible one, which it keeps a copy of.
func (sc *scanner) reverse() error {
	it := sc.it
	var kept writeRecord
	for ok := sc.last(); ok; {
		if sc.at < len(sc.spans)-1 {
			at := sc.at
			if ok = sc.enterBelow(); !ok || sc.at != at {
				sc.endRunAtSpan(at)
			}
			if !ok {
				break
			}
		}
		prefix, _, isVersion := storage.SplitVersion(it.Key())
		if !isVersion {
			return corrupt(it.Key(), "unversioned key among the write records")
		}
		it.Buf = append(it.Buf[:0], prefix...)
		prefix = it.Buf[:len(prefix):len(prefix)]
		key := userKey(prefix)
		locked, stop, err := false, false, error(nil)
		if len(sc.conflicts) > 0 {
			if locked, stop, err = sc.conflictsBefore(key); stop || err != nil {
				return err
			}
		}
		kept.op = 0
		if locked {
			ok = it.SeekLT(prefix)
		} else if ok, err = sc.reverseKey(prefix, &kept); err != nil {
			return err
		}
		if kept.op == OpPut {
			sc.endRunAbove(key)
			if sc.full(key) {
				return nil
			}
			if kept.longValue && !sc.args.KeysOnly {
				if kept.value, err = sc.s.dataValue(it, key, kept.startTS, sc.args.ReadTS); err != nil {
					return err
				}
			}
			sc.emit(key, kept.value)
			if sc.endAtLimit() {
				return nil
			}
		} else if kept.op == OpDelete {
			if sc.page.Deleted++; !sc.newer {
				ok = sc.passDeletedBelow(key, ok)
			}
		}
	}
	sc.endRunAtSpan(sc.at)
	return sc.finish()
}

// reverseKey finds the newest visible version of the key at whose oldest version the iterator is, copies it into kept,
// and moves to the previous key; ok reports whether there is one.
func (sc *scanner) reverseKey(prefix []byte, kept *writeRecord) (ok bool, err error) {
	const near = 8 // versions to walk before a seek pays
	it := sc.it
	sc.newer = false
	for walked := 0; ; walked++ {
		p, version, _ := storage.SplitVersion(it.Key())
		if !bytes.Equal(p, prefix) {
			return true, nil
		}
		if tso.Timestamp(version) > sc.args.ReadTS {
			sc.newer = true
			sc.newerThanSnapshot()
			return it.SeekLT(prefix), it.Error() // the ones above are newer still
		}
		if walked == near {
			sc.newer = true // perhaps: the seek passes those above the snapshot
			sc.newerThanSnapshot()
			seek := storage.AppendVersion(bytes.Clone(prefix), uint64(sc.args.ReadTS))
			if !it.SeekGE(seek) {
				return false, it.Error()
			}
			if err := sc.keep(kept); err != nil {
				return false, err
			}
			return it.SeekLT(prefix), it.Error()
		}
		if err := sc.keep(kept); err != nil {
			return false, err
		}
		if !it.Prev() {
			return false, it.Error()
		}
	}
}

// keep copies the record the iterator stands on, its value included unless that is a data record: of
// an older version it may be gone. Only a record with a long value is decoded whole.
func (sc *scanner) keep(kept *writeRecord) error {
	value := kept.value[:0]
	record, err := sc.it.Value()
	if err != nil {
		return err
	}
	op, long, inline, err := writeValue(record)
	if err != nil || long || op != OpPut && op != OpDelete {
		if *kept, err = currentWrite(sc.it); err != nil {
			return err
		}
		kept.value = value
		return nil
	}
	*kept = writeRecord{op: op, value: value}
	if op == OpPut && !sc.args.KeysOnly {
		kept.value = append(value, inline...)
	}
	return nil
}
