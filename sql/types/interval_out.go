package types

import "strconv"

// intervalParts is an interval split into the units that are printed; all parts of the clock have
// one sign, and so have years and months.
type intervalParts struct {
	year, month, day, hour, minute, second, micros int64
}

func splitInterval(iv Interval) intervalParts {
	t := iv.Micros
	return intervalParts{
		year: int64(iv.Months) / 12, month: int64(iv.Months) % 12, day: int64(iv.Days),
		hour: t / MicrosPerHour, minute: t / MicrosPerMinute % 60, second: t / MicrosPerSecond % 60,
		micros: t % MicrosPerSecond,
	}
}

func (p *intervalParts) clockZero() bool {
	return p.hour == 0 && p.minute == 0 && p.second == 0 && p.micros == 0
}

func (p *intervalParts) clockNegative() bool {
	return p.hour < 0 || p.minute < 0 || p.second < 0 || p.micros < 0
}

func appendInterval(dst []byte, iv Interval, style IntervalStyle) []byte {
	p := splitInterval(iv)
	switch style {
	case IntervalSQLStandard:
		return p.appendSQL(dst)
	case IntervalISO8601:
		return p.appendISO(dst)
	case IntervalPostgresVerbose:
		return p.appendVerbose(dst)
	}
	return p.appendPostgres(dst)
}

// appendPostgres writes "1 year 2 mons -3 days +04:05:06".
func (p *intervalParts) appendPostgres(dst []byte) []byte {
	start := len(dst)
	negative := false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		if negative && n > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		negative = n < 0
	}
	part(p.year, "year")
	part(p.month, "mon")
	part(p.day, "day")
	first := len(dst) == start
	if !first && p.clockZero() {
		return dst
	}
	if !first {
		dst = append(dst, ' ')
	}
	if p.clockNegative() {
		dst = append(dst, '-')
	} else if negative {
		dst = append(dst, '+')
	}
	return p.appendClock(dst, 2, true)
}

// appendClock writes the clock without its sign.
func (p *intervalParts) appendClock(dst []byte, hourWidth int, fill bool) []byte {
	dst = appendPadded(dst, int(absInt64(p.hour)), hourWidth)
	dst = append(dst, ':')
	dst = appendPadded(dst, int(absInt64(p.minute)), 2)
	dst = append(dst, ':')
	return p.appendSeconds(dst, fill)
}

func (p *intervalParts) appendSeconds(dst []byte, fill bool) []byte {
	width := 1
	if fill {
		width = 2
	}
	dst = appendPadded(dst, int(absInt64(p.second)), width)
	return appendFraction(dst, int(absInt64(p.micros)))
}

// appendVerbose writes "@ 1 year 2 mons -3 days ago".
func (p *intervalParts) appendVerbose(dst []byte) []byte {
	dst = append(dst, '@')
	zero, ago := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if zero {
			ago = n < 0
			n = absInt64(n)
		} else if ago {
			n = -n
		}
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		zero = false
	}
	part(p.year, "year")
	part(p.month, "mon")
	part(p.day, "day")
	part(p.hour, "hour")
	part(p.minute, "min")
	if p.second != 0 || p.micros != 0 {
		dst = append(dst, ' ')
		negative := p.second < 0 || p.micros < 0
		if zero {
			ago = negative
		} else if negative != ago {
			dst = append(dst, '-')
		}
		dst = p.appendSeconds(dst, false)
		dst = append(dst, " sec"...)
		if absInt64(p.second) != 1 || p.micros != 0 {
			dst = append(dst, 's')
		}
		zero = false
	}
	if zero {
		dst = append(dst, " 0"...)
	}
	if ago {
		dst = append(dst, " ago"...)
	}
	return dst
}

// appendSQL writes "1-2", "3 4:05:06" or, when signs or kinds mix, "+1-2 -3 +4:05:06".
func (p *intervalParts) appendSQL(dst []byte) []byte {
	negative := p.year < 0 || p.month < 0 || p.day < 0 || p.clockNegative()
	positive := p.year > 0 || p.month > 0 || p.day > 0 || !p.clockZero() && !p.clockNegative()
	yearMonth := p.year != 0 || p.month != 0
	dayTime := p.day != 0 || !p.clockZero()
	if !negative && !positive {
		return append(dst, '0')
	}
	if negative && positive || yearMonth && dayTime {
		dst = append(dst, signOf(p.year < 0 || p.month < 0))
		dst = p.appendYearMonth(dst)
		dst = append(dst, ' ', signOf(p.day < 0))
		dst = strconv.AppendInt(dst, absInt64(p.day), 10)
		dst = append(dst, ' ', signOf(p.clockNegative()))
		return p.appendClock(dst, 1, true)
	}
	if negative {
		dst = append(dst, '-')
	}
	if yearMonth {
		return p.appendYearMonth(dst)
	}
	if p.day != 0 {
		dst = strconv.AppendInt(dst, absInt64(p.day), 10)
		dst = append(dst, ' ')
	}
	return p.appendClock(dst, 1, true)
}

func signOf(negative bool) byte {
	if negative {
		return '-'
	}
	return '+'
}

func (p *intervalParts) appendYearMonth(dst []byte) []byte {
	dst = strconv.AppendInt(dst, absInt64(p.year), 10)
	dst = append(dst, '-')
	return strconv.AppendInt(dst, absInt64(p.month), 10)
}

// appendISO writes "P1Y2M3DT4H5M6.7S".
func (p *intervalParts) appendISO(dst []byte) []byte {
	if p.year == 0 && p.month == 0 && p.day == 0 && p.clockZero() {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.year, 'Y')
	part(p.month, 'M')
	part(p.day, 'D')
	if p.clockZero() {
		return dst
	}
	dst = append(dst, 'T')
	part(p.hour, 'H')
	part(p.minute, 'M')
	if p.second != 0 || p.micros != 0 {
		if p.second < 0 || p.micros < 0 {
			dst = append(dst, '-')
		}
		dst = append(p.appendSeconds(dst, false), 'S')
	}
	return dst
}
