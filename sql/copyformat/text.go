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
	fields  [][]byte
	scratch []byte
}

func (t *textReader) Line() int { return t.lines.n }

func (t *textReader) header() ([][]byte, error) {
	line, err := t.lines.next()
	if err != nil {
		return nil, err
	}
	return t.split(line), nil
}

func (t *textReader) Next() ([][]byte, error) {
	line, err := t.lines.next()
	if err != nil {
		return nil, err
	}
	if len(line) == 2 && line[0] == '\\' && line[1] == '.' {
		return nil, io.EOF
	}
	fields := t.split(line)
	switch {
	case len(fields) > t.columns:
		return nil, malformed("extra data after last expected column")
	case len(fields) < t.columns:
		return nil, malformed("missing data for column %d", len(fields)+1)
	}
	return fields, nil
}

// split cuts a line at its delimiters and undoes the escapes. A delimiter after a backslash is data.
func (t *textReader) split(line []byte) [][]byte {
	t.fields = t.fields[:0]
	if t.columns == 0 && len(line) == 0 {
		return t.fields
	}
	if bytes.IndexByte(line, '\\') < 0 {
		return t.splitPlain(line)
	}
	// Unescaped fields are never longer than the line, so that scratch does not move.
	if cap(t.scratch) < len(line) {
		t.scratch = make([]byte, 0, 2*len(line))
	}
	t.scratch = t.scratch[:0]
	start, out := 0, 0
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || line[i] == t.opts.Delimiter:
			if string(line[start:i]) == t.opts.Null {
				t.fields = append(t.fields, nil)
			} else {
				t.fields = append(t.fields, t.scratch[out:len(t.scratch):len(t.scratch)])
			}
			start, out = i+1, len(t.scratch)
		case line[i] == '\\' && i+1 < len(line):
			var b byte
			b, i = unescape(line, i+1)
			t.scratch = append(t.scratch, b)
		default:
			t.scratch = append(t.scratch, line[i])
		}
	}
	return t.fields
}

func (t *textReader) splitPlain(line []byte) [][]byte {
	for {
		i := bytes.IndexByte(line, t.opts.Delimiter)
		field := line
		if i >= 0 {
			field = line[:i:i]
		}
		if string(field) == t.opts.Null {
			field = nil
		}
		t.fields = append(t.fields, field)
		if i < 0 {
			return t.fields
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
