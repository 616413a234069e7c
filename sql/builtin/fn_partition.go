package builtin

import "github.com/percodb/percodb/sql/types"

// PartitionNode is a row of pg_partition_tree.
type PartitionNode struct {
	Relation, Parent types.OID // Parent 0: none
	Leaf             bool
	Level            int
}

// partitionDefinitionFuncs declares the functions that describe a partitioned table or a partition.
func partitionDefinitionFuncs() []decl {
	return []decl{
		{sig: "pg_get_partkeydef(oid) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.PartitionKeyDefinition(oidArg(a[0])))
		})},
		{sig: "pg_get_partition_constraintdef(oid) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.PartitionConstraint(oidArg(a[0])))
		})},
		{sig: "pg_partition_root(regclass) regclass", fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			above := c.PartitionAncestors(oidArg(a[0]))
			if len(above) == 0 {
				return types.Null, nil
			}
			return types.Int(int64(above[len(above)-1])), nil
		})},
	}
}

// partitionFuncs declares the functions that list the partitions of a table, and what is above a partition.
func partitionFuncs() []setDecl {
	tree := func(env *Env, a []types.Datum) (SetRows, error) {
		var rows []types.Datum
		if env.Catalog == nil {
			return &sliceRows{}, nil
		}
		for _, n := range env.Catalog.PartitionTree(oidArg(a[0])) {
			parent := types.Null
			if n.Parent != 0 {
				parent = types.Int(int64(n.Parent))
			}
			rows = append(rows, types.NewRecord([]types.Type{types.TRegclass, types.TRegclass, types.TBool, types.TInt4},
				[]types.Datum{types.Int(int64(n.Relation)), parent, types.Bool(n.Leaf), types.Int(int64(n.Level))}))
		}
		return &sliceRows{rows}, nil
	}
	ancestors := func(env *Env, a []types.Datum) (SetRows, error) {
		var rows []types.Datum
		if env.Catalog == nil {
			return &sliceRows{}, nil
		}
		for _, id := range env.Catalog.PartitionAncestors(oidArg(a[0])) {
			rows = append(rows, types.Int(int64(id)))
		}
		return &sliceRows{rows}, nil
	}
	return []setDecl{
		{sig: "pg_partition_tree(regclass) record", estimate: 1, open: opens(tree), columns: []SetColumn{
			{"relid", types.TRegclass}, {"parentrelid", types.TRegclass}, {"isleaf", types.TBool}, {"level", types.TInt4},
		}},
		{sig: "pg_partition_ancestors(regclass) regclass", estimate: 1, open: opens(ancestors), column: "relid"},
	}
}
