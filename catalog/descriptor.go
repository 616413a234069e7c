package catalog

import "github.com/percodb/percodb/sql/types"

// RelationKind is what a descriptor describes.
type RelationKind uint8

// The kinds of relation.
const (
	KindTable RelationKind = iota + 1
	KindView
	KindSequence
	// KindVirtual is a system table whose rows are computed; it has no storage.
	KindVirtual
)

// TableDescriptor is a relation as of one schema change. Immutable once published; Version grows
// with every change. Schema objects are shown to PostgreSQL clients under OID().
type TableDescriptor struct {
	ID      uint64
	Version uint64
	Kind    RelationKind
	Schema  string
	Name    string

	Columns      []ColumnDescriptor // in order; a column's place here is its ordinal
	NextColumnID uint32
	Primary      IndexDescriptor // of tables; over the hidden rowid column where none was declared
	Indexes      []IndexDescriptor
	NextIndexID  uint32
	Checks       []CheckDescriptor

	ViewQuery string // of views: the query's text, names qualified as of creation
	Sequence  *SequenceDescriptor
	Comment   string
}

// ColumnDescriptor is one column. ID never changes and is never used again; the name and the
// ordinal may.
type ColumnDescriptor struct {
	ID       uint32
	Name     string
	Type     types.Type
	NotNull  bool
	Default  string // SQL text of the default expression, "" for none
	Identity string // "", "ALWAYS", "BY DEFAULT"
	Sequence uint64 // id of the sequence a serial or identity column owns, 0 for none
	Hidden   bool   // the rowid of tables without primary key: seen by no name, in no star
	// Missing is the value (rowenc.EncodeDatum) of rows written before the column was added.
	Missing []byte
	Comment string
}

// IndexState says who uses an index.
type IndexState uint8

// The states of an index.
const (
	IndexPublic    IndexState = iota // read and written
	IndexWriteOnly                   // written; being backfilled
)

// IndexDescriptor is a primary or secondary index. A non-unique entry's key ends with the primary
// key's columns, a unique entry's value holds them (its key too, where a key column is NULL).
type IndexDescriptor struct {
	ID         uint32
	Name       string
	Unique     bool
	Constraint bool // made by PRIMARY KEY or UNIQUE rather than CREATE INDEX
	State      IndexState
	Columns    []IndexColumn
	Include    []uint32 // ids of columns stored in the entry's value
}

// IndexColumn is a key column of an index.
type IndexColumn struct {
	ColumnID   uint32
	Desc       bool
	NullsFirst bool
}

// CheckDescriptor is a CHECK constraint.
type CheckDescriptor struct {
	Name string
	Expr string // SQL text
}

// SequenceDescriptor holds a sequence's options; its value lives under its own key.
type SequenceDescriptor struct {
	Start, Increment, Min, Max int64
	Cycle                      bool
	Type                       types.Type
	OwnerTable                 uint64 // table that owns it, 0 for none
	OwnerColumn                uint32
}

// TableStats are what ANALYZE (or a load) learned; the zero value means unknown.
type TableStats struct {
	Rows    float64
	Columns map[uint32]ColumnStats // by column id
}

// ColumnStats describe one column's values.
type ColumnStats struct {
	Distinct     float64
	NullFraction float64
	Low, High    []byte   // rowenc.EncodeDatum of the extremes, nil when unknown
	Histogram    [][]byte // bounds of equal-height buckets
}

// firstUserOID is where PostgreSQL starts numbering user objects.
const firstUserOID = 16384

// OID is the relation's number towards PostgreSQL clients.
func (t *TableDescriptor) OID() uint32 { return uint32(t.ID) }

// Ordinal returns the position of the column with the given id, or -1.
func (t *TableDescriptor) Ordinal(columnID uint32) int {
	for i := range t.Columns {
		if t.Columns[i].ID == columnID {
			return i
		}
	}
	return -1
}

// ColumnNamed returns the ordinal of the visible column called name, or -1.
func (t *TableDescriptor) ColumnNamed(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name && !t.Columns[i].Hidden {
			return i
		}
	}
	return -1
}
