package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonbRows yields the members of a jsonb.
type jsonbRows struct {
	v    jsonb.Value
	i    int
	make func(env *Env, key []byte, member jsonb.Value) (types.Datum, error)
}

func (r *jsonbRows) Next(env *Env) (types.Datum, bool, error) {
	key, member, ok := r.v.Member(r.i)
	if !ok {
		return types.Null, false, nil
	}
	r.i++
	if err := env.Step(stepCost); err != nil {
		return types.Null, false, err
	}
	d, err := r.make(env, key, member)
	return d, true, err
}

// jsonRows yields the members of a json text.
type jsonRows struct {
	r    *jsonb.Reader
	text string
	make func(m *jsonMember) types.Datum
}

func (r *jsonRows) Next(env *Env) (types.Datum, bool, error) {
	var out types.Datum
	found := false
	err := nextMember(r.r, r.text, func(m *jsonMember) { out, found = r.make(m), true })
	if err == nil {
		err = env.Step(stepCost)
	}
	return out, found, err
}

func errCall(name, what string) error {
	return pgerror.New(pgerror.InvalidParameterValue, "cannot call %s on %s", name, what)
}

// openJSONObject opens a function over the members of a json object.
func openJSONObject(errArray, errScalar error, row func(m *jsonMember) types.Datum) openFunc {
	return openJSON(jsonb.BeginObject, jsonb.BeginArray, errArray, errScalar, row)
}

// openJSON opens a function over the members of a json text that begins with want; another container is errOther.
func openJSON(want, other jsonb.Event, errOther, errScalar error, row func(m *jsonMember) types.Datum) openFunc {
	return func(env *Env, a []types.Datum) (SetRows, error) {
		r := newJSONReader(env, a[0].Text())
		first, err := r.Next()
		switch {
		case err != nil:
			return nil, err
		case first == want:
			return &jsonRows{r: r, text: a[0].Text(), make: row}, nil
		case first == other:
			return nil, errOther
		}
		return nil, errScalar
	}
}

// openJSONB opens a function over the members of a jsonb of the kind want.
func openJSONB(want jsonb.Kind, errOther, errScalar error, row func(env *Env, key []byte, member jsonb.Value) (types.Datum, error)) openFunc {
	return func(_ *Env, a []types.Datum) (SetRows, error) {
		switch v := a[0].JSONB(); {
		case v.Kind() == want:
			return &jsonbRows{v: v, make: row}, nil
		case v.IsContainer():
			return nil, errOther
		}
		return nil, errScalar
	}
}

// jsonSetFuncs declares the set-returning functions of json and jsonb.
func jsonSetFuncs() []setDecl {
	const members = 100
	invalid := func(text string) error { return pgerror.New(pgerror.InvalidParameterValue, "%s", text) }
	out := []setDecl{
		{sig: "json_object_keys(json) text", estimate: members, open: opens(openJSONObject(
			errCall("json_object_keys", "an array"), errCall("json_object_keys", "a scalar"),
			func(m *jsonMember) types.Datum { return types.Text(m.key) }))},
		{sig: "jsonb_object_keys(jsonb) text", estimate: members, open: opens(openJSONB(jsonb.Object,
			errCall("jsonb_object_keys", "an array"), errCall("jsonb_object_keys", "a scalar"),
			func(_ *Env, key []byte, _ jsonb.Value) (types.Datum, error) { return types.Bytes(key), nil }))},
	}
	for _, text := range []bool{false, true} {
		suffix, jsonType, jsonbType := "", types.TJSON, types.TJSONB
		if text {
			suffix, jsonType, jsonbType = "_text", types.TText, types.TText
		}
		names := func(value types.Type) []SetColumn { return []SetColumn{{"key", types.TText}, {"value", value}} }
		jsonPair, jsonbPair := []types.Type{types.TText, jsonType}, []types.Type{types.TText, jsonbType}
		each, elements := "_each"+suffix, "_array_elements"+suffix
		out = append(out,
			setDecl{sig: "json" + each + "(json) record", estimate: members, columns: names(jsonType),
				open: opens(openJSONObject(invalid("cannot deconstruct an array as an object"), invalid("cannot deconstruct a scalar"),
					func(m *jsonMember) types.Datum {
						return types.NewRecord(jsonPair, types.Row{types.Text(m.key), m.datum(text)})
					}))},
			setDecl{sig: "jsonb" + each + "(jsonb) record", estimate: members, columns: names(jsonbType),
				open: opens(openJSONB(jsonb.Object, errCall("jsonb"+each, "a non-object"), errCall("jsonb"+each, "a non-object"),
					func(env *Env, key []byte, v jsonb.Value) (types.Datum, error) {
						d, err := part(env, v, true, text)
						return types.NewRecord(jsonbPair, types.Row{types.Bytes(key), d}), err
					}))},
			setDecl{sig: "json" + elements + "(json) " + jsonType.String(), estimate: members, column: "value",
				open: opens(openJSON(jsonb.BeginArray, jsonb.BeginObject, errCall("json"+elements, "a non-array"), errCall("json"+elements, "a scalar"),
					func(m *jsonMember) types.Datum { return m.datum(text) }))},
			setDecl{sig: "jsonb" + elements + "(jsonb) " + jsonbType.String(), estimate: members, column: "value",
				open: opens(openJSONB(jsonb.Array, invalid("cannot extract elements from an object"), invalid("cannot extract elements from a scalar"),
					func(env *Env, _ []byte, v jsonb.Value) (types.Datum, error) { return part(env, v, true, text) }))},
		)
	}
	return out
}
