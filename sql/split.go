package sql

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// Lexer splits a query text into statements by lexing alone and gives each its plan cache key. It is
// reusable: after warming up, Next does not allocate for a statement whose literals need no decoding.
// Not safe for concurrent use.
type Lexer struct {
	scan  scanner
	toks  []token
	slots slotter
	stmt  Statement
	key   []byte
	lits  []Literal
	err   error // why the whole text is refused
	ascii bool
	meter *Meter
	mode  Strings
	warn  bool
	// chars characters precede byte at: the cursor of position.
	at, chars int
}

// NewLexer returns an empty Lexer; Reset gives it a text.
func NewLexer() *Lexer { return &Lexer{} }

// UseMeter has the Lexer draw from m, which may be nil. What a statement draws, its caller gives back when the statement
// is no longer used.
func (l *Lexer) UseMeter(m *Meter) { l.meter = m }

// UseStrings sets how the texts to come are read, and whether Warnings are noted.
func (l *Lexer) UseStrings(mode Strings, warn bool) { l.mode, l.warn = mode, warn }

// Warnings returns, and forgets, those of nonstandard escapes in the statements since the last call.
func (l *Lexer) Warnings(send func(*pgerror.Error)) {
	for _, w := range l.scan.warned {
		send(w.message().At(l.position(int(w.offset))))
	}
	l.scan.warned = l.scan.warned[:0]
}

// MaxKey is the length of the longest plan cache key.
const MaxKey = 1 << 20

// keepTokens bounds the buffers a Lexer or a parser keeps between statements.
const keepTokens = 1 << 16

// Reset makes the Lexer start over with a text, which it reads without copying.
func (l *Lexer) Reset(text string) {
	warned := l.scan.warned[:0]
	l.scan = newScanner(text, 0, l.mode, l.meter)
	l.scan.warn, l.scan.warned = l.warn, warned
	l.at, l.chars = 0, 0
	l.err = nil
	l.dropLarge()
	l.stmt = Statement{}
	l.ascii = isASCII(text)
	switch {
	case strings.IndexByte(text, 0) >= 0:
		l.err = invalidBytes("0x00")
	case !l.ascii && !utf8.ValidString(text):
		l.err = invalidUTF8(text)
	}
}

// dropLarge drops the buffers that a long statement has left.
func (l *Lexer) dropLarge() {
	if cap(l.toks) > keepTokens {
		l.toks, l.slots = nil, slotter{}
	}
	if cap(l.scan.warned) > keepTokens {
		l.scan.warned = nil
	}
	if cap(l.lits) > keepTokens {
		l.lits = nil
	}
	if cap(l.key) > keepTokens {
		l.key = nil
	}
}

func isASCII(s string) bool {
	const high = 0x8080808080808080
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b)&high != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Next returns the next statement, io.EOF after the last one. Empty statements are skipped. The
// Statement belongs to the Lexer; its Key and Literals are valid until the next call. Errors are
// *pgerror.Error: 22021 for bytes that are not UTF-8, 42601 and 22025 for malformed tokens; or the Meter's. After an
// error only Reset helps.
func (l *Lexer) Next() (*Statement, error) {
	if l.err != nil {
		return nil, l.err
	}
	st, err := l.nextStatement()
	if l.scan.releaseTokens(); cap(l.toks) > keepTokens {
		l.toks, l.slots = nil, slotter{}
	}
	if err != nil && err != io.EOF {
		l.err = l.meter.explain(err)
		return nil, l.err
	}
	return st, err
}

func (l *Lexer) nextStatement() (*Statement, error) {
	semicolon, err := l.lexStatement()
	if err != nil {
		return nil, err
	}
	n := len(l.toks) - 1 // the last one is the end mark
	if n == 0 {
		return nil, io.EOF
	}
	first, last := &l.toks[0], &l.toks[n-1]
	end := l.toks[n].start
	l.stmt = Statement{
		Text:      l.scan.text[first.start:last.end],
		Offset:    int(first.start),
		Strings:   l.mode,
		base:      l.position(int(first.start)) - 1,
		tail:      l.position(int(end)) - 1,
		semicolon: semicolon,
	}
	if l.stmt.Params, err = l.paramCount(); err != nil {
		return nil, err
	}
	if !cacheable(l.toks) {
		return &l.stmt, nil
	}
	l.stmt.Planned = true
	if err := l.assignSlots(); err != nil {
		return nil, err
	}
	return &l.stmt, nil
}

// assignSlots fills the Literals and the Key of a statement that has plans.
func (l *Lexer) assignSlots() error {
	var err *pgerror.Error
	if l.toks, err = foldMinimum(&l.scan, l.toks); err != nil {
		return err
	}
	count, err := l.slots.assign(&l.scan, l.toks)
	if err != nil {
		return err
	}
	if err := l.literals(count); err != nil {
		return err
	}
	if err := l.makeKey(); err != nil {
		return err
	}
	return nil
}

// lexStatement scans tokens up to a semicolon or the end of the text, skipping empty statements. The
// end mark stays as the last token.
func (l *Lexer) lexStatement() (semicolon bool, err error) {
	l.toks = l.toks[:0]
	var body bodyTracker
	for {
		n := len(l.toks)
		if n == cap(l.toks) {
			var e *pgerror.Error
			if l.toks, e = l.scan.growTokens(l.toks); e != nil {
				return false, e
			}
		}
		l.toks = l.toks[:n+1]
		t := &l.toks[n]
		if e := l.scan.next(t); e != nil {
			return false, e
		}
		if t.kind == tokEOF {
			return false, nil
		}
		if l.toks[0].kw == keyword.Create {
			body.add(l.toks)
		}
		if t.kind == ';' && body.depth == 0 {
			if len(l.toks) > 1 {
				return true, nil
			}
			l.toks = l.toks[:0]
		}
	}
}

// bodyTracker follows what may hold semicolons within a CREATE statement: the parentheses of a rule's actions, and the body
// BEGIN ATOMIC … END of a function.
type bodyTracker struct {
	kind  keyword.Word // Rule, Function or Procedure; None for other statements
	depth int
}

// add takes the last of the statement's tokens into account.
func (b *bodyTracker) add(toks []token) {
	n := len(toks)
	t := &toks[n-1]
	if n == 2 || n == 4 && toks[1].kw == keyword.Or {
		b.kind = t.kw
	}
	switch {
	case b.kind == keyword.Rule && t.kind == '(':
		b.depth++
	case b.kind == keyword.Rule && t.kind == ')' && b.depth > 0:
		b.depth--
	case b.kind != keyword.Function && b.kind != keyword.Procedure:
	case b.depth == 0 && t.kw == keyword.Atomic && toks[n-2].kw == keyword.Begin, b.depth > 0 && t.kw == keyword.Case:
		b.depth++
	case b.depth > 0 && t.kw == keyword.End:
		b.depth--
	}
}

// position is the 1-based character position of a byte offset. Calls with rising offsets are cheap.
func (l *Lexer) position(offset int) int {
	if l.ascii {
		return offset + 1
	}
	if offset < l.at {
		l.at, l.chars = 0, 0
	}
	l.chars += utf8.RuneCountInString(l.scan.text[l.at:offset])
	l.at = offset
	return l.chars + 1
}

// cacheable reports whether the statement is one whose plan may be kept under its key.
func cacheable(toks []token) bool {
	if toks[0].kind == '(' {
		return !selectsInto(toks)
	}
	switch toks[0].kw {
	case keyword.Select, keyword.With:
		return !selectsInto(toks)
	case keyword.Insert, keyword.Update, keyword.Delete, keyword.Values, keyword.Table:
		return true
	}
	return false
}

// selectsInto reports whether a query has SELECT … INTO, which makes a table.
func selectsInto(toks []token) bool {
	for i := 1; i < len(toks); i++ {
		if toks[i].kw == keyword.Into && toks[i-1].kw != keyword.Insert && toks[i-1].kw != keyword.Merge {
			return true
		}
	}
	return false
}

// paramCount is the highest $n of the tokens; numbers that are no parameter's count as none and are
// refused by the parser.
func (l *Lexer) paramCount() (int, error) {
	text, toks, most := l.scan.text, l.toks, 0
	for from := 0; from < len(toks); from += pollTokens {
		if from > 0 {
			if err := l.meter.poll(); err != nil {
				return 0, err
			}
		}
		some := toks[from:min(from+pollTokens, len(toks))]
		for i := range some {
			if some[i].kind == tokParam {
				most = max(most, paramNumber(text[some[i].start:some[i].end]))
			}
		}
	}
	return most, nil
}

// maxParam is the highest parameter number the wire protocol can carry.
const maxParam = 65535

// paramNumber reads $n; 0 if n is none.
func paramNumber(raw string) int {
	n, err := strconv.Atoi(raw[1:])
	if err != nil || n > maxParam {
		return 0
	}
	return n
}

// literals fills the statement's Literals for its slots, of which there are count. Those of a long
// statement are its own.
func (l *Lexer) literals(count int) error {
	l.lits = l.lits[:0]
	if count > pollTokens {
		if err := l.meter.grow(int64(count) * int64(unsafe.Sizeof(Literal{}))); err != nil {
			return err
		}
		l.lits = make([]Literal, 0, count)
	}
	for from := 0; from < len(l.toks); from += pollTokens {
		if from > 0 {
			if err := l.meter.poll(); err != nil {
				return err
			}
		}
		some := l.toks[from:min(from+pollTokens, len(l.toks))]
		for i := range some {
			t := &some[i]
			if t.kind != tokLiteral || int(t.slot) != len(l.lits) {
				continue // pinned, or an equal literal has the slot already
			}
			value, err := l.scan.literal(t)
			if err != nil {
				return err
			}
			l.lits = append(l.lits, Literal{Kind: t.lit, Value: value, Pos: l.position(int(t.start))})
		}
	}
	if l.stmt.Literals = l.lits; count > pollTokens {
		l.stmt.owned, l.lits = true, nil
	}
	return nil
}

// makeKey writes the plan cache key: the tokens in canonical form, one blank between two. It stops where the key gets too
// long.
func (l *Lexer) makeKey() *pgerror.Error {
	key, toks := l.key[:0], l.toks[:len(l.toks)-1]
	for from := 0; from < len(toks); from += pollTokens {
		if from > 0 {
			if err := l.meter.poll(); err != nil {
				return err
			}
		}
		if key = l.appendKey(key, toks[from:min(from+pollTokens, len(toks))]); len(key) > MaxKey {
			return nil
		}
	}
	l.key = key
	l.stmt.Key = key[:len(key)-1]
	return nil
}

// appendKey appends the key of some tokens, each with a blank behind it. It stops behind MaxKey.
func (l *Lexer) appendKey(key []byte, toks []token) []byte {
	text := l.scan.text
	for i := range toks {
		t := &toks[i]
		if t.end-t.start > MaxKey && (t.kind != tokLiteral || t.slot < 0) {
			return append(key, text[t.start:t.start+MaxKey+1]...)
		}
		switch t.kind {
		case tokIdent:
			for _, c := range []byte(text[t.start:t.end]) {
				key = append(key, lowerByte(c))
			}
		case tokQuoted:
			key = l.quotedKey(key, t)
		case tokLiteral:
			key = l.literalKey(key, t)
		case tokOp:
			op := text[t.start:t.end]
			if op == "!=" {
				op = "<>"
			}
			key = append(key, op...)
		default:
			key = append(key, text[t.start:t.end]...)
		}
		if key = append(key, ' '); len(key) > MaxKey {
			return key
		}
	}
	return key
}

// literalKey appends a slotted literal as ? with its kind (and its slot, where equal literals share
// one), a pinned one as itself. A question mark operator cannot be mistaken for it: a blank follows.
func (l *Lexer) literalKey(key []byte, t *token) []byte {
	if t.slot >= 0 {
		key = append(key, '?', literalKindMark(t.lit))
		if l.slots.shared {
			key = append(key, ':')
			key = strconv.AppendInt(key, int64(t.slot), 10)
		}
		return key
	}
	value, err := l.scan.literal(t)
	if err != nil {
		value = l.scan.text[t.start:t.end] // Parse refuses the statement
	}
	key = append(key, literalKindMark(t.lit), '\'')
	return append(appendDoubled(key, value, '\''), '\'')
}

func (l *Lexer) quotedKey(key []byte, t *token) []byte {
	name, err := l.scan.ident(t)
	if err != nil {
		name = l.scan.text[t.start:t.end] // Parse refuses the statement
	}
	if plainName(name) {
		return append(key, name...)
	}
	key = append(key, '"')
	return append(appendDoubled(key, name, '"'), '"')
}

// plainName reports whether an unquoted name would mean the same.
func plainName(name string) bool {
	if c := class(name[0]); c != classIdent {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !identChar(c) || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return len(name) > maxKeyword || keyword.Lookup([]byte(name)) == keyword.None
}

func appendDoubled(b []byte, s string, quote byte) []byte {
	for i := range len(s) {
		if s[i] == quote {
			b = append(b, quote)
		}
		b = append(b, s[i])
	}
	return b
}
