package types

import "github.com/percodb/percodb/sql/pgerror"

// SliceBound is the bounds of one dimension of a slice; nil is the array's own.
type SliceBound struct{ Low, High *int64 }

// At returns the element with the given subscripts, one for each dimension; NULL if there is none.
func (a *Array) At(index []int64) Datum {
	if len(index) != a.NDims() {
		return Null
	}
	n := 0
	for i, at := range index {
		d := a.Dim(i)
		if at < int64(d.Low) || at > int64(d.High()) {
			return Null
		}
		n = n*int(d.Len) + int(at-int64(d.Low))
	}
	return a.Elems[n]
}

// Slice returns a part of the array with lower bounds of 1. It is empty if it is outside of the array, or has more dimensions; those that
// bounds leaves out are whole.
func (a *Array) Slice(bounds []SliceBound) *Array {
	out := &Array{Elem: a.Elem, Elems: []Datum{}}
	n := a.NDims()
	if len(bounds) > n || n == 0 {
		return out
	}
	dims := make([]Dim, n) // of the slice, with the bounds that it has in a
	for i := range dims {
		d := a.Dim(i)
		low, high := int64(d.Low), int64(d.High())
		if i < len(bounds) {
			if b := bounds[i].Low; b != nil {
				low = max(low, *b)
			}
			if b := bounds[i].High; b != nil {
				high = min(high, *b)
			}
		}
		if low > high {
			return out
		}
		dims[i] = Dim{int32(low), int32(high - low + 1)}
	}
	if n == 1 {
		first := int(dims[0].Low - a.Dim(0).Low)
		out.Elems = a.Elems[first : first+int(dims[0].Len) : first+int(dims[0].Len)]
		return out
	}
	size := 1
	for _, d := range dims {
		size *= int(d.Len)
	}
	out.Elems = make([]Datum, 0, size)
	for run := range a.Runs(dims) {
		out.Elems = append(out.Elems, run...)
	}
	for i := range dims {
		dims[i].Low = 1
	}
	out.Dims = dims
	return out
}

// Runs yields the elements of a part of the array as pieces of a.Elems.
func (a *Array) Runs(part []Dim) func(yield func([]Datum) bool) {
	var walk func(dim, at int, yield func([]Datum) bool) bool
	walk = func(dim, at int, yield func([]Datum) bool) bool {
		at = at*int(a.Dim(dim).Len) + int(part[dim].Low-a.Dim(dim).Low)
		if n := int(part[dim].Len); dim == len(part)-1 {
			return yield(a.Elems[at : at+n])
		}
		for i := range int(part[dim].Len) {
			if !walk(dim+1, at+i, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]Datum) bool) { walk(0, 0, yield) }
}

// NestArrays returns an array whose elements are arrays of equal dimensions. NULLs and empty arrays are all or none of them: then the
// result is empty.
func NestArrays(elem Type, arrays []Datum) (Datum, error) {
	var first *Array
	missing, total := false, 0
	for _, d := range arrays {
		if d.IsNull() || len(d.Array().Elems) == 0 {
			missing = true
			continue
		}
		a := d.Array()
		if total += len(a.Elems); total > MaxArrayElems {
			return Null, ErrArraySize()
		}
		if first == nil {
			first = a
			if err := CheckNDims(a.NDims() + 1); err != nil {
				return Null, err
			}
		}
		if !first.SameDims(a) {
			return Null, errNestedDims()
		}
	}
	if first == nil {
		return NewArray(&Array{Elem: elem, Elems: []Datum{}}), nil
	}
	if missing {
		return Null, errNestedDims()
	}
	elems := make([]Datum, 0, total)
	for _, d := range arrays {
		elems = append(elems, d.Array().Elems...)
	}
	return NewDimArray(elem, elems, append([]Dim{{1, int32(len(arrays))}}, first.AllDims()...)), nil
}

func errNestedDims() error {
	return pgerror.New(pgerror.ArraySubscriptError, "multidimensional arrays must have array expressions with matching dimensions")
}
