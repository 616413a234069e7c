package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/percodb/percodb/internal/certs"
)

// Following is a connection to a process whose address may change. Safe for concurrent use.
type Following struct {
	*Conn

	mu      sync.Mutex
	current net.Conn // the last one that was made
}

// DialFollowing is as Dial, to a process of that role whose address may change: whenever the connection is established, locate returns it.
func (s *Security) DialFollowing(role certs.Role, locate func(ctx context.Context) (addr string, err error)) (*Following, error) {
	f := &Following{}
	// TLS is spoken by the dialer, which knows the name that the server's certificate must have.
	conn, err := dial("following", insecure.NewCredentials(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		addr, err := locate(ctx)
		if err != nil {
			return nil, errors.New(err.Error()) // gRPC would take the status in it for one that it has made itself.
		}
		conn, err := s.dialTCP(ctx, addr, role)
		if err == nil {
			f.mu.Lock()
			f.current = conn
			f.mu.Unlock()
		}
		return conn, err
	}))
	f.Conn = conn
	return f, err
}

// Moved is called when the address has changed. The connection is ended, since the process at its other end may be one that answers nothing any
// more, which would be found out after many seconds, and a new one is made at once.
func (f *Following) Moved() {
	f.mu.Lock()
	if f.current != nil {
		_ = f.current.Close() // Its requests fail, and are repeated by the new one.
		f.current = nil
	}
	f.mu.Unlock()
	f.ResetConnectBackoff()
}

// dialTCP connects without gRPC.
func (s *Security) dialTCP(ctx context.Context, addr string, role certs.Role) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if s == nil || err != nil {
		return conn, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, s.ClientConfig(host, "h2", role))
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // Nothing was sent.
		return nil, err
	}
	return secured, nil
}
