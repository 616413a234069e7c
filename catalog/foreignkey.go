package catalog

import (
	"context"
	"slices"
)

// KeyAction is what happens to the rows that reference a key when the key is deleted or changed.
type KeyAction uint8

// The actions.
const (
	KeyNoAction KeyAction = iota
	KeyRestrict
	KeyCascade
	KeySetNull
	KeySetDefault
)

// String returns the action as in ON DELETE.
func (a KeyAction) String() string {
	switch a {
	case KeyRestrict:
		return "RESTRICT"
	case KeyCascade:
		return "CASCADE"
	case KeySetNull:
		return "SET NULL"
	case KeySetDefault:
		return "SET DEFAULT"
	}
	return "NO ACTION"
}

// ForeignKeyDescriptor is a FOREIGN KEY constraint: the values of Columns, unless one of them is NULL, are those of ParentColumns in a row
// of the table Parent. A table with foreign keys is listed in Referencing of each of their parents.
type ForeignKeyDescriptor struct {
	OID     uint32
	Name    string
	Columns []uint32 // ids, in the order of the constraint
	// Parent is the id of the referenced table, ParentColumns are the ids of its columns, in the order of Columns, and ParentIndex is the OID
	// of the unique index over them.
	Parent        uint64
	ParentColumns []uint32
	ParentIndex   uint32
	OnUpdate      KeyAction `json:",omitempty"`
	OnDelete      KeyAction `json:",omitempty"`
	// DeleteColumns are those that ON DELETE SET NULL or SET DEFAULT changes; nil: all of Columns.
	DeleteColumns []uint32 `json:",omitempty"`
	MatchFull     bool     `json:",omitempty"` // either all values are NULL or none
	Deferrable    bool     `json:",omitempty"`
	Deferred      bool     `json:",omitempty"` // INITIALLY DEFERRED
	NotValid      bool     `json:",omitempty"` // rows from before the constraint have not been checked
	Comment       string   `json:",omitempty"`
	// Inherited is the OID of the foreign key of the partitioned table above that this one belongs to, 0 for none.
	Inherited uint32 `json:",omitempty"`
	// Parts are the constraints that stand for the foreign key at each table below Parent, if that is partitioned: each before those of the tables
	// below its own. An inherited foreign key has none.
	Parts []ForeignKeyPart `json:",omitempty"`
}

// ForeignKeyPart is a foreign key at a partition of the table that it references.
type ForeignKeyPart struct {
	OID   uint32
	Name  string
	Table uint64 // the partition's id
}

func (k ForeignKeyDescriptor) clone() ForeignKeyDescriptor {
	k.Columns = slices.Clone(k.Columns)
	k.ParentColumns = slices.Clone(k.ParentColumns)
	k.DeleteColumns = slices.Clone(k.DeleteColumns)
	k.Parts = slices.Clone(k.Parts)
	return k
}

// HasPart reports whether a table is below the referenced one.
func (k *ForeignKeyDescriptor) HasPart(table uint64) bool {
	return slices.ContainsFunc(k.Parts, func(p ForeignKeyPart) bool { return p.Table == table })
}

// NameAt returns the name of the constraint at the referenced table or one below it.
func (k *ForeignKeyDescriptor) NameAt(table uint64) string {
	for i := range k.Parts {
		if k.Parts[i].Table == table {
			return k.Parts[i].Name
		}
	}
	return k.Name
}

// ForeignKeyNamed returns the foreign key called name, or nil.
func (t *TableDescriptor) ForeignKeyNamed(name string) *ForeignKeyDescriptor {
	for i := range t.ForeignKeys {
		if t.ForeignKeys[i].Name == name {
			return &t.ForeignKeys[i]
		}
	}
	return nil
}

// IndexByOID returns the index that clients know by oid, or nil.
func (t *TableDescriptor) IndexByOID(oid uint32) *IndexDescriptor {
	if t.Primary.OID == oid {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].OID == oid {
			return &t.Indexes[i]
		}
	}
	return nil
}

// Reference is a foreign key with the table that has it.
type Reference struct {
	Table *TableDescriptor
	Key   *ForeignKeyDescriptor
}

// ReferencesTo lists the foreign keys whose parent is t, the oldest first.
func ReferencesTo(ctx context.Context, r Resolver, t *TableDescriptor) ([]Reference, error) {
	var all []Reference
	add := func(child *TableDescriptor) {
		for i := range child.ForeignKeys {
			if child.ForeignKeys[i].Parent == t.ID {
				all = append(all, Reference{child, &child.ForeignKeys[i]})
			}
		}
	}
	add(t)
	for _, id := range t.Referencing {
		child, err := r.RelationByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if child != nil && child.ID != t.ID {
			add(child)
		}
	}
	slices.SortFunc(all, func(a, b Reference) int { return int(int64(a.Key.OID) - int64(b.Key.OID)) })
	return all, nil
}

// ReferencesToRows lists the foreign keys that rows of t are referenced by: those whose parent is t or a partitioned table above it, the oldest
// first.
func ReferencesToRows(ctx context.Context, r Resolver, t *TableDescriptor) ([]Reference, error) {
	all, err := ReferencesTo(ctx, r, t)
	if err != nil || !t.IsPartition() {
		return all, err
	}
	above, err := PartitionAncestors(ctx, r, t)
	if err != nil {
		return nil, err
	}
	for _, a := range above {
		more, err := ReferencesTo(ctx, r, a)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	slices.SortStableFunc(all, func(a, b Reference) int { return int(int64(a.Key.OID) - int64(b.Key.OID)) })
	return all, nil
}

// KeyOff reports whether a foreign key that was declared with the given OID, or is a part of such a one, is disabled for the rows of t.
func KeyOff(ctx context.Context, r Resolver, t *TableDescriptor, declared uint32) (bool, error) {
	above, err := PartitionAncestors(ctx, r, t)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(append(above, t), func(x *TableDescriptor) bool { return slices.Contains(x.KeysOff, declared) }), nil
}

// DeclaredKey returns the foreign key that the one k of t is a part of, with its table: that of the topmost partitioned table that has it.
func DeclaredKey(ctx context.Context, r Resolver, t *TableDescriptor, k *ForeignKeyDescriptor) (Reference, error) {
	for k.Inherited != 0 && t.PartitionOf != nil {
		above, err := r.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil {
			return Reference{}, err
		}
		if above == nil {
			break
		}
		at := slices.IndexFunc(above.ForeignKeys, func(o ForeignKeyDescriptor) bool { return o.OID == k.Inherited })
		if at < 0 {
			break
		}
		t, k = above, &above.ForeignKeys[at]
	}
	return Reference{t, k}, nil
}

// Referenced reports whether foreign keys may reference the table.
func (t *TableDescriptor) Referenced() bool {
	return len(t.Referencing) > 0 || slices.ContainsFunc(t.ForeignKeys, func(k ForeignKeyDescriptor) bool { return k.Parent == t.ID })
}
