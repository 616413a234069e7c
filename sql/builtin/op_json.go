package builtin

import (
	"math"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonGetters are the functions that select a part of a json or jsonb, with the operators of the same meaning.
var jsonGetters = []struct {
	op, field, index string // the operator, and its functions for a key and a place
	text             bool
}{
	{"->", "_object_field", "_array_element", false},
	{"->>", "_object_field_text", "_array_element_text", true},
}

// jsonOps declares the operators on json and jsonb.
func jsonOps() []decl {
	var out []decl
	for _, g := range jsonGetters {
		ret := "json"
		if g.text {
			ret = "text"
		}
		out = append(out,
			decl{sig: g.op + "(json,text) " + ret, fn: jsonField(g.text)},
			decl{sig: g.op + "(json,int4) " + ret, fn: jsonElement(g.text)},
		)
		if !g.text {
			ret = "jsonb"
		}
		out = append(out,
			decl{sig: g.op + "(jsonb,text) " + ret, fn: jsonbField(g.text)},
			decl{sig: g.op + "(jsonb,int4) " + ret, fn: jsonbElement(g.text)},
		)
	}
	return append(out,
		decl{sig: "#>(json,text[]) json", fn: jsonPathOp(false)},
		decl{sig: "#>>(json,text[]) text", fn: jsonPathOp(true)},
		decl{sig: "#>(jsonb,text[]) jsonb", fn: jsonbPathOp(false)},
		decl{sig: "#>>(jsonb,text[]) text", fn: jsonbPathOp(true)},
		decl{sig: "@>(jsonb,jsonb) bool", fn: jsonbContains},
		decl{sig: "<@(jsonb,jsonb) bool", fn: jsonbContained},
		decl{sig: "?(jsonb,text) bool", fn: jsonbExists},
		decl{sig: "?|(jsonb,text[]) bool", fn: jsonbExistsList(false)},
		decl{sig: "?&(jsonb,text[]) bool", fn: jsonbExistsList(true)},
		decl{sig: "||(jsonb,jsonb) jsonb", fn: jsonbConcat},
		decl{sig: "-(jsonb,text) jsonb", fn: jsonbDeleteKey},
		decl{sig: "-(jsonb,text[]) jsonb", fn: jsonbDeleteKeys},
		decl{sig: "-(jsonb,int4) jsonb", fn: jsonbDeleteIndex},
		decl{sig: "#-(jsonb,text[]) jsonb", fn: jsonbDeletePath},
	)
}

// jsonOpFuncs declares the functions behind the operators.
func jsonOpFuncs() []decl {
	var out []decl
	for _, g := range jsonGetters {
		json, bin := "json", "jsonb"
		if g.text {
			json, bin = "text", "text"
		}
		out = append(out,
			decl{sig: "json" + g.field + "(json,text) " + json, fn: jsonField(g.text)},
			decl{sig: "json" + g.index + "(json,int4) " + json, fn: jsonElement(g.text)},
			decl{sig: "jsonb" + g.field + "(jsonb,text) " + bin, fn: jsonbField(g.text)},
			decl{sig: "jsonb" + g.index + "(jsonb,int4) " + bin, fn: jsonbElement(g.text)},
		)
	}
	return append(out,
		decl{sig: "json_extract_path(json,variadic text) json", fn: pathArgs(jsonPathOp(false))},
		decl{sig: "json_extract_path_text(json,variadic text) text", fn: pathArgs(jsonPathOp(true))},
		decl{sig: "jsonb_extract_path(jsonb,variadic text) jsonb", fn: pathArgs(jsonbPathOp(false))},
		decl{sig: "jsonb_extract_path_text(jsonb,variadic text) text", fn: pathArgs(jsonbPathOp(true))},
		decl{sig: "jsonb_contains(jsonb,jsonb) bool", fn: jsonbContains},
		decl{sig: "jsonb_contained(jsonb,jsonb) bool", fn: jsonbContained},
		decl{sig: "jsonb_exists(jsonb,text) bool", fn: jsonbExists},
		decl{sig: "jsonb_exists_any(jsonb,text[]) bool", fn: jsonbExistsList(false)},
		decl{sig: "jsonb_exists_all(jsonb,text[]) bool", fn: jsonbExistsList(true)},
		decl{sig: "jsonb_concat(jsonb,jsonb) jsonb", fn: jsonbConcat},
		decl{sig: "jsonb_delete(jsonb,text) jsonb", fn: jsonbDeleteKey},
		decl{sig: "jsonb_delete(jsonb,text,variadic text) jsonb", flags: nonStrict, fn: pathArgs(jsonbDeleteKeys)},
		decl{sig: "jsonb_delete(jsonb,int4) jsonb", fn: jsonbDeleteIndex},
		decl{sig: "jsonb_delete_path(jsonb,text[]) jsonb", fn: jsonbDeletePath},
	)
}

// pathArgs makes a function of (x, text[]) one of (x, text…).
func pathArgs(fn Func) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		path := types.NewArray(&types.Array{Elem: types.TText, Elems: append([]types.Datum(nil), a[1:]...)})
		return fn(env, []types.Datum{a[0], path})
	}
}

// part returns a part of a jsonb, as jsonb or as text: NULL if there is none.
func part(env *Env, v jsonb.Value, ok, text bool) (types.Datum, error) {
	switch {
	case !ok:
		return types.Null, nil
	case !text:
		return types.JSONB(v), nil
	}
	return jsonbText(env, v)
}

// jsonbText returns a string without quotes, NULL for null, and the text form of other values.
func jsonbText(env *Env, v jsonb.Value) (types.Datum, error) {
	switch v.Kind() {
	case jsonb.Null:
		return types.Null, nil
	case jsonb.String, jsonb.Number:
		return types.Bytes(v.Text()), nil
	}
	return jsonbPrint(env, v)
}

// jsonbPrint returns the text form of v.
func jsonbPrint(env *Env, v jsonb.Value) (types.Datum, error) {
	if err := env.Reserve(jsonb.TextBytes(len(v))); err != nil {
		return types.Null, err
	}
	return types.Bytes(jsonb.AppendText(nil, v)), nil
}

func jsonbField(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		v, ok := a[0].JSONB().Find(a[1].Text())
		return part(env, v, ok, text)
	}
}

func jsonbElement(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		v, n := a[0].JSONB(), a[1].Int()
		if !v.IsContainer() { // PostgreSQL stores a scalar as an array of one element.
			return part(env, v, n == 0 || n == -1, text)
		}
		v, ok := v.At(n)
		return part(env, v, ok, text)
	}
}

// pathIndex reads a path element as the place in an array.
func pathIndex(s string) (int64, bool) {
	d, err := types.ParseText(types.TInt4, strings.TrimLeft(s, " \t\n\v\f\r"), nil)
	if err != nil || strings.TrimRight(s, " \t\n\v\f\r") != s {
		return 0, false
	}
	return d.Int(), true
}

func jsonbPathOp(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		v := a[0].JSONB()
		for _, step := range a[1].Array().Elems {
			if step.IsNull() {
				return types.Null, nil
			}
			ok := false
			if v.Kind() == jsonb.Object {
				v, ok = v.Find(step.Text())
			} else if n, isIndex := pathIndex(step.Text()); isIndex {
				v, ok = v.At(n)
			}
			if !ok {
				return types.Null, nil
			}
		}
		return part(env, v, true, text)
	}
}

func jsonbContains(env *Env, a []types.Datum) (types.Datum, error) {
	ok, err := jsonb.Contains(a[0].JSONB(), a[1].JSONB(), func(n int) error { return env.Step(comparisonSteps * n) })
	return types.Bool(ok), err
}

func jsonbContained(env *Env, a []types.Datum) (types.Datum, error) {
	return jsonbContains(env, []types.Datum{a[1], a[0]})
}

func jsonbExists(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bool(a[0].JSONB().HasString(a[1].Text())), nil
}

func jsonbExistsList(all bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		v := a[0].JSONB()
		for _, e := range a[1].Array().Elems {
			if e.IsNull() {
				continue
			}
			if err := env.Step(len(v)/8 + comparisonSteps); err != nil {
				return types.Null, err
			}
			if v.HasString(e.Text()) != all {
				return types.Bool(!all), nil
			}
		}
		return types.Bool(all), nil
	}
}

// buildJSONB makes a value, of whose size n is an upper bound.
func buildJSONB(env *Env, n int, build func(*jsonb.Builder) error) (types.Datum, error) {
	if err := env.Reserve(n); err != nil {
		return types.Null, err
	}
	var b jsonb.Builder
	if err := build(&b); err != nil {
		return types.Null, err
	}
	return types.JSONB(b.Finish()), nil
}

// addMembers adds a container's members for which keep, unless nil, returns true.
func addMembers(b *jsonb.Builder, v jsonb.Value, keep func(i int, key []byte, member jsonb.Value) bool) error {
	i := -1
	for key, member := range v.Members {
		if i++; keep != nil && !keep(i, key, member) {
			continue
		}
		if v.Kind() == jsonb.Object {
			if err := b.Key(types.Bytes(key).Text()); err != nil {
				return err
			}
		}
		b.Value(member)
	}
	return nil
}

// begin opens a container of v's kind.
func begin(b *jsonb.Builder, v jsonb.Value) {
	if v.Kind() == jsonb.Object {
		b.BeginObject()
	} else {
		b.BeginArray()
	}
}

// filterJSONB returns the container v with the members for which keep returns true.
func filterJSONB(env *Env, v jsonb.Value, keep func(i int, key []byte, member jsonb.Value) bool) (types.Datum, error) {
	return buildJSONB(env, len(v)+v.Len()*jsonb.ItemBytes, func(b *jsonb.Builder) error {
		begin(b, v)
		if err := addMembers(b, v, keep); err != nil {
			return err
		}
		return b.End()
	})
}

func jsonbConcat(env *Env, a []types.Datum) (types.Datum, error) {
	l, r := a[0].JSONB(), a[1].JSONB()
	if l.IsContainer() && r.IsContainer() && (l.Kind() == jsonb.Object) == (r.Kind() == jsonb.Object) {
		if l.Len() == 0 {
			return a[1], nil
		}
		if r.Len() == 0 {
			return a[0], nil
		}
	}
	size := len(l) + len(r) + (l.Len()+r.Len()+2)*jsonb.ItemBytes
	return buildJSONB(env, size, func(b *jsonb.Builder) error {
		if l.Kind() == jsonb.Object && r.Kind() == jsonb.Object {
			b.BeginObject()
			if err := addMembers(b, l, nil); err != nil {
				return err
			}
			if err := addMembers(b, r, nil); err != nil {
				return err
			}
			return b.End()
		}
		b.BeginArray()
		for _, v := range []jsonb.Value{l, r} {
			if v.Kind() != jsonb.Array {
				b.Value(v)
			} else if err := addMembers(b, v, nil); err != nil {
				return err
			}
		}
		return b.End()
	})
}

func errDeleteScalar() error {
	return pgerror.New(pgerror.InvalidParameterValue, "cannot delete from scalar")
}

func jsonbDeleteKey(env *Env, a []types.Datum) (types.Datum, error) {
	return jsonbDeleteKeys(env, []types.Datum{a[0], types.NewArray(&types.Array{Elem: types.TText, Elems: a[1:2]})})
}

// jsonbDeleteKeys deletes the members with the keys from an object, the strings equal to them from an array.
func jsonbDeleteKeys(env *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() || a[1].IsNull() {
		return types.Null, nil
	}
	v := a[0].JSONB()
	if !v.IsContainer() {
		return types.Null, errDeleteScalar()
	}
	keys := map[string]bool{}
	for _, d := range a[1].Array().Elems {
		if !d.IsNull() {
			keys[d.Text()] = true
		}
	}
	return filterJSONB(env, v, func(_ int, key []byte, member jsonb.Value) bool {
		if v.Kind() == jsonb.Array {
			return member.Kind() != jsonb.String || !keys[string(member.Text())]
		}
		return !keys[string(key)]
	})
}

func jsonbDeleteIndex(env *Env, a []types.Datum) (types.Datum, error) {
	v, n := a[0].JSONB(), a[1].Int()
	switch {
	case !v.IsContainer():
		return types.Null, errDeleteScalar()
	case v.Kind() == jsonb.Object:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot delete from object using integer index")
	}
	if n < 0 {
		if n += int64(v.Len()); n < 0 {
			n = math.MaxInt64
		}
	}
	if n >= int64(v.Len()) {
		return a[0], nil
	}
	return filterJSONB(env, v, func(i int, _ []byte, _ jsonb.Value) bool { return int64(i) != n })
}
