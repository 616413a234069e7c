package expr

import "github.com/percodb/percodb/sql/types"

type (
	// Subscript is X[i][j]…, an element of an array.
	Subscript struct {
		X     Scalar
		Index []Scalar // at most types.MaxArrayDims
		Typ   types.Type
	}
	// Slice is X[low:high]…, a part of an array; nil bounds are open.
	Slice struct {
		X         Scalar
		Low, High []Scalar // of each dimension, at most types.MaxArrayDims
	}
)

// Type returns the element type.
func (s *Subscript) Type() types.Type { return s.Typ }

// Type returns the array's type.
func (s *Slice) Type() types.Type { return s.X.Type() }

// Eval takes the element; out of bounds it is NULL.
func (s *Subscript) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := s.X.Eval(ev, in)
	if err != nil || d.IsNull() {
		return types.Null, err
	}
	var index [types.MaxArrayDims]int64
	for i, x := range s.Index {
		v, err := x.Eval(ev, in)
		if err != nil || v.IsNull() {
			return types.Null, err
		}
		index[i] = v.Int()
	}
	return d.Array().At(index[:len(s.Index)]), nil
}

// Eval cuts the array; a NULL bound makes NULL.
func (s *Slice) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := s.X.Eval(ev, in)
	if err != nil || d.IsNull() {
		return types.Null, err
	}
	bounds := make([]types.SliceBound, len(s.Low))
	for i := range bounds {
		for _, b := range [...]struct {
			s   Scalar
			dst **int64
		}{{s.Low[i], &bounds[i].Low}, {s.High[i], &bounds[i].High}} {
			if b.s == nil {
				continue
			}
			v, err := b.s.Eval(ev, in)
			if err != nil || v.IsNull() {
				return types.Null, err
			}
			n := v.Int()
			*b.dst = &n
		}
	}
	return types.NewArray(d.Array().Slice(bounds)), nil
}
