package mvcc

import (
	"sync"
	"testing"
	"time"
)

// Goal: a transaction whose earlier request, late or abandoned, is granted a share of a key does not wait for itself with its
// next one. Method: behind a holder, two requests of one transaction queue; the holder goes. (Found by test/sim: the process ended.)
func TestTwoRequestsOfATransactionInAQueue(t *testing.T) {
	for _, test := range []struct {
		name          string
		first, second bool // shared
	}{
		{name: "shared, then alone", first: true},
		{name: "alone, then shared", second: true},
		{name: "alone, twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, false, nil)
			key := []byte("k")
			var waits sync.WaitGroup
			queued := int64(0)
			queue := func(u *lockUser, shared bool) {
				queued++
				waits.Go(func() {
					args := &AcquireArgs{Keys: [][]byte{key}, Primary: key, StartTS: u.start, TTLMillis: 3000, Shared: shared, Wait: 10 * time.Second}
					if _, err := w.AcquireLocks(t.Context(), admitAll{}, args); err != nil {
						t.Errorf("%d, shared %v: %v", u.start, shared, err)
					}
				})
				for w.locks.stats.waiting.Load() != queued && !t.Failed() {
					time.Sleep(time.Millisecond)
				}
			}
			holder, user := w.lockUser(), w.lockUser()
			holder.lock("k", false)
			queue(user, test.first)
			queue(user, test.second)
			holder.expire("k")
			waits.Wait()
		})
	}
}
