package percolator

import (
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Get returns the latest value of key, or nil, as a transaction that reads nothing else would: every
// commit that was reported before the call shows. It needs no timestamp, and so over the network half
// of the messages (SQL does not use it yet: a statement must know that its plan's schema is that of what it
// reads). Where a lock is in the way, or the route is stale, a transaction deals with it.
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
