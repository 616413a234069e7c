package builtin

import (
	"cmp"
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

// String names the kind as messages do.
func (k RoutineKind) String() string {
	switch k {
	case ProcedureRoutine:
		return "procedure"
	case AggregateRoutine:
		return "aggregate"
	}
	return "function"
}

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

	decl *Overload
}

// NewRoutine completes a routine, which must not be changed any more.
func NewRoutine(r Routine) *Routine {
	r.decl = r.declare()
	r.decl.user = &r
	return &r
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

// declare makes the overload by which resolution finds the routine.
func (r *Routine) declare() *Overload {
	o := &Overload{Name: r.Name, Args: r.InputTypes(), Ret: r.Ret, Strict: r.Strict, Volatility: r.Volatility}
	o.declared = o
	return o
}

// Columns returns the columns of the records that the routine returns, as declared; nil if its type tells all.
func (r *Routine) Columns() []SetColumn {
	var columns []SetColumn
	table := false
	for i := range r.Params {
		p := &r.Params[i]
		if !p.Out() {
			continue
		}
		table = table || p.Mode == 't'
		name := p.Name
		if name == "" {
			name = "column" + formatOID(types.OID(len(columns)+1))
		}
		columns = append(columns, SetColumn{Name: name, Type: p.Type})
	}
	if len(columns) == 1 && r.Ret.OID != types.OIDRecord {
		return nil
	}
	return columns
}

// ColumnName names the column of a function that returns no records.
func (r *Routine) ColumnName() string { return cmp.Or(r.column(), r.Name) }

// column names the column of a function in FROM that returns no records: that of the single OUT parameter, "" for none.
func (r *Routine) column() string {
	for i := range r.Params {
		if p := &r.Params[i]; p.Out() && r.Ret.OID != types.OIDRecord {
			return p.Name
		}
	}
	return ""
}

// Overload returns the function of the call, which returns one value.
func (c *RoutineCall) Overload() *Overload {
	r := c.Routine
	return &Overload{Name: r.Name, Args: c.Args, Ret: c.Ret, Strict: r.Strict, Volatility: r.Volatility, Fn: c.call, Call: c, declared: r.decl}
}

// SetFunc returns the function of the call in FROM, or as one that returns a set.
func (c *RoutineCall) SetFunc() *SetFunc {
	r := c.Routine
	f := &SetFunc{Name: r.Name, Args: c.Args, Ret: c.Ret, Strict: r.Strict, Volatility: r.Volatility, Open: c.open, Estimate: r.Rows,
		Columns: c.Columns, Column: r.column(), Call: c, declared: r.decl}
	if ret := c.Ret.Underlying(); c.Columns == nil && ret.IsComposite() {
		f.Columns = compositeColumns(ret)
	}
	if !r.Set {
		f.Open, f.Estimate, f.Strict = c.openOne, 1, false
	}
	return f
}

// openOne makes a set of the one value that the function returns.
func (c *RoutineCall) openOne(env *Env, args []types.Datum) (SetRows, error) {
	if c.Routine.Strict && hasNull(args) {
		return &sliceRows{[]types.Datum{types.Null}}, nil
	}
	d, err := c.call(env, args)
	return &sliceRows{[]types.Datum{d.Clone()}}, err
}
