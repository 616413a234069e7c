package tsearch

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// Morph turns the text of an operand into what the query searches for: words and their operators, nil for stop words. An operand
// that is to be removed is Stop().
type Morph func(text string, weights uint8, prefix bool) (*Node, error)

// Stop returns an operand that will be removed.
func Stop() *Node { return &Node{Op: stop} }

// ParseQuery reads the text form of a query.
//
// Errors: 42601, 54000, 54001, 22023.
func ParseQuery(s string) (*Query, error) {
	return ParseQueryWith(s, func(text string, weights uint8, prefix bool) (*Node, error) {
		if len(text) > MaxWord {
			return nil, pgerror.New(pgerror.ProgramLimitExceeded, "word is too long in tsquery: \"%s\"", s)
		}
		return NewWord(strings.Clone(text), weights, prefix), nil
	})
}

// NoLexemes is the notice about the text of a query without operands.
func NoLexemes(text string) *pgerror.Error {
	return pgerror.New(pgerror.SuccessfulCompletion, "text-search query doesn't contain lexemes: \"%s\"", text)
}

// ParseQueryWith reads the text form of a query whose operands are texts.
func ParseQueryWith(s string, morph Morph) (*Query, error) {
	p := &queryParser{words: wordReader{whole: s, rest: s, query: true}, morph: morph}
	return p.query(p.nextStandard)
}

// ParseWeb reads a query of a web search: words, "phrases", or, and - for not. Nothing is a syntax error.
func ParseWeb(s string, morph Morph) (*Query, error) {
	p := &queryParser{words: wordReader{whole: s, rest: s, query: true, web: true}, morph: morph}
	return p.query(p.nextWeb)
}

// Plain returns the query that a text stands for.
func Plain(s string, morph Morph) (*Query, error) {
	root, err := morph(s, 0, false)
	if err != nil {
		return nil, err
	}
	return cleaned(s, root)
}

// maxOperandStart bounds where an operand begins in the operands of a query that is read from a text, which are stored one behind the other.
const maxOperandStart = 1 << 20

// cleaned returns the query of the text s without stop words.
func cleaned(s string, root *Node) (*Query, error) {
	q := &Query{root}
	if root == nil {
		return q, nil
	}
	start, last := 0, 0
	root.walk(func(n *Node) {
		if n.Op != Operand {
			return
		}
		if last == 0 { // walk begins with the last operand.
			last = len(n.Word) + 1
			return
		}
		start += len(n.Word) + 1
	})
	if start >= maxOperandStart {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "value is too big in tsquery: \"%s\"", s)
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	q.Root, _, _ = root.clean()
	return q, nil
}

// token is what the parser of a query reads.
type token struct {
	kind     tokenKind
	op       Op
	distance int
	node     *Node
}

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenOperand
	tokenOperator
	tokenOpen
	tokenClose
)

// parserState is what may follow in a query.
type parserState uint8

const (
	firstOperand parserState = iota
	nextOperand
	nextOperator
)

type queryParser struct {
	words wordReader
	state parserState
	open  int // parentheses
	morph Morph
}

// operator waits for its right operand.
type operator struct {
	op       Op
	distance int
}

var priority = [...]int{Not: 4, Phrase: 3, And: 2, Or: 1}

// maxOperators is the size of PostgreSQL's stack of operators: so many ! may follow each other.
const maxOperators = 32

func (p *queryParser) query(next func() (token, error)) (*Query, error) {
	root, err := p.level(next, 0)
	if err != nil {
		return nil, err
	}
	return cleaned(p.words.whole, root)
}

// maxParentheses bounds how deep parentheses nest.
const maxParentheses = 5000

// level parses up to a closing parenthesis or the end.
func (p *queryParser) level(next func() (token, error), depth int) (*Node, error) {
	if depth > maxParentheses {
		return nil, errTooDeep()
	}
	var operators []operator
	var operands []*Node
	// reduce applies the operators that bind at least as tightly as op, which follows.
	reduce := func(op Op) error {
		for len(operators) > 0 {
			top := operators[len(operators)-1]
			if a, b := priority[op], priority[top.op]; a > b || op == Not && a == b {
				return nil
			}
			operators = operators[:len(operators)-1]
			need := 2
			if top.op == Not {
				need = 1
			}
			n := len(operands)
			if n < need {
				return p.words.syntaxError()
			}
			node := &Node{Op: top.op, Distance: top.distance, Right: operands[n-1]}
			if need == 2 {
				node.Left = operands[n-2]
			}
			operands = append(operands[:n-need], node)
		}
		return nil
	}
	for {
		t, err := next()
		if err != nil {
			return nil, err
		}
		switch t.kind {
		case tokenOperand:
			operands = append(operands, t.node)
			continue
		case tokenOperator:
			if err := reduce(t.op); err != nil {
				return nil, err
			}
			if len(operators) == maxOperators {
				return nil, pgerror.New(pgerror.ProgramLimitExceeded, "tsquery stack too small")
			}
			operators = append(operators, operator{t.op, t.distance})
			continue
		case tokenOpen:
			n, err := p.level(next, depth+1)
			if err != nil {
				return nil, err
			}
			if n != nil {
				operands = append(operands, n)
			}
			continue
		}
		if err := reduce(Or); err != nil {
			return nil, err
		}
		switch len(operands) {
		case 0:
			return nil, nil
		case 1:
			return operands[0], nil
		}
		return nil, p.words.syntaxError()
	}
}

// nextStandard reads a token of the text form.
func (p *queryParser) nextStandard() (token, error) {
	r := &p.words
	r.rest = trimSpace(r.rest)
	c := byte(0)
	if r.rest != "" {
		c = r.rest[0]
	}
	if p.state != nextOperator {
		switch c {
		case '!':
			r.rest, p.state = r.rest[1:], nextOperand
			return token{kind: tokenOperator, op: Not}, nil
		case '(':
			r.rest, p.state = r.rest[1:], nextOperand
			p.open++
			return token{kind: tokenOpen}, nil
		case ':':
			return token{}, r.syntaxError()
		}
		return p.operand()
	}
	switch c {
	case '&', '|':
		r.rest, p.state = r.rest[1:], nextOperand
		op := And
		if c == '|' {
			op = Or
		}
		return token{kind: tokenOperator, op: op}, nil
	case '<':
		distance, ok, err := p.phrase()
		if err != nil || !ok {
			return token{}, err
		}
		p.state = nextOperand
		return token{kind: tokenOperator, op: Phrase, distance: distance}, nil
	case ')':
		if p.open--; p.open >= 0 {
			r.rest = r.rest[1:]
			return token{kind: tokenClose}, nil
		}
	case 0:
		if p.open == 0 {
			return token{}, nil
		}
	}
	return token{}, r.syntaxError()
}

// operand reads a word and what modifies it.
func (p *queryParser) operand() (token, error) {
	r := &p.words
	w, ok, err := r.word()
	if err != nil {
		return token{}, err
	}
	if !ok {
		if p.state == firstOperand {
			return token{}, nil
		}
		return token{}, pgerror.New(pgerror.SyntaxError, "no operand in tsquery: \"%s\"", r.whole)
	}
	weights, prefix := r.modifiers()
	p.state = nextOperator
	n, err := p.morph(w, weights, prefix)
	return token{kind: tokenOperand, node: n}, err
}

// modifiers reads the weights and the prefix mark of an operand.
func (r *wordReader) modifiers() (weights uint8, prefix bool) {
	if !strings.HasPrefix(r.rest, ":") {
		return 0, false
	}
	for r.rest = r.rest[1:]; r.rest != ""; r.rest = r.rest[1:] {
		switch c := r.rest[0]; c {
		case 'a', 'b', 'c', 'd', 'A', 'B', 'C', 'D':
			weights |= 1 << ('d' - (c | 0x20))
		case '*':
			prefix = true
		default:
			return weights, prefix
		}
	}
	return weights, prefix
}

// phrase reads a phrase operator: <-> or <N>. What follows it may not be the end.
func (p *queryParser) phrase() (distance int, ok bool, err error) {
	r := &p.words
	rest := r.rest[1:]
	if strings.HasPrefix(rest, "-") {
		distance, rest = 1, rest[1:]
	} else {
		n := 0
		for n < len(rest) && isDigit(rest[n]) {
			n++
		}
		if n == 0 {
			return 0, false, r.syntaxError()
		}
		if distance, err = strconv.Atoi(rest[:n]); err != nil || distance > MaxDistance {
			return 0, false, pgerror.New(pgerror.InvalidParameterValue,
				"distance in phrase operator must be an integer value between zero and %d inclusive", MaxDistance)
		}
		rest = rest[n:]
	}
	if !strings.HasPrefix(rest, ">") || len(rest) == 1 {
		return 0, false, r.syntaxError()
	}
	r.rest = rest[1:]
	return distance, true, nil
}

// AppendText appends the text form.
func (q *Query) AppendText(dst []byte) []byte {
	if q.Root == nil {
		return dst
	}
	return q.Root.append(dst, -1, false)
}

// append appends a node below an operator of a priority; right: it is the right operand of a phrase.
func (n *Node) append(dst []byte, above int, right bool) []byte {
	if n.Op == Operand {
		return n.appendOperand(dst)
	}
	p := priority[n.Op]
	parentheses := p < above || n.Op == Phrase && right
	if parentheses {
		dst = append(dst, "( "...)
	}
	switch n.Op {
	case Not:
		dst = n.Right.append(append(dst, '!'), p, false)
	default:
		dst = n.Left.append(dst, p, false)
		switch {
		case n.Op == And:
			dst = append(dst, " & "...)
		case n.Op == Or:
			dst = append(dst, " | "...)
		case n.Distance == 1:
			dst = append(dst, " <-> "...)
		default:
			dst = append(strconv.AppendInt(append(dst, " <"...), int64(n.Distance), 10), "> "...)
		}
		dst = n.Right.append(dst, p, n.Op == Phrase)
	}
	if parentheses {
		dst = append(dst, " )"...)
	}
	return dst
}

func (n *Node) appendOperand(dst []byte) []byte {
	dst = appendWord(dst, n.Word)
	if !n.Prefix && n.Weights == 0 {
		return dst
	}
	dst = append(dst, ':')
	if n.Prefix {
		dst = append(dst, '*')
	}
	for w := 3; w >= 0; w-- {
		if n.Weights>>w&1 != 0 {
			dst = append(dst, "DCBA"[w])
		}
	}
	return dst
}

// nextWeb reads a token of a web search.
func (p *queryParser) nextWeb() (token, error) {
	if p.state == nextOperator {
		return p.webOperator()
	}
	r := &p.words
	for {
		r.rest = trimSpace(r.rest)
		switch {
		case r.rest == "":
			if p.state == firstOperand {
				return token{}, nil
			}
			p.state = nextOperator
			return token{kind: tokenOperand, node: Stop()}, nil
		case r.rest[0] == '-':
			r.rest, p.state = r.rest[1:], nextOperand
			return token{kind: tokenOperator, op: Not}, nil
		case r.rest[0] == '"': // The text up to the next one, or to the end, is one operand.
			text, rest, _ := strings.Cut(r.rest[1:], `"`)
			r.rest, p.state = rest, nextOperator
			n, err := p.morph(text, 0, false)
			return token{kind: tokenOperand, node: n}, err
		case r.ends():
			r.rest, p.state = r.rest[1:], nextOperand
			continue
		}
		w, _, err := r.word()
		if err != nil {
			return token{}, err
		}
		p.state = nextOperator
		n, err := p.morph(w, 0, false)
		return token{kind: tokenOperand, node: n}, err
	}
}

// webOperator reads what stands between operands: or; anything else is and.
func (p *queryParser) webOperator() (token, error) {
	r := &p.words
	for {
		r.rest = trimSpace(r.rest)
		switch {
		case r.rest == "":
			return token{}, nil
		case p.or():
			p.state = nextOperand
			return token{kind: tokenOperator, op: Or}, nil
		case r.rest[0] != '"' && r.ends():
			r.rest = r.rest[1:]
		default:
			p.state = nextOperand
			return token{kind: tokenOperator, op: And}, nil
		}
	}
}

// or reads the word "or" if something follows it.
func (p *queryParser) or() bool {
	rest := p.words.rest
	if len(rest) < 3 || !strings.EqualFold(rest[:2], "or") {
		return false
	}
	c, n := utf8.DecodeRuneInString(rest[2:])
	if c == '-' || c == '_' || unicode.IsLetter(c) || c >= '0' && c <= '9' || trimSpace(rest[2+n:]) == "" {
		return false
	}
	p.words.rest = rest[2:]
	return true
}
