package percolator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator/sortrun"
	"github.com/percodb/percodb/tso"
)

// largeSet is the write set of a transaction whose buffer went to a file: the runs merged into one, each
// key once. It implements mvcc.WriteSet. Safe for concurrent use.
type largeSet struct {
	files []*sortrun.File
	// run has blocks of the buffer's runs among its own; moves are the buffer's.
	run       *sortrun.Run
	finder    *sortrun.Finder // of run
	moves     []snapshotMove
	notifies  bool   // some mutations may notify observers
	primary   []byte // nil: only checks
	locks     int    // mutations that leave a lock
	sizeBytes int64
}

var _ mvcc.WriteSet = (*largeSet)(nil)

// A record of a large set is op, flags, uvarint LockedAt, with largeNotify uvarint Notify, value.
const (
	largeMustBeNew = 1 << iota
	largeNotify
)

func appendLarge(dst []byte, m *mvcc.Mutation) []byte {
	var flags byte
	if m.MustBeNew {
		flags = largeMustBeNew
	}
	if m.Notify != 0 {
		flags |= largeNotify
	}
	dst = append(dst, byte(m.Op), flags)
	dst = binary.AppendUvarint(dst, uint64(m.LockedAt))
	if m.Notify != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Notify))
	}
	return append(dst, m.Value...)
}

// decodeLarge makes a mutation of a record; its bytes are the record's.
func decodeLarge(key, b []byte) (mvcc.Mutation, error) {
	if len(b) < 3 {
		return mvcc.Mutation{}, errSpillTorn
	}
	at, k := binary.Uvarint(b[2:])
	if k <= 0 {
		return mvcc.Mutation{}, errSpillTorn
	}
	m := mvcc.Mutation{Op: mvcc.Op(b[0]), MustBeNew: b[1]&largeMustBeNew != 0, Key: key, LockedAt: tso.Timestamp(at)}
	rest := b[2+k:]
	if b[1]&largeNotify != 0 {
		notify, value, err := cutNotify(rest)
		if err != nil {
			return mvcc.Mutation{}, err
		}
		m.Notify, rest = uint16(notify), value
	}
	if m.Op == mvcc.OpPut {
		m.Value = rest
	}
	return m, nil
}

// mutation returns the cursor's record as a mutation; its bytes are the record's.
func (l *largeSet) mutation(c *sortrun.Cursor) (mvcc.Mutation, error) {
	if !c.Adopted() {
		return decodeLarge(c.Key(), c.Value())
	}
	e, err := decodeSpilled(c.Value())
	if err != nil {
		return mvcc.Mutation{}, err
	}
	m := e.mutation(c.Key(), e.value, e.notify)
	m.LockedAt = writtenAt(l.moves, e.at)
	return m, nil
}

// Len implements mvcc.WriteSet.
func (l *largeSet) Len() int { return int(l.run.Len) }

// SizeBytes implements mvcc.WriteSet.
func (l *largeSet) SizeBytes() int64 { return l.sizeBytes }

// Read implements mvcc.WriteSet.
func (l *largeSet) Read(ctx context.Context, pass func(*mvcc.Batch) (bool, error), f func([]mvcc.Mutation) error) error {
	return l.readRun(ctx, l.run, pass, f)
}

// Parts implements mvcc.WriteSet.
func (l *largeSet) Parts(n int) []mvcc.WriteSetPart {
	runs := l.run.Parts(n)
	parts := make([]mvcc.WriteSetPart, len(runs))
	for i := range runs {
		parts[i] = &largePart{set: l, run: runs[i]}
	}
	return parts
}

// largePart is a part of a large set.
type largePart struct {
	set *largeSet
	run *sortrun.Run
}

// Read implements mvcc.WriteSetPart.
func (p *largePart) Read(ctx context.Context, pass func(*mvcc.Batch) (bool, error), f func([]mvcc.Mutation) error) error {
	return p.set.readRun(ctx, p.run, pass, f)
}

// readRun is Read for a run. A batch is a block, in whose memory the mutations are.
func (l *largeSet) readRun(ctx context.Context, run *sortrun.Run, pass func(*mvcc.Batch) (bool, error), f func([]mvcc.Mutation) error) error {
	c := run.NewCursor()
	var batch []mvcc.Mutation
	for i := range run.Blocks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if pass != nil {
			if passed, err := pass(l.describe(run, run.Block(i))); err != nil {
				return err
			} else if passed {
				continue
			}
		}
		batch = batch[:0]
		for ok := c.SeekBlock(i); ok; ok = c.More() && c.Next() {
			m, err := l.mutation(c)
			if err != nil {
				return err
			}
			batch = append(batch, m)
		}
		if c.Err() != nil {
			return c.Err()
		}
		if err := f(batch); err != nil {
			return err
		}
	}
	return nil
}

// describe returns what is known about a block of a run of the set.
func (l *largeSet) describe(run *sortrun.Run, b *sortrun.Block) *mvcc.Batch {
	d := &mvcc.Batch{First: b.First, Last: b.Last, Plain: b.Tags&tagMixed == 0, MustBeNew: b.Tags&tagNew != 0}
	if l.notifies || len(l.moves) > 0 && run.Adopted(b) {
		d.Plain = false // Records of adopted blocks have places in the log, from which LockedAt follows.
	}
	return d
}

// Has implements mvcc.WriteSet.
func (l *largeSet) Has(key []byte) (bool, error) {
	return l.finder.Has(key)
}

// Spans implements mvcc.WriteSet.
func (l *largeSet) Spans() []mvcc.Span {
	spans := make([]mvcc.Span, l.run.Blocks())
	for i := range spans {
		b := l.run.Block(i)
		spans[i] = mvcc.Span{Start: b.First, End: append(bytes.Clone(b.Last), 0)}
	}
	return spans
}

// get returns the mutation of a key, nil if there is none.
func (l *largeSet) get(key []byte) (*mvcc.Mutation, error) {
	c := l.run.NewCursor()
	if !c.SeekGE(key) || !bytes.Equal(c.Key(), key) {
		return nil, c.Err()
	}
	m, err := l.mutation(c)
	return &m, err
}

func (l *largeSet) close() {
	for _, f := range l.files {
		_ = f.Close() // It is unlinked, and not read again.
	}
}

// batches calls f with the mutations in batches as large as one request may be. The memory is f's.
func (l *largeSet) batches(ctx context.Context, f func([]mvcc.Mutation) error) error {
	var batch []mvcc.Mutation
	size := 0
	send := func() error {
		full := batch
		batch, size = nil, 0
		return f(full)
	}
	err := l.Read(ctx, nil, func(ms []mvcc.Mutation) error {
		for i := range ms {
			m := ms[i]
			arena := append(append(make([]byte, 0, len(m.Key)+len(m.Value)), m.Key...), m.Value...)
			n := len(m.Key)
			m.Key = arena[:n:n]
			if m.Value != nil {
				m.Value = arena[n:]
			}
			batch = append(batch, m)
			if size += len(arena); len(batch) >= maxRequestKeys || size >= maxRequestBytes {
				if err := send(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil && len(batch) > 0 {
		err = send()
	}
	return err
}

// seal builds the large set from the keys that the transaction has written and locked.
func (c *committer) seal(ctx context.Context, t *Txn) (*largeSet, error) {
	if err := t.buf.spill(t.db.opts.TempDir); err != nil {
		return nil, err
	}
	file, err := sortrun.Create(t.db.opts.TempDir)
	if err != nil {
		return nil, err
	}
	s := sealer{ctx: ctx, c: c, t: t, set: &largeSet{files: []*sortrun.File{file}, moves: t.buf.moves, notifies: t.buf.sets != nil}, w: file.NewWriter()}
	for _, f := range t.buf.spilled.files {
		if f != nil {
			s.set.files = append(s.set.files, f.Share())
		}
	}
	if t.locks != nil {
		s.held = t.locks.inOrder()
	}
	if err = t.buf.spilled.fold(t.buf.sets, s.add, s.adopt); err == nil {
		if err = s.addHeld(nil); err == nil {
			s.set.run, err = s.w.Finish()
		}
	}
	if err != nil {
		s.set.close()
		return nil, err
	}
	s.set.finder = sortrun.NewFinder(s.set.run)
	t.buf.spare = nil
	t.buf.shrinkAccount() // The runs stay: the set has blocks of theirs.
	s.choosePrimary()
	return s.set, nil
}

// sealer writes a large set.
type sealer struct {
	ctx     context.Context
	c       *committer
	t       *Txn
	set     *largeSet
	w       *sortrun.Writer
	held    *heldCursor // on the first that has not been passed
	scratch []byte
	n       int // mutations so far
	// written is the first key with a version to come, locked the first without.
	written, locked []byte
}

// add adds a key that the transaction has written, after the locked ones before it.
func (s *sealer) add(f *folded) error {
	if err := s.addHeld(f.key); err != nil {
		return err
	}
	m := f.mutation(f.key, f.value, f.notify)
	h := s.held.head()
	if h == nil || !bytes.Equal(h.key, f.key) {
		m.LockedAt = writtenAt(s.t.buf.moves, f.first)
		return s.put(&m)
	}
	if h.settle(&m); h.later(s.c.readTS) {
		return s.c.lockedLater(h)
	}
	s.held.pass()
	return s.put(&m)
}

// adopt includes a block of the buffer unchanged, after the locked keys before it, unless some of its own are locked.
func (s *sealer) adopt(b *sortrun.Block) (taken bool, _ error) {
	if err := s.addHeld(b.First); err != nil {
		return false, err
	}
	if h := s.held.head(); h != nil && bytes.Compare(h.key, b.Last) <= 0 {
		return false, nil
	}
	if s.written == nil {
		s.written = bytes.Clone(b.First)
	}
	s.set.locks += b.Len
	s.set.sizeBytes += b.SizeBytes() + int64(b.Len*entryOverhead)
	if s.ctx.Err() != nil {
		return false, s.ctx.Err()
	}
	return true, s.w.AddBlock(b)
}

// addHeld adds the keys below key (nil: no bound) that are locked and not written; see committer.addLocked.
func (s *sealer) addHeld(key []byte) error {
	for h := s.held.head(); h != nil && (key == nil || bytes.Compare(h.key, key) < 0); h = s.held.head() {
		if h.later(s.c.readTS) {
			return s.c.lockedLater(h)
		}
		m := h.unwritten()
		if h.shared {
			m.Key = bytes.Clone(m.Key)
			s.c.shared = append(s.c.shared, m)
		} else if err := s.put(&m); err != nil {
			return err
		}
		s.held.pass()
	}
	return nil
}

func (s *sealer) put(m *mvcc.Mutation) error {
	switch {
	case m.Op == mvcc.OpPut || m.Op == mvcc.OpDelete:
		if s.set.locks++; s.written == nil {
			s.written = bytes.Clone(m.Key)
		}
	case m.Op == mvcc.OpLock:
		if s.set.locks++; s.locked == nil {
			s.locked = bytes.Clone(m.Key)
		}
	}
	if s.n++; s.n%4096 == 0 && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	s.set.sizeBytes += int64(len(m.Key) + len(m.Value) + entryOverhead)
	s.scratch = appendLarge(s.scratch[:0], m)
	if err := s.w.Add(m.Key, s.scratch); err != nil {
		return err
	}
	if m.MustBeNew {
		s.w.Tag(tagNew)
	}
	if m.LockedAt != 0 || m.Op != mvcc.OpPut && m.Op != mvcc.OpDelete {
		s.w.Tag(tagMixed)
	}
	return nil
}

// choosePrimary is committer.choosePrimary for a large set.
func (s *sealer) choosePrimary() {
	switch {
	case s.c.keepPrimary():
		s.set.primary = s.c.primary
	case s.written != nil:
		s.set.primary = s.written
	default:
		s.set.primary = s.locked
	}
}

// writtenAt returns the snapshot at which the entry at a place of the log was written, 0 if that is the
// present one.
func writtenAt(moves []snapshotMove, at int) tso.Timestamp {
	if len(moves) == 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(moves, at, func(m snapshotMove, at int) int { return cmp.Compare(m.writes, at+1) })
	if i == len(moves) {
		return 0
	}
	return moves[i].from
}

// commitLarge commits a transaction whose buffer went to a file.
func (c *committer) commitLarge(ctx context.Context, t *Txn) (tso.Timestamp, error) {
	if t.opts.Isolation == Serializable {
		c.reads = t.reads.list()
	}
	shares, err := c.shareChecks(t)
	if err != nil {
		return 0, err
	}
	set, err := c.seal(ctx, t)
	if err != nil {
		return 0, err
	}
	c.shared = append(c.shared, shares...)
	slices.SortFunc(c.shared, byKey)
	c.large, c.primary, c.locks, c.sizeBytes = set, set.primary, set.locks, set.sizeBytes
	background := false
	defer func() {
		if !background {
			set.close()
		}
	}()
	if err := c.takeSets(t); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.doomed() {
		return 0, rolledBack(c.primary, c.startTS)
	}
	c.db.metrics.prewriteBytes.Add(float64(c.sizeBytes))
	if ts, done, err := c.onePhaseLarge(ctx); done || err != nil {
		return ts, err
	}
	c.kind = commitTwoPhase
	ts, finish, err := c.twoPhaseLarge(ctx)
	if finish != nil {
		background = c.db.background.submit(func(ctx context.Context) {
			defer set.close()
			finish(ctx)
		})
		if !background {
			finish(detached(ctx))
		}
	}
	return ts, err
}

// onePhaseLarge commits a set all of whose keys are in one store of this process, in one step. If that is not possible,
// done is false, and nothing has happened: in two phases each key costs the store a lock, and is written twice. A
// serializable transaction always takes two phases, since its reads are validated in between.
func (c *committer) onePhaseLarge(ctx context.Context) (ts tso.Timestamp, done bool, _ error) {
	if len(c.reads) > 0 {
		return 0, false, nil
	}
	spans := c.large.Spans()
	for i := range c.shared {
		spans = append(spans, kv.Span{Start: c.shared[i].Key, End: append(bytes.Clone(c.shared[i].Key), 0)})
	}
	slices.SortFunc(spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	r := shardRequest[kv.Span]{bo: backoff{db: c.db}, list: &spanList, fanOut: 1}
	r.send = func(ctx context.Context, bo *backoff, p *part[kv.Span]) error {
		if !p.sole || !p.shard.Capabilities().LargeCommit {
			return stopError{}
		}
		resp, err := p.shard.CommitLarge(ctx, &kv.CommitLargeRequest{
			Ranges: p.refs, Set: c.large, Shared: c.shared, Primary: c.primary, StartTS: c.startTS, ReadTS: c.readTS,
			TTLMillis: c.ttlNow(), MaxCommitTS: c.maxCommitTS, Notify: c.notify,
		})
		kind := errkind.Of(err)
		switch {
		case err == nil:
			// With locks and no commit_ts it is too late for the permit, which is renewed in two phases when all is locked.
			ts, done = resp.CommitTS, resp.CommitTS != 0 || c.locks == 0
			return nil
		case kind == errkind.StaleRoute:
			return err
		case kind == errkind.Locked:
			locked, _ := errkind.As[*mvcc.KeyLockedError](err)
			if err = c.clearLock(ctx, bo, p.shard, locked); err == nil {
				return errSendAgain
			}
		}
		return stopError{err} // The request is not idempotent.
	}
	if err := r.run(ctx, spans); err != nil {
		return 0, false, c.lostRace(err)
	}
	if done {
		c.kind = commitOnePhase
	}
	return ts, done, nil
}

// largeFanOut bounds the requests that a large transaction has in flight: each holds a few megabytes.
const largeFanOut = 4

// twoPhaseLarge is twoPhase for a large set, which is read once for each phase and is never in memory as a whole.
// finish, if not nil, resolves the remaining locks.
func (c *committer) twoPhaseLarge(ctx context.Context) (ts tso.Timestamp, finish func(context.Context), _ error) {
	now, err := c.db.now(ctx)
	if err != nil {
		return 0, nil, err
	}
	abort := func(ctx context.Context) { c.abortLarge(ctx) }
	if c.locks > 0 {
		c.beginLease(now)
	}
	if err := c.prewriteLarge(ctx); err != nil {
		if ts := committedAt(err); ts != 0 {
			return ts, nil, nil
		}
		return 0, abort, c.lostRace(err)
	}
	if c.locks == 0 { // only checks, and they succeeded
		return 0, nil, nil
	}
	ts, err = c.commitPrimary(ctx)
	c.lease.stop()
	if err == nil {
		return ts, func(ctx context.Context) { c.commitLargeSecondaries(ctx, ts) }, nil
	}
	if errkind.Of(err) == errkind.Undetermined {
		abort = nil
	}
	return 0, abort, c.lostRace(err)
}

// prewriteLarge locks the primary, so that heartbeats keep the locks alive, and then all keys, including the primary
// again, which changes nothing.
func (c *committer) prewriteLarge(ctx context.Context) error {
	if c.locks > 0 {
		m, err := c.large.get(c.primary)
		if err != nil {
			return err
		}
		if m == nil {
			return errSpillTorn
		}
		if err := c.prewrite(ctx, []mvcc.Mutation{*m}, &prewritePart{}); err != nil {
			return err
		}
		c.lease.prewritten.Store(true)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(largeFanOut)
	err := c.large.batches(ctx, func(ms []mvcc.Mutation) error {
		if c.doomed() {
			return &mvcc.RolledBackError{StartTS: c.startTS}
		}
		g.Go(func() error { return c.prewrite(ctx, ms, &prewritePart{}) })
		return nil
	})
	if failed := g.Wait(); failed != nil {
		return failed
	}
	return err
}

// eachLocked calls f with the keys that prewrite locks, in batches.
func (c *committer) eachLocked(ctx context.Context, f func(keys [][]byte) error) error {
	return c.large.batches(ctx, func(ms []mvcc.Mutation) error {
		keys := make([][]byte, 0, len(ms))
		for i := range ms {
			if leavesLock(ms[i]) {
				keys = append(keys, ms[i].Key)
			}
		}
		if len(keys) == 0 {
			return nil
		}
		return f(keys)
	})
}

// commitLargeSecondaries commits all keys; the primary is committed already.
func (c *committer) commitLargeSecondaries(ctx context.Context, ts tso.Timestamp) {
	err := c.eachLocked(ctx, func(keys [][]byte) error {
		c.db.commitKeys(ctx, keys, c.startTS, ts)
		return ctx.Err()
	})
	c.logLeft("committing secondaries", err)
}

// abortLarge rolls back the primary, and removes the locks of the others: a delayed request finds the primary rolled
// back, or its lock is removed by a transaction that encounters it.
func (c *committer) abortLarge(ctx context.Context) {
	if c.locks == 0 {
		return
	}
	c.db.rollbackKeys(ctx, [][]byte{c.primary}, c.startTS)
	err := c.eachLocked(ctx, func(keys [][]byte) error {
		bo := backoff{db: c.db}
		return onShards(ctx, &bo, keys, func(p *part[[]byte]) error {
			return p.shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: p.refs, Keys: p.items, StartTS: c.startTS})
		})
	})
	c.logLeft("rolling back", err)
}

// logLeft logs that locks remain for other transactions to resolve.
func (c *committer) logLeft(what string, err error) {
	if err != nil {
		c.db.metrics.dropped.Inc()
		c.db.opts.Logger.Warn(what, "start_ts", c.startTS, "err", err)
	}
}
