package types

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// arrayReader reads the text form of a one-dimensional array.
type arrayReader struct {
	whole string
	rest  string
	elem  Type
	f     *Format
	buf   []byte // of the quoted element being read
}

func (r *arrayReader) malformed(detail string, args ...any) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "malformed array literal: \"%s\"", r.whole).WithDetail(detail, args...)
}

func (r *arrayReader) skipSpace() {
	for r.rest != "" && isSpace(r.rest[0]) {
		r.rest = r.rest[1:]
	}
}

// errArrayDims is the error for an array that is not one-dimensional.
func errArrayDims() error {
	return pgerror.Unsupported("an array with more than one dimension or another lower bound than 1",
		"Use a one-dimensional array.")
}

func parseArray(elem Type, s string, f *Format) (Datum, error) {
	r := &arrayReader{whole: s, rest: s, elem: elem, f: f}
	r.skipSpace()
	count := -1 // the number of elements
	if strings.HasPrefix(r.rest, "[") {
		var err error
		if count, err = r.bounds(); err != nil {
			return Null, err
		}
	}
	if !strings.HasPrefix(r.rest, "{") {
		return Null, r.malformed("Array value must start with \"{\" or dimension information.")
	}
	r.rest = r.rest[1:]
	elems, err := r.elements()
	if err != nil {
		return Null, err
	}
	if r.skipSpace(); r.rest != "" {
		return Null, r.malformed("Junk after closing right brace.")
	}
	if count >= 0 && count != len(elems) {
		return Null, r.malformed("Specified array dimensions do not match array contents.")
	}
	return NewArray(&Array{Elem: elem, Elems: elems}), nil
}

// bounds reads "[1:n]=" or "[n]=", the supported dimensions of an array, and returns n.
func (r *arrayReader) bounds() (int, error) {
	dims, rest, ok := strings.Cut(r.rest, "]")
	dims = dims[1:]
	if dims == "" || !isDigit(dims[0]) && dims[0] != '-' && dims[0] != '+' {
		return 0, r.malformed("\"[\" must introduce explicitly-specified array dimensions.")
	}
	if !ok {
		return 0, r.malformed("Missing \"%s\" after array dimensions.", "]")
	}
	least, most, ranged := strings.Cut(dims, ":")
	if !ranged {
		least, most = "1", dims
	}
	low, errLow := strconv.Atoi(least)
	high, errHigh := strconv.Atoi(most)
	if errLow != nil || errHigh != nil {
		return 0, r.malformed("Missing array dimension value.")
	}
	r.rest = rest
	if r.skipSpace(); low != 1 || strings.HasPrefix(r.rest, "[") {
		return 0, errArrayDims()
	}
	if !strings.HasPrefix(r.rest, "=") {
		return 0, r.malformed("Missing \"%s\" after array dimensions.", "=")
	}
	r.rest = r.rest[1:]
	r.skipSpace()
	return high, nil
}

func (r *arrayReader) elements() ([]Datum, error) {
	elems := []Datum{}
	if r.skipSpace(); strings.HasPrefix(r.rest, "}") {
		r.rest = r.rest[1:]
		return elems, nil
	}
	for {
		d, err := r.element()
		if err != nil {
			return nil, err
		}
		elems = append(elems, d)
		if err := r.f.poll(len(elems)); err != nil {
			return nil, err
		}
		if r.skipSpace(); r.rest == "" {
			return nil, r.malformed("Unexpected end of input.")
		}
		c := r.rest[0]
		r.rest = r.rest[1:]
		switch c {
		case ',':
		case '}':
			return elems, nil
		default:
			return nil, r.malformed("Unexpected array element.")
		}
	}
}

func (r *arrayReader) element() (Datum, error) {
	r.skipSpace()
	if r.rest == "" {
		return Null, r.malformed("Unexpected end of input.")
	}
	switch c := r.rest[0]; c {
	case '{':
		return Null, errArrayDims()
	case ',', '}':
		return Null, r.malformed("Unexpected \"%c\" character.", c)
	case '"':
		text, err := r.quoted()
		if err != nil {
			return Null, err
		}
		return ParseText(r.elem, text, r.f)
	}
	text, plain, err := r.unquoted()
	if err != nil {
		return Null, err
	}
	if plain && strings.EqualFold(text, "NULL") {
		return Null, nil
	}
	return ParseText(r.elem, text, r.f)
}

func (r *arrayReader) quoted() (string, error) {
	b := r.buf[:0]
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; c {
		case '"':
			r.rest = r.rest[i+1:]
			return string(b), nil
		case '\\':
			if i++; i < len(r.rest) {
				b = append(b, r.rest[i])
			}
		default:
			b = append(b, c)
		}
	}
	return "", r.malformed("Unexpected end of input.")
}

// unquoted reads up to a delimiter; plain reports that it contained no backslash.
func (r *arrayReader) unquoted() (text string, plain bool, err error) {
	plain = true
	b := r.buf[:0]
	kept := 0 // bytes of b without trailing blanks
	for i := 0; i < len(r.rest); i++ {
		switch c := r.rest[i]; c {
		case ',', '}':
			r.rest = r.rest[i:]
			return string(b[:kept]), plain, nil
		case '{':
			return "", false, r.malformed("Unexpected \"%c\" character.", c)
		case '"':
			return "", false, r.malformed("Unexpected array element.")
		case '\\':
			plain = false
			if i++; i < len(r.rest) {
				b = append(b, r.rest[i])
				kept = len(b)
			}
		default:
			b = append(b, c)
			if !isSpace(c) {
				kept = len(b)
			}
		}
	}
	return "", false, r.malformed("Unexpected end of input.")
}

func appendArray(dst []byte, a *Array, elem Type, f *Format) []byte {
	if !elem.Valid() {
		elem = a.Elem
	}
	dst = append(dst, '{')
	for i, d := range a.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		if d.IsNull() {
			dst = append(dst, "NULL"...)
			continue
		}
		start := len(dst)
		dst = AppendText(dst, d, elem, f)
		if needsArrayQuotes(dst[start:]) {
			dst = quoteFrom(dst, start, `\`)
		}
	}
	return append(dst, '}')
}

func needsArrayQuotes(b []byte) bool {
	if len(b) == 0 || len(b) == 4 && strings.EqualFold(string(b), "NULL") {
		return true
	}
	for _, c := range b {
		if c == '"' || c == '\\' || c == '{' || c == '}' || c == ',' || isSpace(c) {
			return true
		}
	}
	return false
}

// quoteFrom puts dst[start:] in double quotes. A quote or backslash in it is escaped by a backslash
// or, when escape is empty, by doubling.
func quoteFrom(dst []byte, start int, escape string) []byte {
	text := string(dst[start:])
	dst = append(dst[:start], '"')
	for i := 0; i < len(text); i++ {
		if c := text[i]; c == '"' || c == '\\' {
			if escape == "" {
				dst = append(dst, c)
			} else {
				dst = append(dst, escape...)
			}
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

func appendRecord(dst []byte, r *Record, f *Format) []byte {
	dst = append(dst, '(')
	for i, d := range r.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		if d.IsNull() {
			continue
		}
		start := len(dst)
		dst = AppendText(dst, d, r.Types[i], f)
		if needsRecordQuotes(dst[start:]) {
			dst = quoteFrom(dst, start, "")
		}
	}
	return append(dst, ')')
}

func needsRecordQuotes(b []byte) bool {
	for _, c := range b {
		if c == '"' || c == '\\' || c == '(' || c == ')' || c == ',' || isSpace(c) {
			return true
		}
	}
	return len(b) == 0
}
