package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
)

// Goal: a watch ends with an error that makes its caller try again when the store stops or is killed, and does not keep a
// server from stopping gracefully. Method: a watch over a connection to a process that ends in each of the ways.
func TestWatchEndsWithItsShard(t *testing.T) {
	for name, end := range map[string]func(p *process){
		"stops": func(p *process) {
			p.store.EndWatches()
			p.server.GracefulStop()
		},
		"is killed": func(p *process) { p.server.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			_, shard, err := c.router.Locate(t.Context(), []byte("k"))
			c.must(err)
			began, ended := make(chan struct{}, 1), make(chan error, 1)
			go func() {
				ended <- shard.WatchNotify(context.Background(), func([]kv.NotifyHint) error {
					began <- struct{}{}
					return nil
				})
			}()
			<-began
			stopped := make(chan struct{})
			go func() {
				end(c.procs[0])
				close(stopped)
			}()
			for range 2 {
				select {
				case <-stopped:
					stopped = nil
				case err := <-ended:
					var unavailable *kv.UnavailableError
					if !errors.As(err, &unavailable) {
						t.Errorf("the watch ends with %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("the server or the watch does not end")
				}
			}
		})
	}
}

// Goal: who watches ends a watch by an error of its own, and receives it. Method: an error at the first hint.
func TestWatcherEndsItsWatch(t *testing.T) {
	c := newCluster(t, 1)
	_, shard, err := c.router.Locate(t.Context(), []byte("k"))
	c.must(err)
	enough := errors.New("enough")
	if err := shard.WatchNotify(t.Context(), func([]kv.NotifyHint) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
}
