package catalog

import (
	"context"
	"slices"
)

// PartitionStrategy is how a partitioned table is divided, as pg_partitioned_table.partstrat spells it.
type PartitionStrategy byte

// The strategies of partitioning.
const (
	PartitionByRange PartitionStrategy = 'r'
	PartitionByList  PartitionStrategy = 'l'
	PartitionByHash  PartitionStrategy = 'h'
)

// String returns the strategy as in PARTITION BY.
func (s PartitionStrategy) String() string {
	switch s {
	case PartitionByRange:
		return "RANGE"
	case PartitionByList:
		return "LIST"
	}
	return "HASH"
}

// Partitioning makes a table a partitioned one: it has no rows of its own, its rows are those of its partitions.
type Partitioning struct {
	Strategy PartitionStrategy
	// Keys are the columns of the partition key; those over expressions are computed columns.
	Keys []IndexColumn
	// Partitions are the ids of the partitions, the oldest first.
	Partitions []uint64 `json:",omitempty"`
}

// PartitionOf makes a table a partition. It has the columns of its parent, by name, and rows of its own unless it is partitioned itself.
type PartitionOf struct {
	Parent uint64
	Bound  PartitionBound
}

// PartitionBound selects the rows of a partition: one kind of bound is given, that of the parent's strategy, or Default.
type PartitionBound struct {
	Text    string   // as PostgreSQL prints it: FOR VALUES … or DEFAULT
	Default bool     `json:",omitempty"`
	In      [][]byte `json:",omitempty"` // rowenc.EncodeDatum, NULL among them
	// From (inclusive) and To (exclusive) have a limit for each column of the key.
	From, To           []RangeLimit `json:",omitempty"`
	Modulus, Remainder uint64       `json:",omitempty"`
}

// RangeLimit is one column of the lower or upper end of a range.
type RangeLimit struct {
	Infinite int8   `json:",omitempty"` // -1: MINVALUE, 1: MAXVALUE, 0: Value
	Value    []byte `json:",omitempty"` // rowenc.EncodeDatum
}

// IsPartitioned reports whether t is a partitioned table.
func (t *TableDescriptor) IsPartitioned() bool { return t.Partitioning != nil }

// IsPartition reports whether t is a partition.
func (t *TableDescriptor) IsPartition() bool { return t.PartitionOf != nil }

func (p *Partitioning) clone() *Partitioning {
	if p == nil {
		return nil
	}
	c := *p
	c.Keys, c.Partitions = slices.Clone(p.Keys), slices.Clone(p.Partitions)
	return &c
}

// PartitionsOf returns the partitions of a partitioned table, the oldest first.
func PartitionsOf(ctx context.Context, r Resolver, t *TableDescriptor) ([]*TableDescriptor, error) {
	if t.Partitioning == nil {
		return nil, nil
	}
	all := make([]*TableDescriptor, 0, len(t.Partitioning.Partitions))
	for _, id := range t.Partitioning.Partitions {
		part, err := r.RelationByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if part != nil {
			all = append(all, part)
		}
	}
	return all, nil
}

// PartitionTree returns t and all tables below it, each before its partitions.
func PartitionTree(ctx context.Context, r Resolver, t *TableDescriptor) ([]*TableDescriptor, error) {
	all := []*TableDescriptor{t}
	parts, err := PartitionsOf(ctx, r, t)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		below, err := PartitionTree(ctx, r, part)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// PartitionAncestors returns the parent of t, its parent, and so on; none if t is no partition.
func PartitionAncestors(ctx context.Context, r Resolver, t *TableDescriptor) ([]*TableDescriptor, error) {
	var all []*TableDescriptor
	for t.PartitionOf != nil {
		parent, err := r.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil || parent == nil {
			return all, err
		}
		all = append(all, parent)
		t = parent
	}
	return all, nil
}

// InheritedColumn returns the ordinal in part of the column that a table above or below it has; -1 if it has none. The hidden rowid of one
// corresponds to that of the other.
func (t *TableDescriptor) InheritedColumn(c *ColumnDescriptor) int {
	for i := range t.Columns {
		if o := &t.Columns[i]; o.Hidden == c.Hidden && (o.Hidden || o.Name == c.Name) {
			return i
		}
	}
	return -1
}

// PartOfIndex returns the index of t that is a part of the one with the given OID; nil if there is none.
func (t *TableDescriptor) PartOfIndex(oid uint32) *IndexDescriptor {
	if t.Primary.Parent == oid && oid != 0 {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].Parent == oid && oid != 0 {
			return &t.Indexes[i]
		}
	}
	return nil
}
