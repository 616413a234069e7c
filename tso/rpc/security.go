package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
)

// Security is mutual TLS between the processes of a cluster: both sides show a certificate of the cluster's authority that
// states a role, a client verifies that the server has the role that it dials, and a server what the client's role may call.
// A nil *Security is none: whoever connects is served. Safe for concurrent use.
type Security struct {
	files *tlsfiles.Keeper
	log   *slog.Logger
}

// NewSecurity loads the certificate of a process of that role, with its key and the cluster's authority.
func NewSecurity(files tlsfiles.Files, role certs.Role, log *slog.Logger) (*Security, error) {
	keeper, err := tlsfiles.Open(files, func(set *tlsfiles.Set) error { return checkOwn(set, role) })
	if err != nil {
		return nil, err
	}
	return &Security{files: keeper, log: log}, nil
}

// checkOwn refuses a certificate that the other processes would refuse.
func checkOwn(set *tlsfiles.Set, role certs.Role) error {
	if set.Authorities == nil {
		return errors.New("the certificate of the cluster's authority is missing")
	}
	leaf := set.Certificate.Leaf
	if !certs.Has(leaf, role) {
		return fmt.Errorf("the certificate is %s, not %s", certs.Describe(leaf), role)
	}
	chain, err := chainOf(set)
	if err != nil {
		return err
	}
	err = verifyChain(chain, set.Authorities, x509.ExtKeyUsageClientAuth)
	if err == nil && (role == certs.TSO || role == certs.KV) {
		err = verifyChain(chain, set.Authorities, x509.ExtKeyUsageServerAuth)
	}
	return err
}

// CheckServer verifies that the other processes accept the certificate as that of a server.
func (s *Security) CheckServer() error {
	set := s.files.Current()
	chain, err := chainOf(set)
	if err != nil {
		return err
	}
	return verifyChain(chain, set.Authorities, x509.ExtKeyUsageServerAuth)
}

// chainOf returns the process's certificate and those of intermediate authorities.
func chainOf(set *tlsfiles.Set) ([]*x509.Certificate, error) {
	chain := []*x509.Certificate{set.Certificate.Leaf}
	for _, der := range set.Certificate.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// verifyChain verifies that an authority has signed the first certificate for that use; the others are intermediate.
func verifyChain(chain []*x509.Certificate, authorities *x509.CertPool, usage x509.ExtKeyUsage) error {
	opts := x509.VerifyOptions{Roots: authorities, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage}}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(opts)
	return err
}

// Reload loads the files again, for connections that begin from now on. If they are wrong it changes nothing and returns the
// reason.
func (s *Security) Reload() error { return s.files.Reload() }

// Dial is as the function Dial, to a process of that role.
func (s *Security) Dial(addr string, role certs.Role) (*Conn, error) {
	if s == nil {
		return dial(addr, insecure.NewCredentials())
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return dial(addr, credentials.NewTLS(s.ClientConfig(host, "h2", role)))
}

// ClientConfig is for connections to a process of one of the roles at that host, by that protocol above TLS. The authorities of a tls.Config are fixed, so the
// server is verified here, by those that were loaded last.
func (s *Security) ClientConfig(host, protocol string, roles ...certs.Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return s.files.Current().Certificate, nil
		},
		InsecureSkipVerify: true, // VerifyConnection verifies
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0] // A TLS server always has one.
			if err := verifyChain(state.PeerCertificates, s.files.Current().Authorities, x509.ExtKeyUsageServerAuth); err != nil {
				return err
			}
			if err := leaf.VerifyHostname(host); err != nil {
				return err
			}
			if !certs.Has(leaf, roles...) {
				return fmt.Errorf("the process at %s has the certificate %s, not %v", host, certs.Describe(leaf), roles)
			}
			return nil
		},
	}
}

// NewGRPCServer is as the function NewGRPCServer, for processes of the cluster only.
func (s *Security) NewGRPCServer() *Server {
	if s == nil {
		return newGRPCServer()
	}
	return newGRPCServer(
		grpc.Creds(&loggedCredentials{TransportCredentials: credentials.NewTLS(s.ServerConfig("h2", anyProcess...)), log: s.log}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := s.authorize(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := s.authorize(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return handler(srv, stream)
		}),
	)
}

// ServerConfig serves processes of the roles, by that protocol above TLS.
func (s *Security) ServerConfig(protocol string, roles ...certs.Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			set := s.files.Current()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
				Certificates: []tls.Certificate{*set.Certificate}, ClientCAs: set.Authorities, ClientAuth: tls.RequireAndVerifyClientCert,
				SessionTicketsDisabled: true, // connections last; a certificate is verified for each
				VerifyConnection: func(state tls.ConnectionState) error {
					if leaf := state.PeerCertificates[0]; !certs.Has(leaf, roles...) {
						return fmt.Errorf("the certificate is %s, not %v", certs.Describe(leaf), roles)
					}
					return nil
				},
			}, nil
		},
	}
}

// authorize refuses a caller whose certificate states no role that may call the method.
func (s *Security) authorize(ctx context.Context, method string) error {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Unauthenticated, "the caller is unknown")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return status.Error(codes.Unauthenticated, "the caller has no certificate")
	}
	leaf := info.State.PeerCertificates[0]
	if certs.Has(leaf, callers(method)...) {
		return nil
	}
	s.log.Warn("a process called what its role may not", "address", p.Addr, "certificate", certs.Describe(leaf), "method", method)
	return status.Errorf(codes.PermissionDenied, "the certificate %s may not call %s", certs.Describe(leaf), method)
}

// loggedCredentials logs the connections that are refused.
type loggedCredentials struct {
	credentials.TransportCredentials
	log *slog.Logger
}

func (c *loggedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		c.log.Warn("a connection was refused that is not of a process of the cluster", "address", conn.RemoteAddr(), "err", err)
	}
	return secured, info, err
}

func (c *loggedCredentials) Clone() credentials.TransportCredentials {
	return &loggedCredentials{TransportCredentials: c.TransportCredentials.Clone(), log: c.log}
}
