package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// tableType finds the composite type that a typed table is to have.
func (r *run) tableType(ctx context.Context, name ast.TableName) (*catalog.TypeDescriptor, error) {
	d, t, err := r.userType(ctx, name)
	if row, ok := err.(*rowType); ok {
		return nil, pgerror.New(pgerror.WrongObjectType, "type %s is not a composite type", row.relation.Name)
	}
	switch {
	case err != nil:
		return nil, err
	case d == nil || d.Kind != types.Composite || t.IsArray():
		return nil, pgerror.New(pgerror.WrongObjectType, "type %s is not a composite type", builtin.TypeName(t))
	}
	return d, r.mayUseType(t)
}

// addTypedColumns adds the columns of CREATE TABLE … OF, with the options that the statement gives them.
func (b *builder) addTypedColumns(ctx context.Context, n *ast.CreateTable) error {
	d, err := b.tableType(ctx, pathName(n.OfType.Pos, n.OfType.Name))
	if err != nil {
		return err
	}
	b.t.OfType = d.ID
	options := map[string]*ast.ColumnDef{}
	for i := range n.Columns {
		def := &n.Columns[i]
		switch {
		case fieldNamed(d, def.Name) < 0:
			return pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", def.Name)
		case options[def.Name] != nil:
			return pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", def.Name)
		case def.Identity != "":
			return pgerror.New(pgerror.FeatureNotSupported, "identity columns are not supported on typed tables")
		case def.Generated != nil:
			return pgerror.New(pgerror.FeatureNotSupported, "generated columns are not supported on typed tables")
		}
		options[def.Name] = def
	}
	for _, f := range d.Type().Def.Fields {
		def := options[f.Name]
		if def == nil {
			def = &ast.ColumnDef{Name: f.Name}
		}
		if err := b.addColumnOf(ctx, def, f.Type, false); err != nil {
			return err
		}
	}
	return nil
}

// refuseTyped fails for the changes of columns that a typed table takes from its type only.
func refuseTyped(t *catalog.TableDescriptor, cmd ast.AlterCommand) error {
	what := ""
	switch n := cmd.(type) {
	case *ast.AddColumn:
		what = "cannot add column to typed table"
	case *ast.DropColumn:
		what = "cannot drop column from typed table"
	case *ast.RenameColumn:
		what = "cannot rename column of typed table"
	case *ast.AlterColumn:
		if n.SetType != nil {
			what = "cannot alter column type of typed table"
		}
	}
	if t.OfType == 0 || what == "" {
		return nil
	}
	return pgerror.New(pgerror.WrongObjectType, "%s", what)
}

// alterOfType is ALTER TABLE … OF and NOT OF.
func (r *run) alterOfType(ctx context.Context, t *catalog.TableDescriptor, n *ast.TableCommand) error {
	next := t.Clone()
	if n.Action == "NOT OF" {
		if t.OfType == 0 {
			return pgerror.New(pgerror.WrongObjectType, "%q is not a typed table", t.Name)
		}
		next.OfType = 0
		return r.update(ctx, t, next, false)
	}
	d, err := r.tableType(ctx, *n.Table)
	if err != nil {
		return err
	}
	if err := requireColumnsOf(t, d); err != nil {
		return err
	}
	next.OfType = d.ID
	return r.update(ctx, t, next, false)
}

// requireColumnsOf fails unless a table has the columns of a composite type, in its order.
func requireColumnsOf(t *catalog.TableDescriptor, d *catalog.TypeDescriptor) error {
	mismatch := func(format string, args ...any) error {
		return pgerror.New(pgerror.DatatypeMismatch, format, args...)
	}
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c catalog.ColumnDescriptor) bool { return c.Hidden })
	for i, f := range d.Type().Def.Fields {
		if i >= len(columns) {
			return mismatch("table is missing column %q", f.Name)
		}
		c := &columns[i]
		switch {
		case c.Name != f.Name:
			return mismatch("table has column %q where type requires %q", c.Name, f.Name)
		case c.Type.OID != f.Type.OID || c.Type.Mod != f.Type.Mod || c.Type.Coll != f.Type.Coll:
			return mismatch("table %q has different type for column %q", t.Name, f.Name)
		}
	}
	if n := len(d.Fields); n < len(columns) {
		return mismatch("table has extra column %q", columns[n].Name)
	}
	return nil
}

// tablesOf lists the typed tables of a composite type.
func (r *run) tablesOf(ctx context.Context, d *catalog.TypeDescriptor) (tables []*catalog.TableDescriptor, err error) {
	all, err := r.r.Relations(ctx)
	for _, t := range all {
		if t.OfType == d.ID {
			tables = append(tables, t)
		}
	}
	return tables, err
}

// typedTable is a typed table that depends on its type, with all that depends on the table.
type typedTable struct {
	table *catalog.TableDescriptor
	lines []string // what depends on the table, as messages list it
}

// typedTablesOf lists the typed tables of a composite type with their dependents.
func (r *run) typedTablesOf(ctx context.Context, d *catalog.TypeDescriptor) (found []typedTable, err error) {
	tables, err := r.tablesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		dropping := newDropping(r)
		dropping.addTarget(t)
		if err := dropping.collect(ctx); err != nil {
			return nil, err
		}
		found = append(found, typedTable{t, dropping.why})
	}
	return found, nil
}

// typedTables returns the tables that a change of a type's attributes carries over to, and fails if there are any without CASCADE. Those whose
// rows change are closed. It must come before the statement's first write.
func (r *run) typedTables(ctx context.Context, d *catalog.TypeDescriptor, cascade, rows bool) ([]*catalog.TableDescriptor, error) {
	tables, err := r.tablesOf(ctx, d)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	if !cascade {
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot alter type \"%s\" because it is the type of a typed table", builtin.TypeName(d.Type())).
			WithHint("Use ALTER ... CASCADE to alter the typed tables too.")
	}
	var trees []*catalog.TableDescriptor
	for _, t := range tables {
		if err := r.mustOwn(t); err != nil {
			return nil, err
		}
		tree, err := catalog.PartitionTree(ctx, r.r, t)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree...)
	}
	if rows {
		indexes := 0
		for _, t := range trees {
			indexes = max(indexes, len(t.Indexes))
		}
		if _, err := r.exclusiveAll(ctx, trees, 8*(indexes+2)); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// alterTyped executes a command for typed tables whose type has changed.
func (r *run) alterTyped(ctx context.Context, tables []*catalog.TableDescriptor, cmd ast.AlterCommand) error {
	for _, t := range tables {
		if t.IsPartitioned() {
			if err := r.alterTree(ctx, t.ID, false, cmd); err != nil {
				return err
			}
			if c, ok := cmd.(*ast.AlterColumn); ok {
				if err := r.refitTree(ctx, t, c.Name); err != nil {
					return err
				}
			}
			continue
		}
		now, err := r.toFill(ctx, t.ID)
		if err != nil {
			return err
		}
		if c, ok := cmd.(*ast.AlterColumn); ok {
			err = r.alterTypes(ctx, now, []*ast.AlterColumn{c})
		} else {
			err = r.alterOne(ctx, now, cmd)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// columnChange is what a change of an attribute means for a column.
func columnChange(c *ast.AttributeChange) ast.AlterCommand {
	switch c.Action {
	case "ADD":
		return &ast.AddColumn{Column: ast.ColumnDef{Pos: c.Pos, Name: c.Attribute.Name, Type: c.Attribute.Type, Collation: c.Attribute.Collation}}
	case "DROP":
		return &ast.DropColumn{Pos: c.Pos, Name: c.Attribute.Name, Cascade: c.Cascade}
	}
	return &ast.AlterColumn{Pos: c.Pos, Name: c.Attribute.Name, SetType: &c.Attribute.Type, Collation: c.Attribute.Collation}
}
