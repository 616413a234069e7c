package ddl

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func (r *run) createView(ctx context.Context, n *ast.CreateView) error {
	schema, err := r.newRelationSchema(ctx, n.Name, n.Persistence)
	if err != nil {
		return err
	}
	if !catalog.IsTemporary(schema) {
		if uses, err := r.usesTemporary(ctx, n); err != nil {
			return err
		} else if uses {
			r.notice(pgerror.SuccessfulCompletion, "view %q will be a temporary view", n.Name.Name)
			if n.Name.Schema != "" {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema")
			}
			schema = r.Temporary.Name()
		}
	}
	old, err := r.r.Relation(ctx, schema, n.Name.Name)
	if err != nil {
		return err
	}
	if old != nil && (!n.OrReplace || old.Kind != catalog.KindView) {
		if n.OrReplace {
			return pgerror.New(pgerror.WrongObjectType, "%q is not a view", n.Name.Name).At(n.Name.Position())
		}
		return relationExists(n.Name.Name).At(n.Name.Position())
	}
	if taken, err := r.nameTaken(ctx, schema, n.Name.Name); err != nil || taken && old == nil {
		return errorOr(err, relationExists(n.Name.Name))
	}
	if old == nil {
		if err := r.requireNoType(ctx, schema, n.Name.Name); err != nil {
			return err
		}
	}
	view := &catalog.TableDescriptor{Kind: catalog.KindView, Schema: schema, Name: n.Name.Name, NextColumnID: 1}
	if err := setViewOptions(view, n.Options, false); err != nil {
		return err
	}
	if n.CheckOption != "" {
		view.CheckOption = catalog.CheckOption(strings.ToLower(n.CheckOption))
	}
	if err := r.describeView(ctx, view, n); err != nil {
		return err
	}
	if err := r.mayCheck(ctx, view); err != nil {
		return err
	}
	if old == nil {
		if view.ID, err = r.ch.NewID(ctx); err != nil {
			return err
		}
		if err := r.create(ctx, view); err != nil {
			return err
		}
		return r.look(ctx)
	}
	if slices.Contains(view.DependsOn, old.ID) {
		return pgerror.New(pgerror.InvalidTableDefinition, "infinite recursion detected in rules for relation %q", view.Name)
	}
	if err := compatibleView(old, view); err != nil {
		return err
	}
	for i := range view.Columns {
		if err := r.requireNotWithin(old, view.Columns[i].Type); err != nil {
			return err
		}
	}
	view.ID, view.Comment, view.Owned, view.Triggers = old.ID, old.Comment, old.Owned, old.Triggers
	for i := range old.Columns {
		c, was := &view.Columns[i], &old.Columns[i]
		c.ACL, c.Default, c.Comment = was.ACL, was.Default, was.Comment
	}
	return r.update(ctx, old, view, false)
}

// setViewOptions sets options of a view, or resets them.
func setViewOptions(view *catalog.TableDescriptor, options []ast.StorageOption, reset bool) error {
	for _, o := range options {
		view.Options = slices.DeleteFunc(slices.Clone(view.Options), func(have string) bool { return strings.HasPrefix(have, o.Name+"=") })
		if !reset {
			view.Options = append(view.Options, o.Name+"="+orTrue(o.Value))
		}
		switch o.Name {
		case "security_invoker":
			view.SecurityInvoker = false
			if reset {
				continue
			}
			if err := parseBoolOption(o.Name, o.Value, &view.SecurityInvoker); err != nil {
				return err
			}
		case "security_barrier":
			view.SecurityBarrier = false
			if reset {
				continue
			}
			if err := parseBoolOption(o.Name, o.Value, &view.SecurityBarrier); err != nil {
				return err
			}
		case "check_option":
			view.CheckOption = catalog.CheckNone
			if reset {
				continue
			}
			switch view.CheckOption = catalog.CheckOption(strings.ToLower(o.Value)); view.CheckOption {
			case catalog.CheckLocal, catalog.CheckCascaded:
			default:
				return pgerror.New(pgerror.InvalidParameterValue, "invalid value for enum option %q: %s", o.Name, o.Value).
					WithDetail("Valid values are \"local\" and \"cascaded\".")
			}
		default:
			if !reset { // As in PostgreSQL, RESET names what it likes.
				return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", o.Name)
			}
		}
	}
	return nil
}

// mayCheck refuses WITH CHECK OPTION of a view that is not updatable.
func (r *run) mayCheck(ctx context.Context, view *catalog.TableDescriptor) error {
	if view.CheckOption == catalog.CheckNone {
		return nil
	}
	reason, err := planner.NotUpdatable(ctx, view, r.r, r.Env)
	if err != nil || reason == "" {
		return err
	}
	return pgerror.New(pgerror.FeatureNotSupported, "WITH CHECK OPTION is supported only on automatically updatable views").WithHint(reason)
}

// viewQuery returns the query of a view: CREATE RECURSIVE VIEW name (columns) AS query means a recursive WITH item of the view's name.
func viewQuery(n *ast.CreateView) *ast.Query {
	if !n.Recursive {
		return n.Query
	}
	sel := &ast.Select{From: []ast.TableExpr{&ast.TableRef{Name: ast.TableName{Name: n.Name.Name}}}}
	for _, c := range n.Columns {
		sel.Columns = append(sel.Columns, ast.SelectItem{Expr: &ast.ColumnRef{Parts: []string{c}}, Name: c})
	}
	item := ast.CTE{Pos: n.Name.Pos, Name: n.Name.Name, Columns: n.Columns, Statement: n.Query}
	return &ast.Query{With: &ast.With{Recursive: true, CTEs: []ast.CTE{item}}, Body: sel}
}

// describeView fills in columns, query and dependencies. The query is kept with all names qualified and
// all stars spelled out, so that it means the same whatever is created or added later.
func (r *run) describeView(ctx context.Context, view *catalog.TableDescriptor, n *ast.CreateView) error {
	q := viewQuery(n)
	if q.With.Modifies() {
		return pgerror.New(pgerror.FeatureNotSupported, "views must not contain data-modifying statements in WITH")
	}
	if err := r.pinRelations(ctx, q, view); err != nil {
		return err
	}
	if err := planner.PinQuery(ctx, q, r.r, r.Env); err != nil {
		return err
	}
	cols, err := r.queryColumns(ctx, q)
	if err != nil {
		return err
	}
	ast.InspectQuery(q, ast.Visitor{Expr: r.pinNames})
	view.ViewQuery = q.String()
	if len(n.Columns) > len(cols) {
		return pgerror.New(pgerror.SyntaxError, "CREATE VIEW specifies more column names than columns").At(n.Position())
	}
	for i, c := range cols {
		name := c.Name
		if i < len(n.Columns) {
			name = n.Columns[i]
		}
		if view.ColumnNamed(name) >= 0 {
			return pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", name).At(n.Position())
		}
		if t := c.Type; t.OID == types.OIDRecord || t.IsArray() && t.Elem().OID == types.OIDRecord {
			return pgerror.New(pgerror.InvalidTableDefinition, "column %q has pseudo-type %s", name, builtin.TypeName(t))
		}
		if c.Type.Coll.Undetermined() {
			return builtin.Undetermined("view column \"" + name + "\"")
		}
		if err := r.mayUseType(c.Type); err != nil {
			return err
		}
		view.Columns = append(view.Columns, catalog.ColumnDescriptor{ID: view.NextColumnID, Name: name, Type: storedType(c.Type)})
		view.NextColumnID++
	}
	return r.nameOutputs(ctx, view)
}

// nameOutputs has the query of a view name its output columns as the view does, where that is possible: its text is shown.
func (r *run) nameOutputs(ctx context.Context, view *catalog.TableDescriptor) error {
	stmt, err := sql.ParseStatement(view.ViewQuery)
	if err != nil {
		return err
	}
	q := stmt.(*ast.Query)
	s, ok := leftmost(q.Body).(*ast.Select)
	if !ok || len(s.Columns) != len(view.Columns) {
		return nil
	}
	named := false
	for i := range s.Columns {
		if it := &s.Columns[i]; it.Name != view.Columns[i].Name {
			renameOrder(q.OrderBy, it.Name, view.Columns[i].Name)
			it.Name, it.Aliased, named = view.Columns[i].Name, true, true
		}
	}
	if !named {
		return nil
	}
	if _, err := r.queryColumns(ctx, q); err == nil {
		view.ViewQuery = q.String()
	}
	return ctx.Err()
}

// leftmost is the part of a query's body that names the output columns.
func leftmost(body ast.QueryBody) ast.QueryBody {
	for {
		op, ok := body.(*ast.SetOp)
		if !ok {
			return body
		}
		body = op.L
	}
}

// renameOrder has ORDER BY name an output column by its new name.
func renameOrder(order []ast.OrderItem, from, to string) {
	for i := range order {
		if ref, ok := order[i].Expr.(*ast.ColumnRef); ok && len(ref.Parts) == 1 && ref.Parts[0] == from {
			ref.Parts[0] = to
		}
	}
}

// compatibleView checks that a view may replace another: it may only add columns at the end.
func compatibleView(old, view *catalog.TableDescriptor) error {
	if len(view.Columns) < len(old.Columns) {
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i := range old.Columns {
		was, is := &old.Columns[i], &view.Columns[i]
		if was.Name != is.Name {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change name of view column %q to %q", was.Name, is.Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if was.Type.Same(is.Type) && was.Type.Coll != is.Type.Coll {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change collation of view column %q from %q to %q",
				was.Name, was.Type.Coll.String(), is.Type.Coll.String())
		}
		if was.Type != is.Type {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot change data type of view column %q from %s to %s",
				was.Name, was.Type.String(), is.Type.String())
		}
	}
	return nil
}

// queryColumns plans a query and returns its output columns.
func (r *run) queryColumns(ctx context.Context, q *ast.Query) ([]planner.Column, error) {
	if x := q.AsOf(); x != nil {
		return nil, pgerror.Unsupported("AS OF SYSTEM TIME in a view", "Give it to the query of the view.").At(int(x.Position()))
	}
	plan, err := planner.Build(ctx, q, r.r, r.Env, planner.Options{NoSlots: true, ParamTypes: r.Params.Types})
	if err != nil {
		return nil, err
	}
	if len(plan.ParamTypes) > len(r.Params.Types) {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	return plan.Root.Columns(), nil
}

// viewsOn lists the views and materialized views that name a relation, by age.
func (r *run) viewsOn(ctx context.Context, id uint64) ([]*catalog.TableDescriptor, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	var users []*catalog.TableDescriptor
	for _, t := range all {
		if t.HasQuery() && slices.Contains(t.DependsOn, id) {
			users = append(users, t)
		}
	}
	slices.SortFunc(users, func(a, b *catalog.TableDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	return users, nil
}

// replaced is a resolver in which one relation is replaced by another descriptor.
type replaced struct {
	catalog.Resolver
	t *catalog.TableDescriptor
}

func (p replaced) Relation(ctx context.Context, schema, name string) (*catalog.TableDescriptor, error) {
	t, err := p.Resolver.Relation(ctx, schema, name)
	if t != nil && t.ID == p.t.ID {
		t = p.t
	}
	return t, err
}

func (p replaced) RelationByID(ctx context.Context, id uint64) (*catalog.TableDescriptor, error) {
	if id == p.t.ID {
		return p.t, nil
	}
	return p.Resolver.RelationByID(ctx, id)
}

// brokenViews lists the views that could not be planned if t became next.
func (r *run) brokenViews(ctx context.Context, t, next *catalog.TableDescriptor) ([]*catalog.TableDescriptor, error) {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var broken []*catalog.TableDescriptor
	for _, view := range users {
		stmt, err := sql.ParseStatement(view.ViewQuery)
		if err != nil {
			return nil, err
		}
		if _, err := planner.Build(ctx, stmt, replaced{r.r, next}, r.Env, planner.Options{NoSlots: true}); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			broken = append(broken, view)
		}
	}
	return broken, nil
}

// dropBroken handles the views and observers that use columns dropped from t: an error, or with cascade they are dropped too, those of
// t from next.
func (r *run) dropBroken(ctx context.Context, t, next *catalog.TableDescriptor, what string, cascade bool) error {
	views, err := r.brokenViews(ctx, t, next)
	if err != nil {
		return err
	}
	observers, err := r.brokenObservers(ctx, t, next)
	if err != nil {
		return err
	}
	policies, err := r.brokenPolicies(ctx, t, next)
	if err != nil || len(views)+len(observers)+len(policies) == 0 {
		return err
	}
	d := newDropping(r)
	d.changing = next
	for _, view := range views {
		if err := d.addDependent(ctx, view, r.describe(ctx, view)+" depends on "+what); err != nil {
			return err
		}
	}
	for _, use := range observers {
		d.addObserver(use, what)
	}
	for _, use := range policies {
		d.addPolicy(ctx, use, what)
	}
	if err := d.addRowTypeUses(ctx); err != nil {
		return err
	}
	if !cascade {
		return d.refuse(ctx, what)
	}
	for _, u := range d.rows {
		d.others = append(d.others, u.uses.describe(nil)...)
		if err := r.dropDependents(ctx, u.uses); err != nil {
			return err
		}
	}
	return d.execute(ctx)
}

// requireNoViewUses fails if a view uses the column, as PostgreSQL does before its type changes.
func (r *run) requireNoViewUses(ctx context.Context, t *catalog.TableDescriptor, ord int) error {
	without := t.Clone()
	without.Columns[ord].Hidden = true // It stays in its place, for indexes.
	broken, err := r.brokenViews(ctx, t, without)
	if err != nil || len(broken) == 0 {
		return err
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
		WithDetail("rule _RETURN on %s %s depends on column %q", kindWord(broken[0]), broken[0].Name, t.Columns[ord].Name)
}
