package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
)

// NotUpdatable returns why a view is not updatable, as PostgreSQL says; "": it is, but for triggers.
func NotUpdatable(ctx context.Context, view *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (string, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	l, reason, err := b.updatableView(view)
	if err == nil && reason == "" && !slices.ContainsFunc(l.base, func(ord int) bool { return ord >= 0 }) {
		reason = noUpdatableColumns
	}
	return reason, err
}

// UpdatesOf returns by which commands a relation can be changed, or with column > 0 the column with that id; triggers: by INSTEAD OF triggers
// as well.
func UpdatesOf(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env, triggers bool, column int) (catalog.Updates, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	var columns []int
	if column > 0 {
		columns = []int{t.Ordinal(uint32(column))}
	}
	return b.updatesOf(t, triggers, columns)
}

// updatesOf is UpdatesOf some columns by their ordinals; nil: of the relation.
func (b *binder) updatesOf(t *catalog.TableDescriptor, triggers bool, columns []int) (catalog.Updates, error) {
	if t.Kind == catalog.KindTable && !t.Materialized || t.Kind == catalog.KindVirtual && t.ViewQuery == "" {
		return catalog.CanAll, nil
	}
	if t.Kind != catalog.KindView || slices.Contains(b.views, t.ID) {
		return 0, nil
	}
	var updates catalog.Updates
	if triggers {
		updates = insteadUpdates(t)
	}
	l, reason, err := b.updatableView(t)
	if reason != "" || err != nil {
		return updates, err
	}
	var base []int
	for i, ord := range l.base {
		if ord >= 0 && (columns == nil || slices.Contains(columns, i)) {
			base = append(base, ord)
		}
	}
	own := catalog.CanAll
	if base == nil {
		own = catalog.CanDelete
	}
	if l.below.Kind != catalog.KindTable {
		b.views = append(b.views, t.ID)
		if base == nil {
			base = []int{}
		}
		below, err := b.updatesOf(l.below, triggers, base)
		if err != nil {
			return 0, err
		}
		own &= below
	}
	return updates | own, nil
}

// insteadUpdates are the commands for which a view has INSTEAD OF triggers.
func insteadUpdates(t *catalog.TableDescriptor) catalog.Updates {
	var updates catalog.Updates
	for event, can := range map[catalog.TriggerEvents]catalog.Updates{
		catalog.TriggerInsert: catalog.CanInsert, catalog.TriggerUpdate: catalog.CanUpdate, catalog.TriggerDelete: catalog.CanDelete,
	} {
		if t.HasInsteadOf(event) {
			updates |= can
		}
	}
	return updates
}
