package mvcc

import (
	"bytes"
	"slices"
	"sync"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// scanBlocks is what a page has to do with the cache of scans, of which it reads blocks where there are some, and for which it makes others.
//
//	rows      ● ● ● ● ● ● ● ● ● ● ● ● ● ● ● ● ●
//	spans       [  block )[candidate)   [block)
//	read by   it│  cache  │   iterator  │cache│it
//	made                  [  block  )
type scanBlocks struct {
	on    bool   // the page has one span, forward
	since uint64 // seq of the cache before the probe
	from  []byte // where the page begins
	// bound is the key at which the walk looks at the cache again, nil for none: a block may begin there, or fill end.
	bound  []byte
	fill   *scanFill // the block that is being made, or nil
	jumped bool      // the walk has jumped over deleted keys since the last bound
	met    bool      // the probe has met a lock that blocks reads, so that the page makes no blocks
	read   int       // rows that the iterator has found
}

// scanFill is a block that is being made. It is reused.
type scanFill struct {
	start []byte
	scanBlock
}

var scanFills = sync.Pool{New: func() any { return &scanFill{} }}

// readBlocks adds to the page what the cache has from pos on, before which everything is in the page, and returns where that ends. done
// reports that the page ends there.
func (sc *scanner) readBlocks(pos []byte) (_ []byte, done bool) {
	c := sc.s.scans
	if !sc.blocks.on || !c.mayHave(pos) {
		return pos, false
	}
	spans := *c.spans.Load()
	at, found := searchScanSpans(spans, pos)
	for ; found; found = at < len(spans) && bytes.Equal(spans[at].start, pos) {
		e := spans[at]
		b := e.usable(sc.args.ReadTS)
		if b == nil || len(sc.conflicts) > 0 && bytes.Compare(sc.conflicts[0].key, e.end) < 0 {
			break
		}
		e.use(c.clock())
		sc.endRun(pos)
		if sc.passBlock(b, pos, e.end) {
			return nil, true
		}
		if pos = e.end; len(sc.end) > 0 && bytes.Compare(pos, sc.end) >= 0 {
			sc.page.ResumeKey = sc.resume
			return nil, true
		}
		at++
	}
	return pos, false
}

// passBlock adds the rows of a block from pos on, up to end or the page's, to the page. done reports that the page is full, or that
// Visit has failed.
func (sc *scanner) passBlock(b *scanBlock, pos, end []byte) (done bool) {
	from, to := b.search(pos), b.len()
	if len(sc.end) > 0 && bytes.Compare(sc.end, end) < 0 {
		to = b.search(sc.end)
	}
	if from >= to {
		return false
	}
	n := 0
	if sc.args.Visit != nil {
		if n = min(to-from, sc.args.Limit-sc.rows-len(sc.page.Locked)); n > 0 {
			n = sc.visitBlock(b, from, from+n)
		}
		if sc.failed() != nil {
			return true
		}
		if sc.rows += n; n > 0 {
			sc.lastKey = bytes.Clone(b.key(from + n - 1))
		}
		sc.page.Count += n
	} else {
		for ; from+n < to && !sc.full(b.key(from+n)); n++ {
			sc.emit(b.key(from+n), b.value(from+n))
		}
	}
	sc.s.scans.served.Add(uint64(n))
	switch {
	case sc.page.ResumeKey != nil:
		return true
	case n < to-from:
		return sc.full(b.key(from + n))
	}
	return sc.endAtLimit()
}

// visitBlock passes the rows from from up to to to Visit, and returns how many.
func (sc *scanner) visitBlock(b *scanBlock, from, to int) int {
	v := sc.args.Visit
	pair := v.Pair
	if pair == nil {
		return to - from
	}
	keysOnly, offsets := sc.args.KeysOnly, b.offsets
	v.Passed = true
	for i := from; i < to; i++ {
		at, mid, end := offsets[2*i], offsets[2*i+1], offsets[2*i+2]
		var value []byte
		if !keysOnly {
			value = b.arena[mid:end:end]
		}
		if v.Failed = pair(b.arena[at:mid:mid], value); v.Failed != nil {
			return i - from + 1
		}
	}
	return to - from
}

// atBound is called where the walk has come to key, which is not in the page yet, at or above the bound. moved reports that the iterator
// has been moved, and ok that it is on a key then; done that the page ends here.
func (sc *scanner) atBound(key []byte) (moved, ok, done bool) {
	for bound := sc.blocks.bound; bound != nil && bytes.Compare(key, bound) >= 0; bound = sc.blocks.bound {
		sc.endFill(bound)
		pos, done := sc.readBlocks(bound)
		if done {
			return false, false, true
		}
		if sc.look(pos); !bytes.Equal(pos, bound) {
			sc.it.Buf = storage.AppendSentinel(append(append(sc.it.Buf[:0], tagWrite), pos...))
			return true, sc.it.SeekGE(sc.it.Buf), false
		}
		if sc.blocks.jumped { // Perhaps over the bound.
			sc.fillPassed(sc.args.ReadTS)
		}
	}
	sc.blocks.jumped = false
	return false, false, false
}

// look begins a block at pos, where the iterator reads on, if there is a candidate that is worth it, and finds the bound: the next
// position at which there may be something to do.
func (sc *scanner) look(pos []byte) {
	bl, c := &sc.blocks, sc.s.scans
	bl.bound, bl.fill = nil, nil
	if !bl.on || !c.mayHave(pos) {
		return
	}
	spans := *c.spans.Load()
	i, found := searchScanSpans(spans, pos)
	makes := !bl.met && c.fullUntil.Load() <= int64(c.clock())
	if found && makes && spans[i].worthCaching(sc.args.ReadTS, bl.since) {
		for i+1 < len(spans) && bytes.Equal(spans[i].end, spans[i+1].start) && spans[i+1].worthCaching(sc.args.ReadTS, bl.since) {
			i++
		}
		bl.bound = spans[i].end
		bl.fill = scanFills.Get().(*scanFill)
		bl.fill.start = pos
		return
	}
	if found {
		i++
	}
	const most = 64 // spans that are looked at, lest this takes long
	for j := i; j < len(spans); j++ {
		if e := spans[j]; j == i+most || e.usable(sc.args.ReadTS) != nil || makes && e.worthCaching(sc.args.ReadTS, bl.since) {
			bl.bound = e.start
			return
		}
	}
}

// add appends a row. full reports that the block is large enough.
func (f *scanFill) add(key, value []byte, version tso.Timestamp, most int) (full bool) {
	f.offsets = append(f.offsets, uint32(len(f.arena)))
	f.arena = append(f.arena, key...)
	f.offsets = append(f.offsets, uint32(len(f.arena)))
	f.arena = append(f.arena, value...)
	f.version = max(f.version, version)
	return len(f.offsets) >= 2*most || len(f.arena) >= scanBlockBytes
}

// fillRow adds a row that the iterator has found to the block that is being made.
func (sc *scanner) fillRow(key, value []byte, version uint64) {
	sc.blocks.read++
	if f := sc.blocks.fill; f != nil && f.add(key, value, tso.Timestamp(version), sc.s.scans.rows) {
		sc.blocks.bound = append(slices.Clone(key), 0) // The next key ends the block.
	}
}

// fillPassed notes that the block that is being made lacks keys which are deleted as of version.
func (sc *scanner) fillPassed(version tso.Timestamp) {
	if f := sc.blocks.fill; f != nil {
		f.version = max(f.version, version)
	}
}

// fillJumped is fillPassed for deleted keys of which the versions are not known.
func (sc *scanner) fillJumped() {
	sc.blocks.jumped = true
	sc.fillPassed(sc.args.ReadTS)
}

// endFill ends the block that is being made before end. No bound: behind its last row.
func (sc *scanner) endFill(end []byte) {
	f := sc.blocks.fill
	if f == nil {
		return
	}
	sc.blocks.fill = nil
	if len(end) == 0 && len(f.offsets) > 0 {
		n := len(f.offsets)
		end = append(bytes.Clone(f.arena[f.offsets[n-2]:f.offsets[n-1]]), 0)
	}
	if c := sc.s.scans; len(f.offsets)/2 >= max(c.rows/256, 1) { // A smaller block saves nothing.
		b := &scanBlock{asOf: sc.args.ReadTS, version: f.version, arena: bytes.Clone(f.arena)}
		b.offsets = append(append(make([]uint32, 0, len(f.offsets)+1), f.offsets...), uint32(len(f.arena)))
		c.publish(f.start, end, b, sc.blocks.since)
	}
	*f = scanFill{scanBlock: scanBlock{arena: f.arena[:0], offsets: f.offsets[:0]}}
	scanFills.Put(f)
}

// stopFill ends the block that is being made before a key that no block can have: its version is above the snapshot, or its value long.
func (sc *scanner) stopFill(key []byte) {
	if sc.blocks.fill != nil {
		sc.endFill(key)
		sc.blocks.bound = append(bytes.Clone(key), 0)
	}
}

// passBound is called before a row is added to the page other than by the iterator or from a block.
func (sc *scanner) passBound(key []byte) {
	sc.stopFill(key)
	if bound := sc.blocks.bound; bound != nil && bytes.Compare(bound, key) <= 0 {
		sc.blocks.bound = append(bytes.Clone(key), 0)
	}
}

// endBlocks reports what the page has read to the cache.
func (sc *scanner) endBlocks() {
	bl := &sc.blocks
	if !bl.on {
		return
	}
	end := sc.page.ResumeKey
	if end == nil {
		end = sc.end
	}
	sc.endFill(end)
	c := sc.s.scans
	if bl.read < max(c.rows/32, 1) {
		return
	}
	if len(end) == 0 {
		end = append(bytes.Clone(sc.lastKey), 0)
	}
	c.note(bl.from, end, sc.lastKey, sc.args.ReadTS)
}
