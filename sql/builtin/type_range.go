package builtin

import (
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rangeFn makes the function of a resolved overload from the range types of its first argument that has such.
type rangeFn func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error)

func onRanges(f rangeFn) func(*Overload) Func {
	return func(o *Overload) Func {
		var rt *types.RangeTypes
		for _, t := range o.Args {
			if rt = t.Underlying().Ranges(); rt != nil {
				break
			}
		}
		return func(env *Env, a []types.Datum) (types.Datum, error) { return f(env, rt, a) }
	}
}

// rangePairs are the pairs of types for which the tests are declared, with what begins the names of their functions and ends them.
var rangePairs = []struct{ args, prefix, suffix string }{
	{"(anyrange,anyrange) ", "range_", ""}, {"(anyrange,anymultirange) ", "range_", "_multirange"},
	{"(anymultirange,anyrange) ", "multirange_", "_range"}, {"(anymultirange,anymultirange) ", "multirange_", "_multirange"},
}

// rangeDecls declares the operators on ranges and multiranges, or with names the functions behind them.
func rangeDecls(names bool) []decl {
	var out []decl
	add := func(op, name, sig string, f rangeFn) {
		if names {
			op = name
		}
		out = append(out, decl{sig: op + sig, bind: onRanges(f)})
	}
	for _, p := range rangePairs {
		for _, c := range rangeTests {
			add(c.op, p.prefix+c.verb+p.suffix, p.args+"bool", func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
				return types.Bool(c.test(rt, piecesOf(a, 0), piecesOf(a, 1))), nil
			})
		}
	}
	element := func(within, value int) rangeFn {
		return func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
			return types.Bool(piecesOf(a, within).contains(rt, a[value])), nil
		}
	}
	for _, kind := range []string{"range", "multirange"} {
		add("@>", kind+"_contains_elem", "(any"+kind+",anyelement) bool", element(0, 1))
		add("<@", "elem_contained_by_"+kind, "(anyelement,any"+kind+") bool", element(1, 0))
		args := "(any" + kind + ",any" + kind + ") "
		for i, suffix := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
			test, t := comparisons[i], kind == "range"
			add(test.op, kind+"_"+suffix, args+"bool", func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
				return types.Bool(test.test(compareRanges(rt, t, a))), nil
			})
		}
	}
	add("+", "range_union", "(anyrange,anyrange) anyrange", func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		return rangeUnion(rt, a, false)
	})
	add("*", "range_intersect", "(anyrange,anyrange) anyrange", func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		out, err := piecesOf(a, 0).intersect(env, rt, piecesOf(a, 1))
		return rangeOfOne(rt, out, err)
	})
	add("-", "range_minus", "(anyrange,anyrange) anyrange", func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		out, err := piecesOf(a, 0).minus(env, rt, piecesOf(a, 1))
		return rangeOfOne(rt, out, err)
	})
	const multi = "(anymultirange,anymultirange) anymultirange"
	add("+", "multirange_union", multi, func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		x, y := piecesOf(a, 0), piecesOf(a, 1)
		if err := env.reserveList(len(x) + len(y)); err != nil {
			return types.Null, err
		}
		return multirangeOf(env, rt, slices.Concat(x, y), nil)
	})
	add("*", "multirange_intersect", multi, func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		out, err := piecesOf(a, 0).intersect(env, rt, piecesOf(a, 1))
		return multirangeOf(env, rt, out, err)
	})
	add("-", "multirange_minus", multi, func(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
		out, err := piecesOf(a, 0).minus(env, rt, piecesOf(a, 1))
		return multirangeOf(env, rt, out, err)
	})
	return out
}

// compareRanges compares two ranges, or two multiranges.
func compareRanges(rt *types.RangeTypes, single bool, a []types.Datum) int {
	if single {
		return types.Compare(a[0], a[1], rt.Range)
	}
	return types.Compare(a[0], a[1], rt.Multi)
}

func rangeOps() []decl { return rangeDecls(false) }

func rangeFuncs() []decl {
	out := rangeDecls(true)
	for _, kind := range []string{"range", "multirange"} {
		t := "(any" + kind + ") "
		out = append(out,
			decl{sig: "lower" + t + "anyelement", fn: rangeEnd(func(p pieces) types.Datum { return p.low().Value })},
			decl{sig: "upper" + t + "anyelement", fn: rangeEnd(func(p pieces) types.Datum { return p.high().Value })},
			decl{sig: "lower_inc" + t + "bool", fn: rangeProperty(func(p pieces) bool { return p.low().Inclusive })},
			decl{sig: "upper_inc" + t + "bool", fn: rangeProperty(func(p pieces) bool { return p.high().Inclusive })},
			decl{sig: "lower_inf" + t + "bool", fn: rangeProperty(func(p pieces) bool { return p.low().Value.IsNull() })},
			decl{sig: "upper_inf" + t + "bool", fn: rangeProperty(func(p pieces) bool { return p.high().Value.IsNull() })},
			decl{sig: "isempty" + t + "bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Bool(len(piecesOf(a, 0)) == 0), nil
			}},
			decl{sig: kind + "_cmp(any" + kind + ",any" + kind + ") int4", bind: onRanges(func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
				return types.Int(int64(compareRanges(rt, kind == "range", a))), nil
			})},
		)
	}
	out = append(out,
		decl{sig: "range_merge(anyrange,anyrange) anyrange", bind: onRanges(func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
			return rangeUnion(rt, a, true)
		})},
		decl{sig: "range_merge(anymultirange) anyrange", bind: onRanges(func(_ *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
			p := piecesOf(a, 0)
			if len(p) == 0 {
				return rt.EmptyRange(), nil
			}
			return rt.FromBounds(p.low(), p.high())
		})},
		decl{sig: "multirange(anyrange) anymultirange", bind: onRanges(toMultirange)},
	)
	for _, rt := range types.BuiltinRanges() {
		out = append(out, rangeConstructors(rt)...)
	}
	return append(out, subtypeDifferences()...)
}

// subtypeDifferences declares the functions for the difference of two bounds, which range types may name.
func subtypeDifferences() []decl {
	ints := fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Float(float64(a.Int()) - float64(b.Int())), nil
	})
	micros := fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Float((float64(a.Int()) - float64(b.Int())) / 1e6), nil
	})
	return []decl{
		{sig: "int4range_subdiff(int4,int4) float8", fn: ints}, {sig: "int8range_subdiff(int8,int8) float8", fn: ints},
		{sig: "daterange_subdiff(date,date) float8", fn: ints}, {sig: "tsrange_subdiff(timestamp,timestamp) float8", fn: micros},
		{sig: "tstzrange_subdiff(timestamptz,timestamptz) float8", fn: micros},
		{sig: "numrange_subdiff(numeric,numeric) float8", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			d, err := SubNumeric(a.Decimal(), b.Decimal())
			if err != nil {
				return types.Null, err
			}
			v, err := NumericToFloat(d, types.TFloat8)
			return types.Float(v), err
		})},
		{sig: "float8mi(float8,float8) float8", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			v, err := SubFloat8(a.Float(), b.Float())
			return types.Float(v), err
		})},
	}
}

// rangeEnd declares a function that returns a bound, NULL of what is empty.
func rangeEnd(f func(pieces) types.Datum) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		if p := piecesOf(a, 0); len(p) > 0 {
			return f(p), nil
		}
		return types.Null, nil
	}
}

// rangeProperty declares a test, which is false for what is empty.
func rangeProperty(f func(pieces) bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		p := piecesOf(a, 0)
		return types.Bool(len(p) > 0 && f(p)), nil
	}
}

func toMultirange(env *Env, rt *types.RangeTypes, a []types.Datum) (types.Datum, error) {
	return multirangeOf(env, rt, slices.Clone(piecesOf(a, 0)), nil)
}

// rangeConstructors declares the functions named like a range type and its multirange type.
func rangeConstructors(rt *types.RangeTypes) []decl {
	name, multi, sub := rt.Range.Info().Name, rt.Multi.Info().Name, rt.Sub.Info().Name
	return []decl{
		{sig: name + "(" + sub + "," + sub + ") " + name, flags: nonStrict, fn: constructRange(rt)},
		{sig: name + "(" + sub + "," + sub + ",text) " + name, flags: nonStrict, fn: constructRange(rt)},
		{sig: multi + "() " + multi, fn: constructMultirange(rt)},
		{sig: multi + "(variadic " + name + ") " + multi, flags: nonStrict, fn: constructMultirange(rt)},
	}
}

// Exists reports whether a function, an aggregate, a set-returning or a window function has the name.
func (f FuncName) Exists() bool {
	return len(f.overloads()) > 0 || f.IsAggregate() || f.IsSet() || IsWindowFunc(f.system())
}

// ResolveConstructor finds the function that makes values of a user-defined range or multirange type.
//
// Errors: 42883 no function matches.
func ResolveConstructor(t types.Type, args []types.Type) (*Overload, error) {
	rt := t.Ranges()
	name := t.Info().Name
	o := &Overload{Name: name, Ret: t, Fn: constructMultirange(rt), Strict: len(args) < 2}
	switch {
	case t.IsRange() && len(args) >= 2 && len(args) <= 3:
		o.Args, o.Fn = []types.Type{rt.Sub, rt.Sub, types.TText}[:len(args)], constructRange(rt)
	case t.IsMultirange():
		for range args {
			o.Args = append(o.Args, rt.Range)
		}
	}
	rows := slices.Clone(args)
	for i, a := range rows {
		if a.OID == types.OIDRecord && i < len(o.Args) && o.Args[i].IsRow() {
			rows[i] = o.Args[i] // if its fields fit
		}
	}
	if len(o.Args) == len(args) && (t.IsMultirange() || len(args) > 0) && canCoerceAll(nil, rows, o.Args) {
		return o, nil
	}
	if len(args) == 1 {
		if c, ok := FindCast(args[0], t, Explicit); ok && c.functional() {
			return &Overload{Name: name, Args: args, Ret: t, Strict: true, Volatility: c.volatility(),
				Fn: func(env *Env, args []types.Datum) (types.Datum, error) { return c.Apply(env, args[0]) }}, nil
		}
	}
	return nil, ErrNoFunction(name, args)
}

func constructRange(rt *types.RangeTypes) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		flags := "[)"
		if len(a) == 3 {
			if a[2].IsNull() {
				return types.Null, pgerror.New(pgerror.DataException, "range constructor flags argument must not be null")
			}
			flags = a[2].Text()
		}
		switch flags {
		case "[]", "[)", "(]", "()":
			return rt.Make(a[0], a[1], flags[0] == '[', flags[1] == ']')
		}
		return types.Null, pgerror.New(pgerror.SyntaxError, "invalid range bound flags").
			WithHint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")
	}
}

func constructMultirange(rt *types.RangeTypes) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if len(a) == 1 && a[0].IsNull() {
			return types.Null, nil
		}
		if hasNull(a) {
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "multirange values cannot contain null members")
		}
		if err := env.reserveList(len(a)); err != nil {
			return types.Null, err
		}
		return multirangeOf(env, rt, slices.Clone(a), nil)
	}
}

func rangeSetFuncs() []setDecl {
	return []setDecl{{sig: "unnest(anymultirange) anyrange", estimate: 10, open: opens(func(_ *Env, a []types.Datum) (SetRows, error) {
		return &sliceRows{a[0].Array().Elems}, nil
	})}}
}

func rangeAggs() []aggDecl {
	collect := func(o *Overload) func() Accumulator {
		rt := o.Args[0].Underlying().Ranges()
		return func() Accumulator { return &rangeAgg{rt: rt} }
	}
	intersect := func(o *Overload) func() Accumulator {
		rt := o.Args[0].Underlying().Ranges()
		return func() Accumulator { return &rangeIntersectAgg{rt: rt} }
	}
	return []aggDecl{
		{sig: "range_agg(anyrange) anymultirange", make: collect}, {sig: "range_agg(anymultirange) anymultirange", make: collect},
		{sig: "range_intersect_agg(anyrange) anyrange", make: intersect}, {sig: "range_intersect_agg(anymultirange) anymultirange", make: intersect},
	}
}
