package executor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// sorted is one row in a sort: rows come out in order of key, then of arrival.
type sorted struct {
	prefix uint64
	seq    int
	key    types.Row // as stored by the ordering: its keys, then the row
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
	key   types.Row // scratch: computed keys of the incoming row
	ahead types.Row // the first row of the next run, owned by the input
	// runKey are the presorted keys of the run at hand.
	runKey types.Row
	full   bool // input is exhausted
	// spilled holds the run's part that has left memory; nil: there is none.
	spilled *spill
	mayNot  bool // some column has a type that cannot be written to a file
	// tempBytes is the size of the removed files, one for every run that needed one.
	tempBytes int64
}

func newSorter(ex *execution, input Operator, n *planner.Sort) *sorter {
	o := &sorter{
		ex: ex, input: input, order: newRowOrdering(n.Keys), presorted: n.Presorted,
		key: make(types.Row, len(n.Keys)), buf: rowBuffer{mem: &ex.mem},
	}
	o.mayNot = !storable(append(typesOf(n.Input), o.order.types...))
	return o
}

func (o *sorter) Open(ctx context.Context) error {
	o.at, o.items, o.ahead, o.full, o.tempBytes = 0, o.items[:0], nil, false, 0
	return o.input.Open(ctx)
}

func (o *sorter) Close() error {
	o.items, o.ahead = nil, nil
	o.buf.release()
	return errors.Join(o.dropSpill(), o.input.Close())
}

// dropSpill gives up the file, if there is one.
func (o *sorter) dropSpill() error {
	if o.spilled == nil {
		return nil
	}
	o.tempBytes = o.spilledBytes()
	f := o.spilled.file
	o.spilled = nil
	return f.close()
}

// spilledBytes implements spiller.
func (o *sorter) spilledBytes() int64 {
	if o.spilled != nil {
		return o.tempBytes + o.spilled.file.bytes()
	}
	return o.tempBytes
}

func (o *sorter) Next(ctx context.Context) (types.Row, error) {
	for o.at == len(o.items) {
		if o.spilled != nil {
			row, err := o.nextSpilled()
			if row != nil || err != nil {
				return row, err
			}
		}
		if o.full {
			return nil, nil
		}
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
	row := o.items[o.at].key[o.order.width:]
	o.at++
	return row, nil
}

// fill reads and sorts the next run.
func (o *sorter) fill(ctx context.Context) error {
	o.items, o.at, o.runKey = o.items[:0], 0, nil
	o.buf.reset()
	for {
		row, err := o.pull(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			o.full = true
			break
		}
		key, err := o.order.eval(o.ex, row, o.key)
		if err != nil {
			return err
		}
		if !o.sameRun(key) {
			o.ahead = row
			break
		}
		if !o.mayNot && o.ex.mem.crowded(o.buf.held) {
			if err := o.spillItems(ctx); err != nil {
				return err
			}
		}
		if err := o.take(key, row); err != nil {
			return err
		}
	}
	if o.spilled != nil {
		// The rows left in memory are the last part of the merge.
		return o.spillItems(ctx)
	}
	return o.sort(ctx)
}

// pull returns the row that ended the last run, or else the input's next.
func (o *sorter) pull(ctx context.Context) (types.Row, error) {
	if row := o.ahead; row != nil {
		o.ahead = nil
		return row, nil
	}
	if err := o.ex.tick(ctx); err != nil {
		return nil, err
	}
	return o.input.Next(ctx)
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

// sort orders the rows in memory.
func (o *sorter) sort(ctx context.Context) error {
	return sortPolled(ctx, o.items, func(a, b sorted) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		if c := o.order.compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.seq, b.seq)
	})
}

// spillItems sorts the rows in memory and writes them to the file.
func (o *sorter) spillItems(ctx context.Context) (err error) {
	if o.spilled == nil {
		if o.spilled, err = newSpill(o.ex, &o.order); err != nil {
			return err
		}
	}
	if err := o.sort(ctx); err != nil {
		return err
	}
	if err := o.spilled.write(ctx, o.items); err != nil {
		return err
	}
	clear(o.items)
	o.items = o.items[:0]
	o.buf.reset()
	return nil
}

// nextSpilled returns the next row of the merge; at the end it removes the file.
func (o *sorter) nextSpilled() (types.Row, error) {
	key, err := o.spilled.next()
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, o.dropSpill()
	}
	return key[o.order.width:], nil
}

// sameRun reports whether a key agrees with the run's first one in the presorted keys. The first key begins the run.
func (o *sorter) sameRun(key types.Row) bool {
	if o.presorted == 0 {
		return true
	}
	if o.runKey == nil {
		o.runKey = make(types.Row, o.presorted)
		for i := range o.runKey {
			o.runKey[i] = key[o.order.at[i]].Clone()
		}
	}
	for i := range o.runKey {
		if o.order.compareKey(i, o.runKey[i], key[o.order.at[i]]) != 0 {
			return false
		}
	}
	return true
}

// take keeps a row, with its key in front unless it is part of the row.
func (o *sorter) take(key, row types.Row) error {
	n := o.order.width
	kept, err := o.buf.alloc(n + len(row))
	if err != nil {
		return err
	}
	for i := range n {
		if kept[i], err = o.buf.datum(key[i]); err != nil {
			return err
		}
	}
	for i := range row {
		if kept[n+i], err = o.buf.datum(row[i]); err != nil {
			return err
		}
	}
	if err := o.buf.book(sortedBytes); err != nil {
		return err
	}
	o.items = append(o.items, sorted{prefix: o.order.prefix(kept), seq: len(o.items), key: kept})
	return nil
}
