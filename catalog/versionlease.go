package catalog

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/tso"
)

// versionLease is this process's right to use a cached schema without reading the store (Shared only). A transaction
// whose snapshot lies within it sends no request for the schema and does not depend on the store that has it. Every
// change of the schema version suspends the leases of all processes while it commits.
type versionLease struct {
	catalog *Catalog
	id      string // identifies this process to the authority; written by run
	held    atomic.Pointer[leasedSchema]
	cancel  context.CancelFunc
	done    chan struct{}
}

// leasedSchema is the schema in force for reads from from to until. A nil one is none.
type leasedSchema struct {
	schemas
	epoch       uint64
	from, until tso.Timestamp
}

// renewals is the number of renewals within the duration of a lease, leasePause the pause after a failed attempt.
const (
	renewals   = 3
	leasePause = 50 * time.Millisecond
)

// start begins to acquire leases. Without a service every transaction reads the store.
func (l *versionLease) start(ctx context.Context, c *Catalog) {
	if c.opts.Leases == nil {
		return
	}
	l.catalog, l.id, l.done = c, rand.Text(), make(chan struct{})
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(ctx)
}

// stop gives the lease back.
func (l *versionLease) stop(ctx context.Context) {
	if l.cancel == nil {
		return
	}
	l.cancel()
	<-l.done
	l.held.Store(nil)
	if _, err := l.catalog.opts.Leases.Renew(ctx, l.id, 0, 0); err != nil {
		l.catalog.opts.Logger.Debug("the schema's lease is left to end", "err", err)
	}
}

// at returns the schemas that are in force as of ts, or nil if it must be read from the store. ts was issued before the
// call, so a lease that is revoked concurrently covered it.
func (l *versionLease) at(ts tso.Timestamp) *leasedSchema {
	if h := l.held.Load(); h != nil && h.from <= ts && ts <= h.until {
		return h
	}
	return nil
}

// of returns the schema of a database, nil if it has not been read.
func (h *leasedSchema) of(c *Catalog) *schemaSnapshot {
	if h == nil {
		return nil
	}
	return h.schemas.of(c)
}

// run renews the lease until stop.
func (l *versionLease) run(ctx context.Context) {
	defer close(l.done)
	for ctx.Err() == nil {
		if err := l.renew(ctx); err != nil && pause(ctx, leasePause) == nil {
			l.catalog.opts.Logger.Debug("the schema's lease was not renewed", "err", err)
		}
	}
}

// renew requests a renewal of the lease and keeps what is granted.
func (l *versionLease) renew(ctx context.Context) error {
	held := l.held.Load()
	var epoch uint64
	if held != nil {
		epoch = held.epoch
	}
	lease := l.catalog.opts.Lease
	g, err := l.catalog.opts.Leases.Renew(ctx, l.id, epoch, lease/renewals)
	switch {
	case err != nil && held == nil:
		// The request may still arrive and release the lease that the process has under that id.
		l.id = rand.Text()
		return err
	case err != nil:
		return err // The current lease expires.
	case g.Until == 0:
		l.held.Store(nil) // The next request reports it.
		return nil
	case held != nil && held.epoch == g.Epoch:
		next := *held
		next.until = g.Until
		l.held.Store(&next)
		return nil
	}
	l.held.Store(nil)
	reading, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	txn, err := l.catalog.db.Begin(reading)
	if err != nil {
		return err
	}
	defer txn.Close()
	all, err := l.catalog.lookAll(reading, txn, txn.ReadTS())
	if err != nil {
		return err
	}
	for _, s := range all.byDatabase {
		if err := l.catalog.stats.load(reading, txn, s); err != nil { // planning must not have to read the store either
			return err
		}
	}
	l.held.Store(&leasedSchema{schemas: all, epoch: g.Epoch, from: txn.StartTS(), until: g.Until})
	return nil
}

// versionHold suspends the leases of all processes. Each has its own owner id: a delayed request to release one must not
// end another. The zero value is none.
type versionHold struct {
	owner string
	until tso.Timestamp // a new version commits at or below; 0: at any time
}

// hold calls the leases of all processes back.
func (l *versionLease) hold(ctx context.Context) (h versionHold, err error) {
	if l.cancel == nil {
		return versionHold{}, nil
	}
	h.owner = rand.Text()
	h.until, err = l.catalog.opts.Leases.Hold(ctx, h.owner)
	return h, err
}

// release ends a hold. One that cannot be released ends by itself.
func (l *versionLease) release(ctx context.Context, h versionHold) {
	if h.owner == "" {
		return
	}
	if err := l.catalog.opts.Leases.Release(ctx, h.owner); err != nil && ctx.Err() == nil {
		l.catalog.opts.Logger.Warn("leases of the schema are held back for some seconds", "err", err)
	}
}
