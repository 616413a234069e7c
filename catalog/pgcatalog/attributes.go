package pgcatalog

import (
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// The rows of pg_attribute. A number that no column has, below one that a column has, is shown as that of a dropped column: pg_dump expects all of them.

// attribute emits a pg_attribute row; more comes after the columns that all have.
func (s *scan) attribute(relation uint32, number int, c *catalog.ColumnDescriptor, more ...col) error {
	info := c.Type.Info()
	dims := 0
	if c.Type.IsArray() {
		dims = 1
	}
	target, stored, compression, options := -1, storage(info), types.Text(""), types.Null
	if p := c.Physical; p != nil {
		if p.Statistics != nil {
			target = int(*p.Statistics)
		}
		if p.Storage != "" {
			stored = p.Storage[0]
		}
		compression, options = types.Text(p.Compression), textArrayOrNull(p.Options)
	}
	cols := []col{
		{"attrelid", oid(relation)}, {"attname", text(c.Name)}, {"atttypid", oid(c.Type.OID)}, {"attstattarget", num(target)},
		{"attlen", num(info.Len)}, {"attnum", num(number)}, {"attndims", num(dims)}, {"attcacheoff", num(-1)},
		{"atttypmod", num(c.Type.Mod)}, {"attbyval", boolean(byValue(info))}, {"attalign", letter(alignment(info))},
		{"attstorage", letter(stored)}, {"attcompression", compression}, {"attcollation", num(collationOf(c.Type))}, {"attoptions", options},
	}
	return s.emit(append(cols, more...)...)
}

// droppedAttribute emits the row of a number that no column has any more.
func (s *scan) droppedAttribute(relation uint32, number int) error {
	return s.emit(col{"attrelid", oid(relation)}, col{"attname", text("........pg.dropped." + strconv.Itoa(number) + "........")}, col{"atttypid", oid(uint32(0))},
		col{"attstattarget", num(0)}, col{"attlen", num(-1)}, col{"attnum", num(number)}, col{"attcacheoff", num(-1)}, col{"atttypmod", num(-1)},
		col{"attalign", letter('i')}, col{"attstorage", letter('p')}, col{"attisdropped", boolean(true)}, col{"attislocal", boolean(true)})
}

func attributeRows(s *scan) error {
	if err := s.compositeAttributeRows(); err != nil {
		return err
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if err := s.columnAttributes(t); err != nil {
			return err
		}
		for _, ix := range visibleIndexes(t) {
			var names []string
			for i, id := range indexColumnIDs(ix) {
				c := *t.ColumnByID(id)
				c.Name = catalog.KeyName(names, attributeName(&c))
				names = append(names, c.Name)
				if c.Expr == nil && c.Physical != nil { // The rest is of the table's column.
					c.Physical = &catalog.ColumnStorage{Compression: c.Physical.Compression}
				}
				if err := s.attribute(ix.OID, i+1, &c, col{"attislocal", boolean(true)}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *scan) columnAttributes(t *catalog.TableDescriptor) error {
	next := 1
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Hidden {
			continue
		}
		for ; next < int(c.ID); next++ {
			if err := s.droppedAttribute(t.OID(), next); err != nil {
				return err
			}
		}
		next++
		err := s.attribute(t.OID(), int(c.ID), c, col{"attislocal", boolean(!t.IsPartition())}, col{"attinhcount", num(boolNumber(t.IsPartition()))},
			col{"attnotnull", boolean(c.NotNull)}, col{"atthasdef", boolean(c.Default != "" || c.Generated != "")},
			col{"attgenerated", generatedLetter(c)}, col{"attidentity", identityLetter(c)},
			col{"atthasmissing", boolean(c.Missing != nil)}, col{"attacl", types.ACL(c.ACL)})
		if err != nil {
			return err
		}
	}
	return nil
}

// attributeCount is relnatts: the highest number of a column.
func attributeCount(t *catalog.TableDescriptor) int {
	n := 0
	for i := range t.Columns {
		if !t.Columns[i].Hidden {
			n = int(t.Columns[i].ID)
		}
	}
	return n
}
