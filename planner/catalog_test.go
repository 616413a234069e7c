package planner

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// memCatalog is a resolver over descriptors made from a small spec, one line a thing:
//
//	table t rows=1000: a int4 pk, b text notnull default='x', c int8
//	index t_b on t: b, c desc [include=d]
//	index t_e on t: (lower(b)) where c > 0
//	unique t_c on t: c
//	check t positive: a > 0
//	distinct t.b = 10
//	view v: SELECT a FROM t
type memCatalog struct {
	tables map[string]*catalog.TableDescriptor
	stats  map[uint64]*catalog.TableStats
	nextID uint64
}

func newMemCatalog() *memCatalog {
	return &memCatalog{tables: map[string]*catalog.TableDescriptor{}, stats: map[uint64]*catalog.TableStats{}, nextID: 100}
}

func (m *memCatalog) define(spec string) error {
	for _, line := range strings.Split(spec, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := m.defineLine(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (m *memCatalog) defineLine(line string) error {
	head, body, _ := strings.Cut(line, ":")
	body = strings.TrimSpace(body)
	words := strings.Fields(head)
	switch words[0] {
	case "table":
		return m.table(words[1:], body, catalog.KindTable)
	case "virtual":
		return m.table(words[1:], body, catalog.KindVirtual)
	case "index", "unique":
		return m.index(words[1], words[3], words[0] == "unique", body)
	case "check":
		t := m.tables[words[1]]
		t.Checks = append(t.Checks, catalog.CheckDescriptor{Name: words[2], Expr: body})
		return nil
	case "distinct":
		table, col, _ := strings.Cut(words[1], ".")
		t := m.tables[table]
		n, err := strconv.ParseFloat(words[3], 64)
		st := m.stats[t.ID]
		if st.Columns == nil {
			st.Columns = map[uint32]catalog.ColumnStats{}
		}
		st.Columns[t.Columns[t.ColumnNamed(col)].ID] = catalog.ColumnStats{Distinct: n}
		return err
	case "view":
		v := &catalog.TableDescriptor{ID: m.id(), Version: 1, Kind: catalog.KindView, Schema: "public", Name: words[1], ViewQuery: body}
		m.tables[v.Name] = v
		return nil
	}
	return fmt.Errorf("unknown word %q", words[0])
}

func (m *memCatalog) id() uint64 { m.nextID++; return m.nextID }

func (m *memCatalog) table(words []string, body string, kind catalog.RelationKind) error {
	t := &catalog.TableDescriptor{ID: m.id(), Version: 1, Kind: kind, Schema: "public", Name: words[0]}
	st := &catalog.TableStats{}
	for _, w := range words[1:] {
		if n, ok := strings.CutPrefix(w, "rows="); ok {
			st.Rows, _ = strconv.ParseFloat(n, 64)
		}
		if n, ok := strings.CutPrefix(w, "deleted="); ok {
			st.Deleted, _ = strconv.ParseFloat(n, 64)
		}
	}
	t.Primary = catalog.IndexDescriptor{ID: 1, Name: t.Name + "_pkey", Unique: true, Constraint: true}
	t.NextIndexID = 2
	for _, def := range splitTop(body) {
		f := strings.Fields(def)
		typ, err := types.ParseTypeName(f[1], nil)
		if err != nil {
			return err
		}
		c := catalog.ColumnDescriptor{ID: uint32(len(t.Columns) + 1), Name: f[0], Type: typ}
		for _, opt := range f[2:] {
			switch {
			case opt == "pk":
				t.Primary.Columns = append(t.Primary.Columns, catalog.IndexColumn{ColumnID: c.ID})
				c.NotNull = true
			case opt == "notnull":
				c.NotNull = true
			case opt == "identity":
				c.Identity, c.Sequence = "ALWAYS", m.id()
			case strings.HasPrefix(opt, "default="):
				c.Default = opt[len("default="):]
			}
		}
		t.Columns = append(t.Columns, c)
	}
	if len(t.Primary.Columns) == 0 && kind == catalog.KindTable {
		id := uint32(len(t.Columns) + 1)
		t.Columns = append(t.Columns, catalog.ColumnDescriptor{ID: id, Name: "rowid", Type: types.TInt8, NotNull: true, Hidden: true})
		t.Primary.Columns = []catalog.IndexColumn{{ColumnID: id}}
	}
	m.tables[t.Name] = t
	m.stats[t.ID] = st
	return nil
}

// splitTop cuts at commas outside of parentheses.
func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

func (m *memCatalog) index(name, table string, unique bool, body string) error {
	t := m.tables[table]
	ix := catalog.IndexDescriptor{ID: t.NextIndexID, Name: name, Unique: unique}
	t.NextIndexID++
	body, where, partial := strings.Cut(body, " where ")
	if partial {
		ix.Where = &catalog.ExprText{SQL: where}
	}
	for _, def := range splitTop(body) {
		if def = strings.TrimSpace(def); strings.HasPrefix(def, "(") {
			id, err := m.computed(t, def[1:len(def)-1])
			if err != nil {
				return err
			}
			ix.Columns = append(ix.Columns, catalog.IndexColumn{ColumnID: id})
			continue
		}
		f := strings.Fields(def)
		col := catalog.IndexColumn{ColumnID: t.Columns[t.ColumnNamed(f[0])].ID}
		for _, opt := range f[1:] {
			switch {
			case opt == "desc":
				col.Desc, col.NullsFirst = true, true
			case strings.HasPrefix(opt, "include="):
				ix.Include = append(ix.Include, t.Columns[t.ColumnNamed(opt[len("include="):])].ID)
			}
		}
		ix.Columns = append(ix.Columns, col)
	}
	t.Indexes = append(t.Indexes, ix)
	return nil
}

// computed adds a computed column to a table.
func (m *memCatalog) computed(t *catalog.TableDescriptor, text string) (uint32, error) {
	e, err := sql.ParseExpr(text)
	if err != nil {
		return 0, err
	}
	x, err := BindExpr(context.Background(), e, t, m, &builtin.Env{}, types.Type{}, "index expressions")
	if err != nil {
		return 0, err
	}
	id := uint32(1000 + len(t.Computed))
	t.Computed = append(t.Computed, catalog.ColumnDescriptor{ID: id, Name: text, Type: x.Type(), Expr: &catalog.ExprText{SQL: text}})
	return id, nil
}

func (m *memCatalog) Relation(_ context.Context, schema, name string) (*catalog.TableDescriptor, error) {
	if schema != "" && schema != "public" {
		return nil, nil
	}
	return m.tables[name], nil
}

func (m *memCatalog) RelationByID(_ context.Context, id uint64) (*catalog.TableDescriptor, error) {
	for _, t := range m.tables {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, nil
}

func (m *memCatalog) Relations(context.Context) ([]*catalog.TableDescriptor, error) {
	var out []*catalog.TableDescriptor
	for _, t := range m.tables {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func (m *memCatalog) SchemaExists(_ context.Context, schema string) (bool, error) {
	return schema == "public", nil
}

func (m *memCatalog) Roles() *catalog.Roles { return catalog.NewRoles() }

func (m *memCatalog) Types() *catalog.Types         { return catalog.NewTypes() }
func (m *memCatalog) Databases() *catalog.Databases { return catalog.NewDatabases() }
func (m *memCatalog) Database() *catalog.DatabaseDescriptor {
	return catalog.NewDatabases().ByOID(catalog.FirstDatabase)
}
func (m *memCatalog) Extensions() *catalog.Extensions { return catalog.NewExtensions() }

func (m *memCatalog) Routines() *catalog.Routines     { return catalog.NewRoutines() }
func (m *memCatalog) TextSearch() *catalog.TextSearch { return new(catalog.TextSearch) }
func (m *memCatalog) Collations() *catalog.Collations { return &catalog.Collations{} }
func (m *memCatalog) Operations() *catalog.Operations { return &catalog.Operations{} }
func (m *memCatalog) Grants() *catalog.Grants         { return catalog.NewGrants() }

func (m *memCatalog) Schemas(context.Context) ([]string, error) { return []string{"public"}, nil }

func (m *memCatalog) Stats(_ context.Context, id uint64) (*catalog.TableStats, error) {
	if st := m.stats[id]; st != nil {
		return st, nil
	}
	return &catalog.TableStats{}, nil
}

func (m *memCatalog) Version() uint64 { return 1 }
