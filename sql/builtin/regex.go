package builtin

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/are"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// invalidRegularExpression is SQLSTATE 2201B.
const invalidRegularExpression pgerror.Code = "2201B"

// maxPatternBytes bounds patterns: a longer one takes too much memory when compiled.
const maxPatternBytes = 256 << 10

// stepsPerPoll is the number of steps of a pattern's matching between two calls of Env.Step; each costs stepCost.
const (
	stepsPerPoll = 1 << 14
	stepCost     = 16
)

// regexOptions are the letters of a flags argument.
type regexOptions struct {
	global bool // g
	flags  are.Flags
}

func parseRegexOptions(flags string) (regexOptions, error) {
	var o regexOptions
	for i, r := range flags {
		switch {
		case r == 'g':
			o.global = true
		case r >= utf8.RuneSelf || !o.flags.Set(byte(r)):
			_, n := utf8.DecodeRuneInString(flags[i:])
			return o, pgerror.New(pgerror.InvalidParameterValue, "invalid regular expression option: \"%s\"", flags[i:i+n])
		}
	}
	return o, nil
}

// Regex is a compiled regular expression. It serves one session at a time.
type Regex struct {
	re      *are.Regexp
	bytes   int  // its size when it was last looked at
	counted int  // in the account of the session
	dropped bool // no longer in the cache
}

// compileRegex compiles a pattern. Errors: 2201B.
func compileRegex(pattern string, o regexOptions) (*Regex, error) {
	if len(pattern) > maxPatternBytes {
		return nil, badRegex("regular expression is too complex")
	}
	re, err := are.Compile(pattern, o.flags)
	if err != nil {
		return nil, badRegex(err.Error())
	}
	return &Regex{re: re, bytes: re.Bytes()}, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func badRegex(what string) error {
	return pgerror.New(invalidRegularExpression, "invalid regular expression: %s", what)
}

// matches reports whether s has a match.
func (re *Regex) matches(env *Env, s string) (bool, error) {
	if err := env.Step(stepCost); err != nil {
		return false, err
	}
	found, err := re.re.Matches(s, env)
	return found, cmp.Or(err, env.patterns.searched(env, re))
}

// find returns the first match with its groups, as positions in s, two for each; nil: there is none.
func (re *Regex) find(env *Env, s string) ([]int, error) {
	if err := env.Step(stepCost); err != nil {
		return nil, err
	}
	return re.search(env, s, 0)
}

func (re *Regex) search(env *Env, s string, start int) ([]int, error) {
	m, err := re.re.Find(s, start, true, env)
	return m, cmp.Or(err, env.patterns.searched(env, re))
}

// each calls visit with the matches that begin at or after a byte offset, from left to right, as long as it returns true.
func (re *Regex) each(env *Env, s string, offset int, visit func(m []int) (more bool, err error)) error {
	for pos := offset; pos <= len(s); {
		m, err := re.search(env, s, pos)
		if m == nil || err != nil {
			return err
		}
		if more, err := visit(m); !more || err != nil {
			return err
		}
		if pos = m[1]; m[1] == m[0] {
			_, width := utf8.DecodeRuneInString(s[pos:])
			pos += max(width, 1)
		}
		if err := env.Step(stepCost); err != nil {
			return err
		}
	}
	return nil
}

// SimilarToRegex rewrites a SIMILAR TO pattern as a regular expression that must match the whole text.
func SimilarToRegex(pattern, escape string) (string, error) {
	esc, none, err := escapeChar(escape)
	if err != nil {
		return "", err
	}
	if len(pattern) > maxPatternBytes {
		return "", badRegex("regular expression is too complex")
	}
	var b strings.Builder
	b.WriteString("^(?:")
	escaped, bracket := false, false
	separators := 0
	for _, r := range pattern {
		switch {
		case escaped:
			escaped = false
			if r == '"' && !bracket {
				// The escaped quotes divide the pattern in three, of which substring returns the middle.
				switch separators {
				case 0:
					b.WriteString("){1,1}?(")
				case 1:
					b.WriteString("){1,1}(?:")
				default:
					return "", pgerror.New("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
				}
				separators++
				continue
			}
			b.WriteByte('\\')
			b.WriteRune(r)
		case !none && r == esc:
			escaped = true
		case bracket:
			if r == '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
			bracket = r != ']'
		default:
			bracket = r == '['
			similarChar(&b, r)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}

func similarChar(b *strings.Builder, r rune) {
	switch r {
	case '%':
		b.WriteString(".*")
	case '_':
		b.WriteByte('.')
	case '(':
		b.WriteString("(?:")
	case '\\', '.', '^', '$':
		b.WriteByte('\\')
		b.WriteRune(r)
	default:
		b.WriteRune(r)
	}
}

// patternCache keeps a session's compiled patterns: usually few, which are constants.
type patternCache struct {
	likes      map[likeKey]*LikePattern
	regexes    map[regexKey]*Regex
	regexBytes int // what they count
	paths      map[string]*jsonpath.Path
}

type likeKey struct {
	pattern     string
	fold, bytes bool
}

type regexKey struct {
	pattern string
	o       regexOptions
}

// maxCachedPatterns bounds the cache if patterns come from rows.
const maxCachedPatterns = 128

// maxCachedBytes is the size of the longest cached pattern of LIKE; maxRegexBytes bounds the memory of cached regular expressions. One that
// takes more is cached alone.
const (
	maxCachedBytes = 4 << 10
	maxRegexBytes  = 4 << 20
)

func (c *patternCache) like(env *Env, pattern string, fold, bytes bool) (*LikePattern, error) {
	if len(pattern) > maxCachedBytes {
		return CompileLike(env, pattern, fold, bytes)
	}
	key := likeKey{pattern, fold, bytes}
	if p, ok := c.likes[key]; ok {
		return p, nil
	}
	if c.likes == nil || len(c.likes) >= maxCachedPatterns {
		c.likes = map[likeKey]*LikePattern{}
	}
	key.pattern = strings.Clone(pattern)
	p, err := CompileLike(env, key.pattern, fold, bytes)
	if err != nil {
		return nil, err
	}
	c.likes[key] = p
	return p, nil
}

// regex returns a compiled pattern. Its memory, and that of its automata, counts in the session's account.
func (c *patternCache) regex(env *Env, pattern string, o regexOptions) (*Regex, error) {
	o.global = false
	key := regexKey{pattern, o}
	if re, ok := c.regexes[key]; ok {
		return re, nil
	}
	key.pattern = strings.Clone(pattern)
	re, err := compileRegex(key.pattern, o)
	if err != nil {
		return nil, err
	}
	n := len(pattern) + re.re.Bytes()
	if len(c.regexes) >= maxCachedPatterns || c.regexBytes+n > maxRegexBytes {
		c.dropRegexes(env)
	}
	if c.regexes == nil {
		c.regexes = map[regexKey]*Regex{}
	}
	c.regexes[key] = re
	if err := c.countRegex(env, re, n); err != nil {
		return nil, err
	}
	return re, env.Step(n)
}

// countRegex makes n what a pattern of the cache counts.
func (c *patternCache) countRegex(env *Env, re *Regex, n int) error {
	if env.Memory != nil {
		if err := env.Memory.Resize(int64(re.counted), int64(n)); err != nil {
			c.dropRegexes(env)
			return err
		}
	}
	c.regexBytes += n - re.counted
	re.counted = n
	return nil
}

// dropRegexes empties the cache. A pattern that is in use is not counted any more.
func (c *patternCache) dropRegexes(env *Env) {
	for _, re := range c.regexes {
		re.dropped = true
	}
	if env.Memory != nil {
		env.Memory.Shrink(int64(c.regexBytes))
	}
	c.regexes, c.regexBytes = nil, 0
}

// searched counts what the automata of a pattern have grown by in a search.
func (c *patternCache) searched(env *Env, re *Regex) error {
	grown := re.re.Bytes() - re.bytes
	if grown == 0 || re.dropped {
		return nil
	}
	re.bytes += grown
	if err := c.countRegex(env, re, re.counted+grown); err != nil {
		return err
	}
	if c.regexBytes > maxRegexBytes {
		c.dropRegexes(env)
	}
	return nil
}
