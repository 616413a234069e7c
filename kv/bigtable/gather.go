package bigtable

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/tso"
)

// gatherer sends what is wanted while requests are under way in one request, when one of them has ended. Nothing is delayed to gather more: without
// load every item is a request of its own.
type gatherer[T any] struct {
	atOnce int // requests
	most   int // items of a request
	// send sends items, and puts the results into them.
	send func(ctx context.Context, items []*T)

	mu      sync.Mutex
	flying  int
	waiting []*gathered[T]
}

// gathered is an item with the one who waits for it.
type gathered[T any] struct {
	item  *T
	done  chan struct{}
	batch *batch // nil: it has not been sent
}

// batch is a request for several; it is cancelled when none of them waits any more.
type batch struct {
	waiters int
	cancel  func()
}

// do returns when the item has its result, or with ctx's error.
func (g *gatherer[T]) do(ctx context.Context, item *T) error {
	g.mu.Lock()
	if g.flying < g.atOnce {
		g.flying++
		g.mu.Unlock()
		defer g.next()
		g.send(ctx, []*T{item})
		return nil
	}
	w := &gathered[T]{item: item, done: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		g.leave(w)
		return ctx.Err()
	}
}

// leave is called by one who does not wait any more.
func (g *gatherer[T]) leave(w *gathered[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.batch == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(other *gathered[T]) bool { return other == w })
		return
	}
	if w.batch.waiters--; w.batch.waiters == 0 {
		w.batch.cancel()
	}
}

// next is called at the end of a request.
func (g *gatherer[T]) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.flying--
		return
	}
	n := min(len(g.waiting), g.most)
	some := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{waiters: n, cancel: cancel}
	items := make([]*T, n)
	for i, w := range some {
		w.batch, items[i] = b, w.item
	}
	go func() {
		defer g.next()
		defer cancel()
		g.send(ctx, items)
		for _, w := range some {
			close(w.done)
		}
	}()
}

// The bounds of gathering. A request that waits for one of readsAtOnce others is delayed by a fraction of a request's time.
const (
	readsAtOnce    = 4
	mostGathered   = 128
	bulksAtOnce    = 2
	mostBulkWrites = 256
)

// pointRead is the read of a row at a snapshot.
type pointRead struct {
	key    []byte
	ts     tso.Timestamp
	record *record
	shared bool // another read has the same record
	err    error
}

// readPoint reads a row as of a snapshot.
func (s *Shard) readPoint(ctx context.Context, key []byte, ts tso.Timestamp) (*pointRead, error) {
	p := &pointRead{key: bytes.Clone(key), ts: ts} // A request that is shared lasts longer than a caller that leaves.
	if err := s.reads.do(ctx, p); err != nil {
		return nil, err
	}
	if p.err == nil && p.record != nil && len(p.record.versions) > 0 && p.record.versions[0].commitTS > ts {
		p.shared = false
		p.record, p.err = s.readKey(ctx, key, visibleAt(ts, true))
	}
	return p, p.err
}

// readPoints reads rows, each at a snapshot of its own, in one request. It asks for the newest versions at or below the newest of the snapshots. Such
// a version, if it is at or below an older snapshot, is the newest of that one too; if it is above, readPoint reads the row again. The fences asked
// for are those of the oldest snapshot, and locks are all returned.
func (s *Shard) readPoints(ctx context.Context, reads []*pointRead) {
	if len(reads) == 1 {
		p := reads[0]
		p.record, p.err = s.readKey(ctx, p.key, visibleAt(p.ts, true))
		return
	}
	s.c.metrics.readsGathered.Add(float64(len(reads)))
	slices.SortFunc(reads, func(a, b *pointRead) int { return bytes.Compare(a.key, b.key) })
	oldest, newest := reads[0].ts, reads[0].ts
	var keys [][]byte
	for i, p := range reads {
		oldest, newest = min(oldest, p.ts), max(newest, p.ts)
		if i == 0 || !bytes.Equal(p.key, reads[i-1].key) {
			keys = append(keys, p.key)
		}
	}
	records, err := s.readKeys(ctx, keys, visibleBetween(oldest, newest, true))
	at := -1
	for i, p := range reads {
		if i == 0 || !bytes.Equal(p.key, reads[i-1].key) {
			at++
		} else {
			p.shared = true
		}
		if p.err = err; err == nil {
			p.record = records[at]
		}
	}
}

// bulkWrite is unconditional changes of rows.
type bulkWrite struct {
	rows    []string
	changes []*widerow.Mutation
	err     error
}

// bulk makes unconditional changes behind a client's back.
func (s *Shard) bulk(ctx context.Context, rows []string, changes []*widerow.Mutation) error {
	w := &bulkWrite{rows: rows, changes: changes}
	if err := s.writes.do(ctx, w); err != nil {
		return err
	}
	return w.err
}

// writeBulks sends several in one request. They are of different transactions, so that it does not matter in which order they are made.
func (c *Client) writeBulks(ctx context.Context, writes []*bulkWrite) {
	if len(writes) == 1 {
		writes[0].err = c.bulk(ctx, writes[0].rows, writes[0].changes)
		return
	}
	c.metrics.writesGathered.Add(float64(len(writes)))
	var rows []string
	var changes []*widerow.Mutation
	for _, w := range writes {
		rows, changes = append(rows, w.rows...), append(changes, w.changes...)
	}
	c.metrics.load.write(len(rows))
	r := c.beginWrite(ctx)
	errs, err := c.table.Mutate(r.ctx, rows, changes)
	for _, w := range writes {
		w.err = err
		if errs != nil {
			w.err = errors.Join(err, errors.Join(errs[:len(w.rows)]...))
			errs = errs[len(w.rows):]
		}
		w.err = r.result(w.err)
	}
	r.end()
}
