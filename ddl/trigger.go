package ddl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// triggerEvents are the events of triggers by their words.
var triggerEvents = map[string]catalog.TriggerEvents{
	"INSERT": catalog.TriggerInsert, "DELETE": catalog.TriggerDelete, "UPDATE": catalog.TriggerUpdate, "TRUNCATE": catalog.TriggerTruncate,
}

// createTrigger is CREATE TRIGGER.
func (r *run) createTrigger(ctx context.Context, n *ast.CreateTrigger) error {
	t, err := r.mustFind(ctx, n.Table)
	if err != nil {
		return err
	}
	if err := r.triggerTable(t, n); err != nil {
		return err
	}
	g, err := r.trigger(ctx, t, n)
	if err != nil {
		return err
	}
	old := t.TriggerNamed(n.Name)
	switch {
	case old != nil && !n.OrReplace:
		return pgerror.New(pgerror.DuplicateObject, "trigger \"%s\" for relation \"%s\" already exists", n.Name, t.Name)
	case old != nil && old.Constraint:
		return pgerror.New(pgerror.DuplicateObject, "trigger \"%s\" for relation \"%s\" is a constraint trigger", n.Name, t.Name)
	case old != nil:
		g.OID, g.Comment = old.OID, old.Comment
	default:
		if g.OID, err = r.newOID(ctx); err != nil {
			return err
		}
		if g.Constraint {
			if g.ConstraintOID, err = r.newOID(ctx); err != nil {
				return err
			}
		}
	}
	next := t.Clone()
	next.Triggers = slices.DeleteFunc(next.Triggers, func(o catalog.TriggerDescriptor) bool { return o.Name == g.Name })
	next.Triggers = append(next.Triggers, *g)
	sortTriggers(next)
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	return r.carryTrigger(ctx, next, g)
}

func (r *run) newOID(ctx context.Context) (uint32, error) {
	id, err := r.ch.NewID(ctx)
	return uint32(id), err
}

func sortTriggers(t *catalog.TableDescriptor) {
	slices.SortFunc(t.Triggers, func(a, b catalog.TriggerDescriptor) int { return cmp.Compare(a.Name, b.Name) })
}

// triggerTable refuses relations that cannot have the trigger, and users that must not create it.
func (r *run) triggerTable(t *catalog.TableDescriptor, n *ast.CreateTrigger) error {
	switch {
	case t.Kind == catalog.KindView && n.Timing != "INSTEAD OF" && n.ForEach == "ROW":
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is a view", t.Name).
			WithDetail("Views cannot have row-level BEFORE or AFTER triggers.")
	case t.Kind == catalog.KindView && slices.ContainsFunc(n.Events, func(e ast.TriggerEvent) bool { return e.Kind == "TRUNCATE" }):
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is a view", t.Name).WithDetail("Views cannot have TRUNCATE triggers.")
	case t.Kind == catalog.KindView && len(n.Transition) > 0:
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is a view", t.Name).WithDetail("Triggers on views cannot have transition tables.")
	case t.Kind == catalog.KindView && n.Constraint:
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a table", t.Name)
	case t.Kind == catalog.KindVirtual:
		return permissionDenied(t.Name)
	case t.Materialized:
		return pgerror.New(pgerror.WrongObjectType, "relation \"%s\" cannot have triggers", t.Name).
			WithDetail("This operation is not supported for materialized views.")
	case t.Kind != catalog.KindTable && t.Kind != catalog.KindView:
		return pgerror.New(pgerror.WrongObjectType, "relation \"%s\" cannot have triggers", t.Name)
	case n.Timing == "INSTEAD OF" && t.Kind == catalog.KindTable:
		return pgerror.New(pgerror.WrongObjectType, "\"%s\" is a table", t.Name).WithDetail("Tables cannot have INSTEAD OF triggers.")
	case r.access.Relation(t, acl.Trigger, false) == 0:
		return planner.RelationDenied(t)
	}
	return nil
}

// insteadOf refuses the forms of an INSTEAD OF trigger that PostgreSQL refuses.
func insteadOf(n *ast.CreateTrigger) error {
	switch {
	case n.ForEach != "ROW":
		return pgerror.New(pgerror.FeatureNotSupported, "INSTEAD OF triggers must be FOR EACH ROW")
	case n.When != nil:
		return pgerror.New(pgerror.FeatureNotSupported, "INSTEAD OF triggers cannot have WHEN conditions")
	case slices.ContainsFunc(n.Events, func(e ast.TriggerEvent) bool { return len(e.Columns) > 0 }):
		return pgerror.New(pgerror.FeatureNotSupported, "INSTEAD OF triggers cannot have column lists")
	}
	return nil
}

// trigger makes the descriptor of a trigger, without its number.
func (r *run) trigger(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateTrigger) (*catalog.TriggerDescriptor, error) {
	g := &catalog.TriggerDescriptor{
		Name: n.Name, Before: n.Timing == "BEFORE", Row: n.ForEach == "ROW", Args: n.Args, State: catalog.TriggerEnabled, Constraint: n.Constraint,
	}
	if n.Timing == "INSTEAD OF" {
		if err := insteadOf(n); err != nil {
			return nil, err
		}
		g.Before, g.Instead = true, true
	}
	g.Deferred = slices.Contains(n.Attributes, "INITIALLY DEFERRED")
	g.Deferrable = g.Deferred || slices.Contains(n.Attributes, "DEFERRABLE")
	if n.From != nil {
		return nil, pgerror.Unsupported("a constraint trigger FROM a table", "Create it without FROM.")
	}
	for i := range n.Events {
		e := &n.Events[i]
		g.Events |= triggerEvents[e.Kind]
		for _, name := range e.Columns {
			ord := t.ColumnNamed(name)
			if ord < 0 {
				return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name)
			}
			id := t.Columns[ord].ID
			if slices.Contains(g.Columns, id) {
				return nil, pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", name)
			}
			g.Columns = append(g.Columns, id)
		}
	}
	if g.Events&catalog.TriggerTruncate != 0 && g.Row {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "TRUNCATE FOR EACH ROW triggers are not supported")
	}
	switch {
	case len(n.Transition) > 0 && t.IsPartitioned() && g.Row:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "\"%s\" is a partitioned table", t.Name).
			WithDetail("ROW triggers with transition tables are not supported on partitioned tables.")
	case len(n.Transition) > 0 && t.PartitionOf != nil && g.Row:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "ROW triggers with transition tables are not supported on partitions")
	}
	for _, x := range n.Transition {
		if err := transition(g, n, x); err != nil {
			return nil, err
		}
	}
	if g.OldTable != "" && g.OldTable == g.NewTable {
		return nil, pgerror.New("42P17", "OLD TABLE name and NEW TABLE name cannot be the same")
	}
	if n.When != nil {
		if err := planner.CheckTriggerWhen(ctx, n.When, t, g, r.r, r.Env); err != nil {
			return nil, err
		}
		g.When = r.pinned(n.When)
	}
	return g, r.triggerFunction(g, n)
}

// transition gives a trigger a name for rows of the statement.
func transition(g *catalog.TriggerDescriptor, n *ast.CreateTrigger, x ast.TransitionTable) error {
	name, word, events := &g.OldTable, "OLD", catalog.TriggerDelete
	if x.New {
		name, word, events = &g.NewTable, "NEW", catalog.TriggerInsert
	}
	which := map[catalog.TriggerEvents]string{catalog.TriggerInsert: "an INSERT", catalog.TriggerDelete: "a DELETE"}[events]
	switch {
	case x.Row:
		return pgerror.New(pgerror.FeatureNotSupported, "ROW variable naming in the REFERENCING clause is not supported").
			WithHint("Use OLD TABLE or NEW TABLE for naming transition tables.")
	case n.Timing != "AFTER":
		return pgerror.New("42P17", "transition table name can only be specified for an AFTER trigger")
	case g.Events&catalog.TriggerTruncate != 0:
		return pgerror.New(pgerror.FeatureNotSupported, "TRUNCATE triggers with transition tables are not supported")
	case len(n.Events) > 1:
		return pgerror.New(pgerror.FeatureNotSupported, "transition tables cannot be specified for triggers with more than one event")
	case len(g.Columns) > 0:
		return pgerror.New(pgerror.FeatureNotSupported, "transition tables cannot be specified for triggers with column lists")
	case g.Events&(events|catalog.TriggerUpdate) == 0:
		return pgerror.New("42P17", "%s TABLE can only be specified for %s or UPDATE trigger", word, which)
	case *name != "":
		return pgerror.New("42P17", "%s TABLE cannot be specified multiple times", word)
	}
	*name = x.Name
	return nil
}

// triggerFunction finds the function of a trigger.
func (r *run) triggerFunction(g *catalog.TriggerDescriptor, n *ast.CreateTrigger) error {
	name := pathName(n.Pos, n.Function)
	var found *catalog.RoutineDescriptor
	for _, d := range r.routinesIn(name) {
		if len(d.InputTypes()) == 0 {
			found = d
		}
	}
	full := strings.Join(n.Function, ".")
	switch {
	case found == nil:
		return r.builtinTriggerFunction(g, name, full)
	case found.Ret.OID != types.OIDTrigger:
		return pgerror.New("42P17", "function %s must return type %s", full, "trigger")
	case r.access.Routine(found, acl.Execute) == 0:
		return planner.RoutineDenied(r.access, found)
	}
	g.Function = found.ID
	return nil
}

// builtinTriggerFunction takes one of PostgreSQL's own functions for a trigger.
func (r *run) builtinTriggerFunction(g *catalog.TriggerDescriptor, name ast.TableName, full string) error {
	if name.Schema == "" || name.Schema == catalog.SystemSchema {
		for _, p := range builtin.ProcsNamed(name.Name) {
			if p.Ret == types.OIDTrigger && len(p.Args) == 0 {
				g.Function = uint64(p.OID)
				return nil
			}
		}
	}
	return pgerror.New(pgerror.UndefinedFunction, "function %s() does not exist", full)
}

func noTrigger(name string, t *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.UndefinedObject, "trigger \"%s\" for table \"%s\" does not exist", name, t.Name)
}

// dropTrigger is DROP TRIGGER.
func (r *run) dropTrigger(ctx context.Context, n *ast.DropObjects) error {
	o := &n.Objects[0]
	name := onTable(o)
	t, err := r.find(ctx, name)
	if err != nil {
		return err
	}
	if t == nil && n.IfExists {
		return r.noticeAbsentRelation(ctx, name)
	}
	if t, err = r.mustFind(ctx, name); err != nil {
		return err
	}
	if t.TriggerNamed(o.Name[0]) == nil {
		if n.IfExists {
			r.noticeAbsent("trigger %q for relation %q does not exist, skipping", o.Name[0], t.Name)
			return nil
		}
		return noTrigger(o.Name[0], t)
	}
	if !r.access.Owns(t.OwnerOID()) {
		return mustBeOwner("relation", t.Name)
	}
	g := t.TriggerNamed(o.Name[0])
	if g.Inherited != 0 {
		parent, err := r.r.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil {
			return err
		}
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop trigger %s on table %s because trigger %s on table %s requires it", g.Name, t.Name, g.Name, parent.Name).
			WithHint("You can drop trigger " + g.Name + " on table " + parent.Name + " instead.")
	}
	next := t.Clone()
	next.Triggers = slices.DeleteFunc(next.Triggers, func(g catalog.TriggerDescriptor) bool { return g.Name == o.Name[0] })
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	return r.dropTriggerBelow(ctx, t.ID, g.OID)
}

// commentTrigger is COMMENT ON TRIGGER.
func (r *run) commentTrigger(ctx context.Context, o *ast.Object, text string) error {
	t, err := r.mustFind(ctx, onTable(o))
	if err != nil {
		return err
	}
	next := t.Clone()
	g := next.TriggerNamed(o.Name[0])
	if g == nil {
		return noTrigger(o.Name[0], t)
	}
	if !r.access.Owns(t.OwnerOID()) {
		return mustBeOwner("relation", t.Name)
	}
	g.Comment = text
	return r.update(ctx, t, next, false)
}

// renameTrigger is ALTER TRIGGER … RENAME TO.
func (r *run) renameTrigger(ctx context.Context, n *ast.AlterObject) error {
	t, err := r.mustFind(ctx, onTable(&n.Object))
	if err != nil {
		return err
	}
	if n.Change.Rename == "" {
		return pgerror.Unsupported("ALTER TRIGGER ... DEPENDS ON EXTENSION", "")
	}
	if !r.access.Owns(t.OwnerOID()) {
		return mustBeOwner("table", t.Name)
	}
	next := t.Clone()
	g := next.TriggerNamed(n.Object.Name[0])
	switch {
	case g == nil:
		return noTrigger(n.Object.Name[0], t)
	case next.TriggerNamed(n.Change.Rename) != nil:
		return pgerror.New(pgerror.DuplicateObject, "trigger \"%s\" for relation \"%s\" already exists", n.Change.Rename, t.Name)
	}
	g.Name = n.Change.Rename
	sortTriggers(next)
	return r.update(ctx, t, next, true)
}

// triggerStates are the states of triggers by the words of ALTER TABLE.
var triggerStates = map[string]catalog.TriggerState{
	"ENABLE TRIGGER": catalog.TriggerEnabled, "ENABLE ALWAYS TRIGGER": catalog.TriggerAlways, "ENABLE REPLICA TRIGGER": catalog.TriggerReplica,
	"DISABLE TRIGGER": catalog.TriggerDisabled,
}

// enableTrigger is ENABLE and DISABLE TRIGGER of ALTER TABLE. ALL concerns foreign keys as well, for rows of the table.
func (r *run) enableTrigger(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableCommand) error {
	if t.Kind != catalog.KindTable {
		return pgerror.New(pgerror.WrongObjectType, "ALTER action %s cannot be performed on relation \"%s\"", c.Action, t.Name)
	}
	next := t.Clone()
	found := c.Mode != ""
	for i := range next.Triggers {
		if g := &next.Triggers[i]; c.Mode != "" || g.Name == c.Name {
			g.State, found = triggerStates[c.Action], true
		}
	}
	if !found {
		return noTrigger(c.Name, t)
	}
	if c.Mode == "ALL" {
		if err := r.enableKeys(ctx, next, c.Action != "DISABLE TRIGGER"); err != nil {
			return err
		}
	}
	return r.update(ctx, t, next, true)
}

// enableKeys enables or disables the foreign keys of a table and to it, for its rows.
func (r *run) enableKeys(ctx context.Context, t *catalog.TableDescriptor, on bool) error {
	keys := make([]catalog.Reference, len(t.ForeignKeys))
	for i := range keys {
		keys[i] = catalog.Reference{Table: t, Key: &t.ForeignKeys[i]}
	}
	incoming, err := catalog.ReferencesToRows(ctx, r.r, t)
	if err != nil {
		return err
	}
	t.KeysOff = nil
	for _, k := range append(keys, incoming...) {
		if !r.access.Superuser() {
			return pgerror.New(pgerror.InsufficientPrivilege, "permission denied: \"RI_ConstraintTrigger_%s\" is a system trigger", k.Key.Name)
		}
		declared, err := catalog.DeclaredKey(ctx, r.r, k.Table, k.Key)
		if err != nil {
			return err
		}
		if !on && !slices.Contains(t.KeysOff, declared.Key.OID) {
			t.KeysOff = append(t.KeysOff, declared.Key.OID)
		}
	}
	return nil
}

// triggerUse is a trigger that depends on something, as a line of a message says.
type triggerUse struct {
	table uint64
	name  string
	line  string
}

// triggersExecuting lists the triggers that execute one of the functions.
func (r *run) triggersExecuting(ctx context.Context, functions []*catalog.RoutineDescriptor) (uses []triggerUse, _ error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range functions {
		for _, t := range all {
			for i := range t.Triggers {
				if g := &t.Triggers[i]; g.Function == d.ID {
					line := fmt.Sprintf("trigger %s on table %s depends on function %s", g.Name, t.Name, r.routineSignature(d))
					uses = append(uses, triggerUse{t.ID, g.Name, line})
				}
			}
		}
	}
	return uses, nil
}

// triggersNaming lists the triggers of a table that name a column.
func triggersNaming(t *catalog.TableDescriptor, column *catalog.ColumnDescriptor) (uses []triggerUse, _ error) {
	for i := range t.Triggers {
		g := &t.Triggers[i]
		named := slices.Contains(g.Columns, column.ID)
		if g.When != "" && !named {
			e, err := sql.ParseExpr(g.When)
			if err != nil {
				return nil, err
			}
			ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
				if ref, ok := x.(*ast.ColumnRef); ok && isTriggerRow(ref) {
					named = named || ref.Parts[1] == column.Name
				}
			}})
		}
		if named {
			line := fmt.Sprintf("trigger %s on table %s depends on column %s of table %s", g.Name, t.Name, column.Name, t.Name)
			uses = append(uses, triggerUse{t.ID, g.Name, line})
		}
	}
	return uses, nil
}

func isTriggerRow(ref *ast.ColumnRef) bool {
	return len(ref.Parts) == 2 && (ref.Parts[0] == planner.NewRow || ref.Parts[0] == planner.OldRow)
}

// dropTriggers drops triggers that depend on something that is dropped.
func (r *run) dropTriggers(ctx context.Context, uses []triggerUse) error {
	for _, u := range uses {
		t, err := r.r.RelationByID(ctx, u.table)
		if err != nil {
			return err
		}
		if t == nil || t.TriggerNamed(u.name) == nil {
			continue
		}
		next := t.Clone()
		next.Triggers = slices.DeleteFunc(next.Triggers, func(g catalog.TriggerDescriptor) bool { return g.Name == u.name })
		if err := r.update(ctx, t, next, true); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// renameInTriggers has the conditions of triggers name a column by its new name.
func renameInTriggers(next *catalog.TableDescriptor, from, to string) error {
	for i := range next.Triggers {
		g := &next.Triggers[i]
		if g.When == "" {
			continue
		}
		e, err := sql.ParseExpr(g.When)
		if err != nil {
			return err
		}
		ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
			if ref, ok := x.(*ast.ColumnRef); ok && isTriggerRow(ref) && ref.Parts[1] == from {
				ref.Parts[1] = to
			}
		}})
		g.When = e.String()
	}
	return nil
}
