package builtin

import (
	"math"
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// arrayOps declares || @> <@ && on arrays.
func arrayOps() []decl {
	return []decl{
		{sig: "||(anycompatiblearray,anycompatiblearray) anycompatiblearray", fn: arrayCat, flags: nonStrict},
		{sig: "||(anycompatiblearray,anycompatible) anycompatiblearray", bind: arrayAppend, flags: nonStrict},
		{sig: "||(anycompatible,anycompatiblearray) anycompatiblearray", bind: arrayPrepend, flags: nonStrict},
		{sig: "@>(anyarray,anyarray) bool", bind: ofEqualElements(func(env *Env, a []types.Datum) (types.Datum, error) {
			return contains(env, a[0].Array(), a[1].Array())
		})},
		{sig: "<@(anyarray,anyarray) bool", bind: ofEqualElements(func(env *Env, a []types.Datum) (types.Datum, error) {
			return contains(env, a[1].Array(), a[0].Array())
		})},
		{sig: "&&(anyarray,anyarray) bool", bind: ofEqualElements(func(env *Env, a []types.Datum) (types.Datum, error) {
			return overlap(env, a[0].Array(), a[1].Array())
		})},
	}
}

// ofEqualElements is a function of arrays that fails where their elements have no equality.
func ofEqualElements(f Func) func(*Overload) Func {
	return func(o *Overload) Func {
		if err := requireEqual(o.Args[0].Elem()); err != nil {
			return func(*Env, []types.Datum) (types.Datum, error) { return types.Null, err }
		}
		return f
	}
}

func arrayCat(env *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return a[1], nil
	}
	if a[1].IsNull() {
		return a[0], nil
	}
	l, r := a[0].Array(), a[1].Array()
	if len(r.Elems) == 0 {
		return a[0], nil
	}
	if len(l.Elems) == 0 {
		return a[1], nil
	}
	dims, err := catDims(l.AllDims(), r.AllDims())
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
	elems := append(append(make([]types.Datum, 0, n), l.Elems...), r.Elems...)
	return types.NewDimArray(l.Elem, elems, dims), nil
}

// catDims returns the dimensions of a concatenation of two arrays that are not empty: either may be an element of the other.
func catDims(l, r []types.Dim) ([]types.Dim, error) {
	incompatible := func(detail string, args ...any) error {
		return pgerror.New(pgerror.ArraySubscriptError, "cannot concatenate incompatible arrays").WithDetail(detail, args...)
	}
	outer, inner, added := l, r, int64(1)
	switch len(l) - len(r) {
	case 0:
		if added = int64(r[0].Len); !slices.Equal(l[1:], r[1:]) {
			return nil, incompatible("Arrays with differing element dimensions are not compatible for concatenation.")
		}
		inner = r[1:]
	case 1:
	case -1:
		outer, inner = r, l
	default:
		return nil, incompatible("Arrays of %d and %d dimensions are not compatible for concatenation.", len(l), len(r))
	}
	if !slices.Equal(outer[1:], inner) {
		return nil, incompatible("Arrays with differing dimensions are not compatible for concatenation.")
	}
	dims := slices.Clone(outer)
	if int64(dims[0].Len)+added > types.MaxArrayElems {
		return nil, types.ErrArraySize()
	}
	dims[0].Len += int32(added)
	return dims, nil
}

// growable returns the elements and the lower bound of an array to which elements are added; NULL is an empty one.
func growable(d types.Datum) ([]types.Datum, int64, error) {
	if d.IsNull() {
		return nil, 1, nil
	}
	a := d.Array()
	switch a.NDims() {
	case 0:
		return nil, 1, nil
	case 1:
		return a.Elems, int64(a.Dim(0).Low), nil
	}
	return nil, 0, pgerror.New(pgerror.DataException, "argument must be empty or one-dimensional array")
}

// grown returns the array of elems with a lower bound.
func grown(elem types.Type, elems []types.Datum, low int64) (types.Datum, error) {
	dims := []types.Dim{{Low: int32(low), Len: int32(len(elems))}}
	if _, err := types.CheckDims(dims); err != nil {
		return types.Null, err
	}
	return types.NewDimArray(elem, elems, dims), nil
}

func arrayAppend(o *Overload) Func {
	elem := o.Args[1]
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		elems, low, err := growable(a[0])
		if err != nil {
			return types.Null, err
		}
		if low+int64(len(elems)) > math.MaxInt32 {
			return types.Null, errInt4Range()
		}
		if len(elems) == 0 {
			return grown(elem, []types.Datum{a[1]}, low)
		}
		if _, err := types.CheckDims([]types.Dim{{Low: int32(low), Len: int32(len(elems) + 1)}}); err != nil {
			return types.Null, err
		}
		return a[0].Array().Append(a[1]), nil
	}
}

func arrayPrepend(o *Overload) Func {
	elem := o.Args[0]
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		elems, low, err := growable(a[1])
		if err != nil {
			return types.Null, err
		}
		if low == math.MinInt32 {
			return types.Null, errInt4Range()
		}
		return grown(elem, append(append(make([]types.Datum, 0, len(elems)+1), a[0]), elems...), low)
	}
}

// contains reports whether every element of b equals one of a; NULL equals nothing.
func contains(env *Env, a, b *types.Array) (types.Datum, error) {
	for _, e := range b.Elems {
		if e.IsNull() {
			return types.Bool(false), nil
		}
		if found, err := has(env, a, e); err != nil || !found {
			return types.Bool(false), err
		}
	}
	return types.Bool(true), nil
}

// comparisonSteps is the cost of the comparison of two elements in steps.
const comparisonSteps = 8

func has(env *Env, a *types.Array, e types.Datum) (bool, error) {
	for i, x := range a.Elems {
		if !x.IsNull() && types.Equal(x, e, a.Elem) {
			return true, env.Step(comparisonSteps * (i + 1))
		}
	}
	return false, env.Step(comparisonSteps * (len(a.Elems) + 1))
}

// overlap reports whether an element of b equals one of a.
func overlap(env *Env, a, b *types.Array) (types.Datum, error) {
	for _, e := range b.Elems {
		if e.IsNull() {
			continue
		}
		if found, err := has(env, a, e); err != nil || found {
			return types.Bool(found), err
		}
	}
	return types.Bool(false), nil
}
