package builtin

import (
	"math"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func timeFuncs() []decl {
	out := []decl{
		{sig: "clock_timestamp() timestamptz", flags: volatile, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			return types.Int(env.clock()), nil
		}},
		{sig: "statement_timestamp() timestamptz", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			return types.Int(env.StmtTime), nil
		}},
		{sig: "timeofday() text", flags: volatile, fn: timeOfDay},
		{sig: "current_date() date", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			return types.Int(types.DateFromTimestamp(timestamptzToLocal(env, env.TxnTime))), nil
		}},
		{sig: "age(timestamp,timestamp) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) { return age(a[0].Int(), a[1].Int()) }},
		{sig: "age(timestamptz,timestamptz) interval", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return age(timestamptzToLocal(env, a[0].Int()), timestamptzToLocal(env, a[1].Int()))
		}},
		{sig: "age(timestamp) interval", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) { return age(today(env), a[0].Int()) }},
		{sig: "age(timestamptz) interval", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return age(today(env), timestamptzToLocal(env, a[0].Int()))
		}},
		{sig: "date_bin(interval,timestamp,timestamp) timestamp", fn: dateBin},
		{sig: "date_bin(interval,timestamptz,timestamptz) timestamptz", fn: dateBin},
		{sig: "to_timestamp(float8) timestamptz", fn: unixToTimestamptz},
		{sig: "isfinite(date) bool", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bool(types.DateFinite(a[0].Int())), nil
		}},
		{sig: "isfinite(timestamp) bool", fn: isFiniteTimestamp}, {sig: "isfinite(timestamptz) bool", fn: isFiniteTimestamp},
		{sig: "isfinite(interval) bool", fn: constant(types.Bool(true))},
		{sig: "justify_hours(interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(justifyHours(a[0].Interval()))
		}},
		{sig: "justify_days(interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) { return intervalDatum(justifyDays(a[0].Interval())) }},
		{sig: "justify_interval(interval) interval", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intervalDatum(justifyInterval(a[0].Interval()))
		}},
		{sig: "timestamp(date,time) timestamp", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(addDateTime(a[0].Int(), a[1].Int()))
		}},
		{sig: "timestamptz(date,time) timestamptz", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			ts, err := addDateTime(a[0].Int(), a[1].Int())
			if err != nil {
				return types.Null, err
			}
			return intDatum(localToTimestamptz(env, ts))
		}},
		{sig: "timezone(text,timestamptz) timestamp", fn: zoneFunc(toZone)}, {sig: "timezone(text,timestamp) timestamptz", fn: zoneFunc(fromZone)},
		{sig: "timezone(interval,timestamptz) timestamp", fn: offsetFunc(1)}, {sig: "timezone(interval,timestamp) timestamptz", fn: offsetFunc(-1)},
	}
	for _, add := range []struct {
		name string
		sign int64
	}{{"date_add", 1}, {"date_subtract", -1}} {
		fn := addInZone(add.sign)
		out = append(out, decl{sig: add.name + "(timestamptz,interval) timestamptz", flags: stable, fn: fn},
			decl{sig: add.name + "(timestamptz,interval,text) timestamptz", fn: fn})
	}
	for _, name := range []string{"now", "transaction_timestamp", "current_timestamp"} {
		out = append(out, decl{sig: name + "() timestamptz", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			return types.Int(env.TxnTime), nil
		}})
	}
	out = append(out, precisionFuncs()...)
	out = append(out, makeFuncs()...)
	out = append(out, overlapsFuncs()...)
	return append(out, fieldFuncs()...)
}

// addInZone implements date_add and date_subtract, as of PostgreSQL 16: by the calendar of the session's zone, or of the one named.
func addInZone(sign int64) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		iv, zone := a[1].Interval(), env.Format.Loc()
		if len(a) == 3 {
			named, err := types.LoadZone(a[2].Text())
			if err != nil {
				return types.Null, err
			}
			zone = named.Location
		}
		if sign < 0 {
			var err error
			if iv, err = NegInterval(iv); err != nil {
				return types.Null, err
			}
		}
		return intDatum(addTimestamptzIn(zone, a[0].Int(), iv))
	}
}

// precisionFuncs declares the keywords that may have a precision: current_timestamp(3).
func precisionFuncs() []decl {
	precision := func(a []types.Datum) int32 {
		if len(a) == 0 {
			return -1
		}
		return int32(min(max(a[0].Int(), 0), 6))
	}
	timestamptz := func(env *Env, a []types.Datum) (types.Datum, error) {
		return types.Int(types.RoundTimestamp(env.TxnTime, precision(a))), nil
	}
	timestamp := func(env *Env, a []types.Datum) (types.Datum, error) {
		return types.Int(types.RoundTimestamp(timestamptzToLocal(env, env.TxnTime), precision(a))), nil
	}
	clock := func(env *Env, a []types.Datum) (types.Datum, error) {
		return types.Int(types.RoundMicros(floorMod(timestamptzToLocal(env, env.TxnTime), types.MicrosPerDay), precision(a))), nil
	}
	return []decl{
		{sig: "current_timestamp(int4) timestamptz", flags: stable, fn: timestamptz},
		{sig: "localtimestamp() timestamp", flags: stable, fn: timestamp}, {sig: "localtimestamp(int4) timestamp", flags: stable, fn: timestamp},
		{sig: "localtime() time", flags: stable, fn: clock}, {sig: "localtime(int4) time", flags: stable, fn: clock},
	}
}

func isFiniteTimestamp(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bool(types.TimestampFinite(a[0].Int())), nil
}

// today returns the session's last midnight.
func today(env *Env) int64 {
	local := timestamptzToLocal(env, env.TxnTime)
	return local - floorMod(local, types.MicrosPerDay)
}

func timeOfDay(env *Env, _ []types.Datum) (types.Datum, error) {
	return types.Text(types.TimeOfDay(env.clock(), env.Format.Loc())), nil
}

// age subtracts by the calendar: years, months and days of the months in between. Like PostgreSQL 15 it treats infinity
// as the last representable timestamp.
func age(a, b int64) (types.Datum, error) {
	if a == types.TimestampNegInfinity || b == types.TimestampNegInfinity {
		return types.Null, errTimestampRange()
	}
	sign := int64(1)
	later, earlier := types.CivilFromTimestamp(a), types.CivilFromTimestamp(b)
	// The month whose length a borrowed day has is the earlier one.
	if a < b {
		later, earlier = earlier, later
		sign = -1
	}
	micros := later.Clock() - earlier.Clock()
	days := later.Day - earlier.Day
	months := (later.Year-earlier.Year)*12 + later.Month - earlier.Month
	if micros < 0 {
		micros += types.MicrosPerDay
		days--
	}
	for days < 0 {
		days += types.DaysInMonth(earlier.Year, earlier.Month)
		months--
	}
	return types.NewInterval(types.Interval{
		Months: int32(sign * int64(months)), Days: int32(sign * int64(days)), Micros: sign * micros,
	}), nil
}

func dateBin(_ *Env, a []types.Datum) (types.Datum, error) {
	iv, ts, origin := a[0].Interval(), a[1].Int(), a[2].Int()
	switch {
	case !types.TimestampFinite(ts):
		return a[1], nil
	case !types.TimestampFinite(origin):
		return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "origin out of range")
	case iv.Months != 0:
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	}
	stride, err := MulInt8(int64(iv.Days), types.MicrosPerDay)
	if err == nil {
		stride, err = AddInt8(stride, iv.Micros)
	}
	if err != nil {
		return types.Null, errIntervalRange()
	}
	if stride <= 0 {
		return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "stride must be greater than zero")
	}
	diff, err := SubInt8(ts, origin)
	if err != nil {
		return types.Null, errIntervalRange()
	}
	ts -= floorMod(diff, stride)
	if !types.ValidTimestamp(ts) {
		return types.Null, errTimestampRange()
	}
	return types.Int(ts), nil
}

func unixToTimestamptz(_ *Env, a []types.Datum) (types.Datum, error) {
	v := a[0].Float()
	switch {
	case math.IsNaN(v):
		return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp cannot be NaN")
	case math.IsInf(v, 1):
		return types.Int(types.TimestampInfinity), nil
	case math.IsInf(v, -1):
		return types.Int(types.TimestampNegInfinity), nil
	}
	const minUnix, endUnix = -210866803200.0, 9224318016000.0
	if v < minUnix || v >= endUnix {
		return types.Null, errUnixRange(a[0])
	}
	micros := math.RoundToEven((v - float64(timestampEpochUnix/types.MicrosPerSecond)) * 1e6)
	if !types.ValidTimestamp(int64(micros)) {
		return types.Null, errUnixRange(a[0])
	}
	return types.Int(int64(micros)), nil
}

func errUnixRange(d types.Datum) error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", printG(d.Float()))
}

// printG is C's %02g.
func printG(v float64) string {
	f := types.Format{}
	f.SetExtraFloatDigits(-9)
	s := f.Text(types.Float(v), types.TFloat8)
	if len(s) < 2 {
		s = "0" + s
	}
	return s
}

func justifyHours(iv types.Interval) (types.Interval, error) {
	days := int64(iv.Days) + iv.Micros/types.MicrosPerDay
	iv.Micros %= types.MicrosPerDay
	switch {
	case days > 0 && iv.Micros < 0:
		iv.Micros += types.MicrosPerDay
		days--
	case days < 0 && iv.Micros > 0:
		iv.Micros -= types.MicrosPerDay
		days++
	}
	return checkInterval(int64(iv.Months), days, iv.Micros, nil)
}

func justifyDays(iv types.Interval) (types.Interval, error) {
	months := int64(iv.Months) + int64(iv.Days/30)
	days := int64(iv.Days % 30)
	switch {
	case months > 0 && days < 0:
		days += 30
		months--
	case months < 0 && days > 0:
		days -= 30
		months++
	}
	return checkInterval(months, days, iv.Micros, nil)
}

func justifyInterval(iv types.Interval) (types.Interval, error) {
	days := int64(iv.Days) + iv.Micros/types.MicrosPerDay
	micros := iv.Micros % types.MicrosPerDay
	months := int64(iv.Months) + days/30
	days %= 30
	switch {
	case months > 0 && (days < 0 || days == 0 && micros < 0):
		days += 30
		months--
	case months < 0 && (days > 0 || days == 0 && micros > 0):
		days -= 30
		months++
	}
	switch {
	case days > 0 && micros < 0:
		micros += types.MicrosPerDay
		days--
	case days < 0 && micros > 0:
		micros -= types.MicrosPerDay
		days++
	}
	return checkInterval(months, days, micros, nil)
}

// The directions of AT TIME ZONE.
type zoneDirection bool

const (
	toZone   zoneDirection = true  // timestamptz to the local time of a zone
	fromZone zoneDirection = false // the local time of a zone to timestamptz
)

func zoneFunc(dir zoneDirection) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		ts := a[1].Int()
		if !types.TimestampFinite(ts) {
			return a[1], nil
		}
		zone, err := types.LoadZone(a[0].Text())
		if err != nil {
			return types.Null, err
		}
		if dir == toZone {
			ts = zone.Local(ts)
		} else {
			ts = zone.UTC(ts)
		}
		if !types.ValidTimestamp(ts) {
			return types.Null, errTimestampRange()
		}
		return types.Int(ts), nil
	}
}

// offsetFunc implements AT TIME ZONE with an interval east of UTC.
func offsetFunc(sign int64) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		ts, iv := a[1].Int(), a[0].Interval()
		if !types.TimestampFinite(ts) {
			return a[1], nil
		}
		if iv.Months != 0 || iv.Days != 0 {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "interval time zone \"%s\" must not include months or days",
				env.Format.Text(a[0], types.TInterval))
		}
		ts += sign * (iv.Micros / types.MicrosPerSecond) * types.MicrosPerSecond
		if !types.ValidTimestamp(ts) {
			return types.Null, errTimestampRange()
		}
		return types.Int(ts), nil
	}
}

// makeFuncs declares make_date and similar functions.
func makeFuncs() []decl {
	out := []decl{
		{sig: "make_date(int4,int4,int4) date", fn: makeDate},
		{sig: "make_time(int4,int4,float8) time", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(makeClock(a[0].Int(), a[1].Int(), a[2].Float()))
		}},
		{sig: "make_timestamp(int4,int4,int4,int4,int4,float8) timestamp", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return intDatum(makeTimestamp(a))
		}},
		{sig: "make_timestamptz(int4,int4,int4,int4,int4,float8) timestamptz", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			ts, err := makeTimestamp(a)
			if err != nil {
				return types.Null, err
			}
			return intDatum(localToTimestamptz(env, ts))
		}},
		{sig: "make_timestamptz(int4,int4,int4,int4,int4,float8,text) timestamptz", flags: stable, fn: makeTimestamptzIn},
	}
	// make_interval's arguments all have defaults.
	args := []string{"int4", "int4", "int4", "int4", "int4", "int4", "float8"}
	for n := 0; n <= len(args); n++ {
		out = append(out, decl{sig: "make_interval(" + strings.Join(args[:n], ",") + ") interval", fn: makeInterval})
	}
	return out
}

// checkDay returns a date; shown is the year for the error.
func checkDay(year, month, day, shown int64) (days int64, err error) {
	bad := pgerror.New(pgerror.DatetimeFieldOverflow, "date field value out of range: %d-%02d-%02d", shown, month, day)
	if year == 0 || month < 1 || month > 12 || day < 1 {
		return 0, bad
	}
	if year < 0 {
		year++
	}
	if day > int64(types.DaysInMonth(int(year), int(month))) {
		return 0, bad
	}
	if days = types.DaysFromCivil(int(year), int(month), int(day)); !types.ValidDate(days) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: %d-%02d-%02d", year, month, day)
	}
	return days, nil
}

func makeDate(_ *Env, a []types.Datum) (types.Datum, error) {
	year := a[0].Int()
	shown := year
	if year < 0 {
		shown++ // make_date, unlike make_timestamp, shows the year with a year 0
	}
	return intDatum(checkDay(year, a[1].Int(), a[2].Int(), shown))
}

func makeClock(hour, minute int64, second float64) (int64, error) {
	micros := math.RoundToEven(second * 1e6)
	total := float64(hour*60+minute)*60e6 + micros
	if hour < 0 || minute < 0 || minute > 59 || !(second >= 0 && second <= 60) || hour > 24 || total > float64(types.MicrosPerDay) {
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "time field value out of range: %d:%02d:%s", hour, minute, printG(second))
	}
	return int64(total), nil
}

func makeTimestamp(a []types.Datum) (int64, error) {
	days, err := checkDay(a[0].Int(), a[1].Int(), a[2].Int(), a[0].Int())
	if err != nil {
		return 0, err
	}
	clock, err := makeClock(a[3].Int(), a[4].Int(), a[5].Float())
	if err != nil {
		return 0, err
	}
	ts, err := types.TimestampFromDate(days)
	if err == nil {
		ts, err = addMicros(ts, clock)
	}
	return ts, err
}

func makeTimestamptzIn(_ *Env, a []types.Datum) (types.Datum, error) {
	ts, err := makeTimestamp(a)
	if err != nil {
		return types.Null, err
	}
	zone, err := types.LoadOffsetOrZone(a[6].Text())
	if err != nil {
		return types.Null, err
	}
	if ts = zone.UTC(ts); !types.ValidTimestamp(ts) {
		return types.Null, errTimestampRange()
	}
	return types.Int(ts), nil
}

// makeInterval is make_interval(years, months, weeks, days, hours, mins, secs).
func makeInterval(_ *Env, a []types.Datum) (types.Datum, error) {
	var n [6]int64
	for i := range min(len(a), len(n)) {
		n[i] = a[i].Int()
	}
	secs := 0.0
	if len(a) == 7 {
		if secs = a[6].Float(); math.IsInf(secs, 0) || math.IsNaN(secs) {
			return types.Null, errIntervalRange()
		}
	}
	micros := math.RoundToEven(secs * 1e6)
	if !(micros >= -0x1p63 && micros < 0x1p63) {
		return types.Null, errIntervalRange()
	}
	total, err := AddInt8(n[4]*types.MicrosPerHour+n[5]*types.MicrosPerMinute, int64(micros))
	return intervalDatum(checkInterval(n[0]*12+n[1], n[2]*7+n[3], total, err))
}

// overlapsFuncs declares OVERLAPS: of two pairs of times, or of a time and a length.
func overlapsFuncs() []decl {
	var out []decl
	for _, t := range []string{"time", "timestamp", "timestamptz"} {
		add := timeAdder(t)
		for _, shape := range []struct{ first, second string }{{t, t}, {t, "interval"}, {"interval", t}, {"interval", "interval"}} {
			firstLength, secondLength := shape.first == "interval", shape.second == "interval"
			out = append(out, decl{sig: "overlaps(" + t + "," + shape.first + "," + t + "," + shape.second + ") bool", flags: nonStrict | stable,
				fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					b := [4]types.Datum{a[0], a[1], a[2], a[3]}
					for i, isLength := range [2]bool{firstLength, secondLength} {
						at := &b[2*i+1]
						if !isLength || at.IsNull() {
							continue
						}
						if b[2*i].IsNull() {
							*at = types.Null
							continue
						}
						var err error
						if *at, err = add(env, []types.Datum{b[2*i], *at}); err != nil {
							return types.Null, err
						}
					}
					return overlaps(b), nil
				}})
		}
	}
	return out
}

// timeAdder returns the function of t + interval.
func timeAdder(t string) Func {
	for _, d := range timeIntervalOps() {
		if strings.HasPrefix(d.sig, "+("+t+",interval)") {
			return d.fn
		}
	}
	panic("builtin: no operator " + t + " + interval")
}

// overlaps compares two periods by SQL's rules: each period's ends in order, half open, with NULL for an unknown end.
func overlaps(p [4]types.Datum) types.Datum {
	for i := 0; i < 4; i += 2 {
		if p[i].IsNull() {
			if p[i+1].IsNull() {
				return types.Null
			}
			p[i], p[i+1] = p[i+1], types.Null
		} else if !p[i+1].IsNull() && p[i].Int() > p[i+1].Int() {
			p[i], p[i+1] = p[i+1], p[i]
		}
	}
	s1, e1, s2, e2 := p[0], p[1], p[2], p[3]
	if s1.Int() < s2.Int() {
		s1, e1, s2, e2 = s2, e2, s1, e1
	}
	switch {
	case s1.Int() == s2.Int():
		if e1.IsNull() || e2.IsNull() {
			return types.Null
		}
		return types.Bool(true)
	case e2.IsNull():
		return types.Null
	case s1.Int() < e2.Int():
		return types.Bool(true)
	case e1.IsNull():
		return types.Null
	}
	return types.Bool(false)
}
