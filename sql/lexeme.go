package sql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// ident returns a name token's identifier: folded when unquoted, decoded when quoted, cut to 63 bytes.
func (s *scanner) ident(t *token) (string, *pgerror.Error) {
	raw := s.text[t.start:t.end]
	if t.kind == tokIdent {
		raw = raw[:min(len(raw), maxIdentifier+utf8.UTFMax)]
		for i := 0; i < len(raw); i++ {
			if c := raw[i]; 'A' <= c && c <= 'Z' {
				raw = kw.Fold(raw)
				break
			}
		}
		return truncateIdent(raw), nil
	}
	if t.sub&styleMask == styleUnicode {
		close := strings.LastIndexByte(raw, '"')
		body := strings.ReplaceAll(raw[3:close], `""`, `"`)
		name, err := s.unescapeUnicode(body, rune(t.aux), int(t.start))
		if err == nil && name == "" {
			err = s.syntaxErrorNear(int(t.start), int(t.end), "zero-length delimited identifier")
		}
		return truncateIdent(name), err
	}
	raw = raw[1 : len(raw)-1]
	if t.sub&styleEscaped != 0 {
		raw = strings.ReplaceAll(raw, `""`, `"`)
	}
	return truncateIdent(raw), nil
}

func truncateIdent(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	n := maxIdentifier
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// drawnLiteral is the size of the smallest literal whose decoded value draws memory.
const drawnLiteral = 32 << 10

// step counts a byte of a literal that is decoded, or a part of it.
func (s *scanner) step() *pgerror.Error {
	if s.steps++; s.steps&(pollBytes-1) == 0 {
		return s.meter.poll()
	}
	return nil
}

// literal returns a literal token's value: no quotes, escapes applied, bit strings as binary digits. A long one that is no
// part of the text draws memory.
func (s *scanner) literal(t *token) (string, *pgerror.Error) {
	raw := s.text[t.start:t.end]
	if len(raw) >= drawnLiteral {
		bytes := int64(0)
		if t.lit == ast.LiteralBit {
			bytes = 4 * int64(len(raw))
		} else if t.sub&styleEscaped != 0 {
			bytes = int64(len(raw))
		}
		if bytes > 0 {
			if err := s.meter.grow(bytes); err != nil {
				return "", err
			}
		}
	}
	switch style := t.sub & styleMask; style {
	case styleNumber:
		if raw[0] == '-' { // foldMinimum joined it with the sign; blanks and comments may lie between
			return "-" + raw[len(raw)-minimumDigits(t.lit):], nil
		}
		return raw, nil
	case styleDollar:
		tag := strings.IndexByte(raw[1:], '$') + 2
		return raw[tag : len(raw)-tag], nil
	case stylePlain:
		if t.sub&styleEscaped == 0 {
			return raw[1 : len(raw)-1], nil
		}
		return s.joinParts(raw, t)
	case styleExtended:
		if t.sub&styleEscaped == 0 {
			return raw[2 : len(raw)-1], nil
		}
		return s.unescape(t, 2)
	case styleBackslash:
		prefix := strings.IndexByte(raw, '\'') + 1
		if t.sub&styleEscaped == 0 {
			return raw[prefix : len(raw)-1], nil
		}
		return s.unescape(t, prefix)
	case styleUnicode:
		body, err := s.joinParts(raw[2:], t)
		if err != nil {
			return "", err
		}
		return s.unescapeUnicode(body, rune(t.aux), int(t.start))
	case styleNational:
		return s.joinParts(raw[1:], t)
	default:
		body, err := s.joinParts(raw[1:], t)
		if err != nil {
			return "", err
		}
		return s.bits(body, style, int(t.start))
	}
}

// joinParts strips the quotes of a string without backslash escapes: adjacent strings become one,
// doubled quotes single.
func (s *scanner) joinParts(raw string, t *token) (string, *pgerror.Error) {
	if t.sub&styleEscaped == 0 {
		return raw[1 : len(raw)-1], nil
	}
	b := make([]byte, 0, len(raw))
	for p := 1; ; {
		if err := s.step(); err != nil {
			return "", err
		}
		n := strings.IndexByte(raw[p:], '\'')
		b = append(b, raw[p:p+n]...)
		p += n + 1
		if p < len(raw) && raw[p] == '\'' {
			b = append(b, '\'')
			p++
			continue
		}
		next := continuation(raw, p)
		if next == 0 {
			return ownString(b), nil
		}
		p = next + 1
	}
}

// ownString returns a string that shares b's memory. The caller must not use b afterwards.
func ownString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bits turns the digits of a bit string into binary digits.
func (s *scanner) bits(body string, style byte, offset int) (string, *pgerror.Error) {
	if style == styleBinary {
		for i, c := range body {
			if err := s.step(); err != nil {
				return "", err
			}
			if c != '0' && c != '1' {
				return "", s.errorAt(offset, pgerror.InvalidTextRepresentation,
					`"%s" is not a valid binary digit`, firstChar(body[i:]))
			}
		}
		return body, nil
	}
	b := make([]byte, 0, 4*len(body))
	for i := range len(body) {
		if err := s.step(); err != nil {
			return "", err
		}
		if !isHex(body[i]) {
			return "", s.errorAt(offset, pgerror.InvalidTextRepresentation,
				`"%s" is not a valid hexadecimal digit`, firstChar(body[i:]))
		}
		v, _ := strconv.ParseUint(body[i:i+1], 16, 8) // isHex made it valid
		b = append(b, '0'+byte(v>>3), '0'+byte(v>>2&1), '0'+byte(v>>1&1), '0'+byte(v&1))
	}
	return ownString(b), nil
}

func firstChar(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

// unescape applies the backslash escapes of a string whose content begins at prefix.
func (s *scanner) unescape(t *token, prefix int) (string, *pgerror.Error) {
	raw := s.text[t.start:t.end]
	b := make([]byte, 0, len(raw))
	for p := prefix; ; {
		if err := s.step(); err != nil {
			return "", err
		}
		switch c := raw[p]; c {
		case '\\':
			n, err := s.escape(&b, raw[p:], int(t.start)+p)
			if err != nil {
				return "", err
			}
			p += n
		case '\'':
			if p++; p < len(raw) && raw[p] == '\'' {
				b = append(b, c)
				p++
				continue
			}
			next := continuation(raw, p)
			if next == 0 {
				return validText(b)
			}
			p = next + 1
		default:
			b = append(b, c)
			p++
		}
	}
}

// validText refuses bytes that escapes made and UTF-8 does not have.
func validText(b []byte) (string, *pgerror.Error) {
	text := ownString(b)
	if strings.IndexByte(text, 0) >= 0 {
		return "", invalidBytes("0x00")
	}
	if !utf8.ValidString(text) {
		return "", invalidUTF8(text)
	}
	return text, nil
}

// invalidUTF8 names the first bytes of text that are not UTF-8, as PostgreSQL does.
func invalidUTF8(text string) *pgerror.Error {
	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}
		if _, n := utf8.DecodeRuneInString(text[i:]); n > 1 {
			continue
		}
		return invalidBytes(hexBytes(text[i:]))
	}
	return invalidBytes("0x00")
}

// hexBytes prints the bytes PostgreSQL takes for one character: as many as the first byte promises.
func hexBytes(text string) string {
	n := 1
	switch c := text[0]; {
	case c >= 0xf0 && c < 0xf8:
		n = 4
	case c >= 0xe0 && c < 0xf0:
		n = 3
	case c >= 0xc0 && c < 0xe0:
		n = 2
	}
	parts := make([]string, 0, 4)
	for i := 0; i < n && i < len(text); i++ {
		parts = append(parts, fmt.Sprintf("0x%02x", text[i]))
	}
	return strings.Join(parts, " ")
}

// escape decodes the escape at the start of rest, which stands at offset, and returns its length.
func (s *scanner) escape(b *[]byte, rest string, offset int) (int, *pgerror.Error) {
	switch c := rest[1]; c {
	case 'b':
		*b = append(*b, '\b')
	case 'f':
		*b = append(*b, '\f')
	case 'n':
		*b = append(*b, '\n')
	case 'r':
		*b = append(*b, '\r')
	case 't':
		*b = append(*b, '\t')
	case 'u', 'U':
		return s.escapeRune(b, rest, offset)
	case 'x':
		n := 2
		for n < 4 && isHex(rest[n]) {
			n++
		}
		if n == 2 {
			*b = append(*b, 'x')
			break
		}
		v, _ := strconv.ParseUint(rest[2:n], 16, 8) // digits were checked
		*b = append(*b, byte(v))
		return n, nil
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < 4 && '0' <= rest[n] && rest[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(rest[1:n], 8, 16) // digits were checked
		*b = append(*b, byte(v))
		return n, nil
	default:
		*b = append(*b, c)
	}
	return 2, nil
}

// escapeRune decodes \uXXXX and \UXXXXXXXX, with surrogate pairs.
func (s *scanner) escapeRune(b *[]byte, rest string, offset int) (int, *pgerror.Error) {
	size := func(c byte) int {
		if c == 'u' {
			return 4
		}
		return 8
	}
	invalid := func() *pgerror.Error {
		return s.errorAt(offset, pgerror.InvalidEscapeSequence, "invalid Unicode escape").
			WithHint(`Unicode escapes must be \uXXXX or \UXXXXXXXX.`)
	}
	n := 2 + size(rest[1])
	r, ok := hexRune(rest, 2, n)
	if !ok {
		return 0, invalid()
	}
	if isHighSurrogate(r) {
		if len(rest) < n+2 || rest[n] != '\\' || rest[n+1] != 'u' && rest[n+1] != 'U' {
			return 0, s.surrogate(offset)
		}
		end := n + 2 + size(rest[n+1])
		low, ok := hexRune(rest, n+2, end)
		if !ok {
			return 0, invalid()
		}
		if !isLowSurrogate(low) {
			return 0, s.surrogate(offset)
		}
		r, n = joinSurrogates(r, low), end
	}
	return n, s.appendRune(b, r, offset)
}

func (s *scanner) surrogate(offset int) *pgerror.Error {
	return s.errorAt(offset, pgerror.SyntaxError, "invalid Unicode surrogate pair")
}

func isHighSurrogate(r rune) bool { return 0xD800 <= r && r < 0xDC00 }
func isLowSurrogate(r rune) bool  { return 0xDC00 <= r && r < 0xE000 }

func joinSurrogates(high, low rune) rune {
	return (high-0xD800)<<10 + (low - 0xDC00) + 0x10000
}

// appendRune appends a code point that an escape names; 0 and lone surrogates are refused.
func (s *scanner) appendRune(b *[]byte, r rune, offset int) *pgerror.Error {
	switch {
	case isLowSurrogate(r) || isHighSurrogate(r):
		return s.surrogate(offset)
	case r <= 0 || r > utf8.MaxRune:
		return s.errorAt(offset, pgerror.SyntaxError, "invalid Unicode escape value")
	}
	*b = utf8.AppendRune(*b, r)
	return nil
}

// hexRune reads the hexadecimal digits rest[from:to].
func hexRune(rest string, from, to int) (rune, bool) {
	if len(rest) < to {
		return 0, false
	}
	for i := from; i < to; i++ {
		if !isHex(rest[i]) {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(rest[from:to], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return -1, err == nil // well formed, but not a character: refused by its value
	}
	return rune(v), true
}

// unescapeUnicode applies the escapes of a U& string or identifier.
func (s *scanner) unescapeUnicode(body string, escape rune, offset int) (string, *pgerror.Error) {
	if strings.IndexByte(body, byte(escape)) < 0 {
		return body, nil
	}
	b := make([]byte, 0, len(body))
	var high rune
	for p := 0; p < len(body); {
		if err := s.step(); err != nil {
			return "", err
		}
		if rune(body[p]) != escape || strings.HasPrefix(body[p+1:], string(escape)) {
			if high != 0 {
				return "", s.surrogate(offset)
			}
			b = append(b, body[p])
			if rune(body[p]) == escape {
				p++
			}
			p++
			continue
		}
		from, to := p+1, p+5
		if strings.HasPrefix(body[p+1:], "+") {
			from, to = p+2, p+8
		}
		r, ok := hexRune(body, from, to)
		if !ok {
			return "", s.errorAt(offset, pgerror.SyntaxError, "invalid Unicode escape").
				WithHint(`Unicode escapes must be \XXXX or \+XXXXXX.`)
		}
		p = to
		switch {
		case high != 0 && !isLowSurrogate(r):
			return "", s.surrogate(offset)
		case high != 0:
			r, high = joinSurrogates(high, r), 0
		case isHighSurrogate(r):
			high = r
			continue
		}
		if err := s.appendRune(&b, r, offset); err != nil {
			return "", err
		}
	}
	if high != 0 {
		return "", s.surrogate(offset)
	}
	return ownString(b), nil
}

// literalKindMark is how a literal of a kind shows in a plan cache key.
func literalKindMark(kind ast.LiteralKind) byte {
	switch kind {
	case ast.LiteralInt4:
		return '4'
	case ast.LiteralInt8:
		return '8'
	case ast.LiteralNumeric:
		return 'n'
	case ast.LiteralBit:
		return 'b'
	}
	return 's'
}
