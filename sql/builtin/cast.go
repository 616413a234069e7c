package builtin

import (
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// CastContext is where a cast is applied: an implicit cast anywhere, an assignment cast where a value is stored, an
// explicit one where it is written.
type CastContext int

// The contexts, each of which includes the previous ones.
const (
	Implicit CastContext = iota
	Assignment
	Explicit
)

// castKind is the implementation of a cast.
type castKind uint8

const (
	castNone   castKind = iota // the datum is unchanged
	castFunc                   // by a function
	castIO                     // through the text form
	castArray                  // element by element
	castDomain                 // to a domain: to its type, and its constraints are checked
)

// Cast converts datums of From to datums of To, including To's modifier.
type Cast struct {
	From, To types.Type
	Context  CastContext // the requested one

	kind  castKind
	fn    Func  // castFunc
	inner *Cast // of the elements (castArray), to the type below the domain (castDomain)
	mod   bool  // To's modifier must be applied

	fixed Volatility // of castFunc, if it is declared

	binary bool // castFunc only because datums differ

	user *UserCast    // nil: PostgreSQL's own
	call *RoutineCall // of a cast by a routine of a user
}

// castMethods is PostgreSQL's pg_cast for percodb's types: "from to" is followed by the context (i
// implicit, a assignment, e explicit) and the method (b binary, f function, t through the text form).
const castMethods = `
bool bpchar af;bool int4 ef;bool text af;bool varchar af;bpchar char af;bpchar name if;bpchar text if;
bpchar varchar if;char bpchar af;char int4 ef;char text if;char varchar af;date timestamp if;date timestamptz if;
float4 float8 if;float4 int2 af;float4 int4 af;float4 int8 af;float4 numeric af;float8 float4 af;float8 int2 af;
float8 int4 af;float8 int8 af;float8 numeric af;int2 float4 if;int2 float8 if;int2 int4 if;int2 int8 if;
int2 numeric if;int2 oid if;int2 regnamespace if;int2 regrole if;int2 regclass if;int2 regtype if;int4 bool ef;int4 char ef;int4 float4 if;
int4 float8 if;int4 int2 af;int4 int8 if;int4 numeric if;int4 oid ib;int4 regnamespace ib;int4 regrole ib;int4 regclass ib;int4 regtype ib;
int8 float4 if;int8 float8 if;int8 int2 af;int8 int4 af;int8 numeric if;int8 oid if;int8 regnamespace if;int8 regrole if;int8 regclass if;
int8 regtype if;interval time af;name bpchar af;name text if;name varchar af;numeric float4 if;numeric float8 if;
numeric int2 af;numeric int4 af;numeric int8 af;oid int4 ab;oid int8 af;oid regclass ib;oid regnamespace ib;oid regrole ib;oid regtype ib;
regnamespace int4 ab;regnamespace int8 af;regnamespace oid ib;
regrole int4 ab;regrole int8 af;regrole oid ib;regclass int4 ab;regclass int8 af;regclass oid ib;regtype int4 ab;regtype int8 af;regtype oid ib;text bpchar ib;
text char af;text name if;text regclass if;text varchar ib;time interval if;timestamp date af;timestamp time af;
timestamp timestamptz if;timestamptz date af;timestamptz time af;timestamptz timestamp af;varchar bpchar ib;
varchar char af;varchar name if;varchar regclass if;varchar text ib;
int2 regproc if;int4 regproc ib;int8 regproc if;oid regproc ib;regproc oid ib;regproc int4 ab;regproc int8 af;regproc regprocedure ib;
int2 regprocedure if;int4 regprocedure ib;int8 regprocedure if;oid regprocedure ib;regprocedure oid ib;regprocedure int4 ab;
regprocedure int8 af;regprocedure regproc ib;
int2 regoper if;int4 regoper ib;int8 regoper if;oid regoper ib;regoper oid ib;regoper int4 ab;regoper int8 af;regoper regoperator ib;
int2 regoperator if;int4 regoperator ib;int8 regoperator if;oid regoperator ib;regoperator oid ib;regoperator int4 ab;
regoperator int8 af;regoperator regoper ib;
pg_node_tree text ib;json jsonb at;jsonb json at;jsonb bool ef;jsonb numeric ef;jsonb int2 ef;jsonb int4 ef;jsonb int8 ef;jsonb float4 ef;jsonb float8 ef`

type castKey struct{ from, to types.OID }

type castEntry struct {
	context CastContext
	fn      Func // nil: the datum stays as it is
	binary  bool // PostgreSQL has no function for it
	text    bool // through the text form

	withMod    func(mod int32) Func // the function for a modifier, which it applies
	volatility Volatility
	unnamed    bool // no function is named like the type
}

var castTable = sync.OnceValue(func() map[castKey]castEntry {
	m := map[castKey]castEntry{}
	for line := range strings.SplitSeq(castMethods, ";") {
		part := strings.Fields(line)
		key := castKey{mustType(part[0]).OID, mustType(part[1]).OID}
		e := castEntry{context: CastContext(strings.IndexByte("iae", part[2][0]))}
		switch part[2][1] {
		case 't':
			e.text = true
		case 'f':
			if e.fn = castFunction(key.from, key.to); e.fn == nil {
				panic("builtin: no function for the cast " + line)
			}
		default:
			e.fn, e.binary = reinterpret(key.from, key.to), true
		}
		m[key] = e
	}
	addCasts(m)
	return m
})

// castFuncs declares the functions that are named like the type they cast to: int4(float8).
func castFuncs() []decl {
	var out []decl
	for key, e := range castTable() {
		if e.binary || e.text || e.unnamed || !namedLikeType(key) {
			continue
		}
		from, to := types.Type{OID: key.from, Mod: -1}.Info().Name, types.Type{OID: key.to, Mod: -1}.Info().Name
		f := flags(0)
		if e.volatility != Immutable || castVolatility(key.from, key.to) != Immutable {
			f = stable
		}
		out = append(out, decl{to + "(" + from + ") " + to, e.fn, f, nil})
	}
	return append(out, modifierFuncs()...)
}

// modifierFuncs declares the functions of a type's cast to itself, which apply a modifier: numeric(numeric,int4).
func modifierFuncs() []decl {
	var out []decl
	for _, args := range []string{"bpchar,int4,bool", "varchar,int4,bool", "numeric,int4", "time,int4", "timetz,int4",
		"timestamp,int4", "timestamptz,int4", "interval,int4"} {
		name, _, _ := strings.Cut(args, ",")
		t := mustType(name)
		out = append(out, decl{sig: name + "(" + args + ") " + name, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			limited := t
			limited.Mod = int32(a[1].Int())
			return ApplyMod(a[0], limited, len(a) > 2 && a[2].Bool())
		}})
	}
	return out
}

// namedLikeType excludes the functions that PostgreSQL names differently from the type.
func namedLikeType(key castKey) bool {
	switch key.to {
	case types.OIDInt8: // Of these types it is the function of oid.
		switch key.from {
		case types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure,
			types.OIDRegoper, types.OIDRegoperator:
			return false
		}
	case types.OIDChar: // Of these types it is the function of text.
		return key.from != types.OIDBPChar && key.from != types.OIDVarchar
	case types.OIDOid:
		return key.from != types.OIDInt2
	case types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator:
		return key.from != types.OIDInt2 && key.from != types.OIDInt8 && key.from != types.OIDVarchar
	case types.OIDBPChar:
		return key.from != types.OIDBool
	case types.OIDVarchar:
		return key.from != types.OIDBool && key.from != types.OIDChar && key.from != types.OIDBPChar
	}
	return true
}

// FindCast returns the cast between two types that the context allows. Casting a type to itself
// applies the modifier.
func FindCast(from, to types.Type, context CastContext) (*Cast, bool) {
	return (*Casts)(nil).Find(from, to, context)
}

// Find is FindCast with the casts that users have defined.
func (s *Casts) Find(from, to types.Type, context CastContext) (*Cast, bool) {
	c := &Cast{From: from, To: to, Context: context}
	if to.IsDomain() && from.OID != to.OID {
		inner, ok := s.Find(from, to.Underlying(), context)
		c.kind, c.inner = castDomain, inner
		return c, ok
	}
	c.mod = to.Mod >= 0 && (from.OID != to.OID || from.Mod != to.Mod)
	switch {
	case from.OID == to.OID:
		return c, true
	case from.OID == types.OIDUnknown:
		c.kind = castIO
		return c, to.KindOf() != types.KindNull || to.OID == types.OIDVoid
	case to.OID == types.OIDUnknown:
		return nil, false
	}
	if from.IsDomain() {
		return s.Find(from.Underlying(), to, context)
	}
	if u := s.lookup(from.OID, to.OID); u != nil {
		if u.Context > context {
			return nil, false
		}
		return c, c.byUser(u)
	}
	if e, ok := castTable()[castKey{from.OID, to.OID}]; ok {
		if e.context > context {
			return nil, false
		}
		if e.text {
			c.kind = castIO
		}
		c.fixed = e.volatility
		if e.withMod != nil {
			c.kind, c.fn, c.mod = castFunc, e.withMod(to.Mod), false
			return c, true
		}
		if e.fn != nil && !sameDatum(from.OID, to.OID) {
			c.kind, c.fn, c.binary = castFunc, e.fn, e.binary
		}
		return c, true
	}
	if rt := from.Ranges(); rt != nil && rt.Multi.OID == to.OID && context == Explicit {
		c.kind, c.fn = castFunc, func(env *Env, a []types.Datum) (types.Datum, error) { return toMultirange(env, rt, a) }
		return c, true
	}
	fromElem, toElem := from.Elem(), to.Elem()
	if fromElem.Valid() && toElem.Valid() && !to.IsVector() {
		elem, ok := s.Find(fromElem, toElem, context)
		c.kind, c.inner = castArray, elem
		return c, ok
	}
	if from.IsComposite() && to.OID == types.OIDRecord {
		return c, true
	}
	if from.IsComposite() && to.IsComposite() {
		return nil, false
	}
	if to.KindOf() == types.KindNull || from.KindOf() == types.KindNull || to.OID == types.OIDRecord {
		return nil, false
	}
	if context >= Assignment && to.Category() == types.CategoryString ||
		context == Explicit && from.Category() == types.CategoryString {
		c.kind = castIO
		return c, true
	}
	return nil, false
}

// sameDatum reports whether a cast that PostgreSQL implements by a function leaves percodb's datum unchanged.
func sameDatum(from, to types.OID) bool {
	switch to {
	case types.OIDInt8:
		return from == types.OIDInt4 || from == types.OIDInt2
	case types.OIDInt4:
		return from == types.OIDInt2
	case types.OIDFloat8:
		return from == types.OIDFloat4
	case types.OIDText:
		return from == types.OIDName
	}
	return false
}

// CannotCast is the error for a pair of types without a cast (42846).
func CannotCast(from, to types.Type) *pgerror.Error {
	return pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", TypeName(from), TypeName(to))
}

// NoOp reports whether Apply returns its argument unchanged, so that the caller may leave it out.
func (c *Cast) NoOp() bool {
	if c.kind == castDomain {
		return !c.To.Def.Constrained() && c.inner.NoOp()
	}
	return c.kind == castNone && !c.mod
}

// Strict reports whether Apply returns NULL for NULL without a look at anything else.
func (c *Cast) Strict() bool { return c.kind != castDomain || !c.To.Def.Constrained() }

// Volatility returns when the cast's result may change: a text form may depend on the session.
func (c *Cast) Volatility() Volatility { return c.volatility() }

// Varies reports whether the cast's result may depend on more than its operand, as far as a definition may not: the constraints of domains
// count as fixed.
func (c *Cast) Varies() bool { return c.kind != castDomain && c.volatility() != Immutable }

// functional reports whether f(x) can mean the cast if no function f exists.
func (c *Cast) functional() bool { return c.kind == castNone || c.kind == castIO || c.binary }

func (c *Cast) volatility() Volatility {
	switch c.kind {
	case castFunc:
		return max(c.fixed, castVolatility(c.From.OID, c.To.OID))
	case castArray:
		return c.inner.volatility()
	case castDomain:
		return Stable // The schema may change the constraints.
	case castIO:
		if dependsOnFormat(c.From) || readingDepends(c.To) {
			return Stable
		}
	}
	return Immutable
}

// dependsOnFormat reports whether a type's text form depends on settings.
func dependsOnFormat(t types.Type) bool {
	t = t.Underlying()
	if e := t.Elem(); e.Valid() {
		t = e
	}
	switch t.OID {
	case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz, types.OIDInterval, types.OIDBytea,
		types.OIDFloat4, types.OIDFloat8, types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure,
		types.OIDRegoper, types.OIDRegoperator, types.OIDACLItem, types.OIDRecord:
		return true
	}
	if m := t.Methods(); m != nil {
		return m.SessionInput || m.SessionOutput
	}
	return t.Def != nil // The schema may change it.
}

// readingDepends reports whether reading a text as a value of a type depends on settings.
func readingDepends(t types.Type) bool {
	u := t.Underlying()
	if e := u.Elem(); e.Valid() {
		u = e.Underlying()
	}
	if u.OID == types.OIDFloat4 || u.OID == types.OIDFloat8 || u.OID == types.OIDBytea {
		return false
	}
	if m := u.Methods(); m != nil {
		return m.SessionInput
	}
	return dependsOnFormat(t)
}

// castVolatility: what goes through the session's time zone is stable only.
func castVolatility(from, to types.OID) Volatility {
	if (from == types.OIDTimestamptz) != (to == types.OIDTimestamptz) || to == types.OIDRegclass {
		return Stable
	}
	return Immutable
}

// Apply casts d; NULL stays NULL.
func (c *Cast) Apply(env *Env, d types.Datum) (types.Datum, error) {
	if c.kind == castDomain {
		return c.applyDomain(env, d)
	}
	if d.IsNull() {
		return d, nil
	}
	var err error
	switch c.kind {
	case castFunc:
		env.castArg[0] = d
		if d, err = c.fn(env, env.castArg[:]); err != nil {
			return types.Null, err
		}
	case castIO:
		if c.From.OID == types.OIDUnknown {
			return c.fromLiteral(env, d)
		}
		if err = c.reserveText(env, d); err != nil {
			return types.Null, err
		}
		if d, err = env.ParseText(c.To.Base(), env.Format.Text(d, c.From)); err != nil {
			return types.Null, err
		}
	case castArray:
		return c.applyArray(env, d.Array())
	}
	if c.mod {
		return ApplyMod(d, c.To, c.Context == Explicit)
	}
	return d, nil
}

// reserveText reserves the text form of d.
func (c *Cast) reserveText(env *Env, d types.Datum) error {
	if c.From.OID == types.OIDJSONB {
		return env.Reserve(jsonb.TextBytes(len(d.Bytes())))
	}
	return env.ReserveText(d)
}

// fromLiteral reads an untyped literal. Its modifier is applied as a cast would.
func (c *Cast) fromLiteral(env *Env, d types.Datum) (types.Datum, error) {
	t := c.To
	if t.Mod >= 0 && t.OID != types.OIDInterval {
		t = t.Base()
	}
	d, err := env.ParseText(t, d.Text())
	if err != nil || !c.mod {
		return d, err
	}
	return ApplyMod(d, c.To, c.Context == Explicit)
}

func (c *Cast) applyDomain(env *Env, d types.Datum) (types.Datum, error) {
	d, err := c.inner.Apply(env, d)
	if err == nil && c.To.Def.Constrained() {
		err = env.CheckDomain(c.To.Def, d)
	}
	return d, err
}

// CheckDomain fails unless d satisfies the constraints of a domain.
func (e *Env) CheckDomain(domain *types.Defined, d types.Datum) error {
	if e.Format.Domains == nil {
		return errNoService("a value of domain " + TypeName(domain.Type()))
	}
	return e.Format.Domains.CheckDomain(domain, d)
}

func (c *Cast) applyArray(env *Env, a *types.Array) (types.Datum, error) {
	elems := make([]types.Datum, len(a.Elems))
	for i, d := range a.Elems {
		var err error
		if elems[i], err = c.inner.Apply(env, d); err != nil {
			return types.Null, err
		}
	}
	return a.WithElems(c.To.Elem(), elems), nil
}

// ApplyMod applies t's modifier to a datum of t's type: it truncates and pads strings, rounds numbers and times. Unless
// explicit, a string that loses more than blanks is 22001.
func ApplyMod(d types.Datum, t types.Type, explicit bool) (types.Datum, error) {
	if d.IsNull() || t.Mod < 0 {
		return d, nil
	}
	switch t.OID {
	case types.OIDVarchar:
		return types.LimitVarchar(d.Text(), t.Mod, explicit)
	case types.OIDBPChar:
		return types.LimitBPChar(d.Text(), t.Mod, explicit)
	case types.OIDNumeric:
		n, err := types.LimitNumeric(d.Decimal(), t.Mod)
		if err != nil {
			return types.Null, err
		}
		return types.Decimal(n), nil
	case types.OIDTime:
		return types.Int(types.RoundMicros(d.Int(), t.Mod)), nil
	case types.OIDTimestamp, types.OIDTimestamptz:
		return types.Int(types.RoundTimestamp(d.Int(), t.Mod)), nil
	case types.OIDInterval:
		return types.NewInterval(types.LimitInterval(d.Interval(), t.Mod)), nil
	}
	if m := t.Methods(); m != nil && m.Limit != nil {
		return m.Limit(d, t.Mod, explicit)
	}
	elem := t.Elem()
	if !elem.Valid() {
		return d, nil
	}
	a := d.Array()
	elems := make([]types.Datum, len(a.Elems))
	for i, e := range a.Elems {
		var err error
		if elems[i], err = ApplyMod(e, elem, explicit); err != nil {
			return types.Null, err
		}
	}
	return a.WithElems(elem, elems), nil
}
