// Package copyformat reads and writes the data formats of COPY: text, csv and binary, as PostgreSQL
// 15's manual has them (reference page COPY, "File Formats"). It knows fields and rows, no types.
//
//	bytes ─▶ Reader ─▶ fields (nil: NULL) ─▶ caller parses      caller prints ─▶ Append… ─▶ bytes
//
// Invariants: a field aliases the reader's buffer and is valid until the next row; a malformed row is
// a *pgerror.Error of code 22P04, never a wrong row; buffers for long rows draw from the caller's account.
package copyformat

import (
	"bufio"
	"io"

	"github.com/percodb/percodb/internal/memory"
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
	// Next returns the fields of the next row, io.EOF at the end. In the text formats a row may have fewer fields than
	// columns, never more: PostgreSQL reports a value that cannot be read before a column that is missing.
	Next() ([][]byte, error)
	// Line is the number of the row last read, from 1, as error contexts show it.
	Line() int
	// Close gives back what the buffers have drawn. The fields of the last row are invalid then.
	Close()
}

// NewReader reads rows of the given number of columns. Buffers for long rows draw from account; nil: nothing bounds them.
func NewReader(r io.Reader, o Options, columns int, account *memory.Account) Reader {
	buffered := bufio.NewReaderSize(r, 64<<10)
	switch o.Format {
	case CSV:
		return &csvReader{lines: newLineReader(buffered, account), opts: o, columns: columns, scratch: newRowBuffer(account)}
	case Binary:
		return &binaryReader{r: buffered, columns: columns, buf: newRowBuffer(account)}
	}
	return &textReader{lines: newLineReader(buffered, account), opts: o, columns: columns, scratch: newRowBuffer(account)}
}

func malformed(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.BadCopyFileFormat, format, args...)
}

// checkHeader compares a header line, which has count fields, with the columns' names.
func checkHeader(fields [][]byte, count int, names []string) error {
	if count != len(names) {
		return malformed("wrong number of fields in header line: got %d, expected %d", count, len(names))
	}
	for i, name := range names {
		if i >= len(fields) || string(fields[i]) != name {
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
	type header interface {
		header() (fields [][]byte, count int, err error)
	}
	fields, count, err := r.(header).header()
	switch {
	case err == io.EOF && o.HeaderMatch:
		return checkHeader(nil, 1, names) // An empty line has one field.
	case err == io.EOF:
		return nil
	case err != nil || !o.HeaderMatch:
		return err
	}
	return checkHeader(fields, count, names)
}
