package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/types"
)

// byValue, alignment and storage are what PostgreSQL would say of a type's representation.
func byValue(info *types.Info) bool { return info.Len > 0 && info.Len <= 8 && info.Len != 6 }

func alignment(info *types.Info) byte {
	switch {
	case info.Len == 1 || info.Name == "name" || info.Name == "uuid":
		return 'c'
	case info.Len == 2:
		return 's'
	case info.Len == 8 || info.Name == "interval":
		return 'd'
	}
	return 'i'
}

func storage(info *types.Info) byte {
	switch {
	case info.Name == "numeric", info.Name == "inet", info.Name == "cidr":
		return 'm'
	case info.Name == "tsquery", info.Name == "int2vector", info.Name == "oidvector":
		return 'p'
	case info.Len == -1:
		return 'x'
	}
	return 'p'
}

func typeRows(s *scan) error {
	if err := s.builtinTypeRows(); err != nil {
		return err
	}
	if err := s.extensionTypeRows(); err != nil {
		return err
	}
	for _, d := range s.Types().All() {
		for _, t := range []types.Type{d.Type(), d.Defined().ArrayType()} {
			if err := s.emitDefined(d, t); err != nil {
				return err
			}
		}
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		d := s.Types().RowType(t)
		if d == nil {
			return nil
		}
		if err := s.emitDefined(d, d.Type()); err != nil {
			return err
		}
		return s.emitDefined(d, d.Defined().ArrayType())
	})
}

// emitDefined emits the row of a user-defined type or of its array type.
func (s *scan) emitDefined(d *catalog.TypeDescriptor, t types.Type) error {
	info := t.Info()
	name := info.Name
	if d.Relation != nil && info.Elem != 0 {
		name = s.Types().RowArrayName(d.Relation)
	}
	cols := []col{
		{"oid", oid(info.OID)}, {"typname", text(name)}, {"typnamespace", oid(schemaOID(s.Resolver, d.Schema))},
		{"typowner", oid(d.OwnerOID())}, {"typlen", num(info.Len)}, {"typbyval", boolean(byValue(info))}, {"typcategory", letter(byte(info.Category))},
		{"typisdefined", boolean(true)}, {"typdelim", letter(t.Delimiter())}, {"typelem", oid(info.Elem)}, {"typarray", oid(info.Array)},
		{"typalign", letter(alignment(info))}, {"typstorage", letter(storage(info))},
		{"typtypmod", num(-1)},
	}
	if info.Elem != 0 {
		return s.emit(append(append(cols, arrayFunctions()...), col{"typtype", letter('b')})...)
	}
	switch d.Kind {
	case types.Domain:
		return s.emitDomain(d, cols)
	case types.Composite:
		return s.emitComposite(d, cols)
	case types.RangeKind:
		return s.emitRangeType(d, "range_", cols)
	case types.MultirangeKind:
		return s.emitRangeType(d, "multirange_", cols)
	}
	return s.emit(append(append(cols, enumFunctions()...), col{"typtype", letter(byte(d.Kind))}, col{"typacl", types.ACL(d.ACL)})...)
}

func enumRows(s *scan) error {
	for _, d := range s.Types().All() {
		for i := range d.Labels {
			l := &d.Labels[i]
			err := s.emit(col{"oid", oid(l.OID)}, col{"enumtypid", oid(uint32(d.ID))}, col{"enumsortorder", types.Float(float64(l.Order))},
				col{"enumlabel", text(l.Name)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func amRows(s *scan) error {
	if err := s.emit(col{"oid", num(heapOID)}, col{"amname", text("heap")}, col{"amhandler", procOID("heap_tableam_handler")}, col{"amtype", letter('t')}); err != nil {
		return err
	}
	for _, m := range indexMethods {
		if err := s.emit(col{"oid", num(m.oid)}, col{"amname", text(m.name)}, col{"amhandler", num(m.handler)}, col{"amtype", letter('i')}); err != nil {
			return err
		}
	}
	return nil
}

// utf8Encoding is PostgreSQL's number of UTF8.
const utf8Encoding = 6

func databaseRows(s *scan) error {
	for _, d := range s.Databases().All() {
		err := s.emit(
			col{"oid", oid(d.OID)}, col{"datname", text(d.Name)}, col{"datdba", oid(d.OwnerOID())}, col{"datacl", types.ACL(d.ACL)}, col{"encoding", num(utf8Encoding)},
			col{"datlocprovider", letter('c')}, col{"datistemplate", boolean(d.Template)}, col{"datallowconn", boolean(!d.Closed)}, col{"datconnlimit", num(d.Limit())},
			col{"dattablespace", num(tablespaceOID)}, col{"datcollate", text("C")}, col{"datctype", text("C")},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// statDatabaseRows are the rows of pg_stat_database: the number of sessions. What is done in a database is not counted.
func statDatabaseRows(s *scan) error {
	sessions := map[uint32]int{}
	if s.view != nil {
		for _, a := range s.view.Activity() {
			sessions[a.DatabaseOID]++
		}
	}
	if err := s.emit(col{"datid", num(0)}, col{"numbackends", num(0)}); err != nil {
		return err
	}
	for _, d := range s.Databases().All() {
		if err := s.emit(col{"datid", oid(d.OID)}, col{"datname", text(d.Name)}, col{"numbackends", num(sessions[d.OID])}); err != nil {
			return err
		}
	}
	return nil
}

// database is the name of the database.
func (s *scan) database() string { return s.Database().Name }

func tablespaceRows(s *scan) error {
	for _, id := range []int{tablespaceOID, globalTablespaceOID} {
		name := tablespaceNames[id]
		acls := types.ACL(s.Grants().ObjectACL(acl.Tablespace, name))
		if err := s.emit(col{"oid", num(id)}, col{"spcname", text(name)}, col{"spcowner", num(ownerOID)}, col{"spcacl", acls}); err != nil {
			return err
		}
	}
	return nil
}

func languageRows(s *scan) error {
	err := s.emit(col{"oid", num(internalLanguageOID)}, col{"lanname", text("internal")}, col{"lanowner", num(ownerOID)},
		col{"lanvalidator", procOID("fmgr_internal_validator")})
	if err != nil {
		return err
	}
	err = s.emit(col{"oid", num(sqlLanguageOID)}, col{"lanname", text("sql")}, col{"lanvalidator", procOID("fmgr_sql_validator")}, col{"lanowner", num(ownerOID)}, col{"lanpltrusted", boolean(true)},
		col{"lanacl", types.ACL(s.Grants().ObjectACL(acl.Language, "sql"))})
	if err != nil {
		return err
	}
	return s.emit(col{"oid", num(plpgsqlLanguageOID)}, col{"lanname", text("plpgsql")}, col{"lanowner", num(ownerOID)}, col{"lanispl", boolean(true)},
		col{"lanpltrusted", boolean(true)}, col{"lanacl", types.ACL(s.Grants().ObjectACL(acl.Language, "plpgsql"))})
}

func settingRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, v := range s.view.Settings() {
		values := types.Null
		if v.Values != nil {
			values = textArray(v.Values)
		}
		err := s.emit(col{"name", text(v.Name)}, col{"setting", text(v.Value)}, col{"unit", optional(v.Unit)}, col{"category", text(v.Category)},
			col{"short_desc", text(v.Description)}, col{"context", text(v.Context)}, col{"vartype", text(v.Type)}, col{"source", text(v.Source)},
			col{"min_val", optional(v.Min)}, col{"max_val", optional(v.Max)}, col{"enumvals", values}, col{"boot_val", text(v.Default)}, col{"reset_val", text(v.Default)}, col{"pending_restart", boolean(v.PendingRestart)})
		if err != nil {
			return err
		}
	}
	return nil
}

func preparedRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, p := range s.view.Prepared() {
		params := make([]string, len(p.Params))
		for i, t := range p.Params {
			params[i] = t.String()
		}
		err := s.emit(col{"name", text(p.Name)}, col{"statement", text(p.Statement)}, col{"prepare_time", instant(p.At)},
			col{"parameter_types", textArray(params)}, col{"from_sql", boolean(p.FromSQL)})
		if err != nil {
			return err
		}
	}
	return nil
}

func cursorRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, c := range s.view.Cursors() {
		err := s.emit(col{"name", text(c.Name)}, col{"statement", text(c.Statement)}, col{"is_holdable", boolean(c.Holdable)},
			col{"is_binary", boolean(c.Binary)}, col{"is_scrollable", boolean(c.Scrollable)}, col{"creation_time", instant(c.At)})
		if err != nil {
			return err
		}
	}
	return nil
}

func fileSettingRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	all, err := s.view.FileSettings(s.ctx)
	if err != nil {
		return err
	}
	for i, v := range all {
		err := s.emit(col{"seqno", num(i + 1)}, col{"name", text(v.Name)}, col{"setting", text(v.Value)}, col{"applied", boolean(v.Applied)}, col{"error", optional(v.Error)})
		if err != nil {
			return err
		}
	}
	return nil
}

func activityRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, a := range s.view.Activity() {
		all := s.monitors(catalog.ReadAllStatsRole) || s.monitors(a.Role)
		shown := func(d types.Datum) types.Datum {
			if all {
				return d
			}
			return types.Null
		}
		query := "<insufficient privilege>"
		if all {
			query = a.Query
		}
		port := types.Null
		if a.ClientPort != 0 {
			port = num(a.ClientPort)
		}
		err := s.emit(col{"datid", oid(a.DatabaseOID)}, col{"datname", text(a.Database)}, col{"pid", num(a.PID)}, col{"usesysid", oid(a.Role)},
			col{"usename", text(a.User)}, col{"application_name", text(a.Application)}, col{"client_addr", shown(optional(a.ClientAddr))},
			col{"client_port", shown(port)}, col{"backend_start", shown(instant(a.BackendStart))}, col{"xact_start", shown(instant(a.XactStart))},
			col{"query_start", shown(instant(a.QueryStart))}, col{"state_change", shown(instant(a.StateChange))},
			col{"wait_event_type", shown(optional(a.WaitType))}, col{"wait_event", shown(optional(a.Wait))}, col{"state", shown(optional(a.State))}, col{"query", text(query)}, col{"backend_type", shown(text("client backend"))})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexProgressRows are the rows of pg_stat_progress_create_index. Those of others' sessions are shown without details, as in PostgreSQL. Tables
// have no blocks.
func indexProgressRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	all, err := s.view.IndexProgress(s.ctx)
	if err != nil {
		return err
	}
	owners := map[uint32]uint32{}
	for _, a := range s.view.Activity() {
		owners[a.PID] = a.Role
	}
	for _, p := range all {
		row := []col{{"pid", num(p.PID)}, {"datid", oid(p.Database)}, {"datname", text(p.DatabaseName)}}
		if owner, ok := owners[p.PID]; s.monitors(catalog.ReadAllStatsRole) || ok && s.monitors(owner) {
			row = append(row, col{"relid", oid(uint32(p.Table))}, col{"index_relid", oid(p.Index)}, col{"command", text(p.Command)}, col{"phase", text(p.Phase)},
				col{"lockers_total", num(0)}, col{"lockers_done", num(0)}, col{"current_locker_pid", num(0)}, col{"blocks_total", num(0)}, col{"blocks_done", num(0)},
				col{"tuples_total", num(p.Total)}, col{"tuples_done", num(p.Rows)}, col{"partitions_total", num(p.Parts)}, col{"partitions_done", num(p.Part)})
		}
		if err := s.emit(row...); err != nil {
			return err
		}
	}
	return nil
}

func sslRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, a := range s.view.Activity() {
		if !s.monitors(catalog.ReadAllStatsRole) && !s.monitors(a.Role) {
			continue
		}
		row := []col{{"pid", num(a.PID)}, {"ssl", types.Bool(a.TLS != nil)}}
		if t := a.TLS; t != nil {
			row = append(row, col{"version", text(t.Version)}, col{"cipher", text(t.Cipher)}, col{"bits", num(t.Bits)},
				col{"client_dn", optional(t.ClientDN)}, col{"issuer_dn", optional(t.IssuerDN)})
			if t.ClientSerial != "" {
				serial, err := types.ParseText(types.TNumeric, t.ClientSerial, nil)
				if err != nil {
					return err
				}
				row = append(row, col{"client_serial", serial})
			}
		}
		if err := s.emit(row...); err != nil {
			return err
		}
	}
	return nil
}

// gssRows has a row for each session: none is authenticated or encrypted by GSSAPI.
func gssRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	for _, a := range s.view.Activity() {
		if !s.monitors(catalog.ReadAllStatsRole) && !s.monitors(a.Role) {
			continue
		}
		if err := s.emit(col{"pid", num(a.PID)}, col{"gss_authenticated", types.Bool(false)}, col{"encrypted", types.Bool(false)}); err != nil {
			return err
		}
	}
	return nil
}

func accessRuleRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	rules, err := s.view.AccessRules(s.ctx)
	if err != nil {
		return err
	}
	for _, r := range rules {
		row := []col{{"line_number", num(r.Line)}, {"error", optional(r.Error)}}
		if r.Error == "" {
			row = append(row, col{"type", text(r.Type)}, col{"database", textArray(r.Databases)}, col{"user_name", textArray(r.Users)},
				col{"address", optional(r.Address)}, col{"netmask", optional(r.Netmask)}, col{"auth_method", text(r.Method)})
			if len(r.Options) > 0 {
				row = append(row, col{"options", textArray(r.Options)})
			}
		}
		if err := s.emit(row...); err != nil {
			return err
		}
	}
	return nil
}

// instant is a time in microseconds since 2000-01-01 UTC, NULL for 0.
func instant(micros int64) types.Datum {
	if micros == 0 {
		return types.Null
	}
	return types.Int(micros)
}
