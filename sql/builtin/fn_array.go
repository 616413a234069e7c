package builtin

import (
	"slices"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func arrayFuncs() []decl {
	return []decl{
		{sig: "array_length(anyarray,int4) int4", fn: ofDim(func(d types.Dim) int32 { return d.Len })},
		{sig: "array_upper(anyarray,int4) int4", fn: ofDim(types.Dim.High)},
		{sig: "array_lower(anyarray,int4) int4", fn: ofDim(func(d types.Dim) int32 { return d.Low })},
		{sig: "array_ndims(anyarray) int4", fn: arrayNDims},
		{sig: "array_dims(anyarray) text", fn: arrayDims},
		{sig: "cardinality(anyarray) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(int64(len(a[0].Array().Elems))), nil
		}},
		{sig: "array_append(anycompatiblearray,anycompatible) anycompatiblearray", bind: arrayAppend, flags: nonStrict},
		{sig: "array_prepend(anycompatible,anycompatiblearray) anycompatiblearray", bind: arrayPrepend, flags: nonStrict},
		{sig: "array_cat(anycompatiblearray,anycompatiblearray) anycompatiblearray", fn: arrayCat, flags: nonStrict},
		{sig: "array_remove(anycompatiblearray,anycompatible) anycompatiblearray", bind: arrayRemove, flags: nonStrict},
		{sig: "array_replace(anycompatiblearray,anycompatible,anycompatible) anycompatiblearray", bind: arrayReplace, flags: nonStrict},
		{sig: "array_position(anycompatiblearray,anycompatible) int4", bind: arrayPosition, flags: nonStrict},
		{sig: "array_position(anycompatiblearray,anycompatible,int4) int4", bind: arrayPosition, flags: nonStrict},
		{sig: "array_positions(anycompatiblearray,anycompatible) int4[]", bind: arrayPositions, flags: nonStrict},
		{sig: "array_fill(anyelement,int4[]) anyarray", bind: arrayFill, flags: nonStrict},
		{sig: "array_fill(anyelement,int4[],int4[]) anyarray", bind: arrayFill, flags: nonStrict},
		{sig: "trim_array(anyarray,int4) anyarray", fn: trimArray},
		{sig: "array_to_string(anyarray,text) text", bind: arrayToString, flags: stable},
		{sig: "array_to_string(anyarray,text,text) text", bind: arrayToString, flags: stable | nonStrict},
		{sig: "string_to_array(text,text) text[]", fn: stringToArray, flags: nonStrict},
		{sig: "string_to_array(text,text,text) text[]", fn: stringToArray, flags: nonStrict},
	}
}

// ofDim implements the functions of a dimension, of which NULL is the result if there is none.
func ofDim(f func(types.Dim) int32) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		array, n := a[0].Array(), a[1].Int()
		if n < 1 || n > int64(array.NDims()) {
			return types.Null, nil
		}
		return types.Int(int64(f(array.Dim(int(n - 1))))), nil
	}
}

func arrayNDims(_ *Env, a []types.Datum) (types.Datum, error) {
	if n := a[0].Array().NDims(); n > 0 {
		return types.Int(int64(n)), nil
	}
	return types.Null, nil
}

func arrayDims(_ *Env, a []types.Datum) (types.Datum, error) {
	dims := a[0].Array().AllDims()
	if len(dims) == 0 {
		return types.Null, nil
	}
	return types.Bytes(types.AppendDims(nil, dims)), nil
}

func arrayFill(o *Overload) Func {
	elem := o.Args[0]
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		dims, err := fillDims(a[1:])
		if err != nil {
			return types.Null, err
		}
		n, err := types.CheckDims(dims)
		if err != nil {
			return types.Null, err
		}
		if err := env.reserveList(n); err != nil {
			return types.Null, err
		}
		elems := make([]types.Datum, n)
		for i := range elems {
			elems[i] = a[0]
		}
		return types.NewDimArray(elem, elems, dims), nil
	}
}

// fillDims returns the dimensions that arrays of lengths and lower bounds describe.
func fillDims(a []types.Datum) ([]types.Dim, error) {
	for _, d := range a {
		if d.IsNull() {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "dimension array or low bound array cannot be null")
		}
	}
	for i, d := range a {
		list := d.Array()
		if list.NDims() > 1 {
			return nil, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts").
				WithDetail("Dimension array must be one dimensional.")
		}
		if hasNull(list.Elems) {
			return nil, pgerror.New(pgerror.NullValueNotAllowed, "dimension values cannot be null")
		}
		if i == 0 {
			if err := types.CheckNDims(len(list.Elems)); err != nil {
				return nil, err
			}
		}
	}
	dims := make([]types.Dim, len(a[0].Array().Elems))
	for i, d := range a[0].Array().Elems {
		dims[i] = types.Dim{Low: 1, Len: int32(d.Int())}
	}
	if len(a) == 2 {
		lows := a[1].Array().Elems
		if len(lows) != len(dims) {
			return nil, pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts").
				WithDetail("Low bound array has different size than dimensions array.")
		}
		for i, d := range lows {
			dims[i].Low = int32(d.Int())
		}
	}
	return dims, nil
}

func hasNull(list []types.Datum) bool { return slices.ContainsFunc(list, types.Datum.IsNull) }

func trimArray(_ *Env, a []types.Datum) (types.Datum, error) {
	src, n := a[0].Array(), a[1].Int()
	length := int64(0)
	if src.NDims() > 0 {
		length = int64(src.Dim(0).Len)
	}
	if n < 0 || n > length {
		return types.Null, pgerror.New(pgerror.ArraySubscriptError, "number of elements to trim must be between 0 and %d", length)
	}
	if length == 0 {
		return a[0], nil
	}
	high := int64(src.Dim(0).High()) - n
	return types.NewArray(src.Slice([]types.SliceBound{{High: &high}})), nil
}

func arrayToString(o *Overload) Func {
	elem := o.Args[0].Elem()
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() || a[1].IsNull() {
			return types.Null, nil
		}
		out := valueBuilder{env: env}
		first := true
		for _, e := range a[0].Array().Elems {
			if e.IsNull() && (len(a) < 3 || a[2].IsNull()) {
				continue
			}
			n := len(a[1].Bytes()) + e.ShallowSize()
			if e.IsNull() {
				n += len(a[2].Bytes())
			}
			if err := out.grow(n); err != nil {
				return types.Null, err
			}
			if !first {
				out.b = append(out.b, a[1].Bytes()...)
			}
			first = false
			if e.IsNull() {
				out.b = append(out.b, a[2].Bytes()...)
			} else {
				if err := env.ReserveText(e); err != nil {
					return types.Null, err
				}
				out.b = types.AppendText(out.b, e, elem, &env.Format)
			}
			if err := env.Step(n); err != nil {
				return types.Null, err
			}
		}
		return types.Bytes(out.b), nil
	}
}

// stringToArray splits at a delimiter, NULL meaning at every character; pieces equal to the third argument are NULL.
func stringToArray(env *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	s := a[0].Text()
	out := &types.Array{Elem: types.TText, Elems: []types.Datum{}}
	add := func(part string) (bool, error) {
		if len(out.Elems) >= types.MaxArrayElems {
			return false, types.ErrArraySize()
		}
		if err := env.reserveElements(len(out.Elems)); err != nil {
			return false, err
		}
		d := types.Text(part)
		if len(a) == 3 && !a[2].IsNull() && part == a[2].Text() {
			d = types.Null
		}
		out.Elems = append(out.Elems, d)
		return true, nil
	}
	var err error
	switch {
	case s == "":
	case a[1].IsNull():
		for i := 0; i < len(s) && err == nil; {
			_, n := utf8.DecodeRuneInString(s[i:])
			if _, err = add(s[i : i+n]); err == nil {
				err = env.Step(stepCost)
			}
			i += n
		}
	case a[1].Text() == "":
		_, err = add(s)
	default:
		err = cut(env, s, a[1].Text(), add)
	}
	return types.NewArray(out), err
}
