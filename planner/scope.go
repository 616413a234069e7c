package planner

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// nameIndexFrom is the number of columns in sight from which names are looked up in a map.
const nameIndexFrom = 48

// scope contains the visible names of one query level, and the kinds of expressions that are currently permitted.
type scope struct {
	b     *binder
	outer *scope // the enclosing query's, nil at the top
	depth int
	items []nsItem
	ctes  *cteScope
	given bool // its columns are parameters, which belong to no query
	// names indexes the visible columns once there are many; nil until then.
	names   map[string][]nsCol
	indexed int // items that names covers
	barred  barredItems
	seen    int // the items before it do not see the names of the join being bound, whose alias will hide them

	clause string // what is being bound, for errors: "WHERE"
	sel    *selectState
	aggsOK bool // aggregates are permitted
	inAgg  bool // inside an aggregate's arguments
	setsOK bool // set-returning functions are permitted
	setPos int  // of the last call of one that was bound
	winsOK bool // window functions are permitted
	inWin  bool // inside a window function's arguments
	// noSubqueries is the error of a subquery in an expression that may have none; nil: it may.
	noSubqueries error
}

// barredItems is a range of a scope's items to which the FROM item being bound must not refer, though it may refer to
// others before it: the target of an UPDATE or DELETE, and the left side of a RIGHT or FULL JOIN.
type barredItems struct {
	from, to int
	joined   bool // by RIGHT or FULL JOIN
	// unmatched: they are the target of a MERGE, in a clause for rows that it does not have.
	unmatched bool
}

// hold refuses a reference to item i if it is barred.
func (r *barredItems) hold(i int, alias string, pos int) error {
	if i < r.from || i >= r.to {
		return nil
	}
	if r.unmatched {
		return pgerror.New(pgerror.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", alias).At(pos).
			WithHint("There is an entry for table \"" + alias + "\", but it cannot be referenced from this part of the query.")
	}
	e := pgerror.New(pgerror.InvalidColumnReference, "invalid reference to FROM-clause entry for table \"%s\"", alias).At(pos)
	if r.joined {
		return e.WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
	}
	return e.WithHint("There is an entry for table \"" + alias + "\", but it cannot be referenced from this part of the query.")
}

// holdColumn refuses a reference to an open column of a barred item.
func (sc *scope) holdColumn(name string, pos int) error {
	for i := sc.barred.from; i < sc.barred.to; i++ {
		it := &sc.items[i]
		for j := range it.cols {
			if it.open && it.cols[j].name == name {
				return sc.barred.hold(i, it.alias, pos)
			}
		}
	}
	return nil
}

// nsItem is a table in sight.
type nsItem struct {
	schema, alias string
	cols          []nsCol
	system        []nsCol // those of a table that only their names refer to
	rel           bool    // may be named as a qualifier
	given         bool    // its columns are parameters
	open          bool    // its columns may be named without one
	sequence      bool    // it is the row of a sequence
	merged        bool    // it is the columns that USING merges, by an alias
	work          bool    // the reference of a recursive term to its own query
	scalar        bool    // it is the values of a function that returns no records: its row is the value
	scan          *scanRel
	query         *query                   // of a subquery or view
	relation      *catalog.TableDescriptor // of a table or view, whose row type whole rows have; nil: none, as of a subquery
	of            types.Type               // of a function that returns rows of a composite type
	absent        *absence                 // of a side of an outer join that may have no row
	view          *Need                    // of a view: what reading it needs
	// returned is the change whose RETURNING has the row; 0: none. mayReplace: of an INSERT that may have updated an existing row.
	returned   catalog.TriggerEvents
	mayReplace bool
	// unlockable describes the item if FOR UPDATE OF cannot name it.
	unlockable string
}

// nsCol is a column in sight: a column ID, or the expression that a merged column of a join is.
type nsCol struct {
	name string
	id   int
	e    expr.Scalar // nil: the column id
	// need is what naming the column adds its ordinal to; nil: it is no column of a relation.
	need    *Need
	ordinal int
}

// selectState is the state of one SELECT while its expressions are bound.
type selectState struct {
	stmt *ast.Select
	own  colSet // columns of its FROM
	aggs []aggregation
	sets []setProjection
	// groupSets are those of sets that GROUP BY groups by: they run before the grouping.
	groupSets []setProjection
	grouped   bool
	groupings []groupingCall
	// windows are the entries of its WINDOW clause and the specifications of OVER.
	windows []*windowDef
}

func newScope(b *binder, outer *scope) *scope {
	sc := &scope{b: b, outer: outer}
	if outer != nil {
		sc.depth = outer.depth + 1
		sc.ctes = outer.ctes
	}
	return sc
}

// in sets the clause being bound and what it may contain. Where aggregates may stand, so may window functions, except in
// HAVING.
func (sc *scope) in(clause string, aggs, sets bool) {
	sc.clause, sc.aggsOK, sc.setsOK, sc.winsOK = clause, aggs, sets, aggs && clause != "HAVING"
}

// value makes the expression for a column in sight.
func (c *nsCol) value(b *binder, pos int) expr.Scalar {
	if c.need != nil {
		c.need.selectColumn(c.ordinal)
		if b.onName != nil && b.naming != nil {
			b.onName(b.naming, c.need.Relation, c.ordinal)
		}
	}
	if in, ok := c.e.(*expr.Input); ok {
		x := *in
		x.Pos = pos
		return &x
	}
	if c.e != nil {
		return expr.Clone(c.e)
	}
	return b.column(c.id, pos)
}

// columnName returns the name of a column of this level's FROM for messages: with the item's alias and its name there,
// which for a subquery differs from that of the column below.
func (sc *scope) columnName(c *expr.Column) string {
	for i := range sc.items {
		it := &sc.items[i]
		for j := range it.cols {
			if it.cols[j].e == nil && it.cols[j].id == c.ID && it.alias != "" {
				return it.alias + "." + it.cols[j].name
			}
		}
	}
	return c.Name
}

// limitScope is the scope whose columns a LIMIT must not name, not in its subqueries either.
type limitScope struct {
	depth int
	named bool
}

// tracker finds the deepest scope, up to that at depth, whose columns an aggregate's arguments name; -1: none.
type tracker struct{ depth, deepest int }

// touch records for aggregates and limits being bound that a column of the scope at depth was named.
func (b *binder) touch(depth int) {
	for _, t := range b.trackers {
		if depth <= t.depth { // Deeper ones are of subqueries in the aggregate's arguments.
			t.deepest = max(t.deepest, depth)
		}
	}
	for i := range b.limits {
		l := &b.limits[i]
		l.named = l.named || l.depth == depth
	}
}

// columnRef binds a possibly qualified name.
func (sc *scope) columnRef(e *ast.ColumnRef) (expr.Scalar, error) {
	if vars := sc.b.opts.Variables; vars != nil {
		return sc.columnOrVariable(e, vars)
	}
	return sc.column(e)
}

// column binds the name of a column.
func (sc *scope) column(e *ast.ColumnRef) (expr.Scalar, error) {
	sc.b.naming = e
	defer func() { sc.b.naming = nil }()
	switch len(e.Parts) {
	case 1:
		return sc.bareColumn(e.Parts[0], int(e.Pos))
	case 2, 3:
		schema := ""
		if len(e.Parts) == 3 {
			schema = e.Parts[0]
		}
		table, name := e.Parts[len(e.Parts)-2], e.Parts[len(e.Parts)-1]
		x, err := sc.qualifiedColumn(schema, table, name, int(e.Pos))
		switch errorCode(err) {
		case pgerror.UndefinedTable:
			if arg := sc.argument(e.Parts[:len(e.Parts)-1], int(e.Pos)); arg != nil {
				return compositeField(arg, &ast.Field{Pos: e.Pos, X: e, Name: name})
			}
		case pgerror.UndefinedColumn:
			if call := sc.functionOfRow(name, &ast.Star{Pos: e.Pos, Table: e.Parts[:len(e.Parts)-1]}, e.Pos); call != nil {
				return call, nil
			}
		}
		return x, err
	}
	return nil, pgerror.Unsupported("a name of more than three parts", "Qualify columns as schema.table.column.").At(int(e.Pos))
}

// argument returns the argument of a function, which its body names, if that is a row; nil if it is none. The name of the function may stand
// before it.
func (sc *scope) argument(parts []string, pos int) expr.Scalar {
	for at := sc; at != nil; at = at.outer {
		for i := range at.items {
			it := &at.items[i]
			if !it.given || !it.open || len(parts) > 1 && parts[0] != it.alias {
				continue
			}
			for j := range it.cols {
				if it.cols[j].name != parts[len(parts)-1] {
					continue
				}
				if x := undomain(it.cols[j].value(sc.b, pos)); x.Type().IsComposite() {
					return x
				}
			}
		}
	}
	return nil
}

func (sc *scope) bareColumn(name string, pos int) (expr.Scalar, error) {
	for at := sc; at != nil; at = at.outer {
		col, n := at.find(name)
		if n == 0 {
			var err error
			if col, n, err = at.findSystem(name, pos); err != nil {
				return nil, err
			}
		}
		if n > 1 {
			return nil, pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", name).At(pos)
		}
		if n == 1 {
			if err := at.holdColumn(name, pos); err != nil {
				return nil, err
			}
			if !at.given {
				sc.b.touch(at.depth)
			}
			return col.value(sc.b, pos), nil
		}
	}
	// Not a column: a table's name means its whole row.
	for at := sc; at != nil; at = at.outer {
		for i := range at.items {
			if it := &at.items[i]; it.rel && it.alias == name {
				if err := at.barred.hold(i, it.alias, pos); err != nil {
					return nil, err
				}
				if !it.given {
					sc.b.touch(at.depth)
				}
				return it.wholeRow(sc.b, pos), nil
			}
		}
	}
	return nil, undefinedColumn("", name, pos)
}

// find looks for an open column at this level and returns how many there are.
func (sc *scope) find(name string) (*nsCol, int) {
	if m := sc.index(); m != nil {
		cols := m[name]
		if len(cols) == 0 {
			return nil, 0
		}
		return &cols[0], len(cols)
	}
	var found *nsCol
	n := 0
	for i := range sc.items {
		it := &sc.items[i]
		if !it.open {
			continue
		}
		for j := range it.cols {
			if it.cols[j].name == name {
				found = &it.cols[j]
				n++
			}
		}
	}
	return found, n
}

// findSystem is find for system columns.
func (sc *scope) findSystem(name string, pos int) (found *nsCol, n int, err error) {
	for i := range sc.items {
		it := &sc.items[i]
		if !it.open {
			continue
		}
		c, err := it.systemColumn(sc.b, name, pos)
		if err != nil {
			return nil, 0, err
		}
		if c != nil {
			found = c
			n++
		}
	}
	return found, n, nil
}

// index returns the map of open columns, nil while there are few. It is built again after items were added or closed:
// FROM clauses are bound before most names are looked up.
func (sc *scope) index() map[string][]nsCol {
	if sc.names != nil && sc.indexed == len(sc.items) {
		return sc.names
	}
	total := 0
	for i := range sc.items {
		total += len(sc.items[i].cols)
	}
	if total < nameIndexFrom {
		return nil
	}
	sc.names = make(map[string][]nsCol, total)
	for i := range sc.items {
		if !sc.items[i].open {
			continue
		}
		for _, c := range sc.items[i].cols {
			sc.names[c.name] = append(sc.names[c.name], c)
		}
	}
	sc.indexed = len(sc.items)
	return sc.names
}

// table finds a table in sight by its qualifier, at the nearest level.
func (sc *scope) table(schema, alias string, pos int) (*nsItem, *scope, error) {
	hidden := false
	for at := sc; at != nil; at = at.outer {
		for i := range at.items {
			it := &at.items[i]
			if it.alias != alias || (schema != "" && it.schema != schema) {
				continue
			}
			if it.rel {
				if at.namedAgain(i, schema) {
					return nil, nil, pgerror.New(pgerror.AmbiguousAlias, "table reference \"%s\" is ambiguous", alias).At(pos)
				}
				return it, at, at.barred.hold(i, it.alias, pos)
			}
			hidden = true
		}
	}
	if hidden {
		return nil, nil, pgerror.New(pgerror.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", alias).
			WithHint("There is an entry for table \"" + alias + "\", but it cannot be referenced from this part of the query.").At(pos)
	}
	for at := sc; at != nil; at = at.outer {
		for i := range at.items {
			// The table is there under an alias, which hides its name.
			if it := &at.items[i]; it.scan != nil && it.rel && it.scan.table.Name == alias {
				return nil, nil, pgerror.New(pgerror.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", alias).
					WithHint("Perhaps you meant to reference the table alias \"" + it.alias + "\".").At(pos)
			}
		}
	}
	return nil, nil, pgerror.New(pgerror.UndefinedTable, "missing FROM-clause entry for table \"%s\"", alias).At(pos)
}

// namedAgain reports whether a later item of this level has the same qualifier as the item i.
func (sc *scope) namedAgain(i int, schema string) bool {
	for j := i + 1; j < len(sc.items); j++ {
		if it := &sc.items[j]; it.rel && it.alias == sc.items[i].alias && (schema == "" || it.schema == schema) {
			return true
		}
	}
	return false
}

func (sc *scope) qualifiedColumn(schema, table, name string, pos int) (expr.Scalar, error) {
	it, at, err := sc.table(schema, table, pos)
	if err != nil {
		return nil, err
	}
	var found *nsCol
	for i := range it.cols {
		if it.cols[i].name != name {
			continue
		}
		if found != nil {
			return nil, pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", name).At(pos)
		}
		found = &it.cols[i]
	}
	if found == nil {
		if found, err = it.systemColumn(sc.b, name, pos); err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, undefinedColumn(table, name, pos)
	}
	if !it.given {
		sc.b.touch(at.depth)
	}
	return found.value(sc.b, pos), nil
}

// addItem puts a table in sight; two of one name are an error.
func (sc *scope) addItem(it nsItem) error {
	if it.rel && it.alias != "" {
		for i := sc.seen; i < len(sc.items); i++ {
			have := &sc.items[i]
			if have.rel && have.alias == it.alias && (have.schema == it.schema || have.schema == "" || it.schema == "") {
				return pgerror.New(pgerror.DuplicateAlias, "table name \"%s\" specified more than once", it.alias)
			}
		}
	}
	sc.items = append(sc.items, it)
	return nil
}

// typeOf resolves a written type; the plan depends on it then.
func (b *binder) typeOf(t ast.TypeName) (types.Type, error) {
	typ, err := ResolveType(&t, b.r)
	if err != nil {
		return typ, err
	}
	if typ.Def != nil && len(t.Name) > 1 && b.opts.Access != nil && b.opts.Access.Schema(t.Name[0], acl.Usage) == 0 {
		return types.Type{}, SchemaDenied(t.Name[0], int(t.Pos))
	}
	b.useType(typ)
	b.useExtension(builtin.TypeUse(typ))
	return typ, nil
}

// ResolveType resolves a type as written. r has the user-defined ones; nil: none can be meant.
//
// Errors: 42704 no such type, 3F000 no such schema, those of the modifiers.
func ResolveType(t *ast.TypeName, r catalog.Resolver) (types.Type, error) {
	if t.SetOf {
		return types.Type{}, pgerror.Unsupported("SETOF", "Name the element type.").At(int(t.Pos))
	}
	name := t.Name
	if len(name) == 2 && name[0] == "pg_catalog" {
		name = name[1:]
	}
	if len(name) == 1 {
		typ, err := types.Lookup(name[0], t.Mods, t.Array)
		if e, ok := err.(*pgerror.Error); !ok || e.Code != pgerror.UndefinedObject && e.Code != pgerror.FeatureNotSupported {
			return typ, at(err, int(t.Pos))
		}
		if r != nil {
			if found := catalog.FindType(r, "", name[0]); found.Valid() {
				return definedType(t, found)
			}
		}
		return typ, at(err, int(t.Pos))
	}
	if len(name) == 2 && r != nil {
		if found := catalog.FindType(r, name[0], name[1]); found.Valid() {
			return definedType(t, found)
		}
		if _, exists := r.Grants().Schemas[name[0]]; !exists {
			return types.Type{}, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name[0]).At(int(t.Pos))
		}
	}
	return types.Type{}, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", strings.Join(name, ".")).At(int(t.Pos))
}

// definedType applies the brackets that are written after a user-defined type. It has no modifiers.
func definedType(t *ast.TypeName, typ types.Type) (types.Type, error) {
	if len(t.Mods) > 0 {
		return types.Type{}, pgerror.New(pgerror.SyntaxError, "type modifier is not allowed for type \"%s\"", t.Name[len(t.Name)-1]).At(int(t.Pos))
	}
	if t.Array == 0 || typ.IsArray() {
		return typ, nil
	}
	return typ.ArrayOf(), nil
}

// useType records that the plan depends on a type.
func (b *binder) useType(t types.Type) {
	if t.Def != nil && t.Def.Relation != 0 {
		// A row type changes with its relation.
		if rel, err := b.r.RelationByID(b.ctx, t.Def.Relation); err == nil && rel != nil {
			b.use(rel)
		}
		return
	}
	if t.Def != nil && !slices.Contains(b.types, t.Def) {
		b.types = append(b.types, t.Def)
		b.useType(t.Def.Parent)
		if rt := t.Ranges(); rt != nil {
			b.useType(rt.Range)
			b.useType(rt.Sub)
		}
		for i := range t.Def.Fields {
			b.useType(t.Def.Fields[i].Type)
		}
	}
}

// at adds a position to an error that has none. Errors of package types may be shared values, so
// the error is copied.
func at(err error, pos int) error {
	e, ok := err.(*pgerror.Error)
	if !ok || e.Position != 0 || pos == 0 {
		return err
	}
	c := *e
	c.Position = pos
	return &c
}
