package ddl

import (
	"context"
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func (r *run) createSequence(ctx context.Context, n *ast.CreateSequence) error {
	schema, err := r.newRelationSchema(ctx, n.Name, n.Persistence)
	if err != nil {
		return err
	}
	if taken, err := r.nameTaken(ctx, schema, n.Name.Name); err != nil || taken {
		if err == nil && n.IfNotExists {
			r.notice(pgerror.DuplicateTable, "relation %q already exists, skipping", n.Name.Name)
			return nil
		}
		return errorOr(err, relationExists(n.Name.Name).At(n.Name.Position()))
	}
	seq, err := newSequence(&n.SequenceOptions, types.TInt8, n.Position())
	if err != nil {
		return err
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	seq.ValueID = id
	t := &catalog.TableDescriptor{ID: id, Kind: catalog.KindSequence, Schema: schema, Name: n.Name.Name, Sequence: seq, Unlogged: n.Persistence == ast.Unlogged}
	if err := r.setOwner(ctx, t, n.OwnedBy, n.Position()); err != nil {
		return err
	}
	if err := r.create(ctx, t); err != nil {
		return err
	}
	return r.look(ctx)
}

// newSequence makes a sequence of the given type, unless o specifies another, with o's options.
func newSequence(o *ast.SequenceOptions, typ types.Type, pos int) (*catalog.SequenceDescriptor, error) {
	seq := &catalog.SequenceDescriptor{Type: typ, Increment: 1}
	if o == nil {
		o = &ast.SequenceOptions{}
	}
	if err := applyOptions(seq, o, true, pos); err != nil {
		return nil, err
	}
	seq.First = seq.Start
	return seq, nil
}

// applyOptions changes a sequence by the options in o; fresh: options missing in o get PostgreSQL's defaults.
func applyOptions(seq *catalog.SequenceDescriptor, o *ast.SequenceOptions, fresh bool, pos int) error {
	invalid := func(format string, args ...any) error {
		return pgerror.New(pgerror.InvalidParameterValue, format, args...).At(pos)
	}
	if o.Name != nil {
		return pgerror.New(pgerror.SyntaxError, "invalid sequence option SEQUENCE NAME").At(pos)
	}
	resetMin, resetMax := false, false
	if o.Type != nil {
		typ, err := planner.ResolveType(o.Type, nil)
		if err != nil {
			return err
		}
		if typ.OID != types.OIDInt2 && typ.OID != types.OIDInt4 && typ.OID != types.OIDInt8 {
			return invalid("sequence type must be smallint, integer, or bigint")
		}
		if !fresh { // Bounds of the type's own become those of the new type.
			least, most := boundsOf(seq.Type)
			resetMin, resetMax = seq.Min == least, seq.Max == most
		}
		seq.Type = typ
	}
	if o.Increment != nil {
		if seq.Increment = *o.Increment; seq.Increment == 0 {
			return invalid("INCREMENT must not be zero")
		}
	}
	if o.Cache != nil {
		if *o.Cache <= 0 {
			return invalid("CACHE (%d) must be greater than zero", *o.Cache)
		}
		seq.Cache = *o.Cache
	}
	seq.Cycle = (seq.Cycle || o.Cycle) && !o.NoCycle
	if err := applyBounds(seq, o, fresh || resetMin, fresh || resetMax, fresh, pos); err != nil {
		return err
	}
	switch {
	case o.Start != nil:
		seq.Start = *o.Start
	case fresh && seq.Increment < 0:
		seq.Start = seq.Max
	case fresh:
		seq.Start = seq.Min
	}
	return requireWithin(seq, "START", seq.Start, pos)
}

// applyBounds sets MINVALUE and MAXVALUE: as specified, or by default, which depends on the direction; those that newMin and newMax tell to
// follow a new type of a sequence that is not fresh become the type's.
func applyBounds(seq *catalog.SequenceDescriptor, o *ast.SequenceOptions, newMin, newMax, fresh bool, pos int) error {
	least, most := boundsOf(seq.Type)
	if o.NoMin || newMin {
		if seq.Min = 1; seq.Increment < 0 || newMin && !fresh {
			seq.Min = least
		}
	}
	if o.NoMax || newMax {
		if seq.Max = most; seq.Increment < 0 && (fresh || !newMax) {
			seq.Max = -1
		}
	}
	if o.Min != nil {
		seq.Min = *o.Min
	}
	if o.Max != nil {
		seq.Max = *o.Max
	}
	invalid := func(format string, args ...any) error {
		return pgerror.New(pgerror.InvalidParameterValue, format, args...).At(pos)
	}
	switch {
	case seq.Max < least || seq.Max > most:
		return invalid("MAXVALUE (%d) is out of range for sequence data type %s", seq.Max, seq.Type.String())
	case seq.Min < least || seq.Min > most:
		return invalid("MINVALUE (%d) is out of range for sequence data type %s", seq.Min, seq.Type.String())
	case seq.Min >= seq.Max:
		return invalid("MINVALUE (%d) must be less than MAXVALUE (%d)", seq.Min, seq.Max)
	}
	return nil
}

func boundsOf(t types.Type) (least, most int64) {
	switch t.OID {
	case types.OIDInt2:
		return math.MinInt16, math.MaxInt16
	case types.OIDInt4:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func requireWithin(seq *catalog.SequenceDescriptor, what string, value int64, pos int) error {
	switch {
	case value < seq.Min:
		return pgerror.New(pgerror.InvalidParameterValue, "%s value (%d) cannot be less than MINVALUE (%d)", what, value, seq.Min).At(pos)
	case value > seq.Max:
		return pgerror.New(pgerror.InvalidParameterValue, "%s value (%d) cannot be greater than MAXVALUE (%d)", what, value, seq.Max).At(pos)
	}
	return nil
}

// setOwner applies OWNED BY table.column or OWNED BY NONE; nil leaves the owner unchanged.
func (r *run) setOwner(ctx context.Context, t *catalog.TableDescriptor, ownedBy []string, pos int) error {
	if len(ownedBy) < 2 {
		if len(ownedBy) == 1 && ownedBy[0] != "none" {
			return pgerror.New(pgerror.SyntaxError, "invalid OWNED BY option").
				WithHint("Specify OWNED BY table.column or OWNED BY NONE.").At(pos)
		}
		if len(ownedBy) == 1 {
			t.Sequence.OwnerTable, t.Sequence.OwnerColumn = 0, 0
		}
		return nil
	}
	name := ast.TableName{Pos: ast.Pos(pos), Name: ownedBy[len(ownedBy)-2]}
	if len(ownedBy) > 2 {
		name.Schema = ownedBy[len(ownedBy)-3]
	}
	owner, err := r.mustFindTable(ctx, name)
	if err != nil {
		return err
	}
	sequenceOwner := t.OwnerOID()
	if t.Version == 0 { // being created
		sequenceOwner = r.User
	}
	if owner.OwnerOID() != sequenceOwner {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "sequence must have same owner as table it is linked to")
	}
	if owner.Schema != t.Schema {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "sequence must be in same schema as table it is linked to")
	}
	ord, err := mustColumn(owner, ownedBy[len(ownedBy)-1], pos)
	if err != nil {
		return err
	}
	t.Sequence.OwnerTable, t.Sequence.OwnerColumn = owner.ID, owner.Columns[ord].ID
	return nil
}

// alterSequence is ALTER SEQUENCE with options. The value moves to a new key, so that values made durable under the old
// options are not issued any more, and a rollback finds the old one.
func (r *run) alterSequence(ctx context.Context, t *catalog.TableDescriptor, n *ast.SetSequence) error {
	last, called, err := r.Catalog.LastVal(ctx, t)
	if err != nil {
		return err
	}
	if err := r.requireOwnable(ctx, t, n); err != nil {
		return err
	}
	next := t.Clone()
	if err := applyOptions(next.Sequence, &n.SequenceOptions, false, n.Position()); err != nil {
		return err
	}
	if err := r.setOwner(ctx, next, n.OwnedBy, n.Position()); err != nil {
		return err
	}
	if n.Restart {
		last, called = next.Sequence.Start, false
		if n.RestartWith != nil {
			last = *n.RestartWith
		}
	}
	if err := requireWithin(next.Sequence, "RESTART", last, n.Position()); err != nil {
		return err
	}
	if next.Sequence.ValueID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	next.Sequence.First, next.Sequence.FirstCalled = last, called
	return r.update(ctx, t, next, false)
}

// requireOwnable refuses OWNED BY for the sequence of an identity column.
func (r *run) requireOwnable(ctx context.Context, t *catalog.TableDescriptor, n *ast.SetSequence) error {
	if len(n.OwnedBy) == 0 || t.Sequence.OwnerTable == 0 {
		return nil
	}
	owner, err := r.r.RelationByID(ctx, t.Sequence.OwnerTable)
	if err != nil || owner == nil {
		return err
	}
	if ord := owner.Ordinal(t.Sequence.OwnerColumn); ord >= 0 && owner.Columns[ord].Identity != "" {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot change ownership of identity sequence").
			WithDetail("Sequence %q is linked to table %q.", t.Name, owner.Name).At(n.Position())
	}
	return nil
}

// restartSequence gives an owned sequence a new, unused value.
func (r *run) restartSequence(ctx context.Context, id uint64) error {
	if id == 0 {
		return nil
	}
	seq, err := r.r.RelationByID(ctx, id)
	if err != nil || seq == nil {
		return err
	}
	next := seq.Clone()
	if next.Sequence.ValueID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	next.Sequence.First, next.Sequence.FirstCalled = next.Sequence.Start, false
	return r.ch.Update(ctx, seq, next, false)
}
