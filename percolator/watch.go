package percolator

import (
	"context"
	"sync"
	"time"

	"github.com/percodb/percodb/kv"
)

// watchRefresh is how often Watch looks for shards that have got their first range.
const watchRefresh = 5 * time.Second

// Watch calls f with hints of the commits on all shards until ctx ends, and returns why it did. f is called by one
// goroutine at a time, must not block, and may keep the hints. The hint NotifyHint{} asks for a scan of all observers'
// cells: hints may have been lost, since a stream has begun or was interrupted. Hints may also be repeated and late, and
// lost without notice; only a scan finds every cell.
func (n *Notifications) Watch(ctx context.Context, f func(hints []kv.NotifyHint)) error {
	w := watcher{db: n.db, f: f, streams: map[string]struct{}{}}
	defer w.wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		w.refresh(ctx)
		if err := sleep(ctx, watchRefresh); err != nil {
			return context.Cause(ctx)
		}
	}
}

// watcher is one Watch: a stream from each shard.
type watcher struct {
	db *DB
	wg sync.WaitGroup
	f  func(hints []kv.NotifyHint)

	mu      sync.Mutex // held while f runs
	streams map[string]struct{}
}

// refresh begins streams from the shards that have ranges and no stream yet. If the directory does not answer, the
// shards known are watched as before.
func (w *watcher) refresh(ctx context.Context) {
	descs, err := w.db.router.Ranges(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.db.opts.Logger.Warn("listing the shards that send hints", "err", err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range descs {
		name, key := descs[i].Shard, descs[i].Span.Start
		if _, running := w.streams[name]; running {
			continue
		}
		w.streams[name] = struct{}{}
		w.wg.Go(func() { w.stream(ctx, name, key) })
	}
}

// stream passes on a shard's hints, and connects again after a failure, until the shard no longer has the range of a key:
// it may have others, and refresh begins a new stream then.
func (w *watcher) stream(ctx context.Context, name string, key []byte) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.streams, name)
	}()
	bounds := backoffBounds[backoffRPC]
	pause := bounds.first
	for {
		desc, shard, err := w.db.router.Locate(ctx, key)
		if err == nil {
			if desc.Shard != name {
				return
			}
			err = shard.WatchNotify(ctx, func(hints []kv.NotifyHint) error {
				pause = bounds.first
				w.deliver(hints)
				return nil
			})
			w.db.forgetRoute(err, desc.Ref())
		}
		if sleep(ctx, pause/2+w.db.opts.Jitter(pause/2+1)) != nil {
			return
		}
		w.deliver([]kv.NotifyHint{{}}) // Until there is a stream, only scans find anything.
		pause = min(2*pause, bounds.most)
	}
}

func (w *watcher) deliver(hints []kv.NotifyHint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f(hints)
}
