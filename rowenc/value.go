package rowenc

import (
	"encoding/binary"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// The first byte of a value.
const (
	formatColumns = 0x01 // columns follow: rows, and entries of non-unique indexes
	formatUnique  = 0x02 // uvarint length and primary key columns, then columns: unique entries
)

// A column in a value is a header, id delta << 4 | payload kind, and the payload. Delta 0 in the
// header says that it did not fit and follows as a uvarint.
const maxShortDelta = 15

func appendColumn(dst []byte, lastID, id uint32, d types.Datum) ([]byte, error) {
	p, err := payloadOf(d)
	if err != nil {
		return nil, err
	}
	if delta := id - lastID; delta <= maxShortDelta {
		dst = append(dst, byte(delta)<<4|byte(p))
	} else {
		dst = binary.AppendUvarint(append(dst, byte(p)), uint64(delta))
	}
	return appendPayload(dst, p, d)
}

// AppendRow appends the value of a full table row: the columns that its key does not hold exactly.
func AppendRow(dst []byte, t *catalog.TableDescriptor, row types.Row) ([]byte, error) {
	dst = append(dst, formatColumns)
	var lastID uint32
	var err error
	for i := range t.Columns {
		col, d := &t.Columns[i], row[i]
		switch {
		case d.IsNull():
			if col.Missing == nil {
				continue
			}
		case inKey(&t.Primary, col.ID) && !lossy(col.Type, d):
			continue
		}
		if dst, err = appendColumn(dst, lastID, col.ID, d); err != nil {
			return nil, err
		}
		lastID = col.ID
	}
	return dst, nil
}

func inKey(ix *catalog.IndexDescriptor, id uint32) bool {
	for i := range ix.Columns {
		if ix.Columns[i].ColumnID == id {
			return true
		}
	}
	return false
}

// AppendEntry appends the value of the entry that the secondary index ix holds for a full table row.
func AppendEntry(dst []byte, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, row types.Row) (_ []byte, err error) {
	if ix.Unique {
		// The length of the primary key comes first; it nearly always fits into one byte.
		dst = append(dst, formatUnique, 0)
		start := len(dst)
		if dst, _, err = appendColumns(dst, t, t.Primary.Columns, row); err != nil {
			return nil, err
		}
		if n := len(dst) - start; n < 0x80 {
			dst[start-1] = byte(n)
		} else {
			dst = insertLength(dst, start-1, n)
		}
	} else {
		dst = append(dst, formatColumns)
	}
	var lastID uint32
	for i := range t.Columns {
		col, d := &t.Columns[i], row[i]
		if d.IsNull() || !storedInEntry(t, ix, col, d) {
			continue
		}
		if dst, err = appendColumn(dst, lastID, col.ID, d); err != nil {
			return nil, err
		}
		lastID = col.ID
	}
	return dst, nil
}

// insertLength puts a uvarint of more than one byte where the byte at pos was.
func insertLength(dst []byte, pos, n int) []byte {
	var buf [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(buf[:], uint64(n))
	dst = append(dst, buf[1:k]...)
	copy(dst[pos+k:], dst[pos+1:len(dst)-k+1])
	copy(dst[pos:], buf[:k])
	return dst
}

// storedInEntry reports whether an entry's value holds the column: included columns, and columns
// that the key holds inexactly.
func storedInEntry(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, col *catalog.ColumnDescriptor, d types.Datum) bool {
	for _, id := range ix.Include {
		if id == col.ID {
			return true
		}
	}
	return (inKey(ix, col.ID) || inKey(&t.Primary, col.ID)) && lossy(col.Type, d)
}

// splitUniqueValue splits a unique entry's value into the primary key's columns and the rest.
func splitUniqueValue(value []byte) (primary, columns []byte, err error) {
	if len(value) == 0 || value[0] != formatUnique {
		return nil, nil, corrupt("format of a unique entry")
	}
	return takeBytes(value[1:])
}

// takeHeader takes a column's header off b.
func takeHeader(b []byte, lastID uint32) (id uint32, p payload, rest []byte, err error) {
	p = payload(b[0] & 0x0F)
	delta := uint64(b[0] >> 4)
	rest = b[1:]
	if delta == 0 {
		if delta, rest, err = takeUvarint(rest); err != nil {
			return 0, 0, nil, err
		}
	}
	if delta == 0 || delta > 1<<32-1-uint64(lastID) {
		return 0, 0, nil, corrupt("column id")
	}
	return lastID + uint32(delta), p, rest, nil
}
