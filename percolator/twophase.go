package percolator

import (
	"bytes"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// One prewrite, commit or rollback request holds at most this much of a transaction.
const (
	maxRequestKeys  = 8192
	maxRequestBytes = 4 << 20
)

// twoPhase locks every key, obtains a commit_ts and commits the primary. prewritten reports that the keys are locked
// already.
func (c *committer) twoPhase(ctx context.Context, prewritten bool) (tso.Timestamp, error) {
	now, err := c.db.now(ctx)
	if err != nil {
		c.abort(ctx)
		return 0, err
	}
	c.beginLease(now)
	if !prewritten {
		err = c.prewriteAll(ctx)
	}
	if err != nil {
		if ts := committedAt(err); ts != 0 {
			return ts, nil
		}
		c.abort(ctx)
		return 0, c.lostRace(err)
	}
	if c.locks == 0 { // only checks, and they succeeded
		return 0, nil
	}
	return c.secondPhase(ctx)
}

// secondPhase decides the transaction, all of whose keys are locked.
func (c *committer) secondPhase(ctx context.Context) (tso.Timestamp, error) {
	c.lease.prewritten.Store(true)
	ts, err := c.commitPrimary(ctx)
	c.lease.stop()
	if err == nil {
		c.commitSecondaries(ctx, ts)
		return ts, nil
	}
	if errkind.Of(err) != errkind.Undetermined {
		c.abort(ctx)
	}
	return 0, c.lostRace(err)
}

// prewriteAll locks all keys, in requests of bounded size sent in parallel. Those of a large
// transaction start when the primary is locked, so that heartbeats keep the others alive.
func (c *committer) prewriteAll(ctx context.Context) error {
	batches := c.batches()
	first := 0
	for i, b := range batches {
		if _, found := slices.BinarySearchFunc(b, c.primary, compareMutation); found {
			first = i
		}
	}
	batches[0], batches[first] = batches[first], batches[0]
	if len(batches) > maxFanOut {
		if err := c.prewrite(ctx, batches[0], &prewritePart{}); err != nil {
			return err
		}
		c.lease.prewritten.Store(true)
		batches = batches[1:]
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFanOut)
	for _, b := range batches {
		g.Go(func() error { return c.prewrite(ctx, b, &prewritePart{}) })
	}
	return g.Wait()
}

func compareMutation(m mvcc.Mutation, key []byte) int { return bytes.Compare(m.Key, key) }

// batches splits the write set by shard and size. Shared locks are checked later, at the commit_ts.
func (c *committer) batches() [][]mvcc.Mutation {
	var all [][]mvcc.Mutation
	for i := range c.parts {
		of := c.parts[i].items
		if len(c.shared) > 0 {
			of = slices.DeleteFunc(slices.Clone(of), func(m mvcc.Mutation) bool { return m.Op == mvcc.OpCheckShared })
		}
		for start := 0; start < len(of); {
			end, size := start, 0
			for end < len(of) && end-start < maxRequestKeys && (size < maxRequestBytes || end == start) {
				size += len(of[end].Key) + len(of[end].Value)
				end++
			}
			all = append(all, of[start:end])
			start = end
		}
	}
	return all
}

// prewritePart is the result of one batch.
type prewritePart struct {
	minCommitTS tso.Timestamp
	plain       bool // some lock is not async
	// lost: a request was not answered, and may have been, or may yet be, executed.
	lost bool
	// refused: the shard has answered that the batch is not locked, whatever was sent before.
	refused bool
}

// prewrite locks the keys of one batch, on whatever shards they lie now.
func (c *committer) prewrite(ctx context.Context, muts []mvcc.Mutation, became *prewritePart) error {
	r := shardRequest[mvcc.Mutation]{bo: backoff{db: c.db}, list: &mutationList, fanOut: 1}
	r.send = func(ctx context.Context, bo *backoff, p *part[mvcc.Mutation]) error {
		return c.prewriteOnce(ctx, bo, p, became)
	}
	return r.run(ctx, muts)
}

// prewriteOnce sends one request, and records what is known of it after an error.
func (c *committer) prewriteOnce(ctx context.Context, bo *backoff, p *part[mvcc.Mutation], became *prewritePart) error {
	req := kv.PrewriteRequest{
		Ranges:    p.refs,
		Mutations: p.items,
		Primary:   c.primary,
		StartTS:   c.startTS,
		ReadTS:    c.readTS,
		TTLMillis: c.ttlNow(), LeaseMillis: c.leaseMillis(), Process: c.db.opts.Process,
		TxnSize: c.txnSize(),
		FloorTS: c.checkedAt,
		Notify:  c.notify,
	}
	sending := ctx
	if c.asyncing != nil {
		c.asyncing.fill(c, &req)
		sending = detached(ctx) // the answer must be learnt
	}
	resp, err := p.shard.Prewrite(sending, &req)
	if err == nil {
		became.minCommitTS = max(became.minCommitTS, resp.MinCommitTS)
		became.plain = became.plain || !resp.Async && slices.ContainsFunc(p.items, leavesLock)
		return nil
	}
	kind := errkind.Of(err)
	if kind == errkind.Locked {
		locked, _ := errkind.As[*mvcc.KeyLockedError](err)
		err := c.clearLock(ctx, bo, p.shard, locked)
		if err == nil {
			return errSendAgain
		}
		// The lock may go, and a duplicate be carried out then.
		became.lost = became.lost || !p.shard.Capabilities().ExactlyOnce
		return stopError{err}
	}
	// The fence does not check whether an earlier attempt succeeded.
	became.refused = kind.Final() && !(became.lost && kind == errkind.TooOld)
	became.lost = became.lost || !kind.Final() && kind != errkind.StaleRoute && !notSent(err)
	bo.patient = became.lost && c.asyncing != nil
	return err
}

func leavesLock(m mvcc.Mutation) bool { return m.Op.LeavesLock() }

// clearLock makes the way free for another prewrite. A lock where the transaction has only read
// is waited for a few times, and then given way to: its owner might wait for this one.
func (c *committer) clearLock(ctx context.Context, bo *backoff, shard kv.Shard, e *mvcc.KeyLockedError) error {
	if c.writes(e.Key) {
		return c.db.clearLock(ctx, bo, shard, c.startTS, e, c.lastKey())
	}
	alive, err := c.db.evict(ctx, bo, e, e.Key)
	if err != nil || !alive {
		return err
	}
	if bo.attempts[backoffLock] >= maxReadWaits {
		return &mvcc.WriteConflictError{Key: e.Key, StartTS: c.startTS, ConflictingStartTS: e.Lock.StartTS}
	}
	return bo.waitForLock(ctx, shard, e)
}

// maxReadWaits is how often a serializable commit waits for a lock on something it has read.
const maxReadWaits = 6

// maxCommitAttempts bounds how often readers may push a commit before it gives up.
const maxCommitAttempts = 10

// commitPrimary performs the commit point. On success the transaction is committed at the returned timestamp; after an
// error other than *UndeterminedError it is not, and will not be.
func (c *committer) commitPrimary(ctx context.Context) (tso.Timestamp, error) {
	bo := backoff{db: c.db}
	readTS := c.readTS
	for range maxCommitAttempts {
		ts, err := c.db.now(ctx)
		if err != nil {
			return 0, err
		}
		if err := c.allowAt(ctx, ts); err != nil {
			return 0, err
		}
		if c.doomed() {
			return 0, &mvcc.RolledBackError{StartTS: c.startTS}
		}
		if len(c.reads) > 0 {
			r := refresh{db: c.db, startTS: c.startTS, from: readTS, to: ts, committing: true}
			if err := r.run(ctx, c.reads); err != nil {
				return 0, err
			}
			readTS = ts
		}
		if err := c.checkShared(ctx, ts); err != nil {
			return 0, err
		}
		ts, err = c.commitPrimaryAt(ctx, &bo, ts)
		// Pushed: the lock is still there, so no attempt at this or an earlier timestamp has
		// succeeded, and none that is still under way can.
		if errkind.Of(err) != errkind.CommitTSExpired {
			return ts, err
		}
	}
	return 0, &mvcc.WriteConflictError{Key: c.primary, StartTS: c.startTS}
}

// checkShared verifies that the shared locks have been held until now, when the transaction is about to commit at ts.
// They need not be held until it has committed: a transaction that acquires an exclusive lock from now on, and reads
// what this one has written, reads above ts, which resolves or pushes the commit; and a pushed commit is checked again.
func (c *committer) checkShared(ctx context.Context, ts tso.Timestamp) error {
	c.checkedAt = ts
	defer func() { c.checkedAt = 0 }()
	for some := range slices.Chunk(c.shared, maxRequestKeys) {
		if err := c.prewrite(ctx, some, &prewritePart{}); err != nil {
			return err
		}
	}
	return nil
}

// commitPrimaryAt repeats the request until it is answered.
func (c *committer) commitPrimaryAt(ctx context.Context, bo *backoff, ts tso.Timestamp) (tso.Timestamp, error) {
	lost := false
	for {
		sent, err := c.sendPrimary(detached(ctx), ts)
		at := committedAt(err)
		switch {
		case err == nil:
			return ts, nil
		case at != 0:
			return at, nil
		case refusesCommit(err):
			return 0, err
		}
		lost = lost || sent && errkind.Of(err) != errkind.StaleRoute && !notSent(err)
		bo.patient = lost
		if waitErr := c.db.retryRouting(ctx, bo, err); waitErr != nil {
			if !lost {
				return 0, waitErr
			}
			return c.probePrimary(ctx, ts, waitErr)
		}
	}
}

// sendPrimary sends one commit request. sent is false if the request was not sent.
func (c *committer) sendPrimary(ctx context.Context, ts tso.Timestamp) (sent bool, _ error) {
	err := c.db.onKey(ctx, c.primary, func(ref kv.RangeRef, shard kv.Shard) error {
		sent = true
		return shard.Commit(ctx, &kv.CommitRequest{
			Ranges:   []kv.RangeRef{ref},
			Keys:     [][]byte{c.primary},
			StartTS:  c.startTS,
			CommitTS: ts,
			Primary:  true,
		})
	})
	return sent, err
}

// refusesCommit reports whether err is a shard's answer that the transaction is not committed.
func refusesCommit(err error) bool {
	kind := errkind.Of(err)
	return kind == errkind.CommitTSExpired || kind == errkind.RolledBack
}

// probePrimary checks the status of a commit whose answer was lost, without deciding it: while the lock exists, the
// commit may still succeed, and is sent again.
func (c *committer) probePrimary(ctx context.Context, ts tso.Timestamp, cause error) (tso.Timestamp, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.opts.ProbeTimeout)
	defer cancel()
	bo := backoff{db: c.db}
	lock := &mvcc.KeyLockedError{Key: c.primary, Lock: mvcc.Lock{StartTS: c.startTS, Primary: c.primary, TTLMillis: endlessTTL}}
	for {
		f, err := c.db.askPrimary(ctx, &lock.Lock, 0)
		if err == nil {
			switch f.kind {
			case outcomeCommitted:
				return f.commitTS, nil
			case outcomeRolledBack:
				return 0, &mvcc.RolledBackError{StartTS: c.startTS}
			}
			_, err = c.sendPrimary(ctx, ts)
			at := committedAt(err)
			switch {
			case err == nil:
				return ts, nil
			case at != 0:
				return at, nil
			case refusesCommit(err):
				return 0, err
			}
		}
		if c.db.retryRouting(ctx, &bo, err) != nil {
			return 0, &UndeterminedError{StartTS: c.startTS, Err: cause}
		}
	}
}

// endlessTTL is a TTL that does not run out: a probe must not make the shard decide.
const endlessTTL = 1 << 62

// commitSecondaries commits the other keys in the background, or here if the background queue is full. A failure is
// harmless: a transaction that encounters the locks resolves them.
func (c *committer) commitSecondaries(ctx context.Context, ts tso.Timestamp) {
	c.commitLater(ctx, c.lockedKeys(func(key []byte) bool { return !bytes.Equal(key, c.primary) }), ts)
}

func (c *committer) commitLater(ctx context.Context, keys [][]byte, ts tso.Timestamp) {
	if len(keys) == 0 {
		return
	}
	db, startTS := c.db, c.startTS
	task := func(ctx context.Context) { db.commitKeys(ctx, keys, startTS, ts) }
	if !db.background.submit(task) {
		task(detached(ctx))
	}
}

func (db *DB) commitKeys(ctx context.Context, keys [][]byte, startTS, commitTS tso.Timestamp) {
	bo := backoff{db: db}
	for some := range slices.Chunk(keys, maxRequestKeys) {
		err := onShards(ctx, &bo, some, func(p *part[[]byte]) error {
			return p.shard.Commit(ctx, &kv.CommitRequest{Ranges: p.refs, Keys: p.items, StartTS: startTS, CommitTS: commitTS})
		})
		switch kind := errkind.Of(err); {
		case kind == errkind.RolledBack || kind == errkind.LockNotFound:
			db.metrics.broken.Inc()
			db.opts.Logger.Error("secondary refused after its primary committed", "start_ts", startTS, "commit_ts", commitTS, "err", err)
			return
		case err != nil:
			db.metrics.dropped.Inc()
			db.opts.Logger.Warn("committing secondaries", "start_ts", startTS, "commit_ts", commitTS, "keys", len(keys), "err", err)
			return
		}
	}
}

// abort rolls back every key that was ever sent, the primary first, behind the caller's back. The
// transaction has failed already, since its primary will not be committed; this only clears the
// way for others, and refuses requests that are still under way.
func (c *committer) abort(ctx context.Context) {
	if c.locks == 0 {
		return
	}
	keys := append([][]byte{c.primary}, c.lockedKeys(func(key []byte) bool { return !bytes.Equal(key, c.primary) })...)
	db, startTS := c.db, c.startTS
	task := func(ctx context.Context) { db.rollbackKeys(ctx, keys, startTS) }
	if !db.background.submit(task) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.opts.ProbeTimeout)
		defer cancel()
		task(ctx)
	}
}

// rollbackKeys rolls back the first key, then the others, which ascend.
func (db *DB) rollbackKeys(ctx context.Context, keys [][]byte, startTS tso.Timestamp) {
	bo := backoff{db: db}
	rollback := func(p *part[[]byte]) error {
		return p.shard.Rollback(ctx, &kv.RollbackRequest{Ranges: p.refs, Keys: p.items, StartTS: startTS})
	}
	err := onShards(ctx, &bo, keys[:1], rollback)
	for some := range slices.Chunk(keys[1:], maxRequestKeys) {
		if err == nil {
			err = onShards(ctx, &bo, some, rollback)
		}
	}
	if err != nil {
		db.metrics.dropped.Inc()
		db.opts.Logger.Warn("rolling back", "start_ts", startTS, "keys", len(keys), "err", err)
	}
}

// lockedKeys returns the keys that prewrite locks and that keep accepts, ascending.
func (c *committer) lockedKeys(keep func([]byte) bool) [][]byte {
	keys := make([][]byte, 0, c.locks)
	for i := range c.mutations {
		if m := &c.mutations[i]; m.Op.LeavesLock() && keep(m.Key) {
			keys = append(keys, m.Key)
		}
	}
	return keys
}
