package builtin

import (
	"math"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func errIntervalRange() error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "interval out of range")
}

func errDateRange() error { return pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range") }

func intervalDatum(iv types.Interval, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return types.NewInterval(iv), nil
}

// timeOps declares + - * / on dates, times, timestamps and intervals.
func timeOps() []decl {
	out := []decl{
		{sig: "-(interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(NegInterval(a[0].Interval()))
		}},
		{sig: "+(interval,interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(AddInterval(a[0].Interval(), a[1].Interval()))
		}},
		{sig: "-(interval,interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(subInterval(a[0].Interval(), a[1].Interval()))
		}},
		{sig: "*(interval,float8) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(MulInterval(a[0].Interval(), a[1].Float()))
		}},
		{sig: "*(float8,interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(MulInterval(a[1].Interval(), a[0].Float()))
		}},
		{sig: "/(interval,float8) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(DivInterval(a[0].Interval(), a[1].Float()))
		}},
		{sig: "-(date,date) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if !types.DateFinite(a[0].Int()) || !types.DateFinite(a[1].Int()) {
				return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "cannot subtract infinite dates")
			}
			return types.Int(a[0].Int() - a[1].Int()), nil
		}},
		{sig: "+(date,int4) date", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(AddDate(a[0].Int(), a[1].Int()))
		}},
		{sig: "+(int4,date) date", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(AddDate(a[1].Int(), a[0].Int()))
		}},
		{sig: "-(date,int4) date", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(AddDate(a[0].Int(), -a[1].Int()))
		}},
		{sig: "+(date,time) timestamp", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(addDateTime(a[0].Int(), a[1].Int()))
		}},
		{sig: "+(time,date) timestamp", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(addDateTime(a[1].Int(), a[0].Int()))
		}},
		{sig: "-(time,time) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.NewInterval(types.Interval{Micros: a[0].Int() - a[1].Int()}), nil
		}},
		{sig: "-(timestamp,timestamp) interval", fn: subTimestamps},
		{sig: "-(timestamptz,timestamptz) interval", fn: subTimestamps},
	}
	return append(out, timeIntervalOps()...)
}

// timeIntervalOps declares t + interval, interval + t and t - interval.
func timeIntervalOps() []decl {
	type adder func(env *Env, t int64, iv types.Interval) (int64, error)
	date := func(_ *Env, t int64, iv types.Interval) (int64, error) {
		ts, err := types.TimestampFromDate(t)
		if err != nil {
			return 0, err
		}
		return AddTimestamp(ts, iv)
	}
	clock := func(_ *Env, t int64, iv types.Interval) (int64, error) {
		return floorMod(t+iv.Micros%types.MicrosPerDay, types.MicrosPerDay), nil
	}
	timestamp := func(_ *Env, t int64, iv types.Interval) (int64, error) { return AddTimestamp(t, iv) }
	timestamptz := func(env *Env, t int64, iv types.Interval) (int64, error) { return AddTimestamptz(env, t, iv) }
	var out []decl
	for _, o := range []struct {
		from, to string
		add      adder
		flags    flags
	}{
		{"date", "timestamp", date, 0}, {"time", "time", clock, 0}, {"timestamp", "timestamp", timestamp, 0},
		{"timestamptz", "timestamptz", timestamptz, stable},
	} {
		out = append(out,
			decl{sig: "+(" + o.from + ",interval) " + o.to, flags: o.flags,
				fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					return intDatum(o.add(env, a[0].Int(), a[1].Interval()))
				}},
			decl{sig: "+(interval," + o.from + ") " + o.to, flags: o.flags,
				fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					return intDatum(o.add(env, a[1].Int(), a[0].Interval()))
				}},
			decl{sig: "-(" + o.from + ",interval) " + o.to, flags: o.flags,
				fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					iv, err := NegInterval(a[1].Interval())
					if err != nil {
						return types.Null, err
					}
					return intDatum(o.add(env, a[0].Int(), iv))
				}})
	}
	return out
}

// AddDate is date + integer (22008).
func AddDate(days, n int64) (int64, error) {
	if !types.DateFinite(days) {
		return days, nil
	}
	if days += n; !types.ValidDate(days) {
		return 0, errDateRange()
	}
	return days, nil
}

// addDateTime is date + time (22008).
func addDateTime(days, clock int64) (int64, error) {
	ts, err := types.TimestampFromDate(days)
	if err != nil || !types.TimestampFinite(ts) {
		return ts, err
	}
	if ts += clock; !types.ValidTimestamp(ts) {
		return 0, errTimestampRange()
	}
	return ts, nil
}

// AddTimestamp is timestamp + interval: months first, with the day limited to the month's end, then days, then the rest
// (22008).
func AddTimestamp(ts int64, iv types.Interval) (int64, error) {
	if !types.TimestampFinite(ts) {
		return ts, nil
	}
	ts, err := addCalendar(ts, iv.Months, iv.Days)
	if err != nil {
		return 0, err
	}
	return addMicros(ts, iv.Micros)
}

func addMicros(ts, micros int64) (int64, error) {
	sum, err := AddInt8(ts, micros)
	if err != nil || !types.ValidTimestamp(sum) {
		return 0, errTimestampRange()
	}
	return sum, nil
}

func addCalendar(ts int64, months, days int32) (int64, error) {
	if months != 0 {
		c := types.CivilFromTimestamp(ts)
		m := int64(c.Year)*12 + int64(c.Month) - 1 + int64(months)
		c.Year, c.Month = int(floorDiv(m, 12)), int(floorMod(m, 12))+1
		c.Day = min(c.Day, types.DaysInMonth(c.Year, c.Month))
		var ok bool
		if ts, ok = c.Timestamp(); !ok {
			return 0, errTimestampRange()
		}
	}
	if days != 0 {
		day := floorDiv(ts, types.MicrosPerDay) + int64(days)
		if !types.ValidDate(day) || day > math.MaxInt64/types.MicrosPerDay {
			return 0, errTimestampRange()
		}
		return addMicros(day*types.MicrosPerDay, floorMod(ts, types.MicrosPerDay))
	}
	return ts, nil
}

// AddTimestamptz is timestamptz + interval: months and days by the session's calendar (22008).
func AddTimestamptz(env *Env, ts int64, iv types.Interval) (int64, error) {
	return addTimestamptzIn(env.Format.Loc(), ts, iv)
}

// addTimestamptzIn is AddTimestamptz by a zone's calendar.
func addTimestamptzIn(zone *time.Location, ts int64, iv types.Interval) (int64, error) {
	if !types.TimestampFinite(ts) {
		return ts, nil
	}
	// Each step converts back to UTC, so that a skipped local time is resolved when it occurs.
	for _, step := range [2]types.Interval{{Months: iv.Months}, {Days: iv.Days}} {
		if step.Months == 0 && step.Days == 0 {
			continue
		}
		local, err := addCalendar(types.LocalTimestamp(ts, zone), step.Months, step.Days)
		if err != nil {
			return 0, err
		}
		if ts = types.UTCTimestamp(local, zone); !types.ValidTimestamp(ts) {
			return 0, errTimestampRange()
		}
	}
	return addMicros(ts, iv.Micros)
}

func subTimestamps(_ *Env, a []types.Datum) (types.Datum, error) {
	l, r := a[0].Int(), a[1].Int()
	if !types.TimestampFinite(l) || !types.TimestampFinite(r) {
		return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "cannot subtract infinite timestamps")
	}
	diff, err := SubInt8(l, r)
	if err != nil {
		return types.Null, errIntervalRange()
	}
	return types.NewInterval(types.Interval{Days: int32(diff / types.MicrosPerDay), Micros: diff % types.MicrosPerDay}), nil
}

// NegInterval is -interval (22008).
func NegInterval(iv types.Interval) (types.Interval, error) {
	if iv.Months == math.MinInt32 || iv.Days == math.MinInt32 || iv.Micros == math.MinInt64 {
		return types.Interval{}, errIntervalRange()
	}
	return types.Interval{Months: -iv.Months, Days: -iv.Days, Micros: -iv.Micros}, nil
}

// AddInterval is interval + interval (22008).
func AddInterval(a, b types.Interval) (types.Interval, error) {
	months, days := int64(a.Months)+int64(b.Months), int64(a.Days)+int64(b.Days)
	micros, err := AddInt8(a.Micros, b.Micros)
	return checkInterval(months, days, micros, err)
}

func subInterval(a, b types.Interval) (types.Interval, error) {
	months, days := int64(a.Months)-int64(b.Months), int64(a.Days)-int64(b.Days)
	micros, err := SubInt8(a.Micros, b.Micros)
	return checkInterval(months, days, micros, err)
}

func checkInterval(months, days, micros int64, err error) (types.Interval, error) {
	if err != nil || months != int64(int32(months)) || days != int64(int32(days)) {
		return types.Interval{}, errIntervalRange()
	}
	return types.Interval{Months: int32(months), Days: int32(days), Micros: micros}, nil
}

// MulInterval is interval * double precision (22008).
func MulInterval(iv types.Interval, factor float64) (types.Interval, error) {
	return scaleInterval(iv, func(n float64) float64 { return n * factor })
}

// DivInterval is interval / double precision (22012, 22008).
func DivInterval(iv types.Interval, divisor float64) (types.Interval, error) {
	if divisor == 0 {
		return types.Interval{}, ErrDivisionByZero()
	}
	return scaleInterval(iv, func(n float64) float64 { return n / divisor })
}

// scaleInterval scales each field and carries the fraction of months to days, and that of days to microseconds.
func scaleInterval(iv types.Interval, scale func(float64) float64) (types.Interval, error) {
	roundMicro := func(v float64) float64 { return math.RoundToEven(v*1e6) / 1e6 }
	months, days := scale(float64(iv.Months)), scale(float64(iv.Days))
	if !fitsInt32(months) || !fitsInt32(days) {
		return types.Interval{}, errIntervalRange()
	}
	wholeMonths, wholeDays := math.Trunc(months), math.Trunc(days)
	const secondsPerDay = 86400
	monthDays := roundMicro((months - wholeMonths) * 30)
	seconds := roundMicro((days - wholeDays + monthDays - math.Trunc(monthDays)) * secondsPerDay)
	if math.Abs(seconds) >= secondsPerDay {
		carry := math.Trunc(seconds / secondsPerDay)
		wholeDays += carry
		seconds -= carry * secondsPerDay
	}
	wholeDays += math.Trunc(monthDays)
	micros := math.RoundToEven(scale(float64(iv.Micros)) + seconds*1e6)
	if !fitsInt32(wholeDays) || !(micros >= -0x1p63 && micros < 0x1p63) {
		return types.Interval{}, errIntervalRange()
	}
	return types.Interval{Months: int32(wholeMonths), Days: int32(wholeDays), Micros: int64(micros)}, nil
}

func fitsInt32(v float64) bool { return v >= math.MinInt32 && v < -math.MinInt32 }
