package builtin

import (
	"github.com/percodb/percodb/sql/types"
)

var sequenceRow = []SetColumn{{"last_value", types.TInt8}, {"log_cnt", types.TInt8}, {"is_called", types.TBool}}

// SequenceTable yields the row of a sequence that is read as a table. Its argument is the sequence's OID; who may read it is for the caller
// to check.
var SequenceTable = &SetFunc{
	Name: "sequence", Args: []types.Type{types.TRegclass}, Ret: types.TRecord, Strict: true, Volatility: Volatile, Estimate: 1, Columns: sequenceRow,
	Open: func(env *Env, a []types.Datum) (SetRows, error) {
		if env.Sequences == nil {
			return nil, errNoService("reading sequences")
		}
		last, called, err := env.Sequences.State(env.Context(), types.OID(a[0].Int()), false)
		if err != nil {
			return nil, err
		}
		row := types.Row{types.Int(last), types.Int(0), types.Bool(called)}
		return &sliceRows{rest: []types.Datum{types.NewRecord([]types.Type{types.TInt8, types.TInt8, types.TBool}, row)}}, nil
	},
}

// sequenceLast is pg_sequence_last_value.
func sequenceLast(env *Env, a []types.Datum) (types.Datum, error) {
	if env.Sequences == nil {
		return types.Null, errNoService("pg_sequence_last_value")
	}
	last, called, err := env.Sequences.State(env.Context(), types.OID(a[0].Int()), true)
	if err != nil || !called {
		return types.Null, err
	}
	return types.Int(last), nil
}
