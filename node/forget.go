package node

import (
	"context"

	"github.com/percodb/percodb/kv"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// ForgetStore excludes a store that is gone for good from the cluster of the tso process at join; dryRun only
// tells what would be lost.
func ForgetStore(ctx context.Context, join, store string, dryRun bool) (kv.ForgetResponse, error) {
	conn, err := tsorpc.Dial(join)
	if err != nil {
		return kv.ForgetResponse{}, err
	}
	defer conn.Close()
	return kvrpc.NewDirectory(conn, kvrpc.ClientOptions{}).ForgetShard(ctx, store, dryRun)
}
