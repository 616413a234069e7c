package builtin

import (
	"math"
	"math/bits"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/types"
)

// sumInt implements sum(smallint) and sum(integer), whose result is bigint.
type sumInt struct {
	some bool
	sum  int64
}

func (s *sumInt) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	s.some = true
	var err error
	s.sum, err = AddInt8(s.sum, a[0].Int())
	return err
}

func (s *sumInt) addInts(values []int64) (err error) {
	s.some = s.some || len(values) > 0
	for _, n := range values {
		if s.sum, err = AddInt8(s.sum, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *sumInt) combine(from *sumInt) (err error) {
	s.some = s.some || from.some
	s.sum, err = AddInt8(s.sum, from.sum)
	return err
}

func (s *sumInt) Result(*Env) (types.Datum, error) {
	if !s.some {
		return types.Null, nil
	}
	return types.Int(s.sum), nil
}

// wideSum adds integers in 128 bits, which no number of rows overflows.
type wideSum struct {
	n      int64
	hi, lo uint64 // two's complement
}

func (w *wideSum) add(n int64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, uint64(n), 0)
	w.hi += uint64(n>>63) + carry
	w.n++
}

func (w *wideSum) addInts(values []int64) error {
	sum := *w
	for _, n := range values {
		sum.add(n)
	}
	*w = sum
	return nil
}

func (w *wideSum) addAll(from *wideSum) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, from.lo, 0)
	w.hi += from.hi + carry
	w.n += from.n
}

func (w *wideSum) decimal() *apd.Decimal {
	d := new(apd.Decimal)
	hi, lo := w.hi, w.lo
	if d.Negative = int64(hi) < 0; d.Negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	d.Coeff.SetUint64(hi)
	d.Coeff.Lsh(&d.Coeff, 64)
	var low apd.BigInt
	low.SetUint64(lo)
	d.Coeff.Add(&d.Coeff, &low)
	return d
}

// sumWide implements sum(bigint), avgInt the avg of all integers; both are numeric.
type sumWide struct{ wideSum }
type avgInt struct{ wideSum }

func (s *sumWide) combine(from *sumWide) error { s.addAll(&from.wideSum); return nil }
func (s *avgInt) combine(from *avgInt) error   { s.addAll(&from.wideSum); return nil }

func (s *sumWide) Add(_ *Env, a []types.Datum) error {
	if !a[0].IsNull() {
		s.add(a[0].Int())
	}
	return nil
}

func (s *sumWide) Result(*Env) (types.Datum, error) {
	if s.n == 0 {
		return types.Null, nil
	}
	return types.Decimal(s.decimal()), nil
}

func (s *avgInt) Add(_ *Env, a []types.Datum) error {
	if !a[0].IsNull() {
		s.add(a[0].Int())
	}
	return nil
}

func (s *avgInt) Result(*Env) (types.Datum, error) {
	if s.n == 0 {
		return types.Null, nil
	}
	return numericDatum(DivNumeric(s.decimal(), types.NewNumeric(s.n)))
}

// sumFloat implements sum and avg of double precision and real; a real's sum is a real.
type sumFloat struct {
	n    int64
	sum  float64
	avg  bool
	real bool
}

func (s *sumFloat) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	s.n++
	var err error
	if s.real && !s.avg {
		s.sum, err = AddFloat4(s.sum, a[0].Float())
		return err
	}
	s.sum, err = AddFloat8(s.sum, a[0].Float())
	return err
}

func (s *sumFloat) Result(*Env) (types.Datum, error) {
	switch {
	case s.n == 0:
		return types.Null, nil
	case s.avg:
		return types.Float(s.sum / float64(s.n)), nil
	}
	return types.Float(s.sum), nil
}

// sumNumeric implements sum and avg of numeric. Finite values are added in place; NaN and infinities are counted.
type sumNumeric struct {
	n                 int64
	sum               apd.Decimal
	nan, posInf, ninf int64
	avg               bool
}

func (s *sumNumeric) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	s.n++
	d := a[0].Decimal()
	switch {
	case isNaN(d):
		s.nan++
	case isInf(d) && d.Negative:
		s.ninf++
	case isInf(d):
		s.posInf++
	default:
		return s.addFinite(d)
	}
	return nil
}

func (s *sumNumeric) addFinite(d *apd.Decimal) error {
	if s.sum.Exponent == d.Exponent && s.sum.Negative == d.Negative {
		s.sum.Coeff.Add(&s.sum.Coeff, &d.Coeff)
		return nil
	}
	sum, err := AddNumeric(&s.sum, d)
	if err != nil {
		return err
	}
	s.sum.Set(sum)
	return nil
}

func (s *sumNumeric) combine(from *sumNumeric) error {
	s.n += from.n
	s.nan += from.nan
	s.posInf += from.posInf
	s.ninf += from.ninf
	return s.addFinite(&from.sum)
}

func (s *sumNumeric) Result(*Env) (types.Datum, error) {
	switch {
	case s.n == 0:
		return types.Null, nil
	case s.nan > 0, s.posInf > 0 && s.ninf > 0:
		return types.Decimal(types.NumericNaN), nil
	case s.posInf > 0:
		return types.Decimal(types.NumericInf), nil
	case s.ninf > 0:
		return types.Decimal(types.NumericNegInf), nil
	case s.avg:
		return numericDatum(DivNumeric(&s.sum, types.NewNumeric(s.n)))
	}
	return numericDatum(types.CheckNumeric(new(apd.Decimal).Set(&s.sum)))
}

// sumInterval implements sum and avg of interval.
type sumInterval struct {
	n   int64
	sum types.Interval
	avg bool
}

func (s *sumInterval) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	s.n++
	var err error
	s.sum, err = AddInterval(s.sum, a[0].Interval())
	return err
}

func (s *sumInterval) Result(*Env) (types.Datum, error) {
	if s.n == 0 {
		return types.Null, nil
	}
	if s.avg {
		return intervalDatum(DivInterval(s.sum, float64(s.n)))
	}
	return types.NewInterval(s.sum), nil
}

func sumAggs() []aggDecl {
	float := func(avg, real bool) func(*Overload) func() Accumulator {
		return fixed(func() Accumulator { return &sumFloat{avg: avg, real: real} })
	}
	out := []aggDecl{
		{sig: "sum(int2) int8", make: fixed(func() Accumulator { return new(sumInt) }), combine: combining((*sumInt).combine), addInts: adding((*sumInt).addInts)},
		{sig: "sum(int4) int8", make: fixed(func() Accumulator { return new(sumInt) }), combine: combining((*sumInt).combine), addInts: adding((*sumInt).addInts)},
		{sig: "sum(int8) numeric", make: fixed(func() Accumulator { return new(sumWide) }), combine: combining((*sumWide).combine), addInts: adding((*sumWide).addInts)},
		{sig: "sum(float4) float4", make: float(false, true)},
		{sig: "sum(float8) float8", make: float(false, false)},
		{sig: "sum(numeric) numeric", make: fixed(func() Accumulator { return new(sumNumeric) }), combine: combining((*sumNumeric).combine)},
		{sig: "sum(interval) interval", make: fixed(func() Accumulator { return new(sumInterval) })},
		{sig: "avg(float4) float8", make: float(true, true)},
		{sig: "avg(float8) float8", make: float(true, false)},
		{sig: "avg(numeric) numeric", make: fixed(func() Accumulator { return &sumNumeric{avg: true} }), combine: combining((*sumNumeric).combine)},
		{sig: "avg(interval) interval", make: fixed(func() Accumulator { return &sumInterval{avg: true} })},
	}
	for _, t := range []string{"int2", "int4", "int8"} {
		out = append(out, aggDecl{sig: "avg(" + t + ") numeric", make: fixed(func() Accumulator { return new(avgInt) }),
			combine: combining((*avgInt).combine), addInts: adding((*avgInt).addInts)})
	}
	return out
}

// momentsFloat maintains count, sum and sum of squared differences of floats (Youngs and Cramer 1971).
type momentsFloat struct {
	n, sum, sqDiff float64
	finish         func(m *momentsFloat) (float64, bool)
}

func (m *momentsFloat) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	v, before := a[0].Float(), m.sum
	m.n++
	m.sum += v
	if m.n > 1 {
		t := v*m.n - m.sum
		m.sqDiff += t * t / (m.n * (m.n - 1))
		if math.IsInf(m.sum, 0) || math.IsInf(m.sqDiff, 0) {
			if !math.IsInf(v, 0) && !math.IsInf(before, 0) {
				return errFloatOverflow()
			}
			m.sqDiff = math.NaN()
		}
	} else if math.IsInf(v, 0) || math.IsNaN(v) {
		m.sqDiff = math.NaN()
	}
	return nil
}

func (m *momentsFloat) Result(*Env) (types.Datum, error) {
	v, ok := m.finish(m)
	if !ok {
		return types.Null, nil
	}
	return types.Float(v), nil
}

// momentsNumeric maintains count, sum and sum of squares of exact numbers.
type momentsNumeric struct {
	n         int64
	sum, sum2 *apd.Decimal
	special   bool // NaN or an infinity was seen
	sample    bool
	root      bool
	ints      bool
}

func (m *momentsNumeric) Add(env *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	if !m.ints {
		if err := env.Step(multiplySteps(a[0].Decimal())); err != nil {
			return err
		}
	}
	var d *apd.Decimal
	if m.ints {
		d = types.NewNumeric(a[0].Int())
	} else {
		d = a[0].Decimal()
	}
	m.n++
	if d.Form != apd.Finite {
		m.special = true
		return nil
	}
	square, err := MulNumeric(d, d)
	if err != nil {
		return err
	}
	if m.sum == nil {
		m.sum, m.sum2 = d, square
		return nil
	}
	if m.sum, err = AddNumeric(m.sum, d); err != nil {
		return err
	}
	m.sum2, err = AddNumeric(m.sum2, square)
	return err
}

// Result computes (N·Σx² - (Σx)²) / (N·N) or, for a sample, / (N·(N-1)), and its root.
func (m *momentsNumeric) Result(*Env) (types.Datum, error) {
	if m.n == 0 || m.sample && m.n < 2 {
		return types.Null, nil
	}
	if m.special {
		return types.Decimal(types.NumericNaN), nil
	}
	n := types.NewNumeric(m.n)
	left, err := MulNumeric(n, m.sum2)
	if err != nil {
		return types.Null, err
	}
	right, err := MulNumeric(m.sum, m.sum)
	if err != nil {
		return types.Null, err
	}
	num, err := SubNumeric(left, right)
	if err != nil {
		return types.Null, err
	}
	if signum(num) <= 0 {
		return types.Decimal(types.NewNumeric(0)), nil
	}
	den := n
	if m.sample {
		den = types.NewNumeric(m.n - 1)
	}
	if den, err = MulNumeric(n, den); err != nil {
		return types.Null, err
	}
	v, err := DivNumeric(num, den)
	if err == nil && m.root {
		v, err = sqrtToScale(&Env{}, v, -int(v.Exponent))
	}
	return numericDatum(v, err)
}

// statAggs declares variance and deviation, and the aggregates of two variables.
func statAggs() []aggDecl {
	var out []aggDecl
	for _, x := range []struct {
		name         string
		sample, root bool
	}{
		{"var_pop", false, false}, {"var_samp", true, false}, {"variance", true, false},
		{"stddev_pop", false, true}, {"stddev_samp", true, true}, {"stddev", true, true},
	} {
		for _, t := range []string{"int2", "int4", "int8", "numeric"} {
			out = append(out, aggDecl{sig: x.name + "(" + t + ") numeric", make: fixed(func() Accumulator {
				return &momentsNumeric{sample: x.sample, root: x.root, ints: t != "numeric"}
			})})
		}
		for _, t := range []string{"float4", "float8"} {
			out = append(out, aggDecl{sig: x.name + "(" + t + ") float8", make: fixed(func() Accumulator {
				return &momentsFloat{finish: spreadFinish(x.sample, x.root)}
			})})
		}
	}
	return append(out, pairAggs()...)
}

// moments2 maintains the moments of pairs (y, x) (Youngs and Cramer 1971).
type moments2 struct {
	n, sumX, sumXX, sumY, sumYY, sumXY float64
	finish                             func(m *moments2) (float64, bool)
}

func (m *moments2) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() || a[1].IsNull() {
		return nil
	}
	y, x := a[0].Float(), a[1].Float()
	beforeX, beforeY := m.sumX, m.sumY
	m.n++
	m.sumX += x
	m.sumY += y
	if m.n == 1 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			m.sumXX, m.sumXY = math.NaN(), math.NaN()
		}
		if math.IsNaN(y) || math.IsInf(y, 0) {
			m.sumYY, m.sumXY = math.NaN(), math.NaN()
		}
		return nil
	}
	dx, dy := x*m.n-m.sumX, y*m.n-m.sumY
	scale := 1 / (m.n * (m.n - 1))
	m.sumXX += dx * dx * scale
	m.sumYY += dy * dy * scale
	m.sumXY += dx * dy * scale
	return m.checkRange(!math.IsInf(beforeX, 0) && !math.IsInf(x, 0), !math.IsInf(beforeY, 0) && !math.IsInf(y, 0))
}

// checkRange returns an error if finite inputs give infinity; infinite ones give NaN.
func (m *moments2) checkRange(finiteX, finiteY bool) error {
	infX := math.IsInf(m.sumX, 0) || math.IsInf(m.sumXX, 0)
	infY := math.IsInf(m.sumY, 0) || math.IsInf(m.sumYY, 0)
	if infX && finiteX || infY && finiteY || math.IsInf(m.sumXY, 0) && finiteX && finiteY {
		return errFloatOverflow()
	}
	for _, s := range []*float64{&m.sumXX, &m.sumYY, &m.sumXY} {
		if math.IsInf(*s, 0) {
			*s = math.NaN()
		}
	}
	return nil
}

func (m *moments2) Result(*Env) (types.Datum, error) {
	v, ok := m.finish(m)
	if !ok {
		return types.Null, nil
	}
	return types.Float(v), nil
}

// spreadFinish computes a variance, or a deviation, from moments.
func spreadFinish(sample, root bool) func(m *momentsFloat) (float64, bool) {
	return func(m *momentsFloat) (float64, bool) {
		n := m.n
		if sample {
			n--
		}
		if n == 0 || sample && n < 0 { // A state that a caller has made may have any number.
			return 0, false
		}
		v := m.sqDiff / n
		if root {
			v = math.Sqrt(v)
		}
		return v, true
	}
}

// pairFinishes compute the aggregates of two variables from moments, by name.
func pairFinishes() map[string]func(m *moments2) (float64, bool) {
	some := func(m *moments2) bool { return !(m.n < 1) } // also where it is NaN, in a state that no aggregate has made
	return map[string]func(m *moments2) (float64, bool){
		"covar_pop":  func(m *moments2) (float64, bool) { return m.sumXY / m.n, some(m) },
		"covar_samp": func(m *moments2) (float64, bool) { return m.sumXY / (m.n - 1), !(m.n < 2) },
		"corr": func(m *moments2) (float64, bool) {
			return m.sumXY / math.Sqrt(m.sumXX*m.sumYY), some(m) && m.sumXX != 0 && m.sumYY != 0
		},
		"regr_avgx": func(m *moments2) (float64, bool) { return m.sumX / m.n, some(m) },
		"regr_avgy": func(m *moments2) (float64, bool) { return m.sumY / m.n, some(m) },
		"regr_sxx":  func(m *moments2) (float64, bool) { return m.sumXX, some(m) },
		"regr_syy":  func(m *moments2) (float64, bool) { return m.sumYY, some(m) },
		"regr_sxy":  func(m *moments2) (float64, bool) { return m.sumXY, some(m) },
		"regr_slope": func(m *moments2) (float64, bool) {
			return m.sumXY / m.sumXX, some(m) && m.sumXX != 0
		},
		"regr_intercept": func(m *moments2) (float64, bool) {
			return (m.sumY - m.sumX*m.sumXY/m.sumXX) / m.n, some(m) && m.sumXX != 0
		},
		"regr_r2": func(m *moments2) (float64, bool) {
			if m.sumYY == 0 {
				return 1, some(m) && m.sumXX != 0
			}
			return m.sumXY * m.sumXY / (m.sumXX * m.sumYY), some(m) && m.sumXX != 0
		},
	}
}

func pairAggs() []aggDecl {
	var out []aggDecl
	for name, finish := range pairFinishes() {
		out = append(out, aggDecl{sig: name + "(float8,float8) float8",
			make: fixed(func() Accumulator { return &moments2{finish: finish} })})
	}
	return append(out, aggDecl{sig: "regr_count(float8,float8) int8",
		make: fixed(func() Accumulator { return new(countPairs) })})
}

type countPairs struct{ n int64 }

func (c *countPairs) Add(_ *Env, a []types.Datum) error {
	if !a[0].IsNull() && !a[1].IsNull() {
		c.n++
	}
	return nil
}

func (c *countPairs) Result(*Env) (types.Datum, error) { return types.Int(c.n), nil }
