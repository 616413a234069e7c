package partition

import (
	"cmp"
	"slices"
	"sort"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Bounds are the bounds of the partitions of one partitioned table. A partition is named by its place among those that New was given.
type Bounds struct {
	strategy catalog.PartitionStrategy
	types    []types.Type // of the key, with the collations of its columns
	n        int          // partitions
	rest     int          // the default partition, -1 for none
	null     int          // the list partition of NULL, -1 for none
	values   []listValue  // by value
	ranges   []rangeBound // by lower end
	hashes   []hashBound
	hashers  []func(types.Datum) uint64
	// hashed: a key is the hash that an operator class of a user makes of a value, as Find takes it. Conditions on values leave out no partition.
	hashed bool
}

type listValue struct {
	value types.Datum
	part  int
}

// limit is one column of an end of a range.
type limit struct {
	infinite int8
	value    types.Datum
}

type rangeBound struct {
	from, to []limit
	part     int
}

type hashBound struct {
	modulus, remainder uint64
	part               int
}

// KeyTypes returns the types of a table's partition key, with the collations of its columns.
func KeyTypes(t *catalog.TableDescriptor) []types.Type {
	out := make([]types.Type, len(t.Partitioning.Keys))
	for i := range t.Partitioning.Keys {
		k := &t.Partitioning.Keys[i]
		out[i] = k.KeyType(t.ColumnByID(k.ColumnID).Type)
	}
	return out
}

// Hashed reports whether Find takes the hash of a column of the partition key, which an operator class of a user makes with Seed, for its value.
func Hashed(t *catalog.TableDescriptor, key int) bool {
	p := t.Partitioning
	return p.Strategy == catalog.PartitionByHash && p.Keys[key].OpClassID != 0
}

// New decodes the bounds of partitions of t. Errors are those of decoding.
func New(t *catalog.TableDescriptor, parts []catalog.PartitionBound) (*Bounds, error) {
	b := &Bounds{strategy: t.Partitioning.Strategy, types: KeyTypes(t), n: len(parts), rest: -1, null: -1}
	for i, typ := range b.types {
		if Hashed(t, i) {
			b.hashed = true
			b.hashers = append(b.hashers, func(d types.Datum) uint64 { return uint64(d.Int()) })
			continue
		}
		b.hashers = append(b.hashers, hasher(typ))
	}
	for i := range parts {
		if err := b.add(&parts[i], i); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.values, func(x, y listValue) int { return types.Compare(x.value, y.value, b.types[0]) })
	slices.SortFunc(b.ranges, func(x, y rangeBound) int { return b.compareLimits(x.from, y.from) })
	return b, nil
}

func (b *Bounds) add(p *catalog.PartitionBound, part int) error {
	switch {
	case p.Default:
		b.rest = part
	case b.strategy == catalog.PartitionByHash:
		b.hashes = append(b.hashes, hashBound{p.Modulus, p.Remainder, part})
	case b.strategy == catalog.PartitionByList:
		for _, enc := range p.In {
			d, err := rowenc.DecodeDatum(enc)
			switch {
			case err != nil:
				return err
			case d.IsNull():
				b.null = part
			default:
				b.values = append(b.values, listValue{d, part})
			}
		}
	default:
		from, err := decodeLimits(p.From)
		if err != nil {
			return err
		}
		to, err := decodeLimits(p.To)
		if err != nil {
			return err
		}
		b.ranges = append(b.ranges, rangeBound{from, to, part})
	}
	return nil
}

func decodeLimits(enc []catalog.RangeLimit) ([]limit, error) {
	out := make([]limit, len(enc))
	for i := range enc {
		out[i].infinite = enc[i].Infinite
		if enc[i].Infinite == 0 {
			d, err := rowenc.DecodeDatum(enc[i].Value)
			if err != nil {
				return nil, err
			}
			out[i].value = d
		}
	}
	return out, nil
}

// compareLimits orders ends of ranges. What follows an infinite limit does not matter.
func (b *Bounds) compareLimits(x, y []limit) int {
	for i := range x {
		if c := cmp.Compare(x[i].infinite, y[i].infinite); c != 0 {
			return c
		}
		if x[i].infinite != 0 {
			return 0
		}
		if c := types.Compare(x[i].value, y[i].value, b.types[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareKey orders a key without NULLs and an end of a range.
func (b *Bounds) compareKey(key []types.Datum, l []limit) int {
	for i := range l {
		if l[i].infinite != 0 {
			return -int(l[i].infinite)
		}
		if c := types.Compare(key[i], l[i].value, b.types[i]); c != 0 {
			return c
		}
	}
	return 0
}

// Default returns the default partition, -1 for none.
func (b *Bounds) Default() int { return b.rest }

// Find returns the partition of rows with a key, -1 if there is none.
func (b *Bounds) Find(key []types.Datum) int {
	if at := b.findBounded(key); at >= 0 {
		return at
	}
	return b.rest
}

// findBounded is Find without the default partition.
func (b *Bounds) findBounded(key []types.Datum) int {
	switch b.strategy {
	case catalog.PartitionByHash:
		h := hashRow(b.hashers, key)
		for i := range b.hashes {
			if x := &b.hashes[i]; h%x.modulus == x.remainder {
				return x.part
			}
		}
		return -1
	case catalog.PartitionByList:
		if key[0].IsNull() {
			return b.null
		}
		at, found := sort.Find(len(b.values), func(i int) int { return types.Compare(key[0], b.values[i].value, b.types[0]) })
		if found {
			return b.values[at].part
		}
		return -1
	}
	if slices.ContainsFunc(key, types.Datum.IsNull) {
		return -1
	}
	at := sort.Search(len(b.ranges), func(i int) bool { return b.compareKey(key, b.ranges[i].from) < 0 }) - 1
	if at >= 0 && b.compareKey(key, b.ranges[at].to) < 0 {
		return b.ranges[at].part
	}
	return -1
}

// Empty reports whether no key lies between the ends of a range partition.
func Empty(t *catalog.TableDescriptor, p *catalog.PartitionBound) (bool, error) {
	b, err := New(t, []catalog.PartitionBound{*p})
	if err != nil || len(b.ranges) == 0 {
		return false, err
	}
	return b.compareLimits(b.ranges[0].from, b.ranges[0].to) >= 0, nil
}

// Overlaps returns a partition, other than the default one, that may have a row of one with the bound p of t; -1 if there is none. column is
// the place of what overlaps: of a value of a list, of a limit of a range's lower end, or -1 - place of one of its upper end.
func (b *Bounds) Overlaps(t *catalog.TableDescriptor, p *catalog.PartitionBound) (part, column int, err error) {
	if p.Default {
		return b.rest, 0, nil
	}
	one, err := New(t, []catalog.PartitionBound{*p})
	if err != nil {
		return -1, 0, err
	}
	switch b.strategy {
	case catalog.PartitionByHash:
		for i := range b.hashes {
			x, y := &b.hashes[i], &one.hashes[0]
			if x.remainder%min(x.modulus, y.modulus) == y.remainder%min(x.modulus, y.modulus) {
				return x.part, 0, nil
			}
		}
	case catalog.PartitionByList:
		for i, enc := range p.In {
			d, err := rowenc.DecodeDatum(enc)
			if err != nil {
				return -1, 0, err
			}
			if at := b.findBounded([]types.Datum{d}); at >= 0 {
				return at, i, nil
			}
		}
	default:
		at, column := b.overlapsRange(&one.ranges[0])
		return at, column, nil
	}
	return -1, 0, nil
}

// overlapsRange finds the first range that has keys in common with x.
func (b *Bounds) overlapsRange(x *rangeBound) (part, column int) {
	for i := range b.ranges {
		o := &b.ranges[i]
		if b.compareLimits(x.from, o.to) >= 0 || b.compareLimits(o.from, x.to) >= 0 {
			continue
		}
		if b.compareLimits(x.from, o.from) >= 0 {
			return o.part, b.differ(x.from, o.from)
		}
		return o.part, -1 - b.differ(o.from, x.to)
	}
	return -1, 0
}

// differ returns the first column in which two ends of ranges differ, 0 if they are equal.
func (b *Bounds) differ(x, y []limit) int {
	for i := range x {
		if x[i].infinite != y[i].infinite || x[i].infinite == 0 && types.Compare(x[i].value, y[i].value, b.types[i]) != 0 {
			return i
		}
	}
	return 0
}

// Modulus returns partitions with hash bounds and their moduli, the smallest modulus first.
func (b *Bounds) Modulus() (moduli []uint64, parts []int) {
	sorted := slices.Clone(b.hashes)
	slices.SortStableFunc(sorted, func(x, y hashBound) int {
		return cmp.Or(cmp.Compare(x.modulus, y.modulus), cmp.Compare(x.remainder, y.remainder))
	})
	for _, h := range sorted {
		moduli, parts = append(moduli, h.modulus), append(parts, h.part)
	}
	return moduli, parts
}
