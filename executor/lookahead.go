package executor

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// lookahead scans the key prefixes of a group of left rows with one iterator, and keeps the entries as long as a left
// row may need them.
//
//	left rows   b  a  b  d           look up in this order
//	places      a  b  d              prefixes in key order: the order of reading
//	entries     0 1│2 3 4│5 …        read as far as needed, and a little further
//	bounds     0    2     5
//
// An entry is a key and its value in the index or, with fetch, a row's key and the row, which are fetched in chunks.
// Entries keep their numbers when those before them are dropped.
type lookahead struct {
	r *spanReader
	// first: a left row usually needs only the first entry of its prefix.
	first bool
	// crowded: entries were cut because they did not fit.
	crowded bool

	spans  []kv.Span // by place
	order  []int32   // key numbers by place
	places []int32   // its inverse
	lowest []int32   // by left row: the smallest place that it or a later one needs
	bounds []int     // by place up to reading: the number of its first entry; that of the next ends it
	cut    []bool    // by place: it has more entries than these

	it      percolator.Iterator
	reading int32 // the place the iterator is in; the number of places at the end
	within  int   // entries read of that place
	chunk   int   // how many entries to read next

	base         int // number of keys[0]
	keys, values [][]byte
	buf          []byte // buffer of keys and values
	held         int64  // booked for the entries
}

const (
	// maxHeldBytes bounds the entries that are kept.
	maxHeldBytes = 1 << 20
	// firstEntries is how many entries of a prefix are read for a later left row that needs only the first.
	firstEntries = 64
	// entryHeaderBytes is the cost of an entry in addition to its bytes.
	entryHeaderBytes = 48
)

func (a *lookahead) init(r *spanReader, first bool) { a.r, a.first = r, first }

// release gives the entries' memory back and closes the iterator.
func (a *lookahead) release() {
	a.close()
	a.drop()
	clear(a.spans)
	clear(a.keys[:cap(a.keys)])
	if cap(a.keys) > defaultGroupSize || cap(a.buf) > maxChunkBytes {
		a.keys, a.values, a.buf = nil, nil, nil
	}
	a.crowded = false
}

func (a *lookahead) close() {
	if a.it != nil {
		a.it.Close()
		a.it = nil
	}
}

// drop forgets all entries.
func (a *lookahead) drop() {
	a.base = a.end()
	a.r.ex.mem.shrink(a.held)
	a.held = 0
	clear(a.values)
	a.keys, a.values, a.buf = a.keys[:0], a.values[:0], a.buf[:0]
}

// end is the number of the entry that will be read next.
func (a *lookahead) end() int { return a.base + len(a.keys) }

// begin prepares for a group of left rows, by their keys, and by the numbers of these for each row. The
// keys are not copied.
func (a *lookahead) begin(prefixes [][]byte, slots []int32) {
	a.close()
	a.drop()
	n := len(prefixes)
	a.order, a.places = slices.Grow(a.order[:0], n)[:n], slices.Grow(a.places[:0], n)[:n]
	for i := range a.order {
		a.order[i] = int32(i)
	}
	slices.SortFunc(a.order, func(x, y int32) int { return bytes.Compare(prefixes[x], prefixes[y]) })
	a.spans = a.spans[:0]
	for place, slot := range a.order {
		a.places[slot] = int32(place)
		a.spans = append(a.spans, kv.Span{Start: prefixes[slot], End: rowenc.PrefixEnd(prefixes[slot])})
	}
	a.lowest = slices.Grow(a.lowest[:0], len(slots)+1)[:len(slots)+1]
	lowest := int32(n)
	a.lowest[len(slots)] = lowest
	for i := len(slots) - 1; i >= 0; i-- {
		if slots[i] >= 0 {
			lowest = min(lowest, a.places[slots[i]])
		}
		a.lowest[i] = lowest
	}
	a.bounds, a.cut = slices.Grow(a.bounds[:0], n+1)[:n+1], slices.Grow(a.cut[:0], n)[:n]
	a.bounds[0] = a.end()
	clear(a.cut)
	a.reading, a.within = 0, 0
	a.chunk = max(a.r.ex.firstGroup(), min(4*n, a.r.ex.maxGroup))
}

// placeOf returns the place of a key by its number, -1 for none.
func (a *lookahead) placeOf(slot int32) int32 {
	if slot < 0 {
		return -1
	}
	return a.places[slot]
}

// find returns the number of the entry of place at or after from (-1: of its first one), reading on if necessary; -1 if
// there is none, or none that was kept. later is the next left row.
func (a *lookahead) find(ctx context.Context, place int32, from, later int) (int, error) {
	for {
		if place <= a.reading {
			from = max(from, a.bounds[place])
			end := a.end()
			if place < a.reading {
				end = a.bounds[place+1]
			}
			if from < end {
				return from, nil
			}
			if place < a.reading {
				return -1, nil
			}
		}
		if err := a.read(ctx, place, a.lowest[later]); err != nil {
			return -1, err
		}
	}
}

// row returns the row of an entry.
func (a *lookahead) row(at int) (types.Row, error) {
	key, value := a.keys[at-a.base], a.values[at-a.base]
	switch {
	case a.r.keysOnly:
		return a.r.out, nil
	case value == nil && a.r.fetch:
		return nil, a.r.dangling(key)
	}
	return a.r.decode(key, value)
}

// read reads the next chunk, for a left row that needs place, while later ones need no place below lowest.
func (a *lookahead) read(ctx context.Context, place, lowest int32) error {
	if lowest > a.reading {
		a.drop() // place is not behind: its left row has seen them all
	}
	if a.held > maxHeldBytes {
		a.crowded = true
		for p := a.reading; int(p) < len(a.spans); p++ {
			a.cut[p] = true
		}
		a.finish()
		return nil
	}
	fresh := len(a.keys)
	for n := 0; n < a.chunk && int(a.reading) < len(a.spans); {
		if err := a.r.ex.tick(ctx); err != nil {
			return err
		}
		key, err := a.advance(ctx)
		if err != nil {
			return err
		}
		if key == nil {
			a.finish()
			break
		}
		if a.first && a.within >= firstEntries && a.reading < place {
			// Its left row is finished, or will read it individually; the iterator must start after it.
			a.cut[a.reading] = true
			a.endPlace()
			a.close()
			continue
		}
		if err := a.keep(); err != nil {
			return err
		}
		n++
	}
	a.chunk = a.r.ex.nextGroup(a.chunk)
	return a.fetch(ctx, fresh)
}

// advance moves the iterator, and the place that is read with it. The key is nil at the end.
func (a *lookahead) advance(ctx context.Context) ([]byte, error) {
	if a.it == nil {
		hint := 0
		if n := 2 * (len(a.spans) - int(a.reading)); n > firstEntries {
			hint = n
		}
		a.it = a.r.scan(ctx, a.spans[a.reading:], hint)
	}
	if !a.it.Next(ctx) {
		return nil, a.it.Err()
	}
	key := a.it.Key()
	for end := a.spans[a.reading].End; len(end) > 0 && bytes.Compare(key, end) >= 0; end = a.spans[a.reading].End {
		a.endPlace()
	}
	return key, nil
}

// endPlace advances to the next place.
func (a *lookahead) endPlace() {
	a.reading++
	a.bounds[a.reading] = a.end()
	a.within = 0
}

// finish ends all places there are.
func (a *lookahead) finish() {
	for int(a.reading) < len(a.spans) {
		a.endPlace()
	}
	a.close()
}

// keep takes the pair that the iterator is at for an entry.
func (a *lookahead) keep() (err error) {
	var key, value []byte
	from := len(a.buf)
	switch {
	case a.r.keysOnly:
	case a.r.fetch:
		if a.buf, err = rowenc.AppendRowKey(a.buf, a.r.table, a.r.index, a.it.Key(), a.it.Value()); err != nil {
			return err
		}
		key = a.buf[from:len(a.buf):len(a.buf)]
	default:
		a.buf = append(append(a.buf, a.it.Key()...), a.it.Value()...)
		mid := from + len(a.it.Key())
		key, value = a.buf[from:mid:mid], a.buf[mid:len(a.buf):len(a.buf)]
	}
	a.keys, a.values = append(a.keys, key), append(a.values, value)
	a.within++
	return a.book(int64(len(a.buf) - from + entryHeaderBytes))
}

// fetch reads the rows of the entries from fresh on.
func (a *lookahead) fetch(ctx context.Context, fresh int) error {
	if !a.r.fetch || fresh == len(a.keys) {
		return nil
	}
	rows, err := a.r.ex.txn.BatchGet(ctx, a.keys[fresh:])
	if err != nil {
		return err
	}
	size := int64(0)
	for i, row := range rows {
		a.values[fresh+i] = row
		size += int64(len(row))
	}
	return a.book(size)
}

func (a *lookahead) book(n int64) error {
	if err := a.r.ex.mem.grow(n); err != nil {
		return err
	}
	a.held += n
	return nil
}
