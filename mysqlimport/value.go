package mysqlimport

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/percodb/percodb/sql/mysql"
)

// rules determine the meaning of strings and times of a dump; earlier SET statements set them.
type rules struct {
	charset string // of strings; "binary": that of each column
	zone    string // of Timestamp columns, in the form in which COPY reads it after a time
}

// converter writes values in COPY's text format.
type converter struct {
	zero    ZeroDates
	decoder decoder
	zeros   map[string]int64 // zero dates that were replaced, by column
}

// append appends a value.
func (c *converter) append(dst []byte, t *table, col *mysql.DumpColumn, l *literal, in rules) ([]byte, error) {
	if l.form == formNull {
		return append(dst, `\N`...), nil
	}
	switch col.Kind {
	case mysql.Number:
		return appendNumber(dst, l), nil
	case mysql.Text:
		return c.appendText(dst, col, l, in)
	case mysql.Bytes:
		dst = append(dst, `\\x`...)
		return hex.AppendEncode(dst, l.text), nil
	case mysql.Bit:
		if l.form == formDigits {
			return append(dst, l.text...), nil
		}
		return new(big.Int).SetBytes(l.text).Append(dst, 10), nil
	case mysql.Date, mysql.DateTime, mysql.Timestamp:
		return c.appendDate(dst, t, col, l, in)
	}
	return appendEscaped(dst, l.text), nil
}

func appendNumber(dst []byte, l *literal) []byte {
	if l.form == formBytes {
		return new(big.Int).SetBytes(l.text).Append(dst, 10)
	}
	return appendEscaped(dst, l.text)
}

func (c *converter) appendText(dst []byte, col *mysql.DumpColumn, l *literal, in rules) ([]byte, error) {
	set := l.charset
	if set == "" {
		set = in.charset
	}
	if set == "binary" || l.form == formBytes && l.charset == "" {
		set = col.Charset
	}
	text, err := c.decoder.decode(set, l.text)
	if err != nil {
		return dst, err
	}
	for _, ch := range text {
		if ch == 0 {
			return dst, errors.New("a string has a character 0, which text cannot hold: make the column a BLOB before the dump")
		}
	}
	return appendEscaped(dst, text), nil
}

// appendDate appends a date or time, or the replacement of a zero date.
func (c *converter) appendDate(dst []byte, t *table, col *mysql.DumpColumn, l *literal, in rules) ([]byte, error) {
	text := string(l.text)
	if !mysql.ZeroDate(text) {
		dst = appendEscaped(dst, l.text)
		if col.Kind == mysql.Timestamp {
			dst = append(dst, in.zone...)
		}
		return dst, nil
	}
	with := string(c.zero)
	if with == "" {
		if col.NotNull {
			return dst, fmt.Errorf("the zero date '%s' cannot become NULL, as the column %s is NOT NULL: name a date with --zero-dates, such as --zero-dates=-infinity", text, col.Name)
		}
		with = `\N`
	}
	if c.zeros == nil {
		c.zeros = map[string]int64{}
	}
	c.zeros[t.label+"."+col.Name]++
	dst = append(dst, with...)
	if col.Kind == mysql.Timestamp && c.zero != "" && !strings.HasSuffix(with, "infinity") {
		dst = append(dst, in.zone...)
	}
	return dst, nil
}

// appendEscaped appends a value with COPY's escapes.
func appendEscaped(dst, text []byte) []byte {
	from := 0
	for i, ch := range text {
		var with byte
		switch ch {
		case '\\':
			with = '\\'
		case '\n':
			with = 'n'
		case '\r':
			with = 'r'
		case '\t':
			with = 't'
		default:
			continue
		}
		dst = append(append(dst, text[from:i]...), '\\', with)
		from = i + 1
	}
	return append(dst, text[from:]...)
}
