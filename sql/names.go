package sql

import "github.com/percodb/percodb/sql/ast"

// unnamed is the name PostgreSQL gives an output column that has none.
const unnamed = "?column?"

// nameOutput gives an output column without an alias the name PostgreSQL computes (FigureColname).
func nameOutput(item *ast.SelectItem) {
	if item.Aliased {
		return
	}
	if _, star := item.Expr.(*ast.Star); star {
		return
	}
	if item.Name, _ = outputName(item.Expr); item.Name == "" {
		item.Name = unnamed
	}
}

// The strength of a name: a cast or CASE takes its operand's name only if that is good.
const (
	noName = iota
	weakName
	goodName
)

// outputName computes a name and how good it is.
func outputName(x ast.Expr) (string, int) {
	switch x := x.(type) {
	case *ast.ColumnRef:
		return x.Parts[len(x.Parts)-1], goodName
	case *ast.Star:
		if len(x.Table) > 0 {
			return x.Table[len(x.Table)-1], goodName
		}
	case *ast.Field:
		if x.Name == "*" {
			return outputName(x.X)
		}
		return x.Name, goodName
	case *ast.Subscript:
		return outputName(x.X)
	case *ast.Call:
		return x.Name[len(x.Name)-1], goodName
	case *ast.AtTimeZone:
		return "timezone", goodName
	case *ast.Cast:
		if name, strength := outputName(x.X); strength == goodName {
			return name, strength
		}
		return x.Type.Name[len(x.Type.Name)-1], weakName
	case *ast.Collate:
		return outputName(x.X)
	case *ast.Case:
		if name, strength := outputName(x.Else); strength == goodName {
			return name, strength
		}
		return "case", weakName
	case *ast.Array, *ast.ArraySubquery:
		return "array", goodName
	case *ast.Row:
		return "row", goodName
	case *ast.Exists:
		return "exists", goodName
	case *ast.Subquery:
		return queryName(x.Query)
	}
	return "", noName
}

// queryName is the name of a query's first column.
func queryName(q *ast.Query) (string, int) {
	if q == nil {
		return "", noName
	}
	body := q.Body
	for {
		switch b := body.(type) {
		case *ast.Select:
			if len(b.Columns) == 0 || b.Columns[0].Name == "" {
				return "", noName
			}
			return b.Columns[0].Name, goodName
		case *ast.Values:
			return "column1", goodName
		case *ast.SetOp:
			body = b.L
		case *ast.Nested:
			body = b.Query.Body
		default:
			return "", noName
		}
	}
}

// ExprName is the name that PostgreSQL gives an output column with the expression, or the key of an index: "?column?" if it has none.
func ExprName(x ast.Expr) string {
	if name, _ := outputName(x); name != "" {
		return name
	}
	return unnamed
}
