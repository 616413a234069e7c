package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The extension ltree: paths of labels and what they are matched with.

// pathTest reports whether a path has a relation to what stands on the other side of an operator.
type pathTest func(env *Env, path, other types.Datum) (bool, error)

func pathAbove(_ *Env, path, other types.Datum) (bool, error) {
	return types.LtreeAncestor(path, other), nil
}

func pathBelow(_ *Env, path, other types.Datum) (bool, error) {
	return types.LtreeAncestor(other, path), nil
}

func pathLikes(env *Env, path, pattern types.Datum) (bool, error) {
	q, err := types.NewLquery(pattern)
	if err != nil {
		return false, err
	}
	return q.Matches(types.LtreeLabels(path), env.Step)
}

func pathLikesAny(env *Env, path, patterns types.Datum) (bool, error) {
	a, err := pathArray(patterns)
	if err != nil {
		return false, err
	}
	for _, pattern := range a {
		if yes, err := pathLikes(env, path, pattern); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

func pathFulfils(env *Env, path, condition types.Datum) (bool, error) {
	q, err := types.NewLtxtquery(condition)
	if err != nil {
		return false, err
	}
	return q.Matches(types.LtreeLabels(path), env.Step)
}

// pathArray returns the elements of an array, which has one dimension and no NULLs.
func pathArray(d types.Datum) ([]types.Datum, error) {
	a := d.Array()
	switch {
	case a.NDims() > 1:
		return nil, pgerror.New("2202E", "array must be one-dimensional")
	case slices.ContainsFunc(a.Elems, types.Datum.IsNull):
		return nil, pgerror.New(pgerror.NullValueNotAllowed, "array must not contain nulls")
	}
	return a.Elems, nil
}

// of declares a test with the path as argument i.
func (f pathTest) of(i int) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		yes, err := f(env, a[i], a[1-i])
		return types.Bool(yes), err
	}
}

// any declares a test of the paths in the array that is argument i.
func (f pathTest) any(i int) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		path, err := f.first(env, a[i], a[1-i])
		return types.Bool(!path.IsNull()), err
	}
}

// first returns the first path of an array for which the test holds, NULL if there is none.
func (f pathTest) first(env *Env, paths, other types.Datum) (types.Datum, error) {
	list, err := pathArray(paths)
	if err != nil {
		return types.Null, err
	}
	for _, path := range list {
		if err := env.Step(1); err != nil {
			return types.Null, err
		}
		if yes, err := f(env, path, other); yes || err != nil {
			return path, err
		}
	}
	return types.Null, nil
}

// ltreeOperators are the tests with their operators, from the path's side and from the other one, and the functions behind these. Those that begin
// with ^ do not use indexes in PostgreSQL.
var ltreeOperators = []struct {
	f                  pathTest
	op, swapped, other string
	fn, swappedFn      string
	anyFn, swappedAny  string
	extract, extractFn string
}{
	{pathAbove, "@>", "", "ltree", "ltree_isparent", "", "_ltree_isparent", "_ltree_r_isparent", "?@>", "_ltree_extract_isparent"},
	{pathBelow, "<@", "", "ltree", "ltree_risparent", "", "_ltree_risparent", "_ltree_r_risparent", "?<@", "_ltree_extract_risparent"},
	{pathLikes, "~", "~", "lquery", "ltq_regex", "ltq_rregex", "_ltq_regex", "_ltq_rregex", "?~", "_ltq_extract_regex"},
	{pathLikesAny, "?", "?", "lquery[]", "lt_q_regex", "lt_q_rregex", "_lt_q_regex", "_lt_q_rregex", "", ""},
	{pathFulfils, "@", "@", "ltxtquery", "ltxtq_exec", "ltxtq_rexec", "_ltxtq_exec", "_ltxtq_rexec", "?@", "_ltxtq_extract_exec"},
}

// ltreeSwapped are the operators of arrays from the other side.
var ltreeSwapped = map[string]string{"@>": "<@", "<@": "@>", "~": "~", "?": "?", "@": "@"}

func ltreeOps() []decl {
	out := []decl{
		{sig: "||(ltree,ltree) ltree", fn: ltreeConcat}, {sig: "||(ltree,text) ltree", fn: ltreeConcat}, {sig: "||(text,ltree) ltree", fn: ltreeConcat},
	}
	for _, c := range comparisons {
		out = append(out, decl{sig: c.op + "(ltree,ltree) bool", fn: ltreeComparison(c)})
	}
	for _, o := range ltreeOperators {
		for _, prefix := range []string{"", "^"} {
			out = append(out, decl{sig: prefix + o.op + "(ltree," + o.other + ") bool", fn: o.f.of(0)},
				decl{sig: prefix + o.op + "(ltree[]," + o.other + ") bool", fn: o.f.any(0)},
				decl{sig: prefix + ltreeSwapped[o.op] + "(" + o.other + ",ltree[]) bool", fn: o.f.any(1)})
			if o.swapped != "" {
				out = append(out, decl{sig: prefix + o.swapped + "(" + o.other + ",ltree) bool", fn: o.f.of(1)})
			}
		}
		if o.extract != "" {
			out = append(out, decl{sig: o.extract + "(ltree[]," + o.other + ") ltree", fn: ltreeExtract(o.f)})
		}
	}
	return out
}

func ltreeExtract(f pathTest) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) { return f.first(env, a[0], a[1]) }
}

func ltreeComparison(c comparison) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bool(c.test(types.Compare(a, b, types.TLtree))), nil
	})
}

func ltreeFuncs() []decl {
	out := []decl{
		{sig: "nlevel(ltree) int4", fn: fn1(func(a types.Datum) (types.Datum, error) { return types.Int(int64(types.LtreeLevels(a))), nil })},
		{sig: "subltree(ltree,int4,int4) ltree", fn: subltree}, {sig: "subpath(ltree,int4,int4) ltree", fn: subpath}, {sig: "subpath(ltree,int4) ltree", fn: subpath},
		{sig: "index(ltree,ltree) int4", fn: ltreeIndex}, {sig: "index(ltree,ltree,int4) int4", fn: ltreeIndex},
		{sig: "ltree2text(ltree) text", fn: fn1(func(a types.Datum) (types.Datum, error) { return a, nil })},
		{sig: "text2ltree(text) ltree", fn: fn1(func(a types.Datum) (types.Datum, error) {
			path, err := types.ParseLtree(a.Text())
			return types.Text(path), err
		})},
		{sig: "lca(ltree[]) ltree", fn: fn1(func(a types.Datum) (types.Datum, error) {
			list, err := pathArray(a)
			return commonAncestor(list), err
		})},
		{sig: "ltree_cmp(ltree,ltree) int4", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Int(int64(types.Compare(a, b, types.TLtree))), nil
		})},
		{sig: "ltree_addltree(ltree,ltree) ltree", fn: ltreeConcat}, {sig: "ltree_addtext(ltree,text) ltree", fn: ltreeConcat},
		{sig: "ltree_textadd(text,ltree) ltree", fn: ltreeConcat},
	}
	for n := 2; n <= 8; n++ {
		out = append(out, decl{sig: "lca(" + strings.Repeat("ltree,", n-1) + "ltree) ltree", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return commonAncestor(a), nil
		}})
	}
	for i, suffix := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		out = append(out, decl{sig: "ltree_" + suffix + "(ltree,ltree) bool", fn: ltreeComparison(comparisons[i])})
	}
	for _, o := range ltreeOperators {
		out = append(out, decl{sig: o.fn + "(ltree," + o.other + ") bool", fn: o.f.of(0)},
			decl{sig: o.anyFn + "(ltree[]," + o.other + ") bool", fn: o.f.any(0)}, decl{sig: o.swappedAny + "(" + o.other + ",ltree[]) bool", fn: o.f.any(1)})
		if o.swappedFn != "" {
			out = append(out, decl{sig: o.swappedFn + "(" + o.other + ",ltree) bool", fn: o.f.of(1)})
		}
		if o.extractFn != "" {
			out = append(out, decl{sig: o.extractFn + "(ltree[]," + o.other + ") ltree", fn: ltreeExtract(o.f)})
		}
	}
	return out
}

// ltreeConcat joins paths; a text is read as one.
func ltreeConcat(_ *Env, a []types.Datum) (types.Datum, error) {
	var labels []string
	for _, d := range a {
		text, err := types.ParseLtree(d.Text())
		if err != nil {
			return types.Null, err
		}
		labels = append(labels, types.LtreeLabels(types.Text(text))...)
	}
	return types.Ltree(labels)
}

// cutPath returns the labels from one place up to another.
func cutPath(labels []string, from, to int) (types.Datum, error) {
	if from < 0 || to < 0 || from >= len(labels) || from > to {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid positions")
	}
	return types.Ltree(labels[from:min(to, len(labels))])
}

func subltree(_ *Env, a []types.Datum) (types.Datum, error) {
	return cutPath(types.LtreeLabels(a[0]), int(a[1].Int()), int(a[2].Int()))
}

// subpath takes places from the end if they are negative, and without a length all the rest.
func subpath(_ *Env, a []types.Datum) (types.Datum, error) {
	labels := types.LtreeLabels(a[0])
	from := int(a[1].Int())
	if from < 0 {
		from += len(labels)
	}
	if len(a) == 2 {
		return cutPath(labels, from, len(labels))
	}
	n := int(a[2].Int())
	if n < 0 {
		return cutPath(labels, from, len(labels)+n)
	}
	return cutPath(labels, from, from+n)
}

// ltreeIndex returns the place of a path in another one, -1 if there is none.
func ltreeIndex(env *Env, a []types.Datum) (types.Datum, error) {
	labels, sought := types.LtreeLabels(a[0]), types.LtreeLabels(a[1])
	from := 0
	if len(a) == 3 {
		if from = int(a[2].Int()); from < 0 {
			from = max(from+len(labels), 0)
		}
	}
	if len(sought) > 0 {
		for ; from+len(sought) <= len(labels); from++ {
			if err := env.Step(len(sought)); err != nil {
				return types.Null, err
			}
			if slices.Equal(labels[from:from+len(sought)], sought) {
				return types.Int(int64(from)), nil
			}
		}
	}
	return types.Int(-1), nil
}

// commonAncestor returns the longest path that is above all of the paths, NULL if one is empty or there are none.
func commonAncestor(paths []types.Datum) types.Datum {
	var common []string
	for i, path := range paths {
		labels := types.LtreeLabels(path)
		if len(labels) == 0 {
			return types.Null
		}
		labels = labels[:len(labels)-1]
		if i == 0 {
			common = labels
		}
		n := 0
		for n < len(common) && n < len(labels) && common[n] == labels[n] {
			n++
		}
		common = common[:n]
	}
	if len(paths) == 0 {
		return types.Null
	}
	return types.Text(strings.Join(common, "."))
}
