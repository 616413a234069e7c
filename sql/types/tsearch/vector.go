package tsearch

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"

	"github.com/percodb/percodb/sql/pgerror"
)

// The limits of PostgreSQL.
const (
	MaxWord      = 2046      // bytes of a word
	MaxText      = 1<<20 - 1 // bytes of the words of a vector
	MaxPositions = 256       // of a lexeme
	MaxPosition  = 1<<14 - 1
)

// Position is the position of a lexeme in a document, and its weight: 3 for A to 0 for D.
type Position uint16

// At returns a position; those beyond the limit are the limit.
func At(pos, weight int) Position {
	return Position(min(pos, MaxPosition)&MaxPosition | weight<<14)
}

// Pos returns the position without its weight.
func (p Position) Pos() int { return int(p & MaxPosition) }

// Weight returns 3 for A to 0 for D.
func (p Position) Weight() int { return int(p >> 14) }

// Lexeme is a word of a document with its positions, if they are known.
type Lexeme struct {
	Word string
	Pos  []Position
}

// Vector is a tsvector.
type Vector []Lexeme

// The encoded form begins with the bytes that PostgreSQL's value has and the number of lexemes, by which PostgreSQL compares
// first. A lexeme is a byte that tells whether it has positions, the word and a zero byte, the number of positions and
// the positions. What PostgreSQL sorts in descending order is inverted.
const (
	vectorHeader = 8
	hasPositions = 0
	noPositions  = 1
)

// storedSize returns the bytes of PostgreSQL's value.
func (v Vector) storedSize() int {
	n := 0
	for i := range v {
		n += len(v[i].Word)
		if len(v[i].Pos) > 0 {
			n += n&1 + 2 + 2*len(v[i].Pos)
		}
	}
	return 8 + 4*len(v) + n
}

// Encode returns the bytes of v's datum.
func (v Vector) Encode() []byte {
	size := vectorHeader
	for i := range v {
		size += len(v[i].Word) + 4 + 2*len(v[i].Pos)
	}
	b := make([]byte, 0, size)
	b = binary.BigEndian.AppendUint32(b, uint32(v.storedSize()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	for i := range v {
		l := &v[i]
		if len(l.Pos) == 0 {
			b = append(append(append(b, noPositions), l.Word...), 0)
			continue
		}
		b = append(append(append(b, hasPositions), l.Word...), 0)
		b = binary.BigEndian.AppendUint16(b, ^uint16(len(l.Pos)))
		for _, p := range l.Pos {
			b = binary.BigEndian.AppendUint16(b, ^uint16(p.Pos()<<2|p.Weight()))
		}
	}
	return b
}

// CountLexemes returns the number of lexemes of an encoded vector.
func CountLexemes(b []byte) int { return int(binary.BigEndian.Uint32(b[4:])) }

// DecodeVector returns the vector that Encode encoded.
func DecodeVector(b []byte) Vector {
	v := make(Vector, CountLexemes(b))
	b = b[vectorHeader:]
	for i := range v {
		positioned := b[0] == hasPositions
		b = b[1:]
		end := strings.IndexByte(unsafe.String(unsafe.SliceData(b), len(b)), 0)
		v[i].Word = unsafe.String(unsafe.SliceData(b), end)
		b = b[end+1:]
		if !positioned {
			continue
		}
		v[i].Pos = make([]Position, ^binary.BigEndian.Uint16(b))
		b = b[2:]
		for j := range v[i].Pos {
			n := ^binary.BigEndian.Uint16(b[2*j:])
			v[i].Pos[j] = At(int(n>>2), int(n&3))
		}
		b = b[2*len(v[i].Pos):]
	}
	return v
}

// NewVector sorts lexemes and unites equal words. It keeps and changes the slice. Errors: 54000 the words are too long together.
func NewVector(lexemes []Lexeme) (Vector, error) {
	slices.SortStableFunc(lexemes, func(a, b Lexeme) int { return strings.Compare(a.Word, b.Word) })
	v := Vector(lexemes[:0])
	for _, l := range lexemes {
		if len(v) > 0 && v[len(v)-1].Word == l.Word {
			last := &v[len(v)-1]
			last.Pos = append(last.Pos[:len(last.Pos):len(last.Pos)], l.Pos...)
			continue
		}
		v = append(v, l)
	}
	for i := range v {
		v[i].Pos = uniquePositions(v[i].Pos)
	}
	return v, v.checkSize()
}

// checkSize returns the error for a vector that is too large.
func (v Vector) checkSize() error {
	if n := v.storedSize() - 8 - 4*len(v); n > MaxText {
		return ErrVectorTooLong(n)
	}
	return nil
}

// ErrVectorTooLong is the error for a vector whose words and positions take too many bytes.
func ErrVectorTooLong(n int) error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "string is too long for tsvector (%d bytes, max %d bytes)", n, MaxText)
}

// uniquePositions sorts positions; of several weights at one position the highest remains.
func uniquePositions(list []Position) []Position {
	if len(list) <= 1 {
		return list
	}
	slices.SortStableFunc(list, func(a, b Position) int { return cmp.Compare(a.Pos(), b.Pos()) })
	out := list[:1]
	for _, p := range list[1:] {
		last := &out[len(out)-1]
		if p.Pos() == last.Pos() {
			*last = max(*last, p)
			continue
		}
		out = append(out, p)
		if len(out) == MaxPositions || p.Pos() == MaxPosition {
			break
		}
	}
	return out
}

// find returns the index of a word, or the index where it would be.
func (v Vector) find(word string) (int, bool) {
	return slices.BinarySearchFunc(v, word, func(l Lexeme, w string) int { return strings.Compare(l.Word, w) })
}

// matching returns the lexemes that an operand stands for: its word, or the words that begin with it.
func (v Vector) matching(n *Node) Vector {
	i, found := v.find(n.Word)
	if !n.Prefix {
		if !found {
			return nil
		}
		return v[i : i+1]
	}
	end := i
	for end < len(v) && strings.HasPrefix(v[end].Word, n.Word) {
		end++
	}
	return v[i:end]
}

// Concat appends the document w to v: its positions follow those of v.
func (v Vector) Concat(w Vector) (Vector, error) {
	last := 0
	for i := range v {
		if n := len(v[i].Pos); n > 0 {
			last = max(last, v[i].Pos[n-1].Pos())
		}
	}
	out := make(Vector, 0, len(v)+len(w))
	for len(v) > 0 || len(w) > 0 {
		switch {
		case len(w) == 0 || len(v) > 0 && v[0].Word < w[0].Word:
			out, v = append(out, v[0]), v[1:]
		case len(v) == 0 || w[0].Word < v[0].Word:
			out = append(out, Lexeme{w[0].Word, appendShifted(nil, w[0].Pos, last)})
			w = w[1:]
		default:
			out = append(out, Lexeme{v[0].Word, appendShifted(v[0].Pos, w[0].Pos, last)})
			v, w = v[1:], w[1:]
		}
	}
	return out, out.checkSize()
}

// appendShifted appends positions that move by some words, as far as there is room.
func appendShifted(list, more []Position, by int) []Position {
	out := slices.Clip(list)
	for _, p := range more {
		if len(out) == MaxPositions || len(out) > 0 && out[len(out)-1].Pos() == MaxPosition {
			break
		}
		out = append(out, At(p.Pos()+by, p.Weight()))
	}
	return out
}

// SetWeight gives a weight to the positions of the lexemes in words, or of all lexemes if words is nil.
func (v Vector) SetWeight(weight int, words map[string]bool) {
	for i := range v {
		if words != nil && !words[v[i].Word] {
			continue
		}
		for j, p := range v[i].Pos {
			v[i].Pos[j] = At(p.Pos(), weight)
		}
	}
}

// Filter keeps the positions of the weights in a mask, whose lowest bit is D, and the lexemes that have any.
func (v Vector) Filter(mask int) Vector {
	out := Vector{}
	for _, l := range v {
		kept := []Position{}
		for _, p := range l.Pos {
			if mask>>p.Weight()&1 != 0 {
				kept = append(kept, p)
			}
		}
		if len(kept) > 0 {
			out = append(out, Lexeme{l.Word, kept})
		}
	}
	return out
}

// Delete removes words.
func (v Vector) Delete(words map[string]bool) Vector {
	return slices.DeleteFunc(v, func(l Lexeme) bool { return words[l.Word] })
}

// Strip removes all positions.
func (v Vector) Strip() {
	for i := range v {
		v[i].Pos = nil
	}
}
