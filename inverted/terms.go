package inverted

import (
	"encoding/binary"

	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// The kinds of terms of jsonb_ops, as their first bytes. Strings in arrays are terms like keys.
const (
	jsonKey    = 'k'
	jsonString = 's'
	jsonScalar = 'v'
	jsonLong   = 'h' // the hash of a long string
	hstorePair = 'p' // of gin_hstore_ops, which has jsonKey too
)

// longTerm is the length from which strings are hashed.
const longTerm = 64

func jsonText(kind byte, s []byte) []byte {
	if len(s) < longTerm {
		return append(append(make([]byte, 0, 1+len(s)), kind), s...)
	}
	h := jsonb.Hash(append(jsonb.Value{byte(jsonb.String)}, s...))
	return binary.BigEndian.AppendUint64([]byte{jsonLong, kind}, h)
}

// jsonbTerms appends the terms of jsonb_ops: all keys, strings and other scalars, wherever they are.
func jsonbTerms(dst [][]byte, v jsonb.Value) [][]byte {
	if !v.IsContainer() {
		return append(dst, scalarTerm(v, true))
	}
	return memberTerms(dst, v)
}

func memberTerms(dst [][]byte, v jsonb.Value) [][]byte {
	object := v.Kind() == jsonb.Object
	for key, member := range v.Members {
		if object {
			dst = append(dst, jsonText(jsonKey, key))
		}
		if member.IsContainer() {
			dst = memberTerms(dst, member)
		} else {
			dst = append(dst, scalarTerm(member, !object))
		}
	}
	return dst
}

// scalarTerm returns the term of a scalar; element: it is in an array, or alone.
func scalarTerm(v jsonb.Value, element bool) []byte {
	switch {
	case v.Kind() != jsonb.String:
		return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), jsonScalar), jsonb.Hash(v))
	case element:
		return jsonText(jsonKey, v.Text())
	}
	return jsonText(jsonString, v.Text())
}

// pathTerms appends the terms of jsonb_path_ops: a hash of each scalar with the keys that lead to it.
func pathTerms(dst [][]byte, v jsonb.Value) [][]byte { return pathsFrom(dst, v, 0) }

func pathsFrom(dst [][]byte, v jsonb.Value, path uint64) [][]byte {
	if !v.IsContainer() {
		return append(dst, binary.BigEndian.AppendUint64(nil, mix(path, jsonb.Hash(v))))
	}
	object := v.Kind() == jsonb.Object
	for key, member := range v.Members {
		to := path
		if object {
			to = mix(path, jsonb.Hash(append(jsonb.Value{byte(jsonb.String)}, key...)))
		}
		dst = pathsFrom(dst, member, to)
	}
	return dst
}

// mix combines hashes of a sequence.
func mix(a, b uint64) uint64 {
	h := (a ^ b<<1 ^ b>>63) * 0x9E3779B97F4A7C15
	return h ^ h>>32
}

func searchJSONB(op string, arg types.Datum) *Query {
	if q := searchKeys(op, arg, func(key string) []byte { return jsonText(jsonKey, []byte(key)) }); q != nil {
		return q
	}
	return and(words(sortTerms(jsonbTerms(nil, arg.JSONB()))))
}

// searchKeys returns the query of one of the operators ?, ?| and ?&, whose argument is a key or an array of keys; nil for another operator.
func searchKeys(op string, arg types.Datum, term func(key string) []byte) *Query {
	switch op {
	case "?":
		return word(term(arg.Text()))
	case "?|", "?&":
	default:
		return nil
	}
	var qs []*Query
	for _, e := range arg.Array().Elems {
		if !e.IsNull() {
			qs = append(qs, word(term(e.Text())))
		}
	}
	switch {
	case op == "?&":
		return and(qs)
	case len(qs) == 0:
		return &Query{}
	}
	return or(qs)
}

// hstoreTerms returns the keys of an hstore, and hashes of its pairs.
func hstoreTerms(d types.Datum) [][]byte {
	pairs := types.HstorePairs(d)
	terms := make([][]byte, 0, 2*len(pairs))
	for i := range pairs {
		terms = append(terms, jsonText(jsonKey, []byte(pairs[i].Key)), pairTerm(&pairs[i]))
	}
	return terms
}

// pairTerm is the term of a key with its value.
func pairTerm(p *types.HstorePair) []byte {
	value := jsonb.Value{byte(jsonb.Null)}
	if !p.Null {
		value = append(jsonb.Value{byte(jsonb.String)}, p.Value...)
	}
	key := jsonb.Hash(append(jsonb.Value{byte(jsonb.String)}, p.Key...))
	return binary.BigEndian.AppendUint64([]byte{hstorePair}, mix(key, jsonb.Hash(value)))
}

func searchHStore(op string, arg types.Datum) *Query {
	if q := searchKeys(op, arg, func(key string) []byte { return jsonText(jsonKey, []byte(key)) }); q != nil {
		return q
	}
	var terms [][]byte
	pairs := types.HstorePairs(arg)
	for i := range pairs {
		terms = append(terms, pairTerm(&pairs[i]))
	}
	return and(words(sortTerms(terms)))
}

// emptyArray is the term of arrays without elements that are not NULL. No element has an empty key.
var emptyArray = []byte{}

func arrayTerms(d types.Datum, t types.Type) ([][]byte, error) {
	elem := t.Underlying().Elem()
	var terms [][]byte
	for _, e := range d.Array().Elems {
		if e.IsNull() {
			continue
		}
		term, err := rowenc.AppendValue(nil, elem, e)
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	if len(terms) == 0 {
		terms = append(terms, emptyArray)
	}
	return terms, nil
}

func searchArray(op string, arg types.Datum, t types.Type) (*Query, error) {
	terms, err := arrayTerms(arg, t)
	if err != nil {
		return nil, err
	}
	terms = sortTerms(terms)
	empty := len(terms) == 1 && len(terms[0]) == 0
	switch op {
	case "@>":
		if empty {
			return all(), nil
		}
		return and(words(terms)), nil
	case "&&":
		if empty {
			return &Query{}, nil
		}
		return or(words(terms)), nil
	case "<@":
		if !empty {
			terms = append(terms, emptyArray)
		}
		return or(words(terms)), nil
	}
	return and(words(terms)), nil
}

// searchText returns the query of a tsquery. Positions and weights are left to the test of the condition.
func searchText(n *tsearch.Node) *Query {
	switch {
	case n == nil:
		return &Query{}
	case n.Op == tsearch.Operand:
		return &Query{Term: []byte(n.Word), Prefix: n.Prefix}
	case n.Op == tsearch.Not:
		return all()
	case n.Op == tsearch.Or:
		return or([]*Query{searchText(n.Left), searchText(n.Right)})
	}
	return and([]*Query{searchText(n.Left), searchText(n.Right)})
}

func searchTrigrams(env *builtin.Env, op, arg string) (*Query, error) {
	switch op {
	case "~~", "~~*":
		return trigramsAnd(builtin.PatternTrigrams(env, arg))
	case "=":
		return trigramsAnd(builtin.TrigramTerms(env, arg))
	case "~", "~*":
		return trigramsAnd(builtin.RegexpTrigrams(env, arg))
	}
	terms, err := builtin.TrigramTerms(env, arg) // %: one of them is in every similar text.
	if err != nil || len(terms) == 0 {
		return &Query{}, err
	}
	return or(words(sortTerms(terms))), nil
}

func trigramsAnd(terms [][]byte, err error) (*Query, error) {
	if err != nil {
		return nil, err
	}
	return and(words(sortTerms(terms))), nil
}
