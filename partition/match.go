package partition

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// Limit is one end of the values that a condition admits.
type Limit struct {
	Value     types.Datum
	Inclusive bool
}

// Test is what conditions say about a column of the key of the rows that are looked for. The zero Test admits all values.
type Test struct {
	// Values: if Equal is set, the column has one of them, none of which is NULL.
	Equal  bool
	Values []types.Datum
	// Low and High are the ends between which the column lies, nil for none; it is not NULL then.
	Low, High *Limit
	// Null: the column is NULL. NotNull: it is not.
	Null, NotNull bool
}

// maxKeys is the greatest number of keys that are looked up one by one.
const maxKeys = 4096

// Match sets out[i] for every partition i that may have rows that pass the tests, one for each column of the key.
func (b *Bounds) Match(tests []Test, out []bool) {
	if keys := b.wholeKeys(tests); !b.hashed && keys >= 0 && keys <= maxKeys {
		b.matchKeys(tests, make([]types.Datum, 0, len(tests)), out)
		return
	}
	switch b.strategy {
	case catalog.PartitionByHash:
		for i := range b.hashes {
			out[b.hashes[i].part] = true
		}
	case catalog.PartitionByList:
		b.matchList(&tests[0], out)
	default:
		b.matchRanges(tests, nil, out)
	}
	if b.rest >= 0 { // It may have what the bounds of the others leave out.
		out[b.rest] = true
	}
}

// wholeKeys returns how many keys the tests admit, -1 if they do not say.
func (b *Bounds) wholeKeys(tests []Test) int {
	n := 1
	for i := range tests {
		switch {
		case tests[i].Null:
		case tests[i].Equal && n <= maxKeys:
			n *= len(tests[i].Values)
		case tests[i].Equal:
		default:
			return -1
		}
	}
	return n
}

// matchKeys marks the partitions of whole keys that begin with prefix.
func (b *Bounds) matchKeys(tests []Test, prefix []types.Datum, out []bool) {
	i := len(prefix)
	if i == len(tests) {
		if at := b.Find(prefix); at >= 0 {
			out[at] = true
		}
		return
	}
	if tests[i].Null {
		b.matchKeys(tests, append(prefix, types.Null), out)
		return
	}
	for _, v := range tests[i].Values {
		if tests[i].admits(v, b.types[i]) {
			b.matchKeys(tests, append(prefix, v), out)
		}
	}
}

// admits reports whether a value lies between the ends of a test.
func (t *Test) admits(v types.Datum, typ types.Type) bool {
	if t.Low != nil {
		if c := types.Compare(v, t.Low.Value, typ); c < 0 || c == 0 && !t.Low.Inclusive {
			return false
		}
	}
	if t.High != nil {
		if c := types.Compare(v, t.High.Value, typ); c > 0 || c == 0 && !t.High.Inclusive {
			return false
		}
	}
	return true
}

func (b *Bounds) matchList(t *Test, out []bool) {
	for i := range b.values {
		if t.admits(b.values[i].value, b.types[0]) {
			out[b.values[i].part] = true
		}
	}
	if b.null >= 0 && !t.NotNull && t.Low == nil && t.High == nil {
		out[b.null] = true
	}
}

// matchRanges marks the ranges that may have keys that begin with prefix and pass the other tests.
func (b *Bounds) matchRanges(tests []Test, prefix []types.Datum, out []bool) {
	i := len(prefix)
	t := &tests[i]
	if t.Null {
		return // They are in the default partition.
	}
	if t.Equal && i < len(tests)-1 && len(t.Values) <= maxKeys {
		for _, v := range t.Values {
			if t.admits(v, b.types[i]) {
				b.matchRanges(tests, append(prefix[:i:i], v), out)
			}
		}
		return
	}
	lists := []Test{*t}
	if t.Equal {
		lists = lists[:0]
		for _, v := range t.Values {
			lists = append(lists, Test{Low: &Limit{v, true}, High: &Limit{v, true}})
		}
	}
	for k := range b.ranges {
		r := &b.ranges[k]
		for j := range lists {
			if !out[r.part] && !b.behind(prefix, lists[j].Low, r.to) && !b.before(prefix, lists[j].High, r.from) {
				out[r.part] = true
			}
		}
	}
}

// behind reports whether all keys that begin with prefix, and then have at least low, are not below the end of a range.
func (b *Bounds) behind(prefix []types.Datum, low *Limit, to []limit) bool {
	if c, decided := b.comparePrefix(prefix, to); decided {
		return c > 0
	}
	at := &to[len(prefix)]
	if low == nil || at.infinite != 0 {
		return at.infinite < 0
	}
	c := types.Compare(low.Value, at.value, b.types[len(prefix)])
	return c > 0 || c == 0 && (!low.Inclusive || len(to) == len(prefix)+1)
}

// before reports whether all keys that begin with prefix, and then have at most high, are below the beginning of a range.
func (b *Bounds) before(prefix []types.Datum, high *Limit, from []limit) bool {
	if c, decided := b.comparePrefix(prefix, from); decided {
		return c < 0
	}
	at := &from[len(prefix)]
	if high == nil || at.infinite != 0 {
		return at.infinite > 0
	}
	c := types.Compare(high.Value, at.value, b.types[len(prefix)])
	return c < 0 || c == 0 && !high.Inclusive
}

// comparePrefix orders all keys that begin with prefix and an end of a range, if the prefix decides.
func (b *Bounds) comparePrefix(prefix []types.Datum, l []limit) (order int, decided bool) {
	for i, d := range prefix {
		if l[i].infinite != 0 {
			return -int(l[i].infinite), true
		}
		if c := types.Compare(d, l[i].value, b.types[i]); c != 0 {
			return c, true
		}
	}
	return 0, false
}
