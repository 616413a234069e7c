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
	fields  fieldList
	ends    []fieldEnd // of as many fields as fields takes
	count   int        // of all fields
	scratch rowBuffer
	// inQuotes and quoted are where scan stands in a row: within quotes; in a field that had some.
	inQuotes, quoted bool
}

// fieldEnd says where a field ends in scratch. Fields are cut out only when the record is complete,
// because scratch may move while it grows.
type fieldEnd struct {
	end    int
	quoted bool
}

func (c *csvReader) Line() int { return c.lines.n }

func (c *csvReader) Close() {
	c.lines.close()
	c.scratch.release()
}

func (c *csvReader) header() ([][]byte, int, error) {
	err := c.row(false)
	return c.fields.fields, c.fields.count, err
}

func (c *csvReader) Next() ([][]byte, error) {
	if err := c.row(true); err != nil {
		return nil, err
	}
	return c.fields.row(c.columns)
}

// row reads a row into fields.
func (c *csvReader) row(data bool) error {
	line, err := c.lines.next()
	if err != nil {
		return err
	}
	if data && c.lines.ended && string(bytes.TrimSuffix(line, []byte{'\r'})) == `\.` {
		return io.EOF
	}
	c.scratch.b, c.ends, c.count = c.scratch.b[:0], c.ends[:0], 0
	c.inQuotes, c.quoted = false, false
	for {
		if err := c.scan(line); err != nil {
			return err
		}
		if !c.inQuotes {
			break
		}
		if !c.lines.ended {
			return malformed("unterminated CSV quoted field")
		}
		c.scratch.b = append(c.scratch.b, '\n') // The line's end belongs to the quoted field.
		if line, err = c.lines.next(); err == io.EOF {
			return malformed("unterminated CSV quoted field")
		} else if err != nil {
			return err
		}
	}
	c.endField()
	c.cut(data)
	return nil
}

// scan takes one line into scratch.
func (c *csvReader) scan(line []byte) error {
	if err := c.scratch.grow(len(line) + 1); err != nil {
		return err
	}
	carriage := -1
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case c.inQuotes && b == c.opts.Escape && i+1 < len(line) && (line[i+1] == c.opts.Quote || line[i+1] == c.opts.Escape):
			i++
			c.scratch.b = append(c.scratch.b, line[i])
		case b == c.opts.Quote:
			c.inQuotes = !c.inQuotes
			c.quoted = true
		case c.inQuotes:
			c.scratch.b = append(c.scratch.b, b)
		case b == c.opts.Delimiter:
			c.endField()
		case b == '\r' && carriage < 0:
			carriage = i
		default:
			c.scratch.b = append(c.scratch.b, b)
		}
	}
	if c.inQuotes && carriage < 0 {
		return nil
	}
	_, err := c.lines.finish(line, carriage)
	return err
}

func (c *csvReader) endField() {
	c.count++
	if len(c.ends) <= c.columns {
		c.ends = append(c.ends, fieldEnd{len(c.scratch.b), c.quoted})
	}
	c.quoted = false
}

// cut makes the fields of a complete record.
func (c *csvReader) cut(data bool) {
	c.fields.reset(c.columns)
	start := 0
	for i, e := range c.ends {
		field := c.scratch.b[start:e.end:e.end]
		if data && c.isNull(i, e.quoted, field) {
			field = nil
		}
		c.fields.add(field)
		start = e.end
	}
	c.fields.count = c.count
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
