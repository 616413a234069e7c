package observer

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/session"
)

const (
	// maxQueued bounds the keys of an observer that are queued, delayed or worked on, and the hints that wait to be queued.
	maxQueued = 4096
	// scanPage is the number of cells that a scan reads at once.
	scanPage = 256
	// A sweep over all cells that has found none is repeated after a pause, which grows from scanPauseMin to scanPauseMax.
	scanPauseMin = 10 * time.Millisecond
	scanPauseMax = time.Second
	// A sweep may pass many cells that were cleared and are not compacted yet. If it takes long it is repeated after scanShare times
	// that, up to scanPauseSlow.
	scanShare     = 100
	scanPauseSlow = 5 * time.Second
	// asideLook is how often rows are looked for that another process has set aside.
	asideLook = 10 * time.Second
	// A scan that meets another process skips a random number of pages below 2, 4 … 2^maxJumps.
	maxJumps = 6
	// gatherMax is how long keys wait to become a batch while a transaction is under way.
	gatherMax = 20 * time.Millisecond
	// lockedLook is how soon a scan looks for keys that others had locked: if these fail, nobody sends a hint.
	lockedLook = 100 * time.Millisecond
	// lockingRuns is the number of transactions, after one has met another, that lock before they act.
	lockingRuns = 256
	// endGrace is how long transactions may go on when their observer is disabled, dropped, or gets another body. Their changes stay
	// pending if they do not finish.
	endGrace = time.Second
)

// runner runs the body of one observer, in one generation of it.
type runner struct {
	m          *Manager
	id         uint64
	table      uint64
	database   *catalog.Catalog
	generation uint64
	stats      *stats
	stop       chan struct{}
	ctx        context.Context // of the workers; canceled when they have ended, or endGrace after stop
	cancel     context.CancelFunc
	wake       chan struct{} // of capacity 1: shared has changed

	// shared is what other goroutines tell the loop.
	shared struct {
		sync.Mutex
		target target
		hints  []change
		scan   bool // look for cells now: hints may have been lost
	}

	// The rest is the loop's.
	target  target
	items   map[string]*item
	ready   []*item
	delayed delayedItems
	running int
	locking int // how many of the next transactions lock before they act
	idle    []*worker
	workers sync.WaitGroup
	results chan result
	scan    scanner
	clear   clearer
	// gathering is until when keys wait to become a batch; zero: they do not.
	gathering time.Time
	// aside: rows of the observer are set aside, as of the last look; asideDue is when to look again, asideFrom at which key.
	aside     bool
	asideFrom []byte
	asideDue  time.Time
}

// change is a notify cell, and when its change was committed, in microseconds since the Unix epoch; 0: there was no hint that says so.
type change struct {
	kv.NotifyCell
	atMicros int64
}

// item is a key with changes that are not handled.
type item struct {
	cell    change
	working bool
	scanned bool    // there was no hint of it in this process
	again   *change // a newer change that was found while the key was worked on
	alone   bool    // not to be handled together with others
	// attempts failed; tries were given up for a reason that goes by.
	attempts, tries int
	due             time.Time
}

// delayedItems is a heap by due.
type delayedItems []*item

func (d delayedItems) Len() int           { return len(d) }
func (d delayedItems) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d delayedItems) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *delayedItems) Push(x any)        { *d = append(*d, x.(*item)) }
func (d *delayedItems) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return it
}

// scanner walks over the cells: from some key to the end, then from the beginning to the end, and so on.
type scanner struct {
	from    []byte // where the next page begins
	reading bool   // a page is being read
	found   bool   // the sweep has found cells that were not queued
	skip    int    // pages to skip
	jumps   int    // how often it has skipped pages, one after the other
	pause   time.Duration
	due     time.Time
	pages   chan page
}

// page is the result of a scan.
type page struct {
	cells  []kv.NotifyCell
	next   []byte
	looked bool // for rows that are set aside
	aside  asideLookup
	took   time.Duration
	err    error
}

func newRunner(m *Manager, t target) *runner {
	r := &runner{
		m: m, id: t.observer.ID, table: t.table.ID, database: t.database, generation: t.observer.Generation, stats: m.metrics.of(t), stop: make(chan struct{}), wake: make(chan struct{}, 1),
		target: t, items: map[string]*item{}, results: make(chan result, catalog.MaxObserverConcurrency),
	}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	r.shared.target = t
	r.scan = scanner{pause: scanPauseMin, pages: make(chan page, 1)}
	r.clear.init()
	return r
}

// end makes the loop end when its transactions have.
func (r *runner) end() { close(r.stop) }

// inform tells the loop of a new version of the observer.
func (r *runner) inform(t target) {
	r.shared.Lock()
	r.shared.target = t
	r.shared.Unlock()
	r.signal()
}

// hint tells the loop of a change.
func (r *runner) hint(c change) {
	r.shared.Lock()
	if len(r.shared.hints) < maxQueued {
		r.shared.hints = append(r.shared.hints, c)
	} else {
		r.shared.scan = true
	}
	r.shared.Unlock()
	r.signal()
}

// scanSoon makes the loop look for cells.
func (r *runner) scanSoon() {
	r.shared.Lock()
	r.shared.scan = true
	r.shared.Unlock()
	r.signal()
}

func (r *runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop is the runner's goroutine.
func (r *runner) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer r.close()
	r.workers.Go(func() { r.clear.work(r.m.ctx, r.m.opts.Deps.DB.Observers(), r.id, r.m.log) })
	for {
		now := time.Now()
		r.startScan(now)
		r.clear.start(now)
		r.dispatch(now)
		timer.Reset(max(0, time.Until(r.nextDue(now))))
		select {
		case <-timer.C:
		case <-r.wake:
			r.takeShared()
		case p := <-r.scan.pages:
			r.takePage(p)
		case res := <-r.results:
			r.finish(res)
		case done := <-r.clear.cleared:
			r.clear.finish(done)
		case <-r.stop:
			return
		case <-r.m.closing:
			return
		}
	}
}

// close waits until all goroutines have ended. What has been handled is cleared.
func (r *runner) close() {
	defer r.cancel()
	select {
	case <-r.m.closing: // The manager decides how long they have (Manager.Release, Manager.Close).
	default:
		defer time.AfterFunc(endGrace, r.cancel).Stop()
	}
	for ; r.running > 0; r.running-- {
		res := <-r.results
		r.idle = append(r.idle, res.worker)
		r.clear.add(res.h.Done, time.Now())
	}
	if r.scan.reading {
		<-r.scan.pages
	}
	for _, w := range r.idle {
		close(w.jobs)
	}
	r.clear.close()
	r.workers.Wait()
	r.m.metrics.forget(r.stats)
}

// nextDue is when something is to be done if nothing happens.
func (r *runner) nextDue(now time.Time) time.Time {
	due := now.Add(scanPauseSlow)
	if !r.scan.reading && r.scan.due.Before(due) {
		if due = r.scan.due; r.full() {
			due = now.Add(scanPauseMin)
		}
	}
	if len(r.delayed) > 0 && r.delayed[0].due.Before(due) {
		due = r.delayed[0].due
	}
	if !r.gathering.IsZero() && r.gathering.Before(due) {
		due = r.gathering
	}
	return r.clear.nextDue(due)
}

// full reports whether the queue takes no more cells of scans: it has enough for the workers, and leaves the others to other
// processes. Keys that wait for another attempt do not count, as long as they are few.
func (r *runner) full() bool {
	o := r.target.observer
	return len(r.items)-len(r.delayed) > max(2*o.Concurrency*o.Batch, scanPage/2) || len(r.items) > maxQueued-scanPage
}

// takeShared takes what others have told.
func (r *runner) takeShared() {
	r.shared.Lock()
	hints, scan := r.shared.hints, r.shared.scan
	r.target = r.shared.target
	r.shared.hints, r.shared.scan = nil, false
	r.shared.Unlock()
	for i := range hints {
		if len(r.items) >= maxQueued {
			scan = true
			break
		}
		r.add(hints[i], false)
	}
	if scan {
		r.scan.due, r.scan.pause = time.Time{}, scanPauseMin
	}
}

// add queues a cell, unless its key is queued, or the cell is handled and yet to be cleared, and reports whether it has. scanned: a scan has
// found it.
func (r *runner) add(c change, scanned bool) (added bool) {
	it, queued := r.items[string(c.Key)]
	switch {
	case !queued && r.clear.covers(&c.NotifyCell):
		return false
	case !queued:
		it = &item{cell: c, scanned: scanned}
		r.items[string(c.Key)] = it
		r.ready = append(r.ready, it)
	case c.Latest == it.cell.Latest:
		it.cell.atMicros = max(it.cell.atMicros, c.atMicros)
	case c.Latest < it.cell.Latest:
	case it.working:
		if it.again == nil || c.Latest > it.again.Latest {
			it.again = &c
		}
	default:
		it.cell.Latest, it.cell.Hop, it.cell.atMicros = c.Latest, max(c.Hop, it.cell.Hop), c.atMicros
	}
	return !queued
}

// startScan reads the next page if it is time to.
func (r *runner) startScan(now time.Time) {
	if r.scan.reading || r.full() || now.Before(r.scan.due) {
		return
	}
	r.scan.reading = true
	o, from, pages := session.Delivery(r.m.opts.Deps.DB, r.target.table, r.target.observer), r.scan.from, r.scan.pages
	p, t, asideFrom := page{looked: !now.Before(r.asideDue)}, r.target, r.asideFrom
	go func() {
		defer func() {
			p.took = time.Since(now)
			pages <- p
		}()
		if p.cells, p.next, p.err = o.Pending(r.m.ctx, scanPage, from); p.err == nil && p.looked {
			p.aside, p.err = r.lookAside(r.m.ctx, t, asideFrom)
		}
	}()
}

// takePage queues the cells of a page, and plans the next one.
func (r *runner) takePage(p page) {
	s := &r.scan
	s.reading = false
	if p.err != nil {
		s.due = time.Now().Add(scanPauseMax)
		return
	}
	if p.looked {
		r.aside, r.asideFrom, r.asideDue = p.aside.any, p.aside.next, time.Now().Add(asideLook)
	}
	if s.skip > 0 {
		s.found = s.found || len(p.cells) > 0
		p.cells = nil
		s.skip--
	}
	// Several processes that read the same page begin at different places in it.
	for i, turn := 0, rand.IntN(max(len(p.cells), 1)); i < len(p.cells); i++ {
		if r.add(change{NotifyCell: p.cells[(i+turn)%len(p.cells)]}, true) {
			s.found = true
		}
	}
	if s.from = p.next; p.next != nil {
		s.due = time.Time{}
		return
	}
	s.skip = 0
	if s.found {
		s.pause = scanPauseMin
	} else {
		s.pause = max(min(2*s.pause, scanPauseMax), min(scanShare*p.took, scanPauseSlow))
	}
	s.found = false
	s.due = time.Now().Add(s.pause)
}

// teleport continues the scan at a random place behind: another process is at work here.
func (r *runner) teleport() {
	s := &r.scan
	s.jumps = min(s.jumps+1, maxJumps)
	s.skip, s.due, s.found = rand.IntN(1<<s.jumps), time.Time{}, true
	r.ready = slices.DeleteFunc(r.ready, func(it *item) bool {
		forget := it.scanned && it.attempts == 0 && !it.alone
		if forget {
			delete(r.items, string(it.cell.Key))
		}
		return forget
	})
}

// dispatch gives items to workers.
func (r *runner) dispatch(now time.Time) {
	for len(r.delayed) > 0 && !r.delayed[0].due.After(now) {
		r.ready = append(r.ready, heap.Pop(&r.delayed).(*item))
	}
	for len(r.ready) > 0 && r.running < r.target.observer.Concurrency && !r.clear.full() && !r.gathers(now) {
		some := r.takeBatch()
		for _, it := range some {
			it.working = true
		}
		r.running++
		j := job{items: some, observer: r.target.observer, opts: session.HandleOptions{RemoveRecords: r.aside, Lock: r.locking > 0}}
		r.locking = max(0, r.locking-1)
		r.idleWorker().jobs <- j
	}
	if len(r.ready) == 0 || r.running >= r.target.observer.Concurrency || r.clear.full() {
		r.gathering = time.Time{}
	}
}

// idleWorker takes a worker, a new one if all are at work.
func (r *runner) idleWorker() (w *worker) {
	if n := len(r.idle); n > 0 {
		w, r.idle = r.idle[n-1], r.idle[:n-1]
		return w
	}
	w = &worker{jobs: make(chan job, 1)}
	r.workers.Go(func() { r.work(w) })
	return w
}

// gathers reports whether the queue waits to become a batch: as long as a transaction is under way, others of an observer that takes
// batches begin with whole ones, or after gatherMax. They would change the same rows, one after the other.
func (r *runner) gathers(now time.Time) bool {
	if r.running == 0 || len(r.ready) >= r.target.observer.Batch || r.ready[0].alone {
		r.gathering = time.Time{}
		return false
	}
	if r.gathering.IsZero() {
		r.gathering = now.Add(gatherMax)
	}
	if now.Before(r.gathering) {
		return true
	}
	r.gathering = time.Time{}
	return false
}

// takeBatch takes the next items off the queue, ascending by key.
func (r *runner) takeBatch() []*item {
	n := 1
	for n < len(r.ready) && n < r.target.observer.Batch && !r.ready[0].alone && !r.ready[n].alone {
		n++
	}
	some := slices.Clone(r.ready[:n])
	clear(r.ready[:n])
	if r.ready = r.ready[n:]; len(r.ready) == 0 {
		r.ready = nil
	}
	slices.SortFunc(some, func(a, b *item) int { return bytes.Compare(a.cell.Key, b.cell.Key) })
	return some
}

// worker is a goroutine with a session. It stays for the next job: a new goroutine's stack would have to grow first.
type worker struct {
	jobs    chan job
	session *session.Observing // nil: it could not be made yet
}

// job is what a worker does in one transaction.
type job struct {
	items    []*item
	observer *catalog.ObserverDescriptor
	opts     session.HandleOptions
}

// result is what a worker reports.
type result struct {
	worker *worker
	items  []*item
	h      session.Handling
	ended  time.Time
	err    error // the cells are as they were
	aside  bool  // the only item was set aside
}

// work is a worker's goroutine. It ends when jobs is closed.
func (r *runner) work(w *worker) {
	for j := range w.jobs {
		res := result{worker: w, items: j.items}
		r.handle(&j, &res)
		res.ended = time.Now()
		r.results <- res
	}
	if w.session != nil {
		w.session.Close()
	}
}

// handle handles items in one transaction, or sets the only one aside.
func (r *runner) handle(j *job, res *result) {
	w := res.worker
	if w.session == nil {
		deps := r.m.opts.Deps
		deps.Catalog = r.database
		if w.session, res.err = session.NewObserving(r.ctx, deps, r.table, r.id); res.err != nil {
			return
		}
	}
	cells := make([]kv.NotifyCell, len(j.items))
	for i, it := range j.items {
		cells[i] = it.cell.NotifyCell
	}
	res.h, res.err = w.session.Handle(r.ctx, cells, j.opts)
	if res.err == nil {
		return
	}
	res.h = session.Handling{}
	if len(j.items) > 1 || session.Transient(res.err) {
		return
	}
	var hop *session.HopError
	if attempts := j.items[0].attempts + 1; attempts >= j.observer.MaxAttempts || errors.As(res.err, &hop) {
		cause := res.err
		h, err := w.session.SetAside(r.ctx, cells[0], attempts, cause)
		if err == nil {
			res.h, res.err, res.aside = h, nil, len(h.Changes) > 0
		}
		if res.aside {
			r.m.log.Warn("an observer cannot handle a change; it is in percodb.observer_errors", "observer", j.observer.Name, "err", cause)
		}
	}
}

// Between attempts of a key.
const (
	retryMin  = time.Millisecond
	failMin   = 10 * time.Millisecond
	retryMax  = time.Second
	laterPoll = 2 * time.Millisecond
)

// pause is the wait before another attempt, after n.
func pause(least time.Duration, n int) time.Duration {
	d := min(least<<min(n, 20), retryMax)
	return d/2 + rand.N(d/2+1)
}

// finish deals with a worker's result.
func (r *runner) finish(res result) {
	r.running--
	r.idle = append(r.idle, res.worker)
	now := time.Now()
	r.clear.add(res.h.Done, now)
	switch {
	case res.err == nil:
		r.finishHandled(&res, now)
	case errors.Is(res.err, session.ErrNoObserver), r.ctx.Err() != nil:
		for _, it := range res.items {
			delete(r.items, string(it.cell.Key))
		}
		r.scan.due = now.Add(scanPauseMin)
	case session.Transient(res.err):
		r.locking = lockingRuns
		r.stats.conflict(len(res.items))
		for _, it := range res.items {
			it.tries++
			r.delay(it, now.Add(pause(retryMin, it.tries)))
		}
	case len(res.items) > 1:
		// One of them may be at fault.
		r.stats.retry(len(res.items))
		for _, it := range res.items {
			it.alone = true
			r.delay(it, now)
		}
	default:
		it := res.items[0]
		it.attempts++
		it.alone = true
		r.stats.retry(1)
		r.delay(it, now.Add(pause(failMin, it.attempts)))
	}
}

// finishHandled deals with the result of a transaction that has committed.
func (r *runner) finishHandled(res *result, now time.Time) {
	if res.aside {
		r.aside = true
		r.stats.failed()
	} else if len(res.h.Changes) > 0 {
		r.stats.ran(committed(res.items, res.h.Changes), res.ended)
	}
	changes := res.h.Changes
	for _, it := range res.items {
		for len(changes) > 0 && bytes.Compare(changes[0].Key, it.cell.Key) < 0 {
			changes = changes[1:]
		}
		handled := len(changes) > 0 && bytes.Equal(changes[0].Key, it.cell.Key) || res.h.Locked+res.h.Later == 0
		switch {
		case it.again != nil:
			it.cell, it.again = *it.again, nil
			it.attempts, it.tries, it.alone = 0, 0, false
			r.delay(it, now)
		case handled || res.h.Locked > 0: // A scan finds what others have not handled after all.
			delete(r.items, string(it.cell.Key))
		default:
			r.delay(it, now.Add(laterPoll))
		}
	}
	if res.h.Locked > 0 {
		r.locking = lockingRuns
	}
	if look := now.Add(lockedLook); res.h.Locked > 0 && r.scan.due.After(look) {
		r.scan.due = look
	}
	switch others := res.h.Locked > 0 || len(res.h.Changes) == 0 && res.h.Later == 0; {
	case !others:
		r.scan.jumps = 0
	case slices.ContainsFunc(res.items, func(it *item) bool { return it.scanned }):
		r.teleport()
	}
}

// committed returns when changes were committed, in microseconds since the Unix epoch. Items and changes ascend by key.
func committed(items []*item, changes []observe.Change) []int64 {
	micros := make([]int64, len(changes))
	for i := range changes {
		c := &changes[i]
		for len(items) > 0 && bytes.Compare(items[0].cell.Key, c.Key) < 0 {
			items = items[1:]
		}
		micros[i] = c.CommitTS.Physical() * 1000
		if len(items) == 0 || !bytes.Equal(items[0].cell.Key, c.Key) {
			continue
		}
		for _, hinted := range []*change{&items[0].cell, items[0].again} {
			if hinted != nil && hinted.Latest == c.CommitTS && hinted.atMicros != 0 {
				micros[i] = hinted.atMicros
			}
		}
	}
	return micros
}

// delay queues an item that was worked on again.
func (r *runner) delay(it *item, due time.Time) {
	it.working, it.due = false, due
	if it.again != nil {
		it.cell, it.again = *it.again, nil
	}
	heap.Push(&r.delayed, it)
}
