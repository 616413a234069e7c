package node

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/check"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Check verifies the data directory of a stopped server and returns what is wrong, one line each.
func Check(ctx context.Context, opts Options) (findings []string, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{opts: opts, log: opts.Logger, registry: prometheus.NewRegistry()}
	defer n.Close(ctx)
	engine, err := n.openEngine()
	if err != nil {
		return nil, err
	}
	oracle, err := n.openOracle(ctx, engine)
	if err != nil {
		return nil, err
	}
	store, err := kv.Open(ctx, kv.Options{Engine: engine, Oracle: oracle, EmbeddedOracle: true, Detached: true, Logger: n.log})
	if err != nil {
		return nil, err
	}
	n.onClose(func(context.Context) { n.closeStore(store) })
	found, err := store.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("check the store: %w", err)
	}
	for _, f := range found {
		findings = append(findings, f.String())
	}
	if store.Clustered() || len(store.Info().Ranges) == 0 {
		return findings, nil // tables lie in several stores, or there are none
	}
	return n.checkSQL(ctx, store, oracle, findings)
}

// checkSQL adds what is wrong among rows, index entries and descriptors.
func (n *Node) checkSQL(ctx context.Context, store *kv.Store, oracle tso.Oracle, findings []string) ([]string, error) {
	d, err := n.openDatabase(ctx, store.Router(), oracle, true)
	if err != nil {
		return nil, err
	}
	txn, err := d.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	_, err = check.Run(ctx, d.catalog, txn, func(f check.Finding) error {
		findings = append(findings, f.String())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check the tables: %w", err)
	}
	return findings, txn.Rollback(ctx)
}
