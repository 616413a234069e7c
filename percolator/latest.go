package percolator

import (
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Get returns the latest value of key, or nil, as a transaction that reads nothing else would: every
// commit that was reported before the call shows. It needs no timestamp, and so over the network half
// of the messages. Where a lock is in the way, or the route is stale, a transaction deals with it.
//
// Of commits that overlap two Gets the second may miss one although the first has shown a later one; Latest
// does not.
func (db *DB) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, _, err := db.getLatest(ctx, key, 0)
	return value, err
}

// getLatest is Get that misses nothing that commits at or below floor. What it has seen had committed by seen.
func (db *DB) getLatest(ctx context.Context, key []byte, floor tso.Timestamp) (value []byte, seen tso.Timestamp, _ error) {
	desc, shard, err := db.router.Locate(ctx, key)
	if err == nil && shard.Capabilities().ReadLatest {
		var latest kv.LatestValue
		if latest, err = shard.GetLatest(ctx, desc.Ref(), key, floor); err == nil {
			return latest.Value, latest.CommitTS, nil
		}
		db.forgetRoute(err, desc.Ref())
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	t, err := db.BeginTxn(ctx, TxnOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	value, err = t.Get(ctx, key)
	return value, t.ReadTS(), err
}

// Latest stands in for the transaction of a statement that reads one key and does nothing else: its Get
// is DB.Get, everything else fails with ErrTxnDone. One Latest serves a session's statements, one after the
// other, and keeps their reads in order: they are at snapshots of which none is older than the one before.
//
//	store 1   T2 commits at 20, and is read: floor 20
//	store 2   T1 has 10 for its commit_ts and is about to commit: the read waits, or makes it commit above 20
type Latest struct {
	*Txn
	floor tso.Timestamp
}

// Latest returns a new stand-in.
func (db *DB) Latest() *Latest { return &Latest{Txn: &Txn{db: db, done: true}} }

// Saw notes that the session has seen, in some other way, what had committed at ts.
func (l *Latest) Saw(ts tso.Timestamp) { l.floor = max(l.floor, ts) }

// Get implements Reader.
func (l *Latest) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, seen, err := l.db.getLatest(ctx, key, l.floor)
	l.Saw(seen)
	return value, err
}
