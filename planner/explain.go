package planner

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/types"
)

// Actual contains the measurements of a node in an execution, for EXPLAIN ANALYZE.
type Actual struct {
	Rows  int64 // over all loops
	Loops int64
	Time  time.Duration // including the nodes below it
	Note  string        // what else the operator has to say: "spilled", "keys read: 12"
}

// ExplainOptions select what Explain prints in addition to the tree.
type ExplainOptions struct {
	// Literals are the statement's, shown in the place of their slots.
	Literals []sql.Literal
	// NoCosts leaves the estimates out.
	NoCosts bool
	// NoTimes leaves out how long the nodes took.
	NoTimes bool
	// Actual returns the measurements of a node; nil without ANALYZE, false for a node that never ran.
	Actual func(Node) (Actual, bool)
	// Parallel is what the session permits. EXPLAIN ANALYZE, which measures every operator, runs without workers.
	Parallel Parallelism
	// Format is the format of constants; nil: the default.
	Format *types.Format
	// Values has the values with which partitions are left out; nil: all are shown.
	Values *expr.Context
}

// Explain prints a plan as a tree, one node a line, with its arguments in brackets and the estimates at the end.
func Explain(p *Plan, opts ExplainOptions) []string {
	x := newExplainer(opts)
	x.tree(p.Root, "", "")
	for i, c := range p.CTEs {
		x.lines = append(x.lines, fmt.Sprintf("with item %d", i+1))
		x.tree(c, "└─ ", "   ")
		x.flush()
	}
	x.flush()
	return x.lines
}

// explainer prints nodes. Subqueries met in a node's expressions are printed after the tree.
type explainer struct {
	opts    ExplainOptions
	printer expr.Printer
	lines   []string
	subs    []*expr.Subquery
}

func newExplainer(opts ExplainOptions) *explainer {
	x := &explainer{opts: opts}
	x.printer.Format = opts.Format
	for _, l := range opts.Literals {
		x.printer.Inputs = append(x.printer.Inputs, l.Value)
	}
	return x
}

// flush prints the subqueries met so far, and those met in printing them.
func (x *explainer) flush() {
	for len(x.subs) > 0 {
		sub := x.subs[0]
		x.subs = x.subs[1:]
		kind := "subquery"
		if sub.Correlated {
			kind = "correlated subquery"
		}
		x.lines = append(x.lines, fmt.Sprintf("%s %d", kind, sub.ID+1))
		x.tree(sub.Plan.(Node), "└─ ", "   ")
	}
}

func (x *explainer) tree(n Node, first, rest string) {
	x.lines = append(x.lines, first+x.line(n))
	children := x.children(n)
	for i, c := range children {
		if i == len(children)-1 {
			x.tree(c, rest+"└─ ", rest+"   ")
		} else {
			x.tree(c, rest+"├─ ", rest+"│  ")
		}
	}
}

// children returns the nodes below a node that are shown.
func (x *explainer) children(n Node) []Node {
	if parts, ok := n.(*Append); ok {
		return x.remaining(parts)
	}
	return n.Children()
}

// line describes one node.
func (x *explainer) line(n Node) string {
	s := x.describe(n)
	if !x.opts.NoCosts {
		e := n.Estimate()
		s += "  (rows=" + round(e.Rows) + " cost=" + round(e.Cost) + ")"
	}
	if x.opts.Actual == nil {
		return s
	}
	if n.base().Hidden {
		return s + "  (not shown: row security)"
	}
	a, ran := x.opts.Actual(n)
	if !ran {
		return s + "  (never executed)"
	}
	s += fmt.Sprintf("  (actual rows=%d loops=%d", a.Rows, a.Loops)
	if !x.opts.NoTimes {
		s += fmt.Sprintf(" time=%.3f ms", float64(a.Time)/1e6)
	}
	s += ")"
	if a.Note != "" {
		s += "  " + a.Note
	}
	return s
}

func round(v float64) string {
	if v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}

// describe returns the node's name and arguments.
func (x *explainer) describe(n Node) string {
	switch n := n.(type) {
	case *PointGet:
		return "PointGet " + accessName(&n.Access) + " (" + x.pointKey(n) + ")" + fetchMark(&n.Access) + x.filter(n.Filter)
	case *Scan:
		return x.scan(n)
	case *Append:
		return x.appended(n)
	case *Values:
		if len(n.Rows) == 1 && len(n.Rows[0]) == 0 {
			return "Values (one empty row)"
		}
		return fmt.Sprintf("Values (%s)", plural.Count(len(n.Rows), "row"))
	case *SetFunc:
		return "SetFunc " + n.Func.Name + "(" + x.list(n.Args) + ")"
	case *Changes:
		return "Changes " + n.Observer.Name + " of " + n.Table.Name
	case *VirtualScan:
		return "VirtualScan " + n.Table.Name + x.filter(n.Filter)
	case *CTEScan:
		return fmt.Sprintf("CTEScan with item %d", n.CTE+1)
	case *RecursiveUnion:
		return "RecursiveUnion" + all(n.All)
	case *WorkScan:
		return "WorkScan"
	}
	return x.describeJoin(n)
}

func all(yes bool) string {
	if yes {
		return " all"
	}
	return ""
}

// appended describes an Append. Which of the partitions have rows for the conditions is found when the plan is executed.
func (x *explainer) appended(n *Append) string {
	s := "Append " + n.Table.Name
	if len(n.Merge) > 0 {
		keys := make([]string, len(n.Merge))
		for i := range n.Merge {
			keys[i] = x.print(n.Merge[i].Expr)
			if n.Merge[i].Desc {
				keys[i] += " DESC"
			}
		}
		s += " merge by " + strings.Join(keys, ", ")
	}
	if removed := len(n.Inputs) - len(x.remaining(n)); removed > 0 {
		return s + " (" + strconv.Itoa(removed) + " removed)"
	}
	switch {
	case n.Alone:
		s += " one partition"
	case n.Prune != nil:
		s += " selected partitions"
	}
	return s
}

// remaining are the inputs of an Append that may have rows, as far as the values are known.
func (x *explainer) remaining(n *Append) []Node {
	if n.Prune == nil || x.opts.Values == nil || n.Prune.correlated() {
		return n.Inputs
	}
	in := make([]bool, len(n.Inputs))
	if err := n.Prune.Inputs(x.opts.Values, in); err != nil {
		return n.Inputs
	}
	var out []Node
	for i, may := range in {
		if may {
			out = append(out, n.Inputs[i])
		}
	}
	return out
}

func (x *explainer) scan(n *Scan) string {
	name := "Scan"
	if n.Index != &n.Table.Primary {
		name = "IndexScan"
	}
	if n.Inverted != nil {
		name = "InvertedScan"
	}
	s := name + " " + accessName(&n.Access)
	if n.Inverted != nil {
		parts := make([]string, len(n.Inverted))
		for i, c := range n.Inverted {
			parts[i] = n.Table.ColumnByID(n.Index.Inverted[c.Column].ColumnID).Name + " " + c.Op + " " + x.print(c.Value)
		}
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	if spans := x.spans(n); spans != "" {
		s += " (" + spans + ")"
	}
	if n.Reverse {
		s += " reverse"
	}
	s += fetchMark(&n.Access)
	if n.Limit > 0 {
		s += " limit hint " + strconv.Itoa(n.Limit)
	}
	return s + x.filter(n.Filter)
}

func fetchMark(a *Access) string {
	if a.Fetch {
		return " fetch"
	}
	return ""
}

// accessName is the table, its alias where it has one, and the index.
func accessName(a *Access) string {
	s := a.Table.Name
	if a.Alias != "" && a.Alias != s {
		s += " " + a.Alias
	}
	if a.Index != &a.Table.Primary {
		s += "@" + a.Index.Name
	}
	if len(a.Policies) > 0 {
		s += " policies " + strings.Join(a.Policies, ", ")
	}
	return s
}

func (x *explainer) filter(e expr.Scalar) string {
	if e == nil {
		return ""
	}
	return " filter " + x.print(e)
}

// print prints an expression and records its subqueries.
func (x *explainer) print(e expr.Scalar) string {
	x.printer.Reset()
	x.printer.Print(e)
	expr.Walk(e, func(s expr.Scalar) bool {
		if sub := expr.SubqueryOf(s); sub != nil {
			x.subs = append(x.subs, sub)
		}
		return true
	})
	return x.printer.String()
}

func (x *explainer) list(es []expr.Scalar) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = x.print(e)
	}
	return strings.Join(parts, ", ")
}

func keyName(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, i int) string {
	if ord := t.Ordinal(ix.Columns[i].ColumnID); ord >= 0 {
		return t.ColumnAt(ord).Name
	}
	return "?"
}

func (x *explainer) pointKey(n *PointGet) string {
	parts := make([]string, len(n.Key))
	for i, k := range n.Key {
		parts[i] = keyName(n.Table, n.Index, i) + " = " + x.print(k)
	}
	return strings.Join(parts, ", ")
}

func (x *explainer) spans(n *Scan) string {
	var out []string
	for _, sp := range n.Spans {
		var parts []string
		for i, e := range sp.Eq {
			name := keyName(n.Table, n.Index, i)
			if e.Each {
				parts = append(parts, name+" = ANY ("+x.print(e.Value)+")")
			} else {
				parts = append(parts, name+" = "+x.print(e.Value))
			}
		}
		for _, b := range []struct {
			b  *Bound
			op string
		}{{sp.Low, ">"}, {sp.High, "<"}} {
			if b.b == nil {
				continue
			}
			op := b.op
			if b.b.Inclusive {
				op += "="
			}
			parts = append(parts, keyName(n.Table, n.Index, len(sp.Eq))+" "+op+" "+x.print(b.b.Value))
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return strings.Join(out, " | ")
}

// joinNames are the words before a join's name.
var joinNames = [...]string{InnerJoin: "", LeftJoin: "Left", FullJoin: "Full", SemiJoin: "Semi", AntiJoin: "Anti"}

func (x *explainer) describeJoin(n Node) string {
	switch n := n.(type) {
	case *HashJoin:
		return joinNames[n.Kind] + "HashJoin" + x.pairs(n.LeftKeys, n.RightKeys) + x.on(n.On) + workers(n.Workers(x.opts.Parallel))
	case *MergeJoin:
		return joinNames[n.Kind] + "MergeJoin" + x.pairs(n.LeftKeys, n.RightKeys) + x.on(n.On)
	case *LookupJoin:
		return x.lookupJoin(n)
	case *NestedLoopJoin:
		return joinNames[n.Kind] + "NestedLoopJoin" + x.on(n.On)
	case *Apply:
		return joinNames[n.Kind] + "Apply" + x.on(n.On)
	}
	return x.describeShape(n)
}

func (x *explainer) lookupJoin(n *LookupJoin) string {
	alias := n.Alias
	if alias == "" {
		alias = n.Table.Name
	}
	parts := make([]string, len(n.Keys))
	for i, k := range n.Keys {
		parts[i] = alias + "." + keyName(n.Table, n.Index, i) + " = " + x.print(k)
	}
	s := joinNames[n.Kind] + "LookupJoin " + accessName(&n.Access) + " (" + strings.Join(parts, ", ") + ")"
	if n.Unique {
		s += " unique"
	}
	s += fetchMark(&n.Access)
	if n.Limit > 0 {
		s += " limit hint " + strconv.Itoa(n.Limit)
	}
	return s + x.on(n.On)
}

func (x *explainer) pairs(l, r []expr.Scalar) string {
	parts := make([]string, len(l))
	for i := range l {
		parts[i] = x.print(l[i]) + " = " + x.print(r[i])
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (x *explainer) on(e expr.Scalar) string {
	if e == nil {
		return ""
	}
	return " on " + x.print(e)
}

func (x *explainer) describeShape(n Node) string {
	switch n := n.(type) {
	case *Filter:
		return "Filter " + x.print(n.Cond)
	case *Project:
		return "Project " + x.list(n.Exprs)
	case *ProjectSet:
		return "ProjectSet " + x.projectSet(n)
	case *Aggregate:
		return x.aggregate(n)
	case *Expand:
		return "Expand " + plural.Count(len(n.Sets), "grouping set") + ": " + x.list(n.Keys)
	case *WindowAgg:
		return x.window(n)
	case *Sort:
		s := "Sort " + x.keys(n.Keys)
		if n.Presorted > 0 {
			s += " presorted " + strconv.Itoa(n.Presorted)
		}
		return s + workers(n.Workers(x.opts.Parallel))
	case *TopN:
		return "TopN" + x.limit(n.Limit, n.Offset) + " by " + x.keys(n.Keys) + workers(n.Workers(x.opts.Parallel))
	case *Limit:
		s := "Limit" + x.limit(n.Limit, n.Offset)
		if n.Ties != nil {
			s += " with ties by " + x.keys(n.Ties)
		}
		return s
	case *Distinct:
		s := "Distinct"
		if n.On != nil {
			s += " on " + x.list(n.On)
		}
		if n.Ordered {
			s += " ordered"
		}
		return s
	case *SetOp:
		return strings.ToUpper(n.Op[:1]) + strings.ToLower(n.Op[1:]) + all(n.All)
	case *LockRows:
		return "LockRows for " + strings.ToLower(n.Strength)
	}
	return x.describeChange(n)
}

func (x *explainer) projectSet(n *ProjectSet) string {
	parts := make([]string, 0, len(n.Exprs))
	for i, e := range n.Exprs {
		if i < len(n.Sets) && n.Sets[i] != nil {
			parts = append(parts, n.Sets[i].Func.Name+"("+x.list(n.Sets[i].Args)+")")
		} else {
			parts = append(parts, x.print(e))
		}
	}
	return strings.Join(parts, ", ")
}

func (x *explainer) aggregate(n *Aggregate) string {
	s := "Aggregate"
	if n.Ordered {
		s += " ordered"
	}
	if len(n.GroupBy) > 0 {
		s += " by " + x.list(n.GroupBy)
	}
	parts := make([]string, len(n.Aggs))
	for i := range n.Aggs {
		parts[i] = x.call(&n.Aggs[i])
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s + workers(n.Workers(x.opts.Parallel))
}

func workers(n int) string {
	if n == 0 {
		return ""
	}
	return "  Workers Planned: " + strconv.Itoa(n)
}

func (x *explainer) call(c *AggregateCall) string {
	args := x.list(c.Args)
	if c.Func.OrderedSet() {
		s := c.Func.Name + "(" + x.list(c.Direct) + ") within group (order by " + x.keys(c.OrderBy) + ")"
		if c.Filter != nil {
			s += " filter " + x.print(c.Filter)
		}
		return s
	}
	if len(c.Args) == 0 {
		args = "*"
	}
	if c.Distinct {
		args = "DISTINCT " + args
	}
	if len(c.OrderBy) > 0 {
		args += " ORDER BY " + x.keys(c.OrderBy)
	}
	s := c.Func.Name + "(" + args + ")"
	if c.Filter != nil {
		s += " filter " + x.print(c.Filter)
	}
	return s
}

func (x *explainer) keys(keys []SortKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = x.print(k.Expr)
		if k.Desc {
			parts[i] += " DESC"
		}
		if k.NullsFirst != k.Desc {
			if k.NullsFirst {
				parts[i] += " NULLS FIRST"
			} else {
				parts[i] += " NULLS LAST"
			}
		}
	}
	return strings.Join(parts, ", ")
}

func (x *explainer) limit(limit, offset expr.Scalar) string {
	s := ""
	if limit != nil {
		s += " " + x.print(limit)
	}
	if offset != nil {
		s += " offset " + x.print(offset)
	}
	return s
}

func (x *explainer) describeChange(n Node) string {
	switch n := n.(type) {
	case *Insert:
		s := "Insert " + n.Table.Name
		if n.OnConflict != nil {
			s += " on conflict do nothing"
			if n.OnConflict.DoUpdate {
				s = "Insert " + n.Table.Name + " on conflict do update"
			}
		}
		if len(n.Guards) > 0 {
			s += " policies " + strings.Join(n.Guards, ", ")
		}
		return s + x.returning(n.Returning)
	case *Update:
		parts := make([]string, len(n.Changed))
		for i, ord := range n.Changed {
			parts[i] = n.Table.Columns[ord].Name + " = " + x.print(n.Set[ord])
		}
		return "Update " + n.Table.Name + " set " + strings.Join(parts, ", ") + x.returning(n.Returning) +
			workers(n.Workers(x.opts.Parallel))
	case *Delete:
		return "Delete " + n.Table.Name + x.returning(n.Returning) + workers(n.Workers(x.opts.Parallel))
	case *Merge:
		return x.merge(n)
	case *InsteadOf:
		return x.insteadOf(n)
	}
	return fmt.Sprintf("%T", n)
}

func (x *explainer) returning(es []expr.Scalar) string {
	if es == nil {
		return ""
	}
	return " returning " + x.list(es)
}

func (x *explainer) insteadOf(n *InsteadOf) string {
	verb := map[catalog.TriggerEvents]string{catalog.TriggerInsert: "Insert into ", catalog.TriggerUpdate: "Update ", catalog.TriggerDelete: "Delete "}[n.Event]
	return verb + n.View.Name + " by triggers" + x.returning(n.Returning)
}

func (x *explainer) merge(n *Merge) string {
	s := "Merge " + n.Table.Name
	for i := range n.Actions {
		a := &n.Actions[i]
		if s += " when "; !a.Matched {
			s += "not "
		}
		if s += "matched"; a.Cond != nil {
			s += " and " + x.print(a.Cond)
		}
		s += " then " + strings.ToLower(a.Action)
		for j, ord := range a.Changed {
			s += []string{" ", ", "}[min(j, 1)] + n.Table.Columns[ord].Name + " = " + x.print(a.Row[ord])
		}
	}
	return s
}
