package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// transitionFuncs are the functions of PostgreSQL's aggregates that can be called with states as arrays: CREATE AGGREGATE names them.
func transitionFuncs() []decl {
	out := []decl{
		{sig: "float8_accum(float8[],float8) float8[]", fn: floatAccum}, {sig: "float8_combine(float8[],float8[]) float8[]", fn: floatCombine},
		{sig: "float8_regr_accum(float8[],float8,float8) float8[]", fn: regrAccum},
		{sig: "float8_regr_combine(float8[],float8[]) float8[]", fn: regrCombine},
		{sig: "booland_statefunc(bool,bool) bool", fn: boolState(func(a, b bool) bool { return a && b })},
		{sig: "boolor_statefunc(bool,bool) bool", fn: boolState(func(a, b bool) bool { return a || b })},
	}
	return append(append(out, floatFinalFuncs()...), integerStateFuncs()...)
}

// floatFinalFuncs are the final functions over the states of float8_accum and float8_regr_accum.
func floatFinalFuncs() []decl {
	finishes := map[string]func(m *momentsFloat) (float64, bool){
		"avg":     func(m *momentsFloat) (float64, bool) { return m.sum / m.n, m.n != 0 },
		"var_pop": spreadFinish(false, false), "var_samp": spreadFinish(true, false),
		"stddev_pop": spreadFinish(false, true), "stddev_samp": spreadFinish(true, true),
	}
	var out []decl
	for name, finish := range finishes {
		name = "float8_" + name
		out = append(out, decl{sig: name + "(float8[]) float8", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			s, err := floatState(a[0], 3, name)
			if err != nil {
				return types.Null, err
			}
			m := moments(s)
			return floatOrNull(finish(&m))
		}})
	}
	for name, finish := range pairFinishes() {
		name = "float8_" + name
		out = append(out, decl{sig: name + "(float8[]) float8", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			s, err := floatState(a[0], 6, name)
			if err != nil {
				return types.Null, err
			}
			m := moments2Of(s)
			return floatOrNull(finish(&m))
		}})
	}
	return out
}

func floatOrNull(v float64, ok bool) (types.Datum, error) {
	if !ok {
		return types.Null, nil
	}
	return types.Float(v), nil
}

// integerStateFuncs are the functions of count, and those of sum and avg over integers.
func integerStateFuncs() []decl {
	step := func(by int64) Func {
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return addInt8(a[0].Int(), by) }
	}
	out := []decl{
		{sig: "int8inc(int8) int8", fn: step(1)}, {sig: "int8dec(int8) int8", fn: step(-1)},
		{sig: "int8inc_any(int8,any) int8", fn: step(1)}, {sig: "int8dec_any(int8,any) int8", fn: step(-1)},
		{sig: "int8inc_float8_float8(int8,float8,float8) int8", fn: step(1)},
		{sig: "int8_sum(numeric,int8) numeric", flags: nonStrict, fn: sumState(func(state, v types.Datum) (types.Datum, error) {
			return numericDatum(AddNumeric(state.Decimal(), types.NewNumeric(v.Int())))
		}, func(v types.Datum) types.Datum { return types.Decimal(types.NewNumeric(v.Int())) })},
		{sig: "int4_avg_combine(int8[],int8[]) int8[]", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			s, err := integerState(a[0])
			if err != nil {
				return types.Null, err
			}
			t, err := integerState(a[1])
			return integerArray(s[0]+t[0], s[1]+t[1]), err
		}},
		{sig: "int8_avg(int8[]) numeric", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			s, err := integerState(a[0])
			if err != nil || s[0] == 0 {
				return types.Null, err
			}
			return numericDatum(DivNumeric(types.NewNumeric(s[1]), types.NewNumeric(s[0])))
		}},
		{sig: "int2int4_sum(int8[]) int8", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			s, err := integerState(a[0])
			if err != nil || s[0] == 0 {
				return types.Null, err
			}
			return types.Int(s[1]), nil
		}},
	}
	for _, t := range []string{"int2", "int4"} {
		accumulate := func(sign int64) Func {
			return func(_ *Env, a []types.Datum) (types.Datum, error) {
				s, err := integerState(a[0])
				return integerArray(s[0]+sign, s[1]+sign*a[1].Int()), err
			}
		}
		out = append(out,
			decl{sig: t + "_sum(int8," + t + ") int8", flags: nonStrict, fn: sumState(func(state, v types.Datum) (types.Datum, error) {
				return types.Int(state.Int() + v.Int()), nil // It wraps around, as in PostgreSQL.
			}, func(v types.Datum) types.Datum { return v })},
			decl{sig: t + "_avg_accum(int8[]," + t + ") int8[]", fn: accumulate(1)},
			decl{sig: t + "_avg_accum_inv(int8[]," + t + ") int8[]", fn: accumulate(-1)},
		)
	}
	return out
}

func addInt8(a, b int64) (types.Datum, error) {
	if sum := a + b; sum > a == (b > 0) {
		return types.Int(sum), nil
	}
	return types.Null, errInt8Range()
}

// sumState is a transition that ignores NULL; first makes the state of the first value.
func sumState(add func(state, v types.Datum) (types.Datum, error), first func(v types.Datum) types.Datum) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case a[1].IsNull():
			return a[0], nil
		case a[0].IsNull():
			return first(a[1]), nil
		}
		return add(a[0], a[1])
	}
}

// integerState reads the state of avg over integers: how many there are, and their sum.
func integerState(d types.Datum) (s [2]int64, err error) {
	arr := d.Array()
	if len(arr.Elems) != 2 || arr.Dims != nil || arr.Elems[0].IsNull() || arr.Elems[1].IsNull() {
		return s, pgerror.New(pgerror.InvalidParameterValue, "expected 2-element int8 array")
	}
	return [2]int64{arr.Elems[0].Int(), arr.Elems[1].Int()}, nil
}

func integerArray(n, sum int64) types.Datum {
	return types.NewArray(&types.Array{Elem: types.TInt8, Elems: []types.Datum{types.Int(n), types.Int(sum)}})
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
