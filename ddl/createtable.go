package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rowIDColumn names the hidden column of tables without primary key.
const rowIDColumn = "rowid"

func (r *run) createTable(ctx context.Context, n *ast.CreateTable) (string, error) {
	const tag = "CREATE TABLE"
	schema, err := r.newRelationSchema(ctx, n.Name, n.Persistence)
	if err != nil {
		return "", err
	}
	onCommit, err := commitAction(n, schema)
	if err != nil {
		return "", err
	}
	taken, err := r.nameTaken(ctx, schema, n.Name.Name)
	if err != nil {
		return "", err
	}
	if taken {
		if !n.IfNotExists {
			return "", relationExists(n.Name.Name).At(n.Name.Position())
		}
		r.notice(pgerror.DuplicateTable, "relation %q already exists, skipping", n.Name.Name)
		if n.AsQuery != nil {
			return "CREATE TABLE AS", nil
		}
		return tag, nil
	}
	if err := r.requireNoType(ctx, schema, n.Name.Name); err != nil {
		return "", err
	}
	if n.Partition != nil && len(n.Inherits) > 0 {
		return "", pgerror.New(pgerror.InvalidTableDefinition, "cannot create partitioned table as inheritance child")
	}
	closed, err := r.closeParents(ctx, nil, constraintsOf(n))
	if err != nil {
		return "", err
	}
	var parent *catalog.TableDescriptor
	if n.Parent != nil {
		if parent, err = r.partitionedTable(ctx, *n.Parent); err != nil {
			return "", err
		}
		if parent, err = r.closeForPartition(ctx, parent); err != nil {
			return "", err
		}
	} else if len(closed) > 0 && r.alone {
		if err := r.begin(ctx); err != nil {
			return "", err
		}
	}
	b, err := r.newBuilder(ctx, schema, n.Name.Name)
	if err != nil {
		return "", err
	}
	b.t.OnCommit, b.t.Unlogged = onCommit, n.Persistence == ast.Unlogged
	if b.t.IsPartitioned() || n.Partition != nil {
		err = partitionedOptions(n.Options)
	} else {
		err = tableOptions(b.t, n.Options)
	}
	if err != nil {
		return "", err
	}
	if parent != nil {
		return tag, b.createPartition(ctx, n, parent)
	}
	if n.AsQuery != nil {
		return r.createTableAs(ctx, n, b)
	}
	likes, err := b.addElements(ctx, n)
	if err != nil {
		return "", err
	}
	if err := b.addGenerated(ctx, n); err != nil {
		return "", err
	}
	if err := b.addConstraints(ctx, n, likes); err != nil {
		return "", err
	}
	for _, ix := range n.Indexes {
		if err := b.addIndex(ctx, ix); err != nil {
			return "", err
		}
	}
	if n.Partition != nil {
		if err := b.addPartitioning(ctx, n.Partition); err != nil {
			return "", err
		}
	}
	return tag, b.create(ctx)
}

// addIndex adds an index that CREATE TABLE names, as MySQL's does. The table has no rows yet.
func (b *builder) addIndex(ctx context.Context, n *ast.CreateIndex) error {
	if b.taken(n.Name) {
		return relationExists(n.Name).At(n.Position())
	}
	b.pending[n.Name] = true
	ix, err := b.newIndex(ctx, b.t, n)
	if err != nil {
		return err
	}
	b.t.NextIndexID++
	b.t.Indexes = append(b.t.Indexes, ix)
	return nil
}

// createTableAs is CREATE TABLE … AS: a table of the query's columns, then INSERT … SELECT.
func (r *run) createTableAs(ctx context.Context, n *ast.CreateTable, b *builder) (string, error) {
	cols, err := r.queryColumns(ctx, n.AsQuery)
	if err != nil {
		return "", err
	}
	if len(n.AsColumns) > len(cols) {
		return "", pgerror.New(pgerror.SyntaxError, "too many column names were specified")
	}
	for i, c := range cols {
		name := c.Name
		if i < len(n.AsColumns) {
			name = n.AsColumns[i]
		}
		if c.Type.Coll.Undetermined() {
			return "", pgerror.New(builtin.IndeterminateCollation, "no collation was derived for column %q with collatable type %s", name, c.Type.String()).
				WithHint("Use the COLLATE clause to set the collation explicitly.")
		}
		if err := b.appendColumn(catalog.ColumnDescriptor{Name: name, Type: storedType(c.Type)}, 0); err != nil {
			return "", err
		}
	}
	if err := b.create(ctx); err != nil {
		return "", err
	}
	if n.WithNoData {
		return "CREATE TABLE AS", nil
	}
	query, with := *n.AsQuery, (*ast.With)(nil)
	if query.With.Modifies() { // It is at the top of a statement.
		with, query.With = query.With, nil
	}
	_, rows, err := r.Exec(ctx, Execution{Txn: r.txn, Resolver: r.r, Guard: r.guard, Params: r.Params, Statement: &ast.Insert{
		With: with, Table: ast.TableName{Schema: b.t.Schema, Name: b.t.Name}, Query: &query,
	}})
	if err != nil {
		return "", err
	}
	r.guard.Writes(b.t, rows) // For statistics.
	return "SELECT " + formatInt(rows), nil
}

// storedType is the type a column gets for an expression of type t.
func storedType(t types.Type) types.Type {
	if t.OID == types.OIDUnknown {
		return types.TText
	}
	return t
}

// builder makes the descriptor of a new table, with the sequences its columns own.
type builder struct {
	*run
	t         *catalog.TableDescriptor
	sequences []*catalog.TableDescriptor
	// pending are the names of relations and indexes chosen so far; taken checks them and the schema's.
	pending map[string]bool
	taken   func(string) bool
}

func (r *run) newBuilder(ctx context.Context, schema, name string) (*builder, error) {
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return nil, err
	}
	b := &builder{run: r, pending: map[string]bool{name: true}}
	b.t = &catalog.TableDescriptor{
		ID: id, Kind: catalog.KindTable, Schema: schema, Name: name, NextColumnID: 1, NextIndexID: 2,
		Primary: catalog.IndexDescriptor{ID: 1, Unique: true},
	}
	b.taken, err = r.relationTaken(ctx, schema, b.pending)
	return b, err
}

// addConstraints adds the constraints of columns and table: primary key first, then unique ones, then
// checks, as PostgreSQL does, so that derived names come out the same.
func (b *builder) addConstraints(ctx context.Context, n *ast.CreateTable, likes []likeSource) error {
	var all []ast.TableConstraint
	for i := range n.Columns {
		for _, c := range n.Columns[i].Constraints {
			if len(c.Columns) == 0 && c.Kind != ast.Check {
				c.Columns = []string{n.Columns[i].Name}
			}
			all = append(all, c)
		}
	}
	all = append(all, n.Constraints...)
	for _, kind := range []ast.ConstraintKind{ast.PrimaryKey, ast.Unique, ast.Exclude, ast.Check, ast.ForeignKey} {
		for i := range all {
			if all[i].Kind != kind {
				continue
			}
			if err := b.addConstraint(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	for i := range likes {
		if err := b.addLikeConstraints(ctx, &likes[i]); err != nil {
			return err
		}
	}
	if !b.t.HasPrimaryKey() {
		addRowID(b.t)
	}
	return nil
}

func (b *builder) addConstraint(ctx context.Context, c *ast.TableConstraint) error {
	switch c.Kind {
	case ast.PrimaryKey:
		if b.t.PrimaryKey() != nil {
			return multiplePrimaryKeys(b.t.Name).At(c.Position())
		}
		id := b.t.Primary.ID
		if c.Deferrable {
			id = b.t.NextIndexID
		}
		ix, err := b.keyIndex(ctx, c, "primary key", id)
		if err != nil {
			return err
		}
		if c.Deferrable {
			b.t.NextIndexID++
			b.t.Indexes = append(b.t.Indexes, ix)
		} else {
			b.t.Primary = ix
		}
		for i := range ix.Columns {
			b.t.Columns[b.t.Ordinal(ix.Columns[i].ColumnID)].NotNull = true
		}
		return nil
	case ast.Unique:
		ix, err := b.keyIndex(ctx, c, "unique", b.t.NextIndexID)
		if err != nil || b.redundant(c, &ix) {
			return err
		}
		b.t.NextIndexID++
		b.t.Indexes = append(b.t.Indexes, ix)
		return nil
	case ast.Exclude:
		ix, err := b.newExclusion(ctx, b.t, c, b.taken)
		if err != nil {
			return err
		}
		b.pending[ix.Name] = true
		b.t.NextIndexID++
		b.t.Indexes = append(b.t.Indexes, ix)
		return nil
	case ast.Check:
		check, err := b.run.newCheck(ctx, b.t, c)
		if err != nil {
			return err
		}
		check.NotValid = false // There are no rows.
		b.t.Checks = append(b.t.Checks, check)
		return nil
	}
	k, _, err := b.run.newForeignKey(ctx, b.t, c)
	if err != nil {
		return err
	}
	k.NotValid = false // There are no rows.
	b.t.ForeignKeys = append(b.t.ForeignKeys, k)
	return nil
}

func multiplePrimaryKeys(table string) *pgerror.Error {
	return pgerror.New(pgerror.InvalidTableDefinition, "multiple primary keys for table %q are not allowed", table)
}

// redundant reports whether an unnamed UNIQUE repeats an index there is, which PostgreSQL leaves out.
func (b *builder) redundant(c *ast.TableConstraint, ix *catalog.IndexDescriptor) bool {
	if c.Name != "" {
		return false
	}
	same := func(other *catalog.IndexDescriptor) bool {
		if !other.Constraint || len(other.Columns) != len(ix.Columns) || !slices.Equal(other.Include, ix.Include) || other.Exclude != nil ||
			other.Deferrable != ix.Deferrable || other.Deferred != ix.Deferred || other.NullsNotDistinct != ix.NullsNotDistinct {
			return false
		}
		for i := range ix.Columns {
			if other.Columns[i].ColumnID != ix.Columns[i].ColumnID {
				return false
			}
		}
		return true
	}
	if same(&b.t.Primary) {
		delete(b.pending, ix.Name)
		return true
	}
	for i := range b.t.Indexes {
		if same(&b.t.Indexes[i]) {
			delete(b.pending, ix.Name)
			return true
		}
	}
	return false
}

// keyIndex makes the index of a PRIMARY KEY or UNIQUE constraint.
func (b *builder) keyIndex(ctx context.Context, c *ast.TableConstraint, what string, id uint32) (catalog.IndexDescriptor, error) {
	ix, err := b.run.keyIndex(ctx, b.t, c, what, id, b.taken)
	b.pending[ix.Name] = true
	return ix, err
}

// keyIndex makes the index of a PRIMARY KEY or UNIQUE constraint of t.
func (r *run) keyIndex(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint, what string, id uint32, taken func(string) bool) (catalog.IndexDescriptor, error) {
	ix := catalog.IndexDescriptor{ID: id, Name: c.Name, Unique: !c.Deferrable, Constraint: true, NullsNotDistinct: c.NotNulls}
	ix.Deferrable, ix.Deferred, ix.DeclaredPrimary = c.Deferrable, c.Deferred, c.Deferrable && c.Kind == ast.PrimaryKey
	var err error
	if ix.Include, err = includedIDs(t, c.Include); err != nil {
		return ix, err
	}
	if ix.Options, err = indexOptions("", nil, c.Options); err != nil {
		return ix, err
	}
	if err := requireTablespace(c.Tablespace); err != nil {
		return ix, err
	}
	for _, name := range c.Columns {
		ord := t.ColumnNamed(name)
		if ord < 0 {
			return ix, pgerror.New(pgerror.UndefinedColumn, "column %q named in key does not exist", name).At(c.Position())
		}
		col := &t.Columns[ord]
		for i := range ix.Columns {
			if ix.Columns[i].ColumnID == col.ID {
				return ix, pgerror.New(pgerror.DuplicateColumn, "column %q appears twice in %s constraint", name, what).At(c.Position())
			}
		}
		if err := requireIndexable(col); err != nil {
			return ix, err.At(c.Position())
		}
		ix.Columns = append(ix.Columns, catalog.NewIndexColumn(col, col.Type.Coll))
	}
	oid, err := r.ch.NewID(ctx)
	if err != nil {
		return ix, err
	}
	ix.OID = uint32(oid)
	switch {
	case ix.Name != "":
		if t.IndexNamed(ix.Name) == nil && constraintNamed(t, ix.Name) {
			return ix, constraintExists(t, ix.Name)
		}
		if taken(ix.Name) {
			return ix, relationExists(ix.Name).At(c.Position())
		}
	case c.Kind == ast.PrimaryKey:
		ix.Name = chooseName(t.Name, "", "pkey", taken)
	default:
		ix.Name = chooseName(t.Name, joinColumns(c.Columns), "key", taken)
	}
	return ix, nil
}

func requireIndexable(col *catalog.ColumnDescriptor) *pgerror.Error {
	if rowenc.Indexable(col.Type) {
		return nil
	}
	if !col.Type.Ordered() {
		return pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", col.Type.Base()).
			WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
	}
	return pgerror.Unsupported("an index on column \""+col.Name+"\" of type "+col.Type.String(), "Index columns of scalar types.")
}

// addRowID gives a table without primary key its hidden key.
func addRowID(t *catalog.TableDescriptor) {
	col := catalog.ColumnDescriptor{ID: t.NextColumnID, Name: rowIDColumn, Type: types.TInt8, NotNull: true, Hidden: true}
	t.NextColumnID++
	t.Columns = append(t.Columns, col)
	t.Primary = catalog.IndexDescriptor{ID: t.Primary.ID, Unique: true, Columns: []catalog.IndexColumn{{ColumnID: col.ID}}}
}

// create writes the table and its sequences.
func (b *builder) create(ctx context.Context) error {
	if b.t.Primary.Columns == nil {
		addRowID(b.t)
	}
	if !b.alone {
		start, end := rowenc.TableSpan(b.t.ID)
		b.txn.AddPrivateSpan(kv.Span{Start: start, End: end})
	}
	for _, seq := range b.sequences {
		if err := b.run.create(ctx, seq); err != nil {
			return err
		}
	}
	if err := b.run.create(ctx, b.t); err != nil {
		return err
	}
	for i := range b.t.ForeignKeys {
		if err := b.look(ctx); err != nil {
			return err
		}
		if err := b.linkParents(ctx, b.t, b.t.ForeignKeys[i].Parent); err != nil {
			return err
		}
	}
	if b.CreateRange != nil && !b.t.Temporary() {
		if err := b.place(ctx); err != nil {
			return err
		}
	}
	return b.look(ctx)
}

// place places the table in a separate range. The range extends to the next table's: the ids in between are those of
// indexes and the like, without keys, and a range for each such gap would count as load of the store from which the
// table was taken.
func (b *builder) place(ctx context.Context) error {
	last, err := b.ch.NewID(ctx)
	if err != nil {
		return err
	}
	start, _ := rowenc.TableSpan(b.t.ID)
	_, end := rowenc.TableSpan(last)
	if err := b.CreateRange(ctx, kv.Span{Start: start, End: end}); err != nil {
		// The table works where it is; placement only distributes load.
		b.Logger.Warn("no range of its own for a new table", "table", b.t.ID, "err", err)
	}
	return nil
}
