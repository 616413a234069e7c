package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The places of an index's expressions, as errors name them.
const (
	inIndex     = "index expressions"
	inPredicate = "index predicates"
)

// computedColumn returns the computed column of t that an index expression is, which is added if it is new.
func (r *run) computedColumn(ctx context.Context, t *catalog.TableDescriptor, e ast.Expr, place keyPlace) (*catalog.ColumnDescriptor, error) {
	bound, err := r.bind(ctx, t, e, types.Type{}, place.clause)
	if err != nil {
		return nil, singular(err)
	}
	text, err := r.storedText(ctx, t, e, bound, place.mutable)
	if err != nil {
		return nil, err
	}
	for i := range t.Computed {
		if t.Computed[i].Expr != nil && t.Computed[i].Expr.SQL == text.SQL {
			return &t.Computed[i], nil
		}
	}
	typ := bound.Type()
	if typ.OID == types.OIDRecord {
		return nil, pgerror.New(pgerror.InvalidTableDefinition, "column %q has pseudo-type %s", sql.ExprName(e), typ.String())
	}
	if typ.Coll.Undetermined() {
		return nil, pgerror.New(builtin.IndeterminateCollation, "could not determine which collation to use for index expression").
			WithHint("Use the COLLATE clause to set the collation explicitly.")
	}
	t.Computed = append(t.Computed, catalog.ColumnDescriptor{ID: t.NextColumnID, Name: keyText(text), Type: typ, Expr: text})
	t.NextColumnID++
	return &t.Computed[len(t.Computed)-1], nil
}

// keyText is an expression as messages print it: as CREATE INDEX takes it.
func keyText(x *catalog.ExprText) string {
	if x.Call {
		return x.Pretty
	}
	return "(" + x.Pretty + ")"
}

// indexPredicate checks the predicate of a partial index.
func (r *run) indexPredicate(ctx context.Context, t *catalog.TableDescriptor, e ast.Expr) (*catalog.ExprText, error) {
	bound, err := r.bind(ctx, t, e, types.Type{}, inPredicate)
	if err != nil {
		return nil, singular(err)
	}
	if typ := bound.Type(); typ.OID != types.OIDBool {
		if bound, err = r.bind(ctx, t, e, types.TBool, inPredicate); err != nil || typ.OID != types.OIDUnknown && typ.OID != types.OIDText {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of WHERE must be type boolean, not type %s", typ.Base()).At(e.Position())
		}
	}
	return r.storedText(ctx, t, e, bound, "functions in index predicate must be marked IMMUTABLE")
}

// singular names the place of a subquery as PostgreSQL does.
func singular(err error) error {
	if pg, ok := err.(*pgerror.Error); ok {
		switch pg.Message {
		case "cannot use subquery in " + inIndex:
			pg.Message = "cannot use subquery in index expression"
		case "cannot use subquery in " + inPredicate:
			pg.Message = "cannot use subquery in index predicate"
		}
	}
	return err
}

// storedText makes the text of an expression that an index stores, which must not depend on anything but the row.
func (r *run) storedText(ctx context.Context, t *catalog.TableDescriptor, e ast.Expr, bound expr.Scalar, mutable string) (*catalog.ExprText, error) {
	var failed error
	fixed := expr.Rewrite(expr.Clone(bound), func(x expr.Scalar) expr.Scalar {
		p, ok := x.(*expr.Parse)
		if !ok || failed != nil {
			return x
		}
		if _, ok := p.X.(*expr.Const); !ok {
			return x
		}
		d, err := p.Eval(&expr.Context{Ctx: ctx, Env: r.Env}, nil)
		if err != nil {
			failed = err
			return x
		}
		return &expr.Const{Value: d, Typ: p.Typ}
	})
	if failed != nil {
		return nil, failed
	}
	if expr.Mutable(fixed, immutableInput) {
		return nil, pgerror.New(invalidObjectDefinition, "%s", mutable)
	}
	text := &catalog.ExprText{SQL: r.pinned(e), Call: expr.IsCallForm(fixed)}
	stored := catalog.StoredExpr{Text: text.SQL, Table: t}
	var err error
	if text.Full, err = planner.ExprDefinition(ctx, stored, r.r, r.Env, false); err != nil {
		return nil, err
	}
	text.Pretty, err = planner.ExprDefinition(ctx, stored, r.r, r.Env, true)
	return text, err
}

// immutableInput reports whether reading a text as a value of type t depends on the text alone.
func immutableInput(t types.Type) bool {
	if elem := t.Elem(); elem.Valid() {
		return immutableInput(elem)
	}
	t = t.Underlying()
	switch t.Category() {
	case types.CategoryDateTime:
		return false
	case types.CategoryEnum, types.CategoryRange:
		return false
	}
	return t.Def == nil
}

// appendIndexName appends the part that a key contributes to the name of an index.
func appendIndexName(names []string, c *ast.IndexColumn) []string {
	name := c.Name
	if c.Expr != nil {
		if name = sql.ExprName(c.Expr); name == "?column?" {
			name = "expr"
		}
	}
	return append(names, catalog.KeyName(names, name))
}

// pruneComputed removes the computed columns of t that no index has as a key.
func pruneComputed(t *catalog.TableDescriptor) {
	t.Computed = slices.DeleteFunc(t.Computed, func(c catalog.ColumnDescriptor) bool {
		return !slices.ContainsFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return holdsColumn(&ix, c.ID) }) &&
			!(t.IsPartitioned() && slices.ContainsFunc(t.Partitioning.Keys, func(k catalog.IndexColumn) bool { return k.ColumnID == c.ID }))
	})
	if len(t.Computed) == 0 {
		t.Computed = nil
	}
}

// indexExpressions calls f with each expression of an index.
func indexExpressions(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, f func(*catalog.ExprText) error) error {
	ids := ix.ElementIDs()
	for i := range ix.Inverted {
		ids = append(ids, ix.Inverted[i].ColumnID)
	}
	for _, id := range ids {
		if c := t.ColumnByID(id); c != nil && c.Expr != nil {
			if err := f(c.Expr); err != nil {
				return err
			}
		}
	}
	if ix.Where != nil {
		return f(ix.Where)
	}
	return nil
}

// namesColumn reports whether an index holds a column, or names it in an expression.
func namesColumn(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, column *catalog.ColumnDescriptor) (bool, error) {
	found := holdsColumn(ix, column.ID)
	err := indexExpressions(t, ix, func(x *catalog.ExprText) error {
		e, err := sql.ParseExpr(x.SQL)
		if err == nil && slices.Contains(columnNames(e), column.Name) {
			found = true
		}
		return err
	})
	return found, err
}

// mapIndexExpressions replaces the expressions of the indexes of t by what change makes of their trees, and their types and printed forms by those
// that they have over the columns of t.
func (r *run) mapIndexExpressions(ctx context.Context, t *catalog.TableDescriptor, change func(ast.Expr)) error {
	again := func(x *catalog.ExprText) (ast.Expr, error) {
		e, err := sql.ParseExpr(x.SQL)
		if err == nil {
			change(e)
		}
		return e, err
	}
	stored := *r
	stored.r = catalog.ForStored(r.r)
	for i := range t.Computed {
		c := &t.Computed[i]
		if c.Expr == nil {
			continue
		}
		e, err := again(c.Expr)
		if err != nil {
			return err
		}
		bound, err := stored.bind(ctx, t, e, types.Type{}, inIndex)
		if err != nil {
			return err
		}
		if c.Expr, err = stored.storedText(ctx, t, e, bound, "functions in index expression must be marked IMMUTABLE"); err != nil {
			return err
		}
		c.Type, c.Name = bound.Type(), keyText(c.Expr)
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if err := fitsKeys(t, ix); err != nil {
			return err
		}
		if ix.Where == nil {
			continue
		}
		e, err := again(ix.Where)
		if err != nil {
			return err
		}
		if ix.Where, err = stored.indexPredicate(ctx, t, e); err != nil {
			return err
		}
	}
	return nil
}

// removeIndex removes an index from the descriptor that its table is to get, and its keys.
func (r *run) removeIndex(ctx context.Context, next *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: next.ID, Index: ix.ID}); err != nil {
		return err
	}
	next.Indexes = removeIndex(next.Indexes, ix.Name)
	pruneComputed(next)
	return nil
}

// reprintIndexes prints the expressions of indexes anew that name a type or a collation, which has another name or other labels now.
func (r *run) reprintIndexes(ctx context.Context, of dependency) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		names := false
		err := r.mapExpressions(t.Clone(), func(use typeUse, inspect func(ast.Visitor)) {
			if use.index != 0 {
				inspect(of.uses(func() { names = true }))
			}
		})
		if err != nil {
			return err
		}
		if !names {
			continue
		}
		if err := r.reprintIndexesOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) reprintIndexesOf(ctx context.Context, t *catalog.TableDescriptor) error {
	next := t.Clone()
	if err := r.mapIndexExpressions(ctx, next, func(ast.Expr) {}); err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}
