package builtin

import (
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func arrayFuncs() []decl {
	return []decl{
		{sig: "array_length(anyarray,int4) int4", fn: arrayUpper}, {sig: "array_upper(anyarray,int4) int4", fn: arrayUpper},
		{sig: "array_lower(anyarray,int4) int4", fn: arrayLower}, {sig: "array_ndims(anyarray) int4", fn: arrayNDims},
		{sig: "array_dims(anyarray) text", fn: arrayDims},
		{sig: "cardinality(anyarray) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(int64(len(a[0].Array().Elems))), nil
		}},
		{sig: "array_append(anycompatiblearray,anycompatible) anycompatiblearray", bind: arrayAppend, flags: nonStrict},
		{sig: "array_prepend(anycompatible,anycompatiblearray) anycompatiblearray", bind: arrayPrepend, flags: nonStrict},
		{sig: "array_cat(anycompatiblearray,anycompatiblearray) anycompatiblearray", fn: arrayCat, flags: nonStrict},
		{sig: "array_remove(anycompatiblearray,anycompatible) anycompatiblearray", fn: arrayRemove, flags: nonStrict},
		{sig: "array_replace(anycompatiblearray,anycompatible,anycompatible) anycompatiblearray", fn: arrayReplace, flags: nonStrict},
		{sig: "array_position(anycompatiblearray,anycompatible) int4", fn: arrayPosition, flags: nonStrict},
		{sig: "array_position(anycompatiblearray,anycompatible,int4) int4", fn: arrayPosition, flags: nonStrict},
		{sig: "array_positions(anycompatiblearray,anycompatible) int4[]", fn: arrayPositions, flags: nonStrict},
		{sig: "array_fill(anyelement,int4[]) anyarray", bind: arrayFill, flags: nonStrict},
		{sig: "trim_array(anyarray,int4) anyarray", fn: trimArray},
		{sig: "array_to_string(anyarray,text) text", bind: arrayToString, flags: stable},
		{sig: "array_to_string(anyarray,text,text) text", bind: arrayToString, flags: stable | nonStrict},
		{sig: "string_to_array(text,text) text[]", fn: stringToArray, flags: nonStrict},
		{sig: "string_to_array(text,text,text) text[]", fn: stringToArray, flags: nonStrict},
	}
}

// arrayUpper returns the upper bound, which is the length because arrays begin at 1.
func arrayUpper(_ *Env, a []types.Datum) (types.Datum, error) {
	if n := len(a[0].Array().Elems); n > 0 && a[1].Int() == 1 {
		return types.Int(int64(n)), nil
	}
	return types.Null, nil
}

func arrayLower(_ *Env, a []types.Datum) (types.Datum, error) {
	if len(a[0].Array().Elems) > 0 && a[1].Int() == 1 {
		return types.Int(1), nil
	}
	return types.Null, nil
}

func arrayNDims(_ *Env, a []types.Datum) (types.Datum, error) {
	if len(a[0].Array().Elems) == 0 {
		return types.Null, nil
	}
	return types.Int(1), nil
}

func arrayDims(_ *Env, a []types.Datum) (types.Datum, error) {
	n := len(a[0].Array().Elems)
	if n == 0 {
		return types.Null, nil
	}
	b := types.AppendText([]byte("[1:"), types.Int(int64(n)), types.TInt8, nil)
	return types.Bytes(append(b, ']')), nil
}

// sameOrNull implements IS NOT DISTINCT FROM.
func sameOrNull(a, b types.Datum, t types.Type) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return types.Equal(a, b, t)
}

func arrayRemove(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	src := a[0].Array()
	out := &types.Array{Elem: src.Elem, Elems: []types.Datum{}}
	for _, e := range src.Elems {
		if !sameOrNull(e, a[1], src.Elem) {
			out.Elems = append(out.Elems, e)
		}
	}
	return types.NewArray(out), nil
}

func arrayReplace(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	src := a[0].Array()
	out := &types.Array{Elem: src.Elem, Elems: append([]types.Datum{}, src.Elems...)}
	for i, e := range out.Elems {
		if sameOrNull(e, a[1], src.Elem) {
			out.Elems[i] = a[2]
		}
	}
	return types.NewArray(out), nil
}

func arrayPosition(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	start := int64(1)
	if len(a) == 3 && len(a[0].Array().Elems) > 0 {
		if a[2].IsNull() {
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "initial position must not be null")
		}
		start = a[2].Int()
	}
	src := a[0].Array()
	for i, e := range src.Elems {
		if int64(i+1) >= start && sameOrNull(e, a[1], src.Elem) {
			return types.Int(int64(i + 1)), nil
		}
	}
	return types.Null, nil
}

func arrayPositions(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	src := a[0].Array()
	out := &types.Array{Elem: types.TInt4, Elems: []types.Datum{}}
	for i, e := range src.Elems {
		if sameOrNull(e, a[1], src.Elem) {
			out.Elems = append(out.Elems, types.Int(int64(i+1)))
		}
	}
	return types.NewArray(out), nil
}

// maxArrayElems bounds the arrays of array_fill.
const maxArrayElems = 134217727

func arrayFill(o *Overload) Func {
	elem := o.Args[0]
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[1].IsNull() {
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "dimension array or low bound array cannot be null")
		}
		dims := a[1].Array().Elems
		out := &types.Array{Elem: elem, Elems: []types.Datum{}}
		n, err := elementCount(dims)
		if err != nil || n == 0 {
			return types.NewArray(out), err
		}
		if len(dims) > 1 {
			return types.Null, pgerror.Unsupported("an array with more than one dimension", "Use a one-dimensional array.")
		}
		if err := env.reserveList(n); err != nil {
			return types.Null, err
		}
		out.Elems = make([]types.Datum, n)
		for i := range out.Elems {
			out.Elems[i] = a[0]
		}
		return types.NewArray(out), nil
	}
}

// elementCount returns the number of elements of an array with these dimensions.
func elementCount(dims []types.Datum) (int, error) {
	const maxDims = 6
	if len(dims) > maxDims {
		return 0, pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", len(dims), maxDims)
	}
	for _, d := range dims {
		if d.IsNull() {
			return 0, pgerror.New(pgerror.NullValueNotAllowed, "dimension values cannot be null")
		}
	}
	n := int64(min(len(dims), 1)) // No dimensions, no elements.
	for _, d := range dims {
		if n *= d.Int(); d.Int() < 0 || n > maxArrayElems {
			return 0, errTooManyElements()
		}
	}
	return int(n), nil
}

func trimArray(_ *Env, a []types.Datum) (types.Datum, error) {
	src, n := a[0].Array(), a[1].Int()
	if n < 0 || n > int64(len(src.Elems)) {
		return types.Null, pgerror.New(pgerror.ArraySubscriptError, "number of elements to trim must be between 0 and %d", len(src.Elems))
	}
	return types.NewArray(&types.Array{Elem: src.Elem, Elems: src.Elems[:len(src.Elems)-int(n)]}), nil
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
		if len(out.Elems) >= maxArrayElems {
			return false, errTooManyElements()
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

func errTooManyElements() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", maxArrayElems)
}
