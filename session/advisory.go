package session

import (
	"context"
	"errors"

	"github.com/percodb/percodb/advisory"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// advisoryLocks are the session's advisory locks. Those that lock none cost a nil check.
type advisoryLocks struct {
	locks   *advisory.Locks // nil: none has been locked yet
	account memory.Account
	session *Session
}

// open returns the locks for the first use.
func (l *advisoryLocks) open(ctx context.Context) (*advisory.Locks, error) {
	if locks := l.locks; locks != nil {
		return locks, nil
	}
	s := l.session
	l.account = memory.NewAccount(s.deps.Memory, 0)
	locks := advisory.New(advisory.Options{
		Database: s.identity.databaseOID, DB: s.deps.DB, Graph: s.deps.WaitGraph, Memory: &l.account, Lost: func() { s.deps.Terminate(s, errAdvisoryLost()) },
	})
	if txn := s.tx.txn; txn != nil {
		if err := locks.Follow(ctx, txn.StartTS()); err != nil {
			return nil, err
		}
	}
	l.locks = locks
	s.activity.advisory.Store(locks)
	return locks, nil
}

// errAdvisoryLost is the error that ends a session which may no longer have an advisory lock.
func errAdvisoryLost() *pgerror.Error {
	return pgerror.New(pgerror.CrashShutdown, "terminating connection because an advisory lock was lost").
		WithDetail("A store has restarted, or could not be reached until the lock expired.").
		WithHint("Connect again, and lock again before relying on the lock.")
}

// begin is called when a transaction has begun.
func (l *advisoryLocks) begin(ctx context.Context, txn *percolator.Txn) error {
	if l.locks == nil {
		return nil
	}
	return l.locks.Follow(ctx, txn.StartTS())
}

// end is called when the transaction has ended.
func (l *advisoryLocks) end(ctx context.Context) {
	if l.locks != nil {
		l.locks.EndTransaction(ctx)
	}
}

// confirm fails the commit of a session that may have lost a lock. In a process of its own the store keeps them as long as the session lives.
func (l *advisoryLocks) confirm(ctx context.Context) error {
	if l.locks == nil || !l.session.deps.Shared {
		return nil
	}
	err := l.locks.Confirm(ctx)
	if refused := (*percolator.LockNotAvailableError)(nil); errors.As(err, &refused) {
		return errAdvisoryLost()
	}
	return err
}

// mark is a point for rollbackTo and undo.
func (l *advisoryLocks) mark() int {
	if l.locks == nil {
		return 0
	}
	return l.locks.Mark()
}

// rollbackTo follows a rollback to the savepoint at the mark.
func (l *advisoryLocks) rollbackTo(ctx context.Context, mark int) {
	if l.locks != nil {
		l.locks.RollbackTo(ctx, mark)
	}
}

// undo releases what a statement has locked since the mark, because it runs again.
func (l *advisoryLocks) undo(ctx context.Context, mark int) {
	if l.locks != nil {
		l.locks.Undo(ctx, mark)
	}
}

// unlockAll releases the locks of the session level.
func (l *advisoryLocks) unlockAll(ctx context.Context) {
	if l.locks != nil {
		l.locks.ReleaseAll(ctx)
	}
}

// close releases all locks.
func (l *advisoryLocks) close(ctx context.Context) {
	if l.locks != nil {
		l.locks.Close(ctx)
		l.account.Close()
	}
}

// LockAdvisory implements builtin.SessionInfo.
func (i *info) LockAdvisory(ctx context.Context, lock builtin.AdvisoryLock) (bool, error) {
	locks, err := i.tx.advisory.open(ctx)
	if err != nil {
		return false, err
	}
	return locks.Acquire(ctx, advisory.Request{
		Key: advisory.Key{High: lock.High, Low: lock.Low, Pair: lock.Pair}, Shared: lock.Shared, Transaction: lock.Transaction, Try: lock.Try,
		LockTimeout: i.settings.LockTimeout,
	})
}

// UnlockAdvisory implements builtin.SessionInfo.
func (i *info) UnlockAdvisory(ctx context.Context, lock builtin.AdvisoryLock) bool {
	if l := i.tx.advisory.locks; l != nil && l.Release(ctx, advisory.Key{High: lock.High, Low: lock.Low, Pair: lock.Pair}, lock.Shared) {
		return true
	}
	mode := "ExclusiveLock"
	if lock.Shared {
		mode = "ShareLock"
	}
	i.backends.warnings.send(pgerror.New(pgerror.Warning, "you don't own a lock of type %s", mode))
	return false
}

// UnlockAllAdvisory implements builtin.SessionInfo.
func (i *info) UnlockAllAdvisory(ctx context.Context) { i.tx.advisory.unlockAll(ctx) }

// AdvisoryLocks implements catalog.SystemView.
func (v *systemView) AdvisoryLocks() (all []catalog.AdvisoryLock) {
	if v.deps.Sessions == nil {
		return nil
	}
	v.deps.Sessions(func(s *Session) {
		locks := s.activity.advisory.Load()
		if locks == nil {
			return
		}
		for _, l := range locks.List() {
			row := catalog.AdvisoryLock{PID: s.identity.key.PID, Database: s.identity.databaseOID, High: l.Key.High, Low: l.Key.Low, Pair: l.Key.Pair, Shared: l.Shared, Granted: l.Granted}
			if !l.Granted {
				row.WaitStart = builtin.UnixToTimestamp(l.Since)
			}
			all = append(all, row)
		}
	})
	return all
}
