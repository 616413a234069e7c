package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// inheritRows lists the partitions, and the parts of the indexes of partitioned tables.
func inheritRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.IsPartition() {
			return nil
		}
		parent := catalog.TableDescriptor{ID: t.PartitionOf.Parent}
		err := s.emit(col{"inhrelid", oid(t.OID())}, col{"inhparent", oid(parent.OID())}, col{"inhseqno", num(1)}, col{"inhdetachpending", boolean(false)})
		if err != nil {
			return err
		}
		for _, ix := range visibleIndexes(t) {
			if ix.Parent == 0 {
				continue
			}
			if err := s.emit(col{"inhrelid", oid(ix.OID)}, col{"inhparent", oid(ix.Parent)}, col{"inhseqno", num(1)}, col{"inhdetachpending", boolean(false)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// partitionedRows lists the partitioned tables.
func partitionedRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.IsPartitioned() {
			return nil
		}
		parts, err := catalog.PartitionsOf(s.ctx, s.Resolver, t)
		if err != nil {
			return err
		}
		rest := uint32(0)
		for _, p := range parts {
			if p.PartitionOf.Bound.Default {
				rest = p.OID()
			}
		}
		var keys, classes, collations []int64
		var exprs []string
		for i := range t.Partitioning.Keys {
			k := &t.Partitioning.Keys[i]
			c := t.ColumnByID(k.ColumnID)
			number := int64(c.ID)
			if c.Expr != nil {
				number = 0
				exprs = append(exprs, s.printer().indexText(t, c.Expr, types.Type{}, false))
			}
			keys = append(keys, number)
			classes = append(classes, classOf(k, c.Type))
			collations = append(collations, int64(collationOf(k.KeyType(c.Type))))
		}
		text := types.Null
		if exprs != nil {
			text = types.Text(strings.Join(exprs, ", "))
		}
		return s.emit(col{"partrelid", oid(t.OID())}, col{"partstrat", letter(byte(t.Partitioning.Strategy))}, col{"partnatts", num(len(keys))},
			col{"partdefid", oid(rest)}, col{"partattrs", vector(types.TInt2vector, keys)}, col{"partclass", vector(types.TOidvector, classes)},
			col{"partcollation", vector(types.TOidvector, collations)}, col{"partexprs", text})
	})
}

// PartitionKeyDefinition implements builtin.Catalog.
func (o *Objects) PartitionKeyDefinition(id types.OID) (string, bool) {
	r, t := o.relation(id)
	if t == nil || !t.IsPartitioned() {
		return "", false
	}
	keys := make([]string, len(t.Partitioning.Keys))
	for i := range t.Partitioning.Keys {
		k := &t.Partitioning.Keys[i]
		c := t.ColumnByID(k.ColumnID)
		keys[i] = o.printer(r).keyDefinition(t, k.ColumnID, false)
		if coll := k.Coll; coll != c.Type.Coll && coll != nil {
			keys[i] += " COLLATE " + keyword.QuoteIdent(coll.Name)
		}
		if k.OpClass != "" {
			keys[i] += " " + k.OpClass
		}
		keys[i] += userClass(r, k)
	}
	return t.Partitioning.Strategy.String() + " (" + strings.Join(keys, ", ") + ")", true
}

// partitionKeyText is a column of a partition key as conditions name it.
func partitionKeyText(c *catalog.ColumnDescriptor) string {
	switch {
	case c.Expr == nil:
		return keyword.QuoteIdent(c.Name)
	case c.Expr.Call:
		return c.Expr.Pretty
	}
	return "(" + c.Expr.Pretty + ")"
}

// PartitionTree implements builtin.Catalog.
func (o *Objects) PartitionTree(id types.OID) []builtin.PartitionNode {
	r, t := o.relation(id)
	if t == nil {
		return o.indexTree(id)
	}
	if !t.IsPartitioned() && !t.IsPartition() {
		return nil
	}
	var out []builtin.PartitionNode
	levels := map[uint64]int{}
	all, err := catalog.PartitionTree(background(), r, t)
	if err != nil {
		return nil
	}
	for _, part := range all {
		n := builtin.PartitionNode{Relation: types.OID(part.OID()), Leaf: !part.IsPartitioned()}
		if part.ID != t.ID {
			levels[part.ID] = levels[part.PartitionOf.Parent] + 1
		}
		if part.IsPartition() {
			n.Parent = types.OID(uint32(part.PartitionOf.Parent))
		}
		n.Level = levels[part.ID]
		out = append(out, n)
	}
	return out
}

// PartitionAncestors implements builtin.Catalog.
func (o *Objects) PartitionAncestors(id types.OID) []types.OID {
	r, t := o.relation(id)
	if t == nil {
		return o.indexAncestors(id)
	}
	if !t.IsPartitioned() && !t.IsPartition() {
		return nil
	}
	out := []types.OID{id}
	above, err := catalog.PartitionAncestors(background(), r, t)
	if err != nil {
		return nil
	}
	for _, p := range above {
		out = append(out, types.OID(p.OID()))
	}
	return out
}

// indexTree is PartitionTree for an index.
func (o *Objects) indexTree(id types.OID) []builtin.PartitionNode {
	r, t, ix := o.index(id)
	if ix == nil || !t.IsPartitioned() && ix.Parent == 0 {
		return nil
	}
	var out []builtin.PartitionNode
	var add func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, level int) error
	add = func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, level int) error {
		out = append(out, builtin.PartitionNode{Relation: types.OID(ix.OID), Parent: types.OID(ix.Parent), Leaf: !t.IsPartitioned(), Level: level})
		parts, err := catalog.PartitionsOf(background(), r, t)
		for _, part := range parts {
			if own := part.PartOfIndex(ix.OID); own != nil && err == nil {
				err = add(part, own, level+1)
			}
		}
		return err
	}
	if err := add(t, ix, 0); err != nil {
		return nil
	}
	return out
}

// indexAncestors is PartitionAncestors for an index.
func (o *Objects) indexAncestors(id types.OID) []types.OID {
	r, t, ix := o.index(id)
	if ix == nil || !t.IsPartitioned() && ix.Parent == 0 {
		return nil
	}
	out := []types.OID{id}
	for ix.Parent != 0 && t.IsPartition() {
		parent, err := r.RelationByID(background(), t.PartitionOf.Parent)
		if err != nil || parent == nil || parent.IndexByOID(ix.Parent) == nil {
			return nil
		}
		t, ix = parent, parent.IndexByOID(ix.Parent)
		out = append(out, types.OID(ix.OID))
	}
	return out
}
