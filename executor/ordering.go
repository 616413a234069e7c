package executor

import (
	"encoding/binary"
	"math"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// ordering compares rows by sort keys that have been computed beforehand.
type ordering struct {
	keys  []planner.SortKey
	types []types.Type
	kinds []types.Kind
}

func newOrdering(keys []planner.SortKey) ordering {
	o := ordering{keys: keys, types: make([]types.Type, len(keys)), kinds: make([]types.Kind, len(keys))}
	for i := range keys {
		o.types[i] = keys[i].Expr.Type()
		o.kinds[i] = o.types[i].KindOf()
	}
	return o
}

// eval computes the sort keys of row into out.
func (o *ordering) eval(ex *execution, row, out types.Row) error {
	for i := range o.keys {
		d, err := o.keys[i].Expr.Eval(&ex.ev, row)
		if err != nil {
			return err
		}
		out[i] = d
	}
	return nil
}

// compare orders two computed keys.
func (o *ordering) compare(a, b types.Row) int {
	for i := range o.keys {
		if c := o.compareKey(i, a[i], b[i]); c != 0 {
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

// prefix maps the first key to a number whose order agrees with compare wherever two numbers
// differ: most comparisons of a sort end there, on a word beside the row's address.
func (o *ordering) prefix(key types.Row) uint64 {
	if len(key) == 0 {
		return 0
	}
	d := key[0]
	if d.IsNull() {
		if o.keys[0].NullsFirst {
			return 0
		}
		return math.MaxUint64
	}
	p, ok := o.valuePrefix(d)
	if !ok {
		// Every value lies between the NULLs of either end.
		return math.MaxUint64 / 2
	}
	if o.keys[0].Desc {
		return ^p
	}
	return p
}

func (o *ordering) valuePrefix(d types.Datum) (p uint64, ok bool) {
	switch o.types[0].OID {
	case types.OIDText, types.OIDVarchar, types.OIDName, types.OIDBytea, types.OIDUUID:
		return bytesPrefix(d.Bytes()), true
	}
	switch o.kinds[0] {
	case types.KindInt, types.KindBool:
		return uint64(d.Int()) ^ 1<<63, true
	case types.KindFloat:
		return floatPrefix(d.Float()), true
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
