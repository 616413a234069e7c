package builtin

import (
	"slices"

	"github.com/percodb/percodb/sql/types"
)

// RoutineKind is the kind of a routine that a user has defined, as pg_proc.prokind.
type RoutineKind byte

// The kinds of routines.
const (
	FunctionRoutine  RoutineKind = 'f'
	ProcedureRoutine RoutineKind = 'p'
	AggregateRoutine RoutineKind = 'a'
)

// RoutineParam is a parameter of a routine.
type RoutineParam struct {
	Name string // "": none
	// Mode is as in pg_proc.proargmodes: i, o, b (INOUT), v (VARIADIC) or t (a column of RETURNS TABLE).
	Mode byte
	Type types.Type // of a VARIADIC parameter the array type
	// Default is the text of the default expression, "" for none.
	Default string `json:",omitempty"`
}

// In reports whether calls have an argument for the parameter.
func (p *RoutineParam) In() bool { return p.Mode == 'i' || p.Mode == 'b' || p.Mode == 'v' }

// Out reports whether the parameter is a column of the result.
func (p *RoutineParam) Out() bool { return p.Mode == 'o' || p.Mode == 'b' || p.Mode == 't' }

// Routine is a routine that a user has defined, as binding and execution see it. Immutable.
type Routine struct {
	OID     types.OID
	Version uint64 // changes with every change of the routine
	Kind    RoutineKind
	Schema  string
	Name    string
	Params  []RoutineParam
	Ret     types.Type // record for several OUT parameters, void for a procedure without any
	Set     bool       // it returns a set
	// Language is "sql", "plpgsql", or of an aggregate "internal".
	Language   string
	Volatility Volatility
	Strict     bool
	Leakproof  bool
	// Parallel is as in pg_proc.proparallel: s, r or u.
	Parallel byte
	Cost     float64
	Rows     float64 // of a set, the estimated number
}

// Inputs returns the parameters for which calls have arguments.
func (r *Routine) Inputs() []RoutineParam {
	return slices.DeleteFunc(slices.Clone(r.Params), func(p RoutineParam) bool { return !p.In() })
}

// InputTypes returns the types of Inputs: with the name they identify a function in its schema.
func (r *Routine) InputTypes() []types.Type {
	var list []types.Type
	for i := range r.Params {
		if r.Params[i].In() {
			list = append(list, r.Params[i].Type)
		}
	}
	return list
}

// Variadic reports whether the last argument is VARIADIC.
func (r *Routine) Variadic() bool {
	return slices.ContainsFunc(r.Params, func(p RoutineParam) bool { return p.Mode == 'v' })
}

// RoutineCall is a call of a routine with the types that resolution has found. Immutable: plans contain it.
type RoutineCall struct {
	Routine *Routine
	Args    []types.Type // of the routine's Inputs, without polymorphic types
	Ret     types.Type   // without polymorphic types
	// Columns are the fields of records: those of OUT parameters, RETURNS TABLE or a column definition list. Nil: Ret tells all.
	Columns []SetColumn
}

// Routines executes the routines that users have defined, for a session (Env.Routines).
type Routines interface {
	// CallRoutine calls a function that returns one value: of type call.Ret, a row if there are Columns. A procedure returns the row of
	// its OUT parameters. args are valid until it returns. The caller has handled Strict.
	CallRoutine(env *Env, call *RoutineCall, args []types.Datum) (types.Datum, error)
	// OpenRoutine calls a function that returns a set. Each value is one of type call.Ret, a row if there are Columns.
	OpenRoutine(env *Env, call *RoutineCall, args []types.Datum) (SetRows, error)
}

// call calls a function that a user has defined.
func (c *RoutineCall) call(env *Env, args []types.Datum) (types.Datum, error) {
	if env.Routines == nil {
		return types.Null, errNoService("function " + c.Routine.Name)
	}
	return env.Routines.CallRoutine(env, c, args)
}

func (c *RoutineCall) open(env *Env, args []types.Datum) (SetRows, error) {
	if env.Routines == nil {
		return nil, errNoService("function " + c.Routine.Name)
	}
	return env.Routines.OpenRoutine(env, c, args)
}
