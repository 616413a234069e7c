package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
)

// invalidIndexes are the targets of REINDEX TABLE that are indexes whose build has failed.
func invalidIndexes(t *catalog.TableDescriptor) (targets []reindexTarget) {
	for i := range t.Builds {
		if t.Builds[i].Failed() {
			targets = append(targets, reindexTarget{table: t, invalid: t.Builds[i].Index.OID})
		}
	}
	return targets
}

// rebuildTarget builds what a target of REINDEX names anew.
func (r *run) rebuildTarget(ctx context.Context, t *catalog.TableDescriptor, target reindexTarget) error {
	if target.invalid != 0 {
		return r.rebuildInvalid(ctx, t, target.invalid)
	}
	return r.rebuild(ctx, t, target.index)
}

// rebuildInvalid builds an index whose build has failed, and makes it one of the table's.
func (r *run) rebuildInvalid(ctx context.Context, t *catalog.TableDescriptor, index uint32) error {
	t, err := r.exclusive(ctx, t, 1)
	if err != nil {
		return err
	}
	build := t.BuildOf(index)
	if build == nil || !build.Failed() {
		return pgerror.New(pgerror.UndefinedTable, "relation with OID %d does not exist", index)
	}
	next := t.WithBuild(build)
	ix := &next.Indexes[len(next.Indexes)-1]
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: ix.ID}); err != nil {
		return err
	}
	ix.ID = next.NextIndexID
	next.NextIndexID++
	if err := r.backfill(ctx, next, []*catalog.IndexDescriptor{ix}); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// partsOfIndex are the targets of REINDEX of an index of a partitioned table: its parts at the tables with rows.
func (r *run) partsOfIndex(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) (targets []reindexTarget, err error) {
	if !r.alone {
		return nil, pgerror.New(pgerror.ActiveSQLTransaction, "REINDEX INDEX cannot run inside a transaction block")
	}
	for _, id := range t.Partitioning.Partitions {
		part, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return nil, err
		}
		for i := range part.Indexes {
			own := &part.Indexes[i]
			if own.Parent != ix.OID {
				continue
			}
			if !part.IsPartitioned() {
				targets = append(targets, reindexTarget{table: part, index: own.Name})
				continue
			}
			below, err := r.partsOfIndex(ctx, part, own)
			if err != nil {
				return nil, err
			}
			targets = append(targets, below...)
		}
		if part.Primary.Parent == ix.OID && !part.IsPartitioned() {
			targets = append(targets, reindexTarget{table: part, index: part.Primary.Name})
		}
	}
	return targets, nil
}
