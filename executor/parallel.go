package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// Aggregates, selections of the first rows, sorts, hash tables over a large table, and the writes of an UPDATE or DELETE are computed by several
// goroutines, the session's own among them: each reads a part of the keys into an operator of its own, and the results are combined.
//
//	sharedSpans ──▶ session's goroutine: feed ─▶ hashAggregate ◀─┐
//	     ▲ │                                                    │ absorb
//	     │ └─────▶ worker: feed ─▶ hashAggregate ───────────────┘
//	     └─ who has a span gives half of what is left of it to one who has none
//
// Joins between the scan and the operator are probed by each; their tables are built before, and shared.
//
// Workers have an execution of their own, with a reader of the same snapshot and a share of the statement's memory. They change nothing
// that others see. So if any part fails, or does not fit into its memory, everything is read again by the session's goroutine alone: it can use
// files, and its error is the one that the client would get without workers.

// errCrowded ends an attempt whose groups do not fit into memory.
var errCrowded = errors.New("executor: the groups of a part do not fit into memory")

// sharedSpans are the spans that goroutines have yet to read.
type sharedSpans struct {
	waiting atomic.Int32 // goroutines without a span
	mu      struct {
		sync.Mutex
		spans []kv.Span
		idle  int // goroutines in take
		ended bool
	}
	wake    sync.Cond
	readers int
}

func newSharedSpans(spans []kv.Span, readers int) *sharedSpans {
	s := &sharedSpans{readers: readers}
	s.mu.spans = spans
	s.wake.L = &s.mu
	return s
}

// take returns a span to be read, and waits for one while others read; false: all has been read, or the work was given up.
func (s *sharedSpans) take() (kv.Span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.idle++
	for {
		n := len(s.mu.spans) - 1
		switch {
		case s.mu.ended:
			return kv.Span{}, false
		case n >= 0:
			span := s.mu.spans[n]
			s.mu.spans = s.mu.spans[:n]
			s.mu.idle--
			return span, true
		case s.mu.idle == s.readers:
			s.mu.ended = true
			s.wake.Broadcast()
			return kv.Span{}, false
		}
		s.waiting.Add(1)
		s.wake.Wait()
		s.waiting.Add(-1)
	}
}

// rest is percolator.Walk's: if someone waits, it gives away the second half of what is left of a span.
func (s *sharedSpans) rest(span kv.Span) kv.Span {
	if s.waiting.Load() == 0 {
		return span
	}
	middle := percolator.MiddleOf(span)
	if middle == nil {
		return span
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.spans) == 0 {
		s.mu.spans = append(s.mu.spans, kv.Span{Start: middle, End: span.End})
		span.End = middle
		s.wake.Signal()
	}
	return span
}

// end gives up.
func (s *sharedSpans) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	s.wake.Broadcast()
}

// divided describes work on the rows of a feed that several goroutines can do.
type divided struct {
	feed *feed
	// counted, if given, takes the number of pairs instead of rows.
	counted func(n int64)
	// part makes what does the same in a worker's execution, and absorb takes over what it has got.
	part   func(ex *execution) (part, error)
	absorb func(ctx context.Context, from part) error
	// finish, if given, is called by each goroutine when there is nothing left to read.
	finish func(ctx context.Context) error
	// attempt is called before the session's goroutine takes a part of the rows, and with begin false if they have to be read again.
	attempt func(begin bool) error
}

// part is an operator that takes a part of the rows. What does not fit into memory ends the attempt.
type part interface {
	divided() divided
	Close() error
}

// worker is a part with its execution.
type worker struct {
	part
	work    divided
	reader  percolator.Reader
	ex      execution
	rt      Runtime
	account memory.Account
	err     error
	bug     any // what it has panicked with
}

// newWorker makes a worker with a share of the memory; nil if the transaction admits none.
func (ex *execution) newWorker(ctx context.Context, sharers int, d *divided) (*worker, error) {
	reader := ex.txn.Beside()
	if reader == nil {
		return nil, nil
	}
	w := &worker{reader: reader, rt: *ex.rt, ex: execution{plan: ex.plan}}
	w.account = ex.rt.Env.Memory.Sibling()
	w.rt.Txn, w.rt.Scratch, w.rt.MemoryLimitBytes = nil, nil, max(ex.mem.limit/int64(sharers), 1)
	w.rt.Role = 0 // Nobody sees its errors, so that it need not look up privileges.
	w.rt.Env = ex.rt.Env.Beside(ctx, &w.account)
	w.ex.bind(&w.rt)
	w.ex.ev.Ctx = ctx
	var err error
	if w.part, err = d.part(&w.ex); err != nil {
		return nil, err
	}
	w.work = w.divided()
	w.work.feed.borrow(d.feed)
	return w, nil
}

// run reads spans until there are none.
func (w *worker) run(ctx context.Context, spans *sharedSpans) {
	defer func() {
		if p := recover(); p != nil {
			w.bug = fmt.Sprintf("%v, in a worker of the statement:\n%s", p, debug.Stack())
		}
		if w.err != nil || w.bug != nil {
			spans.end()
		}
	}()
	w.err = w.work.readShared(ctx, w.reader, spans)
}

// close frees what the worker holds.
func (w *worker) close() error {
	w.work.feed.giveBack()
	err := w.Close()
	w.ex.unbind()
	w.account.Close()
	return err
}

// readShared takes in spans until there are none.
func (d *divided) readShared(ctx context.Context, reader percolator.Reader, spans *sharedSpans) error {
	walk := d.feed.walk(d.counted != nil)
	walk.Rest = spans.rest
	for {
		span, ok := spans.take()
		if !ok {
			break
		}
		n, err := reader.Walk(ctx, []kv.Span{span}, walk)
		if err != nil {
			return err
		}
		if d.counted != nil {
			d.counted(n)
		}
	}
	if d.finish != nil {
		return d.finish(ctx)
	}
	return nil
}

// readParallel takes in the rows of spans with so many workers, but no more than there are processors for. done is false if that was not
// possible, in which case nothing has been taken in.
func (ex *execution) readParallel(ctx context.Context, spans []kv.Span, workers int, d *divided) (done bool, err error) {
	if workers = min(workers, runtime.NumCPU()-1); ex.rt.Parallel.SetupCost == 0 {
		workers = max(workers, 1) // as tests have it
	}
	if workers == 0 || len(spans) == 0 || len(ex.ev.Outer) > 0 {
		return false, nil
	}
	team := make([]*worker, 0, workers)
	defer func() {
		for _, w := range team {
			err = firstError(err, w.close())
		}
	}()
	for range workers {
		w, err := ex.newWorker(ctx, workers+1, d)
		if w == nil || err != nil {
			return false, err
		}
		team = append(team, w)
	}
	if err := d.attempt(true); err != nil {
		return false, err
	}
	if err = ex.readTogether(ctx, newSharedSpans(ex.clipped(ctx, spans), workers+1), team, d); err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return false, d.attempt(false)
}

// readTogether runs the workers and itself reads beside them, and then takes over what they have.
func (ex *execution) readTogether(caller context.Context, spans *sharedSpans, team []*worker, d *divided) error {
	ctx, cancel := context.WithCancel(caller)
	var running sync.WaitGroup
	defer func() { // also in a panic
		spans.end()
		cancel()
		running.Wait()
	}()
	for _, w := range team {
		running.Go(func() { w.run(ctx, spans) })
	}
	if err := d.readShared(ctx, ex.txn, spans); err != nil {
		return err
	}
	running.Wait()
	for _, w := range team {
		if w.bug != nil {
			panic(w.bug)
		}
		if w.err != nil {
			return w.err
		}
		if err := d.absorb(caller, w.part); err != nil {
			return err
		}
	}
	return nil
}

// clipped returns spans without what lies behind the last key: the middle of what is left is not the middle of the keys otherwise.
func (ex *execution) clipped(ctx context.Context, spans []kv.Span) []kv.Span {
	n := len(spans) - 1
	it := ex.txn.Scan(ctx, spans[n], percolator.ScanOptions{Reverse: true, PageHint: 1, KeysOnly: true})
	defer it.Close()
	if !it.Next(ctx) {
		return spans // The readers get the error, if there is one.
	}
	out := append([]kv.Span(nil), spans...)
	out[n].End = append(append([]byte(nil), it.Key()...), 0)
	return out
}

// combine adds to a call's state what another one of the same group has got.
func (o *hashAggregate) combine(c *aggCall, into, from *callState) error {
	if from.kept == nil {
		return c.Func.Combine(into.acc, from.acc)
	}
	for _, args := range from.seen.keys.rows {
		copy(c.args, args)
		if err := o.addTo(into, c, nil); err != nil {
			return err
		}
	}
	return nil
}

// absorb is divided's: it adds the groups of an aggregate of the same node.
func (o *hashAggregate) absorb(ctx context.Context, other part) error {
	from := other.(*hashAggregate)
	if err := from.addCollected(); err != nil {
		return err
	}
	for i, state := range from.states {
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		var err error
		into := groupState(nil)
		if o.scalar {
			into = o.states[0]
		} else if into, err = o.group(nil, from.groups.keys.rows[i]); err != nil {
			return err
		}
		for c := range o.calls {
			if err := o.combine(&o.calls[c], &into[c], &state[c]); err != nil {
				return err
			}
		}
	}
	return nil
}
