package executor

import (
	"slices"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// windowValue computes a window function that is no aggregate.
type windowValue struct {
	w       *window
	call    *planner.WindowCall
	buckets buckets
}

func (v *windowValue) reset() { v.buckets = buckets{} }

func (v *windowValue) value() (types.Datum, error) {
	switch v.call.Func.Kind {
	case builtin.RowNumber:
		return types.Int(v.w.pos + 1), nil
	case builtin.Rank:
		return types.Int(v.w.group.head + 1), nil
	case builtin.DenseRank:
		return types.Int(v.w.group.number + 1), nil
	case builtin.PercentRank, builtin.CumeDist:
		return v.distribution()
	case builtin.Ntile:
		return v.ntile()
	case builtin.Lag, builtin.Lead:
		return v.neighbour()
	}
	return v.ofFrame()
}

// distribution computes percent_rank and cume_dist.
func (v *windowValue) distribution() (types.Datum, error) {
	total, err := v.w.total()
	if err != nil {
		return types.Null, err
	}
	if v.call.Func.Kind == builtin.PercentRank {
		if total <= 1 {
			return types.Float(0), nil
		}
		return types.Float(float64(v.w.group.head) / float64(total-1)), nil
	}
	tail, err := v.w.groupTail()
	return types.Float(float64(tail) / float64(total)), err
}

// arg evaluates an argument over the row at a position.
func (v *windowValue) arg(i int, pos int64) (types.Datum, error) {
	row, err := v.w.rows.at(pos)
	if err != nil {
		return types.Null, err
	}
	return v.call.Args[i].Eval(&v.w.ex.ev, row)
}

// buckets is the state of ntile: rows are counted into buckets of size rows, of which the first larger ones have one more.
type buckets struct {
	current, larger int64
	size, filled    int64
}

func (v *windowValue) ntile() (types.Datum, error) {
	b := &v.buckets
	if b.current == 0 {
		n, err := v.arg(0, v.w.pos)
		if n.IsNull() || err != nil {
			return types.Null, err
		}
		if n.Int() <= 0 {
			return types.Null, pgerror.New(pgerror.InvalidNtileArgument, "argument of ntile must be greater than zero")
		}
		total, err := v.w.total()
		if err != nil {
			return types.Null, err
		}
		*b = buckets{current: 1, size: 1}
		if total >= n.Int() {
			b.size, b.larger = total/n.Int(), total%n.Int()
		}
	}
	size := b.size
	if b.current <= b.larger {
		size++
	}
	if b.filled == size {
		b.current, b.filled = b.current+1, 0
	}
	b.filled++
	return types.Int(b.current), nil
}

// neighbour computes lag and lead.
func (v *windowValue) neighbour() (types.Datum, error) {
	offset := int64(1)
	if len(v.call.Args) > 1 {
		d, err := v.arg(1, v.w.pos)
		if d.IsNull() || err != nil {
			return types.Null, err
		}
		offset = d.Int()
	}
	if v.call.Func.Kind == builtin.Lag {
		offset = -offset
	}
	pos, ok := v.w.pos+offset, false
	if pos >= 0 {
		var err error
		if ok, err = v.w.exists(pos); err != nil {
			return types.Null, err
		}
	}
	switch {
	case ok:
		return v.arg(0, pos)
	case len(v.call.Args) > 2:
		return v.arg(2, v.w.pos)
	}
	return types.Null, nil
}

// ofFrame computes first_value, last_value and nth_value.
func (v *windowValue) ofFrame() (types.Datum, error) {
	parts := v.w.frame.parts
	n := int64(1)
	if v.call.Func.Kind == builtin.NthValue {
		d, err := v.arg(1, v.w.pos)
		if d.IsNull() || err != nil {
			return types.Null, err
		}
		if n = d.Int(); n <= 0 {
			return types.Null, pgerror.New(pgerror.InvalidNthValueArgument, "argument of nth_value must be greater than zero")
		}
	}
	if len(parts) == 0 {
		return types.Null, nil
	}
	if v.call.Func.Kind == builtin.LastValue {
		return v.arg(0, parts[len(parts)-1].to-1)
	}
	for _, p := range parts {
		if size := p.to - p.from; n > size {
			n -= size
			continue
		}
		return v.arg(0, p.from+n-1)
	}
	return types.Null, nil
}

// windowAggregate computes an aggregate over the frame of each row. The rows of the frame before that are still in the frame
// are not added again, if those that are not can be taken back or there are none.
type windowAggregate struct {
	w     *window
	call  *planner.WindowCall
	args  types.Row
	moves bool // the accumulators are Removers

	acc     builtin.Accumulator // nil: none has been made
	in      span                // the rows added; with an exclusion, parts
	parts   []span
	held    int64
	result  types.Datum
	current bool // result is that of the rows added
}

func (o *window) newAggregate(c *planner.WindowCall) *windowAggregate {
	a := &windowAggregate{w: o, call: c, args: make(types.Row, len(c.Args))}
	f := &o.node.Frame
	if f.Start.Kind == ast.UnboundedPreceding || f.Exclude != ast.ExcludeNone {
		return a
	}
	unsteady := func(e expr.Scalar) bool { return e != nil && (expr.Volatile(e) || expr.HasSubquery(e)) }
	a.moves = !slices.ContainsFunc(c.Args, unsteady) && !unsteady(c.Filter) && c.Agg.Moving() != nil
	return a
}

func (a *windowAggregate) reset() {
	a.w.ex.mem.shrink(a.held)
	a.acc, a.in, a.parts, a.held, a.result, a.current = nil, span{}, a.parts[:0], 0, types.Null, false
}

// begin makes an accumulator of no rows, to which those from a position on will be added.
func (a *windowAggregate) begin(from int64) error {
	a.reset()
	a.in = span{from, from}
	if a.moves {
		a.acc = a.call.Agg.Moving()
	} else {
		a.acc = a.call.Agg.NewAccumulator()
	}
	if err := a.w.ex.mem.grow(stateBytes); err != nil {
		return err
	}
	a.held = stateBytes
	return nil
}

func (a *windowAggregate) value() (types.Datum, error) {
	update := a.update
	if a.w.node.Frame.Exclude != ast.ExcludeNone {
		update = a.updateParts
	}
	if err := update(); err != nil {
		return types.Null, err
	}
	if !a.current {
		d, err := a.acc.Result(a.w.ex.ev.Env)
		if err != nil {
			return types.Null, err
		}
		a.result, a.current = d, true
	}
	return a.result, nil
}

// update makes the rows added those of the frame, which has no exclusion.
func (a *windowAggregate) update() error {
	to := span{a.w.frame.head.pos, a.w.frame.tail.pos}
	to.to = max(to.from, to.to)
	if a.acc == nil || a.in.to <= to.from && a.in.from != to.from {
		if err := a.begin(to.from); err != nil {
			return err
		}
	}
	for a.in.from < to.from {
		ok := false
		if a.moves {
			var err error
			if ok, err = a.remove(a.in.from); err != nil {
				return err
			}
		}
		if !ok {
			if err := a.begin(to.from); err != nil {
				return err
			}
			break
		}
		a.in.from++
	}
	return a.addRows(to.to)
}

// updateParts is update for a frame with an exclusion.
func (a *windowAggregate) updateParts() error {
	parts := a.w.frame.parts
	if a.acc != nil && slices.Equal(parts, a.parts) {
		return nil
	}
	if err := a.begin(0); err != nil {
		return err
	}
	a.parts = append(a.parts, parts...)
	for _, p := range parts {
		a.in = span{p.from, p.from}
		if err := a.addRows(p.to); err != nil {
			return err
		}
	}
	return nil
}

// addRows adds the rows behind those added, up to a position.
func (a *windowAggregate) addRows(to int64) error {
	for ; a.in.to < to; a.in.to++ {
		if err := a.w.tick(); err != nil {
			return err
		}
		passes, err := a.eval(a.in.to)
		if err != nil {
			return err
		}
		a.current = false
		if !passes {
			continue
		}
		if a.call.Agg.OrderMatters {
			n := int64(a.args.Size())
			if err := a.w.ex.mem.grow(n); err != nil {
				return err
			}
			a.held += n
		}
		if err := a.acc.Add(a.w.ex.ev.Env, a.args); err != nil {
			return err
		}
	}
	return nil
}

// remove takes a row back; false if that is not possible.
func (a *windowAggregate) remove(pos int64) (bool, error) {
	if err := a.w.tick(); err != nil {
		return false, err
	}
	passes, err := a.eval(pos)
	a.current = false
	if !passes || err != nil {
		return err == nil, err
	}
	return a.acc.(builtin.Remover).Remove(a.w.ex.ev.Env, a.args)
}

// eval evaluates the arguments for a row; false if FILTER rejects it, or the aggregate ignores it.
func (a *windowAggregate) eval(pos int64) (bool, error) {
	row, err := a.w.rows.at(pos)
	if err != nil {
		return false, err
	}
	if a.call.Filter != nil {
		if ok, err := a.w.ex.holds(a.call.Filter, row); !ok || err != nil {
			return false, err
		}
	}
	for i, arg := range a.call.Args {
		if a.args[i], err = arg.Eval(&a.w.ex.ev, row); err != nil {
			return false, err
		}
	}
	return !a.call.Agg.NullsIgnored || !a.args[0].IsNull(), nil
}
