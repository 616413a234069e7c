package builtin

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// InRange decides which rows a RANGE frame with an offset contains, for the types of the ordered values and of the
// offset.
type InRange struct {
	Value, Offset types.Type
	// Within reports whether value <= base ± offset if less is set, value >= base ± offset otherwise; with sub the
	// offset is subtracted. No value is NULL. Errors: 22013 for a negative offset; overflow of a timestamp.
	Within func(env *Env, value, base, offset types.Datum, sub, less bool) (bool, error)
}

type withinFunc = func(env *Env, value, base, offset types.Datum, sub, less bool) (bool, error)

// inRanges are the combinations of types that PostgreSQL has.
var inRanges = []InRange{
	{types.TInt2, types.TInt2, intWithin}, {types.TInt2, types.TInt4, intWithin}, {types.TInt2, types.TInt8, intWithin},
	{types.TInt4, types.TInt2, intWithin}, {types.TInt4, types.TInt4, intWithin}, {types.TInt4, types.TInt8, intWithin},
	{types.TInt8, types.TInt8, intWithin},
	{types.TFloat4, types.TFloat8, floatWithin}, {types.TFloat8, types.TFloat8, floatWithin},
	{types.TNumeric, types.TNumeric, numericWithin},
	{types.TDate, types.TInterval, dateWithin},
	{types.TTimestamp, types.TInterval, timestampWithin(false)}, {types.TTimestamptz, types.TInterval, timestampWithin(true)},
	{types.TTime, types.TInterval, timeWithin}, {types.TTimetz, types.TInterval, timetzWithin}, {types.TInterval, types.TInterval, intervalWithin},
}

// ResolveInRange finds the comparison for a RANGE frame over values of one type with an offset of another, which is to be
// coerced to the Offset of the result. Errors: 0A000 if there is none.
func ResolveInRange(value, offset types.Type) (*InRange, error) {
	value = sortedAs(value)
	preferred := offset.OID
	if preferred == types.OIDUnknown {
		preferred = value.OID
	}
	var found *InRange
	known, matches := false, 0
	for i := range inRanges {
		r := &inRanges[i]
		if r.Value.OID != value.OID {
			continue
		}
		known = true
		if !canCoerce(offset, r.Offset) {
			continue
		}
		matches++
		if found == nil || found.Offset.OID != preferred {
			found = r
		}
	}
	const what = "RANGE with offset PRECEDING/FOLLOWING"
	switch {
	case !known:
		return nil, pgerror.New(pgerror.FeatureNotSupported, what+" is not supported for column type %s", TypeName(value))
	case matches == 0:
		return nil, pgerror.New(pgerror.FeatureNotSupported, what+" is not supported for column type %s and offset type %s",
			TypeName(value), TypeName(offset)).WithHint("Cast the offset value to an appropriate type.")
	case matches > 1 && found.Offset.OID != preferred:
		return nil, pgerror.New(pgerror.FeatureNotSupported, what+" has multiple interpretations for column type %s and offset type %s",
			TypeName(value), TypeName(offset)).WithHint("Cast the offset value to the exact intended type.")
	}
	return found, nil
}

// sortedAs is the type by which an index's operators would order values of a type.
func sortedAs(t types.Type) types.Type {
	switch t = t.Underlying(); {
	case t.OID == types.OIDVarchar:
		return types.TText
	case t.OID == types.OIDCidr:
		return types.Type{OID: types.OIDInet, Mod: -1}
	case t.IsArray():
		return types.Type{OID: types.OIDAnyArray, Mod: -1}
	}
	return t
}

func errFrameSize() error {
	return pgerror.New(pgerror.InvalidFrameOffset, "invalid preceding or following size in window function")
}

// compared is the answer for a value that compares with the frame's end as c says.
func compared(c int, less bool) bool {
	if less {
		return c <= 0
	}
	return c >= 0
}

func intWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	off := offset.Int()
	if off < 0 {
		return false, errFrameSize()
	}
	if sub {
		off = -off
	}
	sum := base.Int() + off
	if (sum > base.Int()) != (off > 0) && off != 0 {
		// Beyond the range of integers on one side or the other.
		return sub != less, nil
	}
	return compared(compareInt64(value.Int(), sum), less), nil
}

func compareInt64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func floatWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	v, b, off := value.Float(), base.Float(), offset.Float()
	switch {
	case math.IsNaN(off) || off < 0:
		return false, errFrameSize()
	case math.IsNaN(v):
		return math.IsNaN(b) || !less, nil
	case math.IsNaN(b):
		return less, nil
	}
	if sub {
		off = -off
	}
	sum := b + off
	// Infinity minus infinity: the frame is that of a limit, which contains every value.
	return math.IsNaN(sum) || compared(types.CompareFloat(v, sum), less), nil
}

func numericWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	v, b, off := value.Decimal(), base.Decimal(), offset.Decimal()
	switch {
	case isNaN(off) || off.Negative && signum(off) != 0:
		return false, errFrameSize()
	case isNaN(v):
		return isNaN(b) || !less, nil
	case isNaN(b):
		return less, nil
	case isInf(off) && isInf(b) && b.Negative != sub:
		return true, nil // infinity minus infinity
	}
	sum, err := (*apd.Decimal)(nil), error(nil)
	if sub {
		sum, err = SubNumeric(b, off)
	} else {
		sum, err = AddNumeric(b, off)
	}
	if err != nil {
		return false, err
	}
	return compared(types.CompareNumeric(v, sum), less), nil
}

// negativeInterval reports whether an interval is shorter than none.
func negativeInterval(iv types.Interval) bool { return types.CompareInterval(iv, types.Interval{}) < 0 }

// addTime returns base ± offset for a timestamp.
func addTime(env *Env, base int64, off types.Interval, sub, zoned bool) (int64, error) {
	if sub {
		var err error
		if off, err = NegInterval(off); err != nil {
			return 0, err
		}
	}
	if zoned {
		return AddTimestamptz(env, base, off)
	}
	return AddTimestamp(base, off)
}

func timestampWithin(zoned bool) withinFunc {
	return func(env *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
		off := offset.Interval()
		if negativeInterval(off) {
			return false, errFrameSize()
		}
		sum, err := addTime(env, base.Int(), off, sub, zoned)
		return compared(compareInt64(value.Int(), sum), less), err
	}
}

func dateWithin(env *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	v, err := types.TimestampFromDate(value.Int())
	if err != nil {
		return false, err
	}
	b, err := types.TimestampFromDate(base.Int())
	if err != nil {
		return false, err
	}
	return timestampWithin(false)(env, types.Int(v), types.Int(b), offset, sub, less)
}

// timeWithin does not wrap at midnight, and ignores the days and months of the offset.
func timeWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	off := offset.Interval().Micros
	if off < 0 {
		return false, errFrameSize()
	}
	if sub {
		off = -off
	}
	// A sum beyond the day's end may be as large as int64: times are small, so that the limit is enough.
	sum := base.Int() + min(off, math.MaxInt64-types.MicrosPerDay)
	return compared(compareInt64(value.Int(), sum), less), nil
}

// timetzWithin compares instants first, then zones.
func timetzWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	off := offset.Interval().Micros
	if off < 0 {
		return false, errFrameSize()
	}
	if sub {
		off = -off
	}
	v, b := value.Timetz(), base.Timetz()
	c := compareInt64(v.UTC(), b.UTC()+min(off, math.MaxInt64-2*types.MicrosPerDay))
	if c == 0 {
		c = compareInt64(int64(v.West), int64(b.West))
	}
	return compared(c, less), nil
}

func intervalWithin(_ *Env, value, base, offset types.Datum, sub, less bool) (bool, error) {
	off := offset.Interval()
	if negativeInterval(off) {
		return false, errFrameSize()
	}
	sum, err := types.Interval{}, error(nil)
	if sub {
		sum, err = subInterval(base.Interval(), off)
	} else {
		sum, err = AddInterval(base.Interval(), off)
	}
	return compared(types.CompareInterval(value.Interval(), sum), less), err
}
