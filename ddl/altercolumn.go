package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// alterAddColumn adds a column. A constant default costs nothing: old rows read it from the
// descriptor. One that differs from row to row rewrites the table.
func (r *run) alterAddColumn(ctx context.Context, t *catalog.TableDescriptor, n *ast.AddColumn) error {
	def := &n.Column
	if err := notSystemColumn(t, def.Name, def.Position()); err != nil {
		return err
	}
	if t.ColumnNamed(def.Name) >= 0 {
		if n.IfNotExists {
			r.notice(pgerror.DuplicateColumn, "column %q of relation %q already exists, skipping", def.Name, t.Name)
			return nil
		}
		return pgerror.New(pgerror.DuplicateColumn, "column %q of relation %q already exists", def.Name, t.Name).At(def.Position())
	}
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	b := &builder{run: r, t: t.Clone(), pending: map[string]bool{}, taken: taken}
	if err := b.addColumn(ctx, def); err != nil {
		return err
	}
	for _, seq := range b.sequences {
		if err := r.createFor(ctx, seq, t.OwnerOID()); err != nil {
			return err
		}
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	views, err := r.aliasedViews(ctx, t, b.t, def.Name)
	if err != nil {
		return err
	}
	if def.Generated != nil {
		if err := r.setGenerated(ctx, b.t, def.Name, def.Generated); err != nil {
			return err
		}
	}
	if added := &b.t.Columns[len(b.t.Columns)-1]; added.Default != "" || len(b.sequences) > 0 || added.Type.HasDomain() {
		if err := r.requireNoRowValues(ctx, t); err != nil {
			return err
		}
	}
	if def.Generated != nil {
		err = r.fillGenerated(ctx, t, b.t)
	} else if len(b.sequences) > 0 {
		err = r.fillByRewriting(ctx, t, b.t, func() (types.Datum, error) {
			v, err := r.Catalog.NextVal(ctx, b.sequences[0])
			return types.Int(v), err
		})
	} else {
		err = r.fillNewColumn(ctx, t, b.t)
	}
	if err != nil {
		return err
	}
	if err := r.storeViews(ctx, views); err != nil {
		return err
	}
	for i := range def.Constraints {
		c := def.Constraints[i]
		if len(c.Columns) == 0 && c.Kind != ast.Check {
			c.Columns = []string{def.Name}
		}
		now, err := r.current(ctx, b.t)
		if err != nil {
			return err
		}
		if err := r.alterAddConstraint(ctx, now, &c); err != nil {
			return err
		}
	}
	return nil
}

// aliasedViews returns the views on a table that must name a new column otherwise.
func (r *run) aliasedViews(ctx context.Context, t, next *catalog.TableDescriptor, name string) ([]changedView, error) {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	c := planner.AddedColumn{Table: t, Name: name, Before: r.r, After: replaced{r.r, next}, Env: r.Env}
	var changed []changedView
	for _, view := range users {
		text, err := c.InQuery(ctx, view.ViewQuery)
		if err != nil {
			return nil, err
		}
		changed = append(changed, changedView{view, text})
	}
	return changed, nil
}

// fillNewColumn gives the last column of next its value in the rows there are.
func (r *run) fillNewColumn(ctx context.Context, t, next *catalog.TableDescriptor) error {
	col := &next.Columns[len(next.Columns)-1]
	value := types.Null
	ev := r.evaluator(ctx)
	exclusive := r.ch.Closed(t.ID)
	constrained := col.Type.HasDomain()
	if constrained {
		empty, err := r.empty(ctx, t)
		if err != nil {
			return err
		}
		if empty {
			return r.update(ctx, t, next, exclusive)
		}
	}
	if col.Default != "" || constrained || col.Type.IsDomain() {
		bound, err := planner.BindDefault(ctx, next, len(next.Columns)-1, r.r, r.Env)
		if err != nil {
			return err
		}
		if expr.Volatile(bound) {
			return r.fillByRewriting(ctx, t, next, func() (types.Datum, error) { return ev.eval(bound, nil) })
		}
		if value, err = ev.eval(bound, nil); err != nil {
			return err
		}
	}
	if value.IsNull() {
		if col.NotNull {
			empty, err := r.empty(ctx, t)
			if err != nil {
				return err
			}
			if !empty {
				return containsNulls(next, len(next.Columns)-1)
			}
		}
		return r.update(ctx, t, next, exclusive)
	}
	missing, err := rowenc.EncodeDatum(value)
	if err != nil {
		return err
	}
	col.Missing = missing
	return r.update(ctx, t, next, exclusive)
}

// fillByRewriting rewrites every row with a computed value.
func (r *run) fillByRewriting(ctx context.Context, t, next *catalog.TableDescriptor, value func() (types.Datum, error)) error {
	col := &next.Columns[len(next.Columns)-1]
	renumber(next)
	err := r.rewrite(ctx, t, next, func(row types.Row) (types.Row, error) {
		d, err := value()
		if err == nil && d.IsNull() && col.NotNull {
			err = containsNulls(next, len(next.Columns)-1)
		}
		return append(row[:len(row):len(row)], d), err
	})
	if err != nil {
		return err
	}
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// errStop ends a scan early.
var errStop = pgerror.New(pgerror.SuccessfulCompletion, "stop")

// empty reports whether t has no rows.
func (r *run) empty(ctx context.Context, t *catalog.TableDescriptor) (bool, error) {
	empty := true
	err := r.scanRows(ctx, t, "", func(types.Row) error {
		empty = false
		return errStop
	})
	if err == errStop {
		err = nil
	}
	return empty, err
}

func mustColumn(t *catalog.TableDescriptor, name string, pos int) (int, error) {
	ord := t.ColumnNamed(name)
	if ord < 0 {
		return 0, noColumn(t, name, "alter", pos)
	}
	return ord, nil
}

func (r *run) alterColumn(ctx context.Context, t *catalog.TableDescriptor, n *ast.AlterColumn) error {
	ord, err := mustColumn(t, n.Name, n.Position())
	if err != nil {
		return err
	}
	next := t.Clone()
	col := &next.Columns[ord]
	switch {
	case n.Drop == "EXPRESSION":
		return r.dropExpression(ctx, t, next, ord, n)
	case n.AddIdentity != "", n.Drop == "IDENTITY", n.IdentityOptions != nil:
		return r.alterIdentity(ctx, t, next, ord, n)
	case col.Generated != "" && (n.SetDefault != nil || n.DropDefault):
		e := pgerror.New(pgerror.SyntaxError, "column %q of relation %q is a generated column", n.Name, t.Name)
		if n.DropDefault {
			return e.WithHint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
		}
		return e
	case n.SetDefault != nil:
		if col.Identity != "" {
			return pgerror.New(pgerror.SyntaxError, "column %q of relation %q is an identity column", n.Name, t.Name).At(n.Position())
		}
		col.Default, err = r.defaultText(ctx, col.Name, n.SetDefault, col.Type)
	case n.DropDefault:
		if col.Identity != "" {
			return pgerror.New(pgerror.SyntaxError, "column %q of relation %q is an identity column", n.Name, t.Name).At(n.Position())
		}
		col.Default = ""
	case n.SetNotNull:
		col.NotNull = true
		if err := r.verifyRows(ctx, t, next, nil, []int{ord}); err != nil {
			return err
		}
		return r.update(ctx, t, next, true)
	case n.DropNotNull:
		if key := t.PrimaryKey(); key != nil && slices.ContainsFunc(key.Columns, func(c catalog.IndexColumn) bool { return c.ColumnID == col.ID }) {
			return pgerror.New(pgerror.InvalidTableDefinition, "column %q is in a primary key", n.Name).At(n.Position())
		}
		if col.Identity != "" {
			return pgerror.New(pgerror.SyntaxError, "column %q of relation %q is an identity column", n.Name, t.Name).At(n.Position())
		}
		col.NotNull = false
	case n.SetType != nil:
		return r.alterTypes(ctx, t, []*ast.AlterColumn{n})
	}
	if err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}

// verifyRows fails unless all rows of t, taken as rows of next, satisfy the checks and have no NULL in
// the given columns.
func (r *run) verifyRows(ctx context.Context, t, next *catalog.TableDescriptor, checks []catalog.CheckDescriptor, notNull []int) error {
	verify, err := r.verifier(ctx, next, checks, notNull)
	if err != nil {
		return err
	}
	return r.scanRows(ctx, t, "checking rows", verify)
}

// verifier makes the function that verifyRows calls with each row.
func (r *run) verifier(ctx context.Context, t *catalog.TableDescriptor, checks []catalog.CheckDescriptor, notNull []int) (func(types.Row) error, error) {
	bound := make([]expr.Scalar, len(checks))
	for i := range checks {
		var err error
		if bound[i], err = r.bindText(ctx, t, checks[i].Expr, types.TBool, inCheck); err != nil {
			return nil, err
		}
	}
	ev := r.evaluator(ctx)
	return func(row types.Row) error {
		for _, ord := range notNull {
			if row[ord].IsNull() {
				return containsNulls(t, ord)
			}
		}
		for i := range bound {
			d, err := ev.eval(bound[i], row)
			if err != nil {
				return err
			}
			if !d.IsNull() && !d.Bool() {
				e := pgerror.New(pgerror.CheckViolation, "check constraint %q of relation %q is violated by some row", checks[i].Name, t.Name)
				e.Schema, e.Table, e.Constraint = t.Schema, t.Name, checks[i].Name
				return e
			}
		}
		return nil
	}, nil
}

// retype gives a column of next the type of ALTER COLUMN … TYPE. It returns what converts a row of t to the column's new value.
func (r *run) retype(ctx context.Context, t, next *catalog.TableDescriptor, ord int, n *ast.AlterColumn) (expr.Scalar, error) {
	typ, err := planner.ResolveType(n.SetType, r.r)
	if err != nil {
		return nil, err
	}
	col := &next.Columns[ord]
	if typ, err = planner.CollateType(typ, n.Collation, r.r, n.Position()); err != nil {
		return nil, err
	}
	if err := requireStorable(col.Name, typ, n.Position()); err != nil {
		return nil, err
	}
	if err := r.mayUseType(typ); err != nil {
		return nil, err
	}
	if err := r.requireNotWithin(t, typ); err != nil {
		return nil, err
	}
	if err := requireLasting(t.Schema, typ); err != nil {
		return nil, err
	}
	if err := r.requireNoRowValues(ctx, t); err != nil {
		return nil, err
	}
	if users, err := generatedFrom(t, n.Name); err != nil {
		return nil, err
	} else if len(users) > 0 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used by a generated column").
			WithDetail("Column %q is used by generated column %q.", n.Name, users[0])
	}
	if err := r.requireNoViewUses(ctx, t, ord); err != nil {
		return nil, err
	}
	if err := r.requireNoPolicyUses(ctx, t, ord); err != nil {
		return nil, err
	}
	if triggers, err := triggersNaming(t, col); err != nil {
		return nil, err
	} else if len(triggers) > 0 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used in a trigger definition").
			WithDetail("trigger %s on table %s depends on column %q", triggers[0].name, r.displayed(ctx, t), n.Name)
	}
	if err := r.alterIdentityType(ctx, col, typ, n); err != nil {
		return nil, err
	}
	convert, err := r.conversion(ctx, t, ord, typ, n)
	if err != nil {
		return nil, err
	}
	col.Type = typ
	collateIndexes(next, col.ID, t.Columns[ord].Type.Coll, typ.Coll)
	return convert, nil
}

func retypedTwice(n *ast.AlterColumn) error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of column %q twice", n.Name).At(n.Position())
}

// collateIndexes gives the indexes over a column its new collation, but for those with another one than it had.
func collateIndexes(t *catalog.TableDescriptor, columnID uint32, old, now *collation.Collation) {
	visit := func(ix *catalog.IndexDescriptor) {
		for i := range ix.Columns {
			if c := &ix.Columns[i]; c.ColumnID == columnID && c.Coll == old {
				c.Coll = now
			}
		}
	}
	visit(&t.Primary)
	for i := range t.Indexes {
		visit(&t.Indexes[i])
	}
	t.RenewRules() // All keys are made anew.
}

// conversion binds the expression that converts old values: USING, or an assignment cast.
func (r *run) conversion(ctx context.Context, t *catalog.TableDescriptor, ord int, typ types.Type, n *ast.AlterColumn) (expr.Scalar, error) {
	using := n.Using
	if generated := t.Columns[ord].Generated; generated != "" {
		if using != nil {
			return nil, pgerror.New(pgerror.InvalidColumnDefinition, "cannot specify USING when altering type of generated column").
				WithDetail("Column %q is a generated column.", n.Name)
		}
		var err error
		if using, err = sql.ParseExpr(generated); err != nil {
			return nil, err
		}
	}
	if using == nil {
		using = &ast.ColumnRef{Parts: []string{t.Columns[ord].Name}}
	}
	bound, err := r.bind(ctx, t, using, typ, inUsing)
	if pg, ok := err.(*pgerror.Error); ok && (pg.Code == pgerror.CannotCoerce || pg.Code == pgerror.DatatypeMismatch) {
		name := t.Columns[ord].Name
		if n.Using != nil {
			return nil, pgerror.New(pgerror.DatatypeMismatch,
				"result of USING clause for column %q cannot be cast automatically to type %s", name, typ.String()).
				WithHint("You might need to add an explicit cast.").At(n.Position())
		}
		return nil, pgerror.New(pgerror.DatatypeMismatch, "column %q cannot be cast automatically to type %s", name, typ.String()).
			WithHint("You might need to specify \"USING " + keyword.QuoteIdent(name) + "::" + typ.String() + "\".").At(n.Position())
	}
	return bound, err
}

// fitDependents checks that the objects that depend on a column are compatible with its new type: default, checks,
// indexes.
func (r *run) fitDependents(ctx context.Context, next *catalog.TableDescriptor, ord int) error {
	col := &next.Columns[ord]
	if col.Default != "" {
		if _, err := r.bindText(ctx, nil, col.Default, col.Type, inDefault); err != nil {
			return pgerror.New(pgerror.DatatypeMismatch, "default for column %q cannot be cast automatically to type %s", col.Name, col.Type.String())
		}
	}
	indexed := slices.ContainsFunc(append([]catalog.IndexDescriptor{next.Primary}, next.Indexes...), func(ix catalog.IndexDescriptor) bool {
		return slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return c.ColumnID == col.ID })
	})
	if indexed {
		if err := requireIndexable(col); err != nil {
			return err
		}
	}
	return nil
}
