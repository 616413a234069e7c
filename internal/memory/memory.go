// Package memory accounts for what a server holds: one Pool bounds the whole, pools below it bound
// parts, and Accounts draw from a pool on behalf of one session, statement or transaction.
//
//	server ─┬─ statements    sort areas, hash tables, results of functions, aggregates' states
//	        ├─ messages      what clients have sent and what has not been read to its end
//	        └─ write buffers of transactions
//
// What is counted are estimates of live bytes, not the allocator's figures. The root also watches the
// heap: before a large reservation succeeds, garbage is collected where the heap has no space for it.
//
// Invariants: a pool's sum never exceeds its limit; what an Account has drawn is what its pool and all
// pools above count for it; Close returns all of it. A reservation that fails changes nothing.
package memory

import (
	"fmt"
	"sync/atomic"

	"github.com/percodb/percodb/internal/errkind"
)

// ExceededError: a reservation would exceed a pool's limit. Clients receive it as 53200.
type ExceededError struct {
	Pool               string
	Asked, Used, Limit int64
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("out of memory: %d bytes asked for, %d of %d bytes for %s are in use", e.Asked, e.Used, e.Limit, e.Pool)
}

// Kind implements errkind.Error.
func (e *ExceededError) Kind() errkind.Kind { return errkind.OutOfMemory }

// Pool bounds a sum of bytes. Safe for concurrent use. A nil Pool bounds nothing.
type Pool struct {
	name   string
	parent *Pool
	limit  int64
	used   atomic.Int64
	heap   *heapWatch // of the root; nil: the heap is not watched
}

// NewPool makes a root. Limit is in bytes.
func NewPool(name string, limit int64) *Pool { return &Pool{name: name, limit: limit} }

// NewServerPool makes the root pool of a process. The heap may have heapLimit bytes, garbage included: reservations of
// largeBytes or more trigger a collection if that would be exceeded, and free memory is returned to the operating system
// after a peak.
func NewServerPool(limit, heapLimit int64) *Pool {
	p := NewPool("the server", limit)
	p.heap = newHeapWatch(heapLimit)
	return p
}

// Sub makes a pool below p. Its reservations count in p too.
func (p *Pool) Sub(name string, limit int64) *Pool {
	if p == nil {
		return nil
	}
	return &Pool{name: name, parent: p, limit: min(limit, p.limit)}
}

// Reserve adds n bytes; the error is an *ExceededError.
func (p *Pool) Reserve(n int64) error {
	for q := p; q != nil; q = q.parent {
		if used := q.used.Add(n); used > q.limit {
			err := &ExceededError{Pool: q.name, Asked: n, Used: used - n, Limit: q.limit}
			q.used.Add(-n)
			p.releaseBelow(q, n)
			return err
		}
		if q.heap != nil {
			if err := q.heap.makeSpace(n, q.used.Load()); err != nil {
				q.used.Add(-n)
				p.releaseBelow(q, n)
				return err
			}
		}
	}
	return nil
}

// releaseBelow undoes a reservation in p and the pools between it and top.
func (p *Pool) releaseBelow(top *Pool, n int64) {
	for q := p; q != top; q = q.parent {
		q.used.Add(-n)
	}
}

// Release returns n bytes.
func (p *Pool) Release(n int64) {
	for q := p; q != nil; q = q.parent {
		used := q.used.Add(-n)
		if used < 0 {
			panic(fmt.Sprintf("BUG: memory pool %s: %d bytes released, %d bytes were in use", q.name, n, used+n))
		}
		if q.heap != nil {
			q.heap.released(used)
		}
	}
}

// HeapLimit is the limit of the heap of a server's pool, 0 for another.
func (p *Pool) HeapLimit() int64 {
	if p == nil || p.heap == nil {
		return 0
	}
	return p.heap.limit
}

// Used is the sum of the reservations.
func (p *Pool) Used() int64 {
	if p == nil {
		return 0
	}
	return p.used.Load()
}

// Limit is the most that may be reserved; 0 for a nil Pool, which has no limit.
func (p *Pool) Limit() int64 {
	if p == nil {
		return 0
	}
	return p.limit
}
