package session

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// PostgreSQL's own trigger functions: those that keep a tsvector up to date, and that which leaves out updates without a change.

// The numbers of these functions in pg_proc.
const (
	redundantTrigger      = 1291
	tsvectorTrigger       = 3752 // the configuration is an argument
	tsvectorTriggerColumn = 3753 // the configuration is in a column
)

// triggerProtocolViolated is PostgreSQL's SQLSTATE for a trigger that its function is not made for.
const triggerProtocolViolated pgerror.Code = "39P01"

// builtinTrigger executes a trigger with one of PostgreSQL's own functions.
func (h *procedural) builtinTrigger(r catalog.Resolver, f *firing) (types.Datum, error) {
	switch f.trigger.Function {
	case redundantTrigger:
		return f.suppressRedundant()
	case tsvectorTrigger, tsvectorTriggerColumn:
		return h.tsvectorTrigger(r, f)
	}
	return types.Null, pgerror.New(pgerror.UndefinedFunction, "function with OID %d does not exist", f.trigger.Function)
}

// suppressRedundant leaves out an update that changes nothing.
func (f *firing) suppressRedundant() (types.Datum, error) {
	misplaced := func(what string) error {
		return pgerror.New(triggerProtocolViolated, "suppress_redundant_updates_trigger: must be called %s", what)
	}
	switch {
	case f.event != catalog.TriggerUpdate:
		return types.Null, misplaced("on update")
	case !f.trigger.Before:
		return types.Null, misplaced("before update")
	case !f.trigger.Row:
		return types.Null, misplaced("for each row")
	}
	same, err := builtin.SameImage(f.old.Record(), f.new.Record())
	if err != nil || same {
		return types.Null, err
	}
	return f.new, nil
}

// tsvectorTrigger checks a trigger that keeps a tsvector up to date, and executes it.
func (h *procedural) tsvectorTrigger(r catalog.Resolver, f *firing) (types.Datum, error) {
	misplaced := func(what string) error {
		return pgerror.New(triggerProtocolViolated, "tsvector_update_trigger: must be fired %s", what)
	}
	switch {
	case !f.trigger.Row:
		return types.Null, misplaced("for row")
	case !f.trigger.Before:
		return types.Null, misplaced("BEFORE event")
	case f.event != catalog.TriggerInsert && f.event != catalog.TriggerUpdate:
		return types.Null, misplaced("for INSERT or UPDATE")
	case len(f.trigger.Args) < 3:
		return types.Null, pgerror.New(triggerProtocolViolated,
			"tsvector_update_trigger: arguments must be tsvector_field, ts_config, text_field1, ...)")
	}
	return h.updateVector(r, f)
}

// firing is one execution of a trigger.
type firing struct {
	table    *catalog.TableDescriptor
	trigger  *planner.Trigger
	row      types.Type // of the table
	event    catalog.TriggerEvents
	old, new types.Datum
}

// column finds a column that an argument names: its descriptor, its ordinal in the table, and its place in the row's value.
func (f *firing) column(name, format string) (c *catalog.ColumnDescriptor, ordinal, field int, err error) {
	for i := range f.table.Columns {
		c := &f.table.Columns[i]
		if c.Hidden {
			continue
		}
		if c.Name == name {
			return c, i, field, nil
		}
		field++
	}
	return nil, 0, 0, pgerror.New(pgerror.UndefinedColumn, format, name)
}

// assigned reports whether the statement gives a column a value.
func (f *firing) assigned(ordinal int) bool {
	return f.event == catalog.TriggerInsert || slices.Contains(f.trigger.Assigned, ordinal)
}

// updateVector makes the vector of the texts that the arguments name, if one of them may have changed.
func (h *procedural) updateVector(r catalog.Resolver, f *firing) (types.Datum, error) {
	args := f.trigger.Args
	vector, _, target, err := f.column(args[0], "tsvector column \"%s\" does not exist")
	switch {
	case err != nil:
		return types.Null, err
	case vector.Type.Base().OID != types.OIDTSVector:
		return types.Null, pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is not of tsvector type", args[0])
	}
	row := f.new.Record()
	configuration, err := vectorConfiguration(r, f, row.Fields)
	if err != nil {
		return types.Null, err
	}
	needed := false
	var texts []string
	for _, name := range args[2:] {
		c, ordinal, field, err := f.column(name, "column \"%s\" does not exist")
		if err != nil {
			return types.Null, err
		}
		if base := c.Type.Base(); base.OID != types.OIDText && base.OID != types.OIDVarchar && base.OID != types.OIDBPChar {
			return types.Null, pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is not of a character type", name)
		}
		needed = needed || f.assigned(ordinal)
		if !row.Fields[field].IsNull() {
			texts = append(texts, row.Fields[field].Text())
		}
	}
	if !needed {
		return f.new, nil
	}
	d, err := h.Env().DocumentOf(configuration, texts)
	if err != nil {
		return types.Null, err
	}
	fields := slices.Clone(row.Fields)
	fields[target] = d
	return f.row.Def.Row(fields), nil
}

// vectorConfiguration returns the configuration of the vector.
func vectorConfiguration(r catalog.Resolver, f *firing, row types.Row) (types.OID, error) {
	name := f.trigger.Args[1]
	if f.trigger.Function == tsvectorTriggerColumn {
		c, _, field, err := f.column(name, "configuration column \"%s\" does not exist")
		switch {
		case err != nil:
			return 0, err
		case c.Type.OID != types.OIDRegconfig:
			return 0, pgerror.New(pgerror.DatatypeMismatch, "column \"%s\" is not of regconfig type", name)
		case row[field].IsNull():
			return 0, pgerror.New(pgerror.NullValueNotAllowed, "configuration column \"%s\" must not be null", name)
		}
		return types.OID(row[field].Int()), nil
	}
	schema, _, err := pgcatalog.SplitName(name)
	switch {
	case err != nil:
		return 0, err
	case schema == "":
		return 0, pgerror.New(pgerror.InvalidParameterValue, "text search configuration name \"%s\" must be schema-qualified", name)
	}
	return (&pgcatalog.Objects{Resolver: func() catalog.Resolver { return r }}).TextSearchOID(types.OIDRegconfig, name)
}
