package types

import (
	"math"
	"strconv"
	"strings"
)

// decodeISOInterval reads ISO 8601's durations: P1Y2M3DT4H5M6.7S, with weeks, signs and fractions, and
// the alternative form P0001-02-03T04:05:06.
func decodeISOInterval(s string) (sum intervalSum, p timeProblem) {
	if len(s) < 2 || s[0] != 'P' {
		return sum, badFormat
	}
	inTime, haveField := false, false
	for rest := s[1:]; rest != ""; {
		if rest[0] == 'T' {
			inTime, haveField = true, false
			rest = rest[1:]
			continue
		}
		field := rest
		value, frac, n, p := isoNumber(rest)
		if p != timeOK {
			return sum, p
		}
		rest = rest[n:]
		unit := byte(0)
		if rest != "" {
			unit = rest[0]
			rest = rest[1:]
		}
		ok := true
		switch {
		case !inTime && (unit == 0 || unit == 'T' || unit == '-'):
			return isoAlternative(&sum, field, haveField)
		case inTime && (unit == 0 || unit == ':'):
			return isoAlternativeTime(&sum, field, haveField)
		case !inTime:
			dateUnit, known := isoDateUnits[unit]
			if !known {
				return sum, badFormat
			}
			_, ok = sum.add(dateUnit, value, frac)
		default:
			timeUnit, known := isoTimeUnits[unit]
			if !known {
				return sum, badFormat
			}
			_, ok = sum.add(timeUnit, value, frac)
		}
		if !ok {
			return sum, fieldOverflow
		}
		haveField = true
	}
	return sum, timeOK
}

var isoDateUnits = map[byte]intervalUnit{'Y': unitYear, 'M': unitMonth, 'W': unitWeek, 'D': unitDay}
var isoTimeUnits = map[byte]intervalUnit{'H': unitHour, 'M': unitMinute, 'S': unitSecond}

// isoNumber reads a signed decimal, which may have an exponent, as its whole and fractional parts.
func isoNumber(s string) (value int64, frac float64, n int, p timeProblem) {
	if s == "" || !isDigit(s[0]) && s[0] != '-' && s[0] != '.' && s[0] != '+' {
		return 0, 0, 0, badFormat
	}
	n = 0
	if s[0] == '-' || s[0] == '+' {
		n = 1
	}
	start := n
	n = skipDigits(s, n)
	if n < len(s) && s[n] == '.' {
		n = skipDigits(s, n+1)
	}
	if n == start || s[start:n] == "." {
		return 0, 0, 0, badFormat
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		end := n + 1
		if end < len(s) && (s[end] == '-' || s[end] == '+') {
			end++
		}
		if digits := skipDigits(s, end); digits > end {
			n = digits
		}
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return 0, 0, 0, badFormat
	}
	if v < -1.0e15 || v > 1.0e15 {
		return 0, 0, 0, fieldOverflow
	}
	whole := math.Trunc(v)
	return int64(whole), v - whole, n, timeOK
}

// isoAlternative reads yyyy-mm-dd or yyyymmdd of the alternative form, and the time after it.
func isoAlternative(sum *intervalSum, s string, haveField bool) (intervalSum, timeProblem) {
	date, clock, hasClock := strings.Cut(s, "T")
	if haveField {
		return *sum, badFormat
	}
	if allDigits(date) && len(date) == 8 {
		date = date[:4] + "-" + date[4:6] + "-" + date[6:]
	}
	units := []intervalUnit{unitYear, unitMonth, unitDay}
	if p := isoSequence(sum, date, '-', units); p != timeOK {
		return *sum, p
	}
	if !hasClock || clock == "" {
		return *sum, timeOK
	}
	return isoAlternativeTime(sum, clock, false)
}

// isoAlternativeTime reads hh:mm:ss or hhmmss of the alternative form.
func isoAlternativeTime(sum *intervalSum, s string, haveField bool) (intervalSum, timeProblem) {
	if haveField {
		return *sum, badFormat
	}
	if len(s) >= 6 && allDigits(s[:6]) && (len(s) == 6 || s[6] == '.') {
		s = s[:2] + ":" + s[2:4] + ":" + s[4:]
	}
	return *sum, isoSequence(sum, s, ':', []intervalUnit{unitHour, unitMinute, unitSecond})
}

// isoSequence adds numbers with a separator between them, one unit after another.
func isoSequence(sum *intervalSum, s string, sep byte, units []intervalUnit) timeProblem {
	for i, unit := range units {
		value, frac, n, p := isoNumber(s)
		if p != timeOK {
			return p
		}
		if _, ok := sum.add(unit, value, frac); !ok {
			return fieldOverflow
		}
		if s = s[n:]; s == "" {
			return timeOK
		}
		if s[0] != sep || i == len(units)-1 {
			return badFormat
		}
		s = s[1:]
	}
	return badFormat
}
