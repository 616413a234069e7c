package planner

import "math/bits"

// colSet is a set of column IDs. IDs below 64, which is all of a simple statement, cost no
// allocation. A colSet is a value: copies share the tail until one of them is added to by add,
// which is why add is only called on sets that the caller made.
type colSet struct {
	low  uint64
	high []uint64 // IDs from 64 on
}

func (s *colSet) add(id int) {
	if id < 64 {
		s.low |= 1 << id
		return
	}
	w := id/64 - 1
	for len(s.high) <= w {
		s.high = append(s.high, 0)
	}
	s.high[w] |= 1 << (id % 64)
}

func (s colSet) has(id int) bool {
	if id < 64 {
		return s.low&(1<<id) != 0
	}
	w := id/64 - 1
	return w < len(s.high) && s.high[w]&(1<<(id%64)) != 0
}

func (s colSet) clone() colSet {
	if len(s.high) > 0 {
		s.high = append([]uint64(nil), s.high...)
	}
	return s
}

// addAll adds the members of t.
func (s *colSet) addAll(t colSet) {
	s.low |= t.low
	for len(s.high) < len(t.high) {
		s.high = append(s.high, 0)
	}
	for i, w := range t.high {
		s.high[i] |= w
	}
}

func (s *colSet) addList(ids []int) {
	for _, id := range ids {
		s.add(id)
	}
}

func (s colSet) empty() bool {
	if s.low != 0 {
		return false
	}
	for _, w := range s.high {
		if w != 0 {
			return false
		}
	}
	return true
}

func (s colSet) intersects(t colSet) bool {
	if s.low&t.low != 0 {
		return true
	}
	for i := 0; i < len(s.high) && i < len(t.high); i++ {
		if s.high[i]&t.high[i] != 0 {
			return true
		}
	}
	return false
}

// within reports whether every member is in t.
func (s colSet) within(t colSet) bool {
	if s.low&^t.low != 0 {
		return false
	}
	for i, w := range s.high {
		if i >= len(t.high) {
			if w != 0 {
				return false
			}
		} else if w&^t.high[i] != 0 {
			return false
		}
	}
	return true
}

// minus returns the members that are not in t.
func (s colSet) minus(t colSet) colSet {
	out := s.clone()
	out.low &^= t.low
	for i := range out.high {
		if i < len(t.high) {
			out.high[i] &^= t.high[i]
		}
	}
	return out
}

// count returns the number of members.
func (s colSet) count() int {
	n := bits.OnesCount64(s.low)
	for _, w := range s.high {
		n += bits.OnesCount64(w)
	}
	return n
}

// each calls f for the members in increasing order.
func (s colSet) each(f func(id int)) {
	for w := s.low; w != 0; w &= w - 1 {
		f(bits.TrailingZeros64(w))
	}
	for i, w := range s.high {
		for ; w != 0; w &= w - 1 {
			f(64*(i+1) + bits.TrailingZeros64(w))
		}
	}
}

// sameSet reports whether two lists have the same members.
func sameSet(a, b []int) bool {
	var x, y colSet
	x.addList(a)
	y.addList(b)
	return x.within(y) && y.within(x)
}
