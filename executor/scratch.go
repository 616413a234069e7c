package executor

import (
	"github.com/percodb/percodb/internal/invariants"
	"github.com/percodb/percodb/sql/types"
)

// maxScratchBytes bounds what a Scratch keeps.
const maxScratchBytes = 512 << 10

// Scratch keeps memory between statements: the chunks into which sorts, joins and groups copied their rows. A session
// has one and passes it to every Runtime; without it each statement allocates chunks, which are expensive to allocate,
// to clear and to collect. The zero Scratch is ready. Not safe for concurrent use.
type Scratch struct {
	datums [][]types.Datum
	bytes  [][]byte
	size   int64
}

// takeDatums returns a chunk of at least n and at most limit datums, or nil. Its datums are to be
// overwritten.
func (s *Scratch) takeDatums(n, limit int) []types.Datum {
	if s == nil || len(s.datums) == 0 {
		return nil
	}
	last := len(s.datums) - 1
	chunk := s.datums[last]
	if len(chunk) < n || len(chunk) > limit {
		return nil
	}
	s.datums[last] = nil
	s.datums = s.datums[:last]
	s.size -= int64(len(chunk)) * datumBytes
	return chunk
}

// takeBytes is takeDatums for bytes: length 0, capacity within the bounds.
func (s *Scratch) takeBytes(n, limit int) []byte {
	if s == nil || len(s.bytes) == 0 {
		return nil
	}
	last := len(s.bytes) - 1
	chunk := s.bytes[last]
	if cap(chunk) < n || cap(chunk) > limit {
		return nil
	}
	s.bytes[last] = nil
	s.bytes = s.bytes[:last]
	s.size -= int64(cap(chunk))
	return chunk
}

// giveDatums takes a chunk back of which the first used datums were written.
func (s *Scratch) giveDatums(chunk []types.Datum, used int) {
	n := int64(len(chunk)) * datumBytes
	if s == nil || n == 0 || s.size+n > maxScratchBytes {
		return
	}
	clear(chunk[:used]) // release the memory that the datums pointed to
	if invariants.Enabled {
		for i := range chunk {
			chunk[i] = scribble
		}
	}
	s.datums = append(s.datums, chunk)
	s.size += n
}

// giveBytes takes a chunk back.
func (s *Scratch) giveBytes(chunk []byte) {
	n := int64(cap(chunk))
	if s == nil || n == 0 || s.size+n > maxScratchBytes {
		return
	}
	if invariants.Enabled {
		for i := range chunk {
			chunk[i] = 0xDD
		}
	}
	s.bytes = append(s.bytes, chunk[:0])
	s.size += n
}
