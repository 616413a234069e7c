package session

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Goal: the limit counts from the beginning of each transaction, or from when it is set within one, and not while none is open.
func TestTransactionTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int32
		timer := transactionTimer{expired: func() { fired.Add(1) }}
		expect := func(what string, want int32) {
			t.Helper()
			synctest.Wait()
			if n := fired.Load(); n != want {
				t.Fatalf("%s: fired %d times, want %d", what, n, want)
			}
		}
		pass := func(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) } // Of the test's clock.
		for range 5 {
			timer.follow(true, 10*time.Second)
			pass(9)
			timer.follow(true, 10*time.Second)
			timer.follow(false, 10*time.Second)
			pass(9)
		}
		expect("short transactions", 0)
		timer.follow(true, 10*time.Second)
		pass(5)
		timer.follow(true, 0)
		pass(50)
		expect("lifted within the transaction", 0)
		timer.follow(true, 10*time.Second)
		pass(9)
		expect("set within the transaction", 0)
		pass(2)
		expect("expired", 1)
		timer.follow(false, 0)
		pass(50)
		expect("ended", 1)
	})
}
