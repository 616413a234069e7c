package mvcc

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// outcome is the outcome of a transaction according to one record; commitTS 0: rolled back.
type outcome struct{ startTS, commitTS tso.Timestamp }

// outcomesAtOnce bounds the outcomes held in memory, 16 bytes each. A store with more versions is walked
// several times, for a share of the transactions each.
const outcomesAtOnce = 16 << 20

// checkOutcomes compares the outcomes that the records of a transaction state, on all keys of the store.
func (c *checker) checkOutcomes(ctx context.Context) error {
	shares := uint64(c.versions/outcomesAtOnce + 1)
	for share := range shares {
		var all []outcome
		compactAt := 1 << 16
		err := c.outcomes(ctx, func(_ []byte, o outcome) {
			if uint64(o.startTS/tso.Tick)%shares != share {
				return
			}
			if len(all) == compactAt { // most transactions have written several keys
				all = distinct(all)
				compactAt = max(compactAt, 2*len(all))
			}
			all = append(all, o)
		})
		if err == nil {
			err = c.reportContradictions(ctx, distinct(all))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func distinct(all []outcome) []outcome {
	slices.SortFunc(all, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.startTS, b.startTS), cmp.Compare(a.commitTS, b.commitTS))
	})
	return slices.Compact(all)
}

// reportContradictions looks for transactions with more than one of the distinct outcomes, and reports each of their
// records.
func (c *checker) reportContradictions(ctx context.Context, all []outcome) error {
	bad := map[tso.Timestamp][]tso.Timestamp{}
	for i := 1; i < len(all) && len(bad) < maxFindings; i++ {
		if at := all[i].startTS; at == all[i-1].startTS {
			if bad[at] == nil {
				bad[at] = append(bad[at], all[i-1].commitTS)
			}
			bad[at] = append(bad[at], all[i].commitTS)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return c.outcomes(ctx, func(key []byte, o outcome) {
		outcomes := bad[o.startTS]
		switch {
		case outcomes == nil:
		case o.commitTS == 0:
			c.report(key, "transaction %d is rolled back here, and committed at %d on another key", o.startTS, outcomes[1])
		case outcomes[0] == 0:
			c.report(key, "transaction %d is committed at %d here, and rolled back on another key", o.startTS, o.commitTS)
		default:
			c.report(key, "transaction %d is committed at %d here, and its commit_ts are %d", o.startTS, o.commitTS, outcomes)
		}
	})
}

// outcomes calls f for every record that states its transaction's outcome; unreadable records have been reported before.
func (c *checker) outcomes(ctx context.Context, f func(key []byte, o outcome)) error {
	err := c.walkAgain(ctx, tagWrite, func(key []byte, version tso.Timestamp, value []byte) {
		if w, err := decodeWrite(version, value); err == nil {
			f(key, outcome{w.startTS, w.commitTS})
		}
	})
	if err != nil {
		return err
	}
	return c.walkAgain(ctx, tagStatus, func(key []byte, version tso.Timestamp, value []byte) {
		switch kind, startTS, err := decodeStatus(value); {
		case err != nil:
		case kind == statusRollback:
			f(key, outcome{startTS, 0})
		case isUse(startTS): // it states no outcome
		default:
			f(key, outcome{startTS, version})
		}
	})
}

// walkAgain is walk without reporting what an earlier walk has reported.
func (c *checker) walkAgain(ctx context.Context, tag byte, f func(key []byte, version tso.Timestamp, value []byte)) error {
	c.again = true
	defer func() { c.again = false }()
	return c.walk(ctx, tag, func(key []byte, version tso.Timestamp, value []byte, _ *storage.Iterator) error {
		f(key, version, value)
		return nil
	})
}

// checkLock verifies a lock record by itself and against the records of its transaction; look iterates over the same
// state.
func (c *checker) checkLock(key []byte, l *Lock, look *storage.Iterator) error {
	c.checkIssued(key, l.StartTS, l.MinCommitTS)
	if collected := c.s.gc.collected.Load(); collected.gone(l.StartTS) {
		c.report(key, "lock of transaction %d is left behind garbage collection, which is at %d", l.StartTS, collected.through)
	}
	if len(l.Secondaries) > 0 && !bytes.Equal(l.Primary, key) {
		c.report(key, "lock of transaction %d lists secondaries, and is not on its primary %x", l.StartTS, l.Primary)
	}
	rolledBack, err := exists(look, appendVersioned(nil, tagStatus, key, l.StartTS))
	if err != nil {
		return err
	}
	if rolledBack {
		c.report(key, "lock of transaction %d, which is rolled back here", l.StartTS)
	}
	if err := c.checkNotCommitted(key, l, look); err != nil {
		return err
	}
	if bytes.Equal(l.Primary, key) {
		return nil
	}
	stored := appendLockKey(nil, l.Primary)
	if found, err := exists(look, stored); err != nil || !found {
		return err
	}
	value, err := look.Value()
	if err != nil {
		return err
	}
	if p, _, err := decodeLock(value); err == nil && p.StartTS == l.StartTS && !bytes.Equal(p.Primary, l.Primary) {
		c.report(key, "lock of transaction %d has the primary %x, whose lock has the primary %x", l.StartTS, l.Primary, p.Primary)
	}
	return nil
}

// checkNotCommitted looks for a version of the lock's own transaction on the key.
func (c *checker) checkNotCommitted(key []byte, l *Lock, look *storage.Iterator) error {
	prefix := appendPrefix(nil, tagWrite, key)
	for ok := look.SeekGE(prefix); ok; ok = look.Next() {
		p, version, _ := storage.SplitVersion(look.Key())
		if !bytes.Equal(p, prefix) || tso.Timestamp(version) <= l.StartTS {
			break
		}
		value, err := look.Value()
		if err != nil {
			return err
		}
		if w, err := decodeWrite(tso.Timestamp(version), value); err == nil && w.startTS == l.StartTS {
			c.report(key, "lock of transaction %d, which is committed here at %d", l.StartTS, w.commitTS)
		}
	}
	return look.Error()
}
