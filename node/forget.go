package node

import (
	"context"

	"github.com/percodb/percodb/kv"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// ForgetStore excludes a store that is permanently lost from the cluster of the tso process at join; with dryRun it only
// reports what would be lost.
func ForgetStore(ctx context.Context, join, store string, dryRun bool) (kv.ForgetResponse, error) {
	conn, err := tsorpc.Dial(join)
	if err != nil {
		return kv.ForgetResponse{}, err
	}
	defer conn.Close()
	return kvrpc.NewDirectory(conn, kvrpc.ClientOptions{}).ForgetShard(ctx, store, dryRun)
}
