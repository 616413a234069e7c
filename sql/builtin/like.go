package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// LikePattern is a compiled LIKE or ILIKE pattern. It is immutable.
type LikePattern struct {
	shape   likeShape
	literal string // of the simple shapes
	tokens  []likeToken
	fold    bool // ILIKE: literals are lower case; the text must be, too
	bytes   bool // bytea: _ is a byte
}

// likeShape classifies patterns that need no token-by-token search.
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
	likeOne                     // a run of _
	likeAny                     // %
	likeBadEscape               // the pattern ends within an escape, an error when it is reached
)

type likeToken struct {
	kind likeTokenKind
	n    int // of likeOne: how many
	text string
}

const likeTokenBytes = 32

// likeEscape is the default escape character.
const likeEscape = '\\'

// CompileLike compiles a pattern whose escape character is the backslash; see escapeLike for others. The result aliases
// the pattern. Errors: that the statement was cancelled, or has no memory left.
func CompileLike(env *Env, pattern string, fold, bytes bool) (*LikePattern, error) {
	if fold {
		folded, err := mapPieces(env, pattern, 8, types.FoldLower)
		if err != nil {
			return nil, err
		}
		pattern = folded.Text()
	}
	p := &LikePattern{fold: fold, bytes: bytes}
	for i := 0; i < len(pattern); {
		if err := p.reserveToken(env); err != nil {
			return nil, err
		}
		before := i
		switch pattern[i] {
		case '%':
			i++
			if n := len(p.tokens); n == 0 || p.tokens[n-1].kind != likeAny {
				p.tokens = append(p.tokens, likeToken{kind: likeAny})
			}
		case '_':
			for i < len(pattern) && pattern[i] == '_' {
				i++
			}
			p.tokens = append(p.tokens, likeToken{kind: likeOne, n: i - before})
		default:
			text, n, err := likeText(env, pattern[i:])
			if err != nil {
				return nil, err
			}
			i += n
			if text != "" {
				p.tokens = append(p.tokens, likeToken{kind: likeLiteral, text: text})
			}
			if text == "" || i == len(pattern) && endsInEscape(pattern[before:]) {
				i = len(pattern)
				p.tokens = append(p.tokens, likeToken{kind: likeBadEscape})
			}
		}
		if err := env.Step(i - before + 1); err != nil {
			return nil, err
		}
	}
	p.classify()
	return p, nil
}

// reserveToken makes space for two more tokens.
func (p *LikePattern) reserveToken(env *Env) error {
	n := len(p.tokens)
	if n+2 <= cap(p.tokens) {
		return nil
	}
	capacity := max(4, 2*n)
	if err := env.Reserve(capacity * likeTokenBytes); err != nil {
		return err
	}
	p.tokens = append(make([]likeToken, 0, capacity), p.tokens...)
	return nil
}

// likeText returns the literal prefix of a pattern, and how much of the pattern it takes. An escape at the pattern's
// end is ignored.
func likeText(env *Env, pattern string) (text string, n int, err error) {
	end := strings.IndexAny(pattern, `%_\`)
	if end < 0 {
		return pattern, len(pattern), nil
	}
	if pattern[end] != likeEscape {
		return pattern[:end], end, nil
	}
	out := valueBuilder{env: env}
	for n < len(pattern) && pattern[n] != '%' && pattern[n] != '_' {
		if pattern[n] == likeEscape {
			if n++; n == len(pattern) {
				break
			}
		}
		if err := out.grow(1); err != nil {
			return "", 0, err
		}
		out.b = append(out.b, pattern[n])
		n++
		if err := env.Step(1); err != nil {
			return "", 0, err
		}
	}
	return string(out.b), n, nil
}

// endsInEscape reports whether a pattern ends with an incomplete escape.
func endsInEscape(pattern string) bool {
	return (len(pattern)-len(strings.TrimRight(pattern, `\`)))%2 == 1
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

// Prefix returns the literal prefix of every match, and whether it is the whole pattern; a planner derives an index
// range from it. ILIKE patterns have none.
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

// Match reports whether s matches; 22025 if the pattern ends within an escape that s reaches.
func (p *LikePattern) Match(env *Env, s string) (bool, error) {
	if p.fold {
		folded, err := mapPieces(env, s, 8, types.FoldLower)
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

// matchTokens walks text and tokens in parallel. On a mismatch it returns to the last % and extends it by one
// character; an earlier % need never be retried.
func (p *LikePattern) matchTokens(env *Env, s string) (bool, error) {
	at, tok := 0, 0
	retryTok, retryAt := -1, 0
	for steps := 0; ; steps++ {
		if steps > stepsPerPoll {
			if err := env.Step(steps); err != nil {
				return false, err
			}
			steps = 0
		}
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
				next, ok := p.skip(s, at, t.n)
				steps += next - at
				if ok {
					at = next
					tok++
					continue
				}
			case likeLiteral:
				steps += min(len(t.text), len(s)-at) / stepCost
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
		if err := env.Step(stepCost + steps); err != nil {
			return false, err
		}
		steps = 0
		retryAt += p.charLen(s[retryAt:])
		at, tok = retryAt, retryTok+1
	}
}

// skip returns the end of the n characters at a position of s.
func (p *LikePattern) skip(s string, at, n int) (end int, ok bool) {
	if len(s)-at < n {
		return at, false
	}
	if p.bytes {
		return at + n, true
	}
	for ; n > 0; n-- {
		if at == len(s) {
			return at, false
		}
		at += p.charLen(s[at:])
	}
	return at, true
}

func (p *LikePattern) charLen(s string) int {
	if p.bytes {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// foldUpper is the inverse of types.FoldLower.
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
		return 0, false, errEscapeString()
	}
	return r, false, nil
}

func errEscapeString() error {
	return pgerror.New(pgerror.InvalidEscapeSequence, "invalid escape string").
		WithHint("Escape string must be empty or one character.")
}

// escapeLike rewrites a pattern with another escape character to one with the backslash; the characters of
// bytea are bytes.
func escapeLike(env *Env, pattern, escape string, bytes bool) (types.Datum, error) {
	width := utf8.DecodeRuneInString
	if bytes {
		width = func(s string) (rune, int) { return rune(s[0]), min(len(s), 1) }
	}
	if escape != "" {
		if _, n := width(escape); n != len(escape) {
			return types.Null, errEscapeString()
		}
	}
	if escape == string(likeEscape) {
		return types.Text(pattern), nil
	}
	out := valueBuilder{env: env}
	escaped := false
	for at := 0; at < len(pattern); {
		_, n := width(pattern[at:])
		char := pattern[at : at+n]
		at += n
		if err := env.Step(stepCost); err != nil {
			return types.Null, err
		}
		if err := out.grow(n + 1); err != nil {
			return types.Null, err
		}
		switch {
		case char == escape && !escaped:
			escaped = true
			out.b = append(out.b, likeEscape)
			continue
		case char == string(likeEscape) && !escaped:
			out.b = append(out.b, likeEscape)
		}
		out.b = append(out.b, char...)
		escaped = false
	}
	return types.Bytes(out.b), nil
}
