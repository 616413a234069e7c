package builtin

import (
	"math"
	"math/big"
	"sync"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/types"
)

// The transcendental functions on numeric compute in binary, with math/big, and round once to decimals at the end.
// Precisions are in bits. The relative error of a result is less than 2^-prec, unless stated otherwise.

const (
	bitsPerDigit = 3.3219280948873626
	// guardBits compensate for a few roundings.
	guardBits = 32
)

// digitBits returns the number of bits for a number of decimal digits.
func digitBits(digits int) uint {
	return uint(float64(max(digits, 1))*bitsPerDigit) + 2
}

// floatOf returns a finite numeric as a binary number.
func floatOf(a *apd.Decimal, prec uint) *big.Float {
	f := new(big.Float).SetPrec(prec).SetInt(a.Coeff.MathBigInt())
	switch {
	case a.Exponent > 0:
		f.Mul(f, powerOf10(int(a.Exponent), prec))
	case a.Exponent < 0:
		f.Quo(f, powerOf10(-int(a.Exponent), prec))
	}
	if a.Negative {
		f.Neg(f)
	}
	return f
}

func powerOf10(n int, prec uint) *big.Float {
	return new(big.Float).SetPrec(prec).SetInt(types.Pow10(n).MathBigInt())
}

// numericOf rounds a binary number to a scale, halves away from zero.
func numericOf(f *big.Float, scale int) *apd.Decimal {
	out := &apd.Decimal{Exponent: -int32(scale)}
	scaled := new(big.Float).SetPrec(f.Prec() + guardBits).Set(f)
	scaled.Abs(scaled)
	scaled.Mul(scaled, powerOf10(scale, f.Prec()+guardBits))
	scaled.Add(scaled, big.NewFloat(0.5))
	n, _ := scaled.Int(nil)
	out.Coeff.SetMathBigInt(n)
	out.Negative = f.Signbit() && n.Sign() != 0
	return out
}

// ln2 is the natural logarithm of 2 in fixed point, with the largest precision requested so far.
var ln2 struct {
	sync.Mutex
	value *big.Int
	prec  uint // bits after the point
}

// fixedLn2 returns ln(2)·2^prec with an error less than 2.
func fixedLn2(prec uint) *big.Int {
	ln2.Lock()
	defer ln2.Unlock()
	if ln2.value == nil || ln2.prec < prec {
		// 18·atanh(1/26) - 2·atanh(1/4801) + 8·atanh(1/8749)
		p := prec + prec/2 + 256
		sum := new(big.Int)
		for _, term := range [][2]int64{{18, 26}, {-2, 4801}, {8, 8749}} {
			t := inverseAtanh(term[1], p)
			sum.Add(sum, t.Mul(t, big.NewInt(term[0])))
		}
		ln2.prec = p - 64
		ln2.value = sum.Rsh(sum, 64)
	}
	return new(big.Int).Rsh(ln2.value, ln2.prec-prec)
}

func ln2To(prec uint) *big.Float {
	f := new(big.Float).SetPrec(prec).SetInt(fixedLn2(prec + 2))
	return f.SetMantExp(f, -int(prec+2))
}

// inverseAtanh is atanh(1/n)·2^p.
func inverseAtanh(n int64, p uint) *big.Int {
	square := big.NewInt(n * n)
	power := new(big.Int).Lsh(big.NewInt(1), p)
	power.Quo(power, big.NewInt(n))
	sum, term := new(big.Int), new(big.Int)
	for k := int64(1); power.Sign() != 0; k += 2 {
		sum.Add(sum, term.Quo(power, big.NewInt(k)))
		power.Quo(power, square)
	}
	return sum
}

// bigExp is e^x; |x| is less than 2^31.
func bigExp(x *big.Float, prec uint) *big.Float {
	if x.Sign() == 0 {
		return new(big.Float).SetPrec(prec).SetInt64(1)
	}
	// x = k·ln2 + r, and e^r = (e^(r/2^m))^(2^m): the series of a small number is short. Each squaring
	// doubles the error. All in fixed point with p bits after the point.
	m := uint(math.Sqrt(float64(prec)))
	p := prec + m + guardBits
	approximate, _ := x.Float64()
	k := int64(math.Round(approximate / math.Ln2))
	scaled := new(big.Float).SetMantExp(x, int(p))
	r, _ := scaled.Int(nil)
	product := fixedLn2(p + 32)
	term := big.NewInt(k)
	product.Mul(product, term)
	r.Sub(r, product.Rsh(product, 32))
	r.Rsh(r, m)
	sum := new(big.Int).Lsh(big.NewInt(1), p)
	term.Set(r)
	divisor := new(big.Int)
	for i := int64(2); term.BitLen() > 1; i++ { // A negative term ends at -1.
		sum.Add(sum, term)
		product.Mul(term, r)
		product.Rsh(product, p)
		term.Quo(product, divisor.SetInt64(i))
	}
	for range m {
		product.Mul(sum, sum)
		sum.Rsh(product, p)
	}
	out := new(big.Float).SetPrec(prec).SetInt(sum)
	return out.SetMantExp(out, int(k)-int(p))
}

// bigLn is ln(x) of x > 0.
func bigLn(x *big.Float, prec uint) *big.Float {
	// x = f·2^e with f between 0.7 and 1.4.
	f := new(big.Float).SetPrec(max(x.Prec(), prec+guardBits))
	e := x.MantExp(f)
	if approximate, _ := f.Float64(); approximate < math.Sqrt2/2 {
		f.SetMantExp(f, 1)
		e--
	}
	d := new(big.Float).SetPrec(f.Prec()).Sub(f, big.NewFloat(1))
	if d.Sign() == 0 {
		out := new(big.Float).SetPrec(prec).SetInt64(int64(e))
		return out.Mul(out, ln2To(prec+guardBits))
	}
	var y *big.Float
	if d.MantExp(nil) < -48 {
		y = lnNearOne(d, prec+guardBits)
	} else {
		y = lnByNewton(f, d, prec+guardBits)
	}
	if e != 0 {
		whole := new(big.Float).SetPrec(prec + guardBits).SetInt64(int64(e))
		y.Add(y, whole.Mul(whole, ln2To(prec+guardBits)))
	}
	return y.SetPrec(prec)
}

// lnNearOne is ln(1+d) = 2·atanh(d/(2+d)) of a small d: each term of the series is d² times the one before.
func lnNearOne(d *big.Float, prec uint) *big.Float {
	z := new(big.Float).SetPrec(prec).Add(d, big.NewFloat(2))
	z.Quo(d, z)
	square := new(big.Float).SetPrec(prec).Mul(z, z)
	sum, power, term := new(big.Float).Copy(z), new(big.Float).Copy(z), new(big.Float).SetPrec(prec)
	least := z.MantExp(nil) - int(prec)
	for k := int64(3); ; k += 2 {
		power.Mul(power, square)
		if power.Sign() == 0 || power.MantExp(nil) < least {
			return sum.SetMantExp(sum, 1)
		}
		sum.Add(sum, term.Quo(power, new(big.Float).SetPrec(64).SetInt64(k)))
	}
}

// lnByNewton computes ln(f) of f = 1+d, |d| above 2^-49, by y + 2·(f-e^y)/(f+e^y), which triples the number of correct
// bits.
func lnByNewton(f, d *big.Float, prec uint) *big.Float {
	lost := uint(max(0, -d.MantExp(nil))) + guardBits // by the subtraction f-e^y
	var precs []uint
	for p := prec; p > 48; p = p/3 + 4 { // y begins with 50 correct bits.
		precs = append(precs, p)
	}
	start, _ := d.Float64()
	y := big.NewFloat(math.Log1p(start))
	for i := len(precs) - 1; i >= 0; i-- {
		p := precs[i] + lost
		power := bigExp(y, p)
		num := new(big.Float).SetPrec(p).Sub(f, power)
		den := new(big.Float).SetPrec(p).Add(f, power)
		if num.Sign() == 0 {
			continue
		}
		num.SetMantExp(num.Quo(num, den), 1)
		y = new(big.Float).SetPrec(p).Add(y, num)
	}
	return y.SetPrec(prec)
}
