package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/check"
)

// Checking is a session of the server itself, in which the stored data of one database is verified: expressions of indexes and constraints
// may call functions, whose statements read the session's snapshot. One goroutine's.
type Checking struct {
	s    *Session
	stop func() bool
}

// NewChecking makes such a session in the database of deps.Catalog. It ends with Close; ctx ends its reads.
func NewChecking(ctx context.Context, deps Deps) (*Checking, error) {
	if deps.Sessions == nil {
		deps.Sessions = func(func(*Session)) {}
	}
	present, err := deps.Catalog.Present(ctx)
	if err != nil {
		return nil, err
	}
	startup := map[string]string{
		"application_name": "check", "default_transaction_isolation": "repeatable read", "default_transaction_read_only": "on", "statement_timeout": "0",
	}
	s, err := open(ctx, deps, 0, Client{}, startup, present, catalog.NewRoles().ByOID(catalog.BootstrapSuperuser))
	if err != nil {
		return nil, err
	}
	c := &Checking{s: s}
	s.env.Ctx = s.interrupts.begin(0)
	s.meter.Begin(s.env.Ctx)
	c.stop = context.AfterFunc(ctx, s.Cancel)
	startStatement(&s.env)
	s.tx.phase.on(begin)
	if err := s.tx.use(s.env.Ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the session.
func (c *Checking) Close() {
	c.stop()
	c.s.tx.abort()
	c.s.endMessage()
	c.s.Close()
}

// Source is the database as of the session's snapshot.
func (c *Checking) Source() check.Source {
	return check.Source{Resolver: c.s.tx.resolver, Txn: c.s.tx.txn, Env: &c.s.env}
}

// Run verifies the database (check.Run).
func (c *Checking) Run(to check.Report) (sum check.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = ReportPanic(c.s.log, p)
		}
	}()
	return check.Run(c.s.env.Ctx, c.Source(), to)
}
