package percolator

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// An async commit must fit into its primary's lock, which lists all other keys.
const (
	maxAsyncKeys     = 256
	maxAsyncKeyBytes = 4 << 10
)

// asyncCommit contains what an async commit adds to the prewrites. It does not change once they are sent.
type asyncCommit struct {
	secondaries [][]byte
	floorTS     tso.Timestamp // issued after the commit was requested
	// maxCommitTS keeps the commit below the time from which others may roll it back.
	maxCommitTS tso.Timestamp
}

// fill adds the fields to a request.
func (a *asyncCommit) fill(c *committer, req *kv.PrewriteRequest) {
	req.Async, req.FloorTS, req.MaxCommitTS = true, a.floorTS, a.maxCommitTS
	if _, found := slices.BinarySearchFunc(req.Mutations, c.primary, compareMutation); found {
		req.Secondaries = a.secondaries
	}
}

// asyncAllowed reports whether the transaction may commit asynchronously: it is small, and once its keys are locked no
// later check can fail it, neither of reads nor of keys that are only checked.
func (c *committer) asyncAllowed() bool {
	noAsync := func(p part[mvcc.Mutation]) bool { return !p.shard.Capabilities().Async }
	if c.db.opts.DisableAsyncCommit || slices.ContainsFunc(c.parts, noAsync) || len(c.reads) > 0 || c.locks < len(c.mutations) || c.locks > maxAsyncKeys {
		return false
	}
	size := 0
	for i := range c.mutations {
		size += len(c.mutations[i].Key)
	}
	return size <= maxAsyncKeyBytes && c.sizeBytes <= maxRequestBytes
}

// async locks all keys at once. When the last is locked the transaction is committed, at the largest of the timestamps
// in the locks, and every participant can determine this:
//
//	owner     ─┬─ prewrite a, the primary: secondaries k, z ──┬─▶ committed
//	           ├─ prewrite k                                  │
//	           └─ prewrite z                                  │   commit a, k, z (in the background)
//
// If a shard could not give its lock a final timestamp, the transaction continues in two phases.
func (c *committer) async(ctx context.Context) (tso.Timestamp, error) {
	now, err := c.db.now(ctx)
	if err != nil {
		return 0, err
	}
	c.beginLease(now)
	a := &asyncCommit{
		secondaries: c.lockedKeys(func(key []byte) bool { return !bytes.Equal(key, c.primary) }),
		floorTS:     now,
		maxCommitTS: tso.FromPhysical(c.startTS.Physical() + int64(c.lease.ttl())),
	}
	if c.maxCommitTS != 0 {
		a.maxCommitTS = min(a.maxCommitTS, c.maxCommitTS)
	}
	c.asyncing = a
	batches := c.batches()
	parts, err := c.prewriteAsync(ctx, batches)
	c.asyncing = nil
	if err != nil {
		return c.settleAsync(ctx, batches, parts, err)
	}
	commitTS, plain := tso.Timestamp(0), false
	for i := range parts {
		commitTS = max(commitTS, parts[i].minCommitTS)
		plain = plain || parts[i].plain
	}
	if plain {
		c.kind = commitTwoPhase
		return c.secondPhase(ctx)
	}
	c.lease.stop()
	c.commitAll(ctx, commitTS)
	return commitTS, nil
}

// asyncPart is the result of one batch of an async commit.
type asyncPart struct {
	prewritePart
	err error
}

// prewriteAsync sends all batches and waits for all answers. The first to fail ends the others' waits,
// but takes no answer away.
func (c *committer) prewriteAsync(ctx context.Context, batches [][]mvcc.Mutation) (parts []asyncPart, first error) {
	parts = make([]asyncPart, len(batches))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	send := func(i int) {
		err := c.prewrite(ctx, batches[i], &parts[i].prewritePart)
		if parts[i].err = err; err != nil {
			once.Do(func() { first = err })
			cancel()
		}
	}
	var g sync.WaitGroup
	for i := 1; i < len(batches); i++ {
		g.Go(func() { send(i) })
	}
	send(0)
	g.Wait()
	return parts, first
}

// settleAsync ends an async commit of which some batch failed. It may be committed nevertheless, if a request whose
// answer was lost has been executed. If a shard has refused a batch, and no request that might still arrive can change
// that, it is not committed. Otherwise it must be decided in order: first one key is prevented from ever being locked,
// then the others are rolled back.
//
// cause is the first error; a refusal is more specific.
func (c *committer) settleAsync(ctx context.Context, batches [][]mvcc.Mutation, parts []asyncPart, cause error) (tso.Timestamp, error) {
	open, certain := -1, false
	for i := range parts {
		p := &parts[i]
		ts := committedAt(p.err)
		switch {
		case p.err == nil:
		case ts != 0:
			return ts, nil
		case p.refused:
			certain, cause = true, p.err
		case !p.lost: // this transaction gave up by itself, and no request is in flight
			certain = true
		default:
			open = i
		}
	}
	if certain {
		c.abort(ctx)
		return 0, c.lostRace(cause)
	}
	c.db.metrics.asyncDecided.Inc()
	key := batches[open][0].Key
	probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.opts.ProbeTimeout)
	defer cancel()
	bo := backoff{db: c.db}
	for {
		f, err := c.decideAsync(probe, key)
		switch {
		case err != nil:
			if c.db.retryRouting(probe, &bo, err) != nil {
				return 0, &UndeterminedError{StartTS: c.startTS, Err: cause}
			}
		case f.kind == outcomeCommitted:
			c.lease.stop()
			c.commitAll(ctx, f.commitTS)
			return f.commitTS, nil
		default:
			c.abort(ctx)
			return 0, c.settled(cause)
		}
	}
}

// decideAsync checks the transaction's status at key first and then at all others, and prevents the first that is not
// locked from ever being locked.
func (c *committer) decideAsync(ctx context.Context, key []byte) (outcome, error) {
	req := kv.CheckSecondaryLocksRequest{StartTS: c.startTS, Owner: true}
	one, err := c.db.countSecondaries(ctx, [][]byte{key}, req)
	if err != nil || one.outcome.kind != outcomeAlive {
		return one.outcome, err
	}
	others := c.lockedKeys(func(k []byte) bool { return !bytes.Equal(k, key) })
	rest, err := c.db.countSecondaries(ctx, others, req)
	switch {
	case err != nil || rest.outcome.kind != outcomeAlive:
		return rest.outcome, err
	case !one.plain && !rest.plain:
		return outcome{kind: outcomeCommitted, commitTS: max(one.minCommitTS, rest.minCommitTS)}, nil
	}
	// With a plain lock among them no participant can find the transaction committed before its primary is.
	ts, err := c.decide(ctx, c.primary)
	if ts != 0 {
		return outcome{kind: outcomeCommitted, commitTS: ts}, err
	}
	return outcome{kind: outcomeRolledBack}, err
}

// commitAll commits all keys of a committed transaction in the background, or here if the background queue is full. A
// failure is harmless: a transaction that encounters the locks resolves them.
func (c *committer) commitAll(ctx context.Context, ts tso.Timestamp) {
	c.commitLater(ctx, c.lockedKeys(func([]byte) bool { return true }), ts)
}
