package bigtable

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/tso"
)

// Hints tell a transaction that waits for a lock of another process when that lock is gone. The lock says whose it is.
//
//	waiter's process                          holder's process
//	acquiring.await, askForHint ──────────▶ ReceiveHint, awaited
//	ReceiveHint, wakeups        ◀────────── released
//
// A waiter polls beside that, and looks at the row after a hint: a hint that is lost costs it the time until it polls, one that is wrong costs it a look.
// Nothing is sent for locks that nobody waits for.

// askEvery is how often a process asks the holder of a lock for a hint, again since the request may have been lost.
const askEvery = 250 * time.Millisecond

// ConnectHints has hints sent to other processes by send, which does not block and may lose them. Until then none are sent.
func (s *Shard) ConnectHints(send func(notify.LockHint)) { s.hintSender.Store(&send) }

// ReceiveHint takes in a hint of another process.
func (s *Shard) ReceiveHint(h notify.LockHint) {
	if h.Released {
		s.c.metrics.hintsReceived.Inc()
		s.wakeup.wake(h.Key)
		return
	}
	s.awaited.add(h.Key, h.Holder, h.Process)
	if s.memo.get(h.Holder, h.Key) == nil { // The lock is gone. If it goes after this look, released finds who waits.
		s.sendReleased(h.Key, h.Holder)
	}
}

// askForHint asks the process of the lock that is in the way for a hint, if that is another process and has not been asked lately.
func (a *acquiring) askForHint(key []byte, lock *mvcc.Lock) {
	send := a.s.hintSender.Load()
	if send == nil || lock.Process == 0 || lock.Process == a.req.Process || !a.s.wakeup.mayAsk(key, lock.StartTS) {
		return
	}
	(*send)(notify.LockHint{Process: lock.Process, Holder: lock.StartTS, Key: bytes.Clone(key)})
}

// released wakes those who wait for a lock that this process has removed.
func (s *Shard) released(key []byte, startTS tso.Timestamp) {
	s.wakeup.wake(key)
	s.sendReleased(key, startTS)
}

// sendReleased sends a hint to the processes that wait for a lock.
func (s *Shard) sendReleased(key []byte, startTS tso.Timestamp) {
	processes := s.awaited.take(key, startTS)
	send := s.hintSender.Load()
	if len(processes) == 0 || send == nil {
		return
	}
	key = bytes.Clone(key)
	for _, process := range processes {
		s.c.metrics.hintsSent.Inc()
		(*send)(notify.LockHint{Process: process, Holder: startTS, Key: key, Released: true})
	}
}

// Bounds of awaited. Beyond them waiters are left to their polls.
const (
	maxAwaited     = 4096 // locks
	maxAwaitedBy   = 64   // processes that wait for one
	awaitedFor     = 20 * askEvery
	awaitedSweeper = time.Second // least interval of looking for locks that were not asked about for awaitedFor
)

// awaited are the locks of this process that transactions of other processes wait for.
type awaited struct {
	count atomic.Int64 // of locks: the end of a transaction takes no mutex if there are none
	gauge prometheus.Gauge

	mu    sync.Mutex
	locks map[memoKey]*awaitedLock
	swept time.Time
}

type awaitedLock struct {
	by    []uint64
	asked time.Time
}

// add notes that a process waits for a lock.
func (a *awaited) add(key []byte, holder tso.Timestamp, process uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Sub(a.swept) > awaitedSweeper {
		a.sweepLocked(now)
	}
	k := memoKey{holder, string(key)}
	l := a.locks[k]
	if l == nil {
		if len(a.locks) >= maxAwaited {
			return
		}
		if a.locks == nil {
			a.locks = map[memoKey]*awaitedLock{}
		}
		l = &awaitedLock{}
		a.locks[k] = l
	}
	l.asked = now
	if len(l.by) < maxAwaitedBy && !slices.Contains(l.by, process) {
		l.by = append(l.by, process)
	}
	a.countLocked()
}

// sweepLocked forgets the locks about which nobody asks any more.
func (a *awaited) sweepLocked(now time.Time) {
	a.swept = now
	for k, l := range a.locks {
		if now.Sub(l.asked) > awaitedFor {
			delete(a.locks, k)
		}
	}
	a.countLocked()
}

func (a *awaited) countLocked() {
	a.count.Store(int64(len(a.locks)))
	a.gauge.Set(float64(len(a.locks)))
}

// take returns the processes that wait for a lock, and forgets them.
func (a *awaited) take(key []byte, holder tso.Timestamp) []uint64 {
	if a.count.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := memoKey{holder, string(key)}
	l := a.locks[k]
	if l == nil {
		return nil
	}
	delete(a.locks, k)
	a.countLocked()
	return l.by
}

// wakeups are the transactions of this process that wait for locks, by key: they are woken when this process removes a lock on the key, and by hints.
type wakeups struct {
	mu   sync.Mutex
	keys map[string]*keyWaiters
}

type keyWaiters struct {
	waiting []tso.Timestamp // in order of arrival
	woken   chan struct{}   // closed when a lock on the key has been removed
	// asked is the transaction about whose lock another process was asked for a hint, and when.
	asked   tso.Timestamp
	askedAt time.Time
}

// arrive registers that a transaction waits for key, until leave is called.
func (w *wakeups) arrive(key []byte, startTS tso.Timestamp) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[string]*keyWaiters{}
	}
	k := w.keys[string(key)]
	if k == nil {
		k = &keyWaiters{woken: make(chan struct{})}
		w.keys[string(key)] = k
	}
	k.waiting = append(k.waiting, startTS)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		at := slices.Index(k.waiting, startTS)
		if k.waiting = slices.Delete(k.waiting, at, at+1); len(k.waiting) == 0 {
			delete(w.keys, string(key))
		}
	}
}

// waitersFor returns the transactions of this process that wait for key.
func (w *wakeups) waitersFor(key []byte) []tso.Timestamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[string(key)]; k != nil {
		return slices.Clone(k.waiting)
	}
	return nil
}

// on returns a channel that is closed when a lock on key is removed. The caller has arrived.
func (w *wakeups) on(key []byte) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[string(key)].woken
}

func (w *wakeups) wake(key []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.keys[string(key)]; k != nil {
		close(k.woken)
		k.woken = make(chan struct{})
	}
}

// mayAsk reports whether the holder of a lock on key is to be asked for a hint now. The caller has arrived.
func (w *wakeups) mayAsk(key []byte, holder tso.Timestamp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keys[string(key)]
	now := time.Now()
	if k.asked == holder && now.Sub(k.askedAt) < askEvery {
		return false
	}
	k.asked, k.askedAt = holder, now
	return true
}
