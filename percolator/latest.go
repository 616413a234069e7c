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
// Commits that overlap the call may show in another order than that of their timestamps: of two on
// different shards, a Get may find the later one and a second Get miss the earlier, which a transaction
// would not.
func (db *DB) Get(ctx context.Context, key []byte) ([]byte, error) {
	desc, shard, err := db.router.Locate(ctx, key)
	if err == nil {
		var value []byte
		if value, err = shard.Get(ctx, desc.Ref(), key, kv.ReadOptions{ReadTS: tso.MaxTimestamp}); err == nil {
			return value, nil
		}
		db.forgetRoute(err, desc.Ref())
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	t, err := db.BeginTxn(ctx, TxnOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Get(ctx, key)
}

// Latest stands in for the transaction of a statement that reads one key and does nothing else: its Get
// is DB.Get, everything else fails with ErrTxnDone.
type Latest struct {
	*Txn
}

// Latest returns a stand-in that any number of statements may use, one after the other.
func (db *DB) Latest() Latest { return Latest{&Txn{db: db, done: true}} }

// Get implements Reader.
func (l Latest) Get(ctx context.Context, key []byte) ([]byte, error) { return l.db.Get(ctx, key) }
