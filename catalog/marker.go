package catalog

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// marker blocks the writers of a relation for Owner until a timestamp. It has no effect afterwards, so a crashed owner
// blocks them only for a short time; the owner's own commits are bounded by that timestamp too, so an owner that was
// suspended does no harm.
type marker struct {
	Owner string
	Until tso.Timestamp
	Txn   tso.Timestamp `json:",omitempty"` // Change.id, by which deadlocks are found
}

// markerLife is how long a marker is valid without renewal.
const markerLife = 10 * time.Second

// markers are those of one schema change. close and open are called by its goroutine; renewal runs concurrently.
type markers struct {
	catalog *Catalog
	owner   string
	txn     tso.Timestamp // the change's id
	limit   time.Duration // of waits for other changes, 0 for none
	ids     []uint64
	// committed is the commit_ts of the marker set last.
	committed tso.Timestamp
	cancel    context.CancelFunc
	done      chan struct{}
	mu        struct {
		sync.Mutex
		until map[uint64]tso.Timestamp
	}
}

func newMarkers(c *Catalog) *markers {
	m := &markers{catalog: c, owner: rand.Text()}
	m.mu.until = map[uint64]tso.Timestamp{}
	return m
}

// end is the timestamp up to which all markers hold, 0 when there is none.
func (m *markers) end() tso.Timestamp {
	m.mu.Lock()
	defer m.mu.Unlock()
	var end tso.Timestamp
	for _, until := range m.mu.until {
		if end == 0 || until < end {
			end = until
		}
	}
	return end
}

// close sets the marker of a relation, waiting for that of another change to go, and then until every
// process must have seen it.
func (m *markers) close(ctx context.Context, t *TableDescriptor) error {
	if !slices.Contains(m.ids, t.ID) { // a close that failed may be tried again
		m.ids = append(m.ids, t.ID)
	}
	if err := m.set(ctx, t); err != nil {
		return err
	}
	if m.cancel == nil {
		var renewCtx context.Context
		renewCtx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
		m.done = make(chan struct{})
		go m.renew(renewCtx)
	}
	return m.awaitMembers(ctx)
}

// set sets the marker of a relation when no other change has one there.
func (m *markers) set(ctx context.Context, t *TableDescriptor) error {
	var holder atomic.Uint64
	w := m.catalog.watch(ctx, waiter{id: m.txn, limit: m.limit}, t.Name, func() []tso.Timestamp { return known(tso.Timestamp(holder.Load())) })
	defer w.stop()
	for {
		at, other, err := m.put(ctx, t.ID, false)
		if err != nil {
			return err
		}
		if at != 0 {
			m.committed = at
			return nil
		}
		holder.Store(uint64(other.Txn))
		if err := w.until(ctx, nil, m.catalog.opts.PollInterval); err != nil {
			return err
		}
	}
}

// memberPause is the interval between two checks of the members' acknowledgements: first and longest.
const (
	memberPause    = time.Millisecond
	memberPauseMax = 25 * time.Millisecond
)

// awaitMembers returns when no process can commit any more without having seen the marker: all members have acknowledged
// it, or the leases of the others have expired. Those are struck out, so that the next change does not wait for them
// too.
func (m *markers) awaitMembers(ctx context.Context) error {
	for wait := memberPause; ; wait = min(2*wait, memberPauseMax) {
		// Other processes read at their own intervals, this process now.
		if _, err := m.catalog.lease.look(ctx, time.Now()); err != nil {
			return err
		}
		members, err := m.census(ctx)
		if err != nil {
			return err
		}
		if members.waiting == 0 {
			if len(members.overdue) == 0 {
				return nil
			}
			if err := m.catalog.strike(ctx, members.overdue, m.committed); err != nil && ctx.Err() == nil {
				m.catalog.opts.Logger.Warn("silent members of the schema not struck out", "err", err)
			}
			return ctx.Err()
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// census takes the members as of now.
func (m *markers) census(ctx context.Context) (census, error) {
	txn, err := m.catalog.db.Begin(ctx)
	if err != nil {
		return census{}, err
	}
	defer txn.Close()
	return m.catalog.census(ctx, txn, m.committed)
}

// put writes a relation's marker for another markerLife. Without renew it replaces a marker that has expired; with
// renew, it must find its own marker valid, and commits while it is valid. It returns the commit_ts, or 0 if nothing was
// written, and the marker that was there.
func (m *markers) put(ctx context.Context, id uint64, renew bool) (at tso.Timestamp, old marker, err error) {
	var next marker
	var set bool
	at, err = m.catalog.retryAt(ctx, func(txn *percolator.Txn) error {
		set = false
		all, err := closing(ctx, txn)
		if err != nil {
			return err
		}
		old = all[id]
		holds := old.Until >= txn.StartTS()
		if renew && (!holds || old.Owner != m.owner) || !renew && holds && old.Owner != m.owner {
			return nil
		}
		if renew {
			txn.SetCommitPermit(until(old.Until))
		}
		set = true
		next = marker{Owner: m.owner, Until: txn.StartTS() + span(markerLife), Txn: m.txn}
		all[id] = next
		return putClosing(txn, all)
	})
	if err != nil || !set {
		return 0, old, percolator.CauseOf(err) // The marker, if it is there, is removed at the end.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.until[id] = next.Until
	return at, old, nil
}

// closing reads the markers, by relation id. All are stored in one key: with a key for each, every look would have to
// skip the deleted ones of earlier changes until garbage collection.
func closing(ctx context.Context, r percolator.Reader) (map[uint64]marker, error) {
	value, err := r.Get(ctx, keyClosing)
	if err != nil {
		return nil, err
	}
	return decodeClosing(value)
}

func decodeClosing(value []byte) (map[uint64]marker, error) {
	all := map[uint64]marker{}
	if value == nil {
		return all, nil
	}
	return all, decode(keyClosing, value, &all)
}

// putClosing writes the markers, but for those that have ended.
func putClosing(txn *percolator.Txn, all map[uint64]marker) error {
	maps.DeleteFunc(all, func(_ uint64, m marker) bool { return m.Until < txn.StartTS() })
	return txn.Put(keyClosing, encode(all))
}

// renew keeps the markers alive until open. A marker that was lost stays lost: the change's commit
// is then bounded by the time it ended.
func (m *markers) renew(ctx context.Context) {
	defer close(m.done)
	for pause(ctx, markerLife/4) == nil {
		m.mu.Lock()
		ids := make([]uint64, 0, len(m.mu.until))
		for id := range m.mu.until {
			ids = append(ids, id)
		}
		m.mu.Unlock()
		for _, id := range ids {
			if _, _, err := m.put(ctx, id, true); err != nil && ctx.Err() == nil {
				m.catalog.opts.Logger.Warn("marker of a schema change not renewed", "relation", id, "err", err)
			}
		}
	}
}

// abandon leaves the markers to end by themselves.
func (m *markers) abandon() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
}

// open removes the markers. A marker that cannot be removed expires.
func (m *markers) open(ctx context.Context) {
	m.abandon()
	if len(m.ids) == 0 {
		return
	}
	err := m.catalog.retry(ctx, func(txn *percolator.Txn) error {
		all, err := closing(ctx, txn)
		if err != nil {
			return err
		}
		maps.DeleteFunc(all, func(_ uint64, other marker) bool { return other.Owner == m.owner })
		return putClosing(txn, all)
	})
	if err != nil {
		m.catalog.opts.Logger.Warn("markers of a schema change not removed", "relations", m.ids, "err", err)
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
