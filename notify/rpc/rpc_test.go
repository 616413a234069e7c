package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/notify"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

const patience = time.Minute

// cutter is a listener whose connections can be cut.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

// cut cuts the connections with a chance of 1 in n each.
func (c *cutter) cut(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		if rand.IntN(n) == 0 {
			conn.Close()
		}
	}
}

// cluster is an Exchange behind a server.
type cluster struct {
	t        *testing.T
	listener *cutter
	exchange *notify.Exchange
	addr     string
	stop     func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	addr, err := process.FreeAddr() // It is started again there.
	if err != nil {
		t.Fatal(err)
	}
	c.start(addr)
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *cluster) start(addr string) {
	c.t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.listener, c.addr, c.exchange = &cutter{Listener: l}, l.Addr().String(), notify.NewExchange(notify.ExchangeOptions{})
	g := tsorpc.NewGRPCServer()
	Register(g, c.exchange)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(c.listener) // Stop ends it.
	}()
	exchange := c.exchange
	c.stop = sync.OnceFunc(func() {
		exchange.Close()
		g.Stop()
		<-served
	})
}

// hub is that of a process of the cluster.
func (c *cluster) hub() *notify.Hub {
	c.t.Helper()
	conn, err := tsorpc.Dial(c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	hub := notify.New(notify.Options{})
	client := Connect(conn, Options{Process: rand.Uint64(), Hub: hub, Logger: slog.New(slog.DiscardHandler)})
	c.t.Cleanup(func() {
		client.Close()
		conn.Close()
	})
	return hub
}

// listener records what a session receives.
type listener struct {
	*notify.Listener
	ended   chan error
	arrived chan struct{}
}

func listen(t *testing.T, h *notify.Hub, channels ...string) *listener {
	t.Helper()
	l := &listener{ended: make(chan error, 1), arrived: make(chan struct{}, 1)}
	l.Listener = h.NewListener(func(why error) { l.ended <- why })
	if err := l.Listen(context.Background(), channels); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// next waits for messages; nil: the listener was ended.
func (l *listener) next(timeout time.Duration) []notify.Message {
	if l.Await(func() { l.arrived <- struct{}{} }) {
		select {
		case <-l.arrived:
		case why := <-l.ended:
			l.ended <- why // for the caller
			return nil
		case <-time.After(timeout):
			if !l.StopAwaiting() {
				return nil
			}
			<-l.arrived
		}
	}
	return l.Take()
}

func publish(t *testing.T, h *notify.Hub, messages ...notify.Message) {
	t.Helper()
	var channels []string
	for _, m := range messages {
		channels = append(channels, m.Channel)
	}
	a, err := h.Announce(context.Background(), channels)
	if err != nil {
		t.Fatal(err)
	}
	a.Publish(messages)
}

func TestBetweenProcesses(t *testing.T) {
	// Goal: what one process publishes after another's LISTEN has returned arrives there, in order.
	c := newCluster(t)
	a, b := c.hub(), c.hub()
	l := listen(t, a, "x")
	const messages = 1000
	for i := range messages {
		publish(t, b, notify.Message{PID: 7, Channel: "x", Payload: fmt.Sprint(i)})
	}
	for i := 0; i < messages; {
		got := l.next(patience)
		if len(got) == 0 {
			t.Fatalf("after %d messages there is none", i)
		}
		for _, m := range got {
			if m != (notify.Message{PID: 7, Channel: "x", Payload: fmt.Sprint(i)}) {
				t.Fatalf("%+v at %d", m, i)
			}
			i++
		}
	}
	l.Unlisten([]string{"x"})
	publish(t, b, notify.Message{Channel: "x"})
	other := listen(t, a, "y")
	publish(t, b, notify.Message{Channel: "y"})
	if got := other.next(patience); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
	if got := l.Take(); got != nil {
		t.Errorf("after Unlisten: %v", got)
	}
}

func TestConnectionLost(t *testing.T) {
	// Goal: a process that loses its connection ends its listeners; what could not be published ends those of others; after
	// that everything works again.
	c := newCluster(t)
	a, b := c.hub(), c.hub()
	la, lb := listen(t, a, "x"), listen(t, b, "y")
	announced, err := a.Announce(context.Background(), []string{"z"})
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	for _, l := range []*listener{la, lb} {
		select {
		case why := <-l.ended:
			if !errors.Is(why, notify.ErrLost) {
				t.Error(why)
			}
		case <-time.After(patience):
			t.Fatal("a listener goes on without a connection")
		}
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Announce(short, []string{"x"}); err == nil {
		t.Error("an announcement without a connection")
	}
	// The connection comes back when the transaction has committed: its notifications are lost for whoever listens before.
	announced.Publish([]notify.Message{{Channel: "z"}})
	c.start(c.addr)
	l := listen(t, b, "x")
	publish(t, a, notify.Message{Channel: "x", Payload: "again"})
	if got := l.next(patience); len(got) != 1 || got[0].Payload != "again" {
		t.Errorf("%v", got)
	}
}

// Goal: hints about locks pass between two processes, and again when the exchange has moved; without a connection they are dropped, and nothing waits. Method: an exchange that stops and
// is started anew.
func TestLockHints(t *testing.T) {
	c := newCluster(t)
	received := make(chan notify.LockHint, 100)
	var clients []*Client
	for process := range uint64(2) {
		conn, err := tsorpc.Dial(c.addr)
		if err != nil {
			t.Fatal(err)
		}
		client := Connect(conn, Options{Process: process + 1, Hub: notify.New(notify.Options{}), Logger: slog.New(slog.DiscardHandler),
			LockHint: func(h notify.LockHint) { received <- h }})
		t.Cleanup(func() {
			client.Close()
			conn.Close()
		})
		clients = append(clients, client)
	}
	hint := notify.LockHint{Process: 2, Holder: 5, Key: []byte("k"), Released: true}
	for range 2 {
		// Until both are connected hints are lost.
		for begun, arrived := time.Now(), false; !arrived; {
			clients[0].SendLockHint(hint)
			select {
			case h := <-received:
				if arrived = true; h.Process != 1 || h.Holder != 5 || string(h.Key) != "k" || !h.Released {
					t.Errorf("%+v", h)
				}
			case <-time.After(10 * time.Millisecond):
				if time.Since(begun) > patience {
					t.Fatal("no hint arrives")
				}
			}
		}
		c.stop()
		clients[0].SendLockHint(hint)
		c.start(c.addr)
	}
}

func TestUnavailable(t *testing.T) {
	conn, err := tsorpc.Dial("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hub := notify.New(notify.Options{})
	client := Connect(conn, Options{Process: rand.Uint64(), Hub: hub, Logger: slog.New(slog.DiscardHandler)})
	defer client.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errkind.New(errkind.Canceled, "canceled")) })
	if _, err := hub.Announce(ctx, []string{"x"}); errkind.Of(err) != errkind.Canceled {
		t.Errorf("a canceled announcement: %v", err)
	}
	began := time.Now()
	_, err = hub.Announce(context.Background(), []string{"x"})
	if errkind.Of(err) != errkind.OracleUnavailable || time.Since(began) > requestTimeout+time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// commits is the order in which the transactions of a test have committed.
type commits struct {
	mu  sync.Mutex
	log []notify.Message
}

// Goal: however often connections are cut, a listener receives everything that is committed after its LISTEN, each sender's in
// order, or it is ended.
// Method: three processes with senders and listeners; the connections to the exchange are cut at random.
func TestCutConnections(t *testing.T) {
	const processes = 3
	c := newCluster(t)
	var hubs []*notify.Hub
	for range processes {
		hubs = append(hubs, c.hub())
	}
	var order commits
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var sending, receiving sync.WaitGroup
	var kept, ended, failed atomic.Int64
	for p, hub := range hubs {
		for s := range 2 {
			sending.Go(func() { commitAndPublish(ctx, hub, uint32(10*p+s), &order, &failed) })
		}
		for range 4 {
			receiving.Go(func() {
				for ctx.Err() == nil {
					if check(t, ctx, hub, &order) {
						kept.Add(1)
					} else {
						ended.Add(1)
					}
				}
			})
		}
	}
	enough := func() bool {
		order.mu.Lock()
		defer order.mu.Unlock()
		return len(order.log) >= 30 && ended.Load() >= 3 && kept.Load() >= 3
	}
	for begun := time.Now(); time.Since(begun) < 3*time.Second || !enough() && time.Since(begun) < patience; {
		time.Sleep(time.Duration(rand.IntN(int(200 * time.Millisecond)))) // Connections are to last a while.
		c.listener.cut(2)
	}
	stop()
	sending.Wait()
	receiving.Wait()
	t.Logf("%d commits; %d listeners kept, %d ended, %d announcements failed", len(order.log), kept.Load(), ended.Load(), failed.Load())
	if !enough() {
		t.Error("too little has happened")
	}
}

// commitAndPublish commits and publishes messages until ctx ends.
func commitAndPublish(ctx context.Context, hub *notify.Hub, sender uint32, order *commits, failed *atomic.Int64) {
	for i := 0; ctx.Err() == nil; i++ {
		m := notify.Message{PID: sender, Channel: "x", Payload: fmt.Sprint(i)}
		a, err := hub.Announce(context.Background(), []string{"x"})
		if err != nil {
			failed.Add(1)
			i--
			continue
		}
		if rand.IntN(10) == 0 {
			a.Cancel()
			i--
			continue
		}
		order.mu.Lock()
		order.log = append(order.log, m)
		order.mu.Unlock()
		if rand.IntN(4) == 0 {
			time.Sleep(time.Duration(rand.IntN(int(5 * time.Millisecond)))) // The process may lose its connection meanwhile.
		}
		a.Publish([]notify.Message{m})
	}
}

// check listens for a while and checks what has been received. It reports whether the listener was not ended.
func check(t *testing.T, ctx context.Context, hub *notify.Hub, order *commits) (kept bool) {
	l := &listener{ended: make(chan error, 1), arrived: make(chan struct{}, 1)}
	l.Listener = hub.NewListener(func(why error) { l.ended <- why })
	defer l.Close()
	if err := l.Listen(ctx, []string{"x"}); err != nil {
		return false
	}
	order.mu.Lock()
	since := len(order.log)
	order.mu.Unlock()
	received := map[uint32][]string{}
	take := func(messages []notify.Message) {
		for _, m := range messages {
			received[m.PID] = append(received[m.PID], m.Payload)
		}
	}
	until := time.Now().Add(time.Duration(rand.IntN(int(500 * time.Millisecond))))
	for time.Now().Before(until) {
		take(l.next(10 * time.Millisecond))
	}
	order.mu.Lock()
	expected := map[uint32][]string{}
	for _, m := range order.log[since:] {
		expected[m.PID] = append(expected[m.PID], m.Payload)
	}
	order.mu.Unlock()
	for deadline := time.Now().Add(patience); ; {
		missing := difference(received, expected)
		if missing == "" {
			break
		}
		select {
		case <-l.ended:
			return false
		default:
		}
		if time.Now().After(deadline) {
			t.Errorf("a listener that was not ended lacks %s", missing)
			return true
		}
		take(l.next(10 * time.Millisecond))
	}
	for pid, list := range received {
		for i := 1; i < len(list); i++ {
			var before, n int
			fmt.Sscan(list[i-1], &before)
			fmt.Sscan(list[i], &n)
			if n != before+1 {
				t.Errorf("sender %d: %d follows %d", pid, n, before)
			}
		}
	}
	return true
}

// difference describes an expected message that was not received.
func difference(received, expected map[uint32][]string) string {
	for pid, want := range expected {
		got := map[string]bool{}
		for _, payload := range received[pid] {
			got[payload] = true
		}
		for _, payload := range want {
			if !got[payload] {
				return fmt.Sprintf("%s of sender %d", payload, pid)
			}
		}
	}
	return ""
}
