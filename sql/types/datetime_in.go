package types

import (
	"math"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// Dates and times are read in two steps, by PostgreSQL's rules: splitTime divides the text into fields by their
// characters alone, and a timeDecoder interprets the fields in order, depending on the earlier ones. A field sets a set
// of timeField bits; setting one twice is an error.

// fieldLook is the lexical kind of a piece of date or time text.
type fieldLook uint8

const (
	lookNumber  fieldLook = iota // 2024, 040506.7
	lookString                   // january, pm, utc
	lookDate                     // 2024-01-02, 1/2/3, america/new_york
	lookTime                     // 04:05:06.7
	lookZone                     // +05:30
	lookSpecial                  // -infinity
)

type textField struct {
	look fieldLook
	text string // lower case
}

// maxTimeFields and maxTimeText bound the parts of a date or time.
const (
	maxTimeFields = 25
	maxTimeText   = 128 + maxTimeFields
)

func isDigit(c byte) bool { return c-'0' <= 9 }
func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// splitTime divides s into fields; false if it cannot be a date, time or interval.
func splitTime(s string, fields []textField) ([]textField, bool) {
	if len(s) > maxTimeText {
		return nil, false
	}
	s = keyword.Fold(s)
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		var look fieldLook
		switch {
		case isSpace(c):
			i++
			continue
		case isDigit(c):
			i, look = scanDigitField(s, i)
		case c == '.':
			i = skipDigits(s, i+1)
			look = lookNumber
		case isAlpha(c):
			i, look = scanAlphaField(s, i)
		case c == '+' || c == '-':
			j := i + 1
			for j < len(s) && isSpace(s[j]) {
				j++
			}
			end := j
			switch {
			case j < len(s) && isDigit(s[j]):
				look = lookZone
				for end < len(s) && (isDigit(s[end]) || s[end] == ':' || s[end] == '.' || s[end] == '-') {
					end++
				}
			case j < len(s) && isAlpha(s[j]):
				look = lookSpecial
				for end < len(s) && isAlpha(s[end]) {
					end++
				}
			default:
				return nil, false
			}
			if fields = append(fields, textField{look, s[i:i+1] + s[j:end]}); len(fields) > maxTimeFields {
				return nil, false
			}
			i = end
			continue
		case c > ' ' && c < 0x7f:
			i++ // other punctuation separates
			continue
		default:
			return nil, false
		}
		if fields = append(fields, textField{look, s[start:i]}); len(fields) > maxTimeFields {
			return nil, false
		}
	}
	return fields, true
}

func skipDigits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// scanDigitField finds the end of a field that begins with a digit.
func scanDigitField(s string, i int) (end int, look fieldLook) {
	i = skipDigits(s, i)
	if i == len(s) {
		return i, lookNumber
	}
	switch delim := s[i]; delim {
	case ':':
		for i < len(s) && (isDigit(s[i]) || s[i] == ':' || s[i] == '.') {
			i++
		}
		return i, lookTime
	case '-', '/', '.':
		i++
		if i < len(s) && isDigit(s[i]) {
			look = lookDate
			if delim == '.' {
				look = lookNumber
			}
			i = skipDigits(s, i)
			if i < len(s) && s[i] == delim {
				look = lookDate
				for i < len(s) && (isDigit(s[i]) || s[i] == delim) {
					i++
				}
			}
			return i, look
		}
		if i >= len(s) || !isAlpha(s[i]) {
			// "12." is a number; "12-" is a date that will not parse.
			if delim == '.' {
				return i, lookNumber
			}
		}
		for i < len(s) && (isDigit(s[i]) || isAlpha(s[i]) || s[i] == delim) {
			i++
		}
		return i, lookDate
	}
	return i, lookNumber
}

// scanAlphaField finds the end of a field that begins with a letter: a word, a date like jan-02-2024
// or a zone's name.
func scanAlphaField(s string, i int) (end int, look fieldLook) {
	start := i
	for i < len(s) && isAlpha(s[i]) {
		i++
	}
	if i == len(s) {
		return i, lookString
	}
	compound := s[i] == '-' || s[i] == '/' || s[i] == '.'
	if s[i] == '+' || isDigit(s[i]) {
		_, known := lookupToken(s[start:i])
		compound = !known
	}
	if !compound {
		return i, lookString
	}
	for i < len(s) && (isDigit(s[i]) || isAlpha(s[i]) || strings.IndexByte("+-/_.:", s[i]) >= 0) {
		i++
	}
	return i, lookDate
}

// timeField is the set of the parts of a date or time that fields have set.
type timeField uint32

const (
	fieldYear timeField = 1 << iota
	fieldMonth
	fieldDay
	fieldDayOfYear
	fieldWeekday
	fieldHour
	fieldMinute
	fieldSecond
	fieldMillis
	fieldMicros
	fieldZone
	fieldZoneDST // a "dst" modifier
	fieldAMPM
	fieldEra
	fieldWeek
	fieldDecade
	fieldCentury
	fieldMillennium
	fieldJulian
	fieldISOTime

	fieldsDate       = fieldYear | fieldMonth | fieldDay
	fieldsTime       = fieldHour | fieldMinute | fieldSecond
	fieldsAllSeconds = fieldSecond | fieldMillis | fieldMicros
)

// timeProblem is the reason why a text is not a date or time.
type timeProblem uint8

const (
	timeOK timeProblem = iota
	badFormat
	fieldOverflow
	monthDayOverflow
	intervalOverflow
	zoneOverflow
	zoneUnknown
)

// timeError returns the client's error for a problem with text of a type.
func timeError(p timeProblem, typeName, s string) error {
	switch p {
	case fieldOverflow:
		return pgerror.New(pgerror.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s)
	case monthDayOverflow:
		return pgerror.New(pgerror.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s).
			WithHint("Perhaps you need a different \"datestyle\" setting.")
	case intervalOverflow:
		return pgerror.New(pgerror.IntervalFieldOverflow, "interval field value out of range: \"%s\"", s)
	case zoneOverflow:
		return pgerror.New(invalidTimeZoneDisplacement, "time zone displacement out of range: \"%s\"", s)
	case zoneUnknown:
		return pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" not recognized", s)
	}
	return pgerror.New(pgerror.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typeName, s)
}

// invalidTimeZoneDisplacement is SQLSTATE 22009.
const invalidTimeZoneDisplacement pgerror.Code = "22009"

// specialTime is a text that replaces a calendar time.
type specialTime uint8

const (
	ordinaryTime specialTime = iota
	epochTime
	lateTime
	earlyTime
)

// timeDecoder interprets fields.
type timeDecoder struct {
	f         *Format
	timeOnly  bool
	c         Civil
	seen      timeField
	pending   timeField // the part that a label assigns to the next number
	special   specialTime
	dayOfYear int
	textMonth bool // the month was a word
	twoDigits bool // the year has one or two digits
	julian    bool
	bc        bool
	meridiem  meridiem
	hasZone   bool // a numeric offset was given
	offset    int  // seconds east of UTC
	zone      Zone // or a zone by name
	badZone   string
}

type meridiem uint8

const (
	clock24 meridiem = iota
	clockAM
	clockPM
)

// decodeTimeText reads a date or time (timeOnly: a time of day). On success either special is set or
// the decoder's calendar fields are complete and valid.
func decodeTimeText(s string, timeOnly bool, f *Format) (*timeDecoder, timeProblem) {
	var space [8]textField
	fields, ok := splitTime(s, space[:0])
	if !ok {
		return nil, badFormat
	}
	d := &timeDecoder{f: f, timeOnly: timeOnly}
	for i := range fields {
		filled, p := d.field(fields, i)
		if p != timeOK {
			return d, p
		}
		if filled&d.seen != 0 {
			return d, badFormat
		}
		d.seen |= filled
	}
	return d, d.finish()
}

func (d *timeDecoder) field(fields []textField, i int) (timeField, timeProblem) {
	text := fields[i].text
	switch fields[i].look {
	case lookDate:
		return d.dateField(fields, i)
	case lookTime:
		if d.pending != 0 {
			if d.pending != fieldISOTime {
				return 0, badFormat
			}
			d.pending = 0
		}
		p := d.clock(text)
		return fieldsTime, p
	case lookZone:
		p := d.numericZone(text)
		return fieldZone, p
	case lookNumber:
		if d.pending != 0 {
			return d.labelled(text)
		}
		return d.plainNumber(fields, i)
	}
	return d.word(fields, i)
}

// dateField is a field with separators: a date, or after one a zone's name or hhmmss-zz.
func (d *timeDecoder) dateField(fields []textField, i int) (timeField, timeProblem) {
	text := fields[i].text
	if d.timeOnly {
		if i == 0 && len(fields) >= 2 && (fields[len(fields)-1].look == lookDate || fields[1].look == lookTime) {
			return d.date(text)
		}
		if !isDigit(text[0]) {
			return d.namedZone(text)
		}
		return d.compactTimeZone(text)
	}
	if d.pending == fieldJulian {
		return d.julianWithZone(text)
	}
	if d.seen&(fieldMonth|fieldDay) != fieldMonth|fieldDay && d.pending == 0 {
		return d.date(text)
	}
	if isDigit(text[0]) || d.pending != 0 {
		if d.pending != 0 && d.pending != fieldISOTime || d.seen&fieldsTime == fieldsTime {
			return 0, badFormat
		}
		d.pending = 0
		return d.compactTimeZone(text)
	}
	return d.namedZone(text)
}

func (d *timeDecoder) namedZone(name string) (timeField, timeProblem) {
	loc, ok := findZone(name)
	if !ok {
		d.badZone = name
		return 0, zoneUnknown
	}
	d.zone = Zone{Location: loc}
	return fieldZone, timeOK
}

// compactTimeZone reads hhmmss-zz.
func (d *timeDecoder) compactTimeZone(text string) (timeField, timeProblem) {
	dash := strings.IndexByte(text, '-')
	if dash < 0 {
		return 0, badFormat
	}
	if p := d.numericZone(text[dash:]); p != timeOK {
		return 0, p
	}
	filled, p := d.compact(text[:dash], d.seen|d.dateSeen())
	return filled | fieldZone, p
}

// dateSeen is the set for the date if only a time is read, where a number cannot be a date.
func (d *timeDecoder) dateSeen() timeField {
	if d.timeOnly {
		return fieldsDate
	}
	return 0
}

func (d *timeDecoder) julianWithZone(text string) (timeField, timeProblem) {
	n := skipDigits(text, 0)
	days, err := strconv.Atoi(text[:n])
	if err != nil {
		return 0, fieldOverflow
	}
	d.setJulian(days)
	d.pending = 0
	p := d.numericZone(text[n:])
	d.c.setClock(0)
	return fieldsDate | fieldsTime | fieldZone, p
}

func (d *timeDecoder) setJulian(day int) {
	d.c.Year, d.c.Month, d.c.Day = CivilFromDays(int64(day) - julianEpoch)
	d.julian = true
}

// number reads the leading digits of s as an int32.
func number(s string) (n, end int, p timeProblem) {
	end = skipDigits(s, 0)
	if end == 0 {
		return 0, 0, badFormat
	}
	v, err := strconv.ParseInt(s[:end], 10, 32)
	if err != nil {
		return 0, end, fieldOverflow
	}
	return int(v), end, timeOK
}

// numberOrZero reads the number after a colon, 0 if there are no digits.
func numberOrZero(s string) (n, end int, p timeProblem) {
	if skipDigits(s, 0) == 0 {
		return 0, 0, timeOK
	}
	return number(s)
}

// fraction reads ".ddd", which must be all of s, as microseconds.
func fraction(s string) (int, timeProblem) {
	if len(s) == 0 || s[0] != '.' || skipDigits(s, 1) != len(s) {
		return 0, badFormat
	}
	if len(s) == 1 {
		return 0, timeOK
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, badFormat
	}
	return int(math.RoundToEven(v * 1e6)), timeOK
}

// labelled reads a number whose meaning a letter before it has given: "y2024m01d02", "j2451187".
func (d *timeDecoder) labelled(text string) (timeField, timeProblem) {
	label := d.pending
	d.pending = 0
	if label == fieldISOTime {
		filled, p := d.compact(text, d.seen|fieldsDate)
		if p == timeOK && filled != fieldsTime {
			p = badFormat
		}
		return filled, p
	}
	n, end, p := number(text)
	if p != timeOK {
		return 0, p
	}
	rest := text[end:]
	if rest != "" && rest[0] != '.' {
		return 0, badFormat
	}
	switch label {
	case fieldYear:
		d.c.Year = n
	case fieldMonth:
		if d.seen&fieldMonth != 0 && d.seen&fieldHour != 0 {
			d.c.Minute = n
			return fieldMinute, timeOK
		}
		d.c.Month = n
	case fieldDay:
		d.c.Day = n
	case fieldHour:
		d.c.Hour = n
	case fieldMinute:
		d.c.Minute = n
	case fieldSecond:
		d.c.Second = n
		if rest != "" {
			d.c.Micros, p = fraction(rest)
			return fieldsAllSeconds, p
		}
	case fieldJulian:
		return d.julianNumber(n, rest)
	default:
		return 0, badFormat
	}
	return label, timeOK
}

func (d *timeDecoder) julianNumber(day int, rest string) (timeField, timeProblem) {
	d.setJulian(day)
	if rest == "" {
		return fieldsDate, timeOK
	}
	v, err := strconv.ParseFloat("0"+rest, 64)
	if err != nil {
		return 0, badFormat
	}
	d.c.setClock(int64(v * float64(MicrosPerDay)))
	return fieldsDate | fieldsTime, timeOK
}

func (d *timeDecoder) plainNumber(fields []textField, i int) (timeField, timeProblem) {
	text := fields[i].text
	point := strings.IndexByte(text, '.')
	if d.timeOnly {
		if point >= 0 && i == 0 && len(fields) >= 2 && fields[len(fields)-1].look == lookDate {
			return d.date(text)
		}
		if point < 0 && len(text) <= 4 || point >= 0 && point <= 2 {
			return d.number(text, d.seen|fieldsDate)
		}
		return d.compact(text, d.seen|fieldsDate)
	}
	switch {
	case point >= 0 && d.seen&fieldsDate == 0:
		return d.date(text)
	case point > 2, len(text) >= 6 && (d.seen&fieldsDate == 0 || d.seen&fieldsTime == 0):
		return d.compact(text, d.seen)
	}
	return d.number(text, d.seen)
}

// number assigns a single number to the next part, depending on the earlier parts, the DateStyle's order and its
// length.
func (d *timeDecoder) number(text string, seen timeField) (filled timeField, p timeProblem) {
	n, end, p := number(text)
	if p != timeOK {
		return 0, p
	}
	if end < len(text) {
		if text[end] != '.' {
			return 0, badFormat
		}
		if end > 2 {
			return d.compact(text, seen|fieldsDate)
		}
		if d.c.Micros, p = fraction(text[end:]); p != timeOK {
			return 0, p
		}
	}
	if len(text) == 3 && seen&fieldsDate == fieldYear && n >= 1 && n <= 366 {
		d.dayOfYear = n
		return fieldDayOfYear | fieldMonth | fieldDay, timeOK
	}
	if seen&fieldsDate == fieldsDate {
		return d.compact(text, seen)
	}
	if seen&fieldsDate == fieldYear|fieldMonth && d.textMonth && len(text) >= 3 && d.twoDigits {
		// dd-mon-yyyy in YMD order: the number read as the year is the day.
		d.c.Day, d.c.Year, d.twoDigits = d.c.Year, n, false
		return fieldDay, timeOK
	}
	switch filled = d.numberMeaning(len(text), seen&fieldsDate); filled {
	case fieldYear:
		d.c.Year = n
		d.twoDigits = len(text) <= 2
	case fieldMonth:
		d.c.Month = n
	case fieldDay:
		d.c.Day = n
	default:
		return 0, badFormat
	}
	return filled, timeOK
}

// numberMeaning returns the part of a date that the next number is, 0 for none.
func (d *timeDecoder) numberMeaning(length int, seen timeField) timeField {
	order := d.f.DateOrder
	switch seen {
	case 0:
		switch {
		case length >= 3 || order == OrderYMD:
			return fieldYear
		case order == OrderDMY:
			return fieldDay
		}
		return fieldMonth
	case fieldYear, fieldDay:
		return fieldMonth
	case fieldMonth:
		if d.textMonth && (length >= 3 || order == OrderYMD) {
			return fieldYear
		}
		return fieldDay
	case fieldYear | fieldMonth:
		return fieldDay
	case fieldMonth | fieldDay:
		return fieldYear
	}
	return 0
}

// compact reads numbers without separators: yyyymmdd, yymmdd, hhmmss, hhmm, with a fraction.
func (d *timeDecoder) compact(text string, seen timeField) (timeField, timeProblem) {
	if point := strings.IndexByte(text, '.'); point >= 0 {
		micros, p := fraction(text[point:])
		if p != timeOK {
			return 0, p
		}
		d.c.Micros = micros
		text = text[:point]
	} else if seen&fieldsDate != fieldsDate && len(text) >= 6 {
		n := len(text)
		year, _, p := number(text[:n-4])
		if p != timeOK {
			return 0, fieldOverflow
		}
		d.c.Year, d.c.Month, d.c.Day = year, twoDigits(text[n-4:]), twoDigits(text[n-2:])
		if n == 6 {
			d.twoDigits = true
		}
		return fieldsDate, timeOK
	}
	if seen&fieldsTime == fieldsTime {
		return 0, badFormat
	}
	switch len(text) {
	case 6:
		d.c.Second = twoDigits(text[4:])
	case 4:
		d.c.Second = 0
	default:
		return 0, badFormat
	}
	d.c.Hour, d.c.Minute = twoDigits(text), twoDigits(text[2:])
	return fieldsTime, timeOK
}

func twoDigits(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }
