package planner

import (
	"math"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// distribution describes the values of a table column, from its statistics. Immutable. Shares are of all rows of the table.
type distribution struct {
	typ      types.Type
	nulls    float64 // the share of NULLs
	distinct float64 // the number of values, NULL aside
	common   []commonShare
	rest     float64       // the share of all values that are not among common
	bounds   []types.Datum // of buckets of equal height over all values; fewer than two: unknown
}

type commonShare struct {
	value types.Datum
	share float64
}

// beyondShare is the least share of a range, in buckets: the table may have grown at an end since its values were sampled.
const beyondShare = 0.05

// newDistribution decodes the statistics of a column of the given type; distinct is the estimated number of its values. Those of another type
// are of no use.
func newDistribution(c catalog.ColumnStats, t types.Type, distinct float64) (*distribution, error) {
	d := &distribution{typ: t, nulls: c.NullFraction, distinct: math.Max(distinct, 1), rest: 1 - c.NullFraction}
	if c.Type != t.OID {
		return d, nil
	}
	for _, cv := range c.Common {
		v, err := rowenc.DecodeDatum(cv.Value)
		if err != nil {
			return nil, err
		}
		d.common = append(d.common, commonShare{v, cv.Fraction})
		d.rest -= cv.Fraction
	}
	d.rest = math.Max(d.rest, 0)
	for _, b := range c.Histogram {
		v, err := rowenc.DecodeDatum(b)
		if err != nil {
			return nil, err
		}
		d.bounds = append(d.bounds, v)
	}
	return d, nil
}

// equal returns the share of rows with the value v, which is not NULL.
func (d *distribution) equal(v types.Datum) float64 {
	for i := range d.common {
		if types.Compare(d.common[i].value, v, d.typ) == 0 {
			return d.common[i].share
		}
	}
	return d.rest / math.Max(d.distinct-float64(len(d.common)), 1)
}

// hasRanges reports whether between knows more than nothing.
func (d *distribution) hasRanges() bool { return len(d.bounds) > 1 }

// between returns the share of rows from low to high; NULL is no bound.
func (d *distribution) between(low, high types.Datum) float64 {
	share := 1.0
	if !high.IsNull() {
		share = d.below(high)
	}
	if !low.IsNull() {
		share -= d.below(low)
	}
	least := beyondShare / float64(len(d.bounds)-1)
	if !low.IsNull() && !high.IsNull() {
		least = math.Min(least, 1/d.distinct) // A narrow range inside the known values.
	}
	return math.Max(share, least) * (1 - d.nulls)
}

// below returns the share of values that are less than v.
func (d *distribution) below(v types.Datum) float64 {
	n := len(d.bounds) - 1
	i, _ := slices.BinarySearchFunc(d.bounds, v, func(b, v types.Datum) int { return types.Compare(b, v, d.typ) })
	switch {
	case i == 0:
		return 0
	case i > n:
		return 1
	}
	return (float64(i-1) + position(d.bounds[i-1], d.bounds[i], v)) / float64(n)
}

// position returns where v lies between low and high, from 0 to 1.
func position(low, high, v types.Datum) float64 {
	if low.Kind() == types.KindBytes && high.Kind() == types.KindBytes && v.Kind() == types.KindBytes {
		return textPosition(low.Bytes(), high.Bytes(), v.Bytes())
	}
	l, lok := scalarOf(low)
	h, hok := scalarOf(high)
	x, xok := scalarOf(v)
	if !lok || !hok || !xok || h <= l || math.IsInf(h-l, 0) {
		return 0.5
	}
	return math.Min(math.Max((x-l)/(h-l), 0), 1)
}

// scalarOf maps a value to a number whose differences are those of the values, as far as there are such.
func scalarOf(d types.Datum) (float64, bool) {
	switch d.Kind() {
	case types.KindInt:
		return float64(d.Int()), true
	case types.KindFloat:
		return d.Float(), !math.IsNaN(d.Float()) && !math.IsInf(d.Float(), 0)
	case types.KindDecimal:
		f, err := d.Decimal().Float64()
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// textDigits is how many bytes of a text, after those that both ends have in common, count for its position.
const textDigits = 8

// textPosition is position for texts: they are read as fractions whose digits are the bytes that occur in them.
func textPosition(low, high, v []byte) float64 {
	skip := 0
	for skip < len(low) && skip < len(high) && low[skip] == high[skip] {
		skip++
	}
	least, most := byte(255), byte(0)
	cut := func(b []byte) []byte {
		b = b[min(skip, len(b)):min(skip+textDigits, len(b))]
		for _, c := range b {
			least, most = min(least, c), max(most, c)
		}
		return b
	}
	low, high, v = cut(low), cut(high), cut(v)
	fraction := func(b []byte) float64 {
		x, unit := 0.0, 1.0
		for _, c := range b {
			unit /= float64(most) - float64(least) + 2 // A text that ends comes before all that go on.
			x += (float64(c) - float64(least) + 1) * unit
		}
		return x
	}
	l, h := fraction(low), fraction(high)
	if h <= l {
		return 0.5
	}
	return math.Min(math.Max((fraction(v)-l)/(h-l), 0), 1)
}
