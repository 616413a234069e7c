package session

import (
	"context"
	"slices"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// alteredTables lists the tables that a statement changes the schema of, or empties, and what it is called in errors.
func alteredTables(tree ast.Statement) (what string, names []ast.TableName) {
	switch n := tree.(type) {
	case *ast.AlterTable:
		if n.Kind == "TABLE" {
			return "ALTER TABLE", []ast.TableName{n.Name}
		}
	case *ast.CreateIndex:
		return "CREATE INDEX", []ast.TableName{n.Table}
	case *ast.Truncate:
		for _, t := range n.Tables {
			names = append(names, t.TableName)
		}
		return "TRUNCATE", names
	case *ast.Drop:
		if n.Kind == "TABLE" {
			return "DROP TABLE", n.Names
		}
	}
	return "", nil
}

// refuseInUse refuses a statement of a function that changes the schema of a table whose triggers call the function, or whose rows a loop of
// a function reads.
func (h *procedural) refuseInUse(ctx context.Context, tree ast.Statement) error {
	what, names := alteredTables(tree)
	if len(names) == 0 {
		return nil
	}
	r, err := h.Schema(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		t, err := r.Relation(ctx, name.Schema, name.Name)
		if err != nil {
			return err
		}
		if t != nil && h.uses(t.ID) {
			return pgerror.New(pgerror.ObjectInUse, "cannot %s \"%s\" because it is being used by active queries in this session", what, t.Name)
		}
	}
	return nil
}

// uses reports whether triggers of a table are being executed, or a loop reads it.
func (h *procedural) uses(table uint64) bool {
	if slices.Contains(h.firing, table) {
		return true
	}
	for _, po := range h.portals.byName {
		if !po.pinned || po.prepared == nil || po.prepared.plan == nil {
			continue
		}
		for _, used := range po.prepared.plan.Relations {
			if used.ID == table {
				return true
			}
		}
	}
	return false
}
