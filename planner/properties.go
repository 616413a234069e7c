package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
)

// Properties are guarantees for the rows of a node, so that the executor need not derive them from the tree.
type Properties struct {
	// AtMostOne: it yields one row at most.
	AtMostOne bool
	// EachRowOnce: it yields each row of a table once at most. A join does not, even where its keys are unique: the
	// planner is free to put the table on either side.
	EachRowOnce bool
	// ReadsAhead: all it reads comes from one iterator, which shows the transaction's writes as they were when it began. So a
	// statement may write each row as it comes.
	ReadsAhead bool
}

// Properties returns the guarantees for the node's rows.
func (b *Base) Properties() Properties { return b.Props }

// SetProperties sets the properties of all nodes of a plan, and the fields of its changes that follow from them. Build
// calls it; code that constructs a plan calls it before the plan is executed.
func (p *Plan) SetProperties() {
	alone := p.Subqueries == 0 && len(p.CTEs) == 0
	for _, n := range p.CTEs {
		setProperties(n, alone)
	}
	setProperties(p.Root, alone)
	if len(p.Modifying) > 0 {
		p.deferWrites()
	}
}

// setProperties sets the properties of a node and of those below it; alone reports that the plan has no other trees.
func setProperties(n Node, alone bool) {
	for _, child := range n.Children() {
		setProperties(child, alone)
	}
	props := &n.base().Props
	*props = Properties{}
	switch n := n.(type) {
	case *PointGet:
		n.LockFirst = false
		*props = Properties{AtMostOne: true, EachRowOnce: true}
	case *Scan:
		n.WholeKeys = wholeKeys(n)
		props.EachRowOnce = true
		props.ReadsAhead = alone && !n.Fetch && !n.WholeKeys && (len(n.Spans) == 0 || len(n.Spans) == 1 && !hasEach(&n.Spans[0]))
	case *Values:
		props.AtMostOne = len(n.Rows) <= 1
	case *Append:
		n.setProperties()
	case *Filter, *Project, *Limit, *WindowAgg:
		*props = n.Children()[0].base().Props
	case *Sort:
		*props = n.Input.base().Props
		n.setFeed()
	case *TopN:
		*props = n.Input.base().Props
		n.setFeed()
	case *LockRows:
		*props = n.Input.base().Props
		props.ReadsAhead = false
	case *HashJoin:
		n.setFeed()
		props.EachRowOnce = keepsLeft(n.Kind, n.Left)
	case *MergeJoin:
		props.EachRowOnce = keepsLeft(n.Kind, n.Left)
	case *NestedLoopJoin:
		props.EachRowOnce = keepsLeft(n.Kind, n.Left)
	case *Apply:
		props.EachRowOnce = keepsLeft(n.Kind, n.Left)
	case *LookupJoin:
		n.Unique = len(n.Keys) == len(n.Index.Columns) && n.uniqueIndex()
		props.EachRowOnce = keepsLeft(n.Kind, n.Left)
	case *Aggregate:
		n.setFeed()
	case *Insert:
		n.Direct = !hasSubquery(n.Returning) && !readsInPolicies(n.Policies) && !readsInViews(n.Views)
		if c := n.OnConflict; c != nil {
			n.Direct = n.Direct && !hasSubquery(c.Set) && !expr.HasSubquery(c.Where) && !readsInPolicies(c.Policies)
		}
		n.Gather = !n.Input.base().Props.AtMostOne && (!alone || readsTable(n.Input, n.Table.ID) || n.Parts.read(n.Input))
	case *Update:
		n.Direct = writesDirectly(n.Input, n.Returning) && !readsInPolicies(n.Policies) && !readsInViews(n.Views)
		n.LockedBelow = locksItsRow(n.Input)
		n.setFeed()
	case *Delete:
		n.Direct = writesDirectly(n.Input, n.Returning)
		n.LockedBelow = locksItsRow(n.Input)
		n.setFeed()
	}
}

// uniqueIndex reports whether no two rows have one key of the index.
func (a *Access) uniqueIndex() bool { return a.Index.Unique || a.Index.ID == a.Table.Primary.ID }

// wholeKeys reports whether every span is a whole key of a unique index: id IN (…), id = ANY($1).
func wholeKeys(n *Scan) bool {
	return n.uniqueIndex() && len(n.Spans) > 0 &&
		!slices.ContainsFunc(n.Spans, func(s KeySpan) bool { return len(s.Eq) != len(n.Index.Columns) })
}

func hasEach(s *KeySpan) bool {
	return slices.ContainsFunc(s.Eq, func(part KeyPart) bool { return part.Each })
}

// keepsLeft reports whether a join yields each row of a table once at most because its left side does.
func keepsLeft(k JoinKind, left Node) bool {
	return (k == SemiJoin || k == AntiJoin) && left.base().Props.EachRowOnce
}

// readsTable reports whether a node reads a table. Expressions are not looked into.
func readsTable(n Node, tableID uint64) bool {
	switch n := n.(type) {
	case *PointGet:
		return n.Table.ID == tableID
	case *Scan:
		return n.Table.ID == tableID
	case *LookupJoin:
		if n.Table.ID == tableID {
			return true
		}
	}
	return slices.ContainsFunc(n.Children(), func(child Node) bool { return readsTable(child, tableID) })
}

// writesDirectly reports whether a change may write each row as it comes, because no later read of the statement can
// return it. The executor then need not keep a second list of all changes.
func writesDirectly(input Node, returning []expr.Scalar) bool {
	props := &input.base().Props
	return (props.AtMostOne || props.ReadsAhead) && !hasSubquery(returning)
}

// hasSubquery reports whether an expression has a subquery, which reads tables when it is evaluated.
func hasSubquery(es []expr.Scalar) bool { return slices.ContainsFunc(es, expr.HasSubquery) }

// readsInPolicies reports whether a condition of a policy reads tables.
func readsInPolicies(checks []PolicyCheck) bool {
	return slices.ContainsFunc(checks, func(c PolicyCheck) bool { return expr.HasSubquery(c.Cond) })
}

// readsInViews reports whether a condition of a view reads tables.
func readsInViews(checks []ViewCheck) bool {
	return slices.ContainsFunc(checks, func(c ViewCheck) bool { return expr.HasSubquery(c.Cond) })
}

// locksItsRow reports whether a change's input reads a row by its primary key and no filter can reject it: the key is
// then locked before it is read, and a transaction that has to wait for the lock reads only once.
func locksItsRow(input Node) bool {
	get, ok := input.(*PointGet)
	if !ok || get.Filter != nil || get.Fetch || get.Index.ID != get.Table.Primary.ID {
		return false
	}
	get.LockFirst = true
	return true
}

// setProperties sets those of the rows of a partitioned table. Each row is in one partition.
func (n *Append) setProperties() {
	n.Props = Properties{AtMostOne: n.Alone, EachRowOnce: true, ReadsAhead: true}
	for _, in := range n.Inputs {
		props := in.base().Props
		n.Props.AtMostOne = n.Props.AtMostOne && props.AtMostOne
		n.Props.EachRowOnce = n.Props.EachRowOnce && props.EachRowOnce
		n.Props.ReadsAhead = n.Props.ReadsAhead && props.ReadsAhead
	}
}

// read reports whether a node reads a leaf.
func (p *Parts) read(n Node) bool {
	return p != nil && slices.ContainsFunc(p.Leaves, func(l Leaf) bool { return readsTable(n, l.Table.ID) })
}
