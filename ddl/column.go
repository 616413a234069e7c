package ddl

import (
	"context"
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxColumns is PostgreSQL's limit.
const maxColumns = 1600

// serialTypes are the type names that define an integer with a sequence.
var serialTypes = map[string]types.Type{
	"serial": types.TInt4, "serial4": types.TInt4, "bigserial": types.TInt8, "serial8": types.TInt8,
	"smallserial": types.TInt2, "serial2": types.TInt2,
}

// columnType resolves the type of a column definition; serial: it also defines a sequence.
func columnType(def *ast.ColumnDef, res catalog.Resolver) (t types.Type, serial bool, err error) {
	if n := &def.Type; len(n.Name) == 1 {
		if t, ok := serialTypes[n.Name[0]]; ok {
			if n.Array > 0 {
				return t, false, pgerror.New(pgerror.FeatureNotSupported, "array of serial is not implemented").At(n.Position())
			}
			return t, true, nil
		}
	}
	t, err = planner.ResolveType(&def.Type, res)
	if err != nil {
		return t, false, err
	}
	if t, err = planner.CollateType(t, def.Collation, res, int(def.CollateAt)); err != nil {
		return t, false, err
	}
	return t, false, requireStorable(def.Name, t, def.Position())
}

func requireStorable(column string, t types.Type, pos int) error {
	if info := t.Info(); info == nil || info.Category == types.CategoryPseudo || t.OID == types.OIDUnknown {
		return pgerror.New(pgerror.InvalidTableDefinition, "column %q has pseudo-type %s", column, t.String()).At(pos)
	}
	return nil
}

// appendColumn adds a column to the table being built.
func (b *builder) appendColumn(col catalog.ColumnDescriptor, pos int) error {
	if b.t.ColumnNamed(col.Name) >= 0 {
		return pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", col.Name).At(pos)
	}
	if err := notSystemColumn(b.t, col.Name, pos); err != nil {
		return err
	}
	if err := requireStorable(col.Name, col.Type, pos); err != nil {
		return err
	}
	if err := b.mayUseType(col.Type); err != nil {
		return err
	}
	if err := b.requireNotWithin(b.t, col.Type); err != nil {
		return err
	}
	if err := requireLasting(b.t.Schema, col.Type); err != nil {
		return err
	}
	if len(b.t.Columns) >= maxColumns {
		return pgerror.New(pgerror.TooManyColumns, "tables can have at most %d columns", maxColumns).At(pos)
	}
	col.ID = b.t.NextColumnID
	b.t.NextColumnID++
	b.t.Columns = append(b.t.Columns, col)
	return nil
}

// addColumn adds a column as defined, with the sequence of a serial or identity column. Its
// constraints are the caller's.
func (b *builder) addColumn(ctx context.Context, def *ast.ColumnDef) error {
	typ, serial, err := columnType(def, b.r)
	if err != nil {
		return err
	}
	return b.addColumnOf(ctx, def, typ, serial)
}

// addColumnOf is addColumn of a type that has been resolved.
func (b *builder) addColumnOf(ctx context.Context, def *ast.ColumnDef, typ types.Type, serial bool) (err error) {
	if err := refuseColumnOptions(def, b.t.Name, typ, serial); err != nil {
		return err
	}
	col := catalog.ColumnDescriptor{Name: def.Name, Type: typ, NotNull: def.NotNull || serial || def.Identity != "", Identity: def.Identity}
	if err := b.appendColumn(col, def.Position()); err != nil {
		return err
	}
	at := &b.t.Columns[len(b.t.Columns)-1]
	if def.Compression != "" {
		if err := b.setPhysical(at, &ast.SetStorage{Action: "SET COMPRESSION", Name: def.Compression}); err != nil {
			return err
		}
	}
	switch {
	case serial || def.Identity != "":
		return b.ownSequence(ctx, at, def.Sequence, def.Position())
	case def.Default != nil:
		at.Default, err = b.defaultText(ctx, at.Name, def.Default, typ)
	}
	return err
}

// refuseColumnOptions fails on contradictory and unsupported options.
func refuseColumnOptions(def *ast.ColumnDef, table string, t types.Type, serial bool) error {
	conflict := func(what string) error {
		return pgerror.New(pgerror.SyntaxError, "%s for column %q of table %q", what, def.Name, table).At(def.Position())
	}
	switch {
	case def.Generated != nil && (def.Default != nil || serial):
		return conflict("both default and generation expression specified")
	case def.Generated != nil && def.Identity != "":
		return conflict("both identity and generation expression specified")
	case def.Null && (def.NotNull || serial || def.Identity != ""):
		return conflict("conflicting NULL/NOT NULL declarations")
	case serial && def.Default != nil:
		return conflict("multiple default values specified")
	case def.Identity != "" && (serial || def.Default != nil):
		return conflict("both default and identity specified")
	}
	return nil
}

// ownSequence gives a serial or identity column its sequence and default.
func (b *builder) ownSequence(ctx context.Context, col *catalog.ColumnDescriptor, options *ast.SequenceOptions, pos int) error {
	name, options, err := b.sequenceName(ctx, col, options, pos)
	if err != nil {
		return err
	}
	b.pending[name] = true
	id, err := b.ch.NewID(ctx)
	if err != nil {
		return err
	}
	if col.Identity != "" {
		if err := requireIdentityType(col.Type); err != nil {
			return err
		}
	}
	q, err := newSequence(options, col.Type, pos)
	if err != nil {
		return err
	}
	q.OwnerTable, q.OwnerColumn, q.ValueID = b.t.ID, col.ID, id
	seq := &catalog.TableDescriptor{ID: id, Kind: catalog.KindSequence, Schema: b.t.Schema, Name: name, Sequence: q, Unlogged: b.t.Unlogged}
	b.sequences = append(b.sequences, seq)
	col.Sequence = id
	if col.Identity == "" {
		col.Default = nextvalOf(id)
	}
	return nil
}

// sequenceName returns the name of a column's sequence, SEQUENCE NAME or a derived one, and the other options.
func (b *builder) sequenceName(ctx context.Context, col *catalog.ColumnDescriptor, options *ast.SequenceOptions, pos int) (string, *ast.SequenceOptions, error) {
	if options == nil || options.Name == nil {
		return chooseName(b.t.Name, col.Name, "seq", b.taken), options, nil
	}
	rest := *options
	rest.Name = nil
	target := pathName(ast.Pos(pos), options.Name)
	if target.Schema != "" {
		schema, err := b.targetSchema(ctx, target)
		if err != nil {
			return "", nil, err
		}
		if schema != b.t.Schema {
			return "", nil, pgerror.New(pgerror.ObjectNotInPrerequisite, "sequence must be in same schema as table it is linked to")
		}
	}
	if b.taken(target.Name) {
		return "", nil, relationExists(target.Name)
	}
	return target.Name, &rest, nil
}

// nextvalOf is the default of a serial column. It names the sequence by number, so that renaming the
// sequence changes nothing; system tables show the name.
func nextvalOf(sequence uint64) string {
	return "nextval('" + strconv.FormatUint(sequence, 10) + "'::regclass)"
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
