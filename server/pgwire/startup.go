package pgwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

const (
	// Codes of packets before the StartupMessage.
	cancelCode = 80877102
	tlsCode    = 80877103
	gssCode    = 80877104

	maxStartupBytes = 10000 // as in PostgreSQL
	// handshakeByte is the first of a TLS handshake. No startup packet begins with it: it would be too long.
	handshakeByte = 0x16
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// startup answers the startup messages (55.2.1), and sets the session when it has begun; a connection for a CancelRequest has none.
//
// Packets are read from the connection byte by byte as far as they go. Nothing that follows an SSLRequest in the clear is
// therefore taken for a part of the encrypted conversation: it is what the TLS handshake begins with, which fails.
func (c *Conn) startup(ctx context.Context) error {
	if err := c.net.SetDeadline(time.Now().Add(c.gate.Timeout())); err != nil {
		return &connectionError{err}
	}
	for n := range 4 { // GSSENCRequest, SSLRequest and the packet itself, with one to spare.
		code, body, err := c.readPacket(n == 0)
		if err != nil {
			return err
		}
		switch code {
		case gssCode:
			err = c.answer('N')
		case tlsCode:
			err = c.negotiateTLS()
		case cancelCode:
			var m pgproto3.CancelRequest
			if err := m.Decode(body); err != nil {
				return protocolError(err)
			}
			if len(m.SecretKey) == 4 {
				if !c.host.Cancel(session.CancelKey{PID: m.ProcessID, Secret: binary.BigEndian.Uint32(m.SecretKey)}) {
					c.reportCancel(m.ProcessID)
				}
			}
			return nil
		default:
			return c.begin(ctx, code, body)
		}
		if err != nil {
			return err
		}
	}
	return pgerror.New(pgerror.ProtocolViolation, "too many negotiation requests")
}

// readPacket reads a packet of the startup phase, and nothing that follows it. body begins with the code. If the
// connection begins with a TLS handshake instead, that is carried out first.
func (c *Conn) readPacket(first bool) (code uint32, body []byte, err error) {
	var length [4]byte
	if n, err := io.ReadFull(c.stream, length[:]); err != nil {
		if n > 0 {
			c.stage = packets
		}
		return 0, nil, &connectionError{err}
	}
	c.stage = packets
	c.heard()
	if first && length[0] == handshakeByte && c.offersTLS() {
		if err := c.secure(&replay{Conn: c.net, unread: length[:]}); err != nil {
			return 0, nil, err
		}
		if c.tls.NegotiatedProtocol != auth.ALPN {
			return 0, nil, pgerror.New(pgerror.ProtocolViolation, "received direct SSL connection request without ALPN protocol negotiation extension")
		}
		return c.readPacket(false)
	}
	size := int64(binary.BigEndian.Uint32(length[:])) - 4
	if size < 4 || size > maxStartupBytes {
		return 0, nil, pgerror.New(pgerror.ProtocolViolation, "invalid length of startup packet")
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(c.stream, body); err != nil {
		return 0, nil, &connectionError{err}
	}
	c.stage = reached
	return binary.BigEndian.Uint32(body), body, nil
}

// offersTLS reports whether a TLS handshake may follow. As in PostgreSQL, there is none on a Unix socket, and none within TLS.
func (c *Conn) offersTLS() bool {
	_, unix := c.net.LocalAddr().(*net.UnixAddr)
	return c.gate.TLS() != nil && c.tls == nil && !unix
}

// answer sends the one byte that answers a request for encryption.
func (c *Conn) answer(b byte) error {
	if _, err := c.stream.Write([]byte{b}); err != nil {
		return &connectionError{err}
	}
	return nil
}

// negotiateTLS answers an SSLRequest.
func (c *Conn) negotiateTLS() error {
	if c.tls != nil {
		return pgerror.New(pgerror.ProtocolViolation, "received an SSL request on an encrypted connection")
	}
	if !c.offersTLS() {
		return c.answer('N')
	}
	if err := c.answer('S'); err != nil {
		return err
	}
	return c.secure(c.net)
}

// secure carries out a TLS handshake; messages then pass through TLS. The client is sent the reason of a failure as an alert.
func (c *Conn) secure(conn net.Conn) error {
	c.stage = handshake
	config := c.gate.TLS()
	encrypted := tls.Server(conn, config)
	if err := encrypted.Handshake(); err != nil {
		return &connectionError{err}
	}
	state := encrypted.ConnectionState()
	c.stage = reached
	c.heard()
	c.tls, c.client.TLS, c.client.ServerCert = &state, &state, config.Certificates[0].Leaf
	c.stream = encrypted
	c.w.SendTo(encrypted)
	return nil
}

// replay is a connection whose first bytes have been read before.
type replay struct {
	net.Conn
	unread []byte
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.unread) > 0 {
		n := copy(p, r.unread)
		r.unread = r.unread[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}

// begin admits the client, opens the session and greets the client. body is that of the StartupMessage.
func (c *Conn) begin(ctx context.Context, code uint32, body []byte) error {
	if code>>16 != pgproto3.ProtocolVersion30>>16 {
		return pgerror.New(pgerror.FeatureNotSupported, "unsupported frontend protocol %d.%d: server supports 3.0 to 3.0", code>>16, code&0xffff)
	}
	var m pgproto3.StartupMessage
	if err := m.Decode(body); err != nil {
		return protocolError(err)
	}
	if m.ProtocolVersion != pgproto3.ProtocolVersion30 {
		c.w.send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: 0})
	}
	c.stage = proving
	rule, err := c.authenticate(ctx, m.Parameters)
	if err != nil {
		return err
	}
	c.stage = introduced
	s, err := c.host.Open(ctx, c, m.Parameters)
	if err != nil {
		return err
	}
	c.session = s
	c.auditConnect(rule)
	c.w.format = s.Format()
	c.w.send(&pgproto3.AuthenticationOk{})
	s.ReportSettings(c.w)
	key := s.CancelKey()
	c.w.send(&pgproto3.BackendKeyData{ProcessID: key.PID, SecretKey: binary.BigEndian.AppendUint32(nil, key.Secret)})
	c.net.SetReadDeadline(time.Time{})
	return c.ready()
}

// authenticate has the rules decide on the client.
func (c *Conn) authenticate(ctx context.Context, startup map[string]string) (*auth.Rule, error) {
	client := &c.client
	client.User, client.Database, client.Application = startup["user"], startup["database"], startup["application_name"]
	if client.User == "" {
		return nil, pgerror.New(pgerror.InvalidAuthorization, "no PostgreSQL user name specified in startup packet")
	}
	if client.Database == "" {
		client.Database = client.User
	}
	var err error
	if client.Database, err = c.host.DatabaseName(ctx, client.Database); err != nil {
		return nil, err
	}
	rule, err := c.gate.Admit(ctx, client, &saslConversation{c})
	if err != nil {
		return nil, err
	}
	c.backend.SetMaxBodyLen(maxMessageBytes)
	// The session may be terminated, with a deadline of its own, as soon as it is open.
	if err := c.net.SetWriteDeadline(time.Time{}); err != nil {
		return nil, &connectionError{err}
	}
	return rule, nil
}

// Address is the client's IP address; the zero Addr is a Unix socket.
func (c *Conn) Address() netip.Addr { return c.client.Address() }

// heard notes that the client has made progress.
func (c *Conn) heard() { c.progress.Store(time.Now().UnixNano()) }

// LastHeard is when the client has last made progress on its way to a session. Safe from any goroutine.
func (c *Conn) LastHeard() time.Time { return time.Unix(0, c.progress.Load()) }

// Client returns where the client is and how it is connected. It is legal once the client has introduced itself.
func (c *Conn) Client() session.Client {
	client := session.Client{Addr: c.net.RemoteAddr(), Local: c.net.LocalAddr(), TLS: describeTLS(c.tls)}
	if c.tcp != nil {
		client.Tune = c.keepAlive
	}
	return client
}
