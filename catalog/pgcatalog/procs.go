package pgcatalog

import (
	"strconv"
	"sync"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// The catalogs of functions, operators, casts and operator classes: rows of package pgdata, those that package builtin selects.

// dataRow makes rows of a system table from the texts of pgdata. A value that is that of the row before is not read again.
type dataRow struct {
	*scan
	table    *pgdata.Table
	ordinals []int // in the system table, -1: it has no such column
	last     []string
	values   []types.Datum
	buf      []string
}

func (s *scan) dataRows(t *pgdata.Table) *dataRow {
	r := &dataRow{scan: s, table: t, last: make([]string, len(t.Columns)), values: make([]types.Datum, len(t.Columns))}
	for c, name := range t.Columns {
		ord, ok := s.table.ordinals[name]
		if !ok {
			ord = -1
		}
		r.ordinals = append(r.ordinals, ord)
		r.last[c], r.values[c] = pgdata.Null, types.Null
	}
	return r
}

// emit yields the row with the given values, and more columns that they do not have.
func (r *dataRow) emit(values []string, more ...col) error {
	copy(r.scan.row, r.scan.table.template)
	for c, v := range values {
		ord := r.ordinals[c]
		if ord < 0 {
			continue
		}
		if v != r.last[c] {
			d, err := types.Null, error(nil)
			if v != pgdata.Null {
				d, err = dataValue(r.scan.table.desc.Columns[ord].Type, v)
			}
			if err != nil {
				return err
			}
			r.last[c], r.values[c] = v, d
		}
		r.scan.row[ord] = r.values[c]
	}
	for i := range more {
		r.scan.row[r.scan.table.ordinals[more[i].name]] = more[i].value
	}
	return r.yield(r.scan.row)
}

// dataValue reads a value. References to functions and types are numbers.
func dataValue(t types.Type, v string) (types.Datum, error) {
	if t.OID == types.OIDRegproc || t.OID == types.OIDOid {
		n, err := strconv.ParseUint(v, 10, 32)
		return types.Int(int64(n)), err
	}
	if t.OID == types.OIDNodeTree {
		return types.Text(v), nil
	}
	return types.ParseText(t, v, nil)
}

// each emits the given rows of the table with more columns.
func (r *dataRow) each(rows []int, more ...col) error {
	for _, row := range rows {
		r.buf = r.table.Values(row, r.buf[:0])
		if err := r.emit(r.buf, more...); err != nil {
			return err
		}
	}
	return nil
}

// all emits all rows of the table.
func (r *dataRow) all(more ...col) error {
	rows := make([]int, r.table.Len())
	for i := range rows {
		rows[i] = i
	}
	return r.each(rows, more...)
}

// systemSchema returns the OID of pg_catalog.
func (s *scan) systemSchema() types.Datum { return oid(schemaOID(s.Resolver, "pg_catalog")) }

func procRows(s *scan) error {
	r := s.dataRows(pgdata.Procs())
	namespace := s.systemSchema()
	standard := acl.Default(acl.Function, catalog.BootstrapSuperuser)
	for _, p := range builtin.Procs() {
		if p.Schema() != "pg_catalog" {
			namespace = oid(schemaOID(s.Resolver, p.Schema()))
		}
		r.buf = p.Values(r.buf[:0])
		err := r.emit(r.buf, col{"pronamespace", namespace}, col{"proowner", num(ownerOID)},
			col{"proacl", types.ACL(s.functionACL(p.Signature, standard))})
		if err != nil {
			return err
		}
		if p.Schema() != "pg_catalog" {
			namespace = s.systemSchema()
		}
	}
	if err := s.userProcRows(r); err != nil {
		return err
	}
	return eachInstalled(s.Resolver, func(d *catalog.ExtensionDescriptor, e *builtin.Extension) error {
		namespace, owner := oid(schemaOID(s.Resolver, d.Schema)), oid(d.OwnerOID())
		for _, p := range e.Procs() {
			r.buf = p.Values(r.buf[:0])
			err := r.emit(r.buf, col{"pronamespace", namespace}, col{"proowner", owner}, col{"proacl", types.ACL(s.functionACL(p.Signature, standard))})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// functionACL returns the privileges on a function; nil if they are the standard ones by default.
func (s *scan) functionACL(signature string, standard acl.List) acl.List {
	if list := s.Grants().ObjectACL(acl.Function, signature); list != nil {
		return list
	}
	if list := s.Grants().EffectiveObjectACL(acl.Function, signature); !list.Equal(standard) {
		return list
	}
	return nil
}

func aggregateRows(s *scan) error {
	var rows []int
	for row, id := range pgdata.Aggregates().OIDs {
		if builtin.ProcByOID(types.OID(id)) != nil {
			rows = append(rows, row)
		}
	}
	if err := s.dataRows(pgdata.Aggregates()).each(rows); err != nil {
		return err
	}
	return s.userAggregateRows()
}

// builtinDescriptions calls f with the comments on functions, operators and types.
func builtinDescriptions(f func(class, object uint32, comment string) error) error {
	if err := textSearchDescriptions(f); err != nil {
		return err
	}
	for _, p := range builtin.Procs() {
		if comment := p.Value("description"); comment != pgdata.Null {
			if err := f(classPgProc, uint32(p.OID), comment); err != nil {
				return err
			}
		}
	}
	for _, list := range []struct {
		class uint32
		table *pgdata.Table
		rows  []int
	}{{classPgOperator, pgdata.Operators(), builtin.OperatorRows()}, {classPgType, pgdata.Types(), nil}} {
		rows := list.rows
		if rows == nil {
			for row := range list.table.Len() {
				rows = append(rows, row)
			}
		}
		for _, row := range rows {
			if comment := list.table.Value(row, "description"); comment != pgdata.Null {
				if err := f(list.class, list.table.OIDs[row], comment); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// builtinComment returns the comment on a function, an operator or a type; false if it has none.
func builtinComment(id types.OID, class string) (string, bool) {
	if comment, ok := textSearchComment(id, class); ok {
		return comment, true
	}
	comment := pgdata.Null
	if p := builtin.ProcByOID(id); p != nil && (class == "" || class == "pg_proc") {
		comment = p.Value("description")
	}
	for name, t := range map[string]*pgdata.Table{"pg_operator": pgdata.Operators(), "pg_type": pgdata.Types()} {
		if row, ok := t.ByOID(uint32(id)); ok && (class == "" || class == name) && (name == "pg_type" || builtin.OperatorShown(row)) {
			comment = t.Value(row, "description")
		}
	}
	return comment, comment != pgdata.Null
}

// builtinTypeRows emits PostgreSQL's types. The privileges of an array are those of its elements.
func (s *scan) builtinTypeRows() error {
	t := pgdata.Types()
	r := s.dataRows(t)
	owner, namespace := num(ownerOID), s.systemSchema()
	for row, id := range t.OIDs {
		r.buf = t.Values(row, r.buf[:0])
		info := types.Type{OID: types.OID(id), Mod: -1}.Info()
		err := r.emit(r.buf, col{"typnamespace", namespace}, col{"typowner", owner}, col{"typacl", types.ACL(s.Grants().ObjectACL(acl.Type, info.Name))})
		if err != nil {
			return err
		}
	}
	return nil
}

// typeFunctions are the columns of pg_type that name functions, for PostgreSQL's types.
func (s *scan) typeFunctions(t types.OID) []col {
	data := pgdata.Types()
	row, ok := data.ByOID(uint32(t))
	if !ok {
		return nil
	}
	var cols []col
	for _, name := range typeFunctionColumns {
		cols = append(cols, col{name, num(data.Number(row, name))})
	}
	return cols
}

var typeFunctionColumns = [...]string{"typsubscript", "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze"}

// procOID returns the OID of the function with a name that is unique.
func procOID(name string) types.Datum {
	for _, p := range builtin.ProcsNamed(name) {
		return oid(uint32(p.OID))
	}
	panic("pgcatalog: no function " + name)
}

// arrayFunctions, enumFunctions and compositeFunctions are the columns of pg_type that name functions for user-defined types.
func arrayFunctions() []col {
	return []col{{"typsubscript", procOID("array_subscript_handler")}, {"typinput", procOID("array_in")}, {"typoutput", procOID("array_out")},
		{"typreceive", procOID("array_recv")}, {"typsend", procOID("array_send")}, {"typanalyze", procOID("array_typanalyze")}}
}

func enumFunctions() []col {
	return []col{{"typinput", procOID("enum_in")}, {"typoutput", procOID("enum_out")}, {"typreceive", procOID("enum_recv")}, {"typsend", procOID("enum_send")}}
}

func compositeFunctions() []col {
	return []col{{"typinput", procOID("record_in")}, {"typoutput", procOID("record_out")}, {"typreceive", procOID("record_recv")},
		{"typsend", procOID("record_send")}}
}

// operatorClass returns the default btree operator class of a type's values, 0 if there is none.
func operatorClass(t types.Type) int64 {
	t = t.Underlying()
	in := t.OID
	switch {
	case t.IsArray() && t.OID != types.OIDOidvector:
		in = types.OIDAnyArray
	case t.IsEnum():
		in = types.OIDAnyEnum
	case t.IsComposite():
		in = types.OIDRecord
	}
	if m := t.Methods(); m != nil && m.Borrows != 0 {
		in = m.Borrows
	}
	if in == types.OIDVarchar {
		in = types.OIDText
	}
	return defaultClasses()[in]
}

var defaultClasses = sync.OnceValue(func() map[types.OID]int64 {
	m := map[types.OID]int64{}
	t := pgdata.OpClasses()
	for row, id := range t.OIDs {
		if t.Value(row, "opcdefault") == "t" {
			m[types.OID(t.Number(row, "opcintype"))] = int64(id)
		}
	}
	return m
})
