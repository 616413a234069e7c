package executor

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// spanBuilder evaluates KeySpans to spans of keys. Parts that represent each element of an array multiply the spans.
type spanBuilder struct {
	ex    *execution
	table *catalog.TableDescriptor
	index *catalog.IndexDescriptor
	spans []kv.Span
	eq    []types.Datum
}

// build evaluates all key spans; the result is in key order and disjoint.
func (b *spanBuilder) build(keySpans []planner.KeySpan) ([]kv.Span, error) {
	b.spans = nil
	for i := range keySpans {
		s := &keySpans[i]
		low, empty, err := b.bound(s.Low)
		if err != nil {
			return nil, err
		}
		if empty {
			continue
		}
		high, empty, err := b.bound(s.High)
		if err != nil {
			return nil, err
		}
		if empty {
			continue
		}
		b.eq = b.eq[:0]
		if err := b.expand(s.Eq, low, high); err != nil {
			return nil, err
		}
	}
	if len(b.spans) > 1 {
		return orderSpans(b.ex.ev.Ctx, b.spans)
	}
	return b.spans, nil
}

func (b *spanBuilder) bound(p *planner.Bound) (_ rowenc.Bound, empty bool, err error) {
	if p == nil {
		return rowenc.Bound{}, false, nil
	}
	d, err := p.Value.Eval(&b.ex.ev, nil)
	return rowenc.Bound{Value: d, Set: true, Inclusive: p.Inclusive}, d.IsNull(), err
}

// expand fixes the equality parts one after the other and adds a span for every combination.
func (b *spanBuilder) expand(parts []planner.KeyPart, low, high rowenc.Bound) error {
	if len(parts) == 0 {
		start, end, empty, err := rowenc.Span(b.table, b.index, b.eq, low, high)
		if err != nil || empty {
			return err
		}
		if err := b.ex.tick(b.ex.ev.Ctx); err != nil {
			return err
		}
		b.spans = append(b.spans, kv.Span{Start: start, End: end})
		return nil
	}
	d, err := parts[0].Value.Eval(&b.ex.ev, nil)
	if err != nil || d.IsNull() {
		return err
	}
	n := len(b.eq)
	if !parts[0].Each {
		b.eq = append(b.eq, d)
		err = b.expand(parts[1:], low, high)
		b.eq = b.eq[:n]
		return err
	}
	for _, e := range d.Array().Elems {
		if e.IsNull() {
			continue
		}
		b.eq = append(b.eq, e)
		err := b.expand(parts[1:], low, high)
		b.eq = b.eq[:n]
		if err != nil {
			return err
		}
	}
	return nil
}

// keyBuilder evaluates the key of a point lookup into its buffer.
type keyBuilder struct {
	table  *catalog.TableDescriptor
	index  *catalog.IndexDescriptor
	exprs  []expr.Scalar
	values types.Row
}

func newKeyBuilder(a *planner.Access, exprs []expr.Scalar) keyBuilder {
	return keyBuilder{table: a.Table, index: a.Index, exprs: exprs, values: make(types.Row, len(exprs))}
}

// append appends the key for an input row to dst; ok is false when a value is NULL.
func (b *keyBuilder) append(dst []byte, ev *expr.Context, in types.Row) (_ []byte, ok bool, err error) {
	for i, e := range b.exprs {
		d, err := e.Eval(ev, in)
		if err != nil || d.IsNull() {
			return dst, false, err
		}
		b.values[i] = d
	}
	dst, err = rowenc.AppendKeyPrefix(dst, b.table, b.index, b.values...)
	return dst, err == nil, err
}

// pointKeys evaluates key spans that are all whole keys of a unique index: sorted, each once.
func (b *spanBuilder) pointKeys(keySpans []planner.KeySpan) ([][]byte, error) {
	spans, err := b.build(keySpans)
	if err != nil {
		return nil, err
	}
	keys := make([][]byte, len(spans))
	for i := range spans {
		keys[i] = spans[i].Start
	}
	if err := sortPolled(b.ex.ev.Ctx, keys, bytes.Compare); err != nil {
		return nil, err
	}
	return slices.CompactFunc(keys, bytes.Equal), nil
}
