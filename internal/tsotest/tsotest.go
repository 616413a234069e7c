// Package tsotest records what callers of a timestamp oracle asked and got, and decides whether the
// history is linearizable: whether some order of the calls, which keeps every call that had returned
// before another one began in front of it, makes the timestamps grow. That is the oracle's promise
// (tso.Oracle), word for word.
//
//	caller 1   ├── 17 ──┤        ├─ 40..42 ─┤
//	caller 2        ├──── 12 ────┤     ├ 43 ┤        12, 17, 40..42, 43: linearizable
//
// Calls that failed handed out nothing and are left out. The checker is porcupine. The only order in
// which timestamps can grow is their own, so each call carries what came before it in that order and
// the search has nothing to guess: it is linear in the length of the history, but for the memory of
// porcupine, which wants histories below some ten thousand calls.
//
// Not here: whether the timestamps follow a clock, and whether they survive a crash: a test that
// crashes an oracle goes on recording against the next one.
package tsotest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"github.com/percodb/percodb/tso"
)

// History is the calls of several callers.
type History struct {
	clock atomic.Int64 // orders the beginnings and ends of calls
	mu    struct {
		sync.Mutex
		callers []*Caller
	}
}

// Caller records one caller's calls, which follow each other. One goroutine's.
type Caller struct {
	history *History
	id      int
	calls   []porcupine.Operation
}

// taken is the result of a call: n timestamps, Tick apart.
type taken struct {
	first tso.Timestamp
	n     int
}

func (t taken) last() tso.Timestamp { return t.first + tso.Timestamp(t.n-1)*tso.Tick }

// Caller adds a caller.
func (h *History) Caller() *Caller {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Caller{history: h, id: len(h.mu.callers)}
	h.mu.callers = append(h.mu.callers, c)
	return c
}

// Now records a call of o.Now.
func (c *Caller) Now(ctx context.Context, o tso.Oracle) error {
	return c.record(1, func() (tso.Timestamp, error) { return o.Now(ctx) })
}

// NowN records a call of s.NowN.
func (c *Caller) NowN(ctx context.Context, s tso.Source, n int) error {
	return c.record(n, func() (tso.Timestamp, error) { return s.NowN(ctx, n) })
}

func (c *Caller) record(n int, call func() (tso.Timestamp, error)) error {
	began := c.history.clock.Add(1)
	first, err := call()
	ended := c.history.clock.Add(1)
	if err == nil {
		c.calls = append(c.calls, porcupine.Operation{ClientId: c.id, Call: began, Return: ended, Output: taken{first, n}})
	}
	return err
}

// Len is the number of recorded calls. Call it when all callers are done.
func (h *History) Len() (n int) {
	for _, c := range h.mu.callers {
		n += len(c.calls)
	}
	return n
}

// Check returns an error unless the history is linearizable. Call it when all callers are done.
func (h *History) Check() error {
	var calls []porcupine.Operation
	for _, c := range h.mu.callers {
		calls = append(calls, c.calls...)
	}
	for _, call := range calls {
		if t := call.Output.(taken); t.first%tso.Tick != 0 {
			return fmt.Errorf("timestamp %d has a subtick", t.first)
		}
	}
	slices.SortFunc(calls, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Output.(taken).first, b.Output.(taken).first)
	})
	before := tso.Timestamp(0)
	for i := range calls {
		calls[i].Input = before
		before = calls[i].Output.(taken).last()
	}
	if !porcupine.CheckOperations(model, calls) {
		return fmt.Errorf("the timestamps of %d calls are not linearizable", len(calls))
	}
	return nil
}

// model is an oracle that executes one call at a time: its state is the last issued timestamp, and a call's input the
// required state for the call to be next.
var model = porcupine.Model{
	Init: func() any { return tso.Timestamp(0) },
	Step: func(state, before, output any) (bool, any) {
		t := output.(taken)
		return state == before && t.first > state.(tso.Timestamp), t.last()
	},
}
