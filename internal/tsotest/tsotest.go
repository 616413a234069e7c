// Package tsotest has tests' tools for timestamp oracles: an oracle that follows the wall clock, and a recorder that decides
// whether a history of requests is linearizable: whether the timestamps increase in some order of the calls in which every
// call precedes those that began after it had returned. That is the guarantee of tso.Oracle.
//
//	caller 1   ├── 17 ──┤        ├─ 40..42 ─┤
//	caller 2        ├──── 12 ────┤     ├ 43 ┤        12, 17, 40..42, 43: linearizable
//
// Failed calls issued nothing and are ignored. The checker is porcupine. The timestamps determine the only possible order,
// so each call contains its predecessor in that order and the search is linear in the length of the history; but porcupine
// needs memory, so histories should have fewer than some ten thousand calls.
//
// It does not check whether the timestamps follow a clock. For timestamps across a crash, a test that
// crashes an oracle continues recording with the next one.
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
