package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// policyUse is a policy and its table.
type policyUse struct {
	table  *catalog.TableDescriptor
	policy *catalog.PolicyDescriptor
}

// pinPolicyText adds the relations in the text of a condition to dependsOn.
func (r *run) pinPolicyText(ctx context.Context, text string, dependsOn *[]uint64) error {
	if text == "" {
		return nil
	}
	e, err := sql.ParseExpr(text)
	if err != nil {
		return err
	}
	return r.pinPolicy(ctx, e, dependsOn)
}

// policiesOn lists the policies whose subqueries read a relation, and those of the relation itself.
func (r *run) policiesOn(ctx context.Context, id uint64) ([]policyUse, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	var users []policyUse
	for _, t := range all {
		for i := range t.Policies {
			if p := &t.Policies[i]; t.ID == id || slices.Contains(p.DependsOn, id) {
				users = append(users, policyUse{t, p})
			}
		}
	}
	return users, nil
}

// brokenPolicies lists the policies that name a column that t has and next has not.
func (r *run) brokenPolicies(ctx context.Context, t, next *catalog.TableDescriptor) ([]policyUse, error) {
	users, err := r.policiesOn(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var gone []string
	for i := range t.Columns {
		if next.ColumnNamed(t.Columns[i].Name) < 0 {
			gone = append(gone, t.Columns[i].Name)
		}
	}
	var broken []policyUse
	for _, use := range users {
		if use.table.ID == t.ID && next.PolicyNamed(use.policy.Name) == nil {
			continue
		}
		uses, err := r.policyNames(ctx, use, t, next, gone)
		if err != nil {
			return nil, err
		}
		if uses {
			broken = append(broken, use)
		}
	}
	return broken, nil
}

// policyNames reports whether a policy cannot be bound without columns of t that next has not, or names one of them where another column
// of the same name would be found.
func (r *run) policyNames(ctx context.Context, use policyUse, t, next *catalog.TableDescriptor, gone []string) (bool, error) {
	table := use.table
	if table.ID == t.ID {
		table = next
	}
	for _, text := range []string{use.policy.Using, use.policy.Check} {
		if text == "" {
			continue
		}
		e, err := sql.ParseExpr(text)
		if err != nil {
			return false, err
		}
		if err := planner.CheckPolicy(ctx, e, table, replaced{r.r, next}, r.Env); err != nil {
			return ctx.Err() == nil, ctx.Err()
		}
		if table.ID != t.ID && slices.ContainsFunc(columnNames(e), func(name string) bool { return slices.Contains(gone, name) }) {
			return true, nil
		}
	}
	return false, nil
}

// requireNoPolicyUses fails if a policy uses the column, as PostgreSQL does before its type changes.
func (r *run) requireNoPolicyUses(ctx context.Context, t *catalog.TableDescriptor, ord int) error {
	without := t.Clone()
	without.Columns = append(without.Columns[:ord], without.Columns[ord+1:]...)
	broken, err := r.brokenPolicies(ctx, t, without)
	if err != nil || len(broken) == 0 {
		return err
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type of a column used in a policy definition").
		WithDetail("policy %s on table %s depends on column %q", broken[0].policy.Name, r.displayed(ctx, broken[0].table), t.Columns[ord].Name)
}

// addPolicy adds a policy that uses what is dropped.
func (d *dropping) addPolicy(ctx context.Context, use policyUse, what string) {
	if slices.ContainsFunc(d.policies, func(have policyUse) bool { return have.policy.OID == use.policy.OID }) {
		return
	}
	d.policies = append(d.policies, use)
	d.why = append(d.why, d.r.policyText(ctx, use)+" depends on "+what)
}

// policyText describes a policy in messages.
func (r *run) policyText(ctx context.Context, use policyUse) string {
	return "policy " + use.policy.Name + " on table " + r.displayed(ctx, use.table)
}

// removePolicy drops a policy of a table that stays.
func (d *dropping) removePolicy(ctx context.Context, use policyUse) error {
	remove := func(t *catalog.TableDescriptor) {
		t.Policies = slices.DeleteFunc(t.Policies, func(p catalog.PolicyDescriptor) bool { return p.OID == use.policy.OID })
	}
	if d.changing != nil && d.changing.ID == use.table.ID {
		remove(d.changing)
		return nil
	}
	now, err := d.r.r.RelationByID(ctx, use.table.ID)
	if err != nil {
		return err
	}
	next := now.Clone()
	remove(next)
	return d.r.update(ctx, now, next, false)
}

// renameInPolicies has the policies name a relation by its new name; t is as it was.
func (r *run) renameInPolicies(ctx context.Context, t *catalog.TableDescriptor, name string) error {
	users, err := r.policiesOn(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, use := range users {
		own := use.table.ID == t.ID
		err := r.rewritePolicy(ctx, use, func(e ast.Expr) {
			inner, aliases := innerNames(e)
			ast.InspectExpr(e, ast.Visitor{Table: func(ref *ast.TableRef) {
				if ref.Name.Schema == t.Schema && ref.Name.Name == t.Name {
					ref.Name.Name = name
					if ref.Alias == "" {
						ref.Alias = t.Name
					}
				}
			}, Expr: func(x ast.Expr) {
				ref, ok := x.(*ast.ColumnRef)
				if !ok || !own || inner[ref] && aliases[t.Name] {
					return
				}
				if at := len(ref.Parts) - 2; at >= 0 && ref.Parts[at] == t.Name {
					ref.Parts[at] = name
				} else if at < 0 && ref.Parts[0] == t.Name && t.ColumnNamed(t.Name) < 0 {
					ref.Parts[0] = name
				}
			}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// innerNames returns the column references in an expression's subqueries, and the names of what these read.
func innerNames(e ast.Expr) (refs map[*ast.ColumnRef]bool, aliases map[string]bool) {
	refs, aliases = map[*ast.ColumnRef]bool{}, map[string]bool{}
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		q := subquery(x)
		if q == nil {
			return
		}
		ast.InspectQuery(q, ast.Visitor{Table: func(ref *ast.TableRef) {
			alias := ref.Alias
			if alias == "" {
				alias = ref.Name.Name
			}
			aliases[alias] = true
		}, Expr: func(x ast.Expr) {
			if ref, ok := x.(*ast.ColumnRef); ok {
				refs[ref] = true
			}
		}})
	}})
	return refs, aliases
}

// subquery returns the query in an expression, nil if it is none.
func subquery(e ast.Expr) *ast.Query {
	switch n := e.(type) {
	case *ast.InSubquery:
		return n.Query
	case *ast.Quantified:
		return n.Query
	case *ast.Subquery:
		return n.Query
	case *ast.ArraySubquery:
		return n.Query
	case *ast.Exists:
		return n.Query
	}
	return nil
}

// renameColumnInPolicies has the policies of next, a table whose column is renamed, name the column by its new name.
func (r *run) renameColumnInPolicies(ctx context.Context, next *catalog.TableDescriptor, from, to string) error {
	for i := range next.Policies {
		p := &next.Policies[i]
		for _, text := range []*string{&p.Using, &p.Check} {
			if *text == "" {
				continue
			}
			e, err := sql.ParseExpr(*text)
			if err != nil {
				return err
			}
			inner, aliases := innerNames(e)
			ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
				ref, ok := x.(*ast.ColumnRef)
				if !ok || ref.Parts[len(ref.Parts)-1] != from {
					return
				}
				qualified := len(ref.Parts) > 1 && ref.Parts[len(ref.Parts)-2] == next.Name && !aliases[next.Name]
				if !inner[ref] || qualified {
					ref.Parts[len(ref.Parts)-1] = to
				}
			}})
			if planner.CheckPolicy(ctx, e, next, replaced{r.r, next}, r.Env) != nil {
				return pgerror.Unsupported("renaming a column that a policy's subquery uses", "Drop policy "+p.Name+" first and create it again.")
			}
			*text = e.String()
		}
	}
	return nil
}

// rewritePolicy changes the texts of a policy.
func (r *run) rewritePolicy(ctx context.Context, use policyUse, change func(ast.Expr)) error {
	now, err := r.r.RelationByID(ctx, use.table.ID) // which may have changed with another of its policies
	if err != nil {
		return err
	}
	next := now.Clone()
	p := next.PolicyNamed(use.policy.Name)
	for _, text := range []*string{&p.Using, &p.Check} {
		if *text == "" {
			continue
		}
		e, err := sql.ParseExpr(*text)
		if err != nil {
			return err
		}
		change(e)
		if planner.CheckPolicy(ctx, e, next, r.r, r.Env) != nil {
			return pgerror.Unsupported("renaming a table whose name a policy's subquery uses", "Drop policy "+p.Name+" first and create it again.")
		}
		*text = e.String()
	}
	return r.update(ctx, now, next, false)
}

// withoutRole takes a role out of the policies of a table, and drops those that concern no other.
func withoutRole(t *catalog.TableDescriptor, role uint32) {
	for i := range t.Policies {
		p := &t.Policies[i]
		p.Roles = slices.DeleteFunc(p.Roles, func(r uint32) bool { return r == role })
	}
	t.Policies = slices.DeleteFunc(t.Policies, func(p catalog.PolicyDescriptor) bool { return len(p.Roles) == 0 })
}

// policiesName reports whether a policy of a table names a role.
func policiesName(t *catalog.TableDescriptor, role uint32) bool {
	return slices.ContainsFunc(t.Policies, func(p catalog.PolicyDescriptor) bool { return slices.Contains(p.Roles, role) })
}
