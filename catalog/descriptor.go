package catalog

import (
	"bytes"
	"slices"
	"strconv"
	"sync"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/tsearch"
)

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

// CommitAction is ON COMMIT of a temporary table.
type CommitAction uint8

// The actions.
const (
	CommitPreserves CommitAction = iota
	CommitEmpties
	CommitDrops
)

// TableDescriptor is a relation as of one schema change. Immutable once published; Version grows
// with every change, new statistics included. Schema objects are shown to PostgreSQL clients under
// OID().
type TableDescriptor struct {
	ID      uint64
	Version uint64
	// WriterVersion is the Version of the last change after which writers planned before it must not commit (a new
	// index, another row format); see Guard.
	WriterVersion uint64
	// StatsVersion is the Version at which statistics were last stored, 0 for never.
	StatsVersion uint64
	Kind         RelationKind
	Schema       string
	Name         string
	Owned

	Columns      []ColumnDescriptor // in order of id; a column's place here is its ordinal
	NextColumnID uint32
	// Computed are the expressions that indexes have as keys, each once. They are no columns of the table: rows do not hold them. Their
	// ordinals follow those of Columns.
	Computed    []ColumnDescriptor `json:",omitempty"`
	Primary     IndexDescriptor    // of tables; over the hidden rowid column where none was declared
	Indexes     []IndexDescriptor
	NextIndexID uint32
	Checks      []CheckDescriptor
	ForeignKeys []ForeignKeyDescriptor `json:",omitempty"` // by OID
	// Partitioning is set of partitioned tables, PartitionOf of partitions.
	Partitioning *Partitioning `json:",omitempty"`
	PartitionOf  *PartitionOf  `json:",omitempty"`
	// OfType is the id of the composite type whose attributes are the columns (CREATE TABLE … OF), 0 for none.
	OfType uint64 `json:",omitempty"`
	// Referencing are the ids of other tables that have foreign keys to this one.
	Referencing []uint64 `json:",omitempty"`
	// KeysOff are the OIDs of foreign keys, of the table or to it, that DISABLE TRIGGER ALL has disabled for its rows and those of its partitions.
	KeysOff   []uint32             `json:",omitempty"`
	Observers []ObserverDescriptor `json:",omitempty"` // by ID
	Builds    []IndexBuild         `json:",omitempty"` // indexes that are not complete
	// RowSecurity: the policies decide about rows, for the owner as well if ForceRowSecurity.
	RowSecurity      bool                `json:",omitempty"`
	ForceRowSecurity bool                `json:",omitempty"`
	Policies         []PolicyDescriptor  `json:",omitempty"` // by name
	Triggers         []TriggerDescriptor `json:",omitempty"` // by name, in whose order they are executed

	ViewQuery string   // of views and materialized views: the query's text, names qualified as of creation
	DependsOn []uint64 // ids of the relations in ViewQuery
	// Materialized: a table whose rows are those of ViewQuery, as of its last REFRESH; Populated: and it has them.
	Materialized bool `json:",omitempty"`
	Populated    bool `json:",omitempty"`
	// SecurityInvoker: a view reads with the privileges of whoever reads it, and not with its owner's.
	SecurityInvoker bool `json:",omitempty"`
	// SecurityBarrier: conditions of a view's readers are evaluated only for rows of the view, unless they are leakproof.
	SecurityBarrier bool `json:",omitempty"`
	// CheckOption: rows that are written through a view must be rows of it, if cascaded also of the views below it.
	CheckOption CheckOption `json:",omitempty"`
	Sequence    *SequenceDescriptor
	Comment     string
	// OnCommit is what the commit of a transaction does to a temporary table.
	OnCommit CommitAction `json:",omitempty"`
	// Options are the storage options of a table and the options of a view, name=value.
	Options []string `json:",omitempty"`
	// ReplicaIdentity is what REPLICA IDENTITY says, as pg_class.relreplident has it; "" for the default. It has no effect.
	ReplicaIdentity string `json:",omitempty"`
	// Unlogged is shown, and has no other effect.
	Unlogged bool `json:",omitempty"`
	// Rows computes the rows of a KindVirtual relation, and of a sequence read as a table; nil for
	// others.
	Rows VirtualRows `json:"-"`
}

// CheckOption is WITH CHECK OPTION of a view.
type CheckOption string

// The kinds of WITH CHECK OPTION, as the option check_option spells them.
const (
	CheckNone     CheckOption = ""
	CheckLocal    CheckOption = "local"
	CheckCascaded CheckOption = "cascaded"
)

// SameButStatistics reports whether t and other differ in nothing but statistics.
func (t *TableDescriptor) SameButStatistics(other *TableDescriptor) bool {
	if t.Version == other.Version {
		return true
	}
	a, b := *t, *other
	a.Version, a.StatsVersion, b.Version, b.StatsVersion = 0, 0, 0, 0
	return bytes.Equal(encode(&a), encode(&b))
}

// ColumnDescriptor is one column. ID never changes and is never used again; the name and the
// ordinal may.
type ColumnDescriptor struct {
	ID       uint32
	Name     string
	Type     types.Type
	NotNull  bool
	Default  string // SQL text of the default expression, "" for none; of serial columns nextval(…)
	Identity string // "", "ALWAYS", "BY DEFAULT"
	Sequence uint64 // id of the sequence a serial or identity column owns, 0 for none
	// Generated is the SQL text of the expression from which the column is computed; "" for ordinary columns.
	Generated string `json:",omitempty"`
	Hidden    bool   // the rowid of tables without primary key: seen by no name, in no star
	// Missing is the value (rowenc.EncodeDatum) of rows written before the column was added.
	Missing []byte
	Comment string
	ACL     acl.List `json:",omitzero"` // what is granted on the column beside what is granted on the table
	// Physical is what ALTER COLUMN has set about statistics and storage. It is shown, and has no effect. nil: nothing.
	Physical *ColumnStorage `json:",omitempty"`
	// Expr is a computed column's expression over the row; Name is how messages print it. nil: it is a column of the table, or that of the terms of
	// an inverted index.
	Expr *ExprText `json:",omitempty"`
}

// ColumnStorage are the attributes of a column that PostgreSQL's storage and ANALYZE follow. Immutable once published.
type ColumnStorage struct {
	// Statistics is SET STATISTICS; nil: the default.
	Statistics *int16 `json:",omitempty"`
	// Storage and Compression are pg_attribute.attstorage and attcompression; "" for those of the type.
	Storage     string `json:",omitempty"`
	Compression string `json:",omitempty"`
	// Options are those of SET (…), name=value.
	Options []string `json:",omitempty"`
}

// IndexState states which statements use an index.
type IndexState uint8

// The states of an index.
const (
	IndexPublic    IndexState = iota // read and written
	IndexWriteOnly                   // written; being backfilled
)

// IndexDescriptor is a primary or secondary index. A non-unique entry's key ends with the primary
// key's columns, a unique entry's value holds them (its key too, where a key column is NULL and NULLs are distinct).
type IndexDescriptor struct {
	ID         uint32 // among the table's keys; a rebuilt index has a new one
	OID        uint32 // towards PostgreSQL clients; stays
	Name       string
	Unique     bool
	Constraint bool // made by PRIMARY KEY or UNIQUE rather than CREATE INDEX
	State      IndexState
	Columns    []IndexColumn
	Include    []uint32 // ids of columns stored in the entry's value
	Comment    string
	// ConstraintComment is that of the constraint made by the index.
	ConstraintComment string `json:",omitempty"`
	// Where is a partial index's predicate: rows for which it is not true have no entry. nil: all have.
	Where *ExprText `json:",omitempty"`
	// Method is the index method that was named, if it is not btree.
	Method string `json:",omitempty"`
	// Inverted are the columns of an inverted index (GIN): an entry is a term of one of their values, which is the one key column in Columns, a
	// computed column without an expression. nil: the entries are of the values of Columns.
	Inverted []InvertedColumn `json:",omitempty"`
	// Options are the storage options, name=value.
	Options []string `json:",omitempty"`
	// NullsNotDistinct: of a unique index, two rows with NULL in the same key columns, and equal values in the others, conflict.
	NullsNotDistinct bool `json:",omitempty"`
	// ReplicaIdentity: REPLICA IDENTITY USING INDEX has named the index.
	ReplicaIdentity bool `json:",omitempty"`
	// Clustered: CLUSTER has named the index. It has no effect on the rows.
	Clustered bool `json:",omitempty"`
	// Parent is the OID of the index of the partitioned table that this one is a part of, 0 for none.
	Parent uint32 `json:",omitempty"`
	// Incomplete: of a partitioned table, some partition has no part of the index.
	Incomplete bool `json:",omitempty"`
	LateKey
}

// InvertedColumn is a column, of the table or computed, of an inverted index, and the operator class that says what its terms are.
type InvertedColumn struct {
	ColumnID uint32
	Class    string
}

// ExprText is an expression that an index stores. Immutable.
type ExprText struct {
	SQL string // what is bound
	// Full and Pretty are what clients are shown, with all parentheses and with those that are needed.
	Full, Pretty string
	// Call: it has the form of a function call, which CREATE INDEX takes without parentheses.
	Call bool `json:",omitempty"`
}

// IndexColumn is a key column of an index.
type IndexColumn struct {
	ColumnID   uint32
	Desc       bool
	NullsFirst bool
	// Coll orders the keys: the column's collation unless the index was made with another. nil: by bytes.
	Coll *collation.Collation `json:",omitempty"`
	// Rules is the version of the collation's rules by which the keys are made, "" for keys ordered by bytes.
	Rules string `json:",omitempty"`
	// OpClass is the operator class that was named, if it is not the default one of the type.
	OpClass string `json:",omitempty"`
	// OpClassID is the OID of the operator class if it is one that a user has defined; OpClass is "" then.
	OpClassID uint32 `json:",omitempty"`
}

// NewIndexColumn returns the key column of an index over col, in the collation c.
func NewIndexColumn(col *ColumnDescriptor, c *collation.Collation) IndexColumn {
	key := IndexColumn{ColumnID: col.ID, Coll: c}
	key.Rules = key.rules(col.Type)
	return key
}

// rules is the version by which this program makes keys over a column of type t: of the collation's rules, of what citext folds, and of
// what of a tsquery is compared.
func (c *IndexColumn) rules(t types.Type) string {
	version := c.Coll.Version()
	if t = t.Underlying(); t.IsArray() {
		t = t.Elem().Underlying()
	}
	switch t.OID {
	case types.OIDCitext:
		version = types.FoldVersion + version
	case types.OIDTSQuery:
		version = tsearch.OrderVersion + version
	}
	return version
}

// Outdated reports whether this program would make other keys of an index than there are: those of other rules, which neither reading nor
// writing the index finds. REINDEX makes them anew.
func (t *TableDescriptor) Outdated(ix *IndexDescriptor) bool {
	for i := range ix.Columns {
		c := &ix.Columns[i]
		if col := t.ColumnByID(c.ColumnID); col != nil && c.Rules != c.rules(col.Type) {
			return true
		}
	}
	return false
}

// OutdatedIndex returns an index of t that is Outdated, the primary one first; nil if there is none.
func (t *TableDescriptor) OutdatedIndex() *IndexDescriptor {
	if t.Outdated(&t.Primary) {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Outdated(&t.Indexes[i]) {
			return &t.Indexes[i]
		}
	}
	return nil
}

// RenewIndexRules notes that all keys of an index are made anew.
func (t *TableDescriptor) RenewIndexRules(ix *IndexDescriptor) {
	for i := range ix.Columns {
		c := &ix.Columns[i]
		c.Rules = c.rules(t.ColumnByID(c.ColumnID).Type)
	}
}

// RenewRules is RenewIndexRules for all indexes.
func (t *TableDescriptor) RenewRules() {
	t.RenewIndexRules(&t.Primary)
	for i := range t.Indexes {
		t.RenewIndexRules(&t.Indexes[i])
	}
}

// KeyName is the name that PostgreSQL gives a key of an index after those with the names have: name, name1, name2 ….
func KeyName(have []string, name string) string {
	base := name
	for i := 1; slices.Contains(have, name); i++ {
		name = base + strconv.Itoa(i)
	}
	return name
}

// KeyType returns the type of keys over a column of type t.
func (c *IndexColumn) KeyType(t types.Type) types.Type {
	t.Coll = c.Coll
	return t
}

// CheckDescriptor is a CHECK constraint.
type CheckDescriptor struct {
	OID  uint32
	Name string
	Expr string // SQL text
	// NotValid: rows from before the constraint have not been checked. NoInherit is shown, and has no other effect.
	NotValid  bool   `json:",omitempty"`
	NoInherit bool   `json:",omitempty"`
	Comment   string `json:",omitempty"`
	// Inherited: the table is a partition whose parent has the constraint. Local: it was also declared for the partition itself.
	Inherited bool `json:",omitempty"`
	Local     bool `json:",omitempty"`
}

// SequenceDescriptor holds a sequence's options; its value is stored under a separate key.
type SequenceDescriptor struct {
	Start, Increment, Min, Max int64
	Cycle                      bool
	// Cache is CACHE, 0 for 1. It is shown; how many values are taken at once is percodb's own.
	Cache       int64 `json:",omitempty"`
	Type        types.Type
	OwnerTable  uint64 // table that owns it, 0 for none
	OwnerColumn uint32
	// ValueID identifies the sequence's value among the catalog's keys. RESTART assigns a new one, so that it can be
	// rolled back. First and FirstCalled are the value while none is stored under it.
	ValueID     uint64
	First       int64
	FirstCalled bool
}

// TableStats are the results of ANALYZE (or of a load); the zero value means unknown.
type TableStats struct {
	Rows    float64
	Deleted float64                // keys of deleted rows that garbage collection has not taken yet
	Columns map[uint32]ColumnStats // by column id
	decoded sync.Map               // by column id: what Decoded keeps
}

// Decoded returns what decode makes of a column's statistics, which is kept as long as they are. decode must return the same whenever it is
// called. Safe for concurrent use.
func (s *TableStats) Decoded(column uint32, decode func(ColumnStats) (any, error)) (any, error) {
	if v, ok := s.decoded.Load(column); ok {
		return v, nil
	}
	v, err := decode(s.Columns[column])
	if err != nil {
		return nil, err
	}
	v, _ = s.decoded.LoadOrStore(column, v)
	return v, nil
}

// ColumnStats describe one column's values.
type ColumnStats struct {
	Distinct     float64
	NullFraction float64
	Low, High    []byte   // rowenc.EncodeDatum of the extremes, nil when unknown
	Histogram    [][]byte // bounds of equal-height buckets
	// Type is the column's type when the statistics were made: those of another type say nothing of its values. 0: not known.
	Type types.OID `json:",omitempty"`
	// Terms is the average number of terms of a row, of the terms of an inverted index.
	Terms float64 `json:",omitempty"`
	// Common are the values that are clearly more frequent than the average, the most frequent first.
	Common []CommonValue `json:",omitempty"`
	// Correlation is that of the order of values with the order of the primary key, from -1 to 1; 0: none, or unknown.
	Correlation float64 `json:",omitempty"`
}

// CommonValue is a value of a column, and the fraction of all rows that have it.
type CommonValue struct {
	Value    []byte // rowenc.EncodeDatum
	Fraction float64
}

// firstUserOID is where PostgreSQL starts numbering user objects.
const firstUserOID = uint64(types.FirstUserOID)

// SystemColumns are names that PostgreSQL gives columns of its own, in every table.
var SystemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// HasQuery reports whether the relation is a view or a materialized view.
func (t *TableDescriptor) HasQuery() bool { return t.ViewQuery != "" }

// OID is the relation's number towards PostgreSQL clients.
func (t *TableDescriptor) OID() uint32 { return uint32(t.ID) }

// Ordinal returns the position of the column with the given id, or -1. Those of computed columns follow those of the table's columns.
func (t *TableDescriptor) Ordinal(columnID uint32) int {
	for i := range t.Columns {
		if t.Columns[i].ID == columnID {
			return i
		}
	}
	for i := range t.Computed {
		if t.Computed[i].ID == columnID {
			return len(t.Columns) + i
		}
	}
	return -1
}

// ColumnAt returns the column with an ordinal, which may be a computed one.
func (t *TableDescriptor) ColumnAt(ordinal int) *ColumnDescriptor {
	if ordinal < len(t.Columns) {
		return &t.Columns[ordinal]
	}
	return &t.Computed[ordinal-len(t.Columns)]
}

// ColumnByID returns a column, which may be a computed one, also of an index that is not complete, or nil.
func (t *TableDescriptor) ColumnByID(id uint32) *ColumnDescriptor {
	if ord := t.Ordinal(id); ord >= 0 {
		return t.ColumnAt(ord)
	}
	for i := range t.Builds {
		for j := range t.Builds[i].Computed {
			if c := &t.Builds[i].Computed[j]; c.ID == id {
				return c
			}
		}
	}
	return nil
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

// IndexNamed returns the index called name, the declared primary key's included, or nil.
func (t *TableDescriptor) IndexNamed(name string) *IndexDescriptor {
	if name == "" {
		return nil
	}
	if t.Primary.Name == name {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].Name == name {
			return &t.Indexes[i]
		}
	}
	return nil
}

// HasPrimaryKey reports whether a primary key was declared under which the rows lie; without, they lie under the hidden
// rowid, and Primary has no name. See PrimaryKey for those that are deferrable.
func (t *TableDescriptor) HasPrimaryKey() bool { return t.Kind == KindTable && t.Primary.Constraint }

// Clone returns a copy that may be changed: its own slices all the way down.
func (t *TableDescriptor) Clone() *TableDescriptor {
	c := *t
	c.Columns = slices.Clone(t.Columns)
	c.Computed = slices.Clone(t.Computed)
	c.Primary = t.Primary.clone()
	c.Indexes = slices.Clone(t.Indexes)
	for i := range c.Indexes {
		c.Indexes[i] = c.Indexes[i].clone()
	}
	c.Checks = slices.Clone(t.Checks)
	c.ForeignKeys = slices.Clone(t.ForeignKeys)
	for i := range c.ForeignKeys {
		c.ForeignKeys[i] = c.ForeignKeys[i].clone()
	}
	c.Partitioning = t.Partitioning.clone()
	c.Referencing, c.KeysOff = slices.Clone(t.Referencing), slices.Clone(t.KeysOff)
	c.Observers = slices.Clone(t.Observers)
	for i := range c.Observers {
		c.Observers[i] = c.Observers[i].clone()
	}
	c.Builds = slices.Clone(t.Builds)
	for i := range c.Builds {
		c.Builds[i] = c.Builds[i].clone()
	}
	c.Policies = slices.Clone(t.Policies)
	for i := range c.Policies {
		c.Policies[i] = c.Policies[i].clone()
	}
	c.Triggers = slices.Clone(t.Triggers)
	for i := range c.Triggers {
		c.Triggers[i] = c.Triggers[i].clone()
	}
	c.DependsOn = slices.Clone(t.DependsOn)
	if t.Sequence != nil {
		seq := *t.Sequence
		c.Sequence = &seq
	}
	return &c
}

func (ix IndexDescriptor) clone() IndexDescriptor {
	ix.Columns = slices.Clone(ix.Columns)
	ix.Include = slices.Clone(ix.Include)
	ix.Options = slices.Clone(ix.Options)
	ix.Inverted = slices.Clone(ix.Inverted)
	ix.Exclude = slices.Clone(ix.Exclude)
	return ix
}
