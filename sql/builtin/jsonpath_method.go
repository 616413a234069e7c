package builtin

import (
	"math"
	"strconv"

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
