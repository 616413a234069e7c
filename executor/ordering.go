package executor

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// ordering compares stored rows by sort keys. Where every key is a plain column a stored row is the
// row itself; otherwise the keys, computed once, lie in front of it.
type ordering struct {
	keys  []planner.SortKey
	types []types.Type
	kinds []types.Kind
	at    []int // positions of the keys in a stored row
	// width is the number of key columns in front of the stored row.
	width int
}

// newOrdering makes an ordering over rows of computed keys.
func newOrdering(keys []planner.SortKey) ordering {
	o := ordering{
		keys: keys, types: make([]types.Type, len(keys)), kinds: make([]types.Kind, len(keys)),
		at: make([]int, len(keys)), width: len(keys),
	}
	for i := range keys {
		o.types[i] = keys[i].Expr.Type()
		o.kinds[i] = o.types[i].KindOf()
		o.at[i] = i
	}
	return o
}

// newRowOrdering makes an ordering over the rows that the keys are computed from.
func newRowOrdering(keys []planner.SortKey) ordering {
	o := newOrdering(keys)
	at := make([]int, len(keys))
	for i := range keys {
		c, ok := keys[i].Expr.(*expr.Column)
		if !ok {
			return o
		}
		at[i] = c.Ordinal
	}
	o.at, o.width = at, 0
	return o
}

// eval returns the argument of compare and prefix for row: the row itself, or its keys in scratch, which has sufficient
// length.
func (o *ordering) eval(ex *execution, row, scratch types.Row) (types.Row, error) {
	if o.width == 0 {
		return row, nil
	}
	for i := range o.keys {
		d, err := o.keys[i].Expr.Eval(&ex.ev, row)
		if err != nil {
			return nil, err
		}
		scratch[i] = d
	}
	return scratch, nil
}

// compare orders two stored rows.
func (o *ordering) compare(a, b types.Row) int {
	for i, at := range o.at {
		if c := o.compareKey(i, a[at], b[at]); c != 0 {
			return c
		}
	}
	return 0
}

func (o *ordering) compareKey(i int, a, b types.Datum) int {
	if a.IsNull() || b.IsNull() {
		switch {
		case a.IsNull() && b.IsNull():
			return 0
		case a.IsNull() == o.keys[i].NullsFirst:
			return -1
		}
		return 1
	}
	c := o.compareValues(i, a, b)
	if o.keys[i].Desc {
		return -c
	}
	return c
}

func (o *ordering) compareValues(i int, a, b types.Datum) int {
	if o.kinds[i] == types.KindInt {
		switch x, y := a.Int(), b.Int(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return types.Compare(a, b, o.types[i])
}

// prefix maps the first key to a number whose order agrees with compare if two numbers differ: most comparisons of a
// sort end there, on a word next to the row's address.
func (o *ordering) prefix(stored types.Row) uint64 {
	if len(o.at) == 0 {
		return 0
	}
	d := stored[o.at[0]]
	if d.IsNull() {
		if o.keys[0].NullsFirst {
			return 0
		}
		return math.MaxUint64
	}
	p, ok := o.valuePrefix(d)
	if !ok {
		// Every value lies between the NULLs at both ends.
		return math.MaxUint64 / 2
	}
	if o.keys[0].Desc {
		return ^p
	}
	return p
}

func (o *ordering) valuePrefix(d types.Datum) (p uint64, ok bool) {
	switch t := o.types[0].Underlying(); t.OID {
	case types.OIDText, types.OIDVarchar, types.OIDName, types.OIDBytea, types.OIDUUID:
		return bytesPrefix(d.Bytes()), t.Coll.ByBytes()
	}
	switch o.kinds[0] {
	case types.KindInt, types.KindBool:
		return uint64(d.Int()) ^ 1<<63, true
	case types.KindFloat:
		return floatPrefix(d.Float()), true
	case types.KindDecimal:
		return floatPrefix(nearestFloat(d.Decimal())), true
	}
	return 0, false
}

// bytesPrefix is the first eight bytes as a number; a shorter string is filled with zeros, and may
// tie with one that has them.
func bytesPrefix(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var w [8]byte
	copy(w[:], b)
	return binary.BigEndian.Uint64(w[:])
}

// floatPrefix orders floats as PostgreSQL does: -0 equals 0, NaN is above all.
func floatPrefix(f float64) uint64 {
	switch {
	case f != f:
		return math.MaxUint64
	case f == 0:
		return 1 << 63
	}
	if u := math.Float64bits(f); u>>63 != 0 {
		return ^u
	} else {
		return u | 1<<63
	}
}

// nearestFloat rounds a numeric to the nearest float, which keeps the order of any two numerics whose
// floats differ.
func nearestFloat(d *apd.Decimal) float64 {
	switch d.Form {
	case apd.Finite:
	case apd.Infinite:
		if d.Negative {
			return math.Inf(-1)
		}
		return math.Inf(1)
	default:
		return math.NaN()
	}
	// Both operands are exact here, so that the one rounding is the division's.
	if scale := -int(d.Exponent); scale >= 0 && scale < len(powersOfTen) && d.Coeff.IsInt64() {
		if n := d.Coeff.Int64(); n < 1<<53 {
			f := float64(n) / powersOfTen[scale]
			if d.Negative {
				return -f
			}
			return f
		}
	}
	f, _ := strconv.ParseFloat(d.Text('E'), 64) // out of range: ±Inf, which is in order
	return f
}

// powersOfTen are those that floats hold exactly.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}
