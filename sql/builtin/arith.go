package builtin

import (
	"math"
	"math/bits"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The primitives of integer and float arithmetic, which the operators' overloads call and the planner evaluates inline.

func errInt2Range() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "smallint out of range")
}

func errInt4Range() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
}

func errInt8Range() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
}

func errIntRange(t types.OID) error {
	switch t {
	case types.OIDInt2:
		return errInt2Range()
	case types.OIDInt4:
		return errInt4Range()
	}
	return errInt8Range()
}

// ErrDivisionByZero is 22012.
func ErrDivisionByZero() error { return pgerror.New(pgerror.DivisionByZero, "division by zero") }

func errFloatOverflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: overflow")
}

func errFloatUnderflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: underflow")
}

func checkInt4(n int64) (int64, error) {
	if n != int64(int32(n)) {
		return 0, errInt4Range()
	}
	return n, nil
}

func checkInt2(n int64) (int64, error) {
	if n != int64(int16(n)) {
		return 0, errInt2Range()
	}
	return n, nil
}

// AddInt2 is smallint + smallint.
func AddInt2(a, b int64) (int64, error) { return checkInt2(a + b) }

// SubInt2 is smallint - smallint.
func SubInt2(a, b int64) (int64, error) { return checkInt2(a - b) }

// MulInt2 is smallint * smallint.
func MulInt2(a, b int64) (int64, error) { return checkInt2(a * b) }

// AddInt4 is integer + integer.
func AddInt4(a, b int64) (int64, error) { return checkInt4(a + b) }

// SubInt4 is integer - integer.
func SubInt4(a, b int64) (int64, error) { return checkInt4(a - b) }

// MulInt4 is integer * integer.
func MulInt4(a, b int64) (int64, error) { return checkInt4(a * b) }

// AddInt8 is bigint + bigint.
func AddInt8(a, b int64) (int64, error) {
	r := a + b
	if (a^r)&(b^r) < 0 {
		return 0, errInt8Range()
	}
	return r, nil
}

// SubInt8 is bigint - bigint.
func SubInt8(a, b int64) (int64, error) {
	r := a - b
	if (a^b)&(a^r) < 0 {
		return 0, errInt8Range()
	}
	return r, nil
}

// MulInt8 is bigint * bigint.
func MulInt8(a, b int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// Mul64 is unsigned: correct the high word for negative factors.
	h := int64(hi) - (a>>63)&b - (b>>63)&a
	if h != int64(lo)>>63 {
		return 0, errInt8Range()
	}
	return int64(lo), nil
}

// DivInt2 is smallint / smallint.
func DivInt2(a, b int64) (int64, error) {
	if b == 0 {
		return 0, ErrDivisionByZero()
	}
	return checkInt2(a / b)
}

// DivInt4 is integer / integer.
func DivInt4(a, b int64) (int64, error) {
	if b == 0 {
		return 0, ErrDivisionByZero()
	}
	return checkInt4(a / b)
}

// DivInt8 is bigint / bigint.
func DivInt8(a, b int64) (int64, error) {
	if b == 0 {
		return 0, ErrDivisionByZero()
	}
	if b == -1 && a == math.MinInt64 {
		return 0, errInt8Range()
	}
	return a / b, nil
}

// ModInt is % of all integer types; its result is in their range.
func ModInt(a, b int64) (int64, error) {
	if b == 0 {
		return 0, ErrDivisionByZero()
	}
	if b == -1 {
		return 0, nil
	}
	return a % b, nil
}

// AddFloat8 is double precision + double precision.
func AddFloat8(a, b float64) (float64, error) {
	r := a + b
	if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, errFloatOverflow()
	}
	return r, nil
}

// SubFloat8 is double precision - double precision.
func SubFloat8(a, b float64) (float64, error) { return AddFloat8(a, -b) }

// MulFloat8 is double precision * double precision.
func MulFloat8(a, b float64) (float64, error) {
	r := a * b
	if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && a != 0 && b != 0 {
		return 0, errFloatUnderflow()
	}
	return r, nil
}

// DivFloat8 is double precision / double precision.
func DivFloat8(a, b float64) (float64, error) {
	if b == 0 && !math.IsNaN(a) {
		return 0, ErrDivisionByZero()
	}
	r := a / b
	if math.IsInf(r, 0) && !math.IsInf(a, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && a != 0 && !math.IsInf(b, 0) {
		return 0, errFloatUnderflow()
	}
	return r, nil
}

// AddFloat4 is real + real.
func AddFloat4(a, b float64) (float64, error) {
	r := float64(float32(a) + float32(b))
	if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, errFloatOverflow()
	}
	return r, nil
}

// SubFloat4 is real - real.
func SubFloat4(a, b float64) (float64, error) { return AddFloat4(a, -b) }

// MulFloat4 is real * real.
func MulFloat4(a, b float64) (float64, error) {
	r := float64(float32(a) * float32(b))
	if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && a != 0 && b != 0 {
		return 0, errFloatUnderflow()
	}
	return r, nil
}

// DivFloat4 is real / real.
func DivFloat4(a, b float64) (float64, error) {
	if b == 0 && !math.IsNaN(a) {
		return 0, ErrDivisionByZero()
	}
	r := float64(float32(a) / float32(b))
	if math.IsInf(r, 0) && !math.IsInf(a, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && a != 0 && !math.IsInf(b, 0) {
		return 0, errFloatUnderflow()
	}
	return r, nil
}
