package mvcc

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/tso"
)

// The bounds of what is kept for a watcher that does not keep up. Beyond them it is told to scan.
const (
	maxHints     = 4096
	maxHintBytes = 1 << 20 // of their keys
)

// The first hintBurst hints are passed on at once, each with what comes while its watcher is at work; those of busy writers every hintPause,
// because to wake a watcher costs about as much as a small commit.
const (
	hintPause = 500 * time.Microsecond
	hintBurst = 16
)

// hintPace says when hints may be passed on: the bucket that leaks one each hintPause, and holds hintBurst.
type hintPace struct {
	empty time.Time // when the bucket is
}

// next takes note that hints are to be passed on, and returns how long to wait before.
func (p *hintPace) next(now time.Time) time.Duration {
	if p.empty.Before(now) {
		p.empty = now
	}
	p.empty = p.empty.Add(hintPause)
	return max(0, p.empty.Sub(now)-hintBurst*hintPause)
}

// notifyHints passes hints on to watchers. Commits do not wait for them.
type notifyHints struct {
	watching atomic.Int64 // the number of watchers; without one commits do not make hints
	mu       sync.Mutex
	watchers []*hintWatcher
}

// hintWatcher is one WatchNotify. Its fields are guarded by notifyHints.mu.
type hintWatcher struct {
	hints []NotifyHint
	bytes int
	lost  bool          // hints are missing
	ready chan struct{} // of capacity 1: there is something to take
}

func (w *hintWatcher) add(h NotifyHint) {
	if len(w.hints) >= maxHints || w.bytes+len(h.Key) > maxHintBytes {
		w.lose()
		return
	}
	w.hints = append(w.hints, h)
	w.bytes += len(h.Key)
}

// lose replaces all hints by the one to scan.
func (w *hintWatcher) lose() {
	clear(w.hints)
	w.hints, w.bytes, w.lost = w.hints[:0], 0, true
}

func (w *hintWatcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// take returns what has come since the last call.
func (n *notifyHints) take(w *hintWatcher) (hints []NotifyHint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.lost {
		hints = append(hints, NotifyHint{})
	}
	hints = append(hints, w.hints...)
	clear(w.hints)
	w.hints, w.bytes, w.lost = w.hints[:0], 0, false
	return hints
}

func (n *notifyHints) enter() *hintWatcher {
	w := &hintWatcher{lost: true, ready: make(chan struct{}, 1)}
	w.wake()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watchers = append(n.watchers, w)
	n.watching.Add(1)
	return w
}

func (n *notifyHints) leave(w *hintWatcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watching.Add(-1)
	for i := range n.watchers {
		if n.watchers[i] == w {
			n.watchers = append(n.watchers[:i], n.watchers[i+1:]...)
			return
		}
	}
}

// each changes every watcher and wakes it.
func (n *notifyHints) each(f func(w *hintWatcher)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.watchers {
		f(w)
		w.wake()
	}
}

// WatchNotify calls f with the hints of commits until ctx ends or f fails, and returns that error. The first hint, and one
// in the place of those that did not fit into the bounds, is NotifyHint{}.
func (s *State) WatchNotify(ctx context.Context, f func([]NotifyHint) error) error {
	w := s.hints.enter()
	defer s.hints.leave(w)
	var pace hintPace
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ready:
		}
		if wait := pace.next(time.Now()); wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-timer.C:
			}
		}
		select {
		case <-w.ready: // by hints that came since, and are taken too
		default:
		}
		hints := s.hints.take(w)
		if len(hints) == 0 {
			continue
		}
		if err := f(hints); err != nil {
			return err
		}
	}
}

// hint makes hints of a commit of key.
func (n *notifyHints) hint(key []byte, set *NotifySet, commitTS tso.Timestamp, at time.Time) {
	key = bytes.Clone(key)
	n.each(func(w *hintWatcher) {
		for _, observer := range set.Observers {
			w.add(NotifyHint{Observer: observer, Key: key, CommitTS: commitTS, AtMicros: at.UnixMicro()})
		}
	})
}

// hintKeys makes hints of a NotifyPut.
func (s *State) hintKeys(observer uint64, keys [][]byte, ts tso.Timestamp) {
	if s.hints.watching.Load() == 0 {
		return
	}
	keys = cloneKeys(keys)
	at := time.Now().UnixMicro()
	s.hints.each(func(w *hintWatcher) {
		for _, key := range keys {
			w.add(NotifyHint{Observer: observer, Key: key, CommitTS: ts, AtMicros: at})
		}
	})
}

// hintTime is called before a one-phase commit, and returns the time for hintVersions; zero: nobody wants hints.
func (s *State) hintTime(args *PrewriteRequest) time.Time {
	if len(args.Notify) == 0 || s.hints.watching.Load() == 0 {
		return time.Time{}
	}
	return time.Now()
}

// hintVersions makes hints of a one-phase commit. It is called when others can read the versions without waiting.
func (s *State) hintVersions(args *PrewriteRequest, commitTS tso.Timestamp, at time.Time) {
	if at.IsZero() {
		return
	}
	for i := range args.Mutations {
		if set := args.Mutations[i].notifySet(args.Notify); set != nil {
			s.hints.hint(args.Mutations[i].Key, set, commitTS, at)
		}
	}
}

// hintLocks makes hints of the locks that were committed.
func (s *State) hintLocks(locks []*entry, commitTS tso.Timestamp) {
	if s.hints.watching.Load() == 0 {
		return
	}
	at := time.Now()
	for _, e := range locks {
		if e.lock.Notify != nil {
			s.hints.hint(e.key, e.lock.Notify, commitTS, at)
		}
	}
}

// hintScan tells all watchers to scan.
func (s *State) hintScan() {
	if s.hints.watching.Load() > 0 {
		s.hints.each((*hintWatcher).lose)
	}
}
