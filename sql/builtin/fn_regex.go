package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func regexFuncs() []decl {
	return []decl{
		{sig: "regexp_match(text,text) text[]", fn: regexpMatch}, {sig: "regexp_match(text,text,text) text[]", fn: regexpMatch},
		{sig: "regexp_replace(text,text,text) text", fn: regexpReplace},
		{sig: "regexp_replace(text,text,text,text) text", fn: regexpReplace},
		{sig: "regexp_replace(text,text,text,int4) text", fn: regexpReplaceN},
		{sig: "regexp_replace(text,text,text,int4,int4) text", fn: regexpReplaceN},
		{sig: "regexp_replace(text,text,text,int4,int4,text) text", fn: regexpReplaceN},
		{sig: "regexp_split_to_array(text,text) text[]", fn: regexpSplitToArray},
		{sig: "regexp_split_to_array(text,text,text) text[]", fn: regexpSplitToArray},
		{sig: "regexp_like(text,text) bool", fn: regexpLike}, {sig: "regexp_like(text,text,text) bool", fn: regexpLike},
		{sig: "regexp_count(text,text) int4", fn: regexpCount}, {sig: "regexp_count(text,text,int4) int4", fn: regexpCount},
		{sig: "regexp_count(text,text,int4,text) int4", fn: regexpCount},
		{sig: "regexp_substr(text,text) text", fn: regexpSubstr}, {sig: "regexp_substr(text,text,int4) text", fn: regexpSubstr},
		{sig: "regexp_substr(text,text,int4,int4) text", fn: regexpSubstr},
		{sig: "regexp_substr(text,text,int4,int4,text) text", fn: regexpSubstr},
		{sig: "regexp_substr(text,text,int4,int4,text,int4) text", fn: regexpSubstr},
		{sig: "regexp_instr(text,text) int4", fn: regexpInstr}, {sig: "regexp_instr(text,text,int4) int4", fn: regexpInstr},
		{sig: "regexp_instr(text,text,int4,int4) int4", fn: regexpInstr},
		{sig: "regexp_instr(text,text,int4,int4,int4) int4", fn: regexpInstr},
		{sig: "regexp_instr(text,text,int4,int4,int4,text) int4", fn: regexpInstr},
		{sig: "regexp_instr(text,text,int4,int4,int4,text,int4) int4", fn: regexpInstr},
		{sig: "substring(text,text) text", fn: substringRegex},
		{sig: "substring(text,text,text) text", fn: substringSimilar},
		{sig: "similar_to_escape(text) text", fn: similarToEscape}, {sig: "similar_to_escape(text,text) text", fn: similarToEscape},
	}
}

// regexArgs reads the flags in argument i, if there is one.
func regexArgs(a []types.Datum, i int) (regexOptions, error) {
	if len(a) <= i {
		return regexOptions{}, nil
	}
	return parseRegexOptions(a[i].Text())
}

func errNoGlobal(fn string) *pgerror.Error {
	return pgerror.New(pgerror.InvalidParameterValue, "%s does not support the \"global\" option", fn)
}

// matchArray returns regexp_match's array: the groups, or the whole match if there are none.
func matchArray(s string, m []int) types.Datum {
	elems := make([]types.Datum, 0, len(m)/2)
	for i := 2; i < len(m); i += 2 {
		elems = append(elems, group(s, m, i/2))
	}
	if len(m) == 2 {
		elems = append(elems, group(s, m, 0))
	}
	return types.NewArray(&types.Array{Elem: types.TText, Elems: elems})
}

// group returns a group's text, NULL if it is not part of the match.
func group(s string, m []int, i int) types.Datum {
	if m[2*i] < 0 {
		return types.Null
	}
	return types.Text(s[m[2*i]:m[2*i+1]])
}

func regexpMatch(env *Env, a []types.Datum) (types.Datum, error) {
	o, err := regexArgs(a, 2)
	if err != nil {
		return types.Null, err
	}
	if o.global {
		return types.Null, errNoGlobal("regexp_match()").WithHint("Use the regexp_matches function instead.")
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return types.Null, err
	}
	s := a[0].Text()
	m, err := re.find(env, s)
	if m == nil || err != nil {
		return types.Null, err
	}
	return matchArray(s, m), nil
}

func regexpReplace(env *Env, a []types.Datum) (types.Datum, error) {
	if len(a) == 4 {
		if f := a[3].Text(); f != "" && isDigit(f[0]) {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid regular expression option: \"%s\"", f[:1]).
				WithHint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
		}
	}
	o, err := regexArgs(a, 3)
	if err != nil {
		return types.Null, err
	}
	n := 1
	if o.global {
		n = 0
	}
	return replaceRegex(env, a, o, 0, n)
}

func errParameter(name string, v int64) error {
	return pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter \"%s\": %d", name, v)
}

// regexpReplaceN implements regexp_replace(string, pattern, replacement, start, N, flags).
func regexpReplaceN(env *Env, a []types.Datum) (types.Datum, error) {
	n := int64(1)
	if a[3].Int() <= 0 {
		return types.Null, errParameter("start", a[3].Int())
	}
	if len(a) > 4 {
		if n = a[4].Int(); n < 0 {
			return types.Null, errParameter("n", n)
		}
	}
	o, err := regexArgs(a, 5)
	if err != nil {
		return types.Null, err
	}
	if o.global && len(a) <= 4 {
		n = 0
	}
	offset, err := startOffset(env, a[0].Text(), a[3].Int())
	if err != nil {
		return types.Null, err
	}
	return replaceRegex(env, a, o, offset, int(n))
}

// startOffset returns the byte at which character start (from 1) begins, beyond s if s has fewer characters.
func startOffset(env *Env, s string, start int64) (int, error) {
	count, err := runeCount(env, s)
	if err != nil || start-1 > int64(count) {
		return len(s) + 1, err
	}
	return charOffset(env, s, start-1)
}

// replaceRegex replaces the n-th match from an offset, or all if n is 0.
func replaceRegex(env *Env, a []types.Datum, o regexOptions, offset, n int) (types.Datum, error) {
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return types.Null, err
	}
	s, with := a[0].Text(), a[2].Text()
	out := valueBuilder{env: env}
	done, count := 0, 0
	err = re.each(env, s, offset, func(m []int) (bool, error) {
		if count++; n != 0 && count != n {
			return true, nil
		}
		if err := out.grow(m[0] - done + replacementSize(with, m)); err != nil {
			return false, err
		}
		out.b = append(out.b, s[done:m[0]]...)
		out.b = appendReplacement(out.b, with, s, m)
		done = m[1]
		return n == 0, nil
	})
	if err != nil {
		return types.Null, err
	}
	if done == 0 && out.b == nil {
		return a[0], nil
	}
	if err := out.grow(len(s) - done); err != nil {
		return types.Null, err
	}
	return types.Bytes(append(out.b, s[done:]...)), nil
}

// replacementSize bounds what appendReplacement appends.
func replacementSize(with string, m []int) int {
	if strings.IndexByte(with, '\\') < 0 {
		return len(with)
	}
	return len(with) + strings.Count(with, `\`)*(m[1]-m[0])
}

// appendReplacement expands \1 … \9, \& and \\.
func appendReplacement(b []byte, with, s string, m []int) []byte {
	for i := 0; i < len(with); i++ {
		c := with[i]
		if c != '\\' || i+1 == len(with) {
			b = append(b, c)
			continue
		}
		i++
		switch e := with[i]; {
		case e >= '1' && e <= '9':
			if g := int(e - '0'); 2*g < len(m) && m[2*g] >= 0 {
				b = append(b, s[m[2*g]:m[2*g+1]]...)
			}
		case e == '&':
			b = append(b, s[m[0]:m[1]]...)
		case e == '\\':
			b = append(b, '\\')
		default:
			b = append(b, '\\', e)
		}
	}
	return b
}

// regexSplit splits a string at matches, except at empty ones at its ends or after a match.
func regexSplit(env *Env, fn string, a []types.Datum) ([]types.Datum, error) {
	o, err := regexArgs(a, 2)
	if err != nil {
		return nil, err
	}
	if o.global {
		return nil, errNoGlobal(fn)
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return nil, err
	}
	s := a[0].Text()
	var out []types.Datum
	last := 0
	err = re.each(env, s, 0, func(m []int) (bool, error) {
		if m[0] >= len(s) || m[1] <= last {
			return true, nil
		}
		if err := env.reserveElements(len(out)); err != nil {
			return false, err
		}
		out = append(out, types.Text(s[last:m[0]]))
		last = m[1]
		return true, nil
	})
	return append(out, types.Text(s[last:])), err
}

func regexpSplitToArray(env *Env, a []types.Datum) (types.Datum, error) {
	elems, err := regexSplit(env, "regexp_split_to_array()", a)
	return types.NewArray(&types.Array{Elem: types.TText, Elems: elems}), err
}

func regexpLike(env *Env, a []types.Datum) (types.Datum, error) {
	o, err := regexArgs(a, 2)
	if err != nil {
		return types.Null, err
	}
	if o.global {
		return types.Null, errNoGlobal("regexp_like()")
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return types.Null, err
	}
	ok, err := re.matches(env, a[0].Text())
	return types.Bool(ok), err
}

func regexpCount(env *Env, a []types.Datum) (types.Datum, error) {
	offset := 0
	if len(a) > 2 {
		if a[2].Int() <= 0 {
			return types.Null, errParameter("start", a[2].Int())
		}
		var err error
		if offset, err = startOffset(env, a[0].Text(), a[2].Int()); err != nil {
			return types.Null, err
		}
	}
	o, err := regexArgs(a, 3)
	if err != nil {
		return types.Null, err
	}
	if o.global {
		return types.Null, errNoGlobal("regexp_count()")
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return types.Null, err
	}
	n := int64(0)
	err = re.each(env, a[0].Text(), offset, func([]int) (bool, error) {
		n++
		return true, nil
	})
	return types.Int(n), err
}

// matchArgs are the arguments after string and pattern of regexp_substr and regexp_instr, checked in
// their order.
type matchArgs struct{ start, n, end, sub int64 }

func readMatchArgs(a []types.Datum, endAt, subAt int) (m matchArgs, err error) {
	m = matchArgs{start: 1, n: 1}
	if len(a) > 2 {
		if m.start = a[2].Int(); m.start <= 0 {
			return m, errParameter("start", m.start)
		}
	}
	if len(a) > 3 {
		if m.n = a[3].Int(); m.n <= 0 {
			return m, errParameter("n", m.n)
		}
	}
	if endAt > 0 && len(a) > endAt {
		if m.end = a[endAt].Int(); m.end != 0 && m.end != 1 {
			return m, errParameter("endoption", m.end)
		}
	}
	if len(a) > subAt {
		if m.sub = a[subAt].Int(); m.sub < 0 {
			return m, errParameter("subexpr", m.sub)
		}
	}
	return m, nil
}

// nthMatch finds the match that the arguments select, with flags in argument flagsAt; nil if there is none or it has no
// such group.
func nthMatch(env *Env, fn string, a []types.Datum, m matchArgs, flagsAt int) ([]int, error) {
	o, err := regexArgs(a, flagsAt)
	if err != nil {
		return nil, err
	}
	if o.global {
		return nil, errNoGlobal(fn)
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return nil, err
	}
	var found []int
	count := int64(0)
	offset, err := startOffset(env, a[0].Text(), m.start)
	if err != nil {
		return nil, err
	}
	err = re.each(env, a[0].Text(), offset, func(match []int) (bool, error) {
		if count++; count < m.n {
			return true, nil
		}
		found = match
		return false, nil
	})
	if err != nil || 2*m.sub >= int64(len(found)) {
		return nil, err
	}
	return found, nil
}

func regexpSubstr(env *Env, a []types.Datum) (types.Datum, error) {
	args, err := readMatchArgs(a, 0, 5)
	if err != nil {
		return types.Null, err
	}
	m, err := nthMatch(env, "regexp_substr()", a, args, 4)
	if err != nil || m == nil {
		return types.Null, err
	}
	return group(a[0].Text(), m, int(args.sub)), nil
}

func regexpInstr(env *Env, a []types.Datum) (types.Datum, error) {
	args, err := readMatchArgs(a, 4, 6)
	if err != nil {
		return types.Null, err
	}
	m, err := nthMatch(env, "regexp_instr()", a, args, 5)
	if err != nil {
		return types.Null, err
	}
	if m == nil || m[2*args.sub] < 0 {
		return types.Int(0), nil
	}
	n, err := runeCount(env, a[0].Text()[:m[2*args.sub+args.end]])
	return types.Int(int64(n + 1)), err
}

// substringRegex returns the first group, or the whole match if the pattern has none.
func substringRegex(env *Env, a []types.Datum) (types.Datum, error) {
	re, err := env.patterns.regex(env, a[1].Text(), regexOptions{})
	if err != nil {
		return types.Null, err
	}
	s := a[0].Text()
	m, err := re.find(env, s)
	switch {
	case m == nil || err != nil:
		return types.Null, err
	case len(m) > 2:
		return group(s, m, 1), nil
	}
	return group(s, m, 0), nil
}

// substringSimilar implements substring(s from pattern for escape).
func substringSimilar(env *Env, a []types.Datum) (types.Datum, error) {
	if len(a[1].Text()) > maxPatternBytes {
		return types.Null, badRegex("regular expression is too complex")
	}
	pattern, err := SimilarToRegex(a[1].Text(), a[2].Text())
	if err != nil {
		return types.Null, err
	}
	return substringRegex(env, []types.Datum{a[0], types.Text(pattern)})
}

func similarToEscape(_ *Env, a []types.Datum) (types.Datum, error) {
	if len(a[0].Text()) > maxPatternBytes {
		return types.Null, badRegex("regular expression is too complex")
	}
	escape := `\`
	if len(a) == 2 {
		escape = a[1].Text()
	}
	s, err := SimilarToRegex(a[0].Text(), strings.Clone(escape))
	return types.Text(s), err
}
