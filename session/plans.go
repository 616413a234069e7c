package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// lookup returns the plan of a lexed statement, or its tree when it is not one that has a plan.
// declared are the parameter types the client gave; latest: the statement may read without a snapshot.
func (m *plans) lookup(ctx context.Context, st *sql.Statement, declared []types.Type, latest bool) (*cachedPlan, ast.Statement, error) {
	if err := m.travel.reset(); err != nil {
		return nil, nil, err
	}
	if len(st.Key) == 0 || m.tx.changed || m.tx.phase == failed { // A failed block needs no plan, for which a transaction would begin.
		return m.planText(ctx, st, declared)
	}
	key := m.keyOf(st.Key, declared)
	if hit := m.own(key); hit != nil {
		if err := m.travel.beginFor(ctx, hit.Plan, st, latest); err != nil {
			return nil, nil, err
		}
		ok, err := hit.holds(ctx, m.tx, m.tx.resolver)
		if ok || err != nil {
			m.metrics.PlanCacheHits.Inc()
			return hit, nil, err
		}
	}
	if m.tx.temporary().Version() != 0 { // Its plans are of no use to other sessions, and theirs not to it.
		return m.planOwn(ctx, string(key), st, declared)
	}
	return m.lookupShared(ctx, string(key), st, declared, latest)
}

// planOwn plans a statement for this session alone.
func (m *plans) planOwn(ctx context.Context, key string, st *sql.Statement, declared []types.Type) (*cachedPlan, ast.Statement, error) {
	m.metrics.PlanCacheMisses.Inc()
	c, tree, err := m.planText(ctx, st, declared)
	if err == nil && c != nil {
		m.keep(key, c)
	}
	return c, tree, err
}

// lookupShared asks the server's cache, and else plans the statement.
func (m *plans) lookupShared(ctx context.Context, key string, st *sql.Statement, declared []types.Type, latest bool) (*cachedPlan, ast.Statement, error) {
	if plan, ok := m.find(key); ok {
		if err := m.travel.beginFor(ctx, plan, st, latest); err != nil {
			return nil, nil, err
		}
		c := &cachedPlan{Plan: plan, version: plan.SchemaVersion} // It is used only where there are no temporary relations.
		ok, err := c.holds(ctx, m.tx, m.tx.resolver)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			m.metrics.PlanCacheHits.Inc()
			m.keep(key, c)
			return c, nil, nil
		}
	}
	m.metrics.PlanCacheMisses.Inc()
	c, tree, err := m.planText(ctx, st, declared)
	if err == nil && c != nil {
		m.shared.keep(key, c.Plan)
		m.keep(key, c)
	}
	return c, tree, err
}

// planText parses a statement, and plans it if it is one of those that have plans.
func (m *plans) planText(ctx context.Context, st *sql.Statement, declared []types.Type) (*cachedPlan, ast.Statement, error) {
	tree, err := sql.Parse(st, m.meter)
	if err != nil {
		return nil, nil, err
	}
	if q, ok := tree.(*ast.Query); ok && !st.Inner {
		if into := q.TakeInto(); into != nil {
			tree = into
		}
	}
	if !hasPlan(tree) || m.tx.phase == failed {
		return nil, tree, nil
	}
	c, err := m.planTree(ctx, tree, st.Literals, declared)
	return c, tree, err
}

// hasPlan tells queries and changes of rows from everything else.
func hasPlan(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge, *ast.CallProcedure:
		return true
	}
	return false
}

// beginFor begins the transaction that a tree reads in.
func (m *plans) beginFor(ctx context.Context, tree ast.Statement) error {
	if q, ok := tree.(*ast.Query); ok && q.AsOf() != nil {
		return m.travel.begin(ctx, q.AsOf())
	}
	return m.tx.begin(ctx)
}

func (m *plans) planTree(ctx context.Context, tree ast.Statement, literals []sql.Literal, declared []types.Type) (*cachedPlan, error) {
	if err := m.beginFor(ctx, tree); err != nil {
		return nil, err
	}
	return m.build(ctx, tree, m.tx.resolver, literals, declared, nil)
}

// build plans a tree under a resolver. params are the values of parameters, nil: they are not known yet.
func (m *plans) build(ctx context.Context, tree ast.Statement, r catalog.Resolver, literals []sql.Literal, declared []types.Type, params types.Row) (*cachedPlan, error) {
	return m.buildWith(ctx, tree, r, planner.Options{ParamTypes: declared, Literals: literals, Params: params})
}

// buildWith plans a tree under a resolver; opts are completed by those of the session.
func (m *plans) buildWith(ctx context.Context, tree ast.Statement, r catalog.Resolver, opts planner.Options) (*cachedPlan, error) {
	opts.SearchPath, opts.Meter = m.settings.SearchPath, m.meter
	opts.Access, opts.RowSecurityOff = m.tx.acting.accessTo(r), m.settings.RowSecurityOff
	if m.tx.ownSchema() {
		now, err := m.tx.inForce(ctx)
		if err != nil {
			return nil, err
		}
		if now.Version() != r.Version() || m.tx.changed {
			opts.Present = now
		}
	}
	plan, err := planner.Build(ctx, tree, r, m.env, opts)
	if err != nil {
		return nil, err
	}
	return &cachedPlan{Plan: plan, version: plan.SchemaVersion, temporary: m.tx.temporary().Version()}, nil
}

// refresh begins the snapshot of a statement that shares its transaction, and returns its plan as it
// is under that.
func (m *plans) refresh(ctx context.Context, plan *cachedPlan, st *sql.Statement) (*cachedPlan, error) {
	if m.tx.phase == failed {
		return nil, failedBlockError()
	}
	if err := m.tx.nextStatement(ctx); err != nil {
		return nil, err
	}
	if err := m.tx.begin(ctx); err != nil {
		return nil, err
	}
	if ok, err := plan.holds(ctx, m.tx, m.tx.resolver); ok || err != nil {
		return plan, err
	}
	plan, _, err := m.lookup(ctx, st, nil, false)
	return plan, err
}

// prepare plans a statement under the present schema.
func (m *plans) prepare(ctx context.Context, p *prepared, latest bool) error {
	startStatement(m.env)
	plan, tree, err := m.lookup(ctx, p.statement, p.declared, latest)
	if err != nil {
		return err
	}
	p.plan = plan
	if tree != nil {
		p.tree = tree
	}
	if m.tx.phase == failed && !endsBlock(p.tree) {
		return failedBlockError()
	}
	if plan != nil {
		p.params = plan.ParamTypes
	}
	return nil
}

// prepareCursor plans the query of a cursor, which yields more than the same query elsewhere (planner.Position).
func (m *plans) prepareCursor(ctx context.Context, p *prepared) error {
	if m.tx.phase == failed {
		return failedBlockError()
	}
	startStatement(m.env)
	if err := m.travel.reset(); err != nil {
		return err
	}
	tree, err := sql.Parse(p.statement, m.meter)
	if err != nil {
		return err
	}
	if err := m.beginFor(ctx, tree); err != nil {
		return err
	}
	plan, err := m.buildWith(ctx, tree, m.tx.resolver, planner.Options{Literals: p.statement.Literals, Cursor: true})
	if err != nil {
		return err
	}
	if len(plan.ParamTypes) > 0 {
		return pgerror.Unsupported("a parameter in DECLARE CURSOR", "Open the cursor in PL/pgSQL (OPEN … FOR), or write the value.")
	}
	p.tree, p.plan = tree, plan
	return nil
}

// validate makes sure that a prepared statement's plan holds under the transaction's schema.
func (m *plans) validate(ctx context.Context, p *prepared, latest bool) error {
	if p.plan == nil {
		return nil
	}
	if err := m.travel.reset(); err != nil {
		return err
	}
	if err := m.travel.beginFor(ctx, p.plan.Plan, p.statement, latest); err != nil {
		return err
	}
	ok, err := p.plan.holds(ctx, m.tx, m.tx.resolver)
	if ok || err != nil {
		return err
	}
	// The client knows the types of parameters and columns, so those must stay.
	anew := *p
	anew.declared = p.params
	if err := m.prepare(ctx, &anew, latest); err != nil {
		return err
	}
	if anew.plan != nil && !sameColumns(p.plan.Root.Columns(), anew.plan.Root.Columns()) {
		return pgerror.New(pgerror.FeatureNotSupported, "cached plan must not change result type")
	}
	*p = anew
	return nil
}

func sameColumns(a, b []Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Type.Same(b[i].Type) || a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}
