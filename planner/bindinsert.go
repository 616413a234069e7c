package planner

import (
	"cmp"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// generatedAlways is PostgreSQL's SQLSTATE for a value given to a GENERATED ALWAYS column.
const generatedAlways pgerror.Code = "428C9"

// change is a bound INSERT, UPDATE or DELETE, from which its physical node is built.
type change struct {
	tag    string // INSERT, UPDATE, DELETE or MERGE
	table  *catalog.TableDescriptor
	scan   *scanRel // the target as its expressions see it
	source rel
	// cols are the source's columns in order: for INSERT the full row, otherwise the target's row
	// first.
	cols      []int
	set       []expr.Scalar // UPDATE: the full new row
	changed   []int
	returning []target
	conflict  *conflict
	hasFrom   bool
	policies  []policyCheck // of the new row
	guarded   []string      // the names of the policies
	actions   []mergeAction // of MERGE
	views     []viewCheck   // WITH CHECK OPTION of the new row
}

// conflict is a bound ON CONFLICT.
type conflict struct {
	arbiters []*catalog.IndexDescriptor
	doUpdate bool
	set      []expr.Scalar
	changed  []int
	where    expr.Scalar
	// infer and inferWhere are ON CONFLICT's target, if not all of it is columns: the arbiters are found when the statement is planned.
	infer, inferWhere []expr.Scalar
	excluded          []int // column IDs of the excluded row
	existing          []policyCheck
	policies          []policyCheck // of the updated row
}

// requireCurrent refuses a table with an index whose keys this program does not find; nil: it has none.
func requireCurrent(t *catalog.TableDescriptor, outdated *catalog.IndexDescriptor) error {
	if outdated == nil {
		return nil
	}
	e := pgerror.New(pgerror.ObjectNotInPrerequisite, "the keys of index \"%s\" were made by other rules than those of this server", outdated.Name).
		WithHint("REINDEX TABLE " + keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(t.Name) + " makes them anew.")
	e.Schema, e.Table = t.Schema, t.Name
	return e
}

// insertBinder binds one INSERT.
type insertBinder struct {
	b       *binder
	s       *ast.Insert
	target  *changeTarget
	t       *catalog.TableDescriptor // target.named
	sc      *scope                   // below which the source is bound
	targets []int                    // ordinals of the columns given, the same one several times for parts of it
	parts   map[int][]ast.Step       // of the targets that are parts of a column, by position
	need    *Need
	out     *change
}

func (b *binder) bindInsert(s *ast.Insert, outer *scope) (*change, error) {
	if s.With != nil {
		outer = newScope(b, outer)
		if err := b.bindWith(outer, s.With); err != nil {
			return nil, err
		}
	}
	target, err := b.changeTarget(s.Table, catalog.TriggerInsert)
	if err != nil {
		return nil, err
	}
	t := target.named
	ib := &insertBinder{b: b, s: s, target: target, t: t, sc: newScope(b, outer), need: target.need, out: &change{tag: "INSERT", table: target.table}}
	if err = ib.bindTargets(); err != nil {
		return nil, err
	}
	ib.need.Privileges |= acl.Insert
	ib.out.scan = b.newScan(target.table, cmp.Or(s.Alias, t.Name), target.tableNeed())
	if target.rows, err = b.seeRow(target, ib.out.scan, s.Alias); err != nil {
		return nil, err
	}
	if err := ib.source(); err != nil {
		return nil, err
	}
	if s.OnConflict != nil {
		if err := ib.onConflict(outer); err != nil {
			return nil, err
		}
	}
	if err := ib.returning(outer); err != nil {
		return nil, err
	}
	return ib.out, b.finishTarget(target, ib.out, b.restrictInsert)
}

// bindTargets finds the columns that the INSERT names: all visible ones without a list.
func (ib *insertBinder) bindTargets() error {
	t := ib.t
	if len(ib.s.Columns) == 0 {
		for i := range t.Columns {
			if !t.Columns[i].Hidden {
				ib.targets = append(ib.targets, i)
			}
		}
		return nil
	}
	for n := range ib.s.Columns {
		c := &ib.s.Columns[n]
		i := t.ColumnNamed(c.Name)
		if i < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Name, t.Name).At(int(c.Pos))
		}
		for before, have := range ib.targets {
			if have == i && (c.Part == nil || ib.parts[before] == nil) {
				return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", c.Name).At(int(c.Pos))
			}
		}
		ib.targets = append(ib.targets, i)
		if c.Part != nil {
			if ib.parts == nil {
				ib.parts = map[int][]ast.Step{}
			}
			ib.parts[n] = c.Part
			target := ib.assigned(n)
			if err := target.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// assigned returns the nth target.
func (ib *insertBinder) assigned(n int) assignTarget {
	t := assignTarget{col: &ib.t.Columns[ib.targets[n]], part: ib.parts[n]}
	if n < len(ib.s.Columns) {
		t.pos = int(ib.s.Columns[n].Pos)
	}
	return t
}

// put sets the value of the nth target in a row: a part of a column begins with NULL.
func (ib *insertBinder) put(row []expr.Scalar, n int, value expr.Scalar) error {
	ord := ib.targets[n]
	if ib.parts[n] != nil {
		old := row[ord]
		if old == nil {
			old = expr.NewNull(ib.t.Columns[ord].Type)
		}
		var err error
		target := ib.assigned(n)
		if value, err = ib.b.assignPart(ib.sc, &target, old, value); err != nil {
			return err
		}
	}
	row[ord] = value
	return nil
}

// source binds the inserted rows as full table rows.
func (ib *insertBinder) source() error {
	q := ib.s.Query
	if q == nil {
		ib.targets = nil
		return ib.valueRows([][]ast.Expr{nil})
	}
	if v, ok := q.Body.(*ast.Values); ok && ib.singleWithSets(v) {
		single := *q
		s := &ast.Select{Pos: v.Pos}
		for _, e := range v.Rows[0] {
			s.Columns = append(s.Columns, ast.SelectItem{Expr: e})
		}
		single.Body = s
		return ib.queryRows(&single)
	} else if ok && q.With == nil && len(q.OrderBy) == 0 && q.Limit == nil && q.Offset == nil && len(q.Locking) == 0 {
		return ib.valueRows(v.Rows)
	}
	return ib.queryRows(q)
}

// singleWithSets reports whether VALUES has one row with a set-returning function, which makes several rows of it as in a SELECT.
func (ib *insertBinder) singleWithSets(v *ast.Values) bool {
	if len(v.Rows) != 1 {
		return false
	}
	for _, e := range v.Rows[0] {
		if call, ok := e.(*ast.Call); ok {
			if f, err := ib.b.funcName(call); err == nil && f.IsSet() {
				return true
			}
		}
	}
	return false
}

// rowBytes and fieldBytes are what a row of VALUES and each of its columns takes beside the expressions that the text has:
// bound and compiled.
const rowBytes, fieldBytes = 96, 48

// valueRows binds VALUES: each value is assigned to its column on its own.
func (ib *insertBinder) valueRows(rows [][]ast.Expr) error {
	ib.sc.in("VALUES", false, false)
	r := &valuesRel{}
	table := ib.target.table
	for i := range table.Columns {
		r.cols = append(r.cols, ib.b.newColumn(table.Columns[i].Name, table.Columns[i].Type))
	}
	defaults, width := make([]expr.Scalar, len(table.Columns)), 0
	for i, row := range rows {
		row, err := ib.sc.spread(row)
		if err != nil {
			return err
		}
		if i == 0 {
			width = len(row)
			ib.need.insertColumns(ib.targets[:min(width, len(ib.targets))])
		}
		if len(row) != width {
			return pgerror.New(pgerror.SyntaxError, "VALUES lists must all be the same length").At(startOf(row[0]))
		}
		if err := ib.checkWidth(len(row), row); err != nil {
			return err
		}
		if err := ib.target.requireColumns(ib.targets[:len(row)]); err != nil {
			return err
		}
		if err := ib.b.visit(rowBytes + int64(len(table.Columns))*fieldBytes); err != nil {
			return err
		}
		full := make([]expr.Scalar, len(ib.t.Columns))
		for j, e := range row {
			x, err := ib.value(j, e)
			if err != nil {
				return err
			}
			if err := ib.put(full, j, x); err != nil {
				return err
			}
		}
		if full, err = ib.place(full); err != nil {
			return err
		}
		for j := range full {
			if full[j] != nil {
				continue
			}
			if defaults[j] == nil {
				d, err := ib.b.defaultOf(table, j)
				if err != nil {
					return err
				}
				defaults[j] = d
			}
			full[j] = defaults[j]
			if i > 0 {
				full[j] = expr.Clone(defaults[j])
			}
		}
		r.rows = append(r.rows, full)
	}
	ib.out.source, ib.out.cols = r, r.cols
	return nil
}

func (ib *insertBinder) checkWidth(n int, row []ast.Expr) error {
	pos := 0
	switch {
	case n > len(ib.targets):
		if row != nil {
			pos = startOf(row[len(ib.targets)])
		}
		return pgerror.New(pgerror.SyntaxError, "INSERT has more expressions than target columns").At(pos)
	case n < len(ib.targets) && len(ib.s.Columns) > 0:
		return pgerror.New(pgerror.SyntaxError, "INSERT has more target columns than expressions").At(int(ib.s.Columns[n].Pos))
	}
	return nil
}

// value binds one value for the nth target; nil means the default.
func (ib *insertBinder) value(n int, e ast.Expr) (expr.Scalar, error) {
	target := ib.assigned(n)
	if _, ok := e.(*ast.Default); ok {
		if target.part != nil {
			return nil, target.errDefault()
		}
		return nil, nil
	}
	c := target.col
	if given, err := ib.takes(c); !given || err != nil {
		return nil, err
	}
	x, err := ib.sc.valueFor(e, target.valueType(), castAssignment, startOf(e))
	if err != nil {
		return nil, err
	}
	return ib.b.assign(x, &target, startOf(e))
}

// takes reports whether a column takes the value given for it, rather than the one that it generates.
func (ib *insertBinder) takes(c *catalog.ColumnDescriptor) (bool, error) {
	switch {
	case c.Generated != "":
		return false, refuseGenerated(c.Name)
	case c.Identity != "" && ib.s.Overriding == "USER":
		return false, nil
	case c.Identity == "ALWAYS" && ib.s.Overriding != "SYSTEM":
		return false, alwaysGenerated(c.Name)
	}
	return true, nil
}

// place moves the values of a row to the columns of the table below a view.
func (ib *insertBinder) place(row []expr.Scalar) ([]expr.Scalar, error) {
	if len(ib.target.layers) == 0 {
		return row, nil
	}
	full, err := ib.b.place(ib.target, row, catalog.TriggerInsert)
	if err != nil {
		return nil, err
	}
	for ord := range full {
		if full[ord] == nil {
			continue
		}
		given, err := ib.takes(&ib.target.table.Columns[ord])
		if err != nil {
			return nil, err
		}
		if !given {
			full[ord] = nil
		}
	}
	return full, nil
}

func alwaysGenerated(name string) error {
	return pgerror.New(generatedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", name).
		WithDetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.", name).
		WithHint("Use OVERRIDING SYSTEM VALUE to override.")
}

// queryRows binds INSERT … SELECT.
func (ib *insertBinder) queryRows(q *ast.Query) error {
	b := ib.b
	src, err := b.bindQuery(q, ib.sc.outer, false)
	if err != nil {
		return err
	}
	if err := ib.checkWidth(len(src.cols), nil); err != nil {
		if len(src.cols) > len(ib.targets) {
			err = at(err, src.cols[len(ib.targets)].pos)
		}
		return err
	}
	ib.need.insertColumns(ib.targets[:len(src.cols)])
	if err := ib.target.requireColumns(ib.targets[:len(src.cols)]); err != nil {
		return err
	}
	values := make([]expr.Scalar, len(ib.t.Columns))
	for i := range src.cols {
		if given, err := ib.takes(&ib.t.Columns[ib.targets[i]]); err != nil {
			return err
		} else if !given {
			continue
		}
		target := ib.assigned(i)
		if err := b.assignColumn(src, i, &target); err != nil {
			return err
		}
		if err := ib.put(values, i, b.column(src.cols[i].id, 0)); err != nil {
			return err
		}
	}
	b.resolveUnknowns(src)
	if values, err = ib.place(values); err != nil {
		return err
	}
	p := &projectRel{input: src.root}
	full := make([]int, len(values))
	for ord, d := range values {
		if c, ok := d.(*expr.Column); ok {
			full[ord] = c.ID
			continue
		}
		if d == nil {
			if d, err = b.defaultOf(ib.target.table, ord); err != nil {
				return err
			}
		}
		full[ord] = b.newColumn(ib.target.table.Columns[ord].Name, d.Type())
		p.items = append(p.items, projection{id: full[ord], e: d})
	}
	ib.out.source, ib.out.cols = p, full
	if len(p.items) == 0 {
		ib.out.source = src.root
	}
	return nil
}

// assignColumn is assign for a column of a query.
func (b *binder) assignColumn(q *query, i int, t *assignTarget) error {
	from := b.cols[q.cols[i].id].Type
	err := b.retype(q, i, t.valueType(), castAssignment)
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
		return t.mismatch(from, q.cols[i].pos)
	}
	return err
}

// defaultOf returns a column's default, NULL where it has none.
func (b *binder) defaultOf(t *catalog.TableDescriptor, ord int) (expr.Scalar, error) {
	c := &t.Columns[ord]
	if c.Generated != "" { // The executor computes it.
		return expr.NewNull(c.Type), nil
	}
	text := c.Default
	if text == "" && c.Identity != "" && c.Sequence != 0 {
		return b.nextValue(c)
	}
	if text == "" && c.Type.IsDomain() {
		text = c.Type.Def.Default
	}
	if text == "" {
		return b.coerce(expr.NewNull(c.Type.Underlying()), c.Type, castImplicit, 0)
	}
	return b.catalogExpr(text, nil, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
		sc.in("DEFAULT expressions", false, false)
		x, err := sc.valueFor(e, c.Type, castAssignment, 0)
		if err != nil {
			return nil, err
		}
		return b.assign(x, &assignTarget{col: c}, 0)
	})
}

// nextValue is the default of an identity column.
func (b *binder) nextValue(c *catalog.ColumnDescriptor) (expr.Scalar, error) {
	fn, err := builtin.ResolveFunc("nextval", []types.Type{types.TRegclass})
	if err != nil {
		return nil, err
	}
	b.volatile = true
	seq := catalog.TableDescriptor{ID: c.Sequence}
	x := expr.NewCall(fn, []expr.Scalar{&expr.Const{Value: types.Int(int64(seq.OID())), Typ: types.TRegclass}})
	return b.assign(x, &assignTarget{col: c}, 0)
}

// catalogExpr binds an expression that the catalog holds as text, over the columns of scan (nil: none).
func (b *binder) catalogExpr(text string, scan *scanRel, bind func(*scope, ast.Expr) (expr.Scalar, error)) (expr.Scalar, error) {
	e, err := sql.ParseExpr(text)
	if err != nil {
		return nil, textError(err, "expression", text)
	}
	saved, r := b.noSlots, b.r
	b.noSlots, b.r = true, catalog.ForStored(r)
	defer b.detached()()
	defer func() { b.noSlots, b.r = saved, r }()
	sc := newScope(b, nil)
	if scan != nil {
		own := *scan
		own.need = nil // Whoever writes the row need not be able to read it.
		sc.items = append(sc.items, scanItem(&own, scan.table.Name, true))
	}
	x, err := bind(sc, e)
	if err != nil {
		return nil, textError(err, "expression", text)
	}
	return x, nil
}

// scanItem puts a scan's visible columns in sight.
func scanItem(s *scanRel, alias string, open bool) nsItem {
	it := nsItem{alias: alias, rel: true, open: open, scan: s, relation: s.table}
	for i := range s.table.Columns {
		if !s.table.Columns[i].Hidden {
			it.cols = append(it.cols, nsCol{name: s.table.Columns[i].Name, id: s.cols[i], need: s.need, ordinal: i})
		}
	}
	return it
}

func (ib *insertBinder) returning(outer *scope) error {
	if len(ib.s.Returning) == 0 {
		return nil
	}
	sc := newScope(ib.b, outer)
	row := ib.target.row()
	row.returned, row.mayReplace = catalog.TriggerInsert, ib.out.conflict != nil && ib.out.conflict.doUpdate
	sc.items = append(sc.items, row)
	targets, err := ib.b.returningList(sc, ib.s.Returning)
	ib.out.returning = targets
	return err
}

// returningList binds RETURNING.
func (b *binder) returningList(sc *scope, items []ast.SelectItem) ([]target, error) {
	sc.in("RETURNING", false, false)
	targets, err := b.targetList(sc, items)
	if err != nil {
		return nil, err
	}
	for i := range targets {
		if targets[i].e.Type().OID == types.OIDUnknown {
			if targets[i].e, err = b.coerce(targets[i].e, types.TText, castImplicit, targets[i].pos); err != nil {
				return nil, err
			}
		}
	}
	return targets, nil
}

func (ib *insertBinder) onConflict(outer *scope) error {
	oc := ib.s.OnConflict
	c := &conflict{doUpdate: oc.DoUpdate}
	ib.out.conflict = c
	if oc.DoUpdate && len(oc.Columns) == 0 && oc.Constraint == "" && !oc.AnyKey {
		return pgerror.New(pgerror.SyntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).").At(int(oc.Pos))
	}
	if err := ib.arbiters(c, oc); err != nil || !oc.DoUpdate {
		return err
	}
	if oc.AnyKey && len(c.arbiters) == 0 { // no key, no conflict
		ib.out.conflict = nil
		return nil
	}
	excluded := ib.b.newScan(ib.target.table, "excluded", ib.target.tableNeed())
	c.excluded = excluded.cols
	rows, err := ib.b.seeRow(ib.target, excluded, "excluded")
	if err != nil {
		return err
	}
	sc := newScope(ib.b, outer)
	sc.items = append(sc.items, ib.target.row(), rows[len(rows)-1])
	list := oc.Set
	if oc.Replace {
		list = replacement(ib.t)
	}
	if c.set, c.changed, err = ib.b.assignments(sc, ib.target, ib.out.scan, list); err != nil {
		return err
	}
	conds, err := ib.b.condition(sc, oc.Where, "WHERE")
	c.where = expr.NewAnd(conds...)
	return err
}

// replacement assigns every column the value of the row proposed.
func replacement(t *catalog.TableDescriptor) []ast.Assignment {
	var list []ast.Assignment
	for i := range t.Columns {
		if name := t.Columns[i].Name; !t.Columns[i].Hidden {
			list = append(list, ast.Assignment{Columns: []string{name}, Value: &ast.ColumnRef{Parts: []string{"excluded", name}}})
		}
	}
	return list
}

// anyKey uses a table's only unique key as the arbiter.
func (ib *insertBinder) anyKey(c *conflict) error {
	c.arbiters = uniqueIndexes(ib.target.table)
	if len(c.arbiters) > 1 {
		return pgerror.Unsupported("ON DUPLICATE KEY UPDATE or REPLACE on a table with several unique keys",
			"Use INSERT … ON CONFLICT (columns of one key) DO UPDATE in PostgreSQL's dialect.")
	}
	return nil
}

// arbiters finds the unique indexes that determine conflicts.
func (ib *insertBinder) arbiters(c *conflict, oc *ast.OnConflict) error {
	if oc.AnyKey {
		return ib.anyKey(c)
	}
	if oc.Constraint != "" {
		for _, ix := range uniqueIndexes(ib.t) { // A view has none.
			if ix.Name == oc.Constraint && ix.Constraint {
				c.arbiters = append(c.arbiters, ix)
				for j := range ix.Columns {
					ib.need.selectColumn(ib.t.Ordinal(ix.Columns[j].ColumnID))
				}
				return nil
			}
		}
		if ix := ib.t.IndexNamed(oc.Constraint); ix != nil && ix.Exclude != nil {
			if oc.DoUpdate {
				return pgerror.New(pgerror.WrongObjectType, "ON CONFLICT DO UPDATE not supported with exclusion constraints")
			}
			c.arbiters = append(c.arbiters, ix)
			return nil
		}
		return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", oc.Constraint, ib.t.Name)
	}
	if len(oc.Columns) == 0 {
		return nil
	}
	if oc.TargetWhere != nil || !allColumnRefs(oc.Columns) {
		return ib.inferred(c, oc)
	}
	var ids []uint32
	for _, e := range oc.Columns {
		ref := e.(*ast.ColumnRef)
		i := ib.t.ColumnNamed(ref.Parts[0])
		if i < 0 {
			return undefinedColumn("", ref.Parts[0], int(ref.Pos))
		}
		ib.need.selectColumn(i)
		if i = ib.target.baseOrdinal(i); i < 0 {
			return errNoArbiter()
		}
		ids = append(ids, ib.target.table.Columns[i].ID)
	}
	for _, ix := range uniqueIndexes(ib.target.table) {
		if ix.Where == nil && sameColumns(ix, ids) {
			c.arbiters = append(c.arbiters, ix)
		}
	}
	if len(c.arbiters) == 0 {
		return errNoArbiter()
	}
	return nil
}

func errNoArbiter() *pgerror.Error {
	return pgerror.New(pgerror.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
}

func allColumnRefs(es []ast.Expr) bool {
	for _, e := range es {
		if ref, ok := e.(*ast.ColumnRef); !ok || len(ref.Parts) != 1 {
			return false
		}
	}
	return true
}

// inferred binds a target with expressions or a predicate.
func (ib *insertBinder) inferred(c *conflict, oc *ast.OnConflict) error {
	sc := newScope(ib.b, nil)
	sc.items = append(sc.items, ib.target.row())
	for _, e := range oc.Columns {
		if collate, ok := e.(*ast.Collate); ok {
			e = collate.X // Equality is the same in all collations.
		}
		sc.in("ON CONFLICT", false, false)
		x, err := sc.expr(e)
		if err != nil {
			return err
		}
		c.infer = append(c.infer, x)
	}
	var err error
	c.inferWhere, err = ib.b.condition(sc, oc.TargetWhere, "WHERE")
	return err
}

// uniqueIndexes lists the unique indexes of a table, those of deferrable constraints too, its declared primary key first.
func uniqueIndexes(t *catalog.TableDescriptor) []*catalog.IndexDescriptor {
	var out []*catalog.IndexDescriptor
	if !hiddenKey(t) {
		out = append(out, &t.Primary)
	}
	for i := range t.Indexes {
		if isUnique(&t.Indexes[i]) {
			out = append(out, &t.Indexes[i])
		}
	}
	return out
}

// isUnique reports whether an index is a unique one, or that of a deferrable unique constraint.
func isUnique(ix *catalog.IndexDescriptor) bool {
	return ix.Unique || ix.Deferrable && ix.Exclude == nil
}

// hiddenKey reports whether a table is keyed by its hidden rowid.
func hiddenKey(t *catalog.TableDescriptor) bool {
	if len(t.Primary.Columns) != 1 {
		return false
	}
	i := t.Ordinal(t.Primary.Columns[0].ColumnID)
	return i >= 0 && t.Columns[i].Hidden
}

// sameColumns reports whether an index is over exactly the columns, in any order.
func sameColumns(ix *catalog.IndexDescriptor, ids []uint32) bool {
	for _, id := range ids {
		if !inIndex(ix, id) {
			return false
		}
	}
	for i := range ix.Columns {
		found := false
		for _, id := range ids {
			found = found || ix.Columns[i].ColumnID == id
		}
		if !found {
			return false
		}
	}
	return true
}
