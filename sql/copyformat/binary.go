package copyformat

import (
	"bufio"
	"encoding/binary"
	"io"
)

// signature begins every binary COPY stream.
const signature = "PGCOPY\n\xff\r\n\x00"

// binaryReader reads the binary format.
type binaryReader struct {
	r       *bufio.Reader
	columns int
	n       int
	begun   bool
	fields  [][]byte
	buf     rowBuffer
	ends    []int
}

func (b *binaryReader) Line() int { return b.n }

func (b *binaryReader) Close() { b.buf.release() }

func (b *binaryReader) Next() ([][]byte, error) {
	if !b.begun {
		if err := b.readHeader(); err != nil {
			return nil, err
		}
		b.begun = true
	}
	var head [2]byte
	if _, err := io.ReadFull(b.r, head[:]); err == io.EOF {
		return nil, io.EOF // A stream may end without the trailer, and pgx's do.
	} else if err != nil {
		return nil, unexpected(err)
	}
	count := int(int16(binary.BigEndian.Uint16(head[:])))
	if count == -1 {
		return nil, b.expectEnd()
	}
	b.n++
	if count != b.columns {
		return nil, malformed("row field count is %d, expected %d", count, b.columns)
	}
	return b.readFields()
}

func (b *binaryReader) readHeader() error {
	var head [len(signature) + 8]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil || string(head[:len(signature)]) != signature {
		return malformed("COPY file signature not recognized")
	}
	flags := binary.BigEndian.Uint32(head[len(signature):])
	if flags>>16 != 0 {
		return malformed("unrecognized critical flags in COPY file header")
	}
	extension := binary.BigEndian.Uint32(head[len(signature)+4:])
	if _, err := io.CopyN(io.Discard, b.r, int64(extension)); err != nil {
		return malformed("invalid COPY file header (wrong length)")
	}
	return nil
}

// expectEnd takes what follows the trailer: nothing.
func (b *binaryReader) expectEnd() error {
	switch _, err := b.r.ReadByte(); err {
	case nil:
		return malformed("received copy data after EOF marker")
	default:
		return err
	}
}

func (b *binaryReader) readFields() ([][]byte, error) {
	b.buf.b, b.ends = b.buf.b[:0], b.ends[:0]
	for range b.columns {
		var head [4]byte
		if _, err := io.ReadFull(b.r, head[:]); err != nil {
			return nil, unexpected(err)
		}
		n := int(int32(binary.BigEndian.Uint32(head[:])))
		if n == -1 {
			b.ends = append(b.ends, -1)
			continue
		}
		if n < 0 {
			return nil, malformed("invalid field size")
		}
		if len(b.buf.b)+n > maxRowBytes {
			return nil, errRowTooLong()
		}
		if err := b.readField(n); err != nil {
			return nil, unexpected(err)
		}
		b.ends = append(b.ends, len(b.buf.b))
	}
	b.fields = b.fields[:0]
	start := 0
	for _, end := range b.ends {
		if end < 0 {
			b.fields = append(b.fields, nil)
			continue
		}
		b.fields = append(b.fields, b.buf.b[start:end:end])
		start = end
	}
	return b.fields, nil
}

// readField appends n bytes to buf, in steps, so that a size alone takes no memory.
func (b *binaryReader) readField(n int) error {
	for n > 0 {
		step := min(n, b.r.Size())
		start := len(b.buf.b)
		if err := b.buf.grow(step); err != nil {
			return err
		}
		b.buf.b = b.buf.b[:start+step]
		if _, err := io.ReadFull(b.r, b.buf.b[start:]); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// unexpected turns the end of the stream inside a row into an error of the format.
func unexpected(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return malformed("unexpected EOF in COPY data")
	}
	return err
}

// AppendBinaryHeader and AppendBinaryTrailer frame a binary stream.
func AppendBinaryHeader(dst []byte) []byte {
	return append(append(dst, signature...), 0, 0, 0, 0, 0, 0, 0, 0)
}

// AppendBinaryTrailer ends a binary stream.
func AppendBinaryTrailer(dst []byte) []byte { return append(dst, 0xff, 0xff) }
