package types

import "sync/atomic"

// arrayRoom is the store of the elements of arrays that have been made by appending to each other. Each array sees its own elements only, and
// none is changed; the next element is taken by the first append to an array that has all that are taken.
type arrayRoom struct {
	elems []Datum
	taken atomic.Int64
}

// elemsSize is the Size of the elements.
func (a *Array) elemsSize() int {
	if a.size > 0 {
		return a.size
	}
	return Row(a.Elems).Size()
}

// Append returns the array of one dimension that has a further element. A series of appends takes time in proportion to its elements.
func (a *Array) Append(d Datum) Datum {
	n := len(a.Elems)
	room := a.room
	if room == nil || n == len(room.elems) || !room.taken.CompareAndSwap(int64(n), int64(n+1)) {
		size := n + 1
		if room != nil { // It is not the first append.
			size += n / 4
		}
		room = &arrayRoom{elems: make([]Datum, size)}
		room.taken.Store(int64(n + 1))
		copy(room.elems, a.Elems)
	}
	room.elems[n] = d
	out := &Array{Elem: a.Elem, Elems: room.elems[: n+1 : n+1], room: room, size: a.elemsSize() + d.Size()}
	if a.Dims != nil {
		out.Dims = []Dim{{Low: a.Dims[0].Low, Len: a.Dims[0].Len + 1}}
	}
	return NewArray(out)
}
