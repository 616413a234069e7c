package percolator

import (
	"context"

	"github.com/percodb/percodb/kv/mvcc"
)

// LockNew locks keys that are about to be inserted, as AcquireLocks does, and returns the position of the first that
// exists: the transaction sees a value of it, or it is listed twice. -1: all are new, and no other transaction can
// insert them; for keys of private spans that is certain after VerifyNew. It sends one request to each shard; the commit
// does not check again. In an optimistic transaction nothing is locked. Errors: those of AcquireLocks; after
// ErrRestartStatement the keys are locked, and a second call returns the result at the advanced snapshot.
func (t *Txn) LockNew(ctx context.Context, keys ...[]byte) (taken int, err error) {
	if len(t.private.list) == 0 {
		return t.lockNew(ctx, keys)
	}
	public, at, taken, err := t.checkPrivate(keys)
	if err != nil || len(public) == 0 {
		return taken, err
	}
	first, err := t.lockNew(ctx, public)
	if err != nil {
		return -1, err
	}
	if first >= 0 {
		return at[first], nil
	}
	return taken, nil
}

// lockNew is LockNew for keys in no private span.
func (t *Txn) lockNew(ctx context.Context, keys [][]byte) (taken int, err error) {
	if t.locks == nil {
		return t.firstTaken(ctx, keys)
	}
	before := t.locks.len()
	if _, err := t.AcquireLocks(ctx, LockOptions{Existence: true}, keys...); err != nil {
		return -1, err
	}
	if t.locks.len()-before != len(keys) || t.locks.loose {
		return t.firstTaken(ctx, keys)
	}
	for _, key := range keys {
		if h, _ := t.locks.get(key); h.known != absent {
			return t.firstTaken(ctx, keys)
		}
	}
	return -1, nil
}

// firstTaken is LockNew for keys not all of which have just been found absent.
func (t *Txn) firstTaken(ctx context.Context, keys [][]byte) (int, error) {
	first := len(keys)
	var seen map[string]struct{}
	if len(keys) > 1 {
		seen = make(map[string]struct{}, len(keys))
	}
	var ask [][]byte
	var askAt []int
	for i, key := range keys {
		if seen != nil {
			if _, twice := seen[string(key)]; twice {
				first = i
				break
			}
			seen[string(key)] = struct{}{}
		}
		known := unknown
		if t.locks != nil {
			if h, found := t.locks.get(key); found {
				known = h.known
			}
		}
		value, found, err := t.buf.get(key)
		if err != nil {
			return -1, err
		}
		if found {
			known = absent
			if value != nil {
				known = present
			}
		}
		if known == present {
			first = i
			break
		}
		if known == unknown {
			ask, askAt = append(ask, key), append(askAt, i)
		}
	}
	if len(ask) > 0 {
		values, err := t.BatchGet(ctx, ask)
		if err != nil {
			return -1, err
		}
		for j := range values {
			if values[j] != nil {
				first = min(first, askAt[j])
				break
			}
		}
	}
	if first == len(keys) {
		return -1, nil
	}
	return first, nil
}

// checked reports that a mutation need not be checked again: its key was found to be new when it was locked, and if the
// lock is lost, anything committed since is a conflict.
func (h *heldLock) checked(m *mvcc.Mutation) bool { return h.known == absent && m.Op == mvcc.OpPut }
