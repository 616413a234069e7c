package observer

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

const (
	// clearPause is how long cells of handled changes are collected before they are cleared together, unless they are clearMost before.
	// A request for many holds up writers of their rows.
	clearPause = 5 * time.Millisecond
	clearMost  = 128
)

// clearer clears the cells of changes that an observer has handled, beside its workers. What it does not clear, because the process
// ends or a store does not answer, is found by a scan; the acknowledgement then shows that the change was handled.
//
// Its methods are the loop's, except for work, which is a goroutine with one request at a time.
type clearer struct {
	// handled are the cells that are yet to be cleared, by key: waiting, which are no request yet, and those of the request.
	handled map[string]tso.Timestamp
	waiting []kv.NotifyUpTo
	due     time.Time // when waiting becomes a request
	under   bool      // a request is
	request chan []kv.NotifyUpTo
	cleared chan []kv.NotifyUpTo
}

func (c *clearer) init() {
	c.handled = map[string]tso.Timestamp{}
	c.request, c.cleared = make(chan []kv.NotifyUpTo, 1), make(chan []kv.NotifyUpTo, 1)
}

// full reports whether so much is to be cleared that no more should be handled.
func (c *clearer) full() bool { return len(c.handled) >= maxQueued }

// covers reports whether a change was handled in a transaction of this process whose cells are yet to be cleared.
func (c *clearer) covers(cell *kv.NotifyCell) bool {
	upTo, found := c.handled[string(cell.Key)]
	return found && cell.Latest <= upTo
}

// add takes cells to clear.
func (c *clearer) add(cells []kv.NotifyUpTo, now time.Time) {
	if len(cells) == 0 {
		return
	}
	if len(c.waiting) == 0 {
		c.due = now.Add(clearPause)
	}
	c.waiting = append(c.waiting, cells...)
	for i := range cells {
		key := string(cells[i].Key)
		c.handled[key] = max(c.handled[key], cells[i].UpTo)
	}
}

// start requests what is due.
func (c *clearer) start(now time.Time) {
	if c.under || len(c.waiting) == 0 || len(c.waiting) < clearMost && now.Before(c.due) {
		return
	}
	c.under = true
	c.request <- c.waiting
	c.waiting = nil
}

// nextDue is when start has something to do, if that is before due.
func (c *clearer) nextDue(due time.Time) time.Time {
	if !c.under && len(c.waiting) > 0 && c.due.Before(due) {
		return c.due
	}
	return due
}

// finish takes note of a request that has ended.
func (c *clearer) finish(cells []kv.NotifyUpTo) {
	c.under = false
	for i := range cells {
		if key := string(cells[i].Key); c.handled[key] <= cells[i].UpTo {
			delete(c.handled, key)
		}
	}
}

// close clears what is left, and ends work.
func (c *clearer) close() {
	if c.under {
		c.finish(<-c.cleared)
	}
	c.start(c.due)
	close(c.request)
}

// work clears cells until request is closed.
func (c *clearer) work(ctx context.Context, cells *percolator.Notifications, observer uint64, log *slog.Logger) {
	for all := range c.request {
		for some := range slices.Chunk(ascending(all), clearMost) {
			if _, err := cells.Clear(ctx, observer, some); err != nil {
				log.Debug("notify cells of handled changes stay", "observer", observer, "err", err)
				break
			}
		}
		c.cleared <- all
	}
}

// ascending returns cells by key, each key once, with the newest timestamp.
func ascending(cells []kv.NotifyUpTo) []kv.NotifyUpTo {
	sorted := slices.SortedFunc(slices.Values(cells), func(a, b kv.NotifyUpTo) int { return bytes.Compare(a.Key, b.Key) })
	n := 0
	for i := range sorted {
		if n > 0 && bytes.Equal(sorted[n-1].Key, sorted[i].Key) {
			sorted[n-1].UpTo = max(sorted[n-1].UpTo, sorted[i].UpTo)
			continue
		}
		sorted[n] = sorted[i]
		n++
	}
	return sorted[:n]
}
