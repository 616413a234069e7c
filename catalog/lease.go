package catalog

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// lease is the right of a process of a Shared catalog to commit writes: until Options.Lease after the
// timestamp of its last look, which read the schema, the markers of schema changes, and its own record
// among the members. The protocol and its argument are in doc.go.
//
//	process A   look P────────────── P+lease                    commits only up to P+lease,
//	                                                            later ones need a new look, which sees M
//	change      ·······M (marker) ───────────── M+lease, T ──── backfill as of T ──── C
type lease struct {
	seen    atomic.Pointer[look]
	looking chan struct{} // one token: its holder reads the store
	cancel  context.CancelFunc
	done    chan struct{}
	catalog *Catalog
	member  member
	// doubt is the largest commit_ts that a commit with unknown outcome may get.
	doubt atomic.Uint64
	// former are the looks before seen under which commits may be in flight. stopped: no further look will follow. Both
	// are guarded by the token.
	former  []*look
	stopped bool
}

// look is the result of one read of the store.
type look struct {
	schemas
	at      tso.Timestamp // timestamp of the read
	began   time.Time
	closing map[uint64]marker // by relation id
	// inFlight counts the commits that this look allowed and whose outcome is not known yet.
	inFlight atomic.Int64
}

// span turns a duration into a distance between timestamps.
func span(d time.Duration) tso.Timestamp { return tso.FromPhysical(d.Milliseconds()) }

func (l *lease) start(ctx context.Context, c *Catalog) error {
	l.catalog, l.looking, l.done = c, make(chan struct{}, 1), make(chan struct{})
	l.looking <- struct{}{}
	l.member = newMember(c)
	if _, err := l.look(ctx, time.Now()); err != nil {
		return err
	}
	var loopCtx context.Context
	loopCtx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(loopCtx)
	return nil
}

// stop ends the right to commit permanently. The process leaves the members unless a commit that it was allowed may
// still happen; then schema changes wait until it no longer can.
func (l *lease) stop(ctx context.Context) {
	if l.cancel == nil {
		return
	}
	l.cancel()
	<-l.done
	<-l.looking
	defer func() { l.looking <- struct{}{} }()
	l.stopped = true
	// No commit is allowed under this look: its timestamp is 0, and no other look will follow.
	l.replace(&look{schemas: l.seen.Load().schemas})
	left, err := false, error(nil)
	if l.former = slices.DeleteFunc(l.former, (*look).empty); len(l.former) == 0 {
		left, err = l.member.leave(ctx, tso.Timestamp(l.doubt.Load()))
	}
	switch log := l.catalog.opts.Logger; {
	case err != nil:
		log.Warn("process not taken from the schema's members", "err", err)
	case !left:
		log.Info("process stays among the schema's members: commits of its are undecided")
	}
}

// replace makes next the look that allows commits.
func (l *lease) replace(next *look) {
	if old := l.seen.Swap(next); old != nil {
		l.former = append(l.former, old)
	}
}

// run reads the store regularly, so that commits rarely have to.
func (l *lease) run(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.catalog.opts.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := l.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			l.catalog.opts.Logger.Warn("schema lease not renewed", "err", err)
		}
	}
}

// look returns a look that began after the given moment, and reads the store if there is none.
func (l *lease) look(ctx context.Context, after time.Time) (*look, error) {
	select {
	case <-l.looking:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.looking <- struct{}{} }()
	if seen := l.seen.Load(); seen != nil && seen.began.After(after) {
		return seen, nil
	}
	if l.stopped {
		return nil, kv.ErrClosed
	}
	next, registered, err := l.read(ctx)
	for err == nil && !registered {
		// A look allows nothing unless other processes wait for this one. The process may be struck out as soon as it
		// has registered, so only the look itself shows whether it is a member.
		if err = l.member.register(ctx); err == nil {
			next, registered, err = l.read(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	l.replace(next)
	l.acknowledge(ctx, next)
	return next, nil
}

// read reads the schema and the markers, and whether this process is a member, as of the same timestamp.
func (l *lease) read(ctx context.Context) (next *look, registered bool, err error) {
	next = &look{began: time.Now()}
	txn, err := l.catalog.db.Begin(ctx)
	if err != nil {
		return nil, false, err
	}
	defer txn.Close()
	next.at = txn.StartTS()
	values, err := txn.BatchGet(ctx, [][]byte{keyClosing, l.member.key, keyVersion})
	if err != nil {
		return nil, false, err
	}
	version, err := parseNumber(keyVersion, values[2])
	if err != nil {
		return nil, false, err
	}
	l.catalog.sawVersion(version, next.at)
	if next.schemas, err = l.catalog.allOfVersion(ctx, txn, version); err != nil {
		return nil, false, err
	}
	if next.closing, err = decodeClosing(values[0]); err != nil {
		return nil, false, err
	}
	maps.DeleteFunc(next.closing, func(_ uint64, m marker) bool { return m.Until < next.at })
	record, err := decodeMember(l.member.key, values[1])
	return next, record != nil && record.Out == 0, err
}

// acknowledge records that this process has seen the markers of seen, once no commit that an older look allowed can
// happen any more. If one still can, a later look acknowledges them.
func (l *lease) acknowledge(ctx context.Context, seen *look) {
	l.former = slices.DeleteFunc(l.former, (*look).empty)
	if len(seen.closing) == 0 {
		return
	}
	for tries := 0; !l.drained(seen); tries++ {
		if tries == 10 || pause(ctx, time.Millisecond) != nil {
			return
		}
	}
	if err := l.member.acknowledge(ctx, seen.at); err != nil && ctx.Err() == nil {
		l.catalog.opts.Logger.Warn("schema change not acknowledged", "err", err)
	}
}

// drained reports whether the outcome of every commit that a look before seen allowed is known.
func (l *lease) drained(seen *look) bool {
	if tso.Timestamp(l.doubt.Load()) >= seen.at {
		return false
	}
	l.former = slices.DeleteFunc(l.former, (*look).empty)
	return len(l.former) == 0
}

// empty reports whether no commit is in flight under a look that has been replaced.
func (s *look) empty() bool { return s.inFlight.Load() == 0 }

// enter checks a commit's tables and returns the latest commit_ts that it may have, and the look that allows it, with
// which leave is to be called when its outcome is known.
func (l *lease) enter(ctx context.Context, writes []tableWrite, own *Change) (*look, tso.Timestamp, error) {
	seen := l.join()
	fresh := time.Since(seen.began) < l.catalog.opts.Lease/2
	err := seen.allows(writes, own)
	if !fresh || err != nil {
		// The commit may have been planned under a schema newer than the last look.
		seen.inFlight.Add(-1)
		if _, err := l.look(ctx, time.Now()); err != nil {
			return nil, 0, err
		}
		seen = l.join()
		err = seen.allows(writes, own)
	}
	if err != nil {
		seen.inFlight.Add(-1)
		return nil, 0, err
	}
	until := seen.at + span(l.catalog.opts.Lease)
	if own != nil {
		for _, end := range []tso.Timestamp{own.markers.end(), own.held.until} {
			if end != 0 {
				until = min(until, end)
			}
		}
	}
	return seen, until, nil
}

// join counts a commit under the last look.
func (l *lease) join() *look {
	for {
		seen := l.seen.Load()
		seen.inFlight.Add(1)
		// If it was replaced before the addition, drained may have found it empty already.
		if l.seen.Load() == seen {
			return seen
		}
		seen.inFlight.Add(-1)
	}
}

// leave reverses enter. undetermined: the outcome of the commit is unknown, and it may still happen.
func (l *lease) leave(seen *look, undetermined bool) {
	if undetermined {
		until := uint64(seen.at + span(l.catalog.opts.Lease))
		for {
			old := l.doubt.Load()
			if old >= until || l.doubt.CompareAndSwap(old, until) {
				break
			}
		}
	}
	seen.inFlight.Add(-1)
}

// await returns when, as of the last look, no table is closed by another change.
func (l *lease) await(ctx context.Context, who waiter, writes []tableWrite, own *Change) error {
	txns, relation := l.seen.Load().closers(writes, own)
	if relation == "" {
		return nil
	}
	var changes atomic.Pointer[[]tso.Timestamp]
	changes.Store(&txns)
	w := l.catalog.watch(ctx, who, relation, func() []tso.Timestamp { return *changes.Load() })
	defer w.stop()
	for wait := memberPause; ; wait = min(2*wait, memberPauseMax) {
		seen, err := l.look(ctx, time.Now())
		if err != nil {
			return err
		}
		txns, relation := seen.closers(writes, own)
		if relation == "" {
			return nil
		}
		w.relation = relation
		changes.Store(&txns)
		if err := w.until(ctx, nil, wait); err != nil {
			return err
		}
	}
}

// closers lists the transactions of others that have one of the tables closed, and names one of the tables; "" if none is closed.
func (s *look) closers(writes []tableWrite, own *Change) (txns []tso.Timestamp, relation string) {
	for i := range writes {
		if t := writes[i].table; s.closed(t, own) {
			txns, relation = append(txns, known(s.closing[t.ID].Txn)...), t.Name
		}
	}
	return txns, relation
}

// closed reports whether another change has the table closed.
func (s *look) closed(t *TableDescriptor, own *Change) bool {
	m, closing := s.closing[t.ID]
	return closing && (own == nil || m.Owner != own.markers.owner)
}

func (s *look) allows(writes []tableWrite, own *Change) error {
	for i := range writes {
		t := writes[i].table
		touched, ok := own.permits(t)
		if !touched {
			ok = !s.closed(t, own) && s.permits(t)
		}
		if !ok {
			return &SchemaChangedError{Table: t.ID, Name: t.Name}
		}
	}
	return nil
}

// until is a CommitPermit that bounds the commit_ts.
type until tso.Timestamp

// MaxCommitTS implements percolator.CommitPermit.
func (u until) MaxCommitTS() (tso.Timestamp, error) { return tso.Timestamp(u), nil }

// Renew implements percolator.CommitPermit.
func (u until) Renew(context.Context) error { return percolator.ErrCommitTooLate }

var _ percolator.CommitPermit = until(0)
