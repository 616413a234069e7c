package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// What a session needs to handle changes for an observer.

// SetHop sets the length of the chain of observers that the session's changes continue: 0 for a client's.
func (s *Session) SetHop(hop uint8) { s.runner.hop = hop }

// SetChanged sets the rows of the relation of changed rows (catalog.ChangedRelation). They must not change meanwhile.
func (s *Session) SetChanged(rows []types.Row) { s.view.changed = rows }

// Changed implements catalog.SystemView.
func (v *systemView) Changed(yield func(types.Row) error) error {
	for _, row := range v.changed {
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// ObserverActivity implements catalog.SystemView.
func (v *systemView) ObserverActivity(ctx context.Context) (map[uint64]catalog.ObserverActivity, error) {
	txn, err := v.deps.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	all := map[uint64]catalog.ObserverActivity{}
	err = catalog.Seedings(ctx, txn, func(observer uint64, s *catalog.Seeding) error {
		all[observer] = catalog.ObserverActivity{Seeded: s.Rows}
		return nil
	})
	return all, err
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
