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

// fieldUser is an object whose stored expression names a field: what of a relation, or a constraint of a domain.
type fieldUser struct {
	what   string // as messages call it
	of     typeUses
	domain domainUse
}

// requireFieldUnnamed fails if a stored expression names a field, (x).name, that had another name until the schema was changed just now: it could not
// be bound any more. what names the field as messages do.
func (r *run) requireFieldUnnamed(ctx context.Context, name, what string) error {
	users, err := r.fieldUsers(ctx, name)
	if err != nil || len(users) == 0 {
		return err
	}
	return pgerror.Unsupported("renaming "+what+", which a stored expression names", "Drop "+users[0].what+" first and create it again.")
}

// dropFieldUses drops what names a field that a composite type has had until just now, or fails without cascade.
func (r *run) dropFieldUses(ctx context.Context, name, what string, cascade bool) error {
	users, err := r.fieldUsers(ctx, name)
	if err != nil || len(users) == 0 {
		return err
	}
	lines, others := make([]string, len(users)), make([]string, len(users))
	for i, user := range users {
		lines[i], others[i] = user.what+" depends on "+what, user.what
	}
	if !cascade {
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
			WithDetail("%s", joinLines(lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	r.noticeCascade(others)
	for _, user := range users {
		if user.of.relation != nil {
			err = r.quiet().dropUses(ctx, user.of)
		} else {
			err = r.dropDomainUse(ctx, user.domain)
		}
		if err == nil {
			err = r.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fieldUsers lists the objects whose stored expressions name a field and cannot be bound.
func (r *run) fieldUsers(ctx context.Context, name string) (users []fieldUser, err error) {
	written := ")." + keyword.QuoteIdent(name)
	check := func(text string, user fieldUser, bind func() error) {
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
			user := fieldUser{what: "constraint " + d.Checks[i].Name, domain: domainUse{domain: d, check: d.Checks[i].OID}}
			check(text, user, func() error {
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
		of := func(use typeUse) fieldUser {
			return fieldUser{what: use.what, of: typeUses{t, []typeUse{use}}}
		}
		check(t.ViewQuery, of(typeUse{what: kindWord(t) + " " + t.Name}), func() error {
			stmt, err := sql.ParseStatement(t.ViewQuery)
			if err == nil {
				_, err = planner.Build(ctx, stmt, stored, r.Env, planner.Options{NoSlots: true})
			}
			return err
		})
		for i := range t.Columns {
			c := &t.Columns[i]
			check(c.Default, of(typeUse{what: "default value for column " + c.Name + " of table " + t.Name, column: c.ID}), func() error {
				_, err := r.bindText(ctx, nil, c.Default, c.Type, inDefault)
				return err
			})
		}
		for i := range t.Checks {
			k := &t.Checks[i]
			check(k.Expr, of(typeUse{what: "constraint " + k.Name + " on table " + t.Name, check: k.OID}), func() error {
				_, err := r.bindText(ctx, t, k.Expr, types.TBool, inCheck)
				return err
			})
		}
		for i := range t.Policies {
			p := &t.Policies[i]
			for _, text := range []string{p.Using, p.Check} {
				check(text, of(typeUse{what: "policy " + p.Name + " on table " + t.Name, policy: p.OID}), func() error {
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
