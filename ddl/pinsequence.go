package ddl

import (
	"context"
	"slices"
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
)

// pinSequences has the calls of nextval, currval and setval in a default that is about to be stored name their sequences by number, so that they mean the
// same whatever the search path is, and follow renames. As in PostgreSQL a name that is cast to text is looked up by each call.
func (r *run) pinSequences(ctx context.Context, e ast.Expr) error {
	var failed error
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		arg := sequenceName(x)
		if arg == nil || failed != nil {
			return
		}
		if _, err := strconv.ParseUint(arg.Value, 10, 32); err == nil {
			return
		}
		var t *catalog.TableDescriptor
		var name ast.TableName
		name.Pos = arg.Pos
		if name.Schema, name.Name, failed = pgcatalog.SplitName(arg.Value); failed != nil {
			return
		}
		if t, failed = r.mustFind(ctx, name); failed != nil {
			return
		}
		call := x.(*ast.Call)
		call.Args[0] = &ast.Cast{Type: ast.TypeName{Name: []string{"regclass"}},
			X: &ast.Literal{Pos: arg.Pos, Kind: ast.LiteralString, Slot: -1, Value: strconv.FormatUint(t.ID, 10)}}
	}})
	return failed
}

// sequenceName returns the constant by which a call of a sequence's function names the sequence, nil for other expressions.
func sequenceName(e ast.Expr) *ast.Literal {
	call, ok := e.(*ast.Call)
	if !ok || len(call.Args) == 0 || len(call.Name) > 1 && call.Name[0] != catalog.SystemSchema {
		return nil
	}
	if !slices.Contains([]string{"nextval", "currval", "setval"}, call.Name[len(call.Name)-1]) {
		return nil
	}
	arg := call.Args[0]
	if c, ok := arg.(*ast.Cast); ok && c.Type.Name[len(c.Type.Name)-1] == "regclass" && c.Type.Array == 0 {
		arg = c.X
	}
	if l, ok := arg.(*ast.Literal); ok && l.Kind == ast.LiteralString {
		return l
	}
	return nil
}

// usesSequence reports whether a stored default names a sequence by its number.
func usesSequence(text string, id uint64) bool {
	if text == "" {
		return false
	}
	e, err := sql.ParseExpr(text)
	if err != nil {
		return false
	}
	uses := false
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		if l := sequenceName(x); l != nil && l.Value == strconv.FormatUint(id, 10) {
			uses = true
		}
	}})
	return uses
}
