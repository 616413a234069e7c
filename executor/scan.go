package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// scan reads spans of an index in its order and passes the rows for which filter is true.
type scan struct {
	spanReader
	keySpans []planner.KeySpan
	filter   expr.Scalar
	started  bool
	early    *earlyFilter // nil: all columns are decoded before the filter
}

// earlyFilter decodes the columns of the filter, and has the others decoded only for rows that pass. It is for filters that reject most
// rows: one that turns out to pass more is given up.
type earlyFilter struct {
	decoder      rowenc.Decoder
	seen, passed int
}

const (
	// earlyFilterCost is the estimated cost of a scan from which on an earlyFilter is worth its setup.
	earlyFilterCost = 256
	// earlyFilterRows is how many rows an earlyFilter sees before its use is judged.
	earlyFilterRows = 256
)

// newEarlyFilter returns nil if the filter needs all columns, or may need any.
func newEarlyFilter(n *planner.Scan) (*earlyFilter, error) {
	if n.Filter == nil || n.Fetch || n.Est.Cost < earlyFilterCost || expr.HasSubquery(n.Filter) {
		return nil, nil
	}
	ordinals, rest := slices.Repeat([]int{-1}, len(n.Ordinals)), len(n.Ordinals)
	expr.Walk(n.Filter, func(x expr.Scalar) bool {
		if c, ok := x.(*expr.Column); ok && ordinals[c.Ordinal] < 0 {
			ordinals[c.Ordinal] = n.Ordinals[c.Ordinal]
			rest--
		}
		return true
	})
	if rest == 0 {
		return nil, nil
	}
	e := &earlyFilter{}
	return e, e.decoder.Init(n.Table, n.Index, ordinals)
}

// pays reports whether most rows have been rejected so far.
func (e *earlyFilter) pays() bool {
	return e != nil && (e.seen < earlyFilterRows || e.passed < e.seen/2)
}

func newScan(ex *execution, n *planner.Scan) (Operator, error) {
	if n.Inverted != nil {
		return newInvertedScan(ex, n)
	}
	if n.WholeKeys {
		return newMultiGet(ex, n)
	}
	o := &scan{keySpans: n.Spans, filter: n.Filter}
	o.reverse, o.expect = n.Reverse, n.Limit
	if err := o.init(ex, &n.Access); err != nil {
		return nil, err
	}
	var err error
	o.early, err = newEarlyFilter(n)
	return o, err
}

func (o *scan) Open(context.Context) error {
	if o.started = false; o.early != nil {
		o.early.seen, o.early.passed = 0, 0
	}
	return nil
}

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
		more, ok, err := o.step(ctx)
		if !more || err != nil {
			return nil, err
		}
		if ok {
			return o.out, nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// step reads the next row into out, and reports whether there is one and whether it passes the filter.
func (o *scan) step(ctx context.Context) (more, ok bool, err error) {
	if o.fetch {
		row, err := o.nextFetched(ctx)
		if row == nil || err != nil {
			return false, false, err
		}
		ok, err = o.ex.holds(o.filter, row)
		return true, ok, err
	}
	if more, err = o.advance(ctx); !more || err != nil {
		return false, false, err
	}
	ok, err = o.passes(o.it.Key(), o.it.Value())
	return true, ok, err
}

// passes decodes a row into out and reports whether it passes the filter; if not, only the filter's columns may have been decoded.
func (o *scan) passes(key, value []byte) (ok bool, err error) {
	if o.keysOnly {
		return o.ex.holds(o.filter, o.out)
	}
	if o.early.pays() {
		o.early.seen++
		if err := o.early.decoder.Decode(key, value, o.out); err != nil {
			return false, err
		}
		if ok, err := o.ex.holds(o.filter, o.out); !ok || err != nil {
			return false, err
		}
		o.early.passed++
		return true, o.decoder.Decode(key, value, o.out)
	}
	if err := o.decoder.Decode(key, value, o.out); err != nil || o.filter == nil {
		return err == nil, err
	}
	return o.ex.holds(o.filter, o.out)
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
