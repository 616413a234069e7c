package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Pebble writes logs and manifests as records, and a record as one or more chunks that do not cross
// the bounds of blocks. A chunk is checksum(4) length(2) encoding(1), then, by encoding, log number(4)
// and synced offset(8), then its share of the record. A log that was closed ends with a chunk of the
// next log's number; zeros fill a block whose rest is too short for a chunk.
const (
	chunkBlock     = 32 << 10
	chunkHeader    = 7
	chunkLogNumber = 4
	chunkSyncedTo  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of chunks.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// chunkKind is the kind of a chunk according to its encoding.
type chunkKind struct {
	header int  // its length; 0: no chunk
	first  bool // begins a record
	last   bool // ends a record
}

func kindOf(encoding byte) chunkKind {
	if encoding == 0 || encoding > 12 {
		return chunkKind{}
	}
	header := [...]int{chunkHeader, chunkHeader + chunkLogNumber, chunkHeader + chunkLogNumber + chunkSyncedTo}[(encoding-1)/4]
	position := (encoding - 1) % 4 // full, first, middle, last
	return chunkKind{header: header, first: position <= 1, last: position == 0 || position == 3}
}

// readable is the readable part of a file of records.
type readable struct {
	chunks  int64 // the end of its last chunk
	records int64 // the end of its last whole record
	closed  bool  // its last chunk is the one with which a closed log ends
}

// readChunks reads a file of records up to its end, or to the first invalid chunk. An error is one of r.
func readChunks(r io.Reader, number uint64) (end readable, err error) {
	buf := make([]byte, chunkBlock)
	for block := int64(0); ; block++ {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return end, fmt.Errorf("read block %d: %w", block, err)
		}
		more := readBlock(buf[:n], block*chunkBlock, number, &end)
		if !more || n < chunkBlock {
			return end, nil
		}
	}
}

// readBlock reads the chunks of a block that begins at offset base, and reports whether more may follow.
func readBlock(b []byte, base int64, number uint64, end *readable) (more bool) {
	longest := chunkHeader + chunkLogNumber + chunkSyncedTo
	at := 0
	for at+chunkHeader <= len(b) {
		kind := kindOf(b[at+6])
		if kind.header == 0 || at+kind.header > len(b) {
			break
		}
		if kind.header > chunkHeader {
			if n := binary.LittleEndian.Uint32(b[at+chunkHeader:]); n != uint32(number) {
				if n == uint32(number)+1 {
					*end = readable{chunks: base + int64(at+kind.header), records: end.records, closed: true}
				}
				return false
			}
		}
		next := at + kind.header + int(binary.LittleEndian.Uint16(b[at+4:]))
		if next > len(b) || binary.LittleEndian.Uint32(b[at:]) != maskedCRC(b[at+6:next]) {
			return false
		}
		at = next
		end.chunks = base + int64(at)
		if kind.last {
			end.records = end.chunks
		}
	}
	if len(b) < chunkBlock || chunkBlock-at >= longest {
		return false
	}
	for _, fill := range b[at:] {
		if fill != 0 {
			return false
		}
	}
	if end.records == end.chunks {
		end.records = base + chunkBlock
	}
	end.chunks = base + chunkBlock
	return true
}
