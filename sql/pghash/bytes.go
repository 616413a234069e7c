// Package pghash computes PostgreSQL's hashes of values: those of its hash operator classes, by which it divides rows among hash partitions and
// which its hash functions return. Nothing else in percodb depends on them.
package pghash

import (
	"encoding/binary"
	"math/bits"
)

// Bytes are hashed by Bob Jenkins' lookup3, in its little-endian form. A seed of 0 leaves the state as it is without one.

type hashState struct{ a, b, c uint32 }

func newHashState(length int, seed uint64) hashState {
	n := 0x9e3779b9 + uint32(length) + 3923095
	s := hashState{n, n, n}
	if seed != 0 {
		s.a += uint32(seed >> 32)
		s.b += uint32(seed)
		s.mix()
	}
	return s
}

func (s *hashState) mix() {
	a, b, c := s.a, s.b, s.c
	a, c = a-c^bits.RotateLeft32(c, 4), c+b
	b, a = b-a^bits.RotateLeft32(a, 6), a+c
	c, b = c-b^bits.RotateLeft32(b, 8), b+a
	a, c = a-c^bits.RotateLeft32(c, 16), c+b
	b, a = b-a^bits.RotateLeft32(a, 19), a+c
	c, b = c-b^bits.RotateLeft32(b, 4), b+a
	s.a, s.b, s.c = a, b, c
}

func (s *hashState) final() {
	a, b, c := s.a, s.b, s.c
	c = c ^ b - bits.RotateLeft32(b, 14)
	a = a ^ c - bits.RotateLeft32(c, 11)
	b = b ^ a - bits.RotateLeft32(a, 25)
	c = c ^ b - bits.RotateLeft32(b, 16)
	a = a ^ c - bits.RotateLeft32(c, 4)
	b = b ^ a - bits.RotateLeft32(a, 14)
	c = c ^ b - bits.RotateLeft32(b, 24)
	s.a, s.b, s.c = a, b, c
}

// hashBytes is hash_bytes_extended; its lower half is hash_bytes if the seed is 0.
func hashBytes(k []byte, seed uint64) uint64 {
	s := newHashState(len(k), seed)
	for ; len(k) >= 12; k = k[12:] {
		s.a += binary.LittleEndian.Uint32(k)
		s.b += binary.LittleEndian.Uint32(k[4:])
		s.c += binary.LittleEndian.Uint32(k[8:])
		s.mix()
	}
	var rest [12]byte
	copy(rest[:8], k)
	if len(k) > 8 {
		copy(rest[9:], k[8:]) // The lowest byte of c is reserved for the length.
	}
	s.a += binary.LittleEndian.Uint32(rest[:])
	s.b += binary.LittleEndian.Uint32(rest[4:])
	s.c += binary.LittleEndian.Uint32(rest[8:])
	s.final()
	return uint64(s.b)<<32 | uint64(s.c)
}

// hashUint32 is hash_bytes_uint32_extended; its lower half is hash_bytes_uint32 if the seed is 0.
func hashUint32(k uint32, seed uint64) uint64 {
	s := newHashState(4, seed)
	s.a += k
	s.final()
	return uint64(s.b)<<32 | uint64(s.c)
}

// hashInt64 hashes an integer of any width alike: a small one as hashUint32 does.
func hashInt64(v int64, seed uint64) uint64 {
	low, high := uint32(v), uint32(v>>32)
	if v < 0 {
		high = ^high
	}
	return hashUint32(low^high, seed)
}

// rotateHash rotates the state of a hash of several values: each half of 64 bits by itself.
func rotateHash(h uint64, extended bool) uint64 {
	if !extended {
		return uint64(bits.RotateLeft32(uint32(h), 1))
	}
	return h<<1&0xfffffffefffffffe | h>>31&0x100000001
}
