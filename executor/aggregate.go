package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// hashAggregate reads all rows, keeping the state of every group, and yields the groups in the
// order of their first rows; groups too many for memory come in several turns (overflow). Without
// GROUP BY there is one group, of no rows if need be.
type hashAggregate struct {
	aggregation
	input   overflow
	scalar  bool
	node    *planner.Aggregate
	feed    *feed       // where rows come from in any order; nil: from input
	empties []types.Row // keys of groups that there are even of no input
	groups  keySet
	states  []groupState // by entry of groups
	at      int
	ready   bool
	partial bool // the rows at hand are a part of all: none may be set aside
	// collected are integers that the accumulator of each call is still to take, see addColumns.
	collected [][]int64
}

// orderedAggregate reads rows that arrive grouped and holds one group at a time.
type orderedAggregate struct {
	aggregation
	input Operator
	cols  keyColumns
	// cur is the group being read; done is the one returned, whose key the caller may read.
	cur, done groupKey
	state     groupState
	ended     bool
}

// groupKey is a group's key with its buffer.
type groupKey struct {
	buf rowBuffer
	set bool
}

func newAggregate(ex *execution, input Operator, n *planner.Aggregate) Operator {
	if n.Ordered && len(n.GroupBy) > 0 {
		o := &orderedAggregate{aggregation: newAggregation(ex, n), input: input, cols: newKeyColumns(n.GroupBy)}
		o.cur.buf.mem, o.done.buf.mem = &ex.mem, &ex.mem
		return o
	}
	o := &hashAggregate{aggregation: newAggregation(ex, n), node: n, scalar: n.Scalar || len(n.GroupBy) == 0, empties: n.Empties}
	o.input = newOverflow(newKeyedInput(ex, input, n.GroupBy), typesOf(n.Input))
	o.groups.cols = newKeyColumns(n.GroupBy)
	o.groups.keys.mem = &ex.mem
	if n.Fed {
		o.feed = newFeed(input)
	}
	return o
}

func (o *hashAggregate) Open(ctx context.Context) error {
	o.ready, o.at, o.states = false, 0, nil
	o.input.reset()
	return o.input.in.op.Open(ctx)
}

func (o *hashAggregate) Close() error {
	err := o.dropGroups()
	o.groups.release()
	return errors.Join(err, o.input.release(), o.input.in.op.Close())
}

// dropGroups forgets all groups, also those not finished.
func (o *hashAggregate) dropGroups() (err error) {
	for _, s := range o.states {
		err = firstError(err, s.drop())
	}
	o.states, o.at = nil, 0
	for i := range o.collected {
		o.collected[i] = o.collected[i][:0]
	}
	o.release()
	return err
}

// spilledBytes implements spiller.
func (o *hashAggregate) spilledBytes() int64 { return o.input.spilledBytes() }

func (o *hashAggregate) Next(ctx context.Context) (types.Row, error) {
	if !o.ready {
		if err := o.beginEmpties(); err != nil {
			return nil, err
		}
		if err := o.read(ctx); err != nil {
			return nil, err
		}
		o.ready = true
	}
	for o.at == len(o.states) {
		more, err := o.input.turn()
		if !more || err != nil {
			return nil, err
		}
		if err := o.dropGroups(); err != nil {
			return nil, err
		}
		o.groups.reset()
		if err := o.read(ctx); err != nil {
			return nil, err
		}
	}
	var key types.Row
	if !o.scalar {
		key = o.groups.keys.rows[o.at]
	}
	state := o.states[o.at]
	o.states[o.at] = nil
	o.at++
	return o.result(key, state)
}

// beginEmpties makes the groups that there are even of no input.
func (o *hashAggregate) beginEmpties() error {
	for _, key := range o.empties {
		if _, err := o.groups.insert(key, o.groups.cols.hash(key)); err != nil {
			return err
		}
		state, err := o.newState()
		if err != nil {
			return err
		}
		o.states = append(o.states, state)
	}
	return nil
}

// read takes in all rows of a turn.
func (o *hashAggregate) read(ctx context.Context) error {
	if err := o.beginScalar(); err != nil {
		return err
	}
	if o.feed != nil && o.input.in.list == nil {
		if done, err := o.readFeed(ctx); done || err != nil {
			return err
		}
	}
	for {
		row, key, _, err := o.input.in.next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		if err := o.take(row, key); err != nil {
			return err
		}
	}
}

// take takes in a row with its key.
func (o *hashAggregate) take(row, key types.Row) error {
	if o.scalar {
		return o.add(o.states[0], row)
	}
	state, err := o.group(row, key)
	if state == nil || err != nil {
		return err
	}
	return o.add(state, row)
}

// beginScalar makes the group that there is even of no rows.
func (o *hashAggregate) beginScalar() error {
	if !o.scalar {
		return nil
	}
	state, err := o.newState()
	if err != nil {
		return err
	}
	o.states = append(o.states, state)
	return nil
}

// group finds or makes the group of a row; nil where the row was set aside.
func (o *hashAggregate) group(row, key types.Row) (groupState, error) {
	hash := o.groups.cols.hash(key)
	if e := o.groups.find(key, hash); e != 0 {
		return o.states[e-1], nil
	}
	if o.input.full(o.groups.keys.held + o.held + o.args) {
		if o.partial {
			return nil, errCrowded
		}
		return nil, o.input.add(row, key, hash)
	}
	if _, err := o.groups.insert(key, hash); err != nil {
		return nil, err
	}
	state, err := o.newState()
	if err != nil {
		return nil, err
	}
	o.states = append(o.states, state)
	return state, nil
}

func (o *orderedAggregate) Open(ctx context.Context) error {
	o.ended, o.state, o.cur.set = false, nil, false
	return o.input.Open(ctx)
}

func (o *orderedAggregate) Close() error {
	err := o.state.drop()
	o.state = nil
	o.cur.buf.release()
	o.done.buf.release()
	o.release()
	return errors.Join(err, o.input.Close())
}

func (o *orderedAggregate) Next(ctx context.Context) (types.Row, error) {
	for !o.ended {
		row, err := o.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		if row == nil {
			o.ended = true
			if !o.cur.set {
				return nil, nil
			}
			return o.result(o.cur.buf.rows[0], o.state)
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
		key, _, err := o.cols.eval(&o.ex.ev, row)
		if err != nil {
			return nil, err
		}
		if o.cur.set && o.cols.equal(o.cur.buf.rows[0], key) {
			if err := o.add(o.state, row); err != nil {
				return nil, err
			}
			continue
		}
		finished, had := o.state, o.cur.set
		if err := o.begin(key, row); err != nil {
			return nil, err
		}
		if had {
			return o.result(o.done.buf.rows[0], finished)
		}
	}
	return nil, nil
}

// begin makes key the current group, with row as its first, and the current one the one done.
func (o *orderedAggregate) begin(key, row types.Row) (err error) {
	o.cur, o.done = o.done, o.cur
	o.cur.buf.reset()
	if err := o.cur.buf.add(key); err != nil {
		return err
	}
	o.cur.set = true
	if o.state, err = o.newState(); err != nil {
		return err
	}
	return o.add(o.state, row)
}
