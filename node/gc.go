package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/tso"
)

// GCOptions are the settings of garbage collection. The zero value means the defaults of package gc.
type GCOptions struct {
	// Life is how long history is kept, unless ALTER SYSTEM SET percodb.gc_life has set it.
	Life time.Duration
	// Interval is the time between rounds, Lease how long the word of a process holds. For tests.
	Interval, Lease time.Duration
}

// startCollecting runs the controller of garbage collection.
func (n *Node) startCollecting(engine *kv.Engine, oracle tso.Oracle, db *percolator.DB, members func(context.Context) ([]gc.Member, error)) (*gc.Controller, error) {
	c, err := gc.New(gc.Options{
		Oracle: oracle, Members: members, Resolver: db, Drops: drops{db}, Held: buildsHold(db), Settings: engine,
		Life: n.opts.GC.Life, Interval: n.opts.GC.Interval, Lease: n.opts.GC.Lease,
		Logger: n.log, Registerer: n.registry,
	})
	if err != nil {
		return nil, err
	}
	c.Start()
	n.onClose(func(context.Context) { c.Close() })
	return c, nil
}

// startReporting begins to report this process's transactions to the controller. It precedes the first transaction that
// takes long.
func (n *Node) startReporting(ctx context.Context, db *percolator.DB, service gc.Service) (*gc.Reporter, error) {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	r, err := gc.StartReporter(ctx, gc.ReporterOptions{
		ID:      fmt.Sprintf("%s/%d/%s", host, os.Getpid(), hex.EncodeToString(random[:])),
		Service: service, Transactions: db, Lease: n.opts.GC.Lease, Logger: n.log,
	})
	if err != nil {
		return nil, fmt.Errorf("report to garbage collection: %w", err)
	}
	n.onClose(func(ctx context.Context) { r.Close(ctx) })
	return r, nil
}

// buildsHold returns the function that reads the oldest snapshot that the builds of indexes read.
func buildsHold(db *percolator.DB) func(context.Context, tso.Timestamp) (tso.Timestamp, error) {
	return func(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
		txn := db.BeginAt(ts)
		defer txn.Close()
		return catalog.BuildsHold(ctx, txn)
	}
}

// drops converts the catalog's dropped tables and indexes to spans of keys.
type drops struct{ db *percolator.DB }

// Dropped implements gc.Drops.
func (d drops) Dropped(ctx context.Context, ts tso.Timestamp) ([]gc.DroppedSpan, error) {
	txn := d.db.BeginAt(ts)
	defer txn.Close()
	records, err := catalog.Dropped(ctx, txn)
	if err != nil {
		return nil, err
	}
	spans := make([]gc.DroppedSpan, len(records))
	for i, rec := range records {
		spans[i].ID = rec.ID
		s := &spans[i].Span
		if spans[i].Observer = rec.Observer; rec.Observer != 0 {
			continue
		}
		if rec.Index == 0 {
			s.Start, s.End = rowenc.TableSpan(rec.Table)
		} else {
			s.Start, s.End = rowenc.IndexSpan(rec.Table, rec.Index)
		}
	}
	return spans, nil
}

// RemoveCells implements gc.Drops.
func (d drops) RemoveCells(ctx context.Context, observer uint64) error {
	return d.db.Observers().Drop(ctx, observer, kv.Span{})
}

// Forget implements gc.Drops.
func (d drops) Forget(ctx context.Context, ids []uint64) error {
	txn, err := d.db.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	if err := catalog.ForgetDropped(ctx, txn, ids); err != nil {
		return err
	}
	_, err = txn.Commit(ctx)
	return err
}
