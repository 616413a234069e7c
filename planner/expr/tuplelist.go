package expr

import (
	"math/bits"

	"github.com/percodb/percodb/sql/types"
)

// MaxTupleWidth bounds the columns of a TupleList.
const MaxTupleWidth = 8

// TupleList is (X…) = one of the tuples of List, which are concatenated in one slice: a disjunction of conjunctions of
// equalities over the same columns. List does not depend on the row. Each execution hashes it once.
type TupleList struct {
	X       []Scalar
	List    []Scalar
	Classes []types.Type // one for each of X
}

// Type is boolean.
func (*TupleList) Type() types.Type { return types.TBool }

// Len is the number of tuples.
func (l *TupleList) Len() int { return len(l.List) / len(l.X) }

// Eval probes the list. Where no tuple is equal, the result is NULL if one is equal but for NULLs.
func (l *TupleList) Eval(ev *Context, in types.Row) (types.Datum, error) {
	var buf [MaxTupleWidth]types.Datum
	row, known := buf[:len(l.X)], uint(0)
	for i, x := range l.X {
		d, err := eval(x, ev, in)
		if err != nil {
			return types.Null, err
		}
		if row[i] = d; !d.IsNull() {
			known |= 1 << i
		}
	}
	sets, err := l.sets(ev)
	if err != nil {
		return types.Null, err
	}
	all := uint(1)<<len(l.X) - 1
	if known == all && sets.of(all).has(row) {
		return types.Bool(true), nil
	}
	if known != all && sets.of(known).has(row) {
		return types.Null, nil
	}
	if err := ev.Env.Step(len(sets.partial)); err != nil {
		return types.Null, err
	}
	for i := 0; i < len(sets.partial); i += len(l.X) {
		tuple := sets.partial[i : i+len(l.X)]
		if l.same(tuple, row, known&knownOf(tuple)) {
			return types.Null, nil
		}
	}
	return types.Bool(false), nil
}

// same compares the columns of mask.
func (l *TupleList) same(a, b []types.Datum, mask uint) bool {
	for ; mask != 0; mask &= mask - 1 {
		if i := bits.TrailingZeros(mask); types.Compare(a[i], b[i], l.Classes[i]) != 0 {
			return false
		}
	}
	return true
}

func knownOf(tuple []types.Datum) (mask uint) {
	for i := range tuple {
		if !tuple[i].IsNull() {
			mask |= 1 << i
		}
	}
	return mask
}

// tupleSets are the hashed tuples of one execution: those without a NULL by each set of columns by which a row has
// looked them up, and those with one.
type tupleSets struct {
	list    *TupleList
	whole   []types.Datum
	partial []types.Datum
	by      map[uint]*tupleSet
}

func (l *TupleList) sets(ev *Context) (*tupleSets, error) {
	if m, ok := ev.memo[l]; ok {
		return m.(*tupleSets), nil
	}
	sets := &tupleSets{list: l, by: map[uint]*tupleSet{}, whole: make([]types.Datum, 0, len(l.List))}
	var buf [MaxTupleWidth]types.Datum
	tuple := buf[:len(l.X)]
	for i := 0; i < len(l.List); i += len(tuple) {
		for j := range tuple {
			d, err := l.List[i+j].Eval(ev, nil)
			if err != nil {
				return nil, err
			}
			tuple[j] = d
		}
		if knownOf(tuple) == 1<<len(tuple)-1 {
			sets.whole = append(sets.whole, tuple...)
		} else {
			sets.partial = append(sets.partial, tuple...)
		}
	}
	ev.remember(l, sets)
	return sets, nil
}

func (s *tupleSets) of(mask uint) *tupleSet {
	set := s.by[mask]
	if set == nil {
		set = newTupleSet(s.list, s.whole, mask)
		s.by[mask] = set
	}
	return set
}

// tupleSet is a chained hash table of tuples by the columns of mask.
type tupleSet struct {
	list    *TupleList
	mask    uint
	buckets []int32 // head of chain, -1 for none
	next    []int32
	values  []types.Datum
}

func newTupleSet(l *TupleList, values []types.Datum, mask uint) *tupleSet {
	n := len(values) / len(l.X)
	size := 16
	for size < 2*n {
		size *= 2
	}
	s := &tupleSet{list: l, mask: mask, values: values, buckets: make([]int32, size), next: make([]int32, n)}
	for i := range s.buckets {
		s.buckets[i] = -1
	}
	for i := range s.next {
		tuple := values[i*len(l.X) : (i+1)*len(l.X)]
		if s.has(tuple) {
			continue // Of equal tuples one is enough, and chains stay short.
		}
		b := &s.buckets[s.hash(tuple)]
		s.next[i], *b = *b, int32(i)
	}
	return s
}

func (s *tupleSet) hash(tuple []types.Datum) uint64 {
	h := uint64(0)
	for mask := s.mask; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros(mask)
		h = (h ^ types.Hash(tuple[i], s.list.Classes[i])) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h & uint64(len(s.buckets)-1)
}

func (s *tupleSet) has(tuple []types.Datum) bool {
	width := len(tuple)
	for i := s.buckets[s.hash(tuple)]; i >= 0; i = s.next[i] {
		if s.list.same(s.values[int(i)*width:(int(i)+1)*width], tuple, s.mask) {
			return true
		}
	}
	return false
}
