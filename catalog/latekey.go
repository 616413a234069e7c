package catalog

import "github.com/percodb/percodb/sql/collation"

// LateKey is what makes an index that of a constraint that is checked when rows have been written: a deferrable UNIQUE or PRIMARY KEY, or
// EXCLUDE. The index is not Unique: until the constraint has been checked, several rows may have one key. The zero value is no such
// constraint.
type LateKey struct {
	// Deferrable and Deferred are those of the constraint: the check may wait for the commit, and does so by default (INITIALLY DEFERRED).
	Deferrable bool `json:",omitempty"`
	Deferred   bool `json:",omitempty"`
	// DeclaredPrimary: the constraint is the declared primary key. The rows of such a table lie under a hidden rowid.
	DeclaredPrimary bool `json:",omitempty"`
	// Exclude are the elements of EXCLUDE, whose index has in Columns those that are compared by =, as far as they can be indexed, and behind
	// them the first range that is compared by &&, if there is one. nil: the constraint is UNIQUE or PRIMARY KEY.
	Exclude []ExcludeElement `json:",omitempty"`
}

// ExcludeElement is an element of EXCLUDE: a column, of the table or computed. Two rows conflict if the operators of all elements are true for
// their values.
type ExcludeElement struct {
	ColumnID uint32
	Operator string
	// Class is the operator class that was named, if it is not the default one of the type.
	Class string `json:",omitempty"`
	// Coll is the collation, nil for that of the column.
	Coll *collation.Collation `json:",omitempty"`
}

// CheckedLate reports whether the index is one of a LateKey.
func (ix *IndexDescriptor) CheckedLate() bool { return ix.Deferrable || ix.Exclude != nil }

// SharedColumns is the number of leading key columns, of an index that is CheckedLate, that are equal in rows that conflict.
func (ix *IndexDescriptor) SharedColumns() int {
	n := len(ix.Columns)
	if ix.Exclude != nil && n > 0 && ix.operatorOf(ix.Columns[n-1].ColumnID) != "=" {
		n--
	}
	return n
}

// operatorOf returns the operator of the first element over a column by which Columns has it: = if there is one.
func (ix *IndexDescriptor) operatorOf(columnID uint32) string {
	op := ""
	for _, e := range ix.Exclude {
		if e.ColumnID == columnID && (op == "" || e.Operator == "=") {
			op = e.Operator
		}
	}
	return op
}

// ElementIDs are the ids of the columns that the constraint of a late index is over, in its order.
func (ix *IndexDescriptor) ElementIDs() []uint32 {
	var ids []uint32
	for _, e := range ix.Exclude {
		ids = append(ids, e.ColumnID)
	}
	if ix.Exclude == nil {
		for _, c := range ix.Columns {
			ids = append(ids, c.ColumnID)
		}
	}
	return ids
}

// HasLateKeys reports whether the table has constraints that are checked when rows have been written, foreign keys apart.
func (t *TableDescriptor) HasLateKeys() bool {
	for i := range t.Indexes {
		if t.Indexes[i].CheckedLate() {
			return true
		}
	}
	return false
}

// PrimaryKey returns the index of the declared primary key, which may be deferrable; nil if there is none.
func (t *TableDescriptor) PrimaryKey() *IndexDescriptor {
	if t.HasPrimaryKey() {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].DeclaredPrimary {
			return &t.Indexes[i]
		}
	}
	return nil
}
