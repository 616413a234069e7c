package session

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Why a statement was cut off, mapped to SQLSTATEs by ToPGError.
var (
	errCanceled         = errors.New("canceling statement due to user request")
	errStatementTimeout = errors.New("canceling statement due to statement timeout")
	errShutdown         = errors.New("terminating connection due to administrator command")
)

// statementContext is a context.Context that is reused from statement to statement, because making
// one anew costs several allocations on the hottest path. arm and disarm are the session
// goroutine's; cancel may be called from any goroutine.
type statementContext struct {
	parent context.Context // the connection's life
	mu     struct {
		sync.Mutex
		done  chan struct{}
		cause error
		final error // why no further statement runs
		armed bool
		// deadline guards against a timer that fired for the statement before; zero: none.
		deadline time.Time
	}
	timer *time.Timer
}

var _ context.Context = (*statementContext)(nil)

func newStatementContext(parent context.Context) *statementContext {
	c := &statementContext{parent: parent}
	c.mu.done = make(chan struct{})
	return c
}

// arm prepares c for a statement that may run for timeout (0: for ever).
func (c *statementContext) arm(timeout time.Duration) {
	c.mu.Lock()
	if c.mu.cause != nil {
		c.mu.cause = nil
		c.mu.done = make(chan struct{})
	}
	c.mu.armed = true
	if c.mu.final != nil {
		c.cancelLocked(c.mu.final)
	}
	if timeout > 0 {
		c.mu.deadline = time.Now().Add(timeout)
	}
	c.mu.Unlock()
	if timeout <= 0 {
		return
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(timeout, c.expire)
		return
	}
	c.timer.Reset(timeout)
}

// disarm ends the statement: a cancel that arrives later hits nothing, as in PostgreSQL.
func (c *statementContext) disarm() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Lock()
	c.mu.armed = false
	c.mu.deadline = time.Time{}
	c.mu.Unlock()
}

// running reports whether a statement runs. Safe from any goroutine.
func (c *statementContext) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.armed
}

func (c *statementContext) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.deadline.IsZero() && !time.Now().Before(c.mu.deadline) {
		c.cancelLocked(errStatementTimeout)
	}
}

// cancel cuts the running statement off, if there is one.
func (c *statementContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelLocked(cause)
}

// end is cancel of the running statement and of all that follow.
func (c *statementContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.final = cause
	c.cancelLocked(cause)
}

func (c *statementContext) cancelLocked(cause error) {
	if !c.mu.armed || c.mu.cause != nil {
		return
	}
	c.mu.cause = cause
	close(c.mu.done)
}

// cause returns why the statement was cut off, nil when it was not.
func (c *statementContext) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.cause
}

// Deadline implements context.Context. The timeout works through Done.
func (c *statementContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements context.Context.
func (c *statementContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.done
}

// Err implements context.Context.
func (c *statementContext) Err() error {
	if c.cause() != nil {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (c *statementContext) Value(key any) any { return c.parent.Value(key) }
