package rpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/tso"
	"github.com/percodb/percodb/tso/rpc/tsopb"
)

// stuck is a source that answers when the test says so.
type stuck struct {
	asked   chan struct{}
	release chan struct{}
}

func (s *stuck) NowN(ctx context.Context, _ int) (tso.Timestamp, error) {
	s.asked <- struct{}{}
	select {
	case <-s.release:
		return 7, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Goal: a request that takes long is left alone as long as the other process answers pings.
func TestSlowRequestIsNotCutOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewGRPCServer()
	source := &stuck{asked: make(chan struct{}, 1), release: make(chan struct{})}
	RegisterOracle(s, source)
	go s.Serve(l)
	defer s.Stop()
	conn, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.AfterFunc(pingAfter+pingTimeout+2*time.Second, func() { close(source.release) })
	res, err := tsopb.NewOracleClient(conn).Take(t.Context(), &tsopb.TakeRequest{Count: 1})
	if err != nil || res.First != 7 {
		t.Fatal(res, err)
	}
}

// Goal: a request to a process that does not answer, though its machine accepts connections, ends after a
// while, the next one too, and both count as possibly sent; a request to an address without a listener
// counts as not sent. Method: a listener that speaks HTTP/2 up to the settings and then stops.
func TestSilentProcessIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gate := &gatedListener{Listener: l, blocked: make(chan struct{})}
	s := NewGRPCServer()
	source := &stuck{asked: make(chan struct{}, 10), release: make(chan struct{})}
	RegisterOracle(s, source)
	go s.Serve(gate)
	defer s.Stop()
	conn, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := tsopb.NewOracleClient(conn)
	first, cancel := context.WithCancel(t.Context())
	go func() {
		<-source.asked
		cancel()
	}()
	if _, err := client.Take(first, &tsopb.TakeRequest{Count: 1}); status.Code(err) != codes.Canceled {
		t.Fatal(err) // this one only made the connection
	}
	close(gate.blocked)
	for i := range 2 {
		began := time.Now()
		_, err := client.Take(t.Context(), &tsopb.TakeRequest{Count: 1}, grpc.WaitForReady(false))
		if status.Code(err) != codes.Unavailable || time.Since(began) > pingAfter+pingTimeout+time.Minute {
			t.Fatalf("request %d: %v after %v", i, err, time.Since(began))
		}
		if NotSent(err) {
			t.Errorf("request %d may have been sent: %v", i, err)
		}
	}

	gone, err := Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := tsopb.NewOracleClient(gone).Take(t.Context(), &tsopb.TakeRequest{Count: 1}); !NotSent(err) || errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// gatedListener's connections read nothing any more once blocked is closed.
type gatedListener struct {
	net.Listener
	blocked chan struct{}
}

func (l *gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: c, blocked: l.blocked, closed: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	blocked, closed chan struct{}
	once            sync.Once
}

func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.blocked:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// answers is a source that gives what the test says.
type answers struct{ next []tso.Timestamp }

func (a *answers) NowN(context.Context, int) (tso.Timestamp, error) {
	ts := a.next[0]
	a.next = a.next[1:]
	return ts, nil
}

// Goal: a client does not pass on timestamps at or below those it has had: the oracle has lost its data.
func TestOracleThatGoesBackIsNotBelieved(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewGRPCServer()
	RegisterOracle(s, &answers{next: []tso.Timestamp{8000, 8016, 8080, 7000, 9000}})
	go s.Serve(l)
	defer s.Stop()
	conn, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := NewClient(conn, ClientOptions{})
	defer c.Close()
	var unavailable *tso.UnavailableError
	if ts, err := c.NowN(t.Context(), 3); ts != 8000 || err != nil {
		t.Fatal(ts, err)
	}
	if ts, err := c.NowN(t.Context(), 1); !errors.As(err, &unavailable) {
		t.Error("the last of three was given again:", ts, err)
	}
	if ts, err := c.NowN(t.Context(), 1); ts != 8080 || err != nil {
		t.Error(ts, err)
	}
	if ts, err := c.NowN(t.Context(), 1); !errors.As(err, &unavailable) {
		t.Error(ts, err)
	}
	if ts, err := c.NowN(t.Context(), 1); ts != 9000 || err != nil {
		t.Error(ts, err)
	}
}
