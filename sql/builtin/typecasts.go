package builtin

import (
	"github.com/percodb/percodb/sql/types"
)

// typeCast is a row of pg_cast of a type whose declarations are in a file of their own.
type typeCast struct {
	from, to string
	context  CastContext
	// fn converts; nil with io unset: the datum is the same.
	fn Func
	// withMod returns the function that converts to a modifier and applies it.
	withMod func(mod int32) Func
	// binary: PostgreSQL has no function for it, although datums differ.
	binary bool
	// io: through the text form.
	io bool
	// volatility is that of the function.
	volatility Volatility
	// unnamed: the function has another name than the type.
	unnamed bool
}

// addCasts adds the casts of the types that have files of their own.
func addCasts(m map[castKey]castEntry) {
	for _, list := range [][]typeCast{bitCasts(), inetCasts(), moneyCasts(), pgidCasts(), timetzCasts(), geoCasts(), hstoreCasts(), citextCasts(), objectNameCasts()} {
		for _, c := range list {
			m[castKey{mustType(c.from).OID, mustType(c.to).OID}] = castEntry{
				context: c.context, fn: c.fn, withMod: c.withMod, binary: c.binary || c.fn == nil && c.withMod == nil && !c.io, text: c.io,
				volatility: c.volatility, unnamed: c.unnamed,
			}
		}
	}
}

// fn1 declares a function of one argument that needs no environment.
func fn1(f func(a types.Datum) (types.Datum, error)) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return f(a[0]) }
}

// fn2 declares a function of two arguments that needs no environment.
func fn2(f func(a, b types.Datum) (types.Datum, error)) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return f(a[0], a[1]) }
}

// comparisonFuncs declares the functions behind a type's comparison operators, by their names' prefix: "network_eq", and the one of its
// btree operator class.
func comparisonFuncs(prefix, typeName, class string) []decl {
	t := mustType(typeName)
	args := "(" + typeName + "," + typeName + ") "
	var out []decl
	for i, suffix := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		test := comparisons[i].test
		out = append(out, decl{sig: prefix + suffix + args + "bool", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Bool(test(types.Compare(a, b, t))), nil
		})})
	}
	return append(out, decl{sig: class + args + "int4", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Int(int64(types.Compare(a, b, t))), nil
	})})
}
