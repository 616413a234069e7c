package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/tso"
	"github.com/percodb/percodb/tso/rpc/tsopb"
)

// ClientOptions: the zero value means the defaults named here.
type ClientOptions struct {
	// Timeout is how long a request is repeated while the oracle is unreachable or restarting, before it fails with
	// *tso.UnavailableError: 5 s.
	Timeout time.Duration
}

// Client is an Oracle on the other end of a connection. Safe for concurrent use.
type Client struct {
	*tso.Batched
	source *source
}

// NewClient returns a client over conn, which stays the caller's.
func NewClient(conn grpc.ClientConnInterface, opts ClientOptions) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Second
	}
	s := &source{oracle: tsopb.NewOracleClient(conn), timeout: opts.Timeout}
	return &Client{Batched: tso.NewBatched(s), source: s}
}

// NowN implements tso.Source, outside of the batches of Now.
func (c *Client) NowN(ctx context.Context, n int) (tso.Timestamp, error) {
	return c.source.NowN(ctx, n)
}

// source sends requests to the server.
type source struct {
	oracle  tsopb.OracleClient
	timeout time.Duration
	last    atomic.Uint64 // the largest that was ever received
}

// accept rejects timestamps that are not above one received before they were requested: they come from another oracle.
func (s *source) accept(before, first uint64, n int) (tso.Timestamp, error) {
	if first <= before {
		return 0, &tso.UnavailableError{Err: fmt.Errorf("it has gone back from %d to %d: its data directory is older, or was lost", before, first)}
	}
	last := first + uint64(n-1)*uint64(tso.Tick)
	for old := s.last.Load(); old < last && !s.last.CompareAndSwap(old, last); {
		old = s.last.Load()
	}
	return tso.Timestamp(first), nil
}

// NowN implements tso.Source. It repeats requests that fail for lack of a connection, until the timeout.
func (s *source) NowN(ctx context.Context, n int) (tso.Timestamp, error) {
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req := &tsopb.TakeRequest{Count: uint32(n)}
	before := s.last.Load()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		resp, err := s.oracle.Take(bounded, req, grpc.WaitForReady(true))
		switch {
		case err == nil && resp.Error == nil:
			return s.accept(before, resp.First, n)
		case err == nil:
			err = decodeError(resp.Error)
			if !errors.Is(err, tso.ErrClosed) {
				return 0, err
			}
			err = &tso.UnavailableError{Err: err} // the server's oracle is closed, not this client
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case status.Code(err) == codes.Unavailable, status.Code(err) == codes.DeadlineExceeded:
			err = &tso.UnavailableError{Err: err}
		default:
			return 0, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, &tso.UnavailableError{Err: errors.Unwrap(err), Tried: s.timeout}
		}
	}
}
