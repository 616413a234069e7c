package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
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
		row := s.collationRow(int64(c.OID), c.Schema, c.Name, ownerOID, c.Provider, c.OfUTF8())
		switch c.Provider {
		case collation.Libc:
			row = append(row, col{"collcollate", text(c.Locale)}, col{"collctype", text(c.Locale)})
		case collation.ICU:
			row = append(row, col{"colliculocale", text(c.Locale)})
		}
		if err := s.emitCollation(row, c.Version()); err != nil {
			return err
		}
	}
	for _, d := range s.Collations().All() {
		row := s.collationRow(int64(d.ID), d.Schema, d.Name, d.OwnerOID(), d.Provider, !d.AnyEncoding)
		switch d.Provider {
		case collation.Libc:
			row = append(row, col{"collcollate", text(d.Collate)}, col{"collctype", text(d.Ctype)})
		case collation.ICU:
			row = append(row, col{"colliculocale", text(d.Locale)})
		}
		if err := s.emitCollation(row, d.RulesVersion); err != nil {
			return err
		}
	}
	return nil
}

// collationRow makes the columns of pg_collation that all collations have.
func (s *scan) collationRow(id int64, schema, name string, owner uint32, provider collation.Provider, utf8 bool) []col {
	encoding := -1
	if utf8 {
		encoding = utf8Encoding
	}
	return []col{{"oid", num(id)}, {"collname", text(name)}, {"collnamespace", oid(schemaOID(s.Resolver, schema))}, {"collowner", num(owner)},
		{"collprovider", letter(byte(provider))}, {"collisdeterministic", boolean(true)}, {"collencoding", num(encoding)}}
}

func (s *scan) emitCollation(row []col, version string) error {
	if version != "" {
		row = append(row, col{"collversion", text(version)})
	}
	return s.emit(row...)
}

// eachCollation calls f with the schema, the name and the owner of each collation.
func (s *scan) eachCollation(f func(schema, name string, owner uint32) error) error {
	for _, c := range collation.Builtin() {
		if err := f(c.Schema, c.Name, catalog.BootstrapSuperuser); err != nil {
			return err
		}
	}
	for _, d := range s.Collations().All() {
		if err := f(d.Schema, d.Name, d.OwnerOID()); err != nil {
			return err
		}
	}
	return nil
}

// collation returns the collation with an OID, nil if there is none.
func (o *Objects) collation(id types.OID) *collation.Collation {
	if c := collation.ByOID(uint32(id)); c != nil {
		return c
	}
	if r := o.Resolver(); r != nil {
		if d := r.Collations().ByOID(uint32(id)); d != nil {
			return d.Collation()
		}
	}
	return nil
}

// collationComment returns the comment on a collation; false if there is none.
func (o *Objects) collationComment(id types.OID) (string, bool) {
	if c := collation.ByOID(uint32(id)); c != nil {
		return c.Comment, c.Comment != ""
	}
	if r := o.Resolver(); r != nil {
		if d := r.Collations().ByOID(uint32(id)); d != nil {
			return d.Comment, d.Comment != ""
		}
	}
	return "", false
}

// CollationName implements types.Names.
func (o *Objects) CollationName(id types.OID) (string, bool) {
	c, r := o.collation(id), o.Resolver()
	if c == nil || r == nil {
		return "", false
	}
	return catalog.WrittenCollation(r, c), true
}

// CollationOID implements types.Names.
func (o *Objects) CollationOID(text string) (types.OID, error) {
	schema, name, err := SplitName(text)
	if err != nil {
		return 0, err
	}
	if err := o.schemaExists(schema); err != nil {
		return 0, err
	}
	if r := o.Resolver(); r != nil {
		if c := catalog.FindCollation(r, schema, name); c != nil {
			return types.OID(c.OID), nil
		}
		if schema != "" {
			name = schema + "." + name
		}
	}
	return 0, pgerror.New(pgerror.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", name)
}

// CollationVisible implements builtin.Catalog.
func (o *Objects) CollationVisible(id types.OID) (visible, ok bool) {
	c := o.collation(id)
	if c == nil {
		return false, false
	}
	schema, name := catalog.CollationName(o.Resolver(), c)
	return catalog.CollationVisible(o.Resolver(), schema, name), true
}

// CollationVersion implements builtin.Catalog.
func (o *Objects) CollationVersion(id types.OID) (version string, ok bool) {
	c := o.collation(id)
	return c.Version(), c != nil
}

// collateClause is COLLATE with the collation of an index's column, "" if it is that of the table's column.
func collateClause(r catalog.Resolver, t *catalog.TableDescriptor, c *catalog.IndexColumn) string {
	of := t.ColumnByID(c.ColumnID).Type.Coll
	if collationOID(of) == collationOID(c.Coll) {
		return ""
	}
	return " COLLATE " + catalog.WrittenCollation(r, c.Coll)
}
