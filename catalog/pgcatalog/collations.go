package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// classPgCollation is the OID of pg_collation.
const classPgCollation = 3456

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

// owned is a collation with its owner, and the version of its rules when it was made.
type owned struct {
	*collation.Collation
	owner uint32
	rules string
}

// eachCollation calls f with all collations.
func (s *scan) eachCollation(f func(owned) error) error {
	for _, c := range collation.Builtin() {
		if err := f(owned{c, catalog.BootstrapSuperuser, c.Version()}); err != nil {
			return err
		}
	}
	for _, d := range s.Types().Collations() {
		if err := f(owned{d.Collation(), d.OwnerOID(), d.Rules}); err != nil {
			return err
		}
	}
	return nil
}

func collationRows(s *scan) error {
	return s.eachCollation(func(c owned) error {
		encoding := -1
		if c.Provider == collation.Libc && (c.Name == "ucs_basic" || c.Locale == "C.utf8") {
			encoding = utf8Encoding
		}
		row := []col{{"oid", num(c.OID)}, {"collname", text(c.Name)}, {"collnamespace", oid(schemaOID(s.Resolver, c.Schema))},
			{"collowner", num(c.owner)}, {"collprovider", letter(byte(c.Provider))}, {"collisdeterministic", boolean(true)}, {"collencoding", num(encoding)}}
		switch c.Provider {
		case collation.Libc:
			row = append(row, col{"collcollate", text(c.Locale)}, col{"collctype", text(c.Locale)})
		case collation.ICU:
			row = append(row, col{"colliculocale", text(c.Locale)})
		}
		if c.rules != "" {
			row = append(row, col{"collversion", text(c.rules)})
		}
		return s.emit(row...)
	})
}

// collation finds a collation by its number, nil if there is none.
func (o *Objects) collation(id types.OID) *collation.Collation { return collationBy(o.types(), id) }

// collationBy finds a collation by its number, nil if there is none.
func collationBy(all *catalog.Types, id types.OID) *collation.Collation {
	if c := collation.ByOID(uint32(id)); c != nil {
		return c
	}
	if d := all.CollationByOID(uint32(id)); d != nil {
		return d.Collation()
	}
	return nil
}

// CollationVisible implements builtin.Catalog.
func (o *Objects) CollationVisible(id types.OID) (visible, ok bool) {
	c := o.collation(id)
	if c == nil {
		return false, false
	}
	found := catalog.FindCollation(o.Resolver(), "", c.Name)
	return found != nil && found.OID == c.OID, true
}

// CollationVersion implements builtin.Catalog.
func (o *Objects) CollationVersion(id types.OID) (version string, ok bool) {
	c := o.collation(id)
	return c.Version(), c != nil
}

// collateClause is COLLATE with the collation of an index's column, "" if it is that of the table's column.
func collateClause(t *catalog.TableDescriptor, c *catalog.IndexColumn) string {
	of := t.Columns[t.Ordinal(c.ColumnID)].Type.Coll
	if collationOID(of) == collationOID(c.Coll) {
		return ""
	}
	coll := c.Coll
	if coll == nil {
		coll = collation.DefaultCollation
	}
	name := keyword.QuoteIdent(coll.Name)
	if coll.Schema != catalog.SystemSchema && coll.Schema != catalog.PublicSchema {
		name = keyword.QuoteIdent(coll.Schema) + "." + name
	}
	return " COLLATE " + name
}
