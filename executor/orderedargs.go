package executor

import (
	"context"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// orderedArgs are the rows that one call of an aggregate takes in an order: sort keys followed by arguments. More of them than fit into
// memory continue in a temporary file.
type orderedArgs struct {
	ex      *execution
	order   *ordering
	rows    sortList
	key     types.Row // scratch
	n       int64     // rows taken
	spilled *spill    // nil: all are in memory
	mayNot  bool      // some column has a type that cannot be written to a file
}

func newOrderedArgs(ex *execution, c *aggCall) *orderedArgs {
	return &orderedArgs{
		ex: ex, order: &c.order, rows: newSortList(ex, &c.order), key: make(types.Row, len(c.order.keys)+len(c.Args)),
		mayNot: !storable(append(c.types[:len(c.types):len(c.types)], c.order.types...)),
	}
}

// add takes the row of a group with its arguments.
func (r *orderedArgs) add(ctx context.Context, row, args types.Row) error {
	if _, err := r.order.eval(r.ex, row, r.key); err != nil {
		return err
	}
	copy(r.key[len(r.order.keys):], args)
	if !r.mayNot && r.ex.mem.crowded(r.rows.buf.held) {
		if err := r.spill(ctx); err != nil {
			return err
		}
	}
	if err := r.rows.add(nil, r.key); err != nil {
		return err
	}
	r.n++
	return nil
}

// spill writes the rows in memory to the file, as a sorted run.
func (r *orderedArgs) spill(ctx context.Context) (err error) {
	if r.spilled == nil {
		if r.spilled, err = newSpill(r.ex, r.order); err != nil {
			return err
		}
	}
	if err := r.rows.sort(ctx); err != nil {
		return err
	}
	if err := r.spilled.write(ctx, &r.rows); err != nil {
		return err
	}
	r.rows.reset()
	return nil
}

// each passes the rows to visit in order. A row is valid until the next one.
func (r *orderedArgs) each(ctx context.Context, visit func(row types.Row) error) error {
	if r.spilled != nil {
		if err := r.spill(ctx); err != nil {
			return err
		}
		for {
			row, err := r.spilled.next()
			if row == nil || err != nil {
				return err
			}
			if err := r.visit(ctx, row, visit); err != nil {
				return err
			}
		}
	}
	if err := r.rows.sort(ctx); err != nil {
		return err
	}
	for i := range r.rows.len() {
		if err := r.visit(ctx, r.rows.row(i), visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *orderedArgs) visit(ctx context.Context, row types.Row, visit func(types.Row) error) error {
	if err := r.ex.tick(ctx); err != nil {
		return err
	}
	return visit(row)
}

// release drops the rows.
func (r *orderedArgs) release() error {
	r.rows.release()
	if r.spilled == nil {
		return nil
	}
	f := r.spilled.file
	r.spilled = nil
	return f.close()
}

// replay passes the rows that a call has kept to its accumulator in the requested order; with DISTINCT, equal ones, which are adjacent, once.
func (a *aggregation) replay(st *callState, c *aggCall) error {
	ctx, n := a.ex.ev.Ctx, len(c.order.keys)
	switch {
	case c.Func.Hypothetical:
		return a.compareHypothetical(ctx, st, c)
	case c.Func.OrderedSet():
		if err := a.begin(st, c); err != nil {
			return err
		}
	}
	cols := wholeRow(c.types)
	last, some := make(types.Row, len(c.Args)), false
	return st.rows.each(ctx, func(row types.Row) error {
		args := row[n:]
		if c.Distinct {
			if some && cols.equal(last, args) {
				return nil
			}
			for i := range args {
				last[i] = args[i].Clone()
			}
			some = true
		}
		return st.acc.Add(a.ex.ev.Env, args)
	})
}

// begin gives an ordered-set aggregate its direct arguments. Those of a group of no rows are evaluated over a row of NULLs.
func (a *aggregation) begin(st *callState, c *aggCall) error {
	if err := a.evalDirect(st, c, a.none); err != nil {
		return err
	}
	return st.acc.(builtin.OrderedSet).Begin(st.direct, st.rows.n)
}

// evalDirect evaluates the direct arguments of a call for a group, over its first row.
func (a *aggregation) evalDirect(st *callState, c *aggCall, row types.Row) error {
	if st.direct != nil {
		return nil
	}
	direct := make(types.Row, len(c.Direct))
	for i, e := range c.Direct {
		d, err := e.Eval(&a.ex.ev, row)
		if err != nil {
			return err
		}
		direct[i] = d.Clone()
	}
	st.direct = direct
	return nil
}

// compareHypothetical tells a hypothetical-set aggregate where each row lies.
func (a *aggregation) compareHypothetical(ctx context.Context, st *callState, c *aggCall) error {
	if err := a.begin(st, c); err != nil {
		return err
	}
	var last types.Row
	buf := rowBuffer{mem: &a.ex.mem}
	defer buf.release()
	args := make(types.Row, 2)
	return st.rows.each(ctx, func(row types.Row) error {
		same := last != nil && c.order.compare(last, row) == 0
		if !same {
			buf.reset()
			var err error
			if last, err = buf.keep(row); err != nil {
				return err
			}
		}
		args[0], args[1] = types.Int(int64(c.order.compare(row, st.direct))), types.Bool(same)
		return st.acc.Add(a.ex.ev.Env, args)
	})
}
