package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// setCall is one set-returning function at work.
type setCall struct {
	ex   *execution
	fn   *builtin.SetFunc
	args []expr.Scalar
	rows builtin.SetRows // nil: exhausted
	// large charges for the arguments and rows.
	large largeValues
}

// open evaluates the arguments over in and starts the function.
func (c *setCall) open(in types.Row) error {
	c.end()
	before := c.ex.ev.Env.Counted()
	// The function may keep its arguments for as long as it yields rows.
	args := make([]types.Datum, len(c.args))
	for i, arg := range c.args {
		d, err := arg.Eval(&c.ex.ev, in)
		if err != nil {
			return err
		}
		if d.IsNull() && c.fn.Strict {
			return nil
		}
		if d.Large() {
			if err := c.ex.ev.Env.Reserve(d.Size()); err != nil {
				return err
			}
		}
		args[i] = d.Clone()
	}
	rows, err := c.fn.Open(c.ex.ev.Env, args)
	c.rows = rows
	c.large.keep(c.ex, before)
	return err
}

// end drops the rows to come.
func (c *setCall) end() {
	c.rows = nil
	c.large.drop(c.ex)
}

// next returns the next value; ok is false after the last.
func (c *setCall) next() (d types.Datum, ok bool, err error) {
	if c.rows == nil {
		return types.Null, false, nil
	}
	d, ok, err = c.rows.Next(c.ex.ev.Env)
	if !ok || err != nil {
		c.end()
	}
	return d, ok, err
}

// setFunc yields the rows of a set-returning function in FROM.
type setFunc struct {
	setCall
	out types.Row // the value, or the fields of the record, and the ordinality if requested
	n   int64
}

func newSetFunc(ex *execution, n *planner.SetFunc) *setFunc {
	return &setFunc{setCall: setCall{ex: ex, fn: n.Func, args: n.Args}, out: make(types.Row, len(n.Out))}
}

func (o *setFunc) Open(context.Context) error {
	o.n = 0
	return o.open(nil)
}

func (o *setFunc) Close() error {
	o.end()
	return nil
}

func (o *setFunc) Next(ctx context.Context) (types.Row, error) {
	if err := o.ex.tick(ctx); err != nil {
		return nil, err
	}
	d, ok, err := o.next()
	if !ok || err != nil {
		return nil, err
	}
	o.n++
	values := 1
	if o.fn.Columns != nil && d.IsNull() {
		values = len(o.fn.Columns)
		clear(o.out[:values])
	} else if o.fn.Columns != nil {
		values = copy(o.out, d.Record().Fields)
	} else {
		o.out[0] = d
	}
	if len(o.out) > values {
		o.out[values] = types.Int(o.n)
	}
	return o.out, nil
}

// projectSet computes a row for every step that its set-returning functions take together; one that
// is exhausted before the others yields NULLs.
type projectSet struct {
	ex    *execution
	input Operator
	exprs []expr.Scalar
	sets  []*setCall // by column, nil for plain expressions
	out   types.Row
	row   types.Row // the input row at hand
	large largeValues
}

func newProjectSet(ex *execution, input Operator, n *planner.ProjectSet) *projectSet {
	o := &projectSet{ex: ex, input: input, exprs: n.Exprs, sets: make([]*setCall, len(n.Sets)), out: make(types.Row, len(n.Out))}
	for i, s := range n.Sets {
		if s != nil {
			o.sets[i] = &setCall{ex: ex, fn: s.Func, args: s.Args}
		}
	}
	return o
}

func (o *projectSet) Open(ctx context.Context) error {
	o.row = nil
	return o.input.Open(ctx)
}

func (o *projectSet) Close() error {
	o.row = nil
	o.large.drop(o.ex)
	for _, s := range o.sets {
		if s != nil {
			s.end()
		}
	}
	return o.input.Close()
}

func (o *projectSet) Next(ctx context.Context) (types.Row, error) {
	for {
		o.large.drop(o.ex)
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
		if o.row == nil {
			row, err := o.input.Next(ctx)
			if row == nil || err != nil {
				return nil, err
			}
			o.row = row
			if err := o.openSets(); err != nil {
				return nil, err
			}
		}
		some, err := o.step()
		if err != nil {
			return nil, err
		}
		if some {
			return o.out, nil
		}
		o.row = nil
	}
}

func (o *projectSet) openSets() error {
	for _, s := range o.sets {
		if s != nil {
			if err := s.open(o.row); err != nil {
				return err
			}
		}
	}
	return nil
}

// step computes the next output row and reports whether a function still had a value.
func (o *projectSet) step() (some bool, err error) {
	for i, s := range o.sets {
		if s == nil {
			continue
		}
		d, ok, err := s.next()
		if err != nil {
			return false, err
		}
		some = some || ok
		o.out[i] = d
	}
	if !some {
		return false, nil
	}
	before := o.ex.ev.Env.Counted()
	defer o.large.keep(o.ex, before)
	for i, e := range o.exprs {
		if o.sets[i] != nil {
			continue
		}
		if o.out[i], err = e.Eval(&o.ex.ev, o.row); err != nil {
			return false, err
		}
	}
	return true, nil
}
