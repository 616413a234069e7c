package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// withinGroup binds a call with WITHIN GROUP.
func (sc *scope) withinGroup(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	pos := int(e.Pos)
	switch {
	case e.ArgNames == nil && f.IsOrderedSet():
		if e.Over != nil {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "OVER is not supported for ordered-set aggregate %s", f).At(pos)
		}
		return sc.aggregate(f, e)
	}
	list := e.Args[:len(e.Args):len(e.Args)]
	for i := range e.Within {
		list = append(list, e.Within[i].Expr)
	}
	args, ts, err := sc.args(list)
	if err != nil {
		return nil, err
	}
	if f.IsAggregate() {
		if _, err := f.ResolveAggregate(ts); err != nil {
			return nil, at(err, pos)
		}
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", f).At(pos)
	}
	if _, err := sc.b.function(f, args, ts, pos); err != nil && !f.IsSet() && !f.IsWindow() {
		return nil, err
	}
	return nil, pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP specified, but %s is not an aggregate function", f).At(pos)
}

// withoutWithin is the error of a call of an ordered-set aggregate without WITHIN GROUP.
func (sc *scope) withoutWithin(f builtin.FuncName, e *ast.Call) error {
	_, ts, err := sc.args(e.Args)
	if err != nil {
		return err
	}
	if last := len(ts) - 1; !builtin.IsHypotheticalSet(f.Name) {
		if last < 0 {
			return at(builtin.ErrNoFunction(f.String(), ts), int(e.Pos))
		}
		if _, err := builtin.ResolveOrderedSet(f.Name, ts[:last], ts[last:]); err != nil {
			return at(err, int(e.Pos))
		}
	}
	return pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", f).At(int(e.Pos))
}

// orderedSetCall is aggregateCall for an ordered-set aggregate.
func (sc *scope) orderedSetCall(f builtin.FuncName, e *ast.Call) (*AggregateCall, int, error) {
	named, leave := sc.enterAggregate()
	defer leave()
	direct, directTypes, err := sc.args(e.Args)
	if err != nil {
		return nil, 0, err
	}
	keys := make([]ast.Expr, len(e.Within))
	for i := range e.Within {
		keys[i] = e.Within[i].Expr
	}
	ordered, orderedTypes, err := sc.args(keys)
	if err != nil {
		return nil, 0, err
	}
	if e.Distinct {
		return nil, 0, pgerror.New(pgerror.SyntaxError, "cannot use DISTINCT with WITHIN GROUP").At(int(e.Pos))
	}
	fn, err := builtin.ResolveOrderedSet(f.Name, directTypes, orderedTypes)
	if err != nil {
		return nil, 0, at(err, int(e.Pos))
	}
	sc.b.needFunction(fn)
	if fn.Hypothetical {
		err = sc.b.unifyHypothetical(direct, ordered, e.Args, keys)
	} else {
		err = sc.b.coerceOrdered(fn, direct, ordered, e.Args, keys)
	}
	if err != nil {
		return nil, 0, err
	}
	call := &AggregateCall{Func: fn, Direct: direct}
	sc.b.notes.coerced(keys, ordered)
	for i, it := range e.Within {
		if err := requireOrder(ordered[i].Type(), startOf(it.Expr)); err != nil {
			return nil, 0, err
		}
		call.OrderBy = append(call.OrderBy, SortKey{Expr: ordered[i], Desc: it.Desc, NullsFirst: it.NullsFirst})
		if !fn.Hypothetical {
			call.Args = append(call.Args, expr.Clone(ordered[i]))
		}
	}
	call.Filter, err = sc.filter(e.Filter)
	return call, named.deepest, err
}

// coerceOrdered gives the arguments of an ordered-set aggregate the types that it declares.
func (b *binder) coerceOrdered(fn *builtin.Aggregate, direct, ordered []expr.Scalar, directAt, orderedAt []ast.Expr) (err error) {
	for i := range direct {
		if direct[i], err = b.coerce(direct[i], fn.Args[i].Base(), castImplicit, startOf(directAt[i])); err != nil {
			return err
		}
	}
	for i := range ordered {
		if ordered[i], err = b.coerce(ordered[i], fn.Args[fn.Direct+i].Base(), castImplicit, startOf(orderedAt[i])); err != nil {
			return err
		}
	}
	return nil
}

// unifyHypothetical gives each value of the hypothetical row and the expression that it is compared with one type.
func (b *binder) unifyHypothetical(direct, ordered []expr.Scalar, directAt, orderedAt []ast.Expr) error {
	for i := range direct {
		pair := []expr.Scalar{ordered[i], direct[i]}
		if _, err := b.unify(pair, []int{startOf(orderedAt[i]), startOf(directAt[i])}, "WITHIN GROUP"); err != nil {
			return err
		}
		ordered[i], direct[i] = b.textIfUnknown(pair[0]), b.textIfUnknown(pair[1])
	}
	return nil
}

// groupDirect checks that the direct arguments of ordered-set aggregates read what each group determines. With several grouping sets they
// read the columns that the sets have.
func (g *grouper) groupDirect() error {
	for i := range g.sb.sel.aggs {
		call := &g.sb.sel.aggs[i].call
		for j, x := range call.Direct {
			y, err := g.rewrite(expr.Clone(x))
			if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.Grouping {
				return pe.WithDetail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
			}
			if err != nil {
				return err
			}
			if len(g.sb.sets) > 1 {
				call.Direct[j] = y
			}
		}
	}
	return nil
}
