package rpc

import (
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// MaxMessageBytes is the largest message that a connection carries.
const MaxMessageBytes = 256 << 20

// window is the flow-control window of a stream and of a connection: a page of a scan fits several
// times, so that a reply never waits for a window update.
const window = 8 << 20

// Conn and Server are gRPC's types, so that package node need not import gRPC.
type (
	Conn   = grpc.ClientConn
	Server = grpc.Server
)

// Dial returns a connection to addr. It does not wait for the server: the connection is established when it is first
// used, and soon established again when it is lost. A request to a process that does not answer pings fails with
// codes.Unavailable. The connection is not encrypted: see Security.
func Dial(addr string) (*Conn, error) { return dial(addr, insecure.NewCredentials()) }

func dial(addr string, security credentials.TransportCredentials, more ...grpc.DialOption) (*Conn, error) {
	w := &watchdog{}
	return grpc.NewClient("passthrough:///"+addr, append(more,
		grpc.WithTransportCredentials(security),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithUnaryInterceptor(w.intercept),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)),
	)...)
}

// NewGRPCServer returns a server whose options fit Dial's and that answers its pings. Register services
// with it, then Serve. It serves whoever connects: see Security.
func NewGRPCServer() *Server { return newGRPCServer() }

func newGRPCServer(opts ...grpc.ServerOption) *Server {
	s := grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
	)...)
	healthpb.RegisterHealthServer(s, health.NewServer())
	return s
}
