package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Goal: the synced lengths are in the file without a system call, and beyond its mapping, before anything is synced or
// closed; a page that cannot be written is an error. Method: a directory of the operating system; read the file beside
// the table; truncate it.
func TestSyncedLengthsAreMapped(t *testing.T) {
	dir := t.TempDir()
	table := newSynced(vfs.Default, dir)
	defer func() { _ = table.close() }()
	const files = syncedSlots + 10
	for i := range files {
		if err := table.set(recordFile{logRecords, uint64(i + 1)}, int64(100*i), false); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.mu.mapped) != syncedSlots*slotBytes {
		t.Fatalf("%d bytes are mapped", len(table.mu.mapped))
	}
	beside, found, err := loadSynced(vfs.Default, dir)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	for i := range files {
		if synced := beside.syncedTo(recordFile{logRecords, uint64(i + 1)}); synced != int64(100*i) {
			t.Errorf("file %d: %d", i, synced)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		if err := table.set(recordFile{logRecords, 7}, 5, false); err != nil {
			t.Fatal(err)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
	if err := os.Truncate(filepath.Join(dir, syncedFile), 0); err != nil {
		t.Fatal(err)
	}
	if err := table.set(recordFile{logRecords, 7}, 6, false); err == nil {
		t.Error("a write to a page that is gone has no error")
	}
}
