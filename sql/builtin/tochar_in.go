package builtin

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// timeInput reads a text with a template, for to_date and to_timestamp.
type timeInput struct {
	text  string // the whole input, for errors
	s     string // what is left
	nodes []templateNode
	// standard: the text matches the template character by character, as SQL/JSON's datetime() demands.
	standard bool
	fixed    bool // FX
	extra    int  // separators skipped beyond the template's
	last     byte // the character before s

	year, month, day, hour, minute, second, millis, micros int
	seconds, dayOfYear, week, weekOfMonth, weekday         int
	century, julian, yearDigits                            int
	set                                                    map[string]int // fields that were given, for conflicts
	half                                                   bool           // the 12-hour clock
	pm, bc, iso                                            bool
	isoSet, gregorianSet                                   bool
	zoneSign, zoneHour, zoneMinute                         int
	precision                                              int // of the seconds' fraction, from FF1 … FF6; 0: not given
}

func errDateInput(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InvalidDatetimeFormat, format, args...)
}

func readTimeInput(text, template string) (*timeInput, error) {
	nodes, err := timeTemplate().parse(template)
	if err != nil {
		return nil, err
	}
	in := &timeInput{text: text, s: text, nodes: nodes, set: map[string]int{}}
	return in, in.read()
}

// read reads the text by the template.
func (in *timeInput) read() error {
	for i := range in.nodes {
		if in.s == "" {
			return in.end(i)
		}
		n := &in.nodes[i]
		if !in.fixed && (n.kind == nodeField && strings.ToUpper(n.key) != "FX" || i == 0) {
			for in.s != "" && isBlank(in.s[0]) {
				in.skip(1)
				in.extra++
			}
		}
		if n.kind == nodeField {
			if err := in.field(i); err != nil {
				return err
			}
			in.extra = 0
			for !in.fixed && in.s != "" && isBlank(in.s[0]) {
				in.skip(1)
				in.extra++
			}
			continue
		}
		if in.standard {
			if err := in.match(n); err != nil {
				return err
			}
			continue
		}
		in.between(n)
	}
	return in.end(len(in.nodes))
}

// match skips a character that must be that of the template.
func (in *timeInput) match(n *templateNode) error {
	if !strings.HasPrefix(in.s, n.text) {
		what := "separator"
		if n.kind == nodeText {
			what = "character"
		}
		return errDateInput("unmatched format %s \"%s\"", what, n.text)
	}
	in.skip(len(n.text))
	return nil
}

// end checks that neither text nor template are left; nodes are those that have been used.
func (in *timeInput) end(nodes int) error {
	switch {
	case !in.standard:
	case nodes < len(in.nodes):
		return errDateInput("input string is too short for datetime format")
	case strings.TrimFunc(in.s, func(r rune) bool { return r < utf8.RuneSelf && isBlank(byte(r)) }) != "":
		return errDateInput("trailing characters remain in input string after datetime format")
	}
	return nil
}

func (in *timeInput) skip(n int) {
	in.last = in.s[n-1]
	in.s = in.s[n:]
}

func (in *timeInput) skipChar() {
	_, n := utf8.DecodeRuneInString(in.s)
	if n > 0 {
		in.skip(n)
	}
}

// between skips a character of the template that is not a field.
func (in *timeInput) between(n *templateNode) {
	switch {
	case in.s == "":
	case in.fixed:
		in.skipChar()
	case n.kind == nodeText:
		// Blanks skipped earlier count as the character.
		if in.extra > 0 {
			in.extra--
		} else {
			in.skipChar()
		}
	default:
		in.extra--
		if isBlank(in.s[0]) || isSeparator(in.s[0]) {
			in.skip(1)
			in.extra++
		}
	}
}

func (in *timeInput) field(i int) error {
	n := &in.nodes[i]
	key := strings.ToUpper(n.key)
	switch key {
	case "FX":
		in.fixed = true
		return nil
	case "TZ", "OF":
		return pgerror.New(pgerror.FeatureNotSupported, "formatting field \"%s\" is only supported in to_char", n.key)
	}
	if err := in.calendar(key); err != nil {
		return err
	}
	switch key {
	case "A.M.", "AM", "P.M.", "PM", "A.D.", "AD", "B.C.", "BC", "MONTH", "MON", "DAY", "DY", "RM":
		return in.word(n, key)
	case "TZH":
		return in.zoneHours(i)
	case "Y,YYY":
		return in.commaYear(n)
	}
	return in.numberField(i, key)
}

// calendar refuses the mixture of ISO weeks and Gregorian dates.
func (in *timeInput) calendar(key string) error {
	switch key {
	case "IYYY", "IYY", "IY", "I", "IW", "ID", "IDDD":
		in.isoSet, in.iso = true, true
	case "YYYY", "YYY", "YY", "Y", "Y,YYY", "CC", "MM", "MONTH", "MON", "DD", "DDD", "D", "DAY", "DY", "WW", "W", "RM", "Q":
		in.gregorianSet = true
	}
	if in.isoSet && in.gregorianSet {
		return errDateInput("invalid combination of date conventions").
			WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
	}
	return nil
}

// fieldLengths is the number of digits of each numeric field.
var fieldLengths = map[string]int{
	"HH": 2, "HH12": 2, "HH24": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4, "FF5": 5, "FF6": 6,
	"SSSS": 4, "SSSSS": 5, "MM": 2, "DD": 2, "DDD": 3, "IDDD": 3, "D": 1, "ID": 1, "WW": 2, "IW": 2, "W": 1, "Q": 1, "CC": 2, "J": 1,
	"YYYY": 4, "IYYY": 4, "YYY": 3, "IYY": 3, "YY": 2, "IY": 2, "Y": 1, "I": 1, "TZM": 2,
}

// isDigitField reports whether a field begins with a digit on input.
func isDigitField(key string) bool {
	key = strings.ToUpper(key)
	return fieldLengths[key] > 0 || key == "Y,YYY"
}

// nextSeparates reports whether the template continues after node i without a digit, so that a number may have any
// length.
func (in *timeInput) nextSeparates(i int) bool {
	if in.nodes[i].th != "" || i+1 == len(in.nodes) {
		return true
	}
	next := in.nodes[i+1]
	if next.kind == nodeField {
		return !isDigitField(next.key)
	}
	return !isDigit(next.text[0])
}

// integer reads the number of node i and returns it and its length.
func (in *timeInput) integer(i, length int) (n, used int, err error) {
	node := &in.nodes[i]
	for in.s != "" && isBlank(in.s[0]) {
		in.skip(1)
	}
	s := in.s
	exact := !node.fill && !in.nextSeparates(i)
	if exact {
		if utf8.RuneCountInString(s) < length {
			return 0, 0, errDateInput("source string too short for \"%s\" formatting field", node.key).
				WithDetail("Field requires %d characters, but only %d remain.", length, len(s)).
				WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
		}
		s = firstWord(s, length)
	}
	used = 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		used = 1
	}
	digits := used
	for used < len(s) && isDigit(s[used]) {
		used++
	}
	if used == digits {
		bad := in.s
		if exact {
			bad = s
		}
		return 0, 0, errDateInput("invalid value \"%s\" for \"%s\"", firstWord(bad, length), node.key).WithDetail("Value must be an integer.")
	}
	if exact && used < length {
		return 0, 0, errDateInput("invalid value \"%s\" for \"%s\"", s, node.key).
			WithDetail("Field requires %d characters, but only %d could be parsed.", length, used).
			WithHint("If your source string is not fixed-width, try using the \"FM\" modifier.")
	}
	v, err := strconv.ParseInt(s[:used], 10, 32)
	if err != nil {
		return 0, 0, pgerror.New(pgerror.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", node.key).
			WithDetail("Value must be in the range -2147483648 to 2147483647.")
	}
	in.skip(used)
	in.skipOrdinal(node)
	return int(v), used, nil
}

// skipOrdinal skips the two characters of the suffix that TH stands for.
func (in *timeInput) skipOrdinal(node *templateNode) {
	if node.th != "" {
		in.skipChar()
		in.skipChar()
	}
}

// firstWord returns what an error shows of a value that is not a number.
func firstWord(s string, length int) string {
	n := 0
	for i := range s {
		if n == length {
			return s[:i]
		}
		n++
	}
	return s
}

// untilBlank returns a text up to its first blank.
func untilBlank(s string) string {
	for i := 0; i < len(s); i++ {
		if isBlank(s[i]) {
			return s[:i]
		}
	}
	return s
}

// store sets a field, once or to the same value.
func (in *timeInput) store(dst *int, v int, node *templateNode) error {
	if *dst != 0 && *dst != v {
		return errDateInput("conflicting values for \"%s\" field in formatting string", node.key).
			WithDetail("This value contradicts a previous setting for the same field type.")
	}
	*dst = v
	return nil
}

func (in *timeInput) numberField(i int, key string) error {
	node := &in.nodes[i]
	n, used, err := in.integer(i, fieldLengths[key])
	if err != nil {
		return err
	}
	scaled := func(digits int) int {
		for range digits - used {
			n *= 10
		}
		return n
	}
	switch key {
	case "HH", "HH12":
		in.half = true
		return in.store(&in.hour, n, node)
	case "HH24":
		return in.store(&in.hour, n, node)
	case "MI":
		return in.store(&in.minute, n, node)
	case "SS":
		return in.store(&in.second, n, node)
	case "MS":
		return in.store(&in.millis, scaled(3), node)
	case "US":
		return in.store(&in.micros, scaled(6), node)
	case "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
		in.precision = int(key[2] - '0')
		return in.store(&in.micros, scaled(6), node)
	case "SSSS", "SSSSS":
		return in.store(&in.seconds, n, node)
	case "MM":
		return in.store(&in.month, n, node)
	case "DD":
		return in.store(&in.day, n, node)
	case "DDD", "IDDD":
		return in.store(&in.dayOfYear, n, node)
	case "D":
		return in.store(&in.weekday, n, node)
	case "ID": // Sunday is 1, as for D
		return in.store(&in.weekday, n%7+1, node)
	case "WW", "IW":
		return in.store(&in.week, n, node)
	case "W":
		return in.store(&in.weekOfMonth, n, node)
	case "CC":
		return in.store(&in.century, n, node)
	case "J":
		return in.store(&in.julian, n, node)
	case "TZM":
		if in.zoneSign == 0 {
			in.zoneSign = 1
		}
		return in.store(&in.zoneMinute, n, node)
	case "Q":
		return nil // the date does not determine which day of the quarter
	}
	return in.yearField(node, key, n, used)
}

// yearField completes years of fewer than four digits to those nearest to 2020.
func (in *timeInput) yearField(node *templateNode, key string, n, used int) error {
	in.yearDigits = fieldLengths[key]
	if used < 4 && in.yearDigits < 4 {
		switch {
		case n < 70:
			n += 2000
		case n < 100:
			n += 1900
		case n < 520:
			n += 2000
		case n < 1000:
			n += 1000
		}
	}
	return in.store(&in.year, n, node)
}

// commaYear reads thousands, a comma and up to three digits; blanks may precede each number.
func (in *timeInput) commaYear(node *templateNode) error {
	rest := in.s
	number := func(most int) (int, bool) {
		for rest != "" && isBlank(rest[0]) {
			rest = rest[1:]
		}
		end := 0
		for end < len(rest) && end < most && (isDigit(rest[end]) || end == 0 && (rest[0] == '-' || rest[0] == '+')) {
			end++
		}
		n, err := strconv.ParseInt(rest[:end], 10, 32)
		rest = rest[end:]
		return int(n), err == nil
	}
	thousands, ok := number(len(rest))
	comma := strings.HasPrefix(rest, ",")
	if ok && comma {
		rest = rest[1:]
		var n int
		if n, ok = number(3); ok {
			in.skip(len(in.s) - len(rest))
			in.skipOrdinal(node)
			in.yearDigits = 4
			return in.store(&in.year, thousands*1000+n, node)
		}
	}
	return errDateInput("invalid input string for \"Y,YYY\"")
}

// zoneHours reads a sign, which may have been skipped as a separator, and the hours.
func (in *timeInput) zoneHours(i int) error {
	sign := 1
	switch {
	case in.s != "" && strings.IndexByte("+- ", in.s[0]) >= 0:
		if in.s[0] == '-' {
			sign = -1
		}
		in.skip(1)
	case in.extra > 0 && in.last == '-':
		sign = -1
	}
	in.zoneSign = sign
	n, _, err := in.integer(i, 2)
	if err != nil {
		return err
	}
	return in.store(&in.zoneHour, n, &in.nodes[i])
}

// word reads a name.
func (in *timeInput) word(n *templateNode, key string) error {
	var list []string
	switch key {
	case "A.M.", "P.M.":
		list = []string{"a.m.", "p.m."}
	case "AM", "PM":
		list = []string{"am", "pm"}
	case "A.D.", "B.C.":
		list = []string{"a.d.", "b.c."}
	case "AD", "BC":
		list = []string{"ad", "bc"}
	case "MONTH":
		list = monthNames[1:]
	case "DAY":
		list = dayNames[:]
	case "MON", "DY":
		all := monthNames[1:]
		if key == "DY" {
			all = dayNames[:]
		}
		for _, name := range all {
			list = append(list, name[:3])
		}
	case "RM":
		// The longer numerals first, so that VIII is not read as V.
		for m := 12; m >= 1; m-- {
			list = append(list, romanMonths[m])
		}
	}
	at := -1
	for i, name := range list {
		if len(in.s) >= len(name) && strings.EqualFold(in.s[:len(name)], name) && (at < 0 || len(name) > len(list[at])) {
			at = i
		}
	}
	if at < 0 {
		return errDateInput("invalid value \"%s\" for \"%s\"", untilBlank(in.s), n.key).
			WithDetail("The given value did not match any of the allowed values for this field.")
	}
	in.skip(len(list[at]))
	switch key {
	case "MONTH", "MON":
		return in.store(&in.month, at+1, n)
	case "RM":
		return in.store(&in.month, 12-at, n)
	case "DAY", "DY":
		return in.store(&in.weekday, at+1, n)
	case "A.D.", "AD", "B.C.", "BC":
		in.bc = at == 1
	default:
		in.pm, in.half = at == 1, true
	}
	return nil
}
