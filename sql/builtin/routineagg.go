package builtin

import (
	"github.com/percodb/percodb/sql/types"
)

// AggregateParts are the functions of an aggregate that a user has defined, for the types of one call.
type AggregateParts struct {
	Transition *Overload // of the state and the aggregate's arguments
	Final      *Overload // of the state, and of the arguments' types if FinalExtra is set; nil: the state is the result
	FinalExtra bool      // Final gets a NULL for each argument
	State      types.Type
	Initial    *string // the text of the first state, nil for NULL
	Call       *RoutineCall
}

// NewAggregate returns the aggregate that calls the parts.
func NewAggregate(p *AggregateParts) *Aggregate {
	r := p.Call.Routine
	return &Aggregate{
		Name: r.Name, Args: p.Call.Args, Ret: p.Call.Ret, NewAccumulator: func() Accumulator { return &userAccumulator{parts: p} },
		// Arguments that are NULL are passed over in Add, which looks at all of them.
		OrderMatters: true, declared: r.decl,
	}
}

// userAccumulator is the state of an aggregate that a user has defined.
type userAccumulator struct {
	parts *AggregateParts
	begun bool // there is a state, which may be NULL
	state types.Datum
}

// begin makes the first state.
func (a *userAccumulator) begin(env *Env) error {
	if a.begun {
		return nil
	}
	a.begun = true
	if a.parts.Initial == nil {
		return nil
	}
	d, err := types.ParseText(a.parts.State, *a.parts.Initial, &env.Format)
	a.state = d.Clone()
	return err
}

// Add implements Accumulator. A strict transition function is not called with NULLs: such rows are passed over, the first other value becomes
// the state where there is none, and a state that has become NULL stays.
func (a *userAccumulator) Add(env *Env, args []types.Datum) error {
	first := !a.begun && a.parts.Initial == nil
	strict := a.parts.Transition.Strict
	if strict && hasNull(args) {
		return nil
	}
	if err := a.begin(env); err != nil {
		return err
	}
	if strict && a.state.IsNull() {
		if first && len(args) > 0 {
			a.state = args[0].Clone()
		}
		return nil
	}
	all := append(append(make([]types.Datum, 0, 1+len(args)), a.state), args...)
	d, err := a.parts.Transition.Fn(env, all)
	if err != nil {
		return err
	}
	a.state = d.Clone()
	return nil
}

// Result implements Accumulator.
func (a *userAccumulator) Result(env *Env) (types.Datum, error) {
	if err := a.begin(env); err != nil {
		return types.Null, err
	}
	f := a.parts.Final
	if f == nil {
		return a.state, nil
	}
	args := []types.Datum{a.state}
	if a.parts.FinalExtra {
		args = append(args, make([]types.Datum, len(a.parts.Call.Args))...)
	}
	if f.Strict && hasNull(args) {
		return types.Null, nil
	}
	return f.Fn(env, args)
}
