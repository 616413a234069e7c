package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// invalidObjectDefinition is PostgreSQL's SQLSTATE for policies that refer to each other.
const invalidObjectDefinition pgerror.Code = "42P17"

// barrierRel separates a table with its policies, or the query of a view, from the conditions of whoever reads it: a condition from above
// is evaluated only for the rows that it yields, unless the condition is leakproof.
type barrierRel struct {
	input rel
	// guard has the policies; nil: of a view.
	guard *guard
}

func (*barrierRel) rel() {}

// guard is a table whose policies decide for the role that a part of the statement acts for.
type guard struct {
	table  *catalog.TableDescriptor
	from   *catalog.TableDescriptor // has the policies: table, or for a statement that reads the past its present descriptor
	access *catalog.Access
	as     uint32
	row    nsItem // the table's row in the policies' conditions
	// commands are those whose policies were added.
	commands []catalog.PolicyCommand
	used     [][]*catalog.PolicyDescriptor // of which one must let a row pass
	names    []string                      // of the policies in force, for EXPLAIN
}

// guardOf returns what guards a table; nil: every row may be read and written.
func (b *binder) guardOf(t *catalog.TableDescriptor) (*guard, error) {
	a := b.opts.Access
	if a == nil || t.Kind != catalog.KindTable {
		return nil, nil
	}
	from := t
	if b.opts.Present != nil {
		now, err := b.opts.Present.RelationByID(b.ctx, t.ID)
		if err != nil {
			return nil, err
		}
		if a = catalog.NewAccess(b.opts.Present, a.Role); now != nil {
			from = now
		}
	}
	if !from.RowSecurity {
		return nil, nil
	}
	b.byRole = true
	if b.as != 0 {
		a = a.As(b.as)
	}
	if a.RowSecurity(from) != catalog.RowSecurityApplies {
		return nil, nil
	}
	if b.opts.RowSecurityOff {
		e := pgerror.New(pgerror.InsufficientPrivilege, "query would be affected by row-level security policy for table \"%s\"", t.Name)
		if a.Owns(from.OwnerOID()) {
			e = e.WithHint("To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY.")
		}
		return nil, e
	}
	b.guarded = true
	return &guard{table: t, from: from, access: a, as: b.as}, nil
}

// guardScan puts a barrier above the scan of a table that is guarded, without any policy yet; otherwise it returns the scan.
func (b *binder) guardScan(s *scanRel) (rel, error) {
	g, err := b.guardOf(s.table)
	if g == nil || err != nil {
		return s, err
	}
	g.row = g.rowOf(s.column)
	s.barrier = &barrierRel{input: s, guard: g}
	return s.barrier, nil
}

// rowOf puts a row of the table in sight of the policies, under the names that its columns have where the policies are from. column
// returns the column with an ordinal of the table.
func (g *guard) rowOf(column func(ordinal int) nsCol) nsItem {
	it := nsItem{schema: g.from.Schema, alias: g.from.Name, rel: true, open: true}
	for i := range g.from.Columns {
		c := &g.from.Columns[i]
		if ord := g.table.Ordinal(c.ID); ord >= 0 && !c.Hidden {
			col := column(ord)
			col.name, col.need = c.Name, nil // Whoever reads or writes the row need not have privileges on what the policies read of it.
			it.cols = append(it.cols, col)
		}
	}
	return it
}

// column returns the column with an ordinal.
func (s *scanRel) column(ordinal int) nsCol { return nsCol{id: s.cols[ordinal]} }

// restrict lets only those rows pass the barrier of a scan that the policies for a command let pass. A scan without barrier is left alone.
func (b *binder) restrict(s *scanRel, c catalog.PolicyCommand) error {
	if s.barrier == nil || slices.Contains(s.barrier.guard.commands, c) {
		return nil
	}
	g := s.barrier.guard
	conds, err := b.using(g, c)
	if err != nil {
		return err
	}
	// The policies of the first command were there before.
	if below, ok := s.barrier.input.(*filterRel); ok {
		below.conds = append(below.conds, conds...)
	} else if len(conds) > 0 {
		s.barrier.input = &filterRel{input: s.barrier.input, conds: conds}
	}
	s.policies = g.names
	return nil
}

// using returns the conditions under which the policies let a command see an existing row, but for those that were asked for before.
func (b *binder) using(g *guard, c catalog.PolicyCommand) ([]expr.Scalar, error) {
	g.commands = append(g.commands, c)
	permissive, restrictive := g.access.Policies(g.from, c)
	permissive = slices.DeleteFunc(permissive, func(p *catalog.PolicyDescriptor) bool { return p.Using == "" })
	if len(permissive) == 0 {
		return []expr.Scalar{expr.NewBool(false)}, nil
	}
	var out []expr.Scalar
	for i, p := range restrictive {
		if p.Using == "" {
			continue
		}
		x, err := b.anyUsing(g, restrictive[i:i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, x...)
	}
	x, err := b.anyUsing(g, permissive)
	return append(out, x...), err
}

// anyUsing returns the condition that one of some policies lets an existing row pass; none if it was asked for before.
func (b *binder) anyUsing(g *guard, policies []*catalog.PolicyDescriptor) ([]expr.Scalar, error) {
	if slices.ContainsFunc(g.used, func(before []*catalog.PolicyDescriptor) bool { return slices.Equal(before, policies) }) {
		return nil, nil
	}
	g.used = append(g.used, policies)
	conds := make([]expr.Scalar, len(policies))
	for i, p := range policies {
		x, err := b.policyCondition(g, p.Using)
		if err != nil {
			return nil, err
		}
		conds[i] = x
		g.name(p)
	}
	return []expr.Scalar{oneOf(conds)}, nil
}

// oneOf is the disjunction of conditions, of which there is at least one.
func oneOf(conds []expr.Scalar) expr.Scalar {
	if len(conds) == 1 {
		return conds[0]
	}
	return &expr.Or{Args: conds}
}

func (g *guard) name(p *catalog.PolicyDescriptor) {
	if !slices.Contains(g.names, p.Name) {
		g.names = append(slices.Clip(g.names), p.Name)
	}
}

// policyCheck is a condition that policies set for a row to be written, or for an existing one that a conflict would have updated.
type policyCheck struct {
	policy   string // the name of a restrictive policy; "": one of the permissive policies must hold
	existing bool
	cond     expr.Scalar
	text     string // of the policies, by which checks are equal
}

// policyChecks adds the conditions for rows that a command writes: those WITH CHECK, or those USING of policies that have no other.
// using: always those USING.
func (b *binder) policyChecks(dst []policyCheck, g *guard, c catalog.PolicyCommand, using bool) ([]policyCheck, error) {
	permissive, restrictive := g.access.Policies(g.from, c)
	text := func(p *catalog.PolicyDescriptor) string {
		if p.Check != "" && !using {
			return p.Check
		}
		return p.Using
	}
	var anyOf []*catalog.PolicyDescriptor
	all := ""
	for _, p := range permissive {
		if text(p) != "" {
			anyOf, all = append(anyOf, p), all+"("+text(p)+")"
		}
	}
	if len(anyOf) == 0 {
		return append(dst, policyCheck{cond: expr.NewBool(false)}), nil
	}
	dst, err := b.policyCheck(dst, g, policyCheck{text: all}, anyOf, text)
	for i := 0; i < len(restrictive) && err == nil; i++ {
		if p := restrictive[i]; text(p) != "" {
			dst, err = b.policyCheck(dst, g, policyCheck{policy: p.Name, text: text(p)}, restrictive[i:i+1], text)
		}
	}
	return dst, err
}

// policyCheck adds a check that one of some policies holds, unless it is there.
func (b *binder) policyCheck(dst []policyCheck, g *guard, check policyCheck, oneOfThem []*catalog.PolicyDescriptor, text func(*catalog.PolicyDescriptor) string) ([]policyCheck, error) {
	if slices.ContainsFunc(dst, func(have policyCheck) bool { return have.policy == check.policy && have.text == check.text }) {
		return dst, nil
	}
	conds := make([]expr.Scalar, len(oneOfThem))
	for i, p := range oneOfThem {
		x, err := b.policyCondition(g, text(p))
		if err != nil {
			return nil, err
		}
		conds[i] = x
		g.name(p)
	}
	check.cond = oneOf(conds)
	return append(dst, check), nil
}

// restrictTarget restricts the rows of an UPDATE or DELETE to those that the policies for it let pass, and those for SELECT if the
// statement reads columns.
func (b *binder) restrictTarget(s *scanRel, c catalog.PolicyCommand) error {
	if err := b.restrict(s, c); err != nil || s.need.Privileges&acl.Select == 0 {
		return err
	}
	return b.restrict(s, catalog.PolicySelect)
}

// restrictUpdate is restrictTarget for an UPDATE, whose new rows the policies check.
func (b *binder) restrictUpdate(out *change) error {
	if err := b.restrictTarget(out.scan, catalog.PolicyUpdate); err != nil || out.scan.barrier == nil {
		return err
	}
	var err error
	out.policies, err = b.writeChecks(out.scan.barrier.guard, catalog.PolicyUpdate, out.scan.need)
	return err
}

// writeChecks returns the checks of the rows that a command writes. If the statement reads columns, the rows must be visible to it.
func (b *binder) writeChecks(g *guard, c catalog.PolicyCommand, need *Need) ([]policyCheck, error) {
	checks, err := b.policyChecks(nil, g, c, false)
	if err != nil || need.Privileges&acl.Select == 0 {
		return checks, err
	}
	return b.policyChecks(checks, g, catalog.PolicySelect, true)
}

// restrictInsert has the policies check the rows of an INSERT, and those that ON CONFLICT DO UPDATE updates.
func (b *binder) restrictInsert(out *change) error {
	g, err := b.guardOf(out.table)
	if g == nil || err != nil {
		return err
	}
	g.row = g.rowOf(out.scan.column)
	need := out.scan.need
	if out.policies, err = b.writeChecks(g, catalog.PolicyInsert, need); err != nil {
		return err
	}
	out.guarded = g.names
	cf := out.conflict
	if cf == nil || !cf.doUpdate {
		return nil
	}
	if cf.existing, err = b.policyChecks(nil, g, catalog.PolicyUpdate, true); err == nil && need.Privileges&acl.Select != 0 {
		cf.existing, err = b.policyChecks(cf.existing, g, catalog.PolicySelect, true)
	}
	if err != nil {
		return err
	}
	for i := range cf.existing {
		cf.existing[i].existing = true
	}
	cf.policies, err = b.writeChecks(g, catalog.PolicyUpdate, need)
	out.guarded = g.names
	return err
}

// policies compiles checks over a full row.
func (p *physical) policies(checks []policyCheck, scan *scanRel) []PolicyCheck {
	if len(checks) == 0 {
		return nil
	}
	out := make([]PolicyCheck, len(checks))
	for i, c := range checks {
		p.rewriteIn(c.cond)
		out[i] = PolicyCheck{Policy: c.policy, Existing: c.existing, Cond: p.compile(c.cond, scan.cols)}
	}
	return out
}

// policyCondition binds a condition of a policy. What its subqueries read needs the privileges, and passes the policies, of whoever reads
// the table.
func (b *binder) policyCondition(g *guard, text string) (expr.Scalar, error) {
	e, err := sql.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if hasQuery(e) {
		if slices.Contains(b.guards, g.table.ID) {
			return nil, pgerror.New(invalidObjectDefinition, "infinite recursion detected in policy for relation \"%s\"", g.table.Name)
		}
		b.guards = append(b.guards, g.table.ID)
		defer func() { b.guards = b.guards[:len(b.guards)-1] }()
	}
	if err := b.enter(0); err != nil {
		return nil, err
	}
	defer b.leave()
	slots, as, r := b.noSlots, b.as, b.r
	b.r = catalog.ForStored(r)
	views := b.policyViews
	b.noSlots, b.as, b.policyViews = true, g.as, len(b.views)
	b.stored++
	defer b.detached()()
	defer func() {
		b.noSlots, b.as, b.policyViews, b.r = slots, as, views, r
		b.stored--
	}()
	x, err := b.policyExpr(e, g.row)
	if err != nil {
		return nil, withoutPosition(err)
	}
	expr.Walk(x, func(s expr.Scalar) bool {
		if sub := expr.SubqueryOf(s); sub != nil {
			sub.Plan.(*subRel).hidden = true
		}
		return true
	})
	return x, nil
}

// samePresent returns an error if a relation of the past, which a policy of the present names, is not the one that the policy means, or if
// its columns had other names.
func (b *binder) samePresent(t *catalog.TableDescriptor) error {
	if b.stored == 0 || b.opts.Present == nil || len(b.views) > b.policyViews {
		return nil
	}
	now, err := b.opts.Present.RelationByID(b.ctx, t.ID)
	if err != nil {
		return err
	}
	same := now != nil && now.Schema == t.Schema && now.Name == t.Name
	for i := 0; same && i < len(t.Columns); i++ {
		if at := now.ColumnNamed(t.Columns[i].Name); at >= 0 && !t.Columns[i].Hidden {
			same = now.Columns[at].ID == t.Columns[i].ID
		}
	}
	if !same {
		return pgerror.Unsupported("reading the past of a table with a policy on relation \""+t.Name+"\", which was another one then", "Read a later time.")
	}
	return nil
}

// policyExpr binds a condition over a row.
func (b *binder) policyExpr(e ast.Expr, row nsItem) (expr.Scalar, error) {
	sc := newScope(b, nil)
	sc.items = append(sc.items, row)
	sc.in("policy expressions", false, false)
	return sc.boolean(e, "POLICY")
}

// changedColumns is the number of columns of catalog.ChangedRelation before those of the table.
const changedColumns = 2

// guardChanges hides from the reader of percodb.changes the changes of rows that it may not select. Of a deleted row the policies see the
// key.
func (b *binder) guardChanges(r *changesRel) (rel, error) {
	g, err := b.guardOf(r.table)
	if g == nil || err != nil {
		return r, err
	}
	g.row = g.rowOf(func(ordinal int) nsCol { return nsCol{id: r.cols[changedColumns+ordinal]} })
	conds, err := b.using(g, catalog.PolicySelect)
	if err != nil {
		return nil, err
	}
	return &barrierRel{guard: g, input: &filterRel{input: r, conds: conds}}, nil
}

// BuildVisible plans a query that yields a row if the role of opts.Access may select a changed row of t: its parameters are those of
// ObserverRows. It returns nil if no policy applies. Of a deleted row the policies see the key.
func BuildVisible(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env, opts Options) (*Plan, error) {
	opts.Rows, opts.RowsOf = ObserverRows(t), nil
	b := &binder{ctx: ctx, r: r, env: env, opts: opts, noSlots: true}
	b.use(t)
	rows := b.rowScope().items
	changed, key := rows[0], rows[1]
	g, err := b.guardOf(t)
	if g == nil || err != nil {
		return nil, err
	}
	g.row = g.rowOf(func(ordinal int) nsCol {
		for i := range t.Primary.Columns {
			if t.Primary.Columns[i].ColumnID == t.Columns[ordinal].ID {
				return key.cols[i]
			}
		}
		return changed.cols[ordinal]
	})
	conds, err := b.using(g, catalog.PolicySelect)
	if err != nil {
		return nil, err
	}
	found := b.newColumn("visible", types.TBool)
	q := &query{cols: []outCol{{id: found, name: "visible"}}}
	q.root = &projectRel{input: &filterRel{input: &valuesRel{rows: [][]expr.Scalar{{}}}, conds: conds}, items: []projection{{id: found, e: expr.NewBool(true)}}}
	plan, p := &Plan{SchemaVersion: r.Version(), SearchPath: catalog.Path(r), Collations: r.Collations(), Operations: r.Operations()}, &physical{b: b}
	if err := p.finishQuery(plan, q); err != nil {
		return nil, err
	}
	p.complete(plan)
	return plan, nil
}

// CheckPolicy checks the condition of a policy of t, and replaces the stars in its subqueries (PinQuery). Errors are those of binding it.
func CheckPolicy(ctx context.Context, e ast.Expr, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) error {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true, stars: map[ast.Expr][]ast.SelectItem{}}
	g := &guard{table: t, from: t}
	if _, err := b.policyExpr(e, g.rowOf(b.newScan(t, t.Name, nil).column)); err != nil {
		return err
	}
	if len(b.params) > 0 {
		return pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	ast.InspectExpr(e, ast.Visitor{List: b.spellStars})
	return nil
}

// hasQuery reports whether an expression contains a subquery.
func hasQuery(e ast.Expr) bool {
	found := false
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		switch x.(type) {
		case *ast.Subquery, *ast.Exists, *ast.InSubquery, *ast.Quantified, *ast.ArraySubquery:
			found = true
		}
	}})
	return found
}

// withoutPosition is an error in a text that is not the client's.
func withoutPosition(err error) error {
	e, ok := err.(*pgerror.Error)
	if !ok || e.Position == 0 {
		return err
	}
	c := *e
	c.Position = 0
	return &c
}

// pushBarrier moves conditions below a barrier that reveal nothing about the rows that it holds back. If they are to be evaluated before the
// policies, nothing in them may fail: n = 5 AND id = 1 / 0 would tell by its error that there is a row with 5.
func (p *physical) pushBarrier(r *barrierRel, conds []expr.Scalar) rel {
	permitted := leakproof
	if !r.policiesFirst() {
		permitted = func(c expr.Scalar) bool { return !hazard(c) && expr.NeverFails(c) }
	}
	down, stay := split(conds, permitted)
	r.input = p.push(r.input, down)
	if s, ok := r.input.(*scanRel); ok && r.guard != nil {
		// All policies are conditions of the scan, which is the barrier itself from now on.
		s.secured = true
		return keep(s, stay)
	}
	return keep(r, stay)
}

// policiesFirst reports whether all conditions of the barrier become those of the scan, which tests them in their order.
func (r *barrierRel) policiesFirst() bool {
	f, ok := r.input.(*filterRel)
	if !ok {
		return false
	}
	_, ok = f.input.(*scanRel)
	return ok && !slices.ContainsFunc(f.conds, expr.HasSubquery)
}

// leakproof reports whether a condition may be evaluated for rows that the reader is not to see.
func leakproof(c expr.Scalar) bool {
	return !hazard(c) && expr.Leakproof(c, func(s *expr.Subquery) bool { return s.Plan.(*subRel).free.empty() })
}

// barrier plans what is behind a barrier. The row counts below it are not for the reader.
func (p *physical) barrier(r *barrierRel, a ask) pnode {
	in := p.plan(r.input, a)
	for _, child := range in.node.Children() {
		hide(child)
	}
	return in
}

// hide has EXPLAIN ANALYZE leave out what was measured in a tree.
func hide(n Node) {
	n.base().Hidden = true
	for _, child := range n.Children() {
		hide(child)
	}
}
