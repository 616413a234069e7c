package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// reindexTarget is a table with the index to build anew; "": all of them.
type reindexTarget struct {
	table *catalog.TableDescriptor
	index string
	// invalid is the OID of an index whose build has failed; 0: the target is another one.
	invalid uint32
}

// reindexAlone is REINDEX outside of a block: the tables one by one, each in a transaction of its own.
func reindexAlone(ctx context.Context, d *Deps, n *ast.Reindex) error {
	targets, err := reindexTargets(ctx, d, n)
	if err != nil {
		return err
	}
	for _, target := range targets {
		_, err := runAlone(ctx, d, func(r *run) (string, error) {
			now, err := r.r.RelationByID(ctx, target.table.ID)
			switch {
			case err != nil:
				return "", err
			case now != nil:
				return "", r.rebuildTarget(ctx, now, target)
			case n.Kind == "TABLE" || n.Kind == "INDEX":
				return "", pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", n.Name.Name)
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reindexTargets finds what REINDEX names, in a transaction that it ends.
func reindexTargets(ctx context.Context, d *Deps, n *ast.Reindex) ([]reindexTarget, error) {
	txn, err := d.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	resolver, err := d.Catalog.At(ctx, txn)
	if err != nil {
		return nil, err
	}
	r := &run{Deps: d, txn: txn, alone: true}
	r.see(d.Temporary.Over(resolver))
	return r.reindexed(ctx, n)
}

// reindex is REINDEX INDEX and TABLE in a block.
func (r *run) reindex(ctx context.Context, n *ast.Reindex) error {
	targets, err := r.reindexed(ctx, n)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := r.rebuildTarget(ctx, target.table, target); err != nil {
			return err
		}
	}
	return nil
}

// reindexed lists what REINDEX names, if the user may build it anew.
func (r *run) reindexed(ctx context.Context, n *ast.Reindex) ([]reindexTarget, error) {
	concurrently, err := reindexOptions(n)
	if err != nil {
		return nil, err
	}
	switch n.Kind {
	case "INDEX":
		targets, err := r.reindexedIndex(ctx, n)
		if err == nil && concurrently && len(targets) == 1 && targets[0].invalid == 0 && targets[0].table.IndexNamed(targets[0].index).Exclude != nil {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "concurrent index creation for exclusion constraints is not supported")
		}
		return targets, err
	case "TABLE":
		return r.reindexedTable(ctx, n, concurrently)
	case "SCHEMA":
		return r.reindexedSchema(ctx, n.Name.Name)
	}
	if n.Name.Name != r.Database {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "can only reindex the currently open database")
	}
	if !r.access.Owns(r.access.Grants.Database.OwnerOID()) {
		return nil, mustBeOwner("database", n.Name.Name)
	}
	if n.Kind == "SYSTEM" { // The system's tables are computed.
		if concurrently {
			return nil, errReindexSystem()
		}
		return nil, nil
	}
	return r.reindexedTables(ctx, func(*catalog.TableDescriptor) bool { return true })
}

func errReindexSystem() error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot reindex system catalogs concurrently")
}

// reindexOptions checks the options. VERBOSE has no effect; CONCURRENTLY none but where it may stand.
func reindexOptions(n *ast.Reindex) (concurrently bool, err error) {
	concurrently = n.Concurrently
	for _, o := range n.Options {
		switch name := strings.ToLower(o.Name); name {
		case "verbose", "concurrently":
			on, err := types.ParseText(types.TBool, orTrue(o.Value), nil)
			if err != nil {
				return false, pgerror.New(pgerror.SyntaxError, "%s requires a Boolean value", name)
			}
			if name == "concurrently" {
				concurrently = on.Bool()
			}
		case "tablespace":
			if o.Value != "pg_default" {
				return false, pgerror.New(pgerror.UndefinedObject, "tablespace %q does not exist", o.Value)
			}
		default:
			return false, pgerror.New(pgerror.SyntaxError, "unrecognized REINDEX option %q", o.Name)
		}
	}
	return concurrently, nil
}

func orTrue(value string) string {
	if value == "" {
		return "true"
	}
	return value
}

// ReindexesAlone returns the name of a REINDEX that blocks refuse, since it commits in steps; "" for others.
func ReindexesAlone(n *ast.Reindex) string {
	concurrently, err := reindexOptions(n)
	switch {
	case err != nil:
		return ""
	case concurrently:
		return "REINDEX CONCURRENTLY"
	case n.Kind != "INDEX" && n.Kind != "TABLE":
		return "REINDEX " + n.Kind
	}
	return ""
}

func (r *run) reindexedIndex(ctx context.Context, n *ast.Reindex) ([]reindexTarget, error) {
	t, ix, err := catalog.FindIndex(ctx, r.r, n.Name.Schema, n.Name.Name)
	if err != nil {
		return nil, err
	}
	if ix == nil {
		if of, build, err := catalog.FindBuild(ctx, r.r, n.Name.Schema, n.Name.Name); err != nil {
			return nil, err
		} else if build != nil {
			return r.reindexedBuild(of, build)
		}
		if _, err := r.mustFind(ctx, n.Name); err != nil {
			return nil, unplaced(err)
		}
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not an index", n.Name.Name)
	}
	if !r.access.Owns(t.OwnerOID()) {
		return nil, mustBeOwner("index", ix.Name)
	}
	if t.IsPartitioned() {
		return r.partsOfIndex(ctx, t, ix)
	}
	return []reindexTarget{{table: t, index: ix.Name}}, nil
}

// reindexedBuild is the target of REINDEX of an index that is not complete: its build has failed.
func (r *run) reindexedBuild(t *catalog.TableDescriptor, build *catalog.IndexBuild) ([]reindexTarget, error) {
	switch {
	case !r.access.Owns(t.OwnerOID()):
		return nil, mustBeOwner("index", build.Index.Name)
	case !build.Failed():
		return nil, pgerror.New(pgerror.ObjectInUse, "index %q of table %q is being built", build.Index.Name, t.Name)
	}
	return []reindexTarget{{table: t, invalid: build.Index.OID}}, nil
}

func (r *run) reindexedTable(ctx context.Context, n *ast.Reindex, concurrently bool) ([]reindexTarget, error) {
	t, err := r.find(ctx, n.Name)
	if err != nil {
		return nil, err
	}
	if t == nil {
		if _, ix, err := catalog.FindIndex(ctx, r.r, n.Name.Schema, n.Name.Name); err != nil || ix == nil {
			if err == nil {
				_, err = r.mustFind(ctx, n.Name)
			}
			return nil, unplaced(err)
		}
	}
	if t == nil || t.Kind != catalog.KindTable && t.Kind != catalog.KindVirtual {
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not a table or materialized view", n.Name.Name)
	}
	if err := r.mustOwn(t); err != nil {
		return nil, err
	}
	switch {
	case t.Kind == catalog.KindVirtual && concurrently:
		return nil, errReindexSystem()
	case t.Kind == catalog.KindVirtual:
		return nil, nil
	case t.IsPartitioned():
		tree, err := catalog.PartitionTree(ctx, r.r, t)
		var targets []reindexTarget
		for _, part := range tree {
			if part.HasPrimaryKey() || len(part.Indexes) > 0 {
				targets = append(targets, reindexTarget{table: part})
			}
		}
		return targets, err
	case !t.HasPrimaryKey() && len(t.Indexes) == 0 && (len(t.Builds) == 0 || concurrently):
		can := "to reindex"
		if concurrently {
			can = "that can be reindexed concurrently"
		}
		r.notice(pgerror.SuccessfulCompletion, "table %q has no indexes %s", t.Name, can)
		return nil, nil
	}
	targets := []reindexTarget{{table: t}}
	if !concurrently {
		targets = append(targets, invalidIndexes(t)...)
	}
	return targets, nil
}

func (r *run) reindexedSchema(ctx context.Context, schema string) ([]reindexTarget, error) {
	if ok, err := r.r.SchemaExists(ctx, schema); err != nil || !ok {
		return nil, errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema))
	}
	if !r.access.OwnsSchema(schema) {
		return nil, mustBeOwner("schema", schema)
	}
	return r.reindexedTables(ctx, func(t *catalog.TableDescriptor) bool { return t.Schema == schema })
}

// reindexedTables lists the tables with indexes, but for the temporary ones of other sessions.
func (r *run) reindexedTables(ctx context.Context, among func(*catalog.TableDescriptor) bool) ([]reindexTarget, error) {
	all, err := r.r.Relations(ctx)
	var targets []reindexTarget
	for _, t := range all {
		if t.Kind == catalog.KindTable && (t.HasPrimaryKey() || len(t.Indexes) > 0) && among(t) {
			targets = append(targets, reindexTarget{table: t})
		}
	}
	return targets, err
}

// rebuild builds an index of t anew, or all if it has no name. The rows lie under the keys of the primary key, and the entries of all other
// indexes contain these: where they change, everything is written again.
func (r *run) rebuild(ctx context.Context, t *catalog.TableDescriptor, index string) error {
	rows := index == "" || index == t.Primary.Name || t.Outdated(&t.Primary)
	if index == "" && len(t.Observers) > 0 && !t.Outdated(&t.Primary) {
		rows = false // Observers have seen the rows under their keys.
		r.notice(pgerror.SuccessfulCompletion, "the rows of table %q are not written again, since it has observers", t.Name)
	}
	t, err := r.exclusive(ctx, t, len(t.Indexes)+1)
	if err != nil {
		return err
	}
	next := t.Clone()
	if rows {
		renumber(next)
		next.RenewRules()
		if err := r.rewrite(ctx, t, next, func(row types.Row) (types.Row, error) { return row, nil }); err != nil {
			return err
		}
		if err := r.dropIndexes(ctx, t); err != nil {
			return err
		}
		return r.update(ctx, t, next, true)
	}
	var fresh []*catalog.IndexDescriptor
	for i := range next.Indexes {
		ix := &next.Indexes[i]
		if index != "" && ix.Name != index {
			continue
		}
		if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: ix.ID}); err != nil {
			return err
		}
		ix.ID = next.NextIndexID
		next.NextIndexID++
		next.RenewIndexRules(ix)
		fresh = append(fresh, ix)
	}
	if index != "" && fresh == nil {
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", index)
	}
	if err := r.backfill(ctx, next, fresh); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}
