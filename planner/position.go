package planner

import "github.com/percodb/percodb/sql/ast"

// startOf returns where an expression begins in the text: PostgreSQL points there when the whole
// expression is at fault, and at the operator when that is.
func startOf(e ast.Expr) int {
	for {
		var first ast.Expr
		switch x := e.(type) {
		case *ast.Binary:
			first = x.L
		case *ast.Like:
			first = x.X
		case *ast.IsTest:
			first = x.X
		case *ast.IsDistinct:
			first = x.L
		case *ast.Between:
			first = x.X
		case *ast.InList:
			first = x.X
		case *ast.InSubquery:
			first = x.X
		case *ast.Quantified:
			first = x.X
		case *ast.AtTimeZone:
			first = x.X
		case *ast.Collate:
			first = x.X
		case *ast.Subscript:
			first = x.X
		case *ast.Field:
			first = x.X
		case *ast.Cast:
			if pos := startOf(x.X); pos != 0 && pos < int(x.Pos) {
				return pos
			}
			return int(x.Pos)
		default:
			return e.Position()
		}
		e = first
	}
}
