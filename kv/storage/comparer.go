package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// sentinel ends every prefix.
	sentinel = 0x00
	// suffixLen is the length of a version suffix: eight bytes and the byte with its length.
	suffixLen = 9
	// comparerName is written into every file by Pebble; opening with another name fails.
	comparerName = "percodb.v1"
)

var errMalformedKey = errors.New("storage: malformed key")

// AppendSentinel ends a prefix. The result is then a plain key.
func AppendSentinel(dst []byte) []byte { return append(dst, sentinel) }

// AppendVersion appends to a prefix (sentinel included) the suffix of a version. Larger versions
// come first.
func AppendVersion(dst []byte, version uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, ^version)
	return append(dst, suffixLen)
}

// SplitVersion splits a versioned key into its prefix, sentinel included, and its version; ok is
// false for a plain or malformed key.
func SplitVersion(key []byte) (prefix []byte, version uint64, ok bool) {
	n := len(key) - suffixLen
	if n <= 0 || key[n+suffixLen-1] != suffixLen {
		return nil, 0, false
	}
	return key[:n], ^binary.BigEndian.Uint64(key[n:]), true
}

// split returns the length of the prefix of key.
func split(key []byte) int {
	n := len(key)
	if n == 0 {
		return 0
	}
	// A last byte that cannot be a length counts as the end of a prefix, so that no input panics.
	if suffix := int(key[n-1]); suffix == suffixLen && suffix <= n {
		return n - suffixLen
	}
	return n
}

// Compare is the order of stored keys.
func Compare(a, b []byte) int { return compare(a, b) }

func compare(a, b []byte) int {
	an, bn := split(a), split(b)
	if c := bytes.Compare(a[:an], b[:bn]); c != 0 {
		return c
	}
	return bytes.Compare(a[an:], b[bn:])
}

// abbreviate returns the first eight bytes of the prefix, which decide most comparisons.
func abbreviate(key []byte) uint64 {
	key = key[:split(key)]
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var v uint64
	for _, b := range key {
		v = v<<8 | uint64(b)
	}
	return v << (8 * (8 - uint(len(key))))
}

// separator appends a key k with a <= k < b, a short one where it can: index blocks hold these.
func separator(dst, a, b []byte) []byte {
	ap, bp := a[:split(a)], b[:split(b)]
	i := 0
	for i < len(ap) && i < len(bp) && ap[i] == bp[i] {
		i++
	}
	if i == len(ap) || i == len(bp) || ap[i] > bp[i] {
		return append(dst, a...)
	}
	if ap[i]+1 < bp[i] {
		return appendShortened(dst, a, ap, i)
	}
	// ap[i] must stay; a later byte may grow without reaching b.
	for i++; i < len(ap) && ap[i] == 0xff; i++ {
	}
	return appendShortened(dst, a, ap, i)
}

// successor appends a short key k >= a.
func successor(dst, a []byte) []byte {
	ap := a[:split(a)]
	i := 0
	for i < len(ap) && ap[i] == 0xff {
		i++
	}
	if len(a) == 0 {
		return append(dst, sentinel)
	}
	return appendShortened(dst, a, ap, i)
}

// appendShortened appends ap[:i] ‖ ap[i]+1 ‖ sentinel if that is shorter than a, else a itself.
func appendShortened(dst, a, ap []byte, i int) []byte {
	if i >= len(ap) || i+2 >= len(a) {
		return append(dst, a...)
	}
	dst = append(dst, ap[:i]...)
	return append(dst, ap[i]+1, sentinel)
}

func validateKey(key []byte) error {
	n := len(key)
	if n > 0 && (key[n-1] == sentinel || key[n-1] == suffixLen && n >= suffixLen) {
		return nil
	}
	return fmt.Errorf("%w %x", errMalformedKey, key)
}

// newComparer returns the order that the package comment describes.
func newComparer() *pebble.Comparer {
	return &pebble.Comparer{
		Name:                 comparerName,
		Split:                split,
		Compare:              compare,
		Equal:                bytes.Equal,
		ComparePointSuffixes: bytes.Compare,
		CompareRangeSuffixes: bytes.Compare,
		AbbreviatedKey:       abbreviate,
		Separator:            separator,
		Successor:            successor,
		ImmediateSuccessor:   func(dst, a []byte) []byte { return append(append(dst, a...), sentinel) },
		ValidateKey:          validateKey,
	}
}
