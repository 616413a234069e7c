package planner

import (
	"context"
	"maps"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// PinQuery fixes what the query of a view means, whatever columns the tables get later: stars in select lists are replaced by the columns that they
// stand for, NATURAL by USING, and names of columns and of users' operators are qualified. The relations in it must be qualified. Errors are those of binding it.
func PinQuery(ctx context.Context, q *ast.Query, r catalog.Resolver, env *builtin.Env) error {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true, shallow: true, notes: newBindNotes(), stars: map[ast.Expr][]ast.SelectItem{}}
	if _, err := b.bindQuery(q, nil, true); err != nil {
		return err
	}
	ast.InspectQuery(q, ast.Visitor{List: b.spellStars, Expr: func(e ast.Expr) { PinOperator(e, r) }})
	for join, names := range b.notes.using {
		if !join.Natural {
			continue
		}
		if join.Natural, join.Using = false, names; len(names) == 0 && join.Kind != ast.InnerJoin {
			join.On = &ast.Bool{Value: true}
		}
	}
	return b.qualify(q)
}

// qualify qualifies the names of columns in a query that has been bound, unless they would mean something else then.
func (b *binder) qualify(q *ast.Query) error {
	before, err := meanings(b.ctx, q, b.r, b.env)
	if err != nil {
		return err
	}
	plain := map[*ast.ColumnRef][]string{}
	for e, x := range b.notes.bound {
		ref, ok := e.(*ast.ColumnRef)
		if f := b.notes.forms[x]; ok && len(ref.Parts) == 1 && f.e == e && f.stmt != nil && f.alias != "" && f.column != "" {
			plain[ref], ref.Parts = ref.Parts, []string{f.alias, f.column}
		}
	}
	after, err := meanings(b.ctx, q, b.r, b.env)
	if err == nil && maps.Equal(before, after) {
		return nil
	}
	for ref, parts := range plain {
		ref.Parts = parts
	}
	return b.ctx.Err()
}

// spellStars replaces the stars in a select list that has been bound.
func (b *binder) spellStars(list *[]ast.SelectItem) {
	var spelled []ast.SelectItem
	found := false
	for _, it := range *list {
		columns, star := b.stars[it.Expr]
		if found = found || star; star {
			spelled = append(spelled, columns...)
		} else {
			spelled = append(spelled, it)
		}
	}
	if found {
		*list = spelled
	}
}

// noteStar notes the columns that a star in a select list stands for: those of one item, or of all that are open.
func (b *binder) noteStar(sc *scope, e *ast.Star, items ...*nsItem) error {
	if b.stars == nil {
		return nil
	}
	columns := []ast.SelectItem{}
	for _, it := range items {
		for i := range it.cols {
			x, err := sc.spell(it, &it.cols[i], int(e.Pos))
			if err != nil {
				return err
			}
			name := it.cols[i].name
			columns = append(columns, ast.SelectItem{Expr: x, Name: name, Aliased: sql.ExprName(x) != name})
		}
	}
	b.stars[e] = columns
	return nil
}

// noteFields notes the fields that (x).* stands for.
func (b *binder) noteFields(e *ast.Field, names []string) error {
	if b.stars == nil {
		return nil
	}
	text := e.X.String()
	columns := []ast.SelectItem{}
	for _, name := range names {
		x, err := sql.ParseExpr(text) // Each has a tree of its own, which may be changed.
		if err != nil {
			return err
		}
		columns = append(columns, ast.SelectItem{Expr: &ast.Field{X: x, Name: name}, Name: name})
	}
	b.stars[e] = columns
	return nil
}

// spell returns an expression that means a column of an item in sight, whatever else there is.
func (sc *scope) spell(it *nsItem, c *nsCol, pos int) (ast.Expr, error) {
	if it.rel && it.alias != "" {
		return sc.spellOf(it, c.name), nil
	}
	if c.e == nil {
		if x := sc.spellSide(c.id); x != nil {
			return x, nil
		}
	}
	if _, n := sc.find(c.name); n == 1 {
		return &ast.ColumnRef{Parts: []string{c.name}}, nil
	}
	if merged, ok := c.e.(*expr.Coalesce); ok {
		call := &ast.Call{Name: []string{"coalesce"}, Syntax: ast.ValueSyntax}
		for _, arg := range merged.Args {
			if column, ok := arg.(*expr.Column); ok {
				if x := sc.spellSide(column.ID); x != nil {
					call.Args = append(call.Args, x)
				}
			}
		}
		if len(call.Args) == len(merged.Args) {
			return call, nil
		}
	}
	return nil, pgerror.Unsupported("* over a column that only joins name, as other FROM items do too", "Name the columns.").At(pos)
}

// spellSide returns the name of a column of a FROM item, nil if none that has a name has it.
func (sc *scope) spellSide(id int) ast.Expr {
	for i := range sc.items {
		it := &sc.items[i]
		if !it.rel || it.alias == "" || it.merged {
			continue
		}
		for j := range it.cols {
			if it.cols[j].e == nil && it.cols[j].id == id {
				return sc.spellOf(it, it.cols[j].name)
			}
		}
	}
	return nil
}

// spellOf qualifies a name by the FROM item it is of, with the item's schema if another has its alias.
func (sc *scope) spellOf(it *nsItem, name string) ast.Expr {
	for i := range sc.items {
		if other := &sc.items[i]; other != it && other.rel && other.alias == it.alias && it.schema != "" {
			return &ast.ColumnRef{Parts: []string{it.schema, it.alias, name}}
		}
	}
	return &ast.ColumnRef{Parts: []string{it.alias, name}}
}
