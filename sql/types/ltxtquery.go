package types

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// ltxtquery is a condition on the labels of a path: a word, or an operator with its operands.
type ltxtquery struct {
	word  labelPattern
	op    rune // '!', '&', '|'; 0: a word
	parts []*ltxtquery
}

func (q *ltxtquery) String() string {
	var b strings.Builder
	if q != nil {
		q.write(&b, true)
	}
	return b.String()
}

// write writes an operand; first: it is in no other one, or in parentheses.
func (q *ltxtquery) write(b *strings.Builder, first bool) {
	begin, end := "", ""
	switch {
	case q.op == 0:
		b.WriteString(q.word.String())
		return
	case q.op == '!':
		b.WriteByte('!')
		if q.parts[0].op == 0 {
			q.parts[0].write(b, false)
			return
		}
		b.WriteString("( ")
		q.parts[0].write(b, true)
		b.WriteString(" )")
		return
	case q.op == '|' && !first:
		begin, end = "( ", " )"
	}
	b.WriteString(begin)
	q.parts[0].write(b, false)
	b.WriteString(" " + string(q.op) + " ")
	q.parts[1].write(b, false)
	b.WriteString(end)
}

// ltxtqueryParser reads a condition: ! binds closer than &, & closer than |.
type ltxtqueryParser struct {
	lqueryParser
	depth, words int
}

// Limits of conditions: parentheses and negations within each other, and words.
const (
	ltxtqueryDepth = 1000
	ltxtqueryWords = 10000
)

func parseLtxtquery(s string) (*ltxtquery, error) {
	p := &ltxtqueryParser{lqueryParser: lqueryParser{text: []rune(s)}}
	q, err := p.binary('|')
	if err == nil && p.at < len(p.text) {
		err = pgerror.New(pgerror.SyntaxError, "syntax error")
	}
	return q, err
}

func (p *ltxtqueryParser) space() {
	for c := p.peek(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = p.peek() {
		p.at++
	}
}

// binary reads operands with an operator between them.
func (p *ltxtqueryParser) binary(op rune) (*ltxtquery, error) {
	operand := p.unary
	if op == '|' {
		operand = func() (*ltxtquery, error) { return p.binary('&') }
	}
	list := []*ltxtquery{}
	for {
		q, err := operand()
		if err != nil {
			return nil, err
		}
		list = append(list, q)
		if p.space(); p.peek() != op {
			break
		}
		p.at++
	}
	q := list[0]
	for _, next := range list[1:] {
		q = &ltxtquery{op: op, parts: []*ltxtquery{q, next}}
	}
	return q, nil
}

func (p *ltxtqueryParser) unary() (*ltxtquery, error) {
	if p.depth++; p.depth > ltxtqueryDepth {
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { p.depth-- }()
	p.space()
	switch p.peek() {
	case '!':
		p.at++
		q, err := p.unary()
		return &ltxtquery{op: '!', parts: []*ltxtquery{q}}, err
	case '(':
		p.at++
		q, err := p.binary('|')
		if err != nil {
			return nil, err
		}
		if p.space(); p.peek() != ')' {
			return nil, pgerror.New(pgerror.SyntaxError, "syntax error")
		}
		p.at++
		return q, nil
	}
	if !isLabelRune(p.peek()) {
		return nil, pgerror.New(pgerror.SyntaxError, "operand syntax error")
	}
	if p.words++; p.words > ltxtqueryWords {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "ltxtquery is too large")
	}
	word, err := p.variant()
	return &ltxtquery{word: word}, err
}

// Ltxtquery is a condition on the labels of a path that has been read.
type Ltxtquery struct{ root *ltxtquery }

// NewLtxtquery reads the condition of a value of ltxtquery.
func NewLtxtquery(d Datum) (*Ltxtquery, error) {
	q, err := parseLtxtquery(d.Text())
	return &Ltxtquery{q}, err
}

// Matches reports whether the condition holds for the labels. step is called for each word, before its comparisons of as many labels.
func (q *Ltxtquery) Matches(labels []string, step func(int) error) (bool, error) {
	return q.root.holds(labels, step)
}

func (q *ltxtquery) holds(labels []string, step func(int) error) (bool, error) {
	if q.op == 0 {
		return slices.ContainsFunc(labels, q.word.matches), step(len(labels) + 1)
	}
	yes, err := q.parts[0].holds(labels, step)
	switch {
	case err != nil:
		return false, err
	case q.op == '!':
		return !yes, nil
	case yes == (q.op == '|'):
		return yes, nil
	}
	return q.parts[1].holds(labels, step)
}
