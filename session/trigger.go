package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var _ executor.TriggerRunner = (*procedural)(nil)

// eventNames are the values of TG_OP.
var eventNames = map[catalog.TriggerEvents]string{
	catalog.TriggerInsert: "INSERT", catalog.TriggerUpdate: "UPDATE", catalog.TriggerDelete: "DELETE", catalog.TriggerTruncate: "TRUNCATE",
}

// RowsChanged implements executor.TriggerRunner.
func (h *procedural) RowsChanged() uint64 { return h.runner.changed }

// RunTrigger implements executor.TriggerRunner.
func (h *procedural) RunTrigger(ctx context.Context, c *executor.TriggerCall) (d types.Datum, err error) {
	r, err := h.Schema(ctx)
	if err != nil {
		return types.Null, err
	}
	g := c.Trigger
	f := r.Routines().ByOID(types.OID(g.Function))
	if f == nil {
		return h.builtinTrigger(r, &firing{c.Table, g, c.Row, c.Event, c.Old, c.New})
	}
	if f.Language != "plpgsql" {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "trigger functions in language %s are not supported", f.Language)
	}
	h.triggers++
	h.firing = append(h.firing, c.Table.ID)
	defer func() {
		h.triggers--
		h.firing = h.firing[:len(h.firing)-1]
	}()
	if !c.Deferred {
		h.calls++
		defer func() { h.calls-- }()
	}
	leave, err := h.commands.routines.enterCall(ctx, f)
	if err != nil {
		return types.Null, err
	}
	defer func() { err = firstOf(err, leave()) }()
	sig := signature(r, f, nil)
	sig.Table = fmt.Sprintf("%d/%q/%q", c.Table.ID, g.OldTable, g.NewTable)
	code, err := h.code(ctx, f, sig)
	if err != nil {
		return types.Null, err
	}
	defer h.enter()()
	defer h.readTransitions(c)()
	outer := h.settle
	h.settle = c.Settle
	defer func() { h.settle = outer }()
	tr := &plpgsql.Trigger{
		Row: c.Row, New: c.New, Old: c.Old,
		Name: g.Name, When: "AFTER", Level: "STATEMENT", Op: eventNames[c.Event], Table: c.Table, Args: g.Args,
	}
	switch {
	case g.Instead:
		tr.When = "INSTEAD OF"
	case g.Before:
		tr.When = "BEFORE"
	}
	if g.Row {
		tr.Level = "ROW"
	}
	return code.Execute(ctx, h, &plpgsql.Call{Trigger: tr, Atomic: true})
}

// firstOf is the first of two errors.
func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// statementRows are the rows of a statement that the function of its trigger reads by names: the old ones, then the new ones. Functions that this
// one calls do not see them.
type statementRows struct {
	relations []*catalog.TableDescriptor
	rows      [2]*executor.RowList
}

// over is r with the relations of rows; nil has none.
func (t *statementRows) over(r catalog.Resolver) catalog.Resolver {
	if t == nil {
		return r
	}
	return catalog.WithLocal(r, t.relations...)
}

// readTransitions has the statements of a trigger's function find the rows that the trigger names, and returns what undoes that.
func (h *procedural) readTransitions(c *executor.TriggerCall) func() {
	outer := h.transitions
	h.transitions = nil
	if c != nil && (c.OldRows != nil || c.NewRows != nil) {
		t := &statementRows{rows: [2]*executor.RowList{c.OldRows, c.NewRows}}
		for i, name := range []string{c.Trigger.OldTable, c.Trigger.NewTable} {
			if name != "" {
				t.relations = append(t.relations, h.transitionTable(c, i, name))
			}
		}
		h.transitions = t
	}
	return func() { h.transitions = outer }
}

// transitionTable describes the rows of a trigger's statement. A plan that reads it reads those of the trigger that is being executed.
func (h *procedural) transitionTable(c *executor.TriggerCall, i int, name string) *catalog.TableDescriptor {
	const own = uint64(1) << 63 // No relation of the catalog has such a number.
	d := &catalog.TableDescriptor{
		ID: own | uint64(c.Trigger.OID)<<1 | uint64(i), Version: c.Table.Version, WriterVersion: c.Table.Version, Kind: catalog.KindVirtual, Name: name,
		Owned: catalog.Owned{Owner: c.Table.Owner, ACL: acl.List{{Grantee: acl.Public, Grantor: c.Table.OwnerOID(), Rights: acl.Select}}},
	}
	for j := range c.Table.Columns {
		if col := &c.Table.Columns[j]; !col.Hidden {
			d.Columns = append(d.Columns, catalog.ColumnDescriptor{ID: uint32(len(d.Columns) + 1), Name: col.Name, Type: col.Type})
		}
	}
	d.NextColumnID = uint32(len(d.Columns) + 1)
	d.Rows = func(ctx context.Context, _ catalog.Resolver, _ catalog.SystemView, yield func(types.Row) error) error {
		if h.transitions == nil || h.transitions.rows[i] == nil {
			return nil
		}
		rows := h.transitions.rows[i]
		for n := range rows.Len() {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			row, err := rows.At(n)
			if err == nil {
				err = yield(row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return d
}

// fireTruncate is ddl.Deps.FireTruncate.
func (c *schemaCommands) fireTruncate(ctx context.Context, t *catalog.TableDescriptor, before bool) error {
	c.tx.changed, c.tx.resolver = c.tx.changed || c.tx.guard.Changed(), nil
	if err := c.tx.begin(ctx); err != nil {
		return err
	}
	plan, err := planner.BindStatementTriggers(ctx, t, c.tx.resolver, c.env)
	if err != nil {
		return err
	}
	var rt executor.Runtime
	c.runner.fillRuntime(&rt, nil)
	return executor.FireStatementTriggers(ctx, &rt, t, plan, catalog.TriggerTruncate, before)
}

// truncateFires reports whether a TRUNCATE may execute triggers.
func (c *schemaCommands) truncateFires(ctx context.Context, tree ast.Statement) (bool, error) {
	n, ok := tree.(*ast.Truncate)
	if !ok {
		return false, nil
	}
	if err := c.tx.begin(ctx); err != nil {
		return false, err
	}
	within := n.Cascade // Other tables are emptied as well.
	for _, name := range n.Tables {
		t, err := c.tx.resolver.Relation(ctx, name.Schema, name.Name)
		if err != nil || t != nil && t.FiresTruncate() {
			return err == nil, err
		}
		within = within || t != nil && t.IsPartitioned()
	}
	if !within {
		return false, nil
	}
	all, err := c.tx.resolver.Relations(ctx)
	return slices.ContainsFunc(all, (*catalog.TableDescriptor).FiresTruncate), err
}
