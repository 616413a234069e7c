package executor

import (
	"context"
	"unsafe"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// topN keeps the first rows of an ordering: a heap with the last of them on top. Each place of the heap has a row and
// its bytes, which are overwritten by a row that precedes it, so memory is bounded by the limit, not by the input.
type topN struct {
	ex            *execution
	node          *planner.TopN
	input         Operator
	feed          *feed // where rows come from in any order; nil: from input
	order         ordering
	limit, offset expr.Scalar

	skip  int64
	heap  topHeap
	held  int64
	at    int
	ready bool
	key   types.Row
}

// sorted is a row with its keys in front, as the ordering stores it.
type sorted struct {
	prefix sortPrefix
	key    types.Row
}

// place is a row that is kept, with its bytes.
type place struct {
	sorted
	bytes []byte
}

const placeBytes = int64(unsafe.Sizeof(place{}))

// topHeap selects rows as PostgreSQL does (src/backend/utils/sort/tuplesort.c), so that of equal rows it selects the same ones, and leaves
// them in the same order: rows are collected up to twice as many as are wanted, then they become a heap with the last row of the order on
// top. Where leastDistributed rows and more are wanted, they become a heap as soon as there are as many.
type topHeap struct {
	order  *ordering
	want   int64
	places []place
	heaped bool
}

func (h *topHeap) compare(a, b *place) int {
	if a.prefix != b.prefix {
		return a.prefix.compare(b.prefix)
	}
	return h.order.compareRest(a.key, b.key)
}

// room is the number of rows that are collected before they become a heap.
func (h *topHeap) room() int64 {
	if h.want < leastDistributed {
		return 2 * h.want
	}
	return h.want
}

// build makes the heap of the first rows of the order, and drops the others.
func (h *topHeap) build() {
	all := h.places
	n := int(min(h.want, int64(len(all))))
	for i := 1; i < n; i++ {
		h.up(i)
	}
	h.places, h.heaped = all[:n], true
	for i := n; i < len(all); i++ {
		if h.compare(&all[i], &all[0]) < 0 {
			all[0], all[i] = all[i], all[0]
			h.down()
		}
	}
	clear(all[n:])
}

// up brings a new place, behind the heap, to where it belongs.
func (h *topHeap) up(i int) {
	p := h.places[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h.compare(&p, &h.places[parent]) <= 0 {
			break
		}
		h.places[i], i = h.places[parent], parent
	}
	h.places[i] = p
}

// down brings the place on top to where it belongs.
func (h *topHeap) down() {
	p, i, n := h.places[0], 0, len(h.places)
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h.compare(&h.places[child], &h.places[child+1]) < 0 {
			child++
		}
		if h.compare(&p, &h.places[child]) >= 0 {
			break
		}
		h.places[i], i = h.places[child], child
	}
	h.places[i] = p
}

// sort leaves the wanted rows in order; then it is no heap.
func (h *topHeap) sort() {
	if !h.heaped {
		if len(h.places) < 2*leastDistributed {
			quickSort(h.places, h.compare)
			return
		}
		h.build()
	}
	all := h.places
	for n := len(all) - 1; n > 0; n-- {
		top, last := all[0], all[n]
		h.places = all[:n]
		all[0] = last
		h.down()
		all[n] = top
	}
	h.places = all
}

func newTopN(ex *execution, input Operator, n *planner.TopN) *topN {
	o := &topN{
		ex: ex, node: n, input: input, order: newRowOrdering(n.Keys), limit: n.Limit, offset: n.Offset,
		key: make(types.Row, len(n.Keys)),
	}
	if n.Fed {
		o.feed = newFeed(input)
	}
	return o
}

func (o *topN) Open(ctx context.Context) error {
	left, skip, err := o.ex.limitOffset(o.limit, o.offset)
	if err != nil {
		return err
	}
	o.heap = topHeap{order: &o.order, want: left + skip}
	if o.heap.want < left {
		o.heap.want = left // past the end of int64: everything
	}
	o.skip, o.ready, o.at = skip, left == 0, 0
	return o.input.Open(ctx)
}

func (o *topN) Close() error {
	o.drop()
	return o.input.Close()
}

// drop forgets all rows.
func (o *topN) drop() {
	o.heap.places = nil
	o.ex.mem.shrink(o.held)
	o.held = 0
}

func (o *topN) Next(ctx context.Context) (types.Row, error) {
	if !o.ready {
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
	if o.at >= len(o.heap.places) {
		return nil, nil
	}
	row := o.heap.places[o.at].key[o.order.width:]
	o.at++
	return row, nil
}

func (o *topN) fill(ctx context.Context) error {
	if err := o.read(ctx); err != nil {
		return err
	}
	o.heap.sort()
	o.heap.places = o.heap.places[:min(o.heap.want, int64(len(o.heap.places)))]
	o.at = int(min(o.skip, int64(len(o.heap.places))))
	o.ready = true
	return nil
}

// read offers all rows.
func (o *topN) read(ctx context.Context) error {
	if o.feed != nil {
		d := o.divided()
		if done, err := o.feed.read(ctx, &d, o.node.Workers(o.ex.rt.Parallel)); done || err != nil {
			return err
		}
	}
	for {
		row, err := o.input.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			return nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.offer(row); err != nil {
			return err
		}
	}
}

// divided describes how workers select rows.
func (o *topN) divided() divided {
	o.feed.sink = o.offer
	return divided{feed: o.feed, part: o.part, attempt: o.attempt, absorb: o.absorb}
}

// part makes a selection from a part of the rows in a worker's execution.
func (o *topN) part(ex *execution) (part, error) {
	input, err := ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w := newTopN(ex, input, o.node)
	w.heap = topHeap{order: &w.order, want: o.heap.want}
	return w, nil
}

// attempt is divided's.
func (o *topN) attempt(begin bool) error {
	if !begin {
		o.drop()
	}
	return nil
}

// absorb is divided's.
func (o *topN) absorb(ctx context.Context, from part) error {
	for i := range from.(*topN).heap.places {
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.offer(from.(*topN).heap.places[i].key[o.order.width:]); err != nil {
			return err
		}
	}
	return nil
}

// offer keeps row if it is among the first so far.
func (o *topN) offer(row types.Row) error {
	key, err := o.order.eval(o.ex, row, o.key)
	if err != nil {
		return err
	}
	h := &o.heap
	p := place{sorted: sorted{o.order.prefix(key), key}}
	if !h.heaped {
		if int64(len(h.places)) < h.room() {
			return o.add(p, row)
		}
		h.build()
	}
	worst := &h.places[0]
	if h.compare(&p, worst) >= 0 {
		return nil
	}
	worst.prefix = p.prefix
	if err := o.store(worst, key, row); err != nil {
		return err
	}
	h.down()
	return nil
}

// add keeps a copy of a row, of which p has the key.
func (o *topN) add(p place, row types.Row) error {
	key := p.key
	p.key = make(types.Row, o.order.width+len(row))
	if err := o.book(placeBytes + int64(len(p.key))*datumBytes); err != nil {
		return err
	}
	if err := o.store(&p, key, row); err != nil {
		return err
	}
	o.heap.places = append(o.heap.places, p)
	return nil
}

// store copies a row, with its key in front unless it is part of the row, into a place.
func (o *topN) store(p *place, key, row types.Row) error {
	n := copy(p.key[:o.order.width], key)
	copy(p.key[n:], row)
	need := 0
	for i := range p.key {
		need += bytesOf(p.key[i])
	}
	if cap(p.bytes) < need {
		if err := o.book(int64(need - cap(p.bytes))); err != nil {
			return err
		}
		p.bytes = make([]byte, 0, need)
	}
	p.bytes = p.bytes[:0]
	for i, d := range p.key {
		switch d.Kind() {
		case types.KindBytes:
			at := len(p.bytes)
			p.bytes = append(p.bytes, d.Bytes()...)
			p.key[i] = types.Bytes(p.bytes[at:len(p.bytes):len(p.bytes)])
		case types.KindArray, types.KindRow, types.KindRange:
			p.key[i] = d.Clone()
		}
	}
	return nil
}

func bytesOf(d types.Datum) int {
	if d.Kind() == types.KindBytes {
		return len(d.Bytes())
	}
	return 0
}

func (o *topN) book(n int64) error {
	if err := o.ex.mem.grow(n); err != nil {
		return err
	}
	o.held += n
	return nil
}
