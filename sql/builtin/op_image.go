package builtin

import (
	"bytes"
	"cmp"
	"math"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// imageOps declares *= and its kin, which compare records by what their fields are stored as: numerics of another scale are not equal, and types
// without an order have one.
func imageOps() []decl {
	var out []decl
	for _, c := range comparisons {
		out = append(out, decl{sig: "*" + c.op + "(record,record) bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			order, err := compareImages(a[0].Record(), a[1].Record())
			return types.Bool(c.test(order)), err
		}})
	}
	return out
}

func compareImages(a, b *types.Record) (int, error) {
	for i := 0; i < len(a.Fields) && i < len(b.Fields); i++ {
		if a.Types[i].OID != b.Types[i].OID {
			return 0, pgerror.New(pgerror.DatatypeMismatch, "cannot compare dissimilar column types %s and %s at record column %d",
				TypeName(a.Types[i]), TypeName(b.Types[i]), i+1)
		}
		x, y := a.Fields[i], b.Fields[i]
		switch {
		case x.IsNull() && y.IsNull():
			continue
		case x.IsNull() != y.IsNull():
			if x.IsNull() { // NULL is greater.
				return 1, nil
			}
			return -1, nil
		}
		if order := compareImage(x, y, a.Types[i]); order != 0 {
			return order, nil
		}
	}
	if len(a.Fields) != len(b.Fields) {
		return 0, pgerror.New(pgerror.DatatypeMismatch, "cannot compare record types with different numbers of columns")
	}
	return 0, nil
}

// SameImage reports whether two records are equal as *= compares them: of the same bytes.
func SameImage(a, b *types.Record) (bool, error) {
	order, err := compareImages(a, b)
	return order == 0, err
}

// compareImage compares values of a type: numbers as unsigned words, others byte by byte.
func compareImage(x, y types.Datum, t types.Type) int {
	switch t.KindOf() {
	case types.KindInt, types.KindBool:
		return cmp.Compare(uint64(x.Int()), uint64(y.Int()))
	case types.KindFloat:
		if t.OID == types.OIDFloat4 {
			return cmp.Compare(uint64(int32(math.Float32bits(float32(x.Float())))), uint64(int32(math.Float32bits(float32(y.Float())))))
		}
		return cmp.Compare(math.Float64bits(x.Float()), math.Float64bits(y.Float()))
	}
	return bytes.Compare(types.AppendBinary(nil, x, t), types.AppendBinary(nil, y, t))
}
