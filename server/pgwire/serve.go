package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

// maxMessageBytes bounds a message of the client, as in PostgreSQL.
const maxMessageBytes = 1<<30 - 2

// Host is what the server gives a connection.
type Host interface {
	// DatabaseName returns the name of the database that a client means, which is what it says if there is none.
	DatabaseName(ctx context.Context, name string) (string, error)
	// Open makes the session of a client that has introduced itself. An error is sent as FATAL.
	Open(ctx context.Context, c *Conn, startup map[string]string) (*session.Session, error)
	// Closed reports that the session of Open has ended.
	Closed(*session.Session)
	// Cancel cuts off the running statement, if there is one, of the session with this key. It reports whether there is such a session.
	Cancel(key session.CancelKey) bool
}

// Conn is one client's connection. Serve is called once; Shutdown from any goroutine.
type Conn struct {
	net     net.Conn     // the socket, for deadlines
	tcp     *net.TCPConn // the same; nil: it is none of TCP
	stream  net.Conn     // what messages pass through: the socket, or TLS over it
	meter   *meter
	tls     *tls.ConnectionState // nil: the connection is not encrypted
	client  auth.Client          // as far as it has introduced itself
	gate    *auth.Gate
	host    Host
	log     *slog.Logger
	backend *pgproto3.Backend
	w       *writer
	session *session.Session
	ended   *pgerror.Error // why the server ends the session; nil: the client does
	// stage is how far the startup has come, progress when that was, in nanoseconds.
	stage    stage
	progress atomic.Int64
	// skipping: an error occurred in the extended protocol; skip to Sync.
	skipping bool
	// waiting: the client has been sent ReadyForQuery.
	waiting  bool
	draining atomic.Bool
	// receiving: the connection's goroutine is in receive. busy: it does not wait there for the client.
	receiving bool
	busy      atomic.Bool
	why       atomic.Pointer[pgerror.Error] // the connection ends; nil: the server shuts down
	wake      func()                        // ends the wait for a message, to send notifications
}

// New wraps an accepted connection. gate decides whether its client is let in. Its large messages, in both directions, draw
// from pool.
func New(c net.Conn, gate *auth.Gate, host Host, pool *memory.Pool, log *slog.Logger) *Conn {
	socket := newSocket(c)
	tcp, _ := c.(*net.TCPConn)
	conn := &Conn{net: socket, tcp: tcp, stream: socket, gate: gate, host: host, log: log}
	conn.client.Addr = c.RemoteAddr()
	conn.heard()
	conn.meter = newMeter(conn.read, pool)
	conn.backend = pgproto3.NewBackend(conn.meter, io.Discard)
	conn.w = newWriter(socket, conn.backend, pool)
	conn.wake = conn.interruptRead
	return conn
}

// Serve talks to the client until either side ends. It closes the connection.
func (c *Conn) Serve(ctx context.Context) {
	defer func() { c.stream.Close() }() // It tells a client on TLS.
	defer c.meter.account.Close()
	defer c.w.Close()
	defer c.recoverPanic()
	err := c.startup(ctx)
	if c.session == nil {
		if err != nil {
			c.fatal(err)
			c.reportRefused(err)
		}
		return
	}
	defer c.host.Closed(c.session)
	defer c.auditDisconnect(time.Now())
	defer c.session.Close()
	if err != nil {
		c.fatal(err)
		return
	}
	c.busy.Store(true)
	for {
		m, err := c.receive()
		if err != nil {
			if refused, ok := errors.AsType[*refusedMessage](err); ok {
				if err = c.refuse(refused); err == nil {
					continue
				}
			}
			c.fatal(err)
			return
		}
		if _, ok := m.(*pgproto3.Terminate); ok {
			return
		}
		if interval := c.session.ConnectionCheckInterval(); interval > 0 {
			err = c.handleWatched(m, interval)
		} else {
			err = c.handle(m)
		}
		if err != nil {
			c.fatal(err)
			return
		}
	}
}

// receive waits for the next message; a server that shuts down ends the wait. In the place of a message that was not read it
// returns *refusedMessage.
func (c *Conn) receive() (pgproto3.FrontendMessage, error) {
	timeout := c.idleTimeout()
	var deadline time.Time
	if timeout > 0 {
		// An error shows at once, as one of the read.
		deadline = time.Now().Add(timeout)
		_ = c.net.SetReadDeadline(deadline)
	}
	if c.draining.Load() { // After the deadline, which may have replaced Shutdown's.
		return nil, c.endError()
	}
	c.receiving = true
	m, err := c.receiveOrNotify(deadline)
	c.receiving = false
	if err != nil {
		if _, refused := errors.AsType[*refusedMessage](err); !refused {
			return nil, c.receiveError(err, timeout > 0)
		}
	}
	if timeout > 0 {
		_ = c.net.SetReadDeadline(time.Time{})
	}
	c.waiting = false
	return m, err
}

// read reads from the client. Only here, for a message that has not come, is the connection not busy: the messages of a pipeline
// that came together cost nothing for that.
func (c *Conn) read(p []byte) (int, error) {
	if !c.receiving {
		return c.stream.Read(p)
	}
	c.busy.Store(false)
	defer c.busy.Store(true)
	if c.draining.Load() {
		return 0, os.ErrDeadlineExceeded // as if Shutdown had ended the read
	}
	return c.stream.Read(p)
}

// receiveError is why no message came. timed: the read had the deadline of an idle session.
func (c *Conn) receiveError(err error, timed bool) error {
	switch {
	case c.draining.Load():
		return c.endError()
	case timed && errors.Is(err, os.ErrDeadlineExceeded):
		return c.session.IdleError()
	}
	return protocolError(err)
}

// idleTimeout is how long the client may be silent, 0 for no limit.
func (c *Conn) idleTimeout() time.Duration {
	if !c.waiting {
		return 0
	}
	return c.session.IdleTimeout()
}

// Shutdown lets the running statement finish, and ends an idle connection immediately. Between messages of a pipeline
// the connection counts as idle.
func (c *Conn) Shutdown() {
	c.draining.Store(true)
	if !c.busy.Load() {
		c.net.SetReadDeadline(past)
	}
}

// Interrupt is Shutdown that does not wait for data that a running statement has yet to receive (COPY).
func (c *Conn) Interrupt() {
	c.draining.Store(true)
	c.net.SetReadDeadline(past)
}

// terminateGrace is for how long a client that does not read is waited for once its session is to end.
const terminateGrace = 5 * time.Second

// Terminate ends the connection as soon as its statement has been canceled, which is done by the caller. The client is sent why;
// nil: the administrator's command.
func (c *Conn) Terminate(why *pgerror.Error) {
	c.why.CompareAndSwap(nil, why)
	c.Interrupt()
	_ = c.net.SetWriteDeadline(time.Now().Add(terminateGrace)) // An error shows at the next write.
}

// Refuse sends a client in the startup phase the reason why it is not served, and closes the connection.
func (c *Conn) Refuse(why *pgerror.Error) {
	_ = c.net.SetWriteDeadline(time.Now().Add(time.Second))
	c.w.error(why, "FATAL")
	_ = c.w.Send() // The connection ends either way.
	c.net.Close()
	c.gate.Report(&c.client, why)
}

// Abort cuts the running statement off and closes the connection.
func (c *Conn) Abort() {
	c.draining.Store(true)
	c.net.Close()
}

// endError is why a connection that drains ends.
func (c *Conn) endError() *pgerror.Error {
	if why := c.why.Load(); why != nil {
		return why
	}
	return pgerror.New(pgerror.AdminShutdown, "terminating connection due to administrator command")
}

// refuse answers a message that was not read. An error ends the connection.
func (c *Conn) refuse(m *refusedMessage) error {
	if err := c.extended(c.session.RunDeferred(c.w)); err != nil || c.skipping {
		return err
	}
	why := session.ToPGError(m.why)
	switch m.kind {
	case 'Q', 'F':
		c.session.Fail(why)
		if err := c.failed(why); err != nil {
			return err
		}
		return c.ready()
	case 'P', 'B', 'E', 'D', 'C':
		c.session.Fail(why)
		return c.extended(why)
	}
	return nil // The rest of a COPY that failed.
}

// protocolError distinguishes a client that disconnected from one that sent an invalid message.
func protocolError(err error) error {
	if _, ok := errors.AsType[*refusedMessage](err); ok {
		return err
	}
	if errkind.Of(err) == errkind.OutOfMemory {
		return &connectionError{session.ToPGError(err)}
	}
	var netErr net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &netErr) {
		return &connectionError{err}
	}
	return &connectionError{pgerror.New(pgerror.ProtocolViolation, "invalid message: %v", err)}
}

// fatal sends the client the reason why the connection ends, if it is still connected.
func (c *Conn) fatal(err error) {
	gone, lost := errkind.As[*connectionError](err)
	var why *pgerror.Error
	if lost && !errors.As(gone.err, &why) && c.draining.Load() && errors.Is(gone.err, os.ErrDeadlineExceeded) {
		why = c.endError() // Interrupt ended the read.
	}
	if lost && why == nil || c.w.Err() != nil {
		c.log.Debug("client connection lost", "err", err)
		return
	}
	if why == nil {
		why = session.ToPGError(err)
	}
	c.ended = why
	c.w.error(why, "FATAL")
	_ = c.w.Send() // The connection ends either way.
}

// recoverPanic keeps a bug in one session from ending the server.
func (c *Conn) recoverPanic() {
	if p := recover(); p != nil {
		e := session.ReportPanic(c.log, p)
		c.ended = e
		c.w.dropPartial()
		c.w.error(e, "FATAL")
		_ = c.w.Send()
	}
}

// handle answers one message. An error ends the connection.
func (c *Conn) handle(m pgproto3.FrontendMessage) error {
	if _, sync := m.(*pgproto3.Sync); !sync {
		if err := c.extended(c.session.RunDeferred(c.w)); err != nil {
			return err
		}
		if c.skipping {
			return nil
		}
	}
	switch m := m.(type) {
	case *pgproto3.Query:
		return c.query(m)
	case *pgproto3.Parse:
		return c.extended(c.parse(m))
	case *pgproto3.Bind:
		return c.extended(c.bind(m))
	case *pgproto3.Describe:
		return c.extended(c.describe(m))
	case *pgproto3.Execute:
		return c.extended(c.session.Execute(m.Portal, int(m.MaxRows), c.w))
	case *pgproto3.Close:
		return c.extended(c.close(m))
	case *pgproto3.Flush:
		if err := c.extended(c.session.Flush(c.w)); err != nil {
			return err
		}
		return c.w.Send()
	case *pgproto3.Sync:
		return c.sync()
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return nil // The rest of a COPY that failed (55.2.6).
	case *pgproto3.FunctionCall:
		err := pgerror.Unsupported("the function call protocol", "Use SELECT function(…).")
		c.session.Fail(err)
		c.w.error(err, "ERROR")
		return c.ready()
	}
	return pgerror.New(pgerror.ProtocolViolation, "unexpected message type %T", m)
}

// extended answers an error of the extended protocol and has the rest skipped up to Sync, Flush included: the error is sent now.
func (c *Conn) extended(err error) error {
	if err == nil {
		return c.w.Err()
	}
	if errkind.Of(err) == errkind.ClientGone {
		return err
	}
	c.skipping = true
	if err := c.failed(err); err != nil {
		return err
	}
	return c.w.Send()
}

// failed sends the client the error of a statement. A client whose statement was canceled because the connection ends
// receives the error once, from fatal.
func (c *Conn) failed(err error) error {
	e := session.ToPGError(err)
	if e.Code == pgerror.AdminShutdown && c.draining.Load() {
		return c.endError()
	}
	c.w.error(e, "ERROR")
	return c.w.Err()
}
