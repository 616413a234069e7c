package fuzzsql

import (
	"fmt"
	"slices"
	"strings"
)

// tree is a statement or a part of one: a leaf with text, or kids. It says what may be left out or
// stand for what, so that minimise can shrink any tree.
type tree struct {
	text string // of a leaf
	kids []*tree
	sep  string // between kids

	optional bool   // may be left out
	dropped  bool   // is left out
	list     bool   // kids may be left out, down to least
	least    int    // how many kids stay
	keep     bool   // stays in its list
	sort     string // a descendant of the same sort may stand for the tree
	simple   string // a text that may stand for the tree

	literal *literal // a leaf that a parameter may stand for
}

// literal is a value with its type.
type literal struct {
	value string
	typ   *typ
}

func leaf(text string) *tree { return &tree{text: text} }

// seq joins parts, strings or trees, without anything between them.
func seq(parts ...any) *tree {
	t := &tree{}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.kids = append(t.kids, leaf(p))
		case *tree:
			if p != nil {
				t.kids = append(t.kids, p)
			}
		default:
			panic(fmt.Sprintf("BUG: seq of %T", p))
		}
	}
	return t
}

// opt is a seq that may be left out.
func opt(parts ...any) *tree {
	t := seq(parts...)
	t.optional = true
	return t
}

// listOf is a list of at least so many kids.
func listOf(sep string, least int, kids ...*tree) *tree {
	return &tree{kids: kids, sep: sep, list: true, least: least}
}

// as sets the tree's sort and a text that may stand for it.
func (t *tree) as(sort, simple string) *tree {
	t.sort, t.simple = sort, simple
	return t
}

// String is the text of a tree.
func (t *tree) String() string {
	var b strings.Builder
	t.write(&b, nil)
	return b.String()
}

// withParameters is the text with parameters for literals, and their values.
func (t *tree) withParameters() (text string, values []literal) {
	var b strings.Builder
	t.write(&b, &values)
	return b.String(), values
}

func (t *tree) write(b *strings.Builder, params *[]literal) {
	if t.dropped {
		return
	}
	if t.literal != nil && params != nil {
		n := slices.Index(*params, *t.literal)
		if n < 0 { // Equal literals are one parameter, so that GROUP BY finds its expressions.
			n = len(*params)
			*params = append(*params, *t.literal)
		}
		fmt.Fprintf(b, "$%d::%s", n+1, t.literal.typ.sql)
		return
	}
	b.WriteString(t.text)
	first := true
	for _, k := range t.kids {
		if k.dropped {
			continue
		}
		if !first {
			b.WriteString(t.sep)
		}
		first = false
		k.write(b, params)
	}
}

// clone is a deep copy.
func (t *tree) clone() *tree {
	c := *t
	c.kids = make([]*tree, len(t.kids))
	for i, k := range t.kids {
		c.kids[i] = k.clone()
	}
	return &c
}

// walk calls f for t and what is in it, outer trees first.
func (t *tree) walk(f func(*tree)) {
	if t.dropped {
		return
	}
	f(t)
	for _, k := range t.kids {
		k.walk(f)
	}
}
