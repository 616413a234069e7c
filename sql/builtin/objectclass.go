package builtin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// objectClass is a system table as pg_identify_object and its kin see it: the columns with the number, the name and the schema of its objects, ""
// for what they do not have, and what its objects are called.
type objectClass struct {
	oid                        types.OID
	kind, table                string
	id, name, namespace, owner string
	// unique: the name is unique within the schema. part: an object is named by what it belongs to.
	unique, part bool
}

var objectClasses = []objectClass{
	{oid: 1259, kind: "relation", table: "pg_class", id: "oid", name: "relname", namespace: "relnamespace", unique: true, part: true},
	{oid: 1247, kind: "type", table: "pg_type", id: "oid", name: "typname", namespace: "typnamespace", unique: true, part: true},
	{oid: 1255, kind: "routine", table: "pg_proc", id: "oid", name: "proname", namespace: "pronamespace", part: true},
	{oid: 2617, kind: "operator", table: "pg_operator", id: "oid", name: "oprname", namespace: "oprnamespace", part: true},
	{oid: 2605, kind: "cast", table: "pg_cast", id: "oid", part: true},
	{oid: 2606, kind: "constraint", table: "pg_constraint", id: "oid", name: "conname", namespace: "connamespace", part: true},
	{oid: 2620, kind: "trigger", table: "pg_trigger", id: "oid", name: "tgname", owner: "tgrelid", part: true},
	{oid: 3256, kind: "policy", table: "pg_policy", id: "oid", name: "polname", owner: "polrelid", part: true},
	{oid: 2618, kind: "rule", table: "pg_rewrite", id: "oid", name: "rulename", owner: "ev_class", part: true},
	{oid: 2604, kind: "default value", table: "pg_attrdef", id: "oid", part: true},
	{oid: 2602, kind: "operator of access method", table: "pg_amop", id: "oid", part: true},
	{oid: 2603, kind: "function of access method", table: "pg_amproc", id: "oid", part: true},
	{oid: 2616, kind: "operator class", table: "pg_opclass", id: "oid", name: "opcname", namespace: "opcnamespace", owner: "opcmethod", unique: true, part: true},
	{oid: 2753, kind: "operator family", table: "pg_opfamily", id: "oid", name: "opfname", namespace: "opfnamespace", owner: "opfmethod", unique: true, part: true},
	{oid: 2607, kind: "conversion", table: "pg_conversion", id: "oid", name: "conname", namespace: "connamespace", unique: true},
	{oid: 3456, kind: "collation", table: "pg_collation", id: "oid", name: "collname", namespace: "collnamespace", unique: true},
	{oid: 3602, kind: "text search configuration", table: "pg_ts_config", id: "oid", name: "cfgname", namespace: "cfgnamespace", unique: true},
	{oid: 3600, kind: "text search dictionary", table: "pg_ts_dict", id: "oid", name: "dictname", namespace: "dictnamespace", unique: true},
	{oid: 3601, kind: "text search parser", table: "pg_ts_parser", id: "oid", name: "prsname", namespace: "prsnamespace", unique: true},
	{oid: 3764, kind: "text search template", table: "pg_ts_template", id: "oid", name: "tmplname", namespace: "tmplnamespace", unique: true},
	{oid: 3381, kind: "statistics object", table: "pg_statistic_ext", id: "oid", name: "stxname", namespace: "stxnamespace", unique: true},
	{oid: 2615, kind: "schema", table: "pg_namespace", id: "oid", name: "nspname", unique: true},
	{oid: 1260, kind: "role", table: "pg_roles", id: "oid", name: "rolname", unique: true},
	{oid: 1262, kind: "database", table: "pg_database", id: "oid", name: "datname", unique: true},
	{oid: 1213, kind: "tablespace", table: "pg_tablespace", id: "oid", name: "spcname", unique: true},
	{oid: 2612, kind: "language", table: "pg_language", id: "oid", name: "lanname", unique: true},
	{oid: 3079, kind: "extension", table: "pg_extension", id: "oid", name: "extname", unique: true},
	{oid: 2601, kind: "access method", table: "pg_am", id: "oid", name: "amname", unique: true},
	{oid: 3466, kind: "event trigger", table: "pg_event_trigger", id: "oid", name: "evtname", unique: true},
	{oid: 6104, kind: "publication", table: "pg_publication", id: "oid", name: "pubname", unique: true},
	{oid: 6100, kind: "subscription", table: "pg_subscription", id: "oid", name: "subname", unique: true},
	{oid: 2328, kind: "foreign-data wrapper", table: "pg_foreign_data_wrapper", id: "oid", name: "fdwname", unique: true},
	{oid: 1417, kind: "server", table: "pg_foreign_server", id: "oid", name: "srvname", unique: true},
}

func classOfKind(kind string) *objectClass {
	if i := slices.IndexFunc(objectClasses, func(c objectClass) bool { return c.kind == kind }); i >= 0 {
		return &objectClasses[i]
	}
	return nil
}

// systemRecord is a row of a system table by the names of its columns.
type systemRecord map[string]types.Datum

func (r systemRecord) oid(column string) types.OID { return types.OID(r[column].Int()) }

func (r systemRecord) text(column string) string { return r[column].Text() }

// objectReader reads system tables for one call, each once.
type objectReader struct {
	env    *Env
	tables map[string][]systemRecord
}

func newObjectReader(env *Env) *objectReader {
	return &objectReader{env: env, tables: map[string][]systemRecord{}}
}

func (o *objectReader) all(table string) ([]systemRecord, error) {
	if rows, ok := o.tables[table]; ok {
		return rows, nil
	}
	var raw []types.Row
	columns, err := collectSystemRows(o.env, table, func(row types.Row) { raw = append(raw, row) })
	if err != nil {
		return nil, err
	}
	rows := make([]systemRecord, len(raw))
	for i, row := range raw {
		rows[i] = systemRecord{}
		for j := range columns {
			rows[i][columns[j].Name] = row[j]
		}
	}
	o.tables[table] = rows
	return rows, nil
}

// find returns the first row of a table for which a condition holds, nil if there is none.
func (o *objectReader) find(table string, is func(systemRecord) bool) (systemRecord, error) {
	rows, err := o.all(table)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(rows, is); i >= 0 {
		return rows[i], nil
	}
	return nil, nil
}

func (o *objectReader) byOID(table string, id types.OID) (systemRecord, error) {
	return o.find(table, func(r systemRecord) bool { return r.oid("oid") == id })
}

// schemaName returns the name of a schema; that of the session's temporary one is pg_temp.
func (o *objectReader) schemaName(id types.OID) (string, error) {
	r, err := o.byOID("pg_namespace", id)
	if err != nil || r == nil {
		return "", err
	}
	if name := r.text("nspname"); !strings.HasPrefix(name, "pg_temp_") {
		return name, nil
	}
	return "pg_temp", nil
}

// standardTypes have names in SQL's grammar, which are not qualified.
var standardTypes = map[types.OID]bool{
	types.OIDBool: true, types.OIDBPChar: true, types.OIDFloat4: true, types.OIDFloat8: true, types.OIDInt2: true, types.OIDInt4: true, types.OIDInt8: true,
	types.OIDNumeric: true, types.OIDInterval: true, types.OIDTime: true, types.OIDTimetz: true, types.OIDTimestamp: true, types.OIDTimestamptz: true,
	types.OIDBit: true, types.OIDVarbit: true, types.OIDVarchar: true,
}

// typeName is the name of a type with its schema, but for those of SQL's grammar; "-" for none.
func (o *objectReader) typeName(id types.OID) (string, error) {
	if id == 0 {
		return "-", nil
	}
	r, err := o.byOID("pg_type", id)
	switch {
	case err != nil:
		return "", err
	case r == nil:
		return "???", nil
	case standardTypes[id]:
		return TypeName(types.Type{OID: id, Mod: -1}), nil
	case r.text("typcategory") == "A" && r.oid("typelem") != 0 && strings.HasPrefix(r.text("typname"), "_"):
		elem, err := o.typeName(r.oid("typelem"))
		return elem + "[]", err
	}
	schema, err := o.schemaName(r.oid("typnamespace"))
	return keyword.QuoteIdent(schema) + "." + keyword.QuoteIdent(r.text("typname")), err
}

func (o *objectReader) typeNames(ids []types.OID) ([]string, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if names[i], err = o.typeName(id); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// relationKind names the kind of a relation as objects are called.
func relationKind(relkind string) string {
	switch relkind {
	case "i", "I":
		return "index"
	case "S":
		return "sequence"
	case "t":
		return "toast table"
	case "v":
		return "view"
	case "m":
		return "materialized view"
	case "c":
		return "composite type"
	case "f":
		return "foreign table"
	}
	return "table"
}

// routineKind names the kind of a routine.
func routineKind(prokind string) string {
	switch prokind {
	case "a":
		return "aggregate"
	case "p":
		return "procedure"
	}
	return "function"
}

// oidsOf reads a value of type oidvector.
func oidsOf(d types.Datum) (ids []types.OID) {
	if d.IsNull() {
		return nil
	}
	for _, e := range d.Array().Elems {
		ids = append(ids, types.OID(e.Int()))
	}
	return ids
}

func unrecognizedClass(id types.OID) error {
	return pgerror.New(pgerror.InvalidParameterValue, "unrecognized object class: %s", strconv.FormatUint(uint64(id), 10))
}
