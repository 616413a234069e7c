package auth

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/percodb/percodb/audit"
)

// Client is a client that asks to be let in.
type Client struct {
	Addr           net.Addr             // of its end of the connection
	TLS            *tls.ConnectionState // nil: the connection is not encrypted
	ServerCert     *x509.Certificate    // that the client has been shown; nil without TLS
	User, Database string
	Application    string // application_name of its startup packet
	Path           string // of a request to the admin endpoint
}

// Address returns the client's IP address; the zero Addr is a Unix socket.
func (c *Client) Address() netip.Addr {
	if tcp, ok := c.Addr.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// describe names the client as PostgreSQL's messages do.
func (c *Client) describe() string {
	host, encryption := local, "no encryption"
	if addr := c.Address(); addr.IsValid() {
		host = addr.Unmap().String()
	}
	if c.TLS != nil {
		encryption = "SSL encryption"
	}
	return fmt.Sprintf("host \"%s\", user \"%s\", database \"%s\", %s", host, c.User, c.Database, encryption)
}

// local is how the address of a client of the Unix socket is written.
const local = "[local]"

// Where is an address with its port, as it is logged.
func Where(addr net.Addr) string {
	if _, ok := addr.(*net.TCPAddr); ok {
		return addr.String()
	}
	return local
}

// Event begins an event of the audit log about the client.
func (c *Client) Event(kind audit.Kind) audit.Event {
	e := audit.Event{Event: kind, User: c.User, Database: c.Database, Address: Where(c.Addr), Application: c.Application, Path: c.Path}
	if c.TLS != nil {
		e.TLS = TLSVersion(c.TLS)
		if len(c.TLS.PeerCertificates) > 0 {
			e.Certificate = c.TLS.PeerCertificates[0].Subject.String()
		}
	}
	return e
}

// TLSVersion is the version of TLS as PostgreSQL writes it: TLSv1.3.
func TLSVersion(state *tls.ConnectionState) string {
	return strings.Replace(tls.VersionName(state.Version), "TLS 1", "TLSv1", 1)
}
