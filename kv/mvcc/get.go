package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// ReadOptions are the snapshot of a read, and the locks that it ignores or reads through.
type ReadOptions struct {
	// ReadTS is the snapshot. tso.MaxTimestamp means the latest committed value (GetLatest).
	ReadTS tso.Timestamp
	// FloorTS, of a read of the latest value: the read misses no commit at or below it.
	FloorTS tso.Timestamp
	// Bypass holds start_ts of transactions known to commit above ReadTS or to be rolled back.
	Bypass []tso.Timestamp
	// Resolved holds transactions known to have committed: their locks are read through.
	Resolved []CommittedTxn
}

// CommittedTxn pairs a transaction with its commit_ts.
type CommittedTxn struct{ StartTS, CommitTS tso.Timestamp }

// probed is the result of the lock table check of a key before a read.
type probed struct {
	verdict   readVerdict
	lock      Lock // of readThrough and readLocked
	longValue bool
	onDisk    bool // the value of readThrough is in the lock's record
	wait      <-chan struct{}
}

// probe looks up the lock on key. Call it after BeginRead and before any iterator is opened.
func (s *State) probe(key []byte, o *ReadOptions) probed {
	if s.locks.blocking.Load() == 0 {
		return probed{}
	}
	if wait := s.locks.largeReaders(key, o.ReadTS); wait != nil {
		return probed{verdict: readWait, wait: wait}
	}
	s.locks.mu.RLock()
	e := s.locks.getBlockingLocked(key)
	if e == nil {
		s.locks.mu.RUnlock()
		return probed{}
	}
	p := probed{verdict: e.decideRead(o)}
	switch p.verdict {
	case readThrough:
		p.lock, p.longValue, p.onDisk = e.lock.detached(), e.longValue, e.valueOnDisk
		p.lock.Value = bytes.Clone(e.lock.Value)
	case readLocked:
		p.lock = e.lock.detached()
	}
	s.locks.mu.RUnlock()
	if p.verdict == readWait {
		p.wait = s.locks.waitChan(key)
	}
	return p
}

// probeWaiting is probe that sits out states that are about to change.
func (s *State) probeWaiting(ctx context.Context, key []byte, o *ReadOptions) (probed, error) {
	for {
		p := s.probe(key, o)
		if p.verdict != readWait {
			current, err := s.loadLockValue(key, &p)
			if err == nil && !current {
				err = ctx.Err()
			}
			if current || err != nil {
				return p, err
			}
			continue
		}
		if err := s.wait(ctx, p.wait); err != nil {
			return probed{}, err
		}
	}
}

// decideRead judges the lock for a read.
func (e *entry) decideRead(o *ReadOptions) readVerdict {
	verdict := decideRead(e.key, &e.lock, e.state, e.onePC, o)
	if verdict == readThrough && e.valueOnDisk && e.state != stateDurable {
		return readWait // its record is about to go
	}
	return verdict
}

// loadLockValue reads the value of a lock that is read through and whose value is not in memory. current is false if the lock
// has ended since the probe: probe again.
func (s *State) loadLockValue(key []byte, p *probed) (current bool, _ error) {
	if p.verdict != readThrough || !p.onDisk {
		return true, nil
	}
	record, found, err := s.eng.Get(nil, appendLockKey(nil, key))
	if err != nil || !found {
		return false, err
	}
	l, _, err := decodeLock(record)
	if err != nil {
		return false, &CorruptionError{Key: bytes.Clone(key), Detail: "lock record", Err: err}
	}
	p.lock.Value = l.Value
	return l.StartTS == p.lock.StartTS, nil
}

// Get returns the newest value of key committed at or before o.ReadTS, or nil. BeginRead must have been called with it.
// Errors: *KeyLockedError, *TooOldError.
func (s *State) Get(ctx context.Context, key []byte, o *ReadOptions) ([]byte, error) {
	if o.ReadTS == tso.MaxTimestamp {
		return nil, &InvalidRequestError{Detail: "read without a timestamp"}
	}
	p, err := s.probeWaiting(ctx, key, o)
	if err != nil {
		return nil, err
	}
	switch p.verdict {
	case readLocked:
		return nil, &KeyLockedError{Key: bytes.Clone(key), Lock: p.lock}
	case readThrough:
		return s.lockValue(key, &p, o.ReadTS)
	}
	r := s.newPointReader(o.ReadTS)
	defer r.close()
	if err := s.checkSafePoint(o.ReadTS); err != nil {
		return nil, err
	}
	return r.get(key, 1)
}

// LatestValue is the newest committed version of a key: a nil Value with a CommitTS is a deletion, without one
// the key has no version.
type LatestValue struct {
	Value    []byte
	CommitTS tso.Timestamp
}

// GetLatest is Get without a timestamp. It sees every commit at or below floor, with which BeginRead must have been
// called: a reader that passes the largest CommitTS that it has seen never reads an older state. A lock whose
// transaction is not known to commit above floor is a *KeyLockedError.
func (s *State) GetLatest(ctx context.Context, key []byte, floor tso.Timestamp) (LatestValue, error) {
	if c := s.locks.largeWriting(key); c != nil {
		return LatestValue{}, c.lockedError(key) // a read at a timestamp may be below it
	}
	o := &ReadOptions{ReadTS: tso.MaxTimestamp, FloorTS: floor}
	p, err := s.probeWaiting(ctx, key, o)
	if err != nil {
		return LatestValue{}, err
	}
	if p.verdict == readLocked {
		return LatestValue{}, &KeyLockedError{Key: bytes.Clone(key), Lock: p.lock}
	}
	it, err := s.eng.NewPointIter(storage.PointRead)
	if err != nil {
		return LatestValue{}, err
	}
	defer it.Close()
	if err := s.awaitDurable(ctx, key, o); err != nil {
		return LatestValue{}, err
	}
	value, w, err := s.getVersion(it, key, o.ReadTS)
	return LatestValue{Value: value, CommitTS: w.commitTS}, err
}

// pointReader reads keys, ascending, at a timestamp, after the lock check.
type pointReader struct {
	s      *State
	readTS tso.Timestamp
	recent *recentReads // as it was before the iterator was opened
	it     *storage.Iterator
	room   []byte // buffer of copies of cached values
}

func (s *State) newPointReader(readTS tso.Timestamp) pointReader {
	return pointReader{s: s, readTS: readTS, recent: s.recent.Load()}
}

func (r *pointReader) close() {
	if r.it != nil {
		r.it.Close()
	}
}

// get returns a copy of the value of key, or nil. left is the number of keys from this one on.
func (r *pointReader) get(key []byte, left int) ([]byte, error) {
	hash := r.s.marks.hash(key)
	mark := r.s.marks.at(hash)
	if e := r.recent.find(hash, mark, key, r.readTS); e != nil {
		return r.copied(e.value, left), nil
	}
	if r.it == nil {
		it, err := r.s.eng.NewPointIter(storage.PointRead)
		if err != nil {
			return nil, err
		}
		r.it = it
		// The safe point is read after the iterator was opened: garbage collection raises it first.
		if err := r.s.checkSafePoint(r.readTS); err != nil {
			return nil, err
		}
	}
	value, w, err := r.s.getVersion(r.it, key, r.readTS)
	if err == nil && value != nil && !w.longValue {
		r.recent.remember(hash, mark, key, r.readTS, w.commitTS, value)
	}
	return value, err
}

// copied returns a copy of a value: one allocation for some of many.
func (r *pointReader) copied(value []byte, left int) []byte {
	const most = 4 << 10
	n := len(r.room)
	if r.room == nil || cap(r.room)-n < len(value) { // a copy is never nil: nil means absent
		n, r.room = 0, make([]byte, 0, max(min(left*len(value), most), len(value)))
	}
	r.room = append(r.room, value...)
	return r.room[n:len(r.room):len(r.room)]
}

// awaitDurable waits until the state of key that a previously opened iterator shows is durable. A commit that was
// applied after the probe has its lock in the table until it is durable. A read at a timestamp need not check: commits
// after its probe are above it.
func (s *State) awaitDurable(ctx context.Context, key []byte, o *ReadOptions) error {
	_, err := s.probeWaiting(ctx, key, o)
	return err
}

// getVersion returns a copy of the value of key as of ts, or nil, and its write record, whose value is the iterator's;
// the zero record if there is none.
func (s *State) getVersion(it *storage.Iterator, key []byte, ts tso.Timestamp) ([]byte, writeRecord, error) {
	buf := appendVersioned(it.Buf[:0], tagWrite, key, ts)
	it.Buf = buf
	if !it.SeekPrefixGE(buf) {
		return nil, writeRecord{}, it.Error()
	}
	w, err := currentWrite(it)
	if err != nil || w.op == OpDelete {
		return nil, w, err
	}
	if w.longValue {
		value, err := s.dataValue(it, key, w.startTS, ts)
		return value, w, err
	}
	value := make([]byte, len(w.value))
	copy(value, w.value)
	return value, w, nil
}

// currentWrite decodes the iterator's current write record; its value is the iterator's.
func currentWrite(it *storage.Iterator) (writeRecord, error) {
	prefix, version, ok := storage.SplitVersion(it.Key())
	if !ok {
		return writeRecord{}, corrupt(it.Key(), "unversioned key among the write records")
	}
	return writeAt(it, userKey(prefix), version)
}

// writeAt is currentWrite for callers that know the key and the version already.
func writeAt(it *storage.Iterator, key []byte, version uint64) (writeRecord, error) {
	value, err := it.Value()
	if err != nil {
		return writeRecord{}, err
	}
	w, err := decodeWrite(tso.Timestamp(version), value)
	if err != nil {
		return writeRecord{}, &CorruptionError{Key: bytes.Clone(key), Detail: "write record", Err: err}
	}
	return w, nil
}

// dataValue returns the data record that the transaction startTS wrote at key, for a read at readTS that found the write
// record by it, or the lock if it is nil.
func (s *State) dataValue(it *storage.Iterator, key []byte, startTS, readTS tso.Timestamp) ([]byte, error) {
	stored := appendVersioned(nil, tagData, key, startTS)
	value, found, err := s.eng.Get(make([]byte, 0), stored)
	if err == nil && !found {
		value, err = s.collectedValue(it, key, stored, readTS)
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// lockValue returns the value a lock will commit, or nil for a deletion.
func (s *State) lockValue(key []byte, p *probed, readTS tso.Timestamp) ([]byte, error) {
	switch {
	case p.lock.Op == OpDelete:
		return nil, nil
	case p.longValue:
		return s.dataValue(nil, key, p.lock.StartTS, readTS)
	case p.lock.Value == nil:
		return []byte{}, nil
	default:
		return p.lock.Value, nil
	}
}

// BatchGet answers keys, ascending, like Get; values[i] is nil if keys[i] is absent or locked. The locked ones are
// listed separately.
func (s *State) BatchGet(ctx context.Context, keys [][]byte, o *ReadOptions) (values [][]byte, locked []KeyLockedError, err error) {
	values = make([][]byte, len(keys))
	var skip []bool // allocated at the first lock met
	if s.locks.blocking.Load() != 0 {
		for i, key := range keys {
			p, err := s.probeWaiting(ctx, key, o)
			if err != nil {
				return nil, nil, err
			}
			if p.verdict == readPass {
				continue
			}
			if skip == nil {
				skip = make([]bool, len(keys))
			}
			skip[i] = true
			if p.verdict == readLocked {
				locked = append(locked, KeyLockedError{Key: bytes.Clone(key), Lock: p.lock})
			} else if values[i], err = s.lockValue(key, &p, o.ReadTS); err != nil {
				return nil, nil, err
			}
		}
	}
	r := s.newPointReader(o.ReadTS)
	defer r.close()
	if err := s.checkSafePoint(o.ReadTS); err != nil {
		return nil, nil, err
	}
	for i, key := range keys {
		if skip != nil && skip[i] {
			continue
		}
		if values[i], err = r.get(key, len(keys)-i); err != nil {
			return nil, nil, err
		}
	}
	return values, locked, nil
}
