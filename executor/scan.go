package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// scan reads spans of an index in its order and passes the rows for which filter is true.
type scan struct {
	spanReader
	keySpans []planner.KeySpan
	filter   expr.Scalar
	started  bool
}

func newScan(ex *execution, n *planner.Scan) (Operator, error) {
	if n.WholeKeys {
		return newMultiGet(ex, n)
	}
	o := &scan{keySpans: n.Spans, filter: n.Filter}
	o.reverse, o.expect = n.Reverse, n.Limit
	return o, o.init(ex, &n.Access)
}

func (o *scan) Open(context.Context) error { o.started = false; return nil }

func (o *scan) Close() error {
	o.stop()
	return nil
}

// evalSpans returns the spans of keys to be read.
func (o *scan) evalSpans() ([]kv.Span, error) {
	if len(o.keySpans) == 0 {
		return o.wholeIndex(), nil
	}
	b := spanBuilder{ex: o.ex, table: o.table, index: o.index}
	return b.build(o.keySpans)
}

func (o *scan) Next(ctx context.Context) (types.Row, error) {
	if !o.started {
		o.started = true
		spans, err := o.evalSpans()
		if err != nil {
			return nil, err
		}
		o.start(spans)
	}
	for {
		row, err := o.next(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		if o.filter == nil {
			return row, nil
		}
		ok, err := o.ex.holds(o.filter, row)
		if err != nil {
			return nil, err
		}
		if ok {
			return row, nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// multiGet reads rows by many whole keys, in groups, in key order.
type multiGet struct {
	access
	keySpans []planner.KeySpan
	filter   expr.Scalar
	reverse  bool
	expect   int

	started         bool
	group           int
	keys            [][]byte // still to be read
	rowKeys, values [][]byte // of the group at hand
	at              int
}

func newMultiGet(ex *execution, n *planner.Scan) (*multiGet, error) {
	o := &multiGet{keySpans: n.Spans, filter: n.Filter, reverse: n.Reverse, expect: n.Limit}
	return o, o.init(ex, &n.Access)
}

func (o *multiGet) Open(context.Context) error { o.started = false; return nil }

func (o *multiGet) Close() error {
	o.keys, o.rowKeys, o.values = nil, nil, nil
	return nil
}

func (o *multiGet) Next(ctx context.Context) (types.Row, error) {
	if !o.started {
		if err := o.begin(); err != nil {
			return nil, err
		}
	}
	for {
		for o.at == len(o.values) {
			if len(o.keys) == 0 {
				return nil, nil
			}
			if err := o.read(ctx); err != nil {
				return nil, err
			}
		}
		i := o.at
		o.at++
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
		if o.values[i] == nil {
			continue
		}
		row, err := o.decode(o.rowKeys[i], o.values[i])
		if err != nil {
			return nil, err
		}
		ok, err := o.ex.holds(o.filter, row)
		if err != nil {
			return nil, err
		}
		if ok {
			return row, nil
		}
	}
}

func (o *multiGet) begin() (err error) {
	b := spanBuilder{ex: o.ex, table: o.table, index: o.index}
	if o.keys, err = b.pointKeys(o.keySpans); err != nil {
		return err
	}
	if o.reverse {
		slices.Reverse(o.keys)
	}
	o.started, o.at, o.values = true, 0, nil
	o.group = o.ex.firstGroup()
	if o.expect > 0 {
		o.group = min(o.expect, o.ex.maxGroup)
	}
	return nil
}

// read fetches the next group.
func (o *multiGet) read(ctx context.Context) (err error) {
	n := min(o.group, len(o.keys))
	o.rowKeys, o.values, err = o.getMany(ctx, o.keys[:n])
	o.keys, o.at = o.keys[n:], 0
	o.group = o.ex.nextGroup(o.group)
	return err
}
