package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// call binds a function call: a conditional of PostgreSQL's grammar, an aggregate, a set-returning function, or a
// function.
func (sc *scope) call(e *ast.Call) (expr.Scalar, error) {
	x, err := sc.functionCall(e)
	if err != nil && isProjection(e) && errorCode(err) == pgerror.UndefinedFunction {
		if field, failed := sc.fieldOf(&ast.Field{Pos: e.Pos, X: e.Args[0], Name: e.Name[0]}); failed == nil {
			return field, nil
		}
	}
	return x, err
}

// functionOfRow binds name(row), nil if there is no such function: x.name and (x).name mean that where the row has no such column.
func (sc *scope) functionOfRow(name string, row ast.Expr, pos ast.Pos) expr.Scalar {
	call := &ast.Call{Pos: pos, Name: []string{name}, Args: []ast.Expr{row}}
	if f, err := sc.b.funcName(call); err != nil || f.User == nil {
		return nil
	}
	x, err := sc.functionCall(call)
	if err != nil {
		return nil
	}
	return x
}

// isProjection reports whether a call may mean the field of that name of its argument: last(person).
func isProjection(e *ast.Call) bool {
	return len(e.Name) == 1 && len(e.Args) == 1 && e.Syntax == 0 && e.ArgNames == nil && !e.Distinct && e.Filter == nil && len(e.OrderBy) == 0 &&
		len(e.Within) == 0 && e.Over == nil && !e.Variadic
}

func errorCode(err error) pgerror.Code {
	if e, ok := err.(*pgerror.Error); ok {
		return e.Code
	}
	return ""
}
