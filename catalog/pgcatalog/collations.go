package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// collationOf is the collation of a type's values, 0 for types without.
func collationOf(t types.Type) int64 {
	if !t.Collatable() {
		return 0
	}
	c := t.Collation()
	if elem := t.Elem(); elem.Valid() && c == nil {
		c = elem.Collation()
	}
	return collationOID(c)
}

// collationOID is a collation's number; nil is the default collation.
func collationOID(c *collation.Collation) int64 {
	if c == nil {
		return int64(collation.DefaultCollation.OID)
	}
	return int64(c.OID)
}

func collationRows(s *scan) error {
	for _, c := range collation.Builtin() {
		encoding := -1
		if c.Provider == collation.Libc && (c.Name == "ucs_basic" || c.Locale == "C.utf8") {
			encoding = utf8Encoding
		}
		row := []col{{"oid", num(c.OID)}, {"collname", text(c.Name)}, {"collnamespace", oid(schemaOID(s.Resolver, c.Schema))},
			{"collowner", num(ownerOID)}, {"collprovider", letter(byte(c.Provider))}, {"collisdeterministic", boolean(true)}, {"collencoding", num(encoding)}}
		switch c.Provider {
		case collation.Libc:
			row = append(row, col{"collcollate", text(c.Locale)}, col{"collctype", text(c.Locale)})
		case collation.ICU:
			row = append(row, col{"colliculocale", text(c.Locale)})
		}
		if v := c.Version(); v != "" {
			row = append(row, col{"collversion", text(v)})
		}
		if err := s.emit(row...); err != nil {
			return err
		}
	}
	return nil
}

// CollationVisible implements builtin.Catalog.
func (o *Objects) CollationVisible(id types.OID) (visible, ok bool) {
	found := collation.ByOID(uint32(id)) != nil
	return found, found
}

// CollationVersion implements builtin.Catalog.
func (o *Objects) CollationVersion(id types.OID) (version string, ok bool) {
	c := collation.ByOID(uint32(id))
	return c.Version(), c != nil
}

// collateClause is COLLATE with the collation of an index's column, "" if it is that of the table's column.
func collateClause(t *catalog.TableDescriptor, c *catalog.IndexColumn) string {
	of := t.ColumnByID(c.ColumnID).Type.Coll
	if collationOID(of) == collationOID(c.Coll) {
		return ""
	}
	coll := c.Coll
	if coll == nil {
		coll = collation.DefaultCollation
	}
	return " COLLATE " + keyword.QuoteIdent(coll.Name)
}
