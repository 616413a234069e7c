package builtin

import (
	"slices"
	"strings"
	"sync"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// functions and operators are the declared overloads, built at first use and only read afterwards.
var (
	functions = sync.OnceValue(buildFunctions)
	operators = sync.OnceValue(buildOperators)
)

func buildFunctions() overloads {
	m := overloads{}
	m.add(mathFuncs(), stringFuncs(), formatFuncs(), regexFuncs(), timeFuncs(), arrayFuncs(), enumFuncs(), systemFuncs(), advisoryFuncs(), catalogFuncs(), transitionFuncs(), valueHashFuncs(), snapshotFuncs(), identFuncs(), encodingFuncs())
	m.add(jsonOpFuncs(), jsonMakeFuncs(), jsonFuncs(), populateFuncs(), jsonPathFuncs())
	m.add(bitFuncs(), inetFuncs(), moneyFuncs(), pgidFuncs(), timetzFuncs(), rangeFuncs(), geoFuncs(), textSearchFuncs(), documentFuncs())
	m.add(castFuncs())
	return m
}

func buildOperators() overloads {
	m := overloads{}
	m.add(bitOps(), inetOps(), moneyOps(), pgidOps(), timetzOps(), rangeOps(), geoOps(), textSearchOps(false), documentOps())
	m.add(compareOps(), arithOps(), stringOps(), timeOps(), arrayOps(), aclOps(), jsonOps(), jsonPathOps())
	for _, list := range m {
		for _, o := range list {
			o.operator = true
		}
	}
	return m
}

// ResolveFunc finds the overload of a function for arguments of the given types; untyped literals have TUnknown.
//
// Errors: 42883 no function matches, 42725 several do, 42804 a polymorphic type is not determined.
func ResolveFunc(name string, args []types.Type) (*Overload, error) {
	return SystemFunc(name).Resolve(args)
}

// Resolve is ResolveFunc for the functions that the name may mean.
func (f FuncName) Resolve(args []types.Type) (*Overload, error) {
	candidates := expandVariadics(f.overloads(), len(args))
	o := findExact(candidates, args)
	if o == nil {
		if o = f.castCall(args); o != nil {
			return o, nil
		}
	}
	ambiguous := false
	if o == nil {
		o, ambiguous = choose(f.Casts, candidates, args)
	}
	if ambiguous {
		return nil, pgerror.New(pgerror.AmbiguousFunction, "function %s is not unique", CallSignature(f.String(), args)).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	}
	if o == nil {
		return nil, ErrNoFunction(f.String(), args)
	}
	return o.resolved(args)
}

// ErrNoFunction returns 42883 for a call that matches no function.
func ErrNoFunction(name string, args []types.Type) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", CallSignature(name, args)).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// CallSignature formats a call's types as in PostgreSQL's messages: "lower(integer)".
func CallSignature(name string, args []types.Type) string {
	var b strings.Builder
	b.WriteString(name)
	b.WriteByte('(')
	for i, t := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(TypeName(t))
	}
	b.WriteByte(')')
	return b.String()
}

// TypeName is format_type without modifier: "character", not "bpchar".
func TypeName(t types.Type) string {
	if info := t.Info(); info != nil {
		return info.SQLName
	}
	return t.Base().String()
}

// castCall converts f(x), where f is a type's name, to the cast of x to that type if no function is needed:
// PostgreSQL's functional cast notation.
func (f FuncName) castCall(args []types.Type) *Overload {
	if len(args) != 1 {
		return nil
	}
	name := f.Name
	to := f.typeNamed()
	if !to.Valid() || to.IsPolymorphic() || name == "any" {
		return nil
	}
	c, ok := f.Casts.Find(args[0], to, Explicit)
	if !ok || args[0].OID != types.OIDUnknown && !c.functional() || args[0].IsRow() && to.Category() == types.CategoryString {
		return nil
	}
	return &Overload{
		Name: name, Args: []types.Type{args[0]}, Ret: to, Strict: true, Volatility: c.volatility(),
		Fn: func(env *Env, args []types.Datum) (types.Datum, error) { return c.Apply(env, args[0]) },
	}
}

// typeNamed returns the type that the name may mean; the zero Type if it means none.
func (f FuncName) typeNamed() types.Type {
	if f.From&System != 0 {
		if t, err := types.Lookup(f.Name, nil, 0); err == nil {
			return t
		}
	}
	if f.From&^System != 0 {
		for _, e := range extensionList() {
			if t := types.OfExtension(e.Name, f.Name); f.From.has(e) && t.Valid() {
				return t
			}
		}
	}
	return types.Type{}
}

// ResolveOperator finds the overload of an operator of PostgreSQL; l is the zero Type for a prefix operator.
//
// A domain has the operators of the type below it; errors name it. Errors: 42883 no operator matches, 42725 several do, 42804 a polymorphic
// type is not determined.
func ResolveOperator(op string, l, r types.Type) (*Overload, error) {
	return System.ResolveOperator(op, l, r)
}

// ResolveOperator is the function ResolveOperator for the operators of the sources.
func (s Sources) ResolveOperator(op string, l, r types.Type) (*Overload, error) {
	return OperatorName{Symbol: op, From: s}.Resolve(l, r)
}

// Resolve finds the operator that the name means for operands; l is the zero Type for a prefix operator. Errors are those of ResolveOperator.
func (n OperatorName) Resolve(l, r types.Type) (*Overload, error) {
	if n.Symbol == "!=" {
		n.Symbol = "<>"
	}
	args := []types.Type{l.Underlying(), r.Underlying()}
	if !l.Valid() {
		args = args[1:]
	}
	o, ambiguous := n.chosen(args, l, r)
	if o != nil && !(l.Valid() && domainBesideRange(o, []types.Type{l, r})) {
		return o.resolved(args)
	}
	signature := operatorSignature(n.String(), l, r)
	if ambiguous {
		return nil, pgerror.New(pgerror.AmbiguousFunction, "operator is not unique: %s", signature).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.")
	}
	hint := "No operator matches the given name and argument types. You might need to add explicit type casts."
	if len(args) == 1 {
		hint = "No operator matches the given name and argument type. You might need to add an explicit type cast."
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", signature).WithHint(hint)
}

// domainBesideRange reports whether an argument is a domain where the element of another argument's range or multirange is wanted: there a
// domain is not the type below it.
func domainBesideRange(o *Overload, given []types.Type) bool {
	return slices.ContainsFunc(given, func(other types.Type) bool {
		ranges := other.Underlying().Ranges()
		if ranges == nil {
			return false
		}
		for i, t := range given {
			if t.IsDomain() && o.Args[i].OID == types.OIDAnyElement && ranges.Sub.OID != t.OID {
				return true
			}
		}
		return false
	})
}

// operatorChoices remembers what chosenOperator has found for PostgreSQL's own types: the search for the operator of two types that have
// none of their own, numeric and double precision for example, takes longer than all else that is done for a condition. They are bounded by
// the number of operators and types; an operator that does not exist is not remembered.
var operatorChoices sync.Map // operatorChoice → *Overload

type operatorChoice struct {
	op      string
	sources Sources
	l, r    types.OID // of a prefix operator: 0, the operand
}

// chosenOperator finds the operator for arguments; nil if there is none, or several.
func (s Sources) chosenOperator(op string, args []types.Type) (o *Overload, ambiguous bool) {
	key := operatorChoice{op: op, sources: s, r: args[len(args)-1].OID}
	if len(args) == 2 {
		key.l = args[0].OID
	}
	common := key.l < types.FirstUserOID && key.r < types.FirstUserOID
	if common {
		if found, ok := operatorChoices.Load(key); ok {
			return found.(*Overload), false
		}
	}
	var candidates []*Overload
	for _, o := range operatorsNamed(op, s) {
		if len(o.Args) == len(args) {
			candidates = append(candidates, o)
		}
	}
	if o = exactOperator(candidates, args); o == nil {
		o, ambiguous = choose(nil, candidates, args)
	}
	if common && o != nil {
		operatorChoices.Store(key, o)
	}
	return o, ambiguous
}

func operatorSignature(op string, l, r types.Type) string {
	if !l.Valid() {
		return op + " " + TypeName(r)
	}
	return TypeName(l) + " " + op + " " + TypeName(r)
}

// exactOperator returns the exact match, which needs no search; a literal takes the other side's type.
func exactOperator(candidates []*Overload, args []types.Type) *Overload {
	if len(args) == 1 {
		return findExact(candidates, args)
	}
	l, r := args[0], args[1]
	if l.OID == types.OIDUnknown {
		l = r
	} else if r.OID == types.OIDUnknown {
		r = l
	}
	return findExact(candidates, []types.Type{l, r})
}

func findExact(candidates []*Overload, args []types.Type) *Overload {
	args = underlying(args)
next:
	for _, o := range candidates {
		for i := range args {
			if o.Args[i].OID != args[i].OID {
				continue next
			}
		}
		return o
	}
	return nil
}

// underlying replaces domains by the types below them: args itself if there are none.
func underlying(args []types.Type) []types.Type {
	if !slices.ContainsFunc(args, types.Type.IsDomain) {
		return args
	}
	out := make([]types.Type, len(args))
	for i, t := range args {
		out[i] = t.Underlying()
	}
	return out
}

// expandVariadics returns the overloads that take n arguments, variadic ones with as many Args.
func expandVariadics(all []*Overload, n int) []*Overload {
	var out []*Overload
	for _, o := range all {
		switch {
		case !o.variadic && len(o.Args) == n:
			out = append(out, o)
		case o.variadic && n >= len(o.Args):
			e := *o
			e.Args = append([]types.Type(nil), o.Args...)
			for len(e.Args) < n {
				e.Args = append(e.Args, o.Args[len(o.Args)-1])
			}
			out = append(out, &e)
		}
	}
	return out
}

// choose applies PostgreSQL's rules to candidates that all take len(args) arguments. It returns nil and ambiguous if
// more than one remains.
func choose(casts *Casts, candidates []*Overload, args []types.Type) (o *Overload, ambiguous bool) {
	given := args
	args = underlying(args)
	var matching []*Overload
	for _, c := range candidates {
		if canCoerceAll(casts, args, c.Args) && !domainBesideRange(c, given) {
			matching = append(matching, c)
		}
	}
	if len(matching) > 1 {
		matching = bestCandidates(casts, matching, args)
	}
	switch len(matching) {
	case 0:
		return nil, false
	case 1:
		return matching[0], false
	}
	return nil, true
}

// bestCandidates narrows the candidates step by step until one remains.
func bestCandidates(casts *Casts, cs []*Overload, args []types.Type) []*Overload {
	cs = keepMost(cs, func(o *Overload) (n int) {
		for i, t := range args {
			if t.OID != types.OIDUnknown && o.Args[i].OID == t.OID {
				n++
			}
		}
		return n
	})
	if len(cs) == 1 {
		return cs
	}
	cs = keepMost(cs, func(o *Overload) (n int) {
		for i, t := range args {
			if t.OID == types.OIDUnknown {
				continue
			}
			if o.Args[i].OID == t.OID || o.Args[i].Preferred() && o.Args[i].Category() == t.Category() {
				n++
			}
		}
		return n
	})
	unknowns := 0
	for _, t := range args {
		if t.OID == types.OIDUnknown {
			unknowns++
		}
	}
	if len(cs) == 1 || unknowns == 0 {
		return cs
	}
	if cs = narrowUnknowns(cs, args); len(cs) == 1 || unknowns == len(args) {
		return cs
	}
	return assumeKnownType(casts, cs, args)
}

func keepMost(cs []*Overload, score func(*Overload) int) []*Overload {
	best := -1
	var out []*Overload
	for _, o := range cs {
		n := score(o)
		if n > best {
			best, out = n, out[:0:0]
		}
		if n == best {
			out = append(out, o)
		}
	}
	return out
}

// narrowUnknowns determines the category of each literal from the candidates' parameters: strings if any accepts them,
// otherwise the one on which they agree.
func narrowUnknowns(cs []*Overload, args []types.Type) []*Overload {
	category := make([]types.Category, len(args))
	preferred := make([]bool, len(args))
	for i, t := range args {
		if t.OID != types.OIDUnknown {
			continue
		}
		conflict := false
		for _, o := range cs {
			c, p := o.Args[i].Category(), o.Args[i].Preferred()
			switch {
			case category[i] == 0:
				category[i], preferred[i] = c, p
			case c == category[i]:
				preferred[i] = preferred[i] || p
			case c == types.CategoryString:
				category[i], preferred[i] = c, p
			default:
				conflict = true
			}
		}
		if conflict && category[i] != types.CategoryString {
			return cs
		}
	}
	var out []*Overload
next:
	for _, o := range cs {
		for i, t := range args {
			if t.OID != types.OIDUnknown {
				continue
			}
			if o.Args[i].Category() != category[i] || preferred[i] && !o.Args[i].Preferred() {
				continue next
			}
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		return cs
	}
	return out
}

// assumeKnownType gives literals the type that all other arguments have, if that resolves the call.
func assumeKnownType(casts *Casts, cs []*Overload, args []types.Type) []*Overload {
	known := types.Type{}
	for _, t := range args {
		switch {
		case t.OID == types.OIDUnknown:
		case !known.Valid():
			known = t
		case known.OID != t.OID:
			return cs
		}
	}
	same := make([]types.Type, len(args))
	for i := range same {
		same[i] = known
	}
	var out []*Overload
	for _, o := range cs {
		if canCoerceAll(casts, same, o.Args) {
			out = append(out, o)
		}
	}
	if len(out) == 1 {
		return out
	}
	return cs
}

// canCoerceAll reports whether arguments of the types from can be implicitly cast to a declaration's types to.
func canCoerceAll(casts *Casts, from, to []types.Type) bool {
	generic := false
	for i, t := range to {
		switch {
		case t.IsPolymorphic():
			generic = true
		case !casts.implicit(from[i], t):
			return false
		}
	}
	if generic {
		_, err := bindPolymorphic(to, from)
		return err == nil || err == errUndetermined
	}
	return true
}

// canCoerce reports whether there is an implicit cast of PostgreSQL's own.
func canCoerce(from, to types.Type) bool { return (*Casts)(nil).implicit(from, to) }

// implicit reports whether there is an implicit cast.
func (s *Casts) implicit(from, to types.Type) bool {
	if from.OID == to.OID || from.OID == types.OIDUnknown || to.OID == types.OIDAny {
		return true
	}
	if from.OID == types.OIDRecord && to.IsComposite() {
		return true // Whether the fields fit shows when the call is bound.
	}
	_, ok := s.Find(from, to, Implicit)
	return ok
}

// Same reports whether o and p are the same function with the same types: resolution creates overloads of polymorphic
// functions for each call.
func (o *Overload) Same(p *Overload) bool {
	return o == p || o != nil && p != nil && o.Name == p.Name && o.Ret == p.Ret && slices.Equal(o.Args, p.Args) && o.routine() == p.routine()
}

// routine returns the OID of the routine of a user that o is, 0 if it is none.
func (o *Overload) routine() types.OID {
	if o.declared == nil || o.declared.user == nil {
		return 0
	}
	return o.declared.user.OID
}

// resolved returns o with actual types for the polymorphic ones and the Fn for them.
func (o *Overload) resolved(args []types.Type) (*Overload, error) {
	generic := o.bind != nil || o.Ret.IsPolymorphic()
	for _, t := range o.Args {
		generic = generic || t.IsPolymorphic() || t.OID == types.OIDAny
	}
	if !generic {
		return o, nil
	}
	r := *o
	r.Args = append([]types.Type(nil), o.Args...)
	for i, t := range r.Args {
		if t.OID == types.OIDAny {
			r.Args[i] = args[i]
		}
	}
	b, err := bindPolymorphic(o.Args, args)
	if err != nil {
		if err == errUndetermined {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
		}
		return nil, err
	}
	if err := b.arrays(append(r.Args, o.Ret)...); err != nil {
		return nil, err
	}
	for i, t := range o.Args {
		if t.IsPolymorphic() {
			r.Args[i] = b.actual(t)
		}
	}
	if o.Ret.IsPolymorphic() {
		r.Ret = b.actual(o.Ret)
	}
	if o.bind != nil {
		r.Fn = o.bind(&r)
	}
	return &r, nil
}
