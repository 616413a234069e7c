package builtin

import (
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/types"
)

// A function is leakproof if it reveals nothing about its arguments but by its result: it never fails for some of their values. Conditions
// made of such functions alone may be evaluated for rows that a policy hides. The lists are those of PostgreSQL's pg_proc.proleakproof.

// leakproofFuncs are the functions and operators other than comparisons and casts.
const leakproofFuncs = "md5(text);md5(bytea);sha224(bytea);sha256(bytea);sha384(bytea);sha512(bytea);starts_with(text,text);^@(text,text);" +
	"gen_random_uuid()"

// leakproofCasts are the casts by a function, from and to.
const leakproofCasts = "bool int4;int4 bool;int2 int4;int2 int8;int4 int8;oid int8;int2 float4;int4 float4;int8 float4;int2 float8;" +
	"int4 float8;int8 float8;float4 float8;int2 numeric;int4 numeric;int8 numeric;float4 numeric;float8 numeric;name text;name varchar;" +
	"text name;varchar name;bpchar name;time interval"

// leakproofComparisons are the types whose comparisons are leakproof.
const leakproofComparisons = "bool;char;name;text;varchar;bpchar;bytea;int2;int4;int8;oid;float4;float8;date;time;timestamp;timestamptz;" +
	"interval;uuid;regclass;regtype;regrole;regnamespace;regproc;regprocedure;regoper;regoperator"

var leakproof = sync.OnceValue(func() (l struct {
	funcs       map[string]bool
	casts       map[castKey]bool
	comparisons map[types.OID]bool
}) {
	l.funcs, l.casts, l.comparisons = map[string]bool{}, map[castKey]bool{}, map[types.OID]bool{}
	for sig := range strings.SplitSeq(leakproofFuncs, ";") {
		l.funcs[sig] = true
	}
	for cast := range strings.SplitSeq(leakproofCasts, ";") {
		from, to, _ := strings.Cut(cast, " ")
		l.casts[castKey{mustType(from).OID, mustType(to).OID}] = true
	}
	for name := range strings.SplitSeq(leakproofComparisons, ";") {
		l.comparisons[mustType(name).OID] = true
	}
	return l
})

// Leakproof reports whether the function reveals nothing about its arguments but by its result.
func (o *Overload) Leakproof() bool {
	if o.declared != nil && o.declared.user != nil {
		return o.declared.user.Leakproof
	}
	names := make([]string, len(o.Args))
	for i, t := range o.Args {
		if info := t.Info(); info != nil {
			names[i] = info.Name
		}
	}
	return leakproof().funcs[o.Name+"("+strings.Join(names, ",")+")"]
}

// Leakproof reports whether the cast reveals nothing about the value but by its result.
func (c *Cast) Leakproof() bool {
	switch {
	case c.mod:
		return false
	case c.kind == castNone || c.binary:
		return true
	case c.kind == castArray:
		return c.inner.Leakproof()
	case c.kind == castDomain: // An error tells that a constraint is violated.
		return !c.To.Def.Constrained() && c.inner.Leakproof()
	}
	return c.kind == castFunc && leakproof().casts[castKey{c.From.OID, c.To.OID}]
}

// LeakproofComparison reports whether comparing two values of a type reveals nothing about them but by its result.
func LeakproofComparison(t types.Type) bool { return leakproof().comparisons[t.Underlying().OID] }
