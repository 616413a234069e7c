package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/pghash"
	"github.com/percodb/percodb/sql/types"
)

// inPartitionKey is the place of expressions of a partition key, as errors name it.
const inPartitionKey = "partition key expressions"

var partitionStrategies = map[string]catalog.PartitionStrategy{
	"range": catalog.PartitionByRange, "list": catalog.PartitionByList, "hash": catalog.PartitionByHash,
}

// addPartitioning makes the new table a partitioned one.
func (b *builder) addPartitioning(ctx context.Context, n *ast.PartitionBy) error {
	strategy, ok := partitionStrategies[n.Strategy]
	switch {
	case !ok:
		return pgerror.New(pgerror.InvalidParameterValue, "unrecognized partitioning strategy %q", n.Strategy)
	case strategy == catalog.PartitionByList && len(n.Keys) > 1:
		return pgerror.New(invalidObjectDefinition, "cannot use \"list\" partition strategy with more than one column")
	case len(n.Keys) > maxKeyColumns:
		return pgerror.New(pgerror.TooManyColumns, "cannot partition using more than %d columns", maxKeyColumns)
	}
	p := &catalog.Partitioning{Strategy: strategy}
	for i := range n.Keys {
		key, err := b.partitionKey(ctx, strategy, &n.Keys[i])
		if err != nil {
			return err
		}
		p.Keys = append(p.Keys, key)
	}
	b.t.Partitioning = p
	if b.t.HasPrimaryKey() {
		if err := requirePartitionKey(b.t, &b.t.Primary); err != nil {
			return err
		}
	}
	for i := range b.t.Indexes {
		if err := requirePartitionKey(b.t, &b.t.Indexes[i]); err != nil {
			return err
		}
	}
	return nil
}

// partitionKey makes a column of a partition key.
func (b *builder) partitionKey(ctx context.Context, strategy catalog.PartitionStrategy, c *ast.IndexColumn) (key catalog.IndexColumn, err error) {
	method := ""
	if strategy == catalog.PartitionByHash {
		method = "hash"
	}
	name := c.Name
	if ref, ok := c.Expr.(*ast.ColumnRef); ok && len(ref.Parts) == 1 {
		name = ref.Parts[0]
	}
	if name != "" {
		ord := b.t.ColumnNamed(name)
		switch {
		case slices.Contains(catalog.SystemColumns, name):
			return key, pgerror.New(invalidObjectDefinition, "cannot use system column %q in partition key", name).At(c.Position())
		case ord < 0:
			return key, pgerror.New(pgerror.UndefinedColumn, "column %q named in partition key does not exist", name).At(c.Position())
		case b.t.Columns[ord].Generated != "":
			return key, pgerror.New(invalidObjectDefinition, "cannot use generated column in partition key").
				WithDetail("Column %q is a generated column.", name).At(c.Position())
		}
	} else if err := b.requireKeyExpression(ctx, c); err != nil {
		return key, err
	}
	if key, err = b.indexKeyIn(ctx, b.t, method, c, keyPlace{inPartitionKey, "functions in partition key expression must be marked IMMUTABLE"}); err != nil {
		return key, err
	}
	typ := key.KeyType(b.t.ColumnByID(key.ColumnID).Type)
	if strategy == catalog.PartitionByHash && key.OpClassID == 0 && !pghash.Hashable(typ) {
		return key, pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"hash\"", builtin.TypeName(typ)).
			WithHint("You must specify a hash operator class or define a default hash operator class for the data type.").At(c.Position())
	}
	return key, nil
}

// requireKeyExpression refuses expressions that do not depend on a row.
func (b *builder) requireKeyExpression(ctx context.Context, c *ast.IndexColumn) error {
	bound, err := b.bind(ctx, b.t, c.Expr, types.Type{}, inPartitionKey)
	if err != nil {
		return err
	}
	reads := false
	expr.Walk(bound, func(x expr.Scalar) bool {
		_, column := x.(*expr.Column)
		reads = reads || column
		return true
	})
	if !reads {
		return pgerror.New(invalidObjectDefinition, "cannot use constant expression as partition key")
	}
	return nil
}

// requirePartitionKey refuses a unique index of a partitioned table that does not contain its partition key: uniqueness is checked in each
// partition.
func requirePartitionKey(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	switch {
	case t.Partitioning == nil:
		return nil
	case ix.Exclude != nil:
		return pgerror.New(pgerror.FeatureNotSupported, "exclusion constraints are not supported on partitioned tables")
	case !ix.Unique && !ix.Deferrable:
		return nil
	}
	kind := "UNIQUE"
	if ix == &t.Primary || ix.ID == t.Primary.ID || ix.DeclaredPrimary {
		kind = "PRIMARY KEY"
	}
	for i := range t.Partitioning.Keys {
		k := &t.Partitioning.Keys[i]
		col := t.ColumnByID(k.ColumnID)
		if col.Expr != nil {
			return pgerror.New(pgerror.FeatureNotSupported, "unsupported %s constraint with partition key definition", kind).
				WithDetail("%s constraints cannot be used when partition keys include expressions.", kind)
		}
		if !slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return c.ColumnID == k.ColumnID }) {
			return pgerror.New(pgerror.FeatureNotSupported, "unique constraint on partitioned table must include all partitioning columns").
				WithDetail("%s constraint on table %q lacks column %q which is part of the partition key.", kind, t.Name, col.Name)
		}
	}
	return nil
}

// inPartitionKeyOf reports whether a column is a part of the partition key of t, or read by an expression of it.
func (r *run) inPartitionKeyOf(t *catalog.TableDescriptor, column string) (bool, error) {
	if t.Partitioning == nil {
		return false, nil
	}
	for i := range t.Partitioning.Keys {
		col := t.ColumnByID(t.Partitioning.Keys[i].ColumnID)
		if col.Expr == nil {
			if col.Name == column {
				return true, nil
			}
			continue
		}
		e, err := sql.ParseExpr(col.Expr.SQL)
		if err != nil || slices.Contains(columnNames(e), column) {
			return true, err
		}
	}
	return false, nil
}
