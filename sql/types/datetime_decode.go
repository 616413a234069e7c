package types

import (
	"strings"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
)

// tokenKind is the role of a word in a date or time.
type tokenKind uint8

const (
	tokenMonth tokenKind = iota
	tokenWeekday
	tokenAMPM
	tokenEra
	tokenUnit // labels the next number
	tokenISOTime
	tokenIgnore
	tokenReserved // now, today, epoch, …
	tokenDSTMod
)

type reservedWord int

const (
	wordNow reservedWord = iota
	wordToday
	wordTomorrow
	wordYesterday
	wordZulu
	wordEpoch
	wordLate
	wordEarly
)

type timeToken struct {
	kind  tokenKind
	value int
}

// maxTokenLen is the length to which PostgreSQL truncates words before it looks them up.
const maxTokenLen = 10

// lookupToken finds a lower-case word.
func lookupToken(word string) (timeToken, bool) {
	if len(word) > maxTokenLen {
		word = word[:maxTokenLen]
	}
	t, ok := timeTokens[word]
	return t, ok
}

// timeTokens are the words of dates and times; read only.
var timeTokens = map[string]timeToken{
	"jan": {tokenMonth, 1}, "january": {tokenMonth, 1}, "feb": {tokenMonth, 2}, "february": {tokenMonth, 2},
	"mar": {tokenMonth, 3}, "march": {tokenMonth, 3}, "apr": {tokenMonth, 4}, "april": {tokenMonth, 4},
	"may": {tokenMonth, 5}, "jun": {tokenMonth, 6}, "june": {tokenMonth, 6}, "jul": {tokenMonth, 7},
	"july": {tokenMonth, 7}, "aug": {tokenMonth, 8}, "august": {tokenMonth, 8}, "sep": {tokenMonth, 9},
	"sept": {tokenMonth, 9}, "september": {tokenMonth, 9}, "oct": {tokenMonth, 10}, "october": {tokenMonth, 10},
	"nov": {tokenMonth, 11}, "november": {tokenMonth, 11}, "dec": {tokenMonth, 12}, "december": {tokenMonth, 12},
	"sun": {tokenWeekday, 0}, "sunday": {tokenWeekday, 0}, "mon": {tokenWeekday, 1}, "monday": {tokenWeekday, 1},
	"tue": {tokenWeekday, 2}, "tues": {tokenWeekday, 2}, "tuesday": {tokenWeekday, 2},
	"wed": {tokenWeekday, 3}, "weds": {tokenWeekday, 3}, "wednesday": {tokenWeekday, 3},
	"thu": {tokenWeekday, 4}, "thur": {tokenWeekday, 4}, "thurs": {tokenWeekday, 4}, "thursday": {tokenWeekday, 4},
	"fri": {tokenWeekday, 5}, "friday": {tokenWeekday, 5}, "sat": {tokenWeekday, 6}, "saturday": {tokenWeekday, 6},
	"am": {tokenAMPM, int(clockAM)}, "pm": {tokenAMPM, int(clockPM)}, "ad": {tokenEra, 0}, "bc": {tokenEra, 1},
	"y": {tokenUnit, int(fieldYear)}, "m": {tokenUnit, int(fieldMonth)}, "d": {tokenUnit, int(fieldDay)},
	"h": {tokenUnit, int(fieldHour)}, "mm": {tokenUnit, int(fieldMinute)}, "s": {tokenUnit, int(fieldSecond)},
	"j": {tokenUnit, int(fieldJulian)}, "jd": {tokenUnit, int(fieldJulian)}, "julian": {tokenUnit, int(fieldJulian)},
	"dow": {tokenUnit, int(fieldWeekday)}, "doy": {tokenUnit, int(fieldDayOfYear)},
	"isodow": {tokenUnit, int(fieldWeekday)}, "isoyear": {tokenUnit, int(fieldWeek)},
	"t": {tokenISOTime, 0}, "at": {tokenIgnore, 0}, "on": {tokenIgnore, 0}, "dst": {tokenDSTMod, 0},
	"now": {tokenReserved, int(wordNow)}, "today": {tokenReserved, int(wordToday)},
	"tomorrow": {tokenReserved, int(wordTomorrow)}, "yesterday": {tokenReserved, int(wordYesterday)},
	"allballs": {tokenReserved, int(wordZulu)}, "epoch": {tokenReserved, int(wordEpoch)},
	"infinity":  {tokenReserved, int(wordLate)},
	"-infinity": {tokenReserved, int(wordEarly)},
}

// word interprets a word: as a zone's abbreviation, a token, or a zone's full name, in this order.
func (d *timeDecoder) word(fields []textField, i int) (timeField, timeProblem) {
	text := fields[i].text
	if a, ok := abbrevs()[text]; ok && len(text) <= maxTokenLen {
		return d.abbreviation(a, text)
	}
	token, ok := lookupToken(text)
	if !ok {
		loc, found := findZone(text)
		if !found {
			return 0, badFormat
		}
		d.zone = Zone{Location: loc}
		return fieldZone, timeOK
	}
	switch token.kind {
	case tokenReserved:
		return d.reserved(reservedWord(token.value))
	case tokenMonth:
		return d.monthWord(token.value)
	case tokenWeekday:
		return fieldWeekday, timeOK
	case tokenAMPM:
		d.meridiem = meridiem(token.value)
		return fieldAMPM, timeOK
	case tokenEra:
		d.bc = token.value == 1
		return fieldEra, timeOK
	case tokenDSTMod:
		d.offset += 3600
		return fieldZoneDST, timeOK
	case tokenUnit:
		d.pending = timeField(token.value)
		return 0, timeOK
	case tokenISOTime:
		return 0, d.isoTime(fields, i)
	}
	return 0, timeOK
}

// abbreviation is the zone of an abbreviation. One that has changed is resolved when the day is known; a time alone takes today's.
func (d *timeDecoder) abbreviation(a zoneAbbrev, text string) (timeField, timeProblem) {
	d.hasZone = true
	if a.zone != "" {
		d.zone = a.resolve(strings.ToUpper(text))
		d.offset = int((d.zone.Local(d.f.Now) - d.f.Now) / MicrosPerSecond)
		return fieldZone, timeOK
	}
	d.offset += a.offset
	if a.dst {
		return fieldZone | fieldZoneDST, timeOK
	}
	return fieldZone, timeOK
}

// monthWord fills the month; a number read before it as the month was the day.
func (d *timeDecoder) monthWord(month int) (timeField, timeProblem) {
	filled := fieldMonth
	if d.seen&fieldMonth != 0 && !d.textMonth && d.seen&fieldDay == 0 && d.c.Month >= 1 && d.c.Month <= 31 {
		d.c.Day = d.c.Month
		filled = fieldDay
	}
	d.textMonth = true
	d.c.Month = month
	return filled, timeOK
}

// isoTime checks the T of 2024-01-02T03:04:05.
func (d *timeDecoder) isoTime(fields []textField, i int) timeProblem {
	if !d.timeOnly && d.seen&fieldsDate != fieldsDate || i == len(fields)-1 {
		return badFormat
	}
	switch fields[i+1].look {
	case lookNumber, lookTime, lookDate:
		d.pending = fieldISOTime
		return timeOK
	}
	return badFormat
}

func (d *timeDecoder) reserved(word reservedWord) (timeField, timeProblem) {
	const all = fieldsDate | fieldsTime | fieldZone
	if d.timeOnly && word != wordNow && word != wordZulu {
		return 0, badFormat
	}
	now := CivilFromTimestamp(LocalTimestamp(d.f.Now, d.f.Loc()))
	switch word {
	case wordNow:
		d.c = now
		d.hasZone, d.offset = true, zoneOffset(d.f.Now, d.f.Loc())
		if d.timeOnly {
			return fieldsTime, timeOK
		}
		return all, timeOK
	case wordToday, wordTomorrow, wordYesterday:
		days := DaysFromCivil(now.Year, now.Month, now.Day)
		switch word {
		case wordTomorrow:
			days++
		case wordYesterday:
			days--
		}
		d.c.Year, d.c.Month, d.c.Day = CivilFromDays(days)
		return fieldsDate, timeOK
	case wordZulu:
		d.c.setClock(0)
		d.hasZone, d.offset = true, 0
		return fieldsTime | fieldZone, timeOK
	case wordEpoch:
		d.special = epochTime
	case wordLate:
		d.special = lateTime
	case wordEarly:
		d.special = earlyTime
	}
	return 0, timeOK
}

// clock reads hh:mm[:ss[.fff]].
func (d *timeDecoder) clock(text string) timeProblem {
	hour, end, p := number(text)
	if p != timeOK || end == len(text) || text[end] != ':' {
		return worst(p)
	}
	rest := text[end+1:]
	minute, end, p := numberOrZero(rest)
	if p != timeOK {
		return p
	}
	rest = rest[end:]
	c := &d.c
	c.Hour, c.Minute, c.Second, c.Micros = hour, minute, 0, 0
	switch {
	case rest == "":
	case rest[0] == '.': // mm:ss.fff
		if c.Micros, p = fraction(rest); p != timeOK {
			return p
		}
		c.Hour, c.Minute, c.Second = 0, hour, minute
	default:
		if c.Second, end, p = numberOrZero(rest[1:]); p != timeOK {
			return p
		}
		if rest = rest[1+end:]; rest != "" {
			if c.Micros, p = fraction(rest); p != timeOK {
				return p
			}
		}
	}
	return clockRange(c)
}

func worst(p timeProblem) timeProblem {
	if p == timeOK {
		return badFormat
	}
	return p
}

func clockRange(c *Civil) timeProblem {
	if c.Minute > 59 || c.Second > 60 || c.Micros > 1_000_000 || c.Hour > 24 || c.Clock() > MicrosPerDay {
		return fieldOverflow
	}
	return timeOK
}

// numericZone reads ±hh, ±hhmm or ±hh:mm[:ss].
func (d *timeDecoder) numericZone(text string) timeProblem {
	if text == "" || text[0] != '+' && text[0] != '-' {
		return badFormat
	}
	hour, end, p := numberOrZero(text[1:])
	if p != timeOK {
		if p == fieldOverflow {
			return zoneOverflow
		}
		return p
	}
	rest := text[1+end:]
	var minute, second int
	switch {
	case strings.HasPrefix(rest, ":"):
		if minute, end, p = numberOrZero(rest[1:]); p != timeOK {
			return p
		}
		if rest = rest[1+end:]; strings.HasPrefix(rest, ":") {
			if second, end, p = numberOrZero(rest[1:]); p != timeOK {
				return p
			}
			rest = rest[1+end:]
		}
	case rest == "" && len(text) > 3:
		hour, minute = hour/100, hour%100
	}
	const maxZoneHour = 15
	if hour > maxZoneHour || minute > 59 || second > 59 {
		return zoneOverflow
	}
	if rest != "" {
		return badFormat
	}
	d.offset = hour*3600 + minute*60 + second
	if text[0] == '-' {
		d.offset = -d.offset
	}
	d.hasZone = true
	return timeOK
}

// LoadOffsetOrZone returns the zone that make_timestamptz names: an offset that counts eastward, or what LoadZone reads.
func LoadOffsetOrZone(name string) (Zone, error) {
	if name != "" && isDigit(name[0]) {
		return Zone{}, pgerror.New(pgerror.InvalidParameterValue, "invalid input syntax for type %s: \"%s\"", "numeric time zone", name).
			WithHint("Numeric time zones must have \"-\" or \"+\" as first character.")
	}
	var d timeDecoder
	switch d.numericZone(name) {
	case timeOK:
		return Zone{Location: time.FixedZone(name, d.offset)}, nil
	case zoneOverflow:
		return Zone{}, pgerror.New(pgerror.InvalidParameterValue, "numeric time zone \"%s\" out of range", name)
	}
	return LoadZone(name)
}

// date reads a date with separators, text months included.
func (d *timeDecoder) date(text string) (timeField, timeProblem) {
	var parts [maxTimeFields]string
	n := 0
	for text != "" && n < len(parts) {
		i := 0
		for i < len(text) && !isDigit(text[i]) && !isAlpha(text[i]) {
			i++
		}
		text = text[i:]
		if text == "" {
			return 0, badFormat
		}
		end := skipDigits(text, 0)
		for end < len(text) && !isDigit(text[0]) && isAlpha(text[end]) {
			end++
		}
		parts[n] = text[:end]
		n++
		text = text[end:]
		if text != "" && !isDigit(text[0]) && !isAlpha(text[0]) {
			text = text[1:]
		}
	}
	var filled timeField
	for i := range n {
		if !isAlpha(parts[i][0]) {
			continue
		}
		token, ok := lookupToken(parts[i])
		if ok && token.kind == tokenIgnore {
			continue
		}
		if !ok || token.kind != tokenMonth || (d.seen|filled)&fieldMonth != 0 {
			return 0, badFormat
		}
		d.textMonth = true
		d.c.Month = token.value
		filled |= fieldMonth
	}
	for i := range n {
		if isAlpha(parts[i][0]) {
			continue
		}
		f, p := d.number(parts[i], d.seen|filled)
		if p != timeOK {
			return 0, p
		}
		if f&(d.seen|filled) != 0 {
			return 0, badFormat
		}
		filled |= f
	}
	if (d.seen|filled)&^(fieldDayOfYear|fieldZone) != fieldsDate {
		return 0, badFormat
	}
	return filled, timeOK
}

// finish checks that the fields form a complete and valid date or time.
func (d *timeDecoder) finish() timeProblem {
	if d.special != ordinaryTime {
		return timeOK
	}
	if !d.timeOnly || d.seen&fieldsDate == fieldsDate {
		if p := d.validDate(); p != timeOK {
			return p
		}
	}
	c := &d.c
	if d.meridiem != clock24 && c.Hour > 12 {
		return fieldOverflow
	}
	switch {
	case d.meridiem == clockAM && c.Hour == 12:
		c.Hour = 0
	case d.meridiem == clockPM && c.Hour != 12:
		c.Hour += 12
	}
	hasDate := d.seen&fieldsDate == fieldsDate
	switch {
	case d.seen&fieldZoneDST != 0 && (d.zone.Location != nil || d.seen&fieldZone == 0):
		return badFormat
	case !d.timeOnly && !hasDate, d.timeOnly && d.zone.Location != nil && !d.hasZone && !hasDate:
		return badFormat // a named zone's offset depends on the day
	case !d.timeOnly:
		return timeOK
	case d.seen&fieldsTime != fieldsTime:
		return badFormat
	}
	return clockRange(c)
}

func (d *timeDecoder) validDate() timeProblem {
	c := &d.c
	if d.seen&fieldYear != 0 && !d.julian {
		switch {
		case d.bc:
			if c.Year <= 0 {
				return fieldOverflow
			}
			c.Year = 1 - c.Year
		case d.twoDigits:
			if c.Year < 70 {
				c.Year += 2000
			} else if c.Year < 100 {
				c.Year += 1900
			}
		case c.Year <= 0:
			return fieldOverflow
		}
	}
	if d.seen&fieldDayOfYear != 0 {
		c.Year, c.Month, c.Day = CivilFromDays(DaysFromCivil(c.Year, 1, 1) + int64(d.dayOfYear) - 1)
	}
	if d.seen&fieldMonth != 0 && (c.Month < 1 || c.Month > 12) {
		return monthDayOverflow
	}
	if d.seen&fieldDay != 0 && (c.Day < 1 || c.Day > 31) {
		return monthDayOverflow
	}
	if d.seen&fieldsDate == fieldsDate && c.Day > DaysInMonth(c.Year, c.Month) {
		return fieldOverflow
	}
	return timeOK
}

// fail converts a decoder's problem to the client's error.
func (d *timeDecoder) fail(p timeProblem, typeName, s string) error {
	if p == zoneUnknown {
		return timeError(p, typeName, d.badZone)
	}
	return timeError(p, typeName, s)
}

func parseDate(s string, f *Format) (Datum, error) {
	if days, ok := fastDate(s); ok {
		return Int(days), nil
	}
	d, p := decodeTimeText(s, false, f)
	if p != timeOK {
		return Null, d.fail(p, "date", s)
	}
	switch d.special {
	case epochTime:
		return Int(unixEpochDays), nil
	case lateTime:
		return Int(DateInfinity), nil
	case earlyTime:
		return Int(DateNegInfinity), nil
	}
	days := DaysFromCivil(d.c.Year, d.c.Month, d.c.Day)
	if !validJulian(d.c.Year, d.c.Month) || !ValidDate(days) {
		return Null, outOfRange("date", s)
	}
	return Int(days), nil
}

func outOfRange(what, s string) error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "%s out of range: \"%s\"", what, s)
}

func parseTime(s string, mod int32, f *Format) (Datum, error) {
	d, p := decodeTimeText(s, true, f)
	if p != timeOK {
		return Null, d.fail(p, "time", s)
	}
	return Int(RoundMicros(d.c.Clock(), mod)), nil
}

func parseTimestamp(s string, mod int32, f *Format) (Datum, error) {
	if ts, ok := fastTimestamp(s); ok {
		return Int(RoundMicros(ts, mod)), nil
	}
	d, p := decodeTimeText(s, false, f)
	if p != timeOK {
		return Null, d.fail(p, "timestamp", s)
	}
	if ts, ok := d.special.timestamp(); ok {
		return Int(ts), nil
	}
	ts, ok := d.c.Timestamp()
	if !ok {
		return Null, outOfRange("timestamp", s)
	}
	return Int(RoundMicros(ts, mod)), nil
}

func (s specialTime) timestamp() (int64, bool) {
	switch s {
	case epochTime:
		return unixToMicros, true
	case lateTime:
		return TimestampInfinity, true
	case earlyTime:
		return TimestampNegInfinity, true
	}
	return 0, false
}

func parseTimestamptz(s string, mod int32, f *Format) (Datum, error) {
	if ts, ok := fastTimestamp(s); ok {
		return Int(RoundMicros(UTCTimestamp(ts, f.Loc()), mod)), nil
	}
	d, p := decodeTimeText(s, false, f)
	if p != timeOK {
		return Null, d.fail(p, "timestamp with time zone", s)
	}
	if ts, ok := d.special.timestamp(); ok {
		return Int(ts), nil
	}
	local, ok := d.c.local()
	if !ok {
		return Null, outOfRange("timestamp", s)
	}
	var ts int64
	switch {
	case d.zone.Location != nil:
		ts = d.zone.UTC(local)
	case d.hasZone || d.seen&fieldZoneDST != 0:
		ts = local - int64(d.offset)*MicrosPerSecond
	default:
		ts = UTCTimestamp(local, f.Loc())
	}
	if !ValidTimestamp(ts) {
		return Null, outOfRange("timestamp", s)
	}
	return Int(RoundMicros(ts, mod)), nil
}

// fastDate reads yyyy-mm-dd with a valid day, the form that most clients send.
func fastDate(s string) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' ||
		!allDigits(s[:4]) || !allDigits(s[5:7]) || !allDigits(s[8:10]) {
		return 0, false
	}
	year, month, day := twoDigits(s)*100+twoDigits(s[2:]), twoDigits(s[5:]), twoDigits(s[8:])
	if year == 0 || month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, month) {
		return 0, false
	}
	return DaysFromCivil(year, month, day), true
}

// fastTimestamp reads yyyy-mm-dd hh:mm:ss[.ffffff] with valid fields.
func fastTimestamp(s string) (int64, bool) {
	if len(s) < 19 || len(s) > 26 || s[10] != ' ' || s[13] != ':' || s[16] != ':' ||
		!allDigits(s[11:13]) || !allDigits(s[14:16]) || !allDigits(s[17:19]) {
		return 0, false
	}
	days, ok := fastDate(s[:10])
	hour, minute, second := twoDigits(s[11:]), twoDigits(s[14:]), twoDigits(s[17:])
	if !ok || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	micros := int64(0)
	if len(s) > 19 {
		if s[19] != '.' || !allDigits(s[20:]) {
			return 0, false
		}
		unit := int64(100_000)
		for i := 20; i < len(s); i++ {
			micros += int64(s[i]-'0') * unit
			unit /= 10
		}
	}
	clock := int64(hour)*MicrosPerHour + int64(minute)*MicrosPerMinute + int64(second)*MicrosPerSecond
	return days*MicrosPerDay + clock + micros, true
}
