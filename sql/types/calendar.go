package types

import (
	"math"

	"github.com/percodb/percodb/sql/pgerror"
)

// Microseconds in the units of time.
const (
	MicrosPerSecond int64 = 1_000_000
	MicrosPerMinute       = 60 * MicrosPerSecond
	MicrosPerHour         = 60 * MicrosPerMinute
	MicrosPerDay          = 24 * MicrosPerHour
)

// The extreme values that represent infinity, and the ranges of finite values.
const (
	TimestampInfinity    = math.MaxInt64
	TimestampNegInfinity = math.MinInt64
	DateInfinity         = math.MaxInt32
	DateNegInfinity      = math.MinInt32

	minTimestamp int64 = -211813488000000000
	endTimestamp int64 = 9223371331200000000
	minDate      int64 = -2451545
	endDate      int64 = 2147483494 - 2451545
)

const (
	// unixEpochDays is 1970-01-01 in days from 2000-01-01; julianEpoch is the Julian day of 2000-01-01.
	unixEpochDays = -10957
	julianEpoch   = 2451545
	// unixToMicros is 1970-01-01 in microseconds from 2000-01-01.
	unixToMicros = unixEpochDays * MicrosPerDay
)

// TimestampFinite reports whether a timestamp is finite.
func TimestampFinite(ts int64) bool { return ts != TimestampInfinity && ts != TimestampNegInfinity }

// DateFinite reports whether a date is finite.
func DateFinite(days int64) bool { return days != DateInfinity && days != DateNegInfinity }

// ValidTimestamp reports whether a finite timestamp is in PostgreSQL's range.
func ValidTimestamp(ts int64) bool { return ts >= minTimestamp && ts < endTimestamp }

// ValidDate reports whether a finite date is in PostgreSQL's range.
func ValidDate(days int64) bool { return days >= minDate && days < endDate }

// DaysFromCivil returns the days from 2000-01-01 of a day of the proleptic Gregorian calendar. Year 0 is 1 BC. Month
// and day may exceed their ranges; they carry.
func DaysFromCivil(year, month, day int) int64 {
	y, m := int64(year), int64(month)-1
	y += floorDiv(m, 12)
	m = floorMod(m, 12)
	// Count from March, so that the leap day is the year's last.
	if m < 2 {
		y--
		m += 12
	}
	era := floorDiv(y, 400)
	yearOfEra := y - era*400
	dayOfYear := (153*(m-2)+2)/5 + int64(day) - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146097 + dayOfEra - 730425
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(days int64) (year, month, day int) {
	n := days + 730425
	era := floorDiv(n, 146097)
	dayOfEra := n - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day = int(dayOfYear-(153*m+2)/5) + 1
	y := yearOfEra + era*400
	if m += 3; m > 12 {
		m -= 12
		y++
	}
	return int(y), int(m), day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// IsLeap reports whether a year has 366 days.
func IsLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// DaysInMonth returns the length of a month, 1 … 12.
func DaysInMonth(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if IsLeap(year) {
			return 29
		}
		return 28
	}
	return 31
}

// validJulian reports whether a day lies within PostgreSQL's calendar.
func validJulian(year, month int) bool {
	return (year > -4713 || year == -4713 && month >= 11) && (year < 5874898 || year == 5874898 && month < 6)
}

// Civil is a date and a time of day, without a zone.
type Civil struct {
	Year, Month, Day     int // year 0 is 1 BC
	Hour, Minute, Second int
	Micros               int
}

// CivilFromTimestamp splits a finite timestamp.
func CivilFromTimestamp(ts int64) Civil {
	days := floorDiv(ts, MicrosPerDay)
	c := Civil{}
	c.Year, c.Month, c.Day = CivilFromDays(days)
	c.setClock(ts - days*MicrosPerDay)
	return c
}

func (c *Civil) setClock(micros int64) {
	c.Hour = int(micros / MicrosPerHour)
	micros %= MicrosPerHour
	c.Minute = int(micros / MicrosPerMinute)
	micros %= MicrosPerMinute
	c.Second = int(micros / MicrosPerSecond)
	c.Micros = int(micros % MicrosPerSecond)
}

// Clock returns the microseconds since midnight.
func (c Civil) Clock() int64 {
	return int64(c.Hour)*MicrosPerHour + int64(c.Minute)*MicrosPerMinute + int64(c.Second)*MicrosPerSecond + int64(c.Micros)
}

// Timestamp returns c as microseconds from 2000-01-01; false if it is out of range.
func (c Civil) Timestamp() (int64, bool) {
	ts, ok := c.local()
	return ts, ok && ValidTimestamp(ts)
}

// local is Timestamp with a range that is larger by a day at both ends, for local times whose zone brings them into
// range.
func (c Civil) local() (int64, bool) {
	if !validJulian(c.Year, c.Month) {
		return 0, false
	}
	days := DaysFromCivil(c.Year, c.Month, c.Day)
	if days < minDate-1 || days > endTimestamp/MicrosPerDay {
		return 0, false // days*MicrosPerDay might overflow
	}
	return days*MicrosPerDay + c.Clock(), true
}

// TimestampFromDate returns midnight of a date; 22008 when it is out of range.
func TimestampFromDate(days int64) (int64, error) {
	switch {
	case days == DateInfinity:
		return TimestampInfinity, nil
	case days == DateNegInfinity:
		return TimestampNegInfinity, nil
	case days >= endTimestamp/MicrosPerDay:
		return 0, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range for timestamp")
	}
	return days * MicrosPerDay, nil
}

// DateFromTimestamp returns the day of a timestamp.
func DateFromTimestamp(ts int64) int64 {
	switch ts {
	case TimestampInfinity:
		return DateInfinity
	case TimestampNegInfinity:
		return DateNegInfinity
	}
	return floorDiv(ts, MicrosPerDay)
}

// RoundMicros rounds microseconds to a precision of 0 … 6 digits after the second, halves away from
// zero, as the modifiers of the time types ask; a negative precision leaves them.
func RoundMicros(micros int64, precision int32) int64 {
	if precision < 0 || precision >= maxTimePrec {
		return micros
	}
	unit := int64(1)
	for range maxTimePrec - precision {
		unit *= 10
	}
	if micros >= 0 {
		return (micros + unit/2) / unit * unit
	}
	return -((-micros + unit/2) / unit * unit)
}

// RoundTimestamp rounds a timestamp to a modifier's precision; infinities stay.
func RoundTimestamp(ts int64, precision int32) int64 {
	if !TimestampFinite(ts) {
		return ts
	}
	return RoundMicros(ts, precision)
}
