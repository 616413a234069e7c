package storage

import "fmt"

// growMemtables makes Pebble's memtables as large as they become. Otherwise the first has 256 KiB and each later one
// twice the size of the one before, and none is flushed before they have half of MemTableBytes together: reads would
// search up to eight of them, and for as long as flushes find them half empty the sizes would not grow.
//
// Pebble's size doubles until the next batch fits, by the size that it reserves for each entry, which is more than
// ten times what these deletions of an absent key take in the log and in the memtable.
func (e *Engine) growMemtables() error {
	const entryBytes = 128 // at least, of what Pebble reserves
	target := int(e.opts.MemTableBytes/4) + 1
	if e.AdmitWrite(target) != nil {
		return nil // the disk is full
	}
	b := e.NewBatch(0)
	defer b.Close()
	absent := AppendSentinel([]byte{0xff}) // above all keys
	for range target / entryBytes {
		b.Delete(absent)
	}
	if err := e.Apply(b, NoSync); err != nil {
		return err
	}
	// The next memtable is as large, and empty: reads would search these deletions for as long as nothing is written.
	if _, err := e.db.AsyncFlush(); err != nil {
		return fmt.Errorf("flush the first memtable: %w", err)
	}
	return nil
}
