package builtin

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// method evaluates .name().
func (r *pathRun) method(n *jsonpath.Node, it pathItem, out *items, unwrap bool) (bool, error) {
	switch n.Text {
	case "type":
		name := ""
		if it.time != nil {
			name = TypeName(it.time.typ)
		} else {
			name = jsonbTypeName(it.v)
		}
		v, err := jsonb.StringValue(name)
		if err != nil {
			return false, err
		}
		return r.next(n, pathItem{v: v}, out)
	case "size":
		size := 1
		if it.is(jsonb.Array) {
			size = it.v.Len()
		} else if !r.lax {
			if r.ignore {
				return false, nil
			}
			return false, errPath(pgerror.SQLJSONArrayNotFound, "jsonpath item method .%s() can only be applied to an array", n.Text)
		}
		return r.next(n, pathItem{v: numberValue(types.NewNumeric(int64(size)))}, out)
	}
	if unwrap && it.is(jsonb.Array) {
		return r.elements(n, it.v, out, false)
	}
	switch n.Text {
	case "keyvalue":
		return r.keyValue(n, it, out)
	case "double":
		v, err := toDouble(n, it)
		if err != nil {
			return false, err
		}
		return r.next(n, pathItem{v: v}, out)
	}
	if !it.is(jsonb.Number) {
		return false, errPath(pgerror.NonNumericSQLJSONItem, "jsonpath item method .%s() can only be applied to a numeric value", n.Text)
	}
	d, err := jsonbNumber(it.v)
	if err != nil {
		return false, err
	}
	switch n.Text {
	case "abs":
		d = new(apd.Decimal).Set(d)
		d.Negative = false
	case "floor":
		d, err = floorNumeric(d)
	default:
		d, err = ceilNumeric(d)
	}
	if err != nil {
		return false, pathError{err}
	}
	return r.next(n, pathItem{v: numberValue(d)}, out)
}

// toDouble is .double().
func toDouble(n *jsonpath.Node, it pathItem) (jsonb.Value, error) {
	switch {
	case it.is(jsonb.Number):
		if f, err := strconv.ParseFloat(string(it.v.Text()), 64); err != nil || math.IsInf(f, 0) {
			return nil, errPath(pgerror.NonNumericSQLJSONItem, "numeric argument of jsonpath item method .%s() is out of range for type double precision", n.Text)
		}
		return it.v, nil
	case it.is(jsonb.String):
		d, err := types.ParseText(types.TFloat8, string(it.v.Text()), nil)
		if err != nil || math.IsInf(d.Float(), 0) || math.IsNaN(d.Float()) {
			return nil, errPath(pgerror.NonNumericSQLJSONItem, "string argument of jsonpath item method .%s() is not a valid representation of a double precision number", n.Text)
		}
		f, err := FloatToNumeric(d.Float(), 15)
		if err != nil {
			return nil, err
		}
		return numberValue(f), nil
	}
	return nil, errPath(pgerror.NonNumericSQLJSONItem, "jsonpath item method .%s() can only be applied to a string or numeric value", n.Text)
}

// keyValue is .keyvalue(): an object for each member.
func (r *pathRun) keyValue(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	if !it.is(jsonb.Object) {
		return false, errPath(pgerror.SQLJSONObjectNotFound, "jsonpath item method .%s() can only be applied to an object", n.Text)
	}
	if n.Next == nil && out == nil {
		return it.v.Len() > 0, nil
	}
	id := string(strconv.AppendInt(nil, r.place(it.v), 10))
	some := false
	for key, member := range it.v.Members {
		var b jsonb.Builder
		b.BeginObject()
		_ = b.Key("id") // a short key is never refused
		b.Number(id)
		_ = b.Key("key")
		if err := b.String(string(key)); err != nil {
			return false, err
		}
		_ = b.Key("value")
		b.Value(member)
		if err := b.End(); err != nil {
			return false, err
		}
		v := b.Finish()
		restore := r.setBase(v)
		found, err := r.next(n, pathItem{v: v}, out)
		restore()
		if err != nil || found && out == nil {
			return found, err
		}
		some = some || found
	}
	return some, nil
}

// pathTime is a date or time.
type pathTime struct {
	typ  types.Type
	d    types.Datum
	zone *time.Location // of a timestamptz, as written
}

var (
	datePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timePattern = regexp.MustCompile(`^(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?:([+-])(\d\d)(?::(\d\d))?)?$`)
)

// datetime is .datetime() of an ISO 8601 string.
func (r *pathRun) datetime(n *jsonpath.Node, it pathItem) (*pathTime, error) {
	if !it.is(jsonb.String) {
		return nil, errPath(pgerror.InvalidSQLJSONDatetime, "jsonpath item method .%s() can only be applied to a string", "datetime")
	}
	if n.Left != nil {
		return nil, pgerror.Unsupported("the template of .datetime()", "Leave it out for ISO 8601, or use to_timestamp on the text.")
	}
	text := string(it.v.Text())
	if datePattern.MatchString(text) {
		return newPathTime(types.TDate, text, nil)
	}
	m := timePattern.FindStringSubmatch(text)
	if m == nil {
		return nil, pathError{pgerror.New(pgerror.InvalidSQLJSONDatetime, "datetime format is not recognized: \"%s\"", text).
			WithHint("Use a datetime template argument to specify the input data format.")}
	}
	switch date, sign := m[1], m[3]; {
	case date == "" && sign == "":
		return newPathTime(types.TTime, text, nil)
	case date == "":
		return nil, pgerror.Unsupported("type time with time zone", "Leave out the zone, or add a date.")
	case sign == "":
		return newPathTime(types.TTimestamp, text, nil)
	}
	hours, _ := strconv.Atoi(m[4])
	minutes, _ := strconv.Atoi(cmp.Or(m[5], "0"))
	offset := hours*3600 + minutes*60
	if m[3] == "-" {
		offset = -offset
	}
	return newPathTime(types.TTimestamptz, text, time.FixedZone("", offset))
}

func newPathTime(t types.Type, text string, zone *time.Location) (*pathTime, error) {
	d, err := types.ParseText(t, strings.Replace(text, "T", " ", 1), nil)
	if err != nil {
		return nil, pathError{err}
	}
	return &pathTime{t, d, zone}, nil
}

// value returns the item as JSON: a date or time is a string.
func (it pathItem) value(env *Env) (jsonb.Value, error) {
	if it.time == nil {
		return it.v, nil
	}
	e := Env{Format: env.Format}
	e.Format.Location = it.time.zone
	return jsonb.StringValue(jsonMaker{&e}.text(it.time.d, it.time.typ))
}

// compareTimes compares two dates or times; ok is false for a time and a date.
func (r *pathRun) compareTimes(a, b *pathTime) (c int, ok bool, err error) {
	if (a.typ.OID == types.OIDTime) != (b.typ.OID == types.OIDTime) {
		return 0, false, nil
	}
	if a.typ == b.typ {
		return cmp.Compare(a.d.Int(), b.d.Int()), true, nil
	}
	if a.typ.OID == types.OIDTimestamptz || b.typ.OID == types.OIDTimestamptz {
		plain := a
		if a.typ.OID == types.OIDTimestamptz {
			plain = b
		}
		if !r.useZone {
			return 0, false, pgerror.New(pgerror.FeatureNotSupported, "cannot convert value from %s to %s without time zone usage",
				plain.typ.Info().Name, "timestamptz").WithHint("Use *_tz() function for time zone support.")
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
