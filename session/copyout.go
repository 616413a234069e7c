package session

import (
	"io"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/copyformat"
	"github.com/percodb/percodb/sql/types"
)

// copyOut is the ResultWriter that prints a query's rows as COPY data.
type copyOut struct {
	ResultWriter // holds back and rewinds
	w            io.Writer
	opts         copyformat.Options
	cols         []Column
	format       *types.Format
	env          *builtin.Env
	line         []byte
	field        []byte
}

// Columns implements ResultWriter: COPY has announced itself.
func (c *copyOut) Columns([]Column, []int16, bool) error { return nil }

// header writes what precedes the rows.
func (c *copyOut) header(names []string) error {
	switch {
	case c.opts.Format == copyformat.Binary:
		_, err := c.w.Write(copyformat.AppendBinaryHeader(nil))
		return err
	case !c.opts.Header:
		return nil
	}
	c.line = c.line[:0]
	for i, name := range names {
		if i > 0 {
			c.line = append(c.line, c.opts.Delimiter)
		}
		if c.opts.Format == copyformat.CSV {
			c.line = copyformat.AppendCSVField(c.line, []byte(name), &c.opts, false, len(names) == 1)
		} else {
			c.line = copyformat.AppendTextField(c.line, []byte(name), c.opts.Delimiter)
		}
	}
	_, err := c.w.Write(append(c.line, '\n'))
	return err
}

// Row implements ResultWriter.
func (c *copyOut) Row(row types.Row) error {
	if c.opts.Format == copyformat.Binary {
		return c.binaryRow(row)
	}
	c.line = c.line[:0]
	for i, value := range row {
		if i > 0 {
			c.line = append(c.line, c.opts.Delimiter)
		}
		if value.IsNull() {
			c.line = append(c.line, c.opts.Null...)
			continue
		}
		if err := c.env.ReserveText(value); err != nil {
			return err
		}
		c.field = types.AppendText(c.field[:0], value, c.cols[i].Type, c.format)
		if c.opts.Format == copyformat.CSV {
			force := i < len(c.opts.ForceQuote) && c.opts.ForceQuote[i]
			c.line = copyformat.AppendCSVField(c.line, c.field, &c.opts, force, len(row) == 1)
		} else {
			c.line = copyformat.AppendTextField(c.line, c.field, c.opts.Delimiter)
		}
	}
	c.line = append(c.line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *copyOut) binaryRow(row types.Row) error {
	c.line = append(c.line[:0], byte(len(row)>>8), byte(len(row)))
	for i, value := range row {
		if value.IsNull() {
			c.line = append(c.line, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		c.field = types.AppendBinary(c.field[:0], value, c.cols[i].Type)
		n := len(c.field)
		c.line = append(c.line, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		c.line = append(c.line, c.field...)
	}
	_, err := c.w.Write(c.line)
	return err
}
