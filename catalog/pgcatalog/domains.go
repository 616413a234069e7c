package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// emitDomain emits the row of a domain in pg_type; cols are what all user-defined types have.
func (s *scan) emitDomain(d *catalog.TypeDescriptor, cols []col) error {
	below := d.Type().Underlying()
	info := below.Info()
	dims := 0
	if below.IsArray() {
		dims = 1
	}
	functions := s.typeFunctions(info.OID) // of one of PostgreSQL's types
	switch {
	case below.IsArray():
		functions = arrayFunctions()
	case below.IsEnum():
		functions = enumFunctions()
	case below.IsComposite():
		functions = compositeFunctions()
	case below.IsRange():
		functions = rangeFunctions("range_")
	case below.IsMultirange():
		functions = rangeFunctions("multirange_")
	}
	cols = append(cols, functions...)
	byDefault := s.printer().valueText(d.Default, d.Type(), false)
	return s.emit(append(cols, col{"typtype", letter(byte(d.Kind))}, col{"typacl", types.ACL(d.ACL)}, col{"typsubscript", num(0)},
		col{"typinput", procOID("domain_in")}, col{"typreceive", procOID("domain_recv")}, col{"typmodin", num(0)}, col{"typmodout", num(0)},
		col{"typnotnull", boolean(d.NotNull)}, col{"typbasetype", oid(d.Parent.OID)},
		col{"typtypmod", num(d.Parent.Mod)}, col{"typndims", num(dims)}, col{"typdefault", optional(byDefault)},
		col{"typdefaultbin", optional(byDefault)}, col{"typcollation", num(collationOf(d.Type()))})...)
}

// eachDomain calls f with each domain.
func (s *scan) eachDomain(f func(d *catalog.TypeDescriptor) error) error {
	for _, d := range s.Types().All() {
		if d.Kind != types.Domain {
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) domainConstraintRows() error {
	return s.eachDomain(func(d *catalog.TypeDescriptor) error {
		for i := range d.Checks {
			c := &d.Checks[i]
			err := s.emit(
				col{"oid", oid(c.OID)}, col{"conname", text(c.Name)}, col{"connamespace", oid(schemaOID(s.Resolver, d.Schema))},
				col{"contype", letter('c')}, col{"convalidated", boolean(!c.NotValid)}, col{"contypid", oid(uint32(d.ID))},
				col{"confupdtype", text(" ")}, col{"confdeltype", text(" ")}, col{"confmatchtype", text(" ")}, col{"conislocal", boolean(true)},
				col{"conbin", text(s.printer().domainCheckText(s.Types().Complete(d.Parent), c, false))},
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// domainConstraintDefinition is a constraint as ALTER DOMAIN … ADD takes it.
func (p *printer) domainConstraintDefinition(of types.Type, c *types.DomainCheck, pretty bool) string {
	text := "CHECK (" + p.domainCheckText(of, c, pretty) + ")"
	if c.NotValid {
		text += " NOT VALID"
	}
	return text
}

func infoDomainRows(s *scan) error {
	return s.eachDomain(func(d *catalog.TypeDescriptor) error {
		if !s.mayUse(d.Type()) {
			return nil
		}
		below := s.Types().Complete(d.Parent)
		cols := []col{
			{"domain_catalog", text(s.database())}, {"domain_schema", text(d.Schema)}, {"domain_name", text(d.Name)},
			{"domain_default", optional(s.printer().valueText(d.Default, d.Type(), false))}, {"udt_catalog", text(s.database())}, {"udt_schema", text(s.typeSchema(below))},
			{"udt_name", text(below.Info().Name)}, {"dtd_identifier", text("1")},
		}
		of := append(s.collationOf(below), s.describeType(below)...)
		switch { // The view does not call the arrays below domains so.
		case s.typeSchema(below) != catalog.SystemSchema:
			of = []col{{"data_type", text("USER-DEFINED")}}
		case below.IsArray():
			of = []col{{"data_type", text(builtin.TypeName(below))}}
		}
		return s.emit(append(cols, of...)...)
	})
}

// eachDomainCheck calls f with each constraint of a domain.
func (s *scan) eachDomainCheck(f func(d *catalog.TypeDescriptor, c *types.DomainCheck) error) error {
	return s.eachDomain(func(d *catalog.TypeDescriptor) error {
		for i := range d.Checks {
			if err := f(d, &d.Checks[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func infoDomainConstraintRows(s *scan) error {
	return s.eachDomainCheck(func(d *catalog.TypeDescriptor, c *types.DomainCheck) error {
		if !s.mayUse(d.Type()) {
			return nil
		}
		return s.emit(col{"constraint_catalog", text(s.database())}, col{"constraint_schema", text(d.Schema)}, col{"constraint_name", text(c.Name)},
			col{"domain_catalog", text(s.database())}, col{"domain_schema", text(d.Schema)}, col{"domain_name", text(d.Name)},
			col{"is_deferrable", yesNo(false)}, col{"initially_deferred", yesNo(false)})
	})
}

// domainCheckRows emits the domains' rows of information_schema.check_constraints.
func (s *scan) domainCheckRows() error {
	return s.eachDomainCheck(func(d *catalog.TypeDescriptor, c *types.DomainCheck) error {
		if !s.access().Owns(d.OwnerOID()) {
			return nil
		}
		return s.emit(col{"constraint_catalog", text(s.database())}, col{"constraint_schema", text(d.Schema)}, col{"constraint_name", text(c.Name)},
			col{"check_clause", text(strings.TrimPrefix(s.printer().domainConstraintDefinition(s.Types().Complete(d.Parent), c, false), "CHECK "))})
	})
}

func infoDomainUseRows(s *scan) error {
	return s.eachDomain(func(d *catalog.TypeDescriptor) error {
		below := s.Types().Complete(d.Parent)
		if !s.access().Owns(s.typeOwner(below)) {
			return nil
		}
		return s.emit(col{"udt_catalog", text(s.database())}, col{"udt_schema", text(s.typeSchema(below))}, col{"udt_name", text(below.Info().Name)},
			col{"domain_catalog", text(s.database())}, col{"domain_schema", text(d.Schema)}, col{"domain_name", text(d.Name)})
	})
}

func infoColumnDomainRows(s *scan) error {
	return s.eachColumn(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		if !c.Type.IsDomain() || !s.access().Owns(s.typeOwner(c.Type)) {
			return nil
		}
		cols := append(s.named("domain", c.Type.Def.Schema, c.Type.Def.Name), s.named("table", t.Schema, t.Name)...)
		return s.emit(append(cols, col{"column_name", text(c.Name)})...)
	})
}
