package pgcatalog

import (
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// The views of information_schema beside those on tables, views and privileges. What percodb has nothing of (foreign data, transforms,
// generated columns, functions with a body in SQL) has a view without rows.

// informationRows maps views to what computes their rows, as rowsFunctions does.
func informationRows() map[string]func(*scan) error {
	return map[string]func(*scan) error{
		"information_schema.attributes":                            attributeInfoRows,
		"information_schema.character_sets":                        characterSetRows,
		"information_schema.collation_character_set_applicability": collationSetRows,
		"information_schema.collations":                            collationInfoRows,
		"information_schema.column_udt_usage":                      columnTypeRows,
		"information_schema.constraint_table_usage":                constraintTableRows,
		"information_schema.data_type_privileges":                  describedRows,
		"information_schema.element_types":                         elementTypeRows,
		"information_schema.information_schema_catalog_name":       catalogNameRows,
		"information_schema.parameters":                            parameterRows,
		"information_schema.referential_constraints":               referentialRows,
		"information_schema.role_routine_grants":                   roleRoutineGrantRows,
		"information_schema.role_udt_grants":                       roleTypeGrantRows,
		"information_schema.routine_privileges":                    routinePrivilegeRows,
		"information_schema.routines":                              routineRows,
		"information_schema.sql_implementation_info":               implementationRows,
		"information_schema.sql_parts":                             partRows,
		"information_schema.sql_sizing":                            sizingRows,
		"information_schema.triggered_update_columns":              triggerColumnRows,
		"information_schema.triggers":                              triggerInfoRows,
		"information_schema.udt_privileges":                        typePrivilegeRows,
		"information_schema.user_defined_types":                    userTypeRows,
		"information_schema.view_column_usage":                     viewColumnRows,
		"information_schema.view_table_usage":                      viewTableRows,
	}
}

func catalogNameRows(s *scan) error { return s.emit(col{"catalog_name", text(s.database())}) }

func characterSetRows(s *scan) error {
	return s.emit(col{"character_set_name", text("UTF8")}, col{"character_repertoire", text("UCS")}, col{"form_of_use", text("UTF8")},
		col{"default_collate_catalog", text(s.database())}, col{"default_collate_schema", text(catalog.SystemSchema)}, col{"default_collate_name", text("C")})
}

func collationInfoRows(s *scan) error {
	return s.eachCollation(func(schema, name string, _ uint32) error {
		return s.emit(append(s.named("collation", schema, name), col{"pad_attribute", text("NO PAD")})...)
	})
}

func collationSetRows(s *scan) error {
	return s.eachCollation(func(schema, name string, _ uint32) error {
		return s.emit(append(s.named("collation", schema, name), col{"character_set_name", text("UTF8")})...)
	})
}

// named makes the columns *_catalog, *_schema and *_name.
func (s *scan) named(prefix, schema, name string) []col {
	return []col{{prefix + "_catalog", text(s.database())}, {prefix + "_schema", text(schema)}, {prefix + "_name", text(name)}}
}

// typeSchema returns the schema of a type.
func (s *scan) typeSchema(t types.Type) string {
	if t.Def != nil {
		return t.Def.Schema
	}
	if d := s.extensionOfType(t); d != nil {
		return d.Schema
	}
	return catalog.SystemSchema
}

// typeOwner returns the owner of a type.
func (s *scan) typeOwner(t types.Type) uint32 {
	_, owner := s.Grants().TypeACL(s.Types(), t)
	return owner
}

// mayUse reports whether views show a type to the reader: its owner, and whoever may use it.
func (s *scan) mayUse(t types.Type) bool {
	return s.access().Owns(s.typeOwner(t)) || s.access().Type(s.Types(), t, acl.Usage) != 0
}

// eachShownComposite is eachComposite for those that the reader is shown.
func (s *scan) eachShownComposite(f func(d *catalog.TypeDescriptor) error) error {
	return s.eachComposite(func(d *catalog.TypeDescriptor) error {
		if !s.mayUse(d.Type()) {
			return nil
		}
		return f(d)
	})
}

func userTypeRows(s *scan) error {
	return s.eachShownComposite(func(d *catalog.TypeDescriptor) error {
		return s.emit(append(s.named("user_defined_type", d.Schema, d.Name), col{"user_defined_type_category", text("STRUCTURED")}, col{"is_instantiable", yesNo(true)})...)
	})
}

func attributeInfoRows(s *scan) error {
	return s.eachShownComposite(func(d *catalog.TypeDescriptor) error {
		for _, f := range d.Defined().Fields {
			cols := append(s.named("udt", d.Schema, d.Name), s.named("attribute_udt", s.typeSchema(f.Type), f.Type.Info().Name)...)
			cols = append(cols, col{"attribute_name", text(f.Name)}, col{"ordinal_position", num(f.ID)}, col{"dtd_identifier", text(formatNumber(f.ID))},
				col{"is_nullable", yesNo(!domainRefusesNull(f.Type))}, col{"is_derived_reference_attribute", yesNo(false)})
			cols = append(cols, s.collationOf(f.Type)...)
			cols = append(cols, s.describeType(f.Type.Underlying())...)
			if err := s.emit(append(cols, col{"data_type", text(dataType(f.Type))})...); err != nil {
				return err
			}
		}
		return nil
	})
}

// domainRefusesNull reports whether a type is a domain declared NOT NULL; one below it does not count, as in PostgreSQL.
func domainRefusesNull(t types.Type) bool { return t.IsDomain() && t.Def.NotNull }

// collationOf makes the columns of a type's collation, none for the default one.
func (s *scan) collationOf(t types.Type) []col {
	id := collationOf(t)
	if id == 0 || id == int64(collation.DefaultCollation.OID) {
		return nil
	}
	c := t.Collation()
	if c == nil {
		c = t.Elem().Collation()
	}
	schema, name := catalog.CollationName(s.Resolver, c)
	return s.named("collation", schema, name)
}

func columnTypeRows(s *scan) error {
	return s.eachColumn(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		of := c.Type
		if of.IsDomain() {
			of = s.Types().Complete(of.Def.Parent)
		}
		if !s.access().Owns(s.typeOwner(of)) {
			return nil
		}
		cols := append(s.named("udt", s.typeSchema(of), of.Info().Name), s.named("table", t.Schema, t.Name)...)
		return s.emit(append(cols, col{"column_name", text(c.Name)})...)
	})
}

// eachColumn calls f with each column of a table or view.
func (s *scan) eachColumn(f func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindSequence {
			return nil
		}
		for i := range t.Columns {
			if t.Columns[i].Hidden {
				continue
			}
			if err := f(t, &t.Columns[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func typePrivilegeRows(s *scan) error { return s.typePrivileges(everybody) }
func roleTypeGrantRows(s *scan) error { return s.typePrivileges(enabledRoles) }

// typePrivileges lists the privileges on composite types; usagePrivileges has those on domains.
func (s *scan) typePrivileges(to audience) error {
	return s.eachComposite(func(d *catalog.TypeDescriptor) error {
		return s.grantRow(to, d.EffectiveACL(), d.OwnerOID(), acl.Usage, func(grant []col) error {
			grant[2].value = text("TYPE USAGE")
			return s.emit(append(grant, s.named("udt", d.Schema, d.Name)...)...)
		})
	})
}

func constraintTableRows(s *scan) error {
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		if c.check != nil {
			return nil
		}
		t, schema := t, t.Schema
		if c.key != nil { // of the table that it references
			var err error
			if t, err = s.RelationByID(s.ctx, c.key.Parent); err != nil || t == nil {
				return err
			}
		}
		if !s.access().Owns(t.OwnerOID()) {
			return nil
		}
		return s.emit(append(s.named("table", t.Schema, t.Name), s.named("constraint", schema, c.name)...)...)
	})
}

func viewTableRows(s *scan) error {
	return s.each(func(v *catalog.TableDescriptor) error {
		if v.Kind != catalog.KindView {
			return nil
		}
		for _, id := range v.DependsOn {
			t, err := s.RelationByID(s.ctx, id)
			if err != nil {
				return err
			}
			if t == nil || t.Kind == catalog.KindSequence || !s.access().Owns(t.OwnerOID()) {
				continue
			}
			if err := s.emit(append(s.named("view", v.Schema, v.Name), s.named("table", t.Schema, t.Name)...)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func viewColumnRows(s *scan) error {
	return s.each(func(v *catalog.TableDescriptor) error {
		if v.Kind != catalog.KindView || s.view == nil {
			return nil
		}
		uses, err := s.view.ViewColumns(s.ctx, s.Resolver, v)
		if err != nil {
			return err
		}
		for _, use := range uses {
			if !s.access().Owns(use.Relation.OwnerOID()) {
				continue
			}
			for _, ordinal := range use.Columns {
				cols := append(s.named("view", v.Schema, v.Name), s.named("table", use.Relation.Schema, use.Relation.Name)...)
				if err := s.emit(append(cols, col{"column_name", text(use.Relation.Columns[ordinal].Name)})...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// described is something with a type that information_schema shows, by the name of what it belongs to and an identifier within that.
type described struct {
	schema, object, kind, id string
	typ                      types.Type
	collated                 bool // its collation is shown
}

// eachDescribed calls f with the attributes of composite types, columns, domains, parameters and results of routines that the reader is shown.
func (s *scan) eachDescribed(f func(d *described) error) error {
	err := s.eachShownComposite(func(d *catalog.TypeDescriptor) error {
		for _, a := range d.Defined().Fields {
			if err := f(&described{d.Schema, d.Name, "USER-DEFINED TYPE", formatNumber(a.ID), a.Type, true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.eachColumn(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		if !s.showsColumn(t, c) {
			return nil
		}
		return f(&described{t.Schema, t.Name, "TABLE", formatNumber(c.ID), c.Type, true})
	})
	if err != nil {
		return err
	}
	err = s.eachDomain(func(d *catalog.TypeDescriptor) error {
		if !s.mayUse(d.Type()) {
			return nil
		}
		return f(&described{d.Schema, d.Name, "DOMAIN", "1", s.Types().Complete(d.Parent), true})
	})
	if err != nil {
		return err
	}
	return s.eachRoutine(func(r *routine) error {
		for i, p := range r.Parameters() {
			if err := f(&described{r.Schema(), r.specific, "ROUTINE", strconv.Itoa(i + 1), p.Type, false}); err != nil {
				return err
			}
		}
		return f(&described{r.Schema(), r.specific, "ROUTINE", "0", r.result(), false})
	})
}

func describedRows(s *scan) error {
	return s.eachDescribed(func(d *described) error {
		return s.emit(append(s.named("object", d.schema, d.object), col{"object_type", text(d.kind)}, col{"dtd_identifier", text(d.id)})...)
	})
}

func elementTypeRows(s *scan) error {
	return s.eachDescribed(func(d *described) error {
		if !isArray(d.typ) {
			return nil
		}
		elem := types.Type{OID: d.typ.Info().Elem, Mod: -1}
		if e := d.typ.Elem(); e.Valid() {
			elem = e
		}
		cols := append(s.named("object", d.schema, d.object), s.named("udt", s.typeSchema(elem), elem.Info().Name)...)
		if d.collated {
			cols = append(cols, s.collationOf(elem)...)
		}
		return s.emit(append(cols, col{"object_type", text(d.kind)}, col{"collection_type_identifier", text(d.id)}, col{"dtd_identifier", text("a" + d.id)},
			col{"data_type", text(dataType(elem.Base()))})...)
	})
}
