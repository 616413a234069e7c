package builtin

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonbKindName names a value's kind in the messages of casts.
func jsonbKindName(v jsonb.Value) string {
	switch v.Kind() {
	case jsonb.String:
		return "string"
	case jsonb.Number:
		return "numeric"
	case jsonb.False, jsonb.True:
		return "boolean"
	case jsonb.Array:
		return "array"
	case jsonb.Object:
		return "object"
	}
	return "null"
}

// jsonbNumber returns a JSON number as numeric.
func jsonbNumber(v jsonb.Value) (*apd.Decimal, error) {
	d, err := types.ParseText(types.TNumeric, string(v.Text()), nil)
	if err != nil {
		return nil, err
	}
	return d.Decimal(), nil
}

// jsonbCast returns the cast of jsonb to a number or boolean.
func jsonbCast(to types.OID) Func {
	want, name := "numeric", TypeName(types.Type{OID: to, Mod: -1})
	cast := func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil }
	switch to {
	case types.OIDBool:
		want = "boolean"
	case types.OIDNumeric:
	default:
		cast = castFunction(types.OIDNumeric, to)
	}
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		v := a[0].JSONB()
		if kind := jsonbKindName(v); kind != want {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot cast jsonb %s to type %s", kind, name)
		}
		if to == types.OIDBool {
			return types.Bool(v.Kind() == jsonb.True), nil
		}
		n, err := jsonbNumber(v)
		if err != nil {
			return types.Null, err
		}
		return cast(env, []types.Datum{types.Decimal(n)})
	}
}
