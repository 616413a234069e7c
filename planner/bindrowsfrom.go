package planner

import (
	"cmp"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rowsFrom binds ROWS FROM: functions whose rows stand side by side.
func (b *binder) rowsFrom(sc *scope, t *ast.RowsFrom) (rel, error) {
	inner := newScope(b, sc)
	saved := sc.clause
	sc.in("functions in FROM", false, false)
	inner.in("functions in FROM", false, false)
	defer func() { sc.clause = saved }()
	z := &zipBinder{b: b, sc: inner}
	for i := range t.Functions {
		if err := z.add(&t.Functions[i]); err != nil {
			return nil, err
		}
	}
	name, err := b.tableFuncName(t.Functions[0].Call)
	if err != nil {
		return nil, err
	}
	f := z.rel(name.Name, t.Ordinality)
	alias := cmp.Or(t.Alias, name.Name)
	item := nsItem{alias: alias, rel: true, open: true, unlockable: "a function"}
	values := len(z.list) == 1 && z.list[0].Columns == nil
	item.scalar = values && !t.Ordinality
	for i, id := range f.cols {
		if i == 0 && t.Alias != "" && values && z.list[0].Column == "" {
			b.cols[id].Name = t.Alias
		}
		b.cols[id].Table = alias
		item.cols = append(item.cols, nsCol{name: b.cols[id].Name, id: id})
	}
	if err := b.rename(&item, t.Columns, alias, int(t.Pos)); err != nil {
		return nil, err
	}
	b.notes.item(t, &item)
	return f, sc.addItem(item)
}

// zipBinder binds functions in FROM whose rows stand side by side.
type zipBinder struct {
	b    *binder
	sc   *scope
	list []*builtin.SetFunc
	args []expr.Scalar
}

// add adds a function; one that returns no set has one row.
func (z *zipBinder) add(t *ast.TableFunc) error {
	f, err := z.b.tableFuncName(t.Call)
	if err != nil {
		return err
	}
	name := f.Name
	if name == "unnest" && len(t.Call.Args) > 1 && t.Call.ArgNames == nil {
		return z.unnest(t)
	}
	outer := z.b.apart
	z.b.apart = true
	r, _, err := z.b.tableFuncRel(z.sc, f, t)
	z.b.apart = outer
	if err != nil {
		return err
	}
	switch r := r.(type) {
	case *setFuncRel:
		z.list, z.args = append(z.list, r.fn), append(z.args, r.args...)
	case *valuesRel:
		x := r.rows[0][0]
		z.list, z.args = append(z.list, builtin.One(name, x.Type())), append(z.args, x)
	default:
		return pgerror.Unsupported(name+" in ROWS FROM", "Write it as a FROM item of its own.").At(int(t.Pos))
	}
	return nil
}

// unnest adds unnest of several arrays, one by one.
func (z *zipBinder) unnest(t *ast.TableFunc) error {
	for _, arg := range t.Call.Args {
		one := *t.Call
		one.Args = []ast.Expr{arg}
		fn, args, err := z.sc.setCall(builtin.SystemFunc("unnest"), &one)
		if err != nil {
			return err
		}
		z.list, z.args = append(z.list, fn), append(z.args, args...)
	}
	return nil
}

// rel returns the step that yields the rows.
func (z *zipBinder) rel(name string, ordinality bool) *setFuncRel {
	fn := builtin.Zip(name, z.list)
	f := &setFuncRel{fn: fn, args: z.args, ordinality: ordinality, name: name}
	for _, c := range fn.Columns {
		f.cols = append(f.cols, z.b.newColumn(c.Name, c.Type))
	}
	if ordinality {
		f.cols = append(f.cols, z.b.newColumn("ordinality", types.TInt8))
	}
	return f
}

// unnestMany binds unnest(a, b, …) in FROM.
func (b *binder) unnestMany(sc *scope, t *ast.TableFunc) (*setFuncRel, error) {
	z := &zipBinder{b: b, sc: sc}
	if err := z.unnest(t); err != nil {
		return nil, err
	}
	return z.rel("unnest", t.Ordinality), nil
}
