package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// waitGraphServer serves a graph. The edges of clients that disappear expire with their leases.
type waitGraphServer struct {
	kvpb.UnimplementedWaitGraphServer
	graph *waitgraph.Local

	mu     sync.Mutex
	nextID uint64
	edges  map[uint64]leasedEdge
	swept  time.Time
}

type leasedEdge struct {
	*waitgraph.Edge
	ends time.Time
}

// The least and the longest lease that is given, and how often those that have run out are forgotten.
const (
	minLease   = 100 * time.Millisecond
	maxLease   = time.Minute
	sweepEvery = 10 * time.Second
)

// RegisterWaitGraph has r serve a graph, which stays the caller's. A cluster has one.
func RegisterWaitGraph(r grpc.ServiceRegistrar, graph *waitgraph.Local) {
	kvpb.RegisterWaitGraphServer(r, &waitGraphServer{graph: graph, edges: make(map[uint64]leasedEdge)})
}

// Wait implements the service.
func (s *waitGraphServer) Wait(ctx context.Context, req *kvpb.WaitRequest) (*kvpb.WaitResponse, error) {
	lease := min(max(time.Duration(min(req.LeaseMillis, uint64(maxLease/time.Millisecond)))*time.Millisecond, minLease), maxLease)
	edge, err := s.graph.Lease(tso.Timestamp(req.Waiter), tso.Timestamp(req.Holder), req.Key, lease)
	res := &kvpb.WaitResponse{}
	if err == nil {
		res.Id = s.keep(edge, lease)
	}
	return serve(ctx, err, res, func(e *kvpb.Error) *kvpb.WaitResponse { return &kvpb.WaitResponse{Error: e} })
}

// keep gives an edge an id to end it by.
func (s *waitGraphServer) keep(edge *waitgraph.Edge, lease time.Duration) uint64 {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) > sweepEvery {
		s.swept = now
		for id, e := range s.edges {
			if now.After(e.ends) {
				s.graph.Remove(e.Edge)
				delete(s.edges, id)
			}
		}
	}
	s.nextID++
	s.edges[s.nextID] = leasedEdge{edge, now.Add(lease)}
	return s.nextID
}

// Done implements the service.
func (s *waitGraphServer) Done(_ context.Context, req *kvpb.DoneRequest) (*kvpb.EmptyResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.edges[req.Id]; ok {
		s.graph.Remove(e.Edge)
		delete(s.edges, req.Id)
	}
	return &kvpb.EmptyResponse{}, nil
}

// WaitGraph is a remote waitgraph.Graph. If it does not answer, deadlocks are not detected, and waiters are left to
// their timeouts.
type WaitGraph struct{ client kvpb.WaitGraphClient }

var _ waitgraph.Graph = (*WaitGraph)(nil)

// NewWaitGraph returns a client over conn, which stays the caller's.
func NewWaitGraph(conn grpc.ClientConnInterface) *WaitGraph {
	return &WaitGraph{client: kvpb.NewWaitGraphClient(conn)}
}

// graphTimeout bounds a request to the graph, graphLease is how long an edge outlives its client. A waiter renews its
// edge every second.
const (
	graphTimeout = 2 * time.Second
	graphLease   = 5 * time.Second
)

// Wait implements waitgraph.Graph. It outlasts ctx: the answer is needed to remove the edge, which would otherwise stay for its
// lease and be taken for a wait.
func (g *WaitGraph) Wait(ctx context.Context, waiter, holder tso.Timestamp, key []byte) (done func(), err error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), graphTimeout)
	defer cancel()
	res, err := g.client.Wait(bounded, &kvpb.WaitRequest{Waiter: uint64(waiter), Holder: uint64(holder), Key: key,
		LeaseMillis: uint64(graphLease / time.Millisecond)})
	if err != nil {
		return nil, &kv.UnavailableError{Shard: "wait-for graph", Err: err}
	}
	if err := decodeError(res.GetError()); err != nil {
		return nil, err
	}
	return func() { g.done(context.WithoutCancel(ctx), res.Id) }, nil
}

// done reports the end of a wait; if the report is lost the edge expires with its lease.
func (g *WaitGraph) done(ctx context.Context, id uint64) {
	bounded, cancel := context.WithTimeout(ctx, graphTimeout)
	defer cancel()
	_, _ = g.client.Done(bounded, &kvpb.DoneRequest{Id: id})
}
