package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/sql/types"
)

// What the views and relations of observers show.

// Changed implements catalog.SystemView.
func (v *systemView) Changed(yield func(types.Row) error) error {
	for _, row := range v.changed {
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// countedCells bounds how many of an observer's cells are counted.
const countedCells = 10_000

// ObserverActivity implements catalog.SystemView.
func (v *systemView) ObserverActivity(ctx context.Context) (map[uint64]catalog.ObserverActivity, error) {
	all := map[uint64]catalog.ObserverActivity{}
	if v.deps.Observers != nil {
		all = v.deps.Observers()
	}
	txn, err := v.deps.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	err = catalog.Seedings(ctx, txn, func(observer uint64, s *catalog.Seeding) error {
		a := all[observer]
		a.Seeded = s.Rows
		all[observer] = a
		return nil
	})
	if err != nil {
		return nil, err
	}
	schema, err := v.deps.Catalog.At(ctx, txn)
	if err != nil {
		return nil, err
	}
	tables, err := schema.Relations(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		for i := range t.Observers {
			a := all[t.Observers[i].ID]
			if err := countPending(ctx, Delivery(v.deps.DB, t, &t.Observers[i]), &a); err != nil {
				return nil, err
			}
			all[t.Observers[i].ID] = a
		}
	}
	return all, nil
}

// countPending sets what an observer has not handled.
func countPending(ctx context.Context, o *observe.Observer, a *catalog.ObserverActivity) error {
	for from := []byte(nil); ; {
		cells, next, err := o.Pending(ctx, handledPage, from)
		if err != nil {
			return err
		}
		a.Pending += int64(len(cells))
		for i := range cells {
			if a.Oldest == 0 || cells[i].Latest < a.Oldest {
				a.Oldest = cells[i].Latest
			}
		}
		if a.More = next != nil; !a.More || a.Pending >= countedCells {
			return nil
		}
		from = next
	}
}

// ObserverErrors implements catalog.SystemView.
func (v *systemView) ObserverErrors(ctx context.Context, yield func(*catalog.ObserverError) error) error {
	txn, err := v.deps.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	return catalog.ObserverErrors(ctx, txn, 0, yield)
}
