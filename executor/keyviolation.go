package executor

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// keyProblem is how a row of the child violates a foreign key.
type keyProblem uint8

const (
	notPresent keyProblem = iota // the parent does not exist
	mixedNulls                   // MATCH FULL
)

// violation returns the client's error, 23503, for the values of the child's columns.
func (k *keyChecks) violation(ctx context.Context, key *planner.ForeignKey, values types.Row, problem keyProblem) error {
	if err := k.checkUnique(ctx); err != nil {
		return err
	}
	e := pgerror.New(pgerror.ForeignKeyViolation, "insert or update on table %q violates foreign key constraint %q", key.Child.Name, key.Name)
	e.Schema, e.Table, e.Constraint = key.Child.Schema, key.Child.Name, key.Name
	if problem == mixedNulls {
		return e.WithDetail("MATCH FULL does not allow mixing of null and nonnull key values.")
	}
	return e.WithDetail("%s is not present in table %q.", k.keyText(ctx, key.Child, key.ChildOrdinals, values), key.Parent.Name)
}

// stillReferenced is violation for the values of referenced columns that a row of holder, which is the parent or a table below it, had.
func (k *keyChecks) stillReferenced(ctx context.Context, key *planner.ForeignKey, holder *catalog.TableDescriptor, values types.Row) error {
	if err := k.checkUnique(ctx); err != nil {
		return err
	}
	child, name := key.Declared.Table, key.Declared.Key.NameAt(holder.ID)
	e := pgerror.New(pgerror.ForeignKeyViolation, "update or delete on table %q violates foreign key constraint %q on table %q", holder.Name, name, child.Name)
	e.Schema, e.Table, e.Constraint = child.Schema, child.Name, name
	return e.WithDetail("%s is still referenced from table %q.", k.keyText(ctx, key.Parent, key.ParentOrdinals, values), child.Name)
}

// checkUnique checks uniqueness, which PostgreSQL checks before foreign keys, if that has been left to the commit.
func (k *keyChecks) checkUnique(ctx context.Context) error {
	if k.ex.eager() || k.ex.plan == nil {
		return nil
	}
	err := k.ex.txn.CheckNew(ctx)
	if exists, ok := errkind.As[*mvcc.KeyExistsError](err); ok && k.ex.rt.Resolver != nil {
		return UniqueViolation(ctx, k.ex.rt.Resolver, k.ex.rt.inForce(ctx), k.ex.rt.Role, exists.Key)
	}
	return err
}

// movedBeneath is the error of a row that leaves a partition of ancestor for another one of table, where a foreign key references ancestor.
func movedBeneath(ancestor, table *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.FeatureNotSupported,
		"cannot move tuple across partitions when a non-root ancestor of the source partition is directly referenced in a foreign key").
		WithDetail("A foreign key points to ancestor %q but not the root ancestor %q.", ancestor.Name, table.Name).
		WithHint("Consider defining the foreign key on table \"" + table.Name + "\".")
}

// keyText is a key as a detail names it: with its values if the role may read them.
func (k *keyChecks) keyText(ctx context.Context, t *catalog.TableDescriptor, ordinals []int, values types.Row) string {
	if !k.sees(ctx, t, ordinals) {
		return "Key"
	}
	return "Key (" + k.names(t, ordinals) + ")=(" + k.texts(t, ordinals, values) + ")"
}

// sees reports whether the role may read columns of a table by the privileges in force.
func (k *keyChecks) sees(ctx context.Context, t *catalog.TableDescriptor, ordinals []int) bool {
	role := k.ex.rt.Role
	if role == 0 || k.ex.rt.Resolver == nil {
		return true
	}
	a, t := accessNow(ctx, k.ex.rt.inForce(ctx), role, t)
	switch {
	case a == nil || a.RowSecurity(t) == catalog.RowSecurityApplies:
		return false
	case a.Relation(t, acl.Select, false) != 0:
		return true
	}
	for _, ord := range ordinals {
		if a.Column(t, ord, acl.Select) == 0 {
			return false
		}
	}
	return true
}

func (k *keyChecks) names(t *catalog.TableDescriptor, ordinals []int) string {
	names := make([]string, len(ordinals))
	for i, ord := range ordinals {
		names[i] = t.Columns[ord].Name
	}
	return strings.Join(names, ", ")
}

func (k *keyChecks) texts(t *catalog.TableDescriptor, ordinals []int, values types.Row) string {
	texts := make([]string, len(ordinals))
	for i, ord := range ordinals {
		if texts[i] = "null"; !values[i].IsNull() {
			texts[i] = string(types.AppendText(nil, values[i], t.Columns[ord].Type, &k.ex.rt.Env.Format))
		}
	}
	return strings.Join(texts, ", ")
}
