package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// pathCall is a call of a jsonpath function: its target, path, and what may follow.
type pathCall struct {
	env    *Env
	args   []types.Datum
	silent bool
	// operator: there are no variables, and those that the path names are null.
	operator bool
	useZone  bool
}

// noVariables is an empty object.
var noVariables = jsonb.Value{byte(jsonb.Object), 0}

func newPathCall(env *Env, a []types.Datum, useZone bool) pathCall {
	return pathCall{env: env, args: a, silent: len(a) > 3 && a[3].Bool(), useZone: useZone}
}

// run evaluates the path; failed is set if it fails silently.
func (c pathCall) run(out *items) (found, failed bool, err error) {
	path, err := c.env.patterns.path(c.args[1].Text())
	if err != nil {
		return false, false, err
	}
	vars := noVariables
	switch {
	case c.operator:
		vars = nil
	case len(c.args) > 2:
		vars = c.args[2].JSONB()
	}
	found, err = runPath(c.env, path, c.args[0].JSONB(), vars, out, c.useZone)
	if soft, ok := err.(pathError); ok {
		if c.silent {
			return false, true, nil
		}
		err = soft.error
	}
	return found, false, err
}

func (c pathCall) exists() (types.Datum, error) {
	found, failed, err := c.run(nil)
	if failed || err != nil {
		return types.Null, err
	}
	return types.Bool(found), nil
}

// match returns the path's only item, a boolean or null.
func (c pathCall) match() (types.Datum, error) {
	var out items
	if _, _, err := c.run(&out); err != nil {
		return types.Null, err
	}
	if len(out.list) == 1 {
		switch it := out.list[0]; {
		case it.is(jsonb.True), it.is(jsonb.False):
			return types.Bool(it.is(jsonb.True)), nil
		case it.is(jsonb.Null):
			return types.Null, nil
		}
	}
	if c.silent {
		return types.Null, nil
	}
	return types.Null, pgerror.New(pgerror.SingletonSQLJSONRequired, "single boolean result is expected")
}

// query returns the path's items: those found before it failed silently, too.
func (c pathCall) query() ([]types.Datum, error) {
	var out items
	if _, _, err := c.run(&out); err != nil {
		return nil, err
	}
	list := make([]types.Datum, len(out.list))
	for i, it := range out.list {
		v, err := it.value(c.env)
		if err != nil {
			return nil, err
		}
		list[i] = types.JSONB(v)
	}
	return list, nil
}

func (c pathCall) queryArray() (types.Datum, error) {
	list, err := c.query()
	if err != nil {
		return types.Null, err
	}
	return buildJSONB(c.env, types.Row(list).Size()+len(list)*jsonb.ItemBytes, func(b *jsonb.Builder) error {
		b.BeginArray()
		for _, d := range list {
			b.Value(d.JSONB())
		}
		return b.End()
	})
}

func (c pathCall) queryFirst() (types.Datum, error) {
	list, err := c.query()
	if err != nil || len(list) == 0 {
		return types.Null, err
	}
	return list[0], nil
}

// pathSignatures returns a function's signatures: with the path, with variables, and with the choice to be silent.
func pathSignatures(name, ret string) []string {
	return []string{name + "(jsonb,jsonpath) " + ret, name + "(jsonb,jsonpath,jsonb) " + ret, name + "(jsonb,jsonpath,jsonb,bool) " + ret}
}

func jsonPathFuncs() []decl {
	var out []decl
	for _, f := range []struct {
		name, ret string
		call      func(pathCall) (types.Datum, error)
	}{
		{"jsonb_path_exists", "bool", pathCall.exists}, {"jsonb_path_match", "bool", pathCall.match},
		{"jsonb_path_query_array", "jsonb", pathCall.queryArray}, {"jsonb_path_query_first", "jsonb", pathCall.queryFirst},
	} {
		for _, zone := range []bool{false, true} {
			name, flags := f.name, flags(0)
			if zone {
				name, flags = name+"_tz", stable
			}
			for _, sig := range pathSignatures(name, f.ret) {
				out = append(out, decl{sig: sig, flags: flags, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					return f.call(newPathCall(env, a, zone))
				}})
			}
		}
	}
	return append(out,
		decl{sig: "jsonb_path_exists_opr(jsonb,jsonpath) bool", fn: pathOperator(pathCall.exists)},
		decl{sig: "jsonb_path_match_opr(jsonb,jsonpath) bool", fn: pathOperator(pathCall.match)},
	)
}

func jsonPathOps() []decl {
	return []decl{
		{sig: "@?(jsonb,jsonpath) bool", fn: pathOperator(pathCall.exists)},
		{sig: "@@(jsonb,jsonpath) bool", fn: pathOperator(pathCall.match)},
	}
}

// pathOperator makes an operator, which is silent.
func pathOperator(call func(pathCall) (types.Datum, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		return call(pathCall{env: env, args: a, silent: true, operator: true})
	}
}

func jsonPathSetFuncs() []setDecl {
	var out []setDecl
	for _, zone := range []bool{false, true} {
		name, flags := "jsonb_path_query", flags(0)
		if zone {
			name, flags = name+"_tz", stable
		}
		for _, sig := range pathSignatures(name, "jsonb") {
			out = append(out, setDecl{sig: sig, flags: flags, estimate: 100, open: opens(func(env *Env, a []types.Datum) (SetRows, error) {
				list, err := newPathCall(env, a, zone).query()
				return &sliceRows{list}, err
			})})
		}
	}
	return out
}
