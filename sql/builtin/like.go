package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// LikePattern is a compiled LIKE or ILIKE pattern. It is immutable.
type LikePattern struct {
	shape   likeShape
	literal string // of the simple shapes
	tokens  []likeToken
	fold    bool // ILIKE: literals are lower case, and so must the text be
	bytes   bool // bytea: _ is a byte
}

// likeShape tells patterns that need no search token by token.
type likeShape uint8

const (
	likeGeneral  likeShape = iota
	likeExact              // abc
	likePrefix             // abc%
	likeSuffix             // %abc
	likeContains           // %abc%
)

type likeTokenKind uint8

const (
	likeLiteral   likeTokenKind = iota
	likeOne                     // _
	likeAny                     // %
	likeBadEscape               // the pattern ends within an escape, an error when it is reached
)

type likeToken struct {
	kind likeTokenKind
	text string
}

// likeEscape is the default escape character.
const likeEscape = '\\'

// CompileLike compiles a pattern whose escape character is the backslash; see LikeEscape for others.
func CompileLike(pattern string, fold, bytes bool) *LikePattern {
	if fold {
		pattern = foldLower(pattern)
	}
	p := &LikePattern{fold: fold, bytes: bytes}
	var lit []byte
	flush := func() {
		if len(lit) > 0 {
			p.tokens = append(p.tokens, likeToken{likeLiteral, string(lit)})
			lit = nil
		}
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '%':
			flush()
			if n := len(p.tokens); n == 0 || p.tokens[n-1].kind != likeAny {
				p.tokens = append(p.tokens, likeToken{kind: likeAny})
			}
		case '_':
			flush()
			p.tokens = append(p.tokens, likeToken{kind: likeOne})
		case likeEscape:
			if i++; i == len(pattern) {
				flush()
				p.tokens = append(p.tokens, likeToken{kind: likeBadEscape})
				break
			}
			lit = append(lit, pattern[i])
		default:
			lit = append(lit, c)
		}
	}
	flush()
	p.classify()
	return p
}

func (p *LikePattern) classify() {
	kinds := make([]likeTokenKind, len(p.tokens))
	for i, t := range p.tokens {
		kinds[i] = t.kind
	}
	is := func(want ...likeTokenKind) bool {
		if len(want) != len(kinds) {
			return false
		}
		for i := range want {
			if want[i] != kinds[i] {
				return false
			}
		}
		return true
	}
	switch {
	case is():
		p.shape = likeExact
	case is(likeLiteral):
		p.shape, p.literal = likeExact, p.tokens[0].text
	case is(likeLiteral, likeAny):
		p.shape, p.literal = likePrefix, p.tokens[0].text
	case is(likeAny, likeLiteral):
		p.shape, p.literal = likeSuffix, p.tokens[1].text
	case is(likeAny, likeLiteral, likeAny):
		p.shape, p.literal = likeContains, p.tokens[1].text
	}
}

// Prefix returns the literal with which every match begins, and whether the pattern is nothing but
// it; a planner makes an index range of it. ILIKE patterns have none.
func (p *LikePattern) Prefix() (prefix string, exact bool) {
	switch {
	case p.fold:
		return "", false
	case p.shape == likeExact:
		return p.literal, true
	case len(p.tokens) > 0 && p.tokens[0].kind == likeLiteral:
		return p.tokens[0].text, false
	}
	return "", false
}

// Match reports whether s matches; 22025 when the pattern ends within an escape and s reaches it.
func (p *LikePattern) Match(env *Env, s string) (bool, error) {
	if p.fold {
		folded, err := mapPieces(env, s, 8, foldLower)
		if err != nil {
			return false, err
		}
		s = folded.Text()
	}
	switch p.shape {
	case likeExact:
		return s == p.literal, nil
	case likePrefix:
		return strings.HasPrefix(s, p.literal), nil
	case likeSuffix:
		return strings.HasSuffix(s, p.literal), nil
	case likeContains:
		i, err := index(env, s, p.literal)
		return i >= 0, err
	}
	return p.matchTokens(env, s)
}

// matchTokens walks text and tokens together. On a mismatch it returns to the last % and lets that
// take one character more; an earlier % need never be retried.
func (p *LikePattern) matchTokens(env *Env, s string) (bool, error) {
	at, tok := 0, 0
	retryTok, retryAt := -1, 0
	for {
		if tok == len(p.tokens) {
			if at == len(s) {
				return true, nil
			}
		} else {
			switch t := &p.tokens[tok]; t.kind {
			case likeAny:
				if tok == len(p.tokens)-1 {
					return true, nil
				}
				retryTok, retryAt = tok, at
				tok++
				continue
			case likeOne:
				if at < len(s) {
					at += p.charLen(s[at:])
					tok++
					continue
				}
			case likeLiteral:
				if strings.HasPrefix(s[at:], t.text) {
					at += len(t.text)
					tok++
					continue
				}
			case likeBadEscape:
				if at < len(s) {
					return false, pgerror.New(pgerror.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
				}
			}
		}
		if retryTok < 0 || retryAt >= len(s) {
			return false, nil
		}
		if err := env.Step(stepCost + (at - retryAt)); err != nil {
			return false, err
		}
		retryAt += p.charLen(s[retryAt:])
		at, tok = retryAt, retryTok+1
	}
}

func (p *LikePattern) charLen(s string) int {
	if p.bytes {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// foldLower lower-cases character by character, without the special cases that change lengths.
func foldLower(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.Map(unicode.ToLower, s)
		}
	}
	return s
}

func foldUpper(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'a' && c <= 'z' {
			return strings.Map(unicode.ToUpper, s)
		}
	}
	return s
}

// escapeChar checks the string after ESCAPE: one character, or none.
func escapeChar(escape string) (r rune, none bool, err error) {
	if escape == "" {
		return 0, true, nil
	}
	r, n := utf8.DecodeRuneInString(escape)
	if n != len(escape) {
		return 0, false, pgerror.New(pgerror.InvalidEscapeSequence, "invalid escape string").
			WithHint("Escape string must be empty or one character.")
	}
	return r, false, nil
}

// LikeEscape rewrites a pattern with another escape character to one with the backslash.
func LikeEscape(pattern, escape string) (string, error) {
	esc, none, err := escapeChar(escape)
	if err != nil || !none && esc == likeEscape {
		return pattern, err
	}
	var b strings.Builder
	escaped := false
	for _, r := range pattern {
		switch {
		case !none && r == esc && !escaped:
			escaped = true
			b.WriteByte(likeEscape)
			continue
		case r == likeEscape && !escaped:
			b.WriteByte(likeEscape)
		}
		b.WriteRune(r)
		escaped = false
	}
	return b.String(), nil
}
