package fuzzsql

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// unit is what runs as one: a query, or a block of statements that ends in ROLLBACK or COMMIT.
type unit struct {
	stmts   *tree // a list, one kid for each statement
	isQuery bool  // a single statement that changes nothing
	commits bool  // it leaves changes
	ordered bool  // the order of the query's rows is determined
	// defines is set where a statement changes definitions, or declares a cursor: it takes no parameters.
	defines bool
	// ways are the names of the ways by which it runs beside the reference; nil: by all.
	ways []string
}

// unitForms are the kinds of units.
var unitForms []weighted[func(g *gen) *unit]

func init() {
	unitForms = []weighted[func(g *gen) *unit]{
		{20, unitExpression},
		{55, unitQuery},
		{5, unitStar},
		{14, unitBlock},
		{6, unitChange},
		{3, unitValues},
		{4, unitCursor},
		{4, unitDefinition},
	}
}

func (g *gen) unit() *unit {
	g.names, g.ctes, g.depth, g.ordered = 0, nil, 0, false
	u := choose(g, unitForms)(g)
	u.ordered = u.isQuery && g.ordered
	u.ways = g.waysOf(u)
	return u
}

// waysOf draws the ways of a unit: one or two, for what is gained by a fourth look at a statement is less than by the first at another. A change
// that commits runs in every place.
func (g *gen) waysOf(u *unit) []string {
	if u.commits || g.chance(5) {
		return nil
	}
	var fit []string
	for _, w := range ways[1:] {
		if (u.isQuery || !w.queriesOnly) && !(u.defines && w.moved) {
			fit = append(fit, w.name)
		}
	}
	g.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	return fit[:1+g.IntN(2)]
}

func single(t *tree) *unit { return &unit{stmts: listOf(";\n", 1, t), isQuery: true} }

// unitExpression is an expression without a table: whatever it answers, an error too, is determined.
func unitExpression(g *gen) *unit {
	t := g.anyType()
	for range 5 {
		if e := g.expr(t, nil, 1+g.IntN(3)); len(e.kids) > 0 {
			return single(seq("SELECT ", e, " AS k1"))
		}
	}
	return single(seq("SELECT ", g.expr(t, nil, 0), " AS k1"))
}

func unitQuery(g *gen) *unit {
	q, _ := g.query(queryWants{columns: 1 + g.IntN(4), depth: 1 + g.IntN(3), top: true})
	return single(q)
}

// unitStar is a query of all columns, as they are.
func unitStar(g *gen) *unit {
	src := g.from(nil, 2)
	star := "*"
	if g.chance(50) {
		star, _, _ = strings.Cut(pick(g, src.columns).name, ".")
		star += ".*"
	}
	return single(seq("SELECT "+star+" FROM ", src.tree, opt(" WHERE ", g.boolean(&scope{columns: src.columns}, 2))))
}

// unitBlock is a block of changes and looks at them, with savepoints, rolled back.
func unitBlock(g *gen) *unit { return g.block("ROLLBACK") }

// unitChange is a single change that commits, and a look at what it has left.
func unitChange(g *gen) *unit {
	stmt, t := g.change()
	return &unit{stmts: listOf(";\n", 1, optional(stmt), optional(leaf("SELECT * FROM "+t.name))), commits: true}
}

func optional(t *tree) *tree {
	t.optional = true
	return t
}

func (g *gen) block(end string) *unit {
	stmts := []*tree{leaf("BEGIN" + pick(g, []string{"", "", " ISOLATION LEVEL READ COMMITTED", " ISOLATION LEVEL SERIALIZABLE"}))}
	savepoints := []string{}
	for range 1 + g.IntN(6) {
		switch n := g.IntN(10); {
		case n < 2:
			name := fmt.Sprintf("sp%d", len(savepoints))
			savepoints = append(savepoints, name)
			stmts = append(stmts, leaf("SAVEPOINT "+name))
		case n < 4 && len(savepoints) > 0:
			stmts = append(stmts, leaf(pick(g, []string{"ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT "})+pick(g, savepoints)))
		case n < 6:
			q, _ := g.query(queryWants{columns: 1 + g.IntN(3), depth: 1 + g.IntN(2), top: true})
			stmts = append(stmts, q)
		default:
			stmt, t := g.change()
			stmts = append(stmts, stmt, leaf("SELECT * FROM "+t.name))
		}
	}
	for _, s := range stmts[1:] {
		s.optional = true
	}
	stmts = append(stmts, leaf(end))
	// Without them the minimiser's attempts would leave changes behind.
	stmts[0].keep, stmts[len(stmts)-1].keep = true, true
	return &unit{stmts: listOf(";\n", 1, stmts...)}
}

// changeForms are the statements that change rows.
var changeForms []weighted[func(g *gen, t *table) *tree]

func init() {
	changeForms = []weighted[func(g *gen, t *table) *tree]{
		{30, changeInsert},
		{15, changeInsertSelect},
		{35, changeUpdate},
		{20, changeDelete},
		{15, changeMerge},
		{10, changeWith},
		{12, changePart},
		{8, changeRow},
		{8, changeDefaults},
		{8, changeSeveral},
	}
}

func (g *gen) change() (*tree, *table) {
	t := pick(g, g.world.tables)
	return choose(g, changeForms)(g, t), t
}

// returning is RETURNING over the changed rows.
func (g *gen) returning(s *scope) *tree {
	if !g.chance(50) {
		return nil
	}
	if g.chance(30) {
		return opt(" RETURNING *")
	}
	var list []*tree
	for range 1 + g.IntN(3) {
		t := g.anyColumnType(s)
		list = append(list, g.expr(t, s, g.IntN(3)))
	}
	return opt(" RETURNING ", listOf(", ", 1, list...))
}

// own is the scope of a statement's own table, by its name.
func (t *table) own() *scope { return &scope{columns: qualified(t.name, t.columns)} }

func changeInsert(g *gen, t *table) *tree {
	var rows []*tree
	for range 1 + g.IntN(4) {
		row := []*tree{leaf(fmt.Sprint(1 + g.IntN(24)))}
		for _, c := range t.columns[1:] {
			if g.chance(10) {
				row = append(row, leaf("DEFAULT"))
			} else {
				row = append(row, g.expr(c.typ, nil, g.IntN(2)))
			}
		}
		rows = append(rows, seq("(", joined(row), ")"))
	}
	return seq("INSERT INTO "+t.name+" VALUES ", listOf(", ", 1, rows...), g.onConflict(t), g.returning(t.own()))
}

func (g *gen) onConflict(t *table) *tree {
	if !t.key || !g.chance(45) {
		return nil
	}
	if g.chance(40) {
		return opt(" ON CONFLICT DO NOTHING")
	}
	c := pick(g, t.columns[1:])
	s := t.own()
	s.columns = append(s.columns, qualified("excluded", t.columns)...)
	return opt(" ON CONFLICT (id) DO UPDATE SET "+c.name+" = ", g.expr(c.typ, s, 2), g.where(s))
}

func (g *gen) where(s *scope) *tree {
	if !g.chance(65) {
		return nil
	}
	return opt(" WHERE ", g.boolean(s, 1+g.IntN(2)))
}

func changeInsertSelect(g *gen, t *table) *tree {
	other := pick(g, g.world.tables)
	s := &scope{columns: qualified("o", other.columns)}
	list := []*tree{seq("o.id + 100")}
	names := []*tree{leaf("id")}
	for _, c := range t.columns[1:] {
		if g.chance(80) {
			names = append(names, leaf(c.name))
			list = append(list, g.expr(c.typ, s, g.IntN(2)))
		}
	}
	return seq("INSERT INTO "+t.name+" (", joined(names), ") SELECT ", joined(list), " FROM "+other.name+" o", g.where(s), g.returning(t.own()))
}

func changeUpdate(g *gen, t *table) *tree {
	s := t.own()
	var from, cond *tree
	other := pick(g, g.world.tables)
	if other.key && g.chance(25) {
		// A row joins one row of the other table at most, by its key.
		for _, c := range t.columns {
			if c.typ.oid == types.OIDInt4 {
				from = leaf(" FROM " + other.name + " AS o")
				cond = leaf(t.name + "." + c.name + " = o.id")
				s.columns = append(s.columns, qualified("o", other.columns)...)
				break
			}
		}
	}
	var sets []*tree
	for _, i := range g.Perm(len(t.columns) - 1)[:1+g.IntN(len(t.columns)-1)] {
		c := t.columns[i+1]
		sets = append(sets, seq(c.name+" = ", g.expr(c.typ, s, g.IntN(3))))
	}
	var where *tree
	if cond != nil {
		where = seq(" WHERE ", cond, opt(" AND ", g.boolean(s, 1)))
	} else {
		where = g.where(s)
	}
	return seq("UPDATE "+t.name+" SET ", listOf(", ", 1, sets...), from, where, g.returning(s))
}

func changeDelete(g *gen, t *table) *tree {
	s := t.own()
	other := pick(g, g.world.tables)
	if g.chance(20) {
		with := &scope{columns: append(qualified("o", other.columns), s.columns...)}
		returning := g.returning(s)
		if returning != nil && len(returning.kids) == 1 {
			returning = opt(" RETURNING " + t.name + ".*") // Which of several rows of the other table a row meets is left open.
		}
		return seq("DELETE FROM "+t.name+" USING "+other.name+" AS o WHERE ", g.boolean(with, 2), returning)
	}
	return seq("DELETE FROM "+t.name, g.where(s), g.returning(s))
}

// changeMerge joins a row with one row of another table at most, by their keys.
func changeMerge(g *gen, t *table) *tree {
	other := pick(g, g.world.tables)
	if !t.key || !other.key {
		return changeUpdate(g, t)
	}
	source := &scope{columns: qualified("o", other.columns)}
	both := &scope{columns: append(qualified(t.name, t.columns), source.columns...)}
	when := func(match string, s *scope, action *tree) *tree {
		var cond *tree
		if g.chance(50) {
			cond = opt(" AND ", g.boolean(s, 1))
		}
		return seq(" WHEN "+match, cond, " THEN ", action)
	}
	var whens []*tree
	for range 1 + g.IntN(3) {
		c := pick(g, t.columns[1:])
		switch g.IntN(5) {
		case 0:
			whens = append(whens, when("MATCHED", both, leaf("DELETE")))
		case 1:
			whens = append(whens, when(pick(g, []string{"MATCHED", "NOT MATCHED"}), source, leaf("DO NOTHING")))
		case 2:
			whens = append(whens, when("NOT MATCHED", source, seq("INSERT (id, "+c.name+") VALUES (o.id, ", g.expr(c.typ, source, g.IntN(2)), ")")))
		default:
			whens = append(whens, when("MATCHED", both, seq("UPDATE SET "+c.name+" = ", g.expr(c.typ, both, g.IntN(3)))))
		}
	}
	return seq(fmt.Sprintf("MERGE INTO %s USING %s AS o ON %s.id = o.id + %d", t.name, other.name, t.name, g.IntN(3)), listOf("", 1, whens...))
}

// changeWith reads the rows that a data-modifying WITH item returns, beside the table as it was.
func changeWith(g *gen, t *table) *tree {
	s := t.own()
	item := pick(g, []*tree{
		seq("DELETE FROM "+t.name, g.where(s)),
		seq("UPDATE "+t.name+" SET id = id + 50", g.where(s)),
		leaf(fmt.Sprintf("INSERT INTO %s (id) VALUES (%d), (%d)", t.name, 30+g.IntN(9), 40+g.IntN(9))),
	})
	columns := append(qualified("m", t.columns), qualified("o", t.columns)...)
	var list []*tree
	for range 1 + g.IntN(3) {
		list = append(list, g.expr(g.anyColumnType(&scope{columns: columns}), &scope{columns: columns}, g.IntN(3)))
	}
	return seq("WITH m AS (", item, " RETURNING *) SELECT ", listOf(", ", 1, list...), " FROM m FULL JOIN "+t.name+" AS o ON m.id = o.id", g.where(&scope{columns: columns}))
}
