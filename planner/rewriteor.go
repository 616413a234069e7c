package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// orToIn makes a list of equalities over one column an IN, which an index can serve.
func orToIn(c expr.Scalar) expr.Scalar {
	or, ok := c.(*expr.Or)
	if !ok {
		return c
	}
	var x *expr.Column
	var class types.Type
	var list []expr.Scalar
	for _, a := range or.Args {
		col, cl, values := equalities(a)
		if col == nil || (x != nil && (x.ID != col.ID || class != cl)) {
			return orToTuples(or)
		}
		x, class = col, cl
		list = append(list, values...)
	}
	return expr.NewInList(x, list, class, false)
}

// equalities reads col = value and col IN (values) over constants.
func equalities(e expr.Scalar) (*expr.Column, types.Type, []expr.Scalar) {
	switch e := e.(type) {
	case *expr.Compare:
		if e.Op != expr.EQ {
			break
		}
		if col, ok := e.L.(*expr.Column); ok && col.ID >= 0 && fixedValue(e.R) {
			return col, e.Class, []expr.Scalar{e.R}
		}
		if col, ok := e.R.(*expr.Column); ok && col.ID >= 0 && fixedValue(e.L) {
			return col, e.Class, []expr.Scalar{e.L}
		}
	case *expr.InList:
		col, ok := e.X.(*expr.Column)
		if !ok || e.Not || col.ID < 0 {
			break
		}
		for _, v := range e.List {
			if !fixedValue(v) {
				return nil, types.Type{}, nil
			}
		}
		return col, e.Class, e.List
	}
	return nil, types.Type{}, nil
}

// fixedValue reports whether e is one value for the whole execution.
func fixedValue(e expr.Scalar) bool {
	switch e.(type) {
	case *expr.Const, *expr.Input:
		return true
	}
	return false
}

// orToTuples makes a disjunction of conjunctions of equalities over the same columns a list of tuples,
// which an index or a hash table can serve.
func orToTuples(or *expr.Or) expr.Scalar {
	var list *expr.TupleList
	for _, a := range or.Args {
		conds := expr.Conjuncts(nil, a)
		if list == nil {
			if len(conds) < 2 || len(conds) > expr.MaxTupleWidth {
				return or
			}
			list = &expr.TupleList{List: make([]expr.Scalar, 0, len(conds)*len(or.Args))}
		} else if len(conds) != len(list.X) {
			return or
		}
		if !appendTuple(list, conds) {
			return or
		}
	}
	return list
}

// appendTuple adds a conjunction of equalities, the first of which determines the columns.
func appendTuple(list *expr.TupleList, conds []expr.Scalar) bool {
	first := len(list.X) == 0
	var tuple [expr.MaxTupleWidth]expr.Scalar
	for _, c := range conds {
		if _, ok := c.(*expr.Compare); !ok {
			return false
		}
		col, class, values := equalities(c)
		if col == nil {
			return false
		}
		i := 0
		for i < len(list.X) && list.X[i].(*expr.Column).ID != col.ID {
			i++
		}
		switch {
		case first && i == len(list.X):
			list.X, list.Classes = append(list.X, col), append(list.Classes, class)
		case i == len(list.X) || list.Classes[i] != class || tuple[i] != nil:
			return false
		}
		tuple[i] = values[0]
	}
	list.List = append(list.List, tuple[:len(conds)]...)
	return true
}
