package catalog

import (
	"context"
	"slices"
)

// PolicyCommand is the command that a policy is for, as pg_policy.polcmd spells it.
type PolicyCommand byte

// The commands of policies.
const (
	PolicyAll    PolicyCommand = '*'
	PolicySelect PolicyCommand = 'r'
	PolicyInsert PolicyCommand = 'a'
	PolicyUpdate PolicyCommand = 'w'
	PolicyDelete PolicyCommand = 'd'
)

// PublicRole in PolicyDescriptor.Roles stands for all roles.
const PublicRole = 0

// PolicyDescriptor is a policy of a table: which of its rows roles may read or change, and which they may write. Its name is unique
// among the policies of the table.
type PolicyDescriptor struct {
	OID         uint32 // towards PostgreSQL clients
	Name        string
	Command     PolicyCommand
	Restrictive bool     `json:",omitempty"`
	Roles       []uint32 // OIDs of the roles that it concerns, or PublicRole alone
	// Using and Check are the SQL texts of the conditions over the row that exists and over the row to be written; "": there is none.
	// Relations are qualified, and whole rows and stars spelled out, as of creation.
	Using     string   `json:",omitempty"`
	Check     string   `json:",omitempty"`
	DependsOn []uint64 `json:",omitempty"` // ids of the relations in the conditions' subqueries
	Comment   string   `json:",omitempty"`
}

// Concerns reports whether a policy is for a command.
func (p *PolicyDescriptor) Concerns(c PolicyCommand) bool {
	return p.Command == PolicyAll || p.Command == c
}

// PolicyNamed returns the table's policy called name, or nil.
func (t *TableDescriptor) PolicyNamed(name string) *PolicyDescriptor {
	for i := range t.Policies {
		if t.Policies[i].Name == name {
			return &t.Policies[i]
		}
	}
	return nil
}

func (p PolicyDescriptor) clone() PolicyDescriptor {
	p.Roles = slices.Clone(p.Roles)
	p.DependsOn = slices.Clone(p.DependsOn)
	return p
}

// RowSecurity states whether policies decide which rows of a table a role reads and writes.
type RowSecurity uint8

// The states of row level security.
const (
	// RowSecurityNone: the table has none, whoever asks.
	RowSecurityNone RowSecurity = iota
	// RowSecurityExempt: the role passes all policies.
	RowSecurityExempt
	// RowSecurityApplies: the policies decide. Without any, no row passes.
	RowSecurityApplies
)

// RowSecurity returns whether the policies of a table apply to the role: superusers and roles with BYPASSRLS are exempt, and owners
// unless the table forces them.
func (a *Access) RowSecurity(t *TableDescriptor) RowSecurity {
	switch {
	case !t.RowSecurity:
		return RowSecurityNone
	case a.bypasses(), a.Owns(t.OwnerOID()) && !t.ForceRowSecurity:
		return RowSecurityExempt
	}
	return RowSecurityApplies
}

func (a *Access) bypasses() bool {
	role := a.Roles.ByOID(a.Role)
	return role != nil && (role.Superuser || role.BypassRLS)
}

// Policies returns the policies of a table that concern the role and a command: the permissive ones, of which one must let a row pass,
// and the restrictive ones by name, which all must.
func (a *Access) Policies(t *TableDescriptor, c PolicyCommand) (permissive, restrictive []*PolicyDescriptor) {
	for i := range t.Policies {
		p := &t.Policies[i]
		if !p.Concerns(c) || !slices.ContainsFunc(p.Roles, a.concernedBy) {
			continue
		}
		if p.Restrictive {
			restrictive = append(restrictive, p)
		} else {
			permissive = append(permissive, p)
		}
	}
	return permissive, restrictive
}

func (a *Access) concernedBy(role uint32) bool { return role == PublicRole || a.inherits(role) }

// FindPolicy finds a policy and its table by the policy's OID. It returns nil if there is none.
func FindPolicy(ctx context.Context, r Resolver, oid uint32) (*TableDescriptor, *PolicyDescriptor, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range all {
		for i := range t.Policies {
			if t.Policies[i].OID == oid {
				return t, &t.Policies[i], nil
			}
		}
	}
	return nil, nil, nil
}
