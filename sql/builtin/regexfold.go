package builtin

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// PostgreSQL folds case by character: a character of a pattern matches its lower and its upper case, a range itself and
// those of its characters. Package regexp folds differently: s matches ſ there.

func hasCase(r rune) bool { return unicode.ToLower(r) != r || unicode.ToUpper(r) != r }

// literal writes a character that matches itself.
func (t *regexTranslator) literal(r rune) {
	if t.o.foldCase {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
			t.out.WriteByte('[')
			t.out.WriteRune(lower)
			t.out.WriteRune(upper)
			t.out.WriteByte(']')
			return
		}
	}
	t.out.WriteString(regexp.QuoteMeta(string(r)))
}

// casedRunes are all characters that have another case, in order.
var casedRunes = sync.OnceValue(func() (out []rune) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if hasCase(r) {
			out = append(out, r)
		}
	}
	return out
})

// foldSet writes a bracket expression with the other cases of its characters; open is how it begins.
func (t *regexTranslator) foldSet(open, set string) error {
	parsed, err := syntax.Parse(set, syntax.Perl)
	if err != nil {
		return regexError(err)
	}
	ranges := parsed.Rune
	switch {
	case parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase != 0:
		ranges = nil
		for r, again := parsed.Rune[0], false; !again; again = r == parsed.Rune[0] {
			ranges = append(ranges, r, r)
			r = unicode.SimpleFold(r)
		}
	case parsed.Op == syntax.OpLiteral:
		ranges = []rune{parsed.Rune[0], parsed.Rune[0]}
	case parsed.Op != syntax.OpCharClass: // all characters
		t.out.WriteString(open + set[1:])
		return nil
	}
	t.out.WriteString(open)
	one := func(r rune) { fmt.Fprintf(t.out, `\x{%x}`, r) }
	cased := casedRunes()
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if low == high {
			one(unicode.ToLower(low))
			one(unicode.ToUpper(low))
			continue
		}
		fmt.Fprintf(t.out, `\x{%x}-\x{%x}`, low, high)
		for k, _ := slices.BinarySearch(cased, low); k < len(cased) && cased[k] <= high; k++ {
			for _, r := range []rune{unicode.ToLower(cased[k]), unicode.ToUpper(cased[k])} {
				if r < low || r > high {
					one(r)
				}
			}
		}
	}
	t.out.WriteByte(']')
	return nil
}

// Conditions beside those of package syntax: a word begins or ends here.
const (
	emptyWordStart syntax.EmptyOp = 1 << 6
	emptyWordEnd   syntax.EmptyOp = 1 << 7
)

// wordMark is a \m (start) or \M at an offset of the translated pattern, where \b is written for it.
type wordMark struct {
	at    int
	start bool
}

// wordBoundary translates \y, \Y, \m and \M, which take no quantifier.
func (t *regexTranslator) wordBoundary(c byte) error {
	rest := t.src[t.at:]
	if rest != "" && strings.IndexByte("*+?", rest[0]) >= 0 || len(rest) > 1 && rest[0] == '{' && isDigit(rest[1]) {
		return badRegex("quantifier operand invalid")
	}
	t.words = true
	if c == 'Y' {
		t.out.WriteString(`\B`)
		return nil
	}
	if c != 'y' {
		t.marks = append(t.marks, wordMark{t.out.Len(), c == 'm'})
	}
	t.out.WriteString(`\b`)
	return nil
}

// The names of the groups that stand for \m and \M begin with these; no other group has a name.
const (
	wordStartGroup = "start"
	wordEndGroup   = "end"
)

// marked returns the translated pattern with an empty named group for each \m and \M.
func (t *regexTranslator) marked() string {
	body := t.out.String()
	if len(t.marks) == 0 {
		return body
	}
	var b strings.Builder
	last := 0
	for i, m := range t.marks {
		name := wordEndGroup
		if m.start {
			name = wordStartGroup
		}
		b.WriteString(body[last:m.at])
		fmt.Fprintf(&b, "(?P<%s%d>)", name, i)
		last = m.at + len(`\b`)
	}
	b.WriteString(body[last:])
	return b.String()
}

// compileMarked compiles a pattern of marked. Groups for \m and \M become conditions; the others are numbered without
// them.
func compileMarked(pattern string) (*syntax.Prog, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	const startGroup, endGroup = 1 << 20, 1<<20 + 1 // beyond all others
	groups := 0
	var number func(re *syntax.Regexp)
	number = func(re *syntax.Regexp) {
		if re.Op == syntax.OpCapture {
			switch {
			case re.Name == "":
				groups++
				re.Cap = groups
			case strings.HasPrefix(re.Name, wordStartGroup):
				re.Cap = startGroup
			default:
				re.Cap = endGroup
			}
		}
		for _, sub := range re.Sub {
			number(sub)
		}
	}
	number(parsed)
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		if inst.Op != syntax.InstCapture {
			continue
		}
		switch inst.Arg {
		case 2 * startGroup:
			inst.Op, inst.Arg = syntax.InstEmptyWidth, uint32(emptyWordStart)
		case 2 * endGroup:
			inst.Op, inst.Arg = syntax.InstEmptyWidth, uint32(emptyWordEnd)
		case 2*startGroup + 1, 2*endGroup + 1:
			inst.Op = syntax.InstNop
		}
	}
	return prog, nil
}

// isWord reports whether a character belongs to a word, as \w does; -1 is the text's end.
func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.In(r, unicode.L, unicode.Nd, unicode.Nl)
}

// conditions returns which conditions hold between two characters.
func (re *Regex) conditions(before, after rune) syntax.EmptyOp {
	op := syntax.EmptyOpContext(before, after)
	if !re.words {
		return op
	}
	op &^= syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	switch was, is := isWord(before), isWord(after); {
	case was == is:
		op |= syntax.EmptyNoWordBoundary
	case is:
		op |= syntax.EmptyWordBoundary | emptyWordStart
	default:
		op |= syntax.EmptyWordBoundary | emptyWordEnd
	}
	return op
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
