package builtin

import (
	"github.com/percodb/percodb/sql/types"
)

// arrayOps declares || @> <@ && on arrays.
func arrayOps() []decl {
	return []decl{
		{sig: "||(anycompatiblearray,anycompatiblearray) anycompatiblearray", fn: arrayCat, flags: nonStrict},
		{sig: "||(anycompatiblearray,anycompatible) anycompatiblearray", bind: arrayAppend, flags: nonStrict},
		{sig: "||(anycompatible,anycompatiblearray) anycompatiblearray", bind: arrayPrepend, flags: nonStrict},
		{sig: "@>(anyarray,anyarray) bool", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return contains(env, a[0].Array(), a[1].Array())
		}},
		{sig: "<@(anyarray,anyarray) bool", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return contains(env, a[1].Array(), a[0].Array())
		}},
		{sig: "&&(anyarray,anyarray) bool", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return overlap(env, a[0].Array(), a[1].Array())
		}},
	}
}

func arrayCat(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return a[1], nil
	}
	if a[1].IsNull() {
		return a[0], nil
	}
	l, r := a[0].Array(), a[1].Array()
	elems := append(append(make([]types.Datum, 0, len(l.Elems)+len(r.Elems)), l.Elems...), r.Elems...)
	return types.NewArray(&types.Array{Elem: l.Elem, Elems: elems}), nil
}

// arrayAppend appends an element to an array; NULL is the empty array.
func arrayAppend(o *Overload) Func {
	elem := o.Args[1]
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		elems := elementsOf(a[0])
		out := append(append(make([]types.Datum, 0, len(elems)+1), elems...), a[1])
		return types.NewArray(&types.Array{Elem: elem, Elems: out}), nil
	}
}

func arrayPrepend(o *Overload) Func {
	elem := o.Args[0]
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		elems := elementsOf(a[1])
		out := append(append(make([]types.Datum, 0, len(elems)+1), a[0]), elems...)
		return types.NewArray(&types.Array{Elem: elem, Elems: out}), nil
	}
}

func elementsOf(d types.Datum) []types.Datum {
	if d.IsNull() {
		return nil
	}
	return d.Array().Elems
}

// contains reports whether every element of b equals one of a; NULL equals nothing.
func contains(env *Env, a, b *types.Array) (types.Datum, error) {
	for _, e := range b.Elems {
		if e.IsNull() {
			return types.Bool(false), nil
		}
		if found, err := has(env, a, e); err != nil || !found {
			return types.Bool(false), err
		}
	}
	return types.Bool(true), nil
}

// comparisonSteps is the cost of the comparison of two elements in steps.
const comparisonSteps = 8

func has(env *Env, a *types.Array, e types.Datum) (bool, error) {
	for i, x := range a.Elems {
		if !x.IsNull() && types.Equal(x, e, a.Elem) {
			return true, env.Step(comparisonSteps * (i + 1))
		}
	}
	return false, env.Step(comparisonSteps * (len(a.Elems) + 1))
}

// overlap reports whether an element of b equals one of a.
func overlap(env *Env, a, b *types.Array) (types.Datum, error) {
	for _, e := range b.Elems {
		if e.IsNull() {
			continue
		}
		if found, err := has(env, a, e); err != nil || found {
			return types.Bool(found), err
		}
	}
	return types.Bool(false), nil
}
