package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is an oracle's process: it can be killed and started again on the same address.
type node struct {
	t      testing.TB
	addr   string
	window *tso.MemoryWindow
	local  *tso.Local
	server *grpc.Server
}

func startNode(t testing.TB) *node {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, addr: addr, window: &tso.MemoryWindow{}}
	n.start()
	t.Cleanup(n.kill)
	return n
}

func (n *node) start() {
	n.t.Helper()
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.local, err = tso.NewLocal(context.Background(), n.window, tso.Options{}); err != nil {
		n.t.Fatal(err)
	}
	n.server = NewGRPCServer()
	RegisterOracle(n.server, n.local)
	go n.server.Serve(l)
}

func (n *node) kill() {
	n.server.Stop()
	n.local.Close()
}

func connect(t testing.TB, n *node, opts ClientOptions) *Client {
	t.Helper()
	conn, err := Dial(n.addr)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(conn, opts)
	t.Cleanup(func() {
		c.Close()
		conn.Close()
	})
	return c
}

// Goal: timestamps increase for concurrent callers while the oracle is killed and restarted,
// without errors. Method: each caller checks its own timestamps; a restarted oracle begins above the old ones.
func TestTimestampsGrowOverRestarts(t *testing.T) {
	n := startNode(t)
	c := connect(t, n, ClientOptions{})
	stop := make(chan struct{})
	var issued atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var last tso.Timestamp
			for {
				ts, err := c.Now(context.Background())
				if err != nil || ts <= last {
					t.Errorf("%d after %d: %v", ts, last, err)
					return
				}
				last = ts
				issued.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	issueMore := func() {
		for before := issued.Load(); issued.Load() < before+100 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		issueMore()
		n.kill()
		n.start()
	}
	issueMore()
	close(stop)
	wg.Wait()
}

// failing is a source that fails with err.
type failing struct{ err error }

func (f failing) NowN(context.Context, int) (tso.Timestamp, error) { return 0, f.err }

// Goal: I3, and that an oracle that stays away is reported, as is a caller who gives up.
func TestErrorsComeBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewGRPCServer()
	cause := &failing{err: &tso.UnavailableError{Err: errors.New("disk full")}}
	RegisterOracle(s, cause)
	go s.Serve(l)
	defer s.Stop()
	c := connect(t, &node{addr: l.Addr().String()}, ClientOptions{})

	var unavailable *tso.UnavailableError
	if _, err := c.Now(t.Context()); !errors.As(err, &unavailable) || unavailable.Err.Error() != "disk full" {
		t.Fatal(err)
	}
	cause.err = tso.ErrClosed
	if _, err := c.Now(t.Context()); !errors.As(err, &unavailable) || !errors.Is(err, tso.ErrClosed) {
		t.Fatal(err)
	}
	cause.err = errors.New("something else")
	if _, err := c.Now(t.Context()); err == nil || err.Error() != "something else" {
		t.Fatal(err)
	}
	s.Stop()
	impatient := connect(t, &node{addr: l.Addr().String()}, ClientOptions{Timeout: 50 * time.Millisecond})
	if _, err := impatient.Now(t.Context()); !errors.As(err, &unavailable) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.NowN(ctx, 3); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Close()
	if _, err := c.Now(t.Context()); !errors.Is(err, tso.ErrClosed) {
		t.Fatal(err)
	}
}

// BenchmarkNow: timestamps a second over a loopback connection, client and server in this process.
func BenchmarkNow(b *testing.B) {
	for _, callers := range []int{1, 16, 256, 2048} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := connect(b, startNode(b), ClientOptions{})
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range callers {
				n := b.N / callers
				if i < b.N%callers {
					n++
				}
				wg.Go(func() {
					for range n {
						if _, err := c.Now(context.Background()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mts/s")
		})
	}
}

// Goal: the error of a client whose oracle is not there says for how long it was tried, so that callers do not try for as long again. Method: a port at
// which nobody listens any more.
func TestUnreachableOracleWasTried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	conn, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const timeout = 50 * time.Millisecond
	c := NewClient(conn, ClientOptions{Timeout: timeout})
	defer c.Close()
	var unavailable *tso.UnavailableError
	if _, err := c.NowN(t.Context(), 1); !errors.As(err, &unavailable) || unavailable.Tried != timeout || unavailable.Err == nil {
		t.Errorf("%v", err)
	}
}
