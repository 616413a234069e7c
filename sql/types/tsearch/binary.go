package tsearch

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// reader reads the binary forms.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(code pgerror.Code, format string, args ...any) {
	if r.err == nil {
		r.err = pgerror.New(code, format, args...)
	}
}

// number reads an unsigned number of some bytes.
func (r *reader) number(size int) int {
	if len(r.rest) < size {
		r.fail(pgerror.ProtocolViolation, "insufficient data left in message")
		r.rest = nil
		return 0
	}
	n := 0
	for _, c := range r.rest[:size] {
		n = n<<8 | int(c)
	}
	r.rest = r.rest[size:]
	return n
}

// text reads a text that a zero byte ends.
func (r *reader) text() string {
	end := bytes.IndexByte(r.rest, 0)
	if end < 0 {
		r.fail(pgerror.ProtocolViolation, "invalid string in message")
		r.rest = nil
		return ""
	}
	s := string(r.rest[:end])
	r.rest = r.rest[end+1:]
	if !utf8.ValidString(s) {
		i := 0
		for i < len(s) {
			c, n := utf8.DecodeRuneInString(s[i:])
			if c == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		r.fail(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x%02x", s[i])
	}
	return s
}

func (r *reader) bad(format string, args ...any) {
	r.fail(pgerror.InvalidBinaryRepresentation, format, args...)
}

// done returns the error, also for bytes that are left.
func (r *reader) done() error {
	if len(r.rest) > 0 {
		r.bad("incorrect binary data format")
	}
	return r.err
}

// ReceiveVector reads the binary form of a vector.
func ReceiveVector(b []byte) (Vector, error) {
	r := reader{rest: b}
	count := int(int32(r.number(4)))
	if count < 0 || count > 1<<28 {
		r.bad("invalid size of tsvector")
	}
	var list []Lexeme
	for i, total := 0, 0; i < count && r.err == nil; i++ {
		l := Lexeme{Word: r.text()}
		n := r.number(2)
		switch {
		case len(l.Word) > MaxWord+1:
			r.bad("invalid tsvector: lexeme too long")
		case total > MaxText:
			r.bad("invalid tsvector: maximum total lexeme length exceeded")
		case n > MaxPositions:
			r.bad("unexpected number of tsvector positions")
		}
		total += len(l.Word) + 2*n
		for j := 0; j < n && r.err == nil; j++ {
			p := Position(r.number(2))
			if j > 0 && p.Pos() <= l.Pos[j-1].Pos() {
				r.bad("position information is misordered")
			}
			l.Pos = append(l.Pos, p)
		}
		list = append(list, l)
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return NewVector(list)
}

// Send appends the binary form.
func (v Vector) Send(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	for _, l := range v {
		dst = append(append(dst, l.Word...), 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(l.Pos)))
		for _, p := range l.Pos {
			dst = binary.BigEndian.AppendUint16(dst, uint16(p))
		}
	}
	return dst
}

// The tags of the binary form of a query.
const (
	sentOperand  = 1
	sentOperator = 2
)

// ReceiveQuery reads the binary form of a query.
func ReceiveQuery(b []byte) (*Query, error) {
	r := reader{rest: b}
	count := r.number(4)
	if count > 1<<26 {
		r.bad("invalid size of tsquery")
	}
	q := &Query{}
	if count > 0 && r.err == nil {
		q.Root = r.query(&count, 0)
		if count > 0 {
			r.bad("malformed tsquery: extra nodes")
		}
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return q, q.Check()
}

// query reads a node with its operands; left is the number of nodes that remain.
func (r *reader) query(left *int, depth int) *Node {
	n := &Node{}
	if *left--; *left < 0 {
		r.bad("malformed tsquery: operand not found")
	}
	if depth > MaxDepth && r.err == nil {
		r.err = errTooDeep()
	}
	if r.err != nil {
		return n
	}
	switch tag := r.number(1); tag {
	case sentOperand:
		weights := r.number(1)
		n.Prefix = r.number(1) != 0
		n.Word = strings.Clone(r.text())
		if weights > 15 {
			r.bad("invalid tsquery: invalid weight bitmap")
		}
		if len(n.Word) > MaxWord+1 {
			r.bad("invalid tsquery: operand too long")
		}
		n.Weights = uint8(weights)
	case sentOperator:
		op := r.number(1)
		if op < int(Not) || op > int(Phrase) {
			r.bad("invalid tsquery: unrecognized operator type %d", op)
			return n
		}
		if n.Op = Op(op); n.Op == Phrase {
			n.Distance = r.number(2)
			if n.Distance > MaxDistance {
				r.bad("invalid tsquery: invalid distance of a phrase")
			}
		}
		n.Right = r.query(left, depth+1)
		if n.Op != Not {
			n.Left = r.query(left, depth+1)
		}
	default:
		r.bad("unrecognized tsquery node type: %d", tag)
	}
	return n
}

// Send appends the binary form.
func (q *Query) Send(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(q.Nodes()))
	q.Root.walk(func(n *Node) {
		if n.Op == Operand {
			prefix := byte(0)
			if n.Prefix {
				prefix = 1
			}
			dst = append(append(append(dst, sentOperand, n.Weights, prefix), n.Word...), 0)
			return
		}
		if dst = append(dst, sentOperator, byte(n.Op)); n.Op == Phrase {
			dst = binary.BigEndian.AppendUint16(dst, uint16(n.Distance))
		}
	})
	return dst
}
