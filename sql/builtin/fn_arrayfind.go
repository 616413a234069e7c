package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// finder returns a function that compares elements of a type as IS NOT DISTINCT FROM does.
func finder(t types.Type) func(env *Env, a, b types.Datum) (bool, error) {
	return func(env *Env, a, b types.Datum) (bool, error) {
		if err := env.Step(comparisonSteps); err != nil {
			return false, err
		}
		if a.IsNull() || b.IsNull() {
			return a.IsNull() && b.IsNull(), nil
		}
		return types.Equal(a, b, t), nil
	}
}

// IncomparableCall returns an overload of a comparison of two arrays whose elements do not compare: it fails unless an array is NULL, or
// their dimensions say that they are not equal.
func IncomparableCall(op string, array types.Type) *Overload {
	equality := op == "=" || op == "<>"
	fn := func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case !equality:
			return types.Null, errIncomparable(array.Elem())
		case !a[0].Array().SameDims(a[1].Array()):
			return types.Bool(op == "<>"), nil
		}
		return types.Null, requireEqual(array.Elem())
	}
	return &Overload{Name: op, Args: []types.Type{array, array}, Ret: types.TBool, Strict: true, Fn: fn}
}

func errIncomparable(t types.Type) error {
	return pgerror.New(pgerror.UndefinedFunction, "could not identify a comparison function for type %s", TypeName(t))
}

// requireEqual returns 42883 for a type without equality.
func requireEqual(t types.Type) error {
	if t.HasEquality() {
		return nil
	}
	return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", TypeName(t))
}

func arrayRemove(o *Overload) Func {
	same := finder(o.Args[1])
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		src := a[0].Array()
		if src.NDims() > 1 {
			return types.Null, pgerror.New(pgerror.FeatureNotSupported, "removing elements from multidimensional arrays is not supported")
		}
		if len(src.Elems) == 0 {
			return a[0], nil
		}
		if err := requireEqual(o.Args[1]); err != nil {
			return types.Null, err
		}
		kept := make([]types.Datum, 0, len(src.Elems))
		for _, e := range src.Elems {
			if found, err := same(env, e, a[1]); err != nil {
				return types.Null, err
			} else if !found {
				kept = append(kept, e)
			}
		}
		if len(kept) == 0 {
			return types.NewArray(&types.Array{Elem: src.Elem, Elems: kept}), nil
		}
		return types.NewDimArray(src.Elem, kept, []types.Dim{{Low: src.Dim(0).Low, Len: int32(len(kept))}}), nil
	}
}

func arrayReplace(o *Overload) Func {
	same := finder(o.Args[1])
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		src := a[0].Array()
		if len(src.Elems) == 0 {
			return a[0], nil
		}
		if err := requireEqual(o.Args[1]); err != nil {
			return types.Null, err
		}
		elems := append([]types.Datum{}, src.Elems...)
		for i, e := range elems {
			if found, err := same(env, e, a[1]); err != nil {
				return types.Null, err
			} else if found {
				elems[i] = a[2]
			}
		}
		return src.WithElems(src.Elem, elems), nil
	}
}

// searched returns the array in which array_position and array_positions search.
func searched(d types.Datum) (*types.Array, error) {
	if a := d.Array(); a.NDims() <= 1 {
		return a, nil
	}
	return nil, pgerror.New(pgerror.FeatureNotSupported, "searching for elements in multidimensional arrays is not supported")
}

func arrayPosition(o *Overload) Func {
	same := finder(o.Args[1])
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		src, err := searched(a[0])
		if err != nil || len(src.Elems) == 0 || a[1].IsNull() && !hasNull(src.Elems) {
			return types.Null, err
		}
		low := int64(src.Dim(0).Low)
		start := low
		if len(a) == 3 {
			if a[2].IsNull() {
				return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "initial position must not be null")
			}
			start = a[2].Int()
		}
		if err := requireEqual(o.Args[1]); err != nil {
			return types.Null, err
		}
		for i := max(start-low, 0); i < int64(len(src.Elems)); i++ {
			if found, err := same(env, src.Elems[i], a[1]); err != nil {
				return types.Null, err
			} else if found {
				return types.Int(low + i), nil
			}
		}
		return types.Null, nil
	}
}

func arrayPositions(o *Overload) Func {
	same := finder(o.Args[1])
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		src, err := searched(a[0])
		if err != nil {
			return types.Null, err
		}
		out := &types.Array{Elem: types.TInt4, Elems: []types.Datum{}}
		if len(src.Elems) == 0 || a[1].IsNull() && !hasNull(src.Elems) {
			return types.NewArray(out), nil
		}
		if err := requireEqual(o.Args[1]); err != nil {
			return types.Null, err
		}
		for i, e := range src.Elems {
			if found, err := same(env, e, a[1]); err != nil {
				return types.Null, err
			} else if found {
				out.Elems = append(out.Elems, types.Int(int64(src.Dim(0).Low)+int64(i)))
			}
		}
		return types.NewArray(out), nil
	}
}
