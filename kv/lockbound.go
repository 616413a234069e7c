package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Garbage collection continues while a shard is unavailable, and has to know which transactions may have left locks
// there. A shard therefore accepts new locks only of transactions that began at or below its lock bound, which the
// directory raises with each answer to an announcement, far ahead of the oracle's time.
//
//	B1 The directory stores a bound, durably, before it answers, and keeps the highest that a shard of the
//	   cluster has. So every lock on a shard is of a transaction that began at or below the stored bound.
//	B2 An answer contains the safe point that was announced last, and the shard raises its fence to it before it
//	   raises its bound. The controller announces a safe point before it reads the bounds: a bound that it does
//	   not see comes with that safe point or a later one, and permits no lock of a transaction below that.

// lockGrant is the part of an answer to an announcement that concerns locks.
type lockGrant struct{ bound, safePoint tso.Timestamp }

// lockBoundAhead is how far above the oracle's window a new bound lies, in milliseconds. A new one is granted when the
// previous one is less than half as far ahead, so the directory writes one record in half that time.
const lockBoundAhead = 60_000

// nextLockBound returns the bound to store for a shard: the one it has, or a new one. windowEnd is above every
// timestamp that was issued.
func nextLockBound(stored, claimed, windowEnd tso.Timestamp) tso.Timestamp {
	bound := max(stored, claimed)
	if bound.Physical() < windowEnd.Physical()+lockBoundAhead/2 {
		bound = tso.FromPhysical(windowEnd.Physical() + lockBoundAhead)
	}
	return bound
}

// grantLocked stores and returns the lock bound of a shard.
func (d *LocalDirectory) grantLocked(a *Announcement) (lockGrant, error) {
	gc, err := d.opts.Engine.LoadGC()
	if err != nil {
		return lockGrant{}, err
	}
	if d.opts.Oracle == nil {
		return lockGrant{bound: tso.MaxTimestamp, safePoint: gc.SafePoint}, nil
	}
	if !a.Bounded { // of a version without bounds: its locks are unknown
		return lockGrant{safePoint: gc.SafePoint}, nil
	}
	windowEnd := d.opts.Oracle.WindowEnd()
	if a.LockBound.Physical() > windowEnd.Physical()+maxAhead.Milliseconds() {
		return lockGrant{}, fmt.Errorf("kv: store %s has the lock bound %d, more than a day ahead of the oracle", a.ID, a.LockBound)
	}
	bound := nextLockBound(d.mu.lockBounds[a.ID], a.LockBound, windowEnd)
	if bound != d.mu.lockBounds[a.ID] {
		b := d.opts.Engine.NewBatch(0)
		defer b.Close()
		b.Put(metaKey(metaDirLockBound+a.ID), binary.BigEndian.AppendUint64(nil, uint64(bound)))
		if err := d.opts.Engine.applySync(b); err != nil {
			return lockGrant{}, err
		}
		d.mu.lockBounds[a.ID] = bound
	}
	return lockGrant{bound: bound, safePoint: gc.SafePoint}, nil
}

func (g lockGrant) check() error {
	if g.bound == 0 {
		return errors.New("kv: the tso process gives no lock bounds: it is of an older version, start it anew with this one")
	}
	return nil
}

// takeGrant raises the fence, and then the lock bound.
func (s *Store) takeGrant(ctx context.Context, g lockGrant) error {
	if err := g.check(); err != nil {
		return err
	}
	if _, err := s.mvcc.SetSafePoint(ctx, g.safePoint); err != nil {
		return err
	}
	s.granted = g
	s.mvcc.SetLockBound(g.bound)
	return nil
}

// lockError is mapError for requests that lock: if the lock bound is too low, it requests a new one from the directory.
func (s *Store) lockError(err error) error {
	var bound *mvcc.LockBoundError
	if !errors.As(err, &bound) {
		return mapError(err)
	}
	select {
	case s.renew <- struct{}{}:
	default:
	}
	return &UnavailableError{Shard: s.shardID, Err: err, NotSent: true}
}

// Member is the state of a shard that garbage collection needs.
type Member struct {
	ShardInfo
	// LockBound: no transaction above it has a lock on the shard. 0: not known.
	LockBound tso.Timestamp
	// Ranges are the shard's, as the directory has them.
	Ranges []RangeDescriptor
}

// Members lists the shards that own, or may own, ranges. It fails while the directory is in doubt.
func (d *LocalDirectory) Members(context.Context) ([]Member, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.standing != standingSound && d.mu.standing != standingEmpty {
		return nil, errors.New("kv: not all shards of the cluster are known yet")
	}
	ids := d.knownLocked()
	members := make([]Member, 0, len(ids))
	for id := range ids {
		info, registered := d.mu.shards[id]
		if !registered {
			return nil, fmt.Errorf("kv: store %s has not registered yet", id)
		}
		m := Member{ShardInfo: info, LockBound: d.mu.lockBounds[id]}
		for i := range d.mu.ranges {
			if d.mu.ranges[i].Shard == id {
				m.Ranges = append(m.Ranges, d.mu.ranges[i])
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members, nil
}
