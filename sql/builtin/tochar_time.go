package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// timeTemplate is the syntax of templates of dates and times.
var timeTemplate = sync.OnceValue(func() *templateSyntax {
	return newTemplateSyntax(`A.D. A.M. AD AM B.C. BC CC D DAY DDD DD DY Day Dy FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 HH12 HH IDDD ID IW
		IYYY IYY IY I J MI MM MONTH MON MS Month Mon OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y
		a.d. a.m. ad am b.c. bc cc d day ddd dd dy ff1 ff2 ff3 ff4 ff5 ff6 fx hh24 hh12 hh iddd id iw iyyy iyy iy i j mi mm
		month mon ms of p.m. pm q rm sssss ssss ss tzh tzm tz us ww w y,yyy yyyy yyy yy y`, true)
})

// standardTimeTemplate is the syntax of SQL/JSON's templates.
var standardTimeTemplate = sync.OnceValue(func() *templateSyntax {
	s := *timeTemplate()
	s.separators = "-./,':; "
	return &s
})

var monthNames = [13]string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
var dayNames = [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
var romanMonths = [13]string{"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}

// timeShown is a timestamp, or an interval, for to_char.
type timeShown struct {
	c        types.Civil
	days     int64 // of the day, from 2000-01-01
	interval bool
	hasZone  bool
	zone     string
	offset   int
}

// timeToChar formats a timestamp with a template.
func timeToChar(t *timeShown, template string) (string, error) {
	nodes, err := timeTemplate().parse(template)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, n := range nodes {
		if n.kind != nodeField {
			b.WriteString(n.text)
			continue
		}
		s, err := t.field(&n)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func errIntervalField() error {
	return pgerror.New(pgerror.InvalidDatetimeFormat, "invalid format specification for an interval value").
		WithHint("Intervals are not tied to specific calendar dates.")
}

// padded writes a number with a minimum number of digits, a minus sign not counted; FM removes the padding.
func padded(n int64, width int, fill bool) string {
	if fill {
		width = 0
	}
	if n < 0 {
		return "-" + padded(-n, width, false)
	}
	return fmt.Sprintf("%0*d", width, n)
}

// paddedC is padded with the minus sign counted, as in C's %0*d.
func paddedC(n int64, width int, fill bool) string {
	if fill {
		width = 0
	}
	return fmt.Sprintf("%0*d", width, n)
}

func (t *timeShown) field(n *templateNode) (string, error) {
	key := strings.ToUpper(n.key)
	if t.interval {
		switch key {
		case "MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF", "A.D.", "AD", "B.C.", "BC":
			return "", errIntervalField()
		}
	}
	switch key {
	case "FX":
		return "", nil
	case "MONTH", "MON", "DAY", "DY", "RM":
		return t.name(n, key), nil
	case "A.M.", "AM", "P.M.", "PM", "A.D.", "AD", "B.C.", "BC":
		return t.half(n, key), nil
	case "TZ", "TZH", "TZM", "OF":
		return t.zoneField(n, key), nil
	}
	s := t.number(n, key)
	return s + ordinal(s, n.th), nil
}

// cased applies the case of a keyword to a name: MONTH, Month or month.
func cased(name, key string) string {
	switch {
	case key == strings.ToUpper(key):
		return strings.ToUpper(name)
	case key == strings.ToLower(key):
		return strings.ToLower(name)
	}
	return name
}

func (t *timeShown) name(n *templateNode, key string) string {
	weekday := dayNames[floorMod(t.days+6, 7)]
	switch key {
	case "MON":
		return cased(monthNames[t.c.Month][:3], n.key)
	case "DY":
		return cased(weekday[:3], n.key)
	case "RM":
		return t.roman(n)
	}
	name := weekday
	if key == "MONTH" {
		name = monthNames[t.c.Month]
	}
	if !n.fill && !n.name {
		name = fmt.Sprintf("%-9s", name)
	}
	return cased(name, n.key)
}

// roman writes the month; an interval's may be 0 or negative, counting back from December.
func (t *timeShown) roman(n *templateNode) string {
	m := t.c.Month
	switch {
	case m == 0 && t.c.Year == 0:
		return ""
	case m == 0:
		m = 12
		if t.c.Year < 0 {
			m = 1
		}
	case m < 0:
		m += 13
	}
	s := cased(romanMonths[m], n.key)
	if !n.fill {
		s = fmt.Sprintf("%-4s", s)
	}
	return s
}

// half writes AM or PM, AD or BC, with the keyword's points and case.
func (t *timeShown) half(n *templateNode, key string) string {
	s := "AM"
	switch {
	case strings.HasSuffix(strings.ReplaceAll(key, ".", ""), "M"):
		if t.c.Hour%24 >= 12 {
			s = "PM"
		}
	case t.c.Year <= 0:
		s = "BC"
	default:
		s = "AD"
	}
	if strings.Contains(key, ".") {
		s = s[:1] + "." + s[1:] + "."
	}
	if n.key[0] >= 'a' {
		s = strings.ToLower(s)
	}
	return s
}

func (t *timeShown) zoneField(n *templateNode, key string) string {
	sign, offset := "+", t.offset
	if offset < 0 {
		sign, offset = "-", -offset
	}
	switch key {
	case "TZ":
		if !t.hasZone {
			return ""
		}
		if n.key == "tz" {
			return strings.ToLower(t.zone)
		}
		return t.zone
	case "TZH":
		return sign + padded(int64(offset/3600), 2, false)
	case "TZM":
		return padded(int64(offset/60%60), 2, false)
	}
	s := sign + padded(int64(offset/3600), 2, n.fill)
	if offset%3600 != 0 {
		s += ":" + padded(int64(offset/60%60), 2, false)
	}
	return s
}

// year returns the printed year: that of an interval unchanged, otherwise without a year 0.
func (t *timeShown) year(y int) int64 {
	if !t.interval && y <= 0 {
		return int64(1 - y)
	}
	return int64(y)
}

func (t *timeShown) number(n *templateNode, key string) string {
	c := &t.c
	switch key {
	case "HH", "HH12":
		hour := c.Hour % 12
		if hour == 0 {
			hour = 12
		}
		return padded(int64(hour), 2, n.fill)
	case "HH24":
		return padded(int64(c.Hour), 2, n.fill)
	case "MI":
		return padded(int64(c.Minute), 2, n.fill)
	case "SS":
		return padded(int64(c.Second), 2, n.fill)
	case "MS":
		return paddedC(int64(c.Micros/1000), 3, false)
	case "US":
		return paddedC(int64(c.Micros), 6, false)
	case "SSSS", "SSSSS":
		return strconv.Itoa(c.Hour*3600 + c.Minute*60 + c.Second)
	case "MM":
		return padded(int64(c.Month), 2, n.fill)
	case "DD":
		return paddedC(int64(c.Day), 2, n.fill)
	case "Q":
		if c.Month == 0 {
			return ""
		}
		return strconv.Itoa((c.Month-1)/3 + 1)
	case "J":
		return strconv.FormatInt(types.DaysFromCivil(c.Year, c.Month, c.Day)+2451545, 10)
	}
	if strings.HasPrefix(key, "FF") {
		digits := int(key[2] - '0')
		n := int64(c.Micros)
		for range 6 - digits {
			n /= 10
		}
		return paddedC(n, digits, false)
	}
	if strings.Contains("CC Y,YYY YYYY YYY YY Y IYYY IYY IY I", key) {
		return t.yearNumber(n, key)
	}
	return t.dayNumber(n, key)
}

func (t *timeShown) yearNumber(n *templateNode, key string) string {
	y := t.year(t.c.Year)
	if key[0] == 'I' {
		isoYear, _ := isoWeek(t.days)
		y = t.year(isoYear)
		key = strings.Replace(key, "I", "Y", 1)
	}
	switch key {
	case "CC":
		century := int64(t.c.Year) / 100
		if !t.interval {
			if t.c.Year > 0 {
				century = (int64(t.c.Year)-1)/100 + 1
			} else {
				century--
			}
		}
		return padded(century, 2, n.fill)
	case "Y,YYY":
		return fmt.Sprintf("%d,%03d", y/1000, y%1000)
	case "YYYY":
		return padded(y, 4, n.fill)
	case "YYY":
		return padded(y%1000, 3, n.fill)
	case "YY":
		return padded(y%100, 2, n.fill)
	}
	return padded(y%10, 1, n.fill)
}

func (t *timeShown) dayNumber(n *templateNode, key string) string {
	c := &t.c
	dayOfYear := t.days - types.DaysFromCivil(c.Year, 1, 1) + 1
	if t.interval {
		dayOfYear = (int64(c.Year)*12+int64(c.Month))*30 + int64(c.Day)
	}
	switch key {
	case "DDD":
		return paddedC(dayOfYear, 3, n.fill)
	case "IDDD":
		isoYear, _ := isoWeek(t.days)
		first := types.DaysFromCivil(isoYear, 1, 4)
		first -= floorMod(first+5, 7)
		return paddedC(t.days-first+1, 3, n.fill)
	case "D":
		return strconv.FormatInt(floorMod(t.days+6, 7)+1, 10)
	case "ID":
		return strconv.FormatInt(floorMod(t.days+5, 7)+1, 10)
	case "WW":
		return paddedC((dayOfYear-1)/7+1, 2, n.fill)
	case "IW":
		_, week := isoWeek(t.days)
		return padded(int64(week), 2, n.fill)
	}
	return strconv.Itoa((c.Day-1)/7 + 1) // W
}

func timestampToChar(ts int64, loc *time.Location, hasZone bool) *timeShown {
	t := &timeShown{hasZone: hasZone}
	if hasZone {
		t.zone, t.offset = types.ZoneAt(ts, loc)
		ts += int64(t.offset) * types.MicrosPerSecond
	}
	t.c = types.CivilFromTimestamp(ts)
	t.days = floorDiv(ts, types.MicrosPerDay)
	return t
}

func toCharTimestamp(hasZone bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[1].Text() == "" || !types.TimestampFinite(a[0].Int()) {
			return types.Null, nil
		}
		s, err := timeToChar(timestampToChar(a[0].Int(), env.Format.Loc(), hasZone), a[1].Text())
		return types.Text(s), err
	}
}

func toCharInterval(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Text() == "" {
		return types.Null, nil
	}
	iv := a[0].Interval()
	t := &timeShown{interval: true}
	t.c.Year, t.c.Month, t.c.Day = int(iv.Months/12), int(iv.Months%12), int(iv.Days)
	t.c.Hour = int(iv.Micros / types.MicrosPerHour)
	t.c.Minute = int(iv.Micros / types.MicrosPerMinute % 60)
	t.c.Second = int(iv.Micros / types.MicrosPerSecond % 60)
	t.c.Micros = int(iv.Micros % types.MicrosPerSecond)
	s, err := timeToChar(t, a[1].Text())
	return types.Text(s), err
}
