package mvcc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepOracle counts from zero; tests move its clock.
type stepOracle struct {
	mu    sync.Mutex
	last  tso.Timestamp
	moved time.Duration
}

func (o *stepOracle) Now(context.Context) (tso.Timestamp, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last += tso.Tick
	return o.last, nil
}

func (o *stepOracle) advance(millis int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved += time.Duration(millis) * time.Millisecond
	o.last = tso.FromPhysical(o.last.Physical() + millis)
}

// clock is the store's: it moves with the oracle's.
func (o *stepOracle) clock() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.moved
}

// admitAll lets every request in.
type admitAll struct{}

func (admitAll) Admit() error      { return nil }
func (admitAll) AdmitReads() error { return nil }

func admitEach([]Mutation, bool) Admission { return admitAll{} }

// world is a state on a filesystem that can crash, with its own oracle.
type world struct {
	t        testing.TB
	fs       *storage.MemFS
	wrap     func(storage.FS) storage.FS
	oracle   *stepOracle
	embedded bool
	eng      *storage.Engine
	*State
	onFatal   func(error)
	packLocks int
}

func newWorld(t testing.TB, embedded bool, wrap func(storage.FS) storage.FS) *world {
	return newPackingWorld(t, embedded, wrap, 0)
}

// packAll is for newPackingWorld: every lock is packed that may be.
const packAll = -1

func newPackingWorld(t testing.TB, embedded bool, wrap func(storage.FS) storage.FS, packLocks int) *world {
	w := &world{t: t, fs: storage.NewCrashableMemFS(), oracle: &stepOracle{}, embedded: embedded, wrap: wrap, packLocks: packLocks}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	var fs storage.FS = w.fs
	if w.wrap != nil {
		fs = w.wrap(fs)
	}
	var err error
	if w.eng, err = storage.Open(storage.Options{Dir: "d", FS: fs, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, OnFatal: w.onFatal}); err != nil {
		w.t.Fatal(err)
	}
	w.State, err = Open(context.Background(), Options{Engine: w.eng, Oracle: w.oracle, Embedded: w.embedded, Clock: w.oracle.clock, PackLocks: w.packLocks,
		ScanBlockRows: 2, // Tests have few rows.
		SafePointKey:  []byte{0x01, 's', 0}, CollectedKey: []byte{0x01, 'c', 0}, KeptKey: []byte{0x01, 'k', 0}, ShortValueBytes: 8, OnePCShortValueBytes: 16})
	if err != nil {
		w.t.Fatal(err)
	}
}

// withoutScanCache makes all scans read with iterators.
func (w *world) withoutScanCache() {
	w.scans = newScanCache(&Options{ScanCacheBytes: -1, Clock: w.oracle.clock})
}

func (w *world) close() {
	if w.eng == nil {
		return
	}
	if err := w.eng.Close(); err != nil {
		w.t.Error(err)
	}
	w.eng = nil
}

// crash cuts the power: what was not synced is lost.
func (w *world) crash() {
	w.t.Helper()
	crashed := storage.CrashClone(w.fs, 0, nil)
	w.close()
	w.fs = crashed
	w.open()
}

func (w *world) now() tso.Timestamp {
	ts, _ := w.oracle.Now(context.Background())
	return ts
}

// show formats a timestamp as milliseconds:counter, and +subtick if there is one.
func show(ts tso.Timestamp) string {
	if ts == tso.MaxTimestamp {
		return "max"
	}
	s := fmt.Sprintf("%d:%d", ts.Physical(), ts>>tso.SubtickBits&(1<<tso.LogicalBits-1))
	if sub := ts % tso.Tick; sub != 0 {
		s += fmt.Sprintf("+%d", sub)
	}
	return s
}

func parseTS(s string) (tso.Timestamp, error) {
	s, sub, _ := strings.Cut(s, "+")
	ms, count, ok := strings.Cut(s, ":")
	if !ok {
		return 0, fmt.Errorf("timestamp %q is not ms:count", s)
	}
	m, err1 := strconv.ParseInt(ms, 10, 64)
	c, err2 := strconv.ParseUint(count, 10, 64)
	var n uint64
	var err3 error
	if sub != "" {
		n, err3 = strconv.ParseUint(sub, 10, 64)
	}
	return tso.FromPhysical(m) + tso.Timestamp(c)<<tso.SubtickBits + tso.Timestamp(n), errors.Join(err1, err2, err3)
}

// showError formats an error of the protocol briefly.
func showError(err error) string {
	var locked *KeyLockedError
	var conflict *WriteConflictError
	var exists *KeyExistsError
	var committed *AlreadyCommittedError
	var rolledBack *RolledBackError
	var notFound *LockNotFoundError
	var expired *CommitTSExpiredError
	var noTxn *TxnNotFoundError
	var mismatch *PrimaryMismatchError
	var future *TSInFutureError
	var old *TooOldError
	var lost *LockLostError
	var changed *RefreshConflictError
	var deadlock *DeadlockError
	switch {
	case errors.As(err, &lost):
		return fmt.Sprintf("lost the lock on %s", lost.Key)
	case errors.As(err, &changed):
		return fmt.Sprintf("%s was changed by %s at %s", changed.Key, show(changed.StartTS), show(changed.CommitTS))
	case errors.As(err, &deadlock):
		var cycle []string
		for _, ts := range deadlock.Cycle {
			cycle = append(cycle, show(ts))
		}
		return fmt.Sprintf("deadlock on %s: %s", deadlock.Key, strings.Join(cycle, " → "))
	case errors.As(err, &locked):
		return "locked " + showLock(locked.Key, &locked.Lock)
	case errors.As(err, &conflict):
		return fmt.Sprintf("write conflict on %s with %s, committed at %s", conflict.Key, show(conflict.ConflictingStartTS), show(conflict.ConflictingCommitTS))
	case errors.As(err, &exists):
		return fmt.Sprintf("key %s exists", exists.Key)
	case errors.As(err, &committed):
		return "already committed at " + show(committed.CommitTS)
	case errors.As(err, &rolledBack):
		return "rolled back"
	case errors.As(err, &notFound):
		return fmt.Sprintf("no lock on %s", notFound.Key)
	case errors.As(err, &expired):
		return "commit_ts expired, minimum " + show(expired.MinCommitTS)
	case errors.As(err, &noTxn):
		return "transaction not found"
	case errors.As(err, &mismatch):
		return fmt.Sprintf("%s is not the primary, %s is", mismatch.Key, mismatch.Lock.Primary)
	case errors.As(err, &future):
		return "timestamp in the future"
	case errors.As(err, &old):
		return "too old, safe point " + show(old.SafePoint)
	default:
		return "error: " + err.Error()
	}
}

func showLock(key []byte, l *Lock) string {
	s := fmt.Sprintf("%s by %s, primary %s, ttl %d, ", key, show(l.StartTS), l.Primary, l.TTLMillis)
	switch {
	case l.Op == OpPessimistic && l.Shared:
		return s + "shared as of " + show(l.ForUpdateTS)
	case l.Op == OpPessimistic:
		return s + "locked as of " + show(l.ForUpdateTS)
	}
	s += fmt.Sprintf("min_commit_ts %s, %s", show(l.MinCommitTS), showOp(l.Op))
	if l.Async {
		s += ", async"
	}
	if len(l.Secondaries) > 0 {
		s += fmt.Sprintf(" with %s", l.Secondaries)
	}
	return s
}

func showOp(op Op) string {
	return map[Op]string{OpPut: "put", OpDelete: "delete", OpLock: "lock", OpCheckNotExists: "absent"}[op]
}
