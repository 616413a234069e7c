package copyformat

import (
	"bytes"
	"io"
)

// textReader reads the text format: fields between delimiters, backslash escapes, \N for NULL.
type textReader struct {
	lines   lineReader
	opts    Options
	columns int
	fields  fieldList
	scratch rowBuffer
	done    bool // the end marker has been read
}

func (t *textReader) Line() int { return t.lines.n }

func (t *textReader) Close() {
	t.lines.close()
	t.scratch.release()
}

func (t *textReader) header() ([][]byte, int, error) {
	err := t.read()
	return t.fields.fields, t.fields.count, err
}

func (t *textReader) Next() ([][]byte, error) {
	if err := t.read(); err != nil {
		return nil, err
	}
	return t.fields.row(t.columns)
}

// read reads a row into fields.
func (t *textReader) read() error {
	if t.done {
		return io.EOF
	}
	t.lines.escapes = true
	line, err := t.lines.next()
	if err != nil {
		return err
	}
	escaped := bytes.IndexByte(line, '\\') >= 0
	carriage := bytes.IndexByte(line, '\r')
	if escaped {
		if line, carriage, err = t.findEnd(line); err != nil {
			return err
		}
		if t.done && len(line) == 0 {
			return io.EOF
		}
	}
	if !t.done {
		cut, err := t.lines.finish(line, carriage)
		if err != nil {
			return err
		}
		line = line[:len(line)-cut]
	}
	t.fields.reset(t.columns)
	switch {
	case t.columns == 0 && len(line) == 0:
		return nil
	case escaped:
		return t.split(line)
	}
	t.splitPlain(line)
	return nil
}

// findEnd finds in a line with backslashes its first carriage return that is not escaped, and the end marker, whose line is
// cut off before it.
func (t *textReader) findEnd(line []byte) (_ []byte, carriage int, _ error) {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\r':
			return line, i, nil
		case line[i] != '\\':
		case i+1 < len(line) && line[i+1] == '.':
			t.done = true
			return line[:i], -1, t.checkMarker(line[i+2:])
		default:
			i++
		}
	}
	return line, -1, nil
}

// checkMarker checks what follows the end marker on its line.
func (t *textReader) checkMarker(rest []byte) error {
	carriage := string(rest) == "\r"
	switch {
	case !t.lines.ended || len(rest) > 0 && !carriage:
		return malformed("end-of-copy marker corrupt")
	case carriage && t.lines.end == newline, !carriage && t.lines.end == carriageEnd:
		return malformed("end-of-copy marker does not match previous newline style")
	}
	return nil
}

// split cuts a line at its delimiters and undoes the escapes. A delimiter after a backslash is data.
func (t *textReader) split(line []byte) error {
	// Unescaped fields are never longer than the line, so that scratch does not move.
	t.scratch.b = t.scratch.b[:0]
	if err := t.scratch.grow(len(line)); err != nil {
		return err
	}
	out := t.scratch.b
	start, from := 0, 0
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || line[i] == t.opts.Delimiter:
			if string(line[start:i]) == t.opts.Null {
				t.fields.add(nil)
			} else {
				t.fields.add(out[from:len(out):len(out)])
			}
			start, from = i+1, len(out)
		case line[i] == '\\' && i+1 < len(line):
			var b byte
			b, i = unescape(line, i+1)
			out = append(out, b)
		case line[i] == '\\': // the last character: nothing is escaped
		default:
			out = append(out, line[i])
		}
	}
	t.scratch.b = out
	return nil
}

func (t *textReader) splitPlain(line []byte) {
	for {
		i := bytes.IndexByte(line, t.opts.Delimiter)
		field := line
		if i >= 0 {
			field = line[:i:i]
		}
		if string(field) == t.opts.Null {
			field = nil
		}
		t.fields.add(field)
		if i < 0 {
			return
		}
		line = line[i+1:]
	}
}

// unescape decodes the escape whose letter is at i and returns the byte and the index of its last
// character.
func unescape(line []byte, i int) (byte, int) {
	switch c := line[i]; c {
	case 'b':
		return '\b', i
	case 'f':
		return '\f', i
	case 'n':
		return '\n', i
	case 'r':
		return '\r', i
	case 't':
		return '\t', i
	case 'v':
		return '\v', i
	case 'x':
		return unescapeDigits(line, i, 16, 2)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return unescapeDigits(line, i-1, 8, 3)
	default:
		return c, i
	}
}

// unescapeDigits reads up to most digits after i; "\x" without digits is an x.
func unescapeDigits(line []byte, i, base, most int) (byte, int) {
	value, last := 0, i
	for n := 0; n < most && last+1 < len(line); n++ {
		d := digit(line[last+1])
		if d >= base {
			break
		}
		value = value*base + d
		last++
	}
	if last == i {
		return line[i], i
	}
	return byte(value), last
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 255
}

// AppendTextField appends one field of the text format with its escapes.
func AppendTextField(dst, field []byte, delimiter byte) []byte {
	for _, c := range field {
		switch c {
		case '\\':
			dst = append(dst, '\\', '\\')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\v':
			dst = append(dst, '\\', 'v')
		case delimiter:
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
