package session

import (
	"context"
	"sync"
	"time"

	"github.com/percodb/percodb/internal/errkind"
)

// Why a statement was interrupted, mapped to SQLSTATEs by ToPGError.
var (
	errCanceled         = errkind.New(errkind.Canceled, "canceling statement due to user request")
	errStatementTimeout = errkind.New(errkind.Canceled, "canceling statement due to statement timeout")
	errShutdown         = errkind.New(errkind.Shutdown, "terminating connection due to administrator command")
)

// interrupts gives each statement of a session its context, and cancels it with a cause. A context that has not been
// canceled serves the next statement, too: making one costs allocations on the hottest path. begin and end are the
// session goroutine's; the others may be called from any goroutine.
type interrupts struct {
	parent context.Context // the connection's
	mu     struct {
		sync.Mutex
		ctx     context.Context
		cancel  context.CancelCauseFunc
		running bool
		final   error // why no further statement runs
		// deadline guards against a timer that has fired for an earlier statement; zero: none.
		deadline time.Time
	}
	timer *time.Timer
}

func newInterrupts(parent context.Context) *interrupts {
	in := &interrupts{parent: parent}
	in.mu.ctx, in.mu.cancel = context.WithCancelCause(parent)
	return in
}

// begin returns the context of a statement that may run for timeout (0: without bound).
func (in *interrupts) begin(timeout time.Duration) context.Context {
	in.mu.Lock() // Not deferred, here and in end: each message calls both.
	if in.mu.ctx.Err() != nil {
		in.mu.ctx, in.mu.cancel = context.WithCancelCause(in.parent)
	}
	in.mu.running = true
	if in.mu.final != nil {
		in.mu.cancel(in.mu.final)
	}
	in.arm(timeout)
	ctx := in.mu.ctx
	in.mu.Unlock()
	return ctx
}

// next gives the next statement of the same text a timeout of its own.
func (in *interrupts) next(timeout time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.disarm()
	in.arm(timeout)
}

func (in *interrupts) arm(timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	in.mu.deadline = time.Now().Add(timeout)
	if in.timer == nil {
		in.timer = time.AfterFunc(timeout, in.expire)
	} else {
		in.timer.Reset(timeout)
	}
}

func (in *interrupts) disarm() {
	if in.timer != nil {
		in.timer.Stop()
		in.mu.deadline = time.Time{}
	}
}

// end ends the statement: a cancel that arrives later interrupts nothing, as in PostgreSQL.
func (in *interrupts) end() {
	in.mu.Lock()
	in.disarm()
	in.mu.running = false
	in.mu.Unlock()
}

// close frees the context.
func (in *interrupts) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.cancel(errShutdown)
}

// running reports whether a statement runs.
func (in *interrupts) running() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.running
}

func (in *interrupts) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.running && !in.mu.deadline.IsZero() && !time.Now().Before(in.mu.deadline) {
		in.mu.cancel(errStatementTimeout)
	}
}

// cancel interrupts the running statement, if there is one.
func (in *interrupts) cancel(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.running {
		in.mu.cancel(cause)
	}
}

// terminate interrupts the running statement and every later one.
func (in *interrupts) terminate(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.final = cause
	if in.mu.running {
		in.mu.cancel(cause)
	}
}

// interruption returns why the statement of ctx was interrupted, nil if it was not. A parent that ends gives no reason of
// its own: the server stops.
func interruption(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errkind.Of(cause) == errkind.Canceled {
		return cause
	}
	return errShutdown
}
