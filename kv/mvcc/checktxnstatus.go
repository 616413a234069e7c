package mvcc

import (
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// StatusArgs is a question about a transaction's fate, asked of its primary. CallerTS is the read
// that met a lock, 0 if none; NowTS a fresh timestamp, by which the TTL is judged.
type StatusArgs struct {
	Primary                  []byte
	StartTS, CallerTS, NowTS tso.Timestamp
	RollbackIfMissing        bool
	// ResolvingPessimistic: the caller has met a pessimistic lock. ForceSync: a plain lock of the
	// transaction has been met, although its primary is of an async commit.
	ResolvingPessimistic, ForceSync bool
}

// CheckTxnStatus tells a transaction's fate, and decides it if its lock has expired, or is missing
// and the caller asked to decide. A lock that lives on is pushed above CallerTS. What it tells is
// durable. Errors: *TxnNotFoundError, *PrimaryMismatchError.
func (s *State) CheckTxnStatus(ctx context.Context, adm Admission, args *StatusArgs) (TxnStatus, error) {
	q := statusQuery{startTS: args.StartTS, callerTS: args.CallerTS, nowTS: args.NowTS, rollbackIfMissing: args.RollbackIfMissing,
		resolvingPessimistic: args.ResolvingPessimistic, forceSync: args.ForceSync}
	if q.callerTS == tso.MaxTimestamp {
		q.callerTS = 0 // a read of the latest value has no timestamp to be let pass at
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

// lookForStatus is lookAll for a question about a transaction's fate. Where the records may have been
// collected, all that the transaction has prewritten is finished, and the fence keeps it from
// prewriting any more: to let a pessimistic lock of it go decides nothing. If that were refused nobody
// could ever lock the key again.
func (w *writer) lookForStatus(v *keyView, q *statusQuery, primary []byte) error {
	err := w.lookAll(v, primary, q.startTS)
	if q.resolvingPessimistic && errkind.Of(err) == errkind.TooOld {
		return nil
	}
	return err
}
