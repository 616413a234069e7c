package executor

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// nullHash is the hash of NULL among other keys, and of an integer key that is NULL.
const nullHash = 0x9e3779b97f4a7c15

// keyColumns computes and compares the key of a hash table or a merge: expressions over a row.
type keyColumns struct {
	exprs []expr.Scalar // nil: the row itself is the key
	types []types.Type
	// exact: the key is one column of a type represented by an integer, so equal hashes mean equal keys (see mix),
	// except for NULL.
	exact bool
	out   types.Row // where eval puts the key
}

func newKeyColumns(exprs []expr.Scalar) keyColumns {
	k := keyColumns{exprs: exprs, types: make([]types.Type, len(exprs)), out: make(types.Row, len(exprs))}
	for i, e := range exprs {
		k.types[i] = e.Type()
	}
	k.exact = len(k.types) == 1 && k.types[0].KindOf() == types.KindInt
	return k
}

// wholeRow makes keys of whole rows.
func wholeRow(ts []types.Type) keyColumns {
	return keyColumns{types: ts, exact: len(ts) == 1 && ts[0].KindOf() == types.KindInt}
}

// eval returns the key of row, valid until the next call, and whether one of its values is NULL.
func (k *keyColumns) eval(ev *expr.Context, row types.Row) (key types.Row, hasNull bool, err error) {
	if k.exprs == nil {
		for i := range row {
			hasNull = hasNull || row[i].IsNull()
		}
		return row, hasNull, nil
	}
	for i, e := range k.exprs {
		d, err := e.Eval(ev, row)
		if err != nil {
			return nil, false, err
		}
		k.out[i] = d
		hasNull = hasNull || d.IsNull()
	}
	return k.out, hasNull, nil
}

// hash hashes a key; NULLs are equal to each other.
func (k *keyColumns) hash(key types.Row) uint64 {
	if k.exact {
		if key[0].IsNull() {
			return nullHash
		}
		return mix(uint64(key[0].Int()))
	}
	h := uint64(len(key))
	for i := range key {
		h = mix(h ^ hashDatum(k.types[i], key[i]))
	}
	return h
}

// equal compares two keys of equal hash; NULLs are equal to each other.
func (k *keyColumns) equal(a, b types.Row) bool {
	if k.exact {
		return a[0].IsNull() == b[0].IsNull() && a[0].Int() == b[0].Int()
	}
	for i := range a {
		if a[i].IsNull() || b[i].IsNull() {
			if a[i].IsNull() != b[i].IsNull() {
				return false
			}
			continue
		}
		if !types.Equal(a[i], b[i], k.types[i]) {
			return false
		}
	}
	return true
}

func hashDatum(t types.Type, d types.Datum) uint64 {
	switch d.Kind() {
	case types.KindNull:
		return nullHash
	case types.KindInt, types.KindBool:
		return mix(uint64(d.Int()))
	}
	return types.Hash(d, t)
}

// keySet is a set of keys, all of them copied.
type keySet struct {
	cols  keyColumns
	table hashTable
	keys  rowBuffer
}

// add adds a key to the set; it returns its entry number, and whether it is new.
func (s *keySet) add(key types.Row) (entry uint32, added bool, err error) {
	h := s.cols.hash(key)
	if e := s.find(key, h); e != 0 {
		return e, false, nil
	}
	e, err := s.insert(key, h)
	return e, err == nil, err
}

// find returns the entry number of a key, given its hash; 0 for none.
func (s *keySet) find(key types.Row, h uint64) uint32 {
	if s.cols.exact && h != nullHash {
		return s.table.first(h)
	}
	for e := s.table.first(h); e != 0; e = s.table.after(e, h) {
		if s.cols.equal(s.keys.rows[e-1], key) {
			return e
		}
	}
	return 0
}

// insert puts a key into the set that is not there and returns its entry number.
func (s *keySet) insert(key types.Row, h uint64) (uint32, error) {
	if err := s.keys.book(entryBytes); err != nil {
		return 0, err
	}
	if err := s.keys.add(key); err != nil {
		return 0, err
	}
	return s.table.insert(h), nil
}

// len is the number of keys.
func (s *keySet) len() int { return s.table.len() }

// reset empties the set for keys to come.
func (s *keySet) reset() {
	s.table.reset()
	s.keys.reset()
}

// release empties the set and gives its memory back.
func (s *keySet) release() {
	s.table = hashTable{}
	s.keys.release()
}
