package builtin

import (
	"math"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// castFunction returns the function of a cast that has one in pg_cast, nil if there is none.
func castFunction(from, to types.OID) Func {
	if from == types.OIDJSONB {
		return jsonbCast(to)
	}
	switch to {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8, types.OIDOid, types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator:
		return toIntCast(from, to)
	case types.OIDFloat4, types.OIDFloat8:
		return toFloatCast(from, to)
	case types.OIDNumeric:
		return toNumericCast(from)
	case types.OIDBool:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Bool(a[0].Int() != 0), nil }
	case types.OIDText, types.OIDVarchar, types.OIDBPChar, types.OIDName, types.OIDChar:
		return toStringCast(from, to)
	}
	return timeCast(from, to)
}

func toIntCast(from, to types.OID) Func {
	switch from {
	case types.OIDBool:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			if a[0].Bool() {
				return types.Int(1), nil
			}
			return types.Int(0), nil
		}
	case types.OIDChar:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			if b := a[0].Bytes(); len(b) > 0 {
				return types.Int(int64(int8(b[0]))), nil
			}
			return types.Int(0), nil
		}
	case types.OIDFloat4, types.OIDFloat8:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(FloatToInt(a[0].Float(), to)) }
	case types.OIDInt2: // to oid, through integer
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			if to == types.OIDInt4 || to == types.OIDInt8 {
				return a[0], nil
			}
			return types.Int(int64(uint32(a[0].Int()))), nil
		}
	case types.OIDNumeric:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(NumericToInt(a[0].Decimal(), to)) }
	case types.OIDText, types.OIDVarchar:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.ParseText(types.TRegclass, a[0].Text(), &env.Format)
		}
	}
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(NarrowInt(a[0].Int(), to)) }
}

// reinterpret returns the function that reads the same 32 bits as oid or integer, nil for types with the same datums.
func reinterpret(from, to types.OID) Func {
	switch {
	case to == types.OIDInt4:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Int(int64(int32(a[0].Int()))), nil }
	case from == types.OIDInt4:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Int(int64(uint32(a[0].Int()))), nil }
	}
	return nil
}

func intDatum(n int64, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return types.Int(n), nil
}

// NarrowInt checks that n is in the range of the integer type to (22003).
func NarrowInt(n int64, to types.OID) (int64, error) {
	switch to {
	case types.OIDInt2:
		if n != int64(int16(n)) {
			return 0, errInt2Range()
		}
	case types.OIDInt4:
		if n != int64(int32(n)) {
			return 0, errInt4Range()
		}
	case types.OIDOid, types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator:
		if n < 0 || n > math.MaxUint32 {
			return 0, pgerror.New(pgerror.NumericValueOutOfRange, "OID out of range")
		}
	}
	return n, nil
}

// FloatToInt rounds a float, halves to even, to an integer type (22003).
func FloatToInt(v float64, to types.OID) (int64, error) {
	v = math.RoundToEven(v)
	least, end := -0x1p63, 0x1p63
	switch to {
	case types.OIDInt2:
		least, end = -0x1p15, 0x1p15
	case types.OIDInt4:
		least, end = -0x1p31, 0x1p31
	}
	if !(v >= least && v < end) {
		return 0, errIntRange(to)
	}
	return int64(v), nil
}

func toFloatCast(from, to types.OID) Func {
	switch from {
	case types.OIDFloat8:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return floatDatum(NarrowFloat(a[0].Float())) }
	case types.OIDFloat4:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil }
	case types.OIDNumeric:
		if to == types.OIDFloat4 {
			return func(_ *Env, a []types.Datum) (types.Datum, error) {
				return floatDatum(NumericToFloat(a[0].Decimal(), types.TFloat4))
			}
		}
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return floatDatum(NumericToFloat(a[0].Decimal(), types.TFloat8))
		}
	}
	if to == types.OIDFloat4 {
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Float(float64(float32(a[0].Int()))), nil
		}
	}
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Float(float64(a[0].Int())), nil }
}

func floatDatum(v float64, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return types.Float(v), nil
}

// NarrowFloat rounds a double precision to a real (22003 for overflow or underflow).
func NarrowFloat(v float64) (float64, error) {
	f := float64(float32(v))
	if math.IsInf(f, 0) && !math.IsInf(v, 0) {
		return 0, errFloatOverflow()
	}
	if f == 0 && v != 0 {
		return 0, errFloatUnderflow()
	}
	return f, nil
}

func toNumericCast(from types.OID) Func {
	switch from {
	case types.OIDFloat4:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return numericDatum(FloatToNumeric(a[0].Float(), 6))
		}
	case types.OIDFloat8:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return numericDatum(FloatToNumeric(a[0].Float(), 15))
		}
	}
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Decimal(types.NewNumeric(a[0].Int())), nil
	}
}

// toStringCast casts to the string types: other types through their text form, and strings with their rules for blanks
// and lengths.
func toStringCast(from, to types.OID) Func {
	switch {
	case to == types.OIDChar && from == types.OIDInt4:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			n := a[0].Int()
			if n < -128 || n > 127 {
				return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "\"char\" out of range")
			}
			if n == 0 {
				return types.Text(""), nil
			}
			return types.Bytes([]byte{byte(n)}), nil
		}
	case to == types.OIDChar:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.ParseText(types.TChar, a[0].Text(), nil)
		}
	case to == types.OIDName:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			s := a[0].Bytes()
			if from == types.OIDBPChar {
				s = types.TrimBPChar(s)
			}
			return types.Text(types.TruncateName(types.Bytes(s).Text())), nil
		}
	case from == types.OIDBool:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			if a[0].Bool() {
				return types.Text("true"), nil
			}
			return types.Text("false"), nil
		}
	case from == types.OIDBPChar:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bytes(types.TrimBPChar(a[0].Bytes())), nil
		}
	}
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil }
}

// timeCast casts between the types of dates and times.
func timeCast(from, to types.OID) Func {
	type pair struct{ from, to types.OID }
	switch (pair{from, to}) {
	case pair{types.OIDDate, types.OIDTimestamp}:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(types.TimestampFromDate(a[0].Int()))
		}
	case pair{types.OIDDate, types.OIDTimestamptz}:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(dateToTimestamptz(env, a[0].Int()))
		}
	case pair{types.OIDTimestamp, types.OIDDate}:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(types.DateFromTimestamp(a[0].Int())), nil
		}
	case pair{types.OIDTimestamptz, types.OIDDate}:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(types.DateFromTimestamp(timestamptzToLocal(env, a[0].Int()))), nil
		}
	case pair{types.OIDTimestamp, types.OIDTimestamptz}:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(localToTimestamptz(env, a[0].Int()))
		}
	case pair{types.OIDTimestamptz, types.OIDTimestamp}:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(timestamptzToLocal(env, a[0].Int())), nil
		}
	case pair{types.OIDTimestamp, types.OIDTime}:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return clockOf(a[0].Int()), nil }
	case pair{types.OIDTimestamptz, types.OIDTime}:
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return clockOf(timestamptzToLocal(env, a[0].Int())), nil
		}
	case pair{types.OIDTime, types.OIDInterval}:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.NewInterval(types.Interval{Micros: a[0].Int()}), nil
		}
	case pair{types.OIDInterval, types.OIDTime}:
		return func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(floorMod(a[0].Interval().Micros, types.MicrosPerDay)), nil
		}
	}
	return nil
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// clockOf returns a timestamp's time of day; NULL for an infinity.
func clockOf(ts int64) types.Datum {
	if !types.TimestampFinite(ts) {
		return types.Null
	}
	return types.Int(floorMod(ts, types.MicrosPerDay))
}

// timestamptzToLocal returns the session's local time of a timestamptz; infinities are unchanged.
func timestamptzToLocal(env *Env, ts int64) int64 {
	if !types.TimestampFinite(ts) {
		return ts
	}
	return types.LocalTimestamp(ts, env.Format.Loc())
}

// localToTimestamptz returns the timestamptz at which the session's local time is ts; infinities are unchanged.
func localToTimestamptz(env *Env, ts int64) (int64, error) {
	if !types.TimestampFinite(ts) {
		return ts, nil
	}
	ts = types.UTCTimestamp(ts, env.Format.Loc())
	if !types.ValidTimestamp(ts) {
		return 0, errTimestampRange()
	}
	return ts, nil
}

func dateToTimestamptz(env *Env, days int64) (int64, error) {
	ts, err := types.TimestampFromDate(days)
	if err != nil {
		return 0, err
	}
	return localToTimestamptz(env, ts)
}

func errTimestampRange() error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range")
}
