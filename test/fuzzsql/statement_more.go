package fuzzsql

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// changePart is an UPDATE of parts of values: elements and slices of arrays, members of jsonb, fields of composites.
func changePart(g *gen, t *table) *tree {
	s := t.own()
	var sets []*tree
	for _, c := range t.columns[1:] {
		if e := g.part1(c, s); e != nil {
			sets = append(sets, e)
		}
	}
	if len(sets) == 0 {
		return changeRow(g, t)
	}
	return seq("UPDATE "+t.name+" SET ", listOf(", ", 1, sets...), g.where(s), g.returning(s))
}

// part1 assigns to a part of a column; nil if its values have none.
func (g *gen) part1(c column, s *scope) *tree {
	depth := g.IntN(2)
	switch {
	case c.typ.elem != nil && g.chance(40):
		return seq(c.name+pick(g, []string{"[1:2]", "[:1]", "[2:]", "[0:1]"})+" = ", g.expr(c.typ, s, depth))
	case c.typ.elem != nil:
		return seq(c.name+"["+fmt.Sprint(g.IntN(5)-1)+"] = ", g.expr(c.typ.elem, s, depth))
	case c.typ.oid == types.OIDJSONB:
		return seq(c.name+pick(g, []string{"['a']", "['b'][0]", "[1]", "['x']['y']", "[-1]"})+" = ", g.expr(c.typ, s, depth))
	case c.typ.oid == oidPair && g.chance(50):
		return seq(c.name+".n = ", g.expr(byOID[types.OIDInt4], s, depth))
	case c.typ.oid == oidPair:
		return seq(c.name+".t = ", g.expr(byOID[types.OIDText], s, depth))
	}
	return nil
}

// changeRow is an UPDATE of several columns at once, from a row or a subquery.
func changeRow(g *gen, t *table) *tree {
	s := t.own()
	columns := t.columns[1:]
	if len(columns) > 3 {
		columns = columns[:3]
	}
	var names []string
	var ts []*typ
	var values []*tree
	for _, c := range columns {
		names, ts = append(names, c.name), append(ts, c.typ)
		values = append(values, g.expr(c.typ, s, g.IntN(2)))
	}
	var from *tree
	switch w := (queryWants{types: ts, outer: s, depth: 1, total: true, limit: 1}); {
	case g.chance(40) && w.sorted():
		q, _ := g.query(w)
		from = seq("(", q, ")")
	case g.chance(50):
		from = seq("ROW(", joined(values), ")")
	case len(values) > 1:
		from = seq("(", joined(values), ")")
	default:
		from = seq("ROW(", joined(values), ")")
	}
	return seq("UPDATE "+t.name+" SET ("+strings.Join(names, ", ")+") = ", from, g.where(s), g.returning(s))
}

// changeDefaults inserts rows whose values the table has, or names its key's constraint.
func changeDefaults(g *gen, t *table) *tree {
	if !t.key || g.chance(30) {
		return seq("INSERT INTO "+t.name, " DEFAULT VALUES", g.returning(t.own()))
	}
	c := pick(g, t.columns[1:])
	s := t.own()
	s.columns = append(s.columns, qualified("excluded", t.columns)...)
	action := pick(g, []*tree{leaf("NOTHING"), seq("UPDATE SET ("+c.name+") = ROW(", g.expr(c.typ, s, 1), ")", g.where(s)), seq("UPDATE SET " + c.name + " = DEFAULT")})
	return seq(fmt.Sprintf("INSERT INTO %s AS %s (id, %s) VALUES (%d, ", t.name, t.name, c.name, 1+g.IntN(20)), g.expr(c.typ, nil, g.IntN(2)), ") ON CONFLICT ON CONSTRAINT "+t.name+"_pkey DO ", action, g.returning(t.own()))
}

// changeSeveral changes two tables in items of WITH, all over the rows as they were, and joins what they return.
func changeSeveral(g *gen, t *table) *tree {
	other := pick(g, g.world.tables)
	if other == t {
		return changeWith(g, t)
	}
	second := pick(g, []*tree{
		seq("DELETE FROM "+other.name, g.where(other.own())),
		leaf(fmt.Sprintf("INSERT INTO %s (id) SELECT id + 60 FROM m", other.name)),
		seq(fmt.Sprintf("UPDATE %s SET id = %s.id + 70 FROM m WHERE m.id = %s.id", other.name, other.name, other.name)),
	})
	columns := append(qualified("m", t.columns), qualified("n", other.columns)...)
	var list []*tree
	for range 1 + g.IntN(3) {
		list = append(list, g.expr(g.anyColumnType(&scope{columns: columns}), &scope{columns: columns}, g.IntN(2)))
	}
	return seq("WITH m AS (DELETE FROM "+t.name, g.where(t.own()), " RETURNING *), n AS (", second, " RETURNING "+other.name+".*) SELECT ", listOf(", ", 1, list...), " FROM m FULL JOIN n ON m.id = n.id")
}

// unitCursor changes the rows at which cursors stand.
func unitCursor(g *gen) *unit {
	t := pick(g, g.world.tables)
	s := t.own()
	scroll := pick(g, []string{"", "", "SCROLL "})
	tail := " ORDER BY id, " + t.name + "::text" // Which row comes next must not be left open.
	if scroll == "" && g.chance(70) {
		tail += " FOR UPDATE"
	}
	declare := seq("DECLARE c "+scroll+"CURSOR FOR SELECT * FROM "+t.name, g.where(s), tail)
	stmts := []*tree{leaf("BEGIN"), declare}
	moves := []string{"FETCH c", "FETCH 2 FROM c", "MOVE 1 IN c", "FETCH ALL FROM c"}
	if scroll != "" {
		moves = append(moves, "FETCH PRIOR FROM c", "FETCH LAST FROM c", "FETCH FIRST FROM c", "FETCH ABSOLUTE 2 FROM c", "FETCH RELATIVE -1 FROM c", "FETCH BACKWARD 2 FROM c", "MOVE BACKWARD ALL IN c")
	}
	for range 2 + g.IntN(4) {
		stmts = append(stmts, optional(leaf(pick(g, moves))))
		c := pick(g, t.columns[1:])
		switch g.IntN(4) {
		case 0:
			stmts = append(stmts, optional(seq("UPDATE "+t.name+" SET "+c.name+" = ", g.expr(c.typ, s, g.IntN(2)), " WHERE CURRENT OF c", g.returning(s))))
		case 1:
			stmts = append(stmts, optional(seq("DELETE FROM "+t.name+" WHERE CURRENT OF c", g.returning(s))))
		}
	}
	stmts = append(stmts, optional(leaf("SELECT * FROM "+t.name)), leaf("ROLLBACK"))
	stmts[0].keep, stmts[1].keep, stmts[len(stmts)-1].keep = true, true, true
	return &unit{stmts: listOf(";\n", 1, stmts...), defines: true}
}

// definition changes a table's definition, and returns what is to be looked at afterwards.
func (g *gen) definition(t *table) []*tree {
	c, typ := pick(g, t.columns[1:]), g.anyType()
	s := &scope{columns: t.columns}
	look := leaf("SELECT * FROM " + t.name)
	form := g.IntN(7)
	if len(t.indexes) > 0 && (form == 1 || form == 2) {
		form = 0 // Not all places have its indexes, which the change would concern.
	}
	switch form {
	case 0:
		return []*tree{seq("ALTER TABLE "+t.name+" ADD COLUMN n1 "+typ.declared(g)+" DEFAULT ", g.expr(typ, nil, g.IntN(2))), look}
	case 1:
		return []*tree{seq("ALTER TABLE "+t.name+" ALTER COLUMN "+c.name+" TYPE "+typ.declared(g)+" USING ", g.expr(typ, s, g.IntN(3))), look}
	case 2:
		return []*tree{leaf("ALTER TABLE " + t.name + " DROP COLUMN " + c.name + pick(g, []string{"", " CASCADE"})), look}
	case 3:
		return []*tree{seq("ALTER TABLE "+t.name+" ADD CHECK (", g.boolean(s, 1+g.IntN(2)), ")"), look}
	case 4:
		return []*tree{seq("ALTER TABLE "+t.name+" ADD COLUMN n1 "+typ.declared(g)+" GENERATED ALWAYS AS (", g.expr(typ, s, 1+g.IntN(2)), ") STORED"), look}
	case 5:
		return []*tree{leaf("ALTER TABLE " + t.name + " ALTER COLUMN " + c.name + " SET NOT NULL"), look}
	}
	q, _ := g.query(queryWants{columns: 1 + g.IntN(3), depth: 1 + g.IntN(2)})
	return []*tree{seq("CREATE TABLE made AS ", q), leaf("SELECT * FROM made"), leaf("DROP TABLE made")}
}

// unitDefinition changes definitions in a block that is rolled back.
func unitDefinition(g *gen) *unit {
	stmts := []*tree{leaf("BEGIN")}
	for range 1 + g.IntN(2) {
		for _, s := range g.definition(pick(g, g.world.tables)) {
			stmts = append(stmts, optional(s))
		}
	}
	stmts = append(stmts, leaf("ROLLBACK"))
	stmts[0].keep, stmts[len(stmts)-1].keep = true, true
	return &unit{stmts: listOf(";\n", 1, stmts...), defines: true}
}
