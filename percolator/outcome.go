package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// askPrimary sends one status check to the primary of a lock.
func (db *DB) askPrimary(ctx context.Context, lock *mvcc.Lock, callerTS tso.Timestamp) (outcome, error) {
	now, err := db.oracle.Now(ctx)
	if err != nil {
		return outcome{}, err
	}
	return db.askPrimaryAs(ctx, lock, callerTS, now, false)
}

// askPrimaryAs is askPrimary; forceSync means that the transaction, though its primary is that of an async commit, has a
// plain lock somewhere, so the primary decides. now is the timestamp by which the lock's expiry is determined.
func (db *DB) askPrimaryAs(ctx context.Context, lock *mvcc.Lock, callerTS, now tso.Timestamp, forceSync bool) (outcome, error) {
	desc, shard, err := db.router.Locate(ctx, lock.Primary)
	if err == nil {
		err = checkAway(ctx, desc.Shard)
	}
	if err != nil {
		return outcome{}, err
	}
	ended := isEnded(ctx)
	st, err := shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{
		Range:    desc.Ref(),
		Primary:  lock.Primary,
		StartTS:  lock.StartTS,
		CallerTS: callerTS,
		NowTS:    now,
		// A primary without lock or record may still be prewritten while the secondary's lock is valid.
		RollbackIfMissing:    ended || lockExpired(lock, now),
		ProcessEnded:         ended,
		ResolvingPessimistic: lock.Op == mvcc.OpPessimistic,
		ForceSync:            forceSync,
	})
	switch {
	case errkind.Of(err) == errkind.TxnNotFound:
		return outcome{kind: outcomeAlive}, nil
	case err != nil:
		db.forgetRoute(err, desc.Ref())
		return outcome{}, err
	case st.CommitTS != 0:
		return outcome{kind: outcomeCommitted, commitTS: st.CommitTS}, nil
	case st.RolledBack:
		return outcome{kind: outcomeRolledBack, undecided: st.Undecided}, nil
	case st.Lock != nil && st.Lock.Async && !forceSync:
		return db.askSecondaries(ctx, st.Lock, callerTS, now)
	case callerTS != 0 && st.Lock != nil && st.Lock.MinCommitTS > callerTS:
		return outcome{kind: outcomePassed}, nil
	}
	return outcome{kind: outcomeAlive}, nil
}

// lockExpired reports whether a lock's TTL has passed, according to the lock alone.
func lockExpired(l *mvcc.Lock, now tso.Timestamp) bool {
	return l.Expiry() < now.Physical()
}

// askSecondaries determines the outcome of an async commit whose primary is locked.
//
//	all keys locked, all async    committed, at the largest min_commit_ts
//	one is committed              committed, at that timestamp
//	one can never be locked       rolled back
//	one is locked, but not async  the owner fell back to two phases, and the primary decides
//	one is missing                alive, unless the TTL has passed: then it is prevented from being locked
//
// Every caller gets the same result, because what is counted never changes.
func (db *DB) askSecondaries(ctx context.Context, primary *mvcc.Lock, callerTS, now tso.Timestamp) (outcome, error) {
	req := kv.CheckSecondaryLocksRequest{StartTS: primary.StartTS, ProcessEnded: isEnded(ctx)}
	if lockExpired(primary, now) {
		req.NowTS = now
	}
	v, err := db.countSecondaries(ctx, primary.Secondaries, req)
	switch {
	case err != nil:
		return outcome{}, err
	case v.plain:
		return db.askPrimaryAs(ctx, primary, callerTS, now, true)
	case v.outcome.kind == outcomeAlive && v.locked == len(primary.Secondaries):
		v.outcome = outcome{kind: outcomeCommitted, commitTS: max(primary.MinCommitTS, v.minCommitTS)}
	}
	switch v.outcome.kind {
	case outcomeCommitted, outcomeRolledBack:
		db.metrics.asyncResolved.Inc()
		// Later requests need only the rest.
		db.resolveLater(mergeKey(primary.Secondaries, primary.Primary), primary.StartTS, v.outcome.commitTS)
	}
	return v.outcome, nil
}

// secondaryVote combines the states of the secondaries.
type secondaryVote struct {
	outcome     outcome // outcomeAlive: not decided by any of them alone
	locked      int
	minCommitTS tso.Timestamp
	plain       bool // a lock is not async
}

// countSecondaries sends a request about ascending keys to their shards, one after the other, until one decides. It does
// not retry.
func (db *DB) countSecondaries(ctx context.Context, keys [][]byte, req kv.CheckSecondaryLocksRequest) (v secondaryVote, _ error) {
	parts, err := keyList.once(ctx, db, keys, nil)
	if err != nil {
		return v, err
	}
	for i := range parts {
		if err := checkAway(ctx, parts[i].name); err != nil {
			return v, err
		}
		req.Ranges, req.Keys = parts[i].refs, parts[i].items
		st, err := parts[i].shard.CheckSecondaryLocks(ctx, &req)
		if err != nil {
			db.forgetRoute(err, parts[i].refs...)
			return v, err
		}
		switch {
		case st.CommitTS != 0:
			v.outcome = outcome{kind: outcomeCommitted, commitTS: st.CommitTS}
			return v, nil
		case st.RolledBack:
			v.outcome = outcome{kind: outcomeRolledBack}
			return v, nil
		}
		v.locked += len(st.Locks)
		for j := range st.Locks {
			v.minCommitTS = max(v.minCommitTS, st.Locks[j].Lock.MinCommitTS)
			v.plain = v.plain || !st.Locks[j].Lock.Async
		}
	}
	return v, nil
}

// mergeKey inserts a key into ascending keys.
func mergeKey(keys [][]byte, key []byte) [][]byte {
	at, found := slices.BinarySearchFunc(keys, key, bytes.Compare)
	if found {
		return keys
	}
	return slices.Insert(slices.Clone(keys), at, key)
}
