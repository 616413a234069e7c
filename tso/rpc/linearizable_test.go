package rpc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
)

// Goal: over the network too, every timestamp is larger than all that were returned before the call
// began, to whichever client, while the oracle's process is killed and started again.
// Method: three client processes' worth of connections, each with callers that share requests and
// one that asks by the handful; porcupine looks for an order.
func TestOracleIsLinearizableOverTheNetwork(t *testing.T) {
	n := startNode(t)
	history := &tsotest.History{}
	const clients, callers, calls = 3, 4, 200
	const all = clients * (callers + 1) * calls
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		c := connect(t, n, ClientOptions{})
		for range callers {
			caller := history.Caller()
			wg.Go(func() {
				for range calls {
					if err := caller.Now(context.Background(), c); err != nil {
						t.Error(err)
						return
					}
					taken.Add(1)
				}
			})
		}
		handful := history.Caller()
		wg.Go(func() {
			for i := range calls {
				if err := handful.NowN(context.Background(), c, 1+i%300); err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
			}
		})
	}
	for _, share := range []int64{1, 2, 3} { // of four
		for taken.Load() < share*all/4 && !t.Failed() {
			time.Sleep(100 * time.Microsecond)
		}
		n.kill()
		n.start()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if err := history.Check(); err != nil {
		t.Error(err)
	}
	if got := history.Len(); got != all {
		t.Errorf("%d calls were recorded", got)
	}
}
