package builtin

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// Rand is the state of random(): PostgreSQL 15's generator (xoroshiro128**, Blackman and Vigna 2018), so that a seed
// gives the same sequence. Not safe for concurrent use.
type Rand struct{ s0, s1 uint64 }

// NewRand returns a generator seeded from the system.
func NewRand() *Rand {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return &Rand{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]) | 1}
}

// Seed implements setseed: seed is between -1 and 1.
func (r *Rand) Seed(seed float64) {
	state := uint64(int64(float64(1<<52-1) * seed))
	r.s0 = splitMix(&state)
	r.s1 = splitMix(&state)
	if r.s0 == 0 && r.s1 == 0 {
		r.s0, r.s1 = 0x5851F42D4C957F2D, 0x14057B7EF767814F
	}
}

func splitMix(state *uint64) uint64 {
	*state += 0x9E3779B97F4A7C15
	v := *state
	v = (v ^ v>>30) * 0xBF58476D1CE4E5B9
	v = (v ^ v>>27) * 0x94D049BB133111EB
	return v ^ v>>31
}

func (r *Rand) next() uint64 {
	a, x := r.s0, r.s1^r.s0
	v := bits.RotateLeft64(a*5, 7) * 9
	r.s0 = bits.RotateLeft64(a, 24) ^ x ^ x<<16
	r.s1 = bits.RotateLeft64(x, 37)
	return v
}

// Float64 implements random(): at least 0, less than 1.
func (r *Rand) Float64() float64 { return float64(r.next()>>12) / (1 << 52) }
