package storage

import (
	"context"
	"time"
)

const (
	// restFlushBytes is the minimal size of a memtable flushed at rest.
	restFlushBytes = 1 << 20
	// restBytes is the number of bytes written in an interval below which writes count as paused.
	restBytes = 256 << 10
)

// restFlusher flushes the memtable when writes have paused: a read has to search the memtable, at the cost of many cache
// misses, whereas a table's filter excludes an absent key immediately. After a flush, newly loaded data is read as fast
// as older data, and need not be replayed at the next start.
type restFlusher struct {
	e       *Engine
	written uint64 // e.written at the last look
	flushed uint64 // e.written at the last flush by restFlusher
}

// run checks every interval until ctx ends.
func (f *restFlusher) run(ctx context.Context, interval time.Duration) {
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

func (f *restFlusher) flush() (err error) {
	defer f.e.recoverFailure(&err)
	_, err = f.e.db.AsyncFlush()
	return err
}

// due reports whether to flush, given the number of bytes applied in total.
func (f *restFlusher) due(written uint64) bool {
	resting := written-f.written <= restBytes
	f.written = written
	if !resting || written-f.flushed < restFlushBytes {
		return false
	}
	f.flushed = written
	return true
}
