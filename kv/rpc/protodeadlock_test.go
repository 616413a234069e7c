package rpc

import (
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// serveGraph serves a graph at addr, which may have been somebody else's a moment ago.
func serveGraph(t *testing.T, addr string, graph *waitgraph.Local) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := tsorpc.NewGRPCServer()
	RegisterWaitGraph(server, graph)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return server, l.Addr().String()
}

// Goal: a circle of waits is found although the process that keeps the graph has been restarted, and has
// forgotten who waits, after half of the circle was told to it; there is one victim. Method: two stores, two
// transactions that lock two keys crosswise, another graph at the same address in between.
func TestProto_T_PES_8(t *testing.T) {
	graph := waitgraph.NewLocal()
	server, addr := serveGraph(t, "127.0.0.1:0", graph)
	conn, err := tsorpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := newCluster(t, 0)
	c.graph = NewWaitGraph(conn)
	stores := []*kv.Store{c.single(), c.single()}
	txns := []tso.Timestamp{c.now(), c.now()}
	for i, store := range stores {
		c.must(c.lock(store, "k", txns[i], 0))
	}
	results := [2]chan error{make(chan error, 1), make(chan error, 1)}
	wait := func(i int) { results[i] <- c.lock(stores[1-i], "k", txns[i], 10*time.Minute) }
	go wait(0)
	for graph.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
	server.Stop()
	graph = waitgraph.NewLocal()
	serveGraph(t, addr, graph)
	go wait(1)

	victim := 0
	select {
	case err = <-results[0]:
	case err = <-results[1]:
		victim = 1
	}
	var deadlock *mvcc.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.Waiter != txns[victim] {
		t.Fatalf("the first to be told was told %v", err)
	}
	c.must(stores[victim].ReleaseLocks(t.Context(), &kv.ReleaseLocksRequest{Ranges: c.refs(stores[victim]), Keys: [][]byte{[]byte("k")},
		StartTS: txns[victim], ForUpdateTS: tso.MaxTimestamp}))
	if err := <-results[1-victim]; err != nil {
		t.Errorf("the other: %v", err)
	}
}
