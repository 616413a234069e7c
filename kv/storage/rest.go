package storage

import (
	"context"
	"time"
)

const (
	// restFlushBytes is how much must have been written for a flush at rest to be worth its file.
	restFlushBytes = 1 << 20
	// restBytes is how much may be written in an interval that counts as rest.
	restBytes = 256 << 10
)

// restFlusher writes the memtable out once little more is written: a read has to search it, from cache
// line to cache line, while a table's filter tells it at once that a key is not there. What was loaded is
// then read as fast as what has always been there, and need not be replayed at the next start.
type restFlusher struct {
	e       *Engine
	written uint64 // e.written at the last look
	flushed uint64 // e.written at the last flush of ours
}

// run looks every interval until ctx ends.
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

// due says whether to flush, having seen that written bytes were applied in all.
func (f *restFlusher) due(written uint64) bool {
	resting := written-f.written <= restBytes
	f.written = written
	if !resting || written-f.flushed < restFlushBytes {
		return false
	}
	f.flushed = written
	return true
}
