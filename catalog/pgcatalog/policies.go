package pgcatalog

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// What system tables and functions show of row level security.

// classPgPolicy is the OID of pg_policy.
const classPgPolicy = 3256

func (s *scan) eachPolicy(f func(t *catalog.TableDescriptor, p *catalog.PolicyDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		for i := range t.Policies {
			if err := f(t, &t.Policies[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func policyRows(s *scan) error {
	return s.eachPolicy(func(t *catalog.TableDescriptor, p *catalog.PolicyDescriptor) error {
		roles := make([]int64, len(p.Roles))
		for i, role := range p.Roles {
			roles[i] = int64(role)
		}
		return s.emit(col{"oid", oid(p.OID)}, col{"polname", text(p.Name)}, col{"polrelid", oid(t.OID())}, col{"polcmd", letter(byte(p.Command))},
			col{"polpermissive", boolean(!p.Restrictive)}, col{"polroles", oids(roles)}, col{"polqual", optional(s.printer().conditionText(t, p.Using))},
			col{"polwithcheck", optional(s.printer().conditionText(t, p.Check))})
	})
}

// policyCommandNames are the words of commands in pg_policies.
var policyCommandNames = map[catalog.PolicyCommand]string{
	catalog.PolicyAll: "ALL", catalog.PolicySelect: "SELECT", catalog.PolicyInsert: "INSERT", catalog.PolicyUpdate: "UPDATE", catalog.PolicyDelete: "DELETE",
}

func policiesRows(s *scan) error {
	return s.eachPolicy(func(t *catalog.TableDescriptor, p *catalog.PolicyDescriptor) error {
		permissive := "PERMISSIVE"
		if p.Restrictive {
			permissive = "RESTRICTIVE"
		}
		names := []string{"public"}
		if !slices.Contains(p.Roles, catalog.PublicRole) {
			names = names[:0]
			for _, role := range p.Roles {
				names = append(names, s.roleName(role))
			}
			slices.Sort(names)
		}
		roles := &types.Array{Elem: types.TName, Elems: make([]types.Datum, len(names))}
		for i := range names {
			roles.Elems[i] = types.Text(names[i])
		}
		return s.emit(col{"schemaname", text(t.Schema)}, col{"tablename", text(t.Name)}, col{"policyname", text(p.Name)},
			col{"permissive", text(permissive)}, col{"roles", types.NewArray(roles)}, col{"cmd", text(policyCommandNames[p.Command])},
			col{"qual", optional(s.printer().conditionText(t, p.Using))}, col{"with_check", optional(s.printer().conditionText(t, p.Check))})
	})
}

// relationOptions is pg_class.reloptions.
func relationOptions(t *catalog.TableDescriptor) types.Datum {
	options := slices.Clone(t.Options)
	add := func(set bool, name, value string) { // Those that a clause has set, or that were set when they were not kept as text.
		if set && !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			options = append(options, name+"="+value)
		}
	}
	add(t.SecurityBarrier, "security_barrier", "true")
	add(t.SecurityInvoker, "security_invoker", "true")
	add(t.CheckOption != catalog.CheckNone, "check_option", string(t.CheckOption))
	if len(options) == 0 {
		return types.Null
	}
	return textArray(options)
}

// Updatable implements builtin.Catalog.
func (o *Objects) Updatable(id types.OID, triggers bool, column int) (int, bool, error) {
	r, t := o.relation(id)
	if t == nil {
		return 0, false, nil
	}
	u, err := o.UpdatesOf(background(), r, t, triggers, column)
	return int(u), u.Allow(catalog.CanReplace), err
}

// RowSecurityActive implements builtin.Catalog.
func (o *Objects) RowSecurityActive(id types.OID) bool {
	r, t := o.relation(id)
	return t != nil && catalog.NewAccess(r, o.Role()).RowSecurity(t) == catalog.RowSecurityApplies
}

// keysHidden reports whether policies may hide rows of a table from the reader, who is then not shown keys of it.
func (s *scan) keysHidden(t *catalog.TableDescriptor) bool {
	return s.access().RowSecurity(t) == catalog.RowSecurityApplies
}
