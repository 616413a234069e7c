package bigtable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
)

// A request is given up by one of three bounds:
//
//	a connection    is made within connectTimeout, or the requests that wait for it fail; one whose packets are not acknowledged for deadAfter is
//	                closed, and its requests fail
//	an answer       comes within Options.RequestTimeout; of a scan, the next message
//	repetitions     of a request that has failed are percodb's, which has a budget for them (percolator.Options.UnreachableBudget); Google's library
//	                may only continue what was answered in part, a scan, for repeatFor; what belongs to no statement has no such budget: see patiently

const (
	// pingAfter is how long a connection may be silent while a request is under way before a ping is sent; Google's Java client has the same.
	pingAfter = 30 * time.Second
	// deadAfter is how long what was sent on a connection, a ping too, may be unacknowledged.
	deadAfter = 5 * time.Second
	// connectTimeout is how long it may take to connect.
	connectTimeout = 3 * time.Second
	// repeatFor is how long Google's library may repeat the rest of an operation that Bigtable has answered in part, and percodb what belongs to no
	// statement.
	repeatFor = 5 * time.Second
)

// reconnection bounds the pauses between attempts to connect, so that requests succeed soon after an outage.
var reconnection = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// request is an operation under way: one call of Google's library.
type request struct {
	operation
	caller, ctx context.Context
	cancel      context.CancelFunc
	silence     *time.Timer // of a read
	timeout     time.Duration
	begun       time.Time
	heardAt     atomic.Int64          // since begun, 0: nothing has been heard
	gaveUp      atomic.Pointer[error] // the error after which the library's repetitions were ended
}

// beginRead begins a read. Its context has no deadline, since rows may arrive for long: see heard.
func (c *Client) beginRead(ctx context.Context) *request {
	r := c.begin(ctx)
	r.ctx, r.cancel = context.WithCancel(asOperation(ctx, &r.operation))
	r.silence = time.AfterFunc(r.timeout, r.cancel)
	return r
}

// beginWrite begins a write. Bigtable is told of its deadline, and executes it no later.
func (c *Client) beginWrite(ctx context.Context) *request {
	r := c.begin(ctx)
	r.ctx, r.cancel = context.WithTimeout(asOperation(ctx, &r.operation), r.timeout)
	return r
}

func (c *Client) begin(ctx context.Context) *request {
	r := &request{caller: ctx, timeout: c.opts.RequestTimeout, begun: time.Now()}
	r.heard, r.failed = r.noteAnswer, r.noteFailure
	return r
}

// noteAnswer notes a message from Bigtable: rows, or the name of the row that a scan has reached without finding any, which it sends now and then.
func (r *request) noteAnswer() {
	r.heardAt.Store(int64(time.Since(r.begun)) + 1)
	if r.silence != nil {
		r.silence.Reset(r.timeout)
	}
}

// silentFor returns how long nothing has been heard.
func (r *request) silentFor() time.Duration {
	return time.Since(r.begun) - time.Duration(r.heardAt.Load())
}

// noteFailure ends an operation of which a request has failed, unless it has been answered in part a short time ago: Google's library would
// repeat reads and unconditional writes for long.
func (r *request) noteFailure(err error) {
	if r.ctx.Err() != nil {
		return // It is ended already: by its caller, or for silence.
	}
	if r.heardAt.Load() == 0 || r.silentFor() > repeatFor {
		r.gaveUp.CompareAndSwap(nil, &err)
		r.cancel()
	}
}

// result returns the error of the request for its caller, nil if err is.
func (r *request) result(err error) error {
	if err == nil {
		return nil
	}
	gaveUp := r.gaveUp.Load()
	if gaveUp != nil {
		err = *gaveUp
	}
	switch mapped := mapError(r.caller, err).(type) {
	case *kv.UnavailableError:
		if gaveUp == nil && r.ctx.Err() != nil {
			mapped.Err = fmt.Errorf("no answer within %v: %w", r.timeout, err)
		}
		mapped.Tried = r.silentFor()
		return mapped
	default:
		return mapped
	}
}

// patiently repeats what belongs to no statement, and so to no budget, while Bigtable is unavailable, for repeatFor.
func patiently(ctx context.Context, do func() error) error {
	until := time.Now().Add(repeatFor)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if _, unavailable := errkind.As[*kv.UnavailableError](err); !unavailable || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// end ends the request. No error of it is asked for afterwards.
func (r *request) end() {
	if r.silence != nil {
		r.silence.Stop()
	}
	r.cancel()
}

// boundUnary is a grpc.UnaryClientInterceptor that reports failures to the operation.
func boundUnary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	operationOf(ctx).requestFailed(err)
	return err
}

// boundStream is boundUnary for streams.
func boundStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, conn, method, opts...)
	op := operationOf(ctx)
	if op == nil {
		return stream, err
	}
	if err != nil {
		op.requestFailed(err)
		return nil, err
	}
	return &boundedStream{stream, op}, nil
}

type boundedStream struct {
	grpc.ClientStream
	op *operation
}

// RecvMsg implements grpc.ClientStream.
func (s *boundedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if !errors.Is(err, io.EOF) {
		s.op.requestFailed(err)
	}
	return err
}

// mapError gives Bigtable's errors the kinds of kv's.
func mapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:
		return &PermanentError{Err: err}
	case codes.Canceled:
		if strings.Contains(err.Error(), "client connection is closing") {
			return kv.ErrClosed
		}
	}
	return &kv.UnavailableError{Shard: kv.BigtableShardID, Err: err, Quota: status.Code(err) == codes.ResourceExhausted}
}
