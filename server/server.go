// Package server owns the listeners: one goroutine per client, the admin HTTP endpoint, and the graceful
// shutdown of both. Package pgwire implements the protocol of a connection.
//
// Invariants: every goroutine started here has ended when Close returns; a connection's failure ends
// that connection alone.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/server/pgwire"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

// leastStarting is the minimum of clients that may be in the startup phase at once.
const leastStarting = 64

// Options configure a Server.
type Options struct {
	Listen string // HOST:PORT
	// SocketDir is the directory of the Unix socket; "": there is none.
	SocketDir string
	// Gate decides which clients are let in.
	Gate *auth.Gate
	// MaxConnections is the number of clients served at once, of which the last ReservedConnections are
	// for superusers only.
	MaxConnections, ReservedConnections int
	Deps                                session.Deps
	Logger                              *slog.Logger
	// Messages is the pool of large messages from clients and large rows to them; nil: they are not bounded together.
	Messages *memory.Pool
}

// Server accepts PostgreSQL clients. Safe for concurrent use.
type Server struct {
	opts    Options
	log     *slog.Logger
	tcp     net.Listener
	unix    *unixSocket // nil: there is none
	lastPID atomic.Uint32
	wg      sync.WaitGroup

	mu struct {
		sync.Mutex
		closing  bool
		conns    map[*pgwire.Conn]struct{}
		sessions map[session.CancelKey]*client
		slots    int                     // taken by sessions
		starting *starting[*pgwire.Conn] // those of conns that have no session yet
	}
}

// client is a session with its connection.
type client struct {
	session *session.Session
	conn    *pgwire.Conn
	done    chan struct{} // closed when the session has ended
}

// ListenError: listening on the address, which the flag gave, failed.
type ListenError struct {
	Flag string
	Addr string
	Err  error
}

func (e *ListenError) Error() string {
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("%s is in use by another process; stop it, or give %s another port", e.Addr, e.Flag)
	}
	return fmt.Sprintf("cannot listen on %s: %v", e.Addr, e.Err)
}

func (e *ListenError) Unwrap() error { return e.Err }

// New listens; Serve accepts.
func New(opts Options) (*Server, error) {
	config := net.ListenConfig{KeepAlive: pgwire.DefaultKeepAlive}
	listener, err := config.Listen(context.Background(), "tcp", opts.Listen)
	if err != nil {
		return nil, &ListenError{Flag: "--listen", Addr: opts.Listen, Err: err}
	}
	s := &Server{opts: opts, log: opts.Logger, tcp: listener}
	if opts.SocketDir != "" {
		if s.unix, err = listenUnix(opts.SocketDir, listener.Addr().(*net.TCPAddr).Port); err != nil {
			listener.Close()
			return nil, err
		}
	}
	s.mu.conns = map[*pgwire.Conn]struct{}{}
	s.mu.sessions = map[session.CancelKey]*client{}
	s.mu.starting = newStarting[*pgwire.Conn](max(leastStarting, s.opts.MaxConnections))
	s.opts.Deps.Sessions, s.opts.Deps.Terminate = s.eachSession, s.terminate
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.tcp.Addr() }

// Serve accepts clients until Close.
func (s *Server) Serve(ctx context.Context) error {
	if s.unix == nil {
		return s.accept(ctx, s.tcp)
	}
	var g errgroup.Group
	g.Go(func() error { return s.accept(ctx, s.tcp) })
	g.Go(func() error { return s.accept(ctx, s.unix) })
	return g.Wait()
}

func (s *Server) accept(ctx context.Context, listener net.Listener) error {
	for {
		c, err := listener.Accept()
		if err != nil {
			if s.closing() {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				s.log.Warn("accept", "err", err)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return err
		}
		s.serveConn(ctx, c)
	}
}

func (s *Server) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.closing
}

func (s *Server) serveConn(ctx context.Context, c net.Conn) {
	conn := pgwire.New(c, s.opts.Gate, s, s.opts.Messages, s.log)
	s.mu.Lock()
	if s.mu.closing {
		s.mu.Unlock()
		c.Close()
		return
	}
	silent, ok := s.mu.starting.add(conn, conn.Address(), time.Now())
	if !ok {
		s.mu.Unlock()
		conn.Refuse(tooManyClients())
		return
	}
	if silent != nil { // Its place is taken at once; its goroutine ends soon.
		silent.Terminate(tooManyClients())
	}
	s.mu.conns[conn] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		defer func() {
			s.mu.Lock()
			delete(s.mu.conns, conn)
			s.mu.starting.remove(conn)
			s.mu.Unlock()
		}()
		conn.Serve(ctx)
	}()
}

func tooManyClients() *pgerror.Error {
	return pgerror.New(pgerror.TooManyConnections, "sorry, too many clients already")
}

// takeSlot takes a client's slot, which Closed gives back. limit is that of the sessions of a database, -1 for none. The caller holds mu.
func (s *Server) takeSlot(role *catalog.Role, database uint32, name string, limit int) error {
	switch free := s.opts.MaxConnections - s.mu.slots; {
	case free <= 0:
		return tooManyClients()
	case role.Superuser:
	case role.ConnectionLimit >= 0 && s.sessionsOf(role.OID) >= role.ConnectionLimit:
		return pgerror.New(pgerror.TooManyConnections, `too many connections for role "%s"`, role.Name)
	case free <= s.opts.ReservedConnections:
		return pgerror.New(pgerror.TooManyConnections, "remaining connection slots are reserved for non-replication superuser connections")
	case limit >= 0 && s.sessionsIn(database) >= limit:
		return pgerror.New(pgerror.TooManyConnections, `too many connections for database "%s"`, name)
	}
	s.mu.slots++
	return nil
}

// sessionsOf counts the sessions of a role. The caller holds mu.
func (s *Server) sessionsOf(role uint32) (n int) {
	for _, c := range s.mu.sessions {
		if c.session.Role().OID == role {
			n++
		}
	}
	return n
}

// sessionsIn counts the sessions of a database. The caller holds mu.
func (s *Server) sessionsIn(database uint32) (n int) {
	for _, c := range s.mu.sessions {
		if oid, _ := c.session.Database(); oid == database {
			n++
		}
	}
	return n
}

// DatabaseName implements pgwire.Host.
func (s *Server) DatabaseName(ctx context.Context, name string) (string, error) {
	present, err := s.opts.Deps.Catalog.Present(ctx)
	if err != nil {
		return "", session.ToPGError(err)
	}
	if d := present.Databases().ForClient(name); d != nil {
		name = d.Name
	}
	return name, nil
}

// Open implements pgwire.Host.
func (s *Server) Open(ctx context.Context, conn *pgwire.Conn, startup map[string]string) (*session.Session, error) {
	sess, err := session.New(ctx, s.opts.Deps, s.lastPID.Add(1), conn.Client(), startup)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	database, name := sess.Database()
	err = s.takeSlot(sess.Role(), database, name, sess.DatabaseLimit())
	if !s.mu.starting.remove(conn) && err == nil { // Another client has its place.
		s.mu.slots--
		err = tooManyClients()
	}
	if err != nil {
		sess.Close()
		return nil, err
	}
	s.mu.sessions[sess.CancelKey()] = &client{sess, conn, make(chan struct{})}
	s.opts.Deps.Metrics.Sessions.Inc()
	return sess, nil
}

// Closed implements pgwire.Host.
func (s *Server) Closed(sess *session.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.sessions[sess.CancelKey()].done)
	delete(s.mu.sessions, sess.CancelKey())
	s.mu.slots--
	s.opts.Deps.Metrics.Sessions.Dec()
}

// eachSession calls f with every session.
func (s *Server) eachSession(f func(*session.Session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.sessions {
		f(c.session)
	}
}

// Cancel implements pgwire.Host.
func (s *Server) Cancel(key session.CancelKey) bool {
	s.mu.Lock()
	c := s.mu.sessions[key]
	s.mu.Unlock()
	if c != nil {
		c.session.Cancel()
	}
	return c != nil
}

// terminate cancels a session's statement and ends its connection, whose client is sent why; nil: 57P01. done is closed when
// it has ended.
func (s *Server) terminate(sess *session.Session, why *pgerror.Error) (done <-chan struct{}) {
	s.mu.Lock()
	c := s.mu.sessions[sess.CancelKey()]
	s.mu.Unlock()
	if c == nil { // It has ended since it was found.
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	c.conn.Terminate(why)
	c.session.Terminate()
	return c.done
}

// terminateGrace is how long clients whose statements are canceled may take to receive the error, before their
// connections are closed.
const terminateGrace = time.Second

// Close stops accepting, lets running statements finish while ctx lasts, then cancels them and sends their clients an
// error. It returns when every client's goroutine has ended.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.mu.closing = true
	for c := range s.mu.conns {
		c.Shutdown()
	}
	s.mu.Unlock()
	s.tcp.Close()
	if s.unix != nil {
		if err := s.unix.Close(); err != nil {
			s.log.Warn("remove the socket", "err", err)
		}
	}
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, c := range s.mu.sessions {
		c.session.Terminate()
	}
	for c := range s.mu.conns {
		c.Interrupt()
	}
	s.mu.Unlock()
	select {
	case <-done:
		return
	case <-time.After(terminateGrace):
	}
	s.mu.Lock()
	for c := range s.mu.conns {
		c.Abort()
	}
	s.mu.Unlock()
	<-done
}
