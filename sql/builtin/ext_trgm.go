package builtin

import (
	"strconv"

	"github.com/percodb/percodb/sql/types"
)

// The parameters with the least similarity that the operators of pg_trgm ask for.
const (
	similarityThreshold = "pg_trgm.similarity_threshold"
	wordThreshold       = "pg_trgm.word_similarity_threshold"
	strictThreshold     = "pg_trgm.strict_word_similarity_threshold"
)

// likeness is a measure of two texts.
type likeness func(env *Env, x, y string) (float32, error)

func wordLikeness(env *Env, x, y string) (float32, error)   { return wordSimilarity(env, x, y, false) }
func strictLikeness(env *Env, x, y string) (float32, error) { return wordSimilarity(env, x, y, true) }

// swapped measures with the texts exchanged.
func (f likeness) swapped() likeness {
	return func(env *Env, x, y string) (float32, error) { return f(env, y, x) }
}

// value returns the measure.
func (f likeness) value(env *Env, a []types.Datum) (types.Datum, error) {
	v, err := f(env, a[0].Text(), a[1].Text())
	return types.Float(float64(v)), err
}

// distance returns 1 for texts that have nothing in common, and 0 for the same.
func (f likeness) distance(env *Env, a []types.Datum) (types.Datum, error) {
	v, err := f(env, a[0].Text(), a[1].Text())
	return types.Float(float64(1 - v)), err
}

// exceeds compares the measure with a parameter.
func (f likeness) exceeds(parameter string) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		limit, err := trgmLimit(env, parameter)
		if err != nil {
			return types.Null, err
		}
		v, err := f(env, a[0].Text(), a[1].Text())
		return types.Bool(float64(v) >= limit), err
	}
}

func trgmLimit(env *Env, parameter string) (float64, error) {
	if env.Session == nil {
		return 0, errNoService("session parameters")
	}
	text, err := env.Session.Setting(parameter)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// trgmMeasures are the measures with their operators, and the functions behind these.
var trgmMeasures = []struct {
	f                         likeness
	parameter, above, between string
	aboveFunc, betweenFunc    string
}{
	{similarity, similarityThreshold, "%", "<->", "similarity_op", "similarity_dist"},
	{wordLikeness, wordThreshold, "<%", "<<->", "word_similarity_op", "word_similarity_dist_op"},
	{likeness(wordLikeness).swapped(), wordThreshold, "%>", "<->>", "word_similarity_commutator_op", "word_similarity_dist_commutator_op"},
	{strictLikeness, strictThreshold, "<<%", "<<<->", "strict_word_similarity_op", "strict_word_similarity_dist_op"},
	{likeness(strictLikeness).swapped(), strictThreshold, "%>>", "<->>>", "strict_word_similarity_commutator_op", "strict_word_similarity_dist_commutator_op"},
}

func trgmFuncs() []decl {
	out := []decl{
		{sig: "set_limit(float4) float4", flags: volatile, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			if env.Session == nil {
				return types.Null, errNoService("session parameters")
			}
			err := env.Session.SetSetting(similarityThreshold, strconv.FormatFloat(a[0].Float(), 'g', -1, 32), false)
			return a[0], err
		}},
		{sig: "show_limit() float4", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			limit, err := trgmLimit(env, similarityThreshold)
			return types.Float(float64(float32(limit))), err
		}},
		{sig: "show_trgm(text) text[]", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			t, err := trigramsOf(env, a[0].Text())
			if err != nil {
				return types.Null, err
			}
			var elems []types.Datum
			for _, text := range t.sortedTexts() {
				elems = append(elems, types.Text(text))
			}
			return types.NewArray(&types.Array{Elem: types.TText, Elems: elems}), nil
		}},
		{sig: "similarity(text,text) float4", fn: likeness(similarity).value},
		{sig: "word_similarity(text,text) float4", fn: likeness(wordLikeness).value},
		{sig: "strict_word_similarity(text,text) float4", fn: likeness(strictLikeness).value},
	}
	for _, m := range trgmMeasures {
		out = append(out, decl{sig: m.aboveFunc + "(text,text) bool", flags: stable, fn: m.f.exceeds(m.parameter)},
			decl{sig: m.betweenFunc + "(text,text) float4", fn: m.f.distance})
	}
	return out
}

func trgmOps() []decl {
	var out []decl
	for _, m := range trgmMeasures {
		out = append(out, decl{sig: m.above + "(text,text) bool", flags: stable, fn: m.f.exceeds(m.parameter)},
			decl{sig: m.between + "(text,text) float4", fn: m.f.distance})
	}
	return out
}
