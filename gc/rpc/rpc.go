// Package rpc serves the controller of garbage collection over gRPC, for the reports of SQL processes
// and for stores that join.
//
//	gc.Reporter ─▶ gc.Service = Client ═gRPC═ Register ─▶ gc.Controller
//
// Invariants: a report that fails may have been received, and may be repeated; *gc.LifeError is returned as
// such, and a missing answer as gc.ErrUnavailable.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/gc/rpc/gcpb"
	"github.com/percodb/percodb/tso"
)

type server struct {
	gcpb.UnimplementedGarbageCollectionServer
	service gc.Service
}

// Register has r serve a controller, which stays the caller's.
func Register(r grpc.ServiceRegistrar, service gc.Service) {
	gcpb.RegisterGarbageCollectionServer(r, &server{service: service})
}

// Report implements the service.
func (s *server) Report(ctx context.Context, req *gcpb.ReportRequest) (*gcpb.StatusResponse, error) {
	st, err := s.service.Report(ctx, req.Id, tso.Timestamp(req.Oldest))
	if err != nil {
		return nil, err
	}
	return &gcpb.StatusResponse{SafePoint: uint64(st.SafePoint), Oldest: uint64(st.Oldest), Holder: st.Holder,
		LifeMillis: uint64(st.Life.Milliseconds()), Collected: uint64(st.Collected), Stage: st.Stage, LastError: st.LastError,
		Away: st.Away, LeftLocks: uint64(st.LeftLocks)}, nil
}

// SetLife implements the service.
func (s *server) SetLife(ctx context.Context, req *gcpb.SetLifeRequest) (*gcpb.SetLifeResponse, error) {
	err := s.service.SetLife(ctx, time.Duration(req.LifeMillis)*time.Millisecond)
	var bounds *gc.LifeError
	switch {
	case err == nil:
		return &gcpb.SetLifeResponse{}, nil
	case errors.As(err, &bounds):
		return &gcpb.SetLifeResponse{OutOfBounds: true}, nil
	}
	return &gcpb.SetLifeResponse{OtherError: err.Error()}, nil
}

// timeout bounds a request.
const timeout = 5 * time.Second

// Client is the controller on the other end of a connection. Safe for concurrent use.
type Client struct{ client gcpb.GarbageCollectionClient }

var _ gc.Service = (*Client)(nil)

// NewClient returns a client over conn, which stays the caller's.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{client: gcpb.NewGarbageCollectionClient(conn)}
}

// Report implements gc.Service.
func (c *Client) Report(ctx context.Context, id string, oldest tso.Timestamp) (gc.Status, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := c.client.Report(bounded, &gcpb.ReportRequest{Id: id, Oldest: uint64(oldest)}, grpc.WaitForReady(true))
	if err != nil {
		return gc.Status{}, unavailable(ctx, err)
	}
	return gc.Status{SafePoint: tso.Timestamp(res.SafePoint), Oldest: tso.Timestamp(res.Oldest), Holder: res.Holder,
		Life: time.Duration(res.LifeMillis) * time.Millisecond, Collected: tso.Timestamp(res.Collected), Stage: res.Stage, LastError: res.LastError,
		Away: res.Away, LeftLocks: int(res.LeftLocks)}, nil
}

// SetLife implements gc.Service.
func (c *Client) SetLife(ctx context.Context, life time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if life < 0 {
		return &gc.LifeError{Life: life}
	}
	res, err := c.client.SetLife(bounded, &gcpb.SetLifeRequest{LifeMillis: uint64(life.Milliseconds())})
	switch {
	case err != nil:
		return unavailable(ctx, err)
	case res.OutOfBounds:
		return &gc.LifeError{Life: life}
	case res.OtherError != "":
		return errors.New(res.OtherError)
	}
	return nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", gc.ErrUnavailable, err)
}
