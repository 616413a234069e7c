package builtin

import (
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// behindFuncs are the functions that are not declared by their names, since operators, casts, types and indexes use them: int4pl, int4in,
// btint4cmp. None of their names is that of a declared function.
var behindFuncs = sync.OnceValue(func() overloads {
	b := behind{}
	b.operators()
	b.casts()
	b.types()
	b.comparisons()
	b.extremes()
	b.synonyms()
	return overloads(b)
})

// functionsNamed returns the overloads of the functions with a name.
func functionsNamed(name string) []*Overload {
	if all := functions()[name]; all != nil {
		return all
	}
	return behindFuncs()[name]
}

// behind collects overloads by name.
type behind overloads

// extremes declares the functions of which max and min consist: int4larger, text_smaller.
func (b behind) extremes() {
	rows := pgdata.Aggregates()
	for row, oid := range rows.OIDs {
		agg, fn := ProcByOID(types.OID(oid)), ProcByOID(types.OID(rows.Number(row, "aggtransfn")))
		if agg == nil || fn == nil || agg.Name != "max" && agg.Name != "min" || len(fn.Args) != 2 || fn.Args[0] != fn.Args[1] {
			continue
		}
		args := typesOf(fn.Args)
		if args[0].IsPolymorphic() {
			continue
		}
		sign := 1
		if agg.Name == "min" {
			sign = -1
		}
		b.add(fn.OID, &Overload{Args: args, Ret: args[0], Strict: true, Fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if sign*types.Compare(a[0], a[1], args[0]) >= 0 {
				return a[0], nil
			}
			return a[1], nil
		}})
	}
}

// synonyms declares the functions that do the same as a declared one under another name.
func (b behind) synonyms() {
	found := map[string]*Overload{}
	for _, all := range []overloads{functions(), overloads(b)} {
		for _, list := range all {
			for _, o := range list {
				if row, short, ok := o.procRow(); ok && !short {
					found[implementation(row)] = o
				}
			}
		}
	}
	for row, oid := range pgdata.Procs().OIDs {
		if o := found[implementation(row)]; o != nil && implementation(row) != "" {
			b.add(types.OID(oid), o)
		}
	}
}

// add declares a function for a row of pg_proc, unless it is declared.
func (b behind) add(oid types.OID, from *Overload) {
	p := ProcByOID(oid)
	if p == nil || functions()[p.Name] != nil || len(p.Args) != len(from.Args) {
		return
	}
	for _, o := range b[p.Name] {
		if o.Signature() == p.Signature {
			return
		}
	}
	o := *from
	o.Name, o.operator = p.Name, false
	o.declared = &o
	b[p.Name] = append(b[p.Name], &o)
}

func (b behind) operators() {
	rows := pgdata.Operators()
	for name, list := range operators() {
		for _, o := range list {
			if row, ok := operatorRow(name, o.Args); ok {
				b.add(types.OID(rows.Number(row, "oprcode")), o)
			}
		}
	}
}

// casts declares the functions of casts.
func (b behind) casts() {
	rows := pgdata.Casts()
	for _, row := range CastRows() {
		p := ProcByOID(types.OID(rows.Number(row, "castfunc")))
		if p == nil {
			continue
		}
		to := types.Type{OID: types.OID(rows.Number(row, "casttarget")), Mod: -1}
		args := typesOf(p.Args)
		cast, ok := FindCast(args[0], to, Explicit)
		if !ok {
			continue
		}
		fn := func(env *Env, a []types.Datum) (types.Datum, error) { return cast.Apply(env, a[0]) }
		if len(args) == 2 { // The second argument is a modifier.
			fn = func(env *Env, a []types.Datum) (types.Datum, error) {
				limited := to
				limited.Mod = int32(a[1].Int())
				c, _ := FindCast(args[0], limited, Explicit)
				return c.Apply(env, a[0])
			}
		}
		b.add(p.OID, &Overload{Args: args, Ret: to, Strict: true, Volatility: cast.volatility(), Fn: fn})
	}
}

// types declares the input and output functions of the types whose values a call can have.
func (b behind) types() {
	rows := pgdata.Types()
	for row, oid := range rows.OIDs {
		t := types.Type{OID: types.OID(oid), Mod: -1}
		if t.KindOf() == types.KindNull || t.IsArray() && !t.IsVector() || t.OID == types.OIDRecord {
			continue
		}
		volatility := Immutable
		if dependsOnFormat(t) {
			volatility = Stable
		}
		declare := func(column string, ret types.Type, fn Func) {
			p := ProcByOID(types.OID(rows.Number(row, column)))
			if p == nil {
				return
			}
			b.add(p.OID, &Overload{Args: typesOf(p.Args), Ret: ret, Strict: true, Volatility: volatility, Fn: fn})
		}
		declare("typinput", t, func(env *Env, a []types.Datum) (types.Datum, error) {
			in := t
			if len(a) == 3 {
				in.Mod = int32(a[2].Int())
			}
			return env.ParseText(in, a[0].Text())
		})
		declare("typoutput", types.Type{OID: types.OIDCstring, Mod: -1}, func(env *Env, a []types.Datum) (types.Datum, error) {
			if err := env.ReserveText(a[0]); err != nil {
				return types.Null, err
			}
			return types.Text(env.Format.Text(a[0], t)), nil
		})
		if types.RequireBinary(t) == nil {
			declare("typsend", types.TBytea, func(env *Env, a []types.Datum) (types.Datum, error) {
				return types.Bytes(types.AppendBinary(nil, a[0], t)), nil
			})
		}
		b.modifiers(row, t)
	}
}

// modifiers declares the functions that read and print a type's modifiers.
func (b behind) modifiers(row int, t types.Type) {
	rows := pgdata.Types()
	cstring := types.Type{OID: types.OIDCstring, Mod: -1}
	if p := ProcByOID(types.OID(rows.Number(row, "typmodout"))); p != nil {
		b.add(p.OID, &Overload{Args: typesOf(p.Args), Ret: cstring, Strict: true, Fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			with := t
			with.Mod = int32(a[0].Int())
			return types.Text(strings.TrimPrefix(with.String(), TypeName(t))), nil
		}})
	}
}

// comparisons declares the support functions of btree operator classes that compare two values.
func (b behind) comparisons() {
	rows := pgdata.AmProcs()
	for row := range rows.Len() {
		p := ProcByOID(types.OID(rows.Number(row, "amproc")))
		switch rows.Value(row, "amprocnum") {
		case "1":
			if cmp := compareFunc(typesOf(p.Args)); cmp != nil {
				b.add(p.OID, cmp)
			}
		case "4": // Equal values are the same bytes, in any collation that there is.
			b.add(p.OID, &Overload{Args: typesOf(p.Args), Ret: types.TBool, Strict: true, Fn: constant(types.Bool(true))})
		}
	}
}

// compareFunc returns the function that compares values of two types by the operators < and =, nil if there are none.
func compareFunc(args []types.Type) *Overload {
	less, equal := findExact(operators()["<"], args), findExact(operators()["="], args)
	if less == nil || equal == nil || less.Fn == nil || equal.Fn == nil {
		return nil
	}
	return &Overload{Args: args, Ret: types.TInt4, Strict: true, Volatility: less.Volatility, Fn: func(env *Env, a []types.Datum) (types.Datum, error) {
		for n, o := range []*Overload{less, equal} {
			is, err := o.Fn(env, a)
			if err != nil {
				return types.Null, err
			}
			if is.Bool() {
				return types.Int(int64(n - 1)), nil
			}
		}
		return types.Int(1), nil
	}}
}
