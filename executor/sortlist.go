package executor

import (
	"context"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/percodb/percodb/sql/types"
)

// sortList keeps copies of rows of one width and brings them into an order.
//
// Many rows are first distributed by the digits of their prefixes, the last digit first, which takes one pass for every digit in which
// any two prefixes differ and no comparisons. Then rows of equal prefixes are compared. Equal rows stay in the order of their arrival.
//
// Few rows are sorted by comparisons, in the way of PostgreSQL (quickSort), so that equal ones come out in its order: what was written
// for PostgreSQL often has an ORDER BY that leaves ties, and expects to see them as it always has.
type sortList struct {
	order *ordering
	buf   rowBuffer
	width int        // of the rows as stored by the ordering
	items []sortItem // in order after sort
	spare []sortItem // scratch
	at    int        // the next row that next returns
	done  bool       // nothing was added since sort
	nulls int        // see touch
}

// sortItem refers to a row by its first datum.
type sortItem struct {
	prefix sortPrefix
	row    *types.Datum
}

const (
	// sortItemBytes is what an item takes with its place in scratch.
	sortItemBytes = 2 * int64(unsafe.Sizeof(sortItem{}))
	// leastDistributed is how many rows are needed for passes over all of them to be faster than comparisons.
	leastDistributed = 256
	// insertedItems is how many items are brought into order by insertion.
	insertedItems = 8
	// touchedItems is how many rows are loaded together.
	touchedItems = 16
	// itemsPerCheck is how many items are compared or moved between two checks for cancellation.
	itemsPerCheck = 4096
)

func newSortList(ex *execution, order *ordering) sortList {
	return sortList{order: order, buf: rowBuffer{mem: &ex.mem}}
}

func (l *sortList) len() int { return len(l.items) }

func (l *sortList) rowOf(i *sortItem) types.Row { return unsafe.Slice(i.row, l.width) }

// row returns a row in order. It is valid until reset or release.
func (l *sortList) row(i int) types.Row { return l.rowOf(&l.items[i]) }

// add keeps a copy of key followed by row.
func (l *sortList) add(key, row types.Row) error {
	n := len(key)
	l.width = n + len(row)
	kept, err := l.buf.alloc(l.width)
	if err != nil {
		return err
	}
	for i := range key {
		if kept[i], err = l.buf.datum(key[i]); err != nil {
			return err
		}
	}
	for i := range row {
		if kept[n+i], err = l.buf.datum(row[i]); err != nil {
			return err
		}
	}
	if err := l.buf.book(sortItemBytes - headerBytes); err != nil {
		return err
	}
	if len(l.items) == cap(l.items) {
		l.items = slices.Grow(l.items, max(len(l.items), insertedItems))
	}
	l.items = append(l.items, sortItem{l.order.prefix(kept), unsafe.SliceData(kept)})
	l.done = false
	return nil
}

// next returns the first row that it has not returned since the list was sorted, or nil.
func (l *sortList) next() types.Row {
	if l.at == len(l.items) {
		return nil
	}
	if l.at%touchedItems == 0 {
		l.touch(l.items[l.at:min(l.at+touchedItems, len(l.items))])
	}
	l.at++
	return l.row(l.at - 1)
}

// touch reads each of some rows, so that the processor loads them from memory at the same time: in order they are far from each other.
func (l *sortList) touch(items []sortItem) {
	if l.width == 0 {
		return
	}
	n := 0
	for i := range items {
		if items[i].row.IsNull() {
			n++
		}
	}
	l.nulls = n
}

// before reports whether the row that next would return precedes, or is equal to, that of another list. Both have one.
func (l *sortList) before(other *sortList) bool {
	a, b := &l.items[l.at], &other.items[other.at]
	if c := a.prefix.compare(b.prefix); c != 0 {
		return c < 0
	}
	return l.order.compareRest(l.rowOf(a), other.rowOf(b)) <= 0
}

// reset drops the rows.
func (l *sortList) reset() {
	clear(l.items)
	clear(l.spare)
	l.items, l.spare, l.at, l.done = l.items[:0], l.spare[:0], 0, false
	l.buf.reset()
}

// release is reset that also frees the memory.
func (l *sortList) release() {
	l.items, l.spare, l.at, l.done = nil, nil, 0, false
	l.buf.release()
}

// sort brings the rows into order.
func (l *sortList) sort(ctx context.Context) error {
	if l.done {
		return nil
	}
	if len(l.items) < leastDistributed {
		quickSort(l.items, l.compare)
	} else {
		l.spare = slices.Grow(l.spare[:0], len(l.items))[:len(l.items)]
		if err := l.distribute(ctx); err != nil {
			return err
		}
		if err := l.sortTies(&polled{ctx: ctx}); err != nil {
			return err
		}
	}
	l.at, l.done = 0, true
	return nil
}

func (l *sortList) compare(a, b *sortItem) int {
	if a.prefix != b.prefix {
		return a.prefix.compare(b.prefix)
	}
	return l.order.compareRest(l.rowOf(a), l.rowOf(b))
}

// merge brings the items from one on to another into order: insertion in short runs, which are merged by twos.
func (l *sortList) merge(from, to int, check *polled) error {
	for low := from; low < to; low += insertedItems {
		insertionSort(l.items[low:min(low+insertedItems, to)], l.compare)
		if err := check.add(insertedItems); err != nil {
			return err
		}
	}
	for run := insertedItems; run < to-from; run *= 2 {
		for low := from; low+run < to; low += 2 * run {
			high := min(low+2*run, to)
			if err := check.add(high - low); err != nil {
				return err
			}
			l.mergeRuns(low, low+run, high)
		}
	}
	return nil
}

// mergeRuns merges two runs that are next to each other.
func (l *sortList) mergeRuns(low, middle, high int) {
	if l.compare(&l.items[middle-1], &l.items[middle]) <= 0 {
		return
	}
	left := l.spare[:copy(l.spare, l.items[low:middle])]
	right, out := l.items[middle:high], l.items[low:high]
	at := 0
	for len(left) > 0 && len(right) > 0 {
		if l.compare(&left[0], &right[0]) > 0 {
			out[at], right = right[0], right[1:]
		} else {
			out[at], left = left[0], left[1:]
		}
		at++
	}
	copy(out[at:], left)
}

// polled asks from time to time whether the statement was cancelled.
type polled struct {
	ctx context.Context
	n   int
}

func (p *polled) add(n int) error {
	if p.n += n; p.n < itemsPerCheck {
		return nil
	}
	p.n = 0
	return p.ctx.Err()
}

// distribute brings the rows into the order of their prefixes.
func (l *sortList) distribute(ctx context.Context) error {
	first, last := l.items[0].prefix, l.items[0].prefix
	var differ sortPrefix // bits in which prefixes differ
	ordered := true
	for i := range l.items {
		p := l.items[i].prefix
		differ.high |= p.high ^ first.high
		differ.low |= p.low ^ first.low
		ordered = ordered && last.compare(p) <= 0
		last = p
	}
	if ordered {
		return nil
	}
	for shift := differ.nextBit(0); shift < sortPrefixBits; shift = differ.nextBit(shift + 8) {
		if err := ctx.Err(); err != nil {
			return err
		}
		distributeBy(l.items, l.spare, shift)
		l.items, l.spare = l.spare, l.items
	}
	return nil
}

// distributeBy copies items into the order of the eight bits of their prefixes that lie shift bits above the lowest one.
func distributeBy(items, into []sortItem, shift uint) {
	var counts [256]int
	for i := range items {
		counts[items[i].prefix.digit(shift)]++
	}
	at := 0
	for d := range counts {
		at, counts[d] = at+counts[d], at
	}
	for i := range items {
		place := &counts[items[i].prefix.digit(shift)]
		into[*place] = items[i]
		*place++
	}
}

// digit returns eight bits, the lowest of which lies shift bits above the lowest one.
func (p sortPrefix) digit(shift uint) uint8 {
	if shift >= 64 {
		return uint8(p.high >> (shift - 64))
	}
	return uint8(p.low>>shift | p.high<<(64-shift))
}

// nextBit returns the lowest bit that is set at or above one, or sortPrefixBits.
func (p sortPrefix) nextBit(from uint) uint {
	if from < 64 {
		if low := p.low >> from; low != 0 {
			return from + uint(bits.TrailingZeros64(low))
		}
		from = 64
	}
	if high := p.high >> (from - 64); high != 0 {
		return from + uint(bits.TrailingZeros64(high))
	}
	return sortPrefixBits
}

// sortTies brings rows of equal prefixes into order.
func (l *sortList) sortTies(check *polled) error {
	if l.order.whole == len(l.order.at) {
		return nil
	}
	for from, to := 0, 0; from < len(l.items); from = to {
		for to = from + 1; to < len(l.items) && l.items[to].prefix == l.items[from].prefix; to++ {
		}
		if to-from == 1 {
			continue
		}
		l.touch(l.items[from:min(to, from+touchedItems)])
		if err := l.merge(from, to, check); err != nil {
			return err
		}
	}
	return nil
}

// sortPolled is slices.SortFunc that asks whether the statement was cancelled. After that all elements compare equal, which
// ends the sort soon.
func sortPolled[E any](ctx context.Context, list []E, compare func(a, b E) int) error {
	var canceled error
	compared := 0
	slices.SortFunc(list, func(a, b E) int {
		if compared++; compared%4096 == 0 && canceled == nil {
			canceled = ctx.Err()
		}
		if canceled != nil {
			return 0
		}
		return compare(a, b)
	})
	return canceled
}
