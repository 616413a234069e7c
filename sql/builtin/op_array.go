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
		{sig: "@>(anyarray,anyarray) bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bool(contains(a[0].Array(), a[1].Array())), nil
		}},
		{sig: "<@(anyarray,anyarray) bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bool(contains(a[1].Array(), a[0].Array())), nil
		}},
		{sig: "&&(anyarray,anyarray) bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bool(overlap(a[0].Array(), a[1].Array())), nil
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

// arrayAppend puts an element after an array, of which NULL is the empty one.
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
func contains(a, b *types.Array) bool {
	for _, e := range b.Elems {
		if e.IsNull() || !has(a, e) {
			return false
		}
	}
	return true
}

func has(a *types.Array, e types.Datum) bool {
	for _, x := range a.Elems {
		if !x.IsNull() && types.Equal(x, e, a.Elem) {
			return true
		}
	}
	return false
}

func overlap(a, b *types.Array) bool {
	for _, e := range b.Elems {
		if !e.IsNull() && has(a, e) {
			return true
		}
	}
	return false
}
