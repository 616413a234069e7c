package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// alterIdentity is ALTER COLUMN with ADD GENERATED, SET of an identity column's options, RESTART, or DROP IDENTITY. next is a copy of t.
func (r *run) alterIdentity(ctx context.Context, t, next *catalog.TableDescriptor, ord int, n *ast.AlterColumn) error {
	col := &next.Columns[ord]
	if n.AddIdentity != "" {
		return r.addIdentity(ctx, t, next, col, n)
	}
	if col.Identity == "" {
		if n.Drop != "" && n.IfExists {
			r.noticeAbsent("column %q of relation %q is not an identity column, skipping", n.Name, t.Name)
			return nil
		}
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "column %q of relation %q is not an identity column", n.Name, t.Name)
	}
	if n.Drop == "" {
		return r.setIdentity(ctx, t, next, col, n)
	}
	sequence := col.Sequence
	col.Identity, col.Sequence = "", 0
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	return r.dropOwnedSequence(ctx, sequence)
}

// addIdentity makes a column of next an identity column, with a new sequence.
func (r *run) addIdentity(ctx context.Context, t, next *catalog.TableDescriptor, col *catalog.ColumnDescriptor, n *ast.AlterColumn) error {
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	had := *col
	col.Identity = n.AddIdentity
	b := &builder{run: r, t: next, pending: map[string]bool{}, taken: taken}
	if err := b.ownSequence(ctx, col, n.Sequence, n.Position()); err != nil {
		return err
	}
	invalid := func(format string) error { return pgerror.New(pgerror.ObjectNotInPrerequisite, format, n.Name, t.Name) }
	switch {
	case !had.NotNull:
		return invalid("column %q of relation %q must be declared NOT NULL before identity can be added")
	case had.Identity != "":
		return invalid("column %q of relation %q is already an identity column")
	case had.Default != "" || had.Generated != "":
		return invalid("column %q of relation %q already has a default value")
	}
	for _, seq := range b.sequences {
		if err := r.createFor(ctx, seq, t.OwnerOID()); err != nil {
			return err
		}
	}
	return r.update(ctx, t, next, false)
}

// setIdentity is SET GENERATED, SET of options of the sequence, and RESTART.
func (r *run) setIdentity(ctx context.Context, t, next *catalog.TableDescriptor, col *catalog.ColumnDescriptor, n *ast.AlterColumn) error {
	var options ast.SequenceOptions
	generated, changes := "", false
	for i := range n.IdentityOptions {
		o := &n.IdentityOptions[i]
		repeated := o.Generated != "" && generated != ""
		if o.Sequence != nil {
			repeated, changes = !mergeOptions(&options, o.Sequence), true
		}
		if repeated {
			return pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(n.Position())
		}
		if o.Generated != "" {
			generated = o.Generated
		}
	}
	if changes {
		seq, err := r.r.RelationByID(ctx, col.Sequence)
		if err != nil {
			return err
		}
		if err := r.alterSequence(ctx, seq, &ast.SetSequence{Pos: n.Pos, SequenceOptions: options}); err != nil {
			return err
		}
	}
	if generated == "" {
		return nil
	}
	col.Identity = generated
	return r.update(ctx, t, next, false)
}

// alterIdentityType gives the sequence of an identity column the type that the column is to have.
func (r *run) alterIdentityType(ctx context.Context, col *catalog.ColumnDescriptor, typ types.Type, n *ast.AlterColumn) error {
	if col.Identity == "" || col.Type.OID == typ.OID {
		return nil
	}
	if err := requireIdentityType(typ); err != nil {
		return err
	}
	seq, err := r.r.RelationByID(ctx, col.Sequence)
	if err != nil {
		return err
	}
	return r.alterSequence(ctx, seq, &ast.SetSequence{Pos: n.Pos, SequenceOptions: ast.SequenceOptions{Type: n.SetType}})
}

func requireIdentityType(t types.Type) error {
	if t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8 {
		return nil
	}
	return pgerror.New(pgerror.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
}

// mergeOptions adds the one option of from to those of to; false: to has it.
func mergeOptions(to, from *ast.SequenceOptions) bool {
	set := func(has, adds bool) bool { return !has || !adds }
	ok := set(to.Increment != nil, from.Increment != nil) && set(to.Start != nil, from.Start != nil) && set(to.Cache != nil, from.Cache != nil) &&
		set(to.Min != nil || to.NoMin, from.Min != nil || from.NoMin) && set(to.Max != nil || to.NoMax, from.Max != nil || from.NoMax) &&
		set(to.Cycle || to.NoCycle, from.Cycle || from.NoCycle) && set(to.Restart, from.Restart) && set(to.Name != nil, from.Name != nil)
	switch {
	case from.Increment != nil:
		to.Increment = from.Increment
	case from.Start != nil:
		to.Start = from.Start
	case from.Cache != nil:
		to.Cache = from.Cache
	case from.Min != nil, from.NoMin:
		to.Min, to.NoMin = from.Min, from.NoMin
	case from.Max != nil, from.NoMax:
		to.Max, to.NoMax = from.Max, from.NoMax
	case from.Cycle, from.NoCycle:
		to.Cycle, to.NoCycle = from.Cycle, from.NoCycle
	case from.Restart:
		to.Restart, to.RestartWith = true, from.RestartWith
	case from.Name != nil:
		to.Name = from.Name
	}
	return ok
}
