package pgwire

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

// startupTimeout bounds how long a client may take to introduce itself.
const startupTimeout = 60 * time.Second

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// startup answers the startup messages (55.2.1). It reports whether a session has begun; a connection for a
// CancelRequest has none.
func (c *Conn) startup(ctx context.Context) (bool, error) {
	c.net.SetReadDeadline(time.Now().Add(startupTimeout))
	for range 4 { // SSLRequest, GSSENCRequest and the packet itself, with one to spare.
		m, err := c.backend.ReceiveStartupMessage()
		if err != nil {
			return false, protocolError(err)
		}
		switch m := m.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := c.net.Write([]byte{'N'}); err != nil {
				return false, &connectionError{err}
			}
		case *pgproto3.CancelRequest:
			if len(m.SecretKey) == 4 {
				c.host.Cancel(session.CancelKey{PID: m.ProcessID, Secret: binary.BigEndian.Uint32(m.SecretKey)})
			}
			return false, nil
		case *pgproto3.StartupMessage:
			return true, c.begin(ctx, m)
		}
	}
	return false, pgerror.New(pgerror.ProtocolViolation, "too many negotiation requests")
}

// begin opens the session and greets the client.
func (c *Conn) begin(ctx context.Context, m *pgproto3.StartupMessage) error {
	if m.ProtocolVersion != pgproto3.ProtocolVersion30 {
		c.w.send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: 0})
	}
	s, err := c.host.Open(ctx, c, m.Parameters)
	if err != nil {
		return err
	}
	c.session = s
	c.w.format = s.Format()
	c.w.send(&pgproto3.AuthenticationOk{})
	s.ReportSettings(c.w)
	key := s.CancelKey()
	c.w.send(&pgproto3.BackendKeyData{ProcessID: key.PID, SecretKey: binary.BigEndian.AppendUint32(nil, key.Secret)})
	c.net.SetReadDeadline(time.Time{})
	return c.ready()
}
