package sim

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// bug is a defect that a run injects, to verify that the checkers detect it.
type bug string

// The bugs. Clients, shards and the network have those that a wrapper can inject; they act occasionally.
const (
	ackPrewrite   bug = "a prewrite is acknowledged and not carried out"
	ackCommit     bug = "the commit of a primary is acknowledged and not carried out"
	hideCommit    bug = "a commit is carried out and reported as rolled back"
	noConflicts   bug = "prewrite does not look for newer commits"
	readLatest    bug = "reads see what was committed after their snapshot"
	readOld       bug = "reads see an older snapshot"
	passLocks     bug = "reads pass over locks without asking"
	stealLocks    bug = "a lock in the way is rolled back without asking"
	halfCommit    bug = "secondaries are rolled back after the primary has committed"
	oldTimestamps bug = "a client uses a timestamp twice"
	lyingDisk     bug = "the disk says synced and is not"
	keepRow       bug = "a deletion is lost"
	blindRefresh  bug = "a refresh is acknowledged and not carried out"
	leakySnapshot bug = "a scan leaves out a row now and then"
	noSharedLocks bug = "shared locks are neither taken nor checked"
	clearAll      bug = "notify cells are cleared whatever they are"
	dropNotify    bug = "a prewrite does without notifying observers"
	blindAcks     bug = "acknowledgements are not read"
	// dropCursorReads, clearFirst and onlyHints are defects of clients.
	clearFirst      bug = "notify cells are cleared before the commit"
	onlyHints       bug = "changes are found by hints alone"
	dropCursorReads bug = "what a cursor has read on behalf of a statement is forgotten when that runs again"
	// hastyCollection is a defect of the collector.
	hastyCollection bug = "garbage is collected while old locks are left"
	unprotected     bug = "nothing is kept for a node that is away"
)

// brokenShard returns s, with the plan's bug if it has one.
func (w *world) brokenShard(p *process, s kv.Shard) kv.Shard {
	switch {
	case w.plan.bug == "" || !w.faulty:
		return s
	case w.plan.bug == oneRequest:
		return oneRequestShard{s, p}
	}
	return &brokenShard{Shard: s, w: w, bug: w.plan.bug}
}

type brokenShard struct {
	kv.Shard
	w   *world
	bug bug
	n   atomic.Uint64
}

// nowAndThen decides whether a bug acts.
func (b *brokenShard) nowAndThen(x bug) bool {
	return b.bug == x && b.w.hash("bug", "", b.n.Add(1))%4 == 0
}

func (b *brokenShard) fresh() tso.Timestamp {
	ts, err := nodeOracle{b.w.nodes[0], b.w.nodes[0].life}.Now(context.Background())
	if err != nil {
		return 0
	}
	return ts
}

// readOptions returns the options of a read as the bug changes them.
func (b *brokenShard) readOptions(o kv.ReadOptions) kv.ReadOptions {
	if b.nowAndThen(readLatest) {
		if ts := b.fresh(); ts != 0 {
			o.ReadTS = ts
		}
	}
	if b.nowAndThen(readOld) {
		o.ReadTS = max(0, o.ReadTS-tso.Timestamp(40*tso.Tick))
	}
	return o
}

func (b *brokenShard) Get(ctx context.Context, r kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	if b.hidesAck(key) {
		return nil, nil
	}
	opts = b.readOptions(opts)
	value, err := b.Shard.Get(ctx, r, key, opts)
	if locked, ok := errkind.As[*mvcc.KeyLockedError](err); ok && b.bug == passLocks {
		opts.Bypass = append(opts.Bypass[:len(opts.Bypass):len(opts.Bypass)], locked.Lock.StartTS)
		return b.Shard.Get(ctx, r, key, opts)
	}
	return value, err
}

func (b *brokenShard) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	changed := *req
	changed.ReadOptions = b.readOptions(req.ReadOptions)
	resp, err := b.Shard.BatchGet(ctx, &changed)
	for i := range req.Keys {
		if err == nil && b.hidesAck(req.Keys[i]) {
			resp.Values[i] = nil
		}
	}
	return resp, err
}

// hidesAck reports whether a key is an acknowledgement that the bug hides.
func (b *brokenShard) hidesAck(key []byte) bool {
	return b.bug == blindAcks && bytes.Contains(key, []byte("-ack/"))
}

func (b *brokenShard) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (int, error) {
	changed := *req
	if b.bug == clearAll {
		changed.Cells = slices.Clone(req.Cells)
		for i := range changed.Cells {
			changed.Cells[i].UpTo = tso.MaxTimestamp
		}
	}
	return b.Shard.NotifyClear(ctx, &changed)
}

func (b *brokenShard) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	changed := *req
	changed.ReadOptions = b.readOptions(req.ReadOptions)
	page, err := b.Shard.Scan(ctx, &changed)
	if err == nil && len(page.Rows) > 1 && b.nowAndThen(leakySnapshot) {
		page.Rows = page.Rows[:len(page.Rows)-1]
	}
	return page, err
}

func (b *brokenShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	changed := *req
	switch {
	case b.nowAndThen(ackPrewrite) && !req.TryOnePC:
		return kv.PrewriteResponse{MinCommitTS: req.StartTS + tso.Tick}, nil
	case b.nowAndThen(dropNotify):
		changed.Notify, changed.Mutations = nil, slices.Clone(req.Mutations)
		for i := range changed.Mutations {
			changed.Mutations[i].Notify = 0
		}
	case b.nowAndThen(noConflicts):
		if ts := b.fresh(); ts != 0 {
			changed.ReadTS = ts
		}
	case b.nowAndThen(keepRow) && !req.TryOnePC:
		changed.Mutations = append(changed.Mutations[:0:0], req.Mutations...)
		for i := range changed.Mutations {
			if changed.Mutations[i].Op == mvcc.OpDelete {
				changed.Mutations[i].Op = mvcc.OpLock
			}
		}
	}
	if b.bug == noSharedLocks {
		changed.Mutations = slices.DeleteFunc(slices.Clone(req.Mutations), func(m mvcc.Mutation) bool { return m.Op == mvcc.OpCheckShared })
		if len(changed.Mutations) == 0 {
			return kv.PrewriteResponse{}, nil
		}
	}
	resp, err := b.Shard.Prewrite(ctx, &changed)
	if locked, ok := errkind.As[*mvcc.KeyLockedError](err); ok && b.bug == stealLocks {
		_ = b.Shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: req.Ranges, Keys: [][]byte{locked.Key}, StartTS: locked.Lock.StartTS})
		return b.Shard.Prewrite(ctx, &changed)
	}
	if err == nil && resp.OnePCCommitTS != 0 && b.nowAndThen(hideCommit) {
		return kv.PrewriteResponse{}, &mvcc.RolledBackError{StartTS: req.StartTS}
	}
	return resp, err
}

func (b *brokenShard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	resp, err := b.Shard.AcquireLocks(ctx, req)
	if err == nil && req.Shared && b.bug == noSharedLocks {
		err = b.Shard.ReleaseLocks(ctx, &kv.ReleaseLocksRequest{Ranges: req.Ranges, Keys: req.Keys, StartTS: req.StartTS, ForUpdateTS: tso.MaxTimestamp})
	}
	return resp, err
}

func (b *brokenShard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	switch {
	case req.Primary && b.nowAndThen(ackCommit):
		return nil
	case !req.Primary && b.nowAndThen(halfCommit):
		return b.Shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: req.Ranges, Keys: req.Keys, StartTS: req.StartTS})
	}
	err := b.Shard.Commit(ctx, req)
	if err == nil && req.Primary && b.nowAndThen(hideCommit) {
		return &mvcc.RolledBackError{StartTS: req.StartTS}
	}
	return err
}

func (b *brokenShard) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	if b.bug == blindRefresh {
		return nil
	}
	return b.Shard.Refresh(ctx, req)
}

// brokenOracle returns o, with the plan's bug if it has one.
func (w *world) brokenOracle(o tso.Oracle) tso.Oracle {
	if w.plan.bug != oldTimestamps || !w.faulty {
		return o
	}
	return &repeatingOracle{Oracle: o, w: w}
}

// repeatingOracle occasionally returns a timestamp twice.
type repeatingOracle struct {
	tso.Oracle
	w    *world
	mu   sync.Mutex
	n    uint64
	last tso.Timestamp
}

func (r *repeatingOracle) Now(ctx context.Context) (tso.Timestamp, error) {
	r.mu.Lock()
	r.n++
	last := r.last
	again := last != 0 && r.w.hash("timestamp", "", r.n)%4 == 0
	r.mu.Unlock()
	if again {
		return last, nil
	}
	ts, err := r.Oracle.Now(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, ts)
	return ts, err
}
