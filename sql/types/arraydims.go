package types

import (
	"math"
	"slices"
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
)

// MaxArrayDims is the maximum number of dimensions of an array.
const MaxArrayDims = 6

// MaxArrayElems is the maximum number of elements of an array.
const MaxArrayElems = 134217727

// Array is an array; Elem is the element type. An array without elements has no dimensions.
type Array struct {
	Elem  Type
	Elems []Datum // in row-major order
	// Dims are the dimensions, outermost first. nil: one with the lower bound 1, or none if there are no elements. The functions of this
	// package make no other value for these.
	Dims []Dim
	// room is nil, and size 0, of an array that Append has not made; size is that of the elements.
	room *arrayRoom
	size int
}

// Dim is a dimension of an array.
type Dim struct{ Low, Len int32 }

// High returns the upper bound.
func (d Dim) High() int32 { return d.Low + d.Len - 1 }

// NewDimArray returns an array datum with the given dimensions, the product of whose lengths is the number of elements. elems and dims
// must not change afterwards.
func NewDimArray(elem Type, elems []Datum, dims []Dim) Datum {
	if len(elems) == 0 || len(dims) == 1 && dims[0].Low == 1 {
		dims = nil
	}
	return NewArray(&Array{Elem: elem, Elems: elems, Dims: dims})
}

// NDims returns the number of dimensions.
func (a *Array) NDims() int {
	switch {
	case a.Dims != nil:
		return len(a.Dims)
	case len(a.Elems) == 0:
		return 0
	}
	return 1
}

// Dim returns the ith dimension, 0 for the outermost, which is less than NDims.
func (a *Array) Dim(i int) Dim {
	if a.Dims == nil {
		return Dim{1, int32(len(a.Elems))}
	}
	return a.Dims[i]
}

// AllDims returns all dimensions, which must not be changed.
func (a *Array) AllDims() []Dim {
	if a.Dims == nil && len(a.Elems) > 0 {
		return []Dim{a.Dim(0)}
	}
	return a.Dims
}

// WithElems returns an array of a's dimensions with other elements, as many as a has.
func (a *Array) WithElems(elem Type, elems []Datum) Datum {
	return NewArray(&Array{Elem: elem, Elems: elems, Dims: a.Dims})
}

// SameDims reports whether two arrays have equal dimensions.
func (a *Array) SameDims(b *Array) bool {
	return len(a.Elems) == len(b.Elems) && slices.Equal(a.AllDims(), b.AllDims())
}

// CheckDims returns the number of elements of an array with the given dimensions, or the error 54000 for dimensions that no array can have.
func CheckDims(dims []Dim) (int, error) {
	if err := CheckNDims(len(dims)); err != nil {
		return 0, err
	}
	n := int64(min(len(dims), 1)) // No dimensions, no elements.
	for _, d := range dims {
		if n *= int64(d.Len); d.Len < 0 || n > MaxArrayElems {
			return 0, ErrArraySize()
		}
	}
	for _, d := range dims {
		if int64(d.Low)+int64(d.Len) > math.MaxInt32 {
			return 0, pgerror.New(pgerror.ProgramLimitExceeded, "array lower bound is too large: %d", d.Low)
		}
	}
	return int(n), nil
}

// CheckNDims refuses more than MaxArrayDims dimensions.
func CheckNDims(n int) error {
	if n > MaxArrayDims {
		return pgerror.New(pgerror.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", n, MaxArrayDims)
	}
	return nil
}

// ErrArraySize is the error for an array with too many elements.
func ErrArraySize() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", MaxArrayElems)
}

// AppendDims appends dimensions as array_dims prints them: "[1:2][0:3]".
func AppendDims(dst []byte, dims []Dim) []byte {
	for _, d := range dims {
		dst = append(dst, '[')
		dst = strconv.AppendInt(dst, int64(d.Low), 10)
		dst = append(dst, ':')
		dst = strconv.AppendInt(dst, int64(d.High()), 10)
		dst = append(dst, ']')
	}
	return dst
}
