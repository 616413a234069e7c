package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ingestSuffix marks table files that are being written, or wait to be ingested. Those found when the directory is
// opened are left over from a crash.
const ingestSuffix = ".ingest"

// ingestFileBytes is the size of keys and values in a table file.
const ingestFileBytes = 128 << 20

// ingestFileKeys bounds the keys of a table file: the hashes of all are in memory until its filter is written.
const ingestFileKeys = 1 << 19

// A Break ends a file of breakBytes, and the first maxBreaks of a set however small they are.
const (
	breakBytes = 1 << 20
	maxBreaks  = 64
)

// Tables are changes too large for a batch, written to table files in the store's directory and made part of the store
// by Ingest, all at once. NewSet, and the methods of different sets, may be called concurrently.
type Tables struct {
	e  *Engine
	mu struct {
		sync.Mutex
		paths []string
		sets  []*TableSet
	}
}

// TableSet is a sequence of table files with ascending keys. The keys of two sets of one Tables do not
// overlap, nor do the spans between their breaks. One goroutine's.
type TableSet struct {
	t      *Tables
	w      *sstable.Writer
	total  int // bytes of all keys and values
	bytes  int // those in the file being written
	keys   int // in the file being written
	breaks int
}

// NewTables returns an empty Tables. The caller ends it with Ingest or Abort.
func (e *Engine) NewTables() *Tables { return &Tables{e: e} }

// NewSet adds a set.
func (t *Tables) NewSet() *TableSet {
	s := &TableSet{t: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.sets = append(t.mu.sets, s)
	return s
}

// Bytes is the size of all keys and values. No set is being written.
func (t *Tables) Bytes() (n int) {
	for _, s := range t.mu.sets {
		n += s.total
	}
	return n
}

// Put adds a key above all that the set has. It copies key and value.
func (s *TableSet) Put(key, value []byte) error {
	if s.w == nil || s.bytes >= ingestFileBytes || s.keys >= ingestFileKeys {
		if err := s.roll(); err != nil {
			return err
		}
	}
	s.keys++
	s.bytes += len(key) + len(value)
	s.total += len(key) + len(value)
	return s.w.Set(key, value)
}

// Break is called before a key that begins another part of the key space. A file across both would overlap the store's
// keys between them: it would be ingested into the highest level, and a compaction would write all of it again.
func (s *TableSet) Break() error {
	if s.w == nil || s.bytes < breakBytes && s.breaks >= maxBreaks {
		return nil
	}
	if s.bytes < breakBytes {
		s.breaks++
	}
	return s.Finish()
}

// roll ends the file being written and begins the next.
func (s *TableSet) roll() error {
	if err := s.Finish(); err != nil {
		return err
	}
	e := s.t.e
	if err := e.AdmitWrite(ingestFileBytes / 2); err != nil { // it is written once, not to the log
		return err
	}
	path := e.opts.FS.PathJoin(e.opts.Dir, fmt.Sprintf("%06d%s", e.tables.Add(1), ingestSuffix))
	f, err := e.opts.FS.Create(path, ingestCategory)
	if err != nil {
		return err
	}
	s.t.mu.Lock()
	s.t.mu.paths = append(s.t.mu.paths, path)
	s.t.mu.Unlock()
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: bytesPerSync})
	lowest := len(e.options.Levels) - 1
	s.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), e.options.MakeWriterOptions(lowest, e.db.TableFormat()))
	return nil
}

// Finish ends the file being written; it is durable then. Ingest finishes the sets that are not.
func (s *TableSet) Finish() error {
	if s.w == nil {
		return nil
	}
	w := s.w
	s.w, s.bytes, s.keys = nil, 0, 0
	return w.Close()
}

// Ingest makes the tables part of the store, all or none, durably. They hide the store's values of the same keys.
// Batches applied before the call are durable as well, as after a batch with Sync: the tables are not in the log, and
// Pebble would keep them even if it loses the end of the log. After an error none of the tables is part of the store,
// unless the engine has failed.
func (t *Tables) Ingest(ctx context.Context) (err error) {
	defer t.Abort()
	for _, s := range t.mu.sets {
		if err := s.Finish(); err != nil {
			return err
		}
	}
	e := t.e
	if err := e.Err(); err != nil || len(t.mu.paths) == 0 {
		return err
	}
	defer e.recoverFailure(&err)
	e.syncs.Add(1)
	if err := e.db.LogData([]byte("ingest"), pebble.Sync); err != nil {
		return e.fail(err)
	}
	err = e.db.Ingest(ctx, t.mu.paths)
	// Iterators opened before do not include the tables, and must not be reused.
	e.applied.Add(1)
	if err != nil {
		return errors.Join(err, e.Err())
	}
	e.written.Add(uint64(t.Bytes()))
	t.mu.paths = nil
	// What the log has from before the tables must not be lost without them, should the log turn out to be damaged: it
	// goes to table files as well, and the log is not needed any more.
	if _, err := e.db.AsyncFlush(); err != nil {
		e.opts.Logger.Warn("the memtable is not flushed behind ingested tables", "err", err.Error())
	}
	return e.Err()
}

// Abort removes the files. After Ingest it does nothing.
func (t *Tables) Abort() {
	for _, s := range t.mu.sets {
		_ = s.Finish() // The file goes.
	}
	for _, path := range t.mu.paths {
		if err := t.e.opts.FS.Remove(path); err != nil {
			t.e.opts.Logger.Warn("remove a table file that was not ingested", "path", path, "err", err.Error())
		}
	}
	t.mu.paths, t.mu.sets = nil, nil
}

// removeTables removes the files of Tables that were neither ingested nor aborted.
func removeTables(fs FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ingestSuffix) {
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
