package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// A request may take long, for a lock or a slow disk, so its own timeout is generous. Pings detect a process that has
// stopped, or a network that drops packets, earlier.
const (
	// pingAfter is the duration of a request after which the other process is pinged, and the interval between pings.
	pingAfter = time.Second
	// pingTimeout is how long the answer to a ping may take.
	pingTimeout = 2 * time.Second
)

// errSilent: the other process did not answer a ping.
var errSilent = errors.New("the process does not answer")

// watchdog ends the requests of a connection with codes.Unavailable when pings stay without an answer.
type watchdog struct {
	mu   sync.Mutex
	ping *ping // in flight, or nil
	// silent: the last ping was not answered. Requests are accompanied by a ping from their beginning then.
	silent bool
}

// ping is one in flight. ok may be read once done is closed.
type ping struct {
	done chan struct{}
	ok   bool
}

// intercept is a grpc.UnaryClientInterceptor.
func (w *watchdog) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method == healthpb.Health_Check_FullMethodName {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.pingDelay(), func() { w.watch(watched, cc, cancel) })
	defer timer.Stop()
	var other peer.Peer // set once a connection was chosen to send the request by
	err := invoke(watched, method, req, reply, cc, append(opts, grpc.Peer(&other))...)
	if err != nil && ctx.Err() == nil && context.Cause(watched) == errSilent {
		err = status.Error(codes.Unavailable, errSilent.Error())
	}
	if err != nil && other.Addr == nil && status.Code(err) == codes.Unavailable {
		return &notSentError{err}
	}
	return err
}

// notSentError is an error of a request for which there was no connection.
type notSentError struct{ error }

// GRPCStatus implements the interface of package status.
func (e *notSentError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// NotSent reports whether err prevented a request from being sent.
func NotSent(err error) bool {
	var e *notSentError
	return errors.As(err, &e)
}

// pingDelay is the time to wait for an answer before the first ping.
func (w *watchdog) pingDelay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent {
		return 0
	}
	return pingAfter
}

// watch pings until the request ends, or ends it.
func (w *watchdog) watch(watched context.Context, cc *grpc.ClientConn, cancel context.CancelCauseFunc) {
	for {
		p := w.sharedPing(cc)
		select {
		case <-watched.Done():
			return
		case <-p.done:
		}
		if !p.ok {
			cancel(errSilent)
			return
		}
		timer := time.NewTimer(pingAfter)
		select {
		case <-watched.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// sharedPing returns the ping in flight, which it sends if there is none.
func (w *watchdog) sharedPing(cc *grpc.ClientConn) *ping {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ping != nil {
		return w.ping
	}
	p := &ping{done: make(chan struct{})}
	w.ping = p
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		default:
			p.ok = true // Any answer shows that the process is alive.
		}
		w.mu.Lock()
		w.ping, w.silent = nil, !p.ok
		w.mu.Unlock()
		close(p.done)
	}()
	return p
}
