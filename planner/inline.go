package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// inlineBody parses the body of a function that can be inlined, nil for any other: one in SQL whose body is a single SELECT.
func (b *binder) inlineBody(call *builtin.RoutineCall) (*catalog.RoutineDescriptor, *ast.Query) {
	if b.notes != nil {
		return nil, nil
	}
	r := call.Routine
	d := b.r.Routines().ByOID(r.OID)
	if d == nil || r.Language != "sql" && r.Language != "internal" || d.SecurityDefiner || len(d.Config) > 0 || r.Kind != builtin.FunctionRoutine ||
		slices.Contains(b.inlining, r.OID) || len(b.inlining) >= maxInlining || b.env != nil && b.env.ObjectUsed != nil {
		return nil, nil
	}
	if a := b.opts.Access; a != nil && a.Routine(d, acl.Execute) == 0 {
		return nil, nil // Who may not call it shall not see what is in it.
	}
	statements, err := RoutineStatements(d)
	if err != nil || len(statements) != 1 {
		return nil, nil
	}
	q, _ := statements[0].(*ast.Query)
	return d, q
}

// maxInlining bounds how deep functions are inlined within each other.
const maxInlining = 32

// within binds something of an inlined body: its names are found as the function's are, and nothing of the statement is in sight but params.
func (b *binder) within(call *builtin.RoutineCall, d *catalog.RoutineDescriptor, bind func(sc *scope, params []int) error) error {
	slots, as, r, args, stored := b.noSlots, b.as, b.r, b.arguments, b.stored
	b.noSlots, b.as = true, 0
	if d.Standard {
		b.r = catalog.ForStored(b.r)
		b.stored++
	}
	b.inlining = append(b.inlining, call.Routine.OID)
	defer func() {
		b.noSlots, b.as, b.r, b.arguments, b.stored = slots, as, r, args, stored
		b.inlining = b.inlining[:len(b.inlining)-1]
	}()
	defer b.detached()()
	sc := newScope(b, nil)
	sc.given = true
	it := nsItem{alias: d.Name, rel: true, given: true, open: true}
	b.arguments = nil
	for i, p := range call.Routine.Inputs() {
		id := b.newColumn(p.Name, call.Args[i])
		b.arguments = append(b.arguments, id)
		if p.Name != "" {
			it.cols = append(it.cols, nsCol{name: p.Name, id: id})
		}
	}
	sc.items = append(sc.items, it)
	return bind(sc, b.arguments)
}

// inlineValue returns the expression that a function of SQL computes, over args; nil if it is not inlined. The conditions are PostgreSQL's.
func (b *binder) inlineValue(call *builtin.RoutineCall, args []expr.Scalar) expr.Scalar {
	r := call.Routine
	if r.Set || call.Ret.OID == types.OIDRecord || call.Ret.OID == types.OIDVoid {
		return nil
	}
	d, q := b.inlineBody(call)
	if q == nil {
		return nil
	}
	e := soleExpression(q)
	if e == nil {
		return nil
	}
	var x expr.Scalar
	var params []int
	undo := b.save()
	err := b.within(call, d, func(sc *scope, columns []int) (err error) {
		params = columns
		sc.in("", false, false)
		if x, err = sc.expr(e); err != nil {
			return err
		}
		x, err = b.coerce(b.textIfUnknown(x), call.Ret.Base(), castAssignment, 0)
		return err
	})
	if err != nil || expr.HasSubquery(x) || !mayInline(r, x, params, args) {
		undo()
		return nil
	}
	return b.substituted(x, params, args)
}

// soleExpression returns the expression of SELECT expression; nil for any other query.
func soleExpression(q *ast.Query) ast.Expr {
	s, ok := q.Body.(*ast.Select)
	if !ok || q.With != nil || len(q.OrderBy) > 0 || q.Limit != nil || q.Offset != nil || len(q.Locking) > 0 || len(s.Columns) != 1 ||
		len(s.From) > 0 || s.Where != nil || len(s.GroupBy) > 0 || s.Having != nil || s.Distinct || len(s.Windows) > 0 || s.Into != nil || s.AsOf != nil {
		return nil
	}
	if _, star := s.Columns[0].Expr.(*ast.Star); star {
		return nil
	}
	return s.Columns[0].Expr
}

// mayInline reports whether x, over the columns params, may stand for the call with args.
func mayInline(r *builtin.Routine, x expr.Scalar, params []int, args []expr.Scalar) bool {
	switch {
	case r.Volatility == builtin.Immutable && !immutable(x):
		return false
	case r.Volatility == builtin.Stable && expr.Volatile(x):
		return false
	}
	uses := make([]int, len(params))
	expr.Walk(x, func(y expr.Scalar) bool {
		if c, ok := y.(*expr.Column); ok {
			if i := slices.Index(params, c.ID); i >= 0 {
				uses[i]++
			}
		}
		return true
	})
	for i, n := range uses {
		switch {
		case n == 1:
		case expr.Volatile(args[i]), expr.HasSubquery(args[i]):
			return false
		case n > 1 && !cheap(args[i]):
			return false
		}
		if r.Strict && !expr.IsStrict(x, func(id int) bool { return id == params[i] }) {
			return false
		}
	}
	return true
}

// immutable reports whether x calls nothing but immutable functions.
func immutable(x expr.Scalar) bool {
	ok := true
	expr.Walk(x, func(y expr.Scalar) bool {
		switch y := y.(type) {
		case *expr.Call:
			ok = ok && y.Fn.Volatility == builtin.Immutable
		case *expr.Cast:
			ok = ok && (y.Fn == nil || y.Fn.Volatility() == builtin.Immutable)
		case *expr.Parse:
			ok = false
		}
		return ok
	})
	return ok
}

// cheap reports whether an expression may be computed several times: it calls no routine of a user.
func cheap(x expr.Scalar) bool {
	nodes := 0
	ok := true
	expr.Walk(x, func(y expr.Scalar) bool {
		nodes++
		if c, called := y.(*expr.Call); called && c.Fn.Call != nil {
			ok = false
		}
		return ok
	})
	return ok && nodes <= 10
}

// substituted returns x with args in the place of the columns params.
func (b *binder) substituted(x expr.Scalar, params []int, args []expr.Scalar) expr.Scalar {
	return expr.Rewrite(x, func(y expr.Scalar) expr.Scalar {
		if c, ok := y.(*expr.Column); ok {
			if i := slices.Index(params, c.ID); i >= 0 {
				return expr.Clone(args[i])
			}
		}
		if sub := expr.SubqueryOf(y); sub != nil {
			own := *sub
			sr := *sub.Plan.(*subRel)
			b.substituteAll(sr.root, params, args)
			sr.free = freeColumns(sr.root)
			own.Plan, own.Correlated = &sr, !sr.free.empty()
			expr.SetSubquery(y, &own)
		}
		return y
	})
}

// substituteAll puts args in the place of the columns params in a tree.
func (b *binder) substituteAll(r rel, params []int, args []expr.Scalar) {
	rewriteAll(r, func(x expr.Scalar) expr.Scalar {
		if x == nil {
			return nil
		}
		return b.substituted(x, params, args)
	})
}

// inlineTable returns the query of a function of SQL in FROM, over args, and its columns; nil if it is not inlined. The conditions are
// PostgreSQL's.
func (b *binder) inlineTable(call *builtin.RoutineCall, args []expr.Scalar) (rel, []int, error) {
	r := call.Routine
	if !r.Set || r.Strict || r.Volatility == builtin.Volatile || call.Ret.OID == types.OIDVoid {
		return nil, nil, nil
	}
	for _, x := range args {
		if expr.Volatile(x) || expr.HasSubquery(x) {
			return nil, nil, nil
		}
	}
	d, body := b.inlineBody(call)
	if body == nil || body.With.Modifies() || body.AsOf() != nil || len(body.Locking) > 0 {
		return nil, nil, nil
	}
	var q *query
	var params []int
	undo := b.save()
	err := b.within(call, d, func(sc *scope, columns []int) (err error) {
		params = columns
		if q, err = b.bindQuery(body, sc, false); err == nil {
			err = b.shape(q, call)
		}
		return err
	})
	columns, _ := returned(call)
	if err != nil || len(q.cols) != len(columns) || r.Volatility == builtin.Immutable && !b.immutableTree(q.root) {
		undo()
		return nil, nil, nil
	}
	b.substituteAll(q.root, params, args)
	out := &projectRel{input: q.root}
	for i := range q.cols {
		id := q.cols[i].id
		out.items = append(out.items, projection{b.newColumn(columns[i].Name, columns[i].Type), b.column(id, 0)})
	}
	b.inlined = call.SetFunc()
	return out, outputIDs(out.items), nil
}

// save returns a function that undoes what binding a body has recorded of the statement, if the body is not inlined after all.
func (b *binder) save() (undo func()) {
	needs, volatile, locks, consumes, modifying, routines := len(b.needs), b.volatile, b.locks, b.consumes, len(b.modifying), b.routines
	return func() {
		b.needs, b.modifying = b.needs[:needs], b.modifying[:modifying]
		b.volatile, b.locks, b.consumes, b.routines = volatile, locks, consumes, routines
	}
}

// immutableTree reports whether a tree calls nothing but immutable functions.
func (b *binder) immutableTree(r rel) bool {
	ok := true
	rewriteAll(r, func(x expr.Scalar) expr.Scalar {
		ok = ok && (x == nil || immutable(x))
		return x
	})
	return ok
}

func outputIDs(items []projection) []int {
	ids := make([]int, len(items))
	for i := range items {
		ids[i] = items[i].id
	}
	return ids
}
