package tsearch

import (
	"slices"
	"strings"
)

// tree is a node of a query in which operands of the same & or | stand side by side, sorted.
type tree struct {
	*Node
	children []*tree // the right operand comes before the left one
	fixed    bool    // it was put in: it is not searched
}

// Rewrite replaces in q what equals target by substitute. An empty substitute removes it.
func (q *Query) Rewrite(target, substitute *Query) *Query {
	if q.Root == nil || target.Root == nil {
		return q
	}
	r := rewriter{target: flat(target.Root), substitute: substitute.Root}
	r.target.sort()
	root := flat(q.Root)
	root.sort()
	return &Query{r.replace(root).binary()}
}

// Sorted returns the query with its operands in the order in which Rewrite leaves them.
func (q *Query) Sorted() *Query {
	if q.Root == nil {
		return q
	}
	root := flat(q.Root)
	root.sort()
	return &Query{root.binary()}
}

// flat makes a tree of a query.
func flat(n *Node) *tree {
	t := &tree{Node: n}
	for _, child := range []*Node{n.Right, n.Left} {
		if child == nil {
			continue
		}
		c := flat(child)
		if c.Op == n.Op && (n.Op == And || n.Op == Or) {
			t.children = append(t.children, c.children...)
		} else {
			t.children = append(t.children, c)
		}
	}
	return t
}

func (t *tree) sort() {
	for _, c := range t.children {
		c.sort()
	}
	if t.Op != Phrase {
		slices.SortStableFunc(t.children, (*tree).compare)
	}
}

func (t *tree) compare(u *tree) int {
	if t.Op == Operand || u.Op == Operand {
		return t.Node.compare(u.Node)
	}
	if t.Op != u.Op {
		return descending(int(t.Op), int(u.Op))
	}
	if len(t.children) != len(u.children) {
		return descending(len(t.children), len(u.children))
	}
	for i := range t.children {
		if c := t.children[i].compare(u.children[i]); c != 0 {
			return c
		}
	}
	return descending(t.Distance, u.Distance)
}

// binary makes a query of a tree.
func (t *tree) binary() *Node {
	if t == nil {
		return nil
	}
	if t.Op == Operand {
		return NewWord(strings.Clone(t.Word), t.Weights, t.Prefix)
	}
	n := Join(t.Op, t.Distance, nil, t.children[0].binary())
	if len(t.children) == 1 {
		return n
	}
	n.Left = t.children[1].binary()
	for i := len(t.children) - 1; i > 1; i-- { // PostgreSQL takes the others from the last on.
		n = Join(t.Op, t.Distance, t.children[i].binary(), n)
	}
	return n
}

type rewriter struct {
	target     *tree
	substitute *Node
}

// put returns what stands in place of a match; nil: nothing.
func (r *rewriter) put() *tree {
	if r.substitute == nil {
		return nil
	}
	t := branches(r.substitute)
	t.fixed = true
	return t
}

// branches makes a tree of a query without uniting equal operators.
func branches(n *Node) *tree {
	t := &tree{Node: n}
	for _, child := range []*Node{n.Right, n.Left} {
		if child != nil {
			t.children = append(t.children, branches(child))
		}
	}
	return t
}

// replace replaces the target in t.
func (r *rewriter) replace(t *tree) *tree {
	t = r.match(t)
	if t == nil || t.fixed || t.Op == Operand {
		return t
	}
	kept := t.children[:0]
	for _, c := range t.children {
		if c = r.replace(c); c != nil {
			kept = append(kept, c)
		}
	}
	t.children = kept
	switch {
	case len(kept) == 0:
		return nil
	case len(kept) == 1 && t.Op != Not:
		return kept[0]
	}
	return t
}

// match replaces t if it equals the target, or those of its operands that are the target's.
func (r *rewriter) match(t *tree) *tree {
	if t.fixed || t.Op != r.target.Op {
		return t
	}
	if len(t.children) == len(r.target.children) {
		if t.compare(r.target) == 0 {
			return r.put()
		}
		return t
	}
	if len(t.children) < len(r.target.children) {
		return t
	}
	var rest []*tree
	want := r.target.children
	for _, c := range t.children {
		if len(want) > 0 {
			switch order := c.compare(want[0]); {
			case order == 0:
				want = want[1:]
				continue
			case order > 0:
				return t
			}
		}
		rest = append(rest, c)
	}
	if len(want) > 0 {
		return t
	}
	if s := r.put(); s != nil {
		rest = append(rest, s)
	}
	t.children = rest
	t.sort()
	return t
}
