package rowenc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Decoder turns keys and values of one index into rows of chosen columns. Prepare it once with Init,
// then Decode as often as wanted. One goroutine's; must not be copied after Init.
type Decoder struct {
	unique bool // of a secondary index: the primary key is in the value
	prefix []byte
	// stored are the columns to look for in values, by ascending column id.
	stored []storedColumn
	// indexed are the columns in the key after the prefix, primary those that follow them in the
	// key, or in the value of a unique entry. Both end with the last one wanted.
	indexed, primary []keyColumn

	decimals []apd.Decimal // slab that numerics are cut from
	slab     int           // size of the next slab

	prefixBuf  [16]byte
	storedBuf  [16]storedColumn
	indexedBuf [4]keyColumn
	primaryBuf [4]keyColumn
}

// storedColumn is a wanted column: dst is its place in the output row.
type storedColumn struct {
	id      uint32
	dst     int
	missing types.Datum // value of the column in rows that do not contain it
	// row is the column's type if values are records, which are stored without the names and types of their fields.
	row *types.Type
}

// keyColumn is a column of a key; dst is its position in the output row, -1 if it is not requested.
type keyColumn struct {
	typ   types.Type
	class class
	desc  bool
	dst   int
}

// maxDecimalSlab bounds how many numerics one kept numeric can hold in memory.
const maxDecimalSlab = 32

// Init prepares d to decode the keys and values of index ix of t into rows of the given table columns, each listed once. In the
// place of an ordinal that is negative Decode leaves the row as it is.
// It fails if a secondary index does not contain one of them (see Covers).
func (d *Decoder) Init(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, ordinals []int) error {
	isPrimary := ix.ID == t.Primary.ID
	*d = Decoder{unique: ix.Unique && !isPrimary, slab: 1}
	d.prefix = AppendIndexPrefix(d.prefixBuf[:0], t.ID, ix.ID)
	d.stored = d.storedBuf[:0]
	for dst, ord := range ordinals {
		if ord < 0 {
			continue
		}
		col := &t.Columns[ord]
		if !isPrimary && !holds(t, ix, col.ID) {
			return pgerror.New(pgerror.InternalError, "index %q does not hold column %q", ix.Name, col.Name)
		}
		s := storedColumn{id: col.ID, dst: dst}
		if col.Type.HasRow() {
			s.row = &col.Type
		}
		if isPrimary && col.Missing != nil && !inKey(ix, col.ID) {
			var err error
			if s.missing, err = DecodeDatum(col.Missing); err != nil {
				return err
			}
			if s.row != nil {
				s.missing = types.Conform(s.missing, *s.row)
			}
		}
		d.stored = append(d.stored, s)
	}
	slices.SortFunc(d.stored, func(a, b storedColumn) int { return int(a.id) - int(b.id) })
	d.indexed = keyColumns(d.indexedBuf[:0], t, ix.Columns, ordinals, nil)
	if !isPrimary {
		d.primary = keyColumns(d.primaryBuf[:0], t, t.Primary.Columns, ordinals, ix.Columns)
		if len(d.primary) > 0 && !d.unique {
			// The key's own columns precede the primary key's.
			d.indexed = allKeyColumns(d.indexed, t, ix.Columns)
		}
	}
	return nil
}

// Covers reports whether index ix of t holds the given table columns, so that rows need not be
// fetched.
func Covers(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, ordinals []int) bool {
	if ix.ID == t.Primary.ID {
		return true
	}
	for _, ord := range ordinals {
		if !holds(t, ix, t.Columns[ord].ID) {
			return false
		}
	}
	return true
}

func holds(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, id uint32) bool {
	return inKey(ix, id) || inKey(&t.Primary, id) || slices.Contains(ix.Include, id)
}

// keyColumns lists the columns of a key up to the last that is wanted and not also in elsewhere.
func keyColumns(buf []keyColumn, t *catalog.TableDescriptor, cols []catalog.IndexColumn, ordinals []int, elsewhere []catalog.IndexColumn) []keyColumn {
	wanted := 0
	for i := range cols {
		ord := ordinal(t, cols[i].ColumnID)
		k := keyColumn{typ: cols[i].KeyType(t.ColumnAt(ord).Type), desc: cols[i].Desc, dst: -1}
		k.class = classOf(k.typ)
		same := func(c catalog.IndexColumn) bool { return c.ColumnID == cols[i].ColumnID }
		if dst := slices.Index(ordinals, ord); dst >= 0 && !slices.ContainsFunc(elsewhere, same) {
			k.dst = dst
			wanted = i + 1
		}
		buf = append(buf, k)
	}
	return buf[:wanted]
}

// allKeyColumns lengthens have, the first of cols, to all of them.
func allKeyColumns(have []keyColumn, t *catalog.TableDescriptor, cols []catalog.IndexColumn) []keyColumn {
	for i := len(have); i < len(cols); i++ {
		typ := cols[i].KeyType(t.ColumnAt(ordinal(t, cols[i].ColumnID)).Type)
		have = append(have, keyColumn{typ: typ, class: classOf(typ), desc: cols[i].Desc, dst: -1})
	}
	return have
}

// Decode fills dst, one datum per ordinal given to Init. Datums may alias key and value.
func (d *Decoder) Decode(key, value []byte, dst types.Row) error {
	var suffix []byte
	var err error
	switch {
	case len(value) == 0:
		return corrupt("empty value")
	case d.unique:
		if suffix, value, err = splitUniqueValue(value); err != nil {
			return err
		}
	case value[0] != formatColumns:
		return corrupt("format of a value")
	default:
		value = value[1:]
	}
	if err := d.decodeColumns(value, dst); err != nil {
		return err
	}
	if len(d.indexed) > 0 {
		if !bytes.HasPrefix(key, d.prefix) {
			return corrupt("key of another index")
		}
		if key, err = decodeKey(key[len(d.prefix):], d.indexed, dst); err != nil {
			return err
		}
	}
	if len(d.primary) > 0 {
		if !d.unique {
			suffix = key
		}
		_, err = decodeKey(suffix, d.primary, dst)
	}
	return err
}

// decodeColumns merges the wanted columns with the stored ones; both ascend by id.
func (d *Decoder) decodeColumns(b []byte, dst types.Row) error {
	var id uint32
	var p payload
	var err error
	known := false // id and p describe the column whose payload b starts with
	for i := range d.stored {
		want := &d.stored[i]
		for {
			if !known {
				if len(b) == 0 {
					break
				}
				if h := b[0]; h>>4 != 0 && id < 1<<31 {
					id, p, b = id+uint32(h>>4), payload(h&0x0F), b[1:] // nearly all of them
				} else if id, p, b, err = takeHeader(b, id); err != nil {
					return err
				}
				known = true
			}
			if id >= want.id {
				break
			}
			// Short strings and nearly all integers are passed here, anything else by the general function.
			if n := varintLen(b); p == payloadInt && n > 0 {
				b = b[n:]
			} else if p == payloadBytes && len(b) > 0 && int(b[0]) < min(len(b), 0x80) {
				b = b[1+int(b[0]):]
			} else if b, err = skipPayload(b, p); err != nil {
				return err
			}
			known = false
		}
		if !known || id != want.id {
			dst[want.dst] = want.missing
			continue
		}
		if p == payloadInt {
			if u, n := shortUvarint(b); n > 0 {
				dst[want.dst], b, known = types.Int(int64(u>>1)^-int64(u&1)), b[n:], false
				continue
			}
		} else if p == payloadBytes && len(b) > 0 && int(b[0]) < min(len(b), 0x80) && want.row == nil {
			n := 1 + int(b[0])
			dst[want.dst], b, known = types.Bytes(b[1:n:n]), b[n:], false
			continue
		}
		if dst[want.dst], b, err = d.decodePayload(b, p); err != nil {
			return err
		}
		if want.row != nil {
			dst[want.dst] = types.Conform(dst[want.dst], *want.row)
		}
		known = false
	}
	return nil
}

// varintLen returns the length of the varint at the start of b; 0 if it is longer than eight bytes, or b ends within eight bytes.
// Lengths that differ from row to row cost no mispredicted branches.
func varintLen(b []byte) int {
	if len(b) < 8 {
		return 0
	}
	last := ^binary.LittleEndian.Uint64(b) & 0x8080_8080_8080_8080
	if last == 0 {
		return 0
	}
	return bits.TrailingZeros64(last)/8 + 1
}

// shortUvarint returns the varint at the start of b and its length; 0 for one of more than 63 bits, or that is not whole.
func shortUvarint(b []byte) (u uint64, n int) {
	if n = varintLen(b); n > 0 {
		// Groups of seven bits move together: first two each, then four, then all eight.
		u = binary.LittleEndian.Uint64(b) & (0x7F7F_7F7F_7F7F_7F7F >> (64 - 8*n))
		u = u&0x007F_007F_007F_007F | u&0x7F00_7F00_7F00_7F00>>1
		u = u&0x0000_3FFF_0000_3FFF | u&0x3FFF_0000_3FFF_0000>>2
		return u&0x0000_0000_0FFF_FFFF | u&0x0FFF_FFFF_0000_0000>>4, n
	}
	for shift := 0; n < len(b) && n < 9; shift += 7 {
		c := b[n]
		n++
		if c < 0x80 {
			return u | uint64(c)<<shift, n
		}
		u |= uint64(c&0x7F) << shift
	}
	return 0, 0
}

// decodePayload is the function of that name with numerics cut from a slab: rows of a scan cost one
// allocation per slab rather than per numeric.
func (d *Decoder) decodePayload(b []byte, p payload) (types.Datum, []byte, error) {
	if p != payloadDecimal && p != payloadBigDecimal {
		return decodePayload(b, p, 0)
	}
	if len(d.decimals) == 0 {
		d.decimals = make([]apd.Decimal, d.slab)
		d.slab = min(2*d.slab, maxDecimalSlab)
	}
	dec := &d.decimals[0]
	d.decimals = d.decimals[1:]
	rest, err := decodeDecimal(dec, b, p)
	return types.Decimal(dec), rest, err
}

// decodeKey decodes the requested columns of a key, except those that the value contained already, and returns the bytes
// after the columns.
func decodeKey(b []byte, cols []keyColumn, dst types.Row) ([]byte, error) {
	var err error
	for i := range cols {
		c := &cols[i]
		if c.dst < 0 || !dst[c.dst].IsNull() {
			b, err = skipOrdered(b, c.class, c.desc)
		} else {
			dst[c.dst], b, err = decodeOrdered(b, c.typ, c.class, c.desc)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}
