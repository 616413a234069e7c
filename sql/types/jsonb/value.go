package jsonb

import (
	"bytes"
	"cmp"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds, in the order of values in arrays and objects.
const (
	Null Kind = iota
	String
	Number
	False
	True
	Array
	Object
)

// Value is an encoded value. It must not be changed.
type Value []byte

// The parts of a value's first byte.
const (
	kindMask   = 7
	widthShift = 3
	widthMask  = 3
	deepFlag   = 1 << 5
)

// The values without content; they must not be changed.
var (
	NullValue  = Value{byte(Null)}
	TrueValue  = Value{byte(True)}
	FalseValue = Value{byte(False)}
)

// BoolValue returns true or false.
func BoolValue(b bool) Value {
	if b {
		return TrueValue
	}
	return FalseValue
}

// StringValue returns s as a value. Errors: 54000 if it is too long.
func StringValue(s string) (Value, error) {
	if err := checkString(len(s)); err != nil {
		return nil, err
	}
	return append(append(make(Value, 0, 1+len(s)), byte(String)), s...), nil
}

// NumberValue returns the number with a text form of numeric.
func NumberValue(text []byte) Value {
	return append(append(make(Value, 0, 1+len(text)), byte(Number)), text...)
}

// Kind returns v's kind.
func (v Value) Kind() Kind {
	if len(v) == 0 || v[0]&kindMask > byte(Object) {
		return Null
	}
	return Kind(v[0] & kindMask)
}

// IsContainer reports whether v is an array or an object.
func (v Value) IsContainer() bool { return v.Kind() >= Array }

// Text returns the bytes of a string, or the text form of a number.
func (v Value) Text() []byte { return v[1:] }

// depth returns the nesting: 0 for scalars.
func (v Value) depth() int {
	switch {
	case !v.IsContainer():
		return 0
	case v[0]&deepFlag == 0:
		return 1
	case len(v) < 3:
		return 0
	}
	return int(v[1]) | int(v[2])<<8
}

// container is an opened array or object.
type container struct {
	n     int    // elements or pairs
	width int    // bytes of a number
	ends  []byte // the table
	data  []byte
}

// open reads v's table; it is empty for scalars and damaged values.
func (v Value) open() container {
	if !v.IsContainer() {
		return container{}
	}
	c := container{width: 1 << (v[0] >> widthShift & widthMask)}
	rest := []byte(v[1:])
	if v[0]&deepFlag != 0 {
		rest = rest[min(2, len(rest)):]
	}
	if c.width > 4 || len(rest) < c.width {
		return container{}
	}
	n := number(rest, c.width)
	rest = rest[c.width:]
	numbers := n
	if v.Kind() == Object {
		numbers = 2 * n
	}
	if n > len(rest) || numbers*c.width > len(rest) {
		return container{}
	}
	c.n, c.ends, c.data = n, rest[:numbers*c.width], rest[numbers*c.width:]
	return c
}

func number(b []byte, width int) int {
	switch width {
	case 1:
		return int(b[0])
	case 2:
		return int(b[0]) | int(b[1])<<8
	}
	return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
}

// part returns the ith key or element of the table.
func (c *container) part(i int) []byte {
	from, to := 0, number(c.ends[i*c.width:], c.width)
	if i > 0 {
		from = number(c.ends[(i-1)*c.width:], c.width)
	}
	if from > to || to > len(c.data) {
		return nil
	}
	return c.data[from:to:to]
}

// Len returns the number of an array's elements or an object's members, 0 for scalars.
func (v Value) Len() int {
	c := v.open()
	return c.n
}

// Elem returns the ith element of an array, 0 ≤ i < Len.
func (v Value) Elem(i int) Value {
	c := v.open()
	if i >= c.n {
		return NullValue
	}
	return value(c.part(i))
}

// value returns b, or null for what is damaged.
func value(b []byte) Value {
	if len(b) == 0 {
		return NullValue
	}
	return b
}

// Member returns the ith key (nil in arrays) and value of a container; false if there are fewer.
func (v Value) Member(i int) (key []byte, member Value, ok bool) {
	c := v.open()
	switch {
	case i >= c.n:
		return nil, nil, false
	case v.Kind() == Object:
		return c.part(i), value(c.part(c.n + i)), true
	}
	return nil, value(c.part(i)), true
}

// Members iterates over a container: it yields the key (nil in arrays) and the value of each member, in order.
func (v Value) Members(yield func(key []byte, member Value) bool) {
	c := v.open()
	object := v.Kind() == Object
	for i := range c.n {
		if !object {
			if !yield(nil, value(c.part(i))) {
				return
			}
			continue
		}
		if !yield(c.part(i), value(c.part(c.n+i))) {
			return
		}
	}
}

// Find returns the member of an object with a key.
func (v Value) Find(key string) (Value, bool) {
	if v.Kind() != Object {
		return nil, false
	}
	c := v.open()
	low, high := 0, c.n
	for low < high {
		mid := (low + high) / 2
		switch d := compareKeys(c.part(mid), key); {
		case d == 0:
			return value(c.part(c.n + mid)), true
		case d < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return nil, false
}

// compareKeys orders keys as they are stored: by length, then by bytes.
func compareKeys[A, B string | []byte](a A, b B) int {
	if d := cmp.Compare(len(a), len(b)); d != 0 {
		return d
	}
	return cmp.Compare(string(a), string(b))
}

// At returns the ith element of an array, from the end if i is negative.
func (v Value) At(i int64) (Value, bool) {
	if v.Kind() != Array {
		return nil, false
	}
	n := int64(v.Len())
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	return v.Elem(int(i)), true
}

// HasString reports whether s is an element of an array, a key of an object, or v itself.
func (v Value) HasString(s string) bool {
	switch v.Kind() {
	case String:
		return string(v.Text()) == s
	case Object:
		_, ok := v.Find(s)
		return ok
	}
	for _, e := range v.Members {
		if e.Kind() == String && string(e.Text()) == s {
			return true
		}
	}
	return false
}

// same reports whether two scalars are equal.
func same(a, b Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case Number:
		return compareNumbers(a.Text(), b.Text()) == 0
	case String:
		return bytes.Equal(a, b)
	}
	return true
}
