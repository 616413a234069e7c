package rpc

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
)

// writeTrial writes the certificates of a new authority into dir, in place of those there.
func writeTrial(t *testing.T, dir string, hosts ...string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := certs.WriteTrial(dir, certs.Trial{Hosts: hosts, Users: []string{"alice"}}); err != nil {
		t.Fatal(err)
	}
}

func openSecurity(t *testing.T, dir string, role certs.Role) *Security {
	t.Helper()
	s, err := NewSecurity(certs.ProcessFiles(dir, role), role, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveSecured serves pings as s, and returns the address.
func serveSecured(t *testing.T, s *Security) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, served := s.NewGRPCServer(), make(chan struct{})
	go func() {
		defer close(served)
		if err := g.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		g.Stop()
		<-served
	})
	return l.Addr().String()
}

// pingOnce pings the process of that role at addr by a new connection.
func pingOnce(t *testing.T, s *Security, addr string, role certs.Role) error {
	t.Helper()
	conn, err := s.Dial(addr, role)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// Goal: a client sends nothing to a process of another role than the one it dials, of another host, or of another authority.
func TestClientVerifiesServer(t *testing.T) {
	dir, other, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	writeTrial(t, dir, certs.Loopback...)
	writeTrial(t, other, certs.Loopback...)
	writeTrial(t, elsewhere, "example.org")
	client := openSecurity(t, dir, certs.KV)
	if err := pingOnce(t, client, serveSecured(t, openSecurity(t, dir, certs.TSO)), certs.TSO); err != nil {
		t.Errorf("its oracle: %v", err)
	}
	for _, c := range []struct {
		name   string
		server *Security
		want   string
	}{
		{"a SQL process as oracle", openSecurity(t, dir, certs.SQL), "percodb:sql, not [percodb:tso]"},
		{"another authority's", openSecurity(t, other, certs.TSO), "unknown authority"},
		{"without TLS", nil, "first record does not look like a TLS handshake"},
	} {
		err := pingOnce(t, client, serveSecured(t, c.server), certs.TSO)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	away := openSecurity(t, elsewhere, certs.TSO)
	if err := pingOnce(t, away, serveSecured(t, away), certs.TSO); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("another host's: %v", err)
	}
}

// Goal: a process does not start with a certificate that the others would refuse.
func TestOwnCertificate(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	writeTrial(t, dir, certs.Loopback...)
	writeTrial(t, other, certs.Loopback...)
	foreign := certs.ProcessFiles(dir, certs.KV)
	foreign.CA = certs.ProcessFiles(other, certs.KV).CA
	alone := certs.ProcessFiles(dir, certs.KV)
	alone.CA = ""
	for _, c := range []struct {
		name  string
		files tlsfiles.Files
		want  string
	}{
		{"another role's", certs.ProcessFiles(dir, certs.SQL), "percodb:sql, not percodb:kv"},
		{"a client's", certs.ClientFiles(dir, "alice"), "of no process of a cluster"},
		{"a SQL server's", certs.ServerFiles(dir), "of no process of a cluster"},
		{"another authority's", foreign, "unknown authority"},
		{"without an authority", alone, "authority is missing"},
	} {
		if _, err := NewSecurity(c.files, certs.KV, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Goal: after Reload, new connections have the new certificate and authority; wrong files change nothing.
func TestReloadedCertificates(t *testing.T) {
	dir, clientDir := t.TempDir(), t.TempDir()
	writeTrial(t, dir, certs.Loopback...)
	server, old := openSecurity(t, dir, certs.TSO), openSecurity(t, dir, certs.KV)
	addr := serveSecured(t, server)
	if err := pingOnce(t, old, addr, certs.TSO); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(certs.ProcessFiles(dir, certs.TSO).Key); err != nil {
		t.Fatal(err)
	}
	if err := server.Reload(); err == nil {
		t.Error("a certificate without a key was loaded")
	}
	if err := pingOnce(t, old, addr, certs.TSO); err != nil {
		t.Errorf("with the key lost: %v", err)
	}
	writeTrial(t, dir, certs.Loopback...)
	if err := server.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := pingOnce(t, old, addr, certs.TSO); status.Code(err) != codes.Unavailable {
		t.Errorf("a client of the old authority: %v", err)
	}
	if err := old.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := pingOnce(t, old, addr, certs.TSO); err != nil {
		t.Errorf("a client that has reloaded: %v", err)
	}
	writeTrial(t, clientDir, certs.Loopback...)
	if err := pingOnce(t, openSecurity(t, clientDir, certs.KV), addr, certs.TSO); status.Code(err) != codes.Unavailable {
		t.Errorf("a client of another authority: %v", err)
	}
}

// Goal: what no rule permits is refused. Method: calls of a method without a rule, and without a certificate.
func TestAuthorizeRefusesByDefault(t *testing.T) {
	for _, method := range []string{"/percodb.kv.v1.Shard2/Get", "/percodb.kv.v1/Shard", "/", "", "percodb.tso.v1.Oracle"} {
		for _, role := range anyProcess {
			if MayCall(role, method) {
				t.Errorf("%s may call %q", role, method)
			}
		}
	}
	s := &Security{log: slog.New(slog.DiscardHandler)}
	if err := s.authorize(t.Context(), "/percodb.tso.v1.Oracle/Take"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a peer: %v", err)
	}
}
