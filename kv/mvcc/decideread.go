package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/tso"
)

// readVerdict is the action of a read that encounters a lock.
type readVerdict uint8

const (
	readPass    readVerdict = iota // as if it were not there
	readThrough                    // its value is the committed one
	readWait                       // its state is about to change
	readLocked                     // *KeyLockedError
)

// decideRead decides about the lock on key for a read.
func decideRead(key []byte, l *Lock, state entryState, onePC bool, o *ReadOptions) readVerdict {
	if !l.blocksReads() {
		return readPass
	}
	if o.ReadTS == tso.MaxTimestamp {
		return decideLatestRead(key, l, state, onePC, o.FloorTS)
	}
	if l.MinCommitTS > o.ReadTS {
		return readPass
	}
	for _, startTS := range o.Bypass {
		if startTS == l.StartTS {
			return readPass
		}
	}
	for i := range o.Resolved {
		if o.Resolved[i].StartTS != l.StartTS {
			continue
		}
		if o.Resolved[i].CommitTS <= o.ReadTS {
			return readThrough
		}
		return readPass
	}
	if state != stateDurable {
		return readWait
	}
	return readLocked
}

// decideLargeRead reports whether a large commit keeps a reader of its keys waiting: commitTS is its commit_ts, or a
// bound below it, and 0 while it still checks its keys.
func decideLargeRead(commitTS, readTS tso.Timestamp) bool { return commitTS != 0 && commitTS <= readTS }

// largeBound returns a bound below the commit_ts of a large commit: above its snapshot, above the timestamps as of which
// its keys were locked, and above everything that has been read by the time readers begin to wait for it.
func largeBound(maxTS, startTS, floor tso.Timestamp) tso.Timestamp {
	return max(maxTS, startTS, floor) + 1
}

// decideLatestRead decides about a read of the latest committed value. The primary of a plain transaction that waits for
// its commit is not committed; any other lock may be. A commit at or below floor must not be missed either.
func decideLatestRead(key []byte, l *Lock, state entryState, onePC bool, floor tso.Timestamp) readVerdict {
	switch {
	case onePC || state == stateFinishing:
		return readWait
	case bytes.Equal(l.Primary, key) && !l.Async && (floor == 0 || l.MinCommitTS > floor):
		return readPass
	case state == stateInflight:
		return readWait
	default:
		return readLocked
	}
}
