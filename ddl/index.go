package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

func (r *run) createIndex(ctx context.Context, n *ast.CreateIndex) error {
	if n.Concurrently && !r.alone {
		return pgerror.New(pgerror.ActiveSQLTransaction, "CREATE INDEX CONCURRENTLY cannot run inside a transaction block")
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
			WithDetail("This operation is not supported for %ss.", kindWord(t))
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
	if _, err := r.newIndex(ctx, t.Clone(), n); err != nil {
		return err // Before the table is closed, and waited for.
	}
	if t.IsPartitioned() {
		return r.createIndexOnTree(ctx, t, n)
	}
	online, err := r.buildsOnline(ctx, t)
	if err != nil {
		return err
	}
	if online {
		r.ch.ForBuild()
	}
	if err := r.noticeBlocks(ctx, t); err != nil {
		return err
	}
	if t, err = r.exclusive(ctx, t, 1); err != nil {
		return err
	}
	next := t.Clone()
	ix, err := r.newIndex(ctx, next, n)
	if err != nil {
		return err
	}
	r.noticeMethod(&ix)
	if online {
		return r.beginBuild(ctx, t, next, catalog.IndexBuild{Index: ix, KeepInvalid: n.Concurrently})
	}
	return r.addIndex(ctx, t, next, ix)
}

// noticeBlocks tells the client that a block blocks the writers of t until it ends, if t is older than the block and has rows.
func (r *run) noticeBlocks(ctx context.Context, t *catalog.TableDescriptor) error {
	if r.alone || t.Temporary() || r.ch.Created(t.ID) || r.ch.Closed(t.ID) {
		return nil
	}
	left, err := r.countDown(ctx, t, 0)
	if err == nil && left < 0 {
		r.Report.Notice(pgerror.New(pgerror.SuccessfulCompletion, "writers of table %q wait until the transaction block ends", t.Name).
			WithHint("CREATE INDEX outside of a transaction block does not block writers."))
	}
	return err
}

// newIndex makes the descriptor for CREATE INDEX. It adds the expressions of the index to t, which the caller owns.
func (r *run) newIndex(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex) (catalog.IndexDescriptor, error) {
	ix := catalog.IndexDescriptor{ID: t.NextIndexID, Name: n.Name, Unique: n.Unique, NullsNotDistinct: n.Unique && n.NotNulls}
	if err := requireMethod(n); err != nil {
		return ix, err
	}
	var err error
	if ix.Options, err = indexOptions(n.Method, nil, n.Options); err != nil {
		return ix, err
	}
	if err := requireTablespace(n.Tablespace); err != nil {
		return ix, err
	}
	if n.Method != "btree" {
		ix.Method = n.Method
	}
	inverted := n.Method == "gin"
	if n.Method == "gist" || n.Method == "spgist" {
		if n, inverted, err = r.substitute(ctx, t, n); err != nil {
			return ix, err
		}
	}
	if inverted {
		return r.newInverted(ctx, t, n, ix)
	}
	var names []string
	for i := range n.Columns {
		key, err := r.indexKey(ctx, t, n.Method, &n.Columns[i])
		if err != nil {
			return ix, err
		}
		names = appendIndexName(names, &n.Columns[i])
		ix.Columns = append(ix.Columns, key)
	}
	for i := range n.Include {
		c := &n.Include[i]
		ord, err := indexColumn(t, c)
		if err != nil {
			return ix, err
		}
		names = appendIndexName(names, c)
		ix.Include = append(ix.Include, t.Columns[ord].ID)
	}
	return ix, r.finishIndex(ctx, t, n, &ix, names)
}

// finishIndex gives a new index, whose keys contribute names to its own, its predicate, name and number.
func (r *run) finishIndex(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex, ix *catalog.IndexDescriptor, names []string) (err error) {
	if n.Where != nil {
		if ix.Where, err = r.indexPredicate(ctx, t, n.Where); err != nil {
			return err
		}
	}
	if ix.Name == "" {
		taken, err := r.relationTaken(ctx, t.Schema, nil)
		if err != nil {
			return err
		}
		ix.Name = chooseName(t.Name, joinColumns(names), "idx", taken)
	}
	oid, err := r.ch.NewID(ctx)
	ix.OID = uint32(oid)
	return err
}

// indexColumn finds the column that an index names.
func indexColumn(t *catalog.TableDescriptor, c *ast.IndexColumn) (int, error) {
	name := c.Name
	if ref, ok := c.Expr.(*ast.ColumnRef); ok && len(ref.Parts) == 1 {
		name = ref.Parts[0]
	}
	if ord := t.ColumnNamed(name); ord >= 0 {
		return ord, nil
	}
	if slices.Contains(catalog.SystemColumns, name) {
		return 0, systemColumnIndex()
	}
	return 0, pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", name)
}

func systemColumnIndex() error {
	return pgerror.New(pgerror.FeatureNotSupported, "index creation on system columns is not supported")
}

// keyPlace is where the keys of an index, or of partitions, are named in errors.
type keyPlace struct{ clause, mutable string }

// ofIndex is the place of the keys of an index.
var ofIndex = keyPlace{inIndex, "functions in index expression must be marked IMMUTABLE"}

// keyColumn returns the column of t that a key of an index is over: one of the table, or a computed one, which is added if it is new.
func (r *run) keyColumn(ctx context.Context, t *catalog.TableDescriptor, c *ast.IndexColumn, place keyPlace) (*catalog.ColumnDescriptor, error) {
	if ref, ok := c.Expr.(*ast.ColumnRef); c.Expr != nil && (!ok || len(ref.Parts) != 1) {
		return r.computedColumn(ctx, t, c.Expr, place)
	}
	ord, err := indexColumn(t, c)
	if err != nil {
		return nil, err
	}
	return &t.Columns[ord], nil
}

// indexKey makes a key of an index: a column, or an expression, which becomes a computed column of t.
func (r *run) indexKey(ctx context.Context, t *catalog.TableDescriptor, method string, c *ast.IndexColumn) (catalog.IndexColumn, error) {
	return r.indexKeyIn(ctx, t, method, c, ofIndex)
}

// indexKeyIn is indexKey for the key of an index or of partitions.
func (r *run) indexKeyIn(ctx context.Context, t *catalog.TableDescriptor, method string, c *ast.IndexColumn, place keyPlace) (catalog.IndexColumn, error) {
	none := catalog.IndexColumn{}
	if x, ok := c.Expr.(*ast.Collate); ok && place == ofIndex { // It is the collation of the key, whose expression has none.
		key := *c
		if key.Expr = x.X; len(c.Collation) == 0 {
			key.Collation = x.Name
		}
		c = &key
	}
	col, err := r.keyColumn(ctx, t, c, place)
	if err != nil {
		return none, err
	}
	typ, err := planner.CollateType(col.Type, c.Collation, r.r, c.Position())
	if err != nil {
		return none, err
	}
	class, byBytes, user, err := r.keyClass(ctx, method, c.OpClass, typ, place)
	if err != nil {
		return none, err
	}
	if class == "" {
		if err := requireIndexable(col); err != nil {
			return none, err
		}
	}
	if byBytes {
		typ.Coll = nil
	}
	key := catalog.NewIndexColumn(col, typ.Coll)
	key.Desc, key.NullsFirst, key.OpClass, key.OpClassID = c.Desc, c.NullsFirst, class, user
	return key, nil
}
