// Package rpc serves the authority for read leases over gRPC.
//
//	reader, writer ─▶ readlease.Service = Client ═gRPC═ Register ─▶ readlease.Authority
//
// Invariant: a request without an answer may have been executed, and may be repeated. It fails with a
// *tso.UnavailableError, because the authority is in the oracle's process.
package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/readlease"
	"github.com/percodb/percodb/readlease/rpc/leasepb"
	"github.com/percodb/percodb/tso"
)

type server struct {
	leasepb.UnimplementedLeasesServer
	service readlease.Service
}

// Register has r serve an authority.
func Register(r grpc.ServiceRegistrar, service readlease.Service) {
	leasepb.RegisterLeasesServer(r, &server{service: service})
}

// maxWait bounds how long a holder may have a request to renew wait.
const maxWait = 10 * time.Second

// Renew implements the service.
func (s *server) Renew(ctx context.Context, req *leasepb.RenewRequest) (*leasepb.RenewResponse, error) {
	wait := time.Duration(min(req.WaitMillis, uint64(maxWait.Milliseconds()))) * time.Millisecond
	g, err := s.service.Renew(ctx, req.Id, req.Epoch, wait)
	if err != nil {
		return nil, err
	}
	return &leasepb.RenewResponse{Epoch: g.Epoch, Until: uint64(g.Until)}, nil
}

// Hold implements the service.
func (s *server) Hold(ctx context.Context, req *leasepb.HoldRequest) (*leasepb.HoldResponse, error) {
	until, err := s.service.Hold(ctx, req.Owner)
	if err != nil {
		return nil, err
	}
	return &leasepb.HoldResponse{Until: uint64(until)}, nil
}

// Release implements the service.
func (s *server) Release(ctx context.Context, req *leasepb.ReleaseRequest) (*leasepb.ReleaseResponse, error) {
	return &leasepb.ReleaseResponse{}, s.service.Release(ctx, req.Owner)
}

// timeout bounds a request, beyond the time it is to wait.
const timeout = 5 * time.Second

// Client is the authority on the other end of a connection. Safe for concurrent use.
type Client struct{ client leasepb.LeasesClient }

var _ readlease.Service = (*Client)(nil)

// NewClient returns a client over conn, which stays the caller's.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{client: leasepb.NewLeasesClient(conn)}
}

// call sends a request under a timeout.
func call[Req, Res any](ctx context.Context, limit time.Duration, send func(context.Context, Req, ...grpc.CallOption) (Res, error), req Req) (Res, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := send(bounded, req)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	return res, &tso.UnavailableError{Err: err}
}

// Renew implements readlease.Service.
func (c *Client) Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (readlease.Grant, error) {
	res, err := call(ctx, wait+timeout, c.client.Renew, &leasepb.RenewRequest{Id: id, Epoch: epoch, WaitMillis: uint64(wait.Milliseconds())})
	if err != nil {
		return readlease.Grant{}, err
	}
	return readlease.Grant{Epoch: res.Epoch, Until: tso.Timestamp(res.Until)}, nil
}

// Hold implements readlease.Service.
func (c *Client) Hold(ctx context.Context, owner string) (tso.Timestamp, error) {
	res, err := call(ctx, timeout, c.client.Hold, &leasepb.HoldRequest{Owner: owner})
	if err != nil {
		return 0, err
	}
	return tso.Timestamp(res.Until), nil
}

// Release implements readlease.Service.
func (c *Client) Release(ctx context.Context, owner string) error {
	_, err := call(ctx, timeout, c.client.Release, &leasepb.ReleaseRequest{Owner: owner})
	return err
}
