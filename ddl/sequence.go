package ddl

import (
	"context"
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func (r *run) createSequence(ctx context.Context, n *ast.CreateSequence) error {
	schema, err := r.targetSchema(ctx, n.Name)
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
	seq, err := sequenceOptions(n)
	if err != nil {
		return err
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	seq.ValueID = id
	if err := r.setOwner(ctx, seq, n, schema); err != nil {
		return err
	}
	if err := r.ch.Create(ctx, &catalog.TableDescriptor{
		ID: id, Kind: catalog.KindSequence, Schema: schema, Name: n.Name.Name, Sequence: seq,
	}); err != nil {
		return err
	}
	return r.look(ctx)
}

// sequenceOptions applies PostgreSQL's defaults and checks.
func sequenceOptions(n *ast.CreateSequence) (*catalog.SequenceDescriptor, error) {
	seq := &catalog.SequenceDescriptor{Increment: 1, Min: 1, Max: math.MaxInt64, Cycle: n.Cycle, Type: types.TInt8}
	invalid := func(format string, args ...any) error {
		return pgerror.New(pgerror.InvalidParameterValue, format, args...).At(n.Position())
	}
	if n.Increment != nil {
		if seq.Increment = *n.Increment; seq.Increment == 0 {
			return nil, invalid("INCREMENT must not be zero")
		}
	}
	if seq.Increment < 0 {
		seq.Min, seq.Max = math.MinInt64, -1
	}
	if n.Min != nil {
		seq.Min = *n.Min
	}
	if n.Max != nil {
		seq.Max = *n.Max
	}
	if seq.Min >= seq.Max {
		return nil, invalid("MINVALUE (%d) must be less than MAXVALUE (%d)", seq.Min, seq.Max)
	}
	seq.Start = seq.Min
	if seq.Increment < 0 {
		seq.Start = seq.Max
	}
	if n.Start != nil {
		seq.Start = *n.Start
	}
	if seq.Start < seq.Min {
		return nil, invalid("START value (%d) cannot be less than MINVALUE (%d)", seq.Start, seq.Min)
	}
	if seq.Start > seq.Max {
		return nil, invalid("START value (%d) cannot be greater than MAXVALUE (%d)", seq.Start, seq.Max)
	}
	return seq, nil
}

// setOwner applies OWNED BY table.column.
func (r *run) setOwner(ctx context.Context, seq *catalog.SequenceDescriptor, n *ast.CreateSequence, schema string) error {
	parts := n.OwnedBy
	if len(parts) < 2 {
		if len(parts) == 1 && parts[0] != "none" {
			return pgerror.New(pgerror.SyntaxError, "invalid OWNED BY option").
				WithHint("Specify OWNED BY table.column or OWNED BY NONE.").At(n.Position())
		}
		return nil
	}
	name := ast.TableName{Pos: n.Pos, Name: parts[len(parts)-2]}
	if len(parts) > 2 {
		name.Schema = parts[len(parts)-3]
	}
	t, err := r.mustFindTable(ctx, name)
	if err != nil {
		return err
	}
	if t.Schema != schema {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "sequence must be in same schema as table it is linked to")
	}
	ord, err := mustColumn(t, parts[len(parts)-1], n.Position())
	if err != nil {
		return err
	}
	seq.OwnerTable, seq.OwnerColumn = t.ID, t.Columns[ord].ID
	return nil
}
