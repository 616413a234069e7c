package builtin

import (
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// Operator is an operator that a user has defined, as binding sees it. Immutable.
type Operator struct {
	OID    types.OID
	Schema string
	Name   string
	Left   types.Type // the zero Type: it is a prefix operator
	Right  types.Type
	Ret    types.Type
	// Routine evaluates it, or System, a function of PostgreSQL: exactly one is given.
	Routine *Routine
	System  *Overload

	decl *Overload // by which resolution finds it
}

// NewOperator completes an operator, which must not be changed any more.
func NewOperator(o Operator) *Operator {
	if o.Routine != nil {
		o.decl = o.Routine.declare()
		o.decl.user = o.Routine
	} else {
		decl := *o.System
		o.decl = &decl
	}
	o.decl.variadic, o.decl.Args, o.decl.Operator = false, o.Operands(), &o
	return &o
}

// Operands returns the types of the operands.
func (o *Operator) Operands() []types.Type {
	if !o.Left.Valid() {
		return []types.Type{o.Right}
	}
	return []types.Type{o.Left, o.Right}
}

// Qualified returns the operator as statements write it with its schema: OPERATOR(schema.symbol).
func (o *Operator) Qualified() string {
	return "OPERATOR(" + keyword.QuoteIdent(o.Schema) + "." + o.Name + ")"
}

// Match returns the call of the operator's routine with operands; nil if a function of PostgreSQL evaluates it.
func (o *Operator) Match() *RoutineMatch {
	if o.Routine == nil {
		return nil
	}
	return o.Routine.matchAll()
}

// matchAll matches a call that gives all arguments, the array of VARIADIC as such.
func (r *Routine) matchAll() *RoutineMatch {
	return r.match(CallSite{Args: r.InputTypes(), Variadic: r.Variadic()})
}

// UserOperator is an operator of a user that a symbol may mean.
type UserOperator struct {
	*Operator
	// Place is that of its schema in the search path; System that of pg_catalog.
	Place, System int
}

// OperatorName is an operator's symbol as a statement has it, and where the operator may come from.
type OperatorName struct {
	Schema string // "": the statement names none
	Symbol string
	From   Sources
	// User are the operators of users with the symbol.
	User []UserOperator
	// Casts are those that users have defined, nil for none.
	Casts *Casts
}

// String returns the name as messages have it.
func (n OperatorName) String() string {
	if n.Schema == "" {
		return n.Symbol
	}
	return n.Schema + "." + n.Symbol
}

// chosen finds the operator for operands of the types l and r, which args are without domains; nil if there is none, or several.
func (n OperatorName) chosen(args []types.Type, l, r types.Type) (o *Overload, ambiguous bool) {
	if n.User == nil && n.Casts == nil {
		return n.From.chosenOperator(n.Symbol, args)
	}
	var all []candidate
	system := 0
	for _, u := range n.User {
		system = u.System
		if len(u.decl.Args) == len(args) {
			all = append(all, candidate{o: u.decl, place: u.Place})
		}
	}
	for _, o := range operatorsNamed(n.Symbol, n.From) {
		if len(o.Args) == len(args) {
			all = append(all, candidate{o: o, place: system})
		}
	}
	all, _ = distinctCandidates(all)
	list := make([]*Overload, len(all))
	for i := range all {
		list[i] = all[i].o
	}
	if o := ofDomains(list, l, r); o != nil {
		return o, false
	}
	if o := exactOperator(list, args); o != nil {
		return o, false
	}
	return choose(n.Casts, list, args)
}

// ofDomains returns the operator that is declared for the domains of which operands are values, nil if there is none.
func ofDomains(list []*Overload, l, r types.Type) *Overload {
	if !l.IsDomain() && !r.IsDomain() {
		return nil
	}
	for _, o := range list {
		args := o.Args
		if len(args) == 1 && args[0].OID == r.OID || len(args) == 2 && args[0].OID == l.OID && args[1].OID == r.OID {
			return o
		}
	}
	return nil
}

// OverloadByOID returns the function of PostgreSQL or an extension with an OID as calls have it; nil if there is none that can be called by its name.
func OverloadByOID(oid types.OID) *Overload {
	p := ProcByOID(oid)
	if p == nil || p.Kind != 'f' {
		return nil
	}
	if e := p.Extension(); e != nil {
		return findExact(FuncName{Name: p.Name, From: e.Source()}.overloads(), typesOf(p.Args))
	}
	for _, o := range functionsNamed(p.Name) {
		if o.Signature() == p.Signature {
			return o
		}
	}
	return nil
}

// MatchExactly returns the call of a routine with all its arguments.
func MatchExactly(r *Routine) *RoutineMatch { return r.matchAll() }

// Bind returns the function with actual types for its polymorphic ones.
func (o *Overload) Bind(args []types.Type) (*Overload, error) { return o.resolved(args) }
