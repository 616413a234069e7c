package kvtest

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// judged is the testing.TB of a case that is expected to fail.
type judged struct {
	testing.TB
	verdict string
}

func (j *judged) note(text string) {
	if j.verdict == "" {
		j.verdict = text
	}
}

func (j *judged) Error(args ...any)                 { j.note(fmt.Sprint(args...)) }
func (j *judged) Errorf(format string, args ...any) { j.note(fmt.Sprintf(format, args...)) }
func (j *judged) Fatal(args ...any)                 { j.Error(args...); runtime.Goexit() }
func (j *judged) Fatalf(format string, args ...any) { j.Errorf(format, args...); runtime.Goexit() }
func (j *judged) Skipf(string, ...any)              { runtime.Goexit() }
func (j *judged) Skip(...any)                       { runtime.Goexit() }

// runJudged runs one case on a mutant and returns why it failed, "" if it did not.
func runJudged(t *testing.T, c *Case, mutate func(kv.Shard) kv.Shard) string {
	j := &judged{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen := &coverage{requests: map[string]bool{}, errors: map[reflect.Type]bool{}}
		e := newEnv(j, func(_ testing.TB, oracle tso.Oracle) *Engine {
			store, err := kv.Open(context.Background(), kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true,
				ShardID: "s", CacheBytes: 1 << 20})
			if err != nil {
				panic(err)
			}
			t.Cleanup(func() { store.Close() })
			return &Engine{Router: mutantRouter{store.Router(), mutate}, Split: store.ForceSplit, Close: func() { store.Close() }}
		}, seen)
		defer e.cancel()
		if e.has(c.Needs) {
			c.run(e)
			e.replay()
		}
	}()
	<-done
	return j.verdict
}

// mutantRouter routes to shards that break the contract.
type mutantRouter struct {
	kv.Router
	mutate func(kv.Shard) kv.Shard
}

func (r mutantRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	d, s, err := r.Router.Locate(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	return d, r.mutate(s), nil
}

// mutant is a shard of which some requests are replaced.
type mutant struct {
	kv.Shard
	prewrite  func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error)
	commit    func(s kv.Shard, ctx context.Context, req kv.CommitRequest) error
	rollback  func(s kv.Shard, ctx context.Context, req kv.RollbackRequest) error
	get       func(s kv.Shard, ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error)
	scan      func(s kv.Shard, ctx context.Context, req kv.ScanRequest) (*kv.ScanResponse, error)
	status    func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error)
	resolve   func(s kv.Shard, ctx context.Context, req kv.ResolveLockRequest) error
	secondary func(s kv.Shard, ctx context.Context, req kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error)
	scanLock  func(s kv.Shard, ctx context.Context, req kv.ScanLockRequest) ([]mvcc.LockInfo, error)
	acquire   func(s kv.Shard, ctx context.Context, req kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error)
	refresh   func(s kv.Shard, ctx context.Context, req kv.RefreshRequest) error
	clear     func(s kv.Shard, ctx context.Context, req kv.NotifyClearRequest) (int, error)
}

func (m mutant) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (int, error) {
	if m.clear == nil {
		return m.Shard.NotifyClear(ctx, req)
	}
	return m.clear(m.Shard, ctx, *req)
}

func (m mutant) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if m.prewrite == nil {
		return m.Shard.Prewrite(ctx, req)
	}
	return m.prewrite(m.Shard, ctx, *req)
}

func (m mutant) Commit(ctx context.Context, req *kv.CommitRequest) error {
	if m.commit == nil {
		return m.Shard.Commit(ctx, req)
	}
	return m.commit(m.Shard, ctx, *req)
}

func (m mutant) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	if m.rollback == nil {
		return m.Shard.Rollback(ctx, req)
	}
	return m.rollback(m.Shard, ctx, *req)
}

func (m mutant) Get(ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	if m.get == nil {
		return m.Shard.Get(ctx, ref, key, opts)
	}
	return m.get(m.Shard, ctx, ref, key, opts)
}

func (m mutant) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	if m.scan == nil {
		return m.Shard.Scan(ctx, req)
	}
	return m.scan(m.Shard, ctx, *req)
}

func (m mutant) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	if m.status == nil {
		return m.Shard.CheckTxnStatus(ctx, req)
	}
	return m.status(m.Shard, ctx, *req)
}

func (m mutant) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	if m.secondary == nil {
		return m.Shard.CheckSecondaryLocks(ctx, req)
	}
	return m.secondary(m.Shard, ctx, *req)
}

func (m mutant) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	if m.scanLock == nil {
		return m.Shard.ScanLock(ctx, req)
	}
	return m.scanLock(m.Shard, ctx, *req)
}

func (m mutant) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	if m.resolve == nil {
		return m.Shard.ResolveLock(ctx, req)
	}
	return m.resolve(m.Shard, ctx, *req)
}

func (m mutant) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	if m.acquire == nil {
		return m.Shard.AcquireLocks(ctx, req)
	}
	return m.acquire(m.Shard, ctx, *req)
}

func (m mutant) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	if m.refresh == nil {
		return m.Shard.Refresh(ctx, req)
	}
	return m.refresh(m.Shard, ctx, *req)
}

// mutants break the contract in one way each.
var mutants = map[string]mutant{
	"a rollback leaves no record": {rollback: func(s kv.Shard, ctx context.Context, req kv.RollbackRequest) error {
		return s.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: req.Ranges, Keys: req.Keys, StartTS: req.StartTS})
	}},
	"a commit lies a tick too high": {commit: func(s kv.Shard, ctx context.Context, req kv.CommitRequest) error {
		req.CommitTS++
		return s.Commit(ctx, &req)
	}},
	"a commit of any key passes for the primary's": {commit: func(s kv.Shard, ctx context.Context, req kv.CommitRequest) error {
		req.Primary = false
		return s.Commit(ctx, &req)
	}},
	"commits up to start_ts alone conflict": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		req.ReadTS = 0
		return s.Prewrite(ctx, &req)
	}},
	"conflicts are not looked for": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		req.ReadTS = req.StartTS + 1<<40
		return s.Prewrite(ctx, &req)
	}},
	"keys that exist are inserted": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		ms := append([]mvcc.Mutation(nil), req.Mutations...)
		for i := range ms {
			ms[i].MustBeNew = false
		}
		req.Mutations = ms
		return s.Prewrite(ctx, &req)
	}},
	"the bound of the commit_ts is ignored": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		req.MaxCommitTS = 0
		return s.Prewrite(ctx, &req)
	}},
	"reads are not validated": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		req.Reads = nil
		return s.Prewrite(ctx, &req)
	}},
	"the primary's lock does not list the secondaries": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		req.Secondaries = nil
		return s.Prewrite(ctx, &req)
	}},
	"a lost lock is not noticed": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		ms := append([]mvcc.Mutation(nil), req.Mutations...)
		for i := range ms {
			if ms[i].Op != mvcc.OpCheckShared {
				ms[i].LockedAt = 0
			}
		}
		req.Mutations = ms
		return s.Prewrite(ctx, &req)
	}},
	"a read shows an empty value as absent": {get: func(s kv.Shard, ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
		v, err := s.Get(ctx, ref, key, opts)
		if len(v) == 0 {
			v = nil
		}
		return v, err
	}},
	"a read reads below its snapshot": {get: func(s kv.Shard, ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
		if opts.ReadTS != tso.MaxTimestamp {
			opts.ReadTS--
		}
		return s.Get(ctx, ref, key, opts)
	}},
	"resolved transactions are ignored": {get: func(s kv.Shard, ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
		opts.Resolved = nil
		return s.Get(ctx, ref, key, opts)
	}},
	"a page loses its last row": {scan: func(s kv.Shard, ctx context.Context, req kv.ScanRequest) (*kv.ScanResponse, error) {
		page, err := s.Scan(ctx, &req)
		if err == nil && page.ResumeKey != nil && len(page.Rows) > 1 {
			page.Rows = page.Rows[:len(page.Rows)-1]
		}
		return page, err
	}},
	"a page hides its locks": {scan: func(s kv.Shard, ctx context.Context, req kv.ScanRequest) (*kv.ScanResponse, error) {
		page, err := s.Scan(ctx, &req)
		if err == nil {
			page.Locked = nil
		}
		return page, err
	}},
	"a missing primary is decided by anybody": {status: func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
		req.RollbackIfMissing = true
		return s.CheckTxnStatus(ctx, &req)
	}},
	"readers do not push": {status: func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
		req.CallerTS = 0
		return s.CheckTxnStatus(ctx, &req)
	}},
	"a pessimistic lock decides its transaction": {status: func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
		req.ResolvingPessimistic = false
		return s.CheckTxnStatus(ctx, &req)
	}},
	"a status check ignores that the process has ended": {status: func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
		req.ProcessEnded = false
		return s.CheckTxnStatus(ctx, &req)
	}},
	"every process has ended": {status: func(s kv.Shard, ctx context.Context, req kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
		req.ProcessEnded = true
		return s.CheckTxnStatus(ctx, &req)
	}},
	"a check of secondaries ignores that the process has ended": {secondary: func(s kv.Shard, ctx context.Context, req kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
		req.ProcessEnded = false
		return s.CheckSecondaryLocks(ctx, &req)
	}},
	"locks of all processes are those of one": {scanLock: func(s kv.Shard, ctx context.Context, req kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
		req.Process = 0
		return s.ScanLock(ctx, &req)
	}},
	"pessimistic locks have no process": {acquire: func(s kv.Shard, ctx context.Context, req kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
		req.Process = 0
		return s.AcquireLocks(ctx, &req)
	}},
	"resolution always rolls back": {resolve: func(s kv.Shard, ctx context.Context, req kv.ResolveLockRequest) error {
		req.CommitTS = 0
		return s.ResolveLock(ctx, &req)
	}},
	"expired locks are skipped": {acquire: func(s kv.Shard, ctx context.Context, req kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
		res, err := s.AcquireLocks(ctx, &req)
		if locked, ok := errkind.As[*mvcc.KeyLockedError](err); ok && req.SkipLocked {
			req.Alive = locked.Lock.StartTS
			return s.AcquireLocks(ctx, &req)
		}
		return res, err
	}},
	"shared locks are exclusive": {acquire: func(s kv.Shard, ctx context.Context, req kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
		req.Shared = false
		return s.AcquireLocks(ctx, &req)
	}},
	"a lock is granted as of the snapshot": {acquire: func(s kv.Shard, ctx context.Context, req kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
		res, err := s.AcquireLocks(ctx, &req)
		for i := range res.LockedAt {
			res.LockedAt[i] = req.ReadTS
		}
		return res, err
	}},
	"a refresh finds nothing": {refresh: func(s kv.Shard, ctx context.Context, req kv.RefreshRequest) error {
		req.FromTS = req.ToTS
		return s.Refresh(ctx, &req)
	}},
	"a clear is unconditional": {clear: func(s kv.Shard, ctx context.Context, req kv.NotifyClearRequest) (int, error) {
		cells := append([]kv.NotifyUpTo(nil), req.Cells...)
		for i := range cells {
			cells[i].UpTo = tso.MaxTimestamp
		}
		req.Cells = cells
		return s.NotifyClear(ctx, &req)
	}},
	"locks lose their notify sets": {prewrite: func(s kv.Shard, ctx context.Context, req kv.PrewriteRequest) (kv.PrewriteResponse, error) {
		if req.TryOnePC {
			return s.Prewrite(ctx, &req)
		}
		ms := append([]mvcc.Mutation(nil), req.Mutations...)
		for i := range ms {
			ms[i].Notify = 0
		}
		req.Mutations = ms
		return s.Prewrite(ctx, &req)
	}},
	"a refresh counts its own changes": {refresh: func(s kv.Shard, ctx context.Context, req kv.RefreshRequest) error {
		req.StartTS = 1
		return s.Refresh(ctx, &req)
	}},
}

// Goal: the suite can fail. Method: shards that break the contract in one way each; some case must report each.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it tests the suite, minutes long with the race detector")
	}
	cases := Cases()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			for i := range cases {
				if runJudged(t, &cases[i], func(s kv.Shard) kv.Shard { mutated := m; mutated.Shard = s; return mutated }) != "" {
					return
				}
			}
			t.Error("no case noticed")
		})
	}
}
