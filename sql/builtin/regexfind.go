package builtin

import (
	"regexp"
	"regexp/syntax"
	"sync"
)

// Regex is a compiled regular expression in PostgreSQL's syntax. It is immutable.
type Regex struct {
	*regexp.Regexp
	longest bool
	words   bool // there is \y, \Y, \m or \M, whose words have characters beyond ASCII
	edges   bool // there is \m or \M, for which Regexp has \b
	size    int  // number of instructions, about
	// program is the compiled form for regexVM, created for the first long text.
	program func() *syntax.Prog
}

const (
	// maxPatternBytes bounds patterns: a longer one takes too much memory when compiled.
	maxPatternBytes = 256 << 10
	// shortBytes is the length up to which package regexp matches a text, and shortSteps its product with
	// the number of instructions: it is faster than regexVM, and done within milliseconds.
	shortBytes = 1 << 10
	shortSteps = 256 << 10
	// maxRegexSize bounds an expression's instructions, maxRegexCaptures their product with its groups: the number of
	// positions that the matcher may store.
	maxRegexSize     = 200_000
	maxRegexCaptures = 8 << 20
)

// regexSize estimates the number of instructions of a compiled expression; it stops far above maxRegexSize.
func regexSize(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n = min(n+regexSize(sub), 2*maxRegexSize)
	}
	switch re.Op {
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	case syntax.OpLiteral, syntax.OpCharClass:
		n += len(re.Rune)
	}
	return min(n, 2*maxRegexSize)
}

// newRegex returns a Regex of its compiled form; pattern is the same with marks for \m and \M.
func newRegex(re *regexp.Regexp, pattern string, size int, longest bool) *Regex {
	if longest {
		re.Longest()
	}
	return &Regex{Regexp: re, size: size, longest: longest, program: sync.OnceValue(func() *syntax.Prog {
		prog, err := compileMarked(pattern)
		if err != nil {
			panic("BUG: a pattern that package regexp has compiled does not compile: " + err.Error())
		}
		return prog
	})}
}

// short reports whether package regexp can match a text.
func (re *Regex) short(s string) bool {
	n := len(s)
	if re.edges || re.words && !isASCII(s[:min(n, shortSteps)]) {
		return false
	}
	return n <= shortBytes || n <= shortSteps && n*len(re.program().Inst) <= shortSteps
}

// matches reports whether s has a match.
func (re *Regex) matches(env *Env, s string) (bool, error) {
	if re.short(s) {
		return re.MatchString(s), env.Step(len(s))
	}
	return newRegexVM(re, re.program(), 0).find(env, s, 0)
}

// find returns the first match with its groups, as positions in s, two for each; nil: there is none.
func (re *Regex) find(env *Env, s string) (m []int, err error) {
	err = re.each(env, s, 0, func(found []int) (bool, error) {
		m = found
		return false, nil
	})
	return m, err
}

// each calls visit with the matches that begin at or after a byte offset, from left to right, as long as it returns
// true. An empty match directly after another one is skipped. The argument of visit is valid until it returns, except
// for the last.
func (re *Regex) each(env *Env, s string, offset int, visit func(m []int) (more bool, err error)) error {
	if offset == 0 && re.short(s) {
		if err := env.Step(len(s)); err != nil {
			return err
		}
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			if more, err := visit(m); !more || err != nil {
				return err
			}
		}
		return nil
	}
	vm := newRegexVM(re, re.program(), 2*(re.NumSubexp()+1))
	for pos, end := offset, -1; pos <= len(s); {
		found, err := vm.find(env, s, pos)
		if !found || err != nil {
			return err
		}
		m := vm.match
		if m[1] > m[0] || m[0] != end {
			if more, err := visit(m); !more || err != nil {
				return err
			}
		}
		end = m[1]
		if pos = end; m[1] == m[0] {
			_, width := nextRune(s, pos)
			pos += max(width, 1)
		}
		if err := env.Step(stepCost); err != nil {
			return err
		}
	}
	return nil
}
