package executor

import (
	"bytes"
	"context"
	"errors"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
)

// writeSink passes a statement's writes to the transaction.
//
// A statement must not see its own writes, and an UPDATE that moves unique keys must delete all old ones before it
// inserts new ones. Writes are therefore normally deferred to the end of the statement, where deletions come first. If
// neither can happen (one row, an insert that does not read its table, a change along one iterator that inserts no
// unique keys) the sink is direct. A subquery that is evaluated for each written row (in RETURNING, in ON CONFLICT)
// reads tables between the writes: then the sink is not direct.
//
// Uniqueness is left to the commit, which checks every inserted key, unless the runtime is eager: then keys are looked
// up before they are written, in groups.
//
// With Runtime.Lock, unique keys are locked before they are deleted, and locked and looked up in one request before they
// are inserted: other transactions wait for the lock. The rows themselves have been locked before.
type writeSink struct {
	ex     *execution
	direct bool
	notify *notifier

	deletes [][]byte
	gone    [][]byte // further deletes: rows of an observed table
	stores  []store
	freed   [][]byte // unique keys deleted and not locked yet
	fresh   [][]byte // scratch: the keys of a group that must be new
	held    int64
	writes  int // so far
	// pending has the last deferred change of each key (nil for a deletion), if ON CONFLICT or other changes of the statement must see
	// them before they are written; otherwise it is nil. The changes of one statement share it.
	pending map[string][]byte

	// resume: changed keys are looked up again instead of restarting the statement; for COPY, which reads only the keys
	// it inserts, and cannot read its data twice.
	resume bool
}

type store struct {
	key, value []byte
	mustBeNew  bool
	notify     notifyRef
}

const storeBytes = 56

// eagerGroup is the number of keys that are checked together.
const eagerGroup = 1024

// delete removes a key; frees marks an entry of a unique index, whose key another transaction may insert. notify is 0, or that of
// all observers.
func (s *writeSink) delete(ctx context.Context, key []byte, frees bool, notify notifyRef) error {
	if frees && s.ex.rt.Lock {
		s.freed = append(s.freed, key)
		if err := s.book(headerBytes); err != nil {
			return err
		}
		if len(s.freed) >= eagerGroup {
			if err := s.lockFreed(ctx); err != nil {
				return err
			}
		}
	}
	if s.direct {
		return s.wrote(ctx, s.ex.txn.Delete(key), notify)
	}
	if notify != 0 {
		s.gone = append(s.gone, key)
	} else {
		s.deletes = append(s.deletes, key)
	}
	if err := s.note(key, nil); err != nil {
		return err
	}
	return s.book(int64(len(key)) + headerBytes)
}

// note adds a change to the pending ones.
func (s *writeSink) note(key, value []byte) error {
	if s.pending == nil {
		return nil
	}
	s.pending[string(key)] = value
	return s.book(int64(len(key)) + headerBytes)
}

// get reads a key as the statement has left it.
func (s *writeSink) get(ctx context.Context, key []byte) ([]byte, error) {
	if value, changed := s.pending[string(key)]; changed {
		return value, nil
	}
	return s.ex.txn.Get(ctx, key)
}

// store writes a key, which must not exist yet if mustBeNew.
func (s *writeSink) store(ctx context.Context, key, value []byte, mustBeNew bool, notify notifyRef) error {
	if s.direct {
		switch {
		case !mustBeNew:
			return s.wrote(ctx, s.ex.txn.Put(key, value), notify)
		case !s.ex.eager():
			return s.wrote(ctx, s.ex.txn.Insert(key, value), notify)
		}
	}
	s.stores = append(s.stores, store{key, value, mustBeNew, notify})
	if err := s.note(key, value); err != nil {
		return err
	}
	if err := s.book(int64(len(key)+len(value)) + storeBytes); err != nil {
		return err
	}
	if s.direct && len(s.stores) >= eagerGroup {
		return s.flush(ctx)
	}
	return nil
}

// wrote is called after each write, which may have failed; it merges files of writes in time.
func (s *writeSink) wrote(ctx context.Context, err error, notify notifyRef) error {
	if err != nil {
		return err
	}
	if notify != 0 {
		s.notify.notify(notify)
	}
	if s.writes++; s.writes%ticksPerCheck != 0 {
		return nil
	}
	return s.ex.txn.MergeRuns(ctx)
}

func (s *writeSink) book(n int64) error {
	if err := s.ex.mem.grow(n); err != nil {
		return err
	}
	s.held += n
	return nil
}

// absorb takes over what another sink of the same table has deferred. Keys in few ascending runs, as those of parts of a scan are, are
// brought into order: the transaction need not sort them.
func (s *writeSink) absorb(from *writeSink) error {
	if err := s.book(from.held); err != nil {
		return err
	}
	s.deletes = mergeRuns(s.deletes, from.deletes, bytes.Compare)
	s.stores = mergeRuns(s.stores, from.stores, func(a, b store) int { return bytes.Compare(a.key, b.key) })
	from.deletes, from.stores = nil, nil
	return nil
}

// flush hands everything held back to the transaction.
func (s *writeSink) flush(ctx context.Context) error {
	if len(s.freed) > 0 {
		if err := s.lockFreed(ctx); err != nil {
			return err
		}
	}
	if err := s.applyDeletes(ctx, s.deletes, 0); err != nil {
		return err
	}
	if err := s.applyDeletes(ctx, s.gone, s.notify.everyone()); err != nil {
		return err
	}
	for from := 0; from < len(s.stores); from += eagerGroup {
		group := s.stores[from:min(from+eagerGroup, len(s.stores))]
		if s.ex.eager() {
			if err := s.checkNew(ctx, group); err != nil {
				return err
			}
		}
		if err := s.apply(ctx, group); err != nil {
			return err
		}
	}
	s.discard()
	return nil
}

// finish is flush after the statement's last write.
func (s *writeSink) finish(ctx context.Context) error {
	if err := s.flush(ctx); err != nil || !s.ex.eager() {
		return err
	}
	err := s.ex.txn.VerifyNew(ctx)
	if exists, ok := errkind.As[*mvcc.KeyExistsError](err); ok {
		return s.violation(ctx, exists.Key)
	}
	return err
}

func (s *writeSink) applyDeletes(ctx context.Context, keys [][]byte, notify notifyRef) error {
	for _, key := range keys {
		if err := s.wrote(ctx, s.ex.txn.Delete(key), notify); err != nil {
			return err
		}
		if err := s.ex.tick(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *writeSink) apply(ctx context.Context, group []store) (err error) {
	for i := range group {
		w := &group[i]
		if w.mustBeNew {
			err = s.ex.txn.Insert(w.key, w.value)
		} else {
			err = s.ex.txn.Put(w.key, w.value)
		}
		if err = s.wrote(ctx, err, w.notify); err != nil {
			return err
		}
		if err := s.ex.tick(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lockFreed locks the keys freed.
func (s *writeSink) lockFreed(ctx context.Context) error {
	for {
		_, err := s.ex.txn.AcquireLocks(ctx, percolator.LockOptions{}, s.freed...)
		if s.resume && errors.Is(err, percolator.ErrRestartStatement) && ctx.Err() == nil {
			continue // They are held now, and are read under the new snapshot.
		}
		if err != nil {
			return err
		}
		break
	}
	clear(s.freed)
	s.freed = s.freed[:0]
	return nil
}

// checkNew fails if a key of the group that must be new exists, or occurs twice.
func (s *writeSink) checkNew(ctx context.Context, group []store) error {
	s.fresh = s.fresh[:0]
	for i := range group {
		if group[i].mustBeNew {
			s.fresh = append(s.fresh, group[i].key)
		}
	}
	if len(s.fresh) == 0 {
		return nil
	}
	defer clear(s.fresh)
	for {
		taken, err := s.ex.txn.LockNew(ctx, s.fresh...)
		switch {
		case s.resume && errors.Is(err, percolator.ErrRestartStatement) && ctx.Err() == nil:
			continue // They are held now, and are judged under the new snapshot.
		case err != nil:
			return err
		case taken >= 0:
			return s.violation(ctx, s.fresh[taken])
		}
		return nil
	}
}

func (s *writeSink) violation(ctx context.Context, key []byte) error {
	if s.ex.rt.Resolver == nil {
		return &mvcc.KeyExistsError{Key: key}
	}
	return UniqueViolation(ctx, s.ex.rt.Resolver, s.ex.rt.inForce(ctx), s.ex.rt.Role, key)
}

// discard drops the deferred writes.
func (s *writeSink) discard() {
	clear(s.deletes)
	clear(s.gone)
	clear(s.stores)
	clear(s.freed)
	clear(s.pending)
	s.deletes, s.gone, s.stores, s.freed = s.deletes[:0], s.gone[:0], s.stores[:0], s.freed[:0]
	s.ex.mem.shrink(s.held)
	s.held = 0
}
