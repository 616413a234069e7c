package mvcc

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// LargeArgs asks for the one-phase commit of a write set that does not fit into memory. Admission returns
// what is asked under the latches of some of its keys.
type LargeArgs struct {
	Set WriteSet
	// Shared are the keys held shared and not written, ascending, as OpCheckShared.
	Shared    []Mutation
	Admission func(ms []Mutation) Admission
	Primary   []byte
	StartTS   tso.Timestamp
	// ReadTS is the snapshot, StartTS if 0.
	ReadTS    tso.Timestamp
	TTLMillis uint64
	// MaxCommitTS bounds the commit_ts (0: any).
	MaxCommitTS tso.Timestamp
}

// LargeResult tells what was done. CommitTS 0: nothing, since no commit_ts was to be had within the bound, or
// since there are nothing but checks, which held.
type LargeResult struct {
	CommitTS     tso.Timestamp
	WrittenBytes int
}

// CommitLarge commits a large write set in one phase: it checks all keys under the protection of one lock
// (largetable.go), takes a commit_ts, writes the versions to table files, and makes the files part of the
// store, which is atomic and durable. A crash before that leaves nothing, one after it everything. The
// request is not idempotent: it is for callers in this process, who get each answer. Errors are Prewrite's;
// nothing was written then, unless the engine has failed.
func (s *State) CommitLarge(ctx context.Context, args *LargeArgs) (LargeResult, error) {
	if err := s.BeginRead(ctx, max(args.StartTS, args.ReadTS)); err != nil { // a key's absence is a read
		return LargeResult{}, err
	}
	c := &largeCommit{set: args.Set, spans: args.Set.Spans(), startTS: args.StartTS, done: make(chan struct{})}
	if err := s.enterLarge(ctx, c); err != nil {
		return LargeResult{}, err
	}
	res, err := s.commitLarge(ctx, c, args)
	if failed := s.eng.Err(); failed != nil {
		// What the disk holds is unknown: the lock stays, and who waits is told by the engine.
		s.locks.abandonLarge(c, failed)
		return LargeResult{}, failed
	}
	s.locks.leaveLarge(c, res.CommitTS)
	return res, err
}

// abandonLarge wakes those who wait for a large commit that stays in the table: the engine has failed.
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
func (s *State) commitLarge(ctx context.Context, c *largeCommit, args *LargeArgs) (LargeResult, error) {
	chk := largeChecker{s: s, c: c, args: args, floor: args.ReadTS}
	if err := args.Set.Read(ctx, func(ms []Mutation) error { return chk.check(ctx, ms) }); err != nil || !chk.writes {
		return LargeResult{}, err
	}
	minCommitTS := s.locks.beginWriting(c, s.MaxTS, chk.floor)
	commitTS, err := s.onePCTimestamp(ctx, minCommitTS, false)
	if err != nil || !mayCommitAt(commitTS, args.MaxCommitTS) {
		return LargeResult{}, err
	}
	s.locks.setLargeTS(c, commitTS)
	w := newLargeWriter(s, args.StartTS, commitTS, args.Set.Len())
	err = args.Set.Read(ctx, w.add)
	if err == nil && s.deleted.n.Load() > 0 {
		for i := range c.spans {
			s.deleted.removeSpan(c.spans[i].Start, c.spans[i].End)
		}
	}
	if err != nil {
		w.tables.Abort()
		return LargeResult{}, err
	}
	written := w.tables.Bytes()
	if len(args.Shared) > 0 {
		err = chk.ingestChecked(ctx, w)
	} else {
		// From here on the outcome must be learnt, whoever gives up.
		err = w.tables.Ingest(context.WithoutCancel(ctx))
	}
	if err != nil {
		return LargeResult{}, err
	}
	return LargeResult{CommitTS: commitTS, WrittenBytes: written}, nil
}

// ingestChecked is Ingest under the latches of the keys held shared, which are checked: nothing else keeps
// others from them if the locks have been lost.
func (k *largeChecker) ingestChecked(ctx context.Context, out *largeWriter) error {
	defer out.tables.Abort()
	pre := k.prewrite(k.args.Shared)
	adm := k.args.Admission(k.args.Shared)
	w := k.s.newWriter()
	defer w.release()
	for {
		w.latchMutations(pre.Mutations)
		_, wait, err := w.checkMutations(adm, &pre)
		if err == nil && wait == nil {
			if err = w.applyUses(out.startTS, out.commitTS); err == nil {
				err = out.tables.Ingest(context.WithoutCancel(ctx))
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

// applyUses makes the records of the use of shared keys durable. Should the commit fail after all, they make
// somebody run again in vain.
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
	args   *LargeArgs
	writes bool          // some mutation is not a check
	floor  tso.Timestamp // the commit_ts lies above it: the snapshot, and what keys were locked at
}

// check judges one batch. What it finds stays so: other writers of these keys wait for the large commit.
func (k *largeChecker) check(ctx context.Context, ms []Mutation) error {
	pre := k.prewrite(ms)
	if _, err := validateMutations(ms); err != nil {
		return err
	}
	for i := range ms {
		k.floor = max(k.floor, ms[i].LockedAt)
		k.writes = k.writes || decideRecord(ms[i].Op, 0, 0) != recordNothing
	}
	adm := k.args.Admission(ms)
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

// prewrite is the request whose checks some of the keys have to pass.
func (k *largeChecker) prewrite(ms []Mutation) PrewriteArgs {
	return PrewriteArgs{
		Mutations: ms, Primary: k.args.Primary, StartTS: k.args.StartTS, ReadTS: k.args.ReadTS,
		TTLMillis: k.args.TTLMillis, TxnSize: uint32(min(k.args.Set.Len(), 1<<32-1)), TryOnePC: true,
	}
}

// checkOnce is one attempt. A non-nil channel means: try again once it is closed.
func (k *largeChecker) checkOnce(w *writer, adm Admission, pre *PrewriteArgs) (<-chan struct{}, error) {
	w.latchMutations(pre.Mutations)
	defer w.unlatch()
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

// replaceHeld puts entries in the place of the transaction's pessimistic locks on the batch: nobody can take
// them away until the commit is over, and who waits for them learns of it then.
func (k *largeChecker) replaceHeld(w *writer) {
	var held []entry
	w.near.forget()
	for i := range w.entries {
		e := &w.entries[i]
		if old, _ := k.s.locks.getNear(&w.near, e.key); old == nil || old.holderOf(k.args.StartTS) == nil {
			continue
		}
		e.key = bytes.Clone(e.key) // the batch's memory is used again
		held = append(held, *e)
	}
	if len(held) > 0 {
		k.s.locks.replaceHeld(k.c, slices.Clip(held))
	}
}

// largeWriter writes the records of a large commit to table files.
type largeWriter struct {
	s                 *State
	startTS, commitTS tso.Timestamp
	tables            *storage.Tables
	writes            *storage.TableSet
	data, status      *storage.TableSet // nil until needed
	key, value        []byte
	marked            bool // every mark is at commitTS
}

// newLargeWriter begins to write a set of n keys.
func newLargeWriter(s *State, startTS, commitTS tso.Timestamp, n int) *largeWriter {
	t := s.eng.NewTables()
	w := &largeWriter{s: s, startTS: startTS, commitTS: commitTS, tables: t, writes: t.NewSet()}
	if n >= 4*numMarks {
		s.marks.raiseAll(commitTS)
		w.marked = true
	}
	return w
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
		var err error
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
		if w.data == nil {
			w.data = w.tables.NewSet()
		}
		w.key = appendVersioned(w.key[:0], tagData, m.Key, w.startTS)
		if err := w.data.Put(w.key, m.Value); err != nil {
			return err
		}
	}
	w.mark(m.Key)
	w.key = appendVersioned(w.key[:0], tagWrite, m.Key, w.commitTS)
	w.value = appendWrite(w.value[:0], m.Op, long, w.startTS, w.commitTS, m.Value)
	return w.writes.Put(w.key, w.value)
}

// addLock leaves a record on a key that was locked and not written.
func (w *largeWriter) addLock(m *Mutation) error {
	if w.status == nil {
		w.status = w.tables.NewSet()
	}
	raise(&w.s.maxLockCommitTS, w.commitTS)
	w.mark(m.Key)
	w.key = appendVersioned(w.key[:0], tagStatus, m.Key, w.commitTS)
	w.value = appendStatus(w.value[:0], statusLockCommit, w.startTS)
	return w.status.Put(w.key, w.value)
}
