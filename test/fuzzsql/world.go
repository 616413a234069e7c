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
	create  *tree
	insert  *tree   // nil: no rows
	indexes []*tree // for the ways with indexes
}

// newWorld makes tables.
func (g *gen) newWorld() *world {
	w := &world{}
	for i := range 1 + g.IntN(3) {
		w.tables = append(w.tables, g.newTable(fmt.Sprintf("t%d", i+1)))
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

func (g *gen) newTable(name string) *table {
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
	if g.chance(10) && t.columns[1].typ.elem == nil {
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
	var rows []*tree
	for i := range n {
		row := []string{fmt.Sprint(i + 1)}
		for _, c := range t.columns[1:] {
			if g.chance(14) {
				row = append(row, "NULL")
			} else {
				row = append(row, quote(g.stored(c.typ)))
			}
		}
		rows = append(rows, leaf("("+strings.Join(row, ", ")+")"))
	}
	if n == 0 {
		return nil
	}
	return seq("INSERT INTO "+t.name+" VALUES ", listOf(", ", 1, rows...))
}

func (g *gen) index(t *table, n int) *tree {
	var keys []*tree
	for _, i := range g.Perm(len(t.columns)) {
		if t.columns[i].typ.elem != nil {
			continue // percodb has no indexes on arrays.
		}
		if len(keys) > 0 && g.chance(50) {
			break
		}
		keys = append(keys, seq(t.columns[i].name, opt(pick(g, []string{"", "", " DESC", " ASC NULLS FIRST"}))))
	}
	return seq(fmt.Sprintf("CREATE INDEX %s_i%d ON %s (", t.name, n, t.name), listOf(", ", 1, keys...), ")")
}

// relation is what FROM may name.
type relation struct {
	name    string
	columns []column
}
