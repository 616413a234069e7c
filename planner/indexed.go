package planner

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// IndexExprs are the bound expressions of a table's indexes, over its full rows.
type IndexExprs struct {
	Computed []expr.Scalar // by place in Table.Computed
	Where    []expr.Scalar // by place in Table.Indexes; nil: all rows have an entry
	// Reads lists, by place in Table.Indexes, the ordinals of the columns that the index's expressions and predicate read.
	Reads [][]int
}

// hasIndexExprs reports whether an index of t computes something of a row.
func hasIndexExprs(t *catalog.TableDescriptor) bool {
	if len(t.Computed) > 0 {
		return true
	}
	for i := range t.Indexes {
		if t.Indexes[i].Where != nil || t.Indexes[i].Inverted != nil {
			return true
		}
	}
	return false
}

// BindIndexExprs binds the expressions of the indexes of t; nil if they compute nothing.
func BindIndexExprs(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (*IndexExprs, error) {
	if !hasIndexExprs(t) {
		return nil, nil
	}
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	p := &physical{b: b}
	out := p.indexExprs(t, b.newScan(t, t.Name, nil))
	return out, p.err
}

// indexExprs is BindIndexExprs over the rows of a scan.
func (p *physical) indexExprs(t *catalog.TableDescriptor, s *scanRel) *IndexExprs {
	if !hasIndexExprs(t) {
		return nil
	}
	if p.indexed(s); p.err != nil {
		return nil
	}
	out := &IndexExprs{Computed: p.compileAll(s.indexes.computed, s.cols), Where: make([]expr.Scalar, len(t.Indexes)), Reads: make([][]int, len(t.Indexes))}
	for i := range t.Indexes {
		var reads colSet
		if where := s.indexes.where[i]; where != nil {
			out.Where[i] = p.compile(where, s.cols)
			addUsed(where, &reads)
		}
		for j := range t.Indexes[i].Columns {
			s.addComputedUse(t.Indexes[i].Columns[j].ColumnID, &reads)
		}
		for j := range t.Indexes[i].Inverted {
			s.addComputedUse(t.Indexes[i].Inverted[j].ColumnID, &reads)
		}
		for _, e := range t.Indexes[i].Exclude {
			s.addComputedUse(e.ColumnID, &reads)
		}
		for ord, id := range s.cols {
			if reads.has(id) {
				out.Reads[i] = append(out.Reads[i], ord)
			}
		}
	}
	return out
}

// addComputedUse adds the columns that an expression of an index reads.
func (s *scanRel) addComputedUse(columnID uint32, reads *colSet) {
	at := s.table.Ordinal(columnID) - len(s.cols)
	if at >= 0 && s.indexes.computed[at] != nil {
		addUsed(s.indexes.computed[at], reads)
	}
}

// scanIndexes are what the indexes of a scan's table compute, over the columns of the scan.
type scanIndexes struct {
	computed []expr.Scalar // nil for the terms of an inverted index
	ids      []int         // column IDs of the computed columns
	where    []expr.Scalar
}

// indexed binds what the indexes of a scan's table compute.
func (p *physical) indexed(s *scanRel) *scanIndexes {
	if s.indexes != nil || !hasIndexExprs(s.table) {
		return s.indexes
	}
	t := s.table
	x := &scanIndexes{where: make([]expr.Scalar, len(t.Indexes))}
	s.indexes = x
	for i := range t.Computed {
		c := &t.Computed[i]
		var e expr.Scalar
		if c.Expr != nil {
			e = p.storedExpr(c.Expr.SQL, s, types.Type{}, "index expressions")
		}
		x.computed = append(x.computed, e)
		x.ids = append(x.ids, len(p.b.cols))
		p.b.cols = append(p.b.cols, columnInfo{Column: Column{Name: c.Name, Type: c.Type, Table: s.alias}, scan: s, ordinal: len(t.Columns) + i})
	}
	for i := range t.Indexes {
		if where := t.Indexes[i].Where; where != nil {
			x.where[i] = p.storedExpr(where.SQL, s, types.TBool, "index predicates")
		}
	}
	return x
}

// storedExpr binds an expression that an index stores, in the form that conditions have after they were rewritten.
func (p *physical) storedExpr(text string, s *scanRel, want types.Type, clause string) expr.Scalar {
	x, err := p.b.catalogExpr(text, s, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
		sc.in(clause, false, false)
		x, err := sc.expr(e)
		switch {
		case err != nil:
			return nil, err
		case !want.Valid() || x.Type().OID == want.OID:
			return p.b.textIfUnknown(x), nil
		}
		return p.b.coerce(x, want, castAssignment, 0)
	})
	if err != nil {
		p.fail(err)
		return expr.NewNull(types.TText)
	}
	ev := &expr.Context{Env: builtin.NewConstantEnv()}
	return expr.Rewrite(x, func(x expr.Scalar) expr.Scalar {
		if parse, ok := x.(*expr.Parse); ok {
			if _, ok := parse.X.(*expr.Const); ok {
				if d, err := parse.Eval(ev, nil); err == nil {
					return &expr.Const{Value: d, Typ: parse.Typ}
				}
			}
		}
		return expr.Fold(x)
	})
}

// columnID returns the ID of a table column of a scan, or of a computed one.
func (s *scanRel) columnID(ordinal int) int {
	if ordinal < len(s.cols) {
		return s.cols[ordinal]
	}
	return s.indexes.ids[ordinal-len(s.cols)]
}

// ordinalOf returns the table column that e is, or the computed one; -1 if it is none.
func (p *physical) ordinalOf(s *scanRel, e expr.Scalar) int {
	if ord := s.ordinalOf(e); ord >= 0 || len(s.table.Computed) == 0 {
		return ord
	}
	switch expr.Unlabel(e).(type) {
	case *expr.Column, *expr.Const, *expr.Input:
		return -1
	}
	for i, c := range p.indexed(s).computed {
		if c == nil {
			continue
		}
		if p.same(s, e, c) || p.same(s, expr.Unlabel(e), c) {
			return len(s.cols) + i
		}
	}
	return -1
}

// computedColumn returns the computed column that an expression over one table is; nil if it is none.
func (p *physical) computedColumn(e expr.Scalar) *expr.Column {
	var s *scanRel
	expr.Walk(e, func(x expr.Scalar) bool {
		if c, ok := x.(*expr.Column); ok && c.ID >= 0 && c.ID < len(p.b.cols) && s == nil {
			s = p.b.cols[c.ID].scan
		}
		return s == nil
	})
	if s == nil || len(s.table.Computed) == 0 {
		return nil
	}
	ord := p.ordinalOf(s, e)
	if ord < len(s.cols) {
		return nil
	}
	return &expr.Column{ID: s.columnID(ord), Typ: s.table.ColumnAt(ord).Type}
}

// same reports whether e is the expression c of an index. Where c has a constant, e may have a literal or parameter of that value: the plan
// then depends on it.
func (p *physical) same(s *scanRel, e, c expr.Scalar) bool {
	var tests []expr.Scalar
	if !expr.Match(e, c, func(in expr.Scalar, k *expr.Const) bool {
		if !expr.HasInput(in) || !valueOnly(in) || !sameValues(p.typeOf(in), k.Typ) || k.Value.IsNull() {
			return false
		}
		class, ok := expr.CompareClass(k.Typ, k.Typ)
		if !ok {
			return false
		}
		tests = append(tests, expr.NewCompare(expr.EQ, in, k, class))
		return true
	}) {
		return false
	}
	for _, t := range tests {
		if !p.test(s, t) {
			return false
		}
	}
	return true
}

// typeOf is the type that a value has when the statement is executed: that of a literal or parameter may have been found since it was bound.
func (p *physical) typeOf(e expr.Scalar) types.Type {
	in, ok := e.(*expr.Input)
	switch {
	case !ok:
		return e.Type()
	case in.Param > 0:
		return p.b.params[in.Param-1]
	case in.Typ.OID == types.OIDUnknown:
		return types.TText
	}
	return in.Typ
}
