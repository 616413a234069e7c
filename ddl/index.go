package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

func (r *run) createIndex(ctx context.Context, n *ast.CreateIndex) error {
	if n.Concurrently && !r.alone {
		return pgerror.New(pgerror.ActiveSQLTransaction, "CREATE INDEX CONCURRENTLY cannot run inside a transaction block")
	}
	if err := r.refuseIndexOptions(n); err != nil {
		return err
	}
	t, err := r.mustFind(ctx, n.Table)
	if err != nil {
		return err
	}
	if t.Kind != catalog.KindTable {
		if t.Kind == catalog.KindVirtual {
			return permissionDenied(t.Name)
		}
		return pgerror.New(pgerror.WrongObjectType, "cannot create index on relation %q", t.Name).
			WithDetail("This operation is not supported for %ss.", kindWord(t.Kind))
	}
	if n.Name != "" {
		taken, err := r.nameTaken(ctx, t.Schema, n.Name)
		if err != nil {
			return err
		}
		if taken {
			if n.IfNotExists {
				r.notice(pgerror.DuplicateTable, "relation %q already exists, skipping", n.Name)
				return nil
			}
			return relationExists(n.Name).At(n.Position())
		}
	}
	if _, err := r.newIndex(ctx, t, n); err != nil {
		return err // Before the table is closed, and waited for.
	}
	if t, err = r.exclusive(ctx, t, 1); err != nil {
		return err
	}
	next := t.Clone()
	ix, err := r.newIndex(ctx, next, n)
	if err != nil {
		return err
	}
	return r.addIndex(ctx, t, next, ix)
}

func (r *run) refuseIndexOptions(n *ast.CreateIndex) error {
	switch n.Method {
	case "", "btree":
	case "hash":
		r.notice(pgerror.SuccessfulCompletion, "index %q is built as btree, which answers all that hash does", n.Name)
	default:
		return pgerror.Unsupported("index method \""+n.Method+"\"", "Use btree.").At(n.Position())
	}
	if n.Where != nil {
		return pgerror.Unsupported("a partial index", "Leave WHERE out, or keep the rows in a table of their own.").At(n.Where.Position())
	}
	for i := range n.Columns {
		c := &n.Columns[i]
		if c.Expr != nil {
			return pgerror.Unsupported("an index on an expression", "Store the value in a column and index that.").At(c.Position())
		}
		// Since text is ordered by its bytes, the pattern operator classes equal the default ones.
		if len(c.OpClass) > 0 && !strings.HasSuffix(c.OpClass[len(c.OpClass)-1], "_ops") {
			return pgerror.New(pgerror.UndefinedObject, "operator class %q does not exist for access method \"btree\"", c.OpClass[len(c.OpClass)-1]).At(c.Position())
		}
	}
	return nil
}

// newIndex makes the descriptor for CREATE INDEX.
func (r *run) newIndex(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex) (catalog.IndexDescriptor, error) {
	ix := catalog.IndexDescriptor{ID: t.NextIndexID, Name: n.Name, Unique: n.Unique}
	names := make([]string, 0, len(n.Columns))
	for i := range n.Columns {
		c := &n.Columns[i]
		ord := t.ColumnNamed(c.Name)
		if ord < 0 {
			return ix, pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", c.Name).At(c.Position())
		}
		if err := requireIndexable(&t.Columns[ord]); err != nil {
			return ix, err.At(c.Position())
		}
		names = append(names, c.Name)
		typ, err := planner.CollateType(t.Columns[ord].Type, c.Collation, r.r, 0)
		if err != nil {
			return ix, err
		}
		key := catalog.NewIndexColumn(&t.Columns[ord], typ.Coll)
		key.Desc, key.NullsFirst = c.Desc, c.NullsFirst
		ix.Columns = append(ix.Columns, key)
	}
	for i := range n.Include {
		c := &n.Include[i]
		ord := t.ColumnNamed(c.Name)
		if ord < 0 {
			return ix, pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", c.Name).At(n.Position())
		}
		names = append(names, c.Name)
		ix.Include = append(ix.Include, t.Columns[ord].ID)
	}
	if ix.Name == "" {
		taken, err := r.relationTaken(ctx, t.Schema, nil)
		if err != nil {
			return ix, err
		}
		ix.Name = chooseName(t.Name, joinColumns(names), "idx", taken)
	}
	oid, err := r.ch.NewID(ctx)
	ix.OID = uint32(oid)
	return ix, err
}
