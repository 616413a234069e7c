package planner

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
)

// partitionWise makes of a join of two partitioned tables, that are partitioned alike and joined by their partition keys among others, joins of
// one partition each: rows of partitions that do not correspond have different keys. Each join keeps the right rows of one partition at a time,
// and may read them in several goroutines.
func (p *physical) partitionWise(n *HashJoin, cols []int, keys []equiKey) (*Append, bool) {
	left, ok := n.Left.(*Append)
	if !ok {
		return nil, false
	}
	right, ok := n.Right.(*Append)
	if !ok || right.Prune != nil || left.Prune != nil && n.Kind == FullJoin || !p.joinsPartitionKeys(left.Table, right.Table, keys) {
		return nil, false
	}
	matches, ok := p.matchPartitions(left.Table, right.Table)
	if !ok || len(matches) != len(left.Inputs) || len(matches) != len(right.Inputs) {
		return nil, false
	}
	out := &Append{Base: n.Base, Table: left.Table, Prune: left.Prune, Alone: left.Alone}
	share := 1 / float64(len(matches))
	est := Estimate{Rows: n.Estimate().Rows * share, Cost: n.Estimate().Cost * share}
	for i, j := range matches {
		part := *n
		part.Base, part.Left, part.Right, part.Kept = p.base(cols, est), left.Inputs[i], right.Inputs[j], n.Kept*share
		out.Inputs = append(out.Inputs, &part)
	}
	return out, true
}

// joinsPartitionKeys reports whether keys equate each column of two tables' partition keys, of one type and order.
func (p *physical) joinsPartitionKeys(left, right *catalog.TableDescriptor, keys []equiKey) bool {
	l, r := left.Partitioning, right.Partitioning
	if l.Strategy != r.Strategy || len(l.Keys) != len(r.Keys) {
		return false
	}
	for i := range l.Keys {
		x, y := l.Keys[i], r.Keys[i]
		if !slices.ContainsFunc(keys, func(k equiKey) bool {
			return p.isColumn(k.left, left, x.ColumnID) && p.isColumn(k.right, right, y.ColumnID) && k.left.Type().Same(k.right.Type())
		}) {
			return false
		}
		x.ColumnID, y.ColumnID = 0, 0
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// isColumn reports whether x is a column of a table, or of a join of its partitions with those of others (partitionWise), which has its value or
// NULL.
func (p *physical) isColumn(x expr.Scalar, t *catalog.TableDescriptor, id uint32) bool {
	c, ok := x.(*expr.Column)
	if !ok {
		return false
	}
	info := &p.b.cols[c.ID]
	return info.scan != nil && info.scan.table.ID == t.ID && info.ordinal < len(t.Columns) && t.Columns[info.ordinal].ID == id
}

// matchPartitions returns for each leaf of left the place of the leaf of right with the same bound. False: the tables do not have the same bounds,
// or partitions of partitions.
func (p *physical) matchPartitions(left, right *catalog.TableDescriptor) ([]int, bool) {
	ls, rs := p.leaves(left), p.leaves(right)
	if p.err != nil || len(ls) != len(rs) {
		return nil, false
	}
	matches := make([]int, len(ls))
	for i, l := range ls {
		matches[i] = slices.IndexFunc(rs, func(r *catalog.TableDescriptor) bool {
			return r.PartitionOf.Parent == right.ID && l.PartitionOf.Parent == left.ID && sameBound(&l.PartitionOf.Bound, &r.PartitionOf.Bound)
		})
		if matches[i] < 0 {
			return nil, false
		}
	}
	return matches, true
}

// sameBound reports whether two bounds select the same rows. Those of DEFAULT do if the other partitions have the same bounds.
func sameBound(a, b *catalog.PartitionBound) bool {
	x, y := *a, *b
	x.Text, y.Text = "", ""
	x.In, y.In = slices.SortedFunc(slices.Values(x.In), bytes.Compare), slices.SortedFunc(slices.Values(y.In), bytes.Compare)
	return reflect.DeepEqual(x, y)
}
