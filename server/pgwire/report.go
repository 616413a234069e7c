package pgwire

import (
	"errors"
	"os"
	"time"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

// stage is how far a client has come that has yet to be let in.
type stage uint8

const (
	reached    stage = iota // its next packet has not begun
	packets                 // it has begun a packet
	handshake               // of TLS
	proving                 // that it is the user
	introduced              // the session is being opened
)

func (s stage) String() string {
	return [...]string{"no startup packet has come", "the startup packet is incomplete", "the TLS handshake did not end",
		"the client did not prove who it is", "the session was not opened"}[s]
}

// reportRefused reports a client that was not let in. Those that leave without a word, such as checks of the port, and those
// that leave when they are asked for a password, as psql does to ask its user, were not refused.
func (c *Conn) reportRefused(err error) {
	gone, lost := errkind.As[*connectionError](err)
	if !lost {
		if refused := (*auth.Refused)(nil); !errors.As(err, &refused) {
			err = session.ToPGError(err)
		}
		c.gate.Report(&c.client, err)
		return
	}
	refused := &auth.Refused{}
	switch {
	case c.draining.Load():
		if refused.Err = c.why.Load(); refused.Err != nil {
			refused.Why = errors.New(c.stage.String())
		}
	case errors.As(gone.err, &refused.Err):
	case errors.Is(gone.err, os.ErrDeadlineExceeded):
		refused.Err, refused.Why = errLoginTimeout(), errors.New(c.stage.String())
	case c.stage == handshake:
		refused.Err, refused.Why = pgerror.New(pgerror.ProtocolViolation, "could not accept SSL connection"), gone.err
	case c.stage == packets:
		refused.Err = pgerror.New(pgerror.ProtocolViolation, "incomplete startup packet")
	}
	if refused.Err != nil {
		c.gate.Report(&c.client, refused)
	}
}

func errLoginTimeout() *pgerror.Error {
	return pgerror.New(pgerror.QueryCanceled, "canceling authentication due to timeout")
}

// reportCancel reports a request to cancel the statement of a session that there is not.
func (c *Conn) reportCancel(pid uint32) {
	c.gate.Report(&c.client, &auth.Refused{Err: pgerror.New(pgerror.InvalidAuthorization, "no session has the key of a cancel request for process %d", pid)})
}

// auditConnect writes that the session has begun, by a rule.
func (c *Conn) auditConnect(rule *auth.Rule) {
	log := c.gate.Audit()
	if log == nil {
		return
	}
	e := c.event(audit.Connect)
	e.Method, e.Line, e.Application = rule.Method.String(), rule.Line, c.client.Application
	log.Write(e)
}

// auditDisconnect writes that the session has ended.
func (c *Conn) auditDisconnect(began time.Time) {
	log := c.gate.Audit()
	if log == nil {
		return
	}
	e := c.event(audit.Disconnect)
	e.Seconds = time.Since(began).Seconds()
	if c.ended != nil {
		e.SQLState, e.Message = string(c.ended.Code), c.ended.Message
	}
	log.Write(e)
}

func (c *Conn) event(kind audit.Kind) audit.Event {
	e := c.client.Event(kind)
	e.Application = ""
	e.Session, e.Role = c.session.CancelKey().PID, c.session.OtherRole()
	return e
}
