// Package copyformat reads and writes the data formats of COPY: text, csv and binary, as PostgreSQL
// 15's manual has them (reference page COPY, "File Formats"). It knows fields and rows, no types.
//
//	bytes ─▶ Reader ─▶ fields (nil: NULL) ─▶ caller parses      caller prints ─▶ Append… ─▶ bytes
//
// Invariants: a field aliases the reader's buffer and is valid until the next row; a malformed row is
// a *pgerror.Error of code 22P04, never a wrong row.
package copyformat

import (
	"bufio"
	"bytes"
	"io"

	"github.com/percodb/percodb/sql/pgerror"
)

// Format is one of the three.
type Format uint8

// The formats.
const (
	Text Format = iota
	CSV
	Binary
)

// Options are COPY's, checked.
type Options struct {
	Format        Format
	Delimiter     byte
	Null          string
	Header        bool
	HeaderMatch   bool // FROM: the header must name the columns
	Quote, Escape byte
	// By column, nil for none.
	ForceQuote, ForceNotNull, ForceNull []bool
}

// DefaultOptions returns the defaults of a format.
func DefaultOptions(f Format) Options {
	o := Options{Format: f, Delimiter: '\t', Null: `\N`, Quote: '"', Escape: '"'}
	if f == CSV {
		o.Delimiter, o.Null = ',', ""
	}
	return o
}

// maxRowBytes bounds one row; a client that never ends its line must not take all memory.
const maxRowBytes = 256 << 20

// Reader splits a stream into rows of fields.
type Reader interface {
	// Next returns the fields of the next row, io.EOF at the end.
	Next() ([][]byte, error)
	// Line is the number of the row last read, from 1, as error contexts show it.
	Line() int
}

// NewReader reads rows of the given number of columns.
func NewReader(r io.Reader, o Options, columns int) Reader {
	lines := lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	// Fields are cut from these buffers, and only a NULL may be nil.
	const some = 256
	switch o.Format {
	case CSV:
		return &csvReader{lines: lines, opts: o, columns: columns, scratch: make([]byte, 0, some)}
	case Binary:
		return &binaryReader{r: lines.r, columns: columns, buf: make([]byte, 0, some)}
	}
	return &textReader{lines: lines, opts: o, columns: columns}
}

func malformed(format string, args ...any) error {
	return pgerror.New(pgerror.BadCopyFileFormat, format, args...)
}

// lineReader yields lines without their ends (\n or \r\n).
type lineReader struct {
	r    *bufio.Reader
	long []byte // a line that did not fit the buffer
	n    int
}

func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = l.nextLong(line)
	}
	if err == io.EOF && len(line) > 0 {
		err = nil // The last line may lack its end.
	}
	if err != nil {
		return nil, err
	}
	l.n++
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

func (l *lineReader) nextLong(start []byte) ([]byte, error) {
	l.long = append(l.long[:0], start...)
	for {
		more, err := l.r.ReadSlice('\n')
		l.long = append(l.long, more...)
		if len(l.long) > maxRowBytes {
			return nil, pgerror.New(pgerror.ProgramLimitExceeded, "COPY row is longer than %d bytes", maxRowBytes)
		}
		if err != bufio.ErrBufferFull {
			return l.long, err
		}
	}
}

// checkHeader compares a header line with the columns' names.
func checkHeader(fields [][]byte, names []string) error {
	if len(fields) != len(names) {
		return malformed("wrong number of fields in header line: got %d, expected %d", len(fields), len(names))
	}
	for i, name := range names {
		if string(fields[i]) != name {
			return malformed("column name mismatch in header line field %d: got %q, expected %q", i+1, fields[i], name)
		}
	}
	return nil
}

// ReadHeader takes the header row where the options call for one.
func ReadHeader(r Reader, o Options, names []string) error {
	if !o.Header || o.Format == Binary {
		return nil
	}
	type header interface{ header() ([][]byte, error) }
	fields, err := r.(header).header()
	if err == io.EOF {
		return nil
	}
	if err != nil || !o.HeaderMatch {
		return err
	}
	return checkHeader(fields, names)
}
