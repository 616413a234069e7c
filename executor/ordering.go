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
	// Prefixes contain the first parts keys, of which the first whole ones without loss.
	prefixed     [maxPrefixed]prefixed
	parts, whole int
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
	o.initPrefix()
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

// sortPrefix is the beginning of a row's key in a form that is compared as a number of 128 bits.
type sortPrefix struct{ high, low uint64 }

func (p sortPrefix) compare(q sortPrefix) int {
	switch {
	case p.high != q.high:
		if p.high < q.high {
			return -1
		}
		return 1
	case p.low < q.low:
		return -1
	case p.low > q.low:
		return 1
	}
	return 0
}

const (
	sortPrefixBits = 128
	// maxPrefixed is how many keys a prefix can contain.
	maxPrefixed = 4
)

// prefixed says how prefixes contain a key: a bit that distinguishes NULLs, and then the first bits of the value's width.
type prefixed struct {
	kind        types.Kind
	width, bits uint8
}

// initPrefix decides which keys prefixes contain: the first ones of which nothing is cut off, and the beginning of the next.
func (o *ordering) initPrefix() {
	left := sortPrefixBits
	for i := range min(len(o.keys), maxPrefixed) {
		part, whole := prefixedType(o.types[i], o.kinds[i])
		if part.bits == 0 || left < 16 {
			return
		}
		left--
		if int(part.bits) > left {
			part.bits, whole = uint8(left), false
		}
		left -= int(part.bits)
		o.prefixed[i] = part
		if o.parts = i + 1; !whole {
			return
		}
		o.whole = i + 1
	}
}

// prefixedType returns how a type is contained in prefixes, and whether values with the same bits are equal. Types without bits are
// not contained.
func prefixedType(typ types.Type, kind types.Kind) (p prefixed, whole bool) {
	t := typ.Underlying()
	switch t.OID {
	case types.OIDText, types.OIDVarchar, types.OIDName, types.OIDBytea, types.OIDUUID:
		if t.Coll.ByBytes() {
			return prefixed{types.KindBytes, sortPrefixBits - 1, sortPrefixBits - 1}, false
		}
		return prefixed{}, false
	case types.OIDInt2:
		return prefixed{types.KindInt, 16, 16}, true
	case types.OIDInt4:
		return prefixed{types.KindInt, 32, 32}, true
	}
	switch kind {
	case types.KindInt, types.KindFloat:
		return prefixed{kind, 64, 64}, true
	case types.KindBool:
		return prefixed{kind, 1, 1}, true
	case types.KindDecimal:
		return prefixed{kind, 64, 64}, false
	}
	return prefixed{}, false
}

// prefix returns a number whose order agrees with compare if two numbers differ. If they do not, compareRest decides.
func (o *ordering) prefix(stored types.Row) (p sortPrefix) {
	used := uint(0)
	for i := range o.parts {
		part, k := o.prefixed[i], &o.keys[i]
		d := &stored[o.at[i]]
		bits := uint(part.bits)
		if d.IsNull() {
			if !k.NullsFirst {
				p.add(sortPrefix{high: 1 << 63}, used)
			}
			used += 1 + bits
			continue
		}
		if k.NullsFirst {
			p.add(sortPrefix{high: 1 << 63}, used)
		}
		used++
		var v sortPrefix // the value's bits come first
		switch part.kind {
		case types.KindInt:
			v.high = uint64(d.Int())<<(64-part.width) ^ 1<<63
		case types.KindBool:
			v.high = uint64(d.Int()&1) << 63
		case types.KindFloat:
			v.high = floatPrefix(d.Float())
		case types.KindDecimal:
			v.high = floatPrefix(nearestFloat(d.Decimal()))
		default:
			v = bytesPrefix(d.Bytes())
		}
		if k.Desc {
			v.high, v.low = ^v.high, ^v.low
		}
		if bits <= 64 {
			v.high, v.low = v.high&^(1<<(64-bits)-1), 0
		}
		p.add(v, used)
		used += bits
	}
	return p
}

// add adds the bits of v behind those used.
func (p *sortPrefix) add(v sortPrefix, used uint) {
	if used >= 64 {
		p.low |= v.high >> (used - 64)
		return
	}
	p.high |= v.high >> used
	p.low |= v.low>>used | v.high<<(64-used)
}

// compareRest orders two stored rows of equal prefixes.
func (o *ordering) compareRest(a, b types.Row) int {
	for i := o.whole; i < len(o.at); i++ {
		if c := o.compareKey(i, a[o.at[i]], b[o.at[i]]); c != 0 {
			return c
		}
	}
	return 0
}

// bytesPrefix is the first sixteen bytes; a shorter string is filled with zeros, and may tie with one that has them.
func bytesPrefix(b []byte) sortPrefix {
	if len(b) >= 16 {
		return sortPrefix{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	}
	var w [16]byte
	copy(w[:], b)
	return sortPrefix{binary.BigEndian.Uint64(w[:]), binary.BigEndian.Uint64(w[8:])}
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
