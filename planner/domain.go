package planner

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// undomain gives a value of a domain the type below it, which determines operators.
func undomain(e expr.Scalar) expr.Scalar {
	if t := e.Type(); t.IsDomain() {
		return &expr.Cast{X: e, Typ: t.Underlying(), Implicit: true}
	}
	return e
}

// coerceToDomain makes e a value of a domain: of the type below it, with the constraints checked. A parameter whose type is not known
// becomes one of the domain, which is checked when it is read.
func (b *binder) coerceToDomain(e expr.Scalar, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	if in, ok := e.(*expr.Input); ok && in.Param > 0 && in.Typ.OID == types.OIDUnknown {
		return b.decideParam(in, t, pos)
	}
	below := t.Underlying()
	if in, ok := e.(*expr.Const); ok && in.Typ.OID == types.OIDUnknown && !in.Value.IsNull() {
		b.typeLiteral(in, t)
	}
	x, err := b.coerce(e, below, how, pos)
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.CannotCoerce {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", builtin.TypeName(e.Type()), builtin.TypeName(t)).At(pos)
	}
	if err != nil {
		return nil, err
	}
	if below, cast := x.(*expr.Cast); cast && x != e && b.notes != nil {
		below.Implicit = true
	}
	c, ok := builtin.FindCast(below, t, castExplicit)
	if !ok {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", builtin.TypeName(e.Type()), builtin.TypeName(t)).At(pos)
	}
	return b.newCast(x, t, c, how), nil
}

// valueName is the name of the value in a domain's constraints.
const valueName = "value"

// BindDomainCheck binds a CHECK constraint of a domain over the type of; its input row is the value.
//
// Errors: those of the expression.
func BindDomainCheck(ctx context.Context, e ast.Expr, of types.Type, r catalog.Resolver, env *builtin.Env) (expr.Scalar, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	sc := newScope(b, nil)
	id := b.newColumn(valueName, of)
	sc.items = append(sc.items, nsItem{open: true, cols: []nsCol{{name: valueName, id: id}}})
	return b.standalone(sc, e, []int{id}, types.TBool, "check constraints")
}

// BindDefault binds the value that a row gets in a column for which it has none, over no row: the column's default or its domain's, or
// NULL, of the column's type.
func BindDefault(ctx context.Context, t *catalog.TableDescriptor, ord int, r catalog.Resolver, env *builtin.Env) (expr.Scalar, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	x, err := b.defaultOf(t, ord)
	if err != nil {
		return nil, err
	}
	p := &physical{b: b}
	out := p.compile(x, nil)
	return out, p.err
}

// Domains checks values against the constraints of domains, for one session: it implements types.DomainChecker.
type Domains struct {
	env      *builtin.Env
	resolver func() catalog.Resolver
	rules    map[*types.Defined]*domainRules
}

// NewDomains returns a checker that evaluates constraints with env. resolver returns the schema in which they name types.
func NewDomains(env *builtin.Env, resolver func() catalog.Resolver) *Domains {
	return &Domains{env: env, resolver: resolver}
}

// domainRules are the bound constraints of a domain; those of its parent come first.
type domainRules struct {
	domain *types.Defined
	parent *domainRules // nil: the parent is no domain
	checks []expr.Scalar
	ev     expr.Context
	began  int64 // the statement for which ev has remembered values
}

// maxDomains bounds the domains whose constraints a session keeps bound. Each change of a type makes all types anew.
const maxDomains = 256

// CheckDomain implements types.DomainChecker.
func (d *Domains) CheckDomain(domain *types.Defined, v types.Datum) error {
	rules, err := d.rulesOf(domain)
	if err != nil {
		return err
	}
	return rules.check(d.env, types.Row{v})
}

func (d *Domains) rulesOf(domain *types.Defined) (*domainRules, error) {
	if have := d.rules[domain]; have != nil {
		return have, nil
	}
	rules := &domainRules{domain: domain, ev: expr.Context{Env: d.env}, began: d.env.StmtTime}
	if domain.Parent.IsDomain() {
		var err error
		if rules.parent, err = d.rulesOf(domain.Parent.Def); err != nil {
			return nil, err
		}
	}
	for _, c := range domain.Checks {
		e, err := sql.ParseExpr(c.Expr)
		if err != nil {
			return nil, textError(err, "expression", c.Expr)
		}
		bound, err := BindDomainCheck(d.env.Context(), e, domain.Parent, catalog.ForStored(d.resolver()), d.env)
		if err != nil {
			return nil, textError(err, "expression", c.Expr)
		}
		rules.checks = append(rules.checks, bound)
	}
	if len(d.rules) >= maxDomains || d.rules == nil {
		d.rules = map[*types.Defined]*domainRules{}
	}
	d.rules[domain] = rules
	return rules, nil
}

func (r *domainRules) check(env *builtin.Env, row types.Row) error {
	if row[0].IsNull() && r.notNull() {
		return NotNullDomain(r.domain, env)
	}
	return r.evaluate(r.domain, env, row)
}

func (r *domainRules) notNull() bool {
	return r.domain.NotNull || r.parent != nil && r.parent.notNull()
}

// evaluate evaluates the CHECK constraints; an error names the domain that the value is to have.
func (r *domainRules) evaluate(of *types.Defined, env *builtin.Env, row types.Row) error {
	if r.parent != nil {
		if err := r.parent.evaluate(of, env, row); err != nil {
			return err
		}
	}
	if r.began != env.StmtTime {
		r.ev, r.began = expr.Context{Env: env}, env.StmtTime
	}
	r.ev.Ctx = env.Ctx
	if err := AuthorizeCalls(env, r.checks...); err != nil {
		return err
	}
	for i, c := range r.checks {
		d, err := c.Eval(&r.ev, row)
		if err != nil {
			return err
		}
		if !d.IsNull() && !d.Bool() {
			return violatesDomain(of, env, r.domain.Checks[i].Name)
		}
	}
	return nil
}

// NotNullDomain is the error for a NULL that a domain does not allow.
func NotNullDomain(domain *types.Defined, env *builtin.Env) *pgerror.Error {
	e := pgerror.New(pgerror.NotNullViolation, "domain %s does not allow null values", domainName(domain, env))
	e.Schema, e.DataType = domain.Schema, domain.Name
	return e
}

// domainName returns a domain's name as the session sees it: with its schema unless the search path finds it.
func domainName(domain *types.Defined, env *builtin.Env) string {
	if names := env.Format.Names; names != nil {
		if name, ok := names.TypeName(domain.OID); ok {
			return name
		}
	}
	return builtin.TypeName(domain.Type())
}

func violatesDomain(domain *types.Defined, env *builtin.Env, constraint string) *pgerror.Error {
	e := pgerror.New(pgerror.CheckViolation, "value for domain %s violates check constraint \"%s\"", domainName(domain, env), constraint)
	e.Schema, e.DataType, e.Constraint = domain.Schema, domain.Name, constraint
	return e
}
