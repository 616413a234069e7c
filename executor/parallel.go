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

// An aggregate over a large table is computed by several goroutines, the session's own among them: each reads a part of the keys into an
// aggregate of its own, and the results are combined.
//
//	sharedSpans ──▶ session's goroutine: feed ─▶ hashAggregate ◀─┐
//	     ▲ │                                                    │ absorb
//	     │ └─────▶ worker: feed ─▶ hashAggregate ───────────────┘
//	     └─ who has a span gives half of what is left of it to one who has none
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

// aggregateWorker computes an aggregate over a part of the rows.
type aggregateWorker struct {
	agg     *hashAggregate
	reader  percolator.Reader
	ex      execution
	rt      Runtime
	account memory.Account
	err     error
	bug     any // what it has panicked with
}

// newWorker makes a worker with a share of the memory; nil if the transaction or the plan admits none.
func (o *hashAggregate) newWorker(ctx context.Context, sharers int) (*aggregateWorker, error) {
	reader := o.ex.txn.Beside()
	if reader == nil {
		return nil, nil
	}
	w := &aggregateWorker{reader: reader, rt: *o.ex.rt, ex: execution{plan: o.ex.plan}}
	w.account = o.ex.rt.Env.Memory.Sibling()
	w.rt.Txn, w.rt.Scratch, w.rt.MemoryLimitBytes = nil, nil, max(o.ex.mem.limit/int64(sharers), 1)
	w.rt.Env = o.ex.rt.Env.Beside(ctx, &w.account)
	w.ex.bind(&w.rt)
	w.ex.ev.Ctx = ctx
	input, err := w.ex.build(o.node.Input)
	if err != nil {
		return nil, err
	}
	w.agg, _ = newAggregate(&w.ex, input, o.node).(*hashAggregate)
	if w.agg == nil || w.agg.feed == nil {
		return nil, nil
	}
	w.agg.divided = true
	w.agg.feed.sink = w.agg.takeFed
	return w, w.agg.beginScalar()
}

// run reads spans until there are none.
func (w *aggregateWorker) run(ctx context.Context, spans *sharedSpans) {
	defer func() {
		if p := recover(); p != nil {
			w.bug = fmt.Sprintf("%v, in a worker of the statement:\n%s", p, debug.Stack())
		}
		if w.err != nil || w.bug != nil {
			spans.end()
		}
	}()
	w.err = w.agg.readShared(ctx, w.reader, spans)
}

// close frees what the worker holds.
func (w *aggregateWorker) close() error {
	err := w.agg.Close()
	w.ex.unbind()
	w.account.Close()
	return err
}

// readShared takes in spans until there are none.
func (o *hashAggregate) readShared(ctx context.Context, reader percolator.Reader, spans *sharedSpans) error {
	counting := o.countsRows()
	walk := o.feed.walk(counting)
	walk.Rest = spans.rest
	for {
		span, ok := spans.take()
		if !ok {
			return nil
		}
		n, err := reader.Walk(ctx, []kv.Span{span}, walk)
		if err != nil {
			return err
		}
		if counting {
			o.addRows(n)
		}
	}
}

// readParallel takes in the rows of spans with so many workers, but no more than there are processors for. done is false if that was not
// possible, in which case o is as it was.
func (o *hashAggregate) readParallel(ctx context.Context, spans []kv.Span, workers int) (done bool, err error) {
	if workers = min(workers, runtime.NumCPU()-1); o.ex.rt.Parallel.SetupCost == 0 {
		workers = max(workers, 1) // as tests have it
	}
	if workers == 0 || len(spans) == 0 || len(o.ex.ev.Outer) > 0 {
		return false, nil
	}
	team := make([]*aggregateWorker, 0, workers)
	defer func() {
		for _, w := range team {
			err = firstError(err, w.close())
		}
	}()
	for range workers {
		w, err := o.newWorker(ctx, workers+1)
		if w != nil {
			team = append(team, w)
		}
		if w == nil || err != nil {
			return false, err
		}
	}
	shared := newSharedSpans(o.clipped(ctx, spans), workers+1)
	if err = o.readTogether(ctx, shared, team); err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	err = o.dropGroups()
	o.groups.reset()
	return false, firstError(err, o.beginScalar())
}

// readTogether runs the workers and itself reads beside them, and then takes over what they have.
func (o *hashAggregate) readTogether(caller context.Context, spans *sharedSpans, team []*aggregateWorker) error {
	ctx, cancel := context.WithCancel(caller)
	var running sync.WaitGroup
	finish := func() {
		spans.end()
		cancel()
		running.Wait()
	}
	defer finish() // also in a panic
	for _, w := range team {
		running.Go(func() { w.run(ctx, spans) })
	}
	o.divided = true
	defer func() { o.divided = false }()
	if err := o.readShared(ctx, o.ex.txn, spans); err != nil {
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
		if err := o.absorb(caller, w.agg); err != nil {
			return err
		}
	}
	return nil
}

// absorb adds the groups of another aggregate of the same node.
func (o *hashAggregate) absorb(ctx context.Context, from *hashAggregate) error {
	for i, state := range from.states {
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
		var err error
		into := (*groupState)(nil)
		if o.scalar {
			into = o.states[0]
		} else if into, err = o.group(nil, from.groups.keys.rows[i]); err != nil {
			return err
		}
		for c := range o.calls {
			if err := o.calls[c].Func.Combine(into.calls[c].acc, state.calls[c].acc); err != nil {
				return err
			}
		}
	}
	return nil
}

// clipped returns spans without what lies behind the last key: the middle of what is left is not the middle of the keys otherwise.
func (o *hashAggregate) clipped(ctx context.Context, spans []kv.Span) []kv.Span {
	n := len(spans) - 1
	it := o.ex.txn.Scan(ctx, spans[n], percolator.ScanOptions{Reverse: true, PageHint: 1, KeysOnly: true})
	defer it.Close()
	if !it.Next(ctx) {
		return spans // The readers get the error, if there is one.
	}
	out := append([]kv.Span(nil), spans...)
	out[n].End = append(append([]byte(nil), it.Key()...), 0)
	return out
}
