package rowenc

import (
	"encoding/binary"

	"github.com/percodb/percodb/sql/types"
)

// classArray marks the class of arrays, whose other bits are the class of the elements.
const classArray class = 0x80

// An array in a key is a tag; its elements, each with a mark before it, and a mark behind the last; the number of dimensions, their
// lengths if there are several, and their lower bounds. Thus arrays order as PostgreSQL compares them: by their elements, NULL being the
// greatest, and only then by their dimensions.
const (
	tagArray    = 0x10
	markEnd     = 0x01
	markElement = 0x02
	markNull    = 0x03
)

func appendOrderedArray(dst []byte, a *types.Array, elem types.Type) ([]byte, error) {
	dst = append(dst, tagArray)
	for _, e := range a.Elems {
		if e.IsNull() {
			dst = append(dst, markNull)
			continue
		}
		var err error
		if dst, err = appendOrdered(append(dst, markElement), elem, e, false, false); err != nil {
			return nil, err
		}
	}
	n := a.NDims()
	dst = appendOrderedInt(append(dst, markEnd), int64(n))
	if n > 1 {
		for _, d := range a.Dims {
			dst = appendOrderedInt(dst, int64(d.Len))
		}
	}
	for i := range n {
		dst = appendOrderedInt(dst, int64(a.Dim(i).Low))
	}
	return dst, nil
}

func skipOrderedArray(b []byte, c class, desc bool) ([]byte, error) {
	_, b, err := readOrderedArray(b, maskOf(desc), func(b []byte) ([]byte, error) { return skipOrdered(b, c&^classArray, desc) }, nil)
	return b, err
}

func decodeOrderedArray(b []byte, t types.Type, c class, desc bool) (types.Datum, []byte, error) {
	elems := []types.Datum{}
	elem := t.Underlying().Elem()
	dims, rest, err := readOrderedArray(b, maskOf(desc), func(b []byte) ([]byte, error) {
		d, rest, err := decodeOrdered(b, elem, c&^classArray, desc)
		elems = append(elems, d)
		return rest, err
	}, func() { elems = append(elems, types.Null) })
	if err != nil {
		return types.Null, nil, err
	}
	if len(dims) == 1 {
		dims[0].Len = int32(len(elems))
	}
	d, err := arrayOf(elem, elems, dims)
	return d, rest, err
}

// arrayOf returns the array of elems unless dims do not describe it.
func arrayOf(elem types.Type, elems []types.Datum, dims []types.Dim) (types.Datum, error) {
	if n, err := types.CheckDims(dims); err != nil || n != len(elems) {
		return types.Null, corrupt("bad dimensions of an array")
	}
	return types.NewDimArray(elem, elems, dims), nil
}

// readOrderedArray calls element for the bytes from each element on, and null, unless it is nil, for each NULL. It returns the dimensions,
// the length of a single one being left out.
func readOrderedArray(b []byte, mask byte, element func([]byte) ([]byte, error), null func()) (dims []types.Dim, rest []byte, err error) {
	if len(b) == 0 || b[0]^mask != tagArray {
		return nil, nil, corrupt("bad array in key")
	}
	for b = b[1:]; ; {
		if len(b) == 0 {
			return nil, nil, corrupt("array without end in key")
		}
		mark := b[0] ^ mask
		b = b[1:]
		switch mark {
		case markNull:
			if null != nil {
				null()
			}
			continue
		case markElement:
			if b, err = element(b); err != nil {
				return nil, nil, err
			}
			continue
		case markEnd:
			return readOrderedDims(b, mask)
		}
		return nil, nil, corrupt("bad element of an array in key")
	}
}

func readOrderedDims(b []byte, mask byte) ([]types.Dim, []byte, error) {
	n, b, err := decodeOrderedInt(b, mask)
	if err != nil {
		return nil, nil, err
	}
	if n < 0 || n > types.MaxArrayDims {
		return nil, nil, corrupt("bad number of dimensions of an array in key")
	}
	dims := make([]types.Dim, n)
	next := func(dst *int32) {
		var v int64
		if err == nil {
			v, b, err = decodeOrderedInt(b, mask)
		}
		if *dst = int32(v); err == nil && int64(*dst) != v {
			err = corrupt("bad dimension of an array in key")
		}
	}
	for i := range dims {
		if n > 1 {
			next(&dims[i].Len)
		}
	}
	for i := range dims {
		next(&dims[i].Low)
	}
	return dims, b, err
}

// appendDims appends what follows the elements of an array in a value: nothing for one dimension with the lower bound 1.
func appendDims(dst []byte, a *types.Array) []byte {
	for _, d := range a.Dims {
		dst = binary.AppendVarint(binary.AppendUvarint(dst, uint64(d.Len)), int64(d.Low))
	}
	return dst
}

// takeDims reads what appendDims has written, up to the end of b.
func takeDims(b []byte) (dims []types.Dim, err error) {
	for len(b) > 0 {
		if len(dims) == types.MaxArrayDims {
			return nil, corrupt("bytes after an array")
		}
		var length uint64
		var low int32
		if length, b, err = takeUvarint(b); err == nil {
			low, b, err = takeInt32(b)
		}
		if err != nil {
			return nil, err
		}
		if length > types.MaxArrayElems {
			return nil, corrupt("bad dimension of an array")
		}
		dims = append(dims, types.Dim{Low: low, Len: int32(length)})
	}
	return dims, nil
}
