package builtin

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// timeUnit is a unit of extract, date_part and date_trunc.
type timeUnit uint8

const (
	unitMicrosecond timeUnit = iota + 1
	unitMillisecond
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitQuarter
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitJulian
	unitISOYear
	unitWeekday
	unitISOWeekday
	unitDayOfYear
	unitEpoch
	unitZone
	unitZoneHour
	unitZoneMinute
)

// unitNames are the words for units; longer ones are truncated to ten letters, as in PostgreSQL.
var unitNames = map[string]timeUnit{
	"us": unitMicrosecond, "usec": unitMicrosecond, "usecs": unitMicrosecond, "usecond": unitMicrosecond, "useconds": unitMicrosecond,
	"microsecon": unitMicrosecond, "ms": unitMillisecond, "msec": unitMillisecond, "msecs": unitMillisecond,
	"msecond": unitMillisecond, "mseconds": unitMillisecond, "millisecon": unitMillisecond,
	"s": unitSecond, "sec": unitSecond, "secs": unitSecond, "second": unitSecond, "seconds": unitSecond,
	"m": unitMinute, "min": unitMinute, "mins": unitMinute, "minute": unitMinute, "minutes": unitMinute,
	"h": unitHour, "hr": unitHour, "hrs": unitHour, "hour": unitHour, "hours": unitHour,
	"d": unitDay, "day": unitDay, "days": unitDay, "w": unitWeek, "week": unitWeek, "weeks": unitWeek,
	"mon": unitMonth, "mons": unitMonth, "month": unitMonth, "months": unitMonth, "qtr": unitQuarter, "quarter": unitQuarter,
	"y": unitYear, "yr": unitYear, "yrs": unitYear, "year": unitYear, "years": unitYear,
	"dec": unitDecade, "decs": unitDecade, "decade": unitDecade, "decades": unitDecade,
	"c": unitCentury, "cent": unitCentury, "century": unitCentury, "centuries": unitCentury,
	"mil": unitMillennium, "mils": unitMillennium, "millennia": unitMillennium, "millennium": unitMillennium,
	"j": unitJulian, "jd": unitJulian, "julian": unitJulian, "isoyear": unitISOYear, "dow": unitWeekday,
	"isodow": unitISOWeekday, "doy": unitDayOfYear, "epoch": unitEpoch,
	"timezone": unitZone, "timezone_h": unitZoneHour, "timezone_m": unitZoneMinute,
}

func lookupUnit(name string) timeUnit {
	name = keyword.Fold(name)
	return unitNames[name[:min(len(name), 10)]]
}

// errUnit is the error for a unit that is unknown, or not supported for the type.
func errUnit(name string, t types.Type) *pgerror.Error {
	name = keyword.Fold(name)
	if lookupUnit(name) == 0 {
		return pgerror.New(pgerror.InvalidParameterValue, "unit \"%s\" not recognized for type %s", name, t)
	}
	return pgerror.New(pgerror.FeatureNotSupported, "unit \"%s\" not supported for type %s", name, t)
}

// field is an extracted value: n / 10^scale, or a special value.
type field struct {
	n       int64
	scale   int
	special *apd.Decimal // infinity, or a value that is no decimal fraction
	null    bool
	value   float64 // of date_part alone, if isFloat
	isFloat bool
}

func (f field) numeric() types.Datum {
	switch {
	case f.null:
		return types.Null
	case f.special != nil:
		return types.Decimal(f.special)
	}
	d := apd.New(f.n, -int32(f.scale))
	return types.Decimal(d)
}

func (f field) float() (types.Datum, error) {
	switch {
	case f.null:
		return types.Null, nil
	case f.isFloat:
		return types.Float(f.value), nil
	case f.special != nil:
		return floatDatum(NumericToFloat(f.special, types.TFloat8))
	}
	return types.Float(float64(f.n) / math.Pow10(f.scale)), nil
}

type extractor func(env *Env, unit string, d types.Datum) (field, error)

// fieldFuncs declares extract (numeric), date_part (double precision) and date_trunc.
func fieldFuncs() []decl {
	var out []decl
	for _, x := range []struct {
		t       string
		f, part extractor
		flags   flags
	}{
		{"date", extractDate, datePartOfDate, 0}, {"time", extractTime, extractTime, 0}, {"timetz", extractTimetz, extractTimetz, 0},
		{"timestamp", extractTimestamp, extractTimestamp, 0}, {"timestamptz", extractTimestamptz, extractTimestamptz, stable},
		{"interval", extractInterval, datePartOfInterval, 0},
	} {
		out = append(out,
			decl{sig: "extract(text," + x.t + ") numeric", flags: x.flags, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
				f, err := x.f(env, a[0].Text(), a[1])
				if err != nil {
					return types.Null, err
				}
				return f.numeric(), nil
			}},
			decl{sig: "date_part(text," + x.t + ") float8", flags: x.flags, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
				f, err := x.part(env, a[0].Text(), a[1])
				if err != nil {
					return types.Null, err
				}
				return f.float()
			}})
	}
	return append(out,
		decl{sig: "date_trunc(text,timestamp) timestamp", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(truncTimestamp(a[0].Text(), a[1].Int(), types.TTimestamp))
		}},
		decl{sig: "date_trunc(text,timestamptz) timestamptz", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(truncTimestamptz(a[0].Text(), a[1].Int(), zoneOf(env)))
		}},
		decl{sig: "date_trunc(text,timestamptz,text) timestamptz", flags: stable, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if !types.TimestampFinite(a[1].Int()) {
				return a[1], nil
			}
			zone, err := types.LoadZone(a[2].Text())
			if err != nil {
				return types.Null, err
			}
			return intDatum(truncTimestamptz(a[0].Text(), a[1].Int(), zone.Location))
		}},
		decl{sig: "date_trunc(text,interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(truncInterval(a[0].Text(), a[1].Interval()))
		}})
}

// extractInfinite returns a field of an infinite time: infinite if the field grows with time, NULL if it is periodic.
func extractInfinite(unit timeUnit, name string, negative bool, t types.Type) (field, error) {
	switch unit {
	case unitYear, unitDecade, unitCentury, unitMillennium, unitJulian, unitISOYear, unitEpoch:
		if negative {
			return field{special: types.NumericNegInf}, nil
		}
		return field{special: types.NumericInf}, nil
	case 0:
		return field{}, errUnit(name, t)
	}
	if t.OID == types.OIDDate && (unit <= unitHour || unit == unitZone || unit == unitZoneHour || unit == unitZoneMinute) {
		return field{}, errUnit(name, t)
	}
	return field{null: true}, nil
}

func extractDate(_ *Env, name string, d types.Datum) (field, error) {
	unit, days := lookupUnit(name), d.Int()
	if !types.DateFinite(days) {
		return extractInfinite(unit, name, days < 0, types.TDate)
	}
	switch unit {
	case unitJulian:
		return field{n: days + 2451545}, nil
	case unitEpoch:
		return field{n: (days + 10957) * 86400}, nil
	}
	year, month, day := types.CivilFromDays(days)
	if n, ok := calendarField(unit, year, month, day, days); ok {
		return field{n: n}, nil
	}
	return field{}, errUnit(name, types.TDate)
}

// datePartOfDate implements date_part(text, date), which uses the date's midnight.
func datePartOfDate(env *Env, name string, d types.Datum) (field, error) {
	ts, err := types.TimestampFromDate(d.Int())
	if err != nil {
		return field{}, err
	}
	return extractTimestamp(env, name, types.Int(ts))
}

// calendarField is a field of a day.
func calendarField(unit timeUnit, year, month, day int, days int64) (int64, bool) {
	y := int64(year)
	switch unit {
	case unitDay:
		return int64(day), true
	case unitMonth:
		return int64(month), true
	case unitQuarter:
		return int64((month-1)/3 + 1), true
	case unitWeek:
		_, week := isoWeek(days)
		return int64(week), true
	case unitYear:
		return beforeChrist(y), true
	case unitDecade:
		if y >= 0 {
			return y / 10, true
		}
		return -((8 - (y - 1)) / 10), true
	case unitCentury:
		if y > 0 {
			return (y + 99) / 100, true
		}
		return -((99 - (y - 1)) / 100), true
	case unitMillennium:
		if y > 0 {
			return (y + 999) / 1000, true
		}
		return -((999 - (y - 1)) / 1000), true
	case unitISOYear:
		isoYear, _ := isoWeek(days)
		return beforeChrist(int64(isoYear)), true
	case unitWeekday:
		return floorMod(days+6, 7), true
	case unitISOWeekday:
		return floorMod(days+5, 7) + 1, true
	case unitDayOfYear:
		return days - types.DaysFromCivil(year, 1, 1) + 1, true
	}
	return 0, false
}

// beforeChrist converts the astronomical year to the one with no year 0.
func beforeChrist(y int64) int64 {
	if y <= 0 {
		return y - 1
	}
	return y
}

// isoWeek returns the ISO 8601 year and week of a day.
func isoWeek(days int64) (year, week int) {
	// The week belongs to the year of its Thursday.
	thursday := days - floorMod(days+5, 7) + 3
	year, _, _ = types.CivilFromDays(thursday)
	return year, int((thursday-types.DaysFromCivil(year, 1, 1))/7) + 1
}

// clockField is a field of a time of day.
func clockField(unit timeUnit, micros int64) (field, bool) {
	switch unit {
	case unitMicrosecond:
		return field{n: micros % types.MicrosPerMinute}, true
	case unitMillisecond:
		return field{n: micros % types.MicrosPerMinute, scale: 3}, true
	case unitSecond:
		return field{n: micros % types.MicrosPerMinute, scale: 6}, true
	case unitMinute:
		return field{n: micros / types.MicrosPerMinute % 60}, true
	case unitHour:
		return field{n: micros / types.MicrosPerHour}, true
	}
	return field{}, false
}

func extractTime(_ *Env, name string, d types.Datum) (field, error) {
	unit := lookupUnit(name)
	if unit == unitEpoch {
		return field{n: d.Int(), scale: 6}, nil
	}
	if f, ok := clockField(unit, d.Int()); ok {
		return f, nil
	}
	return field{}, errUnit(name, types.TTime)
}

func extractTimestamp(_ *Env, name string, d types.Datum) (field, error) {
	unit, ts := lookupUnit(name), d.Int()
	if !types.TimestampFinite(ts) {
		return extractInfinite(unit, name, ts < 0, types.TTimestamp)
	}
	if unit == unitEpoch {
		return epochField(ts), nil
	}
	if f, ok := momentField(unit, ts); ok {
		return f, nil
	}
	return field{}, errUnit(name, types.TTimestamp)
}

// epochField is the seconds since 1970.
func epochField(ts int64) field {
	if n, err := AddInt8(ts, timestampEpochUnix); err == nil {
		return field{n: n, scale: 6}
	}
	// Beyond int64: add as numerics.
	sum, _ := AddNumeric(apd.New(ts, -6), apd.New(timestampEpochUnix, -6))
	return field{special: sum}
}

// momentField is a field of a clock time with its day.
func momentField(unit timeUnit, ts int64) (field, bool) {
	days, clock := floorDiv(ts, types.MicrosPerDay), floorMod(ts, types.MicrosPerDay)
	if f, ok := clockField(unit, clock); ok {
		return f, true
	}
	if unit == unitJulian {
		part, err := DivNumeric(types.NewNumeric(clock), types.NewNumeric(types.MicrosPerDay))
		if err == nil {
			part, err = AddNumeric(types.NewNumeric(days+2451545), part)
		}
		return field{special: part}, err == nil
	}
	year, month, day := types.CivilFromDays(days)
	n, ok := calendarField(unit, year, month, day, days)
	return field{n: n}, ok
}

func extractTimestamptz(env *Env, name string, d types.Datum) (field, error) {
	unit, ts := lookupUnit(name), d.Int()
	if !types.TimestampFinite(ts) {
		return extractInfinite(unit, name, ts < 0, types.TTimestamptz)
	}
	local := timestamptzToLocal(env, ts)
	offset := (local - ts) / types.MicrosPerSecond
	switch unit {
	case unitEpoch:
		return epochField(ts), nil
	case unitZone:
		return field{n: offset}, nil
	case unitZoneHour:
		return field{n: offset / 3600}, nil
	case unitZoneMinute:
		return field{n: offset / 60 % 60}, nil
	}
	if f, ok := momentField(unit, local); ok {
		return f, nil
	}
	return field{}, errUnit(name, types.TTimestamptz)
}

func extractInterval(_ *Env, name string, d types.Datum) (field, error) {
	iv := d.Interval()
	years, months := int64(iv.Months/12), int64(iv.Months%12)
	switch unit := lookupUnit(name); unit {
	case unitDay:
		return field{n: int64(iv.Days)}, nil
	case unitMonth:
		return field{n: months}, nil
	case unitQuarter:
		return field{n: months/3 + 1}, nil
	case unitYear:
		return field{n: years}, nil
	case unitDecade:
		return field{n: years / 10}, nil
	case unitCentury:
		return field{n: years / 100}, nil
	case unitMillennium:
		return field{n: years / 1000}, nil
	case unitEpoch:
		// A year is 365.25 days, a month 30: counted in quarters of a day.
		seconds := (1461*years + 120*months + 4*int64(iv.Days)) * (86400 / 4)
		sum, err := AddNumeric(types.RoundNumeric(types.NewNumeric(seconds), 6), apd.New(iv.Micros, -6))
		return field{special: sum}, err
	default:
		if f, ok := clockField(unit, iv.Micros); ok {
			return f, nil
		}
	}
	return field{}, errUnit(name, types.TInterval)
}

// datePartOfInterval implements date_part(text, interval), which computes the epoch in floating point.
func datePartOfInterval(env *Env, name string, d types.Datum) (field, error) {
	if lookupUnit(name) != unitEpoch {
		return extractInterval(env, name, d)
	}
	const secondsPerDay = 86400
	iv := d.Interval()
	v := float64(iv.Micros) / 1e6
	v += 365.25 * secondsPerDay * float64(iv.Months/12)
	v += 30 * secondsPerDay * float64(iv.Months%12)
	v += secondsPerDay * float64(iv.Days)
	return field{value: v, isFloat: true}, nil
}

// truncCivil truncates c to a unit; false if date_trunc does not have the unit.
func truncCivil(c *types.Civil, unit timeUnit) bool {
	if unit < unitMicrosecond || unit > unitMillennium {
		return false
	}
	switch unit {
	case unitMillennium:
		c.Year = truncYears(c.Year, 1000)
	case unitCentury:
		c.Year = truncYears(c.Year, 100)
	case unitDecade:
		c.Year = int(floorDiv(int64(c.Year), 10)) * 10
	case unitWeek:
		days := types.DaysFromCivil(c.Year, c.Month, c.Day)
		c.Year, c.Month, c.Day = types.CivilFromDays(days - floorMod(days+5, 7))
	case unitQuarter:
		c.Month = (c.Month-1)/3*3 + 1
	case unitMillisecond:
		c.Micros = c.Micros / 1000 * 1000
	}
	switch {
	case unit >= unitYear:
		c.Month = 1
		fallthrough
	case unit >= unitMonth:
		c.Day = 1
		fallthrough
	case unit >= unitDay:
		c.Hour = 0
		fallthrough
	case unit >= unitHour:
		c.Minute = 0
		fallthrough
	case unit >= unitMinute:
		c.Second = 0
		fallthrough
	case unit >= unitSecond:
		c.Micros = 0
	}
	return true
}

// truncYears returns the first year of a century or millennium, which ends with a year divisible by n.
func truncYears(year, n int) int {
	return int(floorDiv(int64(year)+int64(n)-1, int64(n))-1)*n + 1
}

func truncTimestamp(name string, ts int64, t types.Type) (int64, error) {
	unit := lookupUnit(name)
	if !types.TimestampFinite(ts) {
		return ts, nil
	}
	c := types.CivilFromTimestamp(ts)
	if !truncCivil(&c, unit) {
		return 0, errUnit(name, t)
	}
	ts, ok := c.Timestamp()
	if !ok {
		return 0, errTimestampRange()
	}
	return ts, nil
}

func truncInterval(name string, iv types.Interval) (types.Interval, error) {
	cutMicros := func(unit int64) { iv.Micros = iv.Micros / unit * unit }
	unit := lookupUnit(name)
	if unit == unitWeek {
		return iv, errUnit(name, types.TInterval).WithDetail("Months usually have fractional weeks.")
	}
	if unit < unitMicrosecond || unit > unitMillennium {
		return iv, errUnit(name, types.TInterval)
	}
	months := int32(1)
	switch unit {
	case unitMillisecond:
		cutMicros(1000)
	case unitSecond:
		cutMicros(types.MicrosPerSecond)
	case unitMinute:
		cutMicros(types.MicrosPerMinute)
	case unitHour:
		cutMicros(types.MicrosPerHour)
	case unitQuarter:
		months = 3
	case unitYear:
		months = 12
	case unitDecade:
		months = 120
	case unitCentury:
		months = 1200
	case unitMillennium:
		months = 12000
	}
	if unit >= unitDay {
		iv.Micros = 0
	}
	if unit >= unitMonth {
		iv.Days = 0
		iv.Months = iv.Months / months * months
	}
	return iv, nil
}
