package tsearch

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"unsafe"

	"github.com/percodb/percodb/sql/pgerror"
)

// Op is the operator of a node of a query, in PostgreSQL's numbers; Word marks an operand.
type Op uint8

// The operators.
const (
	Operand Op = iota
	Not
	And
	Or
	Phrase
	stop // an operand that a dictionary removed, only before clean
)

// MaxDistance is the largest distance of a phrase operator.
const MaxDistance = 1 << 14

// MaxDepth bounds the height of queries.
const MaxDepth = 200000

// Node is a query or a part of one. A Not has only the right operand.
type Node struct {
	Op          Op
	Prefix      bool
	Weights     uint8 // bits, the lowest is D; 0: any
	Distance    int
	Word        string
	Left, Right *Node
}

// Query is a tsquery; its root is nil if it is empty.
type Query struct {
	Root *Node
}

// NewWord returns an operand.
func NewWord(word string, weights uint8, prefix bool) *Node {
	return &Node{Word: word, Weights: weights, Prefix: prefix}
}

// Join returns the operator of two operands.
func Join(op Op, distance int, left, right *Node) *Node {
	return &Node{Op: op, Distance: distance, Left: left, Right: right}
}

// walk calls f for every node: an operator, then its right and its left operand, as PostgreSQL stores them.
func (n *Node) walk(f func(*Node)) {
	for ; n != nil; n = n.Left {
		f(n)
		if n.Right != nil {
			n.Right.walk(f)
		}
	}
}

// Nodes returns the number of operators and operands.
func (q *Query) Nodes() int {
	n := 0
	q.Root.walk(func(*Node) { n++ })
	return n
}

// Operands returns the operands of a query, the last first.
func (q *Query) Operands() []*Node { return q.Root.operands() }

func (n *Node) operands() (list []*Node) {
	n.walk(func(n *Node) {
		if n.Op == Operand {
			list = append(list, n)
		}
	})
	return list
}

func (n *Node) depth() int {
	if n == nil {
		return 0
	}
	return 1 + max(n.Left.depth(), n.Right.depth())
}

func errTooDeep() error {
	return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
		WithHint("A query may have at most 200000 nested operators.")
}

// Check returns an error for a query that is too large or too deep.
func (q *Query) Check() error {
	size := 0
	q.Root.walk(func(n *Node) { size += len(n.Word) + 1 })
	if size > 1<<24 {
		return pgerror.New(pgerror.ProgramLimitExceeded, "tsquery is too large")
	}
	if q.Root.depth() > MaxDepth {
		return errTooDeep()
	}
	return nil
}

// checksum is PostgreSQL's checksum of a word: a CRC-32 with the table of the reflected polynomial, shifted the other way.
func checksum(word string) int32 {
	crc := ^uint32(0)
	for i := 0; i < len(word); i++ {
		crc = crc32.IEEETable[byte(crc>>24)^word[i]] ^ crc<<8
	}
	return int32(^crc)
}

// The encoded form begins with the number of nodes and the bytes of PostgreSQL's value. A node is a tag and, for an operator,
// its number, the operands and the distance of a phrase; for an operand the checksum of its word, the word and a zero byte.
// Descending parts are inverted. A byte of weights and prefix for each operand ends it.
const (
	queryHeader = 8
	tagOperator = 1
	tagOperand  = 2
	prefixFlag  = 1 << 4
)

// Encode returns the bytes of q's datum.
func (q *Query) Encode() []byte {
	b := make([]byte, queryHeader, 64)
	nodes, size := 0, 0
	b = q.Root.encode(b)
	q.Root.walk(func(n *Node) {
		nodes++
		if n.Op == Operand {
			size += len(n.Word) + 1
			flags := n.Weights
			if n.Prefix {
				flags |= prefixFlag
			}
			b = append(b, flags)
		}
	})
	binary.BigEndian.PutUint32(b, uint32(nodes))
	binary.BigEndian.PutUint32(b[4:], uint32(8+12*nodes+size))
	return b
}

// OrderVersion names the form of QueryOrder: keys of another form are not found.
const OrderVersion = "phrases-2 "

// orderEnd returns where the weights and prefix marks of an encoded query begin, and the number of its operands; -1 if it is malformed.
func orderEnd(b []byte) (end, operands int) {
	if len(b) < queryHeader {
		return -1, 0
	}
	if binary.BigEndian.Uint32(b) == 0 {
		return queryHeader, 0
	}
	return nodeEnd(b, queryHeader, 1)
}

// nodeEnd is orderEnd for the node at at, which is depth nodes below the top.
func nodeEnd(b []byte, at, depth int) (end, operands int) {
	if at+2 > len(b) || depth > MaxDepth+1 {
		return -1, 0
	}
	if b[at] == tagOperand {
		if at += 5; at > len(b) {
			return -1, 0
		}
		n := bytes.IndexByte(b[at:], 0)
		if n < 0 {
			return -1, 0
		}
		return at + n + 1, 1
	}
	op := Op(^b[at+1])
	end, operands = nodeEnd(b, at+2, depth+1)
	if op != Not && end >= 0 {
		var left int
		end, left = nodeEnd(b, end, depth+1)
		operands += left
	}
	if op == Phrase && end >= 0 {
		end += 2 // the distance
	}
	if end > len(b) {
		return -1, 0
	}
	return end, operands
}

// QueryOrder returns the part of an encoded query by which queries are compared: without weights and prefix marks.
func QueryOrder(b []byte) []byte {
	end, _ := orderEnd(b)
	return b[:end]
}

// HasFlags reports whether an encoded query has weights or prefix marks.
func HasFlags(b []byte) bool {
	end, _ := orderEnd(b)
	return slices.ContainsFunc(b[end:], func(flags byte) bool { return flags != 0 })
}

// QueryOfOrder returns the encoded query without weights and prefix marks that QueryOrder encodes; false if it is malformed.
func QueryOfOrder(order []byte) ([]byte, bool) {
	end, operands := orderEnd(order)
	if end < 0 {
		return nil, false
	}
	return append(slices.Clip(order[:end]), make([]byte, operands)...), true
}

func (n *Node) encode(b []byte) []byte {
	switch {
	case n == nil:
		return b
	case n.Op == Operand:
		b = binary.BigEndian.AppendUint32(append(b, tagOperand), ^(uint32(checksum(n.Word)) ^ 1<<31))
		return append(append(b, n.Word...), 0)
	}
	b = n.Left.encode(n.Right.encode(append(b, tagOperator, ^byte(n.Op))))
	if n.Op == Phrase {
		b = binary.BigEndian.AppendUint16(b, ^uint16(n.Distance))
	}
	return b
}

// DecodeQuery returns the query that Encode encoded.
func DecodeQuery(b []byte) *Query {
	nodes := make([]Node, binary.BigEndian.Uint32(b))
	if len(nodes) == 0 {
		return &Query{}
	}
	d := decoder{rest: b[queryHeader:], nodes: nodes}
	root := d.node()
	root.walk(func(n *Node) {
		if n.Op == Operand {
			n.Weights, n.Prefix = d.rest[0]&15, d.rest[0]&prefixFlag != 0
			d.rest = d.rest[1:]
		}
	})
	return &Query{root}
}

type decoder struct {
	rest  []byte
	nodes []Node
}

func (d *decoder) node() *Node {
	n := &d.nodes[0]
	d.nodes = d.nodes[1:]
	if d.rest[0] == tagOperand {
		d.rest = d.rest[5:]
		text := unsafe.String(unsafe.SliceData(d.rest), len(d.rest))
		n.Word = text[:strings.IndexByte(text, 0)]
		d.rest = d.rest[len(n.Word)+1:]
		return n
	}
	n.Op = Op(^d.rest[1])
	d.rest = d.rest[2:]
	n.Right = d.node()
	if n.Op != Not {
		n.Left = d.node()
	}
	if n.Op == Phrase {
		n.Distance = int(^binary.BigEndian.Uint16(d.rest))
		d.rest = d.rest[2:]
	}
	return n
}

// compare orders parts of queries as PostgreSQL does: weights and prefixes do not count.
func (n *Node) compare(m *Node) int {
	if (n.Op == Operand) != (m.Op == Operand) {
		if n.Op != Operand {
			return -1
		}
		return 1
	}
	if n.Op == Operand {
		if a, b := checksum(n.Word), checksum(m.Word); a != b {
			return descending(int(a), int(b))
		}
		return strings.Compare(n.Word, m.Word)
	}
	if n.Op != m.Op {
		return descending(int(n.Op), int(m.Op))
	}
	if c := n.Right.compare(m.Right); c != 0 {
		return c
	}
	if n.Op != Not {
		if c := n.Left.compare(m.Left); c != 0 {
			return c
		}
	}
	return descending(n.Distance, m.Distance)
}

func descending(a, b int) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// clean removes the operands that stop words left. The distances of phrases grow by what is removed between their words:
// add is what is missing before and after n, for the phrase above.
func (n *Node) clean() (_ *Node, before, after int) {
	switch n.Op {
	case Operand:
		return n, 0, 0
	case stop:
		return nil, 0, 0
	case Not:
		n.Right, before, after = n.Right.clean()
		if n.Right == nil {
			return nil, before, after
		}
		return n, before, after
	}
	left, lb, la := n.Left.clean()
	right, rb, ra := n.Right.clean()
	phrase := n.Op == Phrase
	switch {
	case left == nil && right == nil:
		before = max(lb, rb)
		if phrase {
			before = lb + n.Distance + rb
		}
		return nil, before, before
	case left == nil:
		if phrase {
			return right, lb + n.Distance + rb, ra
		}
		return right, rb, ra
	case right == nil:
		if phrase {
			return left, lb, la + n.Distance + ra
		}
		return left, lb, la
	}
	n.Left, n.Right = left, right
	if !phrase {
		return n, 0, 0
	}
	n.Distance += la + rb
	return n, lb, ra
}

// WithoutNot returns the part of a query that an index can serve: without negations. It changes the tree. nil: nothing remains.
func (n *Node) WithoutNot() *Node {
	switch n.Op {
	case Operand:
		return n
	case Not:
		return nil
	}
	left, right := n.Left.WithoutNot(), n.Right.WithoutNot()
	switch {
	case left != nil && right != nil:
		n.Left, n.Right = left, right
		return n
	case n.Op == Or:
		return nil
	case left != nil:
		return left
	}
	return right
}

// Contains reports whether every word of m is a word of q.
func (q *Query) Contains(m *Query) bool {
	words := map[string]bool{}
	for _, n := range q.Root.operands() {
		words[n.Word] = true
	}
	for _, n := range m.Root.operands() {
		if !words[n.Word] {
			return false
		}
	}
	return true
}
