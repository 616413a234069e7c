package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// RoutineMatch is the routine of a user that a call means, and where the call's arguments go. A slot is an argument of the routine, or an
// element of the array that its VARIADIC parameter gets.
type RoutineMatch struct {
	Routine *Routine
	// Places are the slots of the call's arguments.
	Places []int
	// Spread is the first slot of an element of VARIADIC's array, -1 if the array is given.
	Spread int
	// Omitted are the slots, ascending, for which the parameters' defaults stand.
	Omitted []int

	params   []RoutineParam // of the slots; all elements have that of VARIADIC
	declared []types.Type   // of the slots
}

// CallSite is how a call is written.
type CallSite struct {
	Args  []types.Type
	Names []string // of the arguments, "" for those without; nil: none has one
	// Variadic: the last argument is marked VARIADIC.
	Variadic bool
	// Call: it is a CALL, whose arguments include those of OUT parameters.
	Call bool
}

// candidate is a function that a call may mean: o has the declared types of the call's arguments.
type candidate struct {
	o     *Overload
	match *RoutineMatch // nil: PostgreSQL's own
	place int           // of its schema in the search path
}

// MatchRoutine finds the routine that a call means, among those of users and PostgreSQL's own: nil for one of the latter.
//
// Errors: 42883 there is none, 42725 several match equally well, 42601 a name is given twice.
func (f FuncName) MatchRoutine(site CallSite) (*RoutineMatch, error) {
	for i, n := range site.Names {
		if n != "" && slices.Contains(site.Names[:i], n) {
			return nil, pgerror.New(pgerror.SyntaxError, "argument name \"%s\" used more than once", n)
		}
	}
	var all []candidate
	place := 0
	for _, u := range f.User {
		place = u.System
		if m := u.match(site); m != nil {
			all = append(all, candidate{m.overload(), m, u.Place})
		}
	}
	if site.Names == nil && !site.Variadic {
		for _, o := range expandVariadics(f.ofAnyKind(), len(site.Args)) {
			all = append(all, candidate{o: o, place: place})
		}
	}
	all, unclear := distinctCandidates(all)
	list := make([]*Overload, len(all))
	for i := range all {
		list[i] = all[i].o
	}
	chosen, ambiguous := findExact(list, site.Args), false
	if chosen == nil {
		if len(site.Args) == 1 && f.castCall(site.Args) != nil {
			return nil, nil
		}
		chosen, ambiguous = choose(f.Casts, list, site.Args)
	}
	switch {
	case ambiguous, chosen != nil && slices.Contains(unclear, chosen):
		e := pgerror.New(pgerror.AmbiguousFunction, "%s %s is not unique", site.kind(), site.signature(f))
		return nil, e.WithHint("Could not choose a best candidate " + site.kind() + ". You might need to add explicit type casts.")
	case chosen == nil && f.Known() && (site.Names != nil || site.Variadic):
		return nil, nil // PostgreSQL's own are looked up by the caller.
	case chosen == nil:
		e := pgerror.New(pgerror.UndefinedFunction, "%s %s does not exist", site.kind(), site.signature(f))
		return nil, e.WithHint("No " + site.kind() + " matches the given name and argument types. You might need to add explicit type casts.")
	}
	return all[slices.Index(list, chosen)].match, nil
}

func (s *CallSite) kind() string {
	if s.Call {
		return "procedure"
	}
	return "function"
}

func (s *CallSite) signature(f FuncName) string {
	if s.Names == nil {
		return CallSignature(f.String(), s.Args)
	}
	return namedSignature(f.String(), s.Names, s.Args)
}

// Known reports whether functions of PostgreSQL or of extensions have the name.
func (f FuncName) Known() bool { return len(f.ofAnyKind()) > 0 || f.IsWindow() || f.IsOrderedSet() }

// ofAnyKind returns the functions with the name, of PostgreSQL and of extensions, aggregates and those that return sets included.
func (f FuncName) ofAnyKind() []*Overload {
	all := slices.Clip(f.overloads())
	for _, s := range f.setFuncs() {
		all = append(all, s.o)
	}
	for _, a := range f.aggregates() {
		all = append(all, a.o)
	}
	return all
}

// distinctCandidates leaves of those with the same arguments the one whose schema is searched first. Those of one schema that only differ in
// omitted arguments are unclear.
func distinctCandidates(all []candidate) (out []candidate, unclear []*Overload) {
next:
	for _, c := range all {
		for i := range out {
			have := &out[i]
			if !slices.EqualFunc(have.o.Args, c.o.Args, func(a, b types.Type) bool { return a.OID == b.OID }) {
				continue
			}
			switch {
			case c.place < have.place, c.place == have.place && c.fewer(have):
				*have = c
			case c.place == have.place && !have.fewer(&c):
				unclear = append(unclear, have.o)
			}
			continue next
		}
		out = append(out, c)
	}
	return out, unclear
}

// fewer reports whether c is to be preferred to another candidate of its schema: the other one makes an array of arguments.
func (c *candidate) fewer(other *candidate) bool {
	spread := func(c *candidate) bool { return c.match != nil && c.match.Spread >= 0 }
	return !spread(c) && spread(other)
}

// match returns how a call would have to be read to mean the routine, nil if it cannot mean it.
func (r *Routine) match(site CallSite) *RoutineMatch {
	var params []RoutineParam
	for i := range r.Params {
		if p := r.Params[i]; p.In() || site.Call && p.Mode == 'o' {
			params = append(params, p)
		}
	}
	m := &RoutineMatch{Routine: r, Spread: -1, params: params}
	given := len(site.Args)
	if r.Variadic() && !site.Variadic && site.Names != nil {
		return nil // Nothing names the elements of the array.
	}
	if r.Variadic() && !site.Variadic && given >= len(params) {
		last := len(params) - 1
		m.Spread = last
		for len(m.params) < given {
			m.params = append(m.params, params[last])
		}
	}
	if given > len(m.params) {
		return nil
	}
	m.declared = make([]types.Type, len(m.params))
	for i, p := range m.params {
		m.declared[i] = p.Type
		if m.Spread >= 0 && i >= m.Spread {
			m.declared[i] = variadicElem(p.Type)
		}
	}
	filled := make([]bool, len(m.params))
	for i := range site.Args {
		place := i
		if site.Names != nil && site.Names[i] != "" {
			place = slices.IndexFunc(m.params, func(p RoutineParam) bool { return p.Name == site.Names[i] })
		}
		if place < 0 || filled[place] {
			return nil
		}
		filled[place] = true
		m.Places = append(m.Places, place)
	}
	for i := range filled {
		if filled[i] {
			continue
		}
		if m.params[i].Default == "" {
			return nil
		}
		m.Omitted = append(m.Omitted, i)
	}
	return m
}

// variadicElem returns the type of the elements of a VARIADIC parameter.
func variadicElem(t types.Type) types.Type {
	switch t.OID {
	case types.OIDAnyArray:
		return types.Type{OID: types.OIDAnyElement, Mod: -1}
	case types.OIDAnyCompatibleArray:
		return types.Type{OID: types.OIDAnyCompatible, Mod: -1}
	}
	return t.Elem()
}

// overload has the declared types of the call's arguments, in their order.
func (m *RoutineMatch) overload() *Overload {
	o := *m.Routine.decl
	o.Args = make([]types.Type, len(m.Places))
	for i, place := range m.Places {
		o.Args[i] = m.declared[place]
	}
	return &o
}

// Slots returns the number of slots.
func (m *RoutineMatch) Slots() int { return len(m.params) }

// Param returns the parameter of a slot.
func (m *RoutineMatch) Param(slot int) *RoutineParam { return &m.params[slot] }

// Slotted leaves of what stands in the slots the arguments that the routine gets: the ones of OUT parameters, which CALL has, are none.
func Slotted[T any](m *RoutineMatch, slots []T) []T {
	var in []T
	for i := range slots {
		if m.params[i].In() {
			in = append(in, slots[i])
		}
	}
	return in
}

// Resolve returns the call, given the types of what stands in the slots, and the types to which these must be coerced.
//
// Errors: 42804 a polymorphic type is not determined.
func (m *RoutineMatch) Resolve(slots []types.Type) (call *RoutineCall, coerce []types.Type, err error) {
	r := m.Routine
	b := binding{}
	polymorphic := r.Ret.IsPolymorphic()
	for i := range r.Params {
		polymorphic = polymorphic || r.Params[i].Type.IsPolymorphic()
	}
	if polymorphic {
		b, err = bindPolymorphic(m.declared, slots)
		if err == errUndetermined {
			return nil, nil, pgerror.New(pgerror.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
		}
		needs := slices.Clip(append(slices.Clone(m.declared), r.Ret))
		for i := range r.Params {
			needs = append(needs, r.Params[i].Type)
		}
		if err == nil {
			err = b.arrays(needs...)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	call = &RoutineCall{Routine: r, Ret: b.actual(r.Ret)}
	for i := range r.Params {
		if p := &r.Params[i]; p.In() {
			call.Args = append(call.Args, b.actual(p.Type))
		}
	}
	call.Columns = slices.Clone(r.Columns())
	for i := range call.Columns {
		call.Columns[i].Type = b.actual(call.Columns[i].Type)
	}
	coerce = make([]types.Type, len(m.declared))
	for i, t := range m.declared {
		coerce[i] = b.actual(t)
	}
	return call, coerce, nil
}

// Actual returns the type that stands for t, which may be polymorphic, given the types of what stands in the slots.
func (m *RoutineMatch) Actual(t types.Type, slots []types.Type) (types.Type, error) {
	if !t.IsPolymorphic() {
		return t, nil
	}
	b, err := bindPolymorphic(m.declared, slots)
	if err == nil {
		err = b.arrays(t)
	}
	return b.actual(t), err
}

// SameArguments reports whether two lists of types identify the same routine.
func SameArguments(a, b []types.Type) bool {
	return slices.EqualFunc(a, b, func(a, b types.Type) bool { return a.OID == b.OID })
}

// RoutineSignature returns a routine's name and argument types as messages about dependencies have them: "f(integer,text)".
func RoutineSignature(name string, args []types.Type) string {
	return strings.ReplaceAll(CallSignature(name, args), ", ", ",")
}
