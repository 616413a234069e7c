package expr

import (
	"github.com/percodb/percodb/sql/types"
)

// hashListFrom is the length from which a list of row-independent values is probed by hash.
const hashListFrom = 9

// hashSteps is what hashing an element counts as (builtin.Env.Step).
const hashSteps = 64

// InList is X [NOT] IN (List) under the equality of Class.
type InList struct {
	X     Scalar
	List  []Scalar
	Class types.Type
	Not   bool
	// Hashed: List does not depend on the row and is long; each execution hashes it once.
	Hashed bool
}

// NewInList makes an InList.
func NewInList(x Scalar, list []Scalar, class types.Type, not bool) *InList {
	hashed := len(list) >= hashListFrom
	for _, s := range list {
		hashed = hashed && rowIndependentLeaf(s)
	}
	return &InList{X: x, List: list, Class: class, Not: not, Hashed: hashed}
}

func rowIndependentLeaf(s Scalar) bool {
	switch s.(type) {
	case *Const, *Input:
		return true
	}
	return false
}

// Type is boolean.
func (*InList) Type() types.Type { return types.TBool }

// Eval probes the list; a NULL in it makes a miss NULL.
func (l *InList) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := eval(l.X, ev, in)
	if err != nil || x.IsNull() {
		return types.Null, err
	}
	if l.Hashed {
		set, err := l.set(ev)
		if err != nil {
			return types.Null, err
		}
		return l.answer(set.has(x), set.null), nil
	}
	null := false
	for _, s := range l.List {
		d, err := eval(s, ev, in)
		if err != nil {
			return types.Null, err
		}
		if d.IsNull() {
			null = true
			continue
		}
		if order, err := compareDatums(x, d, l.Class, true); err != nil || order == 0 {
			return types.Bool(!l.Not), err
		}
	}
	return l.answer(false, null), nil
}

func (l *InList) answer(found, null bool) types.Datum {
	if !found && null {
		return types.Null
	}
	return types.Bool(found != l.Not)
}

// set returns the execution's hash set of the list.
func (l *InList) set(ev *Context) (*datumSet, error) {
	if m, ok := ev.memo[l]; ok {
		return m.(*datumSet), nil
	}
	set := newDatumSet(l.Class, len(l.List))
	for _, s := range l.List {
		if err := ev.Env.Step(hashSteps); err != nil {
			return nil, err
		}
		d, err := s.Eval(ev, nil)
		if err != nil {
			return nil, err
		}
		set.add(d)
	}
	ev.remember(l, set)
	return set, nil
}

// datumSet is a set of datums of one class: a chained hash table without per-entry allocation.
type datumSet struct {
	class   types.Type
	buckets []int32 // head of chain, -1 for none
	next    []int32
	values  []types.Datum
	null    bool
}

func newDatumSet(class types.Type, n int) *datumSet {
	size := 16
	for size < 2*n {
		size *= 2
	}
	s := &datumSet{class: class, buckets: make([]int32, size), next: make([]int32, 0, n), values: make([]types.Datum, 0, n)}
	for i := range s.buckets {
		s.buckets[i] = -1
	}
	return s
}

func (s *datumSet) add(d types.Datum) {
	if d.IsNull() {
		s.null = true
		return
	}
	b := &s.buckets[types.Hash(d, s.class)&uint64(len(s.buckets)-1)]
	s.values = append(s.values, d)
	s.next = append(s.next, *b)
	*b = int32(len(s.values) - 1)
}

func (s *datumSet) has(d types.Datum) bool {
	for i := s.buckets[types.Hash(d, s.class)&uint64(len(s.buckets)-1)]; i >= 0; i = s.next[i] {
		if types.Compare(s.values[i], d, s.class) == 0 {
			return true
		}
	}
	return false
}
