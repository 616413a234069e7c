package executor

import (
	"bytes"
	"math/bits"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// notifier selects the observers that the changes of a statement's rows notify. The sets that it makes are shared by all rows,
// and by the runs of the statement. nil: the table has no observers.
type notifier struct {
	*planner.Observed
	ex   *execution
	all  uint64 // the bits of all observers
	sets []observerSet
	hop  uint8  // of the sets
	old  []byte // scratch
	row  []byte
}

// observerSet is a set of observers, by their bits.
type observerSet struct {
	bits uint64
	set  *mvcc.NotifySet
}

// notifyRef is 0 for a change that notifies nobody, else 1 + the index of one of the notifier's sets.
type notifyRef uint16

// maxObserverSets bounds the different sets of a statement. A row with a further combination notifies all observers of the table.
const maxObserverSets = 1024

func newNotifier(ex *execution, o *planner.Observed) *notifier {
	if o == nil {
		return nil
	}
	return &notifier{Observed: o, ex: ex, all: 1<<len(o.Observers) - 1}
}

// everyone returns the set of a row that is new or deleted.
func (n *notifier) everyone() notifyRef {
	if n == nil {
		return 0
	}
	return n.ref(n.all)
}

// changed returns the set of a row that is updated in place: the observers of the columns that differ. Values that are equal but not
// identical differ (1.0 and 1.00).
func (n *notifier) changed(old, row types.Row) (notifyRef, error) {
	if n == nil {
		return 0, nil
	}
	found := uint64(0)
	for i := range n.Columns {
		c := &n.Columns[i]
		if c.Observers&^found == 0 {
			continue
		}
		differ, err := n.differ(old[c.Ordinal], row[c.Ordinal])
		if err != nil {
			return 0, err
		}
		if differ {
			found |= c.Observers
		}
	}
	return n.ref(found), nil
}

func (n *notifier) differ(a, b types.Datum) (_ bool, err error) {
	if a == b {
		return false, nil
	}
	if n.old, err = rowenc.AppendDatum(n.old[:0], a); err != nil {
		return false, err
	}
	if n.row, err = rowenc.AppendDatum(n.row[:0], b); err != nil {
		return false, err
	}
	return !bytes.Equal(n.old, n.row), nil
}

// ref returns the set with the given bits.
func (n *notifier) ref(found uint64) notifyRef {
	if found == 0 {
		return 0
	}
	if n.hop != n.ex.rt.Hop {
		n.hop, n.sets = n.ex.rt.Hop, nil // of an earlier run
	}
	for i := range n.sets {
		if n.sets[i].bits == found {
			return notifyRef(i + 1)
		}
	}
	if len(n.sets) >= maxObserverSets && found != n.all {
		return n.ref(n.all)
	}
	set := &mvcc.NotifySet{Hop: n.hop, Observers: make([]uint64, 0, bits.OnesCount64(found))}
	for i, observer := range n.Observers {
		if found&(1<<i) != 0 {
			set.Observers = append(set.Observers, observer)
		}
	}
	n.sets = append(n.sets, observerSet{found, set})
	return notifyRef(len(n.sets))
}

// notify marks the transaction's last write with a set.
func (n *notifier) notify(ref notifyRef) {
	if ref != 0 {
		n.ex.txn.Notify(n.sets[ref-1].set)
	}
}
