package executor

import (
	"container/heap"
	"context"
	"slices"
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

	want  int64 // limit + offset
	skip  int64
	heap  topHeap
	held  int64
	at    int
	ready bool
	key   types.Row
	seq   int
}

// sorted is a row with its key: rows come in order of the key, then of arrival.
type sorted struct {
	prefix sortPrefix
	seq    int
	key    types.Row // as stored by the ordering: its keys, then the row
}

const sortedBytes = int64(unsafe.Sizeof(sorted{}))

// place is one row of the heap.
type place struct {
	sorted
	bytes []byte
}

type topHeap struct {
	order  *ordering
	places []place
}

func (h *topHeap) Len() int           { return len(h.places) }
func (h *topHeap) Less(i, j int) bool { return h.compare(&h.places[i].sorted, &h.places[j].sorted) > 0 }
func (h *topHeap) Swap(i, j int)      { h.places[i], h.places[j] = h.places[j], h.places[i] }
func (h *topHeap) Push(x any)         { h.places = append(h.places, x.(place)) }
func (h *topHeap) Pop() any           { panic("topN never pops") }

func (h *topHeap) compare(a, b *sorted) int {
	if c := a.prefix.compare(b.prefix); c != 0 {
		return c
	}
	if c := h.order.compareRest(a.key, b.key); c != 0 {
		return c
	}
	return a.seq - b.seq
}

func newTopN(ex *execution, input Operator, n *planner.TopN) *topN {
	o := &topN{
		ex: ex, node: n, input: input, order: newRowOrdering(n.Keys), limit: n.Limit, offset: n.Offset,
		key: make(types.Row, len(n.Keys)),
	}
	if o.heap.order = &o.order; n.Fed {
		o.feed = newFeed(input)
	}
	return o
}

func (o *topN) Open(ctx context.Context) error {
	left, skip, err := o.ex.limitOffset(o.limit, o.offset)
	if err != nil {
		return err
	}
	if o.want = left + skip; o.want < left {
		o.want = left // past the end of int64: everything
	}
	o.skip, o.ready, o.at, o.seq = skip, left == 0, 0, 0
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
	slices.SortFunc(o.heap.places, func(a, b place) int { return o.heap.compare(&a.sorted, &b.sorted) })
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
	w.want = o.want
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
	o.seq++
	s := sorted{prefix: o.order.prefix(key), seq: o.seq, key: key}
	if int64(len(o.heap.places)) < o.want {
		p := place{sorted: s}
		p.key = make(types.Row, o.order.width+len(row))
		if err := o.book(sortedBytes + int64(len(p.key))*datumBytes); err != nil {
			return err
		}
		if err := o.store(&p, key, row); err != nil {
			return err
		}
		heap.Push(&o.heap, p)
		return nil
	}
	worst := &o.heap.places[0]
	if o.heap.compare(&s, &worst.sorted) >= 0 {
		return nil
	}
	worst.prefix, worst.seq = s.prefix, s.seq
	if err := o.store(worst, key, row); err != nil {
		return err
	}
	heap.Fix(&o.heap, 0)
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
