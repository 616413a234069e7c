package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the filesystem of an engine.
type FS = vfs.FS

// Options configure an engine; the zero value of every field but Dir is a default.
type Options struct {
	Dir string
	// FS defaults to the operating system's.
	FS FS
	// CacheBytes is the size of the block cache, 256 MiB by default.
	CacheBytes int64
	// MemTableBytes is the size of one memtable, by default 64 MiB, and less on a small disk.
	MemTableBytes uint64
	// IdleFlushInterval is the interval at which the engine checks whether writes have paused, to flush the memtable; 0 means
	// never.
	IdleFlushInterval time.Duration
	// FullMemtables makes memtables large from the beginning, for an engine that is to be fast; it takes some 20 ms.
	FullMemtables bool
	// ReadOnly leaves the directory unchanged: writes stay in memory until Close.
	ReadOnly bool
	// AcceptDataLoss opens a directory with a damaged log: the data written before the damage is kept, the rest is moved
	// to separate files.
	AcceptDataLoss bool
	// LockTimeout is how long Open waits while another process has the directory: one that has been killed keeps it until
	// the kernel has freed its memory. 0: not at all.
	LockTimeout time.Duration
	Logger      *slog.Logger
	// OnFatal is called once, from any goroutine, after the first write that failed (I3). The process should log the
	// error and exit: the goroutine with the failed write does not continue, and other writers must not either. Without
	// OnFatal they get a *FailedError if possible.
	OnFatal func(error)
}

func (o *Options) ensureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	o.Dir = o.FS.PathJoin(o.Dir) // one spelling of each path
	if o.ReadOnly {
		o.FS = newOverlayFS(o.FS)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// ErrClosed: the engine is closed.
var ErrClosed = errors.New("storage: engine is closed")

// FailedError: a write has failed earlier and the engine refuses to go on (I3).
type FailedError struct{ Err error }

func (e *FailedError) Error() string { return fmt.Sprintf("storage: engine has failed: %v", e.Err) }
func (e *FailedError) Unwrap() error { return e.Err }

// Engine is one open Pebble. Safe for concurrent use.
type Engine struct {
	db      *pebble.DB
	lock    *pebble.Lock
	opts    Options
	synced  *syncedTable
	disk    *disk
	upgrade bool // the directory has an older format
	failed  atomic.Pointer[FailedError]
	applied atomic.Uint64 // batches applied so far; see iterCache
	syncs   atomic.Uint64 // batches applied with Sync
	written atomic.Uint64 // bytes applied
	iters   iterCache
	batches sync.Pool
	options *pebble.Options // as the database was opened
	tables  atomic.Uint64   // table files named so far

	serving atomic.Bool // Open has succeeded
	stuck   chan error  // the reason why opening cannot end, see openPebble
	closed  atomic.Bool

	background     sync.WaitGroup
	stopBackground context.CancelFunc
}

// Open opens the directory, creating it if need be. A directory that it refuses is as it was before.
// Errors: ErrLocked, *FormatError, *DamageError, and those of the filesystem.
func Open(opts Options) (*Engine, error) {
	opts.ensureDefaults()
	lock, err := awaitLock(&opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{lock: lock, opts: opts, stuck: make(chan error, 1)}
	e.disk = newDisk(&e.opts)
	e.opts.FS = &spaceFS{FS: opts.FS, d: e.disk}
	if err = e.openDir(); err == nil && e.upgrade {
		err = writeFormat(e.opts.FS, opts.Dir)
	}
	if err != nil {
		if !errors.Is(err, errStuck) {
			err = errors.Join(err, lock.Close())
		}
		return nil, fmt.Errorf("open %s: %w", opts.Dir, err)
	}
	if opts.FullMemtables && !opts.ReadOnly {
		if err = e.growMemtables(); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", opts.Dir, err), e.db.Close(), e.lock.Close())
		}
	}
	e.iters.start(e)
	ctx, stop := context.WithCancel(context.Background())
	e.stopBackground = stop
	e.background.Go(func() { e.synced.run(ctx, syncedInterval, func(err error) { _ = e.stopOn(err) }) })
	if opts.IdleFlushInterval > 0 {
		e.background.Go(func() { (&idleFlusher{e: e}).run(ctx, opts.IdleFlushInterval) })
	}
	e.serving.Store(true)
	e.disk.serving.Store(true)
	e.background.Go(func() { e.disk.run(ctx, e) })
	return e, nil
}

// openDir verifies the directory and opens the database. It truncates a damaged log if Options permit that.
func (e *Engine) openDir() error {
	err := e.openVerified()
	var damage *DamageError
	if !e.opts.AcceptDataLoss || !errors.As(err, &damage) || !damage.Log {
		return err
	}
	if cut, salvageErr := e.salvageLogs(); salvageErr != nil || !cut {
		return errors.Join(err, salvageErr)
	}
	return e.openVerified()
}

func (e *Engine) openVerified() (err error) {
	if err = e.prepareDir(); err == nil {
		err = removeTables(e.opts.FS, e.opts.Dir)
	}
	if err == nil {
		e.db, err = e.openPebble()
	}
	return err
}

// openPebble opens the database, or gives up when a write fails: the log's contents have to be flushed first, and Pebble
// retries that forever. If it succeeds later, the database is closed and the directory's lock released; the process is
// expected to have ended long before.
func (e *Engine) openPebble() (*pebble.DB, error) {
	type result struct {
		db  *pebble.DB
		err error
	}
	opened := make(chan result, 1)
	go func() {
		db, err := e.replayPebble()
		opened <- result{db, err}
	}()
	select {
	case r := <-opened:
		return r.db, e.damageOf(r.err)
	case err := <-e.stuck:
		go func() {
			if r := <-opened; r.db != nil {
				_ = r.db.Close() // No caller waits for the result any more.
			}
			_ = e.lock.Close()
		}()
		return nil, fmt.Errorf("%w: %w", errStuck, err)
	}
}

// errStuck: the database could not be opened, and Pebble is still trying.
var errStuck = errors.New("log cannot be replayed")

// replayPebble opens the database. Pebble reports some failures through its logger's Fatalf, which must not return; see
// logger.
func (e *Engine) replayPebble() (db *pebble.DB, err error) {
	defer e.recoverFailure(&err)
	cache := pebble.NewCache(e.opts.CacheBytes)
	defer cache.Unref()
	e.options = e.pebbleOptions(cache)
	e.options.EnsureDefaults()
	return pebble.Open(e.opts.Dir, e.options)
}

// bytesPerSync is the number of bytes after which the operating system is requested to write a file to disk.
const bytesPerSync = 512 << 10

// A compaction writes tables of minTableBytes in the highest level, and twice as much in each level below, up to
// maxTableBytes. It keeps the values of old versions in memory until their table is written, 32 KiB for each
// 16 KiB of them, however well they compress: at five to one a table of 8 MiB of which half is history takes 40 MiB.
const (
	minTableBytes = 2 << 20
	maxTableBytes = 8 << 20
)

func (e *Engine) pebbleOptions(cache *pebble.Cache) *pebble.Options {
	schema := newKeySchema()
	o := &pebble.Options{
		FS:                          &guardedFS{FS: e.opts.FS, e: e},
		Lock:                        e.lock,
		Cache:                       cache,
		Comparer:                    newComparer(),
		KeySchema:                   schema.Name,
		KeySchemas:                  sstable.MakeKeySchemas(&schema),
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                e.opts.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		// A stalled writer holds latches, so stall late; compactions get more threads first.
		L0StopWritesThreshold: 100,
		LBaseMaxBytes:         64 << 20,
		BytesPerSync:          512 << 10,
		WALBytesPerSync:       512 << 10,
		CompactionConcurrencyRange: func() (int, int) {
			return 1, max(1, min(runtime.GOMAXPROCS(0)/2, 4))
		},
		BlockPropertyCollectors:     []func() pebble.BlockPropertyCollector{newVersionCollector},
		DisableAutomaticCompactions: e.opts.ReadOnly,
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = min(int64(minTableBytes)<<i, maxTableBytes)
	}
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{
			BlockSize:      16 << 10,
			IndexBlockSize: 256 << 10,
			FilterPolicy:   bloom.FilterPolicy(10),
		}
	}
	o.Experimental.EnableColumnarBlocks = func() bool { return true }
	// Compactions triggered by reads cost every read a sample and win little here.
	o.Experimental.ReadSamplingMultiplier = -1
	o.Logger = &logger{engine: e, log: e.opts.Logger}
	listener := e.newEventListener()
	o.EventListener = &listener
	return o
}

// Close waits for background work and releases the directory. All iterators and batches must have
// been closed.
func (e *Engine) Close() (err error) {
	if e.closed.Swap(true) {
		return ErrClosed
	}
	e.iters.stop()
	e.disk.closing.Store(true)
	e.stopBackground()
	e.background.Wait()
	defer e.recoverFailure(&err)
	return errors.Join(e.db.Close(), e.synced.close(), e.lock.Close())
}

// Err returns the error that made the engine refuse writes, or nil.
func (e *Engine) Err() error {
	if f := e.failed.Load(); f != nil {
		return f
	}
	return nil
}

// fail records the first failure and reports it to the owner.
func (e *Engine) fail(err error) *FailedError {
	f := &FailedError{Err: err}
	if !e.failed.CompareAndSwap(nil, f) {
		return e.failed.Load()
	}
	if e.opts.OnFatal != nil {
		e.opts.OnFatal(f) // The owner reports it, once, in its own words.
		return f
	}
	hint := "restart the server once the cause is gone: what was acknowledged is on disk"
	if isDiskFull(err) {
		hint = "the disk is full: free space, then start the server again; what was acknowledged is on disk"
	}
	e.opts.Logger.Error("storage engine failed", "dir", e.opts.Dir, "err", err.Error(), "hint", hint)
	return f
}

// recoverFailure turns a panic that Pebble raised on a failed write into an error. Other panics
// are bugs and go on.
func (e *Engine) recoverFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *FailedError:
		*err = r
	case runtime.Error:
		panic(r)
	case error:
		*err = e.fail(r)
	default:
		panic(r)
	}
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Get appends the value of key to dst; found is false if there is none.
func (e *Engine) Get(dst, key []byte) (value []byte, found bool, err error) {
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	dst = append(dst, v...)
	return dst, true, closer.Close()
}

// Applied returns the number of batches applied since the engine was opened.
func (e *Engine) Applied() uint64 { return e.applied.Load() }

// EstimateDiskUsage estimates the bytes on disk of [lower, upper).
func (e *Engine) EstimateDiskUsage(lower, upper []byte) (uint64, error) {
	return e.db.EstimateDiskUsage(lower, upper)
}

// Flush writes the memtable out, so that sizes show on disk and recovery is short.
func (e *Engine) Flush() error { return e.db.Flush() }

// Compact rewrites [lower, upper) into the last level.
func (e *Engine) Compact(ctx context.Context, lower, upper []byte) error {
	defer e.applied.Add(1) // iterators opened before walk over what was removed, and are not reused
	return e.db.Compact(ctx, lower, upper, false)
}

// IsCorruption reports whether err means that a file fails its checksum or is malformed.
func IsCorruption(err error) bool { return pebble.IsCorruptionError(err) }

// versionProperty names the property that newVersionCollector writes.
const versionProperty = "percodb.version"

// newVersionCollector records in every block and table which versions it contains, for readers of an interval of
// versions.
func newVersionCollector() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(versionProperty, versionMapper{}, nil)
}

type versionMapper struct{}

func (versionMapper) MapPointKey(key pebble.InternalKey, _ []byte) (sstable.BlockInterval, error) {
	_, v, ok := SplitVersion(key.UserKey)
	if !ok || v == ^uint64(0) {
		return sstable.BlockInterval{}, nil
	}
	return sstable.BlockInterval{Lower: v, Upper: v + 1}, nil
}

func (versionMapper) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, nil
}

// MiddleBoundary returns the smallest key of the file that splits the data of [lower, upper) best, or nil if no file
// begins inside the span and leaves at least a quarter of the data on either side. It reads no data.
func (e *Engine) MiddleBoundary(lower, upper []byte) ([]byte, error) {
	levels, err := e.db.SSTables(pebble.WithKeyRangeFilter(lower, upper))
	if err != nil {
		return nil, err
	}
	var starts [][]byte
	for _, level := range levels {
		for _, table := range level {
			if key := table.Smallest.UserKey; compare(lower, key) < 0 && compare(key, upper) < 0 {
				starts = append(starts, key)
			}
		}
	}
	total, err := e.db.EstimateDiskUsage(lower, upper)
	if err != nil || len(starts) == 0 {
		return nil, err
	}
	slices.SortFunc(starts, compare)
	below := func(i int) (size uint64) {
		if err == nil {
			size, err = e.db.EstimateDiskUsage(lower, starts[i])
		}
		return size
	}
	i := sort.Search(len(starts), func(i int) bool { return below(i) >= total/2 })
	best, bestSize := -1, total/4
	for _, j := range []int{i - 1, i} {
		if j < 0 || j == len(starts) {
			continue
		}
		size := below(j)
		if smaller := min(size, total-min(size, total)); smaller >= bestSize {
			best, bestSize = j, smaller
		}
	}
	if err != nil || best < 0 {
		return nil, err
	}
	return starts[best], nil
}

// DiskUsage returns the bytes of all files, obsolete ones included.
func (e *Engine) DiskUsage() uint64 { return e.db.Metrics().DiskSpaceUsage() }
