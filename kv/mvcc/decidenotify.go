package mvcc

import "github.com/percodb/percodb/tso"

// notifyCell is the contents of a cell; latest 0 means that there is none.
type notifyCell struct {
	latest tso.Timestamp
	hop    uint8
}

// decideNotify returns a cell after a notification at ts. Commits of one key come in ascending order, but a NotifyPut may
// have been ahead of them.
func decideNotify(c notifyCell, ts tso.Timestamp, hop uint8) notifyCell {
	if c.latest >= ts {
		return c
	}
	return notifyCell{latest: ts, hop: hop}
}

// decideClear reports whether a clear up to upTo removes a cell. What the observer has handled lies at or below upTo, so
// a newer cell stays. large says that a large commit under way has the key: the cell that it writes may not be visible
// yet, and it replaces this one whatever is decided here.
func decideClear(c notifyCell, upTo tso.Timestamp, large bool) bool {
	return c.latest != 0 && c.latest <= upTo && !large
}
