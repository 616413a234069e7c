package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonFuncs declares the functions that read and change json and jsonb.
func jsonFuncs() []decl {
	return []decl{
		{sig: "json_typeof(json) text", fn: jsonTypeof},
		{sig: "jsonb_typeof(jsonb) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(jsonbTypeName(a[0].JSONB())), nil
		}},
		{sig: "json_array_length(json) int4", fn: jsonArrayLength},
		{sig: "jsonb_array_length(jsonb) int4", fn: jsonbArrayLength},
		{sig: "json_strip_nulls(json) json", fn: jsonStripNulls},
		{sig: "jsonb_strip_nulls(jsonb) jsonb", fn: jsonbStripNulls},
		{sig: "jsonb_pretty(jsonb) text", fn: jsonbPretty},
		{sig: "jsonb_set(jsonb,text[],jsonb) jsonb", fn: jsonbSet},
		{sig: "jsonb_set(jsonb,text[],jsonb,bool) jsonb", fn: jsonbSet},
		{sig: "jsonb_set_lax(jsonb,text[],jsonb) jsonb", fn: jsonbSetLax, flags: nonStrict},
		{sig: "jsonb_set_lax(jsonb,text[],jsonb,bool) jsonb", fn: jsonbSetLax, flags: nonStrict},
		{sig: "jsonb_set_lax(jsonb,text[],jsonb,bool,text) jsonb", fn: jsonbSetLax, flags: nonStrict},
		{sig: "jsonb_insert(jsonb,text[],jsonb) jsonb", fn: jsonbInsert},
		{sig: "jsonb_insert(jsonb,text[],jsonb,bool) jsonb", fn: jsonbInsert},
	}
}

// jsonbTypeName is what jsonb_typeof returns.
func jsonbTypeName(v jsonb.Value) string {
	if v.Kind() == jsonb.Number {
		return "number"
	}
	return jsonbKindName(v)
}

func jsonTypeof(env *Env, a []types.Datum) (types.Datum, error) {
	name := ""
	first, err := newJSONReader(env, a[0].Text()).Next()
	switch first {
	case jsonb.BeginObject:
		name = "object"
	case jsonb.BeginArray:
		name = "array"
	case jsonb.StringEvent:
		name = "string"
	case jsonb.NumberEvent:
		name = "number"
	case jsonb.TrueEvent, jsonb.FalseEvent:
		name = "boolean"
	default:
		name = "null"
	}
	return types.Text(name), err
}

func errArrayLength(what string) error {
	return pgerror.New(pgerror.InvalidParameterValue, "cannot get array length of a %s", what)
}

func jsonArrayLength(env *Env, a []types.Datum) (types.Datum, error) {
	n := int64(0)
	err := readJSON(env, a[0].Text(),
		func(first jsonb.Event) error {
			switch first {
			case jsonb.BeginArray:
				return nil
			case jsonb.BeginObject:
				return errArrayLength("non-array")
			}
			return errArrayLength("scalar")
		},
		func(int, *jsonMember) error {
			n++
			return nil
		})
	return intDatum(n, err)
}

func jsonbArrayLength(_ *Env, a []types.Datum) (types.Datum, error) {
	switch v := a[0].JSONB(); v.Kind() {
	case jsonb.Array:
		return types.Int(int64(v.Len())), nil
	case jsonb.Object:
		return types.Null, errArrayLength("non-array")
	}
	return types.Null, errArrayLength("scalar")
}

// jsonStripNulls removes members of objects that are null, and blanks.
func jsonStripNulls(env *Env, a []types.Datum) (types.Datum, error) {
	if err := env.Reserve(2 * len(a[0].Bytes())); err != nil {
		return types.Null, err
	}
	r := newJSONReader(env, a[0].Text())
	var b []byte
	key, hasKey := "", false
	for {
		e, err := r.Next()
		switch {
		case err != nil:
			return types.Null, err
		case e == jsonb.End:
			return types.Bytes(b), nil
		case e == jsonb.Key:
			key, hasKey = r.Text(), true
			continue
		case e == jsonb.EndObject:
			b = append(b, '}')
			continue
		case e == jsonb.EndArray:
			b = append(b, ']')
			continue
		case hasKey && e == jsonb.NullEvent:
			hasKey = false
			continue
		}
		if n := len(b); n > 0 && b[n-1] != '{' && b[n-1] != '[' {
			b = append(b, ',')
		}
		if hasKey {
			b = append(jsonb.AppendString(b, key), ':')
			hasKey = false
		}
		switch e {
		case jsonb.BeginObject:
			b = append(b, '{')
		case jsonb.BeginArray:
			b = append(b, '[')
		case jsonb.StringEvent:
			b = jsonb.AppendString(b, r.Text())
		default:
			b = append(b, r.Text()...)
		}
	}
}

func jsonbStripNulls(env *Env, a []types.Datum) (types.Datum, error) {
	v := a[0].JSONB()
	if !v.IsContainer() {
		return a[0], nil
	}
	return buildJSONB(env, 2*len(v)+v.Len()*jsonb.ItemBytes, func(b *jsonb.Builder) error { return stripNulls(env, b, v) })
}

func stripNulls(env *Env, b *jsonb.Builder, v jsonb.Value) error {
	if !v.IsContainer() {
		b.Value(v)
		return nil
	}
	if err := env.Step(comparisonSteps * v.Len()); err != nil {
		return err
	}
	begin(b, v)
	for key, member := range v.Members {
		if v.Kind() == jsonb.Object {
			if member.Kind() == jsonb.Null {
				continue
			}
			if err := b.Key(types.Bytes(key).Text()); err != nil {
				return err
			}
		}
		if err := stripNulls(env, b, member); err != nil {
			return err
		}
	}
	return b.End()
}

func jsonbPretty(env *Env, a []types.Datum) (types.Datum, error) {
	v := a[0].JSONB()
	if err := env.Reserve(prettyBytes(v, 0)); err != nil {
		return types.Null, err
	}
	return types.Bytes(jsonb.AppendPretty(nil, v)), nil
}

// prettyBytes estimates the length of the indented text form.
func prettyBytes(v jsonb.Value, level int) int {
	n := jsonb.TextBytes(len(v))
	if len(v) < 64 {
		return n + 8*level
	}
	n += (4*level + 5) * (v.Len() + 1)
	for _, member := range v.Members {
		if member.IsContainer() {
			n += prettyBytes(member, level+1) - jsonb.TextBytes(len(member))
		}
	}
	return n
}

func errSetScalar() error {
	return pgerror.New(pgerror.InvalidParameterValue, "cannot set path in scalar")
}

func jsonbSet(env *Env, a []types.Datum) (types.Datum, error) {
	create := len(a) < 4 || a[3].Bool()
	v, path := a[0].JSONB(), a[1].Array().Elems
	if !v.IsContainer() {
		return types.Null, errSetScalar()
	}
	if v.Len() == 0 && !create || len(path) == 0 {
		return a[0], nil
	}
	mode := pathReplace
	if create {
		mode = pathCreate
	}
	return setPath(env, v, path, a[2].JSONB(), mode)
}

func jsonbInsert(env *Env, a []types.Datum) (types.Datum, error) {
	v, path := a[0].JSONB(), a[1].Array().Elems
	if !v.IsContainer() {
		return types.Null, errSetScalar()
	}
	if len(path) == 0 {
		return a[0], nil
	}
	mode := pathInsertBefore
	if len(a) == 4 && a[3].Bool() {
		mode = pathInsertAfter
	}
	return setPath(env, v, path, a[2].JSONB(), mode)
}

// jsonbSetLax is jsonb_set with a choice of what NULL as new value does.
func jsonbSetLax(env *Env, a []types.Datum) (types.Datum, error) {
	create, treatment := types.Bool(true), types.Text("use_json_null")
	if len(a) > 3 {
		create = a[3]
	}
	if len(a) > 4 {
		treatment = a[4]
	}
	if a[0].IsNull() || a[1].IsNull() || create.IsNull() {
		return types.Null, nil
	}
	bad := pgerror.New(pgerror.InvalidParameterValue,
		"null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"")
	if treatment.IsNull() {
		return types.Null, bad
	}
	if !a[2].IsNull() {
		return jsonbSet(env, []types.Datum{a[0], a[1], a[2], create})
	}
	switch treatment.Text() {
	case "raise_exception":
		return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "JSON value must not be null").
			WithDetail("Exception was raised because null_value_treatment is \"raise_exception\".").
			WithHint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")
	case "use_json_null":
		return jsonbSet(env, []types.Datum{a[0], a[1], types.JSONB(jsonb.NullValue), create})
	case "delete_key":
		return jsonbDeletePath(env, a[:2])
	case "return_target":
		return a[0], nil
	}
	return types.Null, bad
}
