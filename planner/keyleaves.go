package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// keyLeaves are the tables with the rows of a partitioned parent. A unique key of a partitioned table has all columns of the partition keys, so
// that a key says in which leaf its row is.
type keyLeaves struct {
	routes *Routes // over the columns of the parent's index
	leaves []keyLeaf
	byID   map[uint64]int
}

// keyLeaf is a leaf with its part of the parent's index.
type keyLeaf struct {
	table *catalog.TableDescriptor
	index *catalog.IndexDescriptor
}

// keyLeaves binds the leaves of a partitioned parent; nil for another one.
func (p *physical) keyLeaves(parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor) *keyLeaves {
	if !parent.IsPartitioned() || p.err != nil {
		return nil
	}
	if have := p.parents[ix.OID]; have != nil {
		return have
	}
	scan := p.b.newScan(parent, parent.Name, nil)
	cols := make([]int, len(ix.Columns))
	for i := range ix.Columns {
		cols[i] = scan.cols[parent.Ordinal(ix.Columns[i].ColumnID)]
	}
	l := &keyLeaves{byID: map[uint64]int{}}
	for i, t := range p.leaves(parent) {
		part := p.partOfIndex(t, parent, ix)
		if part == nil {
			p.fail(pgerror.New(pgerror.InternalError, "partition %q has no part of index %q, which a foreign key needs", t.Name, ix.Name))
			return l
		}
		l.leaves, l.byID[t.ID] = append(l.leaves, keyLeaf{t, part}), i
	}
	l.routes = p.routes(parent, scan, cols, l.byID)
	if p.parents == nil {
		p.parents = map[uint32]*keyLeaves{}
	}
	p.parents[ix.OID] = l
	return l
}

// AppendParentKey appends the key of the parent's unique index with the given values, in the order of the index. A partitioned parent has it in
// the leaf to which such rows belong; for values that belong to none, it is a key that no row has.
func (k *ForeignKey) AppendParentKey(dst []byte, ev *expr.Context, values types.Row) ([]byte, error) {
	if k.leaves == nil {
		return rowenc.AppendKeyPrefix(dst, k.Parent, k.Index, values...)
	}
	at, _, _, err := k.leaves.routes.Find(ev, values)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		return rowenc.AppendKeyPrefix(dst, k.Parent, k.Index, values...)
	}
	return rowenc.AppendKeyPrefix(dst, k.leaves.leaves[at].table, k.leaves.leaves[at].index, values...)
}

// AppendGuard appends the guard of a key that AppendParentKey has made.
func (k *ForeignKey) AppendGuard(dst, key []byte) []byte {
	if l := k.leafOf(key); l != nil {
		return rowenc.AppendGuard(dst, l.table, l.index, key)
	}
	return rowenc.AppendGuard(dst, k.Parent, k.Index, key)
}

// HolderOf returns the table that has a key: the parent, or a leaf of it.
func (k *ForeignKey) HolderOf(key []byte) *catalog.TableDescriptor {
	if l := k.leafOf(key); l != nil {
		return l.table
	}
	return k.Parent
}

func (k *ForeignKey) leafOf(key []byte) *keyLeaf {
	if k.leaves == nil {
		return nil
	}
	if at, ok := k.leaves.byID[rowenc.TableOfKey(key)]; ok {
		return &k.leaves.leaves[at]
	}
	return nil
}

// IncomingKey is a foreign key that references rows of Table, which is its parent or a leaf of it.
type IncomingKey struct {
	*ForeignKey
	Table *catalog.TableDescriptor
	// Ordinals are the referenced columns in Table, in the order of the constraint.
	Ordinals []int
}

// SameParentKey reports whether two rows of the table have equal values in the referenced columns.
func (k *IncomingKey) SameParentKey(a, b types.Row) bool { return equalIn(k.Table, k.Ordinals, a, b) }

// incoming binds the foreign keys that reference rows of t. Of those of partitioned tables, it is the leaves' that have rows. The plan depends on
// the tables above t, which foreign keys may reference.
func (p *physical) incoming(t *catalog.TableDescriptor) []*IncomingKey {
	refs, err := catalog.ReferencesToRows(p.b.ctx, p.b.r, t)
	if err != nil {
		p.fail(err)
		return nil
	}
	refs = slices.DeleteFunc(refs, func(ref catalog.Reference) bool { return ref.Table.IsPartitioned() })
	if t.IsPartition() {
		above, err := catalog.PartitionAncestors(p.b.ctx, p.b.r, t)
		if err != nil {
			p.fail(err)
			return nil
		}
		for _, a := range above {
			p.b.use(a)
			p.dependOn(a)
		}
	}
	var all []*IncomingKey
	for _, ref := range refs {
		k, err := p.foreignKey(ref.Key, ref.Table)
		if err != nil {
			p.fail(err)
			return nil
		}
		p.dependOn(k.Child)
		in := &IncomingKey{ForeignKey: k, Table: t}
		for _, ord := range k.ParentOrdinals {
			in.Ordinals = append(in.Ordinals, t.InheritedColumn(&k.Parent.Columns[ord]))
		}
		all = append(all, in)
	}
	return all
}

// actionMoves binds the partitions of the table that has a foreign key whose actions may change partition keys of its rows; nil: they do not, or
// the foreign key is of the partition alone.
func (p *physical) actionMoves(k *ForeignKey) *Parts {
	top := k.Declared.Table
	if !top.IsPartitioned() || k.OnUpdate < catalog.KeyCascade && k.OnDelete < catalog.KeySetNull || p.err != nil {
		return nil
	}
	if have := p.moves[top.ID]; have != nil {
		return have
	}
	tree, err := catalog.PartitionTree(p.b.ctx, p.b.r, top)
	if err != nil {
		p.fail(err)
		return nil
	}
	changed := make([]int, len(k.Declared.Key.Columns))
	for i, id := range k.Declared.Key.Columns {
		changed[i] = top.Ordinal(id)
	}
	if !p.readsKey(tree, top, changed) {
		return nil
	}
	if p.moves == nil {
		p.moves = map[uint64]*Parts{}
	}
	moves := &Parts{}
	p.moves[top.ID] = moves
	*moves = *p.parts(&change{table: top, scan: p.b.newScan(top, top.Name, nil)}, catalog.TriggerInsert, nil)
	return moves
}
