package planner

import (
	"math"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// pnode is a finished node: which column IDs its row holds, in which order its rows arrive.
type pnode struct {
	node  Node
	cols  []int
	order []orderKey
	est   Estimate
}

// ask contains the requirements of a step for the one below it.
type ask struct {
	need  colSet     // columns it reads
	want  []orderKey // the order it would like; it sorts otherwise
	limit float64    // how many rows it expects to pull, 0: all
}

func (a ask) with(cols colSet) ask {
	a.need = a.need.clone()
	a.need.addAll(cols)
	return a
}

// columns describes the columns of a row.
func (p *physical) columns(cols []int) []Column {
	out := make([]Column, len(cols))
	for i, id := range cols {
		out[i] = p.b.cols[id].Column
	}
	return out
}

func (p *physical) base(cols []int, est Estimate) Base { return Base{Out: p.columns(cols), Est: est} }

// setColumns replaces the names and provenance of a node's output.
func setColumns(n Node, out []Column) { n.base().Out = out }

// plan plans the tree below r.
func (p *physical) plan(r rel, a ask) pnode {
	if p.poll(); p.err != nil {
		return pnode{node: &Values{}}
	}
	switch r := r.(type) {
	case *scanRel:
		return p.scan(r, a)
	case *joinRel:
		return p.join(r, a)
	case *filterRel:
		return p.filter(r, a)
	case *projectRel:
		return p.project(r, a)
	case *projectSetRel:
		return p.projectSet(r, a)
	case *aggRel:
		return p.aggregate(r, a)
	case *expandRel:
		return p.expand(r, a)
	case *windowRel:
		return p.window(r, a)
	case *sortRel:
		return p.sort(r, a)
	case *limitRel:
		return p.limit(r, a)
	case *distinctRel:
		return p.distinctRows(r, a)
	case *setOpRel:
		return p.setOp(r, a)
	case *lockRel:
		return p.lock(r, a)
	case *barrierRel:
		return p.barrier(r, a)
	}
	return p.source(r)
}

// source plans the steps without input that are no tables.
func (p *physical) source(r rel) pnode {
	switch r := r.(type) {
	case *valuesRel:
		est := Estimate{Rows: float64(len(r.rows)), Cost: emitCost * float64(len(r.rows))}
		v := &Values{Base: p.base(r.cols, est), Rows: make([][]expr.Scalar, len(r.rows))}
		for i, row := range r.rows {
			v.Rows[i] = p.compileAll(row, nil)
		}
		return pnode{node: v, cols: r.cols, est: est}
	case *setFuncRel:
		est := Estimate{Rows: setRows(r.fn), Cost: setRows(r.fn) * emitCost}
		return pnode{cols: r.cols, est: est, node: &SetFunc{Base: p.base(r.cols, est), Func: r.fn,
			Args: p.compileAll(r.args, nil), Ordinality: r.ordinality}}
	case *changesRel:
		est := Estimate{Rows: changesRows, Cost: changesRows * emitCost}
		p.changes = &Changes{Base: p.base(r.cols, est), Table: r.table, Observer: r.observer,
			Max: p.compile(r.max, nil), Wait: p.compile(r.wait, nil)}
		return pnode{cols: r.cols, est: est, node: p.changes}
	case *cteRel:
		c := p.materialise(r.cte)
		est := c.node.Estimate()
		est.Cost = est.Rows * emitCost
		return pnode{cols: r.cols, est: est, node: &CTEScan{Base: p.base(r.cols, est), CTE: r.cte.index}}
	case *workRel:
		est := Estimate{Rows: unknownDistinct, Cost: unknownDistinct * emitCost}
		return pnode{cols: r.cols, est: est, node: &WorkScan{Base: p.base(r.cols, est), ID: r.id}}
	case *recursiveRel:
		return p.recursive(r)
	}
	p.fail(pgerror.New(pgerror.InternalError, "%T is not planned", r))
	return pnode{node: &Values{}}
}

func setRows(fn *builtin.SetFunc) float64 {
	if fn.Estimate > 0 {
		return fn.Estimate
	}
	return setFuncRows
}

// exact plans a tree so that its row is precisely the given columns.
func (p *physical) exact(r rel, ids []int, limit float64) pnode {
	var need colSet
	need.addList(ids)
	return p.shape(p.plan(r, ask{need: need, limit: limit}), ids)
}

// shape projects a row to the given columns, unless it has them already.
func (p *physical) shape(in pnode, ids []int) pnode {
	if p.err != nil || equalInts(in.cols, ids) {
		return in
	}
	exprs := make([]expr.Scalar, len(ids))
	for i, id := range ids {
		exprs[i] = p.place(p.b.column(id, 0), in.cols)
	}
	est := in.est
	est.Cost += est.Rows * emitCost
	return pnode{node: p.projection(ids, est, in.node, exprs), cols: ids, order: in.order, est: est}
}

// projection makes a Project; it replaces another one below it unless an expression would be evaluated twice.
func (p *physical) projection(cols []int, est Estimate, in Node, exprs []expr.Scalar) Node {
	if below, ok := in.(*Project); ok {
		if composed, ok := compose(exprs, below); ok {
			in, exprs = below.Input, composed
		}
	}
	return &Project{Base: p.base(cols, est), Input: in, Exprs: exprs}
}

// compose expresses exprs over the input of the projection below them.
func compose(exprs []expr.Scalar, below *Project) ([]expr.Scalar, bool) {
	uses := make([]int, len(below.Exprs))
	ok := true
	for _, e := range exprs {
		expr.Walk(e, func(x expr.Scalar) bool {
			if c, isCol := x.(*expr.Column); isCol {
				uses[c.Ordinal]++
			}
			// A correlated subquery reads the row by its place.
			if sub := expr.SubqueryOf(x); sub != nil && sub.Correlated {
				ok = false
			}
			return ok
		})
	}
	for i, n := range uses {
		if e := below.Exprs[i]; n > 1 && !isLeaf(e) || expr.Volatile(e) {
			ok = false
		}
	}
	if !ok {
		return nil, false
	}
	out := make([]expr.Scalar, len(exprs))
	for i, e := range exprs {
		out[i] = expr.Rewrite(e, func(x expr.Scalar) expr.Scalar {
			if c, isCol := x.(*expr.Column); isCol {
				return below.Exprs[c.Ordinal]
			}
			return x
		})
	}
	return out, true
}

func equalInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// scan plans the read of one table.
func (p *physical) scan(s *scanRel, a ask) pnode {
	for _, c := range s.conds {
		if expr.IsFalse(c) {
			return p.nothing(outputSet(s), a)
		}
	}
	if s.table.Kind == catalog.KindVirtual {
		return p.virtual(s, a)
	}
	if s.table.IsPartitioned() {
		return p.appendParts(s, a)
	}
	p.indexed(s)
	need := a.need.clone()
	for _, c := range s.conds {
		addUsed(c, &need)
	}
	pa := p.choosePath(s, s.conds, need, a.want, a.limit)
	if union, ok := p.orUnion(s, &pa, a); ok {
		return union
	}
	if found, ok := p.invertedScan(s, &pa, need, a); ok {
		return found
	}
	return p.readPath(s, &pa, a)
}

// readPath makes the node for a chosen path.
func (p *physical) readPath(s *scanRel, pa *path, a ask) pnode {
	rest := p.rest(s, pa)
	need := a.need.clone()
	for _, c := range rest {
		addUsed(c, &need)
	}
	cols, ords := s.delivered(need)
	// Columns that the key determines are not read for the filter: the index may now be covering.
	access := Access{Table: s.table, Alias: s.alias, Index: pa.index, Ordinals: ords, Fetch: !covers(s, pa.index, need), Policies: s.policies}
	est := Estimate{Rows: pa.rows, Cost: pa.cost}
	filter := p.conjunction(rest, cols)
	if pa.point {
		s.point, s.untested = true, pa.index == &s.table.Primary || s.indexes == nil
		keys := make([]expr.Scalar, len(pa.eq))
		for i, e := range pa.eq {
			keys[i] = p.compile(e.value, nil)
		}
		return pnode{cols: cols, order: pa.order, est: est,
			node: &PointGet{Base: p.base(cols, est), Access: access, Key: keys, Filter: filter}}
	}
	sc := &Scan{Base: p.base(cols, est), Access: access, Reverse: pa.reverse, Filter: filter}
	switch {
	case a.limit <= 0:
	case len(a.want) == 0 || pa.ordered:
		sc.Limit = rowHint(a.limit)
	case pa.prefix > 0 && a.limit+pa.runs < pa.rows:
		sc.Limit = rowHint(a.limit + pa.runs)
	}
	if len(pa.eq) > 0 || pa.low != nil || pa.high != nil {
		sc.Spans = []KeySpan{p.span(pa)}
	} else if pa.tuples != nil {
		sc.Spans = p.tupleSpans(pa.tuples)
	}
	return pnode{node: sc, cols: cols, order: pa.order, est: est}
}

// rowHint turns an expected number of rows into a hint.
func rowHint(rows float64) int { return int(math.Min(math.Ceil(rows), math.MaxInt32)) }

// span compiles a path's key conditions.
func (p *physical) span(pa *path) KeySpan {
	var k KeySpan
	for _, e := range pa.eq {
		if e.each != nil {
			k.Eq = append(k.Eq, KeyPart{Value: p.compile(e.each, nil), Each: true})
		} else {
			k.Eq = append(k.Eq, KeyPart{Value: p.compile(e.value, nil)})
		}
	}
	k.Low, k.High = p.bound(pa.low), p.bound(pa.high)
	return k
}

func (p *physical) bound(s *sarg) *Bound {
	if s == nil {
		return nil
	}
	return &Bound{Value: p.compile(s.value, nil), Inclusive: s.op == expr.GE || s.op == expr.LE}
}

// delivered lists the columns of a scan that are needed, in table order.
func (s *scanRel) delivered(need colSet) (cols, ords []int) {
	n := 0
	for _, id := range s.cols {
		if need.has(id) {
			n++
		}
	}
	both := make([]int, 2*n)
	cols, ords = both[:0:n], both[n:n:2*n]
	for ord, id := range s.cols {
		if need.has(id) {
			cols, ords = append(cols, id), append(ords, ord)
		}
	}
	return cols, ords
}

func (p *physical) virtual(s *scanRel, a ask) pnode {
	need := a.need.clone()
	for _, c := range s.conds {
		addUsed(c, &need)
	}
	cols, ords := s.delivered(need)
	est := Estimate{Rows: math.Max(unknownRows*p.selectivityOf(s.conds), 1), Cost: unknownRows}
	return pnode{cols: cols, est: est, node: &VirtualScan{Base: p.base(cols, est), Table: s.table, Ordinals: ords,
		Filter: p.conjunction(s.conds, cols)}}
}

// nothing is a source without rows.
func (p *physical) nothing(makes colSet, a ask) pnode {
	var cols []int
	makes.each(func(id int) {
		if a.need.has(id) {
			cols = append(cols, id)
		}
	})
	return pnode{node: &Values{Base: p.base(cols, Estimate{})}, cols: cols, order: a.want}
}

func (p *physical) filter(r *filterRel, a ask) pnode {
	for _, c := range r.conds {
		if expr.IsFalse(c) {
			return p.nothing(outputSet(r), a)
		}
	}
	below := a.clone()
	for _, c := range r.conds {
		addUsed(c, &below.need)
	}
	sel := p.selectivityOf(r.conds)
	if below.limit > 0 && sel > 0 {
		below.limit /= sel
	}
	in := p.plan(r.input, below)
	conds := r.conds
	if len(a.want) == 0 || len(in.order) == 0 {
		in, conds = p.gather(in, conds, below.limit)
	}
	est := Estimate{Rows: math.Max(in.est.Rows*sel, 1), Cost: in.est.Cost + in.est.Rows*p.condCost(conds)}
	return pnode{cols: in.cols, order: in.order, est: est,
		node: &Filter{Base: p.base(in.cols, est), Input: in.node, Cond: p.conjunction(conds, in.cols)}}
}

func (a ask) clone() ask {
	a.need = a.need.clone()
	return a
}

// condCost estimates the cost of testing a row.
func (p *physical) condCost(conds []expr.Scalar) float64 {
	cost := 0.0
	for _, c := range conds {
		cost += filterCost
		if expr.HasSubquery(c) {
			cost += subqueryCost
		}
	}
	return cost
}

// project computes the items that are needed; those that are not are not computed, unless they are
// volatile: PostgreSQL evaluates a select list once for every row.
func (p *physical) project(r *projectRel, a ask) pnode {
	var items []projection
	var made colSet
	for _, it := range r.items {
		made.add(it.id)
		if a.need.has(it.id) || expr.Volatile(it.e) {
			items = append(items, it)
		}
	}
	below := ask{need: a.need.minus(made), limit: a.limit, want: p.translateOrder(a.want, items)}
	if len(below.want) < len(a.want) {
		below.want, below.limit = nil, 0 // the order is made above, from all rows
	}
	for _, it := range items {
		addUsed(it.e, &below.need)
	}
	in := p.plan(r.input, below)
	if len(items) == 0 {
		return in
	}
	values := make([]expr.Scalar, len(items))
	for i, it := range items {
		values[i] = it.e
	}
	if len(below.want) == 0 || len(in.order) == 0 {
		in, values = p.gather(in, values, below.limit)
	}
	var cols []int
	var exprs []expr.Scalar
	for _, id := range in.cols {
		if a.need.has(id) {
			cols = append(cols, id)
			exprs = append(exprs, p.place(p.b.column(id, 0), in.cols))
		}
	}
	est := in.est
	for i, it := range items {
		cols = append(cols, it.id)
		exprs = append(exprs, p.compile(values[i], in.cols))
		est.Cost += in.est.Rows * emitCost
		if expr.HasSubquery(values[i]) {
			est.Cost += in.est.Rows * subqueryCost
		}
	}
	order := p.renameOrder(in.order, items)
	return pnode{node: p.projection(cols, est, in.node, exprs), cols: cols, order: order, est: est}
}

// translateOrder rewrites an order over computed columns that are plain copies.
func (p *physical) translateOrder(want []orderKey, items []projection) []orderKey {
	if len(want) == 0 {
		return nil
	}
	out := make([]orderKey, len(want))
	for i, w := range want {
		out[i] = w
		for _, it := range items {
			if it.id != w.id {
				continue
			}
			c, ok := it.e.(*expr.Column)
			if !ok {
				if c = p.computedColumn(it.e); c == nil {
					return out[:i]
				}
			}
			out[i].id = c.ID
		}
	}
	return out
}

// renameOrder adds, for copies of ordered columns, their names.
func (p *physical) renameOrder(order []orderKey, items []projection) []orderKey {
	for _, it := range items {
		c, ok := it.e.(*expr.Column)
		if !ok && len(order) > 0 {
			c = p.computedColumn(it.e)
		}
		if c == nil {
			continue
		}
		for i, k := range order {
			if k.id == c.ID {
				out := append([]orderKey(nil), order...)
				out[i].id = it.id
				order = out
				break
			}
		}
	}
	return order
}

// sort orders its input unless that arrives so.
func (p *physical) sort(r *sortRel, a ask) pnode {
	want := orderOf(r.keys)
	below := a.clone()
	below.want = want
	for _, k := range want {
		below.need.add(k.id)
	}
	in := p.plan(r.input, below)
	if p.err != nil || satisfies(in.order, want) {
		return in
	}
	n := p.presort(in, r.keys, commonPrefix(in.order, want))
	return pnode{cols: in.cols, order: want, est: n.Est, node: n}
}

// worthPrefix returns by how many leading keys of the wanted order the rows arrive, if sorting runs of them until there are enough takes fewer
// rows than there are; 0 otherwise.
func (p *physical) worthPrefix(in pnode, a ask) int {
	pre := commonPrefix(in.order, a.want)
	if pre == 0 || pre == len(a.want) || a.limit <= 0 {
		return 0
	}
	runs := p.prefixDistinct(in.order, a.want[:pre], in.est.Rows)
	if runs <= 1 || a.limit+in.est.Rows/runs >= in.est.Rows {
		return 0
	}
	return pre
}

// prefixDistinct guesses the number of different values that the keys, which rows of the order have arrived in, take together.
func (p *physical) prefixDistinct(order, keys []orderKey, rows float64) float64 {
	n := 1.0
	for _, k := range keys {
		if !slices.ContainsFunc(order, func(o orderKey) bool { return o.id == k.id && o.fixed }) {
			n *= p.columnDistinct(k.id, rows)
		}
	}
	return math.Min(n, math.Max(rows, 1))
}

// presort sorts rows that arrive in the order of the first pre keys.
func (p *physical) presort(in pnode, keys []SortKey, pre int) *Sort {
	est := in.est
	est.Cost += sortPrice(est.Rows)
	return &Sort{Base: p.base(in.cols, est), Input: in.node, Keys: p.sortKeys(keys, in.cols), Presorted: pre}
}

func (p *physical) sortKeys(keys []SortKey, cols []int) []SortKey {
	out := make([]SortKey, len(keys))
	for i, k := range keys {
		out[i] = SortKey{Expr: p.compile(k.Expr, cols), Desc: k.Desc, NullsFirst: k.NullsFirst}
	}
	return out
}

// expectedLimit is the number of rows a limit is expected to pull; 0 if unknown.
func expectedLimit(limit, offset expr.Scalar) float64 {
	c, ok := limit.(*expr.Const)
	if !ok {
		if limit == nil {
			return 0
		}
		return 100 // a parameter: a page
	}
	n := float64(c.Value.Int())
	if o, ok := offset.(*expr.Const); ok && !o.Value.IsNull() {
		n += float64(o.Value.Int())
	}
	return math.Max(n, 1)
}

// limit cuts; over a sort that is really needed it becomes a top-N.
func (p *physical) limit(r *limitRel, a ask) pnode {
	if len(r.ties) > 0 {
		return p.limitWithTies(r, a)
	}
	below := a.clone()
	below.limit = expectedLimit(expr.Rewrite(r.limit, expr.Fold), expr.Rewrite(r.offset, expr.Fold))
	var keys []SortKey
	input := r.input
	if s, ok := input.(*sortRel); ok && r.limit != nil {
		keys, input = s.keys, s.input
		below.want = orderOf(keys)
		for _, k := range below.want {
			below.need.add(k.id)
		}
	}
	in := p.plan(input, below)
	est := in.est
	limit, offset := p.compile(r.limit, nil), p.compile(r.offset, nil)
	if below.limit > 0 {
		est.Rows = math.Min(est.Rows, below.limit)
	}
	if pre := p.worthPrefix(in, below); p.err == nil && pre > 0 {
		// Runs of equal leading keys are sorted one after the other, until there are enough rows.
		sorted := p.presort(in, keys, pre)
		return pnode{cols: in.cols, order: below.want, est: est,
			node: &Limit{Base: p.base(in.cols, est), Input: sorted, Limit: limit, Offset: offset}}
	}
	if p.err == nil && len(keys) > 0 && !satisfies(in.order, below.want) {
		est.Cost += in.est.Rows * sortCost * math.Log2(est.Rows+2)
		return pnode{cols: in.cols, order: below.want, est: est, node: &TopN{Base: p.base(in.cols, est), Input: in.node,
			Keys: p.sortKeys(keys, in.cols), Limit: limit, Offset: offset}}
	}
	return pnode{cols: in.cols, order: in.order, est: est,
		node: &Limit{Base: p.base(in.cols, est), Input: in.node, Limit: limit, Offset: offset}}
}

// aggregate groups: over input that arrives grouped without a hash table.
func (p *physical) aggregate(r *aggRel, a ask) pnode {
	below := ask{}
	keyed := true
	for _, g := range r.groups {
		addUsed(g.e, &below.need)
		c, ok := g.e.(*expr.Column)
		keyed = keyed && ok
		if ok {
			below.want = append(below.want, orderKey{id: c.ID, coll: c.Typ.Coll})
		}
	}
	if !keyed {
		below.want = nil
	}
	aggs := r.aggs[:0:0]
	for _, g := range r.aggs {
		if a.need.has(g.id) {
			aggs = append(aggs, g)
			p.addAggregateUse(&g.call, &below.need)
		}
	}
	if out, ok := p.extremes(r, aggs); ok {
		return out
	}
	below.want = p.groupOrder(below.want, a.want)
	// The order is optional, not worth a more expensive path: it is dropped if the input does not have it.
	in := p.plan(r.input, ask{need: below.need, want: p.cheapOrder(r.input, below), limit: below.limit})
	for i := range aggs {
		in, aggs[i].call.Args = p.gather(in, aggs[i].call.Args, below.limit)
	}
	return p.aggregateNode(r, aggs, in)
}

func (p *physical) addAggregateUse(c *AggregateCall, s *colSet) {
	mapAggregate(c, func(e expr.Scalar) expr.Scalar { addUsed(e, s); return e })
}

// groupOrder arranges the group keys in the order wanted above, as far as it names them.
func (p *physical) groupOrder(keys, want []orderKey) []orderKey {
	var out []orderKey
	for _, w := range want {
		for _, k := range keys {
			if k.id == w.id {
				out = append(out, w)
			}
		}
	}
next:
	for _, k := range keys {
		for _, have := range out {
			if have.id == k.id {
				continue next
			}
		}
		out = append(out, k)
	}
	return out
}

// cheapOrder requests the groups' order only of a plain table whose index delivers it.
func (p *physical) cheapOrder(in rel, a ask) []orderKey {
	if _, ok := in.(*scanRel); ok {
		return a.want
	}
	return nil
}

func (p *physical) aggregateNode(r *aggRel, aggs []aggregation, in pnode) pnode {
	if p.err != nil {
		return in
	}
	n := &Aggregate{Input: in.node, Scalar: r.scalar, Empties: r.empties}
	cols := make([]int, 0, len(r.groups)+len(aggs))
	rows := 1.0
	var ids []int
	for _, g := range r.groups {
		cols = append(cols, g.id)
		n.GroupBy = append(n.GroupBy, p.compile(g.e, in.cols))
		if c, ok := g.e.(*expr.Column); ok {
			rows *= p.columnDistinct(c.ID, in.est.Rows)
			ids = append(ids, c.ID)
		} else {
			rows *= unknownDistinct / 10
		}
	}
	for i := range aggs {
		cols = append(cols, aggs[i].id)
		n.Aggs = append(n.Aggs, p.aggregateCall(&aggs[i].call, in.cols))
	}
	n.Ordered = len(ids) == len(r.groups) && len(ids) > 0 && grouped(in.order, ids)
	est := Estimate{Rows: math.Max(math.Min(rows, in.est.Rows), 1), Cost: in.est.Cost + in.est.Rows*(hashCost+emitCost*float64(len(aggs)))}
	out := pnode{node: n, cols: cols, est: est}
	if n.Ordered {
		est.Cost = in.est.Cost + in.est.Rows*emitCost*float64(1+len(aggs))
		out.order = groupOrderOf(in.order, ids)
	}
	n.Base = p.base(cols, est)
	n.Kept = p.keptValues(aggs, est.Rows, in.est.Rows)
	out.est = est
	return out
}

func (p *physical) aggregateCall(c *AggregateCall, cols []int) AggregateCall {
	return AggregateCall{Func: c.Func, Args: p.compileAll(c.Args, cols), Direct: p.compileAll(c.Direct, cols), Distinct: c.Distinct,
		Filter: p.compile(c.Filter, cols), OrderBy: p.sortKeys(c.OrderBy, cols)}
}

// grouped reports whether rows in the given order arrive with equal values of the columns together:
// the columns are the leading keys in any order, fixed ones aside.
func grouped(order []orderKey, ids []int) bool {
	left := map[int]bool{}
	for _, id := range ids {
		left[id] = true
	}
	for _, k := range order {
		if len(left) == 0 {
			return true
		}
		if left[k.id] {
			delete(left, k.id)
		} else if !k.fixed {
			return false
		}
		if k.unique {
			return true
		}
	}
	return len(left) == 0
}

// groupOrderOf is the part of an order that the groups keep: its keys up to the last that is a group's.
func groupOrderOf(order []orderKey, ids []int) []orderKey {
	n := 0
	for i, k := range order {
		if indexOf(ids, k.id) >= 0 {
			n = i + 1
		} else if !k.fixed {
			break
		}
	}
	return order[:n]
}

func (p *physical) distinctRows(r *distinctRel, a ask) pnode {
	below := a.clone()
	below.limit *= 10 // that many rows may have to be read for a new one
	for _, id := range r.on {
		below.need.add(id)
	}
	in := p.plan(r.input, below)
	if p.err != nil {
		return in
	}
	est := Estimate{Rows: math.Max(in.est.Rows/2, 1), Cost: in.est.Cost + in.est.Rows*hashCost}
	n := &Distinct{Base: p.base(in.cols, est), Input: in.node, Ordered: grouped(in.order, r.on)}
	order := in.order
	if !n.Ordered {
		// Keys that do not fit into memory can be moved to a file only if no order is required.
		if n.KeepsOrder = len(in.order) > 0 && len(a.want) > 0; !n.KeepsOrder {
			order = nil
		}
	}
	if !sameSet(in.cols, r.on) {
		for _, id := range r.on {
			n.On = append(n.On, p.place(p.b.column(id, 0), in.cols))
		}
	}
	return pnode{node: n, cols: in.cols, order: order, est: est}
}

func indexOf(list []int, id int) int {
	for i, x := range list {
		if x == id {
			return i
		}
	}
	return -1
}
