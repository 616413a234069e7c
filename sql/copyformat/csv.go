package copyformat

import (
	"bytes"
	"io"
)

// csvReader reads the csv format: quoted fields may hold delimiters and line ends; an unquoted field
// equal to the NULL string is NULL.
type csvReader struct {
	lines   lineReader
	opts    Options
	columns int
	fields  [][]byte
	ends    []fieldEnd
	scratch []byte
}

// fieldEnd says where a field ends in scratch. Fields are cut out only when the record is complete,
// because scratch may move while it grows.
type fieldEnd struct {
	end    int
	quoted bool
}

func (c *csvReader) Line() int { return c.lines.n }

func (c *csvReader) header() ([][]byte, error) { return c.row(false) }

func (c *csvReader) Next() ([][]byte, error) {
	fields, err := c.row(true)
	if err != nil {
		return nil, err
	}
	switch {
	case len(fields) > c.columns:
		return nil, malformed("extra data after last expected column")
	case len(fields) < c.columns:
		return nil, malformed("missing data for column %d", len(fields)+1)
	}
	return fields, nil
}

func (c *csvReader) row(data bool) ([][]byte, error) {
	line, err := c.lines.next()
	if err != nil {
		return nil, err
	}
	if data && string(line) == `\.` {
		return nil, io.EOF
	}
	c.scratch, c.ends = c.scratch[:0], c.ends[:0]
	quoted, inQuotes := false, false
	for {
		inQuotes, quoted = c.scan(line, inQuotes, quoted)
		if !inQuotes {
			break
		}
		// The line's end belongs to the quoted field.
		c.scratch = append(c.scratch, '\n')
		if len(c.scratch) > maxRowBytes {
			return nil, malformed("unterminated CSV quoted field")
		}
		if line, err = c.lines.next(); err == io.EOF {
			return nil, malformed("unterminated CSV quoted field")
		} else if err != nil {
			return nil, err
		}
	}
	c.ends = append(c.ends, fieldEnd{len(c.scratch), quoted})
	return c.cut(data), nil
}

// scan takes one line into scratch and reports whether it ends inside quotes, and whether the field
// it ends in was quoted.
func (c *csvReader) scan(line []byte, inQuotes, quoted bool) (bool, bool) {
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case inQuotes && b == c.opts.Escape && i+1 < len(line) && (line[i+1] == c.opts.Quote || line[i+1] == c.opts.Escape):
			i++
			c.scratch = append(c.scratch, line[i])
		case b == c.opts.Quote:
			inQuotes = !inQuotes
			quoted = true
		case !inQuotes && b == c.opts.Delimiter:
			c.ends = append(c.ends, fieldEnd{len(c.scratch), quoted})
			quoted = false
		default:
			c.scratch = append(c.scratch, b)
		}
	}
	return inQuotes, quoted
}

// cut makes the fields of a complete record.
func (c *csvReader) cut(data bool) [][]byte {
	c.fields = c.fields[:0]
	start := 0
	for i, e := range c.ends {
		field := c.scratch[start:e.end:e.end]
		if data && c.isNull(i, e.quoted, field) {
			field = nil
		}
		c.fields = append(c.fields, field)
		start = e.end
	}
	return c.fields
}

func (c *csvReader) isNull(column int, quoted bool, field []byte) bool {
	if string(field) != c.opts.Null {
		return false
	}
	if quoted {
		return column < len(c.opts.ForceNull) && c.opts.ForceNull[column]
	}
	return column >= len(c.opts.ForceNotNull) || !c.opts.ForceNotNull[column]
}

// AppendCSVField appends one field, quoted where it must be. alone says that the row has one column,
// where a lone \. must not look like the end of data.
func AppendCSVField(dst, field []byte, o *Options, force, alone bool) []byte {
	quote := force || string(field) == o.Null || alone && string(field) == `\.` ||
		bytes.IndexByte(field, o.Delimiter) >= 0 || bytes.IndexByte(field, o.Quote) >= 0 ||
		bytes.ContainsAny(field, "\n\r")
	if !quote {
		return append(dst, field...)
	}
	dst = append(dst, o.Quote)
	for _, b := range field {
		if b == o.Quote || b == o.Escape {
			dst = append(dst, o.Escape)
		}
		dst = append(dst, b)
	}
	return append(dst, o.Quote)
}
