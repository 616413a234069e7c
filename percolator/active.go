package percolator

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/tso"
)

// activeSet tracks the age of the oldest transaction, for garbage collection, at the cost of two atomic additions for
// each transaction. Transactions are not listed: each counts in the cohort that was current when it began, and a cohort
// has a timestamp issued before it became current. A cohort is removed when all its members have ended. Safe for
// concurrent use.
//
//	cohorts   since=10: 1 left   since=20: none left   since=30: current      oldest = 10
//
// Transactions at a timestamp in the past are counted by that timestamp.
type activeSet struct {
	current atomic.Pointer[cohort]

	mu struct {
		sync.Mutex
		former []*cohort // oldest first
		past   map[tso.Timestamp]int
	}
}

// activeStripes is a power of two. Each stripe has its own cache line.
const activeStripes = 16

type cohort struct {
	since tso.Timestamp
	n     [activeStripes]struct {
		atomic.Int64
		_ [56]byte
	}
}

// activeRef is a transaction's membership; the zero value is none.
type activeRef struct {
	cohort *cohort
	stripe uint32
	past   tso.Timestamp
}

func (a *activeSet) init() {
	a.current.Store(&cohort{})
	a.mu.past = map[tso.Timestamp]int{}
}

// enter counts a transaction; call it before its start_ts is requested.
func (a *activeSet) enter() activeRef {
	stripe := rand.Uint32() % activeStripes
	for {
		c := a.current.Load()
		c.n[stripe].Add(1)
		// If c was replaced before the addition, oldest may have found it empty already.
		if a.current.Load() == c {
			return activeRef{cohort: c, stripe: stripe}
		}
		c.n[stripe].Add(-1)
	}
}

// enterPast counts a transaction at a timestamp in the past.
func (a *activeSet) enterPast(ts tso.Timestamp) activeRef {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.past[ts]++
	return activeRef{past: ts}
}

// leave may be called more than once.
func (a *activeSet) leave(ref *activeRef) {
	switch {
	case ref.cohort != nil:
		ref.cohort.n[ref.stripe].Add(-1)
	case ref.past != 0:
		a.mu.Lock()
		if a.mu.past[ref.past]--; a.mu.past[ref.past] == 0 {
			delete(a.mu.past, ref.past)
		}
		a.mu.Unlock()
	}
	*ref = activeRef{}
}

// oldest begins a new cohort, whose members will have a start_ts above now, and returns a timestamp
// at or below which no transaction is, or will be, active. A member's start_ts lies above it.
func (a *activeSet) oldest(now tso.Timestamp) tso.Timestamp {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.current.Load()
	a.mu.former = append(a.mu.former, last)
	a.current.Store(&cohort{since: now})
	left := a.mu.former[:0]
	for _, c := range a.mu.former {
		if !c.empty() {
			left = append(left, c)
		}
	}
	clear(a.mu.former[len(left):])
	a.mu.former = left
	oldest := now
	if len(left) > 0 {
		oldest = left[0].since
	}
	for ts := range a.mu.past {
		oldest = min(oldest, ts-1)
	}
	return oldest
}

// empty reports whether all members of a former cohort have ended. No transaction enters it permanently any more, so a
// stripe that is empty stays empty.
func (c *cohort) empty() bool {
	for i := range c.n {
		if c.n[i].Load() != 0 {
			return false
		}
	}
	return true
}

// Close ends a transaction that has only been read from, or whose writes are discarded. It does nothing if the
// transaction has ended.
func (t *Txn) Close() {
	if !t.done {
		_ = t.Rollback(context.Background()) // locks that remain expire
	}
}

// OldestActive returns a timestamp below the snapshots and writes of all transactions that this DB runs or will begin:
// garbage collection may advance to it. A transaction counts as of the last call before it began, so call it often, and
// first before any transaction begins.
func (db *DB) OldestActive(ctx context.Context) (tso.Timestamp, error) {
	now, err := db.now(ctx)
	if err != nil {
		return 0, err
	}
	return db.active.oldest(now), nil
}
