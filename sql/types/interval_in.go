package types

import (
	"math"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// intervalUnit is the unit of a number in an interval.
type intervalUnit uint8

const (
	unitNone intervalUnit = iota
	unitMicrosecond
	unitMillisecond
	unitSecond
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitMonth
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitQuarter
	unitAgo
)

// intervalUnits are the words of intervals, truncated to maxTokenLen; read only.
var intervalUnits = map[string]intervalUnit{
	"us": unitMicrosecond, "usec": unitMicrosecond, "usecond": unitMicrosecond, "useconds": unitMicrosecond,
	"usecs": unitMicrosecond, "microsecon": unitMicrosecond,
	"ms": unitMillisecond, "msec": unitMillisecond, "msecond": unitMillisecond, "mseconds": unitMillisecond,
	"msecs": unitMillisecond, "millisecon": unitMillisecond,
	"s": unitSecond, "sec": unitSecond, "secs": unitSecond, "second": unitSecond, "seconds": unitSecond,
	"m": unitMinute, "min": unitMinute, "mins": unitMinute, "minute": unitMinute, "minutes": unitMinute,
	"h": unitHour, "hr": unitHour, "hrs": unitHour, "hour": unitHour, "hours": unitHour,
	"d": unitDay, "day": unitDay, "days": unitDay, "w": unitWeek, "week": unitWeek, "weeks": unitWeek,
	"mon": unitMonth, "mons": unitMonth, "month": unitMonth, "months": unitMonth,
	"y": unitYear, "yr": unitYear, "yrs": unitYear, "year": unitYear, "years": unitYear,
	"dec": unitDecade, "decs": unitDecade, "decade": unitDecade, "decades": unitDecade,
	"c": unitCentury, "cent": unitCentury, "century": unitCentury, "centuries": unitCentury,
	"mil": unitMillennium, "mils": unitMillennium, "millennia": unitMillennium, "millennium": unitMillennium,
	"qtr": unitQuarter, "quarter": unitQuarter, "ago": unitAgo,
}

// intervalSum adds up an interval's fields; its methods return false on overflow.
type intervalSum struct {
	months, years int32
	days          int32
	micros        int64
}

func (s *intervalSum) addMicros(value int64, frac float64, unit int64) bool {
	if limit := math.MaxInt64 / unit; unit > 1 && (value > limit || value < -limit) {
		return false
	}
	return addInt64(&s.micros, value*unit) && s.addFracMicros(frac, unit)
}

func absInt64(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

func addInt64(sum *int64, n int64) bool {
	r := *sum + n
	if (r > *sum) != (n > 0) && n != 0 {
		return false
	}
	*sum = r
	return true
}

func addInt32(sum *int32, n int64) bool {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return false
	}
	r := int64(*sum) + n
	*sum = int32(r)
	return r == int64(*sum)
}

// addFracMicros adds a fraction of a unit, halves of a microsecond rounded towards zero.
func (s *intervalSum) addFracMicros(frac float64, unit int64) bool {
	if frac == 0 {
		return true
	}
	frac *= float64(unit)
	whole := int64(frac)
	switch rest := frac - float64(whole); {
	case rest > 0.5:
		whole++
	case rest < -0.5:
		whole--
	}
	return addInt64(&s.micros, whole)
}

func (s *intervalSum) addDays(value, per int64) bool {
	if value > math.MaxInt32 || value < math.MinInt32 {
		return false
	}
	return addInt32(&s.days, value*per)
}

func (s *intervalSum) addFracDays(frac float64, per int64) bool {
	if frac == 0 {
		return true
	}
	frac *= float64(per)
	whole := int64(frac)
	return addInt32(&s.days, whole) && s.addFracMicros(frac-float64(whole), MicrosPerDay)
}

func (s *intervalSum) addYears(value int64, frac float64, per int64) bool {
	if value > math.MaxInt32 || value < math.MinInt32 {
		return false
	}
	return addInt32(&s.years, value*per) && addInt32(&s.months, int64(math.RoundToEven(frac*float64(per)*12)))
}

// add adds value.frac of a unit and returns the parts that it set.
func (s *intervalSum) add(unit intervalUnit, value int64, frac float64) (filled timeField, ok bool) {
	switch unit {
	case unitMicrosecond:
		return fieldMicros, s.addMicros(value, frac, 1)
	case unitMillisecond:
		return fieldMillis, s.addMicros(value, frac, 1000)
	case unitSecond:
		filled = fieldSecond
		if frac != 0 {
			filled = fieldsAllSeconds
		}
		return filled, s.addMicros(value, frac, MicrosPerSecond)
	case unitMinute:
		return fieldMinute, s.addMicros(value, frac, MicrosPerMinute)
	case unitHour:
		return fieldHour, s.addMicros(value, frac, MicrosPerHour)
	case unitDay:
		return fieldDay, s.addDays(value, 1) && s.addFracMicros(frac, MicrosPerDay)
	case unitWeek:
		return fieldWeek, s.addDays(value, 7) && s.addFracDays(frac, 7)
	case unitMonth:
		return fieldMonth, addInt32(&s.months, value) && s.addFracDays(frac, 30)
	case unitYear:
		return fieldYear, s.addYears(value, frac, 1)
	case unitDecade:
		return fieldDecade, s.addYears(value, frac, 10)
	case unitCentury:
		return fieldCentury, s.addYears(value, frac, 100)
	}
	return fieldMillennium, s.addYears(value, frac, 1000)
}

func (s *intervalSum) negate() bool {
	if s.months == math.MinInt32 || s.years == math.MinInt32 || s.days == math.MinInt32 || s.micros == math.MinInt64 {
		return false
	}
	s.months, s.years, s.days, s.micros = -s.months, -s.years, -s.days, -s.micros
	return true
}

func (s *intervalSum) interval() (Interval, bool) {
	months := int64(s.years)*12 + int64(s.months)
	if months < math.MinInt32 || months > math.MaxInt32 {
		return Interval{}, false
	}
	return Interval{Months: int32(months), Days: s.days, Micros: s.micros}, true
}

func parseInterval(s string, mod int32, f *Format) (Datum, error) {
	var space [8]textField
	mask := intervalMask(mod)
	fields, ok := splitTime(s, space[:0])
	sum, p := intervalSum{}, badFormat
	if ok {
		sum, p = decodeInterval(fields, mask, f.Interval)
	}
	if p == badFormat {
		sum, p = decodeISOInterval(s)
	}
	switch p {
	case timeOK:
	case fieldOverflow:
		return Null, timeError(intervalOverflow, "interval", s)
	default:
		return Null, timeError(p, "interval", s)
	}
	iv, ok := sum.interval()
	if !ok {
		return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "interval out of range")
	}
	return NewInterval(LimitInterval(iv, mod)), nil
}

func intervalMask(mod int32) int {
	if mod < 0 {
		return intervalFullRange
	}
	return int(mod>>16) & 0x7FFF
}

// LimitInterval truncates an interval to the fields and the precision of a modifier.
func LimitInterval(iv Interval, mod int32) Interval {
	if mod < 0 {
		return iv
	}
	switch intervalMask(mod) {
	case intervalMaskYear:
		return Interval{Months: iv.Months / 12 * 12}
	case intervalMaskMonth, intervalMaskYear | intervalMaskMonth:
		return Interval{Months: iv.Months}
	case intervalMaskDay:
		iv.Micros = 0
	case intervalMaskHour, intervalMaskDay | intervalMaskHour:
		iv.Micros = iv.Micros / MicrosPerHour * MicrosPerHour
	case intervalMaskMinute, intervalMaskHour | intervalMaskMinute,
		intervalMaskDay | intervalMaskHour | intervalMaskMinute:
		iv.Micros = iv.Micros / MicrosPerMinute * MicrosPerMinute
	}
	if prec := mod & 0xFFFF; prec != intervalFullPrecision {
		iv.Micros = RoundMicros(iv.Micros, prec)
	}
	return iv
}

// decodeInterval reads fields from right to left, because a number's unit follows it.
func decodeInterval(fields []textField, mask int, style IntervalStyle) (sum intervalSum, p timeProblem) {
	d := intervalDecoder{mask: mask}
	d.forceNegative = style == IntervalSQLStandard && len(fields) > 0 && fields[0].text[0] == '-' && oneSign(fields)
	for i := len(fields) - 1; i >= 0; i-- {
		filled, p := d.field(fields[i])
		if p != timeOK {
			return d.sum, p
		}
		if filled&d.seen != 0 {
			return d.sum, badFormat
		}
		d.seen |= filled
	}
	if d.seen == 0 {
		return d.sum, badFormat
	}
	if d.ago && !d.sum.negate() {
		return d.sum, fieldOverflow
	}
	return d.sum, timeOK
}

// oneSign reports whether only the first field has a sign.
func oneSign(fields []textField) bool {
	for _, f := range fields[1:] {
		if f.text[0] == '-' || f.text[0] == '+' {
			return false
		}
	}
	return true
}

type intervalDecoder struct {
	sum           intervalSum
	seen          timeField
	unit          intervalUnit // of the number to the left
	mask          int
	ago           bool
	forceNegative bool // SQL standard style: the leading sign applies to all fields
}

func (d *intervalDecoder) field(f textField) (timeField, timeProblem) {
	switch f.look {
	case lookTime:
		micros, p := d.clock(f.text)
		if p != timeOK {
			return 0, p
		}
		if d.forceNegative && micros > 0 {
			micros = -micros
		}
		d.sum.micros = micros
		d.unit = unitDay
		return fieldsTime, timeOK
	case lookZone:
		if strings.IndexByte(f.text, ':') >= 0 {
			if micros, p := d.clock(f.text[1:]); p == timeOK {
				if f.text[0] == '-' {
					micros = -micros
				}
				d.sum.micros = micros
				d.unit = unitDay
				return fieldsTime, timeOK
			}
		}
		return d.number(f.text)
	case lookDate, lookNumber:
		return d.number(f.text)
	}
	return 0, d.word(f.text)
}

func (d *intervalDecoder) word(text string) timeProblem {
	if len(text) > maxTokenLen {
		text = text[:maxTokenLen]
	}
	switch unit := intervalUnits[text]; unit {
	case unitNone:
		return badFormat
	case unitAgo:
		d.ago = true
		d.unit = unitAgo
	default:
		d.unit = unit
	}
	return timeOK
}

// number reads a signed number, or SQL's years-months.
func (d *intervalDecoder) number(text string) (timeField, timeProblem) {
	if d.unit == unitNone {
		d.unit = lastUnit(d.mask)
	}
	end := 0
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		end = 1
	}
	end = skipDigits(text, end)
	value := int64(0)
	if digits := text[:end]; allDigits(strings.TrimLeft(digits, "+-")) {
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fieldOverflow
		}
		value = v
	}
	frac := 0.0
	switch rest := text[end:]; {
	case rest == "":
	case rest[0] == '-':
		months, n, p := number(rest[1:])
		if p != timeOK || months >= 12 {
			return 0, fieldOverflow
		}
		if rest[1+n:] != "" {
			return 0, badFormat
		}
		if negative {
			months = -months
		}
		d.unit = unitMonth
		if value > math.MaxInt32 || value < math.MinInt32 {
			return 0, fieldOverflow
		}
		value = value*12 + int64(months)
	case rest[0] == '.':
		f, ok := decimalFraction(rest)
		if !ok {
			return 0, badFormat
		}
		if frac = f; negative {
			frac = -f
		}
	default:
		return 0, badFormat
	}
	if d.forceNegative {
		value, frac = -absInt64(value), -math.Abs(frac)
	}
	if d.unit == unitQuarter || d.unit == unitAgo {
		return 0, badFormat
	}
	filled, ok := d.sum.add(d.unit, value, frac)
	if !ok {
		return 0, fieldOverflow
	}
	if d.unit == unitHour {
		d.unit = unitDay
	}
	return filled, timeOK
}

func decimalFraction(s string) (float64, bool) {
	if skipDigits(s, 1) != len(s) {
		return 0, false
	}
	if len(s) == 1 {
		return 0, true
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// lastUnit is the unit of a bare number: the last field of the type.
func lastUnit(mask int) intervalUnit {
	switch {
	case mask == intervalFullRange:
		return unitSecond
	case mask&intervalMaskSecond != 0:
		return unitSecond
	case mask&intervalMaskMinute != 0:
		return unitMinute
	case mask&intervalMaskHour != 0:
		return unitHour
	case mask&intervalMaskDay != 0:
		return unitDay
	case mask&intervalMaskMonth != 0:
		return unitMonth
	}
	return unitYear
}

// clock reads hh:mm[:ss[.fff]]; the type may determine that two numbers are mm:ss.
func (d *intervalDecoder) clock(text string) (micros int64, p timeProblem) {
	end := skipDigits(text, 0)
	hour, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil && end > 0 {
		return 0, fieldOverflow
	}
	if end == 0 || end == len(text) || text[end] != ':' {
		return 0, badFormat
	}
	rest := text[end+1:]
	minute, end, p := numberOrZero(rest)
	if p != timeOK {
		return 0, p
	}
	rest = rest[end:]
	var second, fsec int
	minuteFirst := false
	switch {
	case rest == "":
		minuteFirst = d.mask == intervalMaskMinute|intervalMaskSecond
	case rest[0] == '.':
		minuteFirst = true
		fsec, p = fraction(rest)
	default:
		if second, end, p = numberOrZero(rest[1:]); p != timeOK {
			return 0, p
		}
		if rest = rest[1+end:]; rest != "" {
			fsec, p = fraction(rest)
		}
	}
	if p != timeOK {
		return 0, p
	}
	if minuteFirst {
		if hour > math.MaxInt32 {
			return 0, fieldOverflow
		}
		hour, minute, second = 0, int(hour), minute
	}
	if minute > 59 || second > 60 || fsec > 1_000_000 {
		return 0, fieldOverflow
	}
	var sum intervalSum
	if !sum.addMicros(hour, 0, MicrosPerHour) ||
		!addInt64(&sum.micros, int64(minute)*MicrosPerMinute+int64(second)*MicrosPerSecond+int64(fsec)) {
		return 0, fieldOverflow
	}
	return sum.micros, timeOK
}
