// Package readlease permits processes to answer reads from a cached copy of rarely changing data: each process
// has a lease, and a change waits until there are no leases. The authority of a cluster is in the process of
// its oracle, so that copies stay usable while the store of the original is unavailable.
//
//	reader     Renew ─ grant (epoch e, until U) ─ read the copy at Q ─ answer reads as of R, Q ≤ R ≤ U
//	writer                   Hold ─ leases are revoked or expire ─ T ─ commit at C > T ─ Release
//
// All timestamps are the oracle's; clocks of processes decide only when to renew.
//
// Invariants:
//
//	I1 While a hold lasts no lease is granted, and Hold returns at a T above the end of every lease.
//	I2 Two grants have the same epoch only if no hold began between them. So a copy that was read after
//	   the first grant of an epoch is valid for reads from then up to the end of each later one: a change
//	   commits above the T of its hold, and below the end of the hold.
//	I3 Grants survive a restart of the authority: a new one grants nothing for as long as an
//	   earlier hold may last, and no Hold returns for as long as an earlier lease may last.
package readlease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/percodb/percodb/tso"
)

// Grant is a lease: a copy read after the first grant of the epoch is right up to Until. Until 0: there is
// no lease, because of a change under way.
type Grant struct {
	Epoch uint64
	Until tso.Timestamp
}

// Service is the authority as processes use it, local or remote. Safe for concurrent use.
type Service interface {
	// Renew grants the process id a lease. epoch is that of the lease it has; 0 means that it has none and uses none. It
	// returns at once if the grant differs from the lease that the process has, or if none is granted; otherwise after
	// wait.
	Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (Grant, error)
	// Hold revokes the leases for a change and returns when there are none, with the end of the hold: the change must
	// have committed by then. The same owner may call it again.
	Hold(ctx context.Context, owner string) (until tso.Timestamp, err error)
	// Release ends a hold: the change has committed, or certainly will not.
	Release(ctx context.Context, owner string) error
}

// Options of an Authority. Oracle is required.
type Options struct {
	Oracle tso.Oracle
	Lease  time.Duration // 1 s
	// MaxHold is the duration of a hold that is not released: 10 s.
	MaxHold time.Duration
}

// Authority grants leases. There is one in a cluster. Safe for concurrent use.
type Authority struct {
	opts Options

	mu struct {
		sync.Mutex
		epoch   uint64
		leases  map[string]tso.Timestamp // by process, the ends
		holds   map[string]tso.Timestamp // by owner, the ends
		changed chan struct{}            // closed at the next change of leases or holds
	}
}

var _ Service = (*Authority)(nil)

// The names under which a new authority observes the leases and holds of an earlier one.
const formerHolder, formerOwner = "\x00former holder", "\x00former owner"

// New returns an authority that knows only the limits of an earlier one.
func New(ctx context.Context, opts Options) (*Authority, error) {
	if opts.Lease <= 0 {
		opts.Lease = time.Second
	}
	if opts.MaxHold <= 0 {
		opts.MaxHold = 10 * time.Second
	}
	now, err := opts.Oracle.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a timestamp: %w", err)
	}
	a := &Authority{opts: opts}
	a.mu.epoch = uint64(now)
	a.mu.leases = map[string]tso.Timestamp{formerHolder: now + span(opts.Lease)}
	a.mu.holds = map[string]tso.Timestamp{formerOwner: now + span(opts.MaxHold)}
	a.mu.changed = make(chan struct{})
	return a, nil
}

// span turns a duration into a distance between timestamps.
func span(d time.Duration) tso.Timestamp { return tso.FromPhysical(d.Milliseconds()) }

// wakeLocked makes all waiters check again.
func (a *Authority) wakeLocked() {
	close(a.mu.changed)
	a.mu.changed = make(chan struct{})
}

// Renew implements Service.
func (a *Authority) Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (Grant, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waited := false; ; {
		now, err := a.opts.Oracle.Now(ctx)
		if err != nil {
			return Grant{}, err
		}
		a.mu.Lock()
		end(a.mu.holds, now)
		end(a.mu.leases, now)
		if _, leased := a.mu.leases[id]; leased && epoch == 0 {
			delete(a.mu.leases, id)
			a.wakeLocked()
		}
		held, current := len(a.mu.holds) > 0, epoch == a.mu.epoch
		switch {
		case held && (epoch != 0 || waited):
			a.mu.Unlock()
			return Grant{}, nil
		case !held && (!current || waited):
			g := Grant{Epoch: a.mu.epoch, Until: now + span(a.opts.Lease)}
			a.mu.leases[id] = g.Until
			a.mu.Unlock()
			return g, nil
		}
		changed := a.mu.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			waited = true
		case <-ctx.Done():
			return Grant{}, ctx.Err()
		}
	}
}

// end removes the entries that ended before now.
func end(ends map[string]tso.Timestamp, now tso.Timestamp) {
	for name, until := range ends {
		if until < now {
			delete(ends, name)
		}
	}
}

// Hold implements Service.
func (a *Authority) Hold(ctx context.Context, owner string) (tso.Timestamp, error) {
	now, err := a.opts.Oracle.Now(ctx)
	if err != nil {
		return 0, err
	}
	until := now + span(a.opts.MaxHold)
	a.mu.Lock()
	a.mu.holds[owner] = until
	a.mu.epoch = max(a.mu.epoch+1, uint64(now))
	a.wakeLocked()
	a.mu.Unlock()
	for {
		if now, err = a.opts.Oracle.Now(ctx); err != nil {
			return 0, err
		}
		a.mu.Lock()
		end(a.mu.leases, now)
		var last tso.Timestamp
		for _, until := range a.mu.leases {
			last = max(last, until)
		}
		changed := a.mu.changed
		a.mu.Unlock()
		if last == 0 {
			return until, nil
		}
		timer := time.NewTimer(time.Duration(last.Physical()-now.Physical()+1) * time.Millisecond)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
		timer.Stop()
	}
}

// Release implements Service.
func (a *Authority) Release(_ context.Context, owner string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.mu.holds[owner]; ok {
		delete(a.mu.holds, owner)
		a.wakeLocked()
	}
	return nil
}
