package mvcc

import (
	"bytes"
	"fmt"

	"github.com/percodb/percodb/tso"
)

// Notifications tell observers which keys have changed. A mutation names the observers of its key (NotifySet); whoever
// commits the mutation, its owner or another transaction that resolves its lock, writes a notify cell for each of them
// in the batch with the version. A cell is not versioned: it has the commit_ts of the newest change of its key of which
// the observer was notified, so that several changes are one piece of work. The observer clears the cell up to its
// snapshot when its work is committed. Cells are no part of any snapshot: what was handled is decided by the observers'
// own transactional records, to which cells point.

// MaxNotifyObservers bounds the observers of a NotifySet.
const MaxNotifyObservers = 1024

// NotifySet names the observers to notify of a mutation. It is immutable: locks refer to the set of the request that
// made them. Observers is not empty and ascends; no observer has the number 0.
type NotifySet struct {
	// Hop is the length of the chain of observers that caused the change: 0 if no observer did.
	Hop       uint8
	Observers []uint64
}

// NotifyCell is what an observer has not cleared yet of one key.
type NotifyCell struct {
	Key    []byte
	Latest tso.Timestamp // commit_ts of the newest change, or the timestamp of a later NotifyPut
	Hop    uint8         // of that change
}

// NotifyPage is a part of an observer's cells, in key order. ResumeKey is where to continue, nil at the end. Passed is the
// number of stored entries that were passed over: cells that were cleared, and are not compacted yet.
type NotifyPage struct {
	Cells     []NotifyCell
	ResumeKey []byte
	Passed    int
}

// NotifyUpTo is a cell to clear unless it is newer than UpTo.
type NotifyUpTo struct {
	Key  []byte
	UpTo tso.Timestamp
}

// NotifyHint reports a commit that wrote a cell. Observer 0 asks for a scan of all cells: hints may be missing.
type NotifyHint struct {
	Observer uint64
	Key      []byte
	CommitTS tso.Timestamp
	// AtMicros is when that was, by the clock of the shard's process, in microseconds since the Unix epoch. The physical part of CommitTS
	// may be 10 ms behind.
	AtMicros int64
}

// validate returns *InvalidRequestError unless the set is well-formed.
func (n *NotifySet) validate() error {
	if len(n.Observers) == 0 || len(n.Observers) > MaxNotifyObservers {
		return &InvalidRequestError{Detail: fmt.Sprintf("notify set of %d observers", len(n.Observers))}
	}
	before := uint64(0)
	for _, observer := range n.Observers {
		if observer <= before {
			return &InvalidRequestError{Detail: "observers of a notify set do not ascend"}
		}
		before = observer
	}
	return nil
}

// validateNotifySets checks the sets of a request.
func validateNotifySets(sets []NotifySet) error {
	for i := range sets {
		if err := sets[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// notifySet returns the set of a mutation of a request with these sets, nil if it has none.
func (m *Mutation) notifySet(sets []NotifySet) *NotifySet {
	if m.Notify == 0 {
		return nil
	}
	return &sets[m.Notify-1]
}

// validateNotify checks a mutation's reference to one of the sets, and returns about how many bytes its cells take.
func (m *Mutation) validateNotify(sets []NotifySet) (size int, err error) {
	switch {
	case m.Notify == 0:
		return 0, nil
	case int(m.Notify) > len(sets):
		return 0, &InvalidRequestError{Detail: fmt.Sprintf("notify set %d of %d", m.Notify, len(sets))}
	case decideRecord(m.Op, 0, 0) != recordVersion:
		return 0, &InvalidRequestError{Detail: fmt.Sprintf("operation %d with a notify set", m.Op)}
	}
	return len(sets[m.Notify-1].Observers) * (len(m.Key) + notifyCellOverhead), nil
}

// notifyCellOverhead is about the size of a cell in a batch without its key.
const notifyCellOverhead = 32

func (n *NotifySet) equal(o *NotifySet) bool {
	if n == o || n == nil || o == nil {
		return n == o
	}
	if n.Hop != o.Hop || len(n.Observers) != len(o.Observers) {
		return false
	}
	for i := range n.Observers {
		if n.Observers[i] != o.Observers[i] {
			return false
		}
	}
	return true
}

// validateUpTo refuses cells whose keys do not ascend strictly.
func validateUpTo(observer uint64, cells []NotifyUpTo) error {
	if len(cells) == 0 || observer == 0 {
		return &InvalidRequestError{Detail: fmt.Sprintf("clear of %d cells of observer %d", len(cells), observer)}
	}
	for i := 1; i < len(cells); i++ {
		if bytes.Compare(cells[i-1].Key, cells[i].Key) >= 0 {
			return &InvalidRequestError{Detail: "keys do not ascend"}
		}
	}
	return nil
}
