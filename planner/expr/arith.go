package expr

import (
	"math"
	"math/bits"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// ArithOp is an arithmetic operator on integers or floats.
type ArithOp uint8

// The arithmetic operators.
const (
	Add ArithOp = iota + 1
	Sub
	Mul
	Div
	Mod
)

// arithOps spells the operators; index is ArithOp.
var arithOps = [...]string{Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%"}

// ParseArithOp returns the operator that name spells, 0 for none.
func ParseArithOp(name string) ArithOp {
	for op, s := range arithOps {
		if s == name && s != "" {
			return ArithOp(op)
		}
	}
	return 0
}

// IntArith is arithmetic on smallint, integer or bigint with PostgreSQL's overflow errors: it replaces a Call of the
// builtin operator, without its argument slice.
type IntArith struct {
	Op   ArithOp
	L, R Scalar
	Typ  types.Type // of the result: its range is checked
}

// Type returns the result's type.
func (a *IntArith) Type() types.Type { return a.Typ }

// Eval computes.
func (a *IntArith) Eval(ev *Context, in types.Row) (types.Datum, error) {
	l, err := eval(a.L, ev, in)
	if err != nil {
		return types.Null, err
	}
	r, err := eval(a.R, ev, in)
	if err != nil || l.IsNull() || r.IsNull() {
		return types.Null, err
	}
	v, ok := int64(0), true
	x, y := l.Int(), r.Int()
	switch a.Op {
	case Add:
		v = x + y
		ok = (x^v)&(y^v) >= 0
	case Sub:
		v = x - y
		ok = (x^y)&(x^v) >= 0
	case Mul:
		v, ok = mulInt64(x, y)
	default:
		return a.divide(x, y)
	}
	if !ok || !fits(a.Typ, v) {
		return types.Null, outOfRange(a.Typ)
	}
	return types.Int(v), nil
}

func (a *IntArith) divide(x, y int64) (types.Datum, error) {
	if y == 0 {
		return types.Null, pgerror.New(pgerror.DivisionByZero, "division by zero")
	}
	if a.Op == Mod {
		if y == -1 {
			return types.Int(0), nil // MinInt64 % -1 would trap elsewhere; the answer is 0
		}
		return types.Int(x % y), nil
	}
	if y == -1 {
		if x == math.MinInt64 || !fits(a.Typ, -x) {
			return types.Null, outOfRange(a.Typ)
		}
		return types.Int(-x), nil
	}
	return types.Int(x / y), nil
}

func mulInt64(x, y int64) (int64, bool) {
	if x == math.MinInt64 || y == math.MinInt64 {
		return x * y, x == 0 || y == 0 || x == 1 || y == 1
	}
	neg := (x < 0) != (y < 0)
	hi, lo := bits.Mul64(uint64(absInt64(x)), uint64(absInt64(y)))
	if hi != 0 || lo > 1<<63 || (lo == 1<<63 && !neg) {
		return 0, false
	}
	if neg {
		return -int64(lo), true
	}
	return int64(lo), true
}

func absInt64(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// fits reports whether v is in the range of an integer type.
func fits(t types.Type, v int64) bool {
	switch t.OID {
	case types.OIDInt2:
		return v == int64(int16(v))
	case types.OIDInt4:
		return v == int64(int32(v))
	}
	return true
}

func outOfRange(t types.Type) error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "%s out of range", t)
}

// FloatArith is arithmetic on double precision, with PostgreSQL's overflow and underflow errors.
type FloatArith struct {
	Op   ArithOp
	L, R Scalar
}

// Type is double precision.
func (*FloatArith) Type() types.Type { return types.TFloat8 }

// Eval computes.
func (a *FloatArith) Eval(ev *Context, in types.Row) (types.Datum, error) {
	l, err := eval(a.L, ev, in)
	if err != nil {
		return types.Null, err
	}
	r, err := eval(a.R, ev, in)
	if err != nil || l.IsNull() || r.IsNull() {
		return types.Null, err
	}
	x, y := l.Float(), r.Float()
	var v float64
	switch a.Op {
	case Add:
		v = x + y
	case Sub:
		v = x - y
	case Mul:
		v = x * y
		if v == 0 && x != 0 && y != 0 {
			return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: underflow")
		}
	case Div:
		if y == 0 && !math.IsNaN(x) {
			return types.Null, pgerror.New(pgerror.DivisionByZero, "division by zero")
		}
		v = x / y
		if v == 0 && x != 0 && !math.IsInf(y, 0) {
			return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: underflow")
		}
	}
	if math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "value out of range: overflow")
	}
	return types.Float(v), nil
}
