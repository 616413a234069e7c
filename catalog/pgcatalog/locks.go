package pgcatalog

import (
	"fmt"

	"github.com/percodb/percodb/catalog"
)

// heldLockRows are the rows of pg_locks: the advisory locks of this process's sessions, and what their transactions lock. Locks on rows are in
// percodb.locks.
func heldLockRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, l := range s.view.SessionLocks() {
		if err := s.sessionLocks(&l); err != nil {
			return err
		}
	}
	for _, l := range s.view.AdvisoryLocks() {
		mode, subID := catalog.ExclusiveLock, 1
		if l.Shared {
			mode = catalog.ShareLock
		}
		if l.Pair {
			subID = 2
		}
		err := s.lock("advisory", l.PID, mode, l.Granted, col{"database", oid(l.Database)}, col{"classid", oid(l.High)}, col{"objid", oid(l.Low)},
			col{"objsubid", num(subID)}, col{"waitstart", instant(l.WaitStart)})
		if err != nil {
			return err
		}
	}
	return nil
}

// sessionLocks are the locks of one transaction: on relations, on its own number, and on the number that it has from its beginning.
func (s *scan) sessionLocks(l *catalog.SessionLocks) error {
	for granted, locks := range map[bool][]catalog.RelationLock{true: l.Held, false: l.Awaited} {
		for _, r := range locks {
			if err := s.lock("relation", l.PID, r.Mode, granted, col{"database", oid(l.Database)}, col{"relation", oid(r.OID)}); err != nil {
				return err
			}
		}
	}
	if err := s.lock("virtualxid", l.PID, catalog.ExclusiveLock, true, col{"virtualxid", text(virtualXID(l.PID))}); err != nil || l.XID == 0 {
		return err
	}
	return s.lock("transactionid", l.PID, catalog.ExclusiveLock, true, col{"transactionid", oid(l.XID)})
}

// lock emits a row of pg_locks.
func (s *scan) lock(kind string, pid uint32, mode catalog.LockMode, granted bool, on ...col) error {
	return s.emit(append(on, col{"locktype", text(kind)}, col{"virtualtransaction", text(virtualXID(pid))}, col{"pid", num(pid)}, col{"mode", text(mode.String())},
		col{"granted", boolean(granted)}, col{"fastpath", boolean(false)})...)
}

// virtualXID identifies a session's transaction that may have no number.
func virtualXID(pid uint32) string { return fmt.Sprintf("%d/0", pid) }
