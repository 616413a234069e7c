package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// logger passes Pebble's log to slog. Pebble's Fatalf must not return; the standard logger would end the process without
// a report, whereas this one marks the engine failed, reports to its owner (which ends the process) and unwinds the
// goroutine.
type logger struct {
	engine *Engine
	log    *slog.Logger
}

func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("pebble", "text", fmt.Sprintf(format, args...))
}

func (l *logger) Errorf(format string, args ...any) {
	l.log.Warn("pebble", "text", fmt.Sprintf(format, args...))
}

func (l *logger) Fatalf(format string, args ...any) {
	// Errorf instead of Sprintf would drop the cause unless the verb is %w: look for it.
	err := error(fmt.Errorf(format, args...))
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			err = fmt.Errorf("pebble: %w", cause)
		}
	}
	if !l.engine.serving.Load() {
		l.engine.giveUpOpening(err)
		select {} // this may be a goroutine of Pebble's, whose panic would end the process
	}
	err = l.engine.stopOn(err)
	var failed *FailedError
	if !errors.As(err, &failed) {
		failed = &FailedError{Err: err} // while closing: Close reports it
	}
	panic(failed)
}

// giveUpOpening has Open return err.
func (e *Engine) giveUpOpening(err error) {
	select {
	case e.stuck <- err:
	default:
	}
}

// newEventListener reports the rare events of an engine's life.
func (e *Engine) newEventListener() pebble.EventListener {
	log := e.opts.Logger
	var last atomic.Int64 // when a failure of background work was last logged: the work is retried at once
	return pebble.EventListener{
		BackgroundError: func(err error) {
			if !e.serving.Load() && !pebble.IsCorruptionError(err) {
				// The log's contents are flushed before the engine opens, and a flush is retried forever.
				e.giveUpOpening(err)
				return
			}
			const quiet = 10 * time.Second
			now := time.Now().UnixNano()
			if then := last.Load(); now-then < int64(quiet) || !last.CompareAndSwap(then, now) {
				return
			}
			log.Warn("background work failed and is retried", "dir", e.opts.Dir, "err", err.Error())
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Error("data file is corrupt", "path", info.Path, "err", info.Details.Error())
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			log.Warn("writes stall until compactions catch up", "reason", info.Reason)
		},
		WriteStallEnd: func() { log.Info("writes go on") },
	}
}
