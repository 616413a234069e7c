package percolator

import (
	"context"
	"errors"
	"math"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Commit makes the transaction's writes visible at the timestamp it returns, or not at all. It
// returns 0 when there was nothing to write. The transaction is over in any case.
//
// For certain not committed: *mvcc.WriteConflictError (another transaction was first, or this one was
// rolled back by others; running it again may succeed), *mvcc.KeyExistsError, ErrCommitTooLate, what
// the CommitGuard returned, *mvcc.TooOldError, and after Options.RetryBudget *kv.UnavailableError,
// *tso.UnavailableError and *mvcc.KeyLockedError, possibly wrapped; context errors. Not known:
// *UndeterminedError.
func (t *Txn) Commit(ctx context.Context) (tso.Timestamp, error) {
	if t.done {
		return 0, ErrTxnDone
	}
	defer t.end()
	if t.buf.n == 0 {
		t.db.metrics.commits[commitReadOnly].Inc()
		return 0, nil
	}
	c := &committer{db: t.db, startTS: t.startTS, guard: t.guard, sizeBytes: t.buf.sizeBytes}
	ts, err := c.run(ctx, &t.buf)
	c.count(err)
	return ts, err
}

// committer carries one transaction through its commit. One goroutine's, but for prewriteAll and
// the heartbeat, which read what does not change.
//
//	write set on one shard          run ─▶ onePhase ─▶ done
//	on several, or very large       run ─▶ prewriteAll ─▶ commitPrimary ─▶ secondaries, behind
type committer struct {
	db      *DB
	startTS tso.Timestamp
	guard   CommitGuard

	mutations []mvcc.Mutation // ascending
	sizeBytes int64
	primary   []byte
	locks     int // mutations that leave a lock; the others are checks
	parts     []portion
	ttlMillis uint64

	leave       func() // of the guard, once entered
	maxCommitTS tso.Timestamp
	kind        commitKind

	// Space for the common case, so that a small commit allocates little.
	onePC         kv.PrewriteRequest
	partSpace     [1]portion
	mutationSpace [4]mvcc.Mutation
}

func (c *committer) run(ctx context.Context, buf *writeBuffer) (tso.Timestamp, error) {
	var err error
	if c.mutations, err = buf.mutations(c.mutationSpace[:0]); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	c.db.metrics.prewriteBytes.Add(float64(c.sizeBytes))
	bo := backoff{db: c.db}
	if err := c.route(ctx, &bo); err != nil {
		return 0, err
	}
	c.choosePrimary()
	defer c.leaveGuard()
	if len(c.parts) == 1 && c.sizeBytes <= c.db.opts.MaxOnePhaseBytes {
		c.kind = commitOnePhase
		next, ts, err := c.onePhase(ctx)
		if next == onePhaseDone {
			return ts, err
		}
		c.kind = commitTwoPhase
		return c.twoPhase(ctx, next == onePhasePrewritten)
	}
	c.kind = commitTwoPhase
	return c.twoPhase(ctx, false)
}

// count books the outcome.
func (c *committer) count(err error) {
	if err == nil {
		c.db.metrics.commits[c.kind].Inc()
		return
	}
	var undetermined *UndeterminedError
	if errors.As(err, &undetermined) {
		c.db.metrics.undetermined.Inc()
		return
	}
	c.db.metrics.aborts.Inc()
}

// route splits the write set by shard.
func (c *committer) route(ctx context.Context, bo *backoff) error {
	for {
		parts, err := c.db.portions(ctx, len(c.mutations), c.keyAt, c.partSpace[:])
		if err == nil {
			c.parts = parts
			return nil
		}
		if err := c.db.retryRouting(ctx, bo, err); err != nil {
			return err
		}
	}
}

func (c *committer) keyAt(i int) []byte { return c.mutations[i].Key }

// choosePrimary picks the first key that is written on the shard with most mutations. It is called
// once (I5): the primary stays though the routes may change. A check cannot be it, for it leaves no
// record; a lock is one only if nothing is written.
func (c *committer) choosePrimary() {
	largest := &c.parts[0]
	for i := range c.parts {
		if len(c.parts[i].pick) > len(largest.pick) {
			largest = &c.parts[i]
		}
	}
	c.primary = c.mutations[0].Key
	best := 0
	consider := func(i, bonus int) {
		rank := 0
		switch c.mutations[i].Op {
		case mvcc.OpPut, mvcc.OpDelete:
			rank = 4 + bonus
		case mvcc.OpLock:
			rank = 1 + bonus
		}
		if rank > best {
			best, c.primary = rank, c.mutations[i].Key
		}
	}
	for _, i := range largest.pick {
		consider(i, 1)
	}
	for i := range c.mutations {
		consider(i, 0)
		if c.mutations[i].Op != mvcc.OpCheckNotExists {
			c.locks++
		}
	}
}

// ttlFor returns how long a transaction's locks live without a heartbeat, in milliseconds: the
// default, and for large ones 6 s times the square root of their size in MiB, up to 20 s.
func (c *committer) ttlFor() uint64 {
	ttl := float64(c.db.opts.LockTTL.Milliseconds())
	if mib := float64(c.sizeBytes) / (1 << 20); mib > 0.25 {
		ttl = max(ttl, min(20_000, 6000*math.Sqrt(mib)))
	}
	return uint64(ttl)
}

// enterGuard asks the guard once. From here to leaveGuard the outcome is being decided.
func (c *committer) enterGuard(ctx context.Context) error {
	if c.guard == nil || c.leave != nil {
		return nil
	}
	leave, maxCommitTS, err := c.guard.Enter(ctx)
	if err != nil {
		return err
	}
	c.leave, c.maxCommitTS = leave, maxCommitTS
	return nil
}

func (c *committer) leaveGuard() {
	if c.leave != nil {
		c.leave()
	}
}

// detached is the context for requests whose outcome must be learnt: a caller who gives up does not
// take the answer away.
func detached(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// lostRace turns the ways in which others end a transaction into the one error for it.
func (c *committer) lostRace(err error) error {
	var rolledBack *mvcc.RolledBackError
	var missing *mvcc.LockNotFoundError
	if errors.As(err, &rolledBack) || errors.As(err, &missing) {
		return &mvcc.WriteConflictError{Key: c.primary, StartTS: c.startTS}
	}
	return err
}

type onePhaseNext int

const (
	onePhaseDone       onePhaseNext = iota // committed or failed
	onePhaseSplit                          // nothing done; the write set is no longer one shard's
	onePhasePrewritten                     // the shard has written locks instead
)

// onePhase sends the whole write set as one request, until it is answered.
func (c *committer) onePhase(ctx context.Context) (onePhaseNext, tso.Timestamp, error) {
	if err := c.enterGuard(ctx); err != nil {
		return onePhaseDone, 0, err
	}
	bo := backoff{db: c.db}
	lost := false // an attempt was not answered and may have been, or be yet, carried out
	c.onePC = kv.PrewriteRequest{
		Mutations:   c.mutations,
		Primary:     c.primary,
		StartTS:     c.startTS,
		TTLMillis:   c.ttlFor(),
		TxnSize:     uint32(len(c.mutations)),
		TryOnePC:    true,
		MaxCommitTS: c.maxCommitTS,
	}
	for {
		part := &c.parts[0]
		c.onePC.Ranges = part.refs
		resp, err := part.shard.Prewrite(detached(ctx), &c.onePC)
		if err == nil {
			if resp.OnePCCommitTS != 0 || c.locks == 0 {
				return onePhaseDone, resp.OnePCCommitTS, nil
			}
			return onePhasePrewritten, 0, nil
		}
		c.db.forgetRoute(err, part.refs...)
		next, retry, err := c.afterOnePhase(ctx, &bo, &lost, err)
		switch {
		case retry:
		case err == nil:
			return next, 0, nil
		default:
			ts, err := c.settleOnePhase(ctx, lost, err)
			return onePhaseDone, ts, err
		}
	}
}

// afterOnePhase deals with an attempt that failed: retry says to send it again; otherwise a nil error
// means to go on as next says, and an error that this is the end.
func (c *committer) afterOnePhase(ctx context.Context, bo *backoff, lost *bool, err error) (next onePhaseNext, retry bool, _ error) {
	var stale *kv.StaleRangeError
	var locked *mvcc.KeyLockedError
	class, silent := unreachable(err)
	switch {
	case errors.As(err, &stale):
		if err := c.db.retryRouting(ctx, bo, err); err != nil {
			return 0, false, err
		}
		return c.reroute(ctx, bo, *lost)
	case errors.As(err, &locked):
		if err := c.db.clearLock(ctx, bo, c.startTS, locked, c.mutations[len(c.mutations)-1].Key); err != nil {
			return 0, false, err
		}
		return 0, true, nil
	case silent:
		*lost = *lost || class == backoffRPC
		if err := bo.wait(ctx, class, err); err != nil {
			return 0, false, err
		}
		return c.reroute(ctx, bo, *lost)
	}
	*lost = *lost || !refusesPrewrite(err)
	return 0, false, err
}

// reroute looks for the write set's shard again, with the results of afterOnePhase.
func (c *committer) reroute(ctx context.Context, bo *backoff, lost bool) (next onePhaseNext, retry bool, _ error) {
	if err := c.route(ctx, bo); err != nil {
		return 0, false, err
	}
	if len(c.parts) == 1 {
		return 0, true, nil
	}
	if lost { // the lost attempt and two phases must not both happen
		return 0, false, &mvcc.RolledBackError{StartTS: c.startTS}
	}
	return onePhaseSplit, false, nil
}

// refusesPrewrite says that err is a shard's answer that nothing of the request was done, or that it
// had been done before.
func refusesPrewrite(err error) bool {
	var (
		conflict   *mvcc.WriteConflictError
		exists     *mvcc.KeyExistsError
		rolledBack *mvcc.RolledBackError
		committed  *mvcc.AlreadyCommittedError
		tooOld     *mvcc.TooOldError
		future     *mvcc.TSInFutureError
		invalid    *mvcc.InvalidRequestError
	)
	return errors.As(err, &conflict) || errors.As(err, &exists) || errors.As(err, &rolledBack) ||
		errors.As(err, &committed) || errors.As(err, &tooOld) || errors.As(err, &future) || errors.As(err, &invalid) ||
		errors.Is(err, tso.ErrClosed)
}

// settleOnePhase ends a one-phase commit that failed with err. If an attempt was lost, the primary
// is asked, and made to refuse the attempt should it arrive late.
func (c *committer) settleOnePhase(ctx context.Context, lost bool, err error) (tso.Timestamp, error) {
	var committed *mvcc.AlreadyCommittedError
	switch {
	case errors.As(err, &committed):
		return committed.CommitTS, nil
	case c.locks == 0: // whatever arrives writes nothing
		return 0, c.lostRace(err)
	case !lost && refusesPrewrite(err):
		// A duplicate of the request would be refused as well, for a conflict stays one.
		return 0, c.lostRace(err)
	case !lost:
		c.abort(ctx)
		return 0, err
	}
	probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.opts.ProbeTimeout)
	defer cancel()
	bo := backoff{db: c.db}
	for {
		ts, askErr := c.decidePrimary(probe)
		if askErr == nil {
			if ts != 0 {
				return ts, nil
			}
			return 0, c.lostRace(err)
		}
		if c.db.retryRouting(probe, &bo, askErr) != nil {
			return 0, &UndeterminedError{StartTS: c.startTS, Err: err}
		}
	}
}

// decidePrimary rolls the primary back unless the transaction has committed, and returns the
// commit_ts, or 0.
func (c *committer) decidePrimary(ctx context.Context) (tso.Timestamp, error) {
	desc, shard, err := c.db.router.Locate(ctx, c.primary)
	if err != nil {
		return 0, err
	}
	err = shard.Rollback(ctx, &kv.RollbackRequest{Ranges: []kv.RangeRef{desc.Ref()}, Keys: [][]byte{c.primary}, StartTS: c.startTS})
	c.db.forgetRoute(err, desc.Ref())
	var committed *mvcc.AlreadyCommittedError
	if errors.As(err, &committed) {
		return committed.CommitTS, nil
	}
	return 0, err
}
