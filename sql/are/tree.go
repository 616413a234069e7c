package are

// exprOp is the kind of an expression.
type exprOp uint8

const (
	opEmpty exprOp = iota
	opSet
	opCat
	opAlt
	opRepeat
	opAssert
	opLook
)

// infinite is the upper bound of an unbounded quantifier.
const infinite = 256

// maxBound is the largest number in a quantifier.
const maxBound = 255

// expr is a part of an expression without its captures, from which automata are built. It does not change.
type expr struct {
	op       exprOp
	size     int // the number of instructions of its program, at most maxInstructions
	set      runeSet
	subs     []*expr
	min, max int
	assert   assertion
	look     *look
}

// leafSize is the size of an expression without others in it: the instruction and the end of its fragment.
const leafSize = 2

var emptyExpr = &expr{op: opEmpty, size: leafSize}

func setExpr(s runeSet) *expr { return &expr{op: opSet, set: s, size: leafSize} }

func assertExpr(a assertion) *expr { return &expr{op: opAssert, assert: a, size: leafSize} }

func lookExpr(l *look) *expr { return &expr{op: opLook, look: l, size: leafSize} }

// sized computes the size of an expression. One that is too large is never built: back references copy expressions, so that a
// short pattern could describe one that fills the memory.
func sized(x *expr) *expr {
	x.size = 1
	for _, s := range x.subs {
		x.size += s.size + 1
		if x.size > maxInstructions {
			fail(errTooBig)
		}
	}
	if x.op == opRepeat {
		times := x.max
		if x.max == infinite {
			times = x.min + 1
		}
		x.size = 3 + times*(x.subs[0].size+1)
	}
	if x.size > maxInstructions {
		fail(errTooBig)
	}
	return x
}

func catExpr(subs ...*expr) *expr {
	flat := make([]*expr, 0, len(subs))
	for _, s := range subs {
		switch {
		case s.op == opCat:
			flat = append(flat, s.subs...)
		case s.op != opEmpty:
			flat = append(flat, s)
		}
	}
	switch len(flat) {
	case 0:
		return emptyExpr
	case 1:
		return flat[0]
	}
	return sized(&expr{op: opCat, subs: flat})
}

func repeatExpr(x *expr, least, most int) *expr {
	if least == 1 && most == 1 {
		return x
	}
	return sized(&expr{op: opRepeat, subs: []*expr{x}, min: least, max: most})
}

// assertion is a condition on the characters beside a position.
type assertion uint8

const (
	assertBegin     assertion = iota // of the text
	assertEnd                        // of the text
	assertLineBegin                  // of the text or a line
	assertLineEnd                    // of the text or a line
	assertWordStart
	assertWordEnd
	assertWordEdge
	assertNotWordEdge
)

// lookKind is the kind of a lookaround constraint.
type lookKind uint8

const (
	lookAhead lookKind = iota
	lookNotAhead
	lookBehind
	lookNotBehind
)

// look is a lookaround constraint.
type look struct {
	kind  lookKind
	x     *expr
	index int // in program.looks
}

// preference is what a node prefers, and what it contains.
type preference uint8

const (
	longer preference = 1 << iota
	shorter
	mixed    // parts that prefer the opposite
	captures // there are captures
	backrefs // there are back references
)

const (
	ownPreference = longer | shorter
	interesting   = mixed | captures | backrefs // a node with one of them is dissected
)

// up returns the flags that a part passes to the whole.
func (f preference) up() preference {
	out := f &^ ownPreference
	if f&ownPreference == ownPreference {
		out |= mixed
	}
	return out
}

// combine returns the flags of f followed by g: the first preference counts.
func (f preference) combine(g preference) preference {
	out := (f | g).up()
	if p := f & ownPreference; p != 0 {
		return out | p
	}
	return out | g&ownPreference
}

// nodeOp is how a node is dissected.
type nodeOp uint8

const (
	nodeLeaf    nodeOp = iota // not at all
	nodeCat                   // two subs
	nodeAlt                   // subs
	nodeIterate               // subs[0], min to max times
	nodeGroup                 // subs[0]; captured
	nodeBackref               // group ref, min to max times
)

// node is a node of the tree by which a match is dissected.
type node struct {
	op       nodeOp
	flags    preference
	capture  int // the group that the node captures, 0: none
	ref      int
	min, max int
	subs     []*node
	x        *expr // of leaves, and what a back reference repeats
	auto     dfa
}

func leaf(flags preference, x *expr) *node { return &node{op: nodeLeaf, flags: flags, x: x} }

func cat(flags preference, left, right *node) *node {
	return &node{op: nodeCat, flags: flags, subs: []*node{left, right}}
}

// expr returns what the node matches, back references over-approximated.
func (n *node) expr() *expr {
	switch n.op {
	case nodeCat:
		var parts []*expr
		for ; n.op == nodeCat; n = n.subs[1] {
			parts = append(parts, n.subs[0].expr())
		}
		return catExpr(append(parts, n.expr())...)
	case nodeAlt:
		x := &expr{op: opAlt}
		for _, s := range n.subs {
			x.subs = append(x.subs, s.expr())
		}
		return sized(x)
	case nodeIterate:
		return repeatExpr(n.subs[0].expr(), n.min, n.max)
	case nodeGroup:
		return n.subs[0].expr()
	case nodeBackref:
		return repeatExpr(n.x, n.min, n.max)
	}
	return n.x
}

// forgetExpr drops the expressions of a node, from which its automaton has been built. It returns the number of nodes.
func (n *node) forgetExpr() int {
	n.x = nil
	count := 1
	for _, s := range n.subs {
		count += s.forgetExpr()
	}
	return count
}

// unconditional returns x without its conditions: what a back reference to it may match.
func (x *expr) unconditional() *expr {
	if x.op == opAssert || x.op == opLook {
		return emptyExpr
	}
	if len(x.subs) == 0 {
		return x
	}
	out := *x
	out.subs = make([]*expr, len(x.subs))
	for i, s := range x.subs {
		out.subs[i] = s.unconditional()
	}
	return sized(&out)
}
