package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Goal: reads do not search several small memtables after a start. Method: Pebble's sizes before and after; what made
// them grow is not visible.
func TestMemtablesGrowAtOnce(t *testing.T) {
	for _, full := range []bool{false, true} {
		e, err := Open(Options{Dir: "db", FS: vfs.NewMem(), FullMemtables: full})
		if err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, e)
		m := e.db.Metrics()
		if large := m.MemTable.Size >= e.opts.MemTableBytes/2; large != full {
			t.Errorf("full %v: %d bytes in %d memtables", full, m.MemTable.Size, m.MemTable.Count)
		}
		it, err := e.NewRangeIter([]byte{0}, []byte{0xff, 0xff})
		if err != nil {
			t.Fatal(err)
		}
		if it.First() {
			t.Errorf("key %x", it.Key())
		}
		it.Close()
	}
}
