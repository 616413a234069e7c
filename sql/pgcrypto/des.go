package pgcrypto

import (
	"strings"
)

// DES as crypt(3) uses it: the salt swaps halves of the expanded block, so that crypto/des does not do. Bits are numbered from the left,
// from 1 on, as in FIPS 46-3.

var (
	desInitial = [64]byte{
		58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
		57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
	}
	desFinal = [64]byte{
		40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,
		36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27, 34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
	}
	desExpansion = [48]byte{
		32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17,
		16, 17, 18, 19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
	}
	desPermutation = [32]byte{
		16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
	}
	desChoice1 = [56]byte{
		57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
		63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
	}
	desChoice2 = [48]byte{
		14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
		41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
	}
	desRotations = [16]int{1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1}
	desBoxes     = [8][64]byte{
		{
			14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
			4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
		},
		{
			15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
			0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
		},
		{
			10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
			13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
		},
		{
			7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
			10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
		},
		{
			2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
			4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
		},
		{
			12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
			9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
		},
		{
			4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
			1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
		},
		{
			13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
			7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
		},
	}
)

// permute picks bits of a value of the given width.
func permute(v uint64, width int, places []byte) uint64 {
	var out uint64
	for _, p := range places {
		out = out<<1 | v>>(width-int(p))&1
	}
	return out
}

// desKey is the schedule of a key.
type desKey [16]uint64

func newDESKey(key uint64) *desKey {
	k := new(desKey)
	both := permute(key, 64, desChoice1[:])
	c, d := both>>28, both&(1<<28-1)
	for i, n := range desRotations {
		c, d = (c<<n|c>>(28-n))&(1<<28-1), (d<<n|d>>(28-n))&(1<<28-1)
		k[i] = permute(c<<28|d, 56, desChoice2[:])
	}
	return k
}

// desPollRounds is the number of encryptions between two polls: some milliseconds.
const desPollRounds = 64

// encrypt encrypts a block count times.
func (k *desKey) encrypt(block uint64, salt uint32, count int, poll func() error) (uint64, error) {
	var swap uint64 // the salt's lowest bit concerns the first bit of each half
	for i := range 24 {
		swap |= uint64(salt>>i&1) << (23 - i)
	}
	v := permute(block, 64, desInitial[:])
	l, r := v>>32, v&0xffffffff
	for n := range count {
		if n%desPollRounds == 0 {
			if err := poll(); err != nil {
				return 0, err
			}
		}
		for i := range k {
			e := permute(r, 32, desExpansion[:])
			moved := (e>>24 ^ e) & swap
			e ^= moved | moved<<24
			e ^= k[i]
			var s uint64
			for box := range desBoxes {
				six := e >> (42 - 6*box) & 0x3f
				s = s<<4 | uint64(desBoxes[box][six&0x20|(six&1)<<4|six>>1&0xf])
			}
			l, r = r, l^permute(s, 32, desPermutation[:])
		}
		l, r = r, l
	}
	return permute(l<<32|r, 64, desFinal[:]), nil
}

// keyOf returns up to eight characters as a key: seven bits of each.
func keyOf(text string) uint64 {
	var key uint64
	for i := range 8 {
		key <<= 8
		if i < len(text) {
			key |= uint64(text[i]) << 1 & 0xff
		}
	}
	return key
}

// digitsOf reads digits, the lowest bits first; false for other characters.
func digitsOf(text string) (v uint32, ok bool) {
	for i := range len(text) {
		d := strings.IndexByte(crypt64, text[i])
		if d < 0 {
			return 0, false
		}
		v |= uint32(d) << (6 * i)
	}
	return v, true
}

// looseDigit is the value of a salt's character in the traditional form, which takes any.
func looseDigit(c byte) uint32 {
	switch {
	case c > 'z':
	case c >= 'a':
		return uint32(c-'a') + 38
	case c > 'Z':
	case c >= 'A':
		return uint32(c-'A') + 12
	case c > '9':
	case c >= '.':
		return uint32(c - '.')
	}
	return 0
}

// appendBlock appends a block as eleven digits, the highest bits first.
func appendBlock(dst []byte, v uint64) []byte {
	for shift := 58; shift >= 4; shift -= 6 {
		dst = append(dst, crypt64[v>>shift&0x3f])
	}
	return append(dst, crypt64[v<<2&0x3f])
}

// traditionalDES hashes the first eight characters with a salt of two.
func traditionalDES(password, salt string, poll func() error) (string, error) {
	if len(salt) < 2 {
		return "", invalidSalt()
	}
	block, err := newDESKey(keyOf(password)).encrypt(0, looseDigit(salt[1])<<6|looseDigit(salt[0]), 25, poll)
	if err != nil {
		return "", err
	}
	return string(appendBlock([]byte(salt[:2]), block)), nil
}

// extendedDES hashes all characters with a salt of four, as often as the salt says.
func extendedDES(password, salt string, poll func() error) (string, error) {
	if len(salt) < 9 {
		return "", invalidSalt()
	}
	count, ok := digitsOf(salt[1:5])
	bits, also := digitsOf(salt[5:9])
	if !ok || !also || count == 0 {
		return "", invalidSalt()
	}
	key := keyOf(password)
	for len(password) > 8 {
		password = password[8:]
		block, err := newDESKey(key).encrypt(key, 0, 1, poll)
		if err != nil {
			return "", err
		}
		key = block ^ keyOf(password)
	}
	block, err := newDESKey(key).encrypt(0, bits, int(count), poll)
	if err != nil {
		return "", err
	}
	return string(appendBlock([]byte(salt[:9]), block)), nil
}
