package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// feed passes the rows of a scan, and of filters, projections and hash joins above it, to a function, in any order. The rows are decoded
// where the store has them: there is no page in between.
type feed struct {
	scan   *scan
	stages []feedStage // from the scan up
	sink   func(row types.Row) error
}

// feedStage is a hash join that is probed, a projection if out is not nil, or a filter.
type feedStage struct {
	join  *hashJoin
	cond  expr.Scalar
	exprs []expr.Scalar
	out   types.Row
}

// newFeed returns the feed that replaces calls of op's Next; nil where op is, or is over, anything else. EXPLAIN ANALYZE measures
// operators, so that there is none.
func newFeed(op Operator) *feed {
	f := &feed{}
	for {
		switch o := op.(type) {
		case *checked: // The contract is Next's, which is not called.
			op = o.op
		case *filter:
			f.stages = append(f.stages, feedStage{cond: o.cond})
			op = o.input
		case *project:
			f.stages = append(f.stages, feedStage{exprs: o.exprs, out: o.out})
			op = o.input
		case *hashJoin:
			f.stages = append(f.stages, feedStage{join: o})
			op = o.left.op
		case *scan:
			if f.scan = o; o.fetch {
				return nil
			}
			slices.Reverse(f.stages)
			return f
		default:
			return nil
		}
	}
}

// begin reads the right sides of the joins. ok is false if one does not fit into memory: the rows are to be pulled then, and the
// joins go on with what they have.
func (f *feed) begin(ctx context.Context) (ok bool, err error) {
	for i := range f.stages {
		j := f.stages[i].join
		if j == nil {
			continue
		}
		if !j.ready {
			if err := j.begin(ctx); err != nil {
				return false, err
			}
			j.ready = true
		}
		if j.spilled != nil {
			return false, nil
		}
	}
	return true, nil
}

// end releases what begin has read.
func (f *feed) end() error {
	for i := range f.stages {
		if j := f.stages[i].join; j != nil {
			if err := j.release(); err != nil {
				return err
			}
		}
	}
	return nil
}

// read passes all rows to sink, or to the portions of so many workers, whose results are absorbed. With counted, the number of pairs is all that
// is needed. done is false if begin's ok is.
func (f *feed) read(ctx context.Context, d *divided, workers int) (done bool, err error) {
	ex := f.scan.ex
	ex.ev.Ctx = ctx
	if ok, err := f.begin(ctx); !ok || err != nil {
		return false, err
	}
	for i := range f.stages {
		if j := f.stages[i].join; j != nil && j.table.len() == 0 && j.matchesOnly() {
			return true, f.end()
		}
	}
	spans, err := f.scan.evalSpans()
	if err != nil {
		return false, err
	}
	if workers > 0 {
		if done, err = ex.readParallel(ctx, spans, workers, d); err != nil {
			return false, err
		}
	}
	if !done {
		n, err := ex.txn.Walk(ctx, spans, f.walk(d.counted != nil))
		if err != nil {
			return false, err
		}
		if d.counted != nil {
			d.counted(n)
		}
	}
	return true, f.end()
}

// plain reports whether the feed's rows are those of the scan's spans, without columns.
func (f *feed) plain() bool { return f.scan.keysOnly && f.scan.filter == nil && len(f.stages) == 0 }

// walk returns how a reader passes pairs to the feed; counting: only their number is needed.
func (f *feed) walk(counting bool) percolator.Walk {
	w := percolator.Walk{KeysOnly: f.scan.keysOnly}
	if !counting {
		w.Pair = f.pair
	}
	return w
}

// pair passes the row of a pair to the sink, unless a filter rejects it.
func (f *feed) pair(key, value []byte) error {
	ex := f.scan.ex
	if err := ex.tick(ex.ev.Ctx); err != nil {
		return err
	}
	if ok, err := f.scan.passes(key, value); !ok || err != nil {
		return err
	}
	if len(f.stages) == 0 {
		return f.sink(f.scan.out)
	}
	return f.push(0, f.scan.out)
}

// push passes a row through the stages from one on.
func (f *feed) push(from int, row types.Row) error {
	ex := f.scan.ex
	for i := from; i < len(f.stages); i++ {
		switch s := &f.stages[i]; {
		case s.join != nil:
			return f.probe(i, row)
		case s.out != nil:
			if err := ex.evalAll(s.exprs, row, s.out); err != nil {
				return err
			}
			row = s.out
		default:
			if ok, err := ex.holds(s.cond, row); !ok || err != nil {
				return err
			}
		}
	}
	return f.sink(row)
}

// probe passes the rows that a join, the stage at, makes of a left row.
func (f *feed) probe(at int, row types.Row) error {
	j, ex := f.stages[at].join, f.scan.ex
	key, hasNull, err := j.left.keys.eval(&ex.ev, row)
	if err != nil {
		return err
	}
	j.setLeft(row)
	found := false
	if !hasNull {
		j.key, j.hash = key, j.left.keys.hash(key)
		for e := j.table.first(j.hash); e != 0; e = j.table.after(e, j.hash) {
			if err := ex.tick(ex.ev.Ctx); err != nil {
				return err
			}
			if !j.sameKey(e) {
				continue
			}
			if ok, err := j.matches(j.build.rows[e-1]); err != nil {
				return err
			} else if !ok {
				continue
			}
			switch found = true; j.kind {
			case planner.SemiJoin:
				return f.push(at+1, j.leftOnly())
			case planner.AntiJoin:
				return nil
			}
			if err := f.push(at+1, j.joined); err != nil {
				return err
			}
		}
	}
	if out := j.unmatched(); !found && out != nil {
		return f.push(at+1, out)
	}
	return nil
}

// borrow lets the joins of a worker's feed probe the tables of the session's; giveBack ends it.
func (f *feed) borrow(from *feed) {
	for i := range f.stages {
		if j := f.stages[i].join; j != nil {
			own := from.stages[i].join
			j.table, j.build.rows, j.keys.rows = own.table, own.build.rows, own.keys.rows
		}
	}
}

func (f *feed) giveBack() {
	for i := range f.stages {
		if j := f.stages[i].join; j != nil {
			j.table, j.build.rows, j.keys.rows = hashTable{}, nil, nil
		}
	}
}

// readFeed takes in all rows of the feed; done is false if there is none at this time.
func (o *hashAggregate) readFeed(ctx context.Context) (done bool, err error) {
	d := o.divided()
	if done, err = o.feed.read(ctx, &d, o.node.Workers(o.ex.rt.Parallel)); err != nil {
		return done, err
	}
	return done, o.addCollected()
}

// divided describes how workers aggregate.
func (o *hashAggregate) divided() divided {
	o.feed.sink = o.takeFed
	d := divided{feed: o.feed, part: o.part, attempt: o.attempt, absorb: o.absorb}
	switch {
	case o.countsRows():
		d.counted = o.addRows
	case o.takesColumns():
		o.feed.sink = o.addColumns
	}
	return d
}

// part makes an aggregate of a part of the rows in a worker's execution.
func (o *hashAggregate) part(ex *execution) (part, error) {
	input, err := ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w := newAggregate(ex, input, o.node).(*hashAggregate)
	w.partial = true
	return w, w.beginScalar()
}

// attempt is divided's.
func (o *hashAggregate) attempt(begin bool) error {
	if o.partial = begin; begin {
		return nil
	}
	err := o.dropGroups()
	o.groups.reset()
	return firstError(err, o.beginScalar())
}

// takeFed takes in a row of the feed.
func (o *hashAggregate) takeFed(row types.Row) error {
	if o.scalar {
		return o.add(o.states[0], row)
	}
	key, _, err := o.groups.cols.eval(&o.ex.ev, row)
	if err != nil {
		return err
	}
	return o.take(row, key)
}

// takesColumns reports whether there is one group, and calls take the columns of rows.
func (o *hashAggregate) takesColumns() bool {
	for i := range o.calls {
		if o.calls[i].column < 0 {
			return false
		}
	}
	return o.scalar
}

// collectedValues is how many integers of a column are collected before its accumulator takes them.
const collectedValues = 128

// addColumns is takeFed if takesColumns. Columns of integers are collected, since an accumulator takes many at once in less time than one
// after the other.
func (o *hashAggregate) addColumns(row types.Row) error {
	states := o.states[0]
	if o.collected == nil {
		o.collected = make([][]int64, len(states))
	}
	for i := range states {
		c := &o.calls[i]
		d := &row[c.column]
		if c.Func.NullsIgnored && d.IsNull() {
			continue
		}
		if c.Func.AddInts == nil {
			if err := states[i].acc.Add(o.ex.ev.Env, row[c.column:c.column+1:c.column+1]); err != nil {
				return err
			}
			continue
		}
		values := append(o.collected[i], d.Int())
		if len(values) == collectedValues {
			if err := c.Func.AddInts(states[i].acc, values); err != nil {
				return err
			}
			values = values[:0]
		}
		o.collected[i] = values
	}
	return nil
}

// addCollected has the accumulators take what is left of the values that addColumns has collected.
func (o *hashAggregate) addCollected() error {
	for i, values := range o.collected {
		if len(values) == 0 {
			continue
		}
		if err := o.calls[i].Func.AddInts(o.states[0][i].acc, values); err != nil {
			return err
		}
		o.collected[i] = values[:0]
	}
	return nil
}

// countsRows reports whether the number of rows is all that is needed.
func (o *hashAggregate) countsRows() bool {
	if !o.scalar || !o.feed.plain() {
		return false
	}
	for i := range o.calls {
		if c := &o.calls[i]; c.Func.AddRows == nil || c.Filter != nil || c.Distinct {
			return false
		}
	}
	return true
}

// addRows takes in so many rows.
func (o *hashAggregate) addRows(n int64) {
	for i := range o.calls {
		o.calls[i].Func.AddRows(o.states[0][i].acc, n)
	}
}
