package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"

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
		if n.security == nil {
			return errors.New("the admin endpoint has no certificate of a cluster to speak TLS with")
		}
		opts.TLS = n.security.ServerConfig(adminProtocol, certs.Operator)
	}
	if n.admin, err = server.NewAdmin(opts); err != nil {
		return err
	}
	n.onClose(func(context.Context) { n.admin.Close() })
	return nil
}

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
