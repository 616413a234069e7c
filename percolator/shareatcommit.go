package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// maxSharesAtCommit bounds the guards of a transaction's ExistsAtCommit, maxBytesAtCommit what it has written by then: a conflict costs another
// attempt of all of it, which a lock would have spared.
const (
	maxSharesAtCommit = 16
	maxBytesAtCommit  = 64 << 10
)

// shareAtCommit is a key that no other transaction may have locked exclusively, or have committed on, since at.
type shareAtCommit struct {
	key []byte
	at  tso.Timestamp
}

// ExistsAtCommit reports whether key has a value at the snapshot, and still has it when the transaction commits, provided that whoever deletes it
// locks guard. The commit verifies that as if guard had been locked shared at the snapshot and the lock been lost: it fails with
// *mvcc.WriteConflictError if another transaction holds guard exclusively, or has committed on it since. Nothing is locked before the commit, and
// nobody waits. False: it is not known, and the caller has to lock guard and read key again; so always in a pessimistic or read-only
// transaction and in a large one. The transaction must not write guard. It retains guard.
func (t *Txn) ExistsAtCommit(ctx context.Context, key, guard []byte) (bool, error) {
	if t.done || t.opts.Pessimistic || t.opts.ReadOnly || len(t.shares) == maxSharesAtCommit || t.buf.size() > maxBytesAtCommit {
		return false, nil
	}
	exists := false
	err := t.Aside(func(r Reader) error {
		value, err := r.Get(ctx, key)
		exists = value != nil
		return err
	})
	if err != nil || !exists {
		return false, err
	}
	t.shares = append(t.shares, shareAtCommit{key: guard, at: t.snap.readTS})
	return true, nil
}

// shareChecks returns the checks of ExistsAtCommit, ascending, without guards that the transaction has come to lock.
func (c *committer) shareChecks(t *Txn) ([]mvcc.Mutation, error) {
	checks := make([]mvcc.Mutation, 0, len(t.shares))
	for _, s := range t.shares {
		if t.locks != nil {
			if h, held := t.locks.get(s.key); held && h.at > s.at {
				return nil, c.lockedLater(&h)
			} else if held {
				continue
			}
		}
		checks = append(checks, mvcc.Mutation{Op: mvcc.OpCheckShared, Key: s.key, LockedAt: s.at})
	}
	slices.SortStableFunc(checks, byKey)
	// Of the checks of one key the first is the oldest.
	return slices.CompactFunc(checks, func(a, b mvcc.Mutation) bool { return bytes.Equal(a.Key, b.Key) }), nil
}

// addShares adds the checks of ExistsAtCommit to the mutations. A guard that is among them because of LockKeys must not have changed either.
func (c *committer) addShares(t *Txn) error {
	if len(t.shares) == 0 {
		return nil
	}
	checks, err := c.shareChecks(t)
	if err != nil {
		return err
	}
	others := len(c.mutations)
	for i := range checks {
		at, found := slices.BinarySearchFunc(c.mutations[:others], checks[i].Key, compareMutation)
		if !found {
			c.shared, c.mutations = append(c.shared, checks[i]), append(c.mutations, checks[i])
		} else if m := &c.mutations[at]; m.LockedAt == 0 {
			m.LockedAt = checks[i].LockedAt
		}
	}
	slices.SortFunc(c.mutations, byKey)
	slices.SortFunc(c.shared, byKey)
	return nil
}
