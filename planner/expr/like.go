package expr

import (
	"bytes"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Like is X [NOT] LIKE Pattern over text. ILIKE, other escapes and bytea go through the builtin
// operators; this node exists because LIKE over a row-independent pattern is worth compiling.
type Like struct {
	X, Pattern Scalar
	Not        bool
}

// Type is boolean.
func (*Like) Type() types.Type { return types.TBool }

// Eval matches. A pattern that does not depend on the row is compiled once per execution.
func (l *Like) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := eval(l.X, ev, in)
	if err != nil {
		return types.Null, err
	}
	pattern, err := l.pattern(ev, in)
	if err != nil || pattern == nil || x.IsNull() {
		return types.Null, err
	}
	return types.Bool(pattern.match(x.Bytes()) != l.Not), nil
}

// pattern returns the compiled pattern, nil for NULL.
func (l *Like) pattern(ev *Context, in types.Row) (*likePattern, error) {
	fixed := rowIndependentLeaf(l.Pattern)
	if fixed {
		if m, ok := ev.memo[l]; ok {
			return m.(*likePattern), nil
		}
	}
	d, err := eval(l.Pattern, ev, in)
	if err != nil {
		return nil, err
	}
	var p *likePattern
	if !d.IsNull() {
		if p, err = compileLike(d.Bytes()); err != nil {
			return nil, err
		}
	}
	if fixed {
		ev.remember(l, p)
	}
	return p, nil
}

// likePattern is a pattern cut at its % signs. A text matches when it begins with the first part,
// ends with the last, and holds those between in order and without overlap.
type likePattern struct {
	parts []likePart
	exact bool // no % at all: parts has one part, which is the whole text
}

// likePart is literal text, where any marks the places of _ (nil: none).
type likePart struct {
	text []byte
	any  []bool // per rune of text's elems; see elems
	// elems is the number of characters when any is set: each is one rune of text.
	elems [][]byte
}

func compileLike(pattern []byte) (*likePattern, error) {
	p := &likePattern{exact: true}
	var part likePart
	flush := func() { p.parts = append(p.parts, part.finish()); part = likePart{} }
	for i := 0; i < len(pattern); {
		switch pattern[i] {
		case '%':
			p.exact = false
			flush()
			i++
		case '_':
			part.add(nil, true)
			i++
		case '\\':
			i++
			if i == len(pattern) {
				return nil, pgerror.New(pgerror.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
			}
			fallthrough
		default:
			_, n := utf8.DecodeRune(pattern[i:])
			part.add(pattern[i:i+n], false)
			i += n
		}
	}
	flush()
	return p, nil
}

func (lp *likePart) add(char []byte, any bool) {
	lp.elems = append(lp.elems, char)
	lp.any = append(lp.any, any)
}

// finish joins a part without _ into one byte string.
func (lp *likePart) finish() likePart {
	for _, any := range lp.any {
		if any {
			return *lp
		}
	}
	return likePart{text: bytes.Join(lp.elems, nil)}
}

// matchAt matches the part at the start of s and returns the bytes it took, or -1.
func (lp *likePart) matchAt(s []byte) int {
	if lp.any == nil {
		if bytes.HasPrefix(s, lp.text) {
			return len(lp.text)
		}
		return -1
	}
	at := 0
	for i, char := range lp.elems {
		if at >= len(s) {
			return -1
		}
		if lp.any[i] {
			_, n := utf8.DecodeRune(s[at:])
			at += n
		} else if bytes.HasPrefix(s[at:], char) {
			at += len(char)
		} else {
			return -1
		}
	}
	return at
}

// find returns where the part first matches in s and how long it is there, or -1.
func (lp *likePart) find(s []byte) (at, n int) {
	if lp.any == nil {
		return bytes.Index(s, lp.text), len(lp.text)
	}
	for at := 0; at <= len(s); {
		if n := lp.matchAt(s[at:]); n >= 0 {
			return at, n
		}
		if at == len(s) {
			break
		}
		_, w := utf8.DecodeRune(s[at:])
		at += w
	}
	return -1, 0
}

// matchEnd reports whether the part matches at the end of s.
func (lp *likePart) matchEnd(s []byte) bool {
	if lp.any == nil {
		return bytes.HasSuffix(s, lp.text)
	}
	start := len(s)
	for range lp.elems {
		if start == 0 {
			return false
		}
		_, n := utf8.DecodeLastRune(s[:start])
		start -= n
	}
	return lp.matchAt(s[start:]) == len(s)-start
}

func (p *likePattern) match(s []byte) bool {
	first := p.parts[0].matchAt(s)
	if first < 0 {
		return false
	}
	if p.exact {
		return first == len(s)
	}
	s = s[first:]
	last := len(p.parts) - 1
	for i := 1; i < last; i++ {
		at, n := p.parts[i].find(s)
		if at < 0 {
			return false
		}
		s = s[at+n:]
	}
	return p.parts[last].matchEnd(s)
}
