package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// emitComposite emits the row of a composite type in pg_type; cols are what all user-defined types have.
func (s *scan) emitComposite(d *catalog.TypeDescriptor, cols []col) error {
	cols = append(cols, compositeFunctions()...)
	return s.emit(append(cols, col{"typtype", letter(byte(d.Kind))}, col{"typacl", types.ACL(d.ACL)}, col{"typrelid", oid(uint32(d.RelationID))})...)
}

// eachComposite calls f with each composite type.
func (s *scan) eachComposite(f func(d *catalog.TypeDescriptor) error) error {
	for _, d := range s.Types().All() {
		if d.Kind != types.Composite {
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) compositeClassRows() error {
	return s.eachComposite(func(d *catalog.TypeDescriptor) error {
		return s.emit(
			col{"oid", oid(uint32(d.RelationID))}, col{"relname", text(d.Name)}, col{"relnamespace", oid(schemaOID(s.Resolver, d.Schema))},
			col{"reltype", oid(uint32(d.ID))}, col{"relowner", oid(d.OwnerOID())}, col{"relpersistence", letter('p')}, col{"relkind", letter('c')},
			col{"relnatts", num(int(d.NextField) - 1)}, col{"relispopulated", boolean(true)}, col{"relreplident", letter('n')},
		)
	})
}

func (s *scan) compositeAttributeRows() error {
	return s.eachComposite(func(d *catalog.TypeDescriptor) error {
		for _, f := range d.Defined().Fields {
			c := &catalog.ColumnDescriptor{ID: f.ID, Name: f.Name, Type: f.Type}
			if err := s.attribute(uint32(d.RelationID), int(f.ID), c, col{"attislocal", boolean(true)}); err != nil {
				return err
			}
		}
		return nil
	})
}
