package jsonpath

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// parser reads a path by recursive descent.
type parser struct {
	lex   lexer
	cur   token
	depth int
	// tokens is how many have been read.
	tokens int
	inSub  int // array subscripts around the present position
	inFil  int // filters around it
}

const (
	// maxNesting bounds the nesting of a path, maxDepth that of its text: the printed form of one level has two pairs of parentheses at most,
	// so that it can be read again.
	maxNesting = 2000
	maxDepth   = 2*maxNesting + 2
	// maxTokens bounds the memory of a path, and the time until a cancel is noticed.
	maxTokens = 200_000
)

// Parse reads a path.
//
// Errors: 22P02 and 42601 for its syntax, 22003 for a number that numeric cannot hold, 54001 for too deep nesting and too many parts.
func Parse(text string) (*Path, error) {
	p := &parser{lex: lexer{in: text}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.cur.kind == end {
		return nil, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", "jsonpath", text)
	}
	path := &Path{}
	if p.cur.is("strict") || p.cur.is("lax") {
		path.Strict = p.cur.is("strict")
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.cur.kind != end {
		return nil, p.unexpected()
	}
	if n.nesting() > maxNesting {
		return nil, jsonb.ErrTooDeep()
	}
	path.Root = n
	return path, nil
}

// nesting is the number of operators, filters and subscripts within each other. a + b + c are two: the sum a + b is within the other one.
func (n *Node) nesting() int {
	deepest := 0
	for ; n != nil; n = n.Next {
		if n.Left == nil && n.Subscripts == nil {
			continue
		}
		within := max(n.Left.nesting(), n.Right.nesting())
		for i := range n.Subscripts {
			within = max(within, n.Subscripts[i].From.nesting(), n.Subscripts[i].To.nesting())
		}
		deepest = max(deepest, within+1)
	}
	return deepest
}

func (p *parser) advance() (err error) {
	if p.tokens++; p.tokens > maxTokens {
		return pgerror.New(pgerror.StatementTooComplex, "jsonpath has too many parts").
			WithDetail("It may have %d words, values and marks.", maxTokens)
	}
	p.cur, err = p.lex.next()
	return err
}

func (p *parser) unexpected() error { return syntax("syntax error", p.cur.raw) }

// accept reads the mark or word s if it is next.
func (p *parser) accept(s string) (bool, error) {
	if !p.cur.is(s) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(s string) error {
	if !p.cur.is(s) {
		return p.unexpected()
	}
	return p.advance()
}

// binary reads operands separated by operators, from the left.
func (p *parser) binary(ops map[string]Type, predicates bool, operand func() (*Node, error)) (*Node, error) {
	n, err := operand()
	for err == nil && p.cur.kind == mark {
		op, ok := ops[p.cur.text]
		if !ok {
			break
		}
		if n.predicate() != predicates {
			return nil, p.unexpected()
		}
		if err = p.advance(); err != nil {
			return nil, err
		}
		var right *Node
		if right, err = operand(); err == nil && right.predicate() != predicates {
			return nil, p.unexpected()
		}
		n = &Node{Type: op, Left: n, Right: right}
	}
	return n, err
}

var (
	orOps   = map[string]Type{"||": Or}
	andOps  = map[string]Type{"&&": And}
	addOps  = map[string]Type{"+": Add, "-": Sub}
	mulOps  = map[string]Type{"*": Mul, "/": Div, "%": Mod}
	compOps = map[string]Type{"==": Equal, "!=": NotEqual, "<": Less, "<=": LessOrEqual, ">": Greater, ">=": GreaterOrEqual}
)

func (p *parser) or() (*Node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, jsonb.ErrTooDeep()
	}
	defer func() { p.depth-- }()
	return p.binary(orOps, true, p.and)
}

func (p *parser) and() (*Node, error) { return p.binary(andOps, true, p.not) }

func (p *parser) not() (*Node, error) {
	if !p.cur.is("!") {
		return p.comparison()
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.cur.is("(") && !p.cur.is("exists") {
		return nil, p.unexpected()
	}
	operand := p.simple
	if p.cur.is("(") { // (…) is unknown would have to be in parentheses.
		operand = p.delimited
	}
	n, err := operand()
	if err != nil {
		return nil, err
	}
	if !n.predicate() {
		return nil, p.unexpected()
	}
	return &Node{Type: Not, Left: n}, nil
}

func (p *parser) comparison() (*Node, error) {
	n, err := p.add()
	if err != nil || n.predicate() {
		return n, err
	}
	if op, ok := compOps[p.cur.text]; ok && p.cur.kind == mark {
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.add()
		if err == nil && right.predicate() {
			err = p.unexpected()
		}
		return &Node{Type: op, Left: n, Right: right}, err
	}
	if ok, err := p.accept("starts"); ok || err != nil {
		return p.startsWith(n, err)
	}
	if ok, err := p.accept("like_regex"); ok || err != nil {
		return p.likeRegex(n, err)
	}
	return n, nil
}

func (p *parser) startsWith(left *Node, err error) (*Node, error) {
	if err == nil {
		err = p.expect("with")
	}
	if err != nil {
		return nil, err
	}
	right := &Node{Type: String, Text: p.cur.text}
	switch p.cur.kind {
	case str:
	case variable:
		right.Type = Variable
	default:
		return nil, p.unexpected()
	}
	return &Node{Type: StartsWith, Left: left, Right: right}, p.advance()
}

func (p *parser) likeRegex(left *Node, err error) (*Node, error) {
	if err != nil {
		return nil, err
	}
	if p.cur.kind != str {
		return nil, p.unexpected()
	}
	n := &Node{Type: LikeRegex, Left: left, Text: p.cur.text}
	if err := p.advance(); err != nil {
		return nil, err
	}
	ok, err := p.accept("flag")
	if !ok || err != nil {
		return n, err
	}
	if p.cur.kind != str {
		return nil, p.unexpected()
	}
	const flags = "ismxq"
	for _, c := range p.cur.text {
		if !strings.ContainsRune(flags, c) {
			return nil, pgerror.New(pgerror.SyntaxError, "invalid input syntax for type %s", "jsonpath").
				WithDetail("Unrecognized flag character \"%c\" in LIKE_REGEX predicate.", c)
		}
	}
	for _, c := range flags {
		if strings.ContainsRune(p.cur.text, c) {
			n.Flags += string(c)
		}
	}
	if strings.Contains(n.Flags, "x") && !strings.Contains(n.Flags, "q") {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "XQuery \"x\" flag (expanded regular expressions) is not implemented")
	}
	return n, p.advance()
}

func (p *parser) add() (*Node, error) { return p.binary(addOps, false, p.mul) }
func (p *parser) mul() (*Node, error) { return p.binary(mulOps, false, p.unary) }

func (p *parser) unary() (*Node, error) {
	if p.cur.kind != mark || p.cur.text != "+" && p.cur.text != "-" {
		return p.primary()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, jsonb.ErrTooDeep()
	}
	defer func() { p.depth-- }()
	t := Plus
	if p.cur.text == "-" {
		t = Minus
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.unary()
	switch {
	case err != nil:
		return nil, err
	case n.predicate():
		return nil, p.unexpected()
	case n.Type != Number || n.Next != nil:
		return &Node{Type: t, Left: n}, nil
	case t == Minus && strings.HasPrefix(n.Text, "-"):
		n.Text = n.Text[1:]
	case t == Minus && strings.Trim(n.Text, "0.") != "":
		n.Text = "-" + n.Text
	}
	return n, nil
}

// primary reads a value, or something in parentheses, and what applies to it.
func (p *parser) primary() (*Node, error) {
	n, err := p.simple()
	if err != nil {
		return nil, err
	}
	if n.Type == IsUnknown || n.Type == Exists {
		return n, nil
	}
	last := n
	for last.Next != nil {
		last = last.Next
	}
	for {
		next, err := p.accessor()
		if err != nil || next == nil {
			return n, err
		}
		last.Next, last = next, next
	}
}

// leaf reads the token of which n was made.
func (p *parser) leaf(n *Node) (*Node, error) { return n, p.advance() }

func (p *parser) simple() (*Node, error) {
	switch p.cur.kind {
	case str:
		return p.leaf(&Node{Type: String, Text: p.cur.text})
	case variable:
		return p.leaf(&Node{Type: Variable, Text: p.cur.text})
	case number:
		return p.numeric()
	}
	for _, c := range []struct {
		text string
		t    Type
	}{{"null", Null}, {"true", True}, {"false", False}, {"$", Root}, {"@", Current}, {"last", Last}} {
		if !p.cur.is(c.text) {
			continue
		}
		if c.t == Current && p.inFil == 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "@ is not allowed in root expressions")
		}
		if c.t == Last && p.inSub == 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "LAST is allowed only in array subscripts")
		}
		return &Node{Type: c.t}, p.advance()
	}
	if ok, err := p.accept("exists"); ok || err != nil {
		if err == nil {
			err = p.expect("(")
		}
		if err != nil {
			return nil, err
		}
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if n.predicate() {
			return nil, p.unexpected()
		}
		return &Node{Type: Exists, Left: n}, p.expect(")")
	}
	if !p.cur.is("(") {
		return nil, p.unexpected()
	}
	return p.parens()
}

// delimited reads what is in parentheses.
func (p *parser) delimited() (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err == nil {
		err = p.expect(")")
	}
	return n, err
}

func (p *parser) parens() (*Node, error) {
	n, err := p.delimited()
	if err != nil || !n.predicate() {
		return n, err
	}
	if ok, err := p.accept("is"); ok || err != nil {
		if err == nil {
			err = p.expect("unknown")
		}
		return &Node{Type: IsUnknown, Left: n}, err
	}
	return n, nil
}

func (p *parser) numeric() (*Node, error) {
	text := p.cur.text
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	if i := strings.IndexByte(text, '.'); i >= 0 && (i+1 == len(text) || !isDigit(text[i+1])) {
		text = text[:i] + text[i+1:]
	}
	v, err := jsonb.Parse(text, nil)
	if err != nil {
		return nil, err
	}
	return &Node{Type: Number, Text: string(v.Text())}, p.advance()
}

// accessor reads what applies to the items before it; nil if there is nothing.
func (p *parser) accessor() (*Node, error) {
	if p.cur.kind != mark {
		return nil, nil
	}
	switch p.cur.text {
	case ".":
		if err := p.advance(); err != nil {
			return nil, err
		}
		return p.member()
	case "[":
		return p.array()
	case "?":
		if err := p.advance(); err != nil {
			return nil, err
		}
		if err := p.expect("("); err != nil {
			return nil, err
		}
		p.inFil++
		n, err := p.or()
		p.inFil--
		if err != nil {
			return nil, err
		}
		if !n.predicate() {
			return nil, p.unexpected()
		}
		return &Node{Type: Filter, Left: n}, p.expect(")")
	}
	return nil, nil
}

// member reads what is behind a point.
func (p *parser) member() (*Node, error) {
	switch {
	case p.cur.is("**"):
		return p.any()
	case p.cur.is("*"):
		return &Node{Type: AnyKey}, p.advance()
	case p.cur.kind == str:
		return p.leaf(&Node{Type: Key, Text: p.cur.text})
	case p.cur.kind == variable && !strings.HasPrefix(p.cur.raw, `$"`):
		return nil, p.unexpected()
	case p.cur.kind != word:
		return nil, p.unexpected()
	}
	name := p.cur.text
	if err := p.advance(); err != nil {
		return nil, err
	}
	method := strings.ToLower(name)
	if !p.cur.is("(") {
		return &Node{Type: Key, Text: name}, nil
	}
	switch method {
	case "abs", "size", "type", "floor", "double", "ceiling", "keyvalue":
		if err := p.advance(); err != nil {
			return nil, err
		}
		return &Node{Type: Method, Text: method}, p.expect(")")
	case "datetime":
		n := &Node{Type: Datetime}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.cur.kind == str {
			n.Left = &Node{Type: String, Text: p.cur.text}
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		return n, p.expect(")")
	}
	return nil, p.unexpected()
}

// any reads ** and its levels.
func (p *parser) any() (*Node, error) {
	n := &Node{Type: Any, End: LastLevel}
	if err := p.advance(); err != nil {
		return nil, err
	}
	ok, err := p.accept("{")
	if !ok || err != nil {
		return n, err
	}
	if n.First, err = p.level(); err != nil {
		return nil, err
	}
	n.End = n.First
	if ok, err := p.accept("to"); err != nil {
		return nil, err
	} else if ok {
		if n.End, err = p.level(); err != nil {
			return nil, err
		}
	}
	return n, p.expect("}")
}

func (p *parser) level() (uint32, error) {
	if ok, err := p.accept("last"); ok || err != nil {
		return LastLevel, err
	}
	if p.cur.kind != number || strings.Trim(p.cur.text, "0123456789") != "" {
		return 0, p.unexpected()
	}
	n, err := strconv.ParseInt(p.cur.text, 10, 32)
	if err != nil {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", p.cur.text, "integer")
	}
	return uint32(n), p.advance()
}

// array reads [*] or subscripts.
func (p *parser) array() (*Node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if ok, err := p.accept("*"); err != nil {
		return nil, err
	} else if ok {
		return &Node{Type: AnyArray}, p.expect("]")
	}
	n := &Node{Type: IndexArray}
	p.inSub++
	defer func() { p.inSub-- }()
	for {
		var s Subscript
		var err error
		if s.From, err = p.subscript(); err != nil {
			return nil, err
		}
		ok, err := p.accept("to")
		if err == nil && ok {
			s.To, err = p.subscript()
		}
		if err != nil {
			return nil, err
		}
		n.Subscripts = append(n.Subscripts, s)
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			return n, p.expect("]")
		}
	}
}

func (p *parser) subscript() (*Node, error) {
	n, err := p.or()
	if err == nil && n.predicate() {
		err = p.unexpected()
	}
	return n, err
}
