package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
)

// A statement that reads one key, and is a transaction of its own, needs no snapshot: the latest value
// was current at some time during the statement. It takes no timestamp where the engine reads the latest value, else one, and checks afterwards that its schema was in
// force all the time, or at that timestamp. If it was not, the statement is repeated with a snapshot. A session sees no older state than it
// has seen before (percolator.Latest). Two sessions may see commits that overlap their statements in
// different orders, so a serializable transaction always takes a snapshot.
//
//	simple query   the text has one statement
//	extended       Execute is deferred until the next message, which must be Sync
//
// Between Bind and Sync, transaction.latest is set if the plan was validated under such a schema. Beginning a
// transaction clears it.

// latestReader is the executor's transaction of such a statement.
type latestReader struct {
	*percolator.Latest
	catalog *catalog.Catalog
	schema  catalog.Resolver // that of the plan
}

// Get implements percolator.Reader. *catalog.SchemaChangedError: the plan may not fit the data that was read.
func (r *latestReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, err := r.Latest.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if ok, err := r.catalog.InForce(ctx, r.schema, r.Snapshot()); err != nil || !ok {
		return nil, orSchemaChanged(err)
	}
	return value, nil
}

// Notify implements executor.Txn. It is not called: nothing is written.
func (r *latestReader) Notify(*mvcc.NotifySet) {}

func orSchemaChanged(err error) error {
	if err != nil {
		return err
	}
	return &catalog.SchemaChangedError{}
}

// deferrable reports whether Execute of a portal is deferred until the next message, which tells whether the statement is
// alone between two Syncs. The deferral is invisible to the client: the result would not have been sent before.
func (s *Session) deferrable(po *portal) bool {
	return s.tx.latest && !po.started && po.prepared.plan != nil && po.prepared.plan.SinglePoint
}

// RunDeferred runs an Execute that was deferred. It precedes every message but Sync, which runs it as the only statement.
func (s *Session) RunDeferred(w ResultWriter) error {
	po := s.deferred
	if po == nil {
		return nil
	}
	s.deferred = nil
	return s.executePortal(po, 0, false, w)
}
