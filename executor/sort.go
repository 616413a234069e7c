package executor

import (
	"cmp"
	"context"
	"slices"
	"unsafe"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// sorted is one row in a sort: rows come out in order of key, then of arrival.
type sorted struct {
	prefix uint64
	seq    int
	key    types.Row // the sort keys, followed by the row
}

const sortedBytes = int64(unsafe.Sizeof(sorted{}))

// sorter orders all rows. Where the input has the order of the first Presorted keys already, it
// sorts one run of equal first keys at a time, so that a LIMIT above need not wait for the rest.
type sorter struct {
	ex        *execution
	input     Operator
	order     ordering
	presorted int

	buf   rowBuffer
	items []sorted
	at    int
	key   types.Row // scratch: the incoming row's keys
	ahead types.Row // the first row of the next run, owned by the input
	full  bool      // input is exhausted
}

func newSorter(ex *execution, input Operator, n *planner.Sort) *sorter {
	return &sorter{
		ex: ex, input: input, order: newOrdering(n.Keys), presorted: n.Presorted,
		key: make(types.Row, len(n.Keys)), buf: rowBuffer{mem: &ex.mem},
	}
}

func (o *sorter) Open(ctx context.Context) error {
	o.at, o.items, o.ahead, o.full = 0, o.items[:0], nil, false
	return o.input.Open(ctx)
}

func (o *sorter) Close() error {
	o.items, o.ahead = nil, nil
	o.buf.release()
	return o.input.Close()
}

func (o *sorter) Next(ctx context.Context) (types.Row, error) {
	for o.at == len(o.items) {
		if o.full {
			return nil, nil
		}
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
	row := o.items[o.at].key[len(o.order.keys):]
	o.at++
	return row, nil
}

// fill reads and sorts the next run.
func (o *sorter) fill(ctx context.Context) error {
	o.items, o.at = o.items[:0], 0
	o.buf.reset()
	row := o.ahead
	o.ahead = nil
	for {
		if row == nil {
			var err error
			if row, err = o.input.Next(ctx); err != nil {
				return err
			}
			if row == nil {
				o.full = true
				break
			}
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.order.eval(o.ex, row, o.key); err != nil {
			return err
		}
		if len(o.items) > 0 && o.presorted > 0 && !o.sameRun() {
			o.ahead = row
			break
		}
		if err := o.take(row); err != nil {
			return err
		}
		row = nil
	}
	slices.SortFunc(o.items, func(a, b sorted) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		if c := o.order.compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.seq, b.seq)
	})
	return nil
}

// sameRun reports whether the scratch key agrees with the run's first row in the presorted keys.
func (o *sorter) sameRun() bool {
	for i := range o.presorted {
		if o.order.compareKey(i, o.items[0].key[i], o.key[i]) != 0 {
			return false
		}
	}
	return true
}

// take keeps the scratch key and its row.
func (o *sorter) take(row types.Row) error {
	n := len(o.key)
	kept, err := o.buf.alloc(n + len(row))
	if err != nil {
		return err
	}
	for i := range row {
		if kept[n+i], err = o.buf.datum(row[i]); err != nil {
			return err
		}
	}
	for i := range o.key {
		if kept[i], err = o.buf.datum(o.key[i]); err != nil {
			return err
		}
	}
	if err := o.buf.book(sortedBytes); err != nil {
		return err
	}
	o.items = append(o.items, sorted{prefix: o.order.prefix(kept[:n]), seq: len(o.items), key: kept})
	return nil
}
