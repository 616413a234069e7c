package storage

import (
	"context"
	"time"
)

const (
	// idleFlushBytes is the minimal size of a memtable flushed at rest.
	idleFlushBytes = 1 << 20
	// idleBytes is the number of bytes written in an interval below which writes count as paused.
	idleBytes = 256 << 10
)

// idleFlusher flushes the memtable when writes have paused: a read has to search the memtable, at the cost of many cache
// misses, whereas a table's filter excludes an absent key immediately. After a flush, newly loaded data is read as fast
// as older data, and need not be replayed at the next start.
type idleFlusher struct {
	e       *Engine
	written uint64 // e.written at the last look
	flushed uint64 // e.written at the last flush by idleFlusher
}

// run checks every interval until ctx ends.
func (f *idleFlusher) run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !f.due(f.e.written.Load()) {
			continue
		}
		if err := f.flush(); err != nil {
			f.e.opts.Logger.Warn("flush at rest", "err", err)
		}
	}
}

func (f *idleFlusher) flush() (err error) {
	defer f.e.recoverFailure(&err)
	_, err = f.e.db.AsyncFlush()
	return err
}

// due reports whether to flush, given the number of bytes applied in total.
func (f *idleFlusher) due(written uint64) bool {
	resting := written-f.written <= idleBytes
	f.written = written
	if !resting || written-f.flushed < idleFlushBytes {
		return false
	}
	f.flushed = written
	return true
}
