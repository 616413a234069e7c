package types

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// lquery is a pattern of paths.
type lquery []lqueryLevel

// lqueryLevel matches from low to high labels in a row: any ones without variants, else those that are one of the variants, or none of them.
type lqueryLevel struct {
	variants  []labelPattern
	not       bool
	counted   bool // the numbers are written
	low, high int
}

func (q lquery) String() string {
	var b strings.Builder
	for i := range q {
		if i > 0 {
			b.WriteByte('.')
		}
		q[i].write(&b)
	}
	return b.String()
}

func (l *lqueryLevel) write(b *strings.Builder) {
	if l.not {
		b.WriteByte('!')
	}
	for i := range l.variants {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(l.variants[i].String())
	}
	star := len(l.variants) == 0
	if star {
		b.WriteByte('*')
	}
	low, high := strconv.Itoa(l.low), strconv.Itoa(l.high)
	switch {
	case !l.counted && !star || star && l.low == 0 && l.high == ltreeMaxLevels:
	case l.low == l.high:
		b.WriteString("{" + low + "}")
	default:
		if l.low == 0 {
			low = ""
		}
		if l.high == ltreeMaxLevels {
			high = ""
		}
		b.WriteString("{" + low + "," + high + "}")
	}
}

// lqueryParser reads a pattern character by character.
type lqueryParser struct {
	text []rune
	at   int
}

func (p *lqueryParser) peek() rune {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *lqueryParser) fail() error {
	if p.at >= len(p.text) {
		return pathEnd("lquery")
	}
	return pathSyntax("lquery", p.at)
}

func parseLquery(s string) (lquery, error) {
	p := &lqueryParser{text: []rune(s)}
	var q lquery
	for {
		l, err := p.level()
		if err != nil {
			return nil, err
		}
		if q = append(q, l); len(q) > ltreeMaxLevels {
			return nil, tooManyLevels("lquery", len(q))
		}
		if p.at == len(p.text) {
			return q, nil
		}
		if p.peek() != '.' {
			return nil, p.fail()
		}
		p.at++
	}
}

func (p *lqueryParser) level() (lqueryLevel, error) {
	l := lqueryLevel{low: 1, high: 1}
	if p.peek() == '*' {
		p.at++
		l.low, l.high = 0, ltreeMaxLevels
	} else {
		if l.not = p.peek() == '!'; l.not {
			p.at++
		}
		for {
			v, err := p.variant()
			if err != nil {
				return l, err
			}
			if l.variants = append(l.variants, v); p.peek() != '|' {
				break
			}
			p.at++
		}
	}
	if p.peek() != '{' {
		return l, nil
	}
	p.at++
	return l, p.count(&l)
}

func (p *lqueryParser) variant() (v labelPattern, err error) {
	from := p.at
	for isLabelRune(p.peek()) {
		p.at++
	}
	if v.name = string(p.text[from:p.at]); v.name == "" {
		return v, p.fail()
	}
	err = v.check(p.at)
	for v.flag(p.peek()) {
		p.at++
	}
	if v.flagged() && isLabelRune(p.peek()) {
		return v, p.fail()
	}
	return v, err
}

// count reads {n}, {n,}, {,m} or {n,m} behind the brace.
func (p *lqueryParser) count(l *lqueryLevel) error {
	l.counted = true
	low, given, err := p.number("Low")
	if err != nil {
		return err
	}
	l.low, l.high = low, low
	if p.peek() == ',' {
		p.at++
		high, bounded, err := p.number("High")
		if err != nil {
			return err
		}
		if l.high = high; !bounded {
			l.high = ltreeMaxLevels
		}
	} else if !given {
		return p.fail()
	}
	if p.peek() != '}' {
		return p.fail()
	}
	p.at++
	if l.low > l.high {
		return pgerror.New(pgerror.SyntaxError, "lquery syntax error").
			WithDetail("Low limit (%d) is greater than high limit (%d), at character %d.", l.low, l.high, p.at-1)
	}
	return nil
}

func (p *lqueryParser) number(which string) (n int, given bool, _ error) {
	from := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		n = min(n*10+int(c-'0'), ltreeMaxLevels+1)
		p.at++
	}
	if n > ltreeMaxLevels {
		return 0, true, pgerror.New(pgerror.SyntaxError, "lquery syntax error").
			WithDetail("%s limit (%s) exceeds the maximum allowed (%d), at character %d.", which, string(p.text[from:p.at]), ltreeMaxLevels, from+1)
	}
	return n, p.at > from, nil
}

func (l *lqueryLevel) matches(label string) bool {
	if len(l.variants) == 0 {
		return true
	}
	return slices.ContainsFunc(l.variants, func(v labelPattern) bool { return v.matches(label) }) != l.not
}

// Lquery is a pattern of paths that has been read.
type Lquery struct{ levels lquery }

// NewLquery reads the pattern of a value of lquery.
func NewLquery(d Datum) (*Lquery, error) {
	q, err := parseLquery(d.Text())
	return &Lquery{q}, err
}

// Matches reports whether a path with the labels matches. step is called for each level, before its comparisons of as many labels.
//
// From the last level to the first it computes the places in the path from which on the rest of the pattern matches.
func (q *Lquery) Matches(labels []string, step func(int) error) (bool, error) {
	n := len(labels)
	rest := make([]bool, n+1)
	rest[n] = true
	ends := make([]int, n+2) // how many places before one match
	for i := len(q.levels) - 1; i >= 0; i-- {
		if err := step(n + 1); err != nil {
			return false, err
		}
		l := &q.levels[i]
		for at, ok := range rest {
			ends[at+1] = ends[at]
			if ok {
				ends[at+1]++
			}
		}
		run := 0 // of labels that match from at on
		for at := n; at >= 0; at-- {
			if at < n {
				if run++; !l.matches(labels[at]) {
					run = 0
				}
			}
			first, last := at+l.low, at+min(l.high, run)
			rest[at] = first <= last && ends[last+1] > ends[first]
		}
	}
	return rest[0], nil
}
