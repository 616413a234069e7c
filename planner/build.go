package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Options influence planning in addition to the text and the schema.
type Options struct {
	// ParamTypes are the types the client declared for $1…; the zero Type, or none, means that the
	// text decides.
	ParamTypes []types.Type
	// SearchPath is the session's; the resolver is already set to it.
	SearchPath []string
	// Literals are the values of slotted literals. They serve estimates only: a plan means the same
	// for all values.
	Literals []sql.Literal
	// Params are the values of parameters, for estimates as well; nil: they are not known.
	Params types.Row
	// NoSlots makes constants of all literals: for views, defaults and DDL.
	NoSlots bool
	// Access is that of whoever plans the statement: a schema that the role may not use contains nothing for it. nil: everything can be
	// seen.
	Access *catalog.Access
	// Cursor: the query is a cursor's, so that its plan has Positions.
	Cursor bool
	// RowSecurityOff: a statement that policies would affect is refused with 42501.
	RowSecurityOff bool
	// Present is the schema in force for a statement that is planned under another one, of an older snapshot or of the past: its policies and
	// roles decide. nil: it is the resolver's.
	Present catalog.Resolver
	// Rows are rows that the statement may name, outside of all that it reads. Their parameters come before others.
	Rows []InputRow
	// RowsOf is the table whose rows Rows are; nil: reading them needs no privilege.
	RowsOf *catalog.TableDescriptor
	// Result is the call of the function whose last statement it is: its columns become those that the function returns. nil: they stay.
	Result *builtin.RoutineCall
	// Stored: the statement is one that the catalog holds, whose names were found when it was stored.
	Stored bool
	// Variables are what the statement may name beside columns; nil: there are none.
	Variables Variables
	// Assign: the query computes a part of a value, and yields the whole with the part replaced; nil: it yields what it computes.
	Assign *AssignedPart
	// Meter is polled and draws memory as a long statement is planned; nil: the context alone is polled.
	Meter *sql.Meter
	// Trace, if set, is called with the tree after each rewriting rule.
	Trace func(rule, tree string)
}

// Build plans a Query, Insert, Update, Delete or Merge.
//
// Errors are *pgerror.Error with PostgreSQL's SQLSTATE and the position in the text, or errors of the resolver.
func Build(ctx context.Context, stmt ast.Statement, r catalog.Resolver, env *builtin.Env, opts Options) (*Plan, error) {
	b := &binder{ctx: ctx, r: r, env: env, opts: opts, noSlots: opts.NoSlots}
	if opts.Stored {
		b.r = catalog.ForStored(r)
		b.stored++
	}
	b.declareParams()
	p := &physical{b: b}
	plan := &Plan{SchemaVersion: r.Version(), SearchPath: catalog.Path(r), ObjectsVersion: r.Grants().ObjectsVersion, RoutinesVersion: r.Routines().Version(),
		TextSearchVersion: r.TextSearch().Version(), Collations: r.Collations(), Operations: r.Operations()}
	outer := b.rowScope()
	var err error
	switch s := stmt.(type) {
	case *ast.Query:
		b.travels, b.top = s, s.With
		plan.AsOf = s.AsOf() != nil
		err = p.planQuery(plan, s, outer)
	case *ast.CallProcedure:
		err = p.planCall(plan, s, outer)
	default:
		b.top = ast.WithOf(stmt)
		err = p.planChange(plan, stmt, outer)
	}
	if err != nil {
		return nil, err
	}
	if err := p.planModifying(plan); err != nil {
		return nil, err
	}
	p.complete(plan)
	return plan, nil
}

// complete gives a plan what was found while its root was planned.
func (p *physical) complete(plan *Plan) {
	b := p.b
	plan.ParamTypes = b.params
	plan.Inputs, plan.CurrentOf = p.inputs, b.currentOf
	plan.Relations = b.relations
	plan.Names = b.names
	plan.Types, plan.Extensions = b.types, b.extensions
	plan.Needs = b.needs
	plan.Subqueries = b.subs
	if plan.CallsRoutines = b.routines; b.routines && b.volatile {
		plan.ReadOnly = false
	}
	plan.Locks, plan.Unpopulated = b.locks, b.unpopulated
	if a := b.opts.Access; b.byRole {
		plan.Role, plan.Roles, plan.Guarded = a.Role, a.Roles, b.guarded
	}
	if b.opts.Present != nil {
		plan.PresentVersion = b.opts.Present.Version()
	}
	plan.Changes = p.changes
	for _, t := range p.depends {
		if !slices.Contains(plan.Writes, t) {
			plan.Writes = append(plan.Writes, t)
		}
	}
	plan.SinglePoint = plan.ReadOnly && len(p.ctes) == 0 && b.subs == 0 && !b.volatile && !b.routines && !plan.AsOf && readsOneKey(plan.Root)
	for _, c := range p.ctes {
		plan.CTEs = append(plan.CTEs, c.node)
	}
	plan.SetProperties()
	plan.RelationLocks = plan.relationLocks()
	p.noteGuesses(plan)
}

// readsOneKey reports whether the tree is a PointGet that needs no second read, under nodes that read nothing.
func readsOneKey(n Node) bool {
	switch n := n.(type) {
	case *PointGet:
		return !n.Fetch
	case *Append:
		return n.Alone && !slices.ContainsFunc(n.Inputs, func(in Node) bool { return !readsOneKey(in) })
	case *Project, *Filter, *Limit, *Sort, *TopN, *Aggregate, *WindowAgg, *Distinct:
		return readsOneKey(n.Children()[0])
	}
	return false
}

// BindExpr binds an expression over one row of a table, as in CHECK constraints, defaults, and ALTER COLUMN … USING; if
// t is nil, no column may be named. The value is coerced to want as for an assignment; the zero Type leaves it as it is.
// clause is named in errors: "CHECK constraints".
func BindExpr(ctx context.Context, e ast.Expr, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env, want types.Type, clause string) (expr.Scalar, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	sc := newScope(b, nil)
	var cols []int
	if t != nil {
		scan := b.newScan(t, t.Name, nil)
		cols = scan.cols
		sc.items = append(sc.items, scanItem(scan, t.Name, true))
	}
	return b.standalone(sc, e, cols, want, clause)
}

// BindCondition binds a condition on the rows of a table, WHERE of COPY FROM, and returns it with what evaluating it needs.
func BindCondition(ctx context.Context, e ast.Expr, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (expr.Scalar, []*Need, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	sc := newScope(b, nil)
	scan := b.newScan(t, t.Name, b.need(t, 0))
	sc.items = append(sc.items, scanItem(scan, t.Name, true))
	sc.in("COPY FROM WHERE conditions", false, false)
	sc.noSubqueries = pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in COPY FROM WHERE condition").At(startOf(e))
	x, err := sc.boolean(e, "WHERE")
	if err != nil {
		return nil, nil, err
	}
	p := &physical{b: b}
	out := p.compile(x, scan.cols)
	return out, b.needs, p.err
}

// checkParams refuses parameters whose type is not determined.
func (b *binder) checkParams() error {
	for i, t := range b.params {
		if b.paramPos[i] == 0 && t.OID == types.OIDUnknown {
			// A number that the text skips: PostgreSQL cannot determine its type either.
			return pgerror.New(pgerror.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
		}
		if t.OID == types.OIDUnknown {
			return pgerror.New(pgerror.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1).At(b.paramPos[i])
		}
	}
	return nil
}

// planQuery plans a SELECT, VALUES or set operation.
func (p *physical) planQuery(plan *Plan, s *ast.Query, outer *scope) error {
	q, err := p.b.bindQuery(s, outer, p.b.opts.Result == nil)
	if err == nil && p.b.opts.Result != nil {
		err = p.b.shape(q, p.b.opts.Result)
	}
	if err != nil {
		return err
	}
	return p.finishQuery(plan, q)
}

// finishQuery plans a bound query.
func (p *physical) finishQuery(plan *Plan, q *query) error {
	if err := p.b.checkParams(); err != nil {
		return err
	}
	if p.b.opts.Cursor {
		visible := len(q.cols)
		plan.Positions = p.b.cursorPositions(q)
		plan.Keys = len(q.cols) - visible
	}
	q.root = p.rewrite(q.root)
	if p.err != nil {
		return p.err
	}
	root := p.output(q)
	if p.b.locks == "" && !simpleScan(root) {
		plan.Positions = nil
	}
	plan.Root, plan.Tag, plan.Returns, plan.ReadOnly = root, "SELECT", true, p.b.locks == ""
	return p.err
}

// output plans a query's tree and gives the result its columns' names and places.
func (p *physical) output(q *query) Node {
	ids := q.ids()
	pn := p.exact(q.root, ids, 0)
	out := make([]Column, len(q.cols))
	for i, c := range q.cols {
		out[i] = p.b.cols[c.id].Column
		out[i].Name = c.name
	}
	setColumns(pn.node, out)
	return pn.node
}

// planChange plans an INSERT, UPDATE, DELETE or MERGE.
func (p *physical) planChange(plan *Plan, stmt ast.Statement, outer *scope) error {
	c, err := p.b.bindChange(stmt, outer)
	if err == nil && p.b.opts.Result != nil {
		err = p.b.shapeReturning(c.returning, p.b.opts.Result)
	}
	if err != nil {
		return err
	}
	if err := p.b.checkParams(); err != nil {
		return err
	}
	plan.Root = p.change(c)
	plan.Tag, plan.Returns = c.tag, c.returning != nil
	plan.Writes = append(plan.Writes, c.table)
	return p.err
}
