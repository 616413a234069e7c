package types

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// arrayReader reads the text form of an array: first its dimensions, then its elements.
type arrayReader struct {
	whole string
	rest  string
	elem  Type
	f     *Format
	buf   []byte // of the element being read
	delim byte
}

func (r *arrayReader) malformed(detail string, args ...any) error {
	err := pgerror.New(pgerror.InvalidTextRepresentation, "malformed array literal: \"%s\"", r.whole)
	if detail == "" {
		return err
	}
	return err.WithDetail(detail, args...)
}

func (r *arrayReader) skipSpace() {
	for r.rest != "" && isSpace(r.rest[0]) {
		r.rest = r.rest[1:]
	}
}

func parseArray(elem Type, s string, f *Format) (Datum, error) {
	r := &arrayReader{whole: s, rest: s, elem: elem, f: f, delim: elem.Delimiter()}
	dims, err := r.bounds()
	if err != nil {
		return Null, err
	}
	lens, err := r.braces()
	if err != nil {
		return Null, err
	}
	if dims == nil {
		for _, n := range lens {
			dims = append(dims, Dim{1, n})
		}
	} else if !slices.EqualFunc(dims, lens, func(d Dim, n int32) bool { return d.Len == n }) {
		return Null, r.malformed("Specified array dimensions do not match array contents.")
	}
	n, err := CheckDims(dims)
	if err != nil || n == 0 {
		return NewArray(&Array{Elem: elem, Elems: []Datum{}}), err
	}
	elems, err := r.elements(dims, n)
	if err != nil {
		return Null, err
	}
	return NewDimArray(elem, elems, dims), nil
}

// bounds reads the optional dimensions before the contents, "[1:2][0:3]=".
func (r *arrayReader) bounds() ([]Dim, error) {
	var dims []Dim
	for {
		if r.skipSpace(); !strings.HasPrefix(r.rest, "[") {
			break
		}
		r.rest = r.rest[1:]
		if err := CheckNDims(len(dims) + 1); err != nil {
			return nil, err
		}
		d, err := r.bound()
		if err != nil {
			return nil, err
		}
		dims = append(dims, d)
	}
	if dims != nil {
		if !strings.HasPrefix(r.rest, "=") {
			return nil, r.malformed("Missing \"%s\" after array dimensions.", "=")
		}
		r.rest = r.rest[1:]
		r.skipSpace()
	}
	if strings.HasPrefix(r.rest, "{") {
		return dims, nil
	}
	if dims != nil {
		return nil, r.malformed("Array contents must start with \"{\".")
	}
	return nil, r.malformed("Array value must start with \"{\" or dimension information.")
}

// bound reads "low:high]" or "high]".
func (r *arrayReader) bound() (Dim, error) {
	low, high, ok := int32(1), int32(0), false
	if high, ok = r.integer(); !ok {
		return Dim{}, r.malformed("\"[\" must introduce explicitly-specified array dimensions.")
	}
	if strings.HasPrefix(r.rest, ":") {
		r.rest = r.rest[1:]
		low = high
		if high, ok = r.integer(); !ok {
			return Dim{}, r.malformed("Missing array dimension value.")
		}
	}
	if !strings.HasPrefix(r.rest, "]") {
		return Dim{}, r.malformed("Missing \"%s\" after array dimensions.", "]")
	}
	r.rest = r.rest[1:]
	if high < low {
		return Dim{}, pgerror.New(pgerror.ArraySubscriptError, "upper bound cannot be less than lower bound")
	}
	return Dim{low, high - low + 1}, nil
}

// integer reads digits and signs, as C's atoi does: up to the first character that does not belong to a number, and cut to its range.
func (r *arrayReader) integer() (int32, bool) {
	n := 0
	for n < len(r.rest) && (isDigit(r.rest[n]) || r.rest[n] == '-' || r.rest[n] == '+') {
		n++
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	digits := min(n, 1)
	for digits < n && isDigit(text[digits]) {
		digits++
	}
	v, err := strconv.ParseInt(text[:digits], 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		v = 0
	}
	return int32(v), n > 0
}

// braceState is what the last character of the contents belonged to.
type braceState uint8

const (
	beforeBraces braceState = iota
	levelStarted
	levelDone
	levelDelimited
	elementStarted
	quoteStarted
	quoteDone
	elementDelimited
)

// braceCounter finds the dimensions of the contents of an array.
type braceCounter struct {
	r         *arrayReader
	state     braceState
	inQuotes  bool
	empty     bool // no element has been seen
	level     int
	dims      int
	count     [MaxArrayDims]int32 // of the sub-arrays of a level, or elements of the last one
	elems     [MaxArrayDims]int32 // of the level that is open
	lastElems [MaxArrayDims]int32 // of the level before it
}

// braces checks the structure of the contents and returns the lengths of their dimensions. It leaves r.rest where it is.
func (r *arrayReader) braces() ([]int32, error) {
	c := &braceCounter{r: r, empty: true, dims: 1}
	for i := range c.elems {
		c.elems[i] = 1
	}
	s := r.rest
	for i := 0; ; i++ {
		if c.state == elementStarted || c.state == quoteStarted {
			c.empty = false
		}
		if i == len(s) || s[i] == '\\' && i+1 == len(s) && c.escapable() {
			return nil, r.malformed("Unexpected end of input.")
		}
		if i%(64<<10) == 0 {
			if err := r.f.poll(0); err != nil {
				return nil, err
			}
		}
		if s[i] == '\\' {
			if !c.escapable() {
				return nil, c.unexpected('\\')
			}
			if c.state != quoteStarted {
				c.state = elementStarted
			}
			i++
			continue
		}
		done, err := c.next(s[i])
		if err != nil {
			return nil, err
		}
		if done {
			return c.lengths(), r.junk(s[i+1:])
		}
	}
}

// junk refuses anything but blanks after the closing brace.
func (r *arrayReader) junk(rest string) error {
	for i := range len(rest) {
		if !isSpace(rest[i]) {
			return r.malformed("Junk after closing right brace.")
		}
	}
	return nil
}

func (c *braceCounter) unexpected(b byte) error {
	return c.r.malformed("Unexpected \"%c\" character.", b)
}

// escapable reports whether a backslash may follow.
func (c *braceCounter) escapable() bool {
	return c.state == levelStarted || c.state == elementStarted || c.state == quoteStarted || c.state == elementDelimited
}

// lengths returns the lengths of the dimensions; none for an array without elements.
func (c *braceCounter) lengths() []int32 {
	if c.empty {
		return nil
	}
	c.count[c.dims-1]++
	return c.count[:c.dims]
}

// next takes a character that is no backslash. done is set by the last closing brace.
func (c *braceCounter) next(b byte) (done bool, err error) {
	switch {
	case b == '"':
		if c.state != levelStarted && c.state != quoteStarted && c.state != elementDelimited {
			return false, c.r.malformed("Unexpected array element.")
		}
		if c.inQuotes = !c.inQuotes; c.inQuotes {
			c.state = quoteStarted
		} else {
			c.state = quoteDone
		}
		return false, nil
	case c.inQuotes:
		return false, nil
	}
	switch b {
	case '{':
		return false, c.open()
	case '}':
		return c.close()
	case c.r.delim:
		return false, c.delimit()
	}
	if !isSpace(b) {
		if c.state != levelStarted && c.state != elementStarted && c.state != elementDelimited {
			return false, c.r.malformed("Unexpected array element.")
		}
		c.state = elementStarted
	}
	return false, nil
}

func (c *braceCounter) open() error {
	if c.state != beforeBraces && c.state != levelStarted && c.state != levelDelimited {
		return c.unexpected('{')
	}
	c.state = levelStarted
	if err := CheckNDims(c.level + 1); err != nil {
		return err
	}
	c.count[c.level] = 0
	c.level++
	c.dims = max(c.dims, c.level)
	return nil
}

func (c *braceCounter) close() (done bool, err error) {
	if c.state != elementStarted && c.state != quoteDone && c.state != levelDone && (c.level != 1 || c.state != levelStarted) {
		return false, c.unexpected('}')
	}
	c.state = levelDone
	c.level--
	if last := c.lastElems[c.level]; last != 0 && c.elems[c.level] != last {
		return false, c.r.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
	}
	c.lastElems[c.level], c.elems[c.level] = c.elems[c.level], 1
	if c.level == 0 {
		return true, nil
	}
	c.count[c.level-1]++
	return false, nil
}

// delimit takes the character between two elements or sub-arrays; either way the innermost dimension has one more.
func (c *braceCounter) delimit() error {
	switch c.state {
	case levelDone:
		c.state = levelDelimited
	case elementStarted, quoteDone:
		c.state = elementDelimited
	default:
		return c.unexpected(c.r.delim)
	}
	c.elems[c.level-1]++
	c.count[c.dims-1]++
	return nil
}

// elementPlace is the place of the next element.
type elementPlace struct {
	dims  []Dim
	index [MaxArrayDims]int32
	level int
}

// offset returns the place in row-major order.
func (p *elementPlace) offset() int {
	n := 0
	for i, d := range p.dims {
		n = n*int(d.Len) + int(p.index[i])
	}
	return n
}

// elements reads the contents, whose structure braces has checked, into n elements.
func (r *arrayReader) elements(dims []Dim, n int) ([]Datum, error) {
	if n > strings.Count(r.rest, string(r.delim))+1 {
		return nil, r.malformed("")
	}
	elems := make([]Datum, n)
	p := &elementPlace{dims: dims}
	for count := 1; ; count++ {
		text, plain, last, at, err := r.element(p)
		if err != nil {
			return nil, err
		}
		if at < 0 || at >= n {
			return nil, r.malformed("")
		}
		if plain && strings.EqualFold(text, "NULL") {
			err = CheckNull(r.elem, r.f)
		} else {
			elems[at], err = ParseText(r.elem, text, r.f)
		}
		if err != nil {
			return nil, err
		}
		if err := r.f.poll(count); err != nil {
			return nil, err
		}
		if last {
			return elems, nil
		}
	}
}

// element reads up to the end of an element: its text, which nothing in quotes or escaped leaves plain, and its place, -1 if there was no
// element. last is set if the contents end.
func (r *arrayReader) element(p *elementPlace) (text string, plain, last bool, at int, err error) {
	b := r.buf[:0]
	kept := 0 // bytes of b without trailing blanks
	inQuotes, leading := false, true
	plain, at = true, -1
	for i := 0; i < len(r.rest); i++ {
		c := r.rest[i]
		switch {
		case c == '\\':
			if i++; i == len(r.rest) {
				return "", false, false, 0, r.malformed("")
			}
			b = append(b, r.rest[i])
			kept, leading, plain = len(b), false, false
		case c == '"':
			if inQuotes = !inQuotes; !inQuotes {
				kept = len(b)
			}
			leading, plain = false, false
		case inQuotes:
			b = append(b, c)
		case c == '{':
			if p.level >= len(p.dims) {
				return "", false, false, 0, r.malformed("")
			}
			p.index[p.level] = 0
			p.level++
		case c == '}':
			if at < 0 {
				at = p.offset()
			}
			p.level--
			p.index[p.level] = 0
			if p.level == 0 {
				r.rest, r.buf = r.rest[i+1:], b
				return string(b[:kept]), plain, true, at, nil
			}
			p.index[p.level-1]++
		case c == r.delim:
			if at < 0 {
				at = p.offset()
			}
			p.index[len(p.dims)-1]++
			r.rest, r.buf = r.rest[i+1:], b
			return string(b[:kept]), plain, false, at, nil
		default:
			if space := isSpace(c); !space || !leading {
				if b = append(b, c); !space {
					kept, leading = len(b), false
				}
			}
		}
	}
	return "", false, false, 0, r.malformed("")
}

// Delimiter separates the elements of arrays of t.
func (t Type) Delimiter() byte {
	if t.Underlying().OID == OIDBox {
		return ';'
	}
	return ','
}

func appendArray(dst []byte, a *Array, elem Type, f *Format) []byte {
	if !elem.Valid() {
		elem = a.Elem
	}
	if a.Dims == nil {
		return appendElements(dst, a.Elems, elem, f)
	}
	for _, d := range a.Dims {
		if d.Low != 1 {
			dst = append(AppendDims(dst, a.Dims), '=')
			break
		}
	}
	return appendSubArrays(dst, a.Elems, a.Dims, elem, f)
}

// appendSubArrays appends the elements of an array of the given dimensions.
func appendSubArrays(dst []byte, elems []Datum, dims []Dim, elem Type, f *Format) []byte {
	if len(dims) == 1 {
		return appendElements(dst, elems, elem, f)
	}
	dst = append(dst, '{')
	size := len(elems) / int(dims[0].Len)
	for i := 0; i < len(elems); i += size {
		if i > 0 {
			dst = append(dst, elem.Delimiter())
		}
		dst = appendSubArrays(dst, elems[i:i+size], dims[1:], elem, f)
	}
	return append(dst, '}')
}

func appendElements(dst []byte, elems []Datum, elem Type, f *Format) []byte {
	delim := elem.Delimiter()
	dst = append(dst, '{')
	for i, d := range elems {
		if i > 0 {
			dst = append(dst, delim)
		}
		if d.IsNull() {
			dst = append(dst, "NULL"...)
			continue
		}
		start := len(dst)
		dst = AppendText(dst, d, elem, f)
		if needsArrayQuotes(dst[start:], delim) {
			dst = quoteFrom(dst, start, `\`)
		}
	}
	return append(dst, '}')
}

func needsArrayQuotes(b []byte, delim byte) bool {
	if len(b) == 0 || len(b) == 4 && strings.EqualFold(string(b), "NULL") {
		return true
	}
	for _, c := range b {
		if c == '"' || c == '\\' || c == '{' || c == '}' || c == delim || isSpace(c) {
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
