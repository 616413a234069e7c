package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Triggers are the triggers of a table that a statement writes, in the order in which they are executed.
type Triggers struct {
	Row  types.Type // of the table
	List []Trigger
	// Changes: a trigger may change the row that an update stores, or an insertion.
	Changes bool
}

// Trigger is a trigger of a table that a statement writes.
type Trigger struct {
	*catalog.TriggerDescriptor
	// When is over the old full row followed by the new one, of which one may be NULLs; nil: always.
	When expr.Scalar
	// Updates: the statement assigns a column that an update must assign for the trigger.
	Updates bool
	// Assigned are the ordinals of the columns to which an update gives values.
	Assigned []int
}

// BindStatementTriggers binds the triggers of a table for TRUNCATE, which has no plan; nil if there are none.
func BindStatementTriggers(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (*Triggers, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	g := p.triggers(t, catalog.TriggerTruncate, nil)
	return g, p.err
}

// triggers binds the triggers of a table for a statement with some events, which assigns the columns with the given ordinals in
// updates; nil if there are none.
func (p *physical) triggers(t *catalog.TableDescriptor, events catalog.TriggerEvents, assigned []int) *Triggers {
	var out *Triggers
	for i := range t.Triggers {
		g := &t.Triggers[i]
		if g.State == catalog.TriggerDisabled || g.Events&events == 0 {
			continue
		}
		if out == nil {
			out = &Triggers{}
			if d := p.b.r.Types().RowType(t); d != nil {
				out.Row = d.Type()
			}
			p.b.routines, p.b.volatile = true, true
		}
		bound := Trigger{TriggerDescriptor: g, Updates: len(g.Columns) == 0, Assigned: assigned}
		for _, ord := range assigned {
			for _, id := range g.Columns {
				bound.Updates = bound.Updates || t.Columns[ord].ID == id
			}
		}
		if g.When != "" {
			bound.When = p.triggerWhen(t, g)
		}
		out.Changes = out.Changes || g.Before && g.Row
		out.List = append(out.List, bound)
	}
	return out
}

// triggerWhen binds the condition of a trigger.
func (p *physical) triggerWhen(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor) expr.Scalar {
	e, err := sql.ParseExpr(g.When)
	if err != nil {
		p.fail(err)
		return nil
	}
	x, err := BindRows(p.b.ctx, e, triggerRows(t), p.b.r, p.b.env, types.TBool, "trigger WHEN conditions")
	if err != nil {
		p.fail(textError(err, "trigger", g.Name))
		return nil
	}
	return x
}

// triggerRows are OLD and NEW, all columns of the table each.
func triggerRows(t *catalog.TableDescriptor) []InputRow {
	old := InputRow{Name: OldRow, Param: 1, Table: t.OID()}
	for i := range t.Columns {
		name := t.Columns[i].Name
		if t.Columns[i].Hidden {
			name = ""
		}
		old.Columns = append(old.Columns, Column{Name: name, Type: t.Columns[i].Type})
	}
	return []InputRow{old, {Name: NewRow, Columns: old.Columns, Param: 1 + len(old.Columns), Table: t.OID()}}
}

// CheckTriggerWhen refuses the condition of a trigger that PostgreSQL refuses.
func CheckTriggerWhen(ctx context.Context, e ast.Expr, t *catalog.TableDescriptor, g *catalog.TriggerDescriptor, r catalog.Resolver, env *builtin.Env) error {
	var failed error
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		var parts []string
		switch x := x.(type) {
		case *ast.ColumnRef:
			parts = x.Parts
		case *ast.Star:
			parts = x.Table
		}
		if len(parts) > 0 && failed == nil {
			failed = checkWhenRow(t, g, parts, startOf(x))
		}
	}})
	if failed != nil {
		return failed
	}
	_, err := BindRows(ctx, e, triggerRows(t), r, env, types.TBool, "trigger WHEN conditions")
	return err
}

// checkWhenRow refuses a reference to a row that the condition of a trigger must not read: parts are the row and a column of it, or the row alone.
func checkWhenRow(t *catalog.TableDescriptor, g *catalog.TriggerDescriptor, parts []string, pos int) error {
	row, column := parts[0], ""
	if len(parts) > 1 {
		column = parts[1]
	}
	switch {
	case row != OldRow && row != NewRow:
		return nil
	case !g.Row:
		return pgerror.New("42P17", "statement trigger's WHEN condition cannot reference column values").At(pos)
	case row == OldRow && g.Events&catalog.TriggerInsert != 0:
		return pgerror.New("42P17", "INSERT trigger's WHEN condition cannot reference OLD values").At(pos)
	case row == NewRow && g.Events&catalog.TriggerDelete != 0:
		return pgerror.New("42P17", "DELETE trigger's WHEN condition cannot reference NEW values").At(pos)
	case row == OldRow || !g.Before:
		return nil
	case column != "" && t.ColumnNamed(column) < 0 && slices.Contains(catalog.SystemColumns, column):
		return pgerror.New(pgerror.FeatureNotSupported, "BEFORE trigger's WHEN condition cannot reference NEW system columns").At(pos)
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Generated != "" && (column == "" || column == c.Name) {
			e := pgerror.New("42P17", "BEFORE trigger's WHEN condition cannot reference NEW generated columns").At(pos)
			if column == "" {
				return e.WithDetail("A whole-row reference is used and the table contains generated columns.")
			}
			return e.WithDetail("Column \"%s\" is a generated column.", c.Name)
		}
	}
	return nil
}

// every lists the ordinals of all columns of a table.
func every(t *catalog.TableDescriptor) []int {
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// changedBy are the ordinals of the columns that an update may change: all, if a trigger may change the row.
func (g *Triggers) changedBy(t *catalog.TableDescriptor, changed []int) []int {
	if g != nil && g.Changes && changed != nil {
		return every(t)
	}
	return changed
}
