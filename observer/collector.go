package observer

import (
	"context"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/session"
)

// Acknowledgements of rows that are gone are collected a page at a time, of one observer after the other: a page every collectPause,
// more often of those of which many are found. A process with many observers spends no more on that.
const (
	collectPage  = 1000
	collectPause = time.Second
	collectBusy  = 50 * time.Millisecond
	// Of collectTurn pages one is of the next observer, however many are found elsewhere.
	collectTurn = 16
)

// collector removes the acknowledgements of rows that are gone.
type collector struct {
	m     *Manager
	from  map[uint64][]byte // where to go on, by observer
	busy  map[uint64]bool   // observers whose last page had many
	pages int
	// The observers of the last page of each kind: of those with many, and of all in turn.
	lastBusy, last uint64
}

// collect is the goroutine of the collector.
func (m *Manager) collect() {
	c := collector{m: m, from: map[uint64][]byte{}, busy: map[uint64]bool{}}
	ctx, cancel := m.untilClosing()
	defer cancel()
	timer := time.NewTimer(collectPause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		c.page(ctx)
		pause := collectPause
		if len(c.busy) > 0 {
			pause = collectBusy
		}
		timer.Reset(pause)
	}
}

// page collects one page.
func (c *collector) page(ctx context.Context) {
	t, ok := c.next()
	if !ok {
		return
	}
	id := t.observer.ID
	o := session.Delivery(c.m.opts.Deps.DB, t.table, t.observer)
	removed, from, err := o.Collect(ctx, c.m.opts.Deps.DB, collectPage, c.from[id])
	switch {
	case err == nil:
		c.from[id] = from
	case ctx.Err() == nil && errkind.Of(err) != errkind.WriteConflict: // which repeats the page
		c.m.log.Warn("collecting acknowledgements of rows that are gone", "observer", t.observer.Name, "err", err)
	}
	if delete(c.busy, id); removed > collectPage/10 {
		c.busy[id] = true
	}
}

// next chooses the observer of the next page: the one after the last, by number.
func (c *collector) next() (t target, ok bool) {
	c.m.mu.Lock()
	all := c.m.mu.observers
	c.m.mu.Unlock()
	known := make(map[uint64]bool, len(all))
	for i := range all {
		known[all[i].observer.ID] = true
	}
	for id := range c.from {
		if !known[id] {
			delete(c.from, id)
			delete(c.busy, id)
		}
	}
	c.pages++
	last, busyOnly := &c.last, len(c.busy) > 0 && c.pages%collectTurn != 0
	if busyOnly {
		last = &c.lastBusy
	}
	for i := range all {
		id := all[i].observer.ID
		if busyOnly && !c.busy[id] {
			continue
		}
		if !ok || before(id, t.observer.ID, *last) {
			t, ok = all[i], true
		}
	}
	if ok {
		*last = t.observer.ID
	}
	return t, ok
}

// before reports whether observer a has its turn before b, after last.
func before(a, b, last uint64) bool {
	if (a > last) != (b > last) {
		return a > last
	}
	return a < b
}
