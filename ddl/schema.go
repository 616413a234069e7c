package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

func (r *run) createSchema(ctx context.Context, n *ast.CreateSchema) error {
	if strings.HasPrefix(n.Name, "pg_") {
		return reservedSchema(n.Name).At(n.Position())
	}
	exists, err := r.r.SchemaExists(ctx, n.Name)
	if err != nil {
		return err
	}
	if exists {
		if n.IfNotExists {
			r.notice(duplicateSchema, "schema %q already exists, skipping", n.Name)
			return nil
		}
		return pgerror.New(duplicateSchema, "schema %q already exists", n.Name).At(n.Position())
	}
	owner := r.User
	if n.Owner != nil {
		if owner, err = r.memberRole(*n.Owner); err != nil {
			return err
		}
	}
	list, err := r.access.Grants.Initial(r.access.Roles, owner, acl.Schema, 0)
	if err != nil {
		return err
	}
	if err := r.ch.CreateSchema(ctx, n.Name, catalog.Owned{Owner: owner, ACL: list}); err != nil {
		return err
	}
	return r.look(ctx)
}

// truncate gives every index of the tables a new, empty id.
func (r *run) truncate(ctx context.Context, n *ast.Truncate) error {
	var tables []*catalog.TableDescriptor
	for _, name := range n.Tables {
		t, err := r.mustFindTable(ctx, name.TableName)
		if err != nil {
			return err
		}
		if n := &name; n.Only && t.IsPartitioned() {
			return pgerror.New(pgerror.WrongObjectType, "cannot truncate only a partitioned table").
				WithHint("Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.")
		}
		tables = append(tables, t)
	}
	tables, err := r.withPartitions(ctx, tables)
	if err != nil {
		return err
	}
	if tables, err = r.withReferencing(ctx, tables, n.Cascade); err != nil {
		return err
	}
	tables, err = r.withPartitions(ctx, tables)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := requireUnobserved(t, "TRUNCATE", "Use DELETE, which notifies observers of every row, or drop its observers first."); err != nil {
			return err
		}
	}
	if err := r.fireTruncate(ctx, tables, true); err != nil {
		return err
	}
	for i, t := range tables {
		// Nothing is read, so rows that have changed since the snapshot are removed too.
		if !r.ch.Created(t.ID) {
			if err := r.ch.Close(ctx, t); err != nil {
				return err
			}
		}
		tables[i] = t
	}
	if r.alone {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	for _, t := range tables {
		now, err := r.r.RelationByID(ctx, t.ID)
		if err != nil {
			return err
		}
		if now == nil {
			return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", t.Name)
		}
		if err := requireUnobserved(now, "TRUNCATE", "Use DELETE, which notifies observers of every row."); err != nil {
			return err
		}
		if err := r.truncateOne(ctx, now, n.RestartIdentity); err != nil {
			return err
		}
	}
	return r.fireTruncate(ctx, tables, false)
}

// fireTruncate executes the triggers of tables for TRUNCATE. They belong to the transaction of a block.
func (r *run) fireTruncate(ctx context.Context, tables []*catalog.TableDescriptor, before bool) error {
	for _, t := range tables {
		if !t.FiresTruncate() {
			continue
		}
		if r.alone || r.FireTruncate == nil { // The trigger is newer than the session's look at the schema.
			return &catalog.SchemaChangedError{Table: t.ID, Name: t.Name}
		}
		if err := r.FireTruncate(ctx, t, before); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// withPartitions adds the tables below partitioned ones.
func (r *run) withPartitions(ctx context.Context, tables []*catalog.TableDescriptor) ([]*catalog.TableDescriptor, error) {
	var all []*catalog.TableDescriptor
	for _, t := range tables {
		tree, err := catalog.PartitionTree(ctx, r.r, t)
		if err != nil {
			return nil, err
		}
		for _, part := range tree {
			if !slices.ContainsFunc(all, func(have *catalog.TableDescriptor) bool { return have.ID == part.ID }) {
				all = append(all, part)
			}
		}
	}
	return all, nil
}

// withReferencing adds the tables that reference those to be emptied, or fails if there are some and cascade is not set.
func (r *run) withReferencing(ctx context.Context, tables []*catalog.TableDescriptor, cascade bool) ([]*catalog.TableDescriptor, error) {
	listed := func(id uint64) bool {
		return slices.ContainsFunc(tables, func(t *catalog.TableDescriptor) bool { return t.ID == id })
	}
	for i := 0; i < len(tables); i++ {
		t := tables[i]
		all, err := catalog.ReferencesToRows(ctx, r.r, t)
		if err != nil {
			return nil, err
		}
		for _, ref := range all {
			child := ref.Table
			if listed(child.ID) {
				continue
			}
			if !cascade {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot truncate a table referenced in a foreign key constraint").
					WithDetail("Table %q references %q.", child.Name, t.Name).
					WithHint("Truncate table \"" + child.Name + "\" at the same time, or use TRUNCATE ... CASCADE.")
			}
			r.notice(pgerror.SuccessfulCompletion, "truncate cascades to table %q", child.Name)
			if !r.access.Superuser() && r.access.Relation(child, acl.Truncate, false) == 0 {
				return nil, planner.RelationDenied(child)
			}
			tables = append(tables, child)
		}
	}
	return tables, nil
}

func (r *run) truncateOne(ctx context.Context, t *catalog.TableDescriptor, restart bool) error {
	if restart {
		all, err := r.r.Relations(ctx)
		if err != nil {
			return err
		}
		for _, q := range all {
			if q.Sequence == nil || q.Sequence.OwnerTable != t.ID {
				continue
			}
			if err := r.restartSequence(ctx, q.ID); err != nil {
				return err
			}
		}
	}
	return r.replaceStorage(ctx, t, t.Clone())
}

// replaceStorage replaces a table by next, which has empty indexes of its own.
func (r *run) replaceStorage(ctx context.Context, t, next *catalog.TableDescriptor) error {
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	renumber(next)
	r.ownIndexes(next)
	return r.update(ctx, t, next, true)
}

// comment is COMMENT ON.
func (r *run) comment(ctx context.Context, n *ast.Comment) error {
	text := ""
	if n.Text != nil {
		text = *n.Text
	}
	name := ast.TableName{Pos: n.Pos}
	if len(n.Name) > 0 {
		name.Name = n.Name[len(n.Name)-1]
	}
	if len(n.Name) > 1 {
		name.Schema = n.Name[len(n.Name)-2]
	}
	switch n.Kind {
	case "TABLE", "VIEW", "SEQUENCE", "MATERIALIZED VIEW":
		t, err := r.mustFind(ctx, name)
		if err != nil {
			return err
		}
		if t.Kind == catalog.KindVirtual {
			return permissionDenied(t.Name)
		}
		if kindWord(t) != strings.ToLower(n.Kind) {
			return pgerror.New(pgerror.WrongObjectType, "%q is not a %s", t.Name, strings.ToLower(n.Kind)).At(n.Position())
		}
		next := t.Clone()
		next.Comment = text
		return r.update(ctx, t, next, false)
	case "POLICY":
		return r.commentPolicy(ctx, &n.Object, text)
	case "TRIGGER":
		return r.commentTrigger(ctx, &n.Object, text)
	case "COLUMN":
		return r.commentColumn(ctx, n, text)
	case "INDEX":
		t, ix, err := catalog.FindIndex(ctx, r.r, name.Schema, name.Name)
		if err != nil || ix == nil {
			return errorOr(err, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", name.Name).At(n.Position()))
		}
		next := t.Clone()
		next.IndexNamed(ix.Name).Comment = text
		return r.update(ctx, t, next, false)
	case "CONSTRAINT":
		if n.OnDomain != nil {
			return r.commentDomainConstraint(ctx, n, text)
		}
		return r.commentConstraint(ctx, n, text)
	case "DOMAIN":
		if _, err := r.domain(ctx, pathName(n.Pos, n.Types[0].Name)); err != nil {
			return err
		}
		return r.commentType(ctx, pathName(n.Pos, n.Types[0].Name), text)
	case "TYPE":
		return r.commentType(ctx, pathName(n.Pos, n.Types[0].Name), text)
	case "ROLE":
		return r.commentRole(ctx, *n.Role, text)
	case "OBSERVER":
		return r.commentObserver(ctx, name, text)
	case "EXTENSION":
		return r.commentExtension(ctx, name.Name, text)
	case "OPERATOR":
		return r.commentOperator(ctx, &n.Object, text)
	case "CAST":
		return r.commentCast(ctx, &n.Object, text)
	case "OPERATOR CLASS":
		return r.commentClass(ctx, &n.Object, text)
	case "OPERATOR FAMILY":
		return r.commentFamily(ctx, &n.Object, text)
	case "COLLATION":
		return r.commentCollation(ctx, &n.Object, text)
	case "FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE":
		return r.commentRoutine(ctx, &n.Object, text)
	case "TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY", "TEXT SEARCH PARSER", "TEXT SEARCH TEMPLATE":
		return r.commentTextSearch(ctx, &n.Object, text)
	case "DATABASE":
		return r.commentDatabase(ctx, name.Name, text)
	case "SCHEMA":
		ok, err := r.r.SchemaExists(ctx, name.Name)
		if err != nil || !ok {
			return errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Name).At(n.Position()))
		}
		if err := r.ch.CommentSchema(ctx, name.Name, text); err != nil {
			return err
		}
		return r.look(ctx)
	}
	return pgerror.Unsupported("COMMENT ON "+n.Kind, "Comments are kept on tables, columns, indexes, views, sequences, observers, schemas, types, collations, routines, extensions, databases, roles, text search configurations and dictionaries.").At(n.Position())
}

func (r *run) commentColumn(ctx context.Context, n *ast.Comment, text string) error {
	if len(n.Name) < 2 {
		return pgerror.New(pgerror.SyntaxError, "column name must be qualified").At(n.Position())
	}
	name := ast.TableName{Pos: n.Pos, Name: n.Name[len(n.Name)-2]}
	if len(n.Name) > 2 {
		name.Schema = n.Name[len(n.Name)-3]
	}
	t, err := r.mustFind(ctx, name)
	if err != nil {
		return err
	}
	if t.Kind == catalog.KindVirtual {
		return permissionDenied(t.Name)
	}
	ord, err := mustColumn(t, n.Name[len(n.Name)-1], n.Position())
	if err != nil {
		return err
	}
	next := t.Clone()
	next.Columns[ord].Comment = text
	return r.update(ctx, t, next, false)
}
