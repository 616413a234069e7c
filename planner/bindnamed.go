package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// namedCall binds a call that names arguments: they are put in their positions, and omitted ones get their defaults.
func (b *binder) namedCall(f builtin.FuncName, names []string, given []expr.Scalar, ts []types.Type, pos int) (expr.Scalar, error) {
	list, places, err := f.ResolveNamed(names, ts, false)
	if err != nil {
		return nil, at(err, pos)
	}
	args, ts := positional(list, places, given)
	return b.function(f, args, ts, pos)
}

// positional puts named arguments in their places, and the defaults in the others.
func positional(list []builtin.Parameter, places []int, given []expr.Scalar) ([]expr.Scalar, []types.Type) {
	args, ts := make([]expr.Scalar, len(list)), make([]types.Type, len(list))
	for i, p := range list {
		args[i], ts[i] = &expr.Const{Value: p.Default, Typ: p.Type}, p.Type
	}
	for i, place := range places {
		args[place], ts[place] = given[i], given[i].Type()
	}
	return args, ts
}

// inPlace returns a call without names for its arguments, which are in their positions. The function has no defaults that could be missing.
func (sc *scope) inPlace(f builtin.FuncName, e *ast.Call) (*ast.Call, error) {
	if e.ArgNames == nil {
		return e, nil
	}
	list, places, err := f.ResolveNamed(e.ArgNames, nil, e.Variadic)
	if err == nil && (len(list) != len(e.Args) || e.Variadic && places[len(places)-1] != len(places)-1) {
		places = nil
	}
	if err != nil || places == nil {
		_, ts, err := sc.args(e.Args)
		if err == nil {
			_, _, err = f.ResolveNamed(e.ArgNames, ts, e.Variadic)
		}
		if err == nil {
			err = builtin.ErrNoFunction(f.String(), ts)
		}
		return nil, at(err, int(e.Pos))
	}
	c := *e
	c.ArgNames, c.Args = nil, slices.Clone(e.Args)
	for i, place := range places {
		c.Args[place] = e.Args[i]
	}
	return &c, nil
}
