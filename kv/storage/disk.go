package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A full disk is detected before a log write fails, because after a failed log write the state is unknown. New work is
// refused (AdmitWrite) while less than the headroom is free; work in progress may use it: commits and rollbacks of
// admitted transactions, flushes, and the records of the oracle. A reserve file is released when even that is used up,
// for instance by other programs: a write that finds no space removes the file and is retried, and then waits for space.
// Writes are admitted again when more than the headroom is free and the reserve is restored.
const (
	reserveFile = "PERCODB_RESERVE"

	// diskInterval is the interval at which the free space is read; AdmitWrite reads it more often under load.
	diskInterval = 100 * time.Millisecond
	// waitForSpace is the interval at which a write without space is retried.
	waitForSpace = 100 * time.Millisecond
	// openTimeout is how long opening waits for space.
	openTimeout = 2 * time.Second
	// compactionPause is how long compactions wait after one ran out of space.
	compactionPause = 5 * time.Second

	// The memtable's size bounds the sizes of logs and flushes; small disks get smaller ones.
	maxMemTable       = 64 << 20
	minMemTable       = 4 << 20
	memTablesPerDisk  = 64
	headroomMemTables = 2
	reserveMemTables  = 1
)

// DiskFullError: the disk of the data directory has no space for more data; reads continue to work.
type DiskFullError struct {
	Dir  string
	Free uint64
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("storage: the disk of %s is full: %d bytes are free, and kept for what is under way", e.Dir, e.Free)
}

// Unwrap makes it match ENOSPC.
func (e *DiskFullError) Unwrap() error { return syscall.ENOSPC }

// disk watches the free space of a directory's filesystem.
type disk struct {
	opts     *Options
	watched  bool // the filesystem reports its free space
	headroom uint64
	reserve  uint64

	full     atomic.Bool
	free     atomic.Uint64 // at the last look
	admitted atomic.Uint64 // bytes since the last look
	closing  atomic.Bool   // waits for space end
	serving  atomic.Bool   // the engine is open
	noOutput atomic.Int64  // until when compactions wait, Unix nanoseconds

	mu struct {
		sync.Mutex
		reserved bool // the reserve file is there
	}
}

// newDisk examines the filesystem. The directory exists.
func newDisk(opts *Options) *disk {
	d := &disk{opts: opts}
	usage, err := opts.FS.GetDiskUsage(opts.Dir)
	d.watched = err == nil
	memTable := opts.MemTableBytes
	if memTable == 0 {
		memTable = maxMemTable
		if d.watched {
			memTable = min(max(usage.TotalBytes/memTablesPerDisk, minMemTable), maxMemTable)
		}
		opts.MemTableBytes = memTable
	}
	d.headroom, d.reserve = headroomMemTables*memTable, reserveMemTables*memTable
	d.free.Store(usage.AvailBytes)
	_, err = opts.FS.Stat(opts.FS.PathJoin(opts.Dir, reserveFile))
	d.mu.reserved = err == nil
	if d.watched && d.free.Load() < d.headroom+d.reserve {
		d.release() // opening needs space too
	}
	return d
}

// AdmitWrite reserves about so many bytes for new data. *DiskFullError if there is no space for them. Writes that
// complete admitted work need no admission.
func (e *Engine) AdmitWrite(bytes int) error {
	d := e.disk
	if !d.watched {
		if d.full.Load() {
			return &DiskFullError{Dir: e.opts.Dir}
		}
		return nil
	}
	// Data is written to the log and, before that is removed, to a table.
	need := 2 * uint64(bytes)
	since := d.admitted.Add(need)
	if since > d.headroom/8 {
		d.look(e)
	}
	if free := d.free.Load(); d.full.Load() || free < d.headroom+need {
		return &DiskFullError{Dir: e.opts.Dir, Free: free}
	}
	return nil
}

// run reads the free space regularly until ctx ends.
func (d *disk) run(ctx context.Context, e *Engine) {
	if !d.watched {
		return
	}
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		d.look(e)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the free space and decides whether writing is admitted.
func (d *disk) look(e *Engine) {
	if !d.mu.TryLock() {
		return // another goroutine does
	}
	defer d.mu.Unlock()
	d.admitted.Store(0)
	free, err := d.measure()
	if err != nil {
		d.opts.Logger.Warn("free disk space is not known", "dir", d.opts.Dir, "err", err)
		return
	}
	switch slack := d.headroom / 2; {
	case free < d.headroom && !d.full.Swap(true):
		d.opts.Logger.Error("the disk is full: writes are refused, reads go on", "dir", d.opts.Dir, "free_bytes", free, "needed_bytes", d.headroom)
		e.flushForSpace()
	case !d.mu.reserved && free >= d.headroom+d.reserve+slack:
		if err := d.createReserve(); err != nil {
			d.opts.Logger.Warn("no reserve could be set aside on the disk", "dir", d.opts.Dir, "err", err)
		}
	case d.full.Load() && d.mu.reserved && free >= d.headroom+slack:
		d.full.Store(false)
		d.opts.Logger.Warn("the disk has room again: writes are admitted", "dir", d.opts.Dir, "free_bytes", free)
	}
}

func (d *disk) measure() (uint64, error) {
	usage, err := d.opts.FS.GetDiskUsage(d.opts.Dir)
	if err == nil {
		d.free.Store(usage.AvailBytes)
	}
	return usage.AvailBytes, err
}

// flushForSpace flushes the memtable while there is space, so that a restart has little to replay.
func (e *Engine) flushForSpace() {
	if !e.serving.Load() {
		return
	}
	e.background.Go(func() {
		if err := (&idleFlusher{e: e}).flush(); err != nil {
			e.opts.Logger.Warn("flush on a full disk", "err", err)
		}
	})
}

// createReserve allocates the reserve file; its blocks count as used from then on.
func (d *disk) createReserve() error {
	name := d.opts.FS.PathJoin(d.opts.Dir, reserveFile)
	f, err := d.opts.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, int64(d.reserve))
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.opts.FS.Remove(name))
	}
	d.mu.reserved = true
	return nil
}

// release gives the reserve back, and reports whether there was one.
func (d *disk) release() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.full.Swap(true) {
		d.opts.Logger.Error("a write found no space: writes are refused, reads go on", "dir", d.opts.Dir)
	}
	if !d.mu.reserved {
		return false
	}
	if err := d.opts.FS.Remove(d.opts.FS.PathJoin(d.opts.Dir, reserveFile)); err != nil {
		d.opts.Logger.Error("the reserve on the disk could not be given back", "dir", d.opts.Dir, "err", err)
		return false
	}
	d.mu.reserved = false
	d.opts.Logger.Warn("the reserve on the disk was given back", "dir", d.opts.Dir, "bytes", d.reserve)
	return true
}

// withSpace tries f until it fails for another reason than a full disk.
func (d *disk) withSpace(f func() error) error {
	begun := time.Now()
	for {
		err := f()
		if !isDiskFull(err) || d.closing.Load() || !d.serving.Load() && time.Since(begun) > openTimeout {
			return err
		}
		if !d.release() {
			if !d.watched {
				// No other goroutine detects that there is space again.
				defer d.full.Store(false)
			}
			time.Sleep(waitForSpace)
		}
	}
}

// awaitCompactionSpace holds a compaction's output back while the disk is too full for it.
func (d *disk) awaitCompactionSpace() {
	for d.serving.Load() && !d.closing.Load() {
		if time.Now().UnixNano() >= d.noOutput.Load() && (!d.watched || d.free.Load() >= d.headroom/2) {
			return
		}
		time.Sleep(waitForSpace)
	}
}

// spaceFS is the filesystem below an engine, on which a full disk is waited out.
type spaceFS struct {
	vfs.FS
	d *disk
}

// Unwrap implements vfs.FS.
func (s *spaceFS) Unwrap() vfs.FS { return s.FS }

// Tables are written by compactions, and by Tables.
const (
	compactionCategory vfs.DiskWriteCategory = "pebble-compaction"
	ingestCategory     vfs.DiskWriteCategory = "percodb-ingest"
)

// Create implements vfs.FS.
func (s *spaceFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == compactionCategory {
		s.d.awaitCompactionSpace()
	}
	return s.file(category, func() (vfs.File, error) { return s.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (s *spaceFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return s.file(category, func() (vfs.File, error) { return s.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (s *spaceFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.file(category, func() (vfs.File, error) { return s.FS.ReuseForWrite(oldname, newname, category) })
}

// Rename implements vfs.FS.
func (s *spaceFS) Rename(oldname, newname string) error {
	return s.d.withSpace(func() error { return s.FS.Rename(oldname, newname) })
}

// Link implements vfs.FS.
func (s *spaceFS) Link(oldname, newname string) error {
	return s.d.withSpace(func() error { return s.FS.Link(oldname, newname) })
}

func (s *spaceFS) file(category vfs.DiskWriteCategory, open func() (vfs.File, error)) (f vfs.File, err error) {
	err = s.d.withSpace(func() error {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &spaceFile{File: f, d: s.d, category: category}, nil
}

// spaceFile is a file opened for writing. Its writes wait for space, but for those of compactions, which
// fail and are repeated later, and of tables to be ingested, whose transaction fails.
type spaceFile struct {
	vfs.File
	d        *disk
	category vfs.DiskWriteCategory
}

// Write implements vfs.File.
func (f *spaceFile) Write(p []byte) (n int, err error) {
	n, err = f.File.Write(p)
	if !isDiskFull(err) {
		return n, err
	}
	switch f.category {
	case compactionCategory:
		f.d.noOutput.Store(time.Now().Add(compactionPause).UnixNano())
		return n, err
	case ingestCategory:
		return n, err
	}
	return f.writeRest(p, n)
}

// writeRest writes the rest of p after its first n bytes, for which there was no space.
func (f *spaceFile) writeRest(p []byte, n int) (int, error) {
	err := f.d.withSpace(func() error {
		more, err := f.File.Write(p[n:])
		n += more
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *spaceFile) WriteAt(p []byte, at int64) (n int, err error) {
	n, err = f.File.WriteAt(p, at)
	if !isDiskFull(err) {
		return n, err
	}
	return f.writeRestAt(p, at)
}

func (f *spaceFile) writeRestAt(p []byte, at int64) (n int, err error) {
	err = f.d.withSpace(func() error {
		more, err := f.File.WriteAt(p, at)
		n = more
		return err
	})
	return n, err
}

// Preallocate implements vfs.File. If little space is free nothing is preallocated.
func (f *spaceFile) Preallocate(offset, length int64) error {
	if f.d.watched && f.d.free.Load() < 2*f.d.headroom+uint64(length) {
		return nil
	}
	return f.File.Preallocate(offset, length)
}
