package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rowsBehindViews are the functions that PostgreSQL defines system views by, with the views.
var rowsBehindViews = map[string]string{
	"pg_show_all_settings()": "pg_settings", "pg_show_all_file_settings()": "pg_file_settings", "pg_hba_file_rules()": "pg_hba_file_rules",
	"pg_ident_file_mappings()": "pg_ident_file_mappings", "pg_timezone_names()": "pg_timezone_names", "pg_timezone_abbrevs()": "pg_timezone_abbrevs",
	"pg_cursor()": "pg_cursors", "pg_prepared_statement()": "pg_prepared_statements", "pg_lock_status()": "pg_locks", "pg_config()": "pg_config",
	"pg_available_extensions()": "pg_available_extensions", "pg_available_extension_versions()": "pg_available_extension_versions",
	"pg_get_backend_memory_contexts()": "pg_backend_memory_contexts", "pg_get_shmem_allocations()": "pg_shmem_allocations",
	"pg_stat_get_slru()":              "pg_stat_slru",
	"pg_stat_get_recovery_prefetch()": "pg_stat_recovery_prefetch", "pg_show_replication_origin_status()": "pg_replication_origin_status",
}

// serverSetFuncs declares the functions that return rows about the server and its objects.
func serverSetFuncs() []setDecl {
	out := []setDecl{
		{sig: "pg_get_keywords() record", flags: stable, estimate: 500, open: opens(openKeywords), columns: outColumns("pg_get_keywords")},
		{sig: "pg_sequence_parameters(oid) record", flags: stable, estimate: 1, open: opens(openSequenceParameters),
			columns: outColumns("pg_sequence_parameters")},
		{sig: "pg_identify_object(oid,oid,int4) record", flags: stable, estimate: 1, open: opens(openIdentifyObject), columns: outColumns("pg_identify_object")},
		{sig: "pg_identify_object_as_address(oid,oid,int4) record", flags: stable, estimate: 1, open: opens(openIdentifyAddress),
			columns: outColumns("pg_identify_object_as_address")},
		{sig: "pg_get_object_address(text,_text,_text) record", flags: stable, estimate: 1, open: opens(openObjectAddress),
			columns: outColumns("pg_get_object_address")},
		{sig: "pg_tablespace_databases(oid) oid", flags: stable, estimate: 10, open: opens(openTablespaceDatabases)},
	}
	for _, sig := range sortedKeys(rowsBehindViews) {
		name := strings.TrimSuffix(sig, "()")
		columns, view := outColumns(name), rowsBehindViews[sig]
		out = append(out, setDecl{sig: sig + " record", flags: stable, estimate: 10, columns: columns, open: opens(func(env *Env, _ []types.Datum) (SetRows, error) {
			return systemRecords(env, view, columns)
		})})
	}
	return out
}

// outColumns are the results of a function of PostgreSQL that has a single declaration.
func outColumns(name string) []SetColumn {
	t := pgdata.Procs()
	for row := range t.Len() {
		if t.Value(row, "proname") != name {
			continue
		}
		list := func(column string) []string { return strings.Split(strings.Trim(t.Value(row, column), "{}"), ",") }
		types, modes, names := typesOf(parseOIDList(strings.Join(list("proallargtypes"), " "))), list("proargmodes"), list("proargnames")
		var out []SetColumn
		for i, mode := range modes {
			if mode == "o" {
				out = append(out, SetColumn{Name: names[i], Type: types[i]})
			}
		}
		return out
	}
	panic("builtin: no function " + name)
}

// systemRecords returns the rows of a system view as records with the given columns, found by name.
func systemRecords(env *Env, view string, columns []SetColumn) (SetRows, error) {
	var rows []types.Row
	have, err := collectSystemRows(env, view, func(row types.Row) { rows = append(rows, row) })
	if err != nil {
		return nil, err
	}
	fields := make([]types.Type, len(columns))
	from := make([]int, len(columns))
	for i, c := range columns {
		fields[i], from[i] = c.Type, -1
		for j := range have {
			if have[j].Name == c.Name {
				from[i] = j
			}
		}
	}
	out := &sliceRows{}
	for _, row := range rows {
		values := make([]types.Datum, len(columns))
		for i, j := range from {
			values[i] = types.Null
			if j >= 0 {
				values[i] = row[j]
			}
		}
		out.rest = append(out.rest, types.NewRecord(fields, values))
	}
	return out, nil
}

// collectSystemRows calls keep with copies of the rows of a relation of pg_catalog.
func collectSystemRows(env *Env, relation string, keep func(types.Row)) ([]SetColumn, error) {
	if env.Catalog == nil {
		return nil, errNoService("the catalog")
	}
	return env.Catalog.SystemRows(env.Context(), relation, func(row types.Row) error {
		if err := env.Context().Err(); err != nil {
			return errCanceled(env)
		}
		copied := make(types.Row, len(row))
		copy(copied, row)
		keep(copied)
		return nil
	})
}

// keywordCategories describes the categories of keywords as PostgreSQL does.
var keywordCategories = map[keyword.Category][2]string{
	keyword.Unreserved: {"U", "unreserved"}, keyword.ColumnName: {"C", "unreserved (cannot be function or type name)"},
	keyword.TypeFunc: {"T", "reserved (can be function or type name)"}, keyword.Reserved: {"R", "reserved"},
}

func openKeywords(*Env, []types.Datum) (SetRows, error) {
	fields := []types.Type{types.TText, types.TChar, types.TBool, types.TText, types.TText}
	out := &sliceRows{}
	keyword.EachWord(func(w keyword.Word) bool {
		category, bare := keywordCategories[w.Category()], "requires AS"
		if w.BareLabel() {
			bare = "can be bare label"
		}
		out.rest = append(out.rest, types.NewRecord(fields, []types.Datum{
			types.Text(w.String()), types.Text(category[0]), types.Bool(w.BareLabel()), types.Text(category[1]), types.Text(bare),
		}))
		return true
	})
	return out, nil
}

// systemRow returns the first row of a relation of pg_catalog in which a column has a value, by column; nil if there is none.
func systemRow(env *Env, relation, column string, value int64) (map[string]types.Datum, error) {
	var rows []types.Row
	columns, err := collectSystemRows(env, relation, func(row types.Row) { rows = append(rows, row) })
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(columns, func(c SetColumn) bool { return c.Name == column })
	found := slices.IndexFunc(rows, func(row types.Row) bool { return !row[at].IsNull() && row[at].Int() == value })
	if found < 0 {
		return nil, nil
	}
	out := map[string]types.Datum{}
	for i := range columns {
		out[columns[i].Name] = rows[found][i]
	}
	return out, nil
}

func openSequenceParameters(env *Env, a []types.Datum) (SetRows, error) {
	row, err := systemRow(env, "pg_sequence", "seqrelid", a[0].Int())
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, pgerror.New(pgerror.UndefinedTable, "relation with OID %d does not exist", a[0].Int())
	}
	var fields []types.Type
	for _, c := range outColumns("pg_sequence_parameters") {
		fields = append(fields, c.Type)
	}
	return &sliceRows{[]types.Datum{types.NewRecord(fields, []types.Datum{
		row["seqstart"], row["seqmin"], row["seqmax"], row["seqincrement"], row["seqcycle"], row["seqcache"], row["seqtypid"],
	})}}, nil
}

// openTablespaceDatabases is pg_tablespace_databases: every database is in pg_default.
func openTablespaceDatabases(env *Env, a []types.Datum) (SetRows, error) {
	out := &sliceRows{}
	if oidArg(a[0]) != defaultTablespaceOID {
		return out, nil
	}
	var rows []types.Row
	columns, err := collectSystemRows(env, "pg_database", func(row types.Row) { rows = append(rows, row) })
	for i := range columns {
		if columns[i].Name != "oid" {
			continue
		}
		for _, row := range rows {
			out.rest = append(out.rest, row[i])
		}
	}
	return out, err
}

// serverFuncs declares functions about the server and its statistics, and about files, which relations do not have.
func serverFuncs() []decl {
	void := constant(types.Text(""))
	return append(indexPropertyFuncs(), []decl{
		{sig: "pg_conf_load_time() timestamptz", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Int(s.ServerStart()), nil
		})},
		{sig: "pg_jit_available() bool", flags: volatile, fn: constant(types.Bool(false))},
		{sig: "pg_current_logfile() text", flags: volatile, fn: constant(types.Null)},
		{sig: "pg_current_logfile(text) text", flags: volatile | nonStrict, fn: constant(types.Null)},
		{sig: "pg_safe_snapshot_blocking_pids(int4) int4[]", flags: volatile, fn: constant(types.NewArray(&types.Array{Elem: types.TInt4}))},
		{sig: "pg_column_compression(any) text", flags: stable, fn: constant(types.Null)},
		{sig: "pg_relation_filenode(regclass) oid", flags: stable, fn: relationFilenode},
		{sig: "pg_relation_filepath(regclass) text", flags: stable, fn: constant(types.Null)},
		{sig: "pg_filenode_relation(oid,oid) regclass", flags: stable, fn: filenodeRelation},
		{sig: "pg_stat_reset() void", flags: volatile | nonStrict, fn: void},
		{sig: "pg_stat_reset_shared(text) void", flags: volatile, fn: resetShared},
		{sig: "pg_stat_reset_slru(text) void", flags: volatile | nonStrict, fn: void},
		{sig: "pg_stat_reset_single_table_counters(oid) void", flags: volatile, fn: void},
		{sig: "pg_stat_reset_single_function_counters(oid) void", flags: volatile, fn: void},
		{sig: "pg_stat_force_next_flush() void", flags: volatile | nonStrict, fn: void},
		{sig: "pg_stat_clear_snapshot() void", flags: volatile | nonStrict, fn: void},
		{sig: "pg_stat_get_snapshot_timestamp() timestamptz", flags: stable, fn: constant(types.Null)},
	}...)
}

// resetShared is pg_stat_reset_shared. There is nothing to reset: what the server does is not counted in these views.
func resetShared(_ *Env, a []types.Datum) (types.Datum, error) {
	switch target := a[0].Text(); target {
	case "archiver", "bgwriter", "recovery_prefetch", "wal":
		return types.Text(""), nil
	default:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "unrecognized reset target: \"%s\"", target).
			WithHint("Target must be \"archiver\", \"bgwriter\", \"recovery_prefetch\", or \"wal\".")
	}
}

// relationFilenode is pg_relation_filenode: the number that pg_class has.
func relationFilenode(env *Env, a []types.Datum) (types.Datum, error) {
	row, err := systemRow(env, "pg_class", "oid", a[0].Int())
	if err != nil || row == nil || row["relfilenode"].Int() == 0 {
		return types.Null, err
	}
	return row["relfilenode"], nil
}

// filenodeRelation is pg_filenode_relation. All relations are in the default tablespace, which 0 stands for.
func filenodeRelation(env *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Int() == 0 || a[0].Int() != 0 && oidArg(a[0]) != defaultTablespaceOID {
		return types.Null, nil
	}
	row, err := systemRow(env, "pg_class", "relfilenode", a[1].Int())
	if err != nil || row == nil {
		return types.Null, err
	}
	return row["oid"], nil
}
