package mvcc

import (
	"errors"
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: the pessimistic locks of a transaction that crashed long ago, so that its start is below the safe point, are
// resolved like those of one that has just crashed; its outcome is still not reported. Method: a transaction locks two
// keys and stops; collection advances beyond its start; then the status of its primary is checked, before and after its
// TTL, on behalf of a pessimistic lock and of another.
func TestPessimisticLockOlderThanTheSafePoint(t *testing.T) {
	w := newWorld(t, true, nil)
	ctx := t.Context()
	const ttl = 3000
	p, q := []byte("p"), []byte("q")
	dead := w.now()
	acquire := func(start tso.Timestamp, primary []byte, keys ...[]byte) error {
		_, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: keys, Primary: primary, StartTS: start, TTLMillis: ttl})
		return err
	}
	if err := acquire(dead, p, p, q); err != nil {
		t.Fatal(err)
	}
	w.put("other", "value")
	safePoint := w.now()
	w.fence(safePoint)
	w.collectAll(safePoint, nil)
	if err := acquire(dead, p, []byte("r")); !isTooOld(err) {
		t.Fatalf("the transaction goes on: %v", err)
	}

	ask := func(after int64, pessimistic, rollback bool) (TxnStatus, error) {
		return w.CheckTxnStatus(ctx, admitAll{}, &CheckTxnStatusRequest{Primary: p, StartTS: dead, RollbackIfMissing: rollback,
			NowTS: tso.FromPhysical(dead.Physical() + after), ResolvingPessimistic: pessimistic})
	}
	if st, err := ask(ttl+1, false, true); !isTooOld(err) {
		t.Errorf("its status: %+v, %v", st, err)
	}
	if st, err := ask(ttl, true, false); err != nil || st.RolledBack || st.Lock == nil {
		t.Errorf("before its TTL has run out: %+v, %v", st, err)
	}
	if st, err := ask(ttl+1, true, false); err != nil || !st.RolledBack || !st.Undecided {
		t.Errorf("after its TTL has run out: %+v, %v", st, err)
	}
	var missing *TxnNotFoundError
	if st, err := ask(ttl+1, true, false); !errors.As(err, &missing) {
		t.Errorf("without a lock on its primary: %+v, %v", st, err)
	}
	if st, err := ask(ttl+1, true, true); err != nil || !st.RolledBack || !st.Undecided {
		t.Errorf("without a lock on its primary, for a reader of an expired lock: %+v, %v", st, err)
	}
	if err := w.ReleaseLocks(admitAll{}, [][]byte{q}, dead, tso.MaxTimestamp); err != nil {
		t.Error(err)
	}
	if err := acquire(w.now(), p, p, q); err != nil {
		t.Errorf("lock the keys: %v", err)
	}
	if n := len(w.records(tagStatus)); n != 0 {
		t.Errorf("%d records of an unknown outcome", n)
	}
}
