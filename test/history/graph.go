package history

import (
	"cmp"
	"slices"
)

// edgeKind is the reason why one transaction comes before another.
type edgeKind uint8

const (
	ww edgeKind = 1 << iota
	wr
	rw
	rt
	aux // between a transaction's nodes, and along the line of time
)

func (k edgeKind) String() string {
	return map[edgeKind]string{ww: "ww", wr: "wr", rw: "rw", rt: "rt"}[k]
}

// edge is a dependency between two transactions. version is the length of the key's list that the second one wrote (ww,
// rw) or read (wr).
type edge struct {
	from, to  int32
	kind      edgeKind
	predicate bool // rw by a scan
	key       int32
	version   int32
}

// addEdges derives ww, wr and rw from the versions.
func (c *checker) addEdges() {
	for id := range c.keys {
		k := &c.keys[id]
		prev := int32(-1)
		for n, value := range k.order {
			p, ok := k.appended[value]
			if !ok || !c.counts[p.txn] {
				continue
			}
			c.edge(edge{from: prev, to: p.txn, kind: ww, key: int32(id), version: int32(n + 1)})
			prev = p.txn
		}
		for _, t := range k.unseen {
			c.edge(edge{from: prev, to: t, kind: ww, key: int32(id), version: int32(len(k.order) + 1)})
		}
	}
	for i := range c.reads {
		r := &c.reads[i]
		k := &c.keys[r.key]
		if !slices.Equal(r.list, k.order[:len(r.list)]) {
			continue // already reported
		}
		predicate := c.h.Txns[r.txn].Ops[r.op].Kind == OpScan
		n := len(r.list)
		if n > 0 {
			if p, ok := k.appended[r.list[n-1]]; ok && c.counts[p.txn] {
				c.edge(edge{from: p.txn, to: r.txn, kind: wr, key: r.key, version: int32(n)})
			}
		}
		if n < len(k.order) {
			if p, ok := k.appended[k.order[n]]; ok && c.counts[p.txn] {
				c.edge(edge{from: r.txn, to: p.txn, kind: rw, key: r.key, version: int32(n + 1), predicate: predicate})
			}
			continue
		}
		for _, t := range k.unseen {
			c.edge(edge{from: r.txn, to: t, kind: rw, key: r.key, version: int32(n + 1), predicate: predicate})
		}
	}
}

func (c *checker) edge(e edge) {
	if e.from >= 0 && e.from != e.to {
		c.edges = append(c.edges, e)
	}
}

// arc is an edge of the graph: its target node, and the index of the history's edge (-1: none).
type arc struct {
	to   int32
	kind edgeKind
	edge int32
}

// graph is a view of the history's edges. Node numbers: transactions (or their beginnings), then, if
// split, their commits, then the line of time.
type graph struct {
	txns  int32
	split bool
	first []int32 // arcs of node i are arcs[first[i]:first[i+1]]
	arcs  []arc
}

func (g *graph) nodes() int32 { return int32(len(g.first) - 1) }

func (g *graph) of(node int32) []arc { return g.arcs[g.first[node]:g.first[node+1]] }

// txn returns the transaction of a node, -1 for a point in time.
func (g *graph) txn(node int32) int32 {
	switch {
	case node < g.txns:
		return node
	case g.split && node < 2*g.txns:
		return node - g.txns
	}
	return -1
}

// view builds the graph of the edges of some kinds. Split, it has the nodes B and C of each
// transaction, and only the paths that snapshot isolation forbids to close.
func (c *checker) view(kinds edgeKind, split bool) *graph {
	n := int32(len(c.h.Txns))
	g := &graph{txns: n, split: split}
	commit := func(t int32) int32 { return t }
	if split {
		commit = func(t int32) int32 { return t + n }
	}
	type link struct {
		from int32
		arc  arc
	}
	var links []link
	for i := range c.edges {
		e := &c.edges[i]
		if e.kind&kinds == 0 {
			continue
		}
		if e.kind == rw {
			links = append(links, link{e.from, arc{commit(e.to), rw, int32(i)}})
		} else {
			links = append(links, link{commit(e.from), arc{e.to, e.kind, int32(i)}})
		}
	}
	nodes := n
	if split {
		nodes = 2 * n
		for t := range n {
			links = append(links, link{t, arc{commit(t), aux, -1}})
		}
	}
	if kinds&rt != 0 {
		acked, began := c.timeline()
		for i, t := range acked {
			links = append(links, link{commit(t), arc{nodes + int32(i), rt, -1}})
			if i > 0 {
				links = append(links, link{nodes + int32(i) - 1, arc{nodes + int32(i), aux, -1}})
			}
		}
		i := 0
		for _, t := range began {
			for i < len(acked) && c.h.Txns[acked[i]].End < c.h.Txns[t].Begin {
				i++
			}
			if i > 0 {
				links = append(links, link{nodes + int32(i) - 1, arc{t, aux, -1}})
			}
		}
		nodes += int32(len(acked))
	}
	g.first = make([]int32, nodes+1)
	for i := range links {
		g.first[links[i].from+1]++
	}
	for i := range nodes {
		g.first[i+1] += g.first[i]
	}
	g.arcs = make([]arc, len(links))
	next := slices.Clone(g.first[:nodes])
	for i := range links {
		g.arcs[next[links[i].from]] = links[i].arc
		next[links[i].from]++
	}
	return g
}

// timeline returns the participating transactions by the time of their acknowledgement, and those that must see what
// was acknowledged before by the time at which they began.
func (c *checker) timeline() (acked, began []int32) {
	for t := range c.h.Txns {
		if c.counts[t] && c.h.Txns[t].Outcome == Committed {
			acked = append(acked, int32(t))
		}
		if (c.counts[t] || c.opts.Opaque) && !c.h.Txns[t].Stale {
			began = append(began, int32(t))
		}
	}
	slices.SortFunc(acked, func(a, b int32) int { return cmp.Compare(c.h.Txns[a].End, c.h.Txns[b].End) })
	slices.SortFunc(began, func(a, b int32) int { return cmp.Compare(c.h.Txns[a].Begin, c.h.Txns[b].Begin) })
	return acked, began
}

// components returns the strongly connected components of more than one node (Tarjan, without
// recursion).
func (g *graph) components() [][]int32 {
	n := g.nodes()
	index := make([]int32, n) // 0: not visited
	low := make([]int32, n)
	onStack := make([]bool, n)
	at := make([]int32, n) // next arc to look at
	var stack, path []int32
	var out [][]int32
	visited := int32(0)
	for root := range n {
		if index[root] != 0 {
			continue
		}
		path = append(path[:0], root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				visited++
				index[v], low[v], at[v] = visited, visited, g.first[v]
				stack = append(stack, v)
				onStack[v] = true
			}
			if at[v] < g.first[v+1] {
				w := g.arcs[at[v]].to
				at[v]++
				if index[w] == 0 {
					path = append(path, w)
				} else if onStack[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1]
				low[parent] = min(low[parent], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			from := len(stack) - 1
			for stack[from] != v {
				from--
			}
			if len(stack)-from > 1 {
				out = append(out, slices.Clone(stack[from:]))
			}
			for _, w := range stack[from:] {
				onStack[w] = false
			}
			stack = stack[:from]
		}
	}
	return out
}
