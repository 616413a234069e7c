package planner

import (
	"fmt"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
)

// checkPlan verifies what the executor relies on: every ordinal lies in the row it is read from and
// has the type found there, every input exists, every outer reference finds a row, subqueries are
// numbered within the plan, and the output describes the row.
func checkPlan(p *Plan) error {
	c := &checker{plan: p, works: map[int]int{}}
	c.node(p.Root)
	for _, n := range p.CTEs {
		c.node(n)
	}
	return c.err
}

type checker struct {
	plan  *Plan
	outer [][]Column
	works map[int]int
	err   error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) expr(e expr.Scalar, row []Column) {
	if e == nil {
		return
	}
	expr.Walk(e, func(x expr.Scalar) bool {
		switch x := x.(type) {
		case *expr.Column:
			if x.Ordinal < 0 || x.Ordinal >= len(row) {
				c.fail("column %s at %d of a row of %d", x.Name, x.Ordinal, len(row))
			} else if row[x.Ordinal].Type.OID != x.Typ.OID {
				c.fail("column %s is %s in the row, %s in the expression", x.Name, row[x.Ordinal].Type, x.Typ)
			}
		case *expr.Outer:
			if x.Level < 1 || x.Level > len(c.outer) || x.Ordinal >= len(c.outer[len(c.outer)-x.Level]) {
				c.fail("outer column %s at level %d of %d", x.Name, x.Level, len(c.outer))
			}
		case *expr.Input:
			if x.Index < 0 || x.Index >= len(c.plan.Inputs) || c.plan.Inputs[x.Index].Type != x.Typ {
				c.fail("input %d", x.Index)
			}
		}
		if sub := expr.SubqueryOf(x); sub != nil {
			c.subquery(sub, row)
		}
		return true
	})
}

func (c *checker) subquery(sub *expr.Subquery, row []Column) {
	if sub.ID >= c.plan.Subqueries {
		c.fail("subquery %d of %d", sub.ID, c.plan.Subqueries)
	}
	n, ok := sub.Plan.(Node)
	if !ok {
		c.fail("subquery %d was not planned: %T", sub.ID, sub.Plan)
		return
	}
	c.outer = append(c.outer, row)
	c.node(n)
	c.outer = c.outer[:len(c.outer)-1]
}

func (c *checker) all(es []expr.Scalar, row []Column) {
	for _, e := range es {
		c.expr(e, row)
	}
}

func (c *checker) keys(keys []SortKey, row []Column) {
	for _, k := range keys {
		c.expr(k.Expr, row)
	}
}

func (c *checker) width(n Node, want int) {
	if len(n.Columns()) != want {
		c.fail("%T delivers %d columns and describes %d", n, want, len(n.Columns()))
	}
}

func (c *checker) access(a *Access) {
	for _, ord := range a.Ordinals {
		if ord < 0 || ord >= len(a.Table.Columns) {
			c.fail("ordinal %d of table %s", ord, a.Table.Name)
		}
	}
}

func (c *checker) node(n Node) {
	c.authorized(n)
	row := n.Columns()
	for _, child := range n.Children() {
		if a, ok := n.(*Apply); ok && child == a.Right {
			c.outer = append(c.outer, a.Left.Columns())
			c.node(child)
			c.outer = c.outer[:len(c.outer)-1]
			continue
		}
		c.node(child)
	}
	switch n := n.(type) {
	case *PointGet:
		c.access(&n.Access)
		c.width(n, len(n.Ordinals))
		c.all(n.Key, nil)
		c.expr(n.Filter, row)
		if len(n.Key) != len(n.Index.Columns) {
			c.fail("point key of %d columns for index %s", len(n.Key), n.Index.Name)
		}
	case *Scan:
		c.scan(n)
	case *Append:
		for _, in := range n.Inputs {
			c.width(in, len(row))
		}
		for _, k := range n.Merge {
			c.expr(k.Expr, row)
		}
	case *Values:
		for _, r := range n.Rows {
			c.width(n, len(r))
			c.all(r, nil)
		}
	case *SetFunc:
		c.all(n.Args, nil)
	case *VirtualScan:
		c.width(n, len(n.Ordinals))
		c.expr(n.Filter, row)
	case *CTEScan:
		if n.CTE >= len(c.plan.CTEs) {
			c.fail("with item %d of %d", n.CTE, len(c.plan.CTEs))
		}
		c.width(n, len(c.plan.CTEs[n.CTE].Columns()))
	case *RecursiveUnion:
		c.width(n, len(n.Init.Columns()))
		c.width(n.Step, len(row))
	case *WorkScan:
	default:
		c.joins(n)
	}
}

func (c *checker) scan(n *Scan) {
	c.access(&n.Access)
	c.width(n, len(n.Ordinals))
	c.expr(n.Filter, n.Columns())
	for _, s := range n.Spans {
		for _, e := range s.Eq {
			c.expr(e.Value, nil)
			if e.Each != e.Value.Type().IsArray() {
				c.fail("key part of type %s, each %v", e.Value.Type(), e.Each)
			}
		}
		for _, b := range []*Bound{s.Low, s.High} {
			if b != nil {
				c.expr(b.Value, nil)
			}
		}
	}
}

func (c *checker) joined(n Node, kind JoinKind, left, right []Column, on expr.Scalar) {
	both := append(append([]Column(nil), left...), right...)
	c.expr(on, both)
	if kind == SemiJoin || kind == AntiJoin {
		both = left
	}
	c.width(n, len(both))
}

func (c *checker) joins(n Node) {
	switch n := n.(type) {
	case *HashJoin:
		c.all(n.LeftKeys, n.Left.Columns())
		c.all(n.RightKeys, n.Right.Columns())
		for i := range n.LeftKeys {
			if n.LeftKeys[i].Type().KindOf() != n.RightKeys[i].Type().KindOf() {
				c.fail("hash keys of types %s and %s", n.LeftKeys[i].Type(), n.RightKeys[i].Type())
			}
		}
		c.joined(n, n.Kind, n.Left.Columns(), n.Right.Columns(), n.On)
	case *MergeJoin:
		c.all(n.LeftKeys, n.Left.Columns())
		c.all(n.RightKeys, n.Right.Columns())
		c.joined(n, n.Kind, n.Left.Columns(), n.Right.Columns(), n.On)
	case *LookupJoin:
		c.access(&n.Access)
		c.all(n.Keys, n.Left.Columns())
		right := make([]Column, len(n.Ordinals))
		for i, ord := range n.Ordinals {
			right[i] = Column{Type: n.Table.Columns[ord].Type}
		}
		c.joined(n, n.Kind, n.Left.Columns(), right, n.On)
	case *NestedLoopJoin:
		c.joined(n, n.Kind, n.Left.Columns(), n.Right.Columns(), n.On)
	case *Apply:
		c.joined(n, n.Kind, n.Left.Columns(), n.Right.Columns(), n.On)
	default:
		c.shapes(n)
	}
}

func (c *checker) shapes(n Node) {
	switch n := n.(type) {
	case *Filter:
		c.expr(n.Cond, n.Input.Columns())
		c.width(n, len(n.Input.Columns()))
	case *Project:
		c.all(n.Exprs, n.Input.Columns())
		c.width(n, len(n.Exprs))
		for i, e := range n.Exprs {
			if e.Type().OID != n.Columns()[i].Type.OID {
				c.fail("projected column %s is %s, described as %s", n.Columns()[i].Name, e.Type(), n.Columns()[i].Type)
			}
		}
	case *ProjectSet:
		c.width(n, len(n.Exprs))
		for i, e := range n.Exprs {
			if n.Sets[i] != nil {
				c.all(n.Sets[i].Args, n.Input.Columns())
			} else {
				c.expr(e, n.Input.Columns())
			}
		}
	case *Aggregate:
		c.all(n.GroupBy, n.Input.Columns())
		for i := range n.Aggs {
			c.all(n.Aggs[i].Args, n.Input.Columns())
			c.all(n.Aggs[i].Direct, n.Input.Columns())
			c.expr(n.Aggs[i].Filter, n.Input.Columns())
			c.keys(n.Aggs[i].OrderBy, n.Input.Columns())
		}
		c.width(n, len(n.GroupBy)+len(n.Aggs))
	case *Expand:
		c.all(n.Keys, n.Input.Columns())
		for _, s := range n.Sets {
			if len(s.Has) != len(n.Keys) || len(s.Marks) != len(n.Sets[0].Marks) {
				c.fail("a grouping set of %d keys and %d marks", len(s.Has), len(s.Marks))
			}
		}
		c.width(n, len(n.Input.Columns())+len(n.Keys)+len(n.Sets[0].Marks)+1)
	case *WindowAgg:
		c.window(n)
	case *Sort:
		c.keys(n.Keys, n.Input.Columns())
	case *TopN:
		c.keys(n.Keys, n.Input.Columns())
		c.all([]expr.Scalar{n.Limit, n.Offset}, nil)
	case *Limit:
		c.keys(n.Ties, n.Input.Columns())
		c.all([]expr.Scalar{n.Limit, n.Offset}, nil)
	case *Distinct:
		c.all(n.On, n.Input.Columns())
	case *SetOp:
		c.width(n, len(n.Left.Columns()))
		c.width(n, len(n.Right.Columns()))
		for i, l := range n.Left.Columns() {
			if l.Type.OID != n.Right.Columns()[i].Type.OID {
				c.fail("set operation of %s and %s", l.Type, n.Right.Columns()[i].Type)
			}
		}
	case *LockRows:
		for _, t := range n.Targets {
			for _, ord := range t.KeyOrdinals {
				if ord < 0 || ord >= len(n.Input.Columns()) {
					c.fail("lock key at %d", ord)
				}
			}
		}
	default:
		c.changes(n)
	}
}

func (c *checker) window(n *WindowAgg) {
	row := n.Input.Columns()
	c.all(n.PartitionBy, row)
	c.keys(n.OrderBy, row)
	for _, k := range n.OrderBy {
		if _, ok := k.Expr.(*expr.Column); !ok {
			c.fail("a window is ordered by %s", k.Expr)
		}
	}
	for _, b := range []WindowBound{n.Frame.Start, n.Frame.End} {
		c.expr(b.Offset, nil)
		if b.InRange != nil && (b.InRange.Offset.OID != b.Offset.Type().OID || b.InRange.Value.OID != n.OrderBy[0].Expr.Type().OID) {
			c.fail("a frame over %s by %s", n.OrderBy[0].Expr.Type(), b.Offset.Type())
		}
	}
	for i := range n.Calls {
		call := &n.Calls[i]
		c.all(call.Args, row)
		c.expr(call.Filter, row)
		if (call.Func == nil) == (call.Agg == nil) {
			c.fail("window call %d has a function and an aggregate, or none", i)
		}
	}
	c.width(n, len(row)+len(n.Calls))
}

func (c *checker) changes(n Node) {
	switch n := n.(type) {
	case *Insert:
		in := n.Input.Columns()
		if len(in) != len(n.Table.Columns) {
			c.fail("insert of %d columns into %d", len(in), len(n.Table.Columns))
			return
		}
		for i := range in {
			if in[i].Type.OID != n.Table.Columns[i].Type.OID {
				c.fail("insert of %s into column %s %s", in[i].Type, n.Table.Columns[i].Name, n.Table.Columns[i].Type)
			}
		}
		row := rowOf(n.Table.Columns)
		c.all(n.Returning, row)
		for _, ch := range n.Checks {
			c.expr(ch.Cond, row)
		}
		if oc := n.OnConflict; oc != nil {
			both := append(append([]Column(nil), row...), row...)
			c.all(oc.Set, both)
			c.expr(oc.Where, both)
		}
	case *Update:
		in := n.Input.Columns()
		if len(n.Set) != len(n.Table.Columns) || len(in) < len(n.Set) {
			c.fail("update sets %d of %d", len(n.Set), len(n.Table.Columns))
			return
		}
		c.all(n.Set, in)
		for i, e := range n.Set {
			if e.Type().OID != n.Table.Columns[i].Type.OID {
				c.fail("update of column %s with %s", n.Table.Columns[i].Name, e.Type())
			}
		}
		c.all(n.Returning, in)
		for _, ch := range n.Checks {
			c.expr(ch.Cond, in[:len(n.Table.Columns)])
		}
	case *Delete:
		c.all(n.Returning, n.Input.Columns())
	default:
		c.fail("unknown node %T", n)
	}
}

// rowOf describes a table's full row.
func rowOf(cols []catalog.ColumnDescriptor) []Column {
	out := make([]Column, len(cols))
	for i := range cols {
		out[i] = Column{Name: cols[i].Name, Type: cols[i].Type}
	}
	return out
}
