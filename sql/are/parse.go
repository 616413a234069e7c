package are

// The bounds of a pattern beside maxInstructions.
const (
	maxNesting = 1000
	// maxDivisions bounds the parts of a branch that are matched on their own, each of which is a recursion.
	maxDivisions = 20_000
	// maxCopied bounds the sizes of the expressions that back references and quantifiers copy, together.
	maxCopied = 10 * maxInstructions
	// maxSetWork and maxSetBounds bound the bounds of ranges in sets of characters: all that are read, and those of different sets.
	maxSetWork   = 12 << 20
	maxSetBounds = 1 << 20
)

// parser builds the tree. An error leaves it as a panic with a syntaxError.
type parser struct {
	lexer
	groups  []*node // by number; nil while a group is open
	looks   []*look
	repeats []*expr // by number of a group: what a back reference to it may match
	sets    map[string]runeSet
	depth   int

	divisions, copied    int
	setWork, setsBounded int
	dot                  runeSet
	special              bool // word characters matter to an assertion
}

func (p *parser) see(kind tokenKind) bool { return p.tok.kind == kind }

// parse reads branches up to stop, which is tokClose or tokEnd. constraint: within a lookaround constraint, where nothing is captured.
func (p *parser) parse(stop tokenKind, constraint bool) *node {
	if p.depth++; p.depth > maxNesting {
		fail(errTooNested)
	}
	all := &node{op: nodeAlt, flags: longer}
	for {
		branch := p.branch(stop, constraint)
		all.subs = append(all.subs, branch)
		all.flags |= (all.flags | branch.flags).up()
		if !p.see(tokAlt) {
			break
		}
		p.next()
	}
	if !p.see(stop) {
		fail(errParen)
	}
	p.depth--
	switch {
	case len(all.subs) == 1:
		return all.subs[0]
	case all.flags&interesting == 0:
		return leaf(all.flags, all.expr())
	}
	return all
}

// branch reads quantified atoms up to a | or the end. Plain ones are gathered in a leaf; the first interesting one divides the branch in
// what precedes it, itself and the rest.
func (p *parser) branch(stop tokenKind, constraint bool) *node {
	flags, parts := preference(0), []*expr(nil)
	for !p.see(tokAlt) && !p.see(stop) && !p.see(tokEnd) {
		atom, x, backref := p.atom(constraint)
		if atom == nil && !backref && x != nil && x.op != opSet {
			parts = append(parts, x) // A condition takes no quantifier.
			continue
		}
		least, most, prefer := p.quantifier()
		if least == 0 && most == 0 {
			continue
		}
		with := flags | prefer
		if atom != nil {
			with |= atom.flags
		}
		plain := atom == nil || atom.op == nodeLeaf && atom.capture == 0
		if plain && with.up()&interesting == 0 {
			if atom != nil {
				x = atom.expr()
			}
			parts, flags = append(parts, repeatExpr(x, least, most)), with
			continue
		}
		if atom == nil {
			atom = leaf(0, x)
		}
		return p.divide(leaf(flags, catExpr(parts...)), p.quantify(atom, least, most, prefer), stop, constraint)
	}
	return leaf(flags, catExpr(parts...))
}

// quantify applies a quantifier to an atom.
func (p *parser) quantify(atom *node, least, most int, prefer preference) *node {
	flags := prefer.combine(atom.flags)
	own := atom.flags & (ownPreference | mixed)
	switch {
	case atom.op == nodeBackref:
		atom.min, atom.max = least, most
		atom.flags |= flags
		return atom
	case least == 1 && most == 1 && (prefer == 0 || own == 0 || prefer == own):
		if prefer != own && prefer != 0 {
			return cat(flags, atom, leaf(0, emptyExpr)) // The preference still counts for the branch.
		}
		return atom
	case atom.flags&(captures|backrefs) == 0:
		return leaf(flags, repeatExpr(p.copyOf(atom), least, most))
	case least > 0 && atom.flags&backrefs == 0:
		// Only the last iteration's captures count: those before it are one leaf.
		rest := most
		if most != infinite {
			rest--
		}
		return cat(flags, leaf(flags&ownPreference, repeatExpr(p.copyOf(atom), least-1, rest)), atom)
	}
	return &node{op: nodeIterate, flags: flags, min: least, max: most, subs: []*node{atom}}
}

// copyOf returns the expression of a node, which is copied; repeated that of a group for a back reference.
func (p *parser) copyOf(n *node) *expr {
	x := n.expr()
	if p.copied += x.size; p.copied > maxCopied {
		fail(errTooBig)
	}
	return x
}

func (p *parser) repeated(group int) *expr {
	for len(p.repeats) <= group {
		p.repeats = append(p.repeats, nil)
	}
	if p.repeats[group] == nil {
		p.repeats[group] = p.copyOf(p.groups[group]).unconditional()
	}
	return p.repeats[group]
}

// divide makes a branch of what was read, an atom and the rest, which it reads.
func (p *parser) divide(top, atom *node, stop tokenKind, constraint bool) *node {
	if p.divisions++; p.divisions > maxDivisions {
		fail(errTooBig)
	}
	tail := atom
	if !p.see(tokAlt) && !p.see(stop) && !p.see(tokEnd) {
		rest := p.branch(stop, constraint)
		flags := atom.flags.combine(rest.flags)
		if both := (atom.flags | rest.flags).up(); atom.op == nodeLeaf && rest.op == nodeLeaf && atom.capture == 0 && rest.capture == 0 && both&interesting == 0 {
			tail = leaf(flags, catExpr(atom.x, rest.x))
		} else {
			tail = cat(flags, atom, rest)
		}
	}
	if top.x.op == opEmpty {
		return tail
	}
	return cat(top.flags.combine(tail.flags), top, tail)
}

// atom reads an atom: a node if it is in parentheses or a back reference, else an expression, of a condition or a set of characters.
func (p *parser) atom(constraint bool) (n *node, x *expr, backref bool) {
	tok := p.tok
	if a, ok := p.condition(tok.kind); ok {
		p.next()
		return nil, assertExpr(a), false
	}
	switch tok.kind {
	case tokLook:
		p.next()
		l := &look{kind: lookKind(tok.value), index: len(p.looks)}
		p.looks = append(p.looks, l)
		l.x = p.parse(tokClose, true).expr()
		p.next()
		return nil, lookExpr(l), false
	case tokStar, tokPlus, tokQuestion, tokBraceOpen:
		fail(errRepeat)
	case tokClose:
		if p.flags&(Basic|Extended|Quote) != Extended {
			fail(errParen)
		}
		x = setExpr(p.plain(')'))
	case tokOpen:
		return p.group(tok.value == 1 && !constraint, constraint), nil, false
	case tokBackref:
		if constraint || int(tok.value) >= len(p.groups) || p.groups[tok.value] == nil {
			fail(errBackref)
		}
		p.next()
		n = &node{op: nodeBackref, flags: backrefs, ref: int(tok.value), min: 1, max: 1}
		n.x = p.repeated(int(tok.value))
		return n, nil, true
	case tokBracket:
		x = setExpr(p.brackets(tok.value == 1))
	case tokClass:
		x = setExpr(classSet(tok.value))
	case tokNotClass:
		x = setExpr(classComplements()[tok.value])
	case tokDot:
		x = setExpr(p.dot)
	default:
		x = setExpr(p.plain(tok.value))
	}
	p.next()
	return nil, x, false
}

// group reads a parenthesized expression behind the parenthesis.
func (p *parser) group(capture, constraint bool) *node {
	number := 0
	if capture {
		number = len(p.groups)
		p.groups = append(p.groups, nil)
	}
	p.next()
	n := p.parse(tokClose, constraint)
	p.next()
	if !capture {
		return n
	}
	if n.capture != 0 {
		n = &node{op: nodeGroup, flags: n.flags, subs: []*node{n}}
	}
	n.flags |= captures
	n.capture = number
	p.groups[number] = n
	return n
}

// condition returns the assertion that a token is.
func (p *parser) condition(kind tokenKind) (assertion, bool) {
	switch kind {
	case tokCaret:
		if p.flags&NewlineAnchor != 0 {
			return assertLineBegin, true
		}
		return assertBegin, true
	case tokDollar:
		if p.flags&NewlineAnchor != 0 {
			return assertLineEnd, true
		}
		return assertEnd, true
	case tokBegin:
		return assertBegin, true
	case tokFinish:
		return assertEnd, true
	}
	a, ok := map[tokenKind]assertion{
		tokWordStart: assertWordStart, tokWordEnd: assertWordEnd, tokWordEdge: assertWordEdge, tokNotWordEdge: assertNotWordEdge,
	}[kind]
	p.special = p.special || ok
	return a, ok
}

// plain returns the set of a character of the pattern.
func (p *parser) plain(r rune) runeSet {
	if p.flags&FoldCase != 0 {
		return canonical(foldRune(r))
	}
	return runeSet{r, r}
}

// quantifier reads what may follow an atom.
func (p *parser) quantifier() (least, most int, prefer preference) {
	prefer = longer
	if p.tok.value == 0 {
		prefer = shorter
	}
	switch p.tok.kind {
	case tokStar:
		least, most = 0, infinite
	case tokPlus:
		least, most = 1, infinite
	case tokQuestion:
		least, most = 0, 1
	case tokBraceOpen:
		return p.braces()
	default:
		return 1, 1, 0
	}
	p.next()
	return least, most, prefer
}

func (p *parser) braces() (least, most int, prefer preference) {
	p.next()
	least = p.bound()
	most = least
	ranged := p.see(tokComma)
	if ranged {
		p.next()
		most = infinite
		if p.see(tokDigit) {
			most = p.bound()
		}
		if least > most {
			fail(errBounds)
		}
	}
	if !p.see(tokBraceClose) {
		fail(errBounds)
	}
	if ranged { // {m} alone keeps the atom's preference.
		prefer = longer
		if p.tok.value == 0 {
			prefer = shorter
		}
	}
	p.next()
	return least, most, prefer
}

func (p *parser) bound() int {
	n := 0
	for p.see(tokDigit) && n < maxBound {
		n = n*10 + int(p.tok.value)
		p.next()
	}
	if p.see(tokDigit) || n > maxBound {
		fail(errBounds)
	}
	return n
}

// brackets reads a bracket expression behind its [; the ] is left.
func (p *parser) brackets(plain bool) runeSet {
	var ranges []rune
	p.next()
	for !p.see(tokBracketClose) && !p.see(tokEnd) {
		part := p.bracketPart()
		if p.setWork += len(part); p.setWork > maxSetWork {
			fail(errTooBig)
		}
		ranges = append(ranges, part...)
	}
	if !p.see(tokBracketClose) {
		fail(errBracket)
	}
	if !plain && p.flags&NewlineDot != 0 {
		ranges = append(ranges, '\n', '\n')
	}
	set := canonical(ranges)
	if !plain {
		set = set.complement()
	}
	return p.intern(set)
}

// intern returns the one copy of a set that the expression keeps.
func (p *parser) intern(s runeSet) runeSet {
	key := string(s.key())
	if known, ok := p.sets[key]; ok {
		return known
	}
	if p.setsBounded += len(s); p.setsBounded > maxSetBounds {
		fail(errTooBig)
	}
	if p.sets == nil {
		p.sets = map[string]runeSet{}
	}
	p.sets[key] = s
	return s
}

func (p *parser) bracketPart() []rune {
	tok := p.tok
	var from rune
	switch tok.kind {
	case tokDash:
		fail(errRange)
	case tokPlain:
		from = tok.value
	case tokCollating:
		from = p.collating(tok)
	case tokEquivalence:
		p.next()
		r := element(tok.name)
		if p.flags&FoldCase != 0 {
			return foldRune(r)
		}
		return []rune{r, r}
	case tokCharClass:
		p.next()
		return p.class(tok.name)
	case tokClass:
		p.next()
		return classSet(tok.value)
	case tokNotClass:
		p.next()
		return classComplements()[tok.value]
	default:
		fail(errBracket)
	}
	p.next()
	to := from
	if p.see(tokDash) {
		p.next()
		switch p.tok.kind {
		case tokPlain, tokDash:
			to = p.tok.value
		case tokCollating:
			to = p.collating(p.tok)
		default:
			fail(errRange)
		}
		p.next()
	}
	if from > to {
		fail(errRange)
	}
	switch {
	case p.flags&FoldCase == 0:
		return []rune{from, to}
	case from == to:
		return foldRune(from)
	}
	return foldRange(from, to)
}

func (p *parser) collating(tok token) rune {
	if tok.name == "" {
		fail(errCollate)
	}
	return element(tok.name)
}

func (p *parser) class(name string) []rune {
	if p.flags&FoldCase != 0 && (name == "lower" || name == "upper") {
		name = "alpha"
	}
	set, ok := classes()[name]
	if !ok {
		fail(errClass)
	}
	return set
}
