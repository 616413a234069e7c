package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// authorize returns 42501 unless the user may run the statement. dispatch calls it for every statement that Handles, before anything
// else. Objects that do not exist are left to the statement, which reports them.
//
// GRANT, REVOKE and what else names privileges decide by the privileges of each object (grant.go), as do the roles' statements.
func (r *run) authorize(ctx context.Context, stmt ast.Statement) error {
	if r.access.Superuser() {
		return nil
	}
	switch n := stmt.(type) {
	case *ast.CreateTable:
		return r.mayCreateRelation(ctx, n.Name, n.Persistence)
	case *ast.CreateView:
		return r.mayCreateView(ctx, n)
	case *ast.CreateMaterializedView:
		return r.mayCreateRelation(ctx, n.Name, ast.Permanent)
	case *ast.RefreshMaterializedView:
		return r.mayRefresh(ctx, n)
	case *ast.CreateSequence:
		return r.mayCreateRelation(ctx, n.Name, n.Persistence)
	case *ast.CreateType:
		return r.mayCreate(ctx, pathName(n.Pos, n.Name))
	case *ast.CreateDomain:
		return r.mayCreate(ctx, pathName(n.Pos, n.Name))
	case *ast.CreateIndex:
		t, err := r.find(ctx, n.Table)
		if err != nil || t == nil {
			return err
		}
		if err := r.mustOwn(t); err != nil {
			return err
		}
		return r.mayCreateIn(t.Schema)
	case *ast.CreateSchema:
		if r.access.Database(acl.Create) == 0 {
			return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for database %s", r.Database)
		}
		return nil
	case *ast.Drop:
		return r.mayDrop(ctx, n)
	case *ast.AlterTable:
		return r.mayAlter(ctx, n)
	case *ast.LockTable:
		return r.mayLock(ctx, n)
	case *ast.Truncate:
		return r.mayTruncate(ctx, n)
	case *ast.Comment:
		return r.mayComment(ctx, n)
	case *ast.CreateObserver:
		return r.mayCreateObserver(ctx, n)
	case *ast.AlterObserver:
		return r.mayChangeObserver(ctx, n.Name)
	case *ast.DropObserver:
		for _, name := range n.Names {
			if err := r.mayChangeObserver(ctx, name); err != nil {
				return err
			}
		}
		return nil
	case *ast.Analyze, *ast.Vacuum: // They skip tables of others, with a warning.
		return nil
	case *ast.Grant, *ast.AlterDefaultPrivileges, *ast.OwnedBy, *ast.AlterObject, *ast.AlterEnum, *ast.AlterDomain, *ast.AlterType, *ast.RenameAttribute, // by object
		*ast.CreateExtension, *ast.AlterExtension:
		return nil
	case *ast.CreateCast, *ast.OperatorClass, *ast.OperatorFamily: // by the types, the schema and the owner (cast.go, opclass.go)
		return nil
	case *ast.CreateFunction, *ast.AlterFunction, *ast.Define, *ast.AlterTextSearch: // by the schema and the owner (routine.go, routinealter.go, aggregate.go, textsearch.go)
		return nil
	case *ast.Reindex, *ast.Cluster: // by what they name (reindex.go, cluster.go)
		return nil
	case *ast.CreateTrigger: // by the privileges on the table and the function (trigger.go)
		return nil
	case *ast.CreatePolicy, *ast.AlterPolicy: // by the owner of the table (policy.go)
		return nil
	case *ast.CreateRole, *ast.AlterRole, *ast.AlterRoleSet, *ast.AlterDatabaseSet, *ast.Database, *ast.DropObjects, *ast.GrantRole: // role.go, database.go, membership.go, owner.go, droptype.go, policy.go
		return nil
	}
	return pgerror.New(pgerror.InternalError, "nothing decides who may run %T", stmt)
}

// mustOwn fails unless the user has the privileges of the relation's owner.
func (r *run) mustOwn(t *catalog.TableDescriptor) error {
	if r.access.Owns(t.OwnerOID()) {
		return nil
	}
	return mustBeOwner(kindWord(t), t.Name)
}

func mustBeOwner(kind, name string) *pgerror.Error {
	return pgerror.New(pgerror.InsufficientPrivilege, "must be owner of %s %s", kind, name)
}

// mayCreate checks the creation of an object of that name.
func (r *run) mayCreate(ctx context.Context, name ast.TableName) error {
	schema, err := r.targetSchema(ctx, name)
	if err != nil {
		return err
	}
	return r.mayCreateIn(schema)
}

// mayCreateRelation is mayCreate for what may be temporary.
func (r *run) mayCreateRelation(ctx context.Context, name ast.TableName, persistence ast.Persistence) error {
	schema, err := r.newRelationSchema(ctx, name, persistence)
	if err != nil {
		return err
	}
	return r.mayCreateIn(schema)
}

func (r *run) mayCreateIn(schema string) error {
	if catalog.IsTemporary(schema) {
		if r.access.Database(acl.Temporary) == 0 {
			return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to create temporary tables in database %q", r.Database)
		}
		return nil
	}
	if r.access.Schema(schema, acl.Create) == 0 {
		return planner.SchemaDenied(schema, 0)
	}
	return nil
}

func (r *run) mayCreateView(ctx context.Context, n *ast.CreateView) error {
	if err := r.mayCreateRelation(ctx, n.Name, n.Persistence); err != nil || !n.OrReplace {
		return err
	}
	schema, err := r.newRelationSchema(ctx, n.Name, n.Persistence)
	if err != nil {
		return err
	}
	old, err := r.r.Relation(ctx, schema, n.Name.Name)
	if err != nil || old == nil || old.Kind != catalog.KindView {
		return err
	}
	return r.mustOwn(old)
}

// mayDrop checks DROP: the owner of the object or of its schema may drop it.
func (r *run) mayDrop(ctx context.Context, n *ast.Drop) error {
	for _, name := range n.Names {
		if n.Kind == "SCHEMA" {
			if _, exists := r.access.Grants.Schemas[name.Name]; exists && !r.access.OwnsSchema(name.Name) {
				return mustBeOwner("schema", name.Name)
			}
			continue
		}
		t, err := r.find(ctx, name)
		if err != nil {
			return err
		}
		if n.Kind == "INDEX" {
			owner, ix, err := catalog.FindIndex(ctx, r.r, name.Schema, name.Name)
			if err != nil {
				return err
			}
			if ix == nil {
				if owner, _, err = catalog.FindBuild(ctx, r.r, name.Schema, name.Name); err != nil {
					return err
				}
			}
			if owner != nil && !r.access.Owns(owner.OwnerOID()) && !r.access.OwnsSchema(owner.Schema) {
				return mustBeOwner("index", name.Name)
			}
			continue
		}
		if t == nil || r.access.Owns(t.OwnerOID()) || r.access.OwnsSchema(t.Schema) {
			continue
		}
		return r.mustOwn(t)
	}
	return nil
}

// mayAlter checks ALTER TABLE and its kind. A new name needs the right to create in the schema.
func (r *run) mayAlter(ctx context.Context, n *ast.AlterTable) error {
	t, err := r.find(ctx, n.Name)
	if err != nil {
		return err
	}
	var schema string
	switch {
	case t != nil && n.Kind != "INDEX":
		if err := r.mustOwn(t); err != nil {
			return err
		}
		schema = t.Schema
	default:
		owner, ix, err := catalog.FindIndex(ctx, r.r, n.Name.Schema, n.Name.Name)
		if err != nil || ix == nil {
			return err
		}
		if !r.access.Owns(owner.OwnerOID()) {
			return mustBeOwner("index", ix.Name)
		}
		schema = owner.Schema
	}
	for _, c := range n.Commands {
		if _, rename := c.(*ast.RenameTo); rename {
			if err := r.mayCreateIn(schema); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) mayTruncate(ctx context.Context, n *ast.Truncate) error {
	for _, name := range n.Tables {
		t, err := r.find(ctx, name.TableName)
		if err != nil {
			return err
		}
		if t != nil && r.access.Relation(t, acl.Truncate, false) == 0 {
			return planner.RelationDenied(t)
		}
		if t == nil || !n.RestartIdentity {
			continue
		}
		for i := range t.Columns {
			s, err := r.r.RelationByID(ctx, t.Columns[i].Sequence)
			if err != nil {
				return err
			}
			if s != nil {
				if err := r.mustOwn(s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mayComment checks COMMENT ON of the objects that have comments; those of roles are checked with the roles.
func (r *run) mayComment(ctx context.Context, n *ast.Comment) error {
	if len(n.Name) == 0 {
		return nil
	}
	path := n.Name
	if n.Kind == "COLUMN" {
		path = path[:len(path)-1]
	}
	name := ast.TableName{Pos: n.Pos}
	if len(path) > 0 {
		name.Name = path[len(path)-1]
	}
	if len(path) > 1 {
		name.Schema = path[len(path)-2]
	}
	switch n.Kind {
	case "TABLE", "VIEW", "SEQUENCE", "MATERIALIZED VIEW", "COLUMN":
		t, err := r.find(ctx, name)
		if err != nil || t == nil {
			return err
		}
		return r.mustOwn(t)
	case "INDEX":
		t, ix, err := catalog.FindIndex(ctx, r.r, name.Schema, name.Name)
		if err != nil || ix == nil || r.access.Owns(t.OwnerOID()) {
			return err
		}
		return mustBeOwner("index", ix.Name)
	case "CONSTRAINT":
		if n.OnDomain != nil {
			return nil
		}
		t, err := r.find(ctx, pathName(n.Pos, n.On))
		if err != nil || t == nil {
			return err
		}
		return r.mustOwn(t)
	case "OBSERVER":
		return r.mayChangeObserver(ctx, name)
	case "SCHEMA":
		if _, exists := r.access.Grants.Schemas[name.Name]; exists && !r.access.OwnsSchema(name.Name) {
			return mustBeOwner("schema", name.Name)
		}
	}
	return nil
}

// mayCreateObserver checks CREATE OBSERVER: it needs TRIGGER on the table and SELECT of its key, and the observer that is replaced must be
// the user's.
func (r *run) mayCreateObserver(ctx context.Context, n *ast.CreateObserver) error {
	t, err := r.find(ctx, n.Table)
	if err != nil || t == nil {
		return err
	}
	if !mayObserve(r.access, t) {
		return planner.RelationDenied(t)
	}
	// The new body runs with the privileges of the observer's owner, which those of the table's owner need not include.
	if old := t.ObserverNamed(n.Name); old != nil && n.OrReplace && !r.access.Owns(old.OwnerOID()) {
		return mustBeOwner("observer", old.Name)
	}
	return nil
}

// mayObserve reports whether a role may own an observer of a table: it sees the keys of the rows that change.
func mayObserve(a *catalog.Access, t *catalog.TableDescriptor) bool {
	return a.Relation(t, acl.Trigger, false) != 0 && a.ReadsKey(t, &t.Primary)
}

// mayChangeObserver checks the change of an observer: its owner and that of its table may.
func (r *run) mayChangeObserver(ctx context.Context, name ast.TableName) error {
	t, o, err := catalog.FindObserver(ctx, r.r, name.Schema, name.Name)
	if err != nil || o == nil {
		return err
	}
	return r.mustOwnObserver(t, o)
}

func (r *run) mustOwnObserver(t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) error {
	if r.access.Owns(o.OwnerOID()) || r.access.Owns(t.OwnerOID()) {
		return nil
	}
	return mustBeOwner("observer", o.Name)
}

// mayAnalyze reports whether the user may analyze or vacuum a table; if not, it warns.
func (r *run) mayAnalyze(t *catalog.TableDescriptor, what string) bool {
	if r.access.Owns(t.OwnerOID()) || r.access.Owns(r.access.Grants.Database.OwnerOID()) {
		return true
	}
	r.notice(pgerror.Warning, "skipping %q --- only table or database owner can %s it", t.Name, what)
	return false
}

// useSchema fails if a name is qualified by a schema that the user may not use.
func (r *run) useSchema(name ast.TableName) error {
	if name.Schema == "" || r.access == nil {
		return nil
	}
	if _, exists := r.access.Grants.Schemas[name.Schema]; exists && r.access.Schema(name.Schema, acl.Usage) == 0 {
		return planner.SchemaDenied(name.Schema, name.Position())
	}
	return nil
}

// create adds a relation that belongs to the user, with the privileges that new objects get.
func (r *run) create(ctx context.Context, t *catalog.TableDescriptor) error {
	return r.createFor(ctx, t, r.User)
}

// createFor adds a relation that belongs to a role.
func (r *run) createFor(ctx context.Context, t *catalog.TableDescriptor, owner uint32) (err error) {
	t.Owner = owner
	if t.ACL, err = r.access.Grants.Initial(r.access.Roles, owner, t.ACLKind(), r.schemaID(t.Schema)); err != nil {
		return err
	}
	return r.ch.Create(ctx, t)
}

// schemaID returns the number of a schema.
func (r *run) schemaID(name string) uint64 {
	if d, ok := r.r.(catalog.SchemaDetails); ok {
		return uint64(d.SchemaOID(name))
	}
	return 0
}
