package builtin

import (
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Some types of a fixed length have parts that subscripts select, from 0 on: the coordinates of a point, the ends of an lseg.

// FixedParts returns the type of a type's parts and their number, 0 if it has none.
func FixedParts(t types.Type) (part types.Type, n int) {
	switch t.OID {
	case types.OIDName:
		return types.Type{OID: types.OIDChar, Mod: -1}, nameBytes
	case types.OIDPoint:
		return types.TFloat8, 2
	case types.OIDLine:
		return types.TFloat8, 3
	case types.OIDLseg, types.OIDBox:
		return types.Type{OID: types.OIDPoint, Mod: -1}, 2
	}
	return types.Type{}, 0
}

// FixedSubscript returns the overload that selects one of the parts of a value of type t by one subscript or, since then there is none such part,
// by more: NULL for a part that does not exist.
func FixedSubscript(t types.Type, subscripts int) *Overload {
	part, n := FixedParts(t)
	o := &Overload{Name: "part", Args: []types.Type{t}, Ret: part, Strict: true}
	for range subscripts {
		o.Args = append(o.Args, types.TInt4)
	}
	o.Fn = func(_ *Env, a []types.Datum) (types.Datum, error) {
		i := a[1].Int()
		switch {
		case subscripts > 1 || i < 0 || i >= int64(n):
			return types.Null, nil
		case t.OID == types.OIDName && i >= int64(len(a[0].Bytes())): // The bytes behind the name's are zero.
			return types.Text(""), nil
		case t.OID == types.OIDName:
			return types.Bytes(a[0].Bytes()[i : i+1]), nil
		case part.OID == types.OIDFloat8:
			return types.Float(a[0].Geometry()[i]), nil
		}
		return types.NewGeometry(a[0].Geometry()[2*i : 2*i+2]...), nil
	}
	return o
}

// FixedAssignment returns the overload that puts another part into a value of type t, whose parts are numbers or points: (value, part,
// subscript). Without one of the first two the value stays as it is. A slice, and several subscripts, fail when there are both.
func FixedAssignment(t types.Type, slice, several bool) *Overload {
	part, n := FixedParts(t)
	if slice {
		part = t
	}
	return &Overload{Name: "part_assignment", Args: []types.Type{t, part, types.TInt4}, Ret: t, Fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case a[2].IsNull():
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "array subscript in assignment must not be null")
		case a[0].IsNull() || a[1].IsNull():
			return a[0], nil
		case slice:
			return types.Null, pgerror.New(pgerror.FeatureNotSupported, "updates on slices of fixed-length arrays not implemented")
		case several:
			return types.Null, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
		case a[2].Int() < 0 || a[2].Int() >= int64(n):
			return types.Null, pgerror.New(pgerror.ArraySubscriptError, "array subscript out of range")
		}
		whole, i := slices.Clone(a[0].Geometry()), a[2].Int()
		if part.OID == types.OIDFloat8 {
			whole[i] = a[1].Float()
		} else {
			copy(whole[2*i:], a[1].Geometry())
		}
		return types.NewGeometry(whole...), nil
	}}
}
