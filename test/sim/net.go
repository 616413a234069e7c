package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

var (
	errLost = errors.New("connection lost")
	errDead = errors.New("the process is dead")
)

// message is a request in flight, or its answer.
type message struct {
	from *process
	to   *node // nil: the oracle
	kind string
	// key, startTS and size identify the request in the order and the trace.
	key     []byte
	startTS tso.Timestamp
	size    int
	nth     int // among equal ones of its sender
	// detail is what a request to a table does, for the order and the trace.
	detail string
	// deadline, if it is not zero, is when the request is not executed any more.
	deadline time.Time

	execute func(ctx context.Context, s kv.Shard) (any, error)
	answer  chan answered // nil: a copy, without a receiver of the answer

	answering bool // executed; result is in flight
	result    answered
	notBefore time.Time
	settled   bool // the sender has its answer, or has given up
}

type answered struct {
	value any
	err   error
}

// order compares messages by content, so that the seed's choice among them does not depend on the order of their
// arrival.
func (m *message) order(o *message) int {
	return cmp.Or(cmp.Compare(m.from.id, o.from.id), cmp.Compare(m.startTS, o.startTS), strings.Compare(m.kind, o.kind),
		bytes.Compare(m.key, o.key), cmp.Compare(m.size, o.size), strings.Compare(m.target(), o.target()), strings.Compare(m.detail, o.detail), cmp.Compare(m.nth, o.nth))
}

// isCut reports whether the message cannot be delivered. For the scheduler.
func (m *message) isCut() bool {
	return m.from.cut[m.to] || m.to != nil && m.to.away && m.from.id>>16 >= collectorID
}

// target names the receiver of the message.
func (m *message) target() string {
	if m.to == nil {
		return "oracle"
	}
	return m.to.name
}

func (m *message) String() string {
	s := fmt.Sprintf("%s→%s %s", m.from.name, m.target(), m.kind)
	if m.key != nil {
		s += fmt.Sprintf(" %q", m.key)
	}
	if m.size > 1 {
		s += fmt.Sprintf("+%d", m.size-1)
	}
	if m.startTS != 0 {
		s += fmt.Sprintf(" @%d", m.startTS)
	}
	if m.detail != "" {
		s += " " + m.detail
	}
	if m.answering {
		s += fmt.Sprintf(" ⇒ %s", m.result)
	}
	return s
}

func (a answered) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	switch v := a.value.(type) {
	case []byte:
		return fmt.Sprintf("%q", v)
	case tso.Timestamp, bool:
		return fmt.Sprint(v)
	case kv.PrewriteResponse:
		return fmt.Sprintf("%+v", v)
	case kv.AcquireLocksResponse:
		return fmt.Sprint(v.LockedAt)
	case mvcc.TxnStatus:
		if v.Lock != nil {
			return fmt.Sprintf("alive, min_commit_ts %d", v.Lock.MinCommitTS)
		}
		return fmt.Sprintf("committed at %d, rolled back %v, undecided %v", v.CommitTS, v.RolledBack, v.Undecided)
	case mvcc.SecondaryStatus:
		return fmt.Sprintf("committed at %d, rolled back %v, %d locks", v.CommitTS, v.RolledBack, len(v.Locks))
	}
	return "ok"
}

// process is one process of a client. When it dies the client gets another one. What it has sent stays in flight.
type process struct {
	id   int
	name string
	w    *world
	dead bool // guarded by w.mu
	cut  map[*node]bool
	sent map[string]int // guarded by w.mu
}

// shardConn is a process's connection to a node: a kv.Shard whose requests are messages.
type shardConn struct {
	p  *process
	to *node
}

var _ kv.Shard = (*shardConn)(nil)

func (m *message) unavailable() error {
	if m.to == nil {
		return &tso.UnavailableError{Err: errLost}
	}
	return &kv.UnavailableError{Shard: m.to.name, Err: errLost}
}

// send passes a message to the scheduler and waits for the answer.
func (p *process) send(ctx context.Context, m *message) (any, error) {
	w := p.w
	m.from, m.answer = p, make(chan answered, 1)
	w.mu.Lock()
	if p.dead {
		w.mu.Unlock()
		return nil, m.unavailable()
	}
	id := fmt.Sprintf("%s %s %q %d %d %s", m.target(), m.kind, m.key, m.startTS, m.size, m.detail)
	p.sent[id]++
	m.nth = p.sent[id]
	w.inbox = append(w.inbox, m)
	w.mu.Unlock()
	w.wake()
	select {
	case a := <-m.answer:
		return a.value, a.err
	case <-ctx.Done():
		w.mu.Lock()
		m.settled = true
		w.mu.Unlock()
		return nil, ctx.Err()
	}
}

func request[T any](c *shardConn, ctx context.Context, m *message, do func(context.Context, kv.Shard) (T, error)) (T, error) {
	m.to = c.to
	m.execute = func(ctx context.Context, s kv.Shard) (any, error) { return do(ctx, s) }
	value, err := c.p.send(ctx, m)
	t, _ := value.(T)
	return t, err
}

func command(c *shardConn, ctx context.Context, m *message, do func(context.Context, kv.Shard) error) error {
	m.to = c.to
	m.execute = func(ctx context.Context, s kv.Shard) (any, error) { return nil, do(ctx, s) }
	_, err := c.p.send(ctx, m)
	return err
}

func firstOf(keys [][]byte) []byte {
	if len(keys) == 0 {
		return nil
	}
	return bytes.Clone(keys[0])
}

func (c *shardConn) Get(ctx context.Context, r kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	key, opts = bytes.Clone(key), cloneRead(opts)
	return request(c, ctx, &message{kind: "get", key: key, startTS: opts.ReadTS},
		func(ctx context.Context, s kv.Shard) ([]byte, error) { return s.Get(ctx, r, key, opts) })
}

func (c *shardConn) GetLatest(ctx context.Context, r kv.RangeRef, key []byte, floor tso.Timestamp) (kv.LatestValue, error) {
	key = bytes.Clone(key)
	return request(c, ctx, &message{kind: "getlatest", key: key, startTS: floor},
		func(ctx context.Context, s kv.Shard) (kv.LatestValue, error) { return s.GetLatest(ctx, r, key, floor) })
}

func (c *shardConn) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	req = cloneBatchGet(req)
	return request(c, ctx, &message{kind: "batchget", key: firstOf(req.Keys), startTS: req.ReadTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) (*kv.BatchGetResponse, error) { return s.BatchGet(ctx, req) })
}

func (c *shardConn) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	req = cloneScan(req)
	return request(c, ctx, &message{kind: "scan", key: req.Spans[0].Start, startTS: req.ReadTS, size: len(req.Spans)},
		func(ctx context.Context, s kv.Shard) (*kv.ScanResponse, error) { return s.Scan(ctx, req) })
}

// Capabilities are those of a shard over a network.
func (c *shardConn) Capabilities() kv.Capabilities {
	return kv.Capabilities{OnePhase: true, Async: true, ReadLatest: true, LockQueue: true, ReadFence: true, LargeCommit: c.p.w.plan.embedded}
}

// CommitLarge is a call within the process that client and store share: it is answered whatever the caller's context,
// and the caller keeps the write set. If the process dies, the client does not learn the outcome.
func (c *shardConn) CommitLarge(ctx context.Context, req *kv.CommitLargeRequest) (kv.CommitLargeResponse, error) {
	w := c.p.w
	if !w.plan.embedded {
		return kv.CommitLargeResponse{}, kv.ErrUnsupported
	}
	dead := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return c.p.dead
	}
	resp, err := request(c, context.WithoutCancel(ctx), &message{kind: "large", key: bytes.Clone(req.Primary), startTS: req.StartTS, size: req.Set.Len()},
		func(running context.Context, s kv.Shard) (kv.CommitLargeResponse, error) {
			if dead() {
				return kv.CommitLargeResponse{}, errDead
			}
			running, cancel := context.WithCancel(running)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			slow := *req
			slow.Set = &slowSet{req.Set, w}
			return s.CommitLarge(running, &slow)
		})
	if err != nil && dead() {
		err = &percolator.UndeterminedError{StartTS: req.StartTS, Err: errDead}
	}
	if err == nil && resp.CommitTS != 0 {
		w.large.Add(1)
	}
	return resp, err
}

func (c *shardConn) WaitForRelease(context.Context, []byte, tso.Timestamp) error {
	return kv.ErrUnsupported
}

func (c *shardConn) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	req = clonePrewrite(req)
	kind := "prewrite"
	switch {
	case req.TryOnePC:
		kind = "onepc"
	case req.Async:
		kind = "async"
	}
	return request(c, ctx, &message{kind: kind, key: req.Mutations[0].Key, startTS: req.StartTS, size: len(req.Mutations)},
		func(ctx context.Context, s kv.Shard) (kv.PrewriteResponse, error) { return s.Prewrite(ctx, req) })
}

func (c *shardConn) Commit(ctx context.Context, req *kv.CommitRequest) error {
	req = cloneCommit(req)
	kind := "commit"
	if req.Primary {
		kind = "commit-primary"
	}
	return command(c, ctx, &message{kind: kind, key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) error { return s.Commit(ctx, req) })
}

func (c *shardConn) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	req = cloneRollback(req)
	return command(c, ctx, &message{kind: "rollback", key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) error { return s.Rollback(ctx, req) })
}

func (c *shardConn) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	req = cloneStatus(req)
	return request(c, ctx, &message{kind: "status", key: req.Primary, startTS: req.StartTS},
		func(ctx context.Context, s kv.Shard) (mvcc.TxnStatus, error) { return s.CheckTxnStatus(ctx, req) })
}

func (c *shardConn) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	req = cloneResolve(req)
	return command(c, ctx, &message{kind: "resolve", key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) error { return s.ResolveLock(ctx, req) })
}

func (c *shardConn) Heartbeat(ctx context.Context, req *kv.HeartbeatRequest) (uint64, error) {
	req = cloneHeartbeat(req)
	return request(c, ctx, &message{kind: "heartbeat", key: req.Primary, startTS: req.StartTS},
		func(ctx context.Context, s kv.Shard) (uint64, error) { return s.Heartbeat(ctx, req) })
}

func (c *shardConn) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	req = cloneScanLock(req)
	return request(c, ctx, &message{kind: "scanlock", key: req.Span.Start, startTS: req.MaxTS},
		func(ctx context.Context, s kv.Shard) ([]mvcc.LockInfo, error) { return s.ScanLock(ctx, req) })
}

func (c *shardConn) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	req = cloneAcquire(req)
	return request(c, ctx, &message{kind: "lock", key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) (kv.AcquireLocksResponse, error) {
			return s.AcquireLocks(ctx, req)
		})
}

func (c *shardConn) ReleaseLocks(ctx context.Context, req *kv.ReleaseLocksRequest) error {
	req = cloneRelease(req)
	return command(c, ctx, &message{kind: "release", key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) error { return s.ReleaseLocks(ctx, req) })
}

func (c *shardConn) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	req = cloneSecondaries(req)
	return request(c, ctx, &message{kind: "secondaries", key: firstOf(req.Keys), startTS: req.StartTS, size: len(req.Keys)},
		func(ctx context.Context, s kv.Shard) (mvcc.SecondaryStatus, error) {
			return s.CheckSecondaryLocks(ctx, req)
		})
}

func (c *shardConn) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	req = cloneRefresh(req)
	return command(c, ctx, &message{kind: "refresh", key: req.Spans[0].Start, startTS: req.StartTS, size: len(req.Spans)},
		func(ctx context.Context, s kv.Shard) error { return s.Refresh(ctx, req) })
}

func (c *shardConn) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	return request(c, ctx, &message{kind: "safepoint", startTS: ts},
		func(ctx context.Context, s kv.Shard) (tso.Timestamp, error) { return s.SetSafePoint(ctx, ts) })
}

func (c *shardConn) SyncLog(ctx context.Context) (uint64, error) {
	return request(c, ctx, &message{kind: "synclog"}, func(ctx context.Context, s kv.Shard) (uint64, error) { return s.SyncLog(ctx) })
}

func (c *shardConn) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	r := *req
	return request(c, ctx, &message{kind: "collect", startTS: r.SafePoint},
		func(ctx context.Context, s kv.Shard) (kv.CollectGarbageResponse, error) {
			return s.CollectGarbage(ctx, &r)
		})
}

func (c *shardConn) DropSpan(ctx context.Context, req *kv.DropSpanRequest) (bool, error) {
	r := kv.DropSpanRequest{Span: cloneSpan(req.Span), SafePoint: req.SafePoint}
	return request(c, ctx, &message{kind: "dropspan", key: r.Span.Start, startTS: r.SafePoint},
		func(ctx context.Context, s kv.Shard) (bool, error) { return s.DropSpan(ctx, &r) })
}

func (c *shardConn) NotifyScan(ctx context.Context, req *kv.NotifyScanRequest) (*kv.NotifyScanResponse, error) {
	r := *req
	r.Span = cloneSpan(req.Span)
	return request(c, ctx, &message{kind: "notifyscan", key: r.Span.Start, startTS: tso.Timestamp(r.Observer)},
		func(ctx context.Context, s kv.Shard) (*kv.NotifyScanResponse, error) { return s.NotifyScan(ctx, &r) })
}

func (c *shardConn) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (int, error) {
	r := kv.NotifyClearRequest{Ranges: slices.Clone(req.Ranges), Observer: req.Observer, Cells: slices.Clone(req.Cells)}
	for i := range r.Cells {
		r.Cells[i].Key = bytes.Clone(r.Cells[i].Key)
	}
	return request(c, ctx, &message{kind: "notifyclear", key: r.Cells[0].Key, startTS: r.Cells[0].UpTo, size: len(r.Cells)},
		func(ctx context.Context, s kv.Shard) (int, error) { return s.NotifyClear(ctx, &r) })
}

func (c *shardConn) NotifyPut(ctx context.Context, req *kv.NotifyPutRequest) error {
	r := *req
	r.Ranges, r.Keys = slices.Clone(req.Ranges), cloneKeys(req.Keys)
	return command(c, ctx, &message{kind: "notifyput", key: firstOf(r.Keys), startTS: r.TS, size: len(r.Keys)},
		func(ctx context.Context, s kv.Shard) error { return s.NotifyPut(ctx, &r) })
}

func (c *shardConn) NotifyDrop(ctx context.Context, req *kv.NotifyDropRequest) error {
	r := *req
	r.Span = cloneSpan(req.Span)
	return command(c, ctx, &message{kind: "notifydrop", key: r.Span.Start, startTS: tso.Timestamp(r.Observer)},
		func(ctx context.Context, s kv.Shard) error { return s.NotifyDrop(ctx, &r) })
}

// WatchNotify loses every hint: scans find the cells.
func (c *shardConn) WatchNotify(ctx context.Context, f func([]kv.NotifyHint) error) error {
	if err := f([]kv.NotifyHint{{}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (c *shardConn) Status(ctx context.Context) (kv.ShardStatus, error) {
	return request(c, ctx, &message{kind: "status"}, func(ctx context.Context, s kv.Shard) (kv.ShardStatus, error) { return s.Status(ctx) })
}

// oracleConn is a process's connection to the oracle.
type oracleConn struct{ p *process }

func (c oracleConn) Now(ctx context.Context) (tso.Timestamp, error) {
	value, err := c.p.send(ctx, &message{kind: "now"})
	ts, _ := value.(tso.Timestamp)
	return ts, err
}
