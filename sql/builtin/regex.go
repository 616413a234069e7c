package builtin

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// invalidRegularExpression is SQLSTATE 2201B.
const invalidRegularExpression pgerror.Code = "2201B"

// regexOptions are the letters of a flags argument and of (?…) at the pattern's start.
type regexOptions struct {
	global     bool // g
	foldCase   bool // i
	literal    bool // q
	expanded   bool // x
	noNLClass  bool // . and [^…] do not match a newline (p, n, m)
	lineAnchor bool // ^ and $ match at lines (w, n, m)
	basic      bool // b: a POSIX basic expression
}

func (o *regexOptions) set(letter rune) bool {
	switch letter {
	case 'g':
		o.global = true
	case 'i':
		o.foldCase = true
	case 'c':
		o.foldCase = false
	case 'q':
		o.literal = true
	case 'x':
		o.expanded = true
	case 't':
		o.expanded = false
	case 'n', 'm':
		o.noNLClass, o.lineAnchor = true, true
	case 'p':
		o.noNLClass, o.lineAnchor = true, false
	case 'w':
		o.noNLClass, o.lineAnchor = false, true
	case 's':
		o.noNLClass, o.lineAnchor = false, false
	case 'b':
		o.basic = true
	case 'e': // extended expressions are advanced ones without their escapes
	default:
		return false
	}
	return true
}

func parseRegexOptions(flags string) (regexOptions, error) {
	var o regexOptions
	for i, r := range flags {
		if !o.set(r) {
			_, n := utf8.DecodeRuneInString(flags[i:])
			return o, pgerror.New(pgerror.InvalidParameterValue, "invalid regular expression option: \"%s\"", flags[i:i+n])
		}
	}
	return o, nil
}

// CompileRegex compiles a pattern as ~ (fold: ~*) does.
//
// Errors: 2201B for a wrong pattern, 0A000 for back references and lookaround, which the engine, being
// linear in the text's length, does not have.
func CompileRegex(pattern string, fold bool) (*Regex, error) {
	return compileRegex(pattern, regexOptions{foldCase: fold})
}

func compileRegex(pattern string, o regexOptions) (*Regex, error) {
	if len(pattern) > maxPatternBytes {
		return nil, badRegex("regular expression is too complex")
	}
	if rest, ok := strings.CutPrefix(pattern, "***="); ok {
		pattern, o.literal = rest, true
	} else if rest, ok := strings.CutPrefix(pattern, "***:"); ok {
		pattern = rest
	}
	if strings.HasPrefix(pattern, "(?") && len(pattern) > 2 && isLetter(pattern[2]) && !o.literal {
		end := strings.IndexByte(pattern, ')')
		if end < 0 {
			return nil, badRegex("invalid embedded option")
		}
		for _, r := range pattern[2:end] {
			if !o.set(r) {
				return nil, badRegex("invalid embedded option")
			}
		}
		pattern = pattern[end+1:]
	}
	t := &regexTranslator{src: pattern, o: o, out: new(strings.Builder)}
	if o.basic {
		return nil, t.unsupported("the syntax of basic expressions")
	}
	if o.literal {
		for _, r := range pattern {
			t.literal(r)
		}
	} else if err := t.translate(); err != nil {
		return nil, err
	}
	body := t.out.String()
	prefix := ""
	for _, f := range []struct {
		on     bool
		letter string
	}{{!o.noNLClass, "s"}, {o.lineAnchor, "m"}} {
		if f.on {
			prefix += f.letter
		}
	}
	if prefix != "" {
		prefix = "(?" + prefix + ")"
	}
	marked := prefix + t.marked()
	parsed, err := syntax.Parse(marked, syntax.Perl)
	if err != nil {
		return nil, regexError(err)
	}
	size := regexSize(parsed)
	if size > maxRegexSize || size*(parsed.MaxCap()+1) > maxRegexCaptures {
		return nil, badRegex("regular expression is too complex")
	}
	re, err := regexp.Compile(prefix + body)
	if err != nil {
		return nil, regexError(err)
	}
	compiled := newRegex(re, marked, size, !t.nonGreedy)
	compiled.words, compiled.edges = t.words, len(t.marks) > 0
	return compiled, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func badRegex(what string) error {
	return pgerror.New(invalidRegularExpression, "invalid regular expression: %s", what)
}

// regexError converts the engine's error to PostgreSQL's message.
func regexError(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return badRegex(err.Error())
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return badRegex("parentheses () not balanced")
	case syntax.ErrMissingBracket:
		return badRegex("brackets [] not balanced")
	case syntax.ErrInvalidCharRange:
		return badRegex("invalid character range")
	case syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp:
		return badRegex("quantifier operand invalid")
	case syntax.ErrInvalidRepeatSize:
		return badRegex("invalid repetition count(s)")
	case syntax.ErrTrailingBackslash, syntax.ErrInvalidEscape:
		return badRegex("invalid escape \\ sequence")
	case syntax.ErrNestingDepth, syntax.ErrLarge:
		return badRegex("regular expression is too complex")
	}
	return badRegex(e.Code.String())
}

// regexTranslator translates PostgreSQL's advanced regular expressions to the engine's syntax.
type regexTranslator struct {
	src       string
	at        int
	o         regexOptions
	out       *strings.Builder
	nonGreedy bool
	depth     int
	words     bool       // there is \y, \Y, \m or \M
	marks     []wordMark // the positions of \m and \M
}

func (t *regexTranslator) unsupported(what string) error {
	return pgerror.Unsupported("regular expressions with "+what, "Rewrite the pattern without it.")
}

func (t *regexTranslator) translate() error {
	for t.at < len(t.src) {
		switch c := t.src[t.at]; c {
		case '\\':
			if err := t.escape(); err != nil {
				return err
			}
		case '[':
			if err := t.bracket(); err != nil {
				return err
			}
		case '(':
			if err := t.group(); err != nil {
				return err
			}
		case ')':
			if t.depth == 0 {
				return badRegex("parentheses () not balanced")
			}
			t.depth--
			t.out.WriteByte(c)
			t.at++
		case '{':
			if t.at+1 < len(t.src) && isDigit(t.src[t.at+1]) {
				if err := t.repetition(); err != nil {
					return err
				}
			} else {
				t.out.WriteString(`\{`)
				t.at++
			}
		case '}':
			t.out.WriteString(`\}`)
			t.at++
		case '?', '*', '+':
			t.out.WriteByte(c)
			t.at++
			t.lazyMark()
		case ']':
			t.out.WriteString(`\]`)
			t.at++
		case '#', ' ', '\t', '\n', '\r', '\v', '\f':
			if !t.o.expanded {
				t.out.WriteByte(c)
			} else if c == '#' {
				if end := strings.IndexByte(t.src[t.at:], '\n'); end >= 0 {
					t.at += end
				} else {
					t.at = len(t.src) - 1
				}
			}
			t.at++
		default:
			r, n := utf8.DecodeRuneInString(t.src[t.at:])
			if t.o.foldCase && hasCase(r) {
				t.literal(r)
			} else {
				t.out.WriteString(t.src[t.at : t.at+n])
			}
			t.at += n
		}
	}
	if t.depth > 0 {
		return badRegex("parentheses () not balanced")
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (t *regexTranslator) lazyMark() {
	if t.at < len(t.src) && t.src[t.at] == '?' {
		t.nonGreedy = true
		t.out.WriteByte('?')
		t.at++
	}
}

func (t *regexTranslator) group() error {
	rest := t.src[t.at:]
	switch {
	case strings.HasPrefix(rest, "(?:"):
		t.out.WriteString("(?:")
		t.at += 3
	case strings.HasPrefix(rest, "(?#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return badRegex("parentheses () not balanced")
		}
		t.at += end + 1
		return nil
	case strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?<"):
		return t.unsupported("lookahead or lookbehind")
	case strings.HasPrefix(rest, "(?"):
		return badRegex("quantifier operand invalid")
	default:
		t.out.WriteByte('(')
		t.at++
	}
	t.depth++
	return nil
}

// repetition copies {m}, {m,} or {m,n}, with at most 255.
func (t *regexTranslator) repetition() error {
	end := strings.IndexByte(t.src[t.at:], '}')
	if end < 0 {
		return badRegex("braces {} not balanced")
	}
	body := t.src[t.at+1 : t.at+end]
	least, most, ranged := strings.Cut(body, ",")
	m, err := strconv.Atoi(least)
	if err != nil || m > 255 {
		return badRegex("invalid repetition count(s)")
	}
	if ranged && most != "" {
		if n, err := strconv.Atoi(most); err != nil || n > 255 || n < m {
			return badRegex("invalid repetition count(s)")
		}
	}
	t.out.WriteString("{" + body + "}")
	t.at += end + 1
	t.lazyMark()
	return nil
}

// The classes, in terms of Unicode as the C library classifies it.
const (
	classWord  = `\p{L}\p{Nd}\p{Nl}_`
	classSpace = `\s\v\x{85}\x{2028}\x{2029}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}`
)

// escape translates a backslash and what follows.
func (t *regexTranslator) escape() error {
	if t.at+1 == len(t.src) {
		return badRegex("invalid escape \\ sequence")
	}
	c := t.src[t.at+1]
	t.at += 2
	switch c {
	case 'd':
		t.out.WriteString(`[0-9]`)
	case 'D':
		t.out.WriteString(`[^0-9]`)
	case 'w':
		t.out.WriteString(`[` + classWord + `]`)
	case 'W':
		t.out.WriteString(`[^` + classWord + `]`)
	case 's':
		t.out.WriteString(`[` + classSpace + `]`)
	case 'S':
		t.out.WriteString(`[^` + classSpace + `]`)
	case 'A':
		t.out.WriteString(`\A`)
	case 'Z':
		t.out.WriteString(`\z`)
	case 'y', 'Y', 'm', 'M':
		return t.wordBoundary(c)
	default:
		if c >= '1' && c <= '9' {
			return t.unsupported("back references")
		}
		r, err := t.charEscape(c)
		if err != nil {
			return err
		}
		t.literal(r)
	}
	return nil
}

// charEscape returns the character that \c denotes; t.at is after c.
func (t *regexTranslator) charEscape(c byte) (rune, error) {
	switch c {
	case 'a':
		return 7, nil
	case 'b':
		return 8, nil
	case 'B':
		return '\\', nil
	case 'e':
		return 0x1b, nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'v':
		return '\v', nil
	case '0':
		return 0, nil
	case 'c':
		if t.at == len(t.src) {
			return 0, badRegex("invalid escape \\ sequence")
		}
		t.at++
		return rune(t.src[t.at-1] & 0x1f), nil
	case 'u':
		return t.hexEscape(4)
	case 'U':
		return t.hexEscape(8)
	case 'x':
		end := t.at
		for end < len(t.src) && isHex(t.src[end]) {
			end++
		}
		return t.hexEscape(end - t.at)
	}
	if isLetter(c) || isDigit(c) {
		return 0, badRegex("invalid escape \\ sequence")
	}
	r, n := utf8.DecodeRuneInString(t.src[t.at-1:])
	t.at += n - 1
	return r, nil
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func (t *regexTranslator) hexEscape(n int) (rune, error) {
	if n == 0 || t.at+n > len(t.src) {
		return 0, badRegex("invalid escape \\ sequence")
	}
	v, err := strconv.ParseUint(t.src[t.at:t.at+n], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, badRegex("invalid escape \\ sequence")
	}
	t.at += n
	return rune(v), nil
}

var regexClasses = map[string]string{
	"alpha": `\p{L}`, "alnum": `\p{L}\p{Nd}`, "digit": `0-9`, "lower": `\p{Ll}`, "upper": `\p{Lu}`,
	"space": classSpace, "punct": "!-/:-@\\[-`{-~\\p{P}\\p{S}", "blank": ` \t`, "cntrl": `\x00-\x1f\x7f`,
	"xdigit": `0-9A-Fa-f`, "graph": `!-~\p{L}\p{M}\p{N}\p{P}\p{S}`, "print": ` -~\p{L}\p{M}\p{N}\p{P}\p{S}`,
	"word": classWord, "ascii": `\x00-\x7f`,
}

// bracket translates [ … ].
func (t *regexTranslator) bracket() error {
	for start, c := range map[string]byte{"[[:<:]]": 'm', "[[:>:]]": 'M'} {
		if strings.HasPrefix(t.src[t.at:], start) {
			t.at += len(start)
			return t.wordBoundary(c)
		}
	}
	t.at++
	open := "["
	if strings.HasPrefix(t.src[t.at:], "^") {
		t.at++
		open = "[^"
		if t.o.noNLClass {
			open = `[^\n`
		}
	}
	if !t.o.foldCase {
		t.out.WriteString(open)
		return t.bracketItems()
	}
	// The cases are added to the set before it is negated.
	out := t.out
	t.out = new(strings.Builder)
	t.out.WriteByte('[')
	err := t.bracketItems()
	set := t.out.String()
	t.out = out
	if err != nil {
		return err
	}
	return t.foldSet(open, set)
}

// bracketItems translates what follows the opening bracket, the closing one included.
func (t *regexTranslator) bracketItems() error {
	for first := true; ; first = false {
		if t.at >= len(t.src) {
			return badRegex("brackets [] not balanced")
		}
		rest := t.src[t.at:]
		switch {
		case rest[0] == ']' && !first:
			t.at++
			t.out.WriteByte(']')
			return nil
		case strings.HasPrefix(rest, "[:"):
			name, _, ok := strings.Cut(rest[2:], ":]")
			class, known := regexClasses[name]
			if !ok || !known {
				return badRegex("invalid character class")
			}
			if t.o.foldCase && (name == "lower" || name == "upper") {
				class = regexClasses["alpha"]
			}
			t.out.WriteString(class)
			t.at += len(name) + 4
		case strings.HasPrefix(rest, "[.") || strings.HasPrefix(rest, "[="):
			name, _, ok := strings.Cut(rest[2:], rest[1:2]+"]")
			if !ok || utf8.RuneCountInString(name) != 1 {
				return badRegex("invalid collating element")
			}
			t.out.WriteString(quoteInBracket(name))
			t.at += len(name) + 4
		case rest[0] == '\\':
			if err := t.bracketEscape(); err != nil {
				return err
			}
		case rest[0] == '-':
			t.at++
			if first || strings.HasPrefix(t.src[t.at:], "]") {
				t.out.WriteString(`\-`)
			} else {
				t.out.WriteByte('-')
			}
		default:
			_, n := utf8.DecodeRuneInString(rest)
			t.out.WriteString(quoteInBracket(rest[:n]))
			t.at += n
		}
	}
}

func quoteInBracket(s string) string {
	switch s {
	case "[", "]", "^", `\`, "-", "&", "~":
		return `\` + s
	}
	return s
}

func (t *regexTranslator) bracketEscape() error {
	if t.at+1 >= len(t.src) {
		return badRegex("invalid escape \\ sequence")
	}
	c := t.src[t.at+1]
	t.at += 2
	switch c {
	case 'd':
		t.out.WriteString(`0-9`)
	case 'w':
		t.out.WriteString(classWord)
	case 's':
		t.out.WriteString(classSpace)
	case 'D', 'W', 'S':
		return badRegex("invalid escape \\ sequence")
	default:
		r, err := t.charEscape(c)
		if err != nil {
			return err
		}
		t.out.WriteString(quoteInBracket(string(r)))
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

// patternCache keeps a statement's compiled patterns: usually one, which is a constant.
type patternCache struct {
	likes   map[likeKey]*LikePattern
	regexes map[regexKey]*Regex
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

// Longer patterns, and expressions of more instructions, are not cached.
const (
	maxCachedBytes = 4 << 10
	maxCachedSize  = 16 << 10
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

func (c *patternCache) regex(pattern string, o regexOptions) (*Regex, error) {
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
	if len(pattern) > maxCachedBytes || re.size > maxCachedSize {
		return re, nil
	}
	if c.regexes == nil || len(c.regexes) >= maxCachedPatterns {
		c.regexes = map[regexKey]*Regex{}
	}
	c.regexes[key] = re
	return re, nil
}
