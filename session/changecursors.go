package session

import (
	"bytes"
	"sync"
)

// ChangeCursors remembers where the next call of percodb.changes begins, by observer, for all sessions of a process: after the rows that
// were claimed last. Rows whose transactions fail therefore hold up no others. If transactions fail one after the other, the next
// one is given fewer rows, so that one row at fault does not make the rows beside it fail for ever. Safe for concurrent use; nil
// remembers nothing.
type ChangeCursors struct {
	mu         sync.Mutex
	byObserver map[uint64]*changeCursor
}

// changeCursor is the position of one observer's consumers.
type changeCursor struct {
	from     []byte // key of a row; nil: the first
	calls    int
	limit    int // of the rows of a call; 0: none
	failures int // transactions that were rolled back one after the other
}

const (
	// maxCursors bounds the observers whose positions are remembered.
	maxCursors = 10_000
	// Of firstEvery calls one begins at the first key, so that rows that are added at the end do not keep the others waiting.
	firstEvery = 16
)

// NewChangeCursors returns positions at the first keys.
func NewChangeCursors() *ChangeCursors {
	return &ChangeCursors{byObserver: map[uint64]*changeCursor{}}
}

// of returns the cursor of an observer. The caller holds c.mu.
func (c *ChangeCursors) of(observer uint64) *changeCursor {
	cursor := c.byObserver[observer]
	if cursor == nil {
		if len(c.byObserver) >= maxCursors {
			clear(c.byObserver)
		}
		cursor = &changeCursor{}
		c.byObserver[observer] = cursor
	}
	return cursor
}

// next returns where a call that wants limit rows begins, nil for the first key, and how many it may claim. stay: the call does not move
// the cursor.
func (c *ChangeCursors) next(observer uint64, limit int) (from []byte, claimable int, stay bool) {
	if c == nil {
		return nil, limit, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cursor := c.of(observer)
	if cursor.limit > 0 {
		limit = min(limit, cursor.limit)
	}
	if cursor.calls++; cursor.calls%firstEvery == 0 {
		return nil, limit, true
	}
	return cursor.from, limit, false
}

// move makes the next call begin behind a key; nil: at the first.
func (c *ChangeCursors) move(observer uint64, key []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cursor := c.of(observer); key == nil {
		cursor.from = nil
	} else {
		cursor.from = append(bytes.Clone(key), 0)
	}
}

// committed notes that a transaction that has claimed changes has committed.
func (c *ChangeCursors) committed(list []delivery) {
	if c == nil || len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range list {
		cursor := c.of(list[i].of.ID)
		if cursor.failures = 0; i > 0 && list[i].of.ID == list[i-1].of.ID {
			continue // one transaction
		}
		if cursor.limit *= 2; cursor.limit >= maxChanges {
			cursor.limit = 0
		}
	}
}

// rolledBack notes that claims of a transaction were rolled back. A call for several rows is repeated, the second time with half as
// many; a single row waits until the other rows have had their turn.
func (c *ChangeCursors) rolledBack(list []delivery) {
	if c == nil || len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(list) > 0 {
		observer, rows, first := list[0].of.ID, 0, []byte(nil)
		for ; len(list) > 0 && list[0].of.ID == observer; list = list[1:] {
			changes := list[0].Changes
			if rows += len(changes); first == nil && len(changes) > 0 {
				first = changes[0].Key
			}
		}
		if rows < 2 {
			continue
		}
		cursor := c.of(observer)
		if cursor.from = bytes.Clone(first); cursor.failures > 0 {
			cursor.limit = rows / 2
		}
		cursor.failures++
	}
}
