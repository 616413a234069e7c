package inverted

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Class is an operator class.
type Class string

// The operator classes.
const (
	JSONB     Class = "jsonb_ops"
	JSONBPath Class = "jsonb_path_ops"
	Array     Class = "array_ops"
	TSVector  Class = "tsvector_ops"
	Trigram   Class = "gin_trgm_ops"
	// TrigramGist is stored as Trigram.
	TrigramGist Class = "gist_trgm_ops"
	// HStoreGist is stored as HStore.
	HStore     Class = "gin_hstore_ops"
	HStoreGist Class = "gist_hstore_ops"
	// The classes of the extension intarray are stored as Array.
	IntArray        Class = "gin__int_ops"
	IntArrayGist    Class = "gist__int_ops"
	IntArrayGistBig Class = "gist__intbig_ops"
)

// Stored returns the class by which an index of c is built.
func (c Class) Stored() Class {
	switch c {
	case TrigramGist:
		return Trigram
	case HStoreGist:
		return HStore
	case IntArray, IntArrayGist, IntArrayGistBig:
		return Array
	}
	return c
}

// OfGist reports whether an index of the method gist over values of type t, with class c or without one ("") is built as an inverted one.
func OfGist(c Class, t types.Type) bool {
	switch t = t.Underlying(); c {
	case "":
		return t.OID == types.OIDTSVector || t.OID == types.OIDHstore
	case TSVector:
		return t.OID == types.OIDTSVector
	}
	return c == TrigramGist || c == HStoreGist || c == IntArrayGist || c == IntArrayGistBig
}

// DefaultClass returns the class that an index over values of type t has unless it names one; "" for none.
func DefaultClass(t types.Type) Class {
	t = t.Underlying()
	switch {
	case t.OID == types.OIDJSONB:
		return JSONB
	case t.IsArray():
		return Array
	case t.OID == types.OIDTSVector:
		return TSVector
	case t.OID == types.OIDHstore:
		return HStore
	}
	return scalarClass(t)
}

// Accepts reports whether the class has terms of values of type t.
func (c Class) Accepts(t types.Type) bool {
	switch c {
	case Trigram, TrigramGist:
		t = t.Underlying()
		return t.OID == types.OIDText || t.OID == types.OIDVarchar
	case JSONBPath:
		return DefaultClass(t) == JSONB
	case HStoreGist:
		return DefaultClass(t) == HStore
	case IntArray, IntArrayGist, IntArrayGistBig:
		return t.Underlying().IsArray() && t.Underlying().Elem().OID == types.OIDInt4
	}
	if c.IsScalar() {
		return c.acceptsScalar(t.Underlying())
	}
	return DefaultClass(t) == c && c != ""
}

// Query is what the terms of a row must satisfy: one of the fields decides. The zero Query is satisfied by no row.
type Query struct {
	Term   []byte // the row has the term
	Prefix bool   // or one that begins with it
	And    []*Query
	Or     []*Query
	All    bool // every row may do: an index is of no use
}

func all() *Query { return &Query{All: true} }

func word(term []byte) *Query { return &Query{Term: term} }

// and connects queries; those for which every row may do say nothing.
func and(qs []*Query) *Query {
	qs = slices.DeleteFunc(qs, func(q *Query) bool { return q.All })
	switch len(qs) {
	case 0:
		return all()
	case 1:
		return qs[0]
	}
	return &Query{And: qs}
}

func or(qs []*Query) *Query {
	if slices.ContainsFunc(qs, func(q *Query) bool { return q.All }) {
		return all()
	}
	if len(qs) == 1 {
		return qs[0]
	}
	return &Query{Or: qs}
}

func words(terms [][]byte) []*Query {
	qs := make([]*Query, len(terms))
	for i, t := range terms {
		qs[i] = word(t)
	}
	return qs
}

// sortTerms sorts terms and removes those that repeat.
func sortTerms(terms [][]byte) [][]byte {
	slices.SortFunc(terms, bytes.Compare)
	return slices.CompactFunc(terms, bytes.Equal)
}

// Terms returns the terms of a value of type t that is not NULL, sorted, each once.
func (c Class) Terms(env *builtin.Env, d types.Datum, t types.Type) ([][]byte, error) {
	var terms [][]byte
	var err error
	switch c {
	case JSONB:
		terms = jsonbTerms(nil, d.JSONB())
	case JSONBPath:
		terms = pathTerms(nil, d.JSONB())
	case Array:
		terms, err = arrayTerms(d, t)
	case TSVector:
		for _, l := range d.TSVector() {
			terms = append(terms, []byte(l.Word))
		}
	case Trigram:
		terms, err = builtin.TrigramTerms(env, d.Text())
	case HStore:
		terms = hstoreTerms(d)
	default:
		var term []byte
		if term, err = scalarValueTerm(d, t); err == nil {
			terms = [][]byte{term}
		}
	}
	return sortTerms(terms), err
}

// Serves reports whether the class can find rows whose value, on the left of an operator, satisfies it with an argument of type arg.
func (c Class) Serves(op string, arg types.Type) bool {
	arg = arg.Underlying()
	switch c {
	case JSONB:
		return op == "@>" && arg.OID == types.OIDJSONB || op == "?" || (op == "?|" || op == "?&") && arg.IsArray() || servesPath(op, arg)
	case JSONBPath:
		return op == "@>" && arg.OID == types.OIDJSONB || servesPath(op, arg)
	case Array:
		return arg.IsArray() && (op == "@>" || op == "<@" || op == "&&" || op == "=")
	case TSVector:
		return (op == "@@" || op == "@@@") && arg.OID == types.OIDTSQuery
	case Trigram:
		return slices.Contains([]string{"~~", "~~*", "~", "~*", "%", "="}, op)
	case HStore:
		return op == "@>" && arg.OID == types.OIDHstore || op == "?" || (op == "?|" || op == "?&") && arg.IsArray()
	}
	return op == "=" && c.servesScalar(arg)
}

// servesPath reports whether an operator has a JSON path on its right.
func servesPath(op string, arg types.Type) bool {
	return (op == "@?" || op == "@@") && arg.OID == types.OIDJSONPath
}

// Search returns the query for value op arg, where values have type t and arg, which is not NULL, has type argType.
func (c Class) Search(env *builtin.Env, op string, arg types.Datum, argType types.Type) (*Query, error) {
	if servesPath(op, argType.Underlying()) {
		return searchPath(c, op, arg.Text())
	}
	switch c {
	case JSONB:
		return searchJSONB(op, arg), nil
	case JSONBPath:
		return and(words(sortTerms(pathTerms(nil, arg.JSONB())))), nil
	case Array:
		return searchArray(op, arg, argType)
	case TSVector:
		return searchText(arg.TSQuery().Root), nil
	case Trigram:
		return searchTrigrams(env, op, arg.Text())
	case HStore:
		return searchHStore(op, arg), nil
	}
	term, err := scalarValueTerm(arg, argType)
	return word(term), err
}

// InColumn returns a term as that of the n-th column of an index.
func InColumn(n int, term []byte) []byte {
	return append(append(make([]byte, 0, 1+len(term)), byte(n)), term...)
}

// Extension names the extension that the class belongs to, "" for none.
func (c Class) Extension() string {
	switch {
	case c == Trigram, c == TrigramGist:
		return "pg_trgm"
	case c == HStore, c == HStoreGist:
		return "hstore"
	case c == IntArray, c == IntArrayGist, c == IntArrayGistBig:
		return "intarray"
	case c.IsScalar():
		return "btree_gin"
	}
	return ""
}
