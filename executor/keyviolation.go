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

// keyProblem is how a row violates a foreign key.
type keyProblem uint8

const (
	notPresent      keyProblem = iota // the parent does not exist
	mixedNulls                        // MATCH FULL
	stillReferenced                   // a child exists
)

// violation returns the client's error, 23503, for the values of the child's columns or, if it is stillReferenced, of the parent's. Uniqueness,
// which PostgreSQL checks first, may have been left to the commit: then that is checked before.
func (k *keyChecks) violation(ctx context.Context, key *planner.ForeignKey, values types.Row, problem keyProblem) error {
	if !k.ex.eager() && k.ex.plan != nil {
		err := k.ex.txn.CheckNew(ctx)
		if exists, ok := errkind.As[*mvcc.KeyExistsError](err); ok && k.ex.rt.Resolver != nil {
			return UniqueViolation(ctx, k.ex.rt.Resolver, k.ex.rt.inForce(ctx), k.ex.rt.Role, exists.Key)
		}
		if err != nil {
			return err
		}
	}
	t, ordinals := key.Child, key.ChildOrdinals
	e := pgerror.New(pgerror.ForeignKeyViolation, "insert or update on table %q violates foreign key constraint %q", key.Child.Name, key.Name)
	if problem == stillReferenced {
		t, ordinals = key.Parent, key.ParentOrdinals
		e.Message = pgerror.New(e.Code, "update or delete on table %q violates foreign key constraint %q on table %q",
			key.Parent.Name, key.Name, key.Child.Name).Message
	}
	e.Schema, e.Table, e.Constraint = key.Child.Schema, key.Child.Name, key.Name
	if problem == mixedNulls {
		return e.WithDetail("MATCH FULL does not allow mixing of null and nonnull key values.")
	}
	name := "Key"
	if k.sees(ctx, t, ordinals) {
		name += " (" + k.names(t, ordinals) + ")=(" + k.texts(t, ordinals, values) + ")"
	}
	if problem == stillReferenced {
		return e.WithDetail("%s is still referenced from table %q.", name, key.Child.Name)
	}
	return e.WithDetail("%s is not present in table %q.", name, key.Parent.Name)
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
