package messages

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// message is one of the client's, as bytes.
type message []byte

// mutate returns a damaged copy of m. others are messages that parts are taken from.
func mutate(rng *rand.Rand, m message, others []message) message {
	m = slices.Clone(m)
	for range 1 + rng.IntN(3) {
		m = mutateOnce(rng, m, others)
	}
	return m
}

func mutateOnce(rng *rand.Rand, m message, others []message) message {
	if len(m) == 0 {
		return append(m, byte(rng.Uint32()))
	}
	at := rng.IntN(len(m))
	switch rng.IntN(11) {
	case 0: // a bit
		m[at] ^= 1 << rng.IntN(8)
	case 1: // a byte
		m[at] = byte(rng.Uint32())
	case 2: // a byte that often ends or begins something
		m[at] = []byte{0, 0xff, 0x7f, 0x80, '\'', '"', ';', '$', '(', '\n'}[rng.IntN(10)]
	case 3: // cut off
		m = m[:at]
	case 4: // a part twice
		end := min(len(m), at+1+rng.IntN(16))
		m = slices.Insert(m, at, m[at:end]...)
	case 5: // a part removed
		m = slices.Delete(m, at, min(len(m), at+1+rng.IntN(8)))
	case 6: // bytes inserted
		noise := make([]byte, 1+rng.IntN(32))
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		m = slices.Insert(m, at, noise...)
	case 7: // a number of four bytes, such as a length
		if at+4 <= len(m) {
			binary.BigEndian.PutUint32(m[at:], interesting(rng))
		}
	case 8: // a number of two bytes, such as a count
		if at+2 <= len(m) {
			binary.BigEndian.PutUint16(m[at:], uint16(interesting(rng)))
		}
	case 9: // the message's own length, which follows its type
		if len(m) >= 5 {
			binary.BigEndian.PutUint32(m[1:], interesting(rng))
		}
	default: // the end of another message
		other := others[rng.IntN(len(others))]
		m = append(m[:at], other[rng.IntN(len(other)+1):]...)
	}
	return m
}

// interesting returns a number at which lengths and counts tend to be mistaken.
func interesting(rng *rand.Rand) uint32 {
	numbers := []uint32{0, 1, 3, 4, 5, 8, 255, 256, 10_000, 10_001, 32_767, 32_768, 65_535, 65_536, 1 << 20, 1 << 28, 1<<30 - 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	return numbers[rng.IntN(len(numbers))] + uint32(rng.IntN(3)) - 1
}
