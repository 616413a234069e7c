package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// IndexBuild is an index of a table that is not complete: it is being built, or its build has failed. Statements neither read nor write its
// entries. While it is being built, those that change rows of the table notify Log of them, as an observer.
type IndexBuild struct {
	Index IndexDescriptor
	// Computed are the expressions of the index that are not yet among those of the table.
	Computed []ColumnDescriptor `json:",omitempty"`
	// Log is the number under which changed rows are noted; 0: the build has failed, and the index is invalid.
	Log uint64 `json:",omitempty"`
	// Columns are the ids of the columns whose changes are noted; empty: all.
	Columns []uint32 `json:",omitempty"`
	// KeepInvalid: if the build fails, the index stays as an invalid one (CONCURRENTLY).
	KeepInvalid bool `json:",omitempty"`
	// Root is the OID of the index of the partitioned table for which this one is built, as a part or a part of a part; 0: none. The index
	// is removed if the build fails.
	Root uint32 `json:",omitempty"`
}

// Failed reports whether the build has ended without success.
func (b *IndexBuild) Failed() bool { return b.Log == 0 }

// Observes reports whether changes of a column are noted.
func (b *IndexBuild) Observes(columnID uint32) bool {
	return !b.Failed() && (len(b.Columns) == 0 || slices.Contains(b.Columns, columnID))
}

func (b IndexBuild) clone() IndexBuild {
	b.Index, b.Computed, b.Columns = b.Index.clone(), slices.Clone(b.Computed), slices.Clone(b.Columns)
	return b
}

// Building reports whether an index of the table is being built.
func (t *TableDescriptor) Building() bool {
	return slices.ContainsFunc(t.Builds, func(b IndexBuild) bool { return !b.Failed() })
}

// BuildOf returns the build of the index with an OID, or nil.
func (t *TableDescriptor) BuildOf(index uint32) *IndexBuild {
	for i := range t.Builds {
		if t.Builds[i].Index.OID == index {
			return &t.Builds[i]
		}
	}
	return nil
}

// WithBuild returns the table as it will be when a build has ended: the index is the last one.
func (t *TableDescriptor) WithBuild(b *IndexBuild) *TableDescriptor {
	next, own := t.Clone(), b.clone()
	next.Builds = slices.DeleteFunc(next.Builds, func(o IndexBuild) bool { return o.Index.OID == b.Index.OID })
	if len(next.Builds) == 0 {
		next.Builds = nil
	}
	for i := range own.Computed {
		c := &own.Computed[i]
		have := slices.IndexFunc(next.Computed, func(o ColumnDescriptor) bool { return c.Expr != nil && o.Expr != nil && o.Expr.SQL == c.Expr.SQL })
		if have < 0 {
			next.Computed = append(next.Computed, *c)
			continue
		}
		own.Index.replaceColumn(c.ID, next.Computed[have].ID)
	}
	next.Indexes = append(next.Indexes, own.Index)
	return next
}

// replaceColumn makes keys over one column keys over another.
func (ix *IndexDescriptor) replaceColumn(from, to uint32) {
	for i := range ix.Columns {
		if ix.Columns[i].ColumnID == from {
			ix.Columns[i].ColumnID = to
		}
	}
	for i := range ix.Inverted {
		if ix.Inverted[i].ColumnID == from {
			ix.Inverted[i].ColumnID = to
		}
	}
}

// FindBuild finds an index that is not complete by name; schema "" searches the path. It returns nil if there is none.
func FindBuild(ctx context.Context, r Resolver, schema, name string) (found *TableDescriptor, b *IndexBuild, err error) {
	found, err = findRelation(ctx, r, schema, func(t *TableDescriptor) bool {
		for i := range t.Builds {
			if t.Builds[i].Index.Name == name {
				b = &t.Builds[i]
			}
		}
		return b != nil
	})
	return found, b, err
}

// BuildingError says that a relation cannot be changed before the build of its index has ended.
type BuildingError struct {
	Table uint64
	Name  string
}

// Error implements error.
func (e *BuildingError) Error() string {
	return fmt.Sprintf("an index of table %q is being built", e.Name)
}

// ForBuild says that the change is one of the builds of indexes, which may change tables whose indexes are being built.
func (ch *Change) ForBuild() { ch.ofBuild = true }

// waitsForBuild returns *BuildingError if the change must wait until the indexes of t have been built. Changes of privileges do not.
func (ch *Change) waitsForBuild(t *TableDescriptor) error {
	if ch.ofBuild || !ch.token || !t.Building() {
		return nil
	}
	return &BuildingError{Table: t.ID, Name: t.Name}
}

// The phases of a build.
const (
	BuildScans  = "scan"  // entries of the rows as of From are written
	BuildMerges = "merge" // those of rows that have changed since are replaced
)

// BuildRecord is how far the build of an index has come. It is stored with each step, for whoever continues after a crash.
type BuildRecord struct {
	Database uint32
	Table    uint64
	Role     uint32 // that executes the statement
	Session  uint32 // of the statement; 0: the build is continued in the background
	// Owner is who is at it, Until when others may take over.
	Owner string
	Until tso.Timestamp
	Phase string
	// From is the snapshot as of which the index has the entries of all rows before Next, or of all rows once Phase is BuildMerges. No
	// version of a row that it shows may be collected. 0: the build has not begun.
	From tso.Timestamp
	Next []byte `json:",omitempty"`
	// To is the snapshot of the round of merging under way, 0 between rounds.
	To tso.Timestamp `json:",omitempty"`
	// Total is the estimated number of rows, Rows how many have been read.
	Total, Rows int64
	// Parts is the number of partitions of which an index is built, Part how many came before this one.
	Parts, Part int64 `json:",omitempty"`
}

// PutBuild stores the progress of the build of an index, by its OID.
func PutBuild(w percolator.Writer, index uint32, b *BuildRecord) error {
	return w.Put(idKey(wordBuild, uint64(index)), encode(b))
}

// DeleteBuild removes it when the build has ended.
func DeleteBuild(w percolator.Writer, index uint32) error {
	return w.Delete(idKey(wordBuild, uint64(index)))
}

// BuildRecordOf returns the progress of the build of an index, nil if none is under way.
func BuildRecordOf(ctx context.Context, r percolator.Reader, index uint32) (*BuildRecord, error) {
	key := idKey(wordBuild, uint64(index))
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return nil, err
	}
	b := new(BuildRecord)
	return b, decode(key, value, b)
}

// Builds calls yield with the progress of all builds, of all databases. It needs no Catalog, so a process without SQL can call it.
func Builds(ctx context.Context, r percolator.Reader, yield func(index uint32, b *BuildRecord) error) error {
	return scan(ctx, r, wordBuild, func(key, value []byte) error {
		index, err := idOfKey(wordBuild, key)
		if err != nil {
			return err
		}
		b := new(BuildRecord)
		if err := decode(key, value, b); err != nil {
			return err
		}
		return yield(uint32(index), b)
	})
}

// BuildsHold returns the oldest snapshot that a build of an index reads, 0 if there is none.
func BuildsHold(ctx context.Context, r percolator.Reader) (oldest tso.Timestamp, err error) {
	err = Builds(ctx, r, func(_ uint32, b *BuildRecord) error {
		if b.From != 0 && (oldest == 0 || b.From < oldest) {
			oldest = b.From
		}
		return nil
	})
	return oldest, err
}

// abandonBuild removes what is stored of a build outside of the table's descriptor and keys.
func (ch *Change) abandonBuild(ctx context.Context, b *IndexBuild) error {
	if b.Failed() {
		return nil
	}
	if err := ch.DropSpan(ctx, DroppedSpan{Observer: b.Log}); err != nil {
		return err
	}
	return DeleteBuild(ch.txn, b.Index.OID)
}

// IndexProgress is one row of pg_stat_progress_create_index.
type IndexProgress struct {
	PID          uint32 // 0: the build is continued in the background
	Database     uint32
	DatabaseName string
	Table        uint64
	Index        uint32
	Command      string
	Phase        string
	Total, Rows  int64
	Parts, Part  int64
}
