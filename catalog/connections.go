package catalog

import (
	"context"
	"sync"
	"time"
)

// connections counts the sessions of this process that use a database.
type connections struct {
	sync.Mutex
	open int
	// closed: a change under way may let no session begin.
	closed bool
	// changed is closed when either changes; nil if nothing waits for it.
	changed chan struct{}
}

func (u *connections) wake() {
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}

func (u *connections) wait() <-chan struct{} {
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	return u.changed
}

// Connect counts a session that begins to use the database, until Disconnect. It waits for a change under way that lets none begin.
func (c *Catalog) Connect(ctx context.Context) error {
	u := &c.connections
	for {
		u.Lock()
		if !u.closed {
			u.open++
			u.Unlock()
			return nil
		}
		changed := u.wait()
		u.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Disconnect ends what Connect has begun.
func (c *Catalog) Disconnect() {
	u := &c.connections
	u.Lock()
	defer u.Unlock()
	u.open--
	u.wake()
}

// Seclude lets no further session use the database until release is called, and waits up to patience until no more than own do. others is the
// number of those that still do.
func (c *Catalog) Seclude(ctx context.Context, own int, patience time.Duration) (release func(), others int, err error) {
	u := &c.connections
	timer := time.NewTimer(patience)
	defer timer.Stop()
	closed, late := false, false
	release = func() {
		u.Lock()
		defer u.Unlock()
		if closed {
			u.closed, closed = false, false
			u.wake()
		}
	}
	for {
		u.Lock()
		if !closed && !u.closed {
			u.closed, closed = true, true
		}
		others = u.open - own
		if closed && others <= 0 || late {
			if !closed { // Another change of the database is under way.
				others = max(others, 1)
			}
			u.Unlock()
			return release, max(others, 0), nil
		}
		changed := u.wait()
		u.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			late = true
		case <-ctx.Done():
			release()
			return nil, 0, ctx.Err()
		}
	}
}
