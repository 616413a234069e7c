package sql

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// tokenKind says what a token is. Punctuation uses its own character as its kind.
type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokIdent             // unquoted word, kw set when it is a keyword
	tokQuoted            // "word" or U&"word"
	tokLiteral           // number, string or bit string, class in lit
	tokParam             // $1
	tokOp                // operator; sub is its character when it has only one
	tokCast              // ::
	tokDotDot            // ..
	tokColonEq           // :=
	tokArrow             // =>
)

// The styles of a quoted token, kept in token.sub; a lexeme that needs more than cutting its quotes
// off also carries styleEscaped.
const (
	stylePlain     byte = iota // 'x' or "x"
	styleExtended              // E'x'
	styleUnicode               // U&'x' or U&"x"
	styleDollar                // $tag$x$tag$
	styleBinary                // B'01'
	styleHex                   // X'1F'
	styleNational              // N'x'
	styleNumber                // 12, 1.5e3
	styleBackslash             // 'x' or N'x' with escapes (standard_conforming_strings off)
	styleMask      byte = 0x0f
	styleEscaped   byte = 0x80
)

// token is one lexeme. Offsets are bytes of the scanned text.
type token struct {
	start, end int32
	slot       int32 // literal: index among the statement's slots, -1 when pinned
	aux        int32 // bracket: index of its partner, -1 without one; U&: the escape character
	kw         keyword.Word
	kind       tokenKind
	lit        ast.LiteralKind
	sub        byte
}

// Character classes of PostgreSQL's scanner.
const (
	classOther byte = iota
	classSpace
	classIdent // letter, underscore, byte above 127
	classDigit
	classOp
	classSelf // punctuation that is a token by itself
	classQuote
	classDoubleQuote
	classDollar
	classColon
	classDot
)

var charClass = [256]byte{
	' ': classSpace, '\t': classSpace, '\n': classSpace, '\r': classSpace, '\f': classSpace,
	'0': classDigit, '1': classDigit, '2': classDigit, '3': classDigit, '4': classDigit,
	'5': classDigit, '6': classDigit, '7': classDigit, '8': classDigit, '9': classDigit,
	'+': classOp, '-': classOp, '*': classOp, '/': classOp, '<': classOp, '>': classOp, '=': classOp,
	'~': classOp, '!': classOp, '@': classOp, '#': classOp, '%': classOp, '^': classOp, '&': classOp,
	'|': classOp, '`': classOp, '?': classOp,
	',': classSelf, '(': classSelf, ')': classSelf, '[': classSelf, ']': classSelf, ';': classSelf,
	'\'': classQuote, '"': classDoubleQuote, '$': classDollar, ':': classColon, '.': classDot,
	'_': classIdent,
	'a': classIdent, 'b': classIdent, 'c': classIdent, 'd': classIdent, 'e': classIdent, 'f': classIdent,
	'g': classIdent, 'h': classIdent, 'i': classIdent, 'j': classIdent, 'k': classIdent, 'l': classIdent,
	'm': classIdent, 'n': classIdent, 'o': classIdent, 'p': classIdent, 'q': classIdent, 'r': classIdent,
	's': classIdent, 't': classIdent, 'u': classIdent, 'v': classIdent, 'w': classIdent, 'x': classIdent,
	'y': classIdent, 'z': classIdent,
	'A': classIdent, 'B': classIdent, 'C': classIdent, 'D': classIdent, 'E': classIdent, 'F': classIdent,
	'G': classIdent, 'H': classIdent, 'I': classIdent, 'J': classIdent, 'K': classIdent, 'L': classIdent,
	'M': classIdent, 'N': classIdent, 'O': classIdent, 'P': classIdent, 'Q': classIdent, 'R': classIdent,
	'S': classIdent, 'T': classIdent, 'U': classIdent, 'V': classIdent, 'W': classIdent, 'X': classIdent,
	'Y': classIdent, 'Z': classIdent,
}

func class(c byte) byte {
	if c >= 0x80 {
		return classIdent
	}
	return charClass[c]
}

func identChar(c byte) bool {
	k := class(c)
	return k == classIdent || k == classDigit || k == classDollar
}

// maxIdentifier is PostgreSQL's NAMEDATALEN - 1.
const maxIdentifier = 63

// maxKeyword is the length of the longest keyword.
const maxKeyword = 17

// scanner cuts a text into tokens by the rules of PostgreSQL's scan.l.
type scanner struct {
	text  string
	mode  Strings
	pos   int
	base  int // characters of the query text before text
	meter *Meter
	due   int // the offset from which the meter is to be polled
	steps int // of decoding literals
	// warned are the strings with nonstandard escapes, if warn is set.
	warn   bool
	warned []escapeWarning
	// tokenBytes are drawn for the tokens (growTokens).
	tokenBytes int64
}

// newScanner makes a scanner that polls m.
func newScanner(text string, base int, mode Strings, m *Meter) scanner {
	return scanner{text: text, mode: mode, base: base, meter: m, due: pollBytes}
}

// Strings is how a text's string literals are read.
type Strings byte

const (
	// StandardStrings: a backslash stands for itself, but in E'…'.
	StandardStrings Strings = iota
	// BackslashStrings: it is an escape in all strings, and U&'…' is refused (standard_conforming_strings = off).
	BackslashStrings
)

// pollAt polls the meter if the scan of a long token, which is at offset p, has passed pollBytes.
func (s *scanner) pollAt(p int) *pgerror.Error {
	if p < s.due {
		return nil
	}
	s.due = p + pollBytes
	return s.meter.poll()
}

// tokenSize is the size of a token in memory.
const tokenSize = int64(unsafe.Sizeof(token{}))

// growTokens makes place for more tokens, as many as the text behind them may hold if it goes on as it began. A slice
// that grew as append has it would be copied often, and hold twice of what is needed.
func (s *scanner) growTokens(toks []token) ([]token, *pgerror.Error) {
	n := len(toks)
	if n < pollTokens {
		return append(toks, token{})[:n], nil
	}
	begin := int(toks[0].start)
	expected := n + int(float64(n)/float64(s.pos-begin+1)*float64(len(s.text)-s.pos)*1.05) + pollTokens
	size := min(expected, 4*n) // the beginning may be untypical
	bytes := int64(size) * tokenSize
	if err := s.meter.grow(bytes); err != nil {
		return toks, err
	}
	grown := append(make([]token, 0, size), toks...)
	s.meter.Shrink(s.tokenBytes)
	s.tokenBytes = bytes
	return grown, nil
}

// releaseTokens gives back what was drawn for the tokens.
func (s *scanner) releaseTokens() {
	s.meter.Shrink(s.tokenBytes)
	s.tokenBytes = 0
}

// errorAt makes an error that points at a byte offset of the text.
func (s *scanner) errorAt(offset int, code pgerror.Code, format string, args ...any) *pgerror.Error {
	return pgerror.New(code, format, args...).At(s.base + utf8.RuneCountInString(s.text[:offset]) + 1)
}

func (s *scanner) syntaxErrorNear(offset, end int, what string) *pgerror.Error {
	return s.errorAt(offset, pgerror.SyntaxError, `%s at or near "%s"`, what, s.text[offset:end])
}

// skipBlank moves past blanks and comments.
func (s *scanner) skipBlank() *pgerror.Error {
	for end := min(len(s.text), s.due); ; {
		if s.pos >= end {
			if s.pos >= len(s.text) {
				return nil
			}
			if err := s.pollAt(s.pos); err != nil {
				return err
			}
			end = min(len(s.text), s.due)
		}
		c := s.text[s.pos]
		switch {
		case charClass[c] == classSpace:
			s.pos++
		case c == '-' && strings.HasPrefix(s.text[s.pos:], "--"):
			s.skipLine()
		case c == '/' && strings.HasPrefix(s.text[s.pos:], "/*"):
			if err := s.skipComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (s *scanner) skipLine() {
	n := strings.IndexAny(s.text[s.pos:], "\n\r")
	if n < 0 {
		n = len(s.text) - s.pos
	}
	s.pos += n
}

// skipComment moves past a block comment; they nest.
func (s *scanner) skipComment() *pgerror.Error {
	start, depth := s.pos, 0
	for s.pos < len(s.text) {
		if err := s.pollAt(s.pos); err != nil {
			return err
		}
		switch rest := s.text[s.pos:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			s.pos += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			s.pos++
		}
	}
	return s.syntaxErrorNear(start, len(s.text), "unterminated /* comment")
}

// next scans one token into t; its kind is tokEOF at the end of the text.
func (s *scanner) next(t *token) *pgerror.Error {
	if err := s.skipBlank(); err != nil {
		return err
	}
	*t = token{start: int32(s.pos), end: int32(s.pos), slot: -1, aux: -1}
	if s.pos >= len(s.text) {
		return nil
	}
	c := s.text[s.pos]
	var err *pgerror.Error
	switch class(c) {
	case classIdent:
		err = s.word(t, c)
	case classDigit:
		err = s.number(t)
	case classOp:
		err = s.operator(t)
	case classSelf:
		t.kind = tokenKind(c)
		s.pos++
	case classQuote:
		err = s.quoted(t, s.pos, stylePlain)
	case classDoubleQuote:
		err = s.quotedIdent(t, s.pos, stylePlain)
	case classDollar:
		err = s.dollar(t)
	case classColon:
		s.colon(t)
	case classDot:
		err = s.dot(t)
	default:
		err = s.stray(c)
	}
	t.end = int32(s.pos)
	return err
}

func (s *scanner) stray(c byte) *pgerror.Error {
	if c == 0 {
		return invalidBytes("0x00")
	}
	return s.syntaxErrorNear(s.pos, s.pos+1, "syntax error")
}

func (s *scanner) colon(t *token) {
	switch rest := s.text[s.pos:]; {
	case strings.HasPrefix(rest, "::"):
		t.kind = tokCast
		s.pos += 2
	case strings.HasPrefix(rest, ":="):
		t.kind = tokColonEq
		s.pos += 2
	default:
		t.kind = ':'
		s.pos++
	}
}

func (s *scanner) dot(t *token) *pgerror.Error {
	if s.pos+1 < len(s.text) {
		switch next := s.text[s.pos+1]; {
		case next == '.':
			t.kind = tokDotDot
			s.pos += 2
			return nil
		case class(next) == classDigit:
			return s.number(t)
		}
	}
	t.kind = '.'
	s.pos++
	return nil
}

// word scans an identifier, a keyword, or a string with a letter before its quote.
func (s *scanner) word(t *token, c byte) *pgerror.Error {
	if style, prefix := s.stringPrefix(c); prefix > 0 {
		quote := s.pos + prefix
		if s.text[quote] == '"' {
			return s.quotedIdent(t, quote, style)
		}
		if style == styleUnicode && s.mode == BackslashStrings {
			return s.errorAt(s.pos, pgerror.FeatureNotSupported, "unsafe use of string constant with Unicode escapes").
				WithDetail("String constants with Unicode escapes cannot be used when standard_conforming_strings is off.")
		}
		return s.quoted(t, quote, style)
	}
	text, p := s.text, s.pos
	for p < len(text) && identChar(text[p]) {
		p++
	}
	t.kind = tokIdent
	if n := p - s.pos; n <= maxKeyword {
		var lower [maxKeyword]byte
		for i := 0; i < n; i++ {
			lower[i] = lowerByte(text[s.pos+i])
		}
		t.kw = keyword.Lookup(lower[:n])
	}
	s.pos = p
	return nil
}

// stringPrefix recognises E', B', X', N', U&' and U&"; prefix is the offset of the quote, 0 if none.
func (s *scanner) stringPrefix(c byte) (style byte, prefix int) {
	if s.pos+1 >= len(s.text) {
		return 0, 0
	}
	next := s.text[s.pos+1]
	if next == '&' && (c == 'u' || c == 'U') && s.pos+2 < len(s.text) {
		if q := s.text[s.pos+2]; q == '\'' || q == '"' {
			return styleUnicode, 2
		}
	}
	if next != '\'' {
		return 0, 0
	}
	switch c {
	case 'e', 'E':
		return styleExtended, 1
	case 'b', 'B':
		return styleBinary, 1
	case 'x', 'X':
		return styleHex, 1
	case 'n', 'N':
		return styleNational, 1
	}
	return 0, 0
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// dollar scans $1 or a dollar-quoted string.
func (s *scanner) dollar(t *token) *pgerror.Error {
	text, start := s.text, s.pos
	p := start + 1
	if p < len(text) && class(text[p]) == classDigit {
		for p < len(text) && class(text[p]) == classDigit {
			p++
		}
		if p < len(text) && class(text[p]) == classIdent {
			return s.junk(start, p, "trailing junk after parameter")
		}
		t.kind, s.pos = tokParam, p
		return nil
	}
	for p < len(text) && (class(text[p]) == classIdent || p > start+1 && class(text[p]) == classDigit) {
		p++
	}
	if p >= len(text) || text[p] != '$' {
		return s.stray('$')
	}
	tag := text[start : p+1]
	n := strings.Index(text[p+1:], tag)
	if n < 0 {
		return s.syntaxErrorNear(start, len(text), "unterminated dollar-quoted string")
	}
	t.kind, t.lit, t.sub = tokLiteral, ast.LiteralString, styleDollar
	s.pos = p + 1 + n + len(tag)
	return nil
}

// junk reports letters right behind a number; the whole word belongs to the message.
func (s *scanner) junk(start, p int, what string) *pgerror.Error {
	for p < len(s.text) && identChar(s.text[p]) {
		p++
	}
	return s.syntaxErrorNear(start, p, what)
}

// number scans an integer or a decimal number.
func (s *scanner) number(t *token) *pgerror.Error {
	text, start := s.text, s.pos
	p := digits(text, start)
	numeric := false
	// "1..10" is an integer and a range, not two decimals.
	if p < len(text) && text[p] == '.' && !strings.HasPrefix(text[p:], "..") {
		numeric = true
		p = digits(text, p+1)
	}
	if p < len(text) && (text[p] == 'e' || text[p] == 'E') {
		e := p + 1
		if e < len(text) && (text[e] == '+' || text[e] == '-') {
			e++
		}
		end := digits(text, e)
		if end == e {
			return s.junk(start, e, "trailing junk after numeric literal")
		}
		numeric, p = true, end
	}
	if p < len(text) && class(text[p]) == classIdent {
		return s.junk(start, p, "trailing junk after numeric literal")
	}
	t.kind, t.sub, s.pos = tokLiteral, styleNumber, p
	t.lit = ast.LiteralNumeric
	if !numeric {
		t.lit = integerKind(text[start:p])
	}
	return nil
}

func digits(text string, p int) int {
	for p < len(text) && class(text[p]) == classDigit {
		p++
	}
	return p
}

// The largest values of the integer types; one more is the magnitude of the smallest.
const (
	maxInt4 = "2147483647"
	maxInt8 = "9223372036854775807"
	minInt4 = "2147483648"
	minInt8 = "9223372036854775808"
)

// integerKind classes an integer by size, as PostgreSQL's make_const does.
func integerKind(text string) ast.LiteralKind {
	if len(text) < len(maxInt4) {
		return ast.LiteralInt4
	}
	text = strings.TrimLeft(text, "0")
	switch n := len(text); {
	case n < len(maxInt4) || n == len(maxInt4) && text <= maxInt4:
		return ast.LiteralInt4
	case n < len(maxInt8) || n == len(maxInt8) && text <= maxInt8:
		return ast.LiteralInt8
	}
	return ast.LiteralNumeric
}

// operator scans an operator by PostgreSQL's rules: a comment ends it, and a trailing + or - belongs
// to it only when it holds a character that no SQL-standard operator has.
func (s *scanner) operator(t *token) *pgerror.Error {
	text, start := s.text, s.pos
	p := start + 1
	for p < len(text) && charClass[text[p]] == classOp {
		if c := text[p]; (c == '-' || c == '*') && text[p-1] == commentLead(c) {
			p--
			break
		}
		p++
	}
	if op := text[start:p]; len(op) > 1 && !strings.ContainsAny(op, "~!@#^&|`?%") {
		for p > start+1 && (text[p-1] == '+' || text[p-1] == '-') {
			p--
		}
	}
	t.kind, s.pos = tokOp, p
	switch op := text[start:p]; {
	case len(op) == 1:
		t.sub = op[0]
	case op == "=>":
		t.kind = tokArrow
	case len(op) > maxIdentifier:
		return s.errorAt(start, pgerror.SyntaxError, "operator too long")
	}
	return nil
}

// commentLead is the character that, before c, starts a comment.
func commentLead(c byte) byte {
	if c == '*' {
		return '/'
	}
	return '-'
}

// quoted scans a string literal whose opening quote stands at quote.
func (s *scanner) quoted(t *token, quote int, style byte) *pgerror.Error {
	if s.mode == BackslashStrings && (style == stylePlain || style == styleNational) {
		style = styleBackslash
	}
	text, start := s.text, s.pos
	t.kind, t.lit, t.sub = tokLiteral, ast.LiteralString, style
	if style == styleBinary || style == styleHex {
		t.lit = ast.LiteralBit
	}
	p := quote + 1
	for {
		var ok bool
		var err *pgerror.Error
		if p, ok, err = s.endOfQuote(p, style == styleExtended || style == styleBackslash, &t.sub); err != nil {
			return err
		}
		if !ok {
			return s.syntaxErrorNear(start, len(text), unterminated(style))
		}
		next := continuation(text, p)
		if next == 0 {
			break
		}
		t.sub |= styleEscaped
		p = next + 1
	}
	s.pos = p
	if style == styleUnicode {
		return s.uescape(t)
	}
	if s.warn && style == styleBackslash {
		if at := strings.IndexByte(text[quote:p], '\\'); at >= 0 {
			s.warned = append(s.warned, escapeWarning{offset: int32(start), escape: text[quote+at+1]})
		}
	}
	return nil
}

// escapeWarning is a string with an escape that is none where standard_conforming_strings is on.
type escapeWarning struct {
	offset int32
	escape byte // the character behind the first backslash
}

// message is PostgreSQL's warning.
func (w escapeWarning) message() *pgerror.Error {
	const code = pgerror.NonstandardEscape
	switch w.escape {
	case '\'':
		return pgerror.New(code, `nonstandard use of \' in a string literal`).
			WithHint(`Use '' to write quotes in strings, or use the escape string syntax (E'...').`)
	case '\\':
		return pgerror.New(code, `nonstandard use of \\ in a string literal`).WithHint(`Use the escape string syntax for backslashes, e.g., E'\\'.`)
	}
	return pgerror.New(code, "nonstandard use of escape in a string literal").WithHint(`Use the escape string syntax for escapes, e.g., E'\r\n'.`)
}

// endOfQuote finds the quote that ends a string whose content starts at p and returns the offset
// behind it. It marks in sub that the content needs decoding.
func (s *scanner) endOfQuote(p int, backslash bool, sub *byte) (int, bool, *pgerror.Error) {
	text := s.text
	if !backslash {
		for {
			n := strings.IndexByte(text[p:], '\'')
			if n < 0 {
				return p, false, nil
			}
			p += n + 1
			if p >= len(text) || text[p] != '\'' {
				return p, true, nil
			}
			*sub |= styleEscaped
			p++
			if err := s.pollAt(p); err != nil {
				return p, false, err
			}
		}
	}
	for p < len(text) {
		if err := s.pollAt(p); err != nil {
			return p, false, err
		}
		switch text[p] {
		case '\\':
			*sub |= styleEscaped
			p++
		case '\'':
			if p+1 >= len(text) || text[p+1] != '\'' {
				return p + 1, true, nil
			}
			*sub |= styleEscaped
			p++
		}
		p++
	}
	return p, false, nil
}

// continuation returns the offset of the quote that continues a string ended before p (strings
// with only blanks and a line break between them are one), 0 if there is none.
func continuation(text string, p int) int {
	newline := false
	for p < len(text) {
		switch c := text[p]; {
		case c == '\n' || c == '\r':
			newline = true
			p++
		case charClass[c] == classSpace:
			p++
		case c == '-' && strings.HasPrefix(text[p:], "--"):
			n := strings.IndexAny(text[p:], "\n\r")
			if n < 0 {
				return 0
			}
			p += n
		case c == '\'' && newline:
			return p
		default:
			return 0
		}
	}
	return 0
}

func unterminated(style byte) string {
	switch style {
	case styleBinary:
		return "unterminated bit string literal"
	case styleHex:
		return "unterminated hexadecimal string literal"
	}
	return "unterminated quoted string"
}

// quotedIdent scans a quoted identifier whose opening quote stands at quote.
func (s *scanner) quotedIdent(t *token, quote int, style byte) *pgerror.Error {
	text, start := s.text, s.pos
	t.kind, t.sub = tokQuoted, style
	p := quote + 1
	for {
		n := strings.IndexByte(text[p:], '"')
		if n < 0 {
			return s.syntaxErrorNear(start, len(text), "unterminated quoted identifier")
		}
		p += n + 1
		if p >= len(text) || text[p] != '"' {
			break
		}
		t.sub |= styleEscaped
		p++
		if err := s.pollAt(p); err != nil {
			return err
		}
	}
	if p == quote+2 {
		return s.syntaxErrorNear(start, p, "zero-length delimited identifier")
	}
	s.pos = p
	if style == styleUnicode {
		return s.uescape(t)
	}
	return nil
}

// uescape scans an optional UESCAPE 'c' behind a U& token and makes it part of the token.
func (s *scanner) uescape(t *token) *pgerror.Error {
	t.sub |= styleEscaped
	t.aux = '\\'
	end := s.pos
	if err := s.skipBlank(); err != nil {
		return err
	}
	const word = "uescape"
	rest := s.text[s.pos:]
	if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) ||
		len(rest) > len(word) && identChar(rest[len(word)]) {
		s.pos = end
		return nil
	}
	s.pos += len(word)
	if err := s.skipBlank(); err != nil {
		return err
	}
	rest = s.text[s.pos:]
	if len(rest) < 3 || rest[0] != '\'' || rest[2] != '\'' || !validEscape(rest[1]) {
		return s.errorAt(s.pos, pgerror.SyntaxError, "invalid Unicode escape character")
	}
	t.aux = int32(rest[1])
	s.pos += 3
	return nil
}

func validEscape(c byte) bool {
	return c < 0x80 && !isHex(c) && c != '+' && c != '\'' && c != '"' && charClass[c] != classSpace
}

func isHex(c byte) bool {
	c = lowerByte(c)
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
}

func invalidBytes(bytes string) *pgerror.Error {
	return pgerror.New(pgerror.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": %s`, bytes)
}
