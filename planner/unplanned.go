package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
)

// AuthorizeCalls returns 42501 unless the session's role may execute PostgreSQL's own functions that an expression calls. It is for expressions that are
// evaluated without a plan, which would list them: constraints of domains, and those of schema changes. Calls of routines of users are checked by whoever
// executes them (builtin.Routines).
func AuthorizeCalls(env *builtin.Env, list ...expr.Scalar) (err error) {
	if env == nil || env.RestrictedCalls == nil {
		return nil
	}
	mayCall := env.RestrictedCalls()
	if mayCall == nil {
		return nil
	}
	for _, x := range list {
		expr.Walk(x, func(x expr.Scalar) bool {
			var f function
			switch x := x.(type) {
			case *expr.Call:
				f = x.Fn
			case *expr.Cast:
				if x.Fn != nil {
					f = x.Fn
				}
			}
			if err == nil && f != nil && f.Use().Routine == nil {
				if signature := f.Signature(); signature != "" {
					err = mayCall(signature)
				}
			}
			return err == nil
		})
	}
	return err
}

// FunctionDenied returns 42501 if a role may not execute the function with a signature.
func FunctionDenied(a *catalog.Access, signature string) error {
	if a.Object(acl.Function, signature, acl.Execute) != 0 {
		return nil
	}
	return functionDenied(signature)
}
