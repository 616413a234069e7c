package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// pinRelations gives every relation in a query its schema, and records it in view.DependsOn.
func (r *run) pinRelations(ctx context.Context, q *ast.Query, view *catalog.TableDescriptor) error {
	var failed error
	ast.InspectQuery(q, ast.Visitor{Table: func(t *ast.TableRef) {
		desc, err := r.mustFind(ctx, t.Name)
		if err != nil {
			failed = err
			return
		}
		t.Name.Schema = desc.Schema
		if !slices.Contains(view.DependsOn, desc.ID) {
			view.DependsOn = append(view.DependsOn, desc.ID)
		}
	}, Expr: func(e ast.Expr) {
		if pos := changesCall(e); pos > 0 && failed == nil {
			failed = pgerror.Unsupported("percodb.changes in a view", "Call it in the statements of the client that handles the changes.").At(pos)
		}
	}})
	return failed
}

// changesCall returns the position of e if it is a call of percodb.changes, otherwise 0.
func changesCall(e ast.Expr) int {
	call, ok := e.(*ast.Call)
	if !ok || len(call.Name) != 2 || call.Name[0] != catalog.OwnSchema || call.Name[1] != "changes" {
		return 0
	}
	return call.Position()
}
