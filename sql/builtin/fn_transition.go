package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// transitionFuncs are the functions of PostgreSQL's aggregates that can be called with states as arrays: CREATE AGGREGATE names them.
func transitionFuncs() []decl {
	return []decl{
		{sig: "float8_accum(float8[],float8) float8[]", fn: floatAccum}, {sig: "float8_combine(float8[],float8[]) float8[]", fn: floatCombine},
		{sig: "float8_regr_accum(float8[],float8,float8) float8[]", fn: regrAccum},
		{sig: "float8_regr_combine(float8[],float8[]) float8[]", fn: regrCombine},
		{sig: "booland_statefunc(bool,bool) bool", fn: boolState(func(a, b bool) bool { return a && b })},
		{sig: "boolor_statefunc(bool,bool) bool", fn: boolState(func(a, b bool) bool { return a || b })},
	}
}

func boolState(f func(a, b bool) bool) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Bool(f(a[0].Bool(), a[1].Bool())), nil
	}
}

// floatState reads the state of an aggregate: n numbers.
func floatState(d types.Datum, n int, name string) ([]float64, error) {
	arr := d.Array()
	state := make([]float64, 0, n)
	for _, e := range arr.Elems {
		if e.IsNull() || len(state) == n {
			break
		}
		state = append(state, e.Float())
	}
	if len(arr.Elems) != n || len(state) != n || arr.Dims != nil {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "%s: expected %d-element float8 array", name, n)
	}
	return state, nil
}

func floatArray(values ...float64) types.Datum {
	out := &types.Array{Elem: types.TFloat8}
	for _, v := range values {
		out.Elems = append(out.Elems, types.Float(v))
	}
	return types.NewArray(out)
}

func moments(s []float64) momentsFloat { return momentsFloat{n: s[0], sum: s[1], sqDiff: s[2]} }

func floatAccum(env *Env, a []types.Datum) (types.Datum, error) {
	s, err := floatState(a[0], 3, "float8_accum")
	if err != nil {
		return types.Null, err
	}
	m := moments(s)
	if err := m.Add(env, a[1:]); err != nil {
		return types.Null, err
	}
	return floatArray(m.n, m.sum, m.sqDiff), nil
}

func floatCombine(_ *Env, a []types.Datum) (types.Datum, error) {
	s, err := floatState(a[0], 3, "float8_combine")
	if err != nil {
		return types.Null, err
	}
	t, err := floatState(a[1], 3, "float8_combine")
	switch {
	case err != nil:
		return types.Null, err
	case s[0] == 0:
		return floatArray(t...), nil
	case t[0] == 0:
		return floatArray(s...), nil
	}
	n := s[0] + t[0]
	d := s[1]/s[0] - t[1]/t[0]
	return finiteArray(s, t, n, s[1]+t[1], s[2]+t[2]+s[0]*t[0]*d*d/n)
}

// finiteArray fails if finite states have become infinite.
func finiteArray(s, t []float64, values ...float64) (types.Datum, error) {
	for i, v := range values {
		if math.IsInf(v, 0) && !math.IsInf(s[i], 0) && !math.IsInf(t[i], 0) {
			return types.Null, errFloatOverflow()
		}
	}
	return floatArray(values...), nil
}

func moments2Of(s []float64) moments2 {
	return moments2{n: s[0], sumX: s[1], sumXX: s[2], sumY: s[3], sumYY: s[4], sumXY: s[5]}
}

func regrAccum(env *Env, a []types.Datum) (types.Datum, error) {
	s, err := floatState(a[0], 6, "float8_regr_accum")
	if err != nil {
		return types.Null, err
	}
	m := moments2Of(s)
	if err := m.Add(env, a[1:]); err != nil {
		return types.Null, err
	}
	return floatArray(m.n, m.sumX, m.sumXX, m.sumY, m.sumYY, m.sumXY), nil
}

func regrCombine(_ *Env, a []types.Datum) (types.Datum, error) {
	s, err := floatState(a[0], 6, "float8_regr_combine")
	if err != nil {
		return types.Null, err
	}
	t, err := floatState(a[1], 6, "float8_regr_combine")
	switch {
	case err != nil:
		return types.Null, err
	case s[0] == 0:
		return floatArray(t...), nil
	case t[0] == 0:
		return floatArray(s...), nil
	}
	n := s[0] + t[0]
	dx, dy := s[1]/s[0]-t[1]/t[0], s[3]/s[0]-t[3]/t[0]
	return finiteArray(s, t, n, s[1]+t[1], s[2]+t[2]+s[0]*t[0]*dx*dx/n, s[3]+t[3], s[4]+t[4]+s[0]*t[0]*dy*dy/n, s[5]+t[5]+s[0]*t[0]*dx*dy/n)
}
