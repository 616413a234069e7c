package planner

import (
	"strings"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
)

// window plans the calls of a window that are needed.
func (p *physical) window(r *windowRel, a ask) pnode {
	var made colSet
	var calls []windowing
	for _, c := range r.calls {
		made.add(c.id)
		if a.need.has(c.id) {
			calls = append(calls, c)
		}
	}
	below := ask{need: a.need.minus(made)}
	if r.streams() {
		below.limit = a.limit
	}
	if len(calls) > 0 {
		below.need.addList(r.partition)
		for _, k := range r.order {
			addUsed(k.Expr, &below.need)
		}
	}
	for i := range calls {
		mapWindowCall(&calls[i].call, func(e expr.Scalar) expr.Scalar { addUsed(e, &below.need); return e })
	}
	in := p.plan(r.input, below)
	if p.err != nil || len(calls) == 0 {
		return in
	}
	n := &WindowAgg{Input: in.node, OrderBy: p.sortKeys(r.order, in.cols)}
	for _, id := range r.partition {
		n.PartitionBy = append(n.PartitionBy, p.place(p.b.column(id, 0), in.cols))
	}
	n.Frame = WindowFrame{Mode: r.frame.Mode, Start: p.frameBound(&r.frame.Start), End: p.frameBound(&r.frame.End), Exclude: r.frame.Exclude}
	cols := append([]int(nil), in.cols...)
	for i := range calls {
		c := &calls[i].call
		cols = append(cols, calls[i].id)
		n.Calls = append(n.Calls, WindowCall{Func: c.Func, Agg: c.Agg, Args: p.compileAll(c.Args, in.cols), Filter: p.compile(c.Filter, in.cols)})
	}
	est := in.est
	est.Cost += est.Rows * emitCost * float64(1+len(calls))
	n.Base = p.base(cols, est)
	return pnode{node: n, cols: cols, order: in.order, est: est}
}

func (p *physical) frameBound(b *WindowBound) WindowBound {
	return WindowBound{Kind: b.Kind, Offset: p.compile(b.Offset, nil), InRange: b.InRange}
}

// window describes a WindowAgg: its window, then its calls. The default frame is left out.
func (x *explainer) window(n *WindowAgg) string {
	s := "WindowAgg"
	if len(n.PartitionBy) > 0 {
		s += " partition by " + x.list(n.PartitionBy)
	}
	if len(n.OrderBy) > 0 {
		s += " order by " + x.keys(n.OrderBy)
	}
	s += x.frame(&n.Frame)
	calls := make([]string, len(n.Calls))
	for i := range n.Calls {
		c := &n.Calls[i]
		if c.Agg != nil {
			calls[i] = x.call(&AggregateCall{Func: c.Agg, Args: c.Args, Filter: c.Filter})
		} else {
			calls[i] = c.Func.Name + "(" + x.list(c.Args) + ")"
		}
	}
	return s + ": " + strings.Join(calls, ", ")
}

func (x *explainer) frame(f *WindowFrame) string {
	if f.Mode == ast.FrameRange && f.Start.Kind == ast.UnboundedPreceding && f.End.Kind == ast.CurrentRow && f.Exclude == ast.ExcludeNone {
		return ""
	}
	s := " " + strings.ToLower(string(f.Mode)) + " between " + x.frameBound(&f.Start) + " and " + x.frameBound(&f.End)
	if f.Exclude != ast.ExcludeNone {
		s += " exclude " + strings.ToLower(string(f.Exclude))
	}
	return s
}

func (x *explainer) frameBound(b *WindowBound) string {
	what := "unbounded"
	switch {
	case b.Kind == ast.CurrentRow:
		return "current row"
	case b.Offset != nil:
		what = x.print(b.Offset)
	}
	if b.Kind < ast.CurrentRow {
		return what + " preceding"
	}
	return what + " following"
}
