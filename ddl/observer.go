package ddl

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

const inWhen = "WHEN conditions"

// createObserver creates an observer, or replaces one of the same table. Writers of the table are blocked until the statement
// commits, so that every change committed after it notifies the observer, and none from before.
func (r *run) createObserver(ctx context.Context, n *ast.CreateObserver) (observer uint64, replaced bool, err error) {
	if n.From == "BEGINNING" && !r.alone {
		return 0, false, pgerror.New(pgerror.ActiveSQLTransaction, "CREATE OBSERVER ... FROM BEGINNING cannot run inside a transaction block")
	}
	t, err := r.mustFindTable(ctx, n.Table)
	if err != nil {
		return 0, false, err
	}
	if t.IsPartitioned() {
		return 0, false, pgerror.Unsupported("an observer of a partitioned table", "Create it for each of the partitions.").At(n.Table.Position())
	}
	if _, err := r.describeObserver(ctx, t, n); err != nil { // before anything is blocked
		return 0, false, err
	}
	if t, err = r.closeObserved(ctx, t); err != nil {
		return 0, false, err
	}
	if r.alone {
		if err := r.begin(ctx); err != nil {
			return 0, false, err
		}
		if t, err = r.mustFindTable(ctx, n.Table); err != nil {
			return 0, false, err
		}
	}
	o, err := r.describeObserver(ctx, t, n)
	if err != nil {
		return 0, false, err
	}
	next := t.Clone()
	if old := next.ObserverNamed(n.Name); old != nil {
		o.ID, o.OID, o.AckIndex, o.Comment, o.Owner, replaced = old.ID, old.OID, old.AckIndex, old.Comment, old.Owner, true
		if o.State == catalog.ObserverEnabled {
			o.State = old.State
		}
		if o.Generation = old.Generation; o.Body != old.Body {
			o.Generation++
		}
		*old = o
	} else {
		if o.ID, err = r.ch.NewID(ctx); err != nil {
			return 0, false, err
		}
		o.OID, o.AckIndex = uint32(o.ID), next.NextIndexID
		next.NextIndexID++
		next.Observers = append(next.Observers, o)
		slices.SortFunc(next.Observers, func(a, b catalog.ObserverDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	}
	if o.State == catalog.ObserverSeeding && n.From == "BEGINNING" {
		if err := catalog.PutSeeding(r.txn, o.ID, r.newSeeding()); err != nil {
			return 0, false, err
		}
	}
	return o.ID, replaced, r.update(ctx, t, next, true)
}

// closeObserved blocks the writers of a table whose observers change.
func (r *run) closeObserved(ctx context.Context, t *catalog.TableDescriptor) (*catalog.TableDescriptor, error) {
	if r.ch.Created(t.ID) {
		return t, nil
	}
	return t, r.ch.Close(ctx, t)
}

// describeObserver makes the descriptor of a new observer of t, without number, and refuses what is invalid.
func (r *run) describeObserver(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateObserver) (o catalog.ObserverDescriptor, err error) {
	if err := r.requireNewObserver(ctx, t, n); err != nil {
		return o, err
	}
	o = catalog.ObserverDescriptor{
		Name: n.Name, Owner: r.User, Concurrency: catalog.DefaultObserverConcurrency, Batch: catalog.DefaultObserverBatch, MaxAttempts: catalog.DefaultObserverAttempts,
	}
	if n.From == "BEGINNING" {
		o.State = catalog.ObserverSeeding
	}
	if err := setObserverOptions(&o, n.Options); err != nil {
		return o, err
	}
	for i := range n.Columns {
		name, pos := n.Columns[i].Name, n.Columns[i].Position()
		ord, err := mustColumn(t, name, pos)
		if err != nil {
			return o, err
		}
		if slices.Contains(o.Columns, t.Columns[ord].ID) {
			return o, pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", name).At(pos)
		}
		o.Columns = append(o.Columns, t.Columns[ord].ID)
	}
	if n.When != nil {
		if _, err := planner.BindRows(ctx, n.When, planner.ObserverRows(t), r.r, r.Env, types.TBool, inWhen); err != nil {
			return o, err
		}
		o.When = r.pinned(n.When)
	}
	if n.Body != nil {
		o.Body, o.DependsOn, err = r.observerBody(ctx, t, &o, n.Body.SQL)
		err = shifted(err, int(n.Body.Pos)-1)
	}
	return o, err
}

// requireNewObserver checks that t can have the observer, and that its name is free.
func (r *run) requireNewObserver(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateObserver) error {
	if !t.HasPrimaryKey() {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "table %q has no primary key", t.Name).
			WithHint("Rows are observed by their primary key: add one with ALTER TABLE ... ADD PRIMARY KEY.").At(n.Table.Position())
	}
	owner, old, err := catalog.FindObserver(ctx, r.r, t.Schema, n.Name)
	switch {
	case err != nil:
		return err
	case old != nil && !n.OrReplace:
		return pgerror.New(pgerror.DuplicateObject, "observer %q already exists", n.Name).At(n.Position())
	case old != nil && owner.ID != t.ID:
		return pgerror.New(invalidObjectDefinition, "observer %q is one of table %q", n.Name, owner.Name).
			WithHint("Drop it first.").At(n.Position())
	case old == nil && len(t.Observers) >= catalog.MaxObservers:
		return pgerror.New(pgerror.ProgramLimitExceeded, "tables can have at most %d observers", catalog.MaxObservers)
	}
	return nil
}

// setObserverOptions sets the options given.
func setObserverOptions(o *catalog.ObserverDescriptor, options []ast.ObserverOption) error {
	seen := map[string]bool{}
	for i := range options {
		opt := &options[i]
		if seen[opt.Name] {
			return pgerror.New(pgerror.InvalidParameterValue, "parameter %q specified more than once", opt.Name).At(opt.Position())
		}
		seen[opt.Name] = true
		var err error
		switch opt.Name {
		case "concurrency":
			err = intOption(opt, &o.Concurrency, catalog.MaxObserverConcurrency)
		case "batch":
			err = intOption(opt, &o.Batch, catalog.MaxObserverBatch)
		case "max_attempts":
			err = intOption(opt, &o.MaxAttempts, catalog.MaxObserverAttempts)
		case "weak":
			if err = boolOption(opt, &o.Weak); err == nil && o.Weak {
				err = pgerror.New(pgerror.FeatureNotSupported, "weak observers are not supported").
					WithHint("Without this option each change is handled once. NOTIFY OBSERVER has rows handled that have not changed.").At(opt.Position())
			}
		default:
			err = pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", opt.Name).
				WithHint("The options of an observer are concurrency, batch, max_attempts and weak.").At(opt.Position())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// intOption reads a number from 1 to limit.
func intOption(opt *ast.ObserverOption, v *int, limit int) error {
	n, err := strconv.Atoi(opt.Value)
	if err != nil {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid value for integer option %q: %s", opt.Name, opt.Value).At(opt.Position())
	}
	if n < 1 || n > limit {
		return pgerror.New(pgerror.InvalidParameterValue, "value %s out of bounds for option %q", opt.Value, opt.Name).
			WithDetail("Valid values are between \"1\" and \"%d\".", limit).At(opt.Position())
	}
	*v = n
	return nil
}

func boolOption(opt *ast.ObserverOption, v *bool) error {
	if err := parseBoolOption(opt.Name, opt.Value, v); err != nil {
		return err.At(opt.Position())
	}
	return nil
}

// parseBoolOption reads the value of an option that is true or false; "" is true.
func parseBoolOption(name, value string, v *bool) *pgerror.Error {
	if *v = true; value == "" {
		return nil
	}
	d, err := types.ParseText(types.TBool, value, &types.Format{})
	if err != nil {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid value for boolean option %q: %s", name, value)
	}
	*v = d.Bool()
	return nil
}

// mustFindObserver finds an observer and its table.
func (r *run) mustFindObserver(ctx context.Context, n ast.TableName) (*catalog.TableDescriptor, *catalog.ObserverDescriptor, error) {
	t, o, err := catalog.FindObserver(ctx, r.r, n.Schema, n.Name)
	if err == nil && o == nil {
		err = pgerror.New(pgerror.UndefinedObject, "observer %q does not exist", displayName(n)).At(n.Position())
	}
	return t, o, err
}

func (r *run) alterObserver(ctx context.Context, n *ast.AlterObserver) error {
	t, o, err := r.mustFindObserver(ctx, n.Name)
	if err != nil {
		return err
	}
	if n.Change == ast.RetryObserver {
		return r.retryObserver(ctx, t, o, n)
	}
	next := t.Clone()
	o = next.ObserverByID(o.ID)
	switch n.Change {
	case ast.EnableObserver:
		if o.State == catalog.ObserverDisabled {
			o.State = catalog.ObserverEnabled
			seeding, err := catalog.SeedingOf(ctx, r.txn, o.ID)
			if err != nil {
				return err
			}
			if seeding != nil {
				o.State = catalog.ObserverSeeding
			}
		}
	case ast.DisableObserver:
		if o.State != catalog.ObserverDisabled {
			o.State = catalog.ObserverDisabled
			o.Generation++
		}
	case ast.RenameObserver:
		if _, other, err := catalog.FindObserver(ctx, r.r, t.Schema, n.NewName); err != nil || other != nil {
			return errorOr(err, pgerror.New(pgerror.DuplicateObject, "observer %q already exists", n.NewName).At(n.Position()))
		}
		o.Name = n.NewName
	case ast.OwnObserver:
		if o.Owner, err = r.memberRole(*n.Owner); err != nil {
			return err
		}
		if !r.access.Superuser() && !mayObserve(r.access.As(o.Owner), t) {
			return planner.RelationDenied(t)
		}
	case ast.SetObserver:
		batch := o.Batch
		if err := setObserverOptions(o, n.Options); err != nil {
			return err
		}
		if (batch > 1) != (o.Batch > 1) && o.Body != "" {
			if err := r.checkBody(ctx, r.r, t, o, o.Body); err != nil {
				return unplaced(err)
			}
		}
	}
	return r.update(ctx, t, next, false)
}

// dropObserver is DROP OBSERVER.
func (r *run) dropObserver(ctx context.Context, n *ast.DropObserver) error {
	for _, name := range n.Names {
		t, o, err := catalog.FindObserver(ctx, r.r, name.Schema, name.Name)
		if err != nil {
			return err
		}
		if o == nil && n.IfExists {
			if err := r.noticeDropAbsent(ctx, "OBSERVER", name); err != nil {
				return err
			}
			continue
		}
		if o == nil {
			_, _, err := r.mustFindObserver(ctx, name)
			return err
		}
		if err := r.removeObservers(ctx, t, []uint64{o.ID}); err != nil {
			return err
		}
	}
	return nil
}

// removeObservers drops observers of a table that stays.
func (r *run) removeObservers(ctx context.Context, t *catalog.TableDescriptor, ids []uint64) error {
	next := t.Clone()
	if err := r.removeFrom(ctx, t, next, ids); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// removeFrom drops observers of t from the descriptor next, which must replace that of t exclusively: writers that notify the
// observers must not commit any more.
func (r *run) removeFrom(ctx context.Context, t, next *catalog.TableDescriptor, ids []uint64) error {
	if _, err := r.closeObserved(ctx, t); err != nil {
		return err
	}
	for _, id := range ids {
		o := t.ObserverByID(id)
		if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: o.AckIndex}); err != nil {
			return err
		}
		if err := r.ch.ForgetObserver(ctx, id); err != nil {
			return err
		}
	}
	next.Observers = slices.DeleteFunc(next.Observers, func(o catalog.ObserverDescriptor) bool { return slices.Contains(ids, o.ID) })
	return nil
}

// commentObserver is COMMENT ON OBSERVER.
func (r *run) commentObserver(ctx context.Context, name ast.TableName, text string) error {
	t, o, err := r.mustFindObserver(ctx, name)
	if err != nil {
		return err
	}
	next := t.Clone()
	next.ObserverByID(o.ID).Comment = text
	return r.update(ctx, t, next, false)
}

// requireUnobserved refuses what changes rows of an observed table without notifying the observers.
func requireUnobserved(t *catalog.TableDescriptor, what, hint string) error {
	if len(t.Observers) == 0 {
		return nil
	}
	return pgerror.Unsupported(what+" of a table with observers", hint).
		WithDetail("Observer %s would not be notified of the rows.", t.Observers[0].Name)
}
