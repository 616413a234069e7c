package pgcatalog

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// The rows of what in PostgreSQL are views over the system tables.

func tablesRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if kind := s.relkind(t); kind != 'r' && kind != 'p' {
			return nil
		}
		return s.emit(col{"schemaname", text(t.Schema)}, col{"tablename", text(t.Name)}, col{"tableowner", text(s.roleName(t.OwnerOID()))},
			col{"hasindexes", boolean(len(visibleIndexes(t)) > 0)}, col{"hasrules", boolean(false)}, col{"hastriggers", boolean(false)},
			col{"rowsecurity", boolean(t.RowSecurity)})
	})
}

func viewsRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if s.relkind(t) != 'v' {
			return nil
		}
		definition, err := s.viewDefinition(t)
		if err != nil {
			return err
		}
		return s.emit(col{"schemaname", text(t.Schema)}, col{"viewname", text(t.Name)}, col{"viewowner", text(s.roleName(t.OwnerOID()))},
			col{"definition", definition})
	})
}

func matviewRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.Materialized {
			return nil
		}
		definition, err := s.viewDefinition(t)
		if err != nil {
			return err
		}
		return s.emit(col{"schemaname", text(t.Schema)}, col{"matviewname", text(t.Name)}, col{"matviewowner", text(s.roleName(t.OwnerOID()))},
			col{"hasindexes", boolean(len(t.Indexes) > 0)}, col{"ispopulated", boolean(t.Populated)}, col{"definition", definition})
	})
}

func indexesRows(s *scan) error {
	return s.eachIndex(func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
		return s.emit(col{"schemaname", text(t.Schema)}, col{"tablename", text(t.Name)}, col{"indexname", text(ix.Name)},
			col{"indexdef", text(s.printer().indexDefinition(t, ix, false))})
	})
}

func sequencesRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindSequence {
			return nil
		}
		last := types.Null
		if d, ok := s.Resolver.(catalog.SchemaDetails); ok && s.access().Relation(t, acl.Usage|acl.Select, true) != 0 {
			value, called, err := d.SequenceValue(s.ctx, t)
			if err != nil {
				return err
			}
			if called {
				last = num(value)
			}
		}
		q := t.Sequence
		return s.emit(col{"schemaname", text(t.Schema)}, col{"sequencename", text(t.Name)}, col{"sequenceowner", text(s.roleName(t.OwnerOID()))},
			col{"data_type", oid(q.Type.OID)}, col{"start_value", num(q.Start)}, col{"min_value", num(q.Min)}, col{"max_value", num(q.Max)},
			col{"increment_by", num(q.Increment)}, col{"cycle", boolean(q.Cycle)}, col{"cache_size", num(max(q.Cache, 1))}, col{"last_value", last})
	})
}

func schemataRows(s *scan) error {
	names, err := s.Schemas(s.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		o := s.Grants().Schemas[name]
		if a := s.access(); !a.Owns(o.OwnerOID()) && a.Schema(name, acl.Create) == 0 && a.Schema(name, acl.Usage) == 0 {
			continue
		}
		err := s.emit(col{"catalog_name", text(s.database())}, col{"schema_name", text(name)}, col{"schema_owner", text(s.roleName(o.OwnerOID()))})
		if err != nil {
			return err
		}
	}
	return nil
}

func infoTableRows(s *scan) error {
	return s.eachShown(func(t *catalog.TableDescriptor) error {
		kind := "BASE TABLE"
		if t.Temporary() {
			kind = "LOCAL TEMPORARY"
		}
		switch s.relkind(t) {
		case 'S':
			return nil
		case 'v':
			kind = "VIEW"
		}
		updates, err := s.updatesOf(t, 0)
		if err != nil {
			return err
		}
		row := []col{{"table_catalog", text(s.database())}, {"table_schema", text(t.Schema)}, {"table_name", text(t.Name)},
			{"table_type", text(kind)}, {"is_insertable_into", yesNo(updates.Allow(catalog.CanInsert))}}
		d := s.Types().ByOID(types.OID(t.OfType))
		if d != nil {
			row = append(row, s.named("user_defined_type", d.Schema, d.Name)...)
		}
		return s.emit(append(row, col{"is_typed", yesNo(d != nil)})...)
	})
}

func infoViewRows(s *scan) error {
	return s.eachShown(func(t *catalog.TableDescriptor) error {
		if s.relkind(t) != 'v' {
			return nil
		}
		definition := types.Null
		if s.access().Owns(t.OwnerOID()) {
			var err error
			if definition, err = s.viewDefinition(t); err != nil {
				return err
			}
		}
		updates, err := s.updatesOf(t, 0)
		if err != nil {
			return err
		}
		checked := "NONE"
		if t.CheckOption != catalog.CheckNone {
			checked = strings.ToUpper(string(t.CheckOption))
		}
		return s.emit(col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
			col{"view_definition", definition}, col{"check_option", text(checked)}, col{"is_updatable", yesNo(updates.Allow(catalog.CanReplace))},
			col{"is_insertable_into", yesNo(updates.Allow(catalog.CanInsert))}, col{"is_trigger_updatable", yesNo(t.HasInsteadOf(catalog.TriggerUpdate))},
			col{"is_trigger_deletable", yesNo(t.HasInsteadOf(catalog.TriggerDelete))},
			col{"is_trigger_insertable_into", yesNo(t.HasInsteadOf(catalog.TriggerInsert))})
	})
}

// updatesOf returns by which commands a relation can be changed without triggers, or with column > 0 that column of it. What is no table of a
// user or view cannot.
func (s *scan) updatesOf(t *catalog.TableDescriptor, column int) (catalog.Updates, error) {
	switch {
	case t.Kind == catalog.KindView && s.view != nil:
		return s.view.UpdatesOf(s.ctx, s.Resolver, t, false, column)
	case t.Kind == catalog.KindTable && !t.Materialized:
		return catalog.CanAll, nil
	}
	return 0, nil
}

func infoColumnRows(s *scan) error {
	return s.eachColumn(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		if !s.showsColumn(t, c) {
			return nil
		}
		updates, err := s.updatesOf(t, int(c.ID))
		if err != nil {
			return err
		}
		described := append(s.describeColumn(t, c), col{"is_updatable", yesNo(updates.Allow(catalog.CanReplace))})
		return s.emit(append(described, s.describeType(c.Type.Underlying())...)...)
	})
}

func (s *scan) describeColumn(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) []col {
	below := c.Type.Underlying()
	isGenerated, byDefault, expression := "NEVER", optional(s.printer().defaultText(t, c, false)), types.Null
	if c.Generated != "" {
		isGenerated, byDefault, expression = "ALWAYS", types.Null, byDefault
	}
	cols := []col{
		{"table_catalog", text(s.database())}, {"table_schema", text(t.Schema)}, {"table_name", text(t.Name)}, {"column_name", text(c.Name)},
		{"ordinal_position", num(c.ID)}, {"column_default", byDefault}, {"generation_expression", expression}, {"is_nullable", yesNo(!c.NotNull && !domainRefusesNull(c.Type))},
		{"udt_catalog", text(s.database())}, {"udt_schema", text(s.typeSchema(below))}, {"udt_name", text(below.Info().Name)},
		{"dtd_identifier", text(formatNumber(c.ID))}, {"is_self_referencing", yesNo(false)}, {"is_identity", yesNo(c.Identity != "")},
		{"identity_generation", optional(c.Identity)}, {"is_generated", text(isGenerated)},
		{"identity_cycle", yesNo(false)},
	}
	cols = append(cols, s.collationOf(c.Type)...)
	if c.Type.IsDomain() {
		cols = append(cols, col{"domain_catalog", text(s.database())}, col{"domain_schema", text(c.Type.Def.Schema)}, col{"domain_name", text(c.Type.Def.Name)})
	}
	if c.Identity == "" {
		return cols
	}
	seq, err := s.RelationByID(s.ctx, c.Sequence)
	if err != nil || seq == nil {
		return cols
	}
	q := seq.Sequence
	return append(cols, col{"identity_start", text(formatInt(q.Start))}, col{"identity_increment", text(formatInt(q.Increment))},
		col{"identity_maximum", text(formatInt(q.Max))}, col{"identity_minimum", text(formatInt(q.Min))})
}

// describeType makes the columns of information_schema.columns that follow from a type.
func (s *scan) describeType(t types.Type) []col {
	if t.IsArray() {
		return []col{{"data_type", text("ARRAY")}}
	}
	if s.typeSchema(t) != catalog.SystemSchema {
		return []col{{"data_type", text("USER-DEFINED")}}
	}
	cols := []col{{"data_type", text(t.Info().SQLName)}}
	l := builtin.LimitsOf(t)
	for _, limit := range []struct {
		column string
		value  int
	}{
		{"character_maximum_length", l.CharMaxLength}, {"character_octet_length", l.CharOctetLength}, {"numeric_precision", l.Precision},
		{"numeric_precision_radix", l.Radix}, {"numeric_scale", l.Scale}, {"datetime_precision", l.DatetimePrecision},
	} {
		if limit.value != builtin.NoLimit {
			cols = append(cols, col{limit.column, num(limit.value)})
		}
	}
	return append(cols, col{"interval_type", optional(l.IntervalType)})
}

func infoSequenceRows(s *scan) error {
	return s.eachShown(func(t *catalog.TableDescriptor) error {
		// Those of identity columns are not shown, as the standard has it.
		if t.Kind != catalog.KindSequence || s.ofIdentity(t) {
			return nil
		}
		q := t.Sequence
		bits := 64
		switch q.Type.OID {
		case types.OIDInt2:
			bits = 16
		case types.OIDInt4:
			bits = 32
		}
		return s.emit(col{"sequence_catalog", text(s.database())}, col{"sequence_schema", text(t.Schema)}, col{"sequence_name", text(t.Name)},
			col{"data_type", text(q.Type.String())}, col{"numeric_precision", num(bits)}, col{"numeric_precision_radix", num(2)},
			col{"numeric_scale", num(0)}, col{"start_value", text(formatInt(q.Start))}, col{"minimum_value", text(formatInt(q.Min))},
			col{"maximum_value", text(formatInt(q.Max))}, col{"increment", text(formatInt(q.Increment))}, col{"cycle_option", yesNo(q.Cycle)})
	})
}

func (s *scan) ofIdentity(seq *catalog.TableDescriptor) bool {
	owner, err := s.RelationByID(s.ctx, seq.Sequence.OwnerTable)
	if err != nil || owner == nil {
		return false
	}
	ord := owner.Ordinal(seq.Sequence.OwnerColumn)
	return ord >= 0 && owner.Columns[ord].Identity != ""
}

// eachConstraint calls f with every constraint of every table.
func (s *scan) eachConstraint(f func(t *catalog.TableDescriptor, c constraint) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		all, err := constraints(s.ctx, s, t)
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := f(t, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachNotNull calls f with each column that is declared NOT NULL, and the name that the standard's views give to that as a constraint.
func (s *scan) eachNotNull(f func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor, name string) error) error {
	return s.eachColumn(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		if kind := s.relkind(t); !c.NotNull || kind != 'r' && kind != 'p' {
			return nil
		}
		name := formatNumber(schemaOID(s.Resolver, t.Schema)) + "_" + strconv.FormatUint(t.ID, 10) + "_" + formatNumber(c.ID) + "_not_null"
		return f(t, c, name)
	})
}

func tableConstraintRows(s *scan) error {
	err := s.eachNotNull(func(t *catalog.TableDescriptor, _ *catalog.ColumnDescriptor, name string) error {
		if !s.changes(t) {
			return nil
		}
		cols := append(s.named("constraint", t.Schema, name), s.named("table", t.Schema, t.Name)...)
		return s.emit(append(cols, col{"constraint_type", text("CHECK")}, col{"is_deferrable", yesNo(false)}, col{"initially_deferred", yesNo(false)},
			col{"enforced", yesNo(true)})...)
	})
	if err != nil {
		return err
	}
	kinds := map[byte]string{'p': "PRIMARY KEY", 'u': "UNIQUE", 'c': "CHECK", 'f': "FOREIGN KEY"}
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		if !s.changes(t) || c.kind == 'x' {
			return nil
		}
		distinct := types.Null
		if c.kind == 'u' {
			distinct = yesNo(!c.index.NullsNotDistinct)
		}
		return s.emit(col{"constraint_catalog", text(s.database())}, col{"constraint_schema", text(t.Schema)}, col{"constraint_name", text(c.name)},
			col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
			col{"constraint_type", text(kinds[c.kind])}, col{"is_deferrable", yesNo(c.deferrable())},
			col{"initially_deferred", yesNo(c.deferred())},
			col{"enforced", yesNo(true)}, col{"nulls_distinct", distinct})
	})
}

// constrainedColumn emits a row about one column of a constraint.
func (s *scan) constrainedColumn(t *catalog.TableDescriptor, c constraint, id uint32, more ...col) error {
	cols := []col{
		{"constraint_catalog", text(s.database())}, {"constraint_schema", text(t.Schema)}, {"constraint_name", text(c.name)},
		{"table_catalog", text(s.database())}, {"table_schema", text(t.Schema)}, {"table_name", text(t.Name)},
		{"column_name", text(t.Columns[t.Ordinal(id)].Name)},
	}
	return s.emit(append(cols, more...)...)
}

func keyColumnRows(s *scan) error {
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		if c.key != nil {
			return s.foreignKeyColumnRows(t, c)
		}
		if c.index == nil || c.kind == 'x' {
			return nil
		}
		for i := range c.index.Columns {
			id := c.index.Columns[i].ColumnID
			if !s.showsColumn(t, &t.Columns[t.Ordinal(id)]) {
				continue
			}
			if err := s.constrainedColumn(t, c, id, col{"ordinal_position", num(i + 1)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func constraintColumnRows(s *scan) error {
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		if c.kind == 'x' {
			return nil
		}
		schema := t.Schema
		if c.key != nil {
			var err error
			if t, err = s.RelationByID(s.ctx, c.key.Parent); err != nil || t == nil {
				return err
			}
		}
		if !s.access().Owns(t.OwnerOID()) {
			return nil
		}
		var ids []int64
		if c.key != nil { // those that it references
			for _, id := range c.key.ParentColumns {
				ids = append(ids, int64(id))
			}
		} else if c.index == nil {
			ids = checkedColumns(t, c.check)
		} else {
			for i := range c.index.Columns {
				ids = append(ids, int64(c.index.Columns[i].ColumnID))
			}
		}
		for _, id := range ids {
			if err := s.constrainedColumn(t, c, uint32(id), col{"constraint_schema", text(schema)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkConstraintRows(s *scan) error {
	if err := s.domainCheckRows(); err != nil {
		return err
	}
	err := s.eachNotNull(func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor, name string) error {
		if !s.access().Owns(t.OwnerOID()) {
			return nil
		}
		return s.emit(append(s.named("constraint", t.Schema, name), col{"check_clause", text(c.Name + " IS NOT NULL")})...)
	})
	if err != nil {
		return err
	}
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		if c.check == nil || !s.access().Owns(t.OwnerOID()) {
			return nil
		}
		return s.emit(col{"constraint_catalog", text(s.database())}, col{"constraint_schema", text(t.Schema)}, col{"constraint_name", text(c.name)},
			col{"check_clause", text(strings.TrimPrefix(s.printer().constraintDefinition(t, c, false), "CHECK "))})
	})
}
