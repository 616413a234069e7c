package gen

import "math/bits"

// golden is 2^64 divided by the golden ratio, made odd: multiples of it are far apart.
const golden = 0x9e3779b97f4a7c15

// stream identifies the purpose of a random number, so that two uses of one key are independent. A change of these
// numbers changes the rows, and requires a new GeneratorVersion.
type stream uint64

const (
	streamZip stream = iota + 1
	streamTaxrate
	streamAddress
	streamCompany
	streamSecurity
	streamPhase
	streamDaily
	streamFinancial
	streamNews
	streamCustomer
	streamPerson
	streamBroker
	streamAccount
	streamBasket
	streamPermission
	streamCustomerTax
	streamWatch
	streamOrder
	streamExchange
)

// mix64 is the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// source is a sequence of random numbers: splitmix64.
type source uint64

// at returns the random sequence of a key of a stream.
func (g *Generator) at(s stream, key int64) source {
	return source(mix64(mix64(uint64(g.scale.Seed)+uint64(s)*golden) ^ uint64(key)*golden))
}

func (r *source) next() uint64 {
	*r += golden
	return mix64(uint64(*r))
}

// below returns a number in [0, n).
func (r *source) below(n int64) int64 {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int64(hi)
}

// between returns a number in [lo, hi].
func (r *source) between(lo, hi int64) int64 { return lo + r.below(hi-lo+1) }

// percent returns true with a probability of p percent.
func (r *source) percent(p int64) bool { return r.below(100) < p }

// exponential returns a number with an exponential distribution, by von Neumann's method: it compares
// uniform numbers and needs no logarithm, so the result is the same on every processor.
func (r *source) exponential(mean int64) int64 {
	for whole := int64(0); ; whole += mean {
		first := r.next()
		last, run := first, 1
		for {
			u := r.next()
			if u >= last {
				break
			}
			last = u
			run++
		}
		if run%2 == 1 {
			part, _ := bits.Mul64(first, uint64(mean))
			return whole + int64(part)
		}
	}
}
