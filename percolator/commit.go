package percolator

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Commit makes the transaction's writes visible at the timestamp it returns, or not at all. It returns 0 if there was
// nothing to write. The transaction has ended in any case.
//
// A transaction that was rolled back is not committed again here under another start_ts, although its write set is
// available. The start_ts that is rolled back can never commit, so a second attempt needs another one, which lies above
// the snapshot. The checks of a prewrite and the validation of reads look for changes above the start_ts: they would
// miss those committed between the snapshot and the second start_ts on keys that were locked and not written, or read.
// The pessimistic locks are lost, too, or other transactions wait for them. Therefore the session runs a single
// statement again, and a block's client receives the error.
//
// Certainly not committed: *mvcc.WriteConflictError (another transaction was first, or this one was rolled back by
// others; running it again may succeed), *mvcc.KeyExistsError, ErrCommitTooLate, errors of the CommitPermit,
// *mvcc.TooOldError, and after Options.RetryBudget *kv.UnavailableError, *tso.UnavailableError and *mvcc.KeyLockedError,
// possibly wrapped; context errors. Unknown: *UndeterminedError.
func (t *Txn) Commit(ctx context.Context) (tso.Timestamp, error) {
	if t.done {
		return 0, ErrTxnDone
	}
	defer t.end()
	if t.buf.len() == 0 {
		t.releaseAll(ctx, nil)
		t.db.metrics.commits[commitReadOnly].Inc()
		return 0, nil
	}
	c := &committer{
		db: t.db, startTS: t.startTS, readTS: t.snap.readTS, permit: t.permit, sizeBytes: t.buf.size(),
		locked: t.locks,
	}
	c.lease = &c.ownLease
	var ts tso.Timestamp
	err := c.readPermit()
	switch {
	case err != nil:
	case t.buf.spilled != nil || t.locks != nil && t.locks.packed.Len() > 0:
		ts, err = c.commitLarge(ctx, t)
	default:
		if ts, err = c.prepare(t); err == nil {
			ts, err = c.commitInMemory(ctx)
		}
	}
	c.lease.stop()
	c.count(err)
	if t.locks != nil {
		settled := c.mutations
		if c.large != nil {
			settled = []mvcc.Mutation{} // Those among its keys are marked.
		}
		if err != nil { // whatever is not prewritten is still locked as it was
			settled = nil
		}
		t.releaseAll(ctx, settled)
	}
	return ts, err
}

// committer commits one transaction. Not safe for concurrent use, except for prewriteAll and the lease, which read
// fields that do not change.
//
//	write set on one shard               run ─▶ onePhase ─▶ done
//	small, on several shards             run ─▶ async ─▶ done, all keys are committed in the background
//	large, or serializable, or fallback  run ─▶ prewriteAll ─▶ commitPrimary ─▶ secondaries, in the background
//	larger than the share of memory,
//	or with many locks                   commitLarge, from a file
type committer struct {
	db      *DB
	startTS tso.Timestamp
	readTS  tso.Timestamp // commits above it conflict, where a key was not locked before
	permit  CommitPermit
	locked  *lockSet        // of a pessimistic transaction, else nil
	reads   []kv.Span       // of a serializable one: must not have changed until the commit
	shared  []mvcc.Mutation // checks of the keys held shared, ascending; they are among the mutations

	mutations []mvcc.Mutation  // ascending
	notify    []mvcc.NotifySet // that mutations refer to
	large     *largeSet        // in the place of mutations
	sizeBytes int64
	primary   []byte
	locks     int // mutations that leave a lock; the others are checks
	parts     []part[mvcc.Mutation]
	lease     *lease

	maxCommitTS tso.Timestamp // of the permit
	kind        commitKind

	// The additions of an async commit to its prewrites; nil: no async commit is tried.
	asyncing *asyncCommit
	// checkedAt is the commit_ts for which the shared locks are being checked, or 0.
	checkedAt tso.Timestamp

	// Space for the common case, so that a small commit allocates little.
	ownLease      lease
	onePC         kv.PrewriteRequest
	partSpace     partSpace[mvcc.Mutation]
	mutationSpace [4]mvcc.Mutation
}

// prepare builds the write set from the keys that the transaction has written, locked and read.
func (c *committer) prepare(t *Txn) (_ tso.Timestamp, err error) {
	if c.mutations, err = t.buf.mutations(c.mutationSpace[:0]); err != nil {
		return 0, err
	}
	if err := c.takeSets(t); err != nil {
		return 0, err
	}
	if t.opts.Isolation == Serializable {
		c.reads = t.reads.list()
	}
	if t.locks != nil || len(t.buf.moves) > 0 {
		if err := c.setLockedAt(t); err != nil {
			return 0, err
		}
	}
	if t.locks != nil {
		if err := c.addLocked(t.locks); err != nil {
			return 0, err
		}
	}
	return 0, c.addShares(t)
}

// setLockedAt sets each mutation's LockedAt, since when its key must not have changed: since it was locked, or since it
// was written, if that was at a snapshot before the current one.
func (c *committer) setLockedAt(t *Txn) error {
	// A key counts from its first entry, an entry from the first move after it.
	entry := 0
	for _, move := range t.buf.moves {
		for ; entry < move.writes; entry++ {
			at, _ := slices.BinarySearchFunc(c.mutations, t.buf.at(entry).key, compareMutation)
			if m := &c.mutations[at]; m.LockedAt == 0 {
				m.LockedAt = move.from
			}
		}
	}
	for i := range c.mutations {
		m := &c.mutations[i]
		at := -1
		if t.locks != nil {
			at = t.locks.find(m.Key)
		}
		if at < 0 {
			continue
		}
		h := &t.locks.held[at]
		if h.settle(m); h.later(c.readTS) {
			return c.lockedLater(h)
		}
	}
	return nil
}

// addLocked adds the keys that are locked and not written: locks are kept in memory and may be lost, and what the
// transaction has decided by these keys must still be valid when it commits.
func (c *committer) addLocked(l *lockSet) error {
	written := len(c.mutations)
	for i := range l.held {
		h := &l.held[i]
		if h.settled {
			continue
		}
		if h.later(c.readTS) {
			return c.lockedLater(h)
		}
		m := h.unwritten()
		if h.shared {
			c.shared = append(c.shared, m)
		}
		c.mutations = append(c.mutations, m)
	}
	if len(c.mutations) > written {
		slices.SortFunc(c.mutations, byKey)
		slices.SortFunc(c.shared, byKey)
	}
	return nil
}

func byKey(a, b mvcc.Mutation) int { return bytes.Compare(a.Key, b.Key) }

// lockedLater is the conflict of a transaction that has locked a key as of a timestamp to which its snapshot has not
// advanced.
func (c *committer) lockedLater(h *heldLock) error {
	return &mvcc.WriteConflictError{Key: bytes.Clone(h.key), StartTS: c.startTS, ConflictingCommitTS: h.at}
}

// commitInMemory commits a write set that memory holds: in one phase, as an async commit, or in two phases.
func (c *committer) commitInMemory(ctx context.Context) (tso.Timestamp, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.doomed() {
		return 0, rolledBack(c.locked.primary, c.startTS)
	}
	c.db.metrics.prewriteBytes.Add(float64(c.sizeBytes))
	bo := backoff{db: c.db}
	if err := c.route(ctx, &bo); err != nil {
		return 0, err
	}
	c.choosePrimary()
	if len(c.parts) == 1 && c.sizeBytes <= c.db.opts.MaxOnePhaseBytes && c.parts[0].shard.Capabilities().OnePhase {
		here, err := c.readsAreHere(ctx)
		if err != nil {
			return 0, err
		}
		if here {
			c.kind = commitOnePhase
			next, ts, err := c.onePhase(ctx)
			if next == onePhaseDone {
				return ts, err
			}
			c.kind = commitTwoPhase
			return c.twoPhase(ctx, next == onePhasePrewritten)
		}
	}
	if c.asyncAllowed() {
		c.kind = commitAsync
		return c.async(ctx)
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
	if errkind.Of(err) == errkind.Undetermined {
		c.db.metrics.undetermined.Inc()
		return
	}
	c.db.metrics.aborts.Inc()
}

// route splits the write set by shard.
func (c *committer) route(ctx context.Context, bo *backoff) (err error) {
	c.parts, err = mutationList.split(ctx, bo, c.mutations, &c.partSpace)
	return err
}

// choosePrimary picks the first written key on the shard with most mutations. It is called once (I5): the primary stays
// the same even if routes change. A check cannot be the primary, because it leaves no record; a lock is the primary only
// if nothing is written.
//
// The primary of a pessimistic transaction is the first key it locked, even if it did not write that key in the end, and
// that primary's lease continues. If that lock is shared, it leaves no lock on disk: the pessimistic locks keep it as
// their primary, and the prewritten keys get another one. The two do not interfere, because a status check on behalf of
// a pessimistic lock decides no outcome.
func (c *committer) choosePrimary() {
	for i := range c.mutations {
		if c.mutations[i].Op.LeavesLock() {
			c.locks++
		}
	}
	if c.keepPrimary() {
		return
	}
	largest := &c.parts[0]
	for i := range c.parts {
		if len(c.parts[i].items) > len(largest.items) {
			largest = &c.parts[i]
		}
	}
	c.primary = c.mutations[0].Key
	best := 0
	consider := func(ms []mvcc.Mutation, bonus int) {
		for i := range ms {
			rank := 0
			switch ms[i].Op {
			case mvcc.OpPut, mvcc.OpDelete:
				rank = 4 + bonus
			case mvcc.OpLock:
				rank = 1 + bonus
			}
			if rank > best {
				best, c.primary = rank, ms[i].Key
			}
		}
	}
	if consider(largest.items, 1); !largest.sole {
		consider(c.mutations, 0)
	}
}

// keepPrimary makes the primary of a pessimistic transaction's locks that of the commit, if that key is to be
// prewritten.
func (c *committer) keepPrimary() bool {
	if c.locked == nil || c.locked.primary == nil || !c.locked.held[0].settled {
		return false
	}
	c.primary, c.lease = c.locked.primary, &c.locked.lease
	return true
}

// ttlFor returns how long a transaction's locks are valid without a heartbeat, in milliseconds: the default, and for
// large ones 6 s times the square root of their size in MiB, up to 20 s.
func (c *committer) ttlFor() uint64 {
	ttl := float64(c.db.opts.LockTTL.Milliseconds())
	if mib := float64(c.sizeBytes) / (1 << 20); mib > 0.25 {
		ttl = max(ttl, min(20_000, 6000*math.Sqrt(mib)))
	}
	return uint64(ttl)
}

// beginLease has the locks kept alive from now on, a timestamp of the oracle; a pessimistic
// transaction's are already.
func (c *committer) beginLease(now tso.Timestamp) {
	if !c.lease.running() {
		c.lease.begin(c.db, c.startTS, c.primary, uint64(max(0, now.Physical()-c.startTS.Physical())), c.ttlFor())
	}
}

// ttlNow is the TTL of locks taken now.
func (c *committer) ttlNow() uint64 {
	switch {
	case c.lease.db != nil:
		return c.lease.ttl()
	case c.locked != nil && c.locked.lease.db != nil:
		return c.locked.lease.ttl()
	}
	return c.ttlFor()
}

// leaseMillis is the extension by one heartbeat.
func (c *committer) leaseMillis() uint64 {
	if c.lease.db != nil {
		return c.lease.ttlMillis
	}
	return c.ttlFor()
}

// doomed reports whether a heartbeat has found the transaction rolled back.
func (c *committer) doomed() bool {
	return c.lease.doomed.Load() || c.locked != nil && c.locked.lease.doomed.Load()
}

// writes reports whether key is among the mutations, other than as a check of a shared lock.
func (c *committer) writes(key []byte) bool {
	if c.large != nil {
		found, err := c.large.Has(key)
		return found && err == nil
	}
	at, found := slices.BinarySearchFunc(c.mutations, key, compareMutation)
	return found && c.mutations[at].Op != mvcc.OpCheckShared
}

// txnSize is the number of mutations, as recorded in locks.
func (c *committer) txnSize() uint32 {
	if c.large != nil {
		return uint32(min(c.large.Len(), math.MaxUint32))
	}
	return uint32(len(c.mutations))
}

// lastKey is the largest key.
func (c *committer) lastKey() []byte {
	if c.large != nil {
		return c.large.run.Last()
	}
	return c.mutations[len(c.mutations)-1].Key
}

// readPermit takes the bound of the commit_ts from the permit.
func (c *committer) readPermit() (err error) {
	if c.permit != nil {
		c.maxCommitTS, err = c.permit.MaxCommitTS()
	}
	return err
}

// allowAt returns nil if the permit allows a commit at ts. A commit that has taken longer than the permit allows renews it; no
// request that could commit it may be under way.
func (c *committer) allowAt(ctx context.Context, ts tso.Timestamp) error {
	if c.maxCommitTS == 0 || ts <= c.maxCommitTS {
		return nil
	}
	if err := c.permit.Renew(ctx); err != nil {
		return err
	}
	if err := c.readPermit(); err != nil {
		return err
	}
	if c.maxCommitTS != 0 && ts > c.maxCommitTS {
		return ErrCommitTooLate
	}
	return nil
}

// detached is the context for requests whose outcome must be learnt: it does not end when the caller gives up.
func detached(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// lostRace turns the ways in which others end a transaction into the one error for it.
func (c *committer) lostRace(err error) error {
	_, typed := errkind.Find(err)
	switch answer := typed.(type) {
	case *mvcc.RolledBackError, *mvcc.LockNotFoundError:
		return rolledBack(c.primary, c.startTS)
	case *mvcc.LockLostError:
		conflict := &mvcc.WriteConflictError{Key: answer.Key, StartTS: c.startTS}
		if c.locked != nil {
			if _, had := c.locked.get(answer.Key); had { // A guard of ExistsAtCommit was never locked.
				conflict.Cause = mvcc.CauseLockLost
			}
		}
		return conflict
	case *mvcc.RefreshConflictError:
		return &mvcc.WriteConflictError{Key: answer.Key, StartTS: c.startTS,
			ConflictingStartTS: answer.StartTS, ConflictingCommitTS: answer.CommitTS}
	}
	return err
}

// settled is the error of a transaction that has been settled as rolled back after an attempt to commit it failed with
// err. An unavailable shard is no longer the cause, because the outcome is known.
func (c *committer) settled(err error) error {
	if unreachable(err) {
		return rolledBack(c.primary, c.startTS)
	}
	return c.lostRace(err)
}

// rolledBack is the error of a transaction that others have rolled back.
func rolledBack(key []byte, startTS tso.Timestamp) *mvcc.WriteConflictError {
	return &mvcc.WriteConflictError{Key: key, StartTS: startTS, Cause: mvcc.CauseRolledBack}
}

type onePhaseNext int

const (
	onePhaseDone       onePhaseNext = iota // committed or failed
	onePhaseSplit                          // nothing done; the write set is no longer on one shard
	onePhasePrewritten                     // the shard has written locks instead
)

// onePhase sends the whole write set as one request, until it is answered.
func (c *committer) onePhase(ctx context.Context) (onePhaseNext, tso.Timestamp, error) {
	bo := backoff{db: c.db}
	lost := false // an attempt was not answered and may have been, or may yet be, executed
	c.onePC = kv.PrewriteRequest{
		Mutations:   c.mutations,
		Primary:     c.primary,
		StartTS:     c.startTS,
		ReadTS:      c.readTS,
		TTLMillis:   c.ttlNow(),
		LeaseMillis: c.leaseMillis(),
		Process:     c.db.opts.Process,
		TxnSize:     uint32(len(c.mutations)),
		TryOnePC:    true,
		Reads:       c.reads,
		MaxCommitTS: c.maxCommitTS,
		Notify:      c.notify,
	}
	for {
		part := &c.parts[0]
		c.onePC.Ranges = part.refs // with those of the reads
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

// afterOnePhase handles an attempt that failed: retry means to send it again; otherwise a nil error means to continue as
// next says, and an error ends the commit.
func (c *committer) afterOnePhase(ctx context.Context, bo *backoff, lost *bool, err error) (next onePhaseNext, retry bool, _ error) {
	switch kind := errkind.Of(err); kind {
	case errkind.StaleRoute:
		if err := c.db.retryRouting(ctx, bo, err); err != nil {
			return 0, false, err
		}
		return c.reroute(ctx, bo, *lost)
	case errkind.Locked:
		locked, _ := errkind.As[*mvcc.KeyLockedError](err)
		if err := c.clearLock(ctx, bo, c.parts[0].shard, locked); err != nil {
			// The lock may go, and a duplicate of the request be carried out then.
			*lost = *lost || !c.parts[0].shard.Capabilities().ExactlyOnce
			return 0, false, err
		}
		return 0, true, nil
	case errkind.Unavailable, errkind.OracleUnavailable:
		*lost = *lost || kind == errkind.Unavailable && !notSent(err)
		bo.patient = *lost
		if err := c.db.retryRouting(ctx, bo, err); err != nil {
			return 0, false, err
		}
		return c.reroute(ctx, bo, *lost)
	case errkind.DiskFull:
		// Nothing was done, and a record of that would take space.
		*lost = *lost || !c.parts[0].shard.Capabilities().ExactlyOnce
	default:
		*lost = *lost || !kind.Final()
	}
	return 0, false, err
}

// reroute looks up the write set's shard again, with the results of afterOnePhase.
func (c *committer) reroute(ctx context.Context, bo *backoff, lost bool) (next onePhaseNext, retry bool, _ error) {
	if err := c.route(ctx, bo); err != nil {
		return 0, false, err
	}
	if len(c.parts) == 1 {
		here, err := c.readsAreHere(ctx)
		if here || err != nil {
			return 0, here, err
		}
	}
	if lost { // the lost attempt and two phases must not both happen
		return 0, false, &mvcc.RolledBackError{StartTS: c.startTS}
	}
	return onePhaseSplit, false, nil
}

// settleOnePhase ends a one-phase commit that failed with err. If an attempt was lost, the status is checked at a key,
// which then rejects the attempt if it arrives late.
func (c *committer) settleOnePhase(ctx context.Context, lost bool, err error) (tso.Timestamp, error) {
	kind := errkind.Of(err)
	if ts := committedAt(err); ts != 0 {
		return ts, nil
	}
	switch {
	case c.locks == 0: // a late request writes nothing
		return 0, c.lostRace(err)
	case !lost && kind == errkind.DiskFull:
		return 0, err
	case !lost && kind.Final():
		// A duplicate of the request would be refused as well, because a conflict is permanent.
		return 0, c.lostRace(err)
	case !lost:
		c.abort(ctx)
		return 0, err
	}
	probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.opts.ProbeTimeout)
	defer cancel()
	bo := backoff{db: c.db}
	for {
		ts, askErr := c.decide(probe, c.primary)
		if askErr == nil {
			if ts != 0 {
				return ts, nil
			}
			return 0, c.settled(err)
		}
		if c.db.retryRouting(probe, &bo, askErr) != nil {
			return 0, &UndeterminedError{StartTS: c.startTS, Err: err}
		}
	}
}

// decide rolls key back unless the transaction has committed, and returns the commit_ts, or 0.
func (c *committer) decide(ctx context.Context, key []byte) (tso.Timestamp, error) {
	err := c.db.onKey(ctx, key, func(ref kv.RangeRef, shard kv.Shard) error {
		return shard.Rollback(ctx, &kv.RollbackRequest{Ranges: []kv.RangeRef{ref}, Keys: [][]byte{key}, StartTS: c.startTS})
	})
	if ts := committedAt(err); ts != 0 {
		return ts, nil
	}
	return 0, err
}

// committedAt returns the commit_ts if err is a shard's answer that the transaction has committed, else 0.
func committedAt(err error) tso.Timestamp {
	if committed, ok := errkind.As[*mvcc.AlreadyCommittedError](err); ok {
		return committed.CommitTS
	}
	return 0
}
