package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// writer contains the state of one write request while it runs. It is pooled.
type writer struct {
	s       *State
	held    latchSet
	cursor  existsCursor
	iter    *storage.Iterator // over W, opened at the first look
	key     []byte            // scratch for stored keys
	value   []byte            // scratch for records
	entries []entry           // new locks
	met     []*entry          // locks to be finished
	uses    [][]byte          // keys held shared whose use is to be recorded
	dropped []*entry          // pessimistic locks to be dropped
	records *storage.Iterator // over L, opened when the value of a lock is needed that is not in memory
	near    near              // where in the lock table it has last looked

	scanHint scanHint
}

func (s *State) newWriter() *writer { return s.writers.Get().(*writer) }

// release returns the writer to the pool. Its latches must have been released.
func (w *writer) release() {
	const keep = 1024
	w.closeIters()
	w.near.forget()
	w.scanHint = scanHint{}
	clear(w.entries)
	clear(w.met)
	clear(w.dropped)
	clear(w.uses)
	w.entries, w.met, w.dropped, w.uses = w.entries[:0], w.met[:0], w.dropped[:0], w.uses[:0]
	if cap(w.entries) > keep {
		w.entries = nil
	}
	if cap(w.met) > keep {
		w.met = nil
	}
	if cap(w.key)+cap(w.value) > 64*keep {
		w.key, w.value = nil, nil
	}
	w.s.writers.Put(w)
}

func (w *writer) closeIters() {
	if w.iter != nil {
		w.iter.Close()
		w.iter = nil
	}
	if w.records != nil {
		w.records.Close()
		w.records = nil
	}
	w.cursor.close()
}

// lockRecord returns the record of the lock of startTS on key, which is latched. Keys ascend. What it returns is valid until the
// next call.
func (w *writer) lockRecord(key []byte, startTS tso.Timestamp) (l Lock, err error) {
	w.key = appendLockKey(w.key[:0], key)
	if w.records == nil {
		if w.records, err = w.s.eng.NewRangeIter(w.key, storage.AppendSentinel([]byte{tagLock + 1})); err != nil {
			return Lock{}, err
		}
	}
	if !w.records.SeekGE(w.key) || !bytes.Equal(w.records.Key(), w.key) {
		if err := w.records.Error(); err != nil {
			return Lock{}, err
		}
		return Lock{}, corrupt(key, "lock is not on disk")
	}
	value, err := w.records.Value()
	if err != nil {
		return Lock{}, err
	}
	l, _, err = decodeLock(value)
	if err != nil || l.StartTS != startTS {
		return Lock{}, &CorruptionError{Key: bytes.Clone(key), Detail: "lock record", Err: err}
	}
	return l, nil
}

// latchKeys takes the latches of keys.
func (w *writer) latchKeys(keys [][]byte) {
	w.near.forget()
	if len(keys) == 1 {
		w.s.latches.lockOne(&w.held, keys[0])
		return
	}
	for _, key := range keys {
		w.s.latches.add(&w.held, key)
	}
	w.s.latches.lock(&w.held)
}

func (w *writer) latchMutations(ms []Mutation) {
	w.near.forget()
	if len(ms) == 1 {
		w.s.latches.lockOne(&w.held, ms[0].Key)
		return
	}
	for i := range ms {
		w.s.latches.add(&w.held, ms[i].Key)
	}
	w.s.latches.lock(&w.held)
}

func (w *writer) unlatch() {
	w.closeIters()
	w.s.latches.unlock(&w.held)
}

// lookLock puts the locks on key into the view of a transaction. It returns the channel to wait for,
// latches released, if the lock's state is about to change.
func (w *writer) lookLock(v *keyView, key []byte, startTS tso.Timestamp) (e *entry, wait <-chan struct{}) {
	if c := w.s.locks.largeWriter(key, startTS); c != nil {
		return nil, c.done
	}
	e, state := w.s.locks.getNear(&w.near, key)
	for e != nil && state != stateDurable {
		if wait = w.s.locks.waitChan(key); wait != nil {
			return nil, wait
		}
		e, state = w.s.locks.getNear(&w.near, key) // it changed just now
	}
	if e != nil {
		v.setLock(e, startTS)
	}
	return e, nil
}

func (v *keyView) setLock(e *entry, startTS tso.Timestamp) {
	v.other = e.otherThan(startTS)
	if v.lock = e.holderOf(startTS); v.lock == nil {
		v.lock = v.other
	}
}

// lookWrites puts the newest version of key into the view, and the transaction's own record.
func (w *writer) lookWrites(v *keyView, key []byte, startTS tso.Timestamp) error {
	if w.cursor.absent(w, key) {
		return nil
	}
	if w.cursor.err != nil {
		return w.cursor.err
	}
	if w.iter == nil {
		it, err := w.s.eng.NewPointIter(storage.PointCheck)
		if err != nil {
			return err
		}
		w.iter = it
	}
	w.key = appendPrefix(w.key[:0], tagWrite, key)
	if !w.iter.SeekPrefixGE(w.key) {
		return w.iter.Error()
	}
	newest, err := currentWrite(w.iter)
	if err != nil {
		return err
	}
	newest.value = nil
	v.newest = newest
	// Own records lie above start_ts, and usually no record does.
	for rec := newest; rec.commitTS > startTS; {
		if rec.startTS == startTS {
			v.ownCommitTS = rec.commitTS
			return nil
		}
		if !w.iter.Next() {
			return w.iter.Error()
		}
		if rec, err = currentWrite(w.iter); err != nil {
			return err
		}
	}
	return nil
}

// lookStatus adds S's records about key to the view: rollback records of startTS, and committed OpLocks and uses of
// shared locks above it. The bounds in memory spare most transactions the lookup.
func (w *writer) lookStatus(v *keyView, key []byte, startTS tso.Timestamp) error {
	if uint64(startTS) > w.s.maxRollbackTS.Load() &&
		(uint64(startTS) > w.s.maxLockCommitTS.Load() || uint64(startTS) >= w.s.marks.of(key).Load()) {
		return nil
	}
	it, err := w.s.eng.NewPointIter(storage.PointCheck)
	if err != nil {
		return err
	}
	defer it.Close()
	w.key = appendPrefix(w.key[:0], tagStatus, key)
	for ok := it.SeekPrefixGE(w.key); ok; ok = it.Next() {
		_, version, _ := storage.SplitVersion(it.Key())
		ts := tso.Timestamp(version)
		if ts < startTS {
			return nil
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		kind, recStartTS, err := decodeStatus(value)
		if err != nil {
			return &CorruptionError{Key: bytes.Clone(key), Detail: "status record", Err: err}
		}
		switch {
		case kind == statusRollback:
			v.rolledBack = v.rolledBack || ts == startTS
			continue
		case isUse(recStartTS):
			v.sharedUseTS = max(v.sharedUseTS, ts)
			continue
		case recStartTS == startTS:
			v.ownCommitTS = ts
		}
		if v.lockCommitTS == 0 {
			v.lockCommitTS, v.lockCommitStartTS = ts, recStartTS
		}
	}
	return it.Error()
}

// lookAll gathers everything about key except the lock. It returns *TooOldError if there is no record of the transaction
// and records may have been collected.
func (w *writer) lookAll(v *keyView, key []byte, startTS tso.Timestamp) error {
	if err := w.lookWrites(v, key, startTS); err != nil {
		return err
	}
	if err := w.lookStatus(v, key, startTS); err != nil {
		return err
	}
	if v.ownCommitTS == 0 && !v.rolledBack {
		return w.s.recordsGone(startTS)
	}
	return nil
}

// lookForPrewrite gathers the input of decidePrewrite about a key that the transaction has not prewritten. Versions at
// or below the snapshot matter only to mutations that require the key to be new, and if the key's very lock still exists
// no version matters: had the transaction committed, the lock would be another one.
func (w *writer) lookForPrewrite(v *keyView, m *Mutation, startTS, readTS tso.Timestamp) error {
	held := v.ownPess(startTS) && v.lock.ForUpdateTS == m.LockedAt
	since := readTS
	if m.LockedAt != 0 {
		since = m.LockedAt // the snapshot may have moved up since a lock that is lost now was granted
	}
	if m.MustBeNew || m.Op == OpCheckNotExists || !held && w.s.marks.of(m.Key).Load() > uint64(since) {
		if err := w.lookWrites(v, m.Key, startTS); err != nil {
			return err
		}
	}
	return w.lookStatus(v, m.Key, startTS)
}

// lookForLock gathers the input of decideAcquire and lockedAt about a key that the transaction has not locked: commits
// after its snapshot, including its own end; and whether the key exists, if requested.
func (w *writer) lookForLock(v *keyView, key []byte, args *AcquireLocksRequest) error {
	if args.Existence || w.s.marks.of(key).Load() > uint64(args.snapshot()) {
		if err := w.lookWrites(v, key, args.StartTS); err != nil {
			return err
		}
	}
	return w.lookStatus(v, key, args.StartTS)
}

// existsCursor reports that ascending keys have no versions without a seek for each: a position p found by a seek to k
// shows that all keys of [k, p) are absent. Bulk loads into empty or sparse spans then cost one seek. If seeks exclude
// few keys, it pauses.
type existsCursor struct {
	active bool
	it     *storage.Iterator
	upper  []byte // last key of the request
	at     []byte // the smallest key with a version at or above the last seek, unless there is none
	none   bool
	seeked bool
	gained int // keys answered since the last seek
	rest   int // keys for which it pauses
	err    error
}

const (
	cursorMinKeys = 8
	cursorRest    = 32
)

func (c *existsCursor) start(last []byte) { *c = existsCursor{active: true, upper: last} }

// absent reports that key certainly has no version; false means unknown.
func (c *existsCursor) absent(w *writer, key []byte) bool {
	if !c.active || c.err != nil {
		return false
	}
	if c.seeked && (c.none || bytes.Compare(key, c.at) < 0) {
		c.gained++
		return true
	}
	if c.rest > 0 {
		c.rest--
		return false
	}
	if c.seeked && c.gained < 2 {
		c.rest, c.seeked = cursorRest, false
		return false
	}
	return c.seek(w, key)
}

func (c *existsCursor) seek(w *writer, key []byte) bool {
	lower := appendPrefix(w.key[:0], tagWrite, key)
	w.key = lower
	if c.it == nil {
		upper := append(appendPrefix(nil, tagWrite, c.upper), 0)
		if c.it, c.err = w.s.eng.NewRangeIter(lower, upper); c.err != nil {
			return false
		}
	}
	c.seeked, c.gained = true, 0
	if c.none = !c.it.SeekGE(lower); c.none {
		c.err = c.it.Error()
		return c.err == nil
	}
	prefix, _, ok := storage.SplitVersion(c.it.Key())
	if !ok {
		c.err = corrupt(c.it.Key(), "unversioned key among the write records")
		return false
	}
	c.at = append(c.at[:0], userKey(prefix)...)
	return bytes.Compare(key, c.at) < 0
}

func (c *existsCursor) close() {
	if c.it != nil {
		c.it.Close()
	}
	*c = existsCursor{}
}
