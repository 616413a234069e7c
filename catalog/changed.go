package catalog

import (
	"context"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/types"
)

// ChangedName is the name under which an observer's body reads the rows that it handles.
const ChangedName = "changed"

// The columns that come before the table's in the relation of changed rows.
const (
	ChangedCommitTS = "_commit_ts" // of the newest change
	ChangedDeleted  = "_deleted"   // the row is gone: of its columns only those of the primary key are set
)

// ChangedRelation describes the rows that an observer of t handles together, as its body and its clients see them. The
// rows are those of SystemView.Changed.
func ChangedRelation(t *TableDescriptor, o *ObserverDescriptor) *TableDescriptor {
	all := acl.List{{Grantee: acl.Public, Grantor: t.OwnerOID(), Rights: acl.Select}} // of what is no column of the table
	d := &TableDescriptor{
		ID: o.ID, Version: t.Version, WriterVersion: t.WriterVersion, Kind: KindVirtual, Name: ChangedName,
		Owned: Owned{Owner: t.Owner, ACL: t.EffectiveACL()}, // They contain what the table does.
		Columns: []ColumnDescriptor{
			{ID: 1, Name: ChangedCommitTS, Type: types.TInt8, NotNull: true, ACL: all},
			{ID: 2, Name: ChangedDeleted, Type: types.TBool, NotNull: true, ACL: all},
		},
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		d.Columns = append(d.Columns, ColumnDescriptor{ID: uint32(len(d.Columns) + 1), Name: c.Name, Type: c.Type, ACL: c.ACL})
	}
	d.NextColumnID = uint32(len(d.Columns) + 1)
	d.Rows = func(ctx context.Context, _ Resolver, view SystemView, yield func(types.Row) error) error {
		if view == nil {
			return nil
		}
		return view.Changed(yield)
	}
	return d
}
