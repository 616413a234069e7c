package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// finisher carries out the decisions of commit, rollback, resolve and status checks about latched keys: it collects the
// changes in one batch and the locks that it removes.
type finisher struct {
	w        *writer
	b        *storage.Batch
	startTS  tso.Timestamp
	commitTS tso.Timestamp // 0: rolling back
	// decides: the batch decides a transaction, and must be durable before it is reported.
	decides bool
	err     error // what was found when the changes were collected; none are carried out then
}

func (w *writer) newFinisher(startTS, commitTS tso.Timestamp) finisher {
	w.met, w.dropped = w.met[:0], w.dropped[:0]
	return finisher{w: w, startTS: startTS, commitTS: commitTS}
}

// add carries out do on key; e is the transaction's lock on it, or nil.
func (f *finisher) add(do finish, key []byte, e *entry) {
	if do == finishNothing {
		return
	}
	w := f.w
	if e != nil && e.holderOf(f.startTS) == nil {
		e = nil
	}
	if e != nil && e.lock.Op == OpPessimistic {
		w.dropped = append(w.dropped, e) // it is in memory only
		e = nil
	}
	if do == finishRelease {
		return
	}
	if f.b == nil {
		f.b = w.s.eng.NewBatch(0)
	}
	if e != nil {
		w.met = append(w.met, e)
		w.key = appendLockKey(w.key[:0], key)
		f.b.Delete(w.key)
	}
	switch do {
	case finishCommit:
		f.commit(key, e)
	case finishRollback, finishRecord:
		if e != nil && e.longValue {
			w.key = appendVersioned(w.key[:0], tagData, key, f.startTS)
			f.b.Delete(w.key)
		}
		if do == finishRecord {
			w.putRollback(f.b, key, f.startTS)
			f.decides = true
		}
	}
}

func (f *finisher) commit(key []byte, e *entry) {
	if decideRecord(e.lock.Op, 0, 0) == recordLock {
		f.w.putLockCommit(f.b, key, f.startTS, f.commitTS)
	} else {
		value := e.lock.Value
		if e.valueOnDisk {
			record, err := f.w.lockRecord(key, f.startTS)
			if err != nil {
				f.err = err
				return
			}
			value = record.Value
		}
		f.w.putWrite(f.b, key, e.lock.Op, e.longValue, f.startTS, f.commitTS, value)
		if err := f.w.putCells(f.b, key, e.lock.Notify, f.commitTS); err != nil {
			f.err = err
			return
		}
	}
	if bytes.Equal(key, e.lock.Primary) {
		f.decides = true
	}
}

// abort drops the collected changes and releases the latches.
func (f *finisher) abort() {
	if f.b != nil {
		f.b.Close()
	}
	f.w.unlatch()
}

// run applies the collected changes and releases the latches. Rollback records have no entry in the lock table for which
// others would wait until the sync, so with them the latches are held during it.
func (f *finisher) run() (writtenBytes int, err error) {
	if f.err != nil {
		f.abort()
		return 0, f.err
	}
	s := f.w.s
	for _, e := range f.w.dropped {
		s.noteLost(f.startTS)
		s.locks.release(e, f.startTS)
	}
	if f.b == nil {
		f.w.unlatch()
		return 0, nil
	}
	defer f.b.Close()
	durability := storage.NoSync
	if f.decides {
		durability = storage.Sync
	}
	s.locks.finishing(f.w.met, f.commitTS)
	holdLatches := f.decides && f.commitTS == 0
	writtenBytes = f.b.Len()
	err = s.apply(f.b, durability)
	if !holdLatches {
		f.w.unlatch()
	}
	if err == nil {
		err = f.b.SyncWait()
	}
	if err != nil {
		s.locks.wake(f.w.met, err)
	} else {
		s.locks.remove(f.w.met, f.commitTS)
		if f.commitTS != 0 {
			s.hintLocks(f.w.met, f.commitTS)
		}
	}
	if holdLatches {
		f.w.unlatch()
	}
	return writtenBytes, err
}
