package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// PrivilegeQuery is what has_…_privilege asks.
type PrivilegeQuery struct {
	Object string // "table", "schema", "database", "sequence", "column", "any_column", "function", "type", "language", …
	// The role: RoleName if NamesRole, RoleOID if GivesRole, else the current role.
	NamesRole, GivesRole bool
	RoleName             string
	RoleOID              types.OID
	// The object: Name if Named, else OID.
	Named bool
	Name  string
	OID   types.OID
	// The column: Column if ColumnNamed, else Attribute.
	ColumnNamed bool
	Column      string
	Attribute   int
	// Privileges are those of which one suffices, separated by commas.
	Privileges string
}

// hasPrivilege makes the function of has_…_privilege for arguments of the given types.
func hasPrivilege(object string, args []string) Func {
	return catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		q := &PrivilegeQuery{Object: object, Privileges: a[len(a)-1].Text()}
		arg := 0
		takesColumn := object == "column"
		if rest := len(args) - 1; rest == 3 && takesColumn || rest == 2 && !takesColumn {
			if q.NamesRole = args[0] == "name"; q.NamesRole {
				q.RoleName = a[0].Text()
			} else {
				q.GivesRole, q.RoleOID = true, oidArg(a[0])
			}
			arg++
		}
		if q.Named = args[arg] == "text"; q.Named {
			q.Name = a[arg].Text()
		} else {
			q.OID = oidArg(a[arg])
		}
		if takesColumn {
			if q.ColumnNamed = args[arg+1] == "text"; q.ColumnNamed {
				q.Column = a[arg+1].Text()
			} else {
				q.Attribute = int(a[arg+1].Int())
			}
		}
		has, known, err := c.HasPrivilege(q)
		if err != nil || !known {
			return types.Null, err
		}
		return types.Bool(has), nil
	})
}

// privilegeFuncs declares has_…_privilege and the functions on access lists.
func privilegeFuncs() []decl {
	var out []decl
	for _, object := range []string{"table", "schema", "database", "sequence", "function", "type", "column", "any_column",
		"language", "tablespace", "foreign_data_wrapper", "server", "parameter"} {
		middle := []string{"text", "oid"}
		if object == "parameter" {
			middle = middle[:1]
		}
		if object == "column" {
			middle = []string{"text,text", "text,int2", "oid,text", "oid,int2"}
		}
		for _, m := range middle {
			for _, role := range []string{"", "name,", "oid,"} {
				args := role + m + ",text"
				out = append(out, decl{
					sig: "has_" + object + "_privilege(" + args + ") bool", flags: stable, fn: hasPrivilege(object, strings.Split(args, ",")),
				})
			}
		}
	}
	return append(append(out, aclFuncs()...),
		decl{sig: "pg_relation_is_updatable(regclass,bool) int4", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			events, _, err := c.Updatable(oidArg(a[0]), a[1].Bool(), 0)
			return types.Int(int64(events)), err
		})},
		decl{sig: "pg_column_is_updatable(regclass,int2,bool) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			if a[1].Int() <= 0 {
				return types.Bool(false), nil
			}
			_, replace, err := c.Updatable(oidArg(a[0]), a[2].Bool(), int(a[1].Int()))
			return types.Bool(replace), err
		})},
		decl{sig: "row_security_active(oid) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return types.Bool(c.RowSecurityActive(oidArg(a[0]))), nil
		})},
		decl{sig: "row_security_active(text) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			oid, err := c.RelationOID(a[0].Text())
			return types.Bool(err == nil && c.RowSecurityActive(oid)), err
		})},
	)
}
