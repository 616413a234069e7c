package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// sorter orders all rows. Where the input has the order of the first Presorted keys already, it
// sorts one run of equal first keys at a time, so that a LIMIT above need not wait for the rest.
type sorter struct {
	ex        *execution
	node      *planner.Sort
	input     Operator
	feed      *feed // where rows come from in any order; nil: from input
	order     ordering
	presorted int

	rows sortList
	// parts are the sorted rows of workers, whose memory is booked with rows.
	parts []sortList
	key   types.Row // scratch: computed keys of the incoming row
	ahead types.Row // the first row of the next run, owned by the input
	// runKey are the presorted keys of the run at hand.
	runKey  types.Row
	full    bool // input is exhausted
	partial bool // some of the rows are taken by others: what does not fit into memory ends the attempt
	// spilled holds the run's part that has left memory; nil: there is none.
	spilled *spill
	mayNot  bool // some column has a type that cannot be written to a file
	// tempBytes is the size of the removed files, one for every run that needed one.
	tempBytes int64
}

func newSorter(ex *execution, input Operator, n *planner.Sort) *sorter {
	o := &sorter{ex: ex, node: n, input: input, order: newRowOrdering(n.Keys), presorted: n.Presorted, key: make(types.Row, len(n.Keys))}
	o.rows = newSortList(ex, &o.order)
	o.mayNot = !storable(append(typesOf(n.Input), o.order.types...))
	if n.Fed {
		o.feed = newFeed(input)
	}
	return o
}

func (o *sorter) Open(ctx context.Context) error {
	o.drop()
	o.ahead, o.full, o.tempBytes = nil, false, 0
	return o.input.Open(ctx)
}

func (o *sorter) Close() error {
	o.ahead, o.parts = nil, nil
	o.rows.release()
	return errors.Join(o.dropSpill(), o.input.Close())
}

// drop forgets the rows in memory.
func (o *sorter) drop() {
	o.parts = nil
	o.rows.reset()
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
	for {
		if row := o.nextSorted(); row != nil {
			return row[o.order.width:], nil
		}
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
}

// nextSorted returns the next row of those in memory, or nil.
func (o *sorter) nextSorted() types.Row {
	least := &o.rows
	for i := range o.parts {
		if p := &o.parts[i]; p.at < p.len() && (least.at == least.len() || !least.before(p)) {
			least = p
		}
	}
	return least.next()
}

// fill reads and sorts the next run.
func (o *sorter) fill(ctx context.Context) error {
	o.runKey = nil
	o.drop()
	if o.feed != nil {
		all, err := o.fillFed(ctx)
		if err != nil {
			return err
		}
		o.full = all
	}
	for !o.full {
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
		if err := o.take(ctx, key, row); err != nil {
			return err
		}
	}
	if o.spilled != nil {
		// The rows left in memory are the last part of the merge.
		return o.spillItems(ctx)
	}
	return o.rows.sort(ctx)
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

// take keeps a row, with its key in front unless it is part of the row. Rows that leave too little memory go to the file first.
func (o *sorter) take(ctx context.Context, key, row types.Row) error {
	if !o.mayNot && o.ex.mem.crowded(o.rows.buf.held) {
		if o.partial {
			return errCrowded
		}
		if err := o.spillItems(ctx); err != nil {
			return err
		}
	}
	return o.rows.add(key[:o.order.width], row)
}

// fillFed reads all rows by the feed; all is false if it cannot be used at this time.
func (o *sorter) fillFed(ctx context.Context) (all bool, err error) {
	d := o.divided()
	d.part, d.attempt, d.absorb = o.part, o.attempt, o.absorb
	workers := 0
	if o.fits() {
		workers = o.node.Workers(o.ex.rt.Parallel)
	}
	all, err = o.feed.read(ctx, &d, workers)
	o.partial = false
	return all, err
}

// fits reports whether the rows are expected to take half of the memory at most: so much can those with a share of it keep of a share of
// the rows.
func (o *sorter) fits() bool {
	const bytesPerColumn = 16 // of values of variable length
	columns := int64(o.order.width + len(o.node.Input.Columns()))
	return o.node.Input.Estimate().Rows*float64(sortItemBytes+columns*(datumBytes+bytesPerColumn)) < float64(o.ex.mem.limit/2)
}

// divided implements part.
func (o *sorter) divided() divided {
	o.feed.sink = o.takeFed
	return divided{feed: o.feed, finish: o.finish}
}

// takeFed takes a row of the feed.
func (o *sorter) takeFed(row types.Row) error {
	key, err := o.order.eval(o.ex, row, o.key)
	if err != nil {
		return err
	}
	return o.take(o.ex.ev.Ctx, key, row)
}

// part sorts a part of the rows in a worker's execution.
func (o *sorter) part(ex *execution) (part, error) {
	input, err := ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w := newSorter(ex, input, o.node)
	w.partial = true
	return w, nil
}

// attempt is divided's.
func (o *sorter) attempt(begin bool) error {
	if o.partial = begin; !begin {
		o.drop()
	}
	return nil
}

// finish is divided's.
func (o *sorter) finish(ctx context.Context) error { return o.rows.sort(ctx) }

// absorb is divided's: it takes over the sorted rows of a worker.
func (o *sorter) absorb(_ context.Context, from part) error {
	w := from.(*sorter)
	if err := o.rows.buf.book(w.rows.buf.held); err != nil {
		return err
	}
	list := w.rows
	list.buf.mem, list.order = nil, &o.order
	w.rows = newSortList(w.ex, &w.order)
	o.parts = append(o.parts, list)
	return nil
}

// spillItems sorts the rows in memory and writes them to the file.
func (o *sorter) spillItems(ctx context.Context) (err error) {
	if o.spilled == nil {
		if o.spilled, err = newSpill(o.ex, &o.order); err != nil {
			return err
		}
	}
	if err := o.rows.sort(ctx); err != nil {
		return err
	}
	if err := o.spilled.write(ctx, &o.rows); err != nil {
		return err
	}
	o.rows.reset()
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
