package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// EngineOptions configure an engine; the zero value of every field but Dir is a default.
type EngineOptions struct {
	Dir        string
	FS         storage.FS // the operating system's by default; storage.NewMemFS in tests
	CacheBytes int64      // block cache, 256 MiB by default
	// MemTableBytes is the size of one memtable, 64 MiB by default.
	MemTableBytes uint64
	// IdleFlushInterval is the interval at which the engine checks whether writes have paused, to flush the memory table; 0
	// means never.
	IdleFlushInterval time.Duration
	FullMemtables     bool // see storage.Options
	// ReadOnly leaves the directory unchanged: writes stay in memory until Close.
	ReadOnly bool
	// AcceptDataLoss opens a directory with a damaged log, with the data written before the damage.
	AcceptDataLoss bool
	// LockTimeout is how long to wait while another process, which may be about to end, has the directory; 0: not at all.
	LockTimeout time.Duration
	Logger      *slog.Logger
	// OnFatal is called once when a write has failed; the process should report it and exit.
	OnFatal func(error)
}

// Engine is an open data directory. The oracle keeps its window in it, a Directory its ranges, a Store its keys: open it
// first, then the oracle over WindowStore, then the store over both. The caller that opened it closes it, last.
type Engine struct{ *storage.Engine }

// OpenEngine opens a data directory, creating it if need be. Errors: storage.ErrLocked,
// *storage.FormatError, *storage.DamageError, and those of the filesystem.
func OpenEngine(opts EngineOptions) (*Engine, error) {
	e, err := storage.Open(storage.Options{
		Dir: opts.Dir, FS: opts.FS, CacheBytes: opts.CacheBytes, MemTableBytes: opts.MemTableBytes, IdleFlushInterval: opts.IdleFlushInterval,
		FullMemtables: opts.FullMemtables,
		ReadOnly:      opts.ReadOnly, AcceptDataLoss: opts.AcceptDataLoss, LockTimeout: opts.LockTimeout,
		Logger: opts.Logger, OnFatal: opts.OnFatal,
	})
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e}, nil
}

// WindowStore keeps the oracle's window in the engine.
func (e *Engine) WindowStore() tso.WindowStore { return windowStore{e} }

type windowStore struct{ e *Engine }

func (w windowStore) Load(context.Context) (tso.Timestamp, error) {
	value, found, err := w.e.Get(nil, metaKey(metaWindow))
	if err != nil || !found {
		return 0, err
	}
	if len(value) != 8 {
		return 0, &CorruptionError{Key: metaKey(metaWindow), Detail: "oracle window is not a timestamp"}
	}
	return tso.Timestamp(binary.BigEndian.Uint64(value)), nil
}

func (w windowStore) Save(_ context.Context, upper tso.Timestamp) error {
	b := w.e.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaWindow), binary.BigEndian.AppendUint64(nil, uint64(upper)))
	if err := w.e.applySync(b); err != nil {
		return fmt.Errorf("save the oracle's window: %w", err)
	}
	return nil
}

// applySync makes a batch of meta records durable.
func (e *Engine) applySync(b *storage.Batch) error {
	if err := e.Apply(b, storage.Sync); err != nil {
		return err
	}
	return b.SyncWait()
}
