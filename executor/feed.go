package executor

import (
	"context"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// feedCost is the estimated cost of an input from which on a feed is worth its setup.
const feedCost = 256

// feed passes the rows of a scan, and of filters and projections above it, to a function, in any order. The rows are decoded where
// the store has them: there is no page in between.
type feed struct {
	scan   *scan
	stages []feedStage // from the scan up
	sink   func(row types.Row) error
}

// feedStage is a filter, or a projection if out is not nil.
type feedStage struct {
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
			f.stages = append([]feedStage{{cond: o.cond}}, f.stages...)
			op = o.input
		case *project:
			f.stages = append([]feedStage{{exprs: o.exprs, out: o.out}}, f.stages...)
			op = o.input
		case *scan:
			if f.scan = o; o.fetch {
				return nil
			}
			return f
		default:
			return nil
		}
	}
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
func (f *feed) pair(key, value []byte) (err error) {
	ex := f.scan.ex
	if err := ex.tick(ex.ev.Ctx); err != nil {
		return err
	}
	row := f.scan.out
	if !f.scan.keysOnly {
		if row, err = f.scan.decode(key, value); err != nil {
			return err
		}
	}
	if ok, err := ex.holds(f.scan.filter, row); !ok || err != nil {
		return err
	}
	for i := range f.stages {
		s := &f.stages[i]
		if s.out == nil {
			if ok, err := ex.holds(s.cond, row); !ok || err != nil {
				return err
			}
			continue
		}
		if err := ex.evalAll(s.exprs, row, s.out); err != nil {
			return err
		}
		row = s.out
	}
	return f.sink(row)
}

// readFeed takes in all rows of the feed.
func (o *hashAggregate) readFeed(ctx context.Context) error {
	spans, err := o.feed.scan.evalSpans()
	if err != nil {
		return err
	}
	o.feed.sink = o.takeFed
	o.ex.ev.Ctx = ctx
	if workers := o.node.Workers(o.ex.rt.Parallel); workers > 0 {
		if done, err := o.readParallel(ctx, spans, workers); done || err != nil {
			return err
		}
	}
	n, err := o.ex.txn.Walk(ctx, spans, o.feed.walk(o.countsRows()))
	if err == nil && o.countsRows() {
		o.addRows(n)
	}
	return err
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
		o.calls[i].Func.AddRows(o.states[0].calls[i].acc, n)
	}
}
