// Package faultproxy is a proxy for gRPC whose requests fail, are lost, arrive late or twice: for tests of what stands before a service.
//
// It passes messages on without decoding them, so it serves every service.
package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Fault is what happens to a request.
type Fault struct {
	// Delay passes before the request is passed on.
	Delay time.Duration
	// Err, if not nil, is the answer; a gRPC status.
	Err error
	// Execute passes the request on although Err is its answer: the answer is lost. With Delay, Err is the answer at once,
	// and the request is executed late.
	Execute bool
	// Silent: no answer comes; with Execute the request is executed.
	Silent bool
	// Again executes the request a second time, after a delay. 0: once.
	Again time.Duration
	// Answer, if not nil, is the answer, in place of the service's.
	Answer []byte
}

// ErrUnavailable is the answer of a service that cannot be reached.
var ErrUnavailable = status.Error(codes.Unavailable, "the proxy answers in the place of the service")

// Proxy is a proxy before a service.
type Proxy struct {
	listener net.Listener
	server   *grpc.Server
	conn     *grpc.ClientConn
	faults   atomic.Pointer[func(method string, request []byte) Fault]
	late     sync.WaitGroup
}

// maxMessage is the largest message, Bigtable's.
const maxMessage = 300 << 20

// New starts a proxy on a free port of loopback.
func New(target string) (*Proxy, error) { return Listen("127.0.0.1:0", target) }

// Listen starts a proxy at an address.
func Listen(addr, target string) (*Proxy, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	p := &Proxy{conn: conn}
	if p.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	p.server = grpc.NewServer(grpc.UnknownServiceHandler(p.handle), grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	go func() { _ = p.server.Serve(p.listener) }() // It ends with Close.
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy, and waits for the requests that it executes late.
func (p *Proxy) Close() {
	p.server.Stop()
	p.late.Wait()
	_ = p.conn.Close() // No request is in flight.
}

// Inject sets what decides about every request from now on, by the name of its method without its service, and its message. Nil: no faults.
func (p *Proxy) Inject(decide func(method string, request []byte) Fault) {
	if decide == nil {
		p.faults.Store(nil)
		return
	}
	p.faults.Store(&decide)
}

func (p *Proxy) handle(_ any, in grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(in)
	var request frame
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	method := full[strings.LastIndexByte(full, '/')+1:]
	var f Fault
	if decide := p.faults.Load(); decide != nil {
		f = (*decide)(method, request.b)
	}
	ctx := in.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, forwarded(md))
	}
	switch {
	case f.Answer != nil:
		return in.SendMsg(&frame{f.Answer})
	case f.Silent:
		if f.Execute {
			_ = p.forward(context.WithoutCancel(ctx), full, request, func(frame) error { return nil }) // The answer is not passed on.
		}
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case f.Err != nil && !f.Execute:
		return f.Err
	case f.Err != nil && f.Delay > 0:
		p.executeLater(ctx, full, request, f.Delay)
		return f.Err
	case f.Delay > 0:
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if f.Err != nil {
		if err := p.forward(ctx, full, request, func(frame) error { return nil }); err != nil {
			return err
		}
		return f.Err
	}
	if f.Again > 0 {
		p.executeLater(ctx, full, request, f.Again)
	}
	return p.forward(ctx, full, request, func(answer frame) error { return in.SendMsg(&answer) })
}

// forwarded are the headers that are passed on; gRPC sets the others itself.
func forwarded(md metadata.MD) metadata.MD {
	out := metadata.MD{}
	for key, values := range md {
		if !strings.HasPrefix(key, ":") && !strings.HasPrefix(key, "grpc-") && key != "content-type" && key != "user-agent" {
			out[key] = values
		}
	}
	return out
}

// executeLater executes a request behind its caller's back.
func (p *Proxy) executeLater(ctx context.Context, full string, request frame, after time.Duration) {
	ctx = context.WithoutCancel(ctx)
	p.late.Go(func() {
		time.Sleep(after)
		_ = p.forward(ctx, full, request, func(frame) error { return nil }) // Nobody waits for the answer.
	})
}

// forward passes a request on, and the answers back.
func (p *Proxy) forward(ctx context.Context, full string, request frame, answer func(frame) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
	if err != nil {
		return err
	}
	if err := out.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := out.CloseSend(); err != nil {
		return err
	}
	for {
		var received frame
		err := out.RecvMsg(&received)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := answer(received); err != nil {
			return err
		}
	}
}

// frame is an encoded message.
type frame struct{ b []byte }

// rawCodec passes encoded messages through.
type rawCodec struct{}

var errNoFrame = status.Error(codes.Internal, "BUG: a message that is no frame")

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, errNoFrame
	}
	return mem.BufferSlice{mem.SliceBuffer(f.b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return errNoFrame
	}
	f.b = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }
