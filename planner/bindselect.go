package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// target is an expression of a select list on its way to becoming a column.
type target struct {
	e    expr.Scalar
	name string
	pos  int
	id   int // when it has become a column
}

// sortItem is an ORDER BY item: which target it orders by.
type sortItem struct {
	target           int
	desc, nullsFirst bool
	pos              int
}

// selectBinder binds one SELECT.
type selectBinder struct {
	b       *binder
	s       *ast.Select
	q       *ast.Query // carries ORDER BY and LIMIT; nil for a side of a set operation
	sc      *scope
	sel     selectState
	from    rel
	where   []expr.Scalar
	having  expr.Scalar
	targets []target
	visible int // targets of the select list; those behind it are only sorted by
	order   []sortItem
	groups  []expr.Scalar
	// groupTargets are the entries of the select list that the groups were named by; -1: none.
	groupTargets []int
	// sets are the grouping sets, as indexes of groups; nil: GROUP BY has none.
	sets [][]int
	// groupIDs are the columns of the groups that are expressions.
	groupIDs []groupedExpr
	on       []int // DISTINCT ON: targets
}

// bindSelect binds a SELECT in PostgreSQL's order of clauses, so that of several errors the same one
// is reported.
func (b *binder) bindSelect(s *ast.Select, q *ast.Query, outer *scope) (*query, error) {
	if s.Into != nil { // The statement's own has been taken out of it (ast.Query.TakeInto).
		return nil, pgerror.New(pgerror.SyntaxError, "SELECT ... INTO is not allowed here").At(s.Into.Position())
	}
	if s.AsOf != nil && (b.travels == nil || !b.travels.MayTravel(s)) {
		return nil, pgerror.Unsupported("AS OF SYSTEM TIME inside of a statement",
			"Put it at the end of the outermost FROM: it holds for the whole statement.").At(startOf(s.AsOf))
	}
	sb := &selectBinder{b: b, s: s, q: q, sc: newScope(b, outer)}
	sb.sc.sel, sb.sel.stmt = &sb.sel, b.notes.original(s)
	for i := range s.Windows {
		sb.sel.windows = append(sb.sel.windows, &windowDef{ast: &s.Windows[i].Window, name: s.Windows[i].Name})
	}
	for _, step := range [...]func() error{
		sb.bindFrom, sb.bindTargets, sb.bindWhere, sb.bindHaving, sb.bindOrder, sb.bindGroups,
		sb.bindDistinct, sb.bindWindows, sb.group,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return sb.assemble()
}

func (sb *selectBinder) bindFrom() error {
	r, err := sb.b.fromList(sb.sc, nil, sb.s.From)
	if err != nil {
		return err
	}
	sb.from = r
	if r != nil {
		outputs(r, &sb.sel.own)
	}
	return nil
}

func (sb *selectBinder) bindTargets() error {
	sb.sc.in("SELECT", true, true)
	targets, err := sb.b.targetList(sb.sc, sb.s.Columns)
	sb.targets, sb.visible = targets, len(targets)
	if err == nil && sb.b.opts.Assign != nil {
		err = sb.assignedWhole()
	}
	return err
}

// maxTargets is how many columns a result may have, as in PostgreSQL: a message of the protocol counts 65,535.
const maxTargets = 1664

func errTooManyTargets() error {
	return pgerror.New(pgerror.TooManyColumns, "target lists can have at most %d entries", maxTargets)
}

// targetList binds a select list or RETURNING, stars expanded.
func (b *binder) targetList(sc *scope, items []ast.SelectItem) ([]target, error) {
	if len(items) > maxTargets {
		return nil, errTooManyTargets()
	}
	targets := make([]target, 0, len(items))
	for i := range items {
		if len(targets) > maxTargets {
			break
		}
		it := &items[i]
		switch e := it.Expr.(type) {
		case *ast.Star:
			expanded, err := b.expandStar(sc, targets, e)
			if err != nil {
				return nil, err
			}
			targets = expanded
			continue
		case *ast.Field:
			if e.Name == "*" {
				expanded, err := b.expandFields(sc, targets, e)
				if err != nil {
					return nil, err
				}
				targets = expanded
				continue
			}
		}
		x, err := sc.expr(it.Expr)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{e: x, name: it.Name, pos: startOf(it.Expr), id: -1})
	}
	if len(targets) > maxTargets {
		return nil, errTooManyTargets()
	}
	return targets, nil
}

func (b *binder) expandStar(sc *scope, targets []target, e *ast.Star) ([]target, error) {
	pos := int(e.Pos)
	if len(e.Table) > 0 {
		schema := ""
		if len(e.Table) > 1 {
			schema = e.Table[len(e.Table)-2]
		}
		it, at, err := sc.table(schema, e.Table[len(e.Table)-1], pos)
		if err != nil {
			if expanded, ok, e := b.variableStar(targets, e); ok || e != nil {
				return expanded, e
			}
			if arg := sc.argument(e.Table, pos); arg != nil {
				for i, f := range compositeFields(arg) {
					targets = append(targets, target{e: f, name: arg.Type().Def.Fields[i].Name, pos: pos, id: -1})
				}
				return targets, nil
			}
			return nil, err
		}
		b.touch(at.depth)
		return appendItem(b, targets, it, pos), b.noteStar(at, e, it)
	}
	var open []*nsItem
	for i := range sc.items {
		if it := &sc.items[i]; it.open {
			open = append(open, it)
			targets = appendItem(b, targets, it, pos)
		}
	}
	if open == nil {
		return nil, pgerror.New(pgerror.SyntaxError, "SELECT * with no tables specified is not valid").At(pos)
	}
	return targets, b.noteStar(sc, e, open...)
}

func appendItem(b *binder, targets []target, it *nsItem, pos int) []target {
	for i := range it.cols {
		targets = append(targets, target{e: it.cols[i].value(b, pos), name: it.cols[i].name, pos: pos, id: -1})
	}
	return targets
}

// expandFields expands (row).* of a record whose shape is known.
func (b *binder) expandFields(sc *scope, targets []target, e *ast.Field) ([]target, error) {
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(f expr.Scalar, name string) {
		targets, names = append(targets, target{e: f, name: name, pos: int(e.Pos), id: -1}), append(names, name)
	}
	if columns := sc.b.recordColumns(x); columns != nil {
		for i, c := range columns {
			add(&expr.Field{X: x, Index: i, Name: c.Name, Typ: c.Type}, c.Name)
		}
		return targets, b.noteFields(e, names)
	}
	if x = undomain(x); x.Type().IsComposite() {
		for i, f := range compositeFields(x) {
			add(f, x.Type().Def.Fields[i].Name)
		}
		return targets, b.noteFields(e, names)
	}
	rec, ok := x.(*expr.Record)
	if !ok {
		return nil, pgerror.New(pgerror.WrongObjectType, "type %s is not composite", x.Type()).At(int(e.Pos))
	}
	for i, f := range rec.Elems {
		add(f, rec.FieldName(i))
	}
	return targets, b.noteFields(e, names)
}

func (sb *selectBinder) bindWhere() error {
	conds, err := sb.b.condition(sb.sc, sb.s.Where, "WHERE")
	sb.where = conds
	return err
}

// condition binds a boolean clause and cuts it into conjuncts.
func (b *binder) condition(sc *scope, e ast.Expr, clause string) ([]expr.Scalar, error) {
	if e == nil {
		return nil, nil
	}
	sc.in(clause, false, false)
	x, err := sc.boolean(e, clause)
	if err != nil {
		return nil, err
	}
	return expr.Conjuncts(nil, x), nil
}

func (sb *selectBinder) bindHaving() error {
	if sb.s.Having == nil {
		return nil
	}
	sb.sc.in("HAVING", true, false)
	x, err := sb.sc.boolean(sb.s.Having, "HAVING")
	sb.having = x
	return err
}

func (sb *selectBinder) bindOrder() error {
	if sb.q == nil {
		return nil
	}
	for i := range sb.q.OrderBy {
		it := &sb.q.OrderBy[i]
		t, err := sb.orderTarget(it.Expr)
		if err != nil {
			return err
		}
		if err := requireOrder(sb.targets[t].e.Type(), startOf(it.Expr)); err != nil {
			return err
		}
		sb.order = append(sb.order, sortItem{t, it.Desc, it.NullsFirst, startOf(it.Expr)})
	}
	return nil
}

// orderTarget finds or adds the target an ORDER BY item means: a place, an output name, or an
// expression over the input, in this order.
func (sb *selectBinder) orderTarget(e ast.Expr) (int, error) {
	if lit := placeConstant(e); lit != nil {
		return placeOf(lit, sb.visible, "ORDER BY")
	}
	if i, err := sb.aliasTarget(e, "ORDER BY"); err != nil || i >= 0 {
		return i, err
	}
	return sb.exprTarget(e, "ORDER BY")
}

// aliasTarget finds the target of an output name; -1 for none.
func (sb *selectBinder) aliasTarget(e ast.Expr, clause string) (int, error) {
	ref, ok := e.(*ast.ColumnRef)
	if !ok || len(ref.Parts) != 1 {
		return -1, nil
	}
	found := -1
	for i := range sb.targets[:sb.visible] {
		if sb.targets[i].name != ref.Parts[0] {
			continue
		}
		if found >= 0 && !expr.Refers(sb.targets[found].e, sb.targets[i].e, nil) {
			return 0, pgerror.New(pgerror.AmbiguousColumn, "%s \"%s\" is ambiguous", clause, ref.Parts[0]).At(int(ref.Pos))
		}
		if found < 0 {
			found = i
		}
	}
	return found, nil
}

// exprTarget binds an expression and finds or adds its target.
func (sb *selectBinder) exprTarget(e ast.Expr, clause string) (int, error) {
	sb.sc.in(clause, clause == "ORDER BY" || clause == "DISTINCT ON", clause != "GROUP BY")
	x, err := sb.sc.expr(e)
	if err != nil {
		return 0, err
	}
	if x.Type().OID == types.OIDUnknown {
		if x, err = sb.b.coerce(x, types.TText, castImplicit, startOf(e)); err != nil {
			return 0, err
		}
	}
	for i := range sb.targets {
		if expr.Refers(sb.targets[i].e, x, nil) {
			return i, nil
		}
	}
	sb.targets = append(sb.targets, target{e: x, name: "?column?", pos: startOf(e), id: -1})
	return len(sb.targets) - 1, nil
}

// groupTarget returns the position of the entry of the select list that a key of GROUP BY names, by its number or alias; -1: none.
func (sb *selectBinder) groupTarget(e ast.Expr) (int, error) {
	if lit := placeConstant(e); lit != nil {
		e = lit
	}
	switch e := e.(type) {
	case *ast.Literal:
		return placeOf(e, sb.visible, "GROUP BY")
	case *ast.ColumnRef:
		if len(e.Parts) == 1 {
			if _, n := sb.sc.find(e.Parts[0]); n == 0 {
				return sb.aliasTarget(e, "GROUP BY")
			}
		}
	}
	return -1, nil
}

// groupExpr binds a GROUP BY item: a place; a column of FROM; an output name; an expression.
func (sb *selectBinder) groupExpr(e ast.Expr) (expr.Scalar, error) {
	i, err := sb.groupTarget(e)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		t := &sb.targets[i]
		if err := sb.checkGroupTarget(t); err != nil {
			return nil, err
		}
		if t.e.Type().OID == types.OIDUnknown {
			x, err := sb.b.coerce(t.e, types.TText, castImplicit, t.pos)
			if err != nil {
				return nil, err
			}
			t.e = x
		}
		return t.e, nil
	}
	sb.sc.in("GROUP BY", false, true)
	x, err := sb.sc.expr(e)
	if err != nil {
		return nil, err
	}
	if x.Type().OID == types.OIDUnknown {
		return sb.b.coerce(x, types.TText, castImplicit, startOf(e))
	}
	return x, nil
}

// checkGroupTarget refuses to group by an aggregate, and by GROUPING, which PostgreSQL calls one too.
func (sb *selectBinder) checkGroupTarget(t *target) error {
	ids := used(t.e)
	if slices.ContainsFunc(sb.sel.aggs, func(a aggregation) bool { return ids.has(a.id) }) ||
		slices.ContainsFunc(sb.sel.groupings, func(g groupingCall) bool { return ids.has(g.id) }) {
		return pgerror.New(pgerror.Grouping, "aggregate functions are not allowed in GROUP BY").At(t.pos)
	}
	return sb.sel.withoutWindows(t.e, "GROUP BY")
}

func (sb *selectBinder) bindDistinct() error {
	for _, e := range sb.s.DistinctOn {
		t, err := sb.distinctTarget(e)
		if err != nil {
			return err
		}
		if err := requireEquality(sb.targets[t].e.Type(), startOf(e)); err != nil {
			return err
		}
		sb.on = append(sb.on, t)
	}
	if sb.s.Distinct && len(sb.s.DistinctOn) == 0 {
		for _, o := range sb.order {
			if o.target >= sb.visible {
				return pgerror.New(pgerror.InvalidColumnReference,
					"for SELECT DISTINCT, ORDER BY expressions must appear in select list").At(o.pos)
			}
		}
		for i := range sb.targets[:sb.visible] {
			if err := requireEquality(sb.targets[i].e.Type(), sb.targets[i].pos); err != nil {
				return err
			}
		}
		return nil
	}
	return sb.checkDistinctOrder()
}

func (sb *selectBinder) distinctTarget(e ast.Expr) (int, error) {
	if lit := placeConstant(e); lit != nil {
		return placeOf(lit, sb.visible, "DISTINCT ON")
	}
	if i, err := sb.aliasTarget(e, "DISTINCT ON"); err != nil || i >= 0 {
		return i, err
	}
	return sb.exprTarget(e, "DISTINCT ON")
}

// checkDistinctOrder demands that ORDER BY begins with DISTINCT ON's expressions.
func (sb *selectBinder) checkDistinctOrder() error {
	in := func(t int) bool {
		for _, on := range sb.on {
			if on == t {
				return true
			}
		}
		return false
	}
	seen, skipped := map[int]bool{}, false
	for _, o := range sb.order {
		if len(sb.on) == 0 {
			return nil
		}
		if !in(o.target) {
			skipped = len(seen) < len(sb.on) || skipped
			continue
		}
		if skipped && !seen[o.target] {
			return pgerror.New(pgerror.InvalidColumnReference,
				"SELECT DISTINCT ON expressions must match initial ORDER BY expressions").At(o.pos)
		}
		seen[o.target] = true
	}
	if skipped && len(seen) < len(sb.on) {
		return pgerror.New(pgerror.InvalidColumnReference,
			"SELECT DISTINCT ON expressions must match initial ORDER BY expressions").At(startOf(sb.s.DistinctOn[0]))
	}
	return nil
}

// assemble stacks the bound clauses into a tree.
func (sb *selectBinder) assemble() (*query, error) {
	b := sb.b
	root := sb.windowSteps(sb.source())
	out := &query{}
	if len(sb.sel.sets) > 0 {
		root = projectSets(sb.projectSortKeys(root), sb.sel.sets)
	}
	out.sel = sb
	own := outputSet(root)
	items := &projectRel{}
	for i := range sb.targets {
		t := &sb.targets[i]
		// An outer query's column becomes one of this query's rows: an outer join may yet make it NULL.
		if c, ok := t.e.(*expr.Column); ok && own.has(c.ID) {
			t.id = c.ID
		} else {
			t.id = b.newColumn(t.name, t.e.Type())
			b.cols[t.id].fields = b.recordFields(t.e)
			items.items = append(items.items, projection{id: t.id, e: t.e})
		}
		if i < sb.visible {
			col := outCol{id: t.id, name: t.name, pos: t.pos}
			if c := t.e.Type().Coll; c.IsExplicit() {
				col.explicit, col.collateAt = c, explicitAt(t.e)
			}
			out.cols = append(out.cols, col)
		}
	}
	if len(items.items) > 0 {
		items.input = root
		root = items
		out.items = items
	}
	out.root = root
	if sb.s.Distinct || len(sb.order) > 0 {
		b.resolveUnknowns(out)
	}
	if err := sb.shape(out); err != nil {
		return nil, err
	}
	return out, nil
}

// source is FROM, WHERE, grouping and HAVING.
func (sb *selectBinder) source() rel {
	root := sb.from
	if root == nil {
		root = &valuesRel{rows: [][]expr.Scalar{{}}}
	}
	if len(sb.where) > 0 {
		root = &filterRel{input: root, conds: sb.where}
	}
	root = projectSets(root, sb.sel.groupSets)
	if sb.sel.grouped {
		root = sb.grouping(root)
		if sb.having != nil {
			root = &filterRel{input: root, conds: expr.Conjuncts(nil, sb.having)}
		}
	}
	return root
}

// projectSets runs set-returning functions over root: those that are arguments of others in a step below these.
func projectSets(root rel, sets []setProjection) rel {
	for len(sets) > 0 {
		var pending colSet
		for i := range sets {
			pending.add(sets[i].id)
		}
		var now, later []setProjection
		for _, s := range sets {
			var reads colSet
			for _, arg := range s.args {
				addUsed(arg, &reads)
			}
			if reads.intersects(pending) {
				later = append(later, s)
			} else {
				now = append(now, s)
			}
		}
		root, sets = &projectSetRel{input: root, sets: now}, later
	}
	return root
}

// shape adds DISTINCT, ORDER BY, LIMIT and locking.
func (sb *selectBinder) shape(out *query) error {
	if sb.s.Distinct && len(sb.on) == 0 {
		out.root = &distinctRel{input: out.root, on: out.ids()}
	}
	if keys := sb.sortKeys(); len(keys) > 0 {
		out.root = &sortRel{input: out.root, keys: keys}
	}
	if len(sb.on) > 0 {
		d := &distinctRel{input: out.root}
		for _, t := range sb.on {
			d.on = append(d.on, sb.targets[t].id)
		}
		out.root = d
	}
	if sb.q == nil {
		return nil
	}
	if len(sb.q.Locking) > 0 {
		if err := sb.lock(out); err != nil {
			return err
		}
	}
	return sb.b.addLimit(out, sb.q, sb.sc)
}

func (sb *selectBinder) sortKeys() []SortKey {
	var keys []SortKey
	for _, o := range sb.order {
		id := sb.targets[o.target].id
		dup := false
		for _, k := range keys {
			dup = dup || k.Expr.(*expr.Column).ID == id
		}
		if !dup {
			keys = append(keys, SortKey{Expr: sb.b.column(id, 0), Desc: o.desc, NullsFirst: o.nullsFirst})
		}
	}
	return keys
}
