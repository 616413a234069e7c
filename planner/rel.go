package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// rel is a step of a query in its logical form, which the binder makes and the rules rewrite. Columns have IDs, unique
// in the statement, so that an expression keeps its meaning wherever it is moved; the physical plan has ordinals. An
// expression belongs to one place: to use it in two places, clone it.
//
// There are two kinds of trees (this one and Node), because ordinals change with every join that moves, and the rules
// move joins often.
type rel interface{ rel() }

type (
	// scanRel reads a table; cols has the column ID of each table column.
	scanRel struct {
		table *catalog.TableDescriptor
		alias string
		cols  []int
		conds []expr.Scalar
		stats *catalog.TableStats // nil until requested
		need  *Need               // what reading its columns needs; nil: nothing
		// barrier holds back the rows that the policies of the table hide; nil: there is none.
		barrier  *barrierRel
		policies []string // the names of those in force
		// secured: the policies are among conds, so that other conditions must be leakproof.
		secured bool
		// point: a single row is read, by key.
		point bool
		// untested: the row is found by a key whose choice depends on no value.
		untested bool
		// origin is the column of the OID of the partition that a row is from, 0 if nothing reads it.
		origin int
		// replaced is the column of replacedColumn, 0 if nothing reads it.
		replaced int
		// part: of a partition, read for the table above it, whose column IDs it has.
		part bool
		// indexes are what the table's indexes compute, nil until needed.
		indexes *scanIndexes
	}
	// valuesRel yields rows of expressions.
	valuesRel struct {
		rows [][]expr.Scalar
		cols []int
	}
	// setFuncRel calls a set-returning function.
	setFuncRel struct {
		fn         *builtin.SetFunc
		args       []expr.Scalar
		ordinality bool
		cols       []int
		name       string
	}
	// cteRel reads a materialised WITH item.
	cteRel struct {
		cte  *cte
		cols []int
	}
	// workRel reads the working table of the recursiveRel with the same id.
	workRel struct {
		id   int
		cols []int
	}
	// recursiveRel is WITH RECURSIVE.
	recursiveRel struct {
		id                       int
		init, step               rel
		initCols, stepCols, cols []int
		all                      bool
	}
	// joinRel joins; lateral means that right refers to left's columns.
	joinRel struct {
		kind        JoinKind
		left, right rel
		on          []expr.Scalar
		lateral     bool
	}
	// filterRel keeps the rows for which all conds are true.
	filterRel struct {
		input rel
		conds []expr.Scalar
	}
	// projectRel adds computed columns to its input's.
	projectRel struct {
		input rel
		items []projection
	}
	// projectSetRel adds columns computed by set-returning functions.
	projectSetRel struct {
		input rel
		sets  []setProjection
	}
	// aggRel groups. Its columns are the groups' and the aggregates'.
	aggRel struct {
		input  rel
		groups []projection
		aggs   []aggregation
		scalar bool
		// empties are the keys of groups that there are even of no input, in the order of groups.
		empties []types.Row
	}
	// expandRel yields each row once for each grouping set, see Expand.
	expandRel struct {
		input rel
		keys  []projection
		sets  []GroupingSet
		marks []int // columns of GROUPING
		set   int   // column of the set's number
	}
	// windowRel adds the columns of window functions over one window to rows that arrive in its order. Its keys are
	// columns.
	windowRel struct {
		input     rel
		partition []int
		order     []SortKey
		frame     WindowFrame
		calls     []windowing
	}
	// sortRel orders.
	sortRel struct {
		input rel
		keys  []SortKey
	}
	// limitRel skips and cuts. Rows that ties does not tell from the last one pass as well; nil: none do.
	limitRel struct {
		input         rel
		limit, offset expr.Scalar
		ties          []SortKey
	}
	// distinctRel removes rows equal in on to an earlier one. cols are the available columns.
	distinctRel struct {
		input rel
		on    []int
	}
	// setOpRel is UNION, INTERSECT or EXCEPT; cols correspond to leftCols and rightCols pairwise.
	setOpRel struct {
		op                        string
		all                       bool
		left, right               rel
		leftCols, rightCols, cols []int
	}
	// lockRel is FOR UPDATE and its kind.
	lockRel struct {
		input    rel
		strength string
		wait     string
		targets  []*scanRel
	}
)

// projection is a computed column.
type projection struct {
	id int
	e  expr.Scalar
}

// setProjection is a column that a set-returning function computes.
type setProjection struct {
	id   int
	fn   *builtin.SetFunc
	args []expr.Scalar
}

// aggregation is an aggregate's column.
type aggregation struct {
	id   int
	call AggregateCall
	name string
	pos  int
}

// windowing is a window function's column.
type windowing struct {
	id   int
	call WindowCall
}

func (*scanRel) rel()       {}
func (*valuesRel) rel()     {}
func (*setFuncRel) rel()    {}
func (*cteRel) rel()        {}
func (*workRel) rel()       {}
func (*recursiveRel) rel()  {}
func (*joinRel) rel()       {}
func (*filterRel) rel()     {}
func (*projectRel) rel()    {}
func (*projectSetRel) rel() {}
func (*aggRel) rel()        {}
func (*expandRel) rel()     {}
func (*windowRel) rel()     {}
func (*sortRel) rel()       {}
func (*limitRel) rel()      {}
func (*distinctRel) rel()   {}
func (*setOpRel) rel()      {}
func (*lockRel) rel()       {}

// outputs adds the columns that r can deliver to s.
func outputs(r rel, s *colSet) {
	switch r := r.(type) {
	case *scanRel:
		s.addList(r.cols)
		if r.origin > 0 {
			s.add(r.origin)
		}
	case *valuesRel:
		s.addList(r.cols)
	case *setFuncRel:
		s.addList(r.cols)
	case *changesRel:
		s.addList(r.cols)
	case *cteRel:
		s.addList(r.cols)
	case *workRel:
		s.addList(r.cols)
	case *recursiveRel:
		s.addList(r.cols)
	case *joinRel:
		outputs(r.left, s)
		if r.kind != SemiJoin && r.kind != AntiJoin {
			outputs(r.right, s)
		}
	case *projectRel:
		outputs(r.input, s)
		for i := range r.items {
			s.add(r.items[i].id)
		}
	case *projectSetRel:
		outputs(r.input, s)
		for i := range r.sets {
			s.add(r.sets[i].id)
		}
	case *aggRel:
		for i := range r.groups {
			s.add(r.groups[i].id)
		}
		for i := range r.aggs {
			s.add(r.aggs[i].id)
		}
	case *expandRel:
		outputs(r.input, s)
		for i := range r.keys {
			s.add(r.keys[i].id)
		}
		s.addList(r.marks)
		s.add(r.set)
	case *windowRel:
		outputs(r.input, s)
		for i := range r.calls {
			s.add(r.calls[i].id)
		}
	case *setOpRel:
		s.addList(r.cols)
	default:
		outputs(input(r), s)
	}
}

// outputSet returns the columns that r can deliver.
func outputSet(r rel) colSet {
	var s colSet
	outputs(r, &s)
	return s
}

// input returns the only input of a step that has one, nil otherwise.
func input(r rel) rel {
	switch r := r.(type) {
	case *filterRel:
		return r.input
	case *projectRel:
		return r.input
	case *projectSetRel:
		return r.input
	case *aggRel:
		return r.input
	case *expandRel:
		return r.input
	case *windowRel:
		return r.input
	case *sortRel:
		return r.input
	case *limitRel:
		return r.input
	case *distinctRel:
		return r.input
	case *lockRel:
		return r.input
	case *barrierRel:
		return r.input
	}
	return nil
}

// mapInputs replaces every input of r by f of it.
func mapInputs(r rel, f func(rel) rel) {
	switch r := r.(type) {
	case *filterRel:
		r.input = f(r.input)
	case *projectRel:
		r.input = f(r.input)
	case *projectSetRel:
		r.input = f(r.input)
	case *aggRel:
		r.input = f(r.input)
	case *expandRel:
		r.input = f(r.input)
	case *windowRel:
		r.input = f(r.input)
	case *sortRel:
		r.input = f(r.input)
	case *limitRel:
		r.input = f(r.input)
	case *distinctRel:
		r.input = f(r.input)
	case *lockRel:
		r.input = f(r.input)
	case *barrierRel:
		r.input = f(r.input)
	case *joinRel:
		r.left, r.right = f(r.left), f(r.right)
	case *setOpRel:
		r.left, r.right = f(r.left), f(r.right)
	case *recursiveRel:
		r.init, r.step = f(r.init), f(r.step)
	}
}

// mapExprs replaces every expression of r itself, not of its inputs, by f of it.
func mapExprs(r rel, f func(expr.Scalar) expr.Scalar) {
	list := func(es []expr.Scalar) {
		for i := range es {
			es[i] = f(es[i])
		}
	}
	switch r := r.(type) {
	case *scanRel:
		list(r.conds)
	case *valuesRel:
		for _, row := range r.rows {
			list(row)
		}
	case *setFuncRel:
		list(r.args)
	case *changesRel:
		if r.max != nil {
			r.max = f(r.max)
		}
		if r.wait != nil {
			r.wait = f(r.wait)
		}
	case *joinRel:
		list(r.on)
	case *filterRel:
		list(r.conds)
	case *projectRel:
		for i := range r.items {
			r.items[i].e = f(r.items[i].e)
		}
	case *projectSetRel:
		for i := range r.sets {
			list(r.sets[i].args)
		}
	case *aggRel:
		for i := range r.groups {
			r.groups[i].e = f(r.groups[i].e)
		}
		for i := range r.aggs {
			mapAggregate(&r.aggs[i].call, f)
		}
	case *expandRel:
		for i := range r.keys {
			r.keys[i].e = f(r.keys[i].e)
		}
	case *windowRel:
		r.mapExprs(f)
	case *sortRel:
		for i := range r.keys {
			r.keys[i].Expr = f(r.keys[i].Expr)
		}
	case *limitRel:
		if r.limit != nil {
			r.limit = f(r.limit)
		}
		if r.offset != nil {
			r.offset = f(r.offset)
		}
		for i := range r.ties {
			r.ties[i].Expr = f(r.ties[i].Expr)
		}
	}
}

func mapAggregate(c *AggregateCall, f func(expr.Scalar) expr.Scalar) {
	for i := range c.Args {
		c.Args[i] = f(c.Args[i])
	}
	for i := range c.Direct {
		c.Direct[i] = f(c.Direct[i])
	}
	if c.Filter != nil {
		c.Filter = f(c.Filter)
	}
	for i := range c.OrderBy {
		c.OrderBy[i].Expr = f(c.OrderBy[i].Expr)
	}
}

// mapExprs is mapExprs for a windowRel.
func (r *windowRel) mapExprs(f func(expr.Scalar) expr.Scalar) {
	for i := range r.order {
		r.order[i].Expr = f(r.order[i].Expr)
	}
	for _, b := range [2]*WindowBound{&r.frame.Start, &r.frame.End} {
		if b.Offset != nil {
			b.Offset = f(b.Offset)
		}
	}
	for i := range r.calls {
		mapWindowCall(&r.calls[i].call, f)
	}
}

func mapWindowCall(c *WindowCall, f func(expr.Scalar) expr.Scalar) {
	for i := range c.Args {
		c.Args[i] = f(c.Args[i])
	}
	if c.Filter != nil {
		c.Filter = f(c.Filter)
	}
}

// subRel is the logical plan of an expression's subquery.
type subRel struct {
	root rel
	cols []int // its output columns, in order
	free colSet
	// exists: only the number of rows matters.
	exists bool
	// hidden: of a policy, so that its readers must not learn how many rows it has been evaluated for.
	hidden bool
	// rewritten is set once the rules were applied to root.
	rewritten bool
}

// addUsed adds the columns that e reads, those its subqueries take from outside included.
func addUsed(e expr.Scalar, s *colSet) {
	expr.Walk(e, func(x expr.Scalar) bool {
		switch x := x.(type) {
		case *expr.Column:
			s.add(x.ID)
		default:
			if sub := expr.SubqueryOf(x); sub != nil {
				s.addAll(sub.Plan.(*subRel).free)
			}
		}
		return true
	})
}

// used returns the columns that e reads.
func used(e expr.Scalar) colSet {
	var s colSet
	addUsed(e, &s)
	return s
}

// freeColumns returns the columns that the tree below r reads but does not produce: its correlation.
func freeColumns(r rel) colSet {
	var reads, makes colSet
	var walk func(r rel)
	walk = func(r rel) {
		outputs(r, &makes)
		mapExprs(r, func(e expr.Scalar) expr.Scalar { addUsed(e, &reads); return e })
		mapInputs(r, func(in rel) rel { walk(in); return in })
	}
	walk(r)
	return reads.minus(makes)
}
