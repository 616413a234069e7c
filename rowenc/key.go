package rowenc

import (
	"bytes"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// TableSpace is the first byte of every key of a table; CatalogSpace that of the catalog's own keys.
const (
	CatalogSpace = 0x01
	TableSpace   = 0x02
)

// Ids are compact and ordered: 0…0xF7 as one byte, larger ones as 0xF7+n and n bytes.
const idSmallEnd = 0xF7

func appendID(dst []byte, id uint64) []byte {
	if id <= idSmallEnd {
		return append(dst, byte(id))
	}
	n := byteLen(id)
	dst = append(dst, byte(idSmallEnd+n))
	for shift := (n - 1) * 8; shift >= 0; shift -= 8 {
		dst = append(dst, byte(id>>shift))
	}
	return dst
}

func takeID(b []byte) (uint64, []byte, error) {
	if len(b) == 0 {
		return 0, nil, corrupt("key ends early")
	}
	if b[0] <= idSmallEnd {
		return uint64(b[0]), b[1:], nil
	}
	n := int(b[0]) - idSmallEnd
	if len(b) < 1+n {
		return 0, nil, corrupt("key ends early")
	}
	var id uint64
	for _, c := range b[1 : 1+n] {
		id = id<<8 | uint64(c)
	}
	return id, b[1+n:], nil
}

// AppendIndexPrefix appends what all keys of an index start with.
func AppendIndexPrefix(dst []byte, tableID uint64, indexID uint32) []byte {
	return appendID(appendID(append(dst, TableSpace), tableID), uint64(indexID))
}

// IndexPrefixLen returns how long the prefix is that key has in common with all keys of its index, and with no
// other key of a table; 1 for a key of no table.
func IndexPrefixLen(key []byte) int {
	if len(key) == 0 || key[0] != TableSpace {
		return min(1, len(key))
	}
	_, rest, err := takeID(key[1:])
	if err == nil {
		_, rest, err = takeID(rest)
	}
	if err != nil {
		return 1
	}
	return len(key) - len(rest)
}

// IndexSpan returns the span of all keys of an index.
func IndexSpan(tableID uint64, indexID uint32) (start, end []byte) {
	start = AppendIndexPrefix(nil, tableID, indexID)
	return start, PrefixEnd(start)
}

// TableSpan returns the span of all keys of a table, its indexes included.
func TableSpan(tableID uint64) (start, end []byte) {
	start = appendID([]byte{TableSpace}, tableID)
	return start, PrefixEnd(start)
}

// PrefixEnd returns the smallest key above all keys that start with prefix; nil when there is none.
// The result is a new slice.
func PrefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// AppendKey appends the key under which index ix of t stores the full table row, the values of computed columns in ix behind it: the row's own key for &t.Primary,
// otherwise the entry's key. hasNull reports that a key column is NULL and NULLs are distinct, so that the key of a unique entry ends with the
// primary key and conflicts with no other.
func AppendKey(dst []byte, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, row types.Row) (key []byte, hasNull bool, err error) {
	dst = AppendIndexPrefix(dst, t.ID, ix.ID)
	if dst, hasNull, err = appendColumns(dst, t, ix.Columns, row); err != nil {
		return nil, false, err
	}
	hasNull = hasNull && !ix.NullsNotDistinct
	if ix.ID != t.Primary.ID && (hasNull || !ix.Unique) {
		dst, _, err = appendColumns(dst, t, t.Primary.Columns, row)
	}
	return dst, hasNull, err
}

func appendColumns(dst []byte, t *catalog.TableDescriptor, cols []catalog.IndexColumn, row types.Row) (_ []byte, hasNull bool, err error) {
	for i := range cols {
		ord := ordinal(t, cols[i].ColumnID)
		d := row[ord]
		hasNull = hasNull || d.IsNull()
		if dst, err = appendOrdered(dst, cols[i].KeyType(t.ColumnAt(ord).Type), d, cols[i].Desc, cols[i].NullsFirst); err != nil {
			return nil, false, err
		}
	}
	return dst, hasNull, nil
}

// ordinal is t.Ordinal with a guess: ids grow with ordinals, and most tables never lose a column.
func ordinal(t *catalog.TableDescriptor, columnID uint32) int {
	if i := int(columnID) - 1; i < len(t.Columns) && t.Columns[i].ID == columnID {
		return i
	}
	return t.Ordinal(columnID)
}

// AppendKeyPrefix appends the start of keys of ix whose leading columns have the given values, which must have the
// columns' types. With a value for every column of a unique index, and no NULL among them, it is the whole key.
func AppendKeyPrefix(dst []byte, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, values ...types.Datum) ([]byte, error) {
	dst = AppendIndexPrefix(dst, t.ID, ix.ID)
	for i, d := range values {
		col := &ix.Columns[i]
		var err error
		dst, err = appendOrdered(dst, col.KeyType(t.ColumnAt(ordinal(t, col.ColumnID)).Type), d, col.Desc, col.NullsFirst)
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// Bound is one end of a span over an index column. The zero Bound is no bound.
type Bound struct {
	Value     types.Datum
	Set       bool
	Inclusive bool
}

// Span returns the span of keys of ix whose leading columns equal eq and whose next column lies between low and high, in
// the order of the type: for DESC the bounds are swapped. NULLs are excluded if either bound is set. A NULL in eq
// matches NULLs, a NULL bound nothing. empty reports that the span contains no possible key.
func Span(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, eq []types.Datum, low, high Bound) (start, end []byte, empty bool, err error) {
	prefix, err := AppendKeyPrefix(nil, t, ix, eq...)
	if err != nil {
		return nil, nil, false, err
	}
	if !low.Set && !high.Set {
		return prefix, PrefixEnd(prefix), false, nil
	}
	if low.Set && low.Value.IsNull() || high.Set && high.Value.IsNull() {
		return nil, nil, true, nil
	}
	col := &ix.Columns[len(eq)]
	typ := col.KeyType(t.ColumnAt(ordinal(t, col.ColumnID)).Type)
	if col.Desc {
		low, high = high, low
	}
	if start, err = boundKey(prefix, typ, col, low, true); err != nil {
		return nil, nil, false, err
	}
	if end, err = boundKey(prefix, typ, col, high, false); err != nil {
		return nil, nil, false, err
	}
	return start, end, end != nil && bytes.Compare(start, end) >= 0, nil
}

// boundKey returns the key where a span starts or ends.
func boundKey(prefix []byte, typ types.Type, col *catalog.IndexColumn, b Bound, start bool) ([]byte, error) {
	key := bytes.Clone(prefix)
	switch {
	case b.Set:
		key, err := appendOrdered(key, typ, b.Value, col.Desc, col.NullsFirst)
		if err != nil {
			return nil, err
		}
		if start != b.Inclusive {
			return PrefixEnd(key), nil
		}
		return key, nil
	case start:
		return append(key, tagNullFirst+1), nil
	}
	return append(key, tagNullLast), nil
}

// SplitKey splits a table key into the ids of its prefix and the bytes that follow.
func SplitKey(key []byte) (tableID uint64, indexID uint32, columns []byte, err error) {
	if len(key) == 0 || key[0] != TableSpace {
		return 0, 0, nil, corrupt("not a table's key")
	}
	tableID, rest, err := takeID(key[1:])
	if err != nil {
		return 0, 0, nil, err
	}
	index, rest, err := takeID(rest)
	if err != nil {
		return 0, 0, nil, err
	}
	if index > 1<<32-1 {
		return 0, 0, nil, corrupt("index id in key")
	}
	return tableID, uint32(index), rest, nil
}

// TableOfBound returns the table whose first possible key is key: the start of TableSpan.
func TableOfBound(key []byte) (tableID uint64, ok bool) {
	if len(key) == 0 || key[0] != TableSpace {
		return 0, false
	}
	tableID, rest, err := takeID(key[1:])
	return tableID, err == nil && len(rest) == 0
}

// TableOfKey returns the id of the table whose key it is, 0 if it is no key of a table.
func TableOfKey(key []byte) uint64 {
	if len(key) == 0 || key[0] != TableSpace {
		return 0
	}
	id, _, err := takeID(key[1:])
	if err != nil {
		return 0
	}
	return id
}

// KeyColumns decodes the index columns in a key of ix, for messages: equal values that differ in
// form (1.0 and 1.00) come in their plainest one.
func KeyColumns(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, key []byte) (types.Row, error) {
	_, _, rest, err := SplitKey(key)
	if err != nil {
		return nil, err
	}
	row := make(types.Row, len(ix.Columns))
	for i := range ix.Columns {
		typ := ix.Columns[i].KeyType(t.ColumnAt(ordinal(t, ix.Columns[i].ColumnID)).Type)
		if row[i], rest, err = decodeOrdered(rest, typ, classOf(typ), ix.Columns[i].Desc); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// AppendRowKey appends the key of the row that an entry of the secondary index ix points at.
func AppendRowKey(dst []byte, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, key, value []byte) ([]byte, error) {
	if ix.Unique {
		suffix, _, err := splitUniqueValue(value)
		if err != nil {
			return nil, err
		}
		return append(AppendIndexPrefix(dst, t.ID, t.Primary.ID), suffix...), nil
	}
	_, _, rest, err := SplitKey(key)
	if err != nil {
		return nil, err
	}
	for i := range ix.Columns {
		typ := ix.Columns[i].KeyType(t.ColumnAt(ordinal(t, ix.Columns[i].ColumnID)).Type)
		if rest, err = skipOrdered(rest, classOf(typ), ix.Columns[i].Desc); err != nil {
			return nil, err
		}
	}
	return append(AppendIndexPrefix(dst, t.ID, t.Primary.ID), rest...), nil
}

// AppendValue appends a value of type t, which is not NULL, as keys contain it: equal values have equal bytes.
func AppendValue(dst []byte, t types.Type, d types.Datum) ([]byte, error) {
	return appendOrdered(dst, t, d, false, false)
}
