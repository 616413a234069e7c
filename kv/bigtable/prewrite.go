package bigtable

import (
	"bytes"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Prewrite implements kv.Shard: one conditional request for each key, in parallel, and more only where the row is not as a
// transaction without conflicts finds it. The keys of a request that fails are unlocked again.
func (s *Shard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if err := req.Validate(); err != nil {
		return kv.PrewriteResponse{}, err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return kv.PrewriteResponse{}, err
	}
	if err := s.issued.check(ctx, max(req.StartTS, req.ReadTS, req.FloorTS)); err != nil {
		return kv.PrewriteResponse{}, err
	}
	if err := s.checkSafePoint(req.StartTS); err != nil {
		return kv.PrewriteResponse{}, err
	}
	if err := checkSizes(req); err != nil {
		return kv.PrewriteResponse{}, err
	}
	if err := s.limit.wait(ctx, 2*len(req.Mutations)); err != nil { // A conditional request reads the row and writes it.
		return kv.PrewriteResponse{}, err
	}
	p := &prewriting{s: s, req: req, minCommitTS: max(req.StartTS, req.ReadTS, req.FloorTS) + 1, done: make([]prewritten, len(req.Mutations))}
	return p.run(ctx)
}

// prewriting is a prewrite under way.
type prewriting struct {
	s           *Shard
	req         *kv.PrewriteRequest
	minCommitTS tso.Timestamp
	done        []prewritten

	mu       sync.Mutex
	severity mvcc.PrewriteVerdict // of refused
	refused  error
}

// prewritten is what was done with one mutation.
type prewritten struct {
	placed  *heldLock // a new lock
	before  *heldLock // the pessimistic lock that it has replaced
	minimum tso.Timestamp
}

func (p *prewriting) run(ctx context.Context) (kv.PrewriteResponse, error) {
	var locks, checks []int
	for i := range p.req.Mutations {
		if p.req.Mutations[i].Op.LeavesLock() {
			locks = append(locks, i)
		} else {
			checks = append(checks, i)
		}
	}
	err := eachAtOnce(len(locks)+min(1, len(checks)), func(i int) error {
		if i == len(locks) {
			return p.checkAll(ctx, checks)
		}
		return p.one(ctx, locks[i])
	})
	if err == nil {
		err = p.refused
	}
	if err != nil {
		undo := p.undoing()
		if ctx.Err() != nil { // Its caller does not wait.
			go undo(ctx)
		} else {
			undo(ctx)
		}
		return kv.PrewriteResponse{}, err
	}
	res := kv.PrewriteResponse{}
	for i := range p.done {
		res.MinCommitTS = max(res.MinCommitTS, p.done[i].minimum)
	}
	return res, nil
}

// eachAtOnce calls f for 0 to n-1, many at once, and returns one of its errors. The others are called all the same.
func eachAtOnce(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var g errgroup.Group
	g.SetLimit(requestsAtOnce)
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}

// checkAll decides about the mutations that leave no lock, by one read of their rows: references of many rows by foreign keys. Their uses are
// recorded before, in one request. No change of a row can do both, and in this order one of two transactions sees the other: whoever has lost an
// exclusive lock, and prewrites the row all the same, finds the use, or was there before and is found by the read.
func (p *prewriting) checkAll(ctx context.Context, checks []int) error {
	keys := make([][]byte, len(checks))
	var used []string
	for i, of := range checks {
		m := &p.req.Mutations[of]
		if keys[i] = m.Key; m.Op == mvcc.OpCheckShared {
			used = append(used, rowKey(m.Key))
		}
	}
	if err := p.recordUses(ctx, used); err != nil {
		return err
	}
	views, err := p.s.gather(ctx, p.req.StartTS, keys)
	if err != nil {
		return err
	}
	for i, v := range views {
		if err := v.recordsGone(p.req.StartTS); err != nil {
			return err
		}
		if verdict, err := mvcc.DecidePrewrite(p.req, &p.req.Mutations[checks[i]], &v.Records); err != nil {
			p.refuse(verdict, err)
		}
	}
	return nil
}

// one locks a key, or records why it is refused.
func (p *prewriting) one(ctx context.Context, i int) error {
	m := &p.req.Mutations[i]
	if err := p.s.checkRowSize(ctx, p.req.StartTS, m); err != nil {
		return err
	}
	placed, err := p.blind(ctx, i, m)
	if placed || err != nil {
		return err
	}
	for {
		v, err := p.s.look(ctx, p.req.StartTS, m.Key)
		if err != nil {
			return err
		}
		if err := v.recordsGone(p.req.StartTS); err != nil {
			return err
		}
		verdict, err := mvcc.DecidePrewrite(p.req, m, &v.Records)
		switch {
		case err != nil:
			p.refuse(verdict, err)
			return nil
		case verdict == mvcc.PrewriteDuplicate:
			if renewed, err := p.renew(ctx, i, m, v); renewed || err != nil {
				return err
			}
			continue
		}
		if placed, err := p.place(ctx, i, m, v); placed || err != nil {
			return err
		}
	}
}

func (p *prewriting) refuse(severity mvcc.PrewriteVerdict, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil || severity > p.severity {
		p.severity, p.refused = severity, err
	}
}

// lock returns the lock of a mutation.
func (p *prewriting) lock(m *mvcc.Mutation) *heldLock {
	l := mvcc.Lock{Op: m.Op, TxnSize: p.req.TxnSize, StartTS: p.req.StartTS, Primary: bytes.Clone(p.req.Primary), TTLMillis: p.req.TTLMillis,
		LeaseMillis: p.req.LeaseMillis, HeardMillis: p.s.heardMillis(), Process: p.req.Process, MinCommitTS: p.minCommitTS,
		ForUpdateTS: m.LockedAt, Notify: p.req.NotifySetOf(m)}
	return held(l)
}

// held is a lock with its cell.
func held(l mvcc.Lock) *heldLock {
	return &heldLock{lock: l, column: lockColumn(&l), value: encodeLock(&l)}
}

// change is the mutation of a row that locks it.
func (p *prewriting) change(m *mvcc.Mutation, l *heldLock, before *heldLock) *widerow.Mutation {
	change := widerow.NewMutation()
	if before != nil && before.column != l.column {
		change.DeleteCellsInColumn(familyLock, before.column)
	}
	change.Set(familyLock, l.column, l.value)
	switch m.Op {
	case mvcc.OpPut:
		change.Set(familyData, inverted(p.req.StartTS), m.Value)
	case mvcc.OpDelete:
		change.Set(familyData, inverted(p.req.StartTS), nil) // Otherwise readers would be sent the value that is deleted.
	}
	return change
}

// blind locks a key without having read its row: if nothing is in the way, or if the transaction still has the very lock
// that this process has written.
func (p *prewriting) blind(ctx context.Context, i int, m *mvcc.Mutation) (placed bool, err error) {
	l := p.lock(m)
	if before := p.s.memo.get(p.req.StartTS, m.Key); before != nil {
		if before.lock.Op != mvcc.OpPessimistic || before.lock.Shared || before.lock.ForUpdateTS != m.LockedAt || m.MustBeNew {
			return false, nil
		}
		placed, err = p.s.c.onlyIf(ctx, rowKey(m.Key), lockIs(before.column, before.value), p.change(m, l, before))
		return p.placed(i, m, l, before, placed), err
	}
	if m.LockedAt != 0 {
		return false, nil
	}
	u := unchanged{startTS: p.req.StartTS, version: p.req.Snapshot(), status: p.req.Snapshot(), locks: anyLock, mustMiss: m.MustBeNew}
	placed, err = p.s.c.unless(ctx, rowKey(m.Key), u.violated(), p.change(m, l, nil))
	return p.placed(i, m, l, nil, placed), err
}

// place locks a key as decided by v.
func (p *prewriting) place(ctx context.Context, i int, m *mvcc.Mutation, v *view) (placed bool, err error) {
	l := p.lock(m)
	if v.own != nil && !v.own.lock.Shared {
		placed, err = p.s.c.onlyIf(ctx, rowKey(m.Key), lockIs(v.own.column, v.own.value), p.change(m, l, v.own))
		return p.placed(i, m, l, v.own, placed), err
	}
	u := unchanged{startTS: p.req.StartTS, version: v.NewestCommitTS, status: v.status, locks: othersOrOwnExclusive}
	if v.own == nil {
		u.locks = anyLock
	}
	placed, err = p.s.c.unless(ctx, rowKey(m.Key), u.violated(), p.change(m, l, v.own))
	return p.placed(i, m, l, v.own, placed), err
}

// renew gives the lock of an earlier attempt at this request another cell. That attempt may have failed and have sent its undoing, which has not
// been executed yet: it removes the lock only as it was.
func (p *prewriting) renew(ctx context.Context, i int, m *mvcc.Mutation, v *view) (renewed bool, err error) {
	l := v.own.lock
	l.HeardMillis = max(l.HeardMillis+1, p.s.heardMillis())
	next := held(l)
	change := widerow.NewMutation()
	change.Set(familyLock, next.column, next.value)
	renewed, err = p.s.c.onlyIf(ctx, rowKey(m.Key), lockIs(v.own.column, v.own.value), change)
	return p.placed(i, m, next, nil, renewed), err
}

func (p *prewriting) placed(i int, m *mvcc.Mutation, l, before *heldLock, placed bool) bool {
	if placed {
		p.done[i] = prewritten{placed: l, before: before, minimum: l.lock.MinCommitTS}
		p.s.memo.put(m.Key, l)
	}
	return placed
}

// recordUses records, for transactions that may have lost an exclusive lock on the keys of rows, that they were used under a shared one.
// Nobody here remembers whether such a lock was lost, so every use is recorded.
func (p *prewriting) recordUses(ctx context.Context, rows []string) error {
	at := max(p.req.FloorTS, p.req.ReadTS, p.req.StartTS)
	changes := make([]*widerow.Mutation, len(rows))
	for i := range rows {
		changes[i] = widerow.NewMutation()
		changes[i].Set(familyStatus, commitColumn(at), []byte(plainTS(mvcc.UseStartTS(p.req.StartTS))))
	}
	return p.s.c.bulk(ctx, rows, changes)
}

// undoing returns what unlocks what a request that has failed has locked. It keeps nothing of the request. What cannot be unlocked expires, as after a
// crash.
func (p *prewriting) undoing() func(ctx context.Context) {
	var keys [][]byte
	var done []prewritten
	for i := range p.done {
		if p.done[i].placed != nil {
			keys, done = append(keys, bytes.Clone(p.req.Mutations[i].Key)), append(done, p.done[i])
		}
	}
	s := p.s
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		_ = eachAtOnce(len(done), func(i int) error { return s.undoPrewrite(ctx, keys[i], &done[i]) })
	}
}

// undoTimeout bounds the undoing of a request.
const undoTimeout = 5 * time.Second

func (s *Shard) undoPrewrite(ctx context.Context, key []byte, d *prewritten) error {
	startTS := d.placed.lock.StartTS
	s.memo.forget(startTS, key)
	for placed := d.placed; ; {
		change := widerow.NewMutation()
		change.DeleteCellsInColumn(familyLock, placed.column)
		change.DeleteCellsInColumn(familyData, inverted(startTS))
		if d.before != nil {
			change.Set(familyLock, d.before.column, d.before.value)
		}
		undone, err := s.c.onlyIf(ctx, rowKey(key), lockIs(placed.column, placed.value), change)
		if err != nil || undone {
			s.released(key, startTS)
			return err
		}
		v, err := s.look(ctx, startTS, key) // it was pushed, or resolved
		if err != nil || !v.OwnLock(startTS) {
			return err
		}
		placed = v.own
	}
}
