package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// fromList binds the items of FROM from left to right and joins them to root, which may be nil; it
// returns root for no items.
func (b *binder) fromList(sc *scope, root rel, items []ast.TableExpr) (rel, error) {
	for _, it := range items {
		r, err := b.tableExpr(sc, it)
		if err != nil {
			return nil, err
		}
		if root == nil {
			root = r
			continue
		}
		root = &joinRel{kind: InnerJoin, left: root, right: r, lateral: b.isLateral(it, r, root)}
	}
	return root, nil
}

// isLateral reports whether right, which was bound from t, reads columns of left.
func (b *binder) isLateral(t ast.TableExpr, right, left rel) bool {
	lateral := mayBeLateral(t) && freeColumns(right).intersects(outputSet(left))
	b.laterals = b.laterals || lateral
	return lateral
}

// mayBeLateral reports whether a FROM item may refer to the items before it: only LATERAL and functions
// may. It spares the others the search for free columns.
func mayBeLateral(t ast.TableExpr) bool {
	switch t := t.(type) {
	case *ast.DerivedTable:
		return t.Lateral
	case *ast.TableFunc, *ast.RowsFrom:
		return true
	case *ast.Join:
		return mayBeLateral(t.L) || mayBeLateral(t.R)
	}
	return false
}

func (b *binder) tableExpr(sc *scope, t ast.TableExpr) (rel, error) {
	switch t := t.(type) {
	case *ast.TableRef:
		return b.tableRef(sc, t)
	case *ast.DerivedTable:
		return b.derivedTable(sc, t)
	case *ast.TableFunc:
		return b.tableFunc(sc, t)
	case *ast.RowsFrom:
		return b.rowsFrom(sc, t)
	case *ast.Join:
		if t.Columns != nil {
			return b.derivedTable(sc, joinWithColumns(t))
		}
		return b.join(sc, t)
	}
	return nil, pgerror.New(pgerror.InternalError, "unknown table expression %T", t)
}

// joinWithColumns returns a join whose alias gives names to columns as a subquery of all that the join has.
func joinWithColumns(t *ast.Join) *ast.DerivedTable {
	join := *t
	join.Alias, join.Columns = "", nil
	all := &ast.Select{
		Pos:     t.Pos,
		Columns: []ast.SelectItem{{Expr: &ast.Star{Pos: t.Pos}}},
		From:    []ast.TableExpr{&join},
	}
	return &ast.DerivedTable{Pos: t.Pos, Query: &ast.Query{Pos: t.Pos, Body: all}, Alias: t.Alias, Columns: t.Columns}
}

func (b *binder) tableRef(sc *scope, t *ast.TableRef) (rel, error) {
	alias := t.Alias
	if alias == "" {
		alias = t.Name.Name
	}
	if t.Name.Schema == "" {
		if def := sc.ctes.find(t.Name.Name); def != nil {
			if t.Sample != nil {
				return nil, unsampled(t)
			}
			return b.cteRef(sc, def, t, alias)
		}
	}
	table, err := b.relation(t.Name)
	if err != nil {
		return nil, err
	}
	if t.Sample != nil && (table.Kind == catalog.KindView || table.Kind == catalog.KindSequence) {
		return nil, unsampled(t)
	}
	switch {
	case table.Kind == catalog.KindView && !b.shallow:
		return b.view(sc, table, t, alias)
	case table.Kind == catalog.KindSequence:
		return b.sequenceTable(sc, table, t, alias)
	}
	if table.Materialized && !table.Populated && b.unpopulated == "" {
		b.unpopulated = table.Name
	}
	if table.Outdated(&table.Primary) {
		return nil, requireCurrent(table, &table.Primary)
	}
	s := b.newScan(table, alias, b.need(table, acl.Select))
	item := nsItem{alias: alias, rel: true, open: true, scan: s, relation: table}
	if t.Alias == "" {
		item.schema = table.Schema
	}
	item.cols = make([]nsCol, 0, len(table.Columns))
	for i := range table.Columns {
		col := nsCol{name: table.Columns[i].Name, id: s.cols[i], need: s.need, ordinal: i}
		switch {
		case !table.Columns[i].Hidden:
			item.cols = append(item.cols, col)
		case table.Kind == catalog.KindVirtual:
			item.system = append(item.system, col)
		}
	}
	if err := b.rename(&item, t.Columns, alias, int(t.Pos)); err != nil {
		return nil, err
	}
	r, err := b.guardScan(s)
	if err == nil {
		err = b.restrict(s, catalog.PolicySelect)
	}
	if err == nil && t.Sample != nil {
		r, err = b.sample(sc, s, r, t.Sample)
	}
	if err != nil {
		return nil, err
	}
	b.notes.item(t, &item)
	return r, sc.addItem(item)
}

// rename applies the column aliases of AS t(a, b).
func (b *binder) rename(item *nsItem, names []string, alias string, pos int) error {
	if len(names) > len(item.cols) {
		return pgerror.New(pgerror.InvalidColumnReference,
			"table \"%s\" has %d columns available but %d columns specified", alias, len(item.cols), len(names)).At(pos)
	}
	for i, name := range names {
		item.cols[i].name = name
		if item.cols[i].e == nil {
			b.cols[item.cols[i].id].Name = name
		}
	}
	return nil
}

// relation finds a table, view or sequence; 42P01 when there is none.
func (b *binder) relation(name ast.TableName) (*catalog.TableDescriptor, error) {
	t, err := b.r.Relation(b.ctx, name.Schema, name.Name)
	if err != nil {
		return nil, err
	}
	b.needSchema(name)
	if t == nil {
		if a := b.opts.Access; name.Schema != "" && a != nil {
			if _, exists := a.Grants.Schemas[name.Schema]; exists && a.Schema(name.Schema, acl.Usage) == 0 {
				return nil, SchemaDenied(name.Schema, int(name.Pos))
			}
		}
		full := name.Name
		if name.Schema != "" {
			full = name.Schema + "." + name.Name
		}
		return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", full).At(int(name.Pos))
	}
	if found := (FoundName{name.Name, t.ID}); name.Schema == "" && !slices.Contains(b.names, found) {
		b.names = append(b.names, found)
	}
	return t, b.samePresent(t)
}

// view expands a view: its text is bound with none of the statement's names in sight.
func (b *binder) view(sc *scope, v *catalog.TableDescriptor, t *ast.TableRef, alias string) (rel, error) {
	if err := b.enter(int(t.Pos)); err != nil {
		return nil, err
	}
	defer b.leave()
	for _, id := range b.views {
		if id == v.ID {
			return nil, pgerror.New(pgerror.InvalidTableDefinition, "infinite recursion detected in rules for relation \"%s\"", v.Name).At(int(t.Pos))
		}
	}
	b.use(v)
	stmt, err := sql.ParseStatement(v.ViewQuery)
	if err != nil {
		return nil, textError(err, "view", v.Name)
	}
	parsed, ok := stmt.(*ast.Query)
	if !ok {
		return nil, pgerror.New(pgerror.DataCorrupted, "view \"%s\" does not hold a query", v.Name)
	}
	need := b.need(v, acl.Select)
	slots, as, r := b.noSlots, b.as, b.r
	b.noSlots, b.r = true, catalog.ForStored(b.r)
	if b.as = v.OwnerOID(); v.SecurityInvoker {
		b.as = 0 // Also below a view of another owner.
	}
	b.views = append(b.views, v.ID)
	restore := b.detached()
	q, err := b.bindQuery(parsed, nil, true)
	restore()
	b.views = b.views[:len(b.views)-1]
	b.noSlots, b.as, b.r = slots, as, r
	if err != nil {
		return nil, textError(err, "view", v.Name)
	}
	item := nsItem{alias: alias, rel: true, open: true, query: q, view: need, relation: v}
	if t.Alias == "" {
		item.schema = v.Schema
	}
	for i, c := range q.cols {
		name := c.name
		if i < len(v.Columns) {
			name = v.Columns[i].Name
		}
		item.cols = append(item.cols, nsCol{name: name, id: c.id, need: need, ordinal: i})
	}
	if err := b.rename(&item, t.Columns, alias, int(t.Pos)); err != nil {
		return nil, err
	}
	root := q.root
	if v.SecurityBarrier {
		root = &barrierRel{input: root}
	}
	return root, sc.addItem(item)
}

// textError is an error in SQL text stored in the catalog: its position is meaningless to the client.
func textError(err error, kind, name string) error {
	e, ok := err.(*pgerror.Error)
	if !ok {
		return err
	}
	c := *e
	c.Position = 0
	c.Where = kind + " \"" + name + "\""
	return &c
}

func (b *binder) derivedTable(sc *scope, t *ast.DerivedTable) (rel, error) {
	outer := sc.outer
	if t.Lateral {
		outer = sc
		saved := sc.clause
		sc.in("FROM", false, false)
		defer func() { sc.clause = saved }()
	}
	q, err := b.bindQuery(t.Query, outer, true)
	if err != nil {
		return nil, err
	}
	item := nsItem{alias: t.Alias, rel: t.Alias != "", open: true, query: q}
	for _, c := range q.cols {
		item.cols = append(item.cols, nsCol{name: c.name, id: c.id})
	}
	if err := b.renameDerived(&item, t.Columns, t.Alias); err != nil {
		return nil, err
	}
	b.notes.item(t, &item)
	return q.root, sc.addItem(item)
}

func (b *binder) renameDerived(item *nsItem, names []string, alias string) error {
	if len(names) > len(item.cols) {
		return pgerror.New(pgerror.InvalidColumnReference,
			"table \"%s\" has %d columns available but %d columns specified", alias, len(item.cols), len(names))
	}
	for i, name := range names {
		item.cols[i].name = name
	}
	return nil
}

// join binds an explicit join.
func (b *binder) join(sc *scope, t *ast.Join) (rel, error) {
	if err := b.enter(int(t.Pos)); err != nil {
		return nil, err
	}
	defer b.leave()
	first, seen := len(sc.items), sc.seen
	if t.Alias != "" {
		sc.seen = first
	}
	defer func() { sc.seen = seen }()
	left, err := b.tableExpr(sc, t.L)
	if err != nil {
		return nil, err
	}
	middle := len(sc.items)
	barred := sc.barred
	if t.Kind == ast.RightJoin || t.Kind == ast.FullJoin {
		sc.barred = barredItems{from: first, to: middle, joined: true}
	}
	right, err := b.tableExpr(sc, t.R)
	sc.barred = barred
	if err != nil {
		return nil, err
	}
	j := &joinRel{left: left, right: right}
	j.lateral = b.isLateral(t.R, right, left)
	joined := len(sc.items)
	if err := b.joinCondition(sc, j, t, first, middle); err != nil {
		return nil, err
	}
	b.joinKind(j, t.Kind)
	if t.Kind == ast.LeftJoin || t.Kind == ast.FullJoin {
		sc.mayBeAbsent(middle, joined, &j.right)
	}
	switch t.Kind {
	case ast.RightJoin:
		sc.mayBeAbsent(first, middle, &j.right)
	case ast.FullJoin:
		sc.mayBeAbsent(first, middle, &j.left)
	}
	if t.Alias != "" {
		sc.seen = seen
		return j, b.aliasJoin(sc, t, first)
	}
	return j, nil
}

// joinKind sets the kind; a right join is a left join with its sides swapped.
func (b *binder) joinKind(j *joinRel, kind ast.JoinKind) {
	switch kind {
	case ast.LeftJoin:
		j.kind = LeftJoin
	case ast.RightJoin:
		j.kind = LeftJoin
		j.left, j.right = j.right, j.left
	case ast.FullJoin:
		j.kind = FullJoin
	default:
		j.kind = InnerJoin
	}
}

// joinCondition binds ON, USING or NATURAL.
func (b *binder) joinCondition(sc *scope, j *joinRel, t *ast.Join, first, middle int) error {
	names := t.Using
	if t.Natural {
		names = commonNames(sc.items[first:middle], sc.items[middle:])
	}
	if b.notes != nil {
		b.notes.using[t] = names
	}
	if t.Natural || len(names) > 0 {
		return b.joinUsing(sc, j, t, names, first, middle)
	}
	if t.On == nil {
		return nil
	}
	// ON sees only the two sides, and the enclosing queries.
	inner := &scope{b: b, outer: sc.outer, depth: sc.depth, ctes: sc.ctes, sel: sc.sel, items: sc.items[first:]}
	conds, err := b.condition(inner, t.On, "JOIN conditions")
	j.on = conds
	return err
}

// commonNames returns the open column names that both sides have, in the left side's order.
func commonNames(left, right []nsItem) []string {
	var names []string
	for _, l := range openColumns(left) {
		for _, r := range openColumns(right) {
			if l.name == r.name {
				names = append(names, l.name)
				break
			}
		}
	}
	return names
}

func openColumns(items []nsItem) []nsCol {
	var cols []nsCol
	for i := range items {
		if items[i].open {
			cols = append(cols, items[i].cols...)
		}
	}
	return cols
}

// joinUsing equates the named columns and puts one item in sight for the join: the merged columns,
// then the left side's others, then the right side's. The sides stay as qualifiers.
func (b *binder) joinUsing(sc *scope, j *joinRel, t *ast.Join, names []string, first, middle int) error {
	left, right := openColumns(sc.items[first:middle]), openColumns(sc.items[middle:])
	merged := nsItem{open: true}
	taken := map[string]bool{}
	var pairs [][2]*nsCol
	for _, name := range names {
		if taken[name] {
			return pgerror.New(pgerror.DuplicateColumn, "column name \"%s\" appears more than once in USING clause", name)
		}
		taken[name] = true
		l, err := usingColumn(left, name, "left")
		if err != nil {
			return err
		}
		r, err := usingColumn(right, name, "right")
		if err != nil {
			return err
		}
		pairs = append(pairs, [2]*nsCol{l, r})
		col, err := b.mergedColumn(t.Kind, l, r, int(t.Pos))
		if err != nil {
			return err
		}
		merged.cols = append(merged.cols, col)
	}
	for _, p := range pairs { // After all of them have met a common type.
		eq, err := b.operator("=", p[0].value(b, int(t.Pos)), p[1].value(b, int(t.Pos)), int(t.Pos))
		if err != nil {
			return err
		}
		j.on = append(j.on, eq)
	}
	common := nsItem{alias: t.UsingAlias, rel: true, merged: true, unlockable: "a join", cols: merged.cols[:len(merged.cols):len(merged.cols)]}
	for _, side := range [][]nsCol{left, right} {
		for _, c := range side {
			if !taken[c.name] {
				merged.cols = append(merged.cols, c)
			}
		}
	}
	for i := first; i < len(sc.items); i++ {
		sc.items[i].open = false
	}
	sc.items = append(sc.items, merged)
	if t.UsingAlias != "" {
		return sc.addItem(common)
	}
	return nil
}

func usingColumn(cols []nsCol, name, side string) (*nsCol, error) {
	var found *nsCol
	for i := range cols {
		if cols[i].name != name {
			continue
		}
		if found != nil {
			return nil, pgerror.New(pgerror.AmbiguousColumn, "common column name \"%s\" appears more than once in %s table", name, side)
		}
		found = &cols[i]
	}
	if found == nil {
		return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" specified in USING clause does not exist in %s table", name, side)
	}
	return found, nil
}

// mergedColumn returns the meaning of the merged name: the side that is never null-extended, or the first that is not
// NULL.
func (b *binder) mergedColumn(kind ast.JoinKind, l, r *nsCol, pos int) (nsCol, error) {
	pair := []expr.Scalar{l.value(b, pos), r.value(b, pos)}
	t, err := b.unify(pair, []int{0, 0}, "JOIN/USING")
	if err != nil {
		return nsCol{}, err
	}
	var e expr.Scalar
	switch kind {
	case ast.InnerJoin: // Of both, the one that has the type.
		if e = pair[0]; !isColumn(e) && isColumn(pair[1]) {
			e = pair[1]
		}
	case ast.RightJoin:
		e = pair[1]
	case ast.FullJoin:
		e = &expr.Coalesce{Args: pair, Typ: t}
	default:
		e = pair[0]
	}
	e = withoutMod(e, t)
	if c, ok := e.(*expr.Column); ok {
		return nsCol{name: l.name, id: c.ID}, nil
	}
	return nsCol{name: l.name, id: -1, e: e}, nil
}

func isColumn(x expr.Scalar) bool {
	_, ok := x.(*expr.Column)
	return ok
}

// aliasJoin hides a parenthesised join's tables behind its alias.
func (b *binder) aliasJoin(sc *scope, t *ast.Join, first int) error {
	item := nsItem{alias: t.Alias, rel: true, open: true, unlockable: "a join", cols: openColumns(sc.items[first:])}
	for i := first; i < len(sc.items); i++ {
		sc.items[i].open, sc.items[i].rel = false, false
	}
	return sc.addItem(item)
}
