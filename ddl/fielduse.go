package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// requireNoFieldUses fails if a stored expression names a field, (x).name, that a composite type has had until the schema was changed just
// now: it could not be bound any more. what names the field as messages do. renamed: the field has another name now, else it has been
// dropped.
func (r *run) requireNoFieldUses(ctx context.Context, name, what string, renamed bool) error {
	users, err := r.fieldUsers(ctx, name)
	switch {
	case err != nil || len(users) == 0:
		return err
	case renamed:
		return pgerror.Unsupported("renaming "+what+", which a stored expression names", "Drop "+users[0]+" first and create it again.")
	}
	lines := make([]string, len(users))
	for i, user := range users {
		lines[i] = user + " depends on " + what
	}
	return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
		WithDetail("%s", joinLines(lines)).WithHint("Drop them first.")
}

// fieldUsers lists the objects whose stored expressions name a field and cannot be bound.
func (r *run) fieldUsers(ctx context.Context, name string) (users []string, err error) {
	written := ")." + keyword.QuoteIdent(name)
	check := func(text, user string, bind func() error) {
		if err == nil && strings.Contains(text, written) && bind() != nil {
			if err = ctx.Err(); err == nil {
				users = append(users, user)
			}
		}
	}
	stored := catalog.ForStored(r.r)
	for _, d := range r.r.Types().All() {
		for i := range d.Checks {
			text := d.Checks[i].Expr
			check(text, "constraint "+d.Checks[i].Name, func() error {
				e, err := sql.ParseExpr(text)
				if err == nil {
					_, err = planner.BindDomainCheck(ctx, e, d.Defined().Parent, stored, r.Env)
				}
				return err
			})
		}
	}
	all, allErr := r.r.Relations(ctx)
	if allErr != nil {
		return nil, allErr
	}
	for _, t := range all {
		check(t.ViewQuery, kindWord(t)+" "+t.Name, func() error {
			stmt, err := sql.ParseStatement(t.ViewQuery)
			if err == nil {
				_, err = planner.Build(ctx, stmt, stored, r.Env, planner.Options{NoSlots: true})
			}
			return err
		})
		for i := range t.Columns {
			c := &t.Columns[i]
			check(c.Default, "default value for column "+c.Name+" of table "+t.Name, func() error {
				_, err := r.bindText(ctx, nil, c.Default, c.Type, inDefault)
				return err
			})
		}
		for i := range t.Checks {
			k := &t.Checks[i]
			check(k.Expr, "constraint "+k.Name+" on table "+t.Name, func() error {
				_, err := r.bindText(ctx, t, k.Expr, types.TBool, inCheck)
				return err
			})
		}
		for i := range t.Policies {
			p := &t.Policies[i]
			for _, text := range []string{p.Using, p.Check} {
				check(text, "policy "+p.Name+" on table "+t.Name, func() error {
					e, err := sql.ParseExpr(text)
					if err == nil {
						err = planner.CheckPolicy(ctx, e, t, stored, r.Env)
					}
					return err
				})
			}
		}
	}
	return users, err
}
