package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// likeOperators names the operators of the pattern matches: plain, and negated.
var likeOperators = map[string][2]string{
	"LIKE":       {"~~", "!~~"},
	"ILIKE":      {"~~*", "!~~*"},
	"SIMILAR TO": {"~", "!~"},
}

// like binds X LIKE pattern [ESCAPE e] as the operators and functions PostgreSQL's grammar makes of it.
func (sc *scope) like(e *ast.Like) (expr.Scalar, error) {
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	pattern, err := sc.expr(e.Pattern)
	if err != nil {
		return nil, err
	}
	var args []expr.Scalar
	if e.Escape != nil {
		escape, err := sc.expr(e.Escape)
		if err != nil {
			return nil, err
		}
		args = []expr.Scalar{pattern, escape}
	} else if e.Op == "SIMILAR TO" {
		args = []expr.Scalar{pattern}
	}
	if args != nil {
		name := "like_escape"
		if e.Op == "SIMILAR TO" {
			name = "similar_to_escape"
		}
		if pattern, err = sc.b.callByName(name, args, int(e.Pos)); err != nil {
			return nil, err
		}
	}
	op := likeOperators[e.Op][0]
	if e.Not {
		op = likeOperators[e.Op][1]
	}
	return sc.b.operator(op, x, pattern, int(e.Pos))
}

// callByName calls a builtin function with bound arguments.
func (b *binder) callByName(name string, args []expr.Scalar, pos int) (expr.Scalar, error) {
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.Type()
	}
	fn, err := builtin.ResolveFunc(name, ts)
	if err != nil {
		return nil, at(err, pos)
	}
	if err := b.coerceArgs(fn, args, pos); err != nil {
		return nil, err
	}
	return collated(expr.NewCall(fn, args), pos, args...)
}
