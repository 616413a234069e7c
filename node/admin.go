package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/sql/pgerror"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// adminProtocol is that of the admin endpoint above TLS.
const adminProtocol = "http/1.1"

// startAdmin serves the admin endpoint until Close.
func (n *Node) startAdmin() (err error) {
	opts := server.AdminOptions{
		Listen: n.opts.AdminListen, Pprof: n.opts.AdminPprof, Registry: n.registry, Healthy: n.healthy, Check: n.Check, Logger: n.log, Audit: n.audit,
	}
	if n.opts.AdminTLS {
		switch {
		case n.security != nil:
			opts.TLS = n.security.ServerConfig(adminProtocol, certs.Operator)
		case n.gate != nil && n.gate.TLS() != nil:
			opts.TLS = passwordConfig(n.gate)
			opts.Permit = (&adminRoles{roles: n.db.catalog.Roles, gate: n.gate}).permit
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

// passwordConfig has the certificates that were loaded last. Who is served, rules and passwords decide.
func passwordConfig(gate *auth.Gate) *tls.Config {
	current := func() *tls.Config {
		config := gate.TLS().Clone()
		config.NextProtos = []string{adminProtocol}
		return config
	}
	config := current()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return current(), nil }
	return config
}

// adminRoles decides which roles the admin endpoint serves: those that the rules for clients let in with their password, over TLS.
type adminRoles struct {
	roles func(context.Context) (*catalog.Roles, error)
	gate  *auth.Gate
}

// permit admits superusers, and those with the privileges of pg_monitor to metrics.
func (a *adminRoles) permit(r *http.Request, name, password string) bool {
	ctx := r.Context()
	client := server.AdminClient(r, name)
	rule, err := a.gate.AdmitPassword(ctx, client, password)
	if err == nil {
		if err = a.authorize(ctx, name, r.URL.Path, rule); err == nil {
			return true
		}
	}
	a.gate.Report(client, err)
	// The time does not tell whether the password is a role's that is not served.
	select {
	case <-time.After(refusalDelay):
	case <-ctx.Done():
	}
	return false
}

// authorize returns why a role that has given its password is not served.
func (a *adminRoles) authorize(ctx context.Context, name, path string, rule *auth.Rule) error {
	roles, err := a.roles(ctx)
	if err != nil {
		return err
	}
	role := roles.ByName(name)
	if role == nil || !role.Login {
		return &auth.Refused{Err: pgerror.New(pgerror.InvalidAuthorization, "role \"%s\" is not permitted to log in", name), Line: rule.Line}
	}
	if reads := path == "/metrics" || path == "/healthz"; role.Superuser || reads && roles.HasPrivilegesOf(role.OID, catalog.MonitorRole) {
		return nil
	}
	return &auth.Refused{Err: pgerror.New(pgerror.InsufficientPrivilege, "role \"%s\" may not request %s", name, path), Line: rule.Line}
}

// refusalDelay is what each refusal costs the sender.
const refusalDelay = 200 * time.Millisecond

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
