package are

import "unicode/utf8"

// Flags are the options of an expression, given by letters in PostgreSQL's functions.
type Flags uint16

// The options. An expression is advanced if it is neither Basic, Extended nor Quote.
const (
	FoldCase      Flags = 1 << iota // i
	NewlineDot                      // . and [^…] do not match a newline: part of n, and p
	NewlineAnchor                   // ^ and $ match at lines: part of n, and w
	Expanded                        // x: white space and comments
	Extended                        // e: without the features of advanced expressions
	Basic                           // b
	Quote                           // q: a literal text
)

const newline = NewlineDot | NewlineAnchor

// Set applies an option's letter; false if there is none.
func (f *Flags) Set(letter byte) bool {
	switch letter {
	case 'b':
		*f = *f&^(Extended|Quote) | Basic
	case 'c':
		*f &^= FoldCase
	case 'e':
		*f = *f&^(Basic|Quote) | Extended
	case 'i':
		*f |= FoldCase
	case 'm', 'n':
		*f |= newline
	case 'p':
		*f = *f&^NewlineAnchor | NewlineDot
	case 'q':
		*f = *f&^(Basic|Extended) | Quote
	case 's':
		*f &^= newline
	case 't':
		*f &^= Expanded
	case 'w':
		*f = *f&^NewlineDot | NewlineAnchor
	case 'x':
		*f |= Expanded
	default:
		return false
	}
	return true
}

func (f Flags) advanced() bool { return f&(Basic|Extended|Quote) == 0 }

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokNone tokenKind = iota
	tokEnd
	tokPlain   // value: the character
	tokBackref // value: the group
	tokClass   // value: a class
	tokNotClass
	tokLook // value: a lookKind
	tokBegin
	tokFinish
	tokWordStart
	tokWordEnd
	tokWordEdge
	tokNotWordEdge
	tokCaret
	tokDollar
	tokDot
	tokAlt
	tokOpen  // value 1: captures
	tokClose // value: ')'
	tokStar  // quantifiers: value 1 greedy, 0 not
	tokPlus
	tokQuestion
	tokBraceOpen
	tokBraceClose // value 1 greedy, 0 not
	tokDigit
	tokComma
	tokBracket // value 1 plain, 0 complemented
	tokBracketClose
	tokDash
	tokCollating
	tokEquivalence
	tokCharClass
)

// lexState is where the lexer is.
type lexState uint8

const (
	inPattern lexState = iota
	inBounds
	inBracket
	inName // of a collating element, equivalence class or character class
)

type token struct {
	kind  tokenKind
	value int32
	name  string // of tokCollating and the like
}

type lexer struct {
	src   string
	at    int
	flags Flags
	state lexState
	tok   token
	last  tokenKind // of the token before
	opens int32     // capturing parentheses so far
}

// prefixes reads what may precede the expression itself: a director and embedded options.
func (l *lexer) prefixes() {
	if l.flags&Quote != 0 {
		return
	}
	if len(l.src) >= 4 && l.src[:3] == "***" {
		switch l.src[3] {
		case '?':
			fail(errPattern)
		case '=':
			l.flags = l.flags&^(Basic|Extended|Expanded|newline) | Quote
			l.at = 4
			return
		case ':':
			l.flags &^= Basic | Extended
			l.at = 4
		default:
			fail(errRepeat)
		}
	} else if len(l.src) == 3 && l.src == "***" {
		return // the parser refuses it
	}
	if !l.flags.advanced() {
		return
	}
	rest := l.src[l.at:]
	if len(rest) < 3 || rest[0] != '(' || rest[1] != '?' || !isLetter(rest[2]) {
		return
	}
	l.at += 2
	for l.at < len(l.src) && isLetter(l.src[l.at]) {
		if !l.flags.Set(l.src[l.at]) {
			fail(errOption)
		}
		l.at++
	}
	if l.at == len(l.src) || l.src[l.at] != ')' {
		fail(errOption)
	}
	l.at++
	if l.flags&Quote != 0 {
		l.flags &^= Expanded | newline
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isSpace(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }

func (l *lexer) end() bool { return l.at >= len(l.src) }

// peek reports whether the next byte is c.
func (l *lexer) peek(c byte) bool { return l.at < len(l.src) && l.src[l.at] == c }

func (l *lexer) accept(c byte) bool {
	if l.peek(c) {
		l.at++
		return true
	}
	return false
}

func (l *lexer) rune() int32 {
	r, n := utf8.DecodeRuneInString(l.src[l.at:])
	l.at += n
	return r
}

func (l *lexer) set(kind tokenKind, value int32) { l.tok = token{kind: kind, value: value} }

// next reads the next token.
func (l *lexer) next() {
	l.last = l.tok.kind
	if l.flags&Expanded != 0 && l.state <= inBounds {
		l.skipSpace()
	}
	if l.end() {
		switch l.state {
		case inBounds:
			fail(errBrace)
		case inBracket, inName:
			fail(errBracket)
		}
		l.set(tokEnd, 0)
		return
	}
	switch {
	case l.flags&Quote != 0:
		l.set(tokPlain, l.rune())
	case l.state == inBounds:
		l.bounds()
	case l.state == inBracket:
		l.bracket()
	case l.flags&Basic != 0:
		l.basic()
	default:
		l.pattern()
	}
}

// skipSpace skips white space and comments of expanded syntax.
func (l *lexer) skipSpace() {
	for {
		for !l.end() && isSpace(l.src[l.at]) {
			l.at++
		}
		if !l.peek('#') {
			return
		}
		for !l.end() && l.src[l.at] != '\n' {
			l.at++
		}
	}
}

func (l *lexer) bounds() {
	c := l.src[l.at]
	l.at++
	switch {
	case isDigit(c):
		l.set(tokDigit, int32(c-'0'))
	case c == ',':
		l.set(tokComma, 0)
	case c == '}' && l.flags&Basic == 0:
		l.state = inPattern
		greedy := int32(1)
		if l.flags.advanced() && l.accept('?') {
			greedy = 0
		}
		l.set(tokBraceClose, greedy)
	case c == '\\' && l.flags&Basic != 0 && l.accept('}'):
		l.state = inPattern
		l.set(tokBraceClose, 1)
	default:
		fail(errBounds)
	}
}

// bracket reads a token within [ ].
func (l *lexer) bracket() {
	switch c := l.src[l.at]; {
	case c == '\\' && l.flags.advanced():
		l.at++
		if l.end() {
			fail(errEscape)
		}
		l.escape()
		switch l.tok.kind {
		case tokPlain, tokClass, tokNotClass:
		default:
			fail(errEscape)
		}
	case c == '-':
		l.at++
		if l.last == tokBracket || l.peek(']') {
			l.set(tokPlain, '-')
		} else {
			l.set(tokDash, '-')
		}
	case c == '[':
		l.at++
		if l.end() {
			fail(errBracket)
		}
		switch d := l.src[l.at]; d {
		case '.', '=', ':':
			l.at++
			l.named(d)
		default:
			l.set(tokPlain, '[')
		}
	case c == ']' && l.last != tokBracket:
		l.at++
		l.state = inPattern
		l.set(tokBracketClose, 0)
	default:
		l.set(tokPlain, l.rune())
	}
}

// named reads the name in [. .], [= =] or [: :].
func (l *lexer) named(delim byte) {
	start := l.at
	for ; l.at+1 < len(l.src); l.at++ {
		if l.src[l.at] == delim && l.src[l.at+1] == ']' {
			kinds := map[byte]tokenKind{'.': tokCollating, '=': tokEquivalence, ':': tokCharClass}
			l.tok = token{kind: kinds[delim], name: l.src[start:l.at]}
			l.at += 2
			return
		}
	}
	fail(errBracket)
}

// bracketStart reads what follows [ in a pattern.
func (l *lexer) bracketStart() {
	rest := l.src[l.at:]
	if len(rest) >= 6 && rest[0] == '[' && rest[1] == ':' && (rest[2] == '<' || rest[2] == '>') && rest[3:6] == ":]]" {
		l.at += 6
		if rest[2] == '<' {
			l.set(tokWordStart, 0)
		} else {
			l.set(tokWordEnd, 0)
		}
		return
	}
	l.state = inBracket
	if l.accept('^') {
		l.set(tokBracket, 0)
		return
	}
	l.set(tokBracket, 1)
}

// pattern reads a token of an extended or advanced expression.
func (l *lexer) pattern() {
	quantifier := func(kind tokenKind) {
		greedy := int32(1)
		if l.flags.advanced() && l.accept('?') {
			greedy = 0
		}
		l.set(kind, greedy)
	}
	r := l.rune()
	switch r {
	case '|':
		l.set(tokAlt, 0)
	case '*':
		quantifier(tokStar)
	case '+':
		quantifier(tokPlus)
	case '?':
		quantifier(tokQuestion)
	case '{':
		if l.flags&Expanded != 0 {
			l.skipSpace()
		}
		if l.end() || !isDigit(l.src[l.at]) {
			l.set(tokPlain, r)
			return
		}
		l.state = inBounds
		l.set(tokBraceOpen, 0)
	case '(':
		if l.flags.advanced() && l.accept('?') {
			l.group()
			return
		}
		l.opens++
		l.set(tokOpen, 1)
	case ')':
		l.set(tokClose, ')')
	case '[':
		l.bracketStart()
	case '.':
		l.set(tokDot, 0)
	case '^':
		l.set(tokCaret, 0)
	case '$':
		l.set(tokDollar, 0)
	case '\\':
		if l.end() {
			fail(errEscape)
		}
		if !l.flags.advanced() {
			l.set(tokPlain, l.rune())
			return
		}
		l.escape()
	default:
		l.set(tokPlain, r)
	}
}

// group reads what follows (? in a pattern.
func (l *lexer) group() {
	if l.end() {
		fail(errRepeat)
	}
	l.at++
	switch l.src[l.at-1] {
	case ':':
		l.set(tokOpen, 0)
	case '#':
		for !l.end() && l.src[l.at] != ')' {
			l.at++
		}
		l.accept(')')
		last := l.last
		l.next()
		l.last = last
	case '=':
		l.set(tokLook, int32(lookAhead))
	case '!':
		l.set(tokLook, int32(lookNotAhead))
	case '<':
		if l.end() {
			fail(errRepeat)
		}
		l.at++
		switch l.src[l.at-1] {
		case '=':
			l.set(tokLook, int32(lookBehind))
		case '!':
			l.set(tokLook, int32(lookNotBehind))
		default:
			fail(errRepeat)
		}
	default:
		fail(errRepeat)
	}
}

// escape reads what follows \ in an advanced expression.
func (l *lexer) escape() {
	c := l.src[l.at]
	if !isLetter(c) && !isDigit(c) {
		l.set(tokPlain, l.rune())
		return
	}
	l.at++
	if r, ok := charEscapes[c]; ok {
		l.set(tokPlain, r)
		return
	}
	if t, ok := escapeTokens[c]; ok {
		l.tok = t
		return
	}
	switch {
	case c == 'c':
		if l.end() {
			fail(errEscape)
		}
		l.set(tokPlain, l.rune()&0x1f)
	case c == 'u':
		l.set(tokPlain, l.digits(16, 4, 4))
	case c == 'U':
		l.set(tokPlain, l.digits(16, 8, 8))
	case c == 'x':
		l.set(tokPlain, l.digits(16, 1, 255))
	case c >= '1' && c <= '9':
		save := l.at
		l.at--
		if n := l.digits(10, 1, 255); l.at == save || n > 0 && n <= l.opens {
			l.set(tokBackref, n)
			return
		}
		l.at = save
		l.octal()
	case c == '0':
		l.octal()
	default:
		fail(errEscape)
	}
}

// octal reads up to three octal digits, the first of which was read.
func (l *lexer) octal() {
	l.at--
	n := l.digits(8, 1, 3)
	if n > 0xff {
		l.at--
		n >>= 3
	}
	l.set(tokPlain, n)
}

var charEscapes = map[byte]int32{
	'a': 7, 'b': '\b', 'B': '\\', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

var escapeTokens = map[byte]token{
	'A': {kind: tokBegin}, 'Z': {kind: tokFinish}, 'm': {kind: tokWordStart}, 'M': {kind: tokWordEnd},
	'y': {kind: tokWordEdge}, 'Y': {kind: tokNotWordEdge},
	'd': {kind: tokClass, value: classDigit}, 'D': {kind: tokNotClass, value: classDigit},
	's': {kind: tokClass, value: classSpace}, 'S': {kind: tokNotClass, value: classSpace},
	'w': {kind: tokClass, value: classWord}, 'W': {kind: tokNotClass, value: classWord},
}

// digits reads a character's number.
func (l *lexer) digits(base int32, least, most int) int32 {
	n, count := int64(0), 0
	for count < most && !l.end() {
		c := l.src[l.at]
		d := int32(99)
		switch {
		case isDigit(c):
			d = int32(c - '0')
		case isLetter(c):
			d = int32(c|0x20) - 'a' + 10
		}
		if d >= base {
			break
		}
		n = min(n*int64(base)+int64(d), 1<<31)
		l.at++
		count++
	}
	if count < least || n > utf8.MaxRune {
		fail(errEscape)
	}
	return int32(n)
}

// basic reads a token of a basic expression.
func (l *lexer) basic() {
	r := l.rune()
	switch r {
	case '*':
		if l.last == tokNone || l.last == tokOpen || l.last == tokAlt {
			l.set(tokPlain, r)
			return
		}
		l.set(tokStar, 1)
	case '[':
		l.bracketStart()
	case '.':
		l.set(tokDot, 0)
	case '^':
		if l.last == tokNone || l.last == tokOpen {
			l.set(tokCaret, 0)
			return
		}
		l.set(tokPlain, r)
	case '$':
		if l.flags&Expanded != 0 {
			l.skipSpace()
		}
		if l.end() || l.at+1 < len(l.src) && l.src[l.at] == '\\' && l.src[l.at+1] == ')' {
			l.set(tokDollar, 0)
			return
		}
		l.set(tokPlain, r)
	case '\\':
		if l.end() {
			fail(errEscape)
		}
		l.basicEscape()
	default:
		l.set(tokPlain, r)
	}
}

func (l *lexer) basicEscape() {
	r := l.rune()
	switch {
	case r == '{':
		l.state = inBounds
		l.set(tokBraceOpen, 0)
	case r == '(':
		l.opens++
		l.set(tokOpen, 1)
	case r == ')':
		l.set(tokClose, r)
	case r == '<':
		l.set(tokWordStart, 0)
	case r == '>':
		l.set(tokWordEnd, 0)
	case r >= '1' && r <= '9':
		l.set(tokBackref, r-'0')
	default:
		l.set(tokPlain, r)
	}
}
