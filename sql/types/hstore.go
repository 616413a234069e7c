package types

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// OIDHstore is the type of sets of keys with texts, of the extension hstore.
const (
	OIDHstore      OID = FirstExtensionOID + 10
	oidHstoreArray OID = FirstExtensionOID + 11
)

func init() {
	register(&Methods{
		Info: Info{OIDHstore, "hstore", "hstore", oidHstoreArray, 0, -1, CategoryUser, false, KindBytes}, Extension: "hstore",
		Parse: func(s string, _ int32, _ *Format) (Datum, error) { return parseHstore(s) },
		Append: func(dst []byte, d Datum, _ *Format) []byte {
			return appendHstore(dst, HstorePairs(d))
		},
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) { return receiveHstore(b) },
		Send:    func(dst []byte, d Datum) []byte { return sendHstore(dst, HstorePairs(d)) },
	})
}

// HstorePair is a key with its text, or with NULL.
type HstorePair struct {
	Key, Value string
	Null       bool
}

// Datum returns the value.
func (p *HstorePair) Datum() Datum {
	if p.Null {
		return Null
	}
	return Text(p.Value)
}

// compareHstoreKeys orders keys as they are stored: by length first.
func compareHstoreKeys(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// Hstore returns a value with the given pairs, which it sorts. Of several with one key it takes the first.
//
// A value orders as PostgreSQL's do: by the keys and texts, one behind the other, then by their number and ends. It is these texts, a zero,
// which no text has, the number of pairs, the end of each key and text, and a byte for each pair that says whether its text is NULL. The
// empty value is no bytes.
func Hstore(pairs []HstorePair) Datum {
	slices.SortStableFunc(pairs, func(a, b HstorePair) int { return compareHstoreKeys(a.Key, b.Key) })
	pairs = slices.CompactFunc(pairs, func(a, b HstorePair) bool { return a.Key == b.Key })
	if len(pairs) == 0 {
		return Bytes([]byte{})
	}
	size := 0
	for i := range pairs {
		size += len(pairs[i].Key) + len(pairs[i].Value) + 9
	}
	b := make([]byte, 0, size+5)
	for i := range pairs {
		b = append(append(b, pairs[i].Key...), pairs[i].Value...)
	}
	b = binary.BigEndian.AppendUint32(append(b, 0), uint32(len(pairs)))
	end := 0
	for i := range pairs {
		end += len(pairs[i].Key)
		b = binary.BigEndian.AppendUint32(b, uint32(end))
		end += len(pairs[i].Value)
		b = binary.BigEndian.AppendUint32(b, uint32(end))
	}
	for i := range pairs {
		null := byte(0)
		if pairs[i].Null {
			null = 1
		}
		b = append(b, null)
	}
	return Bytes(b)
}

// HstorePairs returns the pairs of a value, by the length of their keys and by the keys.
func HstorePairs(d Datum) []HstorePair {
	b := d.Bytes()
	texts := bytes.IndexByte(b, 0)
	if texts < 0 {
		return nil
	}
	n := int(binary.BigEndian.Uint32(b[texts+1:]))
	ends, nulls := b[texts+5:], b[texts+5+8*n:]
	pairs := make([]HstorePair, n)
	start := 0
	next := func(i int) string {
		end := int(binary.BigEndian.Uint32(ends[4*i:]))
		text := string(b[start:end])
		start = end
		return text
	}
	for i := range pairs {
		pairs[i] = HstorePair{Key: next(2 * i), Value: next(2*i + 1), Null: nulls[i] != 0}
	}
	return pairs
}

// maxHstoreText is the length of the longest key or text.
const maxHstoreText = 0x3FFFFFFF

func appendHstore(dst []byte, pairs []HstorePair) []byte {
	quote := func(s string) {
		dst = append(dst, '"')
		for i := range len(s) {
			if s[i] == '"' || s[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, s[i])
		}
		dst = append(dst, '"')
	}
	for i := range pairs {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		quote(pairs[i].Key)
		dst = append(dst, "=>"...)
		if pairs[i].Null {
			dst = append(dst, "NULL"...)
		} else {
			quote(pairs[i].Value)
		}
	}
	return dst
}

// hstoreReader reads the text form.
type hstoreReader struct {
	text string
	at   int
}

func (r *hstoreReader) syntaxError() error {
	if r.at >= len(r.text) {
		return pgerror.New(pgerror.SyntaxError, "syntax error in hstore: unexpected end of string")
	}
	rest := []rune(r.text[r.at:min(len(r.text), r.at+4)])
	return pgerror.New(pgerror.SyntaxError, "syntax error in hstore, near \"%c\" at position %d", rest[0], r.at)
}

func (r *hstoreReader) skipSpace() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

// word reads a key or a text, which end with the given character unless they are quoted.
func (r *hstoreReader) word(end byte) (text string, quoted bool, err error) {
	r.skipSpace()
	quoted = r.at < len(r.text) && r.text[r.at] == '"'
	if quoted {
		r.at++
	} else if r.at >= len(r.text) || r.text[r.at] == '=' && end == '=' {
		return "", false, r.syntaxError()
	}
	var b []byte
	for ; r.at < len(r.text); r.at++ {
		c := r.text[r.at]
		switch {
		case c == '\\':
			if r.at++; r.at == len(r.text) {
				return "", false, r.syntaxError()
			}
			c = r.text[r.at]
		case quoted && c == '"':
			r.at++
			return string(b), true, nil
		case !quoted && (isSpace(c) || c == end && len(b) > 0):
			return string(b), false, nil
		}
		b = append(b, c)
	}
	if quoted {
		return "", false, r.syntaxError()
	}
	return string(b), false, nil
}

func (r *hstoreReader) expect(c byte) error {
	if r.at >= len(r.text) || r.text[r.at] != c {
		return r.syntaxError()
	}
	r.at++
	return nil
}

func (r *hstoreReader) pair() (p HstorePair, err error) {
	if p.Key, _, err = r.word('='); err != nil {
		return p, err
	}
	r.skipSpace()
	if err = r.expect('='); err == nil {
		err = r.expect('>')
	}
	if err != nil {
		return p, err
	}
	value, quoted, err := r.word(',')
	if p.Null = !quoted && strings.EqualFold(value, "null"); !p.Null {
		p.Value = value
	}
	if err == nil && max(len(p.Key), len(p.Value)) > maxHstoreText {
		err = pgerror.New("22001", "string too long for hstore")
	}
	return p, err
}

func parseHstore(s string) (Datum, error) {
	r := &hstoreReader{text: s}
	var pairs []HstorePair
	for {
		r.skipSpace()
		if r.at == len(s) {
			return Hstore(pairs), nil
		}
		p, err := r.pair()
		if err != nil {
			return Null, err
		}
		pairs = append(pairs, p)
		if r.skipSpace(); r.at < len(s) {
			if err := r.expect(','); err != nil {
				return Null, err
			}
		}
	}
}

// hstorePairBytes is the least that a pair takes in the binary form.
const hstorePairBytes = 8

func receiveHstore(b []byte) (Datum, error) {
	number := func() (int, error) {
		if len(b) < 4 {
			return 0, errShortMessage()
		}
		n := int(int32(binary.BigEndian.Uint32(b)))
		b = b[4:]
		return n, nil
	}
	text := func(n int) (string, error) {
		if n < 0 || n > len(b) {
			return "", errShortMessage()
		}
		d, err := ParseBinary(TText, b[:n], nil)
		b = b[n:]
		if err != nil {
			return "", err
		}
		return d.Text(), nil
	}
	n, err := number()
	switch {
	case err != nil:
		return Null, err
	case n < 0 || n > len(b)/hstorePairBytes:
		return Null, pgerror.New("54000", "number of pairs (%d) exceeds the maximum allowed (%d)", n, len(b)/hstorePairBytes)
	}
	pairs := make([]HstorePair, n)
	for i := range pairs {
		p := &pairs[i]
		size, err := number()
		if err == nil && size < 0 {
			err = pgerror.New("22004", "null value not allowed for hstore key")
		}
		if err == nil {
			p.Key, err = text(size)
		}
		if err != nil {
			return Null, err
		}
		if size, err = number(); err == nil && size >= 0 {
			p.Value, err = text(size)
		}
		if p.Null = size < 0; err != nil {
			return Null, err
		}
	}
	if len(b) > 0 {
		return Null, badBinary("incorrect binary data format")
	}
	return Hstore(pairs), nil
}

func sendHstore(dst []byte, pairs []HstorePair) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(pairs)))
	for i := range pairs {
		p := &pairs[i]
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(p.Key))), p.Key...)
		if p.Null {
			dst = binary.BigEndian.AppendUint32(dst, 0xffffffff)
			continue
		}
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(p.Value))), p.Value...)
	}
	return dst
}
