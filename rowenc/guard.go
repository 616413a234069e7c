package rowenc

import (
	"github.com/percodb/percodb/catalog"
)

// guardIndex is the index id of guards. Indexes of tables have ids from 1 on.
const guardIndex = 0

// AppendGuard appends the guard of a key of the unique index ix of t: a key without a value that is locked in place of ix's own. Who references
// the key shares the lock, and who removes or changes the key locks it exclusively. An update of other columns of the row, which writes the row
// under its primary key, does not meet these locks. Who checks that no other row conflicts with one under a late constraint (catalog.LateKey)
// locks the guard of the columns that such rows share.
//
//	key     table  id of the index   columns
//	guard   table  guardIndex        OID of the index  columns
func AppendGuard(dst []byte, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, key []byte) []byte {
	dst = appendID(AppendIndexPrefix(dst, t.ID, guardIndex), uint64(ix.OID))
	return append(dst, key[IndexPrefixLen(key):]...)
}

// GuardSpan returns the span of all guards of a table's keys.
func GuardSpan(tableID uint64) (start, end []byte) { return IndexSpan(tableID, guardIndex) }

// nameGuard is NameKey for a guard.
func nameGuard(t *catalog.TableDescriptor, guard []byte) (*KeyName, error) {
	oid, columns, err := takeID(guard[IndexPrefixLen(guard):])
	if err != nil {
		return nil, err
	}
	ix := t.IndexByOID(uint32(oid))
	if ix == nil {
		return nil, nil
	}
	if n := ix.SharedColumns(); ix.Exclude != nil && n < len(ix.Columns) {
		shared := *ix
		shared.Columns = ix.Columns[:n]
		ix = &shared
	}
	n := &KeyName{Table: t, Index: ix}
	n.Values, err = KeyColumns(t, ix, append(AppendIndexPrefix(nil, t.ID, ix.ID), columns...))
	if err != nil {
		return nil, err
	}
	return n, nil
}
