package jsonb

import (
	"slices"
	"unsafe"

	"github.com/percodb/percodb/sql/pgerror"
)

// Builder makes a Value from events. The zero Builder is ready; after Finish it may be used again.
type Builder struct {
	pending []item // of the open containers, one behind the other
	done    []item // the members of closed containers
	open    []frame
}

// item is a value that has not been encoded yet, or a key.
type item struct {
	kind  Kind
	raw   bool   // text is encoded
	width uint8  // of a container's numbers
	depth int    // of a container
	text  string // of a string, number or key
	first int    // a container's first member in Builder.done
	n     int    // and the number of its elements or pairs
	size  int    // of the encoded value
}

type frame struct {
	start  int // in pending
	object bool
}

// ItemBytes is the memory of a Builder for each key and value, beside their bytes.
const ItemBytes = 160

// maxPart is the limit of strings, arrays and objects in bytes.
const maxPart = 0x0FFFFFFF

// checkString returns 54000 for a string of n bytes that is too long.
func checkString(n int) error {
	if n > maxPart {
		return pgerror.New(pgerror.ProgramLimitExceeded, "string too long to represent as jsonb string").
			WithDetail("Due to an implementation restriction, jsonb strings cannot exceed %d bytes.", maxPart)
	}
	return nil
}

// BeginObject opens an object: Key and a value for each member, then End.
func (b *Builder) BeginObject() { b.open = append(b.open, frame{len(b.pending), true}) }

// BeginArray opens an array.
func (b *Builder) BeginArray() { b.open = append(b.open, frame{len(b.pending), false}) }

// Key adds a key. The string must not change before Finish.
func (b *Builder) Key(s string) error {
	b.pending = append(b.pending, item{kind: String, text: s, size: len(s)})
	return checkString(len(s))
}

// String adds a string, which must not change before Finish.
func (b *Builder) String(s string) error {
	b.pending = append(b.pending, item{kind: String, text: s, size: 1 + len(s)})
	return checkString(len(s))
}

// Number adds the number with a text form of numeric.
func (b *Builder) Number(text string) {
	if text == "-0" { // A numeric has no negative zero.
		text = "0"
	}
	b.pending = append(b.pending, item{kind: Number, text: text, size: 1 + len(text)})
}

// Value adds an encoded value, which must not change before Finish.
func (b *Builder) Value(v Value) {
	b.pending = append(b.pending, item{kind: v.Kind(), raw: true, text: unsafe.String(unsafe.SliceData(v), len(v)), depth: v.depth(), size: len(v)})
}

// End closes the last open container. Of members with the same key it keeps the last.
//
// Errors: 54000 the container is too large, 54001 it is too deep.
func (b *Builder) End() error {
	f := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	members := b.pending[f.start:]
	it := item{kind: Array, first: len(b.done), depth: 1}
	if f.object {
		it.kind = Object
		members = b.sortMembers(members)
	}
	b.done = append(b.done, members...)
	b.pending = b.pending[:f.start]
	it.n = len(members)
	data, numbers := 0, it.n
	for i := range members {
		data += members[i].size
		if members[i].kind >= Array {
			it.depth = max(it.depth, members[i].depth+1)
		}
	}
	if f.object {
		it.n /= 2
	}
	if data > maxPart {
		what := "array"
		if f.object {
			what = "object"
		}
		return pgerror.New(pgerror.ProgramLimitExceeded, "total size of jsonb %s elements exceeds the maximum of %d bytes", what, maxPart)
	}
	if it.depth > MaxDepth {
		return ErrTooDeep()
	}
	it.width = widthFor(max(data, it.n))
	it.size = 1 + int(1+numbers)<<it.width + data
	if it.depth > 1 {
		it.size += 2
	}
	b.pending = append(b.pending, it)
	return nil
}

// widthFor returns the binary logarithm of the bytes that numbers up to n need.
func widthFor(n int) uint8 {
	switch {
	case n < 1<<8:
		return 0
	case n < 1<<16:
		return 1
	}
	return 2
}

// sortMembers sorts keys and values that follow each other by key, drops all but the last of equal keys, and returns the
// keys followed by the values.
func (b *Builder) sortMembers(members []item) []item {
	n := len(members) / 2
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	key := func(i int32) string { return members[2*i].text }
	slices.SortStableFunc(order, func(x, y int32) int { return compareKeys(key(x), key(y)) })
	out := make([]item, 0, 2*n)
	kept := order[:0]
	for i, x := range order {
		if i+1 < n && key(x) == key(order[i+1]) {
			continue
		}
		kept = append(kept, x)
	}
	for _, x := range kept {
		out = append(out, members[2*x])
	}
	for _, x := range kept {
		out = append(out, members[2*x+1])
	}
	return out
}

// Finish encodes the one value that has been added and empties the builder.
func (b *Builder) Finish() Value {
	v := b.encode(make(Value, 0, b.pending[0].size), &b.pending[0], false)
	b.pending, b.done = b.pending[:0], b.done[:0]
	return v
}

func (b *Builder) encode(dst Value, it *item, key bool) Value {
	switch {
	case it.raw || key:
		return append(dst, it.text...)
	case it.kind < Array:
		return append(append(dst, byte(it.kind)), it.text...)
	}
	head := byte(it.kind) | it.width<<widthShift
	if it.depth > 1 {
		dst = append(dst, head|deepFlag, byte(it.depth), byte(it.depth>>8))
	} else {
		dst = append(dst, head)
	}
	dst = appendNumber(dst, it.n, it.width)
	numbers := it.n
	if it.kind == Object {
		numbers *= 2
	}
	members := b.done[it.first : it.first+numbers]
	end := 0
	for i := range members {
		end += members[i].size
		dst = appendNumber(dst, end, it.width)
	}
	for i := range members {
		dst = b.encode(dst, &members[i], it.kind == Object && i < it.n)
	}
	return dst
}

func appendNumber(dst Value, n int, width uint8) Value {
	for range 1 << width {
		dst = append(dst, byte(n))
		n >>= 8
	}
	return dst
}

// Parse reads a JSON text. poll is NewReader's.
//
// Errors: NewReader's, 22003 a number that numeric cannot hold, 54000 a string or container that is too large.
func Parse(text string, poll func() error) (Value, error) {
	var b Builder
	if err := b.Read(NewReader(text, true, poll)); err != nil {
		return nil, err
	}
	return b.Finish(), nil
}

// Read adds the value that r reads.
func (b *Builder) Read(r *Reader) error {
	for {
		e, err := r.Next()
		if e == End || err != nil {
			return err
		}
		if err := b.Event(e, r); err != nil {
			return err
		}
	}
}

// Event adds an event of r.
func (b *Builder) Event(e Event, r *Reader) error {
	switch e {
	case BeginObject:
		b.BeginObject()
	case BeginArray:
		b.BeginArray()
	case EndObject, EndArray:
		return b.End()
	case Key:
		return b.Key(r.Text())
	case StringEvent:
		return b.String(r.Text())
	case NumberEvent:
		text, err := canonicalNumber(r.Text())
		if err != nil {
			return err
		}
		b.Number(text)
	case TrueEvent:
		b.Value(TrueValue)
	case FalseEvent:
		b.Value(FalseValue)
	case NullEvent:
		b.Value(NullValue)
	}
	return nil
}
