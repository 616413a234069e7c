package mvcc

import (
	"bytes"
	"context"
	"fmt"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Admission checks under latches whether the request may still run here; its result stays valid until the latches are
// released.
type Admission interface{ Admit() error }

// PrewriteAdmission is the admission of a prewrite: of its mutations, and of its Reads, checked at the commit_ts.
type PrewriteAdmission interface {
	Admission
	AdmitReads() error
}

// PrewriteRequest: Mutations ascending by key. Notify has the sets that they select. Primary is the key that decides the
// transaction.
type PrewriteRequest struct {
	Ranges    []RangeRef
	Mutations []Mutation
	Notify    []NotifySet
	Primary   []byte
	StartTS   tso.Timestamp
	TTLMillis uint64
	// LeaseMillis is the time after which the owner's next heartbeat is late: until then after each of its requests the
	// lock is valid, even if the oracle's clock jumps beyond the TTL.
	LeaseMillis uint64
	Process     uint64 // of the transaction; 0: nobody will ask for the locks of that process
	TxnSize     uint32
	// TryOnePC: Mutations is the whole transaction; commit it in one atomic batch.
	TryOnePC bool
	// MaxCommitTS bounds the commit_ts of a one-phase or async commit (0: any). Where it would lie
	// above, the shard writes plain locks instead, as if TryOnePC and Async were false.
	MaxCommitTS tso.Timestamp
	// ReadTS is the snapshot of the transaction: commits above it conflict, where a mutation was
	// not locked before. 0 means StartTS.
	ReadTS tso.Timestamp
	// Async requests locks that commit the transaction once all its keys have one. Secondaries, in the request with the
	// primary, are the transaction's other keys.
	Async       bool
	Secondaries [][]byte
	// FloorTS was issued after the commit was requested; an async or one-phase commit lies above it. With 0 the shard
	// requests a timestamp from the oracle if necessary.
	FloorTS tso.Timestamp
	// Reads, of a serializable transaction with TryOnePC, must not have changed between ReadTS and the
	// commit. All lie within Ranges. Further errors: *RefreshConflictError.
	Reads []Span
}

// PrewriteResponse: OnePCCommitTS != 0 means the transaction is committed. Async means that all keys of
// the request carry locks of an async commit, and that MinCommitTS is final.
type PrewriteResponse struct {
	OnePCCommitTS tso.Timestamp
	MinCommitTS   tso.Timestamp
	Async         bool
}

// PrewriteResult is a response with the size of what was written for it.
type PrewriteResult struct {
	PrewriteResponse
	WrittenBytes int
}

// InvalidRequestError: the request itself is malformed. It is a bug of the caller.
type InvalidRequestError struct{ Detail string }

func (e *InvalidRequestError) Error() string { return "invalid request: " + e.Detail }

// snapshot returns the timestamp up to which the transaction has seen what others commit.
func (a *PrewriteRequest) snapshot() tso.Timestamp { return max(a.StartTS, a.ReadTS) }

// Prewrite locks all keys or none; with TryOnePC it commits them at once if possible. Errors: *KeyLockedError,
// *WriteConflictError, *LockLostError, *KeyExistsError, *RefreshConflictError, *RolledBackError, *AlreadyCommittedError,
// *TooOldError, and those of adm; nothing was written then.
func (s *State) Prewrite(ctx context.Context, adm PrewriteAdmission, args *PrewriteRequest) (PrewriteResult, error) {
	checks, err := validateMutations(args.Mutations, args.Notify)
	if err == nil {
		err = s.checkClaimed(ctx, max(args.StartTS, args.ReadTS, args.FloorTS))
	}
	if err == nil && checks {
		err = s.BeginRead(ctx, args.snapshot()) // a key's absence is a read
	}
	if err != nil {
		return PrewriteResult{}, err
	}
	w := s.newWriter()
	defer w.release()
	for {
		floor, err := s.commitFloor(ctx, args)
		if err != nil {
			return PrewriteResult{}, err
		}
		res, wait, err := w.prewrite(ctx, adm, args, floor)
		if wait == nil {
			return res, err
		}
		if err := s.wait(ctx, wait); err != nil {
			return PrewriteResult{}, err
		}
	}
}

// validateMutations also reports whether there is an OpCheckNotExists among them.
func validateMutations(ms []Mutation, sets []NotifySet) (checks bool, err error) {
	if len(ms) == 0 {
		return false, &InvalidRequestError{Detail: "prewrite without mutations"}
	}
	if err := validateNotifySets(sets); err != nil {
		return false, err
	}
	size := 0
	for i := range ms {
		if !ms[i].valid() {
			return false, &InvalidRequestError{Detail: fmt.Sprintf("operation %d", ms[i].Op)}
		}
		if i > 0 && bytes.Compare(ms[i-1].Key, ms[i].Key) >= 0 {
			return false, &InvalidRequestError{Detail: "keys do not ascend"}
		}
		cells, err := ms[i].validateNotify(sets)
		if err != nil {
			return false, err
		}
		checks = checks || ms[i].Op == OpCheckNotExists
		size += len(ms[i].Key) + len(ms[i].Value) + 64 + cells
	}
	if size > storage.MaxBatchBytes {
		return false, &InvalidRequestError{Detail: fmt.Sprintf("request of %d bytes is too large", size)}
	}
	return checks, nil
}

// valid reports whether the mutation is one.
func (m *Mutation) valid() bool {
	return m.Op.LeavesLock() || m.Op == OpCheckNotExists || m.Op == OpCheckShared && m.LockedAt != 0
}

// commitFloor returns a lower bound of the commit_ts. If the shard computes the commit_ts, it is a timestamp issued
// after the commit was requested: every commit that the client has seen elsewhere lies below. For a one-phase commit an
// embedded oracle issues the commit_ts itself, later.
func (s *State) commitFloor(ctx context.Context, args *PrewriteRequest) (tso.Timestamp, error) {
	floor := max(args.FloorTS, args.ReadTS)
	// The oracle has issued it, by Prewrite's check or in this process, so timestamps computed from it need not be
	// checked against those yet to be issued.
	raise(&s.knownTS, args.FloorTS)
	if args.FloorTS != 0 || !args.Async && (!args.TryOnePC || s.opts.Embedded) {
		return floor, nil
	}
	now, err := s.refreshKnown(ctx)
	return max(floor, now), err
}

// prewrite is one attempt. A non-nil channel means: nothing was done; try again when it is closed.
func (w *writer) prewrite(ctx context.Context, adm PrewriteAdmission, args *PrewriteRequest, floor tso.Timestamp) (PrewriteResult, <-chan struct{}, error) {
	s := w.s
	w.latchMutations(args.Mutations)
	onePC, wait, err := w.checkMutations(adm, args)
	if err != nil || wait != nil {
		w.unlatch()
		return PrewriteResult{}, wait, err
	}
	if len(w.entries) == 0 {
		return w.nothingToWrite(args, onePC, floor)
	}
	res := PrewriteResult{PrewriteResponse: PrewriteResponse{MinCommitTS: s.locks.insert(w.entries, args.StartTS, floor, &s.maxTS)}}
	if onePC {
		res.OnePCCommitTS, err = w.tryOnePC(ctx, adm, args, res.MinCommitTS)
		if err != nil {
			s.locks.withdraw(w.entries)
			w.unlatch()
			return PrewriteResult{}, nil, err
		}
		if onePC = res.OnePCCommitTS != 0; onePC {
			res.MinCommitTS = res.OnePCCommitTS
			return w.applyPrewrite(args, true, res)
		}
		// No timestamp could be obtained here: continue in two phases, with all keys.
		w.replaceEntries(args)
		res.MinCommitTS = s.locks.insert(w.entries, args.StartTS, floor, &s.maxTS)
	}
	if args.Async {
		if res, err = w.tryAsync(ctx, args, res); err != nil {
			s.locks.withdraw(w.entries)
			w.unlatch()
			return PrewriteResult{}, nil, err
		}
	}
	for _, e := range w.met {
		res.MinCommitTS = max(res.MinCommitTS, e.lock.MinCommitTS)
		res.Async = res.Async && e.lock.Async
	}
	return w.applyPrewrite(args, false, res)
}

// nothingToWrite answers a request that consists of duplicates and checks, and releases the latches. If it is not all of
// the transaction, FloorTS is the commit_ts for which the checks are made.
func (w *writer) nothingToWrite(args *PrewriteRequest, onePC bool, floor tso.Timestamp) (PrewriteResult, <-chan struct{}, error) {
	res := PrewriteResult{PrewriteResponse: PrewriteResponse{Async: len(w.met) > 0}}
	for _, e := range w.met {
		res.MinCommitTS = max(res.MinCommitTS, e.lock.MinCommitTS)
		res.Async = res.Async && e.lock.Async
	}
	if onePC {
		res.OnePCCommitTS = args.snapshot() // its checks held at its snapshot, and that was all of it
	}
	if onePC || len(w.uses) == 0 {
		w.unlatch()
		return res, nil, nil
	}
	b := w.s.eng.NewBatch(0)
	defer b.Close()
	w.putUses(b, args.StartTS, floor)
	res.WrittenBytes = b.Len()
	err := w.s.apply(b, storage.Sync)
	w.unlatch()
	if err == nil {
		err = b.SyncWait()
	}
	return res, nil, err
}

// tryOnePC fixes the commit_ts of a one-phase commit whose entries are in the table, or returns 0 if it must continue in
// two phases. The reads of a serializable transaction are validated at that timestamp: of two that write what the other
// reads, at least one encounters the other's entries.
func (w *writer) tryOnePC(ctx context.Context, adm PrewriteAdmission, args *PrewriteRequest, minCommitTS tso.Timestamp) (tso.Timestamp, error) {
	s := w.s
	commitTS, err := s.onePCTimestamp(ctx, minCommitTS, len(args.Reads) > 0)
	if err != nil || !mayCommitAt(commitTS, args.MaxCommitTS) {
		return 0, err
	}
	s.locks.setCommitTS(w.entries, commitTS)
	if len(args.Reads) == 0 {
		return commitTS, nil
	}
	// First the fence, then the ranges: a shard that takes over a range takes over max_ts as well.
	raise(&s.maxTS, commitTS)
	if err := adm.AdmitReads(); err != nil {
		return 0, err
	}
	conflict, err := s.validate(&RefreshRequest{Spans: args.Reads, StartTS: args.StartTS, FromTS: args.snapshot(), ToTS: commitTS})
	if err == nil && conflict != nil {
		// The request cannot wait for it here: the holder may be waiting for the latches held here.
		err = conflict.KeyLockedError
	}
	if err != nil {
		return 0, err
	}
	return commitTS, nil
}

// replaceEntries makes the entries of a two-phase commit in place of those of a one-phase commit, which
// are in the table until the new ones are inserted.
func (w *writer) replaceEntries(args *PrewriteRequest) {
	entries := make([]entry, len(w.entries))
	for i := range w.entries {
		old := &w.entries[i]
		entries[i] = entry{key: old.key, lock: Lock{Op: old.lock.Op, StartTS: old.lock.StartTS, ForUpdateTS: old.lock.ForUpdateTS,
			Notify: old.lock.Notify}}
	}
	w.entries = entries
	w.fillEntries(args, false)
}

// tryAsync finally fixes the smallest commit_ts of the locks of an async commit, which are in the table, or makes them
// plain ones; no other transaction has acted on them yet.
func (w *writer) tryAsync(ctx context.Context, args *PrewriteRequest, res PrewriteResult) (PrewriteResult, error) {
	minCommitTS, err := w.s.computeTimestamp(ctx, res.MinCommitTS)
	if err != nil {
		return PrewriteResult{}, err
	}
	if res.Async = mayCommitAt(minCommitTS, args.MaxCommitTS); res.Async {
		res.MinCommitTS = minCommitTS
		w.s.locks.setAsync(w.entries, minCommitTS, args)
	}
	return res, nil
}

// applyPrewrite writes locks or, for one-phase commit, versions, and releases the latches.
func (w *writer) applyPrewrite(args *PrewriteRequest, onePC bool, res PrewriteResult) (PrewriteResult, <-chan struct{}, error) {
	s := w.s
	b := s.eng.NewBatch(w.batchSize(args))
	if onePC {
		if err := w.putVersions(b, args, res.OnePCCommitTS); err != nil {
			b.Close()
			s.locks.withdraw(w.entries)
			w.unlatch()
			return PrewriteResult{}, nil, err
		}
	} else {
		w.putLocks(b, args)
	}
	res.WrittenBytes = b.Len()
	at := s.hintTime(args)
	err := s.apply(b, storage.Sync)
	w.unlatch()
	if err == nil {
		err = b.SyncWait()
	}
	b.Close()
	switch {
	case err != nil:
		// The state of the disk is unknown, and the engine has failed: the entries stay, so that no reader ignores them,
		// and waiters receive the engine's error.
		s.locks.abandon(w.entries, err)
		w.entries = nil
		return PrewriteResult{}, nil, err
	case onePC:
		s.locks.removeSlab(w.entries, res.OnePCCommitTS)
		s.hintVersions(args, res.OnePCCommitTS, at)
	default:
		s.locks.settle(w.entries)
		w.entries = nil // they are the table's now
	}
	return res, nil, nil
}

// checkMutations decides about all mutations and fills w.entries with the new locks. onePC reports whether the request
// may commit in one phase. It returns a channel to wait for, or the highest-severity error.
func (w *writer) checkMutations(adm Admission, args *PrewriteRequest) (onePC bool, wait <-chan struct{}, err error) {
	w.entries, w.met, w.uses = w.entries[:0], w.met[:0], w.uses[:0]
	if err := adm.Admit(); err != nil {
		return false, nil, err
	}
	if err := w.s.checkLockBound(args.StartTS); err != nil {
		return false, nil, err
	}
	if err := w.s.checkSafePoint(args.StartTS); err != nil {
		return false, nil, err
	}
	n := len(args.Mutations)
	if cap(w.entries) < n {
		w.entries = make([]entry, 0, n)
	}
	if n >= cursorMinKeys {
		w.cursor.start(args.Mutations[n-1].Key)
	}
	readTS := args.snapshot()
	lostTS, safePoint := tso.Timestamp(w.s.lostTS.Load()), tso.Timestamp(w.s.safePoint.Load())
	worst, worstAt := prewriteLock, 0
	var worstView keyView
	duplicates := false
	for i := range args.Mutations {
		m := &args.Mutations[i]
		var v keyView
		e, wait := w.lookLock(&v, m.Key, args.StartTS)
		if wait != nil {
			return false, wait, nil
		}
		if !v.ownLock(args.StartTS) {
			if err := w.lookForPrewrite(&v, m, args.StartTS, readTS); err != nil {
				return false, nil, err
			}
		}
		verdict := decidePrewrite(args.StartTS, readTS, m, &v)
		switch {
		case verdict.failed() && verdict > worst:
			worst, worstAt, worstView = verdict, i, v
		case verdict == prewriteDuplicate:
			duplicates = true
			w.met = append(w.met, e)
		case verdict == prewriteCheck:
			if decideRecord(m.Op, lostTS, safePoint) == recordUse {
				w.uses = append(w.uses, m.Key)
			}
		case verdict == prewriteLock:
			w.entries = append(w.entries, entry{key: m.Key, lock: Lock{Op: m.Op, StartTS: args.StartTS, ForUpdateTS: m.LockedAt,
				Notify: m.notifySet(args.Notify)}})
		}
	}
	if worst.failed() {
		return false, nil, prewriteError(worst, args, &args.Mutations[worstAt], &worstView)
	}
	// A duplicate shows that an earlier request has made locks: the transaction continues in two phases.
	onePC = args.TryOnePC && !duplicates
	w.fillEntries(args, onePC)
	return onePC, nil, nil
}

// fillEntries completes the new locks. Those of a one-phase commit are removed before the request ends, and need neither
// values nor copies of keys.
func (w *writer) fillEntries(args *PrewriteRequest, onePC bool) {
	primary := args.Primary
	if !onePC {
		primary = bytes.Clone(primary)
	}
	heard := uint64(0)
	if !onePC && args.LeaseMillis != 0 {
		heard = w.s.locks.millis()
	}
	next := 0
	for i := range w.entries {
		e := &w.entries[i]
		e.onePC = onePC
		e.lock.Primary = primary
		e.lock.TTLMillis = args.TTLMillis
		e.lock.LeaseMillis, e.lock.HeardMillis, e.lock.Process = args.LeaseMillis, heard, args.Process
		e.lock.TxnSize = args.TxnSize
		if onePC {
			continue
		}
		for !bytes.Equal(args.Mutations[next].Key, e.key) {
			next++ // a duplicate or a check
		}
		e.key = bytes.Clone(e.key)
		if e.lock.Op == OpPut {
			value := args.Mutations[next].Value
			if e.longValue = len(value) > w.s.opts.ShortValueBytes; !e.longValue {
				e.lock.Value = bytes.Clone(value)
			}
		}
	}
}

func prewriteError(verdict prewriteVerdict, args *PrewriteRequest, m *Mutation, v *keyView) error {
	key := bytes.Clone(m.Key)
	switch verdict {
	case prewriteCommitted:
		return &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	case prewriteRolledBack:
		return &RolledBackError{StartTS: args.StartTS}
	case prewriteConflict:
		e := &WriteConflictError{Key: key, StartTS: args.StartTS,
			ConflictingStartTS: v.newest.startTS, ConflictingCommitTS: v.newest.commitTS}
		if v.lockCommitTS > v.newest.commitTS {
			e.ConflictingStartTS, e.ConflictingCommitTS = v.lockCommitStartTS, v.lockCommitTS
		}
		return e
	case prewriteExists:
		return &KeyExistsError{Key: key}
	case prewriteLost:
		return &LockLostError{Key: key, StartTS: args.StartTS, LockedAt: m.LockedAt}
	default:
		return &KeyLockedError{Key: key, Lock: v.other.detached()}
	}
}

// onePCTimestamp returns the commit_ts of a one-phase commit whose locks are in the table, or 0 if it must continue in
// two phases. minCommitTS is above max_ts and the floor. issued requests one that the oracle has issued, so that reads
// may be fenced at it.
func (s *State) onePCTimestamp(ctx context.Context, minCommitTS tso.Timestamp, issued bool) (tso.Timestamp, error) {
	if !s.opts.Embedded && !issued {
		return s.computeTimestamp(ctx, minCommitTS)
	}
	// Whatever the oracle gives now is above all it gave before, max_ts among it.
	ts, err := s.opts.Oracle.Now(ctx)
	if err == nil && ts < minCommitTS {
		return 0, nil
	}
	return ts, err
}

// computeTimestamp returns a timestamp at or above minCommitTS that the oracle never issues, and that
// is below all it has yet to issue, or 0 if there is none.
func (s *State) computeTimestamp(ctx context.Context, minCommitTS tso.Timestamp) (tso.Timestamp, error) {
	// It is below those yet to be issued only if the timestamp it is computed from has been issued.
	base := minCommitTS - 1
	if uint64(base) > s.knownTS.Load() {
		if _, err := s.refreshKnown(ctx); err != nil || uint64(base) > s.knownTS.Load() {
			return 0, err
		}
	}
	ts, ok := nextTS(base)
	if !ok {
		return 0, nil
	}
	return ts, nil
}

// batchSize estimates the batch of a large request, so that it grows in one step.
func (w *writer) batchSize(args *PrewriteRequest) int {
	if len(args.Mutations) < 64 {
		return 0
	}
	size := 0
	for i := range args.Mutations {
		m := &args.Mutations[i]
		size += len(m.Key) + len(m.Value) + 32
		if set := m.notifySet(args.Notify); set != nil {
			size += len(set.Observers) * (len(m.Key) + notifyCellOverhead)
		}
	}
	return size
}

// putVersions writes the records of a one-phase commit.
func (w *writer) putVersions(b *storage.Batch, args *PrewriteRequest, commitTS tso.Timestamp) error {
	w.putUses(b, args.StartTS, commitTS)
	for i := range args.Mutations {
		m := &args.Mutations[i]
		switch decideRecord(m.Op, 0, 0) {
		case recordLock:
			w.putLockCommit(b, m.Key, args.StartTS, commitTS)
		case recordVersion:
			long := len(m.Value) > w.s.opts.OnePCShortValueBytes && m.Op == OpPut
			if long {
				w.putData(b, m.Key, args.StartTS, m.Value)
			}
			w.putWrite(b, m.Key, m.Op, long, args.StartTS, commitTS, m.Value)
			if err := w.putCells(b, m.Key, m.notifySet(args.Notify), commitTS); err != nil {
				return err
			}
		}
	}
	return nil
}

// putLocks writes the new locks, and the values too long for them.
func (w *writer) putLocks(b *storage.Batch, args *PrewriteRequest) {
	next := 0
	for i := range w.entries {
		e := &w.entries[i]
		if e.longValue {
			for !bytes.Equal(args.Mutations[next].Key, e.key) {
				next++
			}
			w.putData(b, e.key, args.StartTS, args.Mutations[next].Value)
		}
		w.key = appendLockKey(w.key[:0], e.key)
		w.value = appendLock(w.value[:0], &e.lock, e.longValue)
		b.Put(w.key, w.value)
	}
}

func (w *writer) putWrite(b *storage.Batch, key []byte, op Op, long bool, startTS, commitTS tso.Timestamp, value []byte) {
	raise(w.s.marks.of(key), commitTS)
	w.s.deleted.removeKey(key)
	w.s.scans.wrote(key, commitTS, &w.scanHint)
	w.key = appendVersioned(w.key[:0], tagWrite, key, commitTS)
	w.value = appendWrite(w.value[:0], op, long, startTS, commitTS, value)
	b.Put(w.key, w.value)
}

func (w *writer) putData(b *storage.Batch, key []byte, startTS tso.Timestamp, value []byte) {
	w.key = appendVersioned(w.key[:0], tagData, key, startTS)
	b.Put(w.key, value)
}

// putUses records the use of keys that are held shared.
func (w *writer) putUses(b *storage.Batch, startTS, ts tso.Timestamp) {
	for _, key := range w.uses {
		w.putLockCommit(b, key, useStartTS(startTS), ts)
	}
}

func (w *writer) putLockCommit(b *storage.Batch, key []byte, startTS, commitTS tso.Timestamp) {
	raise(&w.s.maxLockCommitTS, commitTS)
	raise(w.s.marks.of(key), commitTS)
	w.key = appendVersioned(w.key[:0], tagStatus, key, commitTS)
	w.value = appendStatus(w.value[:0], statusLockCommit, startTS)
	b.Put(w.key, w.value)
}

func (w *writer) putRollback(b *storage.Batch, key []byte, startTS tso.Timestamp) {
	raise(&w.s.maxRollbackTS, startTS)
	w.key = appendVersioned(w.key[:0], tagStatus, key, startTS)
	w.value = appendStatus(w.value[:0], statusRollback, startTS)
	b.Put(w.key, w.value)
}
