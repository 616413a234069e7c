package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/tso"
)

// CheckSecondaryLocksRequest: Keys ascending. Keys without lock or record are decided, by a rollback
// record, if Owner (the transaction's own client aborts it) or if NowTS != 0: the caller has found
// the primary's TTL run out as of NowTS, and so have those of the locks met. ProcessEnded: the TTL does not matter.
type CheckSecondaryLocksRequest struct {
	Ranges         []RangeRef
	Keys           [][]byte
	StartTS, NowTS tso.Timestamp
	Owner          bool
	ProcessEnded   bool
}

// CheckSecondaryLocks returns the status of an async commit according to keys. A missing lock, if it may be decided,
// gets a rollback record, which decides the transaction. A returned outcome is durable.
func (s *State) CheckSecondaryLocks(ctx context.Context, adm Admission, args *CheckSecondaryLocksRequest) (SecondaryStatus, error) {
	if err := validateKeys(args.Keys); err != nil {
		return SecondaryStatus{}, err
	}
	if err := s.BeginRead(ctx, args.StartTS); err != nil {
		return SecondaryStatus{}, err
	}
	w := s.newWriter()
	defer w.release()
	for {
		status, wait, err := w.checkSecondaries(adm, args)
		if wait == nil {
			return status, err
		}
		if err := s.wait(ctx, wait); err != nil {
			return SecondaryStatus{}, err
		}
	}
}

// checkSecondaries is one attempt.
func (w *writer) checkSecondaries(adm Admission, args *CheckSecondaryLocksRequest) (st SecondaryStatus, wait <-chan struct{}, err error) {
	w.latchKeys(args.Keys)
	f := w.newFinisher(args.StartTS, 0)
	if err := adm.Admit(); err != nil {
		f.abort()
		return SecondaryStatus{}, nil, err
	}
	alive := false
	var missing []int
	for i, key := range args.Keys {
		var v keyView
		if _, wait := w.lookLock(&v, key, args.StartTS); wait != nil {
			f.abort()
			return SecondaryStatus{}, wait, nil
		}
		if !v.ownLock(args.StartTS) {
			if err := w.lookAll(&v, key, args.StartTS); err != nil {
				f.abort()
				return SecondaryStatus{}, nil, err
			}
		}
		switch decideSecondary(args.StartTS, &v) {
		case secondaryLocked:
			st.Locks = append(st.Locks, KeyLockedError{Key: bytes.Clone(key), Lock: v.lock.detached()})
			alive = alive || !args.ProcessEnded && !expired(v.lock, args.NowTS, w.s.locks.silent(v.lock))
		case secondaryCommitted:
			st.CommitTS = v.ownCommitTS
		case secondaryRolledBack:
			st.RolledBack = true
		case secondaryMissing:
			missing = append(missing, i)
		}
	}
	if st.CommitTS != 0 && st.RolledBack {
		f.abort()
		return SecondaryStatus{}, nil, corrupt(args.Keys[0], "one transaction has been committed and rolled back")
	}
	if decideMissingSecondary(&st, args.Owner, args.NowTS != 0 || args.ProcessEnded, alive) {
		for _, i := range missing {
			e, _ := w.s.locks.get(args.Keys[i])
			f.add(finishRecord, args.Keys[i], e)
			st.RolledBack = true
		}
	}
	if st.CommitTS != 0 || st.RolledBack {
		st.Locks = nil
	}
	_, err = f.run()
	return st, nil, err
}
