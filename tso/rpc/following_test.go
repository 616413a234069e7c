package rpc

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/tso"
)

// mutedOracle answers nothing.
type mutedOracle struct{ asked chan struct{} }

func (o *mutedOracle) Now(ctx context.Context) (tso.Timestamp, error) { return o.NowN(ctx, 1) }

func (o *mutedOracle) NowN(ctx context.Context, _ int) (tso.Timestamp, error) {
	o.asked <- struct{}{}
	<-ctx.Done()
	return 0, ctx.Err()
}

func serveAt(t *testing.T, o tso.Source) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGRPCServer()
	RegisterOracle(g, o)
	go g.Serve(listener)
	t.Cleanup(g.Stop)
	return listener.Addr().String()
}

// Goal: when the address has moved, requests go to the process there, although the one at the former address is still connected. Method: the first process
// answers pings, and nothing else; a request waits for it while the address moves.
func TestFollowing(t *testing.T) {
	local, err := tso.NewLocal(t.Context(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	muted := &mutedOracle{asked: make(chan struct{}, 1)}
	former, next := serveAt(t, muted), serveAt(t, local)
	var addr atomic.Pointer[string]
	addr.Store(&former)
	var none *Security
	f, err := none.DialFollowing(certs.SQL, func(context.Context) (string, error) { return *addr.Load(), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := NewClient(f, ClientOptions{}).Now(t.Context())
		answered <- err
	}()
	<-muted.asked
	addr.Store(&next)
	f.Moved()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
