package session

import (
	"context"
	"slices"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// warnings sends the warnings of functions that a plan calls.
type warnings struct {
	to ResultWriter // of the plan that runs, or of the last one; nil: none has run
}

func (w *warnings) send(e *pgerror.Error) {
	if w.to != nil {
		w.to.Notice(e)
	}
}

// backends cancels statements of, and ends, sessions of this process, its own included.
type backends struct {
	deps     *Deps
	own      CancelKey
	tx       *transaction
	warnings *warnings
}

// find finds a session of this process by its process id, and warns if there is none.
func (b *backends) find(pid int32) *Session {
	var found *Session
	if b.deps.Sessions != nil {
		b.deps.Sessions(func(other *Session) {
			if int64(other.identity.key.PID) == int64(pid) {
				found = other
			}
		})
	}
	if found == nil {
		e := pgerror.New(pgerror.Warning, "PID %d is not a PostgreSQL backend process", pid)
		if b.deps.Shared {
			e = e.WithHint("Sessions of other SQL processes are ended from a connection to theirs.")
		}
		b.warnings.send(e)
	}
	return found
}

// maySignal checks that the current role may interfere with a session: its own, those of roles whose privileges it has, all but
// superusers' with pg_signal_backend.
func (b *backends) maySignal(target *Session, what, happens string) error {
	ctx := b.tx.env.Ctx
	r, err := b.tx.catalog.Present(ctx)
	if err != nil {
		return err
	}
	roles, role := r.Roles(), b.tx.acting.current
	switch {
	case roles.Superuser(target.identity.role) && !roles.Superuser(role):
		return pgerror.New(pgerror.InsufficientPrivilege, "must be a superuser to %s", what)
	case !roles.HasPrivilegesOf(role, target.identity.role) && !roles.HasPrivilegesOf(role, catalog.SignalBackendRole):
		return pgerror.New(pgerror.InsufficientPrivilege, "must be a member of the role whose %s or member of pg_signal_backend", happens)
	}
	return nil
}

// cancel is pg_cancel_backend.
func (b *backends) cancel(pid int32) (bool, error) {
	target := b.find(pid)
	if target == nil {
		return false, nil
	}
	if err := b.maySignal(target, "cancel superuser query", "query is being canceled"); err != nil {
		return false, err
	}
	target.Cancel()
	if target.identity.key == b.own {
		return false, errCanceled
	}
	return true, nil
}

// terminate is pg_terminate_backend.
func (b *backends) terminate(ctx context.Context, pid int32, timeout time.Duration) (bool, error) {
	if timeout < 0 {
		return false, pgerror.New(pgerror.NumericValueOutOfRange, "\"timeout\" must not be negative")
	}
	target := b.find(pid)
	if target == nil {
		return false, nil
	}
	if err := b.maySignal(target, "terminate superuser process", "process is being terminated"); err != nil {
		return false, err
	}
	done := b.deps.Terminate(target, nil)
	if target.identity.key == b.own {
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
		b.warnings.send(pgerror.New(pgerror.Warning, "backend with PID %d did not terminate within %d milliseconds", pid, timeout.Milliseconds()))
		return false, nil
	}
}

// blocking is pg_blocking_pids: the sessions of this process that change the schema, or hold a row lock or an advisory lock, for which a
// session of it waits.
func (b *backends) blocking(ctx context.Context, pid int32) (pids []int32, err error) {
	add := func(blocker uint32) {
		if !slices.Contains(pids, int32(blocker)) {
			pids = append(pids, int32(blocker))
		}
	}
	if wait, ok := b.tx.catalog.WaitOf(uint32(pid)); ok {
		for _, blocker := range wait.Blockers {
			add(blocker)
		}
	}
	var waits []tso.Timestamp // the transactions and holds of the session
	byTxn := map[tso.Timestamp]uint32{}
	b.deps.Sessions(func(other *Session) {
		for _, ts := range other.activity.lockers() {
			byTxn[ts] = other.identity.key.PID
			if int64(other.identity.key.PID) == int64(pid) {
				waits = append(waits, ts)
			}
		}
	})
	if len(waits) == 0 {
		return pids, nil
	}
	_, err = kv.ListLocks(ctx, b.deps.Router, func(_ *kv.RangeDescriptor, lock *mvcc.LockInfo) error {
		waiting := func(ts tso.Timestamp) bool { return slices.Contains(waits, ts) }
		if holder, here := byTxn[lock.Lock.StartTS]; here && slices.ContainsFunc(lock.Waiters, waiting) {
			add(holder)
		}
		return nil
	})
	return pids, err
}
