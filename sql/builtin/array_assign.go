package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// ArraySubscript tells which bounds of a slice are given; an index is an upper bound.
type ArraySubscript struct{ Low, High bool }

// ArrayAssignment returns the function of an assignment to an element or a slice of an array of type t. Its arguments are the array as it
// was, the new value of the part, and the subscripts that are given, for each dimension the lower bound before the upper one.
func ArrayAssignment(t types.Type, slice bool, subscripts []ArraySubscript) *Overload {
	o := &Overload{Name: "array_assignment", Args: []types.Type{t, ArrayPartType(t, slice)}, Ret: t}
	for _, s := range subscripts {
		for _, given := range []bool{s.Low, s.High} {
			if given {
				o.Args = append(o.Args, types.TInt4)
			}
		}
	}
	o.Fn = func(env *Env, a []types.Datum) (types.Datum, error) {
		old := &types.Array{Elem: t.Elem()}
		if !a[0].IsNull() {
			old = a[0].Array()
		}
		for _, i := range a[2:] {
			if i.IsNull() {
				return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "array subscript in assignment must not be null")
			}
		}
		if slice {
			return assignSlice(env, old, a[1], sliceBounds(subscripts, a[2:]))
		}
		return assignElement(env, old, a[1], a[2:])
	}
	return o
}

// FieldAssignment returns the function of an assignment to the ith field of a composite type t. Its arguments are the value as it was and
// the new value of the field.
func FieldAssignment(t types.Type, i int) *Overload {
	o := &Overload{Name: "field_assignment", Args: []types.Type{t, t.Def.Fields[i].Type}, Ret: t}
	o.Fn = func(_ *Env, a []types.Datum) (types.Datum, error) {
		fields := make(types.Row, len(t.Def.Fields))
		if !a[0].IsNull() {
			copy(fields, a[0].Record().Fields)
		}
		fields[i] = a[1]
		return t.Def.Row(fields), nil
	}
	return o
}

// ArrayPartType returns the type of a slice or an element of an array of type t.
func ArrayPartType(t types.Type, slice bool) types.Type {
	if slice {
		return t
	}
	return t.Elem()
}

// sliceBounds returns the bounds of the slice.
func sliceBounds(subscripts []ArraySubscript, given []types.Datum) []types.SliceBound {
	bounds := make([]types.SliceBound, len(subscripts))
	next := func() *int64 {
		v := given[0].Int()
		given = given[1:]
		return &v
	}
	for i, s := range subscripts {
		if s.Low {
			bounds[i].Low = next()
		}
		if s.High {
			bounds[i].High = next()
		}
	}
	return bounds
}

func errSubscripts() error {
	return pgerror.New(pgerror.ArraySubscriptError, "wrong number of array subscripts")
}

func errSubscriptRange() error {
	return pgerror.New(pgerror.ArraySubscriptError, "array subscript out of range")
}

// assignElement replaces an element. An array of one dimension grows as needed, an empty one becomes that element.
func assignElement(env *Env, old *types.Array, value types.Datum, index []types.Datum) (types.Datum, error) {
	switch n := old.NDims(); {
	case n == 0:
		dims := make([]types.Dim, len(index))
		for i, at := range index {
			dims[i] = types.Dim{Low: int32(at.Int()), Len: 1}
		}
		if _, err := types.CheckDims(dims); err != nil {
			return types.Null, err
		}
		return types.NewDimArray(old.Elem, []types.Datum{value}, dims), nil
	case n != len(index):
		return types.Null, errSubscripts()
	case n == 1:
		if d := old.Dim(0); index[0].Int() == int64(d.High())+1 {
			_, err := types.CheckDims([]types.Dim{{Low: d.Low, Len: d.Len + 1}})
			if err != nil {
				return types.Null, err
			}
			return old.Append(value), nil
		}
		elems, dims, err := stretched(env, old, index[0].Int(), index[0].Int())
		if err != nil {
			return types.Null, err
		}
		elems[index[0].Int()-int64(dims[0].Low)] = value
		return types.NewDimArray(old.Elem, elems, dims), nil
	}
	at := 0
	for i, x := range index {
		d := old.Dim(i)
		if x.Int() < int64(d.Low) || x.Int() > int64(d.High()) {
			return types.Null, errSubscriptRange()
		}
		at = at*int(d.Len) + int(x.Int()-int64(d.Low))
	}
	elems := append([]types.Datum(nil), old.Elems...)
	elems[at] = value
	return old.WithElems(old.Elem, elems), nil
}

// stretched returns a copy of the elements of an array of one dimension that contains low … high, new ones being NULL.
func stretched(env *Env, old *types.Array, low, high int64) ([]types.Datum, []types.Dim, error) {
	d := old.Dim(0)
	low, high = min(low, int64(d.Low)), max(high, int64(d.High()))
	if high-low+1 > types.MaxArrayElems {
		return nil, nil, types.ErrArraySize()
	}
	dims := []types.Dim{{Low: int32(low), Len: int32(high - low + 1)}}
	n, err := types.CheckDims(dims)
	if err != nil {
		return nil, nil, err
	}
	if err := env.reserveList(n); err != nil {
		return nil, nil, err
	}
	elems := make([]types.Datum, n)
	copy(elems[int64(d.Low)-low:], old.Elems)
	return elems, dims, nil
}

// assignSlice replaces a slice by the elements of value in their order; more of them are ignored. A NULL changes nothing.
func assignSlice(env *Env, old *types.Array, value types.Datum, bounds []types.SliceBound) (types.Datum, error) {
	if value.IsNull() {
		return types.NewArray(old), nil
	}
	src := value.Array().Elems
	n := old.NDims()
	if n == 0 {
		return sliceOfEmpty(old.Elem, src, bounds)
	}
	if n < len(bounds) {
		return types.Null, errSubscripts()
	}
	part := make([]types.Dim, n)
	for i := range part {
		var b types.SliceBound
		if i < len(bounds) {
			b = bounds[i]
		}
		var err error
		if part[i], err = boundsOf(b, old.Dim(i), n == 1); err != nil {
			return types.Null, err
		}
	}
	var elems []types.Datum
	dims := old.AllDims()
	if n == 1 {
		var err error
		if elems, dims, err = stretched(env, old, int64(part[0].Low), int64(part[0].High())); err != nil {
			return types.Null, err
		}
	} else {
		elems = append([]types.Datum(nil), old.Elems...)
	}
	if count, err := types.CheckDims(part); err != nil {
		return types.Null, err
	} else if count > len(src) {
		return types.Null, errSourceTooSmall()
	}
	out := &types.Array{Elem: old.Elem, Elems: elems, Dims: dims}
	for run := range out.Runs(part) {
		src = src[copy(run, src):]
	}
	return types.NewDimArray(old.Elem, elems, dims), nil
}

func errSourceTooSmall() error {
	return pgerror.New(pgerror.ArraySubscriptError, "source array too small")
}

// boundsOf returns the part of a dimension that bounds name, which may be beyond it if it can grow.
func boundsOf(b types.SliceBound, d types.Dim, grows bool) (types.Dim, error) {
	low, high := int64(d.Low), int64(d.High())
	if b.Low != nil {
		low = *b.Low
	}
	if b.High != nil {
		high = *b.High
	}
	switch {
	case low > high:
		return types.Dim{}, pgerror.New(pgerror.ArraySubscriptError, "upper bound cannot be less than lower bound")
	case !grows && (low < int64(d.Low) || high > int64(d.High())):
		return types.Dim{}, errSubscriptRange()
	case high-low+1 > types.MaxArrayElems:
		return types.Dim{}, types.ErrArraySize()
	}
	return types.Dim{Low: int32(low), Len: int32(high - low + 1)}, nil
}

// sliceOfEmpty returns the array that an assignment to a slice of an empty one makes.
func sliceOfEmpty(elem types.Type, src []types.Datum, bounds []types.SliceBound) (types.Datum, error) {
	dims := make([]types.Dim, len(bounds))
	for i, b := range bounds {
		if b.Low == nil || b.High == nil {
			return types.Null, pgerror.New(pgerror.ArraySubscriptError, "array slice subscript must provide both boundaries").
				WithDetail("When assigning to a slice of an empty array value, slice boundaries must be fully specified.")
		}
		length := *b.High - *b.Low + 1
		if length > types.MaxArrayElems {
			return types.Null, types.ErrArraySize()
		}
		dims[i] = types.Dim{Low: int32(*b.Low), Len: int32(length)}
	}
	n, err := types.CheckDims(dims)
	switch {
	case err != nil:
		return types.Null, err
	case n > len(src):
		return types.Null, errSourceTooSmall()
	}
	return types.NewDimArray(elem, src[:n:n], dims), nil
}
