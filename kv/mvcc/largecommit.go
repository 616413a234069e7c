package mvcc

import (
	"bytes"
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// CommitLargeRequest requests the one-phase commit of a write set that does not fit into memory. All keys of Set and
// Shared lie within Ranges. Notify has the sets that the mutations select. The other fields are a PrewriteRequest's.
type CommitLargeRequest struct {
	Ranges    []RangeRef
	Set       WriteSet
	Notify    []NotifySet
	Shared    []Mutation // the keys held shared and not written, as OpCheckShared, ascending
	Primary   []byte
	StartTS   tso.Timestamp
	TTLMillis uint64
	// MaxCommitTS bounds the commit_ts (0: any). If it would lie above, nothing is done.
	MaxCommitTS tso.Timestamp
	ReadTS      tso.Timestamp
}

// CommitLargeResponse: CommitTS 0 means that nothing is committed: there was no commit_ts within the bound, or only
// checks, which succeeded.
type CommitLargeResponse struct{ CommitTS tso.Timestamp }

// LargeAdmission returns the check to perform before some keys of a large commit are written: those of ms or, with
// between, all from the first of ms to the last.
type LargeAdmission func(ms []Mutation, between bool) Admission

// LargeResult is a response with the size of what was written for it.
type LargeResult struct {
	CommitLargeResponse
	WrittenBytes int
}

// CommitLarge commits a large write set in one phase: it checks all keys under the protection of one lock
// (largetable.go), obtains a commit_ts, writes the versions to table files, and makes the files part of the store, which
// is atomic and durable. After a crash before that nothing is committed, after a later one everything. The request is
// not idempotent: it is for callers in this process, which receive every answer. Errors are those of Prewrite; nothing
// was written then, unless the engine has failed.
func (s *State) CommitLarge(ctx context.Context, admission LargeAdmission, args *CommitLargeRequest) (LargeResult, error) {
	if err := s.BeginRead(ctx, max(args.StartTS, args.ReadTS)); err != nil { // a key's absence is a read
		return LargeResult{}, err
	}
	c := &largeCommit{set: args.Set, spans: args.Set.Spans(), startTS: args.StartTS, admission: admission, done: make(chan struct{})}
	if err := s.enterLarge(ctx, c); err != nil {
		return LargeResult{}, err
	}
	res, err := s.commitLarge(ctx, c, args)
	if failed := s.eng.Err(); failed != nil {
		// The state of the disk is unknown: the lock stays, and waiters receive the engine's error.
		s.locks.abandonLarge(c, failed)
		return LargeResult{}, failed
	}
	s.locks.leaveLarge(c, res.CommitTS)
	if res.CommitTS != 0 && len(args.Notify) > 0 {
		s.hintScan()
	}
	return res, err
}

// abandonLarge wakes the waiters for a large commit that stays in the table: the engine has failed.
func (t *lockTable) abandonLarge(c *largeCommit, err error) {
	for _, slab := range c.entries {
		t.abandon(slab, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked(err)
	close(c.done)
}

// commitLarge is CommitLarge with the lock in the table.
func (s *State) commitLarge(ctx context.Context, c *largeCommit, args *CommitLargeRequest) (LargeResult, error) {
	parts := args.Set.Parts(s.largeParts(args.Set))
	chk, err := s.checkLarge(ctx, c, args, parts)
	if err != nil || !chk.writes {
		return LargeResult{}, err
	}
	commitTS, err := s.beginWritingLarge(ctx, c, args, chk.floor)
	if err != nil || commitTS == 0 {
		return LargeResult{}, err
	}
	tables := s.eng.NewTables()
	err = s.writeLarge(ctx, tables, args, commitTS, parts)
	if err == nil {
		err = s.awaitIssued(ctx, commitTS)
	}
	if err != nil {
		tables.Abort()
		return LargeResult{}, err
	}
	s.noteLarge(c, commitTS)
	written := tables.Bytes()
	if len(args.Shared) > 0 {
		err = chk.ingestChecked(ctx, tables, commitTS)
	} else {
		// From here on the outcome must be learnt, even if the caller gives up.
		err = tables.Ingest(context.WithoutCancel(ctx))
	}
	if err != nil {
		return LargeResult{}, err
	}
	return LargeResult{CommitLargeResponse{CommitTS: commitTS}, written}, nil
}

// noteLarge takes from the caches of scans what the versions of a large commit change. It is called before they can be read.
func (s *State) noteLarge(c *largeCommit, commitTS tso.Timestamp) {
	for i := range c.spans {
		if s.deleted.n.Load() > 0 {
			s.deleted.removeSpan(c.spans[i].Start, c.spans[i].End)
		}
		if !s.scans.empty() {
			s.scans.wroteSpan(c.spans[i].Start, c.spans[i].End, commitTS)
		}
	}
}

// leastAhead is the minimal duration of the writing of a large commit for which its commit_ts is chosen ahead of time.
const leastAhead = 50 * time.Millisecond

// beginWritingLarge chooses the commit_ts, from which on readers wait; 0 if there is none within the bound. If the
// oracle is in this process the commit_ts lies ahead of it by the expected duration of the writing: readers with
// timestamps below it do not wait. It has a subtick, which the oracle never issues, and the versions become part of the
// store only when the oracle has passed it (awaitIssued): no transaction begins below a version that it can read.
func (s *State) beginWritingLarge(ctx context.Context, c *largeCommit, args *CommitLargeRequest, floor tso.Timestamp) (tso.Timestamp, error) {
	var ahead tso.Timestamp
	if wait := s.expectWriting(args.Set.SizeBytes()); s.opts.Embedded && wait >= leastAhead {
		now, err := s.opts.Oracle.Now(ctx)
		if err != nil {
			return 0, err
		}
		if ts := now + tso.FromPhysical(wait.Milliseconds()) + 1; mayCommitAt(ts, args.MaxCommitTS) {
			ahead = ts
			floor = max(floor, ts-1)
		}
	}
	commitTS := s.locks.beginWriting(c, s.MaxTS, floor)
	if commitTS == ahead {
		return commitTS, nil
	}
	commitTS, err := s.onePCTimestamp(ctx, commitTS, false)
	if err != nil || !mayCommitAt(commitTS, args.MaxCommitTS) {
		return 0, err
	}
	s.locks.setLargeTS(c, commitTS)
	return commitTS, nil
}

// expectWriting is about how long it takes to write the versions of a write set, going by the sets before it.
func (s *State) expectWriting(sizeBytes int64) time.Duration {
	if sizeBytes < s.opts.LargePartBytes {
		return 0
	}
	return time.Duration(float64(sizeBytes) / float64(s.largeRate.Load()) * float64(time.Second))
}

// noteWriting records the rate of a finished writing.
func (s *State) noteWriting(sizeBytes int64, took time.Duration) {
	if sizeBytes < s.opts.LargePartBytes || took <= 0 {
		return
	}
	const least = 1 << 20
	rate := int64(float64(sizeBytes) / took.Seconds())
	s.largeRate.Store(max((s.largeRate.Load()+rate)/2, least))
}

// awaitIssued returns once the oracle issues timestamps above ts.
func (s *State) awaitIssued(ctx context.Context, ts tso.Timestamp) error {
	if ts%tso.Tick == 0 || !s.opts.Embedded {
		return nil // it has been issued, or lies below all future ones
	}
	for {
		now, err := s.opts.Oracle.Now(ctx)
		if err != nil || now > ts {
			return err
		}
		timer := time.NewTimer(min(time.Duration(ts.Physical()-now.Physical()+1)*time.Millisecond, 50*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// largeParts is into how many parts a large write set is divided, which are checked and written at the same time.
func (s *State) largeParts(set WriteSet) int {
	const most = 4 // each has a table file's buffers
	return int(min(most, int64(runtime.GOMAXPROCS(0)), set.SizeBytes()/s.opts.LargePartBytes+1))
}

// checkLarge checks all keys, and returns the combined results.
func (s *State) checkLarge(ctx context.Context, c *largeCommit, args *CommitLargeRequest, parts []WriteSetPart) (*largeChecker, error) {
	// Writers that have latched a key before the lock was in the table leave it now, and have a lock or a version that the
	// checks find; all others see the lock. So batches that are passed need no latches.
	s.LatchAll()()
	checkers := make([]largeChecker, len(parts))
	err := eachPart(ctx, parts, func(ctx context.Context, i int) error {
		k := &checkers[i]
		*k = largeChecker{s: s, c: c, args: args, floor: args.ReadTS}
		return parts[i].Read(ctx, k.pass, func(ms []Mutation) error { return k.check(ctx, ms) })
	})
	if err != nil {
		return nil, err
	}
	all := &checkers[0]
	for i := range checkers[1:] {
		all.writes = all.writes || checkers[1+i].writes
		all.floor = max(all.floor, checkers[1+i].floor)
	}
	return all, nil
}

// writeLarge writes the records of all keys.
func (s *State) writeLarge(ctx context.Context, tables *storage.Tables, args *CommitLargeRequest, commitTS tso.Timestamp, parts []WriteSetPart) error {
	marked := args.Set.Len() >= 4*numMarks
	if marked {
		s.marks.raiseAll(commitTS)
	}
	began := time.Now()
	defer func() { s.noteWriting(args.Set.SizeBytes(), time.Since(began)) }()
	return eachPart(ctx, parts, func(ctx context.Context, i int) error {
		w := largeWriter{s: s, startTS: args.StartTS, commitTS: commitTS, notify: args.Notify, tables: tables, marked: marked}
		if err := parts[i].Read(ctx, nil, w.add); err != nil {
			return err
		}
		return w.finish()
	})
}

// eachPart calls f for all parts, at the same time if there are several. It returns the first error, for which
// the contexts of the others end.
func eachPart(ctx context.Context, parts []WriteSetPart, f func(ctx context.Context, i int) error) error {
	if len(parts) == 1 {
		return f(ctx, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

// ingestChecked is Ingest under the latches of the keys with shared locks, which are checked: nothing else excludes
// other transactions if the locks have been lost.
func (k *largeChecker) ingestChecked(ctx context.Context, tables *storage.Tables, commitTS tso.Timestamp) error {
	defer tables.Abort()
	pre := k.prewrite(k.args.Shared)
	adm := k.c.admission(k.args.Shared, false)
	w := k.s.newWriter()
	defer w.release()
	for {
		w.latchMutations(pre.Mutations)
		var wait <-chan struct{}
		err := k.lostToLarge(w)
		if err == nil {
			_, wait, err = w.checkMutations(adm, &pre)
		}
		if err == nil && wait == nil {
			if err = w.applyUses(k.args.StartTS, commitTS); err == nil {
				err = tables.Ingest(context.WithoutCancel(ctx))
			}
		}
		w.unlatch()
		if err != nil || wait == nil {
			return err
		}
		if err := k.s.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// lostToLarge returns *LockLostError if a shared lock is lost and another large commit has the key: waiting for that
// would end in a conflict unless it fails, and it may be waiting for this one.
func (k *largeChecker) lostToLarge(w *writer) error {
	defer w.near.forget()
	for i := range k.args.Shared {
		m := &k.args.Shared[i]
		if k.s.locks.largeWriter(m.Key, k.args.StartTS) == nil {
			continue
		}
		var v keyView
		if k.s.locks.holders(&w.near, &v, m.Key, k.args.StartTS); !v.ownPess(k.args.StartTS) {
			return &LockLostError{Key: bytes.Clone(m.Key), StartTS: k.args.StartTS, LockedAt: m.LockedAt}
		}
	}
	return nil
}

// applyUses makes the records of the use of shared keys durable. If the commit fails after all, they cause an
// unnecessary retry of another transaction.
func (w *writer) applyUses(startTS, commitTS tso.Timestamp) error {
	if len(w.uses) == 0 {
		return nil
	}
	b := w.s.eng.NewBatch(0)
	defer b.Close()
	w.putUses(b, startTS, commitTS)
	if err := w.s.apply(b, storage.Sync); err != nil {
		return err
	}
	return b.SyncWait()
}

// largeChecker checks the keys of a large commit in batches, as a prewrite would.
type largeChecker struct {
	s      *State
	c      *largeCommit
	args   *CommitLargeRequest
	writes bool          // some mutation is not a check
	floor  tso.Timestamp // a lower bound of the commit_ts: the snapshot, and the timestamps as of which keys were locked
	// touched counts the batches down that are looked at key by key.
	touched int
}

// check decides about one batch. Its result stays valid: other writers of these keys wait for the large commit.
func (k *largeChecker) check(ctx context.Context, ms []Mutation) error {
	pre := k.prewrite(ms)
	if _, err := validateMutations(ms, k.args.Notify); err != nil {
		return err
	}
	for i := range ms {
		k.floor = max(k.floor, ms[i].LockedAt)
		k.writes = k.writes || decideRecord(ms[i].Op, 0, 0) != recordNothing
	}
	adm := k.c.admission(ms, false)
	w := k.s.newWriter()
	defer w.release()
	for {
		wait, err := k.checkOnce(w, adm, &pre)
		if wait == nil {
			return err
		}
		if err := k.s.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// prewrite returns the request whose checks some of the keys have to pass.
func (k *largeChecker) prewrite(ms []Mutation) PrewriteRequest {
	return PrewriteRequest{
		Mutations: ms, Notify: k.args.Notify, Primary: k.args.Primary, StartTS: k.args.StartTS, ReadTS: k.args.ReadTS,
		TTLMillis: k.args.TTLMillis, TxnSize: uint32(min(k.args.Set.Len(), 1<<32-1)), TryOnePC: true,
	}
}

// checkOnce is one attempt. A non-nil channel means: try again when it is closed.
func (k *largeChecker) checkOnce(w *writer, adm Admission, pre *PrewriteRequest) (<-chan struct{}, error) {
	w.latchMutations(pre.Mutations)
	defer w.unlatch()
	if untouched, err := k.untouchedBatch(adm, pre); untouched || err != nil {
		return nil, err
	}
	onePC, wait, err := w.checkMutations(adm, pre)
	if err != nil || wait != nil {
		return wait, err
	}
	if !onePC {
		return nil, &InvalidRequestError{Detail: "large commit of a transaction that has prewritten"}
	}
	if k.s.locks.n.Load() > 0 {
		k.replaceHeld(w)
	}
	return nil, nil
}

// pass reports that a batch may be committed without a look at its mutations. Its result stays valid, as check's.
func (k *largeChecker) pass(b *Batch) (bool, error) {
	if !b.Plain || k.touched > 0 {
		return false, nil
	}
	since := max(k.args.StartTS, k.args.ReadTS)
	if b.MustBeNew {
		since = 0
	}
	adm := k.c.admission([]Mutation{{Key: b.First}, {Key: b.Last}}, true)
	untouched, err := k.untouched(adm, b.First, b.Last, since)
	k.writes = k.writes || untouched
	return untouched, err
}

// untouchedBatch is untouched for a batch, none of whose mutations needs more than that.
func (k *largeChecker) untouchedBatch(adm Admission, pre *PrewriteRequest) (bool, error) {
	if k.touched > 0 {
		k.touched--
		return false, nil
	}
	since := pre.snapshot()
	for i := range pre.Mutations {
		switch m := &pre.Mutations[i]; {
		case m.MustBeNew || m.Op == OpCheckNotExists:
			since = 0
		case m.LockedAt != 0:
			since = min(since, m.LockedAt)
		}
	}
	untouched, err := k.untouched(adm, pre.Mutations[0].Key, pre.Mutations[len(pre.Mutations)-1].Key, since)
	if !untouched || err != nil {
		return false, err
	}
	for i := range pre.Mutations {
		m := &pre.Mutations[i]
		verdict := decidePrewrite(pre.StartTS, pre.snapshot(), m, &keyView{})
		if verdict != prewriteLock && !(verdict == prewriteCheck && m.Op == OpCheckNotExists) {
			return false, nil
		}
	}
	return true, nil
}

// untouched reports that keys in [first, last] may be committed because the store has nothing there that concerns the
// transaction: no lock, no status record that matters, no version above since, which is the snapshot or the timestamp as
// of which a key was locked, and 0 if a key must be new. For rows of a new table or index, or rows that have not changed
// since the snapshot, one seek replaces the check of each key.
func (k *largeChecker) untouched(adm Admission, first, last []byte, since tso.Timestamp) (bool, error) {
	s, startTS := k.s, k.args.StartTS
	if err := adm.Admit(); err != nil {
		return false, err
	}
	if err := s.checkLockBound(startTS); err != nil {
		return false, err
	}
	if err := s.checkSafePoint(startTS); err != nil {
		return false, err
	}
	end := append(bytes.Clone(last), 0)
	if s.locks.occupied(first, end, startTS) || uint64(startTS) <= max(s.maxRollbackTS.Load(), s.maxLockCommitTS.Load()) {
		return false, nil
	}
	unchanged, err := k.unchanged(first, last, since)
	if !unchanged && err == nil {
		k.touched = touchedRest
	}
	return unchanged, err
}

// unchanged reports that no key in [first, last] has a version above since. false may mean that this was not found out.
func (k *largeChecker) unchanged(first, last []byte, since tso.Timestamp) (bool, error) {
	lower, upper := appendPrefix(nil, tagWrite, first), append(appendPrefix(nil, tagWrite, last), 0)
	var it *storage.Iterator
	var err error
	if since == 0 {
		it, err = k.s.eng.NewRangeIter(lower, upper)
	} else {
		it, err = k.s.eng.NewVersionIter(lower, upper, uint64(since)+1, ^uint64(0))
	}
	if err != nil {
		return false, err
	}
	defer it.Close()
	passed := 0
	for ok := it.First(); ok; ok = it.Next() {
		_, version, versioned := storage.SplitVersion(it.Key())
		if passed++; !versioned || version > uint64(since) || passed > passedVersions {
			return false, nil
		}
	}
	return it.Error() == nil, it.Error()
}

// passedVersions is the number of older versions, in blocks that have newer ones or in memory, that are skipped before
// a batch is checked key by key.
const passedVersions = 128

// touchedRest is the number of batches that are checked key by key after one in whose span the store has versions.
const touchedRest = 32

// replaceHeld replaces the transaction's pessimistic locks on the batch by entries that cannot be removed by others
// until the commit has ended; waiters for them are then answered.
func (k *largeChecker) replaceHeld(w *writer) {
	var held []*entry
	w.near.forget()
	for i := range w.entries {
		e := &w.entries[i]
		if old, _ := k.s.locks.getNear(&w.near, e.key); old != nil && old.holderOf(k.args.StartTS) != nil {
			held = append(held, e)
		}
	}
	if len(held) > 0 {
		k.s.locks.replaceHeld(k.c, held)
	}
}

// largeWriter writes the records of a part of a large commit to table files.
type largeWriter struct {
	s                    *State
	startTS, commitTS    tso.Timestamp
	notify               []NotifySet
	tables               *storage.Tables
	writes, data, status *storage.TableSet            // nil until needed
	cells                map[uint64]*storage.TableSet // by observer, in whose order cells are stored
	key, value           []byte
	marked               bool   // every mark is at commitTS
	group                []byte // of the newest key
}

// put writes a record to one of the sets.
func (w *largeWriter) put(set **storage.TableSet) error {
	if *set == nil {
		*set = w.tables.NewSet()
	}
	return (*set).Put(w.key, w.value)
}

// eachSet calls f for all sets that are in use.
func (w *largeWriter) eachSet(f func(*storage.TableSet) error) error {
	for _, set := range []*storage.TableSet{w.writes, w.data, w.status} {
		if set != nil {
			if err := f(set); err != nil {
				return err
			}
		}
	}
	for _, set := range w.cells {
		if err := f(set); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the written tables durable.
func (w *largeWriter) finish() error { return w.eachSet((*storage.TableSet).Finish) }

// enterGroup begins new files if key is in another group than the key before.
func (w *largeWriter) enterGroup(key []byte) error {
	if w.s.opts.Group == nil || len(w.group) > 0 && bytes.HasPrefix(key, w.group) {
		return nil
	}
	w.group = append(w.group[:0], key[:w.s.opts.Group(key)]...)
	return w.eachSet((*storage.TableSet).Break)
}

// mark raises the mark of a key.
func (w *largeWriter) mark(key []byte) {
	if !w.marked {
		raise(w.s.marks.of(key), w.commitTS)
	}
}

// add writes the records of one batch.
func (w *largeWriter) add(ms []Mutation) error {
	for i := range ms {
		m := &ms[i]
		err := w.enterGroup(m.Key)
		if err != nil {
			return err
		}
		switch decideRecord(m.Op, 0, 0) {
		case recordLock:
			err = w.addLock(m)
		case recordVersion:
			err = w.addWrite(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *largeWriter) addWrite(m *Mutation) error {
	long := m.Op == OpPut && len(m.Value) > w.s.opts.OnePCShortValueBytes
	if long {
		w.key, w.value = appendVersioned(w.key[:0], tagData, m.Key, w.startTS), append(w.value[:0], m.Value...)
		if err := w.put(&w.data); err != nil {
			return err
		}
	}
	w.mark(m.Key)
	w.key = appendVersioned(w.key[:0], tagWrite, m.Key, w.commitTS)
	w.value = appendWrite(w.value[:0], m.Op, long, w.startTS, w.commitTS, m.Value)
	if err := w.put(&w.writes); err != nil {
		return err
	}
	return w.addCells(m)
}

// addCells writes the cells of a mutation. They replace those of the store: no NotifyPut of the key is newer, since those
// before the commit lie below its commit_ts, and those during it wait.
func (w *largeWriter) addCells(m *Mutation) error {
	set := m.notifySet(w.notify)
	if set == nil {
		return nil
	}
	if w.cells == nil {
		w.cells = map[uint64]*storage.TableSet{}
	}
	w.value = appendNotifyCell(w.value[:0], notifyCell{latest: w.commitTS, hop: set.Hop})
	for _, observer := range set.Observers {
		cells := w.cells[observer]
		w.key = appendNotifyKey(w.key[:0], observer, m.Key)
		if err := w.put(&cells); err != nil {
			return err
		}
		w.cells[observer] = cells
	}
	return nil
}

// addLock leaves a record on a key that was locked and not written.
func (w *largeWriter) addLock(m *Mutation) error {
	raise(&w.s.maxLockCommitTS, w.commitTS)
	w.mark(m.Key)
	w.key = appendVersioned(w.key[:0], tagStatus, m.Key, w.commitTS)
	w.value = appendStatus(w.value[:0], statusLockCommit, w.startTS)
	return w.put(&w.status)
}
