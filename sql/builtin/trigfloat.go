package builtin

import (
	"math"
	"math/big"
	"sync"
)

// Go's sin, cos, tan and their inverses occasionally differ from the C library's in the last bits. These functions
// compute in double-double arithmetic and round once, as those of powfloat.go do.

// halfPi is π/2 in three parts; the first two are halfPiDouble.
var halfPi = [3]float64{1.5707963267948966, 6.123233995736766e-17, -1.497384904859169777e-33}

var halfPiDouble = double{halfPi[0], halfPi[1]}

// smallAngle bounds the angles that can be reduced with halfPi's bits.
const smallAngle = 1 << 20

// inverseFactorials are 1/n!.
var inverseFactorials = sync.OnceValue(func() (inv [28]double) {
	f := double{1, 0}
	for n := range inv {
		if n > 0 {
			f = f.div(double{float64(n), 0})
		}
		inv[n] = f
	}
	return inv
})

func (x double) neg() double { return double{-x.hi, -x.lo} }

func (x double) float() float64 { return x.hi + x.lo }

func fromFloat(v float64) double { return double{v, 0} }

// reduce returns v - k·π/2, at most about π/4, and k modulo 4.
func reduce(v float64) (r double, quadrant int) {
	if math.Abs(v) >= smallAngle {
		return reduceLarge(v)
	}
	k := math.Round(v / halfPi[0])
	r = fromFloat(v)
	for _, part := range halfPi {
		p := k * part
		r = r.add(fromFloat(-p)).add(fromFloat(-math.FMA(k, part, -p)))
	}
	return r, int(k) & 3
}

// reduceLarge is reduce for any finite v.
func reduceLarge(v float64) (r double, quadrant int) {
	pi := fixedPi()
	f := new(big.Float).SetPrec(piBits).SetFloat64(v)
	// In fixed point with piBits bits after the point, v is exact.
	n, _ := f.SetMantExp(f, piBits).Int(nil)
	half := new(big.Int).Rsh(pi, 1)
	k := new(big.Int)
	k.Div(new(big.Int).Add(n, new(big.Int).Rsh(half, 1)), half)
	n.Sub(n, new(big.Int).Mul(k, half))
	rest := new(big.Float).SetPrec(piBits).SetInt(n)
	rest.SetMantExp(rest, -piBits)
	r.hi, _ = rest.Float64()
	r.lo, _ = rest.Sub(rest, new(big.Float).SetFloat64(r.hi)).Float64()
	return r, int(new(big.Int).And(k, big.NewInt(3)).Int64())
}

// piBits are the bits after the point that the reduction of the largest float needs.
const piBits = 1100 + 256

// fixedPi is π in fixed point: 16·arctan(1/5) - 4·arctan(1/239).
var fixedPi = sync.OnceValue(func() *big.Int {
	const guard = 64
	inverseArctan := func(n int64) *big.Int {
		term := new(big.Int).Lsh(big.NewInt(1), piBits+guard)
		term.Quo(term, big.NewInt(n))
		sum := new(big.Int)
		square := big.NewInt(n * n)
		for k := int64(1); term.Sign() != 0; k += 2 {
			t := new(big.Int).Quo(term, big.NewInt(k))
			if k&2 == 0 {
				sum.Add(sum, t)
			} else {
				sum.Sub(sum, t)
			}
			term.Quo(term, square)
		}
		return sum
	}
	pi := new(big.Int).Lsh(inverseArctan(5), 4)
	pi.Sub(pi, new(big.Int).Lsh(inverseArctan(239), 2))
	return pi.Rsh(pi, guard)
})

// sinCos returns the sine and cosine of a finite v.
func sinCos(v float64) (sin, cos double) {
	r, quadrant := reduce(v)
	square := r.mul(r)
	inv := inverseFactorials()
	for n := len(inv) - 1; n > 0; n -= 2 {
		sin = sin.mul(square).neg().add(inv[n])
		cos = cos.mul(square).neg().add(inv[n-1])
	}
	sin = sin.mul(r)
	switch quadrant {
	case 1:
		return cos, sin.neg()
	case 2:
		return sin.neg(), cos.neg()
	case 3:
		return cos.neg(), sin
	}
	return sin, cos
}

// plainAngle reports whether v is not finite or tiny. Package math's results for such arguments are exact.
func plainAngle(v float64) bool {
	return math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) < 1e-9
}

func sinExact(v float64) float64 {
	if plainAngle(v) {
		return math.Sin(v)
	}
	sin, _ := sinCos(v)
	return sin.float()
}

func cosExact(v float64) float64 {
	if plainAngle(v) {
		return math.Cos(v)
	}
	_, cos := sinCos(v)
	return cos.float()
}

func tanExact(v float64) float64 {
	if plainAngle(v) {
		return math.Tan(v)
	}
	sin, cos := sinCos(v)
	return sin.div(cos).float()
}

// atanExact corrects the approximation a by arctan((v-tan a)/(1+v·tan a)), which is as good as exact.
func atanExact(v float64) float64 {
	a := math.Atan(v)
	if plainAngle(v) || math.Abs(v) > 1e20 {
		return a
	}
	sin, cos := sinCos(a)
	x := fromFloat(v)
	return fromFloat(a).add(x.mul(cos).add(sin.neg()).div(cos.add(x.mul(sin)))).float()
}

func atan2Exact(y, x float64) float64 {
	a := math.Atan2(y, x)
	if y == 0 || x == 0 || math.IsNaN(a) || math.IsInf(y, 0) || math.IsInf(x, 0) {
		return a
	}
	my, ey := math.Frexp(y)
	mx, ex := math.Frexp(x)
	if ey-ex > 60 || ex-ey > 60 {
		return a
	}
	dy, dx := fromFloat(math.Ldexp(my, ey-ex)), fromFloat(mx)
	sin, cos := sinCos(a)
	return fromFloat(a).add(dy.mul(cos).add(dx.mul(sin).neg()).div(dx.mul(cos).add(dy.mul(sin)))).float()
}

// asinSmall is the arc sine up to about 0.75.
func asinSmall(x double) double {
	a := math.Asin(x.hi)
	sin, cos := sinCos(a)
	return fromFloat(a).add(x.add(sin.neg()).div(cos))
}

// acosLarge is the arc cosine of v from 0.5 to 1: twice the arc sine of √((1-v)/2).
func acosLarge(v float64) double {
	if v == 1 {
		return double{}
	}
	x := fromFloat((1 - v) / 2) // exact
	root := fromFloat(math.Sqrt(x.hi))
	root = root.add(x.add(root.mul(root).neg()).div(root.scale(2)))
	return asinSmall(root).scale(2)
}

func asinExact(v float64) float64 {
	switch m := math.Abs(v); {
	case math.IsNaN(v) || m < 1e-9:
		return v
	case m <= 0.5:
		return asinSmall(fromFloat(v)).float()
	default:
		return math.Copysign(halfPiDouble.add(acosLarge(m).neg()).float(), v)
	}
}

func acosExact(v float64) float64 {
	switch {
	case math.IsNaN(v):
		return v
	case v > 0.5:
		return acosLarge(v).float()
	case v >= -0.5:
		return halfPiDouble.add(asinSmall(fromFloat(v)).neg()).float()
	default:
		return halfPiDouble.scale(2).add(acosLarge(-v).neg()).float()
	}
}
