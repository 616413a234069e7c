package planner

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
)

// verbatimBinder returns a binder for a stored text that is to be printed.
func verbatimBinder(ctx context.Context, r catalog.Resolver, env *builtin.Env) *binder {
	return &binder{ctx: ctx, r: catalog.ForStored(r), env: env, noSlots: true, stored: 1, shallow: true, notes: newBindNotes()}
}

// ViewDefinition writes the query of a view as pg_get_viewdef does, with all parentheses, and if pretty with those that are needed. Select lists
// continue in the next line beyond wrap columns.
func ViewDefinition(ctx context.Context, view *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env, pretty bool, wrap int) (string, error) {
	q, err := storedQuery(view.ViewQuery)
	if err != nil {
		return "", textError(err, "view", view.Name)
	}
	b := verbatimBinder(ctx, r, env)
	if _, err := b.bindQuery(q, nil, true); err != nil {
		return "", textError(err, "view", view.Name)
	}
	w := newRuleText(b, r, pretty)
	w.wrap = wrap
	w.query(q, columnNames(view), true)
	if w.failed {
		return " " + view.ViewQuery + ";", nil
	}
	return string(w.buf) + ";", nil
}

// ExprDefinition writes a stored expression as pg_get_expr does: with all parentheses, and if pretty with those that are needed.
func ExprDefinition(ctx context.Context, s catalog.StoredExpr, r catalog.Resolver, env *builtin.Env, pretty bool) (string, error) {
	b := verbatimBinder(ctx, r, env)
	x, err := b.bindStored(s)
	if err != nil {
		return "", err
	}
	w := newRuleText(b, r, pretty)
	w.qualify = s.Trigger
	w.expr(b.textIfUnknown(x), false)
	if w.failed {
		return s.Text, nil
	}
	return string(w.buf), nil
}

// bindStored binds a stored expression.
func (b *binder) bindStored(s catalog.StoredExpr) (expr.Scalar, error) {
	e, err := sql.ParseExpr(s.Text)
	if err != nil {
		return nil, err
	}
	sc := newScope(b, nil)
	switch {
	case s.Trigger:
		for _, row := range []string{OldRow, NewRow} {
			sc.items = append(sc.items, scanItem(b.newScan(s.Table, row, b.need(s.Table, 0)), row, true))
		}
	case s.Table != nil:
		sc.items = append(sc.items, scanItem(b.newScan(s.Table, s.Table.Name, b.need(s.Table, 0)), s.Table.Name, true))
	case s.Value.Valid():
		sc.items = append(sc.items, nsItem{open: true, cols: []nsCol{{name: valueName, id: b.newColumn(valueName, s.Value)}}})
	}
	x, err := sc.valueFor(e, s.Type, castAssignment, 0)
	if err == nil && s.Type.Valid() {
		x, err = b.coerce(x, s.Type, castAssignment, 0)
	}
	return x, err
}
