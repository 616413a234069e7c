package history

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// findCycles searches for cycles, the worst classes first, and with real-time edges only if the cycle needs them.
func (c *checker) findCycles() {
	times := []edgeKind{0}
	if c.opts.Strict && c.opts.Level > ReadCommitted {
		times = append(times, rt)
	}
	for _, time := range times {
		c.cyclesOf(c.view(ww|time, false))
		c.cyclesOf(c.view(ww|wr|time, false))
		if c.opts.Level >= SnapshotIsolation {
			c.cyclesOf(c.view(ww|wr|rw|time, true))
		}
		if c.opts.Level >= Serializable {
			c.cyclesOf(c.view(ww|wr|rw|time, false))
		}
	}
}

// startsPerComponent bounds the nodes of a component from which its shortest cycle is searched.
const startsPerComponent = 32

// cyclesOf reports the best cycle of each component of the graph.
func (c *checker) cyclesOf(g *graph) {
	component := make([]int32, g.nodes())
	for id, nodes := range g.components() {
		for _, v := range nodes {
			component[v] = int32(id + 1)
		}
		var best []edge
		bestCost := maxCost
		for i := 0; i < len(nodes); i += max(1, len(nodes)/startsPerComponent) {
			if g.txn(nodes[i]) < 0 {
				continue
			}
			if path, cost := g.shortestCycle(nodes[i], component, bestCost); path != nil {
				best, bestCost = c.edgesOf(g, nodes[i], path), cost
			}
		}
		if best != nil {
			c.reportCycle(best)
		}
		if c.full() {
			return
		}
	}
}

// A path's cost counts rw edges first and all edges second, so that the simplest cycle is reported.
const (
	costOfRW = int64(1) << 40
	maxCost  = int64(1) << 62
)

func (a *arc) cost() int64 {
	switch a.kind {
	case rw:
		return costOfRW + 1
	case aux:
		return 0
	}
	return 1
}

// step is a node of a path, with the cost up to it.
type step struct {
	cost int64
	node int32
}

type frontier []step

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].cost < f[j].cost }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(step)) }
func (f *frontier) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// shortestCycle returns the arcs of the cheapest cycle through start within its component, nil if
// there is none below limit (Dijkstra).
func (g *graph) shortestCycle(start int32, component []int32, limit int64) ([]arc, int64) {
	type origin struct {
		from int32
		arc  arc
	}
	came := map[int32]origin{}
	cost := map[int32]int64{}
	queue := frontier{{0, start}}
	for queue.Len() > 0 {
		s := heap.Pop(&queue).(step)
		if s.cost >= limit {
			return nil, 0
		}
		if s.node == start && len(came) > 0 && s.cost > 0 {
			var path []arc
			for at := start; len(path) == 0 || at != start; {
				o := came[at]
				path = append(path, o.arc)
				at = o.from
			}
			slices.Reverse(path)
			return path, s.cost
		}
		if known, ok := cost[s.node]; ok && known < s.cost && s.node != start {
			continue
		}
		for _, a := range g.of(s.node) {
			if component[a.to] != component[start] {
				continue
			}
			next := s.cost + a.cost()
			if known, ok := cost[a.to]; !ok || next < known {
				cost[a.to] = next
				came[a.to] = origin{s.node, a}
				heap.Push(&queue, step{next, a.to})
			}
		}
	}
	return nil, 0
}

// edgesOf converts a path of nodes to edges between transactions; a path along the timeline becomes one rt edge.
func (c *checker) edgesOf(g *graph, start int32, path []arc) []edge {
	var out []edge
	at := start
	since := int32(-1) // the transaction from which the path entered the timeline
	for _, a := range path {
		switch {
		case a.edge >= 0:
			out = append(out, c.edges[a.edge])
		case a.kind == rt:
			since = g.txn(at)
		case since >= 0 && g.txn(a.to) >= 0:
			out = append(out, edge{from: since, to: g.txn(a.to), kind: rt, key: -1})
			since = -1
		}
		at = a.to
	}
	return out
}

// classify returns the class of a cycle by its edges.
func classify(cycle []edge) Class {
	var kinds edgeKind
	reads, adjacent, predicate := 0, false, false
	for i, e := range cycle {
		kinds |= e.kind
		if e.kind == rw {
			reads++
			predicate = predicate || e.predicate
			adjacent = adjacent || cycle[(i+1)%len(cycle)].kind == rw
		}
	}
	var class Class
	switch {
	case reads == 0 && kinds&wr == 0:
		class = G0
	case reads == 0:
		class = G1c
	case reads == 1 && len(cycle) == 2 && cycle[0].key == cycle[1].key && kinds == ww|rw:
		class = LostUpdate
	case reads == 1:
		class = GSingle
	case !adjacent:
		class = GNonadjacent
	case predicate:
		class = G2
	default:
		class = G2Item
	}
	if kinds&rt != 0 {
		class += realtime
	}
	return class
}

// reportCycle describes a cycle edge by edge.
func (c *checker) reportCycle(cycle []edge) {
	txns := make([]int32, len(cycle))
	for i, e := range cycle {
		txns[i] = e.from
	}
	if !c.isNew(txns) {
		return
	}
	var b strings.Builder
	for i, e := range cycle {
		if i > 0 {
			b.WriteString("\n  ")
		}
		c.explain(&b, e)
	}
	c.report(classify(cycle), txns, "%s", b.String())
}

func (c *checker) explain(b *strings.Builder, e edge) {
	fmt.Fprintf(b, "T%d -%s-> T%d: ", e.from, e.kind, e.to)
	if e.kind == rt {
		fmt.Fprintf(b, "T%d was acknowledged at %d, before T%d began at %d", e.from, c.h.Txns[e.from].End, e.to, c.h.Txns[e.to].Begin)
		return
	}
	k := &c.keys[e.key]
	value := func(version int32) string {
		if int(version) <= len(k.order) {
			return fmt.Sprint(k.order[version-1])
		}
		return "what has not been read yet"
	}
	switch e.kind {
	case ww:
		fmt.Fprintf(b, "T%d appended %s to %s, after it T%d appended %s", e.from, value(e.version-1), k.name, e.to, value(e.version))
	case wr:
		fmt.Fprintf(b, "T%d appended %s to %s, T%d read it", e.from, value(e.version), k.name, e.to)
	case rw:
		fmt.Fprintf(b, "T%d read %s as %v, without %s, which T%d appended", e.from, k.name, k.order[:e.version-1], value(e.version), e.to)
	}
}
