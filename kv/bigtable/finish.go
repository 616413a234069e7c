package bigtable

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// finishing ends a transaction's locks on keys: all of them, or, at the first error of a decision, none.
type finishing struct {
	s                 *Shard
	startTS, commitTS tso.Timestamp // commit_ts 0: rolling back
	keys              [][]byte
	decide            func(i int, v *view) (mvcc.Finish, error)
}

func (f *finishing) run(ctx context.Context) error {
	views, err := f.s.gather(ctx, f.startTS, f.keys)
	if err != nil {
		return err
	}
	todo := make([]mvcc.Finish, len(f.keys))
	for i, v := range views {
		if todo[i], err = f.decide(i, v); err != nil {
			return err
		}
	}
	return eachAtOnce(len(f.keys), func(i int) error { return f.one(ctx, i, views[i], todo[i]) })
}

// one carries a decision out, or another if the row has changed since.
func (f *finishing) one(ctx context.Context, i int, v *view, do mvcc.Finish) error {
	for {
		done, err := f.s.carryOut(ctx, f.keys[i], do, f.startTS, f.commitTS, v)
		if done || err != nil {
			return err
		}
		if v, err = f.s.look(ctx, f.startTS, f.keys[i]); err != nil {
			return err
		}
		if do, err = f.decide(i, v); err != nil {
			return err
		}
	}
}

// carryOut makes the change of a decision by v; done is false if the row was not as in v any more.
func (s *Shard) carryOut(ctx context.Context, key []byte, do mvcc.Finish, startTS, commitTS tso.Timestamp, v *view) (done bool, err error) {
	if do == mvcc.FinishNothing {
		if v.own == nil { // it has gone in an attempt whose answer was lost, or by another process
			s.finished(key, startTS, 0, nil)
		}
		return true, nil
	}
	change := finishChange(do, startTS, commitTS, v.own)
	row := rowKey(key)
	switch {
	case v.own != nil:
		done, err = s.c.onlyIf(ctx, row, lockIs(v.own.column, v.own.value), change)
	case do == mvcc.FinishRecord:
		u := unchanged{startTS: startTS, version: max(v.NewestCommitTS, startTS), status: v.status, locks: ownLock}
		done, err = s.c.unless(ctx, row, u.violated(), change)
	default: // there is no lock to be removed
		s.finished(key, startTS, 0, nil)
		return true, nil
	}
	if done {
		s.finished(key, startTS, commitTS, v.own)
	}
	return done, err
}

// finished is called when a transaction's lock on key is gone.
func (s *Shard) finished(key []byte, startTS, commitTS tso.Timestamp, own *heldLock) {
	s.memo.forget(startTS, key)
	s.released(key, startTS)
	if commitTS != 0 && own != nil {
		s.hints.committed(key, commitTS, own.lock.Notify)
	}
}

// finishChange is the change of a row by which a lock ends.
func finishChange(do mvcc.Finish, startTS, commitTS tso.Timestamp, own *heldLock) *widerow.Mutation {
	change := widerow.NewMutation()
	if own != nil {
		change.DeleteCellsInColumn(familyLock, own.column)
	}
	switch do {
	case mvcc.FinishCommit:
		if !mvcc.CommitsVersion(own.lock.Op) {
			change.Set(familyStatus, commitColumn(commitTS), []byte(plainTS(startTS)))
			break
		}
		change.Set(familyWrite, inverted(commitTS), encodeWrite(own.lock.Op, startTS))
		if n := own.lock.Notify; n != nil {
			for _, observer := range n.Observers {
				change.Set(familyNotify, notifyColumn(observer, commitTS), []byte{n.Hop})
			}
		}
	case mvcc.FinishRollback, mvcc.FinishRecord:
		if own != nil && (own.lock.Op == mvcc.OpPut || own.lock.Op == mvcc.OpDelete) {
			change.DeleteCellsInColumn(familyData, inverted(startTS))
		}
		if do == mvcc.FinishRecord {
			change.Set(familyStatus, rollbackColumn(startTS), []byte{1})
		}
	}
	return change
}

// Commit implements kv.Shard. The primary's is a conditional request, the commit point. Other keys whose locks this process
// has written are committed in bulk, without a condition: the transaction has committed, so nothing but its commit can
// have become of its locks, and the cells that are written have one value for ever.
func (s *Shard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	if err := s.mayFinish(ctx, req.Keys, req.StartTS, req.CommitTS, req.Ranges); err != nil {
		return err
	}
	if req.Primary {
		done, err := s.commitKnownPrimary(ctx, req)
		if done || err != nil {
			return err
		}
	} else if known := s.knownLocks(req); known != nil {
		return s.commitKnown(ctx, req, known)
	}
	f := finishing{s: s, startTS: req.StartTS, commitTS: req.CommitTS, keys: req.Keys}
	f.decide = func(i int, v *view) (mvcc.Finish, error) {
		if err := v.recordsGone(req.StartTS); err != nil {
			return mvcc.FinishNothing, err
		}
		return mvcc.DecideCommit(req.Keys[i], req.StartTS, req.CommitTS, req.Primary && i == 0, &v.Records)
	}
	return f.run(ctx)
}

// commitKnownPrimary commits a primary whose lock this process has written, unless it has changed since.
func (s *Shard) commitKnownPrimary(ctx context.Context, req *kv.CommitRequest) (done bool, err error) {
	own := s.memo.get(req.StartTS, req.Keys[0])
	if len(req.Keys) != 1 || own == nil || own.lock.Op == mvcc.OpPessimistic || own.lock.MinCommitTS > req.CommitTS ||
		!bytes.Equal(own.lock.Primary, req.Keys[0]) {
		return false, nil
	}
	change := finishChange(mvcc.FinishCommit, req.StartTS, req.CommitTS, own)
	done, err = s.c.onlyIf(ctx, rowKey(req.Keys[0]), lockIs(own.column, own.value), change)
	if done {
		s.finished(req.Keys[0], req.StartTS, req.CommitTS, own)
	}
	return done, err
}

// knownLocks returns the locks on keys that are not the primary, or nil unless this process has written all of them.
func (s *Shard) knownLocks(req *kv.CommitRequest) []*heldLock {
	known := make([]*heldLock, len(req.Keys))
	for i, key := range req.Keys {
		l := s.memo.get(req.StartTS, key)
		if l == nil || l.lock.Op == mvcc.OpPessimistic || l.lock.MinCommitTS > req.CommitTS || bytes.Equal(l.lock.Primary, key) {
			return nil
		}
		known[i] = l
	}
	return known
}

func (s *Shard) commitKnown(ctx context.Context, req *kv.CommitRequest, known []*heldLock) error {
	rows, changes := make([]string, len(known)), make([]*widerow.Mutation, len(known))
	for i, l := range known {
		rows[i], changes[i] = rowKey(req.Keys[i]), finishChange(mvcc.FinishCommit, req.StartTS, req.CommitTS, l)
	}
	if err := s.bulk(ctx, rows, changes); err != nil {
		return err
	}
	for i, l := range known {
		s.finished(req.Keys[i], req.StartTS, req.CommitTS, l)
	}
	return nil
}

// Rollback implements kv.Shard.
func (s *Shard) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	if err := mvcc.ValidateKeys(req.Keys); err != nil {
		return err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return err
	}
	f := finishing{s: s, startTS: req.StartTS, keys: req.Keys}
	f.decide = func(_ int, v *view) (mvcc.Finish, error) {
		if err := v.recordsGone(req.StartTS); err != nil {
			return mvcc.FinishNothing, err
		}
		return mvcc.DecideRollback(req.StartTS, &v.Records)
	}
	return f.run(ctx)
}

// mayFinish checks a request that commits or rolls back a transaction's locks.
func (s *Shard) mayFinish(ctx context.Context, keys [][]byte, startTS, commitTS tso.Timestamp, ranges []kv.RangeRef) error {
	if err := mvcc.ValidateKeys(keys); err != nil {
		return err
	}
	if err := mvcc.ValidateCommitTS(startTS, commitTS); err != nil {
		return err
	}
	if err := s.admit(ranges...); err != nil {
		return err
	}
	return s.issued.check(ctx, commitTS)
}

// ResolveLock implements kv.Shard.
func (s *Shard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	if err := s.mayFinish(ctx, req.Keys, req.StartTS, req.CommitTS, req.Ranges); err != nil {
		return err
	}
	f := finishing{s: s, startTS: req.StartTS, commitTS: req.CommitTS, keys: req.Keys}
	f.decide = func(i int, v *view) (mvcc.Finish, error) {
		return mvcc.DecideResolve(req.Keys[i], req.StartTS, req.CommitTS, &v.Records)
	}
	return f.run(ctx)
}

// CheckTxnStatus implements kv.Shard.
//
// A transaction of which the primary's row has a fence, and neither record nor lock, has been rolled back, if a lock of it was met. Had it committed, collection would
// have removed its record only after all its locks were resolved, and none could have been set since. So that lock was set late: its own row
// has no fence if no record of it was removed there. Neither can it commit any more: the fence refuses the primary's lock. RollbackIfMissing says that such a lock was
// met, and has expired; before that the answer is that nothing is known. An owner that asks what has become of its commit has met none: its record may be one that was
// removed.
func (s *Shard) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	if err := s.admit(req.Range); err != nil {
		return mvcc.TxnStatus{}, err
	}
	for {
		v, err := s.look(ctx, req.StartTS, req.Primary)
		if err != nil {
			return mvcc.TxnStatus{}, err
		}
		if v.own == nil && v.recordsGone(req.StartTS) != nil && req.RollbackIfMissing && !req.ResolvingPessimistic {
			return mvcc.TxnStatus{RolledBack: true}, nil
		}
		st, do, pushTS, err := mvcc.DecideStatus(req, s.silentMillis(v.Lock), &v.Records)
		if err != nil {
			return mvcc.TxnStatus{}, err
		}
		done, err := true, nil
		if pushTS != 0 {
			l := v.own.lock
			l.MinCommitTS = pushTS
			done, err = s.replace(ctx, req.Primary, v.own, held(l))
		} else {
			done, err = s.carryOut(ctx, req.Primary, do, req.StartTS, 0, v)
		}
		if done || err != nil {
			return st, err
		}
	}
}

// replace changes a lock's cell, if it is still as it was.
func (s *Shard) replace(ctx context.Context, key []byte, before, l *heldLock) (done bool, err error) {
	change := widerow.NewMutation()
	change.Set(familyLock, l.column, l.value)
	return s.c.onlyIf(ctx, rowKey(key), lockIs(before.column, before.value), change)
}

// Heartbeat implements kv.Shard. It is one request for a lock that this process has written.
func (s *Shard) Heartbeat(ctx context.Context, req *kv.HeartbeatRequest) (uint64, error) {
	if err := s.admit(req.Range); err != nil {
		return 0, err
	}
	own := s.memo.get(req.StartTS, req.Primary)
	if own != nil && !bytes.Equal(own.lock.Primary, req.Primary) {
		own = nil
	}
	for {
		if own == nil {
			v, err := s.look(ctx, req.StartTS, req.Primary)
			if err == nil {
				err = v.recordsGone(req.StartTS)
			}
			if err == nil {
				err = mvcc.HeartbeatError(req.Primary, req.StartTS, &v.Records)
			}
			if err != nil {
				return 0, err
			}
			own = v.own
		}
		l := own.lock
		l.TTLMillis = max(l.TTLMillis, req.TTLMillis)
		l.LeaseMillis, l.HeardMillis = req.LeaseMillis, s.heardMillis()
		beaten := held(l)
		done, err := s.replace(ctx, req.Primary, own, beaten)
		switch {
		case err != nil:
			return 0, err
		case done:
			s.memo.put(req.Primary, beaten)
			return l.TTLMillis, nil
		}
		own = nil
	}
}

// CheckSecondaryLocks implements kv.Shard.
func (s *Shard) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	if err := mvcc.ValidateKeys(req.Keys); err != nil {
		return mvcc.SecondaryStatus{}, err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return mvcc.SecondaryStatus{}, err
	}
	for {
		views, err := s.gather(ctx, req.StartTS, req.Keys)
		if err != nil {
			return mvcc.SecondaryStatus{}, err
		}
		var all mvcc.Secondaries
		for i, v := range views {
			if err := v.recordsGone(req.StartTS); err != nil {
				return mvcc.SecondaryStatus{}, err
			}
			all.Add(req, i, s.silentMillis(v.Lock), &v.Records)
		}
		if !all.RollBackMissing(req) {
			if all.Status.CommitTS != 0 || all.Status.RolledBack {
				all.Status.Locks = nil
			}
			return all.Status, nil
		}
		// One record decides the transaction; with it the next look says so.
		i := all.Missing[0]
		if _, err := s.carryOut(ctx, req.Keys[i], mvcc.FinishRecord, req.StartTS, 0, views[i]); err != nil {
			return mvcc.SecondaryStatus{}, err
		}
		if len(all.Missing) > 1 {
			rest := make([][]byte, 0, len(all.Missing)-1)
			for _, i := range all.Missing[1:] {
				rest = append(rest, req.Keys[i])
			}
			err := s.Rollback(ctx, &kv.RollbackRequest{Ranges: req.Ranges, Keys: rest, StartTS: req.StartTS})
			if err != nil && errkind.Of(err) != errkind.Committed {
				return mvcc.SecondaryStatus{}, err
			}
		}
	}
}
