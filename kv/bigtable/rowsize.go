package bigtable

import (
	"context"
	"strings"
	"sync"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// largeValueBytes is the size from which a value is written only after the versions in its row have been counted. Of smaller ones a row
// would have to keep more than 256 versions; Bigtable itself refuses such a row.
const largeValueBytes = 1 << 20

// checkRowSize refuses a value that would make its row, with the older versions that are kept, larger than Bigtable stores. No filter tells the length
// of a value, so those of a row with many versions are read, one at a time, unless this process knows them.
func (s *Shard) checkRowSize(ctx context.Context, startTS tso.Timestamp, m *mvcc.Mutation) error {
	if len(m.Value) < largeValueBytes {
		return nil
	}
	s.sizes.put(memoKey{startTS, string(m.Key)}, len(m.Value))
	row, err := s.c.readRow(ctx, rowKey(m.Key), widerow.ChainFilters(wholeFamily(familyData), widerow.StripValueFilter()))
	if err != nil || (len(row[familyData])+1)*maxCellBytes <= s.rowBytes {
		return err
	}
	size := len(m.Value)
	for _, cell := range row[familyData] {
		n, err := s.dataSize(ctx, m.Key, strings.TrimPrefix(cell.Column, familyData+":"))
		if err != nil {
			return err
		}
		size += n
	}
	if size > s.rowBytes {
		return &kv.SizeLimitError{Size: size, Limit: s.rowBytes}
	}
	return nil
}

// dataSize returns the length of a value, 0 if it has been removed.
func (s *Shard) dataSize(ctx context.Context, key []byte, qualifier string) (int, error) {
	startTS, err := decodeInverted(qualifier)
	if err != nil {
		return 0, &mvcc.CorruptionError{Key: key, Detail: "cell " + familyData, Err: err}
	}
	of := memoKey{startTS, string(key)}
	if n, known := s.sizes.get(of); known {
		return n, nil
	}
	row, err := s.c.readRow(ctx, rowKey(key), column(familyData, qualifier))
	if err != nil || len(row[familyData]) == 0 {
		return 0, err
	}
	n := len(row[familyData][0].Value)
	s.sizes.put(of, n)
	return n, nil
}

// dataSizes remembers the lengths of data, which do not change, in rows with large values. It may forget any.
type dataSizes struct {
	mu    sync.Mutex
	known map[memoKey]int
}

// mostDataSizes bounds the lengths that are remembered.
const mostDataSizes = 1 << 12

func (d *dataSizes) put(of memoKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= mostDataSizes {
		d.known = make(map[memoKey]int)
	}
	d.known[of] = n
}

func (d *dataSizes) get(of memoKey) (n int, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, known = d.known[of]
	return n, known
}
