package fuzzsql

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// world is the tables of a seed.
type world struct {
	tables []*table
	views  []*view
	style  style
}

// view is a query with a name.
type view struct {
	relation *relation
	create   *tree
}

// table is a table with its rows.
type table struct {
	name    string
	columns []column
	key     bool // its first column, id, is the primary key
	rows    int  // with the ids from 1 on
	create  *tree
	insert  *tree   // nil: no rows
	indexes []*tree // for the ways with indexes
}

// newWorld makes tables.
func (g *gen) newWorld() *world {
	w := &world{}
	for i := range 1 + g.IntN(3) {
		w.tables = append(w.tables, g.newTable(fmt.Sprintf("t%d", i+1), w.tables))
	}
	g.world = w
	for g.chance(40) && len(w.views) < 2 {
		g.names, g.ctes, g.depth = 0, nil, 0
		q, columns := g.query(queryWants{columns: 1 + g.IntN(3), depth: 2})
		r := &relation{fmt.Sprintf("view%d", len(w.views)+1), columns}
		w.views = append(w.views, &view{r, seq("CREATE VIEW "+r.name+" AS ", q)})
	}
	w.style = g.style()
	return w
}

func (g *gen) newTable(name string, earlier []*table) *table {
	t := &table{name: name, key: g.chance(80)}
	t.columns = append(t.columns, column{name: "id", typ: byOID[types.OIDInt4]})
	id := leaf("id int4")
	if t.key {
		id.text += " PRIMARY KEY"
	}
	declared := []*tree{id}
	unique := -1
	for i := range 1 + g.IntN(6) {
		typ := g.anyType()
		c := column{name: fmt.Sprintf("c%d", i+1), typ: typ}
		t.columns = append(t.columns, c)
		d := c.name + " " + typ.declared(g)
		if g.chance(8) {
			d += " DEFAULT " + typ.constant(g.stored(typ)).text
		}
		declared = append(declared, leaf(d))
	}
	if len(earlier) > 0 && g.chance(40) {
		if to := pick(g, earlier); to.key {
			if c, text := g.reference(to); text != "" {
				t.columns, declared = append(t.columns, c), append(declared, leaf(text))
			}
		}
	}
	if g.chance(10) && t.columns[1].typ.ordered() {
		unique = 1
		declared = append(declared, opt("UNIQUE ("+t.columns[1].name+", id)"))
	}
	_ = unique
	if g.chance(8) {
		check := g.expr(byOID[types.OIDBool], &scope{columns: t.columns}, 0)
		declared = append(declared, opt("CHECK (", check, " IS NOT FALSE OR true)"))
	}
	t.create = seq("CREATE TABLE "+name+" (", listOf(", ", 1, declared...), ")")
	t.insert = g.rowsOf(t)
	for i := range g.IntN(4) {
		t.indexes = append(t.indexes, g.index(t, i))
	}
	return t
}

// rowsOf fills a table: mostly with a few rows, seldom with many.
func (g *gen) rowsOf(t *table) *tree {
	n := g.IntN(14)
	if g.chance(12) {
		n = 40 + g.IntN(80)
	}
	t.rows = n
	var rows []*tree
	for i := range n {
		row := []string{fmt.Sprint(i + 1)}
		for _, c := range t.columns[1:] {
			if g.chance(14) {
				row = append(row, "NULL")
			} else {
				row = append(row, quote(c.value(g)))
			}
		}
		rows = append(rows, leaf("("+strings.Join(row, ", ")+")"))
	}
	if n == 0 {
		return nil
	}
	return seq("INSERT INTO "+t.name+" VALUES ", listOf(", ", 1, rows...))
}

// index makes an index: over columns or expressions, of all rows or some.
func (g *gen) index(t *table, n int) *tree {
	name := fmt.Sprintf("CREATE INDEX %s_i%d ON %s", t.name, n, t.name)
	if c := pick(g, t.columns); g.chance(40) && inverts(c.typ) {
		return leaf(name + " USING gin (" + c.name + ")")
	}
	var keys []*tree
	for _, i := range g.Perm(len(t.columns)) {
		if !t.columns[i].typ.ordered() {
			continue
		}
		if len(keys) > 0 && g.chance(50) {
			break
		}
		keys = append(keys, seq(g.indexed(t.columns[i]), opt(pick(g, []string{"", "", " DESC", " ASC NULLS FIRST"}))))
	}
	return seq(name+" (", listOf(", ", 1, keys...), ")", g.part(t))
}

// ordered reports whether indexes may have the type.
func (t *typ) ordered() bool {
	return t.elem == nil && t.oid != oidPair && !t.unsorted // percodb has no B-tree indexes on arrays and rows.
}

// inverts reports whether GIN indexes may have the type.
func inverts(t *typ) bool {
	if t.elem != nil {
		return t.elem.oid == types.OIDInt4 || t.elem.oid == types.OIDText
	}
	return t.oid == types.OIDJSONB || t.oid == types.OIDTSVector
}

// indexed is a column as a key of an index, or an expression of it.
func (g *gen) indexed(c column) string {
	if g.chance(75) {
		return c.name
	}
	switch c.typ.oid {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return "(" + c.name + " % 3)"
	case types.OIDText, types.OIDVarchar:
		return "lower(" + c.name + ")"
	}
	return "coalesce(" + c.name + ", " + c.typ.constant(g.stored(c.typ)).text + ")"
}

// part is the condition of a partial index; nil mostly.
func (g *gen) part(t *table) *tree {
	if !g.chance(25) {
		return nil
	}
	c := pick(g, t.columns)
	if !c.typ.ordered() || g.chance(50) {
		return opt(" WHERE " + c.name + pick(g, []string{" IS NOT NULL", " IS NULL"}))
	}
	return opt(" WHERE " + c.name + " " + pick(g, comparisons) + " " + c.typ.constant(g.stored(c.typ)).text)
}

// references reports whether tables have foreign keys, which forbid the deletion of rows.
func (w *world) references() bool {
	for _, t := range w.tables {
		for _, c := range t.columns {
			if c.stored != nil {
				return true
			}
		}
	}
	return false
}

// expanded is a statement with the queries of the views that it names behind it.
func (w *world) expanded(stmt string) string {
	for i := len(w.views) - 1; i >= 0; i-- { // A view may read an earlier one.
		if v := w.views[i]; strings.Contains(stmt, v.relation.name) {
			stmt += "; " + v.create.String()
		}
	}
	return stmt
}

// relation is what FROM may name.
type relation struct {
	name    string
	columns []column
}
