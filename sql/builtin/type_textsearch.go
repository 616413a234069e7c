package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// textSearchOps declares the operators of tsvector and tsquery, or with names the functions behind them.
func textSearchOps(names bool) []decl {
	var out []decl
	add := func(op, name, sig string, f Func) {
		if names {
			op = name
		}
		out = append(out, decl{sig: op + sig, fn: f})
	}
	matches := fn2(func(v, q types.Datum) (types.Datum, error) { return types.Bool(v.TSVector().Matches(q.TSQuery())), nil })
	flipped := fn2(func(q, v types.Datum) (types.Datum, error) { return types.Bool(v.TSVector().Matches(q.TSQuery())), nil })
	for _, op := range []string{"@@", "@@@"} {
		if op == "@@" || !names {
			add(op, "ts_match_vq", "(tsvector,tsquery) bool", matches)
			add(op, "ts_match_qv", "(tsquery,tsvector) bool", flipped)
		}
	}
	add("||", "tsvector_concat", "(tsvector,tsvector) tsvector", fn2(func(a, b types.Datum) (types.Datum, error) {
		return vectorDatum(a.TSVector().Concat(b.TSVector()))
	}))
	join := func(op tsearch.Op) Func {
		return fn2(func(a, b types.Datum) (types.Datum, error) { return joinQueries(op, 1, a, b) })
	}
	add("&&", "tsquery_and", "(tsquery,tsquery) tsquery", join(tsearch.And))
	add("||", "tsquery_or", "(tsquery,tsquery) tsquery", join(tsearch.Or))
	add("<->", "tsquery_phrase", "(tsquery,tsquery) tsquery", join(tsearch.Phrase))
	add("!!", "tsquery_not", "(tsquery) tsquery", fn1(func(a types.Datum) (types.Datum, error) {
		q := a.TSQuery()
		if q.Root == nil {
			return a, nil
		}
		return queryDatum(&tsearch.Query{Root: tsearch.Join(tsearch.Not, 0, nil, q.Root)})
	}))
	add("@>", "tsq_mcontains", "(tsquery,tsquery) bool", fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bool(a.TSQuery().Contains(b.TSQuery())), nil
	}))
	add("<@", "tsq_mcontained", "(tsquery,tsquery) bool", fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bool(b.TSQuery().Contains(a.TSQuery())), nil
	}))
	return out
}

func vectorDatum(v tsearch.Vector, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return types.TSVector(v), nil
}

// queryDatum checks a query that was put together.
func queryDatum(q *tsearch.Query) (types.Datum, error) {
	if err := q.Check(); err != nil {
		return types.Null, err
	}
	return types.TSQuery(q), nil
}

// joinQueries joins two queries; an empty one leaves the other.
func joinQueries(op tsearch.Op, distance int, a, b types.Datum) (types.Datum, error) {
	if distance < 0 || distance > tsearch.MaxDistance {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue,
			"distance in phrase operator must be an integer value between zero and %d inclusive", tsearch.MaxDistance)
	}
	p, q := a.TSQuery(), b.TSQuery()
	switch {
	case p.Root == nil:
		return b, nil
	case q.Root == nil:
		return a, nil
	case op != tsearch.Phrase:
		distance = 0
	}
	return queryDatum(&tsearch.Query{Root: tsearch.Join(op, distance, p.Root, q.Root)})
}

func textSearchFuncs() []decl {
	out := append(textSearchOps(true), comparisonFuncs("tsvector_", "tsvector", "tsvector_cmp")...)
	out = append(out, comparisonFuncs("tsquery_", "tsquery", "tsquery_cmp")...)
	out = append(out,
		decl{sig: "tsquery_phrase(tsquery,tsquery,int4) tsquery", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return joinQueries(tsearch.Phrase, int(a[2].Int()), a[0], a[1])
		}},
		decl{sig: `setweight(tsvector,char) tsvector`, fn: setWeight},
		decl{sig: `setweight(tsvector,char,text[]) tsvector`, fn: setWeight},
		decl{sig: "strip(tsvector) tsvector", fn: fn1(func(a types.Datum) (types.Datum, error) {
			v := a.TSVector()
			v.Strip()
			return types.TSVector(v), nil
		})},
		decl{sig: "length(tsvector) int4", fn: fn1(func(a types.Datum) (types.Datum, error) {
			return types.Int(int64(tsearch.CountLexemes(a.Bytes()))), nil
		})},
		decl{sig: "array_to_tsvector(text[]) tsvector", fn: fn1(arrayToVector)},
		decl{sig: "tsvector_to_array(tsvector) text[]", fn: fn1(func(a types.Datum) (types.Datum, error) {
			v := a.TSVector()
			words := make([]types.Datum, len(v))
			for i := range v {
				words[i] = types.Text(v[i].Word)
			}
			return types.NewArray(&types.Array{Elem: types.TText, Elems: words}), nil
		})},
		decl{sig: "ts_delete(tsvector,text) tsvector", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.TSVector(a.TSVector().Delete(map[string]bool{b.Text(): true})), nil
		})},
		decl{sig: "ts_delete(tsvector,text[]) tsvector", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.TSVector(a.TSVector().Delete(wordSet(b))), nil
		})},
		decl{sig: `ts_filter(tsvector,char[]) tsvector`, fn: fn2(filterVector)},
		decl{sig: "numnode(tsquery) int4", fn: fn1(func(a types.Datum) (types.Datum, error) {
			return types.Int(int64(a.TSQuery().Nodes())), nil
		})},
		decl{sig: "querytree(tsquery) text", fn: fn1(queryTree)},
		decl{sig: "ts_rewrite(tsquery,tsquery,tsquery) tsquery", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return queryDatum(a[0].TSQuery().Rewrite(a[1].TSQuery(), a[2].TSQuery()))
		}},
		decl{sig: "ts_rewrite(tsquery,text) tsquery", flags: volatile, fn: rewriteByQuery},
	)
	return append(out, rankFuncs()...)
}

// weightOf returns the number of a weight's letter.
func weightOf(c byte) (int, bool) {
	if c |= 0x20; c >= 'a' && c <= 'd' {
		return int('d' - c), true
	}
	return 0, false
}

func setWeight(_ *Env, a []types.Datum) (types.Datum, error) {
	var c byte
	if b := a[1].Bytes(); len(b) > 0 {
		c = b[0]
	}
	w, ok := weightOf(c)
	if !ok {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "unrecognized weight: %d", int8(c))
	}
	var words map[string]bool
	if len(a) > 2 {
		words = wordSet(a[2])
	}
	v := a[0].TSVector()
	v.SetWeight(w, words)
	return types.TSVector(v), nil
}

// wordSet is the set of an array's words; it ignores NULLs.
func wordSet(d types.Datum) map[string]bool {
	words := map[string]bool{}
	for _, e := range d.Array().Elems {
		if !e.IsNull() {
			words[e.Text()] = true
		}
	}
	return words
}

func arrayToVector(a types.Datum) (types.Datum, error) {
	var list []tsearch.Lexeme
	for _, e := range a.Array().Elems {
		switch {
		case e.IsNull():
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "lexeme array may not contain nulls")
		case len(e.Bytes()) == 0:
			return types.Null, pgerror.New(pgerror.ZeroLengthCharacterString, "lexeme array may not contain empty strings")
		case len(e.Bytes()) > tsearch.MaxWord:
			return types.Null, pgerror.New(pgerror.ProgramLimitExceeded, "word is too long (%d bytes, max %d bytes)", len(e.Bytes()), tsearch.MaxWord)
		}
		list = append(list, tsearch.Lexeme{Word: e.Text()})
	}
	return vectorDatum(tsearch.NewVector(list))
}

func filterVector(a, weights types.Datum) (types.Datum, error) {
	mask := 0
	for _, e := range weights.Array().Elems {
		if e.IsNull() {
			return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "weight array may not contain nulls")
		}
		w, ok := 0, false
		if len(e.Bytes()) > 0 {
			w, ok = weightOf(e.Bytes()[0])
		}
		if !ok {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "unrecognized weight: \"%s\"", strings.ToValidUTF8(e.Text(), "?"))
		}
		mask |= 1 << w
	}
	return types.TSVector(a.TSVector().Filter(mask)), nil
}

func queryTree(a types.Datum) (types.Datum, error) {
	q := a.TSQuery()
	if q.Root == nil {
		return types.Text(""), nil
	}
	root := q.Root.WithoutNot()
	if root == nil {
		return types.Text("T"), nil
	}
	return types.Bytes((&tsearch.Query{Root: root}).AppendText(nil)), nil
}

// rankFuncs declares ts_rank and ts_rank_cd: with weights before their arguments, and normalization after them, or without.
func rankFuncs() []decl {
	var out []decl
	for _, cover := range []bool{false, true} {
		name := "ts_rank"
		if cover {
			name = "ts_rank_cd"
		}
		for _, weighted := range []bool{false, true} {
			for _, normalized := range []bool{false, true} {
				args := "tsvector,tsquery"
				if weighted {
					args = "float4[]," + args
				}
				if normalized {
					args += ",int4"
				}
				out = append(out, decl{sig: name + "(" + args + ") float4", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
					weights := tsearch.DefaultWeights
					if weighted {
						if err := rankWeights(&weights, a[0].Array()); err != nil {
							return types.Null, err
						}
						a = a[1:]
					}
					normalize := 0
					if normalized {
						normalize = int(a[2].Int())
					}
					return rank(env, cover, weights, a[0].TSVector(), a[1].TSQuery(), normalize)
				}})
			}
		}
	}
	return out
}

func rank(env *Env, cover bool, weights [4]float32, v tsearch.Vector, q *tsearch.Query, normalize int) (types.Datum, error) {
	if !cover {
		return types.Float(float64(v.Rank(weights, q, normalize))), nil
	}
	r, err := v.RankCoverDensity(weights, q, normalize, func() error { return env.Step(1) })
	return types.Float(float64(r)), err
}

// rankWeights reads the weights of D, C, B and A; a negative one stands for the default.
func rankWeights(weights *[4]float32, a *types.Array) error {
	switch {
	case len(a.AllDims()) != 1:
		return pgerror.New(pgerror.ArraySubscriptError, "array of weight must be one-dimensional")
	case len(a.Elems) < len(weights):
		return pgerror.New(pgerror.ArraySubscriptError, "array of weight is too short")
	}
	for _, e := range a.Elems {
		if e.IsNull() {
			return pgerror.New(pgerror.NullValueNotAllowed, "array of weight must not contain nulls")
		}
	}
	for i := range weights {
		if w := a.Elems[i].Float(); w >= 0 {
			weights[i] = float32(w)
		}
		if weights[i] > 1 {
			return pgerror.New(pgerror.InvalidParameterValue, "weight out of range")
		}
	}
	return nil
}

func textSearchSetFuncs() []setDecl {
	letters := [4]types.Datum{types.Text("D"), types.Text("C"), types.Text("B"), types.Text("A")}
	names := []string{"lexeme", "positions", "weights"}
	columns := []types.Type{types.TText, types.TInt2.ArrayOf(), types.TText.ArrayOf()}
	unnest := func(_ *Env, a []types.Datum) (SetRows, error) {
		var rows []types.Datum
		for _, l := range a[0].TSVector() {
			row := types.Row{types.Text(l.Word), types.Null, types.Null}
			if len(l.Pos) > 0 {
				positions, weights := make([]types.Datum, len(l.Pos)), make([]types.Datum, len(l.Pos))
				for i, p := range l.Pos {
					positions[i], weights[i] = types.Int(int64(p.Pos())), letters[p.Weight()]
				}
				row[1] = types.NewArray(&types.Array{Elem: types.TInt2, Elems: positions})
				row[2] = types.NewArray(&types.Array{Elem: types.TText, Elems: weights})
			}
			rows = append(rows, types.NewNamedRecord(columns, names, row))
		}
		return &sliceRows{rows}, nil
	}
	set := setDecl{sig: "unnest(tsvector) record", estimate: 10, open: opens(unnest)}
	for i, name := range names {
		set.columns = append(set.columns, SetColumn{Name: name, Type: columns[i]})
	}
	return []setDecl{set}
}
