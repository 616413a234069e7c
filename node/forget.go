package node

import (
	"context"
	"log/slog"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/kv"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// ForgetStore excludes a store that is permanently lost from the cluster of the tso process at join; with dryRun it only
// reports what would be lost. files are an operator's certificate of the cluster; none if its processes have none.
func ForgetStore(ctx context.Context, join, store string, files tlsfiles.Files, dryRun bool) (kv.ForgetResponse, error) {
	var security *tsorpc.Security
	if files != (tlsfiles.Files{}) {
		var err error
		if security, err = tsorpc.NewSecurity(files, certs.Operator, slog.New(slog.DiscardHandler)); err != nil {
			return kv.ForgetResponse{}, err
		}
	}
	conn, err := security.Dial(join, certs.TSO)
	if err != nil {
		return kv.ForgetResponse{}, err
	}
	defer conn.Close()
	return kvrpc.NewDirectory(conn, kvrpc.ClientOptions{}).ForgetShard(ctx, store, dryRun)
}
