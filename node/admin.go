package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/server"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// adminProtocol is that of the admin endpoint above TLS.
const adminProtocol = "http/1.1"

// startAdmin serves the admin endpoint until Close.
func (n *Node) startAdmin() (err error) {
	opts := server.AdminOptions{
		Listen: n.opts.AdminListen, Pprof: n.opts.AdminPprof, Registry: n.registry, Healthy: n.healthy, Check: n.Check, Logger: n.log,
	}
	if n.opts.AdminTLS {
		switch {
		case n.security != nil:
			opts.TLS = n.security.ServerConfig(adminProtocol, certs.Operator)
		case n.gate != nil && n.gate.TLS() != nil:
			opts.TLS = passwordConfig(n.gate)
			opts.Permit = (&adminRoles{roles: n.db.catalog.Roles, log: n.log, deriving: make(chan struct{}, 1)}).permit
		default:
			return errors.New("the admin endpoint has no certificate to speak TLS with")
		}
	}
	if n.admin, err = server.NewAdmin(opts); err != nil {
		return err
	}
	n.onClose(func(context.Context) { n.admin.Close() })
	return nil
}

// passwordConfig has the certificate that clients are shown, the one that was loaded last. Who is served, passwords decide.
func passwordConfig(gate *auth.Gate) *tls.Config {
	current := func() *tls.Config {
		config := gate.TLS().Clone()
		config.NextProtos, config.ClientAuth = []string{adminProtocol}, tls.NoClientCert
		return config
	}
	config := current()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return current(), nil }
	return config
}

// adminRoles decides which roles the admin endpoint serves.
type adminRoles struct {
	roles    func(context.Context) (*catalog.Roles, error)
	log      *slog.Logger
	deriving chan struct{} // has the one password that is verified: it takes milliseconds of a processor
}

// refusedPassword takes as long as a role's to verify, so that a name without a password is not found by the time.
var refusedPassword = sync.OnceValue(func() *verifier.Verifier { return verifier.New("") })

// permit admits superusers, and those with the privileges of pg_monitor to metrics.
func (a *adminRoles) permit(ctx context.Context, name, password, path string) bool {
	roles, err := a.roles(ctx)
	if err != nil {
		a.log.Error("read the roles for the admin endpoint", "err", err)
		return false
	}
	role, stored, known := roles.ByName(name), refusedPassword(), false
	if role != nil && role.Login && (role.ValidUntil == nil || *role.ValidUntil > time.Since(postgresEpoch).Microseconds()) {
		if v, ok := verifier.Parse(role.Verifier); ok {
			stored, known = v, true
		}
	}
	select {
	case a.deriving <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	matches := stored.Matches(password)
	<-a.deriving
	reads := path == "/metrics" || path == "/healthz"
	if known && matches && (role.Superuser || reads && roles.HasPrivilegesOf(role.OID, catalog.MonitorRole)) {
		return true
	}
	// The time does not tell whether the password is a role's that is not served.
	a.log.Warn("the admin endpoint refused a role", "role", name, "password", known && matches, "path", path)
	select {
	case <-time.After(refusalDelay):
	case <-ctx.Done():
	}
	return false
}

// refusalDelay is what each refusal costs the sender.
const refusalDelay = 200 * time.Millisecond

// postgresEpoch is when the time of Role.ValidUntil begins.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// OperatorClient returns a client of admin endpoints with AdminTLS. files are an operator's certificate of the cluster.
func OperatorClient(files tlsfiles.Files) (*http.Client, error) {
	security, err := tsorpc.NewSecurity(files, certs.Operator, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		dialer := tls.Dialer{Config: security.ClientConfig(host, adminProtocol, certs.TSO, certs.KV, certs.SQL)}
		return dialer.DialContext(ctx, network, addr)
	}
	return &http.Client{Transport: &http.Transport{DialTLSContext: dial}}, nil
}
