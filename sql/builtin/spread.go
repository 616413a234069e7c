package builtin

import (
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// ResolveVariadic is ResolveFunc for a call whose last argument is marked VARIADIC: an array of the arguments that a variadic function takes
// there.
//
// Errors: as ResolveFunc, and 42804 if the function takes arguments of any types and the last one is no array.
func (f FuncName) ResolveVariadic(args []types.Type) (*Overload, error) {
	last := len(args) - 1
	var candidates []*Overload
	for _, o := range f.overloads() {
		if !o.variadic || len(o.Args) != len(args) {
			continue
		}
		c := *o
		c.variadic, c.bind, c.Fn = false, nil, nil
		c.Args = slices.Clone(o.Args)
		if c.Args[last].OID != types.OIDAny {
			c.Args[last] = c.Args[last].ArrayOf()
		}
		candidates = append(candidates, &c)
	}
	chosen, err := pick(f.String(), candidates, args)
	if err != nil {
		return nil, err
	}
	if chosen.Args[last].OID == types.OIDAny && !args[last].IsArray() {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "VARIADIC argument must be an array")
	}
	r, err := chosen.resolved(args)
	if err != nil {
		return nil, err
	}
	out := *r
	out.Strict = false
	out.Fn = spread(&out, f.Name)
	return &out, nil
}

// spread calls the function that o takes an array for with its elements. A NULL array makes NULL, except that format takes it as an empty one.
func spread(o *Overload, name string) Func {
	last := len(o.Args) - 1
	fixed, elem := o.Args[:last], o.Args[last].Elem()
	strict := o.declared.Strict
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		var elems []types.Datum
		if !a[last].IsNull() {
			elems = a[last].Array().Elems
		} else if name != "format" {
			return types.Null, nil
		}
		if err := env.reserveList(len(elems)); err != nil {
			return types.Null, err
		}
		args := append(slices.Clone(a[:last]), elems...)
		if strict && hasNull(args) {
			return types.Null, nil
		}
		call := *o.declared
		call.Args = slices.Clone(fixed)
		for range elems {
			call.Args = append(call.Args, elem)
		}
		fn := call.Fn
		if call.bind != nil {
			fn = call.bind(&call)
		}
		return fn(env, args)
	}
}
