package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Finding is something that a check found wrong about a key.
type Finding struct {
	Key    []byte
	Detail string
}

func (f Finding) String() string { return fmt.Sprintf("key %x: %s", f.Key, f.Detail) }

// maxFindings is the number of findings after which a check ends.
const maxFindings = 1000

// CheckOptions are options of CheckWith. The zero value is what Check uses.
type CheckOptions struct {
	// ForeignOracle: the store's oracle is not the one that issued the store's timestamps, so whether they lie in the
	// future cannot be determined.
	ForeignOracle bool
	// Owns, if given, reports whether a key belongs to the store.
	Owns func(key []byte) bool
	// Progress, if given, is called every few thousand records and at the end of a keyspace with the name of the
	// keyspace and the number of records checked.
	Progress func(what string, records int64)
}

// Check is CheckWith without options.
func (s *State) Check(ctx context.Context) ([]Finding, error) {
	return s.CheckWith(ctx, CheckOptions{})
}

// CheckWith reads every record of the store and verifies the invariants that hold at all times. Requests may be served
// concurrently.
//
//	records    can be decoded; no timestamp lies in the future, or could not have been issued;
//	           no start_ts is at or above its commit_ts
//	values     long ones exist, and are referred to
//	outcomes   a transaction is committed or rolled back, and committed at one timestamp, on all keys
//	locks      those on disk are those in memory; none is of a transaction that is finished on the key, or so
//	           old that its outcome may have been collected; the primary's lock names itself as primary
//	cells      can be decoded; name an observer and a timestamp that was issued; belong to a key of the store
func (s *State) CheckWith(ctx context.Context, opts CheckOptions) ([]Finding, error) {
	c := checker{s: s, opts: opts}
	for _, step := range []func(context.Context) error{c.checkWrites, c.checkData, c.checkStatuses, c.checkCells, c.checkOutcomes, c.checkLockRecords, c.checkLockTable} {
		if err := step(ctx); err != nil {
			return c.findings, err
		}
	}
	return c.findings, nil
}

type checker struct {
	s        *State
	opts     CheckOptions
	findings []Finding
	now      tso.Timestamp // issued after the present walk's iterator was opened
	versions int64         // write records
	again    bool          // the present walk is not the first over its keyspace
}

func (c *checker) report(key []byte, format string, args ...any) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, Finding{Key: bytes.Clone(key), Detail: fmt.Sprintf(format, args...)})
	}
}

// keyspaceNames are for progress.
var keyspaceNames = map[byte]string{tagLock: "locks", tagWrite: "versions", tagData: "long values", tagStatus: "rollbacks", tagNotify: "notify cells"}

// checkIssued reports a start_ts that the oracle cannot have issued, and timestamps of the future.
func (c *checker) checkIssued(key []byte, startTS, ts tso.Timestamp) {
	if startTS%tso.Tick != 0 {
		c.report(key, "start_ts %d has a subtick: no oracle has issued it", startTS)
	}
	if ts = max(startTS, ts); !c.opts.ForeignOracle && ts >= c.now {
		c.report(key, "timestamp %d of transaction %d lies in the future: the oracle is at %d", ts, startTS, c.now)
	}
}

// walk calls f for every record of a keyspace, with a second iterator over the same state for lookups by f. version is 0
// for locks and notify cells; the key of a cell begins with its observer.
func (c *checker) walk(ctx context.Context, tag byte, f func(key []byte, version tso.Timestamp, value []byte, look *storage.Iterator) error) error {
	it, err := c.s.eng.NewRangeIter(storage.AppendSentinel([]byte{tag}), storage.AppendSentinel([]byte{tag + 1}))
	if err != nil {
		return err
	}
	defer it.Close()
	look, err := it.CloneUnbounded()
	if err != nil {
		return err
	}
	defer look.Close()
	if c.now, err = c.s.opts.Oracle.Now(ctx); err != nil {
		return fmt.Errorf("ask the oracle: %w", err)
	}
	n := int64(0)
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%4096 == 1 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.opts.Progress != nil {
				c.opts.Progress(keyspaceNames[tag], n)
			}
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		prefix, version, versioned := storage.SplitVersion(it.Key())
		if versioned == (tag == tagLock || tag == tagNotify) {
			if !c.again {
				c.report(it.Key(), "stored key has the wrong shape for its keyspace")
			}
			continue
		}
		if !versioned {
			prefix = it.Key()
		}
		if err := f(userKey(prefix), tso.Timestamp(version), value, look); err != nil {
			return err
		}
	}
	if c.opts.Progress != nil && !c.again {
		c.opts.Progress(keyspaceNames[tag], n)
	}
	return it.Error()
}

// exists reports whether exactly this stored key is there.
func exists(look *storage.Iterator, stored []byte) (bool, error) {
	found := look.SeekGE(stored) && bytes.Equal(look.Key(), stored)
	return found, look.Error()
}

func (c *checker) checkWrites(ctx context.Context) error {
	return c.walk(ctx, tagWrite, func(key []byte, version tso.Timestamp, value []byte, look *storage.Iterator) error {
		w, err := decodeWrite(version, value)
		switch {
		case err != nil:
			c.report(key, "write record at %d cannot be read: %v", version, err)
			return nil
		case w.startTS >= w.commitTS:
			c.report(key, "committed at %d, before its start_ts %d", w.commitTS, w.startTS)
		}
		c.versions++
		c.checkIssued(key, w.startTS, w.commitTS)
		if !w.longValue {
			return nil
		}
		found, err := exists(look, appendVersioned(nil, tagData, key, w.startTS))
		if err == nil && !found {
			c.report(key, "write record at %d has lost its value", version)
		}
		return err
	})
}

// checkData looks for values to which no record refers.
func (c *checker) checkData(ctx context.Context) error {
	return c.walk(ctx, tagData, func(key []byte, version tso.Timestamp, _ []byte, look *storage.Iterator) error {
		lock := appendLockKey(nil, key)
		if found, err := exists(look, lock); err != nil {
			return err
		} else if found {
			value, err := look.Value()
			if err != nil {
				return err
			}
			if l, long, err := decodeLock(value); err == nil && long && l.StartTS == version {
				return nil
			}
		}
		prefix := appendPrefix(nil, tagWrite, key)
		for ok := look.SeekGE(prefix); ok; ok = look.Next() {
			p, ts, _ := storage.SplitVersion(look.Key())
			if !bytes.Equal(p, prefix) || tso.Timestamp(ts) <= version {
				break
			}
			value, err := look.Value()
			if err != nil {
				return err
			}
			if w, err := decodeWrite(tso.Timestamp(ts), value); err == nil && w.longValue && w.startTS == version {
				return nil
			}
		}
		if err := look.Error(); err != nil {
			return err
		}
		c.report(key, "value of transaction %d belongs to no lock and no write record", version)
		return nil
	})
}

func (c *checker) checkStatuses(ctx context.Context) error {
	return c.walk(ctx, tagStatus, func(key []byte, version tso.Timestamp, value []byte, _ *storage.Iterator) error {
		kind, startTS, err := decodeStatus(value)
		switch {
		case err != nil:
			c.report(key, "status record at %d cannot be read: %v", version, err)
		case kind == statusRollback && startTS != version:
			c.report(key, "rollback record of %d at %d", startTS, version)
		case kind == statusLockCommit && startTS >= version:
			c.report(key, "lock committed at %d, before its start_ts %d", version, startTS)
		case kind == statusLockCommit && isUse(startTS):
			c.checkIssued(key, startTS-1, version)
		default:
			c.checkIssued(key, startTS, version)
		}
		return nil
	})
}

// checkLockRecords looks up every lock on disk in memory; where they differ it compares them again under the key's
// latch.
func (c *checker) checkLockRecords(ctx context.Context) error {
	return c.walk(ctx, tagLock, func(key []byte, _ tso.Timestamp, value []byte, look *storage.Iterator) error {
		l, _, err := decodeLock(value)
		if err != nil {
			c.report(key, "lock record cannot be read: %v", err)
			return nil
		}
		if err := c.checkLock(key, &l, look); err != nil {
			return err
		}
		if c.s.locks.startTS(key) == l.StartTS {
			return nil
		}
		return c.recheck(key)
	})
}

// checkLockTable is checkLockRecords the other way round.
func (c *checker) checkLockTable(ctx context.Context) error {
	for start := []byte(nil); ; {
		keys := c.durableLocks(start, chunk)
		for _, key := range keys {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if _, found, err := c.s.eng.Get(nil, appendLockKey(nil, key)); err != nil {
				return err
			} else if !found {
				if err := c.recheck(key); err != nil {
					return err
				}
			}
		}
		if len(keys) < chunk {
			return nil
		}
		start = append(keys[chunk-1], 0)
	}
}

// durableLocks returns the keys of up to limit locks at or above start that should be on disk.
func (c *checker) durableLocks(start []byte, limit int) (keys [][]byte) {
	t := c.s.locks
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.ascendLocked(start, nil, func(e *entry) bool {
		if e.state == stateDurable && e.lock.Op != OpPessimistic {
			keys = append(keys, bytes.Clone(e.key))
		}
		return len(keys) < limit
	})
	return keys
}

// recheck compares the lock of key on disk and in memory under its latch.
func (c *checker) recheck(key []byte) error {
	var set latchSet
	c.s.latches.lockOne(&set, key)
	defer c.s.latches.unlock(&set)
	e, state := c.s.locks.get(key)
	if e != nil && state != stateDurable {
		return nil
	}
	if e != nil && e.lock.Op == OpPessimistic {
		e = nil // these exist in memory only
	}
	value, found, err := c.s.eng.Get(nil, appendLockKey(nil, key))
	if err != nil {
		return err
	}
	switch {
	case e == nil && found:
		c.report(key, "lock on disk is not in memory")
	case e != nil && !found:
		c.report(key, "lock of transaction %d is not on disk", e.lock.StartTS)
	case e != nil:
		if l, _, err := decodeLock(value); err != nil || l.StartTS != e.lock.StartTS {
			c.report(key, "locks on disk and in memory differ")
		}
	}
	return nil
}

// checkCells verifies the notify cells.
func (c *checker) checkCells(ctx context.Context) error {
	return c.walk(ctx, tagNotify, func(inner []byte, _ tso.Timestamp, value []byte, _ *storage.Iterator) error {
		if len(inner) < observerLen {
			c.report(inner, "notify cell without an observer")
			return nil
		}
		observer, key := binary.BigEndian.Uint64(inner), inner[observerLen:]
		cell, err := decodeNotifyCell(value)
		switch {
		case err != nil:
			c.report(key, "notify cell of observer %d cannot be read: %v", observer, err)
		case observer == 0:
			c.report(key, "notify cell of observer 0, which does not exist")
		case !c.opts.ForeignOracle && cell.latest >= c.now:
			c.report(key, "notify cell of observer %d at %d lies in the future: the oracle is at %d", observer, cell.latest, c.now)
		case c.opts.Owns != nil && !c.opts.Owns(key):
			// The range may have been given away, without cells, since the walk began.
			_, found, err := c.s.eng.Get(nil, appendNotifyKey(nil, observer, key))
			if err != nil {
				return err
			}
			if found {
				c.report(key, "notify cell of observer %d, of a key that belongs to no range of the store", observer)
			}
		}
		return nil
	})
}
