package mvcc

import (
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// CheckTxnStatusRequest: CallerTS is the read that met the lock (0: none; pushes min_commit_ts
// above it), NowTS a fresh timestamp of the oracle, against which the TTL is judged.
type CheckTxnStatusRequest struct {
	Range                    RangeRef
	Primary                  []byte
	StartTS, CallerTS, NowTS tso.Timestamp
	RollbackIfMissing        bool
	// ResolvingPessimistic: the caller has encountered a pessimistic lock, whose transaction may still be growing: its
	// end is not recorded. See TxnStatus.Undecided.
	ResolvingPessimistic bool
	// ProcessEnded: the transaction's process has ended, so the TTL of its locks does not matter.
	ProcessEnded bool
	// ForceSync treats the primary of an async commit as a plain one: some key carries a plain lock.
	ForceSync bool
}

func (a *CheckTxnStatusRequest) query() statusQuery {
	q := statusQuery{startTS: a.StartTS, callerTS: a.CallerTS, nowTS: a.NowTS, rollbackIfMissing: a.RollbackIfMissing,
		resolvingPessimistic: a.ResolvingPessimistic, processEnded: a.ProcessEnded, forceSync: a.ForceSync}
	if q.callerTS == tso.MaxTimestamp {
		q.callerTS = 0 // a read of the latest value has no timestamp above which to push
	}
	return q
}

// CheckTxnStatus returns a transaction's outcome, and decides it if its lock has expired, or is missing and the caller
// requested a decision. It pushes the lock of a live transaction above CallerTS. A returned outcome is durable. Errors:
// *TxnNotFoundError, *PrimaryMismatchError.
func (s *State) CheckTxnStatus(ctx context.Context, adm Admission, args *CheckTxnStatusRequest) (TxnStatus, error) {
	q := args.query()
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
