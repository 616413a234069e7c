package planner

import (
	"fmt"
	"math"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Goal: shares of ranges and of values follow the statistics. Method: a histogram of known values, and estimates worked out by hand.
func TestDistribution(t *testing.T) {
	encode := func(d types.Datum) []byte {
		b, err := rowenc.EncodeDatum(d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ints := catalog.ColumnStats{Type: types.OIDInt4, Distinct: 100, NullFraction: 0.2, Common: []catalog.CommonValue{{Value: encode(types.Int(7)), Fraction: 0.3}}}
	for i := 0; i <= 10; i++ {
		ints.Histogram = append(ints.Histogram, encode(types.Int(int64(i*10))))
	}
	texts := catalog.ColumnStats{Type: types.OIDText, Distinct: 1000}
	for i := 0; i <= 10; i++ {
		texts.Histogram = append(texts.Histogram, encode(types.Text(fmt.Sprintf("code%03d", i*99))))
	}
	for _, c := range []struct {
		name      string
		stats     catalog.ColumnStats
		typ       types.Type
		low, high types.Datum
		want      float64
	}{
		{"half", ints, types.TInt4, types.Null, types.Int(50), 0.5 * 0.8},
		{"above", ints, types.TInt4, types.Int(75), types.Null, 0.25 * 0.8},
		{"inside one bucket", ints, types.TInt4, types.Int(42), types.Int(47), 0.05 * 0.8},
		{"beyond the end", ints, types.TInt4, types.Int(1000), types.Null, beyondShare / 10 * 0.8},
		{"before the start", ints, types.TInt4, types.Null, types.Int(-5), beyondShare / 10 * 0.8},
		{"all", ints, types.TInt4, types.Int(-5), types.Int(500), 0.8},
		{"reversed", ints, types.TInt4, types.Int(60), types.Int(50), beyondShare / 10 * 0.8},
		{"texts with one beginning", texts, types.TText, types.Null, types.Text("code198"), 0.2},
		{"between texts", texts, types.TText, types.Text("code500"), types.Null, 0.495},
	} {
		d, err := newDistribution(c.stats, c.typ, c.stats.Distinct)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.between(c.low, c.high); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
	for _, stale := range []types.Type{types.TNumeric, types.TInt4.ArrayOf(), types.TText, types.TDate} {
		if d, err := newDistribution(ints, stale, 1); err != nil || d.hasRanges() || len(d.common) > 0 {
			t.Errorf("statistics of integers for a column of %s: %+v, %v", stale, d, err)
		}
	}
	d, err := newDistribution(ints, types.TInt4, ints.Distinct)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.equal(types.Int(7)); got != 0.3 {
		t.Errorf("the common value: %g", got)
	}
	if got, want := d.equal(types.Int(8)), 0.5/99; math.Abs(got-want) > 1e-9 {
		t.Errorf("another value: %g, want %g", got, want)
	}
}

// Goal: no statistics and no value, however odd, give a share outside of 0 to 1.
func FuzzDistribution(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), int64(0), int64(5))
	f.Add(int64(math.MinInt64), int64(0), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b, c, low, high int64) {
		bounds := []int64{min(a, b, c), a + b + c - min(a, b, c) - max(a, b, c), max(a, b, c)}
		d := &distribution{typ: types.TInt8, distinct: 3, rest: 1}
		for _, x := range bounds {
			d.bounds = append(d.bounds, types.Int(x))
		}
		for _, ends := range [][2]types.Datum{{types.Int(low), types.Null}, {types.Null, types.Int(high)}, {types.Int(low), types.Int(high)}} {
			if got := d.between(ends[0], ends[1]); !(got > 0 && got <= 1) {
				t.Errorf("between %v: %g", ends, got)
			}
		}
	})
}
