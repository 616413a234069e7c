package ddl

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
)

// exclusive closes a table for a change that depends on its data, and returns its descriptor as of a
// snapshot that holds all there is, with NextIndexID the first of the given number of index ids that
// are the statement's to fill. It must come before the statement's first write.
func (r *run) exclusive(ctx context.Context, t *catalog.TableDescriptor, indexes int) (*catalog.TableDescriptor, error) {
	if r.ch.Created(t.ID) {
		return t, nil // No other transaction can see it.
	}
	if err := r.ch.Close(ctx, t); err != nil {
		return nil, err
	}
	if !r.alone {
		return t, r.requireUnchanged(ctx, t)
	}
	first, err := r.ch.Reserve(ctx, t.ID, uint32(indexes))
	if err != nil {
		return nil, err
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	fresh, err := r.r.RelationByID(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	if fresh == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", t.Name)
	}
	fresh = fresh.Clone()
	fresh.NextIndexID = first
	return fresh, nil
}

// requireUnchanged fails with 40001 if another transaction has changed the table's rows since the block's snapshot: the
// rows that the block would index or check then differ from the table's. The table is closed, so comparing two scans, at
// the snapshot and now, suffices.
func (r *run) requireUnchanged(ctx context.Context, t *catalog.TableDescriptor) error {
	now, err := r.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer now.Close()
	then := r.DB.BeginAt(r.txn.StartTS())
	defer then.Close()
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	span := kv.Span{Start: start, End: end}
	before := then.Scan(ctx, span, percolator.ScanOptions{})
	defer before.Close()
	after := now.Scan(ctx, span, percolator.ScanOptions{})
	defer after.Close()
	for {
		a, b := before.Next(ctx), after.Next(ctx)
		switch {
		case before.Err() != nil:
			return before.Err()
		case after.Err() != nil:
			return after.Err()
		case a && b && bytes.Equal(before.Key(), after.Key()) && bytes.Equal(before.Value(), after.Value()):
		case !a && !b:
			return nil
		default:
			return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update of %q", t.Name).
				WithHint("Run the statement outside of a transaction block, or retry the transaction.")
		}
	}
}
