package percolator

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
)

// Notify makes the commit notify observers of the key that was written last, by Put, Insert or Delete: call it directly
// after that. Several writes of a key, and several calls, notify the observers of all of them, with the largest hop. A
// rollback to a savepoint takes the notification back with its write. The set is not changed and not kept.
//
// Observers are notified if and only if the transaction commits and changes the key: whoever commits the key, this
// transaction or one that encounters its lock, writes the notify cells.
func (t *Txn) Notify(set *mvcc.NotifySet) {
	if !t.done && t.buf != nil && t.buf.newest < t.buf.n {
		t.buf.notify(set)
	}
}

// notify adds a set to the entry written last.
func (b *writeBuffer) notify(set *mvcc.NotifySet) {
	if b.sets == nil {
		b.sets = &notifySets{}
	}
	e := b.at(b.newest)
	e.notify = b.sets.union(e.notify, b.sets.number(set))
}

// notifyNumber is a set in a transaction's notifySets, as in mvcc.Mutation.Notify: 0 is none, 1 the first.
type notifyNumber uint16

// maxNotifySets bounds the different sets of a transaction.
const maxNotifySets = math.MaxUint16

// errTooManyNotifySets is the error of a commit: without some of the sets, changes would go unnoticed.
var errTooManyNotifySets = errkind.New(errkind.TooLarge, "percolator: the transaction notifies more than 65535 different sets of observers")

// notifySets numbers the sets of observers that a transaction's writes notify. Writes of one statement mostly have one
// set, so there are few. Sets that are equal have one number. A nil table has none.
type notifySets struct {
	list []mvcc.NotifySet
	last mvcc.NotifySet // the set whose number was requested last, and its number
	n    notifyNumber
	// byContent is nil as long as there is one set at most.
	byContent map[string]notifyNumber
	full      bool // a set has no number
}

// number returns a set's number, a new one if need be.
func (s *notifySets) number(set *mvcc.NotifySet) notifyNumber {
	if s.n != 0 && equalSets(&s.last, set) {
		return s.n
	}
	if len(s.list) == 0 {
		return s.add(set)
	}
	if s.byContent == nil {
		s.byContent = map[string]notifyNumber{contentOf(&s.list[0]): 1}
	}
	content := contentOf(set)
	n, known := s.byContent[content]
	if !known {
		if n = s.add(set); n != 0 {
			s.byContent[content] = n
		}
		return n
	}
	s.last, s.n = s.list[n-1], n
	return n
}

// add adds a set that is not in the table.
func (s *notifySets) add(set *mvcc.NotifySet) notifyNumber {
	if len(s.list) == maxNotifySets {
		s.full = true
		return 0
	}
	s.list = append(s.list, mvcc.NotifySet{Hop: set.Hop, Observers: slices.Clone(set.Observers)})
	s.n = notifyNumber(len(s.list))
	s.last = s.list[s.n-1]
	return s.n
}

func equalSets(a, b *mvcc.NotifySet) bool {
	return a.Hop == b.Hop && slices.Equal(a.Observers, b.Observers)
}

func contentOf(set *mvcc.NotifySet) string {
	b := append(make([]byte, 0, 1+8*len(set.Observers)), set.Hop)
	for _, observer := range set.Observers {
		b = binary.BigEndian.AppendUint64(b, observer)
	}
	return string(b)
}

// union returns the number of the set with the observers of both, and the larger hop.
func (s *notifySets) union(a, b notifyNumber) notifyNumber {
	switch {
	case a == b || b == 0:
		return a
	case a == 0:
		return b
	}
	x, y := &s.list[a-1], &s.list[b-1]
	both := mvcc.NotifySet{Hop: max(x.Hop, y.Hop), Observers: slices.Concat(x.Observers, y.Observers)}
	slices.Sort(both.Observers)
	both.Observers = slices.Compact(both.Observers)
	return s.number(&both)
}

// takeSets hands the sets over to the commit, after the writes have been folded, which unites some.
func (c *committer) takeSets(t *Txn) error {
	if sets := t.buf.sets; sets != nil {
		if c.notify = sets.list; sets.full {
			return errTooManyNotifySets
		}
	}
	return nil
}
