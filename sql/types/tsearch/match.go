package tsearch

import (
	"math"
	"slices"
)

// match is the result of a condition. Without positions a phrase is possible at best.
type match uint8

const (
	no match = iota
	yes
	maybe
)

// positions are where a part of a phrase ends, with its width in words; or where it does not, if negated.
type positions struct {
	list    []int
	negated bool
	width   int
}

// condition tells whether an operand matches; where: the positions are needed.
type condition func(n *Node, where *positions) match

// Matches reports whether a document satisfies a query.
func (v Vector) Matches(q *Query) bool {
	return q.Root != nil && q.Root.holds(v.has) != no
}

// HoldsAt reports whether a query holds for a text in which an operand occurs at the positions that find returns, ascending; none: it does
// not occur.
func (q *Query) HoldsAt(find func(n *Node) []int) bool {
	return q.Root != nil && q.Root.holds(func(n *Node, where *positions) match {
		list := find(n)
		if len(list) == 0 {
			return no
		}
		if where != nil {
			where.list = list
		}
		return yes
	}) != no
}

// has is the condition of a document.
func (v Vector) has(n *Node, where *positions) match {
	result := no
	var list []int
	for _, l := range v.matching(n) {
		switch m, found := l.has(n, where != nil); {
		case m == maybe && where != nil:
			return maybe
		case m == yes:
			if where == nil {
				return yes
			}
			result, list = yes, append(list, found...)
		}
	}
	if where != nil && n.Prefix {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	if where != nil {
		where.list = list
	}
	return result
}

// has tests the weights of one lexeme.
func (l *Lexeme) has(n *Node, where bool) (match, []int) {
	if len(l.Pos) == 0 {
		if where {
			return maybe, nil
		}
		return yes, nil
	}
	if n.Weights == 0 && !where {
		return yes, nil
	}
	var list []int
	for _, p := range l.Pos {
		if n.Weights != 0 && n.Weights>>p.Weight()&1 == 0 {
			continue
		}
		if !where {
			return yes, nil
		}
		list = append(list, p.Pos())
	}
	if list == nil {
		return no, nil
	}
	return yes, list
}

// holds evaluates a condition. A phrase without positions does not hold.
func (n *Node) holds(has condition) match {
	switch n.Op {
	case Not:
		switch n.Right.holds(has) {
		case no:
			return yes
		case yes:
			return no
		}
		return maybe
	case And:
		left := n.Left.holds(has)
		if left == no {
			return no
		}
		if right := n.Right.holds(has); right != yes {
			return right
		}
		return left
	case Or:
		left := n.Left.holds(has)
		if left == yes {
			return yes
		}
		if right := n.Right.holds(has); right != no {
			return right
		}
		return left
	case Phrase:
		if n.holdsAt(has, &positions{}) == yes {
			return yes
		}
		return no
	}
	return has(n, nil)
}

// holdsAt evaluates a condition and finds where it holds.
func (n *Node) holdsAt(has condition, at *positions) match {
	switch n.Op {
	case Operand:
		return has(n, at)
	case Not:
		return n.notAt(has, at)
	}
	var l, r positions
	left := n.Left.holdsAt(has, &l)
	if left == no && n.Op != Or {
		return no
	}
	right := n.Right.holdsAt(has, &r)
	if right == no && (n.Op != Or || left == no) {
		return no
	}
	if left == maybe || right == maybe {
		return maybe
	}
	if left == no {
		l.width = 0
	}
	if right == no {
		r.width = 0
	}
	// The narrower part moves to the end of the wider one, or the left one before the right one.
	at.width = max(l.width, r.width)
	moveLeft, moveRight := at.width-l.width, at.width-r.width
	if n.Op == Phrase {
		moveLeft, moveRight = n.Distance+r.width, 0
		at.width = n.Distance + l.width + r.width
	}
	merge := func(keep emit) match {
		at.list = mergePositions(l.list, r.list, moveLeft, moveRight, keep)
		if len(at.list) > 0 {
			return yes
		}
		return no
	}
	negate := func(keep emit) match {
		merge(keep)
		at.negated = true
		return yes
	}
	if n.Op == Or {
		switch {
		case l.negated && r.negated:
			return negate(inBoth)
		case l.negated:
			return negate(inLeft)
		case r.negated:
			return negate(inRight)
		}
		return merge(inBoth | inLeft | inRight)
	}
	switch {
	case l.negated && r.negated:
		return negate(inBoth | inLeft | inRight)
	case l.negated:
		return merge(inRight)
	case r.negated:
		return merge(inLeft)
	}
	return merge(inBoth)
}

// notAt inverts where the operand holds.
func (n *Node) notAt(has condition, at *positions) match {
	switch n.Right.holdsAt(has, at) {
	case no:
		at.list, at.negated = nil, true
		return yes
	case yes:
		if len(at.list) > 0 {
			at.negated = !at.negated
			return yes
		}
		if at.negated {
			at.negated = false
			return no
		}
	}
	return maybe
}

// emit selects positions of one list, the other, or both.
type emit uint8

const (
	inBoth emit = 1 << iota
	inLeft
	inRight
)

// mergePositions merges two ascending lists, whose positions move.
func mergePositions(l, r []int, moveLeft, moveRight int, keep emit) (out []int) {
	for len(l) > 0 || len(r) > 0 {
		a, b := math.MaxInt, math.MaxInt
		if len(l) > 0 {
			a = l[0] + moveLeft
		} else if keep&inRight == 0 {
			break
		}
		if len(r) > 0 {
			b = r[0] + moveRight
		} else if keep&inLeft == 0 {
			break
		}
		switch {
		case a < b:
			if keep&inLeft != 0 {
				out = append(out, a)
			}
			l = l[1:]
		case a == b:
			if keep&inBoth != 0 {
				out = append(out, a)
			}
			l, r = l[1:], r[1:]
		default:
			if keep&inRight != 0 {
				out = append(out, b)
			}
			r = r[1:]
		}
	}
	return out
}
