package mvcc

import (
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// StatusArgs is a status check of a transaction, sent to its primary. CallerTS is the snapshot of the read that
// encountered a lock, 0 if none; NowTS a new timestamp, by which expiry is determined.
type StatusArgs struct {
	Primary                  []byte
	StartTS, CallerTS, NowTS tso.Timestamp
	RollbackIfMissing        bool
	// ResolvingPessimistic: the caller has encountered a pessimistic lock. ForceSync: the caller has encountered a plain
	// lock of the transaction, although its primary is of an async commit.
	ResolvingPessimistic, ForceSync bool
}

// CheckTxnStatus returns a transaction's outcome, and decides it if its lock has expired, or is missing and the caller
// requested a decision. It pushes the lock of a live transaction above CallerTS. A returned outcome is durable. Errors:
// *TxnNotFoundError, *PrimaryMismatchError.
func (s *State) CheckTxnStatus(ctx context.Context, adm Admission, args *StatusArgs) (TxnStatus, error) {
	q := statusQuery{startTS: args.StartTS, callerTS: args.CallerTS, nowTS: args.NowTS, rollbackIfMissing: args.RollbackIfMissing,
		resolvingPessimistic: args.ResolvingPessimistic, forceSync: args.ForceSync}
	if q.callerTS == tso.MaxTimestamp {
		q.callerTS = 0 // a read of the latest value has no timestamp above which to push
	}
	var status TxnStatus
	keys := [1][]byte{args.Primary}
	_, err := s.finishKeys(ctx, adm, keys[:], args.StartTS, 0, func(w *writer, _ int, v *keyView) (finish, error) {
		if st := s.locks.largeStatus(args.Primary, q.startTS); st != nil {
			status = *st
			return finishNothing, nil
		}
		if !v.ownLock(q.startTS) {
			if err := w.lookForStatus(v, &q, args.Primary); err != nil {
				return finishNothing, err
			}
		}
		if v.lock != nil {
			q.silentMillis = s.locks.silent(v.lock)
		}
		st, do, pushTS, err := decideStatus(args.Primary, &q, v)
		if err != nil {
			return finishNothing, err
		}
		if pushTS != 0 {
			s.locks.push(v.lock, pushTS)
		}
		if st.CommitTS == 0 && !st.RolledBack {
			lock := v.lock.detached()
			lock.TTLMillis = ttlInForce(&lock, q.nowTS, q.silentMillis)
			st.Lock = &lock
		}
		status = st
		return do, nil
	})
	if err != nil {
		return TxnStatus{}, err
	}
	return status, nil
}

// lookForStatus is lookAll for a status check. If the records may have been collected, everything that the transaction
// has prewritten is finished, and the fence keeps it from prewriting again: releasing a pessimistic lock of it decides
// nothing. If that were refused the key could never be locked again.
func (w *writer) lookForStatus(v *keyView, q *statusQuery, primary []byte) error {
	err := w.lookAll(v, primary, q.startTS)
	if q.resolvingPessimistic && errkind.Of(err) == errkind.TooOld {
		return nil
	}
	return err
}
