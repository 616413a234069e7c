package builtin

import (
	"sort"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// pieces are the ranges of a multirange, or a range unless it is empty: in order, not empty, not overlapping.
type pieces []types.Datum

// piecesOf returns those of the ith argument. They alias it.
func piecesOf(a []types.Datum, i int) pieces {
	switch {
	case a[i].Kind() != types.KindRange:
		return a[i].Array().Elems
	case a[i].Range().Empty:
		return nil
	}
	return a[i : i+1 : i+1]
}

// low is where the first range begins, high where the last one ends.
func (p pieces) low() types.Bound  { return p[0].Range().Low() }
func (p pieces) high() types.Bound { return p[len(p)-1].Range().High() }

// from returns the ranges that do not end before b begins.
func (p pieces) from(rt *types.RangeTypes, b types.Bound) pieces {
	return p[sort.Search(len(p), func(i int) bool { return rt.CompareBounds(p[i].Range().High(), b) >= 0 }):]
}

// containsAll reports whether each range of b is within one of p.
func (p pieces) containsAll(rt *types.RangeTypes, b pieces) bool {
	for _, d := range b {
		r := d.Range()
		rest := p.from(rt, r.Low())
		if len(rest) == 0 || rt.CompareBounds(rest[0].Range().Low(), r.Low()) > 0 || rt.CompareBounds(rest[0].Range().High(), r.High()) < 0 {
			return false
		}
	}
	return true
}

func (p pieces) contains(rt *types.RangeTypes, value types.Datum) bool {
	low, high := types.Bound{Value: value, Inclusive: true, Lower: true}, types.Bound{Value: value, Inclusive: true}
	rest := p.from(rt, low)
	return len(rest) > 0 && rt.CompareBounds(rest[0].Range().Low(), low) <= 0 && rt.CompareBounds(rest[0].Range().High(), high) >= 0
}

func (p pieces) overlap(rt *types.RangeTypes, b pieces) bool {
	for _, d := range b {
		r := d.Range()
		if rest := p.from(rt, r.Low()); len(rest) == 0 {
			return false
		} else if rt.CompareBounds(rest[0].Range().Low(), r.High()) <= 0 {
			return true
		}
	}
	return false
}

// adjacent reports whether one begins where the other ends.
func (p pieces) adjacent(rt *types.RangeTypes, b pieces) bool {
	return len(p) > 0 && len(b) > 0 && (rt.Adjacent(p.high(), b.low()) || rt.Adjacent(b.high(), p.low()))
}

// rangeTest is an operator with a boolean result on ranges and multiranges.
type rangeTest struct {
	op, verb string // the operator, and what is between the types in the name of its function
	test     func(rt *types.RangeTypes, a, b pieces) bool
}

// rangeTests are false for ranges that contain nothing, but for containment.
var rangeTests = []rangeTest{
	{"&&", "overlaps", func(rt *types.RangeTypes, a, b pieces) bool { return a.overlap(rt, b) }},
	{"@>", "contains", func(rt *types.RangeTypes, a, b pieces) bool { return a.containsAll(rt, b) }},
	{"<@", "contained_by", func(rt *types.RangeTypes, a, b pieces) bool { return b.containsAll(rt, a) }},
	{"-|-", "adjacent", func(rt *types.RangeTypes, a, b pieces) bool { return a.adjacent(rt, b) }},
	{"<<", "before", ofExtent(func(rt *types.RangeTypes, a, b pieces) bool { return rt.CompareBounds(a.high(), b.low()) < 0 })},
	{">>", "after", ofExtent(func(rt *types.RangeTypes, a, b pieces) bool { return rt.CompareBounds(a.low(), b.high()) > 0 })},
	{"&<", "overleft", ofExtent(func(rt *types.RangeTypes, a, b pieces) bool { return rt.CompareBounds(a.high(), b.high()) <= 0 })},
	{"&>", "overright", ofExtent(func(rt *types.RangeTypes, a, b pieces) bool { return rt.CompareBounds(a.low(), b.low()) >= 0 })},
}

// ofExtent makes test false if either contains nothing.
func ofExtent(test func(rt *types.RangeTypes, a, b pieces) bool) func(rt *types.RangeTypes, a, b pieces) bool {
	return func(rt *types.RangeTypes, a, b pieces) bool { return len(a) > 0 && len(b) > 0 && test(rt, a, b) }
}

func minBound(rt *types.RangeTypes, a, b types.Bound) types.Bound {
	if rt.CompareBounds(a, b) <= 0 {
		return a
	}
	return b
}

func maxBound(rt *types.RangeTypes, a, b types.Bound) types.Bound {
	if rt.CompareBounds(a, b) >= 0 {
		return a
	}
	return b
}

// beside returns the bound on the other side of b: of the values that b's range leaves out there.
func beside(b types.Bound) types.Bound {
	return types.Bound{Value: b.Value, Inclusive: !b.Inclusive, Lower: !b.Lower}
}

// rangeUnion is a + b, which must leave no gap unless merge is set.
func rangeUnion(rt *types.RangeTypes, a []types.Datum, merge bool) (types.Datum, error) {
	x, y := piecesOf(a, 0), piecesOf(a, 1)
	switch {
	case len(x) == 0:
		return a[1], nil
	case len(y) == 0:
		return a[0], nil
	case !merge && !x.overlap(rt, y) && !x.adjacent(rt, y):
		return types.Null, pgerror.New(pgerror.DataException, "result of range union would not be contiguous")
	}
	return rt.FromBounds(minBound(rt, y.low(), x.low()), maxBound(rt, y.high(), x.high())) // Of equal bounds the second counts.
}

// intersect returns the ranges that are in both.
func (p pieces) intersect(env *Env, rt *types.RangeTypes, b pieces) (out []types.Datum, err error) {
	for len(p) > 0 && len(b) > 0 {
		if err := env.Step(comparisonSteps); err != nil {
			return nil, err
		}
		x, y := p[0].Range(), b[0].Range()
		low, high := maxBound(rt, x.Low(), y.Low()), minBound(rt, x.High(), y.High())
		if rt.CompareBounds(low, high) <= 0 {
			d, err := rt.FromBounds(low, high)
			if err != nil {
				return nil, err
			}
			if err := env.reserveElements(len(out)); err != nil {
				return nil, err
			}
			out = append(out, d)
		}
		if rt.CompareBounds(x.High(), y.High()) < 0 {
			p = p[1:]
		} else {
			b = b[1:]
		}
	}
	return out, nil
}

// minus returns the ranges of p without what is in b.
func (p pieces) minus(env *Env, rt *types.RangeTypes, b pieces) (out []types.Datum, err error) {
	keep := func(low, high types.Bound) error {
		d, err := rt.FromBounds(low, high)
		if err != nil || d.Range().Empty {
			return err
		}
		out = append(out, d)
		return env.reserveElements(len(out))
	}
	for _, d := range p {
		if err := env.Step(comparisonSteps); err != nil {
			return nil, err
		}
		low, high := d.Range().Low(), d.Range().High()
		b = b.from(rt, low)
		rest, left := b, true
		for ; left && len(rest) > 0 && rt.CompareBounds(rest[0].Range().Low(), high) <= 0; rest = rest[1:] {
			cut := rest[0].Range()
			if rt.CompareBounds(low, cut.Low()) < 0 {
				if err := keep(low, beside(cut.Low())); err != nil {
					return nil, err
				}
			}
			if left = rt.CompareBounds(cut.High(), high) < 0; left {
				low = beside(cut.High())
			}
		}
		if left {
			if err := keep(low, high); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// rangeOfOne returns the range of at most one piece.
func rangeOfOne(rt *types.RangeTypes, p []types.Datum, err error) (types.Datum, error) {
	switch {
	case err != nil:
		return types.Null, err
	case len(p) == 0:
		return rt.EmptyRange(), nil
	case len(p) > 1:
		return types.Null, pgerror.New(pgerror.DataException, "result of range difference would not be contiguous")
	}
	return p[0], nil
}

// multirangeOf returns the multirange of ranges, which it may change.
func multirangeOf(env *Env, rt *types.RangeTypes, ranges []types.Datum, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return rt.Multirange(ranges, func(n int) error { return env.Step(comparisonSteps * n) })
}

// rangeAgg implements range_agg.
type rangeAgg struct {
	rt     *types.RangeTypes
	some   bool
	ranges []types.Datum
}

func (x *rangeAgg) Add(env *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	x.some = true
	for _, d := range piecesOf(a, 0) {
		if err := env.reserveElements(len(x.ranges)); err != nil {
			return err
		}
		x.ranges = append(x.ranges, d.Clone())
	}
	return nil
}

func (x *rangeAgg) Result(env *Env) (types.Datum, error) {
	if !x.some {
		return types.Null, nil
	}
	if err := env.reserveList(len(x.ranges)); err != nil {
		return types.Null, err
	}
	return multirangeOf(env, x.rt, append([]types.Datum(nil), x.ranges...), nil)
}

// rangeIntersectAgg implements range_intersect_agg.
type rangeIntersectAgg struct {
	rt    *types.RangeTypes
	value types.Datum // NULL: there was none
}

func (x *rangeIntersectAgg) Add(env *Env, a []types.Datum) error {
	switch {
	case a[0].IsNull():
		return nil
	case x.value.IsNull():
		x.value = a[0].Clone()
		return nil
	}
	both := []types.Datum{x.value, a[0]}
	out, err := piecesOf(both, 0).intersect(env, x.rt, piecesOf(both, 1))
	if a[0].Kind() == types.KindRange {
		x.value, err = rangeOfOne(x.rt, out, err)
	} else {
		x.value, err = multirangeOf(env, x.rt, out, err)
	}
	x.value = x.value.Clone()
	return err
}

func (x *rangeIntersectAgg) Result(*Env) (types.Datum, error) { return x.value, nil }
