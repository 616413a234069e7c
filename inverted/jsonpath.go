package inverted

import (
	"encoding/binary"
	"slices"

	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// pathSearch finds what the terms of a document must satisfy so that a JSON path finds an item, or its condition is true. It says too little
// rather than too much: a filter, a method or an operator that it does not know leaves every document.
type pathSearch struct {
	hashes bool // the terms are those of jsonb_path_ops
}

// at is where an item is, for jsonb_path_ops: the hash of the keys that lead to it. Not known behind .* and .**.
type at struct {
	path  uint64
	known bool
}

// searchPath returns the query of @? or @@ with a path.
func searchPath(class Class, op, text string) (*Query, error) {
	p, err := jsonpath.Parse(text)
	if err != nil {
		return nil, err
	}
	s := pathSearch{hashes: class == JSONBPath}
	root := at{known: true}
	if op == "@@" {
		return s.condition(p.Root, root), nil
	}
	q, _, _ := s.items(p.Root, root)
	return q, nil
}

// items returns what must be satisfied so that a path has items, current being where @ is; where they are, and whether they are in the document:
// not what a method makes.
func (s pathSearch) items(n *jsonpath.Node, current at) (_ *Query, where at, inside bool) {
	switch n.Type {
	case jsonpath.Root:
		where = at{known: true}
	case jsonpath.Current:
		where = current
	default: // A value, a condition or a sum: there is one for every document.
		return all(), at{}, false
	}
	var qs []*Query
	for n = n.Next; n != nil; n = n.Next {
		switch n.Type {
		case jsonpath.Key:
			if !s.hashes {
				qs = append(qs, word(jsonText(jsonKey, []byte(n.Text))))
			}
			where.path = mix(where.path, jsonb.Hash(append(jsonb.Value{byte(jsonb.String)}, n.Text...)))
		case jsonpath.AnyArray, jsonpath.IndexArray:
		case jsonpath.AnyKey, jsonpath.Any:
			where.known = false
		case jsonpath.Filter:
			qs = append(qs, s.condition(n.Left, where))
		default: // What is behind a method is not in the document.
			return and(qs), at{}, false
		}
	}
	return and(qs), where, true
}

// condition returns what must be satisfied so that a condition is true.
func (s pathSearch) condition(n *jsonpath.Node, current at) *Query {
	switch n.Type {
	case jsonpath.And:
		return and([]*Query{s.condition(n.Left, current), s.condition(n.Right, current)})
	case jsonpath.Or:
		return or([]*Query{s.condition(n.Left, current), s.condition(n.Right, current)})
	case jsonpath.Exists, jsonpath.LikeRegex:
		q, _, _ := s.items(n.Left, current)
		return q
	case jsonpath.Equal, jsonpath.NotEqual, jsonpath.Less, jsonpath.LessOrEqual, jsonpath.Greater, jsonpath.GreaterOrEqual, jsonpath.StartsWith:
		left, where, inside := s.items(n.Left, current)
		right, whereRight, insideRight := s.items(n.Right, current)
		qs := []*Query{left, right}
		if n.Type == jsonpath.Equal && inside {
			qs = append(qs, s.equal(n.Right, where))
		}
		if n.Type == jsonpath.Equal && insideRight {
			qs = append(qs, s.equal(n.Left, whereRight))
		}
		return and(qs)
	case jsonpath.Root, jsonpath.Current:
		q, _, _ := s.items(n, current)
		return q
	}
	return all()
}

// equal returns what must be satisfied so that an item is equal to what n is, if that is a value.
func (s pathSearch) equal(n *jsonpath.Node, where at) *Query {
	v := constant(n)
	switch {
	case v == nil:
		return all()
	case !s.hashes && v.Kind() == jsonb.String: // in an array, or a member's value
		return or([]*Query{word(scalarTerm(v, true)), word(scalarTerm(v, false))})
	case !s.hashes:
		return word(scalarTerm(v, false))
	case !where.known:
		return all()
	}
	return word(binary.BigEndian.AppendUint64(nil, mix(where.path, jsonb.Hash(v))))
}

// constant returns the value that a node is, nil if it is none.
func constant(n *jsonpath.Node) jsonb.Value {
	if n.Next != nil {
		return nil
	}
	switch n.Type {
	case jsonpath.Null:
		return jsonb.NullValue
	case jsonpath.True:
		return jsonb.TrueValue
	case jsonpath.False:
		return jsonb.FalseValue
	case jsonpath.Number:
		return jsonb.NumberValue([]byte(n.Text))
	case jsonpath.String:
		return slices.Concat(jsonb.Value{byte(jsonb.String)}, jsonb.Value(n.Text))
	}
	return nil
}
