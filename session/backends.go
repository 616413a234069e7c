package session

import (
	"context"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
)

// backend finds a session of this process by its process id, and warns if there is none.
func (s *Session) backend(pid int32) *Session {
	var found *Session
	if s.deps.Sessions != nil {
		s.deps.Sessions(func(other *Session) {
			if int64(other.key.PID) == int64(pid) {
				found = other
			}
		})
	}
	if found == nil {
		e := pgerror.New(pgerror.Warning, "PID %d is not a PostgreSQL backend process", pid)
		if s.deps.Shared {
			e = e.WithHint("Sessions of other SQL processes are ended from a connection to theirs.")
		}
		s.warn(e)
	}
	return found
}

// warn sends a warning of a function that a plan has called.
func (s *Session) warn(e *pgerror.Error) {
	if s.out != nil {
		s.out.Notice(e)
	}
}

// CancelBackend implements builtin.SessionInfo.
func (i info) CancelBackend(pid int32) (bool, error) {
	target := i.s.backend(pid)
	switch target {
	case nil:
		return false, nil
	case i.s:
		i.s.Cancel()
		return false, errCanceled
	}
	target.Cancel()
	return true, nil
}

// TerminateBackend implements builtin.SessionInfo.
func (i info) TerminateBackend(ctx context.Context, pid int32, timeout time.Duration) (bool, error) {
	if timeout < 0 {
		return false, pgerror.New(pgerror.NumericValueOutOfRange, "\"timeout\" must not be negative")
	}
	target := i.s.backend(pid)
	if target == nil {
		return false, nil
	}
	done := i.s.deps.Terminate(target)
	if target == i.s {
		return false, errShutdown
	}
	if timeout == 0 {
		return true, nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
		i.s.warn(pgerror.New(pgerror.Warning, "backend with PID %d did not terminate within %d milliseconds", pid, timeout.Milliseconds()))
		return false, nil
	}
}
