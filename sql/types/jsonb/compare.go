package jsonb

import (
	"bytes"
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// rank orders the kinds in arrays and objects: false and true are one.
func rank(k Kind) int {
	if k == True {
		return int(False)
	}
	return int(k)
}

// Rank returns the place of v's kind among values: those of a smaller rank come first. An empty array that is the whole
// value comes before all others.
func (v Value) Rank(top bool) int {
	if top && v.Kind() == Array && v.Len() == 0 {
		return -1
	}
	return rank(v.Kind())
}

// Compare orders two values: negative, zero or positive.
func Compare(a, b Value) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if d := cmp.Compare(a.Rank(true), b.Rank(true)); d != 0 {
		return d
	}
	return compareValues(a, b, 0)
}

func compareValues(a, b Value, depth int) int {
	if d := cmp.Compare(rank(a.Kind()), rank(b.Kind())); d != 0 {
		return d
	}
	switch a.Kind() {
	case Null:
		return 0
	case String:
		return bytes.Compare(a.Text(), b.Text())
	case Number:
		return compareNumbers(a.Text(), b.Text())
	case False, True:
		return cmp.Compare(a.Kind(), b.Kind())
	}
	return compareContainers(a, b, depth+1)
}

func compareContainers(a, b Value, depth int) int {
	x, y := a.open(), b.open()
	if d := cmp.Compare(x.n, y.n); d != 0 || depth > MaxDepth {
		return d
	}
	object := a.Kind() == Object
	for i := range x.n {
		at := i
		if object {
			if d := bytes.Compare(x.part(i), y.part(i)); d != 0 {
				return d
			}
			at = x.n + i
		}
		if d := compareValues(value(x.part(at)), value(y.part(at)), depth); d != 0 {
			return d
		}
	}
	return 0
}

// compareNumbers orders the texts of two numbers by value.
func compareNumbers(a, b []byte) int {
	aSign, aWhole, aFrac := splitNumber(a)
	bSign, bWhole, bFrac := splitNumber(b)
	if aSign != bSign || aSign == 0 {
		return cmp.Compare(aSign, bSign)
	}
	d := cmp.Compare(len(aWhole), len(bWhole))
	if d == 0 {
		d = bytes.Compare(aWhole, bWhole)
	}
	if d == 0 {
		d = bytes.Compare(aFrac, bFrac)
	}
	return d * aSign
}

// Hash hashes v; equal values have equal hashes.
func Hash(v Value) uint64 {
	var h xxhash.Digest
	h.Reset()
	hashValue(&h, v, 0)
	return h.Sum64()
}

func hashValue(h *xxhash.Digest, v Value, depth int) {
	kind := v.Kind()
	head := [9]byte{byte(kind)}
	n := 0
	switch kind {
	case String:
		n = len(v.Text())
	case Number:
		sign, whole, frac := splitNumber(v.Text())
		head[0] = byte(kind) + byte(sign+1)<<widthShift
		putNumber(head[1:], len(whole))
		h.Write(head[:])
		h.Write(whole)
		h.Write(frac)
		return
	case Array, Object:
		n = v.Len()
	}
	putNumber(head[1:], n)
	h.Write(head[:])
	switch {
	case kind == String:
		h.Write(v.Text())
	case kind >= Array && depth < MaxDepth:
		for key, member := range v.Members {
			if kind == Object {
				h.Write(key)
				h.Write(head[:1])
			}
			hashValue(h, member, depth+1)
		}
	}
}

func putNumber(dst []byte, n int) {
	for i := range dst {
		dst[i] = byte(n >> (8 * i))
	}
}

// Contains reports whether a contains b: every member of the object b is contained in the member of a with the same key,
// every element of the array b in one of a's. A whole array may also contain a scalar. step is called with the
// number of comparisons; its error ends the search.
func Contains(a, b Value, step func(int) error) (bool, error) {
	if b.IsContainer() != a.IsContainer() || b.Kind() == Object != (a.Kind() == Object) {
		if a.Kind() != Array || b.IsContainer() {
			return false, nil
		}
		return hasElement(a, b, step, 0)
	}
	if !a.IsContainer() {
		return same(a, b), nil
	}
	return contains(a, b, step, 0)
}

func contains(a, b Value, step func(int) error, depth int) (bool, error) {
	if a.Kind() != b.Kind() || depth > MaxDepth {
		return false, nil
	}
	if b.Kind() == Object {
		if a.Len() < b.Len() {
			return false, nil
		}
		for key, want := range b.Members {
			have, ok := a.Find(string(key))
			if !ok {
				return false, nil
			}
			if ok, err := covers(have, want, step, depth); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for _, want := range b.Members {
		if ok, err := hasElement(a, want, step, depth); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// covers reports whether have equals the scalar want, or contains the container want.
func covers(have, want Value, step func(int) error, depth int) (bool, error) {
	if err := step(1); err != nil {
		return false, err
	}
	if have.IsContainer() && want.IsContainer() {
		return contains(have, want, step, depth+1)
	}
	return same(have, want), nil
}

// hasElement reports whether an element of the array a covers want.
func hasElement(a, want Value, step func(int) error, depth int) (bool, error) {
	for _, have := range a.Members {
		if ok, err := covers(have, want, step, depth); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
