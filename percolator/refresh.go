package percolator

import (
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// moveSnapshot advances the snapshot of a pessimistic transaction to a new timestamp, because a key it has locked had
// changed since the snapshot. It returns ErrRestartStatement, or the reason why that is not possible.
//
//	snapshot   r ──────────────────────▶ T     if everything it has read is the same at T as at r
//	a key            ▲ changed, then locked
//
// The current statement starts over, so its reads so far do not count.
func (t *Txn) moveSnapshot(ctx context.Context) error {
	if t.reads != nil {
		t.reads.forgetStatement()
	}
	if err := t.AdvanceSnapshot(ctx); err != nil {
		return err
	}
	t.db.metrics.restarts.Inc()
	return ErrRestartStatement
}

// AdvanceSnapshot advances the snapshot of a pessimistic transaction to a new timestamp, if everything it has read is the same at both. It
// fails with *mvcc.WriteConflictError if something has changed: the snapshot then stays where it is.
func (t *Txn) AdvanceSnapshot(ctx context.Context) error {
	if t.unrecorded {
		return t.locks.conflict(t.startTS, t.snap.readTS)
	}
	ts, err := t.db.now(ctx)
	if err != nil {
		return err
	}
	if t.reads != nil && len(t.reads.spans) > 0 {
		r := refresh{db: t.db, startTS: t.startTS, from: t.snap.readTS, to: ts}
		if err := r.run(ctx, t.reads.list()); err != nil {
			return err
		}
	}
	t.moveTo(ts)
	return nil
}

// refresh verifies that what was read at from is the same at to, and that it stays so.
type refresh struct {
	db       *DB
	startTS  tso.Timestamp
	from, to tso.Timestamp
	// committing: the transaction itself has locks that block others, so it must give way to older ones; otherwise two
	// could push each other forever.
	committing bool
}

type refreshResult int

const (
	refreshOK refreshResult = iota
	refreshRefused
	refreshResults
)

// run fails with *mvcc.WriteConflictError if something has changed.
func (r *refresh) run(ctx context.Context, spans []kv.Span) error {
	err := r.send(ctx, spans)
	if changed, ok := errkind.As[*mvcc.RefreshConflictError](err); ok {
		err = &mvcc.WriteConflictError{Key: changed.Key, StartTS: r.startTS,
			ConflictingStartTS: changed.StartTS, ConflictingCommitTS: changed.CommitTS}
	}
	switch {
	case err == nil:
		r.db.metrics.refreshes[refreshOK].Inc()
	case errkind.Of(err) == errkind.WriteConflict:
		r.db.metrics.refreshes[refreshRefused].Inc()
	}
	return err
}

// send sends the request to all shards, until each has decided.
func (r *refresh) send(ctx context.Context, spans []kv.Span) error {
	all := shardRequest[kv.Span]{bo: backoff{db: r.db}, list: &spanList, fanOut: maxFanOut, send: r.sendPart}
	return all.run(ctx, spans)
}

// sendPart sends the request to one shard until it has decided.
func (r *refresh) sendPart(ctx context.Context, bo *backoff, p *part[kv.Span]) error {
	req := kv.RefreshRequest{Ranges: p.refs, Spans: p.items, StartTS: r.startTS, FromTS: r.from, ToTS: r.to}
	for {
		err := p.shard.Refresh(ctx, &req)
		locked, ok := errkind.As[*mvcc.KeyLockedError](err)
		if !ok {
			return err
		}
		pass, err := r.passLock(ctx, bo, locked)
		if err != nil {
			return stopError{err}
		}
		if pass {
			req.Bypass = append(req.Bypass, locked.Lock.StartTS)
		}
	}
}

// passLock determines whether the transaction of a lock in a span commits between r.from and r.to, which is a conflict.
// pass reports that it does not; otherwise repeat the request.
func (r *refresh) passLock(ctx context.Context, bo *backoff, e *mvcc.KeyLockedError) (pass bool, _ error) {
	push := r.to
	if r.committing && e.Lock.StartTS < r.startTS {
		push = 0
	}
	f, err := r.db.outcomeOf(ctx, bo, e, push)
	if err != nil {
		return false, err
	}
	switch {
	case f.kind == outcomeCommitted && r.from < f.commitTS && f.commitTS <= r.to:
		return false, &mvcc.RefreshConflictError{Key: e.Key, StartTS: e.Lock.StartTS, CommitTS: f.commitTS}
	case f.kind == outcomeAlive && push == 0 && !e.Lock.Async:
		return false, &mvcc.RefreshConflictError{Key: e.Key, StartTS: e.Lock.StartTS}
	case f.kind == outcomeAlive:
		return false, bo.wait(ctx, backoffLock, e)
	case f.kind != outcomePassed:
		r.db.resolveLater([][]byte{e.Key}, e.Lock.StartTS, f.commitTS)
	}
	return true, nil
}
