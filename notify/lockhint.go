package notify

import "github.com/percodb/percodb/tso"

// LockHint is a message from one process to another about a lock. It may be lost, or arrive late: its receiver looks at the lock.
type LockHint struct {
	Process uint64        // the receiver; on arrival, the sender
	Holder  tso.Timestamp // start_ts of the transaction that has, or had, the lock
	Key     []byte
	// Released: the lock has been removed. Otherwise a transaction of the sender waits for that.
	Released bool
}

// hintShare is the part of a process's queue beyond which hints are dropped, which leaves the rest to notifications.
const hintShare = 1.0 / 16

// SendLockHint passes a hint on to the process that it is for, unless that is not connected, or many events wait for it.
func (m *Member) SendLockHint(h LockHint) {
	x := m.exchange
	x.mu.Lock()
	to := x.members[h.Process]
	x.mu.Unlock()
	if to == nil || to.queue.usage() > hintShare {
		return
	}
	h.Process = m.process
	to.add(Event{LockHint: &h})
}
