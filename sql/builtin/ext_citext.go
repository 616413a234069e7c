package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// The extension citext: most of what it declares is what PostgreSQL declares of text, over texts that are compared without regard for case.

// citextOps declares the operators. Those of patterns ignore case, whatever their name.
func citextOps() []decl {
	var out []decl
	for _, c := range comparisons {
		out = append(out, decl{sig: c.op + "(citext,citext) bool", fn: citextComparison(c)})
	}
	for _, c := range comparisons[2:] {
		out = append(out, decl{sig: "~" + c.op + "~(citext,citext) bool", fn: citextComparison(c)})
	}
	for _, pattern := range []string{"citext", "text"} {
		args := "(citext," + pattern + ") bool"
		for _, star := range []string{"", "*"} {
			out = append(out, decl{sig: "~~" + star + args, fn: likeFunc(true, false, false)}, decl{sig: "!~~" + star + args, fn: likeFunc(true, false, true)},
				decl{sig: "~" + star + args, fn: regexFunc(true, false)}, decl{sig: "!~" + star + args, fn: regexFunc(true, true)})
		}
	}
	return out
}

func citextComparison(c comparison) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bool(c.test(types.Compare(a, b, types.TCitext))), nil
	})
}

func citextFuncs() []decl {
	out := []decl{
		{sig: "citext(bpchar) citext", fn: bpcharCitext}, {sig: "citext(bool) citext", fn: boolCitext}, {sig: "citext(inet) citext", fn: inetCitext},
		{sig: "citext_larger(citext,citext) citext", fn: citextExtreme(1)}, {sig: "citext_smaller(citext,citext) citext", fn: citextExtreme(-1)},
		{sig: "citext_hash(citext) int4", fn: fn1(func(a types.Datum) (types.Datum, error) {
			return types.Int(int64(int32(types.Hash(a, types.TCitext)))), nil
		})},
		{sig: "regexp_match(citext,citext) text[]", fn: ignoringCase(regexpMatch, 2)}, {sig: "regexp_match(citext,citext,text) text[]", fn: ignoringCase(regexpMatch, 2)},
		{sig: "regexp_replace(citext,citext,text) text", fn: ignoringCase(regexpReplace, 3)},
		{sig: "regexp_replace(citext,citext,text,text) text", fn: ignoringCase(regexpReplace, 3)},
		{sig: "regexp_split_to_array(citext,citext) text[]", fn: ignoringCase(regexpSplitToArray, 2)},
		{sig: "regexp_split_to_array(citext,citext,text) text[]", fn: ignoringCase(regexpSplitToArray, 2)},
		{sig: "strpos(citext,citext) int4", fn: citextPosition}, {sig: "replace(citext,citext,citext) text", fn: citextReplace},
		{sig: "split_part(citext,citext,int4) text", fn: citextSplitPart}, {sig: "translate(citext,citext,text) text", fn: citextTranslate},
	}
	for _, pattern := range []string{"citext", "text"} {
		args := "(citext," + pattern + ") bool"
		out = append(out, decl{sig: "texticlike" + args, fn: likeFunc(true, false, false)}, decl{sig: "texticnlike" + args, fn: likeFunc(true, false, true)},
			decl{sig: "texticregexeq" + args, fn: regexFunc(true, false)}, decl{sig: "texticregexne" + args, fn: regexFunc(true, true)})
	}
	for i, suffix := range []string{"lt", "le", "gt", "ge"} {
		out = append(out, decl{sig: "citext_pattern_" + suffix + "(citext,citext) bool", fn: citextComparison(comparisons[2+i])})
	}
	out = append(out, decl{sig: "citext_pattern_cmp(citext,citext) int4", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Int(int64(types.Compare(a, b, types.TCitext))), nil
	})})
	return append(out, comparisonFuncs("citext_", "citext", "citext_cmp")...)
}

func citextSets() []setDecl {
	split := func(env *Env, a []types.Datum) (SetRows, error) { return openRegexSplit(env, withoutCase(a, 2)) }
	matches := func(env *Env, a []types.Datum) (SetRows, error) { return openRegexMatches(env, withoutCase(a, 2)) }
	return []setDecl{
		{sig: "regexp_split_to_table(citext,citext) text", estimate: 1000, open: opens(split)},
		{sig: "regexp_split_to_table(citext,citext,text) text", estimate: 1000, open: opens(split)},
		{sig: "regexp_matches(citext,citext) text[]", estimate: 1, open: opens(matches)},
		{sig: "regexp_matches(citext,citext,text) text[]", estimate: 1, open: opens(matches)},
	}
}

func citextAggs() []aggDecl {
	extremes := func(sign int) func(o *Overload) func() Accumulator {
		return func(o *Overload) func() Accumulator {
			return func() Accumulator { return &extreme{t: o.Args[0], sign: sign} }
		}
	}
	return []aggDecl{{sig: "min(citext) citext", flags: aggMin, make: extremes(-1)}, {sig: "max(citext) citext", flags: aggMax, make: extremes(1)}}
}

// citextCasts declares the casts. Those to and from text change nothing, but are functions here, since values of the two compare differently.
func citextCasts() []typeCast {
	same := fn1(func(a types.Datum) (types.Datum, error) { return a, nil })
	return []typeCast{
		{from: "citext", to: "text", context: Implicit, fn: same, binary: true}, {from: "citext", to: "varchar", context: Implicit, fn: same, binary: true},
		{from: "citext", to: "bpchar", context: Assignment, fn: same, binary: true},
		{from: "text", to: "citext", context: Assignment, fn: same, binary: true}, {from: "varchar", to: "citext", context: Assignment, fn: same, binary: true},
		{from: "bpchar", to: "citext", context: Assignment, fn: bpcharCitext, unnamed: true},
		{from: "bool", to: "citext", context: Assignment, fn: boolCitext, unnamed: true},
		{from: "inet", to: "citext", context: Assignment, fn: inetCitext, unnamed: true},
	}
}

func bpcharCitext(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bytes(types.TrimBPChar(a[0].Bytes())), nil
}

func boolCitext(env *Env, a []types.Datum) (types.Datum, error) {
	return types.Bytes(appendAsText(nil, env, a[0], types.TBool)), nil
}

var inetCitext = inetText(func(n types.Inet) []byte { return n.Append(nil, true) })

// citextExtreme returns the larger (sign 1) or smaller of two values, of equal ones the second.
func citextExtreme(sign int) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		if types.Compare(a, b, types.TCitext)*sign > 0 {
			return a, nil
		}
		return b, nil
	})
}

// ignoringCase returns a function of regular expressions that ignores case, unless its flags, argument i, contain c.
func ignoringCase(f Func, i int) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) { return f(env, withoutCase(a, i)) }
}

func withoutCase(a []types.Datum, i int) []types.Datum {
	flags := ""
	if len(a) > i {
		if flags = a[i].Text(); strings.Contains(flags, "c") {
			return a
		}
	}
	return append(append(make([]types.Datum, 0, i+1), a[:i]...), types.Text(flags+"i"))
}

func citextPosition(env *Env, a []types.Datum) (types.Datum, error) {
	s, err := lowered(env, a[0])
	if err != nil {
		return types.Null, err
	}
	sub, err := lowered(env, a[1])
	if err != nil {
		return types.Null, err
	}
	return position(env, []types.Datum{s, sub})
}

func lowered(env *Env, d types.Datum) (types.Datum, error) {
	return mapPieces(env, d.Text(), 8, types.FoldLower)
}

// literalPattern returns the regular expression that matches a text.
func literalPattern(env *Env, text types.Datum) (types.Datum, error) {
	return regexpReplace(env, []types.Datum{text, types.Text("([^a-zA-Z_0-9])"), types.Text(`\\\1`), types.Text("g")})
}

func citextReplace(env *Env, a []types.Datum) (types.Datum, error) {
	pattern, err := literalPattern(env, a[1])
	if err != nil {
		return types.Null, err
	}
	return regexpReplace(env, []types.Datum{a[0], pattern, a[2], types.Text("gi")})
}

// citextSplitPart returns NULL for a part that there is not, as PostgreSQL's function does.
func citextSplitPart(env *Env, a []types.Datum) (types.Datum, error) {
	pattern, err := literalPattern(env, a[1])
	if err != nil {
		return types.Null, err
	}
	parts, err := regexSplit(env, "regexp_split_to_array()", []types.Datum{a[0], pattern, types.Text("i")})
	if n := a[2].Int(); err != nil || n < 1 || n > int64(len(parts)) {
		return types.Null, err
	}
	return parts[a[2].Int()-1], nil
}

func citextTranslate(env *Env, a []types.Datum) (types.Datum, error) {
	s := a[0]
	for _, convert := range []func(string) string{types.FoldLower, foldUpper} {
		from, err := mapPieces(env, a[1].Text(), 8, convert)
		if err != nil {
			return types.Null, err
		}
		if s, err = translate(env, []types.Datum{s, from, a[2]}); err != nil {
			return types.Null, err
		}
	}
	return s, nil
}
