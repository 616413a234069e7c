package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// sequences are a session's values of sequences, for currval and lastval. It implements builtin.Sequences.
type sequences struct {
	tx     *transaction
	last   types.OID // the sequence that lastval is of
	values map[types.OID]int64
}

var _ builtin.Sequences = (*sequences)(nil)

// sequence finds a sequence by regclass.
func (q *sequences) find(ctx context.Context, oid types.OID) (*catalog.TableDescriptor, error) {
	if err := q.tx.begin(ctx); err != nil {
		return nil, err
	}
	t, err := q.tx.resolver.RelationByID(ctx, uint64(oid))
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "could not open relation with OID %d", oid)
	}
	if t.Kind != catalog.KindSequence {
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not a sequence", t.Name)
	}
	return t, nil
}

// NextVal implements builtin.Sequences.
func (q *sequences) NextVal(ctx context.Context, oid types.OID) (int64, error) {
	t, err := q.find(ctx, oid)
	if err != nil {
		return 0, err
	}
	if q.tx.activeModes().ReadOnly && !t.Temporary() {
		return 0, readOnlyError("nextval()")
	}
	if err := q.may(ctx, t, acl.Usage|acl.Update, true); err != nil {
		return 0, err
	}
	value, err := q.tx.catalog.NextVal(ctx, t)
	if err == nil {
		q.note(oid, value)
	}
	return value, err
}

func (q *sequences) note(oid types.OID, value int64) {
	if q.values == nil {
		q.values = map[types.OID]int64{}
	}
	q.values[oid] = value
	q.last = oid
}

func (q *sequences) discard() { q.values, q.last = nil, 0 }

// CurrVal implements builtin.Sequences.
func (q *sequences) CurrVal(ctx context.Context, oid types.OID) (int64, error) {
	t, err := q.find(ctx, oid)
	if err != nil {
		return 0, err
	}
	if err := q.may(ctx, t, acl.Usage|acl.Select, false); err != nil {
		return 0, err
	}
	value, ok := q.values[oid]
	if !ok {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "currval of sequence %q is not yet defined in this session", t.Name)
	}
	return value, nil
}

// LastVal implements builtin.Sequences.
func (q *sequences) LastVal(ctx context.Context) (int64, error) {
	value, ok := q.values[q.last]
	if !ok {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "lastval is not yet defined in this session")
	}
	t, err := q.find(ctx, q.last)
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.UndefinedTable {
		return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "lastval is not yet defined in this session") // It has been dropped.
	}
	if err != nil {
		return 0, err
	}
	return value, q.may(ctx, t, acl.Usage|acl.Select, false)
}

// State implements builtin.Sequences.
func (q *sequences) State(ctx context.Context, oid types.OID, check bool) (last int64, called bool, err error) {
	t, err := q.find(ctx, oid)
	if err != nil {
		return 0, false, err
	}
	if check {
		if err := q.may(ctx, t, acl.Usage|acl.Select|acl.Update, false); err != nil {
			return 0, false, err
		}
	}
	return q.tx.catalog.LastVal(ctx, t)
}

// SetVal implements builtin.Sequences.
func (q *sequences) SetVal(ctx context.Context, oid types.OID, value int64, called bool) error {
	t, err := q.find(ctx, oid)
	if err != nil {
		return err
	}
	if q.tx.activeModes().ReadOnly && !t.Temporary() {
		return readOnlyError("setval()")
	}
	if err := q.may(ctx, t, acl.Update, false); err != nil {
		return err
	}
	if err := q.tx.catalog.SetVal(ctx, t, value, called); err != nil {
		return err
	}
	if called {
		q.note(oid, value)
	}
	return nil
}
