package planner

import (
	"cmp"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// changeTarget is the relation that a statement changes, as it names it, and what is written for it: the same table, or the one below
// updatable views.
type changeTarget struct {
	named  *catalog.TableDescriptor
	need   *Need // of named
	layers []*viewLayer
	// table is written; it is a view if that has INSTEAD OF triggers for the event.
	table *catalog.TableDescriptor
	// rows has the row of each layer's relation below in sight of its query, the row of the last layer's first; behind them that of named.
	rows []nsItem
}

// viewLayer is a view through which a statement changes a table; the outermost one comes first.
type viewLayer struct {
	view  *catalog.TableDescriptor
	query *ast.Select
	from  *ast.TableRef
	below *catalog.TableDescriptor
	// need is what the view needs of below, as is whose privileges count for it; 0: of whoever runs the statement.
	need *Need
	as   uint32
	// base has, for each column, the ordinal of the column below that it is, or -1.
	base []int
}

// changeTarget finds what a statement changes by an event.
func (b *binder) changeTarget(name ast.TableName, event catalog.TriggerEvents) (*changeTarget, error) {
	t, err := b.relation(name)
	if err != nil {
		return nil, err
	}
	target := &changeTarget{named: t, need: b.need(t, 0), table: t}
	as, views := b.as, b.views
	defer func() { b.as, b.views = as, views }()
	for target.table.Kind == catalog.KindView && !target.table.HasInsteadOf(event) {
		layer, err := b.viewLayer(target.table, event)
		if err != nil {
			return nil, err
		}
		b.as, b.views = layer.as, append(slices.Clip(b.views), layer.view.ID)
		layer.need = b.need(layer.below, 0)
		target.layers = append(target.layers, layer)
		target.table = layer.below
	}
	return target, requireWritable(target.table, name)
}

// requireWritable refuses what cannot be changed.
func requireWritable(t *catalog.TableDescriptor, name ast.TableName) error {
	switch {
	case t.Kind == catalog.KindView:
		return nil
	case t.Kind == catalog.KindSequence:
		return pgerror.New(pgerror.WrongObjectType, "cannot change sequence \"%s\"", t.Name).At(int(name.Pos))
	case t.Kind == catalog.KindVirtual:
		if t.Schema == "" {
			return pgerror.New(pgerror.FeatureNotSupported, "relation \"%s\" cannot be the target of a modifying statement", t.Name)
		}
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", t.Name).At(int(name.Pos))
	case t.Materialized:
		return pgerror.New(pgerror.WrongObjectType, "cannot change materialized view \"%s\"", t.Name)
	}
	return requireCurrent(t, t.OutdatedIndex())
}

// tableNeed is what writing the table needs.
func (t *changeTarget) tableNeed() *Need {
	if len(t.layers) == 0 {
		return t.need
	}
	return t.layers[len(t.layers)-1].need
}

// tableRole is the role as which the table is written; 0: whoever runs the statement.
func (b *binder) tableRole(t *changeTarget) uint32 {
	if len(t.layers) == 0 {
		return b.as
	}
	return t.layers[len(t.layers)-1].as
}

// viewLayer reads an updatable view; 55000 if it is not updatable by the event.
func (b *binder) viewLayer(v *catalog.TableDescriptor, event catalog.TriggerEvents) (*viewLayer, error) {
	if slices.Contains(b.views, v.ID) {
		return nil, pgerror.New(pgerror.InvalidTableDefinition, "infinite recursion detected in rules for relation \"%s\"", v.Name)
	}
	b.use(v)
	l, reason, err := b.updatableView(v)
	if err != nil {
		return nil, err
	}
	if reason == "" && event != catalog.TriggerDelete && !slices.ContainsFunc(l.base, func(ord int) bool { return ord >= 0 }) {
		reason = noUpdatableColumns
	}
	if reason != "" {
		return nil, viewNotUpdatable(v, event, reason)
	}
	if !v.SecurityInvoker {
		l.as = v.OwnerOID()
	}
	return l, nil
}

const noUpdatableColumns = "Views that have no updatable columns are not automatically updatable."

func viewNotUpdatable(v *catalog.TableDescriptor, event catalog.TriggerEvents, reason string) error {
	doing, gerund, word := "insert into", "inserting into", "INSERT"
	switch event {
	case catalog.TriggerUpdate:
		doing, gerund, word = "update", "updating", "UPDATE"
	case catalog.TriggerDelete:
		doing, gerund, word = "delete from", "deleting from", "DELETE"
	}
	return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot %s view \"%s\"", doing, v.Name).WithDetail("%s", reason).
		WithHint("To enable " + gerund + " the view, provide an INSTEAD OF " + word + " trigger or an unconditional ON " + word + " DO INSTEAD rule.")
}

// updatableView reads a view whose rows are those of one relation, or returns the reason why it is not such a view.
func (b *binder) updatableView(v *catalog.TableDescriptor) (l *viewLayer, reason string, _ error) {
	stmt, err := sql.ParseStatement(v.ViewQuery)
	if err != nil {
		return nil, "", textError(err, "view", v.Name)
	}
	q, ok := stmt.(*ast.Query)
	if !ok {
		return nil, "", pgerror.New(pgerror.DataCorrupted, "view \"%s\" does not hold a query", v.Name)
	}
	if reason = clauseNotUpdatable(q); reason != "" {
		return nil, reason, nil
	}
	s, ok := q.Body.(*ast.Select)
	if ok && slices.ContainsFunc(s.Columns, func(it ast.SelectItem) bool { return !isColumnName(it.Expr) }) {
		if reason, err = b.targetsNotUpdatable(v, q); reason != "" || err != nil {
			return nil, reason, err
		}
	}
	l = &viewLayer{view: v, query: s}
	if ok && len(s.From) == 1 {
		l.from, _ = s.From[0].(*ast.TableRef)
	}
	if l.from != nil {
		if l.below, err = catalog.ForStored(b.r).Relation(b.ctx, l.from.Name.Schema, l.from.Name.Name); err != nil {
			return nil, "", err
		}
	}
	switch {
	case l.below == nil || l.below.Kind == catalog.KindSequence || l.below.Materialized:
		return nil, "Views that do not select from a single table or view are not automatically updatable.", nil
	case l.from.Sample != nil:
		return nil, "Views containing TABLESAMPLE are not automatically updatable.", nil
	}
	l.base = make([]int, len(v.Columns))
	for i := range l.base {
		l.base[i], _ = l.column(i)
	}
	return l, "", nil
}

// clauseNotUpdatable returns why a query with some clause has no rows of one relation, as PostgreSQL says; "": no clause says so.
func clauseNotUpdatable(q *ast.Query) string {
	what := ""
	s, isSelect := q.Body.(*ast.Select)
	_, isSetOp := q.Body.(*ast.SetOp)
	switch {
	case isSelect && (s.Distinct || len(s.DistinctOn) > 0):
		what = "DISTINCT"
	case isSelect && len(s.GroupBy) > 0:
		what = "GROUP BY"
	case isSelect && s.Having != nil:
		what = "HAVING"
	case isSetOp:
		what = "UNION, INTERSECT, or EXCEPT"
	case q.With != nil:
		what = "WITH"
	case q.Limit != nil || q.Offset != nil:
		what = "LIMIT or OFFSET"
	default:
		return ""
	}
	return "Views containing " + what + " are not automatically updatable."
}

func isColumnName(e ast.Expr) bool {
	_, ok := e.(*ast.ColumnRef)
	return ok
}

// targetsNotUpdatable returns why a query with certain functions in its select list has no rows of one relation; "": it has none of them.
func (b *binder) targetsNotUpdatable(v *catalog.TableDescriptor, q *ast.Query) (string, error) {
	probe := &binder{ctx: b.ctx, r: catalog.ForStored(b.r), env: b.env, noSlots: true, views: append(slices.Clip(b.views), v.ID)}
	bound, err := probe.bindQuery(q, nil, true)
	if err != nil {
		return "", textError(err, "view", v.Name)
	}
	what := ""
	switch sel := &bound.sel.sel; {
	case len(sel.aggs) > 0:
		what = "aggregate functions"
	case sel.windowed():
		what = "window functions"
	case len(sel.sets) > 0:
		what = "set-returning functions"
	default:
		return "", nil
	}
	return "Views that return " + what + " are not automatically updatable.", nil
}

// column returns the ordinal of the column below that a view's column is, or -1 and the reason why it is none.
func (l *viewLayer) column(i int) (int, string) {
	ref, ok := l.query.Columns[i].Expr.(*ast.ColumnRef)
	if !ok {
		return -1, "View columns that are not columns of their base relation are not updatable."
	}
	name := ref.Parts[len(ref.Parts)-1]
	ord := slices.Index(l.from.Columns, name)
	if ord < 0 {
		if ord = l.below.ColumnNamed(name); ord >= 0 && ord < len(l.from.Columns) {
			ord = -1 // It has another name in the view.
		}
	}
	switch {
	case ord >= 0:
		return ord, ""
	case len(ref.Parts) == 1 && (name == l.from.Alias || name == l.from.Name.Name):
		return -1, "View columns that return whole-row references are not updatable."
	}
	return -1, "View columns that refer to system columns are not updatable."
}

// inView has names mean what they do in the query of a view of the target, until the function that it returns is called.
func (b *binder) inView(l *viewLayer) func() {
	slots, as, r, views := b.noSlots, b.as, b.r, b.views
	b.noSlots, b.as, b.r, b.views = true, l.as, catalog.ForStored(b.r), append(slices.Clip(b.views), l.view.ID)
	restore := b.detached()
	return func() {
		restore()
		b.noSlots, b.as, b.r, b.views = slots, as, r, views
	}
}

// seeRow puts a row of the target in sight, over a scan of the table: rows, and behind them what the statement names by alias; "": by the name
// of the target, with or without its schema.
func (b *binder) seeRow(t *changeTarget, scan *scanRel, alias string) ([]nsItem, error) {
	row := scanItem(scan, alias, true)
	rows := []nsItem{row}
	for i := len(t.layers) - 1; i >= 0; i-- {
		l, need := t.layers[i], t.need
		if i > 0 {
			need = t.layers[i-1].need
		}
		below := &rows[len(rows)-1]
		below.alias, below.schema = l.from.Name.Name, l.below.Schema
		if l.from.Alias != "" {
			below.alias, below.schema = l.from.Alias, ""
		}
		for j, name := range l.from.Columns {
			below.cols[j].name = name
		}
		row, err := b.viewRow(l, *below, need)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	named := &rows[len(rows)-1]
	if named.alias = alias; alias == "" {
		named.alias, named.schema = t.named.Name, t.named.Schema
	}
	return rows, nil
}

// viewRow returns the row of a view over that of the relation below it.
func (b *binder) viewRow(l *viewLayer, below nsItem, need *Need) (nsItem, error) {
	defer b.inView(l)()
	sc := newScope(b, nil)
	sc.sel = &selectState{}
	sc.items = append(sc.items, below)
	row := nsItem{rel: true, open: true, relation: l.view}
	for i := range l.view.Columns {
		c := &l.view.Columns[i]
		sc.in("SELECT", false, false)
		x, err := sc.expr(l.query.Columns[i].Expr)
		if err == nil && x.Type().OID == types.OIDUnknown {
			x, err = b.coerce(x, c.Type, castImplicit, 0)
		}
		if err != nil {
			return row, textError(err, "view", l.view.Name)
		}
		col := nsCol{name: c.Name, id: -1, e: x, need: need, ordinal: i}
		if same, ok := x.(*expr.Column); ok {
			col.id, col.e = same.ID, nil
		}
		row.cols = append(row.cols, col)
	}
	return row, nil
}

// viewCondition binds the condition of a view over the row of the relation below it.
func (b *binder) viewCondition(l *viewLayer, below nsItem) ([]expr.Scalar, error) {
	defer b.inView(l)()
	sc := newScope(b, nil)
	sc.items = append(sc.items, below)
	conds, err := b.condition(sc, l.query.Where, "WHERE")
	if err != nil {
		return nil, textError(err, "view", l.view.Name)
	}
	return conds, nil
}

// targetSource returns the rows of the table that the target has; alias may be "".
func (b *binder) targetSource(t *changeTarget, out *change, alias string) (rel, error) {
	if t.table.Kind == catalog.KindView {
		return b.viewTarget(t, out, alias)
	}
	out.scan = b.newScan(t.table, cmp.Or(alias, t.named.Name), t.tableNeed())
	if t.table.IsPartitioned() {
		out.scan.originColumn(b)
	}
	role := b.as
	b.as = b.tableRole(t)
	source, err := b.guardScan(out.scan)
	b.as = role
	if err != nil {
		return nil, err
	}
	return b.throughViews(t, out, source, alias)
}

// viewTarget returns the rows of a view with INSTEAD OF triggers, each column of which gets an ID of its own.
func (b *binder) viewTarget(t *changeTarget, out *change, alias string) (rel, error) {
	sc := newScope(b, nil)
	role := b.as
	b.as = b.tableRole(t)
	name := cmp.Or(alias, t.named.Name)
	root, err := b.view(sc, t.table, &ast.TableRef{Name: ast.TableName{Schema: t.table.Schema, Name: t.table.Name}}, name)
	b.as = role
	if err != nil {
		return nil, err
	}
	row := &sc.items[0]
	row.view.Privileges = 0 // What the statement needs of the view is in the needs of the target.
	own := &projectRel{input: root}
	out.scan = &scanRel{table: t.table, alias: name, need: t.tableNeed()}
	for i := range row.cols {
		id := b.newColumn(row.cols[i].name, t.table.Columns[i].Type)
		own.items = append(own.items, projection{id: id, e: b.column(row.cols[i].id, 0)})
		out.scan.cols = append(out.scan.cols, id)
	}
	return b.throughViews(t, out, own, alias)
}

// throughViews restricts the rows of what is written to those that the views above it have.
func (b *binder) throughViews(t *changeTarget, out *change, source rel, alias string) (_ rel, err error) {
	if t.rows, err = b.seeRow(t, out.scan, alias); err != nil {
		return nil, err
	}
	for i := len(t.layers) - 1; i >= 0; i-- {
		l := t.layers[i]
		conds, err := b.viewCondition(l, t.rows[len(t.layers)-1-i])
		if err != nil {
			return nil, err
		}
		if len(conds) > 0 {
			source = &filterRel{input: source, conds: conds}
		}
		if l.view.SecurityBarrier {
			source = &barrierRel{input: source}
		}
	}
	return source, nil
}

// row is the row that the statement names.
func (t *changeTarget) row() nsItem { return t.rows[len(t.rows)-1] }

// checkOptions returns what WITH CHECK OPTION of the views demands of a row that is written, that of the views below first.
func (b *binder) checkOptions(t *changeTarget) ([]viewCheck, error) {
	var checks []viewCheck
	cascaded := false
	for i, l := range t.layers {
		checked := cascaded || l.view.CheckOption != ""
		cascaded = cascaded || l.view.CheckOption == catalog.CheckCascaded
		if !checked {
			continue
		}
		conds, err := b.viewCondition(l, t.rows[len(t.layers)-1-i])
		if err != nil {
			return nil, err
		}
		if len(conds) > 0 {
			checks = slices.Insert(checks, 0, viewCheck{l.view.Name, expr.NewAnd(conds...)})
		}
	}
	return checks, nil
}

// viewCheck is a condition of a view WITH CHECK OPTION.
type viewCheck struct {
	view string
	cond expr.Scalar
}

// viewChecks compiles checks over a full row of what is written.
func (p *physical) viewChecks(checks []viewCheck, scan *scanRel) []ViewCheck {
	var out []ViewCheck
	for _, c := range checks {
		p.rewriteIn(c.cond)
		out = append(out, ViewCheck{View: c.view, Cond: p.compile(c.cond, scan.cols)})
	}
	return out
}

// place moves the values of a row of the named relation to the columns of what is written. nil: no value. An INSERT takes the defaults that
// the views have for columns without value.
func (b *binder) place(t *changeTarget, row []expr.Scalar, event catalog.TriggerEvents) ([]expr.Scalar, error) {
	for _, l := range t.layers {
		below := make([]expr.Scalar, len(l.below.Columns))
		for i := range l.view.Columns {
			x := row[i]
			if x == nil && event == catalog.TriggerInsert && l.view.Columns[i].Default != "" {
				var err error
				if x, err = b.defaultOf(l.view, i); err != nil {
					return nil, err
				}
			}
			if x == nil {
				continue
			}
			ord := l.base[i]
			if ord < 0 {
				return nil, l.refuseColumn(i, event)
			}
			if below[ord] != nil {
				return nil, pgerror.New(pgerror.SyntaxError, "multiple assignments to same column \"%s\"", l.below.Columns[ord].Name)
			}
			below[ord] = x
		}
		row = below
	}
	return row, nil
}

// refuseColumn is the error of a value for a column that is none of the relation below.
func (l *viewLayer) refuseColumn(i int, event catalog.TriggerEvents) error {
	doing := "insert into"
	if event == catalog.TriggerUpdate {
		doing = "update"
	}
	_, reason := l.column(i)
	return pgerror.New(pgerror.FeatureNotSupported, "cannot %s column \"%s\" of view \"%s\"", doing, l.view.Columns[i].Name, l.view.Name).
		WithDetail("%s", reason)
}

// requireColumns refuses to insert into columns of the named relation that are no columns of what is written, whatever their values.
func (t *changeTarget) requireColumns(ordinals []int) error {
	for _, l := range t.layers {
		below := make([]int, len(ordinals))
		for i, ord := range ordinals {
			if below[i] = l.base[ord]; below[i] < 0 {
				return l.refuseColumn(ord, catalog.TriggerInsert)
			}
		}
		ordinals = below
	}
	return nil
}

// placeSet moves the assignments of an UPDATE through views to the columns of what is written. Columns that none is for keep their values.
func (b *binder) placeSet(t *changeTarget, scan *scanRel, set []expr.Scalar) (full []expr.Scalar, changed []int, err error) {
	if full, err = b.place(t, set, catalog.TriggerUpdate); err != nil {
		return nil, nil, err
	}
	for ord := range full {
		if full[ord] == nil {
			full[ord] = b.column(scan.cols[ord], 0)
			continue
		}
		if err := requireUpdatable(&t.table.Columns[ord]); err != nil {
			return nil, nil, err
		}
		changed = append(changed, ord)
	}
	return full, changed, nil
}

// baseOrdinal returns the ordinal of the table's column that a column of the named relation is, or -1.
func (t *changeTarget) baseOrdinal(ord int) int {
	for _, l := range t.layers {
		if ord < 0 {
			break
		}
		ord = l.base[ord]
	}
	return ord
}

// settle gives each relation below a view the needs that the statement has of the view: what a view reads of it needs privileges only if the
// statement reads.
func (t *changeTarget) settle() {
	above := t.need
	for _, l := range t.layers {
		l.need.Privileges = above.Privileges
		move := func(ord int, to *colSet) {
			if l.base[ord] >= 0 {
				to.add(l.base[ord])
			}
		}
		above.Inserted.each(func(ord int) { move(ord, &l.need.Inserted) })
		above.Updated.each(func(ord int) { move(ord, &l.need.Updated) })
		above = l.need
	}
}
