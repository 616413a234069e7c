package mvcc

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// Intervals at which waiters check whether they should still wait.
const (
	lookAgain   = time.Second
	lookSoon    = 5 * time.Millisecond
	aliveFor    = 2 * time.Second        // how long a transaction found alive is assumed to be alive
	reportAgain = 500 * time.Millisecond // between two reports that a holder may be dead
)

// await waits in the queue until the lock on the key is granted. If it returns that the request starts over, nothing has
// happened.
func (a *acquisition) await(ctx context.Context, w *waiter) error {
	start := time.Now()
	if a.deadline.IsZero() {
		a.deadline = start.Add(a.args.Wait)
		a.patience = start.Add(aliveFor)
	}
	defer func() { a.s.locks.stats.waitNanos.Add(int64(time.Since(start))) }()
	timer := time.NewTimer(a.until(w))
	defer timer.Stop()
	deadlock, stop := a.watchGraph(ctx, w)
	defer stop()
	for {
		var err error
		select {
		case <-w.wake:
		case <-timer.C:
			err = a.check(w)
		case err = <-deadlock:
			a.s.locks.stats.deadlocks.Add(1)
		case <-ctx.Done():
			err = ctx.Err()
		}
		outcome := a.s.locks.outcome(w)
		if outcome == waitGoesOn && err != nil {
			outcome = a.s.locks.giveUp(w)
		}
		switch outcome {
		case waitGoesOn:
			if err != nil {
				return err
			}
			timer.Reset(a.until(w))
		case waitGranted:
			return a.granted(w, ctx.Err())
		case waitDeadlock:
			return w.err
		case waitStopped:
			return a.s.locks.whyStopped()
		case waitRetry:
			return nil
		}
	}
}

// granted records a key that was handed over; if the request has failed, it releases it.
func (a *acquisition) granted(w *waiter, unwanted error) error {
	switch {
	case unwanted != nil && !w.upgrade:
		a.s.releaseKeys([][]byte{w.entry.key}, a.args.StartTS, w.entry.lock.ForUpdateTS)
		return unwanted
	case w.upgrade:
		err := a.lookLater()
		a.lockedAt = append(a.lockedAt, w.entry.lock.ForUpdateTS)
		return err
	default:
		err := a.lookLater()
		a.took(w.entry.lock.ForUpdateTS)
		return err
	}
}

// until returns for how long a waiter may rest.
func (a *acquisition) until(w *waiter) time.Duration {
	rest := min(lookAgain, time.Until(a.deadline))
	if l, head := a.s.locks.blocker(w); head {
		rest = min(rest, a.lifetime(&l))
	}
	return max(rest, lookSoon)
}

// lifetime returns how long the holder of a lock is taken to be alive.
func (a *acquisition) lifetime(l *Lock) time.Duration {
	left := time.Duration(a.s.millisLeft(l)) * time.Millisecond
	if l.StartTS == a.args.Alive {
		left = max(left, time.Until(a.patience))
	}
	return left
}

// check returns *KeyLockedError if further waiting is useless or too late. Of several waiters for a holder that may be
// dead, one checks its status.
func (a *acquisition) check(w *waiter) error {
	t := a.s.locks
	if l, head := t.blocker(w); head && a.lifetime(&l) < 0 && t.report(w) {
		return &KeyLockedError{Key: w.entry.key, Lock: l}
	}
	if time.Now().Before(a.deadline) {
		return nil
	}
	if locked := t.lockedError(w.entry.key, a.args.StartTS); locked != nil {
		return locked
	}
	return nil // it has just been granted
}

// watchGraph registers the wait with a graph outside this process.
func (a *acquisition) watchGraph(ctx context.Context, w *waiter) (deadlock <-chan error, stop func()) {
	if a.s.opts.WaitGraph == nil {
		return nil, func() {}
	}
	return waitgraph.Watch(ctx, a.s.opts.WaitGraph, w.startTS(), w.entry.key, func() []tso.Timestamp { return a.s.locks.waitsFor(w) })
}

// millisLeft returns for how long a lock must not be rolled back by others yet; below 0 if it may be. It is a hint:
// expiry is decided by timestamps.
func (s *State) millisLeft(l *Lock) int64 {
	const longest = 1 << 40
	return l.StartTS.Physical() + int64(min(l.TTLMillis, longest)) - s.clockMillis()
}

func (s *State) mayBeDead(l *Lock) bool { return s.millisLeft(l) < 0 }

// clockMillis estimates the oracle's time.
func (s *State) clockMillis() int64 {
	if s.opts.Embedded {
		if now, err := s.opts.Oracle.Now(context.Background()); err == nil {
			return now.Physical()
		}
	}
	since := time.Duration(time.Now().UnixNano() - s.askedAt.Load()).Milliseconds()
	return tso.Timestamp(s.askedTS.Load()).Physical() + since
}

// RetryWaiters makes the requests that wait for keys of [start, end) check again whether they may wait here.
func (s *State) RetryWaiters(start, end []byte) { s.locks.retryWaiters(start, end) }

// WaitGraph is the graph of the waits for pessimistic locks in this store. Waits for other things may be registered with it, too.
func (s *State) WaitGraph() *waitgraph.Local { return s.locks.graph }

// StopWaiting makes all current and future waits for pessimistic locks fail with err.
func (s *State) StopWaiting(err error) { s.locks.stop(err) }

// WaitStats are statistics of the queues for pessimistic locks.
type WaitStats struct {
	Waits, Deadlocks int64         // since the store was opened
	Waited           time.Duration // by all together
	Waiting          int64         // now
}

// WaitStats returns the counts so far.
func (s *State) WaitStats() WaitStats {
	st := &s.locks.stats
	return WaitStats{Waits: st.waits.Load(), Deadlocks: st.deadlocks.Load(),
		Waited: time.Duration(st.waitNanos.Load()), Waiting: st.waiting.Load()}
}
