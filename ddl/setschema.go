package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// setSchema is SET SCHEMA of a table, view, materialized view or sequence. What is stored of views names it there from now on; sequences of a
// table's columns go with it.
func (r *run) setSchema(ctx context.Context, t *catalog.TableDescriptor, schema string, pos ast.Pos) error {
	if err := r.mayCreate(ctx, ast.TableName{Pos: pos, Schema: schema, Name: t.Name}); err != nil {
		return err
	}
	if t.Schema == schema {
		return nil
	}
	if catalog.IsTemporary(schema) || t.Temporary() {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
	}
	if t.Kind == catalog.KindSequence && t.Sequence.OwnerTable != 0 {
		owner, err := r.r.RelationByID(ctx, t.Sequence.OwnerTable)
		if err != nil {
			return err
		}
		return pgerror.New(pgerror.FeatureNotSupported, "cannot move an owned sequence into another schema").
			WithDetail("Sequence \"%s\" is linked to table \"%s\".", t.Name, owner.Name)
	}
	if err := r.requireFreeIn(ctx, t, schema); err != nil {
		return err
	}
	if err := r.requireNoMovedNames(ctx, t); err != nil {
		return err
	}
	t, err := r.nameRowType(ctx, t, schema, t.Name)
	if err != nil {
		return err
	}
	next := t.Clone()
	next.Schema = schema
	users, err := r.renamedViews(ctx, t, next)
	if err != nil {
		return err
	}
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	if err := r.storeViews(ctx, users); err != nil {
		return err
	}
	return r.moveSequences(ctx, t, schema)
}

// requireFreeIn fails if a schema has the name of the relation, or of one of its indexes.
func (r *run) requireFreeIn(ctx context.Context, t *catalog.TableDescriptor, schema string) error {
	names := []string{t.Name}
	for _, ix := range append([]catalog.IndexDescriptor{t.Primary}, t.Indexes...) {
		if ix.Name != "" {
			names = append(names, ix.Name)
		}
	}
	for _, name := range names {
		if taken, err := r.nameTaken(ctx, schema, name); err != nil || taken {
			return errorOr(err, pgerror.New(pgerror.DuplicateTable, "relation \"%s\" already exists in schema \"%s\"", name, schema))
		}
	}
	if row, _ := t.RowType(); row != 0 {
		return r.freeTypeName(ctx, schema, t.Name)
	}
	return nil
}

// requireNoMovedNames refuses to move what the policies of other tables and observers name.
func (r *run) requireNoMovedNames(ctx context.Context, t *catalog.TableDescriptor) error {
	policies, err := r.policiesOn(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, use := range policies {
		if use.table.ID != t.ID {
			return pgerror.Unsupported("SET SCHEMA of a relation that a policy names", "Drop policy "+use.policy.Name+" first and create it again.")
		}
	}
	observers, err := r.observersOn(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, use := range observers {
		if slices.Contains(use.observer.DependsOn, t.ID) {
			return pgerror.Unsupported("SET SCHEMA of a relation that an observer names", "Drop observer "+use.observer.Name+" first and create it again.")
		}
	}
	return nil
}

// moveSequences moves the sequences that the columns of a table own.
func (r *run) moveSequences(ctx context.Context, t *catalog.TableDescriptor, schema string) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Kind != catalog.KindSequence || s.Sequence.OwnerTable != t.ID {
			continue
		}
		if err := r.requireFreeIn(ctx, s, schema); err != nil {
			return err
		}
		next := s.Clone()
		next.Schema = schema
		if err := r.update(ctx, s, next, false); err != nil {
			return err
		}
	}
	return nil
}
