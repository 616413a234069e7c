package builtin

import (
	"bytes"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func enumFuncs() []decl {
	out := []decl{
		{sig: "enum_first(anyenum) anyenum", bind: enumEnd(true), flags: nonStrict | stable},
		{sig: "enum_last(anyenum) anyenum", bind: enumEnd(false), flags: nonStrict | stable},
		{sig: "enum_range(anyenum) anyarray", bind: enumRange, flags: nonStrict | stable},
		{sig: "enum_range(anyenum,anyenum) anyarray", bind: enumRange, flags: nonStrict | stable},
		{sig: "enum_cmp(anyenum,anyenum) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(int64(bytes.Compare(a[0].Bytes(), a[1].Bytes()))), nil
		}},
		{sig: "enum_smaller(anyenum,anyenum) anyenum", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if bytes.Compare(a[0].Bytes(), a[1].Bytes()) < 0 {
				return a[0], nil
			}
			return a[1], nil
		}},
		{sig: "enum_larger(anyenum,anyenum) anyenum", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if bytes.Compare(a[0].Bytes(), a[1].Bytes()) > 0 {
				return a[0], nil
			}
			return a[1], nil
		}},
	}
	for _, c := range []struct{ op, name string }{{"=", "eq"}, {"<>", "ne"}, {"<", "lt"}, {"<=", "le"}, {">", "gt"}, {">=", "ge"}} {
		for _, cmp := range comparisons {
			if test := cmp.test; cmp.op == c.op {
				out = append(out, decl{sig: "enum_" + c.name + "(anyenum,anyenum) bool", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					return types.Bool(test(compareBytes(env, a[0], a[1]))), nil
				}})
			}
		}
	}
	return out
}

// enumEnd binds enum_first or enum_last; the argument only says which type.
func enumEnd(first bool) func(*Overload) Func {
	return func(o *Overload) Func {
		def := o.Args[0].Def
		return func(env *Env, _ []types.Datum) (types.Datum, error) {
			if len(def.Labels) == 0 {
				return types.Null, pgerror.New(pgerror.ObjectNotInPrerequisite, "enum %s contains no values", TypeName(def.Type()))
			}
			l := &def.Labels[0]
			if !first {
				l = &def.Labels[len(def.Labels)-1]
			}
			return types.Bytes(l.Position), def.Usable(l, &env.Format)
		}
	}
}

// enumRange binds enum_range; NULL is no bound.
func enumRange(o *Overload) Func {
	def := o.Args[0].Def
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		low, high := 0, len(def.Labels)-1
		if len(a) == 2 {
			if _, place, ok := def.Label(a[0]); ok && !a[0].IsNull() {
				low = place
			}
			if _, place, ok := def.Label(a[1]); ok && !a[1].IsNull() {
				high = place
			}
		}
		out := &types.Array{Elem: def.Type(), Elems: []types.Datum{}}
		for i := low; i <= high; i++ {
			if err := def.Usable(&def.Labels[i], &env.Format); err != nil {
				return types.Null, err
			}
			out.Elems = append(out.Elems, types.Bytes(def.Labels[i].Position))
		}
		return types.NewArray(out), nil
	}
}
