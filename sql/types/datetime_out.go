package types

import (
	"strconv"
	"time"
)

// appendPadded appends n with at least width digits.
func appendPadded(dst []byte, n, width int) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	if width == 2 && n < 100 {
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	limit := 1
	for range width - 1 {
		limit *= 10
	}
	for ; n < limit && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// shownYear converts the astronomical year to the printed one, which may be BC.
func shownYear(year int) (shown int, bc bool) {
	if year > 0 {
		return year, false
	}
	return 1 - year, true
}

func appendDate(dst []byte, days int64, f *Format) []byte {
	switch days {
	case DateInfinity:
		return append(dst, "infinity"...)
	case DateNegInfinity:
		return append(dst, "-infinity"...)
	}
	year, month, day := CivilFromDays(days)
	shown, bc := shownYear(year)
	dst = appendCalendar(dst, shown, month, day, f, '-')
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendCalendar writes a day in the DateStyle; sep separates its parts in the Postgres style, which has another
// separator in timestamps.
func appendCalendar(dst []byte, year, month, day int, f *Format, sep byte) []byte {
	first, second := month, day
	if f.DateOrder == OrderDMY {
		first, second = day, month
	}
	switch f.DateStyle {
	case DateSQL:
		sep = '/'
	case DateGerman:
		first, second, sep = day, month, '.'
	case DateISO:
		dst = appendPadded(dst, year, 4)
		dst = append(dst, '-')
		dst = appendPadded(dst, month, 2)
		dst = append(dst, '-')
		return appendPadded(dst, day, 2)
	}
	dst = appendPadded(dst, first, 2)
	dst = append(dst, sep)
	dst = appendPadded(dst, second, 2)
	dst = append(dst, sep)
	return appendPadded(dst, year, 4)
}

func appendTimeOfDay(dst []byte, micros int64) []byte {
	var c Civil
	c.setClock(micros)
	return appendClock(dst, &c)
}

// appendClock writes hh:mm:ss with up to six digits of a fraction, trailing zeros cut.
func appendClock(dst []byte, c *Civil) []byte {
	dst = appendPadded(dst, c.Hour, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, c.Minute, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, c.Second, 2)
	return appendFraction(dst, c.Micros)
}

func appendFraction(dst []byte, micros int) []byte {
	if micros == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := 100_000; micros > 0; unit /= 10 {
		dst = append(dst, byte('0'+micros/unit))
		micros %= unit
	}
	return dst
}

func appendInfinity(dst []byte, ts int64) []byte {
	if ts < 0 {
		dst = append(dst, '-')
	}
	return append(dst, "infinity"...)
}

func appendTimestamp(dst []byte, ts int64, f *Format) []byte {
	if !TimestampFinite(ts) {
		return appendInfinity(dst, ts)
	}
	c := CivilFromTimestamp(ts)
	return appendMoment(dst, &c, f, nil)
}

func appendTimestamptz(dst []byte, ts int64, f *Format) []byte {
	if !TimestampFinite(ts) {
		return appendInfinity(dst, ts)
	}
	loc := f.Loc()
	z := shownZone{name: "UTC"}
	if loc != time.UTC {
		z.name, z.offset = ZoneAt(ts, loc)
	}
	c := CivilFromTimestamp(ts + int64(z.offset)*MicrosPerSecond)
	return appendMoment(dst, &c, f, &z)
}

type shownZone struct {
	name   string // abbreviation
	offset int    // seconds east
}

var weekdayAbbrevs = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
var monthAbbrevs = [13]string{"", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// appendMoment writes a date and a clock in the DateStyle, with a zone unless z is nil.
func appendMoment(dst []byte, c *Civil, f *Format, z *shownZone) []byte {
	year, bc := shownYear(c.Year)
	if f.DateStyle == DatePostgres {
		dst = appendPostgresMoment(dst, c, year, f)
	} else {
		dst = appendCalendar(dst, year, c.Month, c.Day, f, '-')
		dst = append(dst, ' ')
		dst = appendClock(dst, c)
	}
	if z != nil {
		if f.DateStyle == DateISO || z.name == "" {
			if f.DateStyle == DatePostgres {
				dst = append(dst, ' ')
			}
			dst = AppendZoneOffset(dst, z.offset)
		} else {
			dst = append(dst, ' ')
			dst = append(dst, z.name...)
		}
	}
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendPostgresMoment writes "Wed Dec 17 07:37:16 1997".
func appendPostgresMoment(dst []byte, c *Civil, year int, f *Format) []byte {
	days := DaysFromCivil(c.Year, c.Month, c.Day)
	dst = append(dst, weekdayAbbrevs[floorMod(days+6, 7)]...)
	dst = append(dst, ' ')
	if f.DateOrder == OrderDMY {
		dst = appendPadded(dst, c.Day, 2)
		dst = append(dst, ' ')
		dst = append(dst, monthAbbrevs[c.Month]...)
	} else {
		dst = append(dst, monthAbbrevs[c.Month]...)
		dst = append(dst, ' ')
		dst = appendPadded(dst, c.Day, 2)
	}
	dst = append(dst, ' ')
	dst = appendClock(dst, c)
	dst = append(dst, ' ')
	return appendPadded(dst, year, 4)
}

// AppendZoneOffset writes an offset from UTC in seconds as ISO does: +hh, +hh:mm or +hh:mm:ss.
func AppendZoneOffset(dst []byte, offset int) []byte {
	sign := byte('+')
	if offset < 0 {
		sign = '-'
		offset = -offset
	}
	dst = append(dst, sign)
	dst = appendPadded(dst, offset/3600, 2)
	if offset%3600 == 0 {
		return dst
	}
	dst = append(dst, ':')
	dst = appendPadded(dst, offset/60%60, 2)
	if offset%60 != 0 {
		dst = append(dst, ':')
		dst = appendPadded(dst, offset%60, 2)
	}
	return dst
}

// TimeOfDay writes a moment as timeofday() does: "Wed Feb 26 01:23:45.678901 2024 UTC".
func TimeOfDay(ts int64, loc *time.Location) string {
	t := time.Unix(unixSeconds(ts), floorMod(ts, MicrosPerSecond)*1000).In(loc)
	return t.Format("Mon Jan 02 15:04:05.000000 2006 MST")
}
