package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// temporarySchema returns the session's schema of temporary relations, for one of that name.
func (r *run) temporarySchema(n ast.TableName) (string, error) {
	if r.Temporary == nil {
		return "", pgerror.Unsupported("CREATE TEMPORARY without a session", "Create an ordinary table and drop it when you are done.").At(n.Position())
	}
	if n.Schema != "" && n.Schema != catalog.TemporarySchema && n.Schema != r.Temporary.Name() {
		return "", pgerror.New(pgerror.InvalidTableDefinition, "cannot create relations in temporary schemas of other sessions").At(n.Position())
	}
	if r.Restricted {
		return "", pgerror.New(pgerror.InsufficientPrivilege, "cannot create temporary table within security-restricted operation")
	}
	return r.Temporary.Name(), nil
}

// newRelationSchema returns the schema in which a new relation goes, which may be temporary by word or by schema.
func (r *run) newRelationSchema(ctx context.Context, n ast.TableName, persistence ast.Persistence) (string, error) {
	if persistence != ast.Temporary {
		schema, err := r.targetSchema(ctx, n)
		if err == nil && persistence != "" && catalog.IsTemporary(schema) {
			err = pgerror.New(pgerror.InvalidTableDefinition, "only temporary relations may be created in temporary schemas").At(n.Position())
		}
		return schema, err
	}
	if n.Schema != "" && !catalog.IsTemporary(n.Schema) {
		return "", pgerror.New(pgerror.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema").At(n.Position())
	}
	return r.temporarySchema(n)
}

// commitAction is the table's ON COMMIT.
func commitAction(n *ast.CreateTable, schema string) (catalog.CommitAction, error) {
	if n.OnCommit != "" && !catalog.IsTemporary(schema) {
		return 0, pgerror.New(pgerror.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	switch n.OnCommit {
	case "DELETE ROWS":
		return catalog.CommitEmpties, nil
	case "DROP":
		return catalog.CommitDrops, nil
	}
	return catalog.CommitPreserves, nil
}

// usesTemporary reports whether a view's query reads temporary relations, so that the view is one itself.
func (r *run) usesTemporary(ctx context.Context, n *ast.CreateView) (bool, error) {
	if r.Temporary.Version() == 0 {
		return false, nil
	}
	view := &catalog.TableDescriptor{Kind: catalog.KindView, Schema: catalog.TemporarySchema, Name: n.Name.Name, NextColumnID: 1}
	if err := r.describeView(ctx, view, n); err != nil {
		return false, err
	}
	for _, id := range view.DependsOn {
		if t, err := r.r.RelationByID(ctx, id); err != nil || t != nil && t.Temporary() {
			return t != nil, err
		}
	}
	return false, nil
}

// changesTemporary reports whether a statement changes nothing but temporary relations, so that it waits for no other change of the
// schema. It may say no of one that does.
func (d *Deps) changesTemporary(stmt ast.Statement) bool {
	if d.Temporary == nil {
		return false
	}
	switch n := stmt.(type) {
	case *ast.CreateTable:
		return n.Persistence == ast.Temporary
	case *ast.CreateView:
		return n.Persistence == ast.Temporary
	case *ast.CreateSequence:
		return n.Persistence == ast.Temporary
	case *ast.CreateIndex:
		return d.ownTemporary(n.Table)
	case *ast.AlterTable:
		return n.Kind == "TABLE" && d.ownTemporary(n.Name)
	case *ast.Truncate:
		for _, name := range n.Tables {
			if !d.ownTemporary(name.TableName) {
				return false
			}
		}
		return true
	case *ast.Drop:
		for _, name := range n.Names {
			if !d.ownTemporary(name) {
				return false
			}
		}
		return n.Kind == "TABLE" || n.Kind == "VIEW" || n.Kind == "SEQUENCE"
	}
	return false
}

// ownTemporary reports whether a name is that of one of the session's temporary relations. Unless the search path names their
// schema, they are found first.
func (d *Deps) ownTemporary(n ast.TableName) bool {
	switch n.Schema {
	case "":
		for _, schema := range d.SearchPath {
			if schema == catalog.TemporarySchema {
				return false // or found later; an ordinary change does as well
			}
		}
	case catalog.TemporarySchema, d.Temporary.Name():
	default:
		return false
	}
	return d.Temporary.Relation(n.Name) != nil
}

// DropTemporary drops all of the session's temporary relations in the block's transaction.
func DropTemporary(ctx context.Context, d Deps) error {
	return inTemporary(ctx, d, func(r *run) error { return r.dropTemporary(ctx, r.Temporary.All()) })
}

// EndTemporary does what ON COMMIT says of the session's temporary tables. The transaction in d is about to commit.
func EndTemporary(ctx context.Context, d Deps) error {
	return inTemporary(ctx, d, func(r *run) error { return r.endTemporary(ctx) })
}

// inTemporary runs f as a change of temporary relations in the block's transaction.
func inTemporary(ctx context.Context, d Deps, f func(r *run) error) error {
	d = d.ensureDefaults()
	ch, err := d.Guard.ChangeTemporary(ctx)
	if err != nil {
		return err
	}
	r := &run{Deps: &d, ch: ch, guard: d.Guard, txn: d.Txn}
	if err := r.look(ctx); err != nil {
		return err
	}
	return f(r)
}

func (r *run) endTemporary(ctx context.Context) error {
	drop, empty := r.Temporary.AtCommit()
	for _, t := range empty {
		if err := r.requireSameEnd(t); err != nil {
			return err
		}
		if err := r.truncateOne(ctx, t, false); err != nil {
			return err
		}
	}
	return r.dropTemporary(ctx, drop)
}

// requireSameEnd fails if the rows of another temporary table that reference those of t, which the commit deletes, stay.
func (r *run) requireSameEnd(t *catalog.TableDescriptor) error {
	for _, other := range r.Temporary.All() {
		if other.OnCommit == catalog.CommitEmpties || !slices.ContainsFunc(other.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return k.Parent == t.ID }) {
			continue
		}
		return pgerror.New(pgerror.FeatureNotSupported, "unsupported ON COMMIT and foreign key combination").
			WithDetail("Table %q references %q, but they do not have the same ON COMMIT setting.", other.Name, t.Name)
	}
	return nil
}

func (r *run) dropTemporary(ctx context.Context, tables []*catalog.TableDescriptor) error {
	if len(tables) == 0 {
		return nil
	}
	d := newDropping(r)
	for _, t := range tables {
		d.addTarget(t)
	}
	return d.run(ctx, true)
}
