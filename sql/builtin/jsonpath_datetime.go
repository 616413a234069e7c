package builtin

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// pathTime is a date or time.
type pathTime struct {
	typ  types.Type
	d    types.Datum
	zone *time.Location // of a timestamptz, as written; nil: of the session
}

// isoTemplates are the templates of ISO 8601 that .datetime() tries in turn.
var isoTemplates = sync.OnceValue(func() (list [][]templateNode) {
	clocks := []string{"HH24:MI:SS.USTZH:TZM", "HH24:MI:SS.USTZH", "HH24:MI:SSTZH:TZM", "HH24:MI:SSTZH", "HH24:MI:SS.US", "HH24:MI:SS"}
	templates := append([]string{"YYYY-MM-DD"}, clocks...)
	for _, clock := range clocks {
		templates = append(templates, "YYYY-MM-DD "+clock, `YYYY-MM-DD"T"`+clock)
	}
	for _, t := range templates {
		nodes, err := standardTimeTemplate().parse(t)
		if err != nil {
			panic(err)
		}
		list = append(list, nodes)
	}
	return list
})

// datetime is .datetime() of a string: by its template, or of ISO 8601.
func (r *pathRun) datetime(n *jsonpath.Node, it pathItem) (*pathTime, error) {
	if !it.is(jsonb.String) {
		return nil, errPath(pgerror.InvalidSQLJSONDatetime, "jsonpath item method .%s() can only be applied to a string", "datetime")
	}
	text := string(it.v.Text())
	if n.Left != nil {
		nodes, err := standardTimeTemplate().parse(n.Left.Text)
		if err != nil {
			return nil, err
		}
		t, err := readPathTime(text, nodes)
		if err != nil {
			return nil, pathError{err}
		}
		return t, nil
	}
	for _, nodes := range isoTemplates() {
		if t, err := readPathTime(text, nodes); err == nil {
			return t, nil
		}
	}
	return nil, pathError{pgerror.New(pgerror.InvalidSQLJSONDatetime, "datetime format is not recognized: \"%s\"", text).
		WithHint("Use a datetime template argument to specify the input data format.")}
}

// value returns the item as JSON: a date or time is a string.
func (it pathItem) value(env *Env) (jsonb.Value, error) {
	if it.time == nil {
		return it.v, nil
	}
	e := Env{Format: env.Format}
	e.Format.Location = it.time.zone
	if it.time.typ.OID == types.OIDTimetz {
		return jsonb.StringValue(it.time.d.Timetz().ISO())
	}
	return jsonb.StringValue(jsonMaker{&e}.text(it.time.d, it.time.typ))
}

// compareTimes compares two dates or times; ok is false for a time and a date.
func (r *pathRun) compareTimes(a, b *pathTime) (c int, ok bool, err error) {
	switch {
	case a.dated() != b.dated():
		return 0, false, nil
	case a.typ.OID == b.typ.OID:
		return types.Compare(a.d, b.d, a.typ), true, nil
	case !a.dated():
		return r.compareClocks(a, b)
	}
	if a.typ.OID == types.OIDTimestamptz || b.typ.OID == types.OIDTimestamptz {
		plain := a
		if a.typ.OID == types.OIDTimestamptz {
			plain = b
		}
		if !r.useZone {
			return 0, false, errNeedsZone(plain.typ, types.TTimestamptz)
		}
		switch {
		case a.typ.OID == types.OIDDate:
			return compareDateTimestamptz(r.env, a.d, b.d), true, nil
		case b.typ.OID == types.OIDDate:
			return -compareDateTimestamptz(r.env, b.d, a.d), true, nil
		case plain == a:
			return compareTimestampTimestamptz(r.env, a.d, b.d), true, nil
		}
		return -compareTimestampTimestamptz(r.env, b.d, a.d), true, nil
	}
	if a.typ.OID == types.OIDDate {
		return compareDateTimestamp(a.d, b.d), true, nil
	}
	return -compareDateTimestamp(b.d, a.d), true, nil
}

// dated reports whether the value has a date.
func (t *pathTime) dated() bool { return t.typ.OID != types.OIDTime && t.typ.OID != types.OIDTimetz }

// compareClocks compares a time with one that has a zone; the other one is of the session's.
func (r *pathRun) compareClocks(a, b *pathTime) (c int, ok bool, err error) {
	if a.typ.OID == types.OIDTimetz {
		c, ok, err = r.compareClocks(b, a)
		return -c, ok, err
	}
	if !r.useZone {
		return 0, false, errNeedsZone(types.TTime, types.TTimetz)
	}
	zoned := types.NewTimetz(types.TimetzOf(a.d.Int(), &r.env.Format))
	return types.Compare(zoned, b.d, types.TTimetz), true, nil
}

func errNeedsZone(from, to types.Type) error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot convert value from %s to %s without time zone usage", from.Info().Name, to.Info().Name).
		WithHint("Use *_tz() function for time zone support.")
}

// readPathTime reads a date or time by a template, whose fields decide on the type.
func readPathTime(text string, template []templateNode) (*pathTime, error) {
	in := &timeInput{text: text, s: text, nodes: template, set: map[string]int{}, standard: true, fixed: true}
	if err := in.read(); err != nil {
		return nil, err
	}
	switch dated, timed, zoned := partsOf(template); {
	case !dated && !timed:
		return nil, errDateInput("datetime format is not dated and not timed")
	case zoned && !timed:
		return nil, errDateInput("datetime format is zoned but not timed")
	default:
		return in.pathTime(dated, timed, zoned)
	}
}

// partsOf reports which parts the fields of a template have.
func partsOf(nodes []templateNode) (dated, timed, zoned bool) {
	for _, n := range nodes {
		switch key := strings.ToUpper(n.key); {
		case n.kind != nodeField || key == "FX":
		case key == "TZ" || key == "OF" || key == "TZH" || key == "TZM":
			zoned = true
		case strings.HasPrefix(key, "HH") || strings.HasPrefix(key, "SS") || strings.HasPrefix(key, "FF"),
			slices.Contains([]string{"A.M.", "AM", "P.M.", "PM", "MI", "MS", "US"}, key):
			timed = true
		default:
			dated = true
		}
	}
	return dated, timed, zoned
}

// pathTime returns the value that was read.
func (in *timeInput) pathTime(dated, timed, zoned bool) (*pathTime, error) {
	c, err := in.civil()
	if err != nil {
		return nil, err
	}
	if !timed {
		days := types.DaysFromCivil(c.Year, c.Month, c.Day)
		if !types.ValidDate(days) {
			return nil, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: \"%s\"", in.text)
		}
		return &pathTime{typ: types.TDate, d: types.Int(days)}, nil
	}
	mod := int32(-1)
	if in.precision != 0 {
		mod = int32(in.precision)
	}
	clock := types.RoundMicros(int64(c.Hour*3600+c.Minute*60+c.Second)*types.MicrosPerSecond+int64(c.Micros), mod)
	west, err := in.west(zoned, dated)
	switch {
	case err != nil:
		return nil, err
	case !dated && zoned:
		return &pathTime{typ: types.TTimetz, d: types.NewTimetz(types.Timetz{Micros: clock, West: west})}, nil
	case !dated:
		return &pathTime{typ: types.TTime, d: types.Int(clock)}, nil
	}
	ts, ok := c.Timestamp()
	if !ok {
		return nil, errTimestampRange()
	}
	ts = types.RoundTimestamp(ts, mod)
	if !zoned {
		return &pathTime{typ: types.TTimestamp, d: types.Int(ts)}, nil
	}
	if ts += int64(west) * types.MicrosPerSecond; !types.ValidTimestamp(ts) {
		return nil, errTimestampRange()
	}
	return &pathTime{typ: types.TTimestamptz, d: types.Int(ts), zone: time.FixedZone("", int(-west))}, nil
}

// west returns the offset that was read, in seconds west of UTC.
func (in *timeInput) west(zoned, dated bool) (int32, error) {
	switch {
	case !zoned:
		return 0, nil
	case in.zoneSign == 0 && dated:
		return 0, errDateInput("missing time zone in input string for type timestamptz")
	case in.zoneSign == 0:
		return 0, errDateInput("missing time zone in input string for type timetz")
	case in.zoneHour < 0 || in.zoneHour > 15 || in.zoneMinute < 0 || in.zoneMinute >= 60:
		return 0, pgerror.New("22009", "time zone displacement out of range: \"%s\"", in.text)
	}
	return int32(-in.zoneSign * (in.zoneHour*3600 + in.zoneMinute*60)), nil
}
