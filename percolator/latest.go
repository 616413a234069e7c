package percolator

import (
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Get returns the latest value of key, or nil, as a transaction that reads nothing else would: every commit that was
// reported before the call is visible. It needs no timestamp, and therefore half of the messages over the network. If a
// lock blocks it, or the route is stale, it falls back to a transaction.
//
// Of commits that overlap two Gets the second may miss one although the first has returned a later one; Latest does not.
func (db *DB) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, _, _, err := db.getLatest(ctx, key, 0)
	return value, err
}

// getLatest is Get that misses no commit at or below floor. Everything it returned had been committed by seen. snapshot is the one that it has
// fallen back to, or 0.
func (db *DB) getLatest(ctx context.Context, key []byte, floor tso.Timestamp) (value []byte, seen, snapshot tso.Timestamp, _ error) {
	desc, shard, err := db.router.Locate(ctx, key)
	if err == nil && shard.Capabilities().ReadLatest {
		var latest kv.LatestValue
		if latest, err = shard.GetLatest(ctx, desc.Ref(), key, floor); err == nil {
			return latest.Value, latest.CommitTS, 0, nil
		}
		db.forgetRoute(err, desc.Ref())
	}
	if ctx.Err() != nil {
		return nil, 0, 0, ctx.Err()
	}
	t, err := db.BeginTxn(ctx, TxnOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, 0, err
	}
	defer t.Close()
	value, err = t.Get(ctx, key)
	return value, t.ReadTS(), t.ReadTS(), err
}

// Latest replaces the transaction of a statement that reads one key and does nothing else: its Get is DB.Get, all other
// methods fail with ErrTxnDone. One Latest serves a session's statements, one after the other, and keeps their reads in
// order: no read's snapshot is older than the previous one's.
//
//	store 1   T2 commits at 20, and is read: floor 20
//	store 2   T1 has commit_ts 10 and is about to commit: the read waits, or makes it commit above 20
type Latest struct {
	*Txn
	floor, snapshot tso.Timestamp
}

// Latest returns a new Latest.
func (db *DB) Latest() *Latest { return &Latest{Txn: &Txn{db: db, done: true}} }

// Saw records that the session has seen, in some other way, a commit at ts.
func (l *Latest) Saw(ts tso.Timestamp) { l.floor = max(l.floor, ts) }

// Get implements Reader.
func (l *Latest) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, seen, snapshot, err := l.db.getLatest(ctx, key, l.floor)
	l.Saw(seen)
	l.snapshot = snapshot
	return value, err
}

// Snapshot is the snapshot that the last Get has read, 0 if it took no timestamp.
func (l *Latest) Snapshot() tso.Timestamp { return l.snapshot }
