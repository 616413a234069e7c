package executor

import (
	"unsafe"

	"github.com/percodb/percodb/sql/types"
)

const (
	datumBytes  = int64(unsafe.Sizeof(types.Datum{}))
	headerBytes = int64(unsafe.Sizeof(types.Row{}))
	// Chunks start small, so that a join of a few rows stays cheap, and double up to a size that
	// makes the allocator's share per row negligible.
	firstChunkDatums = 8
	maxChunkDatums   = 4096
	firstChunkBytes  = 64
	maxChunkBytes    = 64 << 10
)

// rowBuffer keeps copies of rows, accounted for. Rows stay valid until reset or release; datums and
// bytes are carved from chunks, so keeping a row costs a fraction of an allocation.
type rowBuffer struct {
	mem    *statementMemory
	rows   []types.Row
	chunk  []types.Datum // the current chunk
	datums []types.Datum // the unused rest of it
	bytes  []byte        // the current chunk of bytes: length used, capacity whole
	held   int64         // booked with mem
	nextD  int
	nextB  int
	// escapes: rows may be referred to after reset and release, so that chunks are not used again.
	escapes bool
}

// add keeps a copy of row.
func (b *rowBuffer) add(row types.Row) error {
	kept, err := b.keep(row)
	if err != nil {
		return err
	}
	b.rows = append(b.rows, kept)
	return nil
}

// keep copies row into the buffer's chunks without listing it among rows.
func (b *rowBuffer) keep(row types.Row) (types.Row, error) {
	kept, err := b.alloc(len(row))
	if err != nil {
		return nil, err
	}
	for i := range row {
		if kept[i], err = b.datum(row[i]); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// alloc carves out a row of n datums, to be overwritten.
func (b *rowBuffer) alloc(n int) (types.Row, error) {
	if n == 0 {
		return types.Row{}, b.book(headerBytes) // nil would mean the end
	}
	if len(b.datums) < n {
		limit := b.maxChunk() / int(datumBytes)
		chunk := b.mem.scratch.takeDatums(n, limit)
		if chunk == nil {
			b.nextD = min(max(2*b.nextD, firstChunkDatums), maxChunkDatums, limit)
			chunk = make([]types.Datum, max(b.nextD, n))
		}
		if err := b.book(int64(len(chunk)) * datumBytes); err != nil {
			return nil, err
		}
		b.chunk, b.datums = chunk, chunk
	}
	row := b.datums[:n:n]
	b.datums = b.datums[n:]
	if err := b.book(headerBytes); err != nil {
		return nil, err
	}
	return row, nil
}

// datum copies the bytes that d points to, unless they are immutable.
func (b *rowBuffer) datum(d types.Datum) (types.Datum, error) {
	switch d.Kind() {
	case types.KindBytes:
		kept, err := b.copyBytes(d.Bytes())
		return types.Bytes(kept), err
	case types.KindDecimal, types.KindInterval:
		return d, b.book(int64(d.Size()))
	case types.KindArray, types.KindRow, types.KindRange:
		return d.Clone(), b.book(int64(d.Size()))
	}
	return d, nil
}

// copyBytes copies src into the current chunk, or into a separate one if it is large.
func (b *rowBuffer) copyBytes(src []byte) ([]byte, error) {
	n := len(src)
	if n > cap(b.bytes)-len(b.bytes) {
		if n > maxChunkBytes/4 {
			if err := b.book(int64(n)); err != nil {
				return nil, err
			}
			return append([]byte(nil), src...), nil
		}
		chunk := b.mem.scratch.takeBytes(n, b.maxChunk())
		if chunk == nil {
			b.nextB = min(max(2*b.nextB, firstChunkBytes), maxChunkBytes, b.maxChunk())
			chunk = make([]byte, 0, max(b.nextB, n))
		}
		if err := b.book(int64(cap(chunk))); err != nil {
			return nil, err
		}
		b.bytes = chunk
	}
	at := len(b.bytes)
	b.bytes = append(b.bytes, src...)
	return b.bytes[at:len(b.bytes):len(b.bytes)], nil
}

// maxChunk keeps chunks small relative to the limit, so that little of it is reserved in vain.
func (b *rowBuffer) maxChunk() int { return int(b.mem.limit / 32) }

func (b *rowBuffer) book(n int64) error {
	if err := b.mem.grow(n); err != nil {
		return err
	}
	b.held += n
	return nil
}

// reset drops the rows and keeps the list and the chunks' size class for the next use.
func (b *rowBuffer) reset() {
	if b.mem == nil {
		return
	}
	if !b.escapes {
		b.mem.scratch.giveDatums(b.chunk, len(b.chunk)-len(b.datums))
		b.mem.scratch.giveBytes(b.bytes)
	}
	clear(b.rows)
	b.rows = b.rows[:0]
	b.chunk, b.datums, b.bytes = nil, nil, nil
	b.mem.shrink(b.held)
	b.held = 0
}

// release is reset that also frees the memory.
func (b *rowBuffer) release() {
	b.reset()
	*b = rowBuffer{mem: b.mem, escapes: b.escapes}
}
