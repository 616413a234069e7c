package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// PostgreSQL's limits.
const (
	maxGroupingSets     = 4096
	maxCubeElements     = 12
	maxGroupingElements = 31
)

// groupingCall is a call of GROUPING.
type groupingCall struct {
	id    int
	args  []expr.Scalar
	pos   []int
	marks []int64 // its values, by grouping set
}

// grouping binds GROUPING and returns the column it will be.
func (sc *scope) grouping(e *ast.Call) (expr.Scalar, error) {
	pos := int(e.Pos)
	if len(e.Args) > maxGroupingElements {
		return nil, pgerror.New(pgerror.TooManyArguments, "GROUPING must have fewer than 32 arguments").At(pos)
	}
	named := &tracker{depth: sc.depth, deepest: -1}
	sc.b.trackers = append(sc.b.trackers, named)
	args, _, err := sc.args(e.Args)
	sc.b.trackers = sc.b.trackers[:len(sc.b.trackers)-1]
	if err != nil {
		return nil, err
	}
	sc = sc.ownerOf(named.deepest)
	sc.b.touch(sc.depth)
	if !sc.aggsOK || sc.sel == nil {
		return nil, pgerror.New(pgerror.Grouping, "grouping operations are not allowed in %s", sc.clause).At(pos)
	}
	if sc.inAgg {
		return nil, nestedAggregate(pos)
	}
	for i := range sc.sel.groupings {
		if g := &sc.sel.groupings[i]; slices.EqualFunc(g.args, args, expr.Equal) {
			return sc.b.column(g.id, pos), nil
		}
	}
	g := groupingCall{id: sc.b.newColumn("grouping", types.TInt4), args: args}
	for _, a := range e.Args {
		g.pos = append(g.pos, startOf(a))
	}
	sc.sel.groupings = append(sc.sel.groupings, g)
	return sc.b.column(g.id, pos), nil
}

// bindGroups binds GROUP BY: the keys, and the grouping sets if there are some.
func (sb *selectBinder) bindGroups() error {
	if !sb.hasSets() {
		for _, e := range sb.s.GroupBy {
			if _, err := sb.groupKeys(e); err != nil {
				return err
			}
		}
		return nil
	}
	all := [][]int{{}}
	for _, e := range sb.s.GroupBy {
		sets, err := sb.groupingSets(e)
		if err != nil {
			return err
		}
		if len(all)*len(sets) > maxGroupingSets {
			return tooManySets(startOf(sb.s.GroupBy[0]))
		}
		var product [][]int
		for _, a := range all {
			for _, b := range sets {
				product = append(product, union(a, b))
			}
		}
		all = product
	}
	if sb.s.GroupSets {
		all = distinctSets(all)
	}
	sb.sets = all
	return nil
}

// hasSets reports whether GROUP BY has grouping sets.
func (sb *selectBinder) hasSets() bool {
	return slices.ContainsFunc(sb.s.GroupBy, func(e ast.Expr) bool { _, ok := e.(*ast.GroupingSet); return ok })
}

func tooManySets(pos int) error {
	return pgerror.New(pgerror.StatementTooComplex, "too many grouping sets present (maximum %d)", maxGroupingSets).At(pos)
}

// union is the set of the members of two.
func union(a, b []int) []int {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// distinctSets drops sets that are equal to an earlier one.
func distinctSets(sets [][]int) [][]int {
	var out [][]int
	for _, s := range sets {
		if !slices.ContainsFunc(out, func(have []int) bool { return slices.Equal(have, s) }) {
			out = append(out, s)
		}
	}
	return out
}

// groupingSets returns the sets that an item of GROUP BY stands for.
func (sb *selectBinder) groupingSets(e ast.Expr) ([][]int, error) {
	set, ok := e.(*ast.GroupingSet)
	if !ok {
		keys, err := sb.groupKeys(e)
		return [][]int{keys}, err
	}
	pos := int(set.Pos)
	if set.Kind == "CUBE" && len(set.Items) > maxCubeElements {
		return nil, pgerror.New(pgerror.TooManyColumns, "CUBE is limited to %d elements", maxCubeElements).At(pos)
	}
	var sets, elems [][]int
	for _, item := range set.Items {
		some, err := sb.groupingSets(item)
		if err != nil {
			return nil, err
		}
		if elems = append(elems, some...); len(elems) > maxGroupingSets {
			return nil, tooManySets(pos)
		}
	}
	switch set.Kind {
	case "ROLLUP":
		for n := len(elems); n >= 0; n-- {
			sets = append(sets, union(nil, slices.Concat(elems[:n]...)))
		}
	case "CUBE":
		for bits := 1<<len(elems) - 1; bits >= 0; bits-- {
			var in []int
			for i := range elems {
				if bits>>i&1 != 0 {
					in = union(in, elems[i])
				}
			}
			sets = append(sets, in)
		}
	case "GROUPING SETS":
		sets = elems
	default:
		sets = [][]int{{}}
	}
	return sets, nil
}

// groupKeys binds a key, or a list of them in parentheses, and returns their indexes.
func (sb *selectBinder) groupKeys(e ast.Expr) ([]int, error) {
	if row, ok := e.(*ast.Row); ok && !row.Explicit {
		var keys []int
		for _, elem := range row.Elems {
			some, err := sb.groupKeys(elem)
			if err != nil {
				return nil, err
			}
			keys = union(keys, some)
		}
		return keys, nil
	}
	x, err := sb.groupExpr(e)
	if err != nil {
		return nil, err
	}
	if err := requireEquality(x.Type(), startOf(e)); err != nil {
		return nil, err
	}
	target, err := sb.groupTarget(e)
	if err != nil {
		return nil, err
	}
	for i := range sb.groups {
		// Entries of the select list with the same expression are keys of their own: a set may have one of them without the other.
		twin := sb.hasSets() && target >= 0 && sb.groupTargets[i] >= 0 && sb.groupTargets[i] != target
		if !twin && expr.Refers(sb.groups[i], x, nil) {
			return []int{i}, nil
		}
	}
	sb.groups, sb.groupTargets = append(sb.groups, x), append(sb.groupTargets, target)
	return []int{len(sb.groups) - 1}, nil
}

// markGroupings computes the values of GROUPING: a bit for each argument, the last one's the lowest, set if the argument is
// not a key of the grouping set.
func (sb *selectBinder) markGroupings() error {
	for i := range sb.sel.groupings {
		g := &sb.sel.groupings[i]
		g.marks = make([]int64, max(len(sb.sets), 1))
		for j, arg := range g.args {
			key := slices.IndexFunc(sb.groups, func(x expr.Scalar) bool { return expr.Refers(x, arg, nil) })
			if key < 0 {
				return pgerror.New(pgerror.Grouping, "arguments to GROUPING must be grouping expressions of the associated query level").At(g.pos[j])
			}
			for k, set := range sb.sets {
				if !slices.Contains(set, key) {
					g.marks[k] |= 1 << (len(g.args) - 1 - j)
				}
			}
		}
	}
	return nil
}

// grouping groups rows, once for each grouping set.
func (sb *selectBinder) grouping(root rel) rel {
	agg := &aggRel{input: root, aggs: sb.sel.aggs}
	for _, g := range sb.groups {
		id := sb.groupID(g)
		if id < 0 {
			id = g.(*expr.Column).ID
		}
		agg.groups = append(agg.groups, projection{id: id, e: g})
	}
	if len(sb.sets) > 1 {
		sb.expand(agg)
		return agg
	}
	agg.scalar = len(sb.groups) == 0
	if len(sb.sel.groupings) == 0 {
		return agg
	}
	marks := &projectRel{input: agg}
	for i := range sb.sel.groupings {
		marks.items = append(marks.items, projection{id: sb.sel.groupings[i].id, e: &expr.Const{Value: types.Int(0), Typ: types.TInt4}})
	}
	return marks
}

// expand makes agg group by the keys as they are in each grouping set, and by the set.
func (sb *selectBinder) expand(agg *aggRel) {
	x := &expandRel{input: agg.input, keys: agg.groups, set: sb.b.newColumn("grouping set", types.TInt4)}
	agg.input, agg.groups = x, nil
	for _, k := range x.keys {
		agg.groups = append(agg.groups, projection{id: k.id, e: sb.b.column(k.id, 0)})
	}
	for i := range sb.sel.groupings {
		id := sb.sel.groupings[i].id
		x.marks = append(x.marks, id)
		agg.groups = append(agg.groups, projection{id: id, e: sb.b.column(id, 0)})
	}
	agg.groups = append(agg.groups, projection{id: x.set, e: sb.b.column(x.set, 0)})
	for i, keys := range sb.sets {
		set := GroupingSet{Has: make([]bool, len(x.keys))}
		for _, k := range keys {
			set.Has[k] = true
		}
		empty := make(types.Row, len(x.keys), len(agg.groups))
		for j := range sb.sel.groupings {
			mark := sb.sel.groupings[j].marks[i]
			set.Marks = append(set.Marks, mark)
			empty = append(empty, types.Int(mark))
		}
		x.sets = append(x.sets, set)
		if len(keys) == 0 {
			agg.empties = append(agg.empties, append(empty, types.Int(int64(i))))
		}
	}
}

// expand plans the rows for grouping sets.
func (p *physical) expand(r *expandRel, a ask) pnode {
	made := setOf(r.marks)
	made.add(r.set)
	for i := range r.keys {
		made.add(r.keys[i].id)
	}
	below := ask{need: a.need.minus(made)}
	for i := range r.keys {
		addUsed(r.keys[i].e, &below.need)
	}
	in := p.plan(r.input, below)
	if p.err != nil {
		return in
	}
	n := &Expand{Input: in.node, Sets: r.sets}
	cols := append([]int(nil), in.cols...)
	for i := range r.keys {
		cols = append(cols, r.keys[i].id)
		n.Keys = append(n.Keys, p.compile(r.keys[i].e, in.cols))
	}
	cols = append(append(cols, r.marks...), r.set)
	est := Estimate{Rows: in.est.Rows * float64(len(r.sets)), Cost: in.est.Cost + in.est.Rows*float64(len(r.sets))*emitCost}
	n.Base = p.base(cols, est)
	return pnode{node: n, cols: cols, est: est}
}
