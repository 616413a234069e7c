package builtin

import "github.com/percodb/percodb/sql/types"

// SingleValue is the aggregate whose result is the value of a group's only row; of more, one of them.
func SingleValue(t types.Type) *Aggregate {
	args := []types.Type{t}
	return &Aggregate{
		Name: "single_value", Args: args, Ret: t, NewAccumulator: func() Accumulator { return new(singleValue) },
		Combine: func(into, from Accumulator) error {
			a, b := into.(*singleValue), from.(*singleValue)
			if !a.some {
				*a = *b
			}
			return nil
		},
		declared: &Overload{Name: "single_value", Args: args, Ret: t},
	}
}

type singleValue struct {
	some  bool
	value types.Datum
}

func (s *singleValue) Add(_ *Env, a []types.Datum) error {
	if !s.some {
		s.some, s.value = true, a[0].Clone()
	}
	return nil
}

func (s *singleValue) Result(*Env) (types.Datum, error) {
	if !s.some {
		return types.Null, nil
	}
	return s.value, nil
}
