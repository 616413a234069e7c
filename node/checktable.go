package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/tso"
)

// TableServedError: a table is checked over which a process runs.
type TableServedError struct{ Coordinator string }

func (e *TableServedError) Error() string {
	return "a percodb process serves the table; its coordinator is at " + e.Coordinator
}

// tableLeaseWait is how long a check waits for the lease of a process that has been killed.
const tableLeaseWait = 5 * time.Second

// CheckTable verifies a table of Bigtable over which no process runs: its rows, then what SQL sees. While it runs it is the coordinator, so that no process
// issues timestamps beside it. It resolves locks of transactions that have ended, as every reader does, and writes nothing else but the lease.
func CheckTable(ctx context.Context, opts Options, r server.CheckReport) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{opts: opts, log: opts.Logger, registry: prometheus.NewRegistry()}
	defer n.Close(ctx)
	client, err := bigtable.Open(ctx, *opts.Bigtable)
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) { logClose(n, client.Close()) })
	oracle, err := n.leaseTable(ctx, client)
	if err != nil {
		return err
	}
	shard, err := bigtable.NewShard(ctx, client, bigtable.ShardOptions{Oracle: oracle})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) { shard.Close() })
	found, err := shard.Check(ctx, func(f mvcc.Finding) error {
		r.Finding("table, " + f.String())
		return ctx.Err()
	}, func(rows int64) { r.Progress("rows", rows) })
	if err != nil {
		return fmt.Errorf("check the table: %w", err)
	}
	r.Note(fmt.Sprintf("table: %s, %s, %s, %s", plural.Count(found.Rows, "row"), plural.Count(found.Versions, "version"),
		plural.Count(found.Locks, "lock"), plural.Count(found.Statuses, "status record")))
	data := &storage{router: bigtable.NewRouter(shard), oracle: oracle}
	d, err := n.openDatabase(ctx, n.openTransactions(data), data)
	if err != nil {
		return err
	}
	return d.check(ctx, n.sessionDeps(d, data, notify.New(notify.Options{})), r)
}

// leaseTable makes the process the coordinator until Close, and returns its oracle.
func (n *Node) leaseTable(ctx context.Context, client *bigtable.Client) (tso.Oracle, error) {
	waiting, cancel := context.WithTimeout(ctx, tableLeaseWait)
	defer cancel()
	lease, err := client.AcquireLease(waiting, bigtable.Candidate{Addr: "percodb check"})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		addr, err := client.Coordinator(ctx)
		if err == nil {
			err = &TableServedError{Coordinator: addr}
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		_ = lease.Keep(keeping) // Without the lease the oracle issues nothing.
	}()
	n.onClose(func(ctx context.Context) {
		stop()
		<-kept
		logClose(n, lease.Release(ctx))
	})
	local, err := tso.NewLocal(ctx, lease.WindowStore(), tso.Options{Logger: n.log, AwaitClock: true, AcceptClockStep: true})
	if err != nil {
		return nil, err
	}
	n.onClose(func(context.Context) { logClose(n, local.Close()) })
	return bigtable.NewOracle(local, lease), nil
}
