package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
)

// Parts are the partitions that store the rows of a partitioned table, at every level, for a statement that changes it.
type Parts struct {
	Routes *Routes
	Leaves []Leaf
	// ByOID finds the leaf with an OID.
	ByOID map[int64]int
	// Bound is the condition of rows of the table itself, if it is a partition.
	Bound *PartitionCheck
	// Moves: an update may move a row to another leaf.
	Moves bool
}

// Leaf is a table with rows of a partitioned one. What a statement does to a row is computed over the columns of the partitioned table; what the
// leaf itself requires is over its own.
type Leaf struct {
	Table *catalog.TableDescriptor
	// FromRoot are, for each column of the leaf, the ordinal of the partitioned table's column, -1 for none; ToRoot the inverse.
	FromRoot, ToRoot []int
	Checks           []Check
	Generated        []GeneratedColumn
	Observed         *Observed
	Triggers         *Triggers // for each row
	References       *References
	Indexed          *IndexExprs
	Changed          []int // ordinals that an update may change
	OnConflict       *OnConflict
	Bound            *PartitionCheck // nil: that the row was found to belong to the leaf suffices
}

// Updated lists the ordinals of the leaf's columns that the statement may update.
func (l *Leaf) Updated() []int {
	if l.OnConflict != nil {
		return l.OnConflict.Changed
	}
	return l.Changed
}

// parts makes the partitions of a change: assigned are the ordinals of the columns that it updates.
func (p *physical) parts(c *change, events catalog.TriggerEvents, assigned []int) *Parts {
	out := &Parts{ByOID: map[int64]int{}, Bound: p.partitionCheck(c.scan)}
	tables := p.leaves(c.table)
	numbers := map[uint64]int{}
	for i, t := range tables {
		numbers[t.ID], out.ByOID[int64(t.OID())] = i, i
	}
	tree, err := catalog.PartitionTree(p.b.ctx, p.b.r, c.table)
	if err != nil {
		p.fail(err)
		return out
	}
	for _, t := range tree {
		p.dependOn(t)
	}
	out.Routes = p.routes(c.table, c.scan, c.scan.cols, numbers)
	if p.err != nil {
		return out
	}
	out.Moves = events&catalog.TriggerUpdate != 0 && c.conflict == nil && p.readsKey(tree, c.table, assigned)
	if out.Moves {
		events |= catalog.TriggerInsert | catalog.TriggerDelete
	}
	for _, t := range tables {
		out.Leaves = append(out.Leaves, p.leaf(c, t, events, assigned))
	}
	return out
}

// readsKey reports whether a partition key of a tree, whose top is t, reads one of the columns of t with the given ordinals.
func (p *physical) readsKey(tree []*catalog.TableDescriptor, t *catalog.TableDescriptor, ordinals []int) bool {
	for _, table := range tree {
		if !table.IsPartitioned() {
			for i := range table.Triggers {
				if g := &table.Triggers[i]; g.Row && g.Before && g.Events&catalog.TriggerUpdate != 0 {
					return true
				}
			}
			continue
		}
		for i := range table.Partitioning.Keys {
			c := table.ColumnByID(table.Partitioning.Keys[i].ColumnID)
			if c.Expr != nil || slices.Contains(ordinals, t.InheritedColumn(c)) {
				return true
			}
		}
	}
	return false
}

// leaf binds what a leaf requires of the rows that a change writes.
func (p *physical) leaf(c *change, t *catalog.TableDescriptor, events catalog.TriggerEvents, assigned []int) Leaf {
	scan := p.partOf(c.scan, t)
	l := Leaf{Table: t, FromRoot: mapping(c.table, t), ToRoot: mapping(t, c.table), Checks: p.checks(t, scan), Indexed: p.indexExprs(t, scan)}
	for i, ord := range l.FromRoot {
		if ord < 0 && events&(catalog.TriggerUpdate|catalog.TriggerDelete) != 0 {
			p.fail(lacksKey(t, c.table))
		}
		if slices.Contains(assigned, ord) {
			l.Changed = append(l.Changed, i)
		}
	}
	l.Changed = withGenerated(t, l.Changed)
	l.Generated = p.generated(t, scan)
	if l.Triggers = p.triggers(t, events, l.Changed); l.Triggers != nil {
		l.Triggers.List = slices.DeleteFunc(l.Triggers.List, func(g Trigger) bool { return !g.Row })
		if l.Triggers.Changes {
			l.Changed = l.Triggers.changedBy(t, l.Changed)
		}
		if len(l.Triggers.List) == 0 {
			l.Triggers = nil
		}
	}
	if l.Triggers != nil && l.Triggers.Changes || events&catalog.TriggerUpdate != 0 {
		l.Bound = p.partitionCheck(scan)
	}
	l.Observed = observed(t, l.Changed)
	l.References = p.references(t, l.Changed, events&catalog.TriggerInsert != 0, events&catalog.TriggerDelete != 0)
	if c.conflict != nil {
		l.OnConflict = p.leafConflict(c, scan, l.FromRoot)
	}
	return l
}

// lacksKey is the error of changing or locking rows of a partition through a table with a primary key that the partition has no part of.
func lacksKey(leaf, root *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.ObjectNotInPrerequisite, "partition \"%s\" has no part of the primary key of \"%s\"", leaf.Name, root.Name).
		WithHint("Add it to the partition, and attach its index.")
}

// leafConflict makes ON CONFLICT for a leaf: its arbiters are its parts of those of the partitioned table.
func (p *physical) leafConflict(c *change, scan *scanRel, fromRoot []int) *OnConflict {
	cf := c.conflict
	oc := &OnConflict{DoUpdate: cf.doUpdate}
	arbiters := cf.arbiters
	if cf.infer != nil {
		arbiters = p.inferArbiters(c.scan, cf)
	}
	for _, ix := range arbiters {
		part := p.partOfIndex(scan.table, c.table, ix)
		if part == nil {
			p.fail(pgerror.New(pgerror.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification"))
			return oc
		}
		oc.Arbiters = append(oc.Arbiters, part)
	}
	p.lateArbiters(scan.table, oc)
	if !cf.doUpdate {
		return oc
	}
	if hasSubquery(cf.set) || expr.HasSubquery(cf.where) {
		p.fail(pgerror.Unsupported("ON CONFLICT DO UPDATE of a partitioned table with a subquery", "Join the values in the query of the INSERT."))
		return oc
	}
	both := slices.Clone(scan.cols)
	for i, ord := range fromRoot {
		id := -1
		if ord >= 0 {
			id = cf.excluded[ord]
		}
		both = append(both, id)
		set := expr.Scalar(p.b.column(scan.cols[i], 0))
		if ord >= 0 && !scan.table.Columns[i].Hidden {
			set = expr.Clone(cf.set[ord])
		}
		oc.Set = append(oc.Set, set)
		if slices.Contains(cf.changed, ord) {
			oc.Changed = append(oc.Changed, i)
		}
	}
	oc.Set = p.compileAll(oc.Set, both)
	oc.Changed = withGenerated(scan.table, oc.Changed)
	if cf.where != nil {
		oc.Where = p.compile(expr.Clone(cf.where), both)
	}
	return oc
}

// partOfIndex returns the index of a leaf that is a part of one of a table above it; nil if there is none.
func (p *physical) partOfIndex(leaf, root *catalog.TableDescriptor, ix *catalog.IndexDescriptor) *catalog.IndexDescriptor {
	chain := []*catalog.TableDescriptor{leaf}
	for chain[len(chain)-1].ID != root.ID {
		parent, err := p.b.r.RelationByID(p.b.ctx, chain[len(chain)-1].PartitionOf.Parent)
		if err != nil {
			p.fail(err)
			return nil
		}
		chain = append(chain, parent)
	}
	for i := len(chain) - 2; i >= 0 && ix != nil; i-- {
		ix = chain[i].PartOfIndex(ix.OID)
	}
	return ix
}

// statementTriggers are those of the partitioned table itself.
func (p *physical) statementTriggers(c *change, events catalog.TriggerEvents, changed []int) *Triggers {
	g := p.triggers(c.table, events, changed)
	if g == nil {
		return nil
	}
	g.List = slices.DeleteFunc(g.List, func(t Trigger) bool { return t.Row })
	if g.Changes = false; len(g.List) == 0 {
		return nil
	}
	return g
}

// insertParts makes the node of an INSERT into a partitioned table.
func (p *physical) insertParts(c *change, in pnode) Node {
	n := &Insert{Table: c.table, Input: in.node, Policies: p.policies(c.policies, c.scan), Views: p.viewChecks(c.views, c.scan), Guards: c.guarded}
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	events := catalog.TriggerInsert
	var changed []int
	if cf := c.conflict; cf != nil {
		if cf.doUpdate && len(c.guarded) > 0 {
			p.fail(pgerror.Unsupported("ON CONFLICT DO UPDATE of a partitioned table with policies", "Use UPDATE and INSERT."))
			return n
		}
		n.OnConflict = &OnConflict{DoUpdate: cf.doUpdate, Arbiters: cf.arbiters}
		if cf.doUpdate {
			events |= catalog.TriggerUpdate
			changed = cf.changed
		}
		p.rewriteAllIn(cf.set)
		if cf.where != nil {
			p.rewriteIn(cf.where)
		}
	}
	n.Triggers = p.statementTriggers(c, events, changed)
	n.Parts = p.parts(c, events, changed)
	n.Out, n.Returning = p.returning(c.returning, append(slices.Clone(c.scan.cols), c.scan.originColumn(p.b)))
	return n
}

// updateParts makes the node of an UPDATE of a partitioned table.
func (p *physical) updateParts(c *change, in pnode) Node {
	n := &Update{Table: c.table, Input: in.node, Changed: c.changed, Policies: p.policies(c.policies, c.scan), Views: p.viewChecks(c.views, c.scan)}
	n.Set = p.compileAll(c.set, c.cols)
	n.Triggers = p.statementTriggers(c, catalog.TriggerUpdate, c.changed)
	n.Parts = p.parts(c, catalog.TriggerUpdate, c.changed)
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	n.Out, n.Returning = p.returning(c.returning, c.cols)
	return n
}

// deleteParts makes the node of a DELETE from a partitioned table.
func (p *physical) deleteParts(c *change, in pnode) Node {
	n := &Delete{Table: c.table, Input: in.node}
	n.Triggers = p.statementTriggers(c, catalog.TriggerDelete, nil)
	n.Parts = p.parts(c, catalog.TriggerDelete, nil)
	n.Est = Estimate{Rows: in.est.Rows, Cost: in.est.Cost + in.est.Rows*pointCost}
	n.Out, n.Returning = p.returning(c.returning, c.cols)
	return n
}
