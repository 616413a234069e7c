package mvcc

import (
	"sync"
	"testing"
	"time"
)

// Goal: a transaction whose earlier request, late or abandoned, is granted a shared lock does not wait for itself with
// its next request. Method: behind a holder, two requests of one transaction queue; the holder releases. (test/sim
// found this: the process ended.)
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
					args := &AcquireLocksRequest{Keys: [][]byte{key}, Primary: key, StartTS: u.start, TTLMillis: 3000, Shared: shared, Wait: 10 * time.Second}
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

// Goal: the request of a transaction to upgrade a shared lock may arrive twice. Method: two transactions share a key,
// one of them requests it exclusively twice, and the other one releases. (test/sim found this as well.)
func TestUpgradeThatArrivesTwice(t *testing.T) {
	w := newWorld(t, false, nil)
	user, other := w.lockUser(), w.lockUser()
	user.lock("k", true)
	other.lock("k", true)
	var waits sync.WaitGroup
	for range 2 {
		waits.Go(func() {
			args := &AcquireLocksRequest{Keys: [][]byte{[]byte("k")}, Primary: []byte("k"), StartTS: user.start, TTLMillis: 3000, Wait: 10 * time.Second}
			if _, err := w.AcquireLocks(t.Context(), admitAll{}, args); err != nil {
				t.Error(err)
			}
		})
	}
	for w.locks.stats.waiting.Load() != 2 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	other.expire("k")
	waits.Wait()
}
