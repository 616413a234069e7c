package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/are"
	"github.com/percodb/percodb/sql/types"
)

// stringOps declares || ~~ ~~* ~ ~* and their negations, and ^@.
func stringOps() []decl {
	out := []decl{
		{sig: "||(text,text) text", fn: concatBytes},
		{sig: "||(bytea,bytea) bytea", fn: concatBytes},
		{sig: "||(text,anynonarray) text", bind: concatText, flags: stable},
		{sig: "||(anynonarray,text) text", bind: concatText, flags: stable},
		{sig: "^@(text,text) bool", fn: startsWith},
		{sig: "~~(bytea,bytea) bool", fn: likeFunc(false, true, false)},
		{sig: "!~~(bytea,bytea) bool", fn: likeFunc(false, true, true)},
	}
	for _, t := range []string{"text", "name", "bpchar"} {
		args := "(" + t + ",text) bool"
		out = append(out,
			decl{sig: "~~" + args, fn: likeFunc(false, false, false)},
			decl{sig: "!~~" + args, fn: likeFunc(false, false, true)},
			decl{sig: "~~*" + args, fn: likeFunc(true, false, false)},
			decl{sig: "!~~*" + args, fn: likeFunc(true, false, true)},
			decl{sig: "~" + args, fn: regexFunc(false, false)},
			decl{sig: "!~" + args, fn: regexFunc(false, true)},
			decl{sig: "~*" + args, fn: regexFunc(true, false)},
			decl{sig: "!~*" + args, fn: regexFunc(true, true)})
	}
	return out
}

func concatBytes(_ *Env, a []types.Datum) (types.Datum, error) {
	l, r := a[0].Bytes(), a[1].Bytes()
	return types.Bytes(append(append(make([]byte, 0, len(l)+len(r)), l...), r...)), nil
}

// concatText concatenates text with the text form of another type.
func concatText(o *Overload) Func {
	l, r := o.Args[0], o.Args[1]
	if !dependsOnFormat(l) && !dependsOnFormat(r) {
		o.Volatility = Immutable // Declared is what holds for any type.
	}
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		for _, d := range a {
			if err := env.ReserveText(d); err != nil {
				return types.Null, err
			}
		}
		b := appendAsText(nil, env, a[0], l)
		return types.Bytes(appendAsText(b, env, a[1], r)), nil
	}
}

// appendAsText appends the result of a cast to text, which differs from the text form for boolean and char(n).
func appendAsText(b []byte, env *Env, d types.Datum, t types.Type) []byte {
	switch t.OID {
	case types.OIDBool:
		if d.Bool() {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case types.OIDBPChar:
		return append(b, types.TrimBPChar(d.Bytes())...)
	}
	return types.AppendText(b, d, t, &env.Format)
}

func startsWith(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bool(strings.HasPrefix(a[0].Text(), a[1].Text())), nil
}

func likeFunc(fold, bytes, not bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		p, err := env.patterns.like(env, a[1].Text(), fold, bytes)
		if err != nil {
			return types.Null, err
		}
		ok, err := p.Match(env, a[0].Text())
		if err != nil {
			return types.Null, err
		}
		return types.Bool(ok != not), nil
	}
}

func regexFunc(fold, not bool) Func {
	var o regexOptions
	if fold {
		o.flags = are.FoldCase
	}
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		re, err := env.patterns.regex(env, a[1].Text(), o)
		if err != nil {
			return types.Null, err
		}
		ok, err := re.matches(env, a[0].Text())
		return types.Bool(ok != not), err
	}
}
