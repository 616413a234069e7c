package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
)

// A statement that reads one key, and is a transaction of its own, needs no snapshot: the latest value
// is that of some moment while it ran. It takes no timestamp, and asks the schema afterwards whether it
// was in force all the time. Where it was not, the statement runs again as others do. What the session has
// seen so far it sees again (percolator.Latest). Two sessions may see commits that overlap their statements in
// different orders, so that a transaction at serializable takes its snapshot all the same.
//
//	simple query   one statement: it is known to be alone
//	extended       Execute is deferred until the next message; if that is Sync, it was alone
//
// Between Bind and then, transaction.latest says that the plan was found to hold under such a schema. Whoever
// begins a transaction meanwhile ends that.

// latestReader is the executor's transaction of such a statement.
type latestReader struct {
	*percolator.Latest
	catalog *catalog.Catalog
	schema  catalog.Resolver // that of the plan
}

// Get implements percolator.Reader. *catalog.SchemaChangedError: the plan may not be for what was read.
func (r *latestReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	value, err := r.Latest.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if ok, err := r.catalog.InForce(ctx, r.schema); err != nil || !ok {
		return nil, orSchemaChanged(err)
	}
	return value, nil
}

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
