package builtin

import "math"

// Go's math.Pow loses up to a dozen bits for large exponents, and its Exp and Log occasionally differ from the C
// library's in the last bit. PostgreSQL prints every bit, so these functions compute in double-double arithmetic
// (Dekker 1971), about 100 bits, and round once.

// double is the unevaluated sum hi + lo with |lo| at most half a unit in the last place of hi.
type double struct{ hi, lo float64 }

func quickSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

func (x double) add(y double) double {
	s := twoSum(x.hi, y.hi)
	return quickSum(s.hi, s.lo+x.lo+y.lo)
}

func (x double) mul(y double) double {
	p := x.hi * y.hi
	e := math.FMA(x.hi, y.hi, -p) + x.hi*y.lo + x.lo*y.hi
	return quickSum(p, e)
}

func (x double) div(y double) double {
	q := x.hi / y.hi
	r := x.add(double{q, 0}.mul(double{-y.hi, -y.lo}))
	return quickSum(q, r.hi/y.hi)
}

func (x double) scale(f float64) double { return double{x.hi * f, x.lo * f} } // f a power of two

// The logarithms of 2 and 10.
var (
	ln2Double  = double{0.6931471805599453, 2.3190468138462996e-17}
	ln10Double = double{2.302585092994046, -2.1707562233822494e-16}
)

// logDouble is ln(v) for a finite v > 0.
func logDouble(v float64) double {
	m, e := math.Frexp(v)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	// ln(m) = 2·atanh(s), s = (m-1)/(m+1), |s| < 0.172.
	s := twoSum(m, -1).div(twoSum(m, 1))
	sq := s.mul(s)
	sum := double{}
	for k := 41; k >= 1; k -= 2 {
		sum = sum.mul(sq).add(double{1, 0}.div(double{float64(k), 0}))
	}
	return sum.mul(s).scale(2).add(ln2Double.mul(double{float64(e), 0}))
}

// expDouble is e^x, rounded, possibly to infinity or zero.
func expDouble(x double) float64 {
	switch {
	case x.hi > 710:
		return math.Inf(1)
	case x.hi < -746:
		return 0
	}
	k := math.Round(x.hi / ln2Double.hi)
	r := x.add(ln2Double.mul(double{-k, 0}))
	// e^r = (e^(r/256))^256, the inner one by its series.
	const halvings = 8
	r = r.scale(1.0 / (1 << halvings))
	sum := double{1, 0}
	for n := 10; n >= 1; n-- {
		sum = sum.mul(r).div(double{float64(n), 0}).add(double{1, 0})
	}
	for range halvings {
		sum = sum.mul(sum)
	}
	return math.Ldexp(sum.hi+sum.lo, int(k))
}

// expExact, logExact and log10Exact are the functions for all arguments in their domain.
func expExact(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return math.Exp(v)
	}
	return expDouble(double{v, 0})
}

func logExact(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return math.Log(v)
	}
	d := logDouble(v)
	return d.hi + d.lo
}

func log10Exact(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return math.Log10(v)
	}
	d := logDouble(v).div(ln10Double)
	return d.hi + d.lo
}

// powExact computes a^b outside math.Pow's special cases: finite, a not zero.
func powExact(a, b float64) float64 {
	if b == 2 {
		return a * a
	}
	if a == 0 || a == 1 || b == 0 || math.IsInf(a, 0) || math.IsInf(b, 0) || math.IsNaN(a) || math.IsNaN(b) {
		return math.Pow(a, b)
	}
	l := logDouble(math.Abs(a))
	r := 0.0
	switch estimate := l.hi * b; {
	case estimate > 1000:
		r = math.Inf(1)
	case estimate > -1000:
		r = expDouble(l.mul(double{b, 0}))
	}
	if a < 0 && math.Mod(b, 2) != 0 {
		r = -r
	}
	return r
}
