package rowenc

import (
	"context"
	"fmt"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// KeyName describes a key in the terms of its table, for messages and views of locks.
type KeyName struct {
	Table *catalog.TableDescriptor
	Index *catalog.IndexDescriptor
	// Values are those of the index's columns, in its order.
	Values types.Row
}

// NameKey describes a key under a schema; it returns nil for keys of the system, and of tables and indexes that the
// schema does not contain.
func NameKey(ctx context.Context, r catalog.Resolver, key []byte) (*KeyName, error) {
	tableID, indexID, _, err := SplitKey(key)
	if err != nil {
		return nil, nil // The catalog's.
	}
	t, err := r.RelationByID(ctx, tableID)
	if t == nil || err != nil {
		return nil, err
	}
	if indexID == guardIndex {
		return nameGuard(t, key)
	}
	n := &KeyName{Table: t}
	if t.Primary.ID == indexID {
		n.Index = &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].ID == indexID {
			n.Index = &t.Indexes[i]
		}
	}
	if n.Index == nil {
		return nil, nil
	}
	n.Values, err = KeyColumns(t, n.Index, key)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Columns lists the names of the index's columns: "region, id". It is empty if the key is the hidden one of a table
// without primary key.
func (n *KeyName) Columns() string {
	var b strings.Builder
	for i, c := range n.Index.Columns {
		column := n.Table.ColumnByID(c.ColumnID)
		if column.Hidden {
			return ""
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(column.Name)
	}
	return b.String()
}

// Texts lists their values as text: "eu, 7".
func (n *KeyName) Texts() string {
	var b strings.Builder
	for i, c := range n.Index.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if n.Values[i].IsNull() {
			b.WriteString("null")
			continue
		}
		b.Write(types.AppendText(nil, n.Values[i], n.Table.ColumnByID(c.ColumnID).Type, nil))
	}
	return b.String()
}

// String names the key in a sentence: Key (region, id)=(eu, 7) of table "t".
func (n *KeyName) String() string {
	columns := n.Columns()
	if columns == "" {
		return fmt.Sprintf("A row of table %q", n.Table.Name)
	}
	return fmt.Sprintf("Key (%s)=(%s) of table %q", columns, n.Texts(), n.Table.Name)
}
