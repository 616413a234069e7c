package percolator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
)

// Goal: the owner of a hold, shared or exclusive, is told once if others may have had its lock: its store has restarted, or could not be reached until
// the lock expired. Garbage collection does not wait for it. Method: restart the store under a hold; send heartbeats.
func TestHoldOverARestart(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name string
		do   func(c *restarts, db *DB, h *Hold)
		lost int
	}{
		{name: "alone", lost: 1, do: func(_ *restarts, _ *DB, h *Hold) { h.txn.locks.lease.beat() }},
		{name: "asked", lost: 1, do: func(_ *restarts, _ *DB, h *Hold) {
			for range 2 {
				if err := h.Confirm(ctx); errkind.Of(err) != errkind.LockNotAvailable {
					t.Errorf("confirmed: %v", err)
				}
			}
		}},
		{name: "another has locked it", lost: 1, do: func(_ *restarts, db *DB, h *Hold) {
			if err := lock(mustBeginTxn(t, db, pessimistic), "a"); err != nil {
				t.Error(err)
			}
			h.txn.locks.lease.beat()
			h.txn.locks.lease.beat()
		}},
		{name: "not reached", lost: 1, do: func(_ *restarts, _ *DB, h *Hold) {
			l := &h.txn.locks.lease
			l.beatHold(time.Now(), errors.New("not reached"))
			if l.doomed.Load() {
				t.Error("lost at the first heartbeat that failed")
			}
			h.state.renewed = time.Now().Add(-time.Duration(l.ttlMillis) * time.Millisecond)
			l.beatHold(time.Now(), errors.New("not reached"))
		}},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				c, db := newRestarts(t, "m")
				lost := 0
				h, err := db.Hold(ctx, []byte("a"), HoldOptions{Shared: shared, Lost: func() { lost++ }})
				if err != nil {
					t.Fatal(err)
				}
				now, err := c.oracle.Now(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if db.active.oldest(now) < h.StartTS() {
					t.Error("garbage collection waits for the hold")
				}
				if err := h.Confirm(ctx); err != nil {
					t.Errorf("not confirmed: %v", err)
				}
				c.restart(0)
				tc.do(c, db, h)
				if lost != tc.lost {
					t.Errorf("lost %d times, want %d", lost, tc.lost)
				}
				_, err = db.Hold(ctx, []byte("a"), HoldOptions{NoWait: true})
				if refused := (*LockNotAvailableError)(nil); tc.lost == 0 && !errors.As(err, &refused) {
					t.Errorf("another hold: %v, want that it is refused", err)
				}
				h.Release(ctx)
			})
		}
	}
}
