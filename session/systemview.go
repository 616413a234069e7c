package session

import (
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

var _ catalog.SystemView = (*systemView)(nil)

// systemView is what the system's views show to a session: its settings, the sessions of its process, and the store.
type systemView struct {
	*identity
	acting   *principal
	deps     *Deps
	settings *settings.Settings
	env      *builtin.Env
	warnings *warnings
	changed  []types.Row // of the relation of changed rows
	// statements and portals are the session's.
	statements *statements
	portals    *portals
}

// Role implements catalog.SystemView.
func (v *systemView) Role() uint32 { return v.acting.current }

// InForce implements catalog.SystemView.
func (v *systemView) InForce(ctx context.Context, r catalog.Resolver) (catalog.Resolver, error) {
	tx := v.acting.tx
	if !tx.ownSchema() {
		return r, nil
	}
	return tx.inForce(ctx)
}

// User implements catalog.SystemView.
func (v *systemView) User() string { return v.user }

// ViewColumns implements catalog.SystemView.
func (v *systemView) ViewColumns(ctx context.Context, r catalog.Resolver, view *catalog.TableDescriptor) ([]catalog.RelationColumns, error) {
	return planner.ViewColumns(ctx, view, r, v.env)
}

// ViewText implements catalog.SystemView.
func (v *systemView) ViewText(ctx context.Context, r catalog.Resolver, view *catalog.TableDescriptor, pretty bool, wrap int) (string, error) {
	return planner.ViewDefinition(ctx, view, r, v.env, pretty, wrap)
}

// Uses implements catalog.SystemView.
func (v *systemView) Uses(ctx context.Context, r catalog.Resolver, view *catalog.TableDescriptor, e catalog.StoredExpr) ([]catalog.ObjectUse, error) {
	if view != nil {
		return planner.ViewUses(ctx, view, r, v.env)
	}
	return planner.ExprUses(ctx, e, r, v.env)
}

// ExprText implements catalog.SystemView.
func (v *systemView) ExprText(ctx context.Context, r catalog.Resolver, e catalog.StoredExpr, pretty bool) (string, error) {
	return planner.ExprDefinition(ctx, e, r, v.env, pretty)
}

// RoutineText implements catalog.SystemView.
func (v *systemView) RoutineText(ctx context.Context, r catalog.Resolver, d *catalog.RoutineDescriptor) (string, error) {
	return planner.RoutineDefinition(ctx, d, r, v.env)
}

// UpdatesOf implements catalog.SystemView.
func (v *systemView) UpdatesOf(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor, triggers bool, column int) (catalog.Updates, error) {
	return planner.UpdatesOf(ctx, t, r, v.env, triggers, column)
}

// Settings implements catalog.SystemView.
func (v *systemView) Settings() []catalog.Setting {
	all := v.settings.All()
	list := make([]catalog.Setting, len(all))
	for i, s := range all {
		s, d := s.InUnits(), &all[i].Description
		list[i] = catalog.Setting{
			Name: s.Name, Value: s.Value, Description: s.Note, Context: s.Context, Source: s.Source, Default: s.Default, PendingRestart: s.PendingRestart,
			Type: d.Type, Unit: d.Unit, Category: d.Category, Min: d.Min, Max: d.Max, Values: d.Values,
		}
	}
	slices.SortFunc(list, func(a, b catalog.Setting) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Prepared implements catalog.SystemView.
func (v *systemView) Prepared() []catalog.Prepared {
	var list []catalog.Prepared
	for _, p := range v.statements.named {
		row := catalog.Prepared{Name: p.name, At: p.at, Params: p.params, FromSQL: p.heading != ""}
		if p.statement != nil {
			row.Statement = p.statement.Text
		}
		if text, masked := maskedText(p.tree); masked {
			row.Statement = text
		}
		if p.heading != "" {
			row.Statement = "PREPARE " + p.heading + " AS " + row.Statement
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b catalog.Prepared) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Cursors implements catalog.SystemView.
func (v *systemView) Cursors() []catalog.Cursor {
	var list []catalog.Cursor
	for name, po := range v.portals.byName {
		if !po.cursor && name == "" || po.prepared == nil || po.prepared.statement == nil {
			continue // The portal of the statement that asks, for most clients.
		}
		text, masked := maskedText(po.prepared.tree)
		switch {
		case po.text != "":
			text = po.text
		case !masked:
			text = po.prepared.statement.Text
		}
		list = append(list, catalog.Cursor{
			Name: name, Statement: text, Holdable: po.outlives, Binary: po.binary, Scrollable: po.scroll.rows != nil, At: po.at,
		})
	}
	slices.SortFunc(list, func(a, b catalog.Cursor) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// AccessRules implements catalog.SystemView.
func (v *systemView) AccessRules(ctx context.Context) ([]catalog.AccessRule, error) {
	if v.deps.Configuration == nil {
		return nil, nil
	}
	return v.deps.Configuration.AccessRules(ctx)
}

// FileSettings implements catalog.SystemView.
func (v *systemView) FileSettings(ctx context.Context) ([]catalog.FileSetting, error) {
	if v.deps.Configuration == nil {
		return nil, nil
	}
	return v.deps.Configuration.Stored(ctx)
}

// Activity implements catalog.SystemView: the sessions of this process. The times of a session's transaction are shown to itself
// only, for its goroutine alone may read them.
func (v *systemView) Activity() (all []catalog.Activity) {
	v.deps.Sessions(func(other *Session) {
		a := other.activity.row()
		if wait, ok := v.deps.Catalog.WaitOf(a.PID); ok {
			a.WaitType, a.Wait = "Lock", "relation"
			if wait.Schema {
				a.Wait = "schema"
			}
		}
		if other.identity.key == v.key {
			a.XactStart, a.QueryStart, a.StateChange = v.env.TxnTime, v.env.StmtTime, v.env.StmtTime
		}
		all = append(all, a)
	})
	slices.SortFunc(all, func(a, b catalog.Activity) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

// Transactions implements catalog.SystemView.
func (v *systemView) Transactions() (all []catalog.Transaction) {
	v.deps.Sessions(func(other *Session) {
		if t, ok := other.activity.transaction(); ok {
			all = append(all, t)
		}
	})
	return all
}

// Locks implements catalog.SystemView.
func (v *systemView) Locks(ctx context.Context, yield func(*kv.RangeDescriptor, *mvcc.LockInfo) error) error {
	missing, err := kv.ListLocks(ctx, v.deps.Router, yield)
	for _, shard := range missing {
		v.warnings.send(pgerror.New(pgerror.Warning, "the locks of store %s are missing: it does not answer", shard))
	}
	return err
}

// Ranges implements catalog.SystemView.
func (v *systemView) Ranges(ctx context.Context) ([]catalog.Range, error) {
	all, err := v.deps.Router.Ranges(ctx)
	if err != nil {
		return nil, err
	}
	sizes, err := v.deps.Router.RangeSizes(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]catalog.Range, len(all))
	for i := range all {
		list[i] = catalog.Range{RangeDescriptor: all[i], SizeBytes: -1}
		if size, ok := sizes[all[i].ID]; ok {
			list[i].SizeBytes = size
		}
	}
	return list, nil
}

// Oracle implements catalog.SystemView.
func (v *systemView) Oracle(ctx context.Context) (o catalog.Oracle, err error) {
	if o.Now, err = v.deps.Oracle.Now(ctx); err != nil {
		return o, err
	}
	if local, ok := v.deps.Oracle.(*tso.Local); ok {
		o.WindowEnd = local.WindowEnd()
	}
	if o.SafePoint, err = kv.InForce(ctx, v.deps.Router); err != nil {
		return o, err
	}
	o.OldestActive, err = v.deps.DB.OldestActive(ctx)
	return o, err
}
